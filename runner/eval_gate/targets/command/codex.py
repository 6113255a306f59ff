"""Codex as a preset of commands: its arguments, prompt, folder and log (agentv spec, "Codex CLI provider")."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError, Problem
from eval_gate.files.file_paths import find_folder_problem, format_path
from eval_gate.model import limits
from eval_gate.model.conversation import OutputCall, OutputMessage, Response
from eval_gate.model.execution import ErrorCause
from eval_gate.model.setup import TargetIdentity
from eval_gate.process.environment import WithheldVariables, filter_environment
from eval_gate.process.private_folder import PrivateFolder, open_private_folder
from eval_gate.process.run import CapturedOutput, Command, FinishedProgram, ProcessError, run
from eval_gate.struct import replace
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.coding_agent import (
    INPUT_FILES,
    build_program_error,
    build_prompt,
    find_program,
    refuse_missing_file,
)
from eval_gate.targets.command.codex_log import DEFAULT_FOLDER, CodexLog, LogFormat, should_log
from eval_gate.targets.command.program_session import adopt_session, format_new_messages, require_session_id
from eval_gate.targets.command.programs import ProgramName, find_codex_error, read_stream
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.settings import (
    AGENT_PLACE,
    AGENT_SETTING,
    LONGEST_S,
    NoEffect,
    Place,
    ProgramSettings,
    Text,
    Value,
)
from eval_gate.text.escape import to_one_line
from eval_gate.text.quoting import quote_name
from eval_gate.text.redaction import Redactor
from eval_gate.text.secret import Secret

PREAMBLE: Final = """\
[[ ## system_instructions ## ]]
You work alone: nobody answers questions, and nobody looks at the folder you work in.
Your last message is all that is read, so it has to hold the complete answer.
Where the answer is a change to files, show each of them in that message as a diff that begins with `diff --git`."""
"""Beginning of the prompt, unless the target has a system prompt."""
MAX_OUTPUT: Final = limits.CODEX_BYTES
_ARGUMENTS: Final = (
    *("--ask-for-approval", "never", "exec"),
    *("--json", "--color", "never", "--skip-git-repo-check"),
)
"""Arguments before those of the target; the prompt comes on stdin."""
_MAX_QUOTED: Final = 200
_MAX_TAIL: Final = 500
_HOME_VARIABLE: Final = "CODEX_HOME"
"""Variable with the folder of Codex's login and configuration, if it is outside the home folder."""


def _split_arguments(value: object) -> object:
    """Split a text into arguments as a shell does, without running a shell."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into arguments: {str(error).lower()}") from error


class CodexSettings(ProgramSettings):
    """Settings of a Codex target. Paths are relative to the root of the run."""

    other_names: ClassVar[Mapping[str, str]] = {"command": "executable", "binary": "executable", "arguments": "args"}

    provider: Literal["codex"] = "codex"
    executable: Annotated[Place, AGENT_PLACE] = Field(
        default="codex", description="Name to look up on PATH, or a path."
    )
    args: Annotated[
        Secret[tuple[Value, ...]],
        BeforeValidator(_split_arguments, json_schema_input_type=tuple[str, ...] | str),
        AGENT_PLACE,
    ] = Field(
        default_factory=tuple,
        validate_default=True,
        description="Additional arguments before the final `-`: a list, or one string as in a shell.",
    )
    cwd: Place | None = Field(
        default=None, description="Working folder of Codex; by default a new empty folder for each case."
    )
    timeout_seconds: float | None = Field(default=None, gt=0, le=LONGEST_S)
    log_dir: Annotated[Place | None, NoEffect("it is where logs are written")] = Field(
        default=None, description="Folder for logs; .agentv/logs/codex by default."
    )
    log_format: Annotated[LogFormat, NoEffect("it is how logs are written")] = Field(
        default="summary", description="summary (one line for each event) or json (the events themselves)."
    )
    system_prompt: Annotated[Secret[Text] | None, AGENT_SETTING] = Field(
        default=None, description="Text at the start of the prompt, instead of the built-in one."
    )
    provider_batching: bool = Field(default=False, description="Not supported: Codex runs once for each case.")


class CodexTarget(DescribedTarget[CodexSettings]):
    """Target that runs Codex once for each case or turn."""

    conversation_problem = None

    def __init__(
        self, settings: CodexSettings, *, root: Path, environment: Mapping[str, str], redact: Redactor
    ) -> None:
        super().__init__(settings)
        self.timeout_ms = None if settings.timeout_seconds is None else settings.timeout_seconds * 1000
        self._root = root
        self._redact = redact
        self._folder = root / settings.cwd if settings.cwd else None
        home = {_HOME_VARIABLE: environment[_HOME_VARIABLE]} if _HOME_VARIABLE in environment else {}
        self._environment = filter_environment(environment, {**home, **settings.env.open()})
        self._withheld = WithheldVariables.from_environment(environment, self._environment)
        self._log_folder = root / (settings.log_dir or DEFAULT_FOLDER) if should_log(environment) else None
        self._program: str | None = None
        self._trouble: dict[str, None] = {}

    @property
    def identity(self) -> TargetIdentity:
        """The program and its arguments: another model is another identity."""
        line = " ".join((self._settings.executable, *self._settings.args.open()))
        return TargetIdentity(name=self._settings.name, provider="codex", identity=self._redact(f"codex:{line}")[:300])

    @property
    def notices(self) -> tuple[str, ...]:
        """Logs that could not be written."""
        return tuple(self._trouble)

    async def check_health(self) -> None:
        """Raise TargetError when there is no such program, or no such folder to work in."""
        self._find_program()

    async def respond(self, request: Request) -> Response:
        """Run Codex and read its response. Raises TargetError, which names the log and quotes the output."""
        settings, session = self._settings, request.open_session or ConversationSession()
        # Codex takes its options only before `resume`
        resume = ("resume", require_session_id(session)) if request.turn > 1 else ()
        command = (self._find_program(), *_ARGUMENTS, *settings.args.open(), *resume, "-")
        prompt_bytes = self._build_prompt(request).encode("utf-8", "replace")
        log = CodexLog(self._log_folder, settings.name, request, settings.log_format, self._redact)
        finished: FinishedProgram | None = None
        try:
            folder = await session.enter("folder", self._open_folder)
            if not resume:  # a thread that is resumed has its folder, where the agent may have changed the file
                folder.write("prompt.md", prompt_bytes)
            cwd = request.workspace or self._folder or folder.path
            log.begin(command, cwd)
            finished = await run(
                Command(
                    command,
                    cwd=cwd,
                    environment={**self._environment, **request.variables},
                    stdin=prompt_bytes,
                    timeout_s=settings.timeout_seconds,
                    max_output=MAX_OUTPUT,
                    end_when_cut=True,
                    watch=log.add,
                    mask=self._redact.mask_bytes,
                )
            )
        except (ProcessError, OSError) as error:
            why = error.message if isinstance(error, ProcessError) else error.strerror
            raise self._build_error(f"Codex CLI could not be run: {why}", None, log, TargetFault.UNREACHABLE) from error
        finally:
            if request.open_session is None:
                await session.aclose()
            log.end(finished)
            if log.trouble:
                self._trouble[log.trouble] = None
        response = self._read_output(finished, log)
        refuse_missing_file(request, response.text)
        return adopt_session(request.open_session, response, ProgramName.CODEX)

    def _build_prompt(self, request: Request) -> str:
        """Build the prompt of a case, or only the new message for a thread that has the rest."""
        if request.turn > 1:
            return f"{format_new_messages(request, is_remembered=True)}\n"
        preamble = self._settings.system_prompt
        return build_prompt(request, INPUT_FILES, preamble.open() if preamble else PREAMBLE)

    @asynccontextmanager
    async def _open_folder(self) -> AsyncIterator[PrivateFolder]:
        """Open the folder of a case, in which Codex works unless its settings name another one."""
        with open_private_folder("eval-gate-codex-", self._folder or self._root) as folder:
            yield folder

    def _find_program(self) -> str:
        if self._program is None:
            program = find_program(self._settings.executable, "Codex executable", self._root, self._environment)
            if self._folder is not None and not self._folder.is_dir():
                what = f"the folder that Codex should work in does not exist: {self._settings.cwd}"
                raise build_program_error(what)
            self._program = program
        return self._program

    def _read_output(self, finished: FinishedProgram, log: CodexLog) -> Response:
        if finished.timed_out:
            limit = self._settings.timeout_seconds or 0
            raise self._build_error(f"Codex CLI timed out after {limit:g} s", finished, log, TargetFault.LATE)
        if finished.stdout.is_truncated:
            raise self._build_error(f"Codex CLI printed more than {MAX_OUTPUT:,} bytes", finished, log)
        text = finished.stdout.to_text()
        if finished.code != 0:
            why = to_one_line(find_codex_error(text) or "", _MAX_QUOTED)
            raise self._build_error(f"Codex CLI {finished.ending}{f': {why}' if why else ''}", finished, log)
        try:
            response = read_stream(ProgramName.CODEX, text)
        except TargetError as error:
            raise self._build_error(error.message, finished, log, error.fault) from error
        calls = tuple(
            OutputCall(tool=call.name, input=call.params, output=call.result, id=call.id)
            for call in response.tool_calls
        )
        message = OutputMessage(role="assistant", content=response.text, tool_calls=calls)
        messages = (message,) if response.tool_calls_known else None
        return replace(response, duration_ms=finished.seconds * 1000, messages=messages)

    def _build_error(
        self, what: str, finished: FinishedProgram | None, log: CodexLog, fault: TargetFault = TargetFault.REFUSED
    ) -> TargetError:
        """Build an error with the end of the output and the path of the log. The quoted output is truncated."""
        parts = [what]
        if finished is not None:
            streams = (("stderr", finished.stderr), ("stdout", finished.stdout))
            parts += [f"{name}: {words}" for name, stream in streams if (words := _format_tail(stream))]
        if hint := self._withheld.find_hint("", " ".join(parts)):
            parts.append(hint)
        if log.path is not None:
            parts.append(f"log: {format_path(log.path, self._root)}")
        if fault is TargetFault.UNREACHABLE:
            return build_program_error("; ".join(parts))
        is_ended = fault is TargetFault.REFUSED
        return TargetError("; ".join(parts), fault=fault, known_cause=ErrorCause.PROGRAM_FAILED if is_ended else None)


def _format_tail(stream: CapturedOutput) -> str:
    words = stream.format_last_line(4 * _MAX_TAIL)
    return words if len(words) <= _MAX_TAIL else f"…{words[1 - _MAX_TAIL :]}"


def build(settings: CodexSettings, choice: TargetChoice, context: BuildContext) -> CodexTarget:
    """Codex, not yet started. Raises GateError for a folder of logs outside of the working directory."""
    if settings.log_dir is not None and (
        why := find_folder_problem(settings.log_dir, anywhere=False, root=context.root)
    ):
        folder = settings.find_reference("logDir") or settings.log_dir
        what = f"target {settings.name}: the log_dir {quote_name(folder)} {why}"
        hint = "name a folder below the working directory"
        raise GateError("output-outside-working-directory", what, hint, problems=[Problem(what, field="logDir")])
    return CodexTarget(settings, root=context.root, environment=context.environment, redact=context.redact)
