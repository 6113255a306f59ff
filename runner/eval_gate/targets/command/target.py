"""A command as a target: a rendered template, run once per case or once per batch.

Source: agentv evaluation spec, "CLI Template Execution" and "Provider-level batching flag"; agentv behaviour 5.3.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from eval_gate.config.settings import TargetChoice
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.execution import ErrorCause
from eval_gate.model.limits import DOCUMENT_VALUES
from eval_gate.model.setup import TargetIdentity
from eval_gate.process.captured_output import CapturedOutput
from eval_gate.process.environment import WithheldVariables, filter_environment
from eval_gate.process.misplaced_files import find_path_hint
from eval_gate.process.run import ProcessError, StartRefusal
from eval_gate.struct import replace
from eval_gate.targets.base import DescribedTarget, Request, RetryPolicy, TargetError, TargetFault
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.command.call import (
    FOLDER_PREFIX,
    MAX_OUTPUT,
    CommandCall,
    CommandResult,
    CommandRunner,
    HealthChecker,
    format_output_tail,
)
from eval_gate.targets.command.lines import LINE_HINT, ProgramEndError, open_line_program
from eval_gate.targets.command.program_session import adopt_session, format_new_messages, require_session_id
from eval_gate.targets.command.programs import find_failure, read_stream
from eval_gate.targets.command.response import parse_line, parse_object, parse_record, parse_response
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.deadline import pause_case_clock
from eval_gate.targets.response.stream import BodyReader
from eval_gate.targets.retry import LoadLimiter, build_shard_limiter, respond_with_retries
from eval_gate.text.escape import format_first_few, to_one_line
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, check_json_size
from eval_gate.text.untrusted.excerpt import format_excerpt

MAX_BATCH_OUTPUT: Final = limits.BATCH_BYTES
"""Maximum bytes of the responses of a batch."""
MAX_STREAM: Final = limits.CODEX_BYTES
"""Maximum bytes of the events of a coding agent."""
_MAX_SHOWN_LINE: Final = 500
_PATH_HINT: Final = (
    "name the place of the text with the target's responsePath and of the tool calls with its toolCallsPath"
)
_OUTPUT_HINT: Final = f"{_PATH_HINT}; the command must print nothing else, or write the response to {{OUTPUT_FILE}}"
_NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126


class CliTarget(DescribedTarget[CliSettings]):
    """Target that runs a command for each case or for a whole batch."""

    def __init__(
        self,
        settings: CliSettings,
        *,
        root: Path,
        environment: Mapping[str, str],
        redact: Redactor,
        max_retries: int | None = None,
    ) -> None:
        super().__init__(settings)
        self.timeout_ms = None if settings.timeout_seconds is None else settings.timeout_seconds * 1000
        self.batches = settings.provider_batching
        self.workspace_problem = "runs many cases in one call (providerBatching)" if self.batches else None
        self.conversation_problem = settings.conversation_problem
        self.remembers_turns = settings.remembers_turns
        self._root = root
        self._redact = redact
        variables = filter_environment(environment, settings.env.open())
        self._withheld = WithheldVariables.from_environment(environment, variables)
        self._caller = CommandRunner(
            settings.command_template.open(),
            settings.files_format,
            variables,
            redact.mask_bytes,
            keep=settings.keep_temp_files,
            resume_template=resume_command.open() if (resume_command := settings.resume_command) else None,
        )
        self._body_reader = BodyReader(settings, redact.mask_bytes) if settings.given_response_settings else None
        self._line_limits = (settings.timeout_seconds, settings.conversation_timeout_seconds)
        is_long = settings.agent_protocol is not None or settings.response_format.streams
        self._max_output = MAX_STREAM if is_long else MAX_OUTPUT
        self._health = HealthChecker(settings, variables, self._withheld, redact)
        retries = settings.max_retries or 0 if max_retries is None else max_retries
        self.retry_policy, self.limiter = RetryPolicy(max_retries=retries), LoadLimiter()
        self._notices: dict[str, None] = {}
        if settings.keep_temp_files:
            where = Path(tempfile.gettempdir()) / f"{FOLDER_PREFIX}*"
            self._notices[f"the files of the target {settings.name} are kept (keepTempFiles): {where}"] = None

    @property
    def identity(self) -> TargetIdentity:
        """Name and a short hash of its commands: another command is another target."""
        name = self._settings.name
        commands = (self._settings.command_template, self._settings.resume_command)
        text = "\n".join(command.open() for command in commands if command is not None)
        digest = sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
        return TargetIdentity(name=name, provider="cli", identity=f"cli:{name}#{digest}")

    @property
    def notices(self) -> tuple[str, ...]:
        """Where files are kept, and which parts of a batch failed."""
        return (*self._notices, *self.limiter.list_notices("the command"))

    async def respond(self, request: Request) -> Response:
        """Run the command and read its response; retry only a time-out. Raises TargetError."""
        await self._ensure_health(request)
        attempts = itertools.count(request.trial)
        respond_once = self._respond_in_line if self._settings.conversation else self._respond_once
        return await respond_with_retries(
            lambda: respond_once(request, next(attempts)),
            self.retry_policy,
            self.limiter,
            only_unprocessed=request.turn > 0 and self.remembers_turns,
        )

    async def respond_batch(self, requests: Sequence[Request]) -> Mapping[str, Response]:
        """Run the command once for every `batchSize` cases. Raises TargetError if all runs fail; some give notices."""
        if not requests:
            return {}
        await self._ensure_health(requests[0])
        size = self._settings.batch_size or len(requests)
        responses: dict[str, Response] = {}
        broken: list[TargetError] = []
        for start in range(0, len(requests), size):
            try:
                responses |= await self._run_batch(requests[start : start + size])
            except TargetError as error:
                broken.append(error)
        if broken and not responses:
            raise broken[0]
        for trouble in broken:
            what = f"a batch of up to {size} cases broke, so each of its cases was sent separately"
            self._notices[f"{what}: {trouble.message}"] = None
        return responses

    async def check_health(self) -> None:
        """Run the health check, unless it depends on the eval file's folder. Raises TargetError (unreachable)."""
        await self._health.require_healthy(None)

    async def aclose(self) -> None:
        """End a health check that still runs."""
        await self._health.aclose()

    async def _ensure_health(self, request: Request) -> None:
        with pause_case_clock():
            await self._health.require_healthy(self._get_eval_folder(request))

    async def _respond_once(self, request: Request, attempt: int) -> Response:
        call = self._build_call(request, attempt)
        if call.resumes and not self._caller.has_placeholder("SESSION"):
            require_session_id(request.open_session)
        result, output = await self._run_call(call)
        response = self._read_output(output)
        if self._settings.agent_protocol is not None and self.remembers_turns:
            response = adopt_session(request.open_session, response, self._settings.agent_protocol)
        warnings = (*response.warnings, *self._describe_command(result.line))
        return replace(response, duration_ms=result.finished.seconds * 1000, warnings=warnings)

    async def _respond_in_line(self, request: Request, attempt: int) -> Response:
        """Send a line to the program of the conversation, or of this case, and read the line that it prints."""
        session = request.open_session or ConversationSession()
        call = self._build_call(replace(request, open_session=session), attempt)
        try:
            command = self._caller.build_command(call)
            program = await session.enter("program", lambda: open_line_program(command, *self._line_limits))
            output, duration_ms = await program.exchange_lines(call.prompt, session.id)
        except ProcessError as error:
            raise _build_start_error(error) from error
        except ProgramEndError as error:
            raise self._build_exit_error(str(error), error.code, call.cwd) from error
        finally:
            if request.open_session is None:
                with pause_case_clock():
                    await session.aclose()
        response = self._read_line(self._redact.mask_bytes(output))
        warnings = (*response.warnings, *self._describe_command(str(command.line)))
        return replace(response, duration_ms=duration_ms, warnings=warnings)

    def _read_line(self, line: bytes) -> Response:
        if self._body_reader is not None:
            return _read_body(self._body_reader, line)
        response = parse_line(line.decode("utf-8", "replace"))
        if response is None:
            what = f"the line is not a JSON object with `text` or `output_messages`: it begins {format_excerpt(line)}"
            raise TargetError(what, fault=TargetFault.MALFORMED, hint=f"{LINE_HINT}; or {_PATH_HINT}")
        return response

    async def fetch_output(self, request: Request) -> bytes:
        """Run the command once, and return its output, in which nothing is read yet. Raises TargetError."""
        return (await self._run_call(self._build_call(request, request.trial)))[1].data

    def _read_output(self, output: CapturedOutput) -> Response:
        """Read the response in the output of one case; only plain text may be truncated."""
        preset = self._settings.agent_protocol
        is_read = preset is not None or self._body_reader is not None or output.data.lstrip()[:1] == b"{"
        if output.is_truncated and is_read:
            what = f"the response has {output.total:,} bytes (limit {self._max_output:,})"
            raise TargetError(what, fault=TargetFault.MALFORMED)
        if preset is not None:
            return read_stream(preset, output.to_text())
        if self._body_reader is not None:
            return _read_body(self._body_reader, output.data)
        response = parse_response(output.to_text())
        if not output.is_truncated:
            return response
        part = f"{len(output.data):,} of them are kept, from its beginning and end"
        what = f"the response was truncated: of {output.total:,} bytes {part}"
        return replace(response, warnings=(*response.warnings, what))

    async def _run_batch(self, requests: Sequence[Request]) -> dict[str, Response]:
        calls = [self._build_call(request, request.trial) for request in requests]
        batch_call = CommandCall(
            "batch",
            calls[0].cwd,
            attempt=calls[0].attempt,
            batch=format_batch_input(calls),
            timeout_s=self._settings.timeout_seconds,
            max_output=MAX_BATCH_OUTPUT,
        )
        result, output = await self._run_call(batch_call)
        if output.is_truncated:
            what = f"the batch's output is {output.total:,} bytes (limit {MAX_BATCH_OUTPUT:,})"
            raise TargetError(what, fault=TargetFault.MALFORMED)
        reader = self._body_reader
        read_line = None if reader is None else lambda line: _read_body(reader, line)
        responses = parse_batch(output.to_text(), [request.case_id for request in requests], read_line)
        share_ms, warnings = result.finished.seconds * 1000 / len(requests), self._describe_command(result.line)
        return {
            case_id: replace(response, duration_ms=share_ms, warnings=(*response.warnings, *warnings))
            for case_id, response in responses.items()
        }

    async def _run_call(self, call: CommandCall) -> tuple[CommandResult, CapturedOutput]:
        """Run the command once and return its result and the captured response."""
        try:
            result = await self._caller.run_call(call)
        except ProcessError as error:
            raise _build_start_error(error) from error
        finished = result.finished
        words = format_output_tail(finished)
        if finished.timed_out:
            what = f"CLI provider timed out after {self._settings.timeout_seconds:g}s{words}"
            raise TargetError(what, fault=TargetFault.LATE, retryable=True)
        if finished.code != 0:
            preset = self._settings.agent_protocol
            if preset is not None and (why := find_failure(preset, finished.stdout.to_text())):
                words = f": {why}"
            raise self._build_exit_error(f"CLI {finished.ending}{words}", finished.code, call.cwd)
        if result.output is None:
            what = f"the command exited with code 0 but wrote no {{OUTPUT_FILE}}{words}"
            raise TargetError(what, fault=TargetFault.MALFORMED)
        return result, result.output

    def _build_exit_error(self, what: str, code: int | None, cwd: Path) -> TargetError:
        """Build the error of a program that ended without a response, with advice by its exit code and its words."""
        command = self._settings.command_template.open()
        variable_hint = self._withheld.find_hint(command, what)
        hint = _find_hint(code, cwd)
        return TargetError(
            f"{what}{f'; {variable_hint}' if variable_hint else ''}",
            fault=TargetFault.REFUSED,
            hint=find_path_hint(command, cwd) or hint,
            known_cause=ErrorCause.PROGRAM_NOT_STARTED if hint else ErrorCause.PROGRAM_FAILED,
        )

    def _build_call(self, request: Request, attempt: int) -> CommandCall:
        brief, is_remembered = request.brief, self.remembers_turns
        prompt = format_new_messages(request, is_remembered=is_remembered)
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        # guidelines that the template takes as text are not passed a second time as files
        guideline_files = () if brief is None or self._caller.has_placeholder("GUIDELINES") else brief.guideline_files
        return CommandCall(
            eval_id=request.case_id,
            cwd=request.workspace or self._get_eval_folder(request) / (self._settings.cwd or "."),
            prompt=prompt if brief is None or request.turn else brief.question,
            conversation=json.dumps(messages),
            session=request.session or str(uuid.uuid4()),
            resumes=is_remembered and request.turn > 1,
            guidelines="" if brief is None else brief.guidelines,
            files=() if brief is None else tuple(dict.fromkeys((*brief.input_files, *guideline_files))),
            attempt=attempt,
            timeout_s=self._settings.timeout_seconds,
            max_output=self._max_output,
            variables=request.variables,
        )

    def _get_eval_folder(self, request: Request) -> Path:
        return (self._root / request.eval_file).parent if request.eval_file else self._root

    def _describe_command(self, line: str) -> tuple[str, ...]:
        """Describe the command, if the settings ask for it."""
        if not self._settings.verbose:
            return ()
        return (f"ran: {to_one_line(self._redact(line), _MAX_SHOWN_LINE)}",)


