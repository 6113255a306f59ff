"""Run a command template: fill in its values, start the process, read its output; also as a health check."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from eval_gate.files.certificates import build_async_client
from eval_gate.model import limits
from eval_gate.process.captured_output import CapturedOutput, Mask
from eval_gate.process.environment import WithheldVariables
from eval_gate.process.private_folder import PrivateFolder, open_private_folder
from eval_gate.process.run import Command, FinishedProgram, ProcessError, StartRefusal, run
from eval_gate.struct import FrozenStruct
from eval_gate.targets.agent_address import ContainerProbe, find_connection_hint, resolve_host
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command.settings import CliSettings, HealthCheck
from eval_gate.text.command_template import CommandTemplate, quote_for_shell
from eval_gate.text.escape import to_one_line, to_plain_word
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.excerpt import replace_events
from eval_gate.text.untrusted.surrogates import to_well_formed
from eval_gate.text.urls import to_public_url

FOLDER_PREFIX: Final = "eval-gate-cli-"
"""Prefix of the names of folders with temporary files."""
MAX_OUTPUT: Final = limits.COMMAND_BYTES
"""Maximum bytes of a response."""
BATCH_INPUT_VARIABLE: Final = "AGENT_BATCH_INPUT"
"""Variable with the path of a batch's file of cases."""
_MAX_UNUSED_STDOUT: Final = 64_000
"""Maximum bytes of stdout that are kept if it is not the response."""
_MAX_ID_IN_NAME: Final = 60
MAX_QUOTED: Final = 300
"""Maximum characters of a program's output in a message."""
_MAX_TAIL: Final = 20_000
"""Bytes at the end of an output that are searched for a message."""
_DEFAULT_CHECK_S: Final = 30.0
_CHECK_ID: Final = "healthcheck"


class CommandCall(FrozenStruct):
    """Input of one run of a command. `batch` is the content of the file of cases of a batch.

    `conversation` is the content of `CONVERSATION_FILE`. `resumes` means that the program goes on with its session.
    """

    eval_id: str
    cwd: Path
    prompt: str = ""
    conversation: str = ""
    session: str = ""
    resumes: bool = False
    guidelines: str = ""
    files: tuple[str, ...] = ()
    attempt: int = 0
    batch: bytes | None = None
    timeout_s: float | None = None
    max_output: int = MAX_OUTPUT
    variables: Mapping[str, str] = MappingProxyType({})
    """Variables of the execution."""


class CommandResult(FrozenStruct):
    """Result of one run of a command. `output` is None where the output file is missing."""

    line: str
    finished: FinishedProgram
    output: CapturedOutput | None


class CommandRunner:
    """Runner of one command template, or of another one for calls that go on with a session.

    Removes the files of a call afterwards, unless `keep` is set.
    """

    def __init__(
        self,
        template: str,
        files_format: str,
        environment: Mapping[str, str],
        mask: Mask,
        *,
        keep: bool = False,
        resume_template: str | None = None,
    ) -> None:
        self._template = CommandTemplate.from_command(template)
        self._resume = CommandTemplate.from_command(template if resume_template is None else resume_template)
        self._file = CommandTemplate.from_file_format(files_format)
        self._environment = dict(environment)
        self._mask = mask
        self._keep = keep

    def has_placeholder(self, placeholder: str) -> bool:
        """Whether the template holds this placeholder."""
        return placeholder in self._template.names

    def build_command(self, call: CommandCall) -> Command:
        """Build the command of a program that needs no files of the call. Raises ProcessError."""
        line = self._template.render(self._build_values(self._template, call))
        return Command(line, call.cwd, {**self._environment, **call.variables}, mask=self._mask)

    async def run_call(self, call: CommandCall) -> CommandResult:
        """Run the command to its end. Raises ProcessError when it cannot be started or its file cannot be read."""
        with open_private_folder(FOLDER_PREFIX, call.cwd, keep=self._keep) as folder:
            stem = to_plain_word(call.eval_id)[:_MAX_ID_IN_NAME].strip("-.") or "case"
            name, batch = f"{stem}.json", dict[str, str]()
            if call.batch is not None:
                name = f"{stem}.jsonl"
                batch = {BATCH_INPUT_VARIABLE: str(folder.write("batch-input.jsonl", call.batch))}
            template = self._resume if call.resumes else self._template
            values = self._build_values(template, call) | _write_files(template, call, folder)
            values["OUTPUT_FILE"] = shlex.quote(str(folder.path / name))
            line = template.render(values)
            in_file = "OUTPUT_FILE" in template.names
            finished = await _run_command(
                Command(
                    line,
                    call.cwd,
                    {**self._environment, **call.variables, **batch},
                    timeout_s=call.timeout_s,
                    max_output=_MAX_UNUSED_STDOUT if in_file else call.max_output,
                    mask=self._mask,
                ),
                values,
            )
            output: CapturedOutput | None = finished.stdout
            if in_file:
                file_output = folder.read(name, call.max_output) if finished.code == 0 else None
                output = file_output.apply_mask(self._mask) if file_output is not None else None
        return CommandResult(line, finished, output)

    def _build_values(self, template: CommandTemplate, call: CommandCall) -> dict[str, str]:
        """Build the shell-quoted value of each placeholder that is no file. Raises ProcessError."""
        texts = {"PROMPT": call.prompt, "GUIDELINES": call.guidelines, "EVAL_ID": call.eval_id}
        for name in template.names:
            if "\0" in texts.get(name, ""):
                instead = "; use {PROMPT_FILE} instead" if name == "PROMPT" else ""
                raise ProcessError(
                    f"the value of {{{name}}} contains a NUL character, which no command accepts{instead}",
                    StartRefusal.TEXT,
                )
        values = {name: quote_for_shell(to_well_formed(value)) for name, value in texts.items()}
        values["FILES"] = " ".join(self._format_file(file) for file in call.files)
        return values | {"ATTEMPT": str(call.attempt), "SESSION": call.session}

    def _format_file(self, file: str) -> str:
        return self._file.render({"path": quote_for_shell(file), "basename": quote_for_shell(Path(file).name)})


