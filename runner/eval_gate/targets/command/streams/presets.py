"""Programs whose output `agentProtocol` names, and the parser of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from eval_gate.model.conversation import Response
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command.streams import claude_code, codex_cli, gemini_cli
from eval_gate.targets.command.streams.events import Event, ProgramEvents, parse_events
from eval_gate.text.escape import format_count, to_one_line


class ProgramName(StrEnum):
    """Values of `agentProtocol` of a command."""

    CLAUDE_CODE = "claude-code"
    GEMINI_CLI = "gemini-cli"
    CODEX = "codex"


class _StreamReader(NamedTuple):
    display_name: str
    read: Callable[[Sequence[Event]], Response]
    find_failure: Callable[[Sequence[Event]], str | None]
    parse: Callable[[str], ProgramEvents] = parse_events


_READERS: Final = {
    ProgramName.CLAUDE_CODE: _StreamReader("Claude Code", claude_code.read, claude_code.find_failure),
    ProgramName.GEMINI_CLI: _StreamReader("Gemini CLI", gemini_cli.read, gemini_cli.find_failure),
    ProgramName.CODEX: _StreamReader("Codex CLI", codex_cli.read, codex_cli.find_failure, codex_cli.parse_output),
}
_MAX_SHOWN: Final = 300
"""Maximum characters of a program's own error message in a message."""


def read_stream(preset: ProgramName, content: str) -> Response:
    """Read the output of a program that exited with 0. Raises TargetError: refused for a failure that it reports."""
    lines = _READERS[preset].parse(content)
    said = _describe_failure(preset, lines.events)
    if said is not None:
        raise TargetError(said, fault=TargetFault.REFUSED)
    response = _READERS[preset].read(lines.events)
    if not lines.skipped_lines:
        return response
    what = f"left out of the output: {format_count(lines.skipped_lines, 'line')} that are not JSON objects"
    return replace(response, warnings=(*response.warnings, what))


def find_failure(preset: ProgramName, content: str) -> str | None:
    """Why a program that did not exit with 0 failed, where its output says so."""
    try:
        return _describe_failure(preset, _READERS[preset].parse(content).events)
    except TargetError:
        return None


def _describe_failure(preset: ProgramName, events: Sequence[Event]) -> str | None:
    reader = _READERS[preset]
    why = reader.find_failure(events)
    return None if why is None else f"{reader.display_name} reports a failure: {to_one_line(why, _MAX_SHOWN)}"
