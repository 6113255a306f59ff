"""What becomes of each case: its class, refined by its record and its re-runs. Pure.

The comparison says what happened in two runs. Here that becomes what one may conclude:

| the plain class | and | becomes |
|:--|:--|:--|
| added, removed, errored, not run, incomparable | | stays |
| fails here | mostly fails on record | `still_failing` |
| fails here | evidence, or every run, or the suite as a whole dropped | `regression` |
| fails here | none of these | `unsettled` |
| fails here | re-runs that would have decided are missing | `errored` |
| passes here, with failures among the trials | | `flaky` |
| passes here | mostly passes on record | `still_passing` |
| passes here | never passes on record, or passes too often for it | `new_pass` |
| passes here | now and then passes on record | `flaky` |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runner.gate.evidence import Confirmation, Doubt, Step, doubt
from runner.gate.prior import LEAST_FAILURE_RATE, learned
from runner.gate.suite_test import Stratum, suite_test
from runner.model.case import CaseKey
from runner.model.comparison import CaseClass
from runner.model.grounds import NO_RECORD, NO_RUNS, CaseRecord, Counts, Grounds, SuiteFinding, Why

SUITE_SHARE = 0.2
"""The part of the error rate that the test of the whole suite may spend: 0.01 of 0.05."""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """All that is known of one case. `plain` is its class by the two runs alone, `first` its execution or trials."""

    key: CaseKey
    plain: CaseClass
    record: CaseRecord = NO_RECORD
    first: Counts = NO_RUNS
    again: Counts = NO_RUNS
    """Its re-runs."""
    must_pass: bool = False

    @property
    def here(self) -> Counts:
        """First execution and re-runs together."""
        return self.first.plus(self.again)

    @property
    def compared(self) -> bool:
        """Whether its record is about the same question, and it was judged here."""
        return self.plain.compared and self.first.runs > 0

    @property
    def doubt(self) -> Doubt | None:
        """What is to be decided about it. Whether a case must pass has nothing to do with what it is compared with."""
        if self.compared:
            return doubt(self.record, self.first, must_pass=self.must_pass)
        return Doubt.MUST_PASS if self.must_pass and self.first.fails else None


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of one case. Grounds are None where there is nothing to say beside the class."""

    key: CaseKey
    change: CaseClass
    grounds: Grounds | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of all cases, in their order, and of the suite as a whole."""

    cases: tuple[Settled, ...]
    suite: SuiteFinding


def confirmation_for(cases: Iterable[CaseFacts], *, error_rate: float, confirm: int) -> Confirmation:
    """How the cases of a run are confirmed, with what their records say about the suite they are in."""
    judged = [case for case in cases if case.first.runs]
    prior = learned(case.record.counts for case in judged if case.compared)
    return Confirmation(len(judged), prior, error_rate, confirm)


def next_step(case: CaseFacts, confirmation: Confirmation) -> Step | None:
    """What to do about a case after its first execution and the re-runs so far; None where nothing is in doubt."""
    question = case.doubt
    if question is None:
        return None
    remaining = max(confirmation.confirm - case.again.runs, 0)
    return confirmation.next_step(question, case.record.counts, case.here, remaining)


def settle(cases: Sequence[CaseFacts], confirmation: Confirmation) -> Settlement:
    """What became of every case.

    The suite as a whole is tested without the cases that are regressions by themselves: what they broke is known, and
    must not make a regression of every other case that happened to fail.
    """
    steps = [next_step(case, confirmation) for case in cases]
    rest = [
        Stratum.of(case.record.counts, case.first)
        for case, step in zip(cases, steps, strict=True)
        if case.compared and not (case.first.fails and step is Step.CONFIRMED)
    ]
    finding = suite_test(rest, confirmation.error_rate * SUITE_SHARE, least_failure_rate=LEAST_FAILURE_RATE)
    settled = (_settled(case, step, confirmation, finding) for case, step in zip(cases, steps, strict=True))
    return Settlement(tuple(settled), finding)


def _settled(case: CaseFacts, step: Step | None, confirmation: Confirmation, finding: SuiteFinding) -> Settled:
    if not case.compared:
        change, why = case.plain, _MUST_PASS_ALONE.get(step)
    elif case.first.fails:
        change, why = _failing(case, step, confirmation, finding)
    else:
        change, why = _passing(case, step, confirmation)
    return Settled(case.key, change, _grounds(case, why, confirmation) if why else None)


_MUST_PASS_ALONE = {
    Step.CONFIRMED: Why.MUST_PASS,
    Step.UNSETTLED: Why.RECOVERED,
    Step.AGAIN: Why.NOT_RERUN,
    None: None,
}
"""Of a case that must pass and has nothing to be compared with."""


def _failing(
    case: CaseFacts, step: Step | None, confirmation: Confirmation, finding: SuiteFinding
) -> tuple[CaseClass, Why | None]:
    question, record = case.doubt, case.record.counts
    if step is Step.CONFIRMED and question is Doubt.MUST_PASS:
        return CaseClass.STILL_FAILING if record.fails else CaseClass.REGRESSION, Why.MUST_PASS
    if record.fails:
        return CaseClass.STILL_FAILING, Why.KNOWN if case.plain is CaseClass.REGRESSION else None
    if step is Step.CONFIRMED and question is not None:
        enough = confirmation.suffices(question, record, case.here)
        return CaseClass.REGRESSION, Why.EVIDENCE if enough else Why.EVERY_RUN
    if finding.dropped and record.runs:
        return CaseClass.REGRESSION, Why.SUITE
    if step is Step.AGAIN:
        return CaseClass.ERRORED, Why.NOT_RERUN
    return CaseClass.UNSETTLED, Why.RECOVERED


def _passing(case: CaseFacts, step: Step | None, confirmation: Confirmation) -> tuple[CaseClass, Why | None]:
    record = case.record.counts
    if step is Step.CONFIRMED:
        enough = confirmation.suffices(Doubt.NEW_PASS, record, case.here)
        return CaseClass.NEW_PASS, Why.EVIDENCE if enough else Why.EVERY_RUN
    if case.here.failures:
        return CaseClass.FLAKY, Why.MIXED
    if step is not None:
        return CaseClass.FLAKY, Why.KNOWN
    if record.failures > record.passes or (record.fails and case.plain is CaseClass.NEW_PASS):
        return CaseClass.NEW_PASS, None
    return CaseClass.STILL_PASSING, Why.KNOWN if case.plain is CaseClass.NEW_PASS else None


def _grounds(case: CaseFacts, why: Why, confirmation: Confirmation) -> Grounds:
    question, record = case.doubt, case.record.counts
    return Grounds(
        why=why,
        here=case.here,
        record=record,
        reruns=case.again.runs,
        chance=confirmation.chance(question, record, case.here) if question and case.compared else None,
        newest_failed=case.record.newest_failed,
    )
