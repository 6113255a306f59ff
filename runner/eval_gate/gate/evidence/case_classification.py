"""Decide the class of each case from its plain class, its history, its re-runs and the suite test.

The comparison says what happened in two runs. Here that becomes the final class:

| the plain class | and | becomes |
|:--|:--|:--|
| added, removed, errored, still errored, not run, incomparable | | stays |
| fails here | never passes in the history, or the newest run of the branch broke it | `still_failing` |
| fails here | evidence, or every run, or the suite as a whole dropped | `regression` |
| fails here | none of these, and mostly fails in the history | `still_failing` |
| fails here | none of these | `inconclusive` |
| fails here | none of these, it cannot be re-run, and too few runs in the history | `errored` |
| fails here | re-runs that would have decided gave no result | `errored` |
| never responds here | more than the agent errors of the other cases explain | `regression` |
| never responds here | the errors of this run, or of main, explain it, or nothing decides | `errored` |
| fails here | re-runs were not made: the gate had failed, or the budget was used | `suspected_regression` |
| fails here | fails every time, and executions of one run belong together | `suspected_regression` |
| passes here, with failures among the trials, also where they are part of a drop of the suite | | `flaky` |
| meets its pass rule with failures among the trials | none of these | as if all had passed |
| passes here | mostly passes in the history | `still_passing` |
| passes here | never passes in the history, or passes too often for it | `new_pass` |
| passes here | now and then passes in the history | `flaky` |

Cases are scored by their responses. What an execution that ended in an agent error says is in `agent_errors`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import reduce

from eval_gate.gate.evidence.agent_errors import ErrorShare, RunErrors, learn_error_share, run_error_test
from eval_gate.gate.evidence.day_effects import NO_DAY_EFFECTS, DayEffects, estimate_day
from eval_gate.gate.evidence.rerun_decision import (
    RerunCriteria,
    RerunStep,
    Suspicion,
    find_suspicion,
    is_known_failure,
)
from eval_gate.gate.evidence.suite.failures import Stratum
from eval_gate.gate.evidence.suite_drop import run_suite_test
from eval_gate.gate.pass_score import PassRate
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import (
    NO_EXECUTIONS,
    NO_HISTORY,
    CaseHistorySummary,
    Counts,
    ErrorFinding,
    GroundKind,
    Grounds,
    SuiteFinding,
)
from eval_gate.model.result import RerunStopReason
from eval_gate.struct import FrozenStruct, replace

NO_ERROR_SHARE = learn_error_share(())
"""The error share of a branch without a history."""
SUITE_TEST_SHARE = 0.2
"""The part of the error rate for the test of the whole suite: 0.01 of 0.05, halved if scores are tested too."""

MIN_EXPLAINING_RUNS = 5
"""Executions in the history from which a case counts as unsteady; with fewer, one failure may have been fixed."""


class CaseFacts(FrozenStruct):
    """Facts that the class of a case is decided from."""

    key: CaseKey
    plain_class: CaseClass
    history: CaseHistorySummary = NO_HISTORY
    first: Counts = NO_EXECUTIONS
    """First execution, and what repeated it until there was a response; or all trials."""
    reruns: Counts = NO_EXECUTIONS
    """Results of the re-runs after that."""
    repeated: int = 0
    """Re-runs among `first`, because no first execution has a response."""
    has_only_timeouts: bool = False
    """Every execution timed out."""
    rate: PassRate | None = None
    """What the pass rule of the case says; None without one."""
    must_pass: bool = False
    rerun_end: RerunStopReason | None = None
    """Why there was no further re-run; None if the run had no re-runs."""
    preceding_cases: int | None = None
    """How many cases of its suite run before it, where it works on their files: one wrong response may fail many of
    these, so that they are in no test that counts cases. None for a case by itself."""

    @property
    def total(self) -> Counts:
        """First execution and re-runs together."""
        return self.first.add(self.reruns)

    @property
    def is_failing(self) -> bool:
        """Whether the first execution or at least half of the trials failed, or the pass rule is not met."""
        return self.first.is_failing if self.rate is None else self.rate is not PassRate.MET

    @property
    def rerun_count(self) -> int:
        """Re-runs so far, those that ended in an agent error among them."""
        return self.repeated + self.reruns.attempts

    @property
    def first_executions(self) -> Counts:
        """First execution, or trials, without what repeated it."""
        if not self.repeated:
            return self.first
        return Counts(agent_errors=self.first.attempts - self.repeated)

    @property
    def has_only_errors(self) -> bool:
        """Whether it has nothing but agent errors here, and may have a response if it is run again."""
        if self.first.executions or not self.first.agent_errors:
            return False
        return self.plain_class in (_ANSWERABLE if self.history.counts.executions else _REPEATED_WITHOUT_RESPONSE)

    @property
    def missing_rerun_ground(self) -> GroundKind:
        """Why the result is unknown, for a case that more re-runs would have decided."""
        return _MISSING_RERUN_GROUNDS.get(self.rerun_end, GroundKind.MISSING_RERUNS)

    def is_rerun_skipped(self, step: RerunStep | None) -> bool:
        """Whether it was not re-run because the gate had already failed, although a re-run could decide."""
        return step is RerunStep.AGAIN and self.missing_rerun_ground is GroundKind.GATE_FAILED

    @property
    def is_compared(self) -> bool:
        """Whether the history has the same case fingerprint and this run has a score."""
        return self.plain_class.is_compared and self.first.executions > 0

    @property
    def is_in_suite_test(self) -> bool:
        """Whether the suite test counts the case: not if the branch itself fails it now."""
        if self.preceding_cases is not None or not self.is_compared:
            return False
        history = self.history
        return not (history.newest_failed and history.without_newest_run != history.counts.without_agent_errors)

    @property
    def stratum(self) -> Stratum:
        """First executions in the history and here, without the run that decides whether the suite test counts them."""
        return Stratum.from_counts(self.history.without_newest_run, self.first)

    def is_part_of_drop(self, finding: SuiteFinding) -> bool:
        """Whether the suite dropped, and this case, which usually passes, failed more, if only in some trials."""
        first, history = self.stratum, self.history.counts
        if not (finding.is_drop and self.is_in_suite_test and first.runs and history.passes > history.failures):
            return False
        if (
            finding.steady_cases_only
            and not Stratum.from_counts(self.history.without_newest_run, NO_EXECUTIONS).is_steady
        ):
            return False
        return self.is_failing or first.failures > first.expected_failures

    @property
    def suspicion(self) -> Suspicion | None:
        """What is suspected of its responses; whether a case must pass does not depend on what it is compared with."""
        if not self.is_compared:
            is_suspect = self.must_pass and self.first.executions > 0 and self.is_failing
            return Suspicion.MUST_PASS if is_suspect else None
        return find_suspicion(self.history, self.first, must_pass=self.must_pass, is_failing=self.is_failing)

    @property
    def is_unexplained(self) -> bool:
        """Whether its history does not explain a failure, the newest run passed it, and it cannot be re-run.

        A short history does not explain one. A case that passed for the first time in the newest run was probably fixed
        in it. If the tool itself re-ran the case, it must have failed more often than it passed: a tool repeats a test
        until it passes.
        """
        history = self.history
        if (
            self.rerun_end is not RerunStopReason.NOT_REPEATABLE
            or history.newest_failed
            or not history.newest_run.passes
        ):
            return False
        is_new = history.counts.executions < MIN_EXPLAINING_RUNS or history.counts.passes == history.newest_run.passes
        if self.reruns.executions:
            return self.total.failures > self.total.passes and (is_new or not history.counts.failures)
        return is_new


_ANSWERABLE = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.ADDED})
"""Plain classes of a case whose agent errors are news: main has a response, or does not know the case."""
_REPEATED_WITHOUT_RESPONSE = _ANSWERABLE | {CaseClass.ERRORED, CaseClass.STILL_ERRORED}
"""Plain classes of a case without a response in any run: it is repeated until this run has one."""


class ClassifiedCase(FrozenStruct):
    """A case with its final class, and the grounds for it."""

    key: CaseKey
    case_class: CaseClass
    grounds: Grounds | None = None


class Classification(FrozenStruct):
    """Final classes of all cases, in their order, and the findings about all of them together."""

    cases: tuple[ClassifiedCase, ...]
    suite_finding: SuiteFinding
    error_finding: ErrorFinding


def adjust_to_day(criteria: RerunCriteria, cases: Iterable[CaseFacts], days: DayEffects) -> RerunCriteria:
    """Adjust the criteria to the day that these cases show."""
    if not days.has_effects or not criteria.max_reruns:
        return criteria
    pairs = [(one.history.counts, one.first) for one in cases if one.is_in_suite_test and one.history.counts.executions]
    day = estimate_day(pairs, days)
    return criteria.add_thresholds(Counter((one.passes, one.failures) for one, _ in pairs), day) if day else criteria


def decide_next_step(case: CaseFacts, criteria: RerunCriteria, errors: RunErrors | None = None) -> RerunStep | None:
    """Decide the next step of a case after its executions so far; None if nothing is in doubt.

    Without `errors`, the agent errors of the run, a case that has no response yet is not decided.
    """
    repeatable = case.rerun_end is not RerunStopReason.NOT_REPEATABLE
    remaining = max(criteria.max_reruns - case.rerun_count, 0) if repeatable else 0
    reruns_ended = case.rerun_end is RerunStopReason.DECIDED
    if case.has_only_errors:
        if errors is None or is_known_failure(case.history):
            return None
        further_reruns = 0 if reruns_ended else remaining
        if errors.is_broken(
            case.first,
            case.rerun_count,
            further_reruns,
            repeatable=repeatable,
            has_only_timeouts=case.has_only_timeouts,
        ):
            return RerunStep.CONFIRMED
        # where re-runs ended early it was broken by what had been seen until then, so that no row is explained
        return RerunStep.AGAIN if remaining else RerunStep.INCONCLUSIVE
    if case.suspicion is None:
        return None
    if case.rate is PassRate.OPEN:
        return RerunStep.AGAIN
    if case.rate is PassRate.MISSED and case.suspicion is Suspicion.MUST_PASS:
        return RerunStep.CONFIRMED  # the rule has the repetition in it
    step = criteria.decide_next_step(
        case.suspicion, case.history.counts, case.first, remaining, reruns=case.reruns, reruns_ended=reruns_ended
    )
    if case.rerun_count == 0 or case.reruns.executions:
        return step
    # all re-runs ended in an agent error: one response confirms nothing, and no failure has recovered
    is_unknown = case.is_failing if step is RerunStep.INCONCLUSIVE else case.total.executions == 1
    return RerunStep.AGAIN if is_unknown and step in {RerunStep.INCONCLUSIVE, RerunStep.CONFIRMED} else step


def count_run_errors(cases: Iterable[CaseFacts], criteria: RerunCriteria, share: ErrorShare) -> RunErrors:
    """Count the agent errors of a run; `share` is what the runs of the branch say about them."""
    errors = RunErrors(share, criteria)
    for case in cases:
        errors = errors.add(case.total, case.rerun_count, has_only_timeouts=case.has_only_timeouts)
    return errors


def decide_next_steps(
    cases: Collection[CaseFacts], criteria: RerunCriteria, errors: RunErrors
) -> Mapping[CaseKey, RerunStep | None]:
    """Decide the next step of many cases, once for all cases that differ only in their names."""
    kinds = {case.key: _build_kind_key(case) for case in cases}
    examples = dict(zip(kinds.values(), cases, strict=True))
    steps = {kind: decide_next_step(case, criteria, errors) for kind, case in examples.items()}
    return {key: steps[kind] for key, kind in kinds.items()}


def classify_cases(
    cases: Sequence[CaseFacts],
    criteria: RerunCriteria,
    *,
    allowed: int = 0,
    share: float = SUITE_TEST_SHARE,
    days: DayEffects = NO_DAY_EFFECTS,
    error_share: ErrorShare = NO_ERROR_SHARE,
) -> Classification:
    """Decide the final class of every case, and run the tests of all cases together.

    `share` is the part of the false alarm rate that the suite test of passes may spend. `days` says how much whole
    runs of the branch differ, and `error_share` how often their executions end in an agent error.

    The suite test leaves out the cases that are regressions by themselves, so that they do not turn the other failures
    into regressions, and suspected regressions that were not re-run because of them. It also leaves out the failures
    that stick out most, one for each regression that `allowed` still permits: else a case that gets worse, and so
    becomes a regression by itself, could keep the other failures from being a drop.
    """
    kinds = [_build_kind_key(case) for case in cases]
    examples = dict(zip(kinds, cases, strict=True))
    errors = _test_run_errors(cases, count_run_errors(cases, criteria, error_share))
    steps = {kind: decide_next_step(case, criteria, errors) for kind, case in examples.items()}
    errors = _test_run_errors(
        [one for kind, one in zip(kinds, cases, strict=True) if not _has_explained_errors(one, steps[kind])], errors
    )
    alone = {kind: case.is_failing and steps[kind] is RerunStep.CONFIRMED for kind, case in examples.items()}
    strata = {
        kind: case.stratum._replace(share=criteria.trial_share)
        for kind, case in examples.items()
        if case.is_in_suite_test and not alone[kind] and not case.is_rerun_skipped(steps[kind])
    }
    remaining_allowed = allowed - sum(alone[kind] for kind in kinds)
    tested = _drop_worst_failures([strata[kind] for kind in kinds if kind in strata], remaining_allowed)
    finding = run_suite_test(tested, days, criteria.false_alarm_rate * share)
    classes = {
        kind: _classify_erring_case(case, steps[kind], errors)
        if case.has_only_errors
        else _classify_scored_case(case, steps[kind], criteria, finding)
        for kind, case in examples.items()
    }
    assert errors.finding is not None
    classified = (ClassifiedCase(case.key, *classes[kind]) for kind, case in zip(kinds, cases, strict=True))
    return Classification(tuple(classified), finding, errors.finding)


def _has_explained_errors(case: CaseFacts, step: RerunStep | None) -> bool:
    """Whether a case has nothing but errors, and is a regression or a suspected one, which explains them."""
    is_suspected = step is RerunStep.CONFIRMED or case.rerun_end is RerunStopReason.GATE_FAILED
    return case.has_only_errors and is_suspected


def _test_run_errors(cases: Iterable[CaseFacts], errors: RunErrors) -> RunErrors:
    """Run the test of the run's agent errors over the first executions of these cases."""
    first = reduce(Counts.add, (case.first_executions for case in cases), NO_EXECUTIONS)
    return replace(errors, finding=run_error_test(first, errors.share, errors.criteria.false_alarm_rate))


