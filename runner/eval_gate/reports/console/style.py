"""How text stands on a terminal or in a log: width, colour, signs without Unicode, straight columns, bounded lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from eval_gate.reports.console.fit import cut_end, cut_middle, flow
from eval_gate.reports.words.numbers import count
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import console_line

DEFAULT_WIDTH: Final = 80
"""Columns where nobody says how many there are: in a file, in a pipe."""
LEAST_WIDTH: Final = 40
MAX_ID: Final = 40
MAX_DESCRIPTION: Final = 60
FOLD_ABOVE: Final = 200
"""Cases of a suite above which not all are listed, unless everything is asked for."""
MAX_WARNINGS: Final = 10
_ASCII: Final = str.maketrans(
    {"═": "=", "─": "-", "→": "->", "⚠": "!", "–": "-", "−": "-", "—": "-", "…": "...", "⏎": "/", "·": "|", "≠": "*"}
)
_COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}


class ConsoleStyle(FrozenStruct):
    """How the place it goes to wants it. `width` is in columns of a terminal."""

    colour: bool = False
    ascii: bool = False
    verbose: bool = False
    width: int = DEFAULT_WIDTH

    def paint(self, colour: str | None, text: str) -> str:
        """The text in this colour, where there are colours."""
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour and colour else text

    def text(self, lines: Iterable[str]) -> str:
        """The lines together, each ended by a line break."""
        return self.plain("\n".join(lines) + "\n")

    def plain(self, text: str) -> str:
        """The text in the signs that can be shown. Some become longer: this comes before anything is measured."""
        return text.translate(_ASCII) if self.ascii else text

    def wrap(
        self, text: str, *, begin: str = "", indent: str = "  ", colour: str | None = None, whole: bool = False
    ) -> Iterator[str]:
        """The text as lines that fit, the first behind `begin`, all others behind `indent`."""
        yield from self.flow(text.split(), begin=begin, indent=indent, colour=colour, whole=whole)

    def flow(
        self,
        parts: Iterable[str],
        *,
        begin: str = "",
        indent: str = "  ",
        between: str = " ",
        colour: str | None = None,
        whole: bool = False,
    ) -> Iterator[str]:
        """The parts as lines that fit."""
        shown, begin = map(self.plain, parts), self.plain(begin)
        for line in flow(shown, self.width, begin=begin, indent=indent, between=between, whole=whole):
            yield self.paint(colour, line)

    def cut(self, text: str, columns: int) -> str:
        """The beginning of the text in so many columns."""
        return cut_end(self.plain(text), columns, self.plain("…"))

    def cut_name(self, text: str, columns: int) -> str:
        """Both ends of a name in so many columns."""
        return cut_middle(self.plain(text), columns, self.plain("…"))

    def warnings(self, warnings: Sequence[str]) -> Iterator[str]:
        """Each on lines of its own, up to a bound, and an empty line behind them."""
        shown = warnings if self.verbose else warnings[:MAX_WARNINGS]
        for warning in shown:
            yield from self.wrap(console_line(warning, 500), begin="⚠ ", colour="yellow")
        if len(warnings) > len(shown):
            more = f"… and {count(len(warnings) - len(shown), 'more warning')} (--verbose lists them)"
            yield from self.wrap(more, begin="⚠ ")
        if warnings:
            yield ""


def columns(rows: Sequence[Sequence[str]], align: Sequence[str]) -> list[str]:
    """A line for each row, its cells below each other and two blanks apart; `align` says `left` or `right` of each."""
    from tabulate import tabulate

    text = tabulate(rows, tablefmt="plain", colalign=align, disable_numparse=True) if rows else ""
    return [line.rstrip() for line in text.split("\n")] if rows else []
