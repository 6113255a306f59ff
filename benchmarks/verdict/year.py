"""The promises, held against a year of pull requests, beside the rules that others gate by.

    python benchmarks/verdict/year.py --to year.jsonl                            # all of it: see benchmarks/README.md
    python benchmarks/verdict/year.py --to quick.jsonl --sizes 20 100 --pulls 100  # less than two minutes
    python benchmarks/verdict/year.py --to year.jsonl --table                    # only what is kept there

A year has 250 days. On each main is run once and four harmless pull requests are judged; beside them one that broke a
case, one that half broke a case, and one that made all cases worse, which are not merged. Every fiftieth pull request
of each kind is judged on a bad day, and, whenever chance will, one run of main in fifty is made on one: everything
fails three times as often. Every hundredth run of main is broken: by turns nothing answers, or a tenth of the cases
really fails until the next run. A year is simulated in ten parts, each with a main of its own that begins with ten
runs. After `one` run there is no year: each day has a new main with one run.

One process does it all and adds each part to the file, so that a killed run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from random import Random
from unittest.mock import patch

from branch import Again, Asking, Branch, Execution, policy, pull_request
from rival_rules import ATTEMPTS, NIGHTS, best_of_four, mcnemar, paired_t, pass_rate_fell, trusted_cases
from rules import Called, plain, retry_twice
from year_parts import (
    A_DAY,
    DAYS,
    DEAD,
    EACH_BAD,
    EACH_BREAK,
    HALF,
    HARMLESS,
    HISTORIES,
    LINES,
    LOSS,
    LOST,
    ONE,
    PULLS,
    RUNS_BEFORE,
    SIZES,
    TIMES,
    Part,
    Place,
    half_broken,
    kept_in,
    kinds,
)
from year_table import compact_table, page_table, table

from eval_gate.config.policy import DEFAULT_CONFIRM, DEFAULT_FALSE_ALARM_RATE
from eval_gate.errors import ExitCode
from eval_gate.gate import comparison_refinement
from eval_gate.gate.evidence.case_history import HistoryEvidence
from eval_gate.model.comparison import CaseClass
from eval_gate.results.baseline import Baseline


@dataclass(frozen=True)
class MainRun:
    """One run of main: how often each case fails in it, and what its executions gave; `C` where nothing answers."""

    rates: tuple[float, ...]
    firsts: tuple[Execution, ...]
    attempts: tuple[int, ...]
    """How many of three attempts each case passed, for the rule that runs main so often every night."""
    broken: frozenset[int] = frozenset()
    """Cases that main really fails in this run."""

    def again(self, random: Random) -> Again:
        """Re-runs of it."""
        if self.firsts[0] == "C":
            return lambda _at: "C"
        return lambda at: "F" if random.random() < self.rates[at] else "P"


@dataclass(frozen=True)
class Pull:
    """One pull request and the runs of main before it, newest first, as `rules` ask of a draw."""

    mains: Sequence[MainRun]
    rates: tuple[float, ...]
    """How often each case fails here today."""
    there: tuple[float, ...]
    """How often each fails with the base branch's agent today."""
    first: tuple[bool, ...]
    changed: frozenset[int] = frozenset()
    graded: bool = False

    def firsts(self, run: int | None) -> list[Execution]:
        """Return the first executions of a run of main, or of the pull request.

        Run 0 is the newest run of main; None is the run of the pull request.
        """
        return ["F" if one else "P" for one in self.first] if run is None else list(self.mains[run].firsts)

    def again(self, at: int, _run: int | None, random: Random) -> Execution:
        """One more execution here."""
        return "F" if random.random() < self.rates[at] else "P"

    def failed(self, what: Execution) -> bool:
        """Whether it did not pass."""
        return what != "P"

    @cached_property
    def newest(self) -> tuple[bool, ...]:
        """Whether each case failed in the newest run of main."""
        return tuple(one != "P" for one in self.mains[0].firsts)


class Breaks(Enum):
    """How a run of main breaks."""

    OUTAGE = "nothing answers"
    LOST = "a tenth of the cases really fails"


class Calendar:
    """When things go wrong in a year of one cell: as often as is said, from a day on that chance decides."""

    def __init__(self, seed: str) -> None:
        random = Random(f"{seed}/calendar")
        self._breaks = random.randrange(2 * EACH_BREAK)
        self._bad = {kind: random.randrange(EACH_BAD) for kind in (HARMLESS, DEAD, HALF, LOSS)}

    def breaks(self, day: int) -> Breaks | None:
        """How main's run of this day breaks."""
        at = (day + self._breaks) % (2 * EACH_BREAK)
        return Breaks.OUTAGE if at == 0 else Breaks.LOST if at == EACH_BREAK else None

    def is_bad(self, kind: str, number: int) -> bool:
        """Whether the pull request of this kind with this number is judged on a bad day."""
        return (number + self._bad[kind.partition("/")[0]]) % EACH_BAD == 0