def _classify_erring_case(
    case: CaseFacts, step: RerunStep | None, errors: RunErrors
) -> tuple[CaseClass, Grounds | None]:
    """Classify a case that has nothing but agent errors here."""
    case_class, why = _decide_erring_class(case, step, errors)
    is_compared = case.plain_class in {CaseClass.REGRESSION, CaseClass.STILL_FAILING}
    change = case_class if is_compared else case.plain_class
    if why is None or (not is_compared and why is not GroundKind.AGENT_ERRORS):
        return change, None
    is_tested = step is RerunStep.CONFIRMED and errors.has_response  # else no case differs from the others
    chance = errors.compute_row_chance(case.first.agent_errors) if is_tested else None
    return change, _build_grounds(case, why, case.first, chance)


def _decide_erring_class(
    case: CaseFacts, step: RerunStep | None, errors: RunErrors
) -> tuple[CaseClass, GroundKind | None]:
    ground = case.missing_rerun_ground
    if step is None:
        return CaseClass.STILL_FAILING, None if case.history.counts.is_failing else GroundKind.MAIN_BROKE
    if step is RerunStep.CONFIRMED:
        return CaseClass.REGRESSION, GroundKind.EVIDENCE
    if case.is_rerun_skipped(step):
        return CaseClass.SUSPECTED_REGRESSION, ground
    is_run_unusual = errors.finding is not None and errors.finding.is_unusual
    if is_run_unusual or (step is RerunStep.INCONCLUSIVE and errors.explains(case.first.agent_errors)):
        return CaseClass.ERRORED, GroundKind.AGENT_ERRORS
    if step is RerunStep.AGAIN and ground is GroundKind.BUDGET_USED:
        return CaseClass.SUSPECTED_REGRESSION, ground
    return CaseClass.ERRORED, ground


