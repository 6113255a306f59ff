"""What each part of the verdict is worth: the grid's lines with everything on, and with one part switched off.

    nice python benchmarks/verdict/without.py --to FILE --sizes 20 100 --histories 3 10 --branches 12
    python benchmarks/verdict/without.py --to FILE --tables                   # of what the file has

The same draws are judged with a part and without it, re-runs included: the n-th execution of a case in a run is the
same in both. What is done is kept branch by branch, so that a killed run goes on where it was; one process does it all.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

import control
import grid
from branch import Asking, Branch, Execution, Simulated, policy
from days import DayWorld, draw_day
from late import late_worlds
from parts import EVERYTHING, PARTS, Part, without
from rules import AnyDrawn
from worlds import Group, World, broken, draw, same

from eval_gate.config.policy import DEFAULT_RERUNS, Policy
from eval_gate.errors import ExitCode
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.comparison import CaseClass
from eval_gate.model.result import RunResult
from eval_gate.struct import replace

EACH, FALSE_ALARM_RATE = 5, 0.05
"""Pull requests of a branch."""
WHEN = "2026-11-21T10:00:00Z"
SURE = 2.0
"""Standard errors from which on a line has moved."""


@dataclass(frozen=True)
class Line:
    """A world of the grid, or one in which a part could matter that the grid has no line for."""

    world: World | DayWorld
    parts: tuple[str, ...] = ()
    """Those that are switched off one by one."""
    there: tuple[float, ...] | None = None
    """How often the base branch's agent fails, by group; None where nobody can ask it."""
    new: int = 0
    """So many of the last cases are first seen by the newest run of the branch."""

    @property
    def harmless(self) -> bool:
        """Whether a red gate is wrong."""
        if self.there is not None:
            return control.Day(self.world, self.there).harmless if isinstance(self.world, World) else False
        return self.world.harmless


def general() -> tuple[str, ...]:
    """Return the names of the parts that can matter in any line."""
    return tuple(name for name, part in PARTS.items() if not part.special)


