"""Console text layout: width, truncation, wrapping, columns, colours and ASCII replacements.

Wide characters take two columns. A long command is continued on further lines in the syntax of a shell.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count, to_console_line

_NARROW: Final = re.compile("[ -~¡-¬®-˿‐-‧←-⇿─-╿✓✗]*").fullmatch
"""European letters and the signs of this program's texts: each takes one column."""
DEFAULT_WIDTH: Final = 80
"""Columns of an output whose width is unknown, such as a file or a pipe."""
MIN_WIDTH: Final = 40
MAX_ID: Final = 40
MAX_DESCRIPTION: Final = 60
MAX_WARNINGS: Final = 10
_ASCII: Final = str.maketrans(
    {"═": "=", "─": "-", "→": "->", "⚠": "!", "–": "-", "−": "-", "—": "-", "…": "...", "⏎": "/", "·": "|", "≠": "*"}
)
_COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}
_WORD: Final = re.compile(r"(?:\$'(?:\\.|[^'\\])*'|'[^']*'|\"[^\"]*\"|\S)+")
"""A word of a shell command, as `text/shell.py` writes it; a quoted part has no end of a word in it."""
_CONTINUATION: Final = " \\"


def measure_width(text: str) -> int:
    """Measure the columns that the text takes on a terminal."""
    if _NARROW(text):
        return len(text)
    from wcwidth import wcswidth  # a fifteenth of the time of a run of one case

    return max(wcswidth(text), 0)


def pad_text(text: str, columns: int, *, right: bool = False) -> str:
    """Pad `text` with blanks to a width of `columns`: at its end, or at its start if `right`."""
    blanks = " " * (columns - measure_width(text))
    return blanks + text if right else text + blanks


def cut_end(text: str, columns: int, sign: str = "…") -> str:
    """Truncate `text` to `columns` columns and append `sign` if something is missing."""
    if measure_width(text) <= columns:
        return text
    return text[: _count_fitting(text, columns - measure_width(sign))].rstrip() + sign