def _build_kind_key(case: CaseFacts) -> Hashable:
    """Build a key that is equal for cases that differ only in their names; each key is classified once."""
    ids = id(case.history), id(case.first), id(case.reruns)
    return (
        case.plain_class,
        *ids,
        case.repeated,
        case.has_only_timeouts,
        case.rate,
        case.must_pass,
        case.rerun_end,
        case.preceding_cases,
    )


def _drop_worst_failures(strata: list[Stratum], count: int) -> list[Stratum]:
    """Drop the `count` failing cases that exceed the failures of their history most."""
    if count <= 0:
        return strata
    failing = [at for at, one in enumerate(strata) if one.failures and one.runs < one.total_runs]
    worst = set(
        sorted(failing, key=lambda at: (strata[at].expected_failures - strata[at].failures, strata[at]))[:count]
    )
    return [one for at, one in enumerate(strata) if at not in worst]


def _classify_scored_case(
    case: CaseFacts, step: RerunStep | None, criteria: RerunCriteria, finding: SuiteFinding
) -> tuple[CaseClass, Grounds | None]:
    if not case.is_compared:
        change, why = (
            case.plain_class,
            case.missing_rerun_ground if step is RerunStep.AGAIN else _MUST_PASS_GROUNDS.get(step),
        )
    elif case.is_failing:
        change, why = _classify_failing_case(case, step, criteria, finding)
    else:
        change, why = _classify_passing_case(case, step, criteria, finding)
    return change, _build_tested_grounds(case, why, criteria) if why else None


