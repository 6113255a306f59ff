"""The promises, held against a year of pull requests, beside the rules that others gate by.

    nice python benchmarks/verdict/year.py --to year.jsonl --sizes 20 100 500      # all that the pages say
    python benchmarks/verdict/year.py --to quick.jsonl --sizes 20 --pulls 100      # some minutes
    python benchmarks/verdict/year.py --to year.jsonl --table                      # only what is kept there
    python benchmarks/verdict/year.py --to year.jsonl --table --write              # into docs/verdict.md and README.md

A year has 250 days. On each main is run once and four harmless pull requests are judged; beside them one that broke a
case, one that half broke a case, and one that made all cases worse, which are not merged. Every fiftieth pull request
of each kind is judged on a bad day, and, whenever chance will, one run of main in fifty is made on one: everything
fails three times as often. Where no run in main's history was on one, another harmless pull request is judged on the
first. Every hundredth run of main is broken: by turns nothing answers, or a tenth of the cases really fails until the
next run. A year is simulated in parts of 25 days, each with a main of its own, whose history has exactly twenty runs,
or exactly ten. After `one` run there is no year: each day has a new main with one run.

What this gate finds of a broken case is added up over all ways of its executions, for every case of the suite, by the
criteria of the day's first harmless pull request: a pull request that broke one case differs from that in one case. It
leaves out bad days, and what only the suite test finds. Where executions of one run belong together (`--run-share`) or
end in errors (`--errors`), and for the rules of others, one case is drawn.

One process does it all and adds each part to the file, so that a killed run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

from branch import Again, Asking, Branch, Execution, Simulated, policy, pull_request
from long_reruns import list_ends
from rival_rules import ATTEMPTS, NIGHTS, best_of_four, mcnemar, paired_t, pass_rate_fell, trusted_cases
from rules import Called, plain, retry_twice
from year_page import page_table, write_pages
from year_parts import (
    A_DAY,
    DAYS,
    DEAD,
    EACH_BAD,
    EACH_BREAK,
    FIRST_BAD,
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
from year_table import compact_table, table

from eval_gate.config.policy import DEFAULT_FALSE_ALARM_RATE, DEFAULT_RERUNS, Policy
from eval_gate.errors import ExitCode
from eval_gate.gate import verdict_decision
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.comparison_refinement import PriorEvidence, collect_prior_evidence
from eval_gate.gate.evidence.rerun_decision import Suspicion, find_suspicion
from eval_gate.gate.verdict_decision import GateInputs, build_facts_before_reruns, decide_provisional_verdict
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import Counts
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results import history
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace


class Conditions(NamedTuple):
    """How executions depend on each other: the share of variance that one run has in common, and the agent errors.

    Both are 0 to 1. An execution that ends in an agent error has no answer, whatever the case does otherwise.
    """

    run_share: float = 0.0
    errors: float = 0.0

    def draw_rates(self, rates: Sequence[float], random: Random) -> tuple[float, ...]:
        """Draw how often each case fails in one run, around its usual rate (beta distribution)."""
        if not self.run_share:
            return tuple(rates)
        strength = (1 - self.run_share) / self.run_share
        return tuple(
            random.betavariate(rate * strength, (1 - rate) * strength) if 0.0 < rate < 1.0 else rate for rate in rates
        )

    def execute(self, rate: float, random: Random) -> Execution:
        """Draw one execution of a case that fails at `rate`."""
        if self.errors and random.random() < self.errors:
            return "C"
        return "F" if random.random() < rate else "P"


INDEPENDENT = Conditions()


@dataclass(frozen=True)
class MainRun:
    """One run of main: how often each case fails in it, and what its executions gave; `C` where nothing answers."""

    rates: tuple[float, ...]
    firsts: tuple[Execution, ...]
    attempts: tuple[int, ...]
    """How many of three attempts each case passed, for the rule that runs main so often every night."""
    broken: frozenset[int] = frozenset()
    """Cases that main really fails in this run."""
    is_outage: bool = False
    is_bad: bool = False
    conditions: Conditions = INDEPENDENT

    def again(self, random: Random) -> Again:
        """Re-runs of it."""
        if self.is_outage:
            return lambda _at: "C"
        return lambda at: self.conditions.execute(self.rates[at], random)


@dataclass(frozen=True)
class Pull:
    """One pull request and the runs of main before it, newest first, as `rules` ask of a draw."""

    mains: Sequence[MainRun]
    rates: tuple[float, ...]
    """How often each case fails here today."""
    there: tuple[float, ...]
    """How often each fails with the base branch's agent today."""
    first: tuple[Execution, ...]
    changed: frozenset[int] = frozenset()
    graded: bool = False
    conditions: Conditions = INDEPENDENT

    def firsts(self, run: int | None) -> list[Execution]:
        """Return the first executions of a run of main, or of the pull request.

        Run 0 is the newest run of main; None is the run of the pull request.
        """
        return list(self.first if run is None else self.mains[run].firsts)

    def again(self, at: int, _run: int | None, random: Random) -> Execution:
        """One more execution here."""
        return self.conditions.execute(self.rates[at], random)

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
    conditions: Conditions = INDEPENDENT

    def push(self, breaks: Breaks | None = None) -> None:
        """One more run, on a day of its own."""
        random, cases = self.random, len(self.usual)
        times = TIMES if random.random() < 1 / EACH_BAD else 1.0
        is_bad, outage = times > 1, breaks is Breaks.OUTAGE
        lost = max(cases // 10, 1) if breaks is Breaks.LOST else 0
        broken = frozenset(random.sample(range(cases), lost))
        rates = self.conditions.draw_rates(
            [1.0 if at in broken else min(rate * times, 1.0) for at, rate in enumerate(self.usual)], random
        )
        firsts: tuple[Execution, ...] = tuple(
            "C" if outage else self.conditions.execute(rate, random) for rate in rates
        )
        attempts = tuple(
            0 if outage else (first == "P") + sum(random.random() >= rate for _ in range(ATTEMPTS - 1))
            for first, rate in zip(firsts, rates, strict=True)
        )
        run = MainRun(rates, firsts, attempts, broken, outage, is_bad, self.conditions)
        asking = Asking(_RULES, DEFAULT_RERUNS, run.again(random))
        self.branch = self.branch.pushed(self.number, firsts, asking)
        self.runs = [run, *self.runs[: max(NIGHTS, *RUNS_BEFORE.values()) - 1]]
        self.number += 1


_RULES = policy(DEFAULT_FALSE_ALARM_RATE, graded=False)


def pull_of(main: Main, here: Mapping[int, float], random: Random, *, bad: bool) -> Pull:
    """Draw a pull request on main.

    `here` is how often each case that the pull request broke fails (0 to 1). All other cases fail at their usual
    rate. If `bad` is set, the pull request is judged on a bad day, on which cases fail `TIMES` as often.
    """
    broken, times, conditions = main.runs[0].broken, TIMES if bad else 1.0, main.conditions
    usual = [1.0 if at in broken else min(rate * times, 1.0) for at, rate in enumerate(main.usual)]
    wanted = [max(min(here[at] * times, 1.0), rate) if at in here else rate for at, rate in enumerate(usual)]
    there, rates = conditions.draw_rates(usual, random), conditions.draw_rates(wanted, random)
    first = tuple(conditions.execute(rate, random) for rate in rates)
    return Pull(main.runs, rates, there, first, frozenset(here), conditions=conditions)


def judged(pull: Pull, branch: Branch, seed: str, *, ours_too: bool = True) -> dict[str, Called]:
    """Apply every rule to a pull request, and return what each rule says, by its name.

    Each rule draws its re-runs from the same seed. If `ours_too` is not set, this gate is left out.
    """

    def ours(control: Again | None) -> Called:
        random = Random(f"{seed}/again")
        asking = Asking(_RULES, DEFAULT_RERUNS, lambda at: pull.again(at, None, random), control)
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
        return lambda at: pull.conditions.execute(pull.there[at], random) == "P"

    def of_pull() -> Callable[[int], bool]:
        random = Random(f"{seed}/again")
        return lambda at: pull.conditions.execute(pull.rates[at], random) == "P"

    passes, failed = of_main(), tuple(map(pull.failed, pull.first))
    trusted = trusted_cases([run.attempts for run in pull.mains])
    called = {
        "plain": plain(pull, Random()),
        "retry twice": retry_twice(pull, Random(f"{seed}/again")),
        "gemini": best_of_four(failed, trusted, of_pull()),
        "gemini + base": best_of_four(failed, trusted, of_pull(), of_main()),
    }
    tests = {"−5 points": pass_rate_fell, "McNemar": mcnemar, "paired t": paired_t}
    for name, rule in tests.items():
        called[name] = Called(frozenset(), len(failed), rule(pull.newest, failed))
    if ours_too:
        alone = called["ours"] = ours(None)
        # the base branch's agent is asked only where the gate would be red
        called["ours + base"] = ours(lambda at: "P" if passes(at) else "F") if alone.red else alone
    return called


def compute_chances(pull: Pull, main: Main, kinds_of: Sequence[int], here: Callable[[float], float]) -> list[float]:
    """Compute the chance that this gate finds a broken case, on average over all cases of each kind.

    `kinds_of` has the kind of each case, and `here` says how often a case fails that fails so often usually. The other
    cases did what they did in `pull`, and tell the same of its day.
    """
    question = GateInputs(main.branch.baseline, _RULES)
    simulated = Simulated(question, 0, lambda _at: "P")
    run = simulated.run("here", "2026-11-21T10:00:00Z", list(enumerate(pull.first)), len(pull.first))
    facts, criteria, _ = build_facts_before_reruns(replace(run, reruns=DEFAULT_RERUNS), question)
    confirmed = {
        counts: [end for end in list_ends(criteria, counts) if end.confirmed]
        for counts in {one.history.counts for one in facts}
    }
    found = Counter[int]()
    for one in facts:
        if one.plain_class.is_compared and find_suspicion(one.history, _FAILED) is Suspicion.REGRESSION:
            at = int(one.key.case_id.rpartition("-")[2])
            rate = here(main.usual[at])
            found[kinds_of[at]] += sum(end.chance(rate) for end in confirmed[one.history.counts])
    return [found[kind] / number for kind, number in sorted(Counter(kinds_of).items())]


_FAILED = Counts(failures=1)


@contextmanager
def remember_what_stays() -> Iterator[None]:
    """Compute once what is the same for all pull requests on one main, and leave out what has no effect on a verdict.

    Most of the time of a simulation goes into these.
    """
    known: list[tuple[RunResult, PriorEvidence]] = []
    indexed: dict[int, tuple[RunResult, Mapping[CaseKey, CaseResult]]] = {}
    index_cases = RunResult.index_cases

    def collect(cases: GateCases, baseline: Baseline, rules: Policy, *quarantined: Any) -> PriorEvidence:
        if not known or known[0][0] is not baseline.result or known[0][1].evidence.reruns != cases.run.reruns:
            known[:] = [(baseline.result, collect_prior_evidence(cases, baseline, rules, *quarantined))]
        return known[0][1]

    def index(run: RunResult) -> Mapping[CaseKey, CaseResult]:
        if id(run) not in indexed:
            if len(indexed) >= _INDEXED:
                indexed.clear()
            indexed[id(run)] = run, index_cases(run)
        return indexed[id(run)][1]

    with ExitStack() as stack:
        stack.enter_context(patch.object(verdict_decision, "collect_prior_evidence", collect))
        stack.enter_context(patch.object(RunResult, "index_cases", index))
        stack.enter_context(patch("branch.decide_verdict", decide_provisional_verdict))
        yield


_INDEXED = 64
"""Runs whose index is kept at most."""


def simulated(place: Place, days: int, seed: int, conditions: Conditions = INDEPENDENT) -> Part:
    """So many days of one part."""
    with remember_what_stays():
        return simulate_days(place, days, seed, conditions)


def simulate_days(place: Place, days: int, seed: int, conditions: Conditions = INDEPENDENT) -> Part:
    """Simulate the days of a part, with a history of exactly as many runs as its place says."""
    with patch.object(history, "MAX_RUNS", RUNS_BEFORE[place.history]):
        _forget_entries()
        part = _simulate_days(place, days, seed, conditions)
    _forget_entries()
    return part


def _forget_entries() -> None:
    """Forget the history entries that were cut to another number of runs."""
    for kept in vars(history).values():
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()


def _simulate_days(place: Place, days: int, seed: int, conditions: Conditions) -> Part:
    cell = f"{seed}/{place.line}/{place.cases}/{place.history}"
    base = f"{cell}/{place.part}"
    suite = kinds(place.line, place.cases)
    kinds_of = [number for number, kind in enumerate(suite) for _ in range(kind.cases)]
    usual = tuple(suite[number].rate for number in kinds_of)
    part = Part(place.line, place.cases, place.history, place.part)
    main, calendar = Main(usual, Random(f"{base}/main"), conditions=conditions), Calendar(cell)
    runs, exact = RUNS_BEFORE[place.history], conditions == INDEPENDENT
    for day in range(days):
        today = place.part * DAYS + day
        if place.history == ONE:
            main = Main(usual, main.random, conditions=conditions)
        for _ in range(0 if main.number else runs - 1):
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
        if not any(run.is_bad for run in main.runs[:runs]):
            changes.append((FIRST_BAD, today, {}))
        for order, (kind, number, here) in enumerate(changes):
            bad = kind == FIRST_BAD or calendar.is_bad(kind, number)
            pull = pull_of(main, here, random, bad=bad)
            ours_too = not (exact and kind.startswith((DEAD, HALF)))
            part.add(kind, pull.changed, judged(pull, main.branch, f"{base}/{day}/{order}", ours_too=ours_too))
            if exact and order == 0:
                for what, rate_of in ((DEAD, lambda _usual: 1.0), (HALF, half_broken)):
                    for of_kind, chance in enumerate(compute_chances(pull, main, kinds_of, rate_of)):
                        part.chances.setdefault(f"{what}/{of_kind}", []).append(chance)
    return part


def places(
    lines: Sequence[str], sizes: Sequence[int], histories: Sequence[str], pulls: int
) -> Iterator[tuple[Place, int]]:
    """Every part that is asked for, with its days, the cheap ones first."""
    for cases in sizes:
        days = -(-(pulls or PULLS[cases]) // A_DAY)
        for length in histories:
            for line in lines:
                for part, start in enumerate(range(0, days, DAYS)):
                    yield Place(line, cases, length, part), min(DAYS, days - start)


def simulate(
    file: Path, wanted: Sequence[tuple[Place, int]], seed: int, conditions: Conditions = INDEPENDENT
) -> dict[Place, Part]:
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
            found[place] = simulated(place, days, seed, conditions)
            journal.write(json.dumps(vars(found[place])) + "\n")
            journal.flush()
    return found


def main() -> None:
    """Simulate what is missing, and print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="where parts are kept (JSON lines)")
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--pulls", type=int, default=0, help="harmless pull requests of each line (1,000 to 400)")
    parser.add_argument("--histories", nargs="+", choices=HISTORIES, default=HISTORIES)
    parser.add_argument("--lines", nargs="+", metavar="WORDS", default=[""], help="only lines that have these words")
    parser.add_argument("--table", action="store_true", help="simulate nothing")
    parser.add_argument("--page", action="store_true", help="the table of docs/verdict.md")
    parser.add_argument("--compact", action="store_true", help="all sizes in one cell, without errors")
    parser.add_argument("--by-kind", action="store_true", help="also by kind of case: steady ones, flaky ones")
    parser.add_argument("--write", action="store_true", help="write the table into docs/verdict.md and README.md")
    parser.add_argument("--run-share", type=float, default=0.0, help="share of variance that one run has in common")
    parser.add_argument("--errors", type=float, default=0.0, help="share of executions that end in an agent error")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    lines = [name for name in LINES if any(words in name for words in given.lines)]
    wanted = [] if given.table else list(places(lines, given.sizes, given.histories, given.pulls))
    parts = simulate(given.to, wanted, given.seed, Conditions(given.run_share, given.errors)).values()
    if given.write:
        write_pages(parts)
        return
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
