"""The chance that a harmless pull request is red, as far as the gate can tell from what it has seen.

Evidence is asked of a case by what is believed of its suite. After few runs of the default branch nobody knows which
cases are flaky: one that passed so far is a regression when it fails every time here. Of many such cases some do that
by chance, and a large suite is red then more often than is promised. How many flaky cases there are shows sooner than
which they are, by the re-runs of this run and of those on record: two kinds of cases are fitted to them, one that
seldom fails and one that often does (maximum likelihood). Cases that have failed on record count for nothing here:
they are held to a bar of their own, which is worked out (`bars`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from eval_gate.config.policy import DEFAULT_ERROR_RATE
from eval_gate.gate.evidence.past import counts_of
from eval_gate.gate.power.cases import CaseGroup, CaseGroups, cases_of, learned_anew
from eval_gate.gate.power.chances import Tree
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status
from eval_gate.model.grounds import Counts
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import FrozenStruct, replace

PROMISE: Final = 0.02
"""Of harmless pull requests at most this share is red: what is promised with the default error rate."""
MORE_RUNS: Final = (1, 2, 3, 4, 5, 7, 10)
"""Further runs of the default branch that may change it."""
MOST_CASES: Final = 20_000
"""Cases of a run whose results are looked at here."""
_SELDOM: Final = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1)
_OFTEN: Final = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
_PASSED_AS_SEEN, _FAILED_AS_SEEN = 4, 1
"""What is known of often failing cases before any is seen: as many executions, since few re-runs say little."""
_STEPS: Final = 8
_TELLING: Final = 2.0
"""By so much (a logarithm) two kinds of cases have to explain more than one does."""
_FIRST_SHARE: Final = 0.1
_BROKEN_AFTER: Final = 6
"""A case that failed every time, and so often, is broken and no flaky one."""
_LEAST: Final = 1e-9

Seen = Collection[tuple[tuple[int, int], int]]
"""By passes and failures, how many cases have passed and failed so often, on record and here."""


class TwoKinds(NamedTuple):
    """A share of the cases often fails, the others seldom; rates and share are 0 to 1."""

    seldom: float
    often: float
    share: float

    def is_flaky(self, record: Counts) -> float:
        """The chance that a case with this record is one that often fails."""
        flaky = self.share * _likely(self.often, record.passes, record.failures)
        solid = (1 - self.share) * _likely(self.seldom, record.passes, record.failures)
        return flaky / max(flaky + solid, 1e-300)


class FalseAlarms(FrozenStruct):
    """What may be said of it. `flaky` of the `cases` often fail, as far as can be told; `runs` are on record.

    With `more` further runs on record the chance (0 to 1) is what is `promised`. None where no such number does that.
    """

    chance: float
    cases: int
    flaky: int
    runs: int
    more: int | None
    promised: float = PROMISE


def false_alarms_of(run: RunResult) -> FalseAlarms | None:
    """Of a judged run. None where the promise holds, or where nothing is known."""
    cases = cases_of(run)
    if cases is None or not cases.runs or not cases.confirmation.confirm or cases.allowed:
        return None
    if not 0 < cases.number <= MOST_CASES:
        return None
    return false_alarms(cases, frozenset(_seen(run).items()))


@lru_cache(maxsize=1)
def false_alarms(cases: CaseGroups, seen: Seen) -> FalseAlarms | None:
    """The same of these cases, of which so much has been seen; worked out once for all reports of a run."""
    kinds, promised = two_kinds(seen), promise_of(cases)
    if kinds is None or (chance := chance_of_red(cases, kinds)) <= promised:
        return None
    later = ((runs, with_more_runs(cases, kinds, runs)) for runs in MORE_RUNS)
    more = next((runs for runs, then in later if chance_of_red(then, kinds) <= promised), None)
    flaky = max(round(kinds.share * cases.number), 1)
    return FalseAlarms(chance, cases.number, flaky, cases.runs, more, promised)


def promise_of(cases: CaseGroups) -> float:
    """The share of harmless pull requests that may be red: in proportion where a higher error rate is accepted."""
    return PROMISE * max(cases.confirmation.error_rate / DEFAULT_ERROR_RATE, 1.0)


def two_kinds(seen: Seen) -> TwoKinds | None:
    """The two kinds of cases that explain best what was seen. None where one kind explains it about as well."""
    known = [
        (passes, failures, number)
        for (passes, failures), number in sorted(seen)
        if passes or 0 < failures < _BROKEN_AFTER
    ]
    if not any(failures for _, failures, _ in known):
        return None
    log, found = max(_fitted(known, seldom, often) for seldom in _SELDOM for often in _OFTEN)
    return found if log - _of_one_kind(known) > _TELLING else None


def _of_one_kind(known: Sequence[tuple[int, int, int]]) -> float:
    """How well one rate explains it that all cases share (a logarithm)."""
    failed = sum(failures * number for _, failures, number in known)
    passed = sum(passes * number for passes, _, number in known)
    rate = min(max(failed / (passed + failed), _LEAST), 1 - _LEAST)
    return passed * math.log1p(-rate) + failed * math.log(rate)


def _fitted(known: Sequence[tuple[int, int, int]], seldom: float, often: float) -> tuple[float, TwoKinds]:
    """How well these rates explain it (a logarithm), and with which share of flaky cases."""
    rows = [
        (number, _likely(often, passes, failures), _likely(seldom, passes, failures))
        for passes, failures, number in known
    ]
    total, share = sum(number for number, _, _ in rows), _FIRST_SHARE
    for _ in range(_STEPS):
        share = sum(number * share * flaky / (share * flaky + (1 - share) * solid) for number, flaky, solid in rows)
        share = min(max(share / total, _LEAST), 1 - _LEAST)
    before = _PASSED_AS_SEEN * math.log1p(-often) + _FAILED_AS_SEEN * math.log(often)
    log = math.fsum(number * math.log(share * flaky + (1 - share) * solid) for number, flaky, solid in rows)
    return log + before, TwoKinds(seldom, often, share)


def _likely(rate: float, passes: int, failures: int) -> float:
    return max((1 - rate) ** passes * rate**failures, 1e-300)


def chance_of_red(cases: CaseGroups, kinds: TwoKinds) -> float:
    """The chance that one case or more without a failure on record is called a regression, though nothing changed."""
    expected = 0.0
    for kind in cases.kinds:
        if kind.record.counts.failures or not kind.compared:
            continue
        tree, flaky = Tree(kind, cases), kinds.is_flaky(kind.record.counts)
        often, seldom = tree.chance_of_regression(kinds.often), tree.chance_of_regression(kinds.seldom)
        expected += kind.number * (flaky * often + (1 - flaky) * seldom)
    return -math.expm1(-expected)


def with_more_runs(cases: CaseGroups, kinds: TwoKinds, runs: int) -> CaseGroups:
    """The same cases after so many further runs, in which each fails as often as its kind does, and what is known then.

    Of the cases that never failed some do once; of those that did, each fails as often as can be expected.
    """
    return learned_anew(replace(cases, kinds=tuple(_later(cases.kinds, kinds, runs)), runs=cases.runs + runs))


def _later(groups: Sequence[CaseGroup], kinds: TwoKinds, runs: int) -> Iterator[CaseGroup]:
    for group in groups:
        record = group.record.counts
        flaky = kinds.is_flaky(record)
        if record.failures:
            failed = round(runs * (flaky * kinds.often + (1 - flaky) * kinds.seldom))
            yield _with_counts(group, group.number, Counts(passes=runs - failed, failures=failed))
            continue
        clean = flaky * (1 - kinds.often) ** runs + (1 - flaky) * (1 - kinds.seldom) ** runs
        number = round(group.number * clean)
        yield _with_counts(group, number, Counts(passes=runs))
        yield _with_counts(group, group.number - number, Counts(passes=runs - 1, failures=1))


def _with_counts(group: CaseGroup, number: int, more: Counts) -> CaseGroup:
    return replace(group, number=number, keys=(), record=replace(group.record, counts=group.record.counts.plus(more)))


def _seen(run: RunResult) -> Counter[tuple[int, int]]:
    """What record and run have of every case, but for those that are regressions: these may really be broken."""
    comparison, results = run.comparison, run.by_key()
    assert comparison is not None
    assert comparison.evidence is not None
    seen: Counter[tuple[int, int]] = Counter()
    for change in comparison.changes:
        case = results.get(key := change.key)
        if case is None or case.dependent or change.change is CaseClass.REGRESSION or key in run.quarantined:
            continue
        here = _counts(case, comparison.evidence.pass_score)
        record = change.case_record.counts if change.case_record else Counts()
        seen[record.passes + here.passes, record.failures + here.failures] += 1
    return seen


_PASSED: Final = Counts(passes=1)


def _counts(case: CaseResult, pass_score: float) -> Counts:
    if not case.graded and len(case.trials) == 1 and case.trials[0].status is Status.PASSED:  # as most cases do
        return _PASSED
    first, again = counts_of(case, pass_score)
    return first.plus(again)