_MISSING_RERUN_GROUNDS: Mapping[RerunStopReason | None, GroundKind] = {
    RerunStopReason.GATE_FAILED: GroundKind.GATE_FAILED,
    RerunStopReason.BUDGET_USED: GroundKind.BUDGET_USED,
    RerunStopReason.NOT_REPEATABLE: GroundKind.NOT_RERUN,
}
_MUST_PASS_GROUNDS = {
    RerunStep.CONFIRMED: GroundKind.MUST_PASS,
    RerunStep.INCONCLUSIVE: GroundKind.RECOVERED,
    None: None,
}
"""Grounds of a must-pass case without a result to compare with."""


def _classify_failing_case(
    case: CaseFacts, step: RerunStep | None, criteria: RerunCriteria, finding: SuiteFinding
) -> tuple[CaseClass, GroundKind | None]:
    suspicion, history = case.suspicion, case.history.counts
    if step is RerunStep.CONFIRMED and suspicion is Suspicion.MUST_PASS:
        is_known = history.is_failing or case.history.newest_failed
        return CaseClass.STILL_FAILING if is_known else CaseClass.REGRESSION, GroundKind.MUST_PASS
    expected = CaseClass.STILL_FAILING, GroundKind.USUAL_RESULT if case.plain_class is CaseClass.REGRESSION else None
    if suspicion is None:
        return expected if history.is_failing else (CaseClass.STILL_FAILING, GroundKind.MAIN_BROKE)
    if step is RerunStep.CONFIRMED:
        enough = criteria.has_enough_evidence(suspicion, history, case.first, case.reruns)
        return CaseClass.REGRESSION, GroundKind.EVIDENCE if enough else GroundKind.EVERY_RUN
    if case.rate is not PassRate.OPEN and case.is_part_of_drop(finding) and not case.is_rerun_skipped(step):
        return CaseClass.REGRESSION, GroundKind.SUITE_DROP
    if case.is_unexplained:
        return CaseClass.ERRORED, GroundKind.NOT_RERUN
    if step is RerunStep.ANOTHER_RUN:
        return CaseClass.SUSPECTED_REGRESSION, GroundKind.RUN_SHARE
    # a case that mostly passed its re-runs is not unknown
    if step is RerunStep.AGAIN and (case.rate or case.total.is_failing):
        why = case.missing_rerun_ground
        unknown = why in {GroundKind.MISSING_RERUNS, GroundKind.NOT_RERUN}
        return CaseClass.ERRORED if unknown else CaseClass.SUSPECTED_REGRESSION, why
    is_expected = history.failures > history.passes or (history.is_failing and case.history.newest_failed)
    is_expected = is_expected or (case.rate is not None and case.plain_class is CaseClass.STILL_FAILING)
    return expected if is_expected else (CaseClass.INCONCLUSIVE, GroundKind.RECOVERED)


