"""How text stands on a terminal or in a log: colour, signs without Unicode, straight columns, a bounded list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from eval_gate.reports.words.numbers import count
from eval_gate.text.escape import console_line

MAX_ID: Final = 40
MAX_DESCRIPTION: Final = 60
FOLD_ABOVE: Final = 200
"""Cases of a suite above which not all are listed, unless everything is asked for."""
MAX_WARNINGS: Final = 10
_ASCII: Final = str.maketrans(
    {"═": "=", "─": "-", "→": "->", "⚠": "!", "–": "-", "−": "-", "—": "-", "…": "...", "⏎": "/", "·": "|", "≠": "*"}
)
_COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}


@dataclass(frozen=True, slots=True)
class ConsoleStyle:
    """How the place it goes to wants it."""

    colour: bool = False
    ascii: bool = False
    verbose: bool = False

    def paint(self, colour: str, text: str) -> str:
        """The text in this colour, where there are colours."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour else text

    def text(self, lines: Iterable[str]) -> str:
        """The lines together, each ended by a line break."""
        text = "\n".join(lines) + "\n"
        return text.translate(_ASCII) if self.ascii else text

    def warnings(self, warnings: Sequence[str]) -> Iterator[str]:
        """A line for each, up to a bound, and an empty line behind them."""
        shown = warnings if self.verbose else warnings[:MAX_WARNINGS]
        for warning in shown:
            yield self.paint("yellow", f"⚠ {console_line(warning, 500)}")
        if len(warnings) > len(shown):
            yield f"⚠ … and {count(len(warnings) - len(shown), 'more warning')} (--verbose lists them)"
        if warnings:
            yield ""


def columns(rows: Sequence[Sequence[str]], align: Sequence[str]) -> list[str]:
    """A line for each row, its cells below each other and two blanks apart; `align` says `left` or `right` of each."""
    from tabulate import tabulate

    text = tabulate(rows, tablefmt="plain", colalign=align, disable_numparse=True) if rows else ""
    return [line.rstrip() for line in text.split("\n")] if rows else []


def width(text: str) -> int:
    """Columns the text takes on a terminal: wide characters take two."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    return max(wcswidth(text), 0)
