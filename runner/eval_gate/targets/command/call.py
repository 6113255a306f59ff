"""Run a command template once: fill in its values, start the process, read its output."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.model import limits
from eval_gate.process.captured_output import CapturedOutput, Mask
from eval_gate.process.private_folder import PrivateFolder, open_private_folder
from eval_gate.process.run import Command, FinishedProgram, ProcessError, StartRefusal, run
from eval_gate.struct import FrozenStruct
from eval_gate.text.command_template import CommandTemplate, quote_for_shell
from eval_gate.text.escape import to_one_line, to_plain_word
from eval_gate.text.untrusted.excerpt import replace_events
from eval_gate.text.untrusted.surrogates import to_well_formed

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


class CommandCall(FrozenStruct):
    """Input of one run of a command. `batch` is the content of the file of cases of a batch."""

    eval_id: str
    cwd: Path
    prompt: str = ""
    guidelines: str = ""
    files: tuple[str, ...] = ()
    attempt: int = 0
    batch: bytes | None = None
    timeout_s: float | None = None
    max_output: int = MAX_OUTPUT


class CommandResult(FrozenStruct):
    """Result of one run of a command. `output` is None where the output file is missing."""

    line: str
    finished: FinishedProgram
    output: CapturedOutput | None


class CommandRunner:
    """Runner of one command template. Removes the files of a call afterwards, unless `keep` is set."""

    def __init__(
        self, template: str, files_format: str, environment: Mapping[str, str], mask: Mask, *, keep: bool = False
    ) -> None:
        self._template = CommandTemplate.from_command(template)
        self._file = CommandTemplate.from_file_format(files_format)
        self._environment = dict(environment)
        self._mask = mask
        self._keep = keep

    def has_placeholder(self, placeholder: str) -> bool:
        """Whether the template holds this placeholder."""
        return placeholder in self._template.names

    async def run_call(self, call: CommandCall) -> CommandResult:
        """Run the command to its end. Raises ProcessError when it cannot be started or its file cannot be read."""
        with open_private_folder(FOLDER_PREFIX, call.cwd, keep=self._keep) as folder:
            stem = to_plain_word(call.eval_id)[:_MAX_ID_IN_NAME].strip("-.") or "case"
            name, batch = f"{stem}.json", dict[str, str]()
            if call.batch is not None:
                name = f"{stem}.jsonl"
                batch = {BATCH_INPUT_VARIABLE: str(folder.write("batch-input.jsonl", call.batch))}
            values = self._build_values(call, folder, name)
            line = self._template.render(values)
            in_file = self.has_placeholder("OUTPUT_FILE")
            finished = await _run_command(
                Command(
                    line,
                    call.cwd,
                    self._environment | batch,
                    timeout_s=call.timeout_s,
                    max_output=_MAX_UNUSED_STDOUT if in_file else call.max_output,
                    mask=self._mask,
                ),
                values,
            )
            answer: CapturedOutput | None = finished.stdout
            if in_file:
                written = folder.read(name, call.max_output) if finished.code == 0 else None
                answer = written.apply_mask(self._mask) if written is not None else None
        return CommandResult(line, finished, answer)

    def _build_values(self, call: CommandCall, folder: PrivateFolder, output: str) -> dict[str, str]:
        """Build the shell-quoted value of each placeholder, with a file in `folder` for `PROMPT_FILE`."""
        given = {"PROMPT": call.prompt, "GUIDELINES": call.guidelines, "EVAL_ID": call.eval_id}
        for name in self._template.names:
            if "\0" in given.get(name, ""):
                instead = "; use {PROMPT_FILE} instead" if name == "PROMPT" else ""
                raise ProcessError(
                    f"the value of {{{name}}} contains a NUL character, which no command accepts{instead}",
                    StartRefusal.TEXT,
                )
        values = {name: quote_for_shell(to_well_formed(value)) for name, value in given.items()}
        values["FILES"] = " ".join(self._format_file(file) for file in call.files)
        values |= {"ATTEMPT": str(call.attempt), "SESSION": str(uuid.uuid4())}
        values["OUTPUT_FILE"] = shlex.quote(str(folder.path / output))
        if self.has_placeholder("PROMPT_FILE"):
            written = folder.write("prompt.txt", to_well_formed(call.prompt).encode())
            values["PROMPT_FILE"] = shlex.quote(str(written))
        return values

    def _format_file(self, file: str) -> str:
        return self._file.render({"path": quote_for_shell(file), "basename": quote_for_shell(Path(file).name)})


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