def _classify_passing_case(
    case: CaseFacts, step: RerunStep | None, criteria: RerunCriteria, finding: SuiteFinding
) -> tuple[CaseClass, GroundKind | None]:
    history, is_fix = case.history.counts, case.suspicion is Suspicion.FIX
    if step is RerunStep.CONFIRMED:
        enough = criteria.has_enough_evidence(Suspicion.NEW_PASS, history, case.first, case.reruns)
        return CaseClass.NEW_PASS, GroundKind.EVIDENCE if enough else GroundKind.EVERY_RUN
    if case.total.failures and (case.rate is None or case.is_part_of_drop(finding)):
        return CaseClass.FLAKY, GroundKind.SUITE_DROP if case.is_part_of_drop(finding) else GroundKind.MIXED
    if step is not None and not is_fix:
        return CaseClass.FLAKY, GroundKind.USUAL_RESULT
    if history.failures > history.passes or (history.is_failing and case.plain_class is CaseClass.NEW_PASS):
        return CaseClass.NEW_PASS, None
    return CaseClass.STILL_PASSING, GroundKind.USUAL_RESULT if case.plain_class is CaseClass.NEW_PASS else None


def _build_tested_grounds(case: CaseFacts, why: GroundKind, criteria: RerunCriteria) -> Grounds:
    """Build the grounds of a case with a response, with the chance of its results and what would be evidence."""
    suspicion, history = case.suspicion if case.is_compared else None, case.history.counts
    chance = criteria.compute_chance(suspicion, history, case.first, case.reruns) if suspicion else None
    needed = criteria.count_needed_failures(history) if suspicion is Suspicion.REGRESSION else None
    return replace(_build_grounds(case, why, case.total, chance), required_failures=needed)


def _build_grounds(case: CaseFacts, why: GroundKind, current: Counts, chance: float | None) -> Grounds:
    return Grounds(
        kind=why,
        current=current,
        history=case.history.counts,
        reruns=case.rerun_count,
        cases_before=case.preceding_cases or 0,
        chance=chance,
        newest_failed=case.history.newest_failed,
        broken_since=case.history.broken_since if why is GroundKind.MAIN_BROKE else None,
    )
