"""One call of a command template: its values, its files, its process, and what it left behind."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from eval_gate.model import limits
from eval_gate.process.captured import Captured, Mask
from eval_gate.process.folder import PrivateFolder, private_folder
from eval_gate.process.run import Command, FinishedProgram, ProcessError, StartRefusal, run
from eval_gate.struct import FrozenStruct
from eval_gate.text.command_template import CommandTemplate, shell_quoted
from eval_gate.text.escape import one_line, plain_word
from eval_gate.text.foreign.quote import without_events
from eval_gate.text.foreign.well_formed import well_formed

PREFIX: Final = "eval-gate-cli-"
"""How the folders with temporary files begin."""
MAX_OUTPUT: Final = limits.COMMAND_BYTES
"""Bytes of an answer that are read."""
BATCH_INPUT: Final = "AGENT_BATCH_INPUT"
"""The variable with the path of a batch's cases."""
_ASIDE: Final = 64_000
"""Bytes of stdout that are kept where it is not the answer."""
_ID_IN_NAME: Final = 60
QUOTED: Final = 300
"""Characters of a program's words that a message holds."""
_LOOKED_AT: Final = 20_000
"""Bytes at the end of an output that are looked at for them."""


class CommandCall(FrozenStruct):
    """What a command is called with. `files` are paths; `batch` is the content of a batch's file of cases."""

    eval_id: str
    cwd: Path
    prompt: str = ""
    guidelines: str = ""
    files: tuple[str, ...] = ()
    attempt: int = 0
    batch: bytes | None = None
    timeout_s: float | None = None
    max_output: int = MAX_OUTPUT


class CalledCommand(FrozenStruct):
    """What became of it. `answer` is the output file where the template names one, else stdout; None: no such file."""

    line: str
    finished: FinishedProgram
    answer: Captured | None


class Caller:
    """Calls the command of one template. The files of a call are removed after it, unless `keep`."""

    def __init__(
        self, template: str, files_format: str, environment: Mapping[str, str], mask: Mask, *, keep: bool = False
    ) -> None:
        self._template = CommandTemplate.of_command(template)
        self._file = CommandTemplate.of_file(files_format)
        self._environment = environment
        self._mask = mask
        self._keep = keep

    def names(self, placeholder: str) -> bool:
        """Whether the template holds this placeholder."""
        return placeholder in self._template.names

    async def call(self, call: CommandCall) -> CalledCommand:
        """Run the command to its end. Raises ProcessError when it cannot be started or its file cannot be read."""
        with private_folder(PREFIX, call.cwd, keep=self._keep) as folder:
            name = f"{_file_name(call.eval_id)}.{'json' if call.batch is None else 'jsonl'}"
            values = self._values(call, folder, name)
            line = self._template.render(values)
            in_file = self.names("OUTPUT_FILE")
            finished = await _run(
                Command(
                    line,
                    call.cwd,
                    {**self._environment, **_batch(call, folder)},
                    timeout_s=call.timeout_s,
                    max_output=_ASIDE if in_file else call.max_output,
                    mask=self._mask,
                ),
                values,
            )
            answer: Captured | None = finished.stdout
            if in_file:
                written = folder.read(name, call.max_output) if finished.code == 0 else None
                answer = written.masked(self._mask) if written is not None else None
        return CalledCommand(line, finished, answer)

    def _values(self, call: CommandCall, folder: PrivateFolder, output: str) -> dict[str, str]:
        """What stands for each placeholder, quoted. Raises ProcessError for what cannot be passed on."""
        given = {
            "PROMPT": call.prompt,
            "GUIDELINES": call.guidelines,
            "EVAL_ID": call.eval_id,
            "ATTEMPT": str(call.attempt),
            "SESSION": str(uuid.uuid4()),
            "OUTPUT_FILE": str(folder.path / output),
        }
        for name in self._template.names:
            if "\0" in given.get(name, ""):
                instead = "; use {PROMPT_FILE} instead" if name == "PROMPT" else ""
                raise ProcessError(
                    f"the value of {{{name}}} holds a NUL character, which no command can be given{instead}",
                    StartRefusal.TEXT,
                )
        values = {name: shell_quoted(well_formed(value)) for name, value in given.items()}
        values["FILES"] = " ".join(self._file_words(file) for file in call.files)
        if self.names("PROMPT_FILE"):
            written = folder.write("prompt.txt", well_formed(call.prompt).encode())
            values["PROMPT_FILE"] = shell_quoted(str(written))
        return values

    def _file_words(self, file: str) -> str:
        return self._file.render({"path": shell_quoted(file), "basename": shell_quoted(Path(file).name)})


async def _run(command: Command, values: Mapping[str, str]) -> FinishedProgram:
    try:
        return await run(command)
    except ProcessError as error:
        if error.refusal is not StartRefusal.TOO_LONG:
            raise
        longest = max(values, key=lambda name: len(values[name]))
        advice = "use {PROMPT_FILE} instead" if longest == "PROMPT" else "let the command read this from files"
        what = f"the command is {len(command.line):,} characters long with its values, more than the system passes on"
        raise ProcessError(f"{what}; the longest is {{{longest}}}: {advice}", StartRefusal.TOO_LONG) from error


def _batch(call: CommandCall, folder: PrivateFolder) -> dict[str, str]:
    if call.batch is None:
        return {}
    return {BATCH_INPUT: str(folder.write("batch-input.jsonl", call.batch))}


def _file_name(eval_id: str) -> str:
    """The id as the beginning of a file's name: whatever it holds, it stays one."""
    return plain_word(eval_id)[:_ID_IN_NAME].strip("-.") or "case"


def last_words(finished: FinishedProgram) -> str:
    """The end of stderr, else of stdout, as the end of a sentence; nothing where nothing was said.

    Of events on stdout, where an answer may be in pieces, only the shapes are told.
    """
    words = _words(finished.stderr.data) or _words(without_events(finished.stdout.data[-_LOOKED_AT:]))
    return f": {words}" if words else ""


def _words(printed: bytes) -> str:
    text = printed[-_LOOKED_AT:].decode("utf-8", "replace")
    words = " ".join(one_line(text, _LOOKED_AT).split())
    return words if len(words) <= QUOTED else f"…{words[-QUOTED:].lstrip()}"