@dataclass
class Main:
    """Main as it moves: its runs for the rivals, and the same with re-runs and history for this gate."""

    usual: tuple[float, ...]
    random: Random
    runs: list[MainRun] = field(default_factory=list)
    branch: Branch = field(default_factory=Branch)
    number: int = 0

    def push(self, breaks: Breaks | None = None) -> None:
        """One more run, on a day of its own."""
        random, cases = self.random, len(self.usual)
        times = TIMES if random.random() < 1 / EACH_BAD else 1.0
        outage = breaks is Breaks.OUTAGE
        lost = max(cases // 10, 1) if breaks is Breaks.LOST else 0
        broken = frozenset(random.sample(range(cases), lost))
        rates = tuple(1.0 if at in broken else min(rate * times, 1.0) for at, rate in enumerate(self.usual))
        firsts: tuple[Execution, ...] = tuple("C" if outage else _one(rate, random) for rate in rates)
        attempts = tuple(
            0 if outage else (first == "P") + sum(random.random() >= rate for _ in range(ATTEMPTS - 1))
            for first, rate in zip(firsts, rates, strict=True)
        )
        run = MainRun(rates, firsts, attempts, broken)
        asking = Asking(_RULES, DEFAULT_CONFIRM, run.again(random))
        self.branch = self.branch.pushed(self.number, firsts, asking)
        self.runs = [run, *self.runs[: NIGHTS - 1]]
        self.number += 1


_RULES = policy(DEFAULT_FALSE_ALARM_RATE, graded=False)


def _one(rate: float, random: Random) -> Execution:
    return "F" if random.random() < rate else "P"


def pull_of(main: Main, here: Mapping[int, float], random: Random, *, bad: bool) -> Pull:
    """Draw a pull request on main.

    `here` is how often each case that the pull request broke fails (0 to 1). All other cases fail at their usual
    rate. If `bad` is set, the pull request is judged on a bad day, on which cases fail `TIMES` as often.
    """
    broken = main.runs[0].broken
    times = TIMES if bad else 1.0
    there = tuple(1.0 if at in broken else min(rate * times, 1.0) for at, rate in enumerate(main.usual))
    rates = tuple(max(min(here[at] * times, 1.0), there[at]) if at in here else there[at] for at in range(len(there)))
    return Pull(main.runs, rates, there, tuple(random.random() < rate for rate in rates), frozenset(here))


def judged(pull: Pull, branch: Branch, seed: str) -> dict[str, Called]:
    """Apply every rule to a pull request, and return what each rule says, by its name.

    Each rule draws its re-runs from the same seed.
    """

    def ours(control: Again | None) -> Called:
        random = Random(f"{seed}/again")
        asking = Asking(_RULES, DEFAULT_CONFIRM, lambda at: pull.again(at, None, random), control)
        done = pull_request(branch, pull.firsts(None), asking)
        comparison, verdict = done.judged.comparison, done.judged.verdict
        assert verdict is not None
        named = comparison.select_changes(CaseClass.REGRESSION) if comparison else ()
        return Called(
            frozenset(int(one.case_id.rpartition("-")[2]) for one in named),
            done.executions,
            verdict.exit_code is ExitCode.FAILED,
            verdict.exit_code is ExitCode.INCOMPLETE,
            done.asked_there,
        )

    def of_main() -> Callable[[int], bool]:
        random = Random(f"{seed}/there")
        return lambda at: random.random() >= pull.there[at]

    def of_pull() -> Callable[[int], bool]:
        random = Random(f"{seed}/again")
        return lambda at: random.random() >= pull.rates[at]

    alone, passes = ours(None), of_main()
    trusted = trusted_cases([run.attempts for run in pull.mains])
    called = {
        "ours": alone,
        # the base branch's agent is asked only where the gate would be red
        "ours + base": ours(lambda at: "P" if passes(at) else "F") if alone.red else alone,
        "plain": plain(pull, Random()),
        "retry twice": retry_twice(pull, Random(f"{seed}/again")),
        "gemini": best_of_four(pull.first, trusted, of_pull()),
        "gemini + base": best_of_four(pull.first, trusted, of_pull(), of_main()),
    }
    tests = {"−5 points": pass_rate_fell, "McNemar": mcnemar, "paired t": paired_t}
    for name, rule in tests.items():
        called[name] = Called(frozenset(), len(pull.first), rule(pull.newest, pull.first))
    return called


PastBefore = Callable[[Baseline, float], HistoryEvidence]


def remembering(past_before: PastBefore) -> PastBefore:
    """Wrap `past_before` to compute the evidence once for all runs with the same baseline.

    Half of the time of a simulation goes into this evidence.
    """
    known: dict[float, tuple[Baseline, HistoryEvidence]] = {}

    def remembered(baseline: Baseline, pass_score: float) -> HistoryEvidence:
        if pass_score not in known or known[pass_score][0].result is not baseline.result:
            known[pass_score] = baseline, past_before(baseline, pass_score)
        return known[pass_score][1]

    return remembered


def simulated(place: Place, days: int, seed: int) -> Part:
    """So many days of one part."""
    with patch.object(
        comparison_refinement, "build_history_evidence", remembering(comparison_refinement.build_history_evidence)
    ):
        return _simulated(place, days, seed)


def _simulated(place: Place, days: int, seed: int) -> Part:
    cell = f"{seed}/{place.line}/{place.cases}/{place.history}"
    base = f"{cell}/{place.part}"
    suite = kinds(place.line, place.cases)
    usual = tuple(kind.rate for kind in suite for _ in range(kind.cases))
    part = Part(place.line, place.cases, place.history, place.part)
    main, calendar = Main(usual, Random(f"{base}/main")), Calendar(cell)
    for day in range(days):
        today = place.part * DAYS + day
        if place.history == ONE:
            main = Main(usual, main.random)
        for _ in range(0 if main.number else RUNS_BEFORE[place.history] - 1):
            main.push()
        main.push(calendar.breaks(today))
        random = Random(f"{base}/{day}")
        which = today % len(suite)
        start = sum(kind.cases for kind in suite[:which])
        at = start + random.randrange(suite[which].cases)
        changes: list[tuple[str, int, dict[int, float]]] = [
            *((HARMLESS, today * A_DAY + number, {}) for number in range(A_DAY)),
            (f"{DEAD}/{which}", today, {at: 1.0}),
            (f"{HALF}/{which}", today, {at: half_broken(usual[at])}),
            (LOSS, today, {one: rate + LOST for one, rate in enumerate(usual)}),
        ]
        for order, (kind, number, here) in enumerate(changes):
            pull = pull_of(main, here, random, bad=calendar.is_bad(kind, number))
            part.add(kind, pull.changed, judged(pull, main.branch, f"{base}/{day}/{order}"))
    return part


def places(
    lines: Sequence[str], sizes: Sequence[int], histories: Sequence[str], pulls: int
) -> Iterator[tuple[Place, int]]:
    """Every part that is asked for, with its days, the cheap ones first."""
    for cases in sizes:
        days = -(-(pulls or PULLS[cases]) // A_DAY)
        for history in histories:
            for line in lines:
                for part, start in enumerate(range(0, days, DAYS)):
                    yield Place(line, cases, history, part), min(DAYS, days - start)


def simulate(file: Path, wanted: Sequence[tuple[Place, int]], seed: int) -> dict[Place, Part]:
    """Simulate the parts of `wanted` that the file lacks, and return all parts of the file.

    The missing parts are added to the file one after the other.
    """
    found = kept_in(file)
    cut = file.exists() and not f"\n{file.read_text(encoding='utf-8')}".endswith("\n")
    with file.open("a", encoding="utf-8") as journal:
        journal.write("\n" * cut)
        for place, days in wanted:
            if place in found and found[place].pulls[HARMLESS] >= days * A_DAY:
                continue
            found[place] = simulated(place, days, seed)
            journal.write(json.dumps(vars(found[place])) + "\n")
            journal.flush()
    return found


def main() -> None:
    """Simulate what is missing, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="where parts are kept (JSON lines)")
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--pulls", type=int, default=0, help="harmless pull requests of each line (1,000 to 100)")
    parser.add_argument("--histories", nargs="+", choices=HISTORIES, default=HISTORIES)
    parser.add_argument("--lines", nargs="+", metavar="WORDS", default=[""], help="only lines that have these words")
    parser.add_argument("--table", action="store_true", help="simulate nothing")
    parser.add_argument("--page", action="store_true", help="the table of docs/verdict.md")
    parser.add_argument("--compact", action="store_true", help="all sizes in one cell, without errors")
    parser.add_argument("--by-kind", action="store_true", help="also by kind of case: steady ones, flaky ones")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    lines = [name for name in LINES if any(words in name for words in given.lines)]
    wanted = [] if given.table else list(places(lines, given.sizes, given.histories, given.pulls))
    parts = simulate(given.to, wanted, given.seed).values()
    shown = (
        page_table(parts)
        if given.page
        else compact_table(parts)
        if given.compact
        else table(parts, by_kind=given.by_kind)
    )
    for line in shown:
        print(line)


if __name__ == "__main__":
    main()