def build(settings: CliSettings, choice: TargetChoice, context: BuildContext) -> CliTarget:
    """Build the command target. Nothing is started yet."""
    target = CliTarget(
        settings,
        root=context.root,
        environment=context.environment,
        redact=context.redact,
        max_retries=choice.max_retries,
    )
    target.limiter.rate = build_shard_limiter(choice.requests_per_minute, context.shards)
    return target


def _build_start_error(error: ProcessError) -> TargetError:
    fault = TargetFault.NOT_SENT if error.refusal is StartRefusal.SYSTEM else TargetFault.REFUSED
    return TargetError(f"CLI error: {error.message}", fault=fault)


def _find_hint(code: int | None, cwd: Path) -> str | None:
    if code == _NOT_FOUND:
        return f"the shell did not find the program: it searches names on PATH and paths in {cwd}"
    return "the program is not executable" if code == _NOT_EXECUTABLE else None


def format_batch_input(calls: Iterable[CommandCall]) -> bytes:
    """Format the cases as JSONL with the id, prompt, guidelines and files of each case."""
    lines: list[dict[str, JsonValue]] = [
        {"id": call.eval_id, "prompt": call.prompt, "guidelines": call.guidelines, "files": [*call.files]}
        for call in calls
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def _read_body(reader: BodyReader, output: bytes) -> Response:
    """Read the response that settings describe in the output of a command. Raises TargetError."""
    try:
        return reader.read(output, 0)
    except TargetError as error:
        if error.fault is TargetFault.MALFORMED:
            error.known_cause, error.hint = ErrorCause.WRONG_SHAPE, _OUTPUT_HINT
        raise


def parse_batch(
    content: str, case_ids: Collection[str], read_line: Callable[[bytes], Response] | None = None
) -> dict[str, Response]:
    """Parse the responses of a batch by case id, without ids that are not in `case_ids`.

    `read_line` reads the response in one line; without it, the line is AgentV's.

    Raises TargetError for the whole batch if a line is not a JSON object with an id, an id occurs twice, or a
    case id is missing. A program that writes one wrong line may have mixed up the others.
    """
    try:
        check_json_size(content.encode("utf-8", "replace"), DOCUMENT_VALUES)
    except UntrustedJsonError as error:
        raise _build_batch_error(f"it {error}") from error
    responses: dict[str, Response] = {}
    for number, line in enumerate(content.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        record = parse_object(line)
        if record is None:
            raise _build_batch_error(f"line {number} is not a JSON object: it begins {_quote_text(line)}")
        case_id = record.get("id")
        if not isinstance(case_id, str) or not case_id:
            raise _build_batch_error(f"line {number} has no id")
        if case_id in responses:
            raise _build_batch_error(f"line {number} repeats the id {_quote_text(case_id)}")
        responses[case_id] = parse_record(record) if read_line is None else read_line(line.encode())
    missing_ids = [case_id for case_id in case_ids if case_id not in responses]
    if missing_ids:
        raise _build_batch_error(f"no response for {format_first_few(missing_ids, 3, _quote_text)}")
    return {case_id: responses[case_id] for case_id in case_ids}


def _quote_text(text: str) -> str:
    return format_excerpt(text.encode("utf-8", "replace"))


def _build_batch_error(what: str) -> TargetError:
    return TargetError(f"the output of the batch cannot be used: {what}", fault=TargetFault.MALFORMED)
