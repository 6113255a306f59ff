"""Programs whose output is known by one word, and the answer in what such a program printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from eval_gate.model.conversation import Response
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command.streams import claude_code, gemini_cli
from eval_gate.targets.command.streams.lines import Event, read_lines
from eval_gate.text.escape import one_line


class ProgramName(StrEnum):
    """The words that `preset` of a command may be."""

    CLAUDE_CODE = "claude-code"
    GEMINI_CLI = "gemini-cli"


class _Reader(NamedTuple):
    shown: str
    read: Callable[[Sequence[Event]], Response]
    failure: Callable[[Sequence[Event]], str | None]


_READERS: Final = {
    ProgramName.CLAUDE_CODE: _Reader("Claude Code", claude_code.read, claude_code.failure),
    ProgramName.GEMINI_CLI: _Reader("Gemini CLI", gemini_cli.read, gemini_cli.failure),
}
_SHOWN: Final = 300
"""Characters of a program's own reason that a message holds."""


def read_stream(preset: ProgramName, content: str) -> Response:
    """The answer of a program that exited with 0.

    Raises TargetError: refused where the program says that it failed, malformed where its output holds no end.
    """
    lines = read_lines(content)
    said = _said(preset, lines.events)
    if said is not None:
        raise TargetError(said, fault=TargetFault.REFUSED)
    response = _READERS[preset].read(lines.events)
    if not lines.foreign:
        return response
    what = f"left out of the output: {lines.foreign} line{'s' if lines.foreign > 1 else ''} that are no JSON objects"
    return replace(response, warnings=(*response.warnings, what))


def said_why(preset: ProgramName, content: str) -> str | None:
    """Why a program that did not exit with 0 failed, where its output says so."""
    try:
        return _said(preset, read_lines(content).events)
    except TargetError:
        return None


def _said(preset: ProgramName, events: Sequence[Event]) -> str | None:
    reader = _READERS[preset]
    why = reader.failure(events)
    return None if why is None else f"{reader.shown} says that it failed: {one_line(why, _SHOWN)}"
