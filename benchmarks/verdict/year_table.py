"""The table of a year: each promise, its limit, the bound of any rule, and what this gate and other rules do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from bounds import of_kinds, of_loss
from year_parts import (
    DEAD,
    FIRST_BAD,
    HALF,
    HARMLESS,
    HISTORIES,
    LINES,
    LOSS,
    LOST,
    RULES,
    RUNS_BEFORE,
    SIZES,
    Part,
    half_broken,
    kinds,
)

RED_OF_1000, DEAD_FOUND, OF_BOUND, LOSS_FOUND, EXECUTIONS = 20, 99.0, 0.9, 80.0, 1.25
"""The promises: harmless pull requests of 1,000 that are red, per cent found, the share of the bound, and the cost."""
ERRORS = 2.0
BESIDE: Mapping[str, str] = MappingProxyType({"gemini": "ours", "gemini + base": "ours + base"})
"""The rule to beat, and what it is held against: where it is better by two errors, its figure is marked."""


class Figure(NamedTuple):
    """A share or a mean, and its standard error."""

    value: float
    error: float


Figures = Mapping[str, Figure | None]
"""By rule."""


@dataclass(frozen=True)
class Row:
    """One line of the table. `limit` is the most or the `least` that is promised; `of_kind`: of one kind of cases."""

    promise: str
    line: str
    cases: int
    figures: Figures
    limit: float
    least: bool
    bound: float | None = None
    digits: int = 1
    of_kind: bool = False

    @property
    def kept(self) -> str:
        """Whether this gate keeps it; `?` where it is beyond the limit by less than two errors.

        What no rule can do by the bound is `out of reach`.
        """
        ours = self.figures["ours"]
        assert ours is not None
        if math.isinf(self.limit):
            return "–"
        if ours.value >= self.limit if self.least else ours.value <= self.limit:
            return "yes"
        if self.bound is not None and self.bound < self.limit:
            return "out of reach"
        return "?" if abs(ours.value - self.limit) <= ERRORS * ours.error else "**no**"

    def is_better(self, rule: str) -> bool:
        """Whether the rule to beat is better here than this gate, by two errors of the difference."""
        ours, other = self.figures.get(BESIDE.get(rule, "")), self.figures[rule]
        if ours is None or other is None:
            return False
        more = (other.value - ours.value) * (1 if self.least else -1)
        return more > ERRORS * math.hypot(ours.error, other.error)

    @property
    def limit_words(self) -> str:
        """`≤ 20`, or `–` if nothing is promised."""
        if math.isinf(self.limit):
            return "–"
        return f"{'≥' if self.least else '≤'} {self.limit:.{2 if self.digits == 2 else 0}f}"

    def cell(self, rule: str, *, short: bool = False) -> str:
        """`12.5 ± 5.6`, or `12`."""
        figure = self.figures[rule]
        if figure is None:
            return "–"
        digits = 0 if short and self.digits == 1 else self.digits
        said = f"{figure.value:.{digits}f}" if short else f"{figure.value:.{digits}f} ± {figure.error:.{digits}f}"
        return f"{said} ↑" if self.is_better(rule) else said

    def __str__(self) -> str:
        bound = "–" if self.bound is None else f"{self.bound:.1f}"
        first = [self.promise, self.line, f"{self.cases:,}", self.limit_words, bound, self.kept]
        return f"| {' | '.join([*first, *map(self.cell, RULES)])} |"


def table(parts: Iterable[Part], *, by_kind: bool = False) -> Iterator[str]:
    """Yield the table as Markdown, with a row for each promise, suite and size.

    If `by_kind` is set, single kinds of cases have rows too.
    """
    some = list(parts)
    yield f"| promise | suite | cases | limit | bound | kept | {' | '.join(RULES)} |"
    yield "|:--|:--|--:|--:|--:|:--|" + "--:|" * len(RULES)
    yield from (str(row) for row in rows(some) if by_kind or not row.of_kind)
    yield from _footnote(some)


def compact_table(parts: Iterable[Part]) -> Iterator[str]:
    """Yield the table as Markdown with all sizes in one cell, and without errors."""
    some = list(parts)
    sizes = " / ".join(f"{cases:,}" for cases in sorted({part.cases for part in some}))
    yield f"| promise, at {sizes} cases | suite | limit | kept | {' | '.join(RULES)} |"
    yield "|:--|:--|--:|:--|" + "--:|" * len(RULES)
    by_line: dict[tuple[str, str], list[Row]] = {}
    for row in rows(some):
        if not row.of_kind:
            by_line.setdefault((row.promise, row.line), []).append(row)
    for (promise, line), same in by_line.items():
        limits = " / ".join(dict.fromkeys(row.limit_words for row in same))
        cells = [limits, " / ".join(row.kept for row in same)]
        cells += [" / ".join(row.cell(rule, short=True) for row in same) for rule in RULES]
        yield f"| {promise} | {line} | {' | '.join(cells)} |"
    yield from _footnote(some)


def _footnote(parts: list[Part]) -> Iterator[str]:
    pulls: dict[int, list[int]] = {}
    for cell in _cells(parts).values():
        pulls.setdefault(cell[0].cases, []).append(sum(part.pulls[HARMLESS] for part in cell))
    said = (
        f"{min(some):,}{f' to {max(some):,}' if min(some) < max(some) else ''} at {cases:,} cases"
        for cases, some in sorted(pulls.items())
    )
    yield ""
    yield f"↑: better than this gate by two standard errors. Harmless pull requests of a line: {', '.join(said)}."


def _cells(parts: Iterable[Part]) -> dict[tuple[str, str, int], list[Part]]:
    cells: dict[tuple[str, str, int], list[Part]] = {}
    for part in parts:
        cells.setdefault((part.history, part.line, part.cases), []).append(part)
    return cells


def rows(parts: Iterable[Part]) -> list[Row]:
    """All rows for which there are parts, those of one promise together."""
    cells = _cells(parts)
    places = [(history, line, cases) for history in HISTORIES for line in LINES for cases in SIZES]
    found = [row for place in places if place in cells for row in _rows_of(cells[place])]
    promises = dict.fromkeys(row.promise for row in found)
    return [row for promise in promises for row in found if row.promise == promise]


def name_history(history: str) -> str:
    """Say how long the history is: `, ten runs of main`."""
    return f", {history} run{'s' if RUNS_BEFORE[history] > 1 else ''} of main"


def _rows_of(parts: list[Part]) -> Iterator[Row]:
    """Yield the rows of one cell, which is a suite, a size and a history."""
    line, cases, history = parts[0].line, parts[0].cases, parts[0].history
    suite = kinds(line, cases)
    after = name_history(history)
    red = {rule: _share(parts, HARMLESS, rule, of=1000) for rule in RULES}
    yield Row(f"red of 1,000 harmless{after}", line, cases, red, RED_OF_1000, least=False)
    bad = {rule: _share(parts, FIRST_BAD, rule) for rule in RULES}
    if bad["ours"] is not None:
        yield Row(f"red on the first bad day, %{after}", line, cases, bad, math.inf, least=False)
    for what, words in ((DEAD, "dead case found, %"), (HALF, "half-broken case found, %")):
        here = half_broken if what == HALF else lambda _usual: 1.0
        of_kind: list[Figures] = [
            {rule: _share(parts, f"{what}/{at}", rule) for rule in RULES} for at in range(len(suite))
        ]
        if any(figures["ours"] is None for figures in of_kind):
            continue
        bounds = [100 * of_kinds([kind], here) for kind in suite]
        weights = [kind.cases / cases for kind in suite]
        every = {rule: _mean([figures[rule] for figures in of_kind], weights) for rule in RULES}
        several = [(f"{words}{after}", every, 100 * of_kinds(suite, here))]
        if len(suite) > 1:
            several += [
                (f"{words} of those that fail {kind.rate * 100:g} %{after}", dict(figures), bound)
                for kind, figures, bound in zip(suite, of_kind, bounds, strict=True)
            ]
        for name, figures, bound in several:
            limit = DEAD_FOUND if what == DEAD else OF_BOUND * bound
            of_one = figures is not every
            yield Row(name, line, cases, figures, limit, least=True, bound=bound, of_kind=of_one)
    lost = {rule: _share(parts, LOSS, rule) for rule in RULES}
    bound = 100 * of_loss(suite, LOST)
    yield Row(f"loss of ten points found, %{after}", line, cases, lost, LOSS_FOUND, least=True, bound=bound)
    cost = {rule: _executions(parts, rule, cases) for rule in RULES}
    yield Row(f"executions a case{after}", line, cases, cost, EXECUTIONS, least=False, digits=2)


def _share(parts: list[Part], kind: str, rule: str, of: int = 100) -> Figure | None:
    """So many of `of`. The error is that of whole parts where it is larger, and of one pull request at least.

    Chances that were added up have the error of whole parts, or of days if there is one part.
    """
    if rule == "ours" and any(kind in part.chances for part in parts):
        days = [part.chances[kind] for part in parts if kind in part.chances]
        return _average(days, of)
    if not any(f"{kind}|{rule}" in part.said for part in parts):
        return None
    several = [(part.pulls[kind], part.said[f"{kind}|{rule}"]) for part in parts]
    pulls, said = sum(one for one, _ in several), sum(one for _, one in several)
    if not pulls:
        return None
    mean, near = said / pulls, min(max(said, 1), max(pulls - 1, 1)) / pulls
    together = sum((one - mean * number) ** 2 for number, one in several) / pulls**2 if len(several) > 1 else 0.0
    return Figure(of * mean, of * math.sqrt(max(near * (1 - near) / pulls, together)))


def _average(days: list[list[float]], of: int) -> Figure:
    """Average the chances of all days; `days` has those of each part."""
    known = [chance for part in days for chance in part]
    units = [sum(part) / len(part) for part in days] if len(days) > 1 else known
    mean = sum(known) / len(known)
    spread = sum((one - mean) ** 2 for one in units) / max(len(units) - 1, 1) / len(units)
    return Figure(of * mean, of * math.sqrt(spread))


def _mean(figures: list[Figure | None], weights: list[float]) -> Figure | None:
    known = [one for one in figures if one is not None]
    if len(known) < len(figures):
        return None
    value = math.fsum(one.value * weight for one, weight in zip(known, weights, strict=True))
    return Figure(value, math.hypot(*(one.error * weight for one, weight in zip(known, weights, strict=True))))


def _executions(parts: list[Part], rule: str, cases: int) -> Figure:
    several = [part.executions[rule] / part.pulls[HARMLESS] / cases for part in parts]
    mean = sum(several) / len(several)
    return Figure(mean, math.sqrt(sum((one - mean) ** 2 for one in several)) / len(several))
