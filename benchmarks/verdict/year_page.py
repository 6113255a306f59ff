"""The figures that the pages say: the table of docs/verdict.md, and the sentences of README.md made from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from year_parts import HISTORIES, RUNS_BEFORE, Part
from year_table import ERRORS, Row, name_history, rows

ROOT = Path(__file__).parents[2]
PAGE, README = ROOT / "docs" / "verdict.md", ROOT / "README.md"
BEGIN = "<!-- promises: made by `python benchmarks/verdict/year.py --to year.jsonl --table --write` -->"
END = "<!-- end of promises -->"
SIZES = (20, 100)
"""The sizes of suites in one cell: those that are simulated again for each change of the method."""
PROMISES: Mapping[str, tuple[str, str, int, float]] = MappingProxyType(
    {
        "red of 1,000 harmless": ("harmless pull requests that fail, of 1,000", "at most 20", 0, 1000.0),
        "red on the first bad day, %": ("the same on a bad day never seen before, %", "–", 0, 100.0),
        "dead case found, %": ("dead cases found, %", "at least 99", 0, 100.0),
        "half-broken case found, %": ("half-broken cases found, %", "90 % of the best", 0, 100.0),
        "loss of ten points found, %": ("a suite that lost ten points, %", "at least 80", 0, 100.0),
        "executions a case": ("cost, in executions a case", "at most 1.25", 2, float("inf")),
    }
)
"""By row of the year's table: the words of the page, the goal, the digits, and the most that a figure can be."""


def page_table(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the table of docs/verdict.md: this gate alone, with a column for each history.

    A cell has one range for each size: from the lowest to the highest of the four suites, with two standard errors.
    """
    found = [row for row in rows(parts) if not row.of_kind]
    columns = list(reversed(HISTORIES))
    runs = [f"{RUNS_BEFORE[history]} run{'s' if RUNS_BEFORE[history] > 1 else ''}" for history in columns]
    yield f"| {' / '.join(map(str, SIZES))} cases | goal | {' | '.join(runs)} |"
    yield "|:--|:--|" + "--:|" * len(runs)
    for name, (words, goal, digits, most) in PROMISES.items():
        cells = []
        for history in columns:
            same = [row for row in found if row.promise == f"{name}{name_history(history)}"]
            ranges = [_format_range([row for row in same if row.cases == cases], digits, most) for cases in SIZES]
            cells.append(" / ".join(ranges))
        yield f"| {words} | {goal} | {' | '.join(cells)} |"
    best = [
        [row.bound for row in found if row.cases == cases and row.bound and row.promise.startswith("half-broken")]
        for cases in SIZES
    ]
    said = " / ".join(_join(min(bounds), max(bounds), 0) if bounds else "–" for bounds in best)
    yield f"| by the best rule, which knows all failure rates, % | | {' | '.join([said] * len(columns))} |"


def _format_range(same: list[Row], digits: int, most: float) -> str:
    figures = [figure for row in same if (figure := row.figures["ours"]) is not None]
    if not figures:
        return "–"
    low = max(min(one.value - ERRORS * one.error for one in figures), 0.0)
    return _join(low, min(max(one.value + ERRORS * one.error for one in figures), most), digits)


def _join(low: float, high: float, digits: int) -> str:
    least, most = f"{low:.{digits}f}", f"{high:.{digits}f}"
    return least if least == most else f"{least}–{most}"


def build_readme_words(table: Sequence[str]) -> list[str]:
    """Build the lines of README.md from the lines of the table: its figures at 100 cases after one and ten runs."""
    cells: dict[str, list[list[str]]] = {}
    for line in table:
        words, *others = [cell.strip() for cell in line.strip().strip("|").split("|")]
        cells[words] = [[one.strip() for one in cell.split(" / ")] for cell in others[1:]]

    def say(name: str, column: int) -> str:
        return cells[PROMISES[name][0]][column][SIZES.index(100)].replace("–", " to ")

    red, dead, half = "red of 1,000 harmless", "dead case found, %", "half-broken case found, %"
    return [
        f"**What to expect.** With 100 cases and ten runs of `main`, {say(red, 1)} of 1,000 harmless pull requests",
        "fail at each push; a gate that blocks every new failure fails most of them. A case that stops working",
        f"is found in {say(dead, 1)} of 100 pull requests, one that fails half of the time in {say(half, 1)}. With",
        f"one run of `main`, {say(red, 0)} of 1,000 harmless ones fail, and {say(half, 0)} of 100 half-broken cases",
        "are found.",
    ]


def write_pages(parts: Iterable[Part]) -> None:
    """Write the table into docs/verdict.md, and the sentences made from it into README.md."""
    table = list(page_table(parts))
    _replace(PAGE, ["", *table, ""])
    _replace(README, build_readme_words(table))


def read_block(page: Path) -> list[str]:
    """Return the lines between the marks of a page, without empty ones."""
    text = page.read_text(encoding="utf-8")
    inside = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    return [line for line in inside.splitlines() if line]


def _replace(page: Path, lines: Sequence[str]) -> None:
    text = page.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    page.write_text("\n".join([text[:begin], *lines, text[end:]]), encoding="utf-8")
