"""The rules side by side: ours by the code that is shipped, and the two that people use instead.

Every rule sees the same draw and may run a case again. It says which cases it calls regressions, whether the gate is
red, and how many executions it took.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from random import Random

from worlds import Drawn

from runner.gate.evidence import Step
from runner.gate.flakiness import Seen, record_of
from runner.gate.level import runs_of_this_level
from runner.gate.settle import CaseFacts, confirmation_for, next_step, settle
from runner.model.case import CaseKey
from runner.model.comparison import CaseClass
from runner.model.grounds import CaseRecord, Counts

PASS, FAIL = Counts(passes=1), Counts(failures=1)
RETRIES = 2


@dataclass(frozen=True)
class Called:
    """What a rule said: the cases it calls regressions, and the executions it took."""

    regressions: frozenset[int]
    executions: int


Rule = Callable[[Drawn, Random], Called]


def ours(confirm: int, error_rate: float = 0.05) -> Rule:
    """The gate as shipped: record, level of the branch, suspects, re-runs, test of the suite."""

    def rule(drawn: Drawn, random: Random) -> Called:
        cases = _cases(drawn)
        confirmation = confirmation_for(cases, error_rate=error_rate, confirm=confirm)
        executions = len(cases)
        for at, case in enumerate(cases):
            while next_step(case, confirmation) is Step.AGAIN:
                result = FAIL if random.random() < drawn.rates[at] else PASS
                case = replace(case, again=case.again.plus(result))  # noqa: PLW2901
                executions += 1
            cases[at] = case
        settled = settle(cases, confirmation).cases
        found = (at for at, one in enumerate(settled) if one.change is CaseClass.REGRESSION)
        return Called(frozenset(found), executions)

    return rule


def plain(drawn: Drawn, _random: Random) -> Called:
    """Passed in the newest run of the branch and fails now."""
    return Called(frozenset(_suspects(drawn)), len(drawn.first))


def retry_twice(drawn: Drawn, random: Random) -> Called:
    """The plain rule, but a case that passes in one of two more tries is let through."""
    found, executions = set(), len(drawn.first)
    for at in _suspects(drawn):
        for _ in range(RETRIES):
            executions += 1
            if random.random() >= drawn.rates[at]:
                break
        else:
            found.add(at)
    return Called(frozenset(found), executions)


def _suspects(drawn: Drawn) -> list[int]:
    return [at for at, failed in enumerate(drawn.first) if failed and drawn.history[at] and not drawn.history[at][0]]


def _cases(drawn: Drawn) -> list[CaseFacts]:
    """The draw as the gate is told of it."""
    runs = len(drawn.history[0])
    counted = [{at: FAIL if results[run] else PASS for at, results in enumerate(drawn.history)} for run in range(runs)]
    level = runs_of_this_level(counted)
    return [
        CaseFacts(_key(at), _plain(results[0], failed), _record(results[:level]), FAIL if failed else PASS)
        for at, (results, failed) in enumerate(zip(drawn.history, drawn.first, strict=True))
    ]


@cache
def _key(at: int) -> CaseKey:
    return CaseKey("suite", str(at))


@lru_cache(maxsize=100_000)
def _record(results: tuple[bool, ...]) -> CaseRecord:
    return record_of([Seen(str(run), FAIL if failed else PASS) for run, failed in enumerate(results)])


def _plain(then: bool, now: bool) -> CaseClass:
    if now:
        return CaseClass.STILL_FAILING if then else CaseClass.REGRESSION
    return CaseClass.NEW_PASS if then else CaseClass.STILL_PASSING