def _write_files(template: CommandTemplate, call: CommandCall, folder: PrivateFolder) -> dict[str, str]:
    """Write the files that the template names into `folder`, and return their paths by placeholder."""
    files = {"PROMPT_FILE": ("prompt.txt", call.prompt), "CONVERSATION_FILE": ("conversation.json", call.conversation)}
    return {
        name: shlex.quote(str(folder.write(file_name, to_well_formed(text).encode())))
        for name, (file_name, text) in files.items()
        if name in template.names
    }


async def _run_command(command: Command, values: Mapping[str, str]) -> FinishedProgram:
    try:
        return await run(command)
    except ProcessError as error:
        if error.refusal is not StartRefusal.TOO_LONG:
            raise
        longest = max(values, key=lambda name: len(values[name]))
        advice = "use {PROMPT_FILE} instead" if longest == "PROMPT" else "let the command read this from files"
        what = f"the command has {len(command.line):,} characters with its values, more than the system allows"
        raise ProcessError(f"{what}; the longest is {{{longest}}}: {advice}", StartRefusal.TOO_LONG) from error


def format_output_tail(finished: FinishedProgram) -> str:
    """Format the end of stderr, or else of stdout, as the end of a sentence.

    The result is empty if the program printed nothing. For events on stdout, only their shapes are shown, because
    they may contain a response in pieces.
    """
    words = _shorten_output(finished.stderr.data) or _shorten_output(replace_events(finished.stdout.data[-_MAX_TAIL:]))
    return f": {words}" if words else ""


def _shorten_output(printed: bytes) -> str:
    text = printed[-_MAX_TAIL:].decode("utf-8", "replace")
    words = " ".join(to_one_line(text, _MAX_TAIL).split())
    return words if len(words) <= MAX_QUOTED else f"…{words[-MAX_QUOTED:].lstrip()}"


class HealthChecker:
    """Health check that runs once and keeps its result for the whole run."""

    def __init__(
        self, settings: CliSettings, environment: Mapping[str, str], withheld: WithheldVariables, redact: Redactor
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._withheld = withheld
        self._redact = redact
        self._check = settings.healthcheck
        self._check_task: asyncio.Task[str | None] | None = None

    async def require_healthy(self, folder: Path | None) -> None:
        """Raise TargetError (unreachable) if the check fails. A command needs `folder`, that of the eval file."""
        check = self._check
        if check is None:
            return
        if self._check_task is None:
            cwd = self._find_cwd(check, folder)
            if check.type == "command" and cwd is None:
                return
            self._check_task = asyncio.create_task(self._run_check(check, cwd))
        # a caller may be cancelled, and the others still wait
        reason = await asyncio.shield(self._check_task)
        if reason is not None:
            url = check.url
            raise TargetError(
                f"CLI healthcheck failed for '{self._settings.name}': {reason}",
                fault=TargetFault.UNREACHABLE,
                hint=find_connection_hint(to_public_url(url.open()), None, ContainerProbe()) if url else None,
            )

    async def aclose(self) -> None:
        """End a check that still runs."""
        if self._check_task is not None:
            self._check_task.cancel()
            await asyncio.gather(self._check_task, return_exceptions=True)

    def _find_cwd(self, check: HealthCheck, folder: Path | None) -> Path | None:
        """Find the folder of its command; None while it is not known."""
        own = check.cwd or self._settings.cwd
        if own is not None and Path(own).is_absolute():
            return Path(own)
        return None if folder is None else folder / (own or ".")

    async def _run_check(self, check: HealthCheck, cwd: Path | None) -> str | None:
        """Run the check once, within its time limit; None if it passes, otherwise the reason."""
        limit_s = check.timeout_seconds or self._settings.timeout_seconds or _DEFAULT_CHECK_S
        if check.url is not None:
            return await _check_url(check.url.open(), limit_s)
        assert check.command_template is not None
        assert cwd is not None
        caller = CommandRunner(
            check.command_template.open(), self._settings.files_format, self._environment, self._redact.mask_bytes
        )
        try:
            result = await caller.run_call(CommandCall(_CHECK_ID, cwd, timeout_s=limit_s))
        except ProcessError as error:
            return error.message
        finished = result.finished
        if finished.timed_out:
            return f"the command did not end within {limit_s:g} s"
        if not finished.code:
            return None
        tail = format_output_tail(finished)
        hint = self._withheld.find_hint(check.command_template.open(), tail)
        return f"the command {finished.ending}{tail}{f'; {hint}' if hint else ''}"


async def _check_url(url: str, limit_s: float) -> str | None:
    """Request the URL once; None for a 2xx response, otherwise the reason."""
    import httpx

    public_url = to_public_url(url)
    try:
        address = httpx.URL(url)
        address = address.copy_with(host=resolve_host(address.host, ContainerProbe()))
        async with (
            asyncio.timeout(limit_s),
            build_async_client(url, None) as client,
            client.stream("GET", address) as response,
        ):
            return None if response.is_success else f"{public_url} answered HTTP {response.status_code}"
    except TimeoutError:
        return f"{public_url} did not respond within {limit_s:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{public_url}: {to_one_line(str(error), 300) or type(error).__name__}"