def cut_middle(text: str, columns: int, sign: str = "…") -> str:
    """Truncate the middle of `text` and put `sign` in its place, because names differ at either end."""
    if measure_width(text) <= columns:
        return text
    room = columns - measure_width(sign)
    tail = _count_fitting(text[::-1], room // 2)
    return text[: _count_fitting(text, room - room // 2)] + sign + (text[-tail:] if tail else "")


def wrap_parts(
    parts: Iterable[str],
    columns: int,
    *,
    begin: str = "",
    indent: str = "  ",
    between: str = " ",
    whole: bool = False,
) -> Iterator[str]:
    """Wrap the parts to lines, the first line after `begin`, all others after `indent`.

    A part that is longer than a line is broken, at a blank if it has one, unless it must stay `whole` for copying.
    """
    line, empty = begin, True
    for gap, word in _split_parts(parts, columns - measure_width(indent), between, whole=whole):
        rest = word
        if not empty and measure_width(line) + measure_width(gap) + measure_width(rest) > columns:
            yield line
            line, empty = indent, True
        elif (
            empty
            and line.strip()
            and measure_width(line) + measure_width(rest) > columns >= measure_width(indent) + measure_width(rest)
        ):
            yield line.rstrip()
            line = indent
        rest = _escape_workflow_command(line, rest)
        while empty and not whole and measure_width(line) + measure_width(rest) > columns:
            fits = max(_count_fitting(rest, columns - measure_width(line)), 1)
            yield line + rest[:fits]
            line, rest = indent, _escape_workflow_command(indent, rest[fits:])
        line, empty = line + ("" if empty else gap) + rest, False
    if not empty:
        yield line


def _split_parts(parts: Iterable[str], room: int, between: str, *, whole: bool) -> Iterator[tuple[str, str]]:
    """Split parts wider than `room` into words, unless `whole`; yield each piece with its separator."""
    for part in parts:
        if whole or measure_width(part) <= room:
            yield between, part
        else:
            yield from ((between if place == 0 else " ", word) for place, word in enumerate(part.split()))


def _escape_workflow_command(line: str, rest: str) -> str:
    """Escape `::` at the start of a line, which a GitHub runner would read as a workflow command."""
    return f": :{rest[2:]}" if rest.startswith("::") and not line.strip() else rest


def _count_fitting(text: str, columns: int) -> int:
    """Count the characters of the text that fit."""
    if text.isascii():
        return max(columns, 0)
    return bisect_right(range(1, len(text) + 1), max(columns, 0), key=lambda end: measure_width(text[:end]))


class ConsoleStyle(FrozenStruct):
    """Output settings of a console or log: colours, ASCII only, verbosity and width in columns."""

    colour: bool = False
    ascii: bool = False
    verbose: bool = False
    width: int = DEFAULT_WIDTH

    def paint(self, colour: str | None, text: str) -> str:
        """Return `text` in `colour`, or unchanged if the output has no colours."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and colour else text

    def join_lines(self, lines: Iterable[str]) -> str:
        """Join the lines, each ended by a line break, as displayable text."""
        return self.to_displayable("\n".join(lines) + "\n")

    def to_displayable(self, text: str) -> str:
        """Replace characters that the output cannot show.

        Replacements may be longer than the original, so call it before you measure widths.
        """
        return text.translate(_ASCII) if self.ascii else text

    def wrap_text(
        self, text: str, *, begin: str = "", indent: str = "  ", colour: str | None = None, whole: bool = False
    ) -> Iterator[str]:
        """Wrap `text` to the width of the output: the first line after `begin`, all others after `indent`."""
        yield from self.wrap_parts(text.split(), begin=begin, indent=indent, colour=colour, whole=whole)

    def wrap_parts(
        self,
        parts: Iterable[str],
        *,
        begin: str = "",
        indent: str = "  ",
        between: str = " ",
        colour: str | None = None,
        whole: bool = False,
    ) -> Iterator[str]:
        """Wrap `parts` with `between` to the output's width, and colour them; if `whole`, no part is broken."""
        displayable, begin = map(self.to_displayable, parts), self.to_displayable(begin)
        for line in wrap_parts(displayable, self.width, begin=begin, indent=indent, between=between, whole=whole):
            yield self.paint(colour, line)

    def cut_text(self, text: str, columns: int) -> str:
        """Truncate `text` to `columns` columns."""
        return cut_end(self.to_displayable(text), columns, self.to_displayable("…"))

    def cut_name(self, text: str, columns: int) -> str:
        """Truncate the middle of a name to `columns` columns."""
        return cut_middle(self.to_displayable(text), columns, self.to_displayable("…"))

    def render_warnings(self, warnings: Sequence[str]) -> Iterator[str]:
        """Render each warning on its own lines, up to a limit, and an empty line after them."""
        listed = warnings if self.verbose else warnings[:MAX_WARNINGS]
        for warning in listed:
            yield from self.wrap_text(to_console_line(warning, 500), begin="⚠ ", colour="yellow")
        if len(warnings) > len(listed):
            more = f"… and {format_count(len(warnings) - len(listed), 'more warning')} (--verbose lists them)"
            yield from self.wrap_text(more, begin="⚠ ")
        if warnings:
            yield ""


def align_columns(rows: Sequence[Sequence[str]], align: Sequence[str]) -> list[str]:
    """Lay out `rows` in columns, two blanks apart; `align` holds `left` or `right` for each column."""
    from tabulate import tabulate

    text = tabulate(rows, tablefmt="plain", colalign=align, disable_numparse=True) if rows else ""
    return [line.rstrip() for line in text.split("\n")] if rows else []


def wrap_command(label: str, command: str, style: ConsoleStyle) -> Iterator[str]:
    """Wrap a shell command after its label, with line continuations.

    An option stays on one line with its value, and a word is never broken, however long it is. No line begins with
    `::`, which a GitHub runner would read as a workflow command.
    """
    line = label
    for part in _split_command(command):
        if line == label:
            line += part
        elif len(line) + 1 + len(part) + len(_CONTINUATION) <= style.width or part.startswith("::"):
            line += f" {part}"
        else:
            yield line + _CONTINUATION
            line = " " * (len(label) + 2) + part
    yield line


def _split_command(command: str) -> list[str]:
    """`eval-gate run`, `--case a`, `evals`: the words, each option together with what follows it."""
    parts: list[str] = []
    for word in _WORD.findall(command):
        if (
            parts
            and (parts[-1] == "eval-gate" or (parts[-1].startswith("--") and " " not in parts[-1]))
            and not (word.startswith("--"))
        ):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    return parts