def lines(cases: int) -> dict[str, Line]:
    """All of them at this size, by name: the grid's with the parts that matter anywhere, and those of single parts."""
    found = {}
    for name, world in grid.known(cases).items():
        graded = isinstance(world, World) and world.near is not None
        found[name] = Line(world, (*general(), "scores") if graded else general())
    found |= {world.name: Line(world, general()) for world in _since(cases)}
    tenth, half, all_lost = max(cases // 10, 1), cases // 2, "every case lost 10 points (2%)"
    for world in (broken(cases, tenth), broken(cases, half)):
        found[world.name] = Line(world, ("sparing", "suite", "bars"))
    found[all_lost] = Line(found[all_lost].world, (*general(), "sparing"))
    found |= {world.name: Line(world, ("errors",)) for world in late_worlds(cases)}
    fixed = World(
        "the branch fixed a dead case in its newest run, and this breaks it (2%)",
        (Group(1, 1.0, 1.0, 1, 0.02), same(cases - 1, 0.02)),
    )
    found[fixed.name] = Line(fixed, (*general(), "fixes"))
    for day in control.days(cases):
        found[f"base agent: {day.world.name}"] = Line(day.world, ("base agent",), there=day.there)
    for world in _new(cases):
        found[f"first in the branch's newest run: {world.name}"] = Line(world, ("new cases",), new=tenth)
    return found


def _since(cases: int) -> Iterator[World]:
    """Yield worlds in which the branch changed some runs ago, by a regression or by a fix.

    In these worlds it matters where the history starts.
    """
    tenth, others = max(cases // 10, 1), same(cases - 1, 0.02)
    yield World("the branch itself lost 10 points everywhere five runs ago (2%)", (Group(cases, 0.02, 0.12, 5, 0.12),))
    yield World(
        "the branch itself lost a tenth of the cases three runs ago (2%)",
        (Group(tenth, 0.02, 1.0, 3, 1.0), same(cases - tenth, 0.02)),
    )
    yield World("the branch itself half broke a case five runs ago (2%)", (Group(1, 0.02, 0.5, 5, 0.5), others))
    yield World(
        "the branch gained 10 points everywhere five runs ago, and this undoes it (12% then 2%)",
        (Group(cases, 0.12, 0.12, 5, 0.02),),
    )
    yield World(
        "the branch fixed a case five runs ago that failed 60%, and it died (2%)", (Group(1, 0.6, 1.0, 5, 0.0), others)
    )


def _new(cases: int) -> Iterator[World]:
    tenth = max(cases // 10, 1)
    old = same(cases - tenth, 0.02)
    for rate in (0.1, 0.3, 0.5):
        yield World(f"a tenth fails {rate:.0%}, nothing changed", (old, same(tenth, rate)))
    for rate in (0.02, 0.3):
        one = (same(cases - tenth, 0.02), same(tenth - 1, rate), Group(1, rate, 1.0))
        yield World(f"a tenth fails {rate:.0%}, one of them died", one)


class Cell(NamedTuple):
    """A line by its name, the cases, and the runs of history."""

    line: str
    cases: int
    history: int


@dataclass(frozen=True)
class Done:
    """What came of the pull requests of one branch without a part, one sign each: `1` where it holds.

    `said` is whether the gate was red (in lines in which many cases changed, or none), or named the one case.
    """

    line: str
    cases: int
    history: int
    branch: int
    part: str
    said: str
    red: str
    undecided: str
    executions: tuple[int, ...]

    @property
    def cell(self) -> Cell:
        """The cell it belongs to."""
        return Cell(self.line, self.cases, self.history)


class Again:
    """Further executions of one run: the n-th one of a case is the same whatever was asked before."""

    def __init__(self, drawn: AnyDrawn, run: int | None, seed: str) -> None:
        """`run` is one of the branch, 0 for the newest; None for the pull request's."""
        self._drawn, self._run, self._seed = drawn, run, seed
        self._randoms: dict[int, Random] = {}

    def __call__(self, at: int) -> Execution:
        """One more."""
        if at not in self._randoms:
            self._randoms[at] = Random(f"{self._seed}/{at}")
        return self._drawn.again(at, self._run, self._randoms[at])


@dataclass
class Seen:
    """The signs so far, by part."""

    said: list[str] = field(default_factory=list)
    red: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    executions: list[int] = field(default_factory=list)

    def add(self, run: RunResult, changed: frozenset[int], executions: int) -> None:
        """Add the outcome of one more run.

        `changed` are the cases that the pull request changed.
        """
        comparison, verdict = run.comparison, run.verdict
        assert comparison is not None
        assert verdict is not None
        named = {int(one.case_id.rpartition("-")[2]) for one in comparison.select_changes(CaseClass.REGRESSION)}
        red = verdict.exit_code is ExitCode.FAILED
        said = bool(named & changed) if len(changed) == 1 else red
        undecided = verdict.exit_code is ExitCode.INCOMPLETE
        for column, one in ((self.said, said), (self.red, red), (self.undecided, undecided)):
            column.append(str(int(one)))
        self.executions.append(executions)


def of_branch(cell: Cell, branch: int, seed: int, parts: Iterable[str]) -> list[Done]:
    """Simulate the pull requests of one branch of a cell, without each of these parts.

    If `EVERYTHING` is among `parts`, also return the outcomes with all parts on.
    """
    line, wanted = lines(cell.cases)[cell.line], list(parts)
    base = f"{seed}/{cell.line}/{cell.cases}/{cell.history}/{branch}"
    numbers = range(branch * EACH, (branch + 1) * EACH)
    drawn = [_draw(line, cell.history, base, number) for number in numbers]
    chosen = [PARTS[name] for name in wanted if name != EVERYTHING]
    later = [part for part in chosen if part.judged_only]
    seen: dict[str, Seen] = {}
    made = None
    for part in (None, *(part for part in chosen if not part.judged_only)):
        if part is None and EVERYTHING not in wanted and not later:
            continue
        with without(part):
            if made is None or part is None or part.on_branch:
                made = _main(line, drawn[0], base)
            seen |= _pull_requests(line, drawn, base, made, part, later if part is None else [])
            if part is not None and part.on_branch:
                made = None
    return [
        Done(*cell, branch, name, "".join(one.said), "".join(one.red), "".join(one.undecided), tuple(one.executions))
        for name, one in seen.items()
        if name in wanted
    ]


def _draw(line: Line, history: int, base: str, number: int) -> AnyDrawn:
    world = line.world
    return draw_day(world, history, base, number) if isinstance(world, DayWorld) else draw(world, history, base, number)


def _rules(drawn: AnyDrawn) -> Policy:
    """As the action's, which asks for re-runs: so new cases are run three times."""
    graded, drop = drawn.graded, drawn.max_score_drop
    rules = policy(FALSE_ALARM_RATE, graded=graded, pass_score=drawn.pass_score, max_score_drop=drop)
    return replace(rules, reruns=DEFAULT_RERUNS)


def _pull_requests(
    line: Line,
    drawn: Sequence[AnyDrawn],
    base: str,
    main: Branch,
    part: Part | None,
    later: Sequence[Part],
) -> dict[str, Seen]:
    """Run and gate all pull requests without `part`, and return the outcomes by part.

    None for `part` leaves all parts on. The same runs are only gated again without each part of `later`, and not
    run again.
    """
    rules, baseline = _rules(drawn[0]), main.baseline
    name = part.name if part else EVERYTHING
    seen = {name: Seen()} | {other.name: Seen() for other in later}
    rates = None
    if line.there is not None and name != "base agent":
        groups = zip(line.world.groups, line.there, strict=True)
        rates = [there for group, there in groups for _ in range(group.cases)]
    question = GateInputs(baseline, rules)
    for number, here in enumerate(drawn):
        first, stream = here.firsts(None), f"{base}/{number}"
        simulated = Simulated(question, DEFAULT_RERUNS, Again(here, None, stream), _there(rates, stream))
        run = simulated.run("here", WHEN, list(enumerate(first)), len(first))
        executions = simulated.executions + simulated.asked_there
        seen[name].add(decide_verdict(run, question), here.changed, executions)
        for other in later:
            with without(other):
                seen[other.name].add(decide_verdict(run, question), here.changed, executions)
    return seen


def _main(line: Line, drawn: AnyDrawn, base: str) -> Branch:
    """All runs of the branch, the oldest first, each with its re-runs."""
    branch, rules = Branch(), _rules(drawn)
    for number in range(drawn.runs):
        run = drawn.runs - 1 - number
        first = drawn.firsts(run)
        if run:
            first = first[: len(first) - line.new]
        again = Again(drawn, run, f"{base}/main/{run}")
        branch = branch.pushed(number, first, Asking(rules, DEFAULT_RERUNS, again))
    return branch


def _there(rates: Sequence[float] | None, stream: str) -> Callable[[int], Execution] | None:
    if rates is None:
        return None
    randoms: dict[int, Random] = {}

    def asked(at: int) -> Execution:
        random = randoms.setdefault(at, Random(f"{stream}/there/{at}"))
        return "F" if random.random() < rates[at] else "P"

    return asked


Asked = tuple[Cell, tuple[str, ...]]
"""A cell, and the parts that could matter in it."""


def cells(
    sizes: Sequence[int], histories: Sequence[int], words: Sequence[str] = (), parts: Sequence[str] = ()
) -> Iterator[Asked]:
    """Every cell of these that means something; of lines with any of these words, and of these parts only."""
    for cases in sizes:
        for name, line in lines(cases).items():
            if words and not any(word in name for word in words):
                continue
            for history in histories:
                if not grid.fits(line.world, 0, history) or (line.new and history < 2):
                    continue
                known = (part for part in line.parts if history >= PARTS[part].least)
                if chosen := tuple(part for part in known if not parts or part in parts):
                    yield Cell(name, cases, history), chosen


def read(file: Path) -> list[Done]:
    """Read the outcomes that a file keeps; the list is empty if there is no such file.

    The last line of a killed run may be cut off, and is then left out.
    """
    lines_there = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    known = [json.loads(one) for one in lines_there if one.endswith("}")]
    return [Done(**one | {"executions": tuple(one["executions"])}) for one in known]


def simulate(file: Path, asked: Sequence[Asked], branches: range, seed: int) -> None:
    """Simulate what is missing in the file, and add it to the file.

    One branch of every cell comes first, then the next branch of each.
    """
    there = {(one.cell, one.branch, one.part) for one in read(file)}
    with file.open("a", encoding="utf-8") as journal:
        journal.write("\n")  # after what a killed run may have left
        for branch in branches:
            for cell, parts in asked:
                missing = [part for part in (EVERYTHING, *parts) if (cell, branch, part) not in there]
                for one in of_branch(cell, branch, seed, missing) if missing else ():
                    journal.write(json.dumps(one.__dict__) + "\n")
                journal.flush()


@dataclass(frozen=True)
class Moved:
    """A line with everything on and without one part, by what is counted; shares of pull requests, or means."""

    line: str
    part: str
    what: str
    gates: int
    with_it: float
    without_it: float
    error: float
    """The standard error of the difference: that of whole branches, where it is larger."""
    only_with: int
    only_without: int

    @property
    def by(self) -> float:
        """What the line gains without the part."""
        return self.without_it - self.with_it

    @property
    def errors(self) -> float:
        """By how many standard errors that is: 0 where nothing moved at all."""
        return abs(self.by) / self.error if self.error else 0.0


Pair = tuple[Sequence[float], Sequence[float]]
"""Of one branch: with everything on and without the part, one number a pull request."""


def moved(line: str, part: str, what: str, pairs: Iterable[Pair]) -> Moved:
    """Compute what a part is worth in a line, over these branches.

    A difference of one pull request is always within the error.
    """
    some = list(pairs)
    on, off = [one for pair in some for one in pair[0]], [one for pair in some for one in pair[1]]
    number, differences = len(on), [b - a for a, b in zip(on, off, strict=True)]
    mean = sum(differences) / number
    alone = sum((one - mean) ** 2 for one in differences) / number**2
    together = sum((sum(b) - sum(a) - mean * len(a)) ** 2 for a, b in some) / number**2
    one_more = max(map(abs, differences)) / number
    return Moved(
        line,
        part,
        what,
        number,
        sum(on) / number,
        sum(off) / number,
        max(math.sqrt(max(alone, together)), one_more),
        sum(one < 0 for one in differences),
        sum(one > 0 for one in differences),
    )


def compared(done: Iterable[Done], key: Callable[[Cell], str]) -> Iterator[Moved]:
    """Every line (or what `key` makes one) and part: red or found, not decided, and executions a case."""
    by_branch: dict[tuple[Cell, int], dict[str, Done]] = {}
    for one in done:
        by_branch.setdefault((one.cell, one.branch), {})[one.part] = one
    pairs: dict[tuple[str, str, str], list[Pair]] = {}
    known = {cases: lines(cases) for cases in {cell.cases for cell, _ in by_branch}}
    for (cell, _), found in by_branch.items():
        on, line = found.get(EVERYTHING), known[cell.cases].get(cell.line)
        if on is None or line is None:
            continue
        for part, off in found.items():
            if part == EVERYTHING:
                continue
            columns = [("undecided", _bits(on.undecided), _bits(off.undecided))]
            columns += [("executions", *([n / cell.cases for n in one.executions] for one in (on, off)))]
            columns += [("red" if line.harmless else "found", _bits(on.said), _bits(off.said))]
            for what, one, other in columns:
                pairs.setdefault((key(cell), part, what), []).append((one, other))
    for (name, part, what), some in pairs.items():
        yield moved(name, part, what, some)


def _bits(signs: str) -> list[float]:
    return [float(one) for one in signs]


def tables(done: Sequence[Done], *, by_cell: bool) -> Iterator[str]:
    """For each part the lines that move by more than `SURE` standard errors; else the one that moves most."""

    def key(cell: Cell) -> str:
        return f"{cell.line} ({cell.cases} cases, {cell.history} runs)" if by_cell else cell.line

    usual = [one for one in done if one.line.startswith(grid.USUAL) and one.line in grid.known(one.cases)]
    every = [*compared(done, key), *compared(usual, lambda _: "all lines in which nothing changed on a usual day")]
    for name, part in PARTS.items():
        mine = sorted((one for one in every if one.part == name), key=lambda one: -one.errors)
        if not mine:
            continue
        many = len({one.line for one in mine})
        yield f"\n**{name}** (without it: {part.neutral}); {many} lines\n"
        yield "| line | what | pull requests | with | without | moves by | errors | only with, only without |"
        yield "|:--|:--|--:|--:|--:|--:|--:|--:|"
        sure = [one for one in mine if one.errors > SURE] or mine[:2]
        for one in sure:
            unit, times, digits = ("", 1, 3) if one.what == "executions" else (" %", 100, 1)
            shown = [f"{times * x:.{digits}f}{unit}" for x in (one.with_it, one.without_it)]
            by = f"{times * one.by:+.{digits}f} ± {times * one.error:.{digits}f}"
            yield (
                f"| {one.line} | {one.what} | {one.gates} | {' | '.join(shown)} | {by} | {one.errors:.1f} |"
                f" {one.only_with}, {one.only_without} |"
            )


def main() -> None:
    """Simulate what is missing, or print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="where branches are kept (JSON lines)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--histories", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--branches", type=int, default=4, help=f"of each cell, {EACH} pull requests each")
    parser.add_argument("--lines", nargs="+", default=[], metavar="WORDS", help="lines with any of these in their name")
    parser.add_argument("--parts", nargs="+", default=[], choices=PARTS, metavar="PART", help="only without these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", action="store_true", help="only print what the file has")
    parser.add_argument("--by-cell", action="store_true", help="a line for each size and history")
    given = parser.parse_args()
    if not given.tables:
        asked = list(cells(given.sizes, given.histories, given.lines, given.parts))
        simulate(given.to, asked, range(given.branches), given.seed)
    for line in tables(read(given.to), by_cell=given.by_cell):
        print(line)


if __name__ == "__main__":
    main()
