"""Refine the plain comparison with case history, re-runs, base agent and suite tests. Pure.

The plain rule is the contract's own ("passed then, fails now"). It stays as it is in a run without re-runs
(`--confirm 0`), and it is what makes a case a suspect in all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import multimode

from eval_gate.config.policy import Policy
from eval_gate.gate.base_agent.clearance import clear_cases, collect_base_agent_results, recheck_score_finding
from eval_gate.gate.case_matching import find_earlier_keys
from eval_gate.gate.evidence.case_classification import SUITE_TEST_SHARE, CaseFacts, Classification, classify_cases
from eval_gate.gate.evidence.case_history import (
    NO_CASE_EVIDENCE,
    CaseEvidence,
    EarlierResult,
    build_history_evidence,
    compute_first_score,
    count_case_executions,
)
from eval_gate.gate.evidence.day_effects import DayEffects, adjust_to_day, learn_day_effects
from eval_gate.gate.evidence.identical_responses import find_repeats
from eval_gate.gate.evidence.prior import RATES, Prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.evidence.suite.score_drop import (
    ScoredCase,
    compute_score_finding,
    drop_largest_falls,
    select_testable_cases,
)
from eval_gate.gate.evidence.thresholds import ExecutionLimits, compute_error_share, compute_run_thresholds
from eval_gate.gate.evidence.timeouts import reclassify_timeouts
from eval_gate.gate.must_pass import is_must_pass
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison, ScoreRecord, Tally
from eval_gate.model.execution import Status
from eval_gate.model.grounds import NO_RECORD, Belief, Evidence, GroundKind, LostCase, ScoreFinding
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.totals import judged_of
from eval_gate.results.baseline import Baseline, is_measured
from eval_gate.struct import FrozenStruct, replace


class PriorEvidence(FrozenStruct):
    """Evidence from before a run: the histories of its cases, and what else its verdict rests on."""

    case_evidence: Mapping[CaseKey, CaseEvidence]
    evidence: Evidence
    quarantined: Collection[CaseKey] = ()
    """The cases that are in no test, because they are in quarantine."""

    @property
    def unjudged_in_baseline(self) -> Mapping[CaseKey, EarlierResult]:
        """What earlier runs say of the cases that the baseline has and could not judge."""
        return {one.key: EarlierResult(Tally(k=one.k, n=one.n, score=one.score), one.run) for one in self.evidence.lost}

    @property
    def all_case_evidence(self) -> Mapping[CaseKey, CaseEvidence]:
        """The past of the cases of the run, and of those that are only in the baseline and were not judged there."""
        gone = {
            key: CaseEvidence(one, in_baseline=True, unjudged_in_baseline=True)
            for key, one in self.unjudged_in_baseline.items()
        }
        return {**gone, **self.case_evidence}

    @property
    def rerun_criteria(self) -> RerunCriteria:
        """How the cases of the run are confirmed."""
        return build_rerun_criteria(self.evidence)

    @property
    def day_effects(self) -> DayEffects:
        """How much whole runs of the branch differ."""
        return learn_day_effects(self.evidence.days)


def build_rerun_criteria(evidence: Evidence) -> RerunCriteria:
    """How the cases of a run are confirmed that was judged by this."""
    belief = evidence.belief
    # an older version knew one kind of cases only, or other rates
    known = len(belief.weights) == len(RATES) and all(weight > 0 for weight in belief.weights)
    prior = Prior(belief.weights, belief.steady) if known else Prior.from_counts(belief.passes, belief.failures)
    return RerunCriteria(
        evidence.cases,
        prior,
        evidence.error_rate,
        evidence.confirm,
        evidence.sure,
        evidence.every,
        trials=evidence.trials,
    )


def collect_prior_evidence(
    baseline: Baseline,
    run: RunResult,
    policy: Policy,
    aside: Collection[CaseKey] = (),
    *,
    aside_then: Collection[CaseKey] = (),
) -> PriorEvidence:
    """What the ledger says. Nothing in it depends on what happened in this run, or on which part of a plan it is.

    `quarantined` are the cases of this run that are in no test, `aside_then` those of the baseline that teach nothing.
    """
    past = build_history_evidence(baseline, policy.pass_score)
    belief, number = past.learn_prior(aside_then), max(count_planned_cases(run), 1)
    executions = ExecutionLimits(run.confirm, count_trials(run))
    asked = compute_run_thresholds(belief, past.count_records(aside_then), number, executions, policy.error_rate)
    unjudged = [key for key, case in baseline.result.cases() if not case.status.judged]
    evidence = Evidence(
        baseline_run_id=baseline.result.run_id,
        cases=number,
        error_rate=policy.error_rate,
        confirm=run.confirm,
        trials=executions.trials,
        pass_score=policy.pass_score,
        belief=Belief(
            passes=belief.strength * belief.pass_rate,
            failures=belief.strength * (1 - belief.pass_rate),
            weights=belief.weights,
            steady=belief.steady,
        ),
        sure=asked.threshold if asked else None,
        every=asked.all_failed_threshold if asked else None,
        runs=past.level_run_count,
        days=past.build_run_days(aside_then),
        lost=tuple(
            LostCase(
                suite=key.suite, case_id=key.case_id, k=one.tally.k, n=one.tally.n, score=one.tally.score, run=one.run
            )
            for key, one in past.find_earlier_results(unjudged).items()
        ),
    )
    return PriorEvidence(past.get_case_evidence(run), evidence, aside)


def restore_prior_evidence(
    run: RunResult, baseline: RunResult, evidence: Evidence, aside: Collection[CaseKey] = ()
) -> PriorEvidence:
    """What was known when the run was made, from its own record; whether the baseline has a case is told by itself.

    Of parts that were joined only the whole knows which cases are another file's now.
    """
    assert run.comparison is not None
    there, earlier, measured = baseline.by_key(), find_earlier_keys(baseline, run), is_measured(baseline)
    return PriorEvidence(
        {
            change.key: _restore_case_evidence(
                change, there.get(earlier.get(change.key, change.key)), measured=measured
            )
            for change in run.comparison.changes
        },
        evidence,
        aside,
    )


def _restore_case_evidence(change: CaseChange, before: CaseResult | None, *, measured: bool) -> CaseEvidence:
    """The past of a case as the record tells it, and as the baseline has it."""
    if change.change is CaseClass.ADDED and before is None:
        return NO_CASE_EVIDENCE
    then = None
    if change.baseline is not None and change.change is not CaseClass.INCOMPARABLE:
        then = EarlierResult(change.baseline, change.compared_with)
    return CaseEvidence(
        newest_result=then,
        in_baseline=before is not None,
        unjudged_in_baseline=before is not None and before.status is Status.ERROR and (measured or then is None),
        record=change.case_record or NO_RECORD,
        score_record=_drop_assumed_spread(change.score_record),
    )


def _drop_assumed_spread(scores: ScoreRecord | None) -> ScoreRecord | None:
    """Without what was taken from the run itself: of a part of a run the whole may say something else."""
    if scores is None or not scores.assumed:
        return scores
    return replace(
        scores,
        spread=0.0,
        free=0,
        assumed=False,
    )


def count_planned_cases(run: RunResult) -> int:
    """The cases that share the error rate: of the whole plan, where the record says so."""
    return max(run.planned or 0, judged_of(run)[1])


def count_trials(run: RunResult) -> int:
    """How often a case is executed whatever comes of it: as was asked for, else (another tool) as most of them were."""
    if run.measuring is not None and run.measuring.trials is not None:
        return run.measuring.trials
    return max(multimode(max(len(case.trials) - case.reruns, 1) for _, case in run.cases()), default=1)


def build_case_facts(
    comparison: Comparison, run: RunResult, known: PriorEvidence, patterns: Sequence[str]
) -> list[CaseFacts]:
    """What is known of every case of this run, in its order; cases that are set aside are in no test."""
    cases, before = run.by_key(), dict(iter_dependent_cases(run))
    facts = []
    for change in comparison.changes:
        key = change.key
        case = cases.get(key)
        if case is None or change.change is CaseClass.REMOVED or key in known.quarantined:
            continue
        first, again = count_case_executions(case, known.evidence.pass_score)
        past = known.case_evidence.get(key, NO_CASE_EVIDENCE)
        facts.append(
            CaseFacts(
                key,
                change.change,
                past.record,
                first,
                again,
                must_pass=is_must_pass(case, patterns),
                rerun_end=case.rerun_end,
                preceding_cases=before.get(key),
            )
        )
    return facts


def build_facts_without_baseline(run: RunResult, pass_score: float, patterns: Sequence[str]) -> list[CaseFacts]:
    """The same of a run that is compared with nothing yet: of no case anything is known.

    Only those that fail are here: of the others nothing is to be decided.
    """
    facts, before = [], dict(iter_dependent_cases(run))
    for key, case in run.cases():
        simply = len(case.trials) == 1 and case.trials[0].status is Status.PASSED  # as most cases do
        if simply or all(trial.status is Status.PASSED for trial in case.executions()):
            continue
        first, again = count_case_executions(case, pass_score)
        if first.fails:
            must = is_must_pass(case, patterns)
            facts.append(
                CaseFacts(
                    key,
                    CaseClass.REGRESSION,
                    NO_RECORD,
                    first,
                    again,
                    must_pass=must,
                    rerun_end=case.rerun_end,
                    preceding_cases=before.get(key),
                )
            )
    return facts


def iter_dependent_cases(run: RunResult) -> Iterator[tuple[CaseKey, int]]:
    """Every case that works on files of earlier ones, with how many cases of its suite run before it."""
    for suite in run.suites:
        dependent = [case.id for case in suite.cases if case.dependent and case.status is not Status.SKIPPED]
        yield from ((CaseKey(suite.eval_file, case_id), at) for at, case_id in enumerate(dependent))


def _select_scored_cases(facts: Sequence[CaseFacts], run: RunResult, known: PriorEvidence) -> list[ScoredCase]:
    """The graded cases whose scores can be tested together: by first executions, as all that is about the suite."""
    cases, scored = run.by_key(), []
    for one in facts:
        record = known.case_evidence.get(one.key, NO_CASE_EVIDENCE).score_record
        if record is None or not record.by_run or not one.plain_class.compared or not cases[one.key].graded:
            continue
        here = compute_first_score(cases[one.key])
        if here is not None:
            scored.append(ScoredCase(one.key, here, record.by_run))
    return select_testable_cases(scored)


def _run_score_test(
    scored: Sequence[ScoredCase], settlement: Classification, limit: float, allowed: int
) -> ScoreFinding | None:
    """Without the cases that are regressions by themselves; the allowed ones that are left stand for the lowest."""
    alone = {
        one.key
        for one in settlement.cases
        if one.case_class is CaseClass.REGRESSION and (one.grounds is None or one.grounds.why is not GroundKind.SUITE)
    }
    left = select_testable_cases(
        drop_largest_falls([one for one in scored if one.key not in alone], allowed - len(alone))
    )
    return compute_score_finding(left, limit) if left else None


def _add_case_record(change: CaseChange, known: PriorEvidence) -> CaseChange:
    """Add what the run result keeps of a case's past."""
    past = known.case_evidence.get(change.key, NO_CASE_EVIDENCE)
    record = past.record if past.record.counts.runs else change.case_record
    return replace(change, case_record=record)


def refine_comparison(comparison: Comparison, run: RunResult, known: PriorEvidence, policy: Policy) -> Comparison:
    """The comparison with what the records and re-runs make of it; the classes of the plain rule stay what they are."""
    if not run.confirm:
        changes = tuple(_add_case_record(change, known) for change in comparison.changes)
        return replace(comparison, changes=changes, evidence=known.evidence)
    facts, allowed = build_case_facts(comparison, run, known, policy.must_pass), policy.allowed_regressions
    cases = run.by_key()
    scored = _select_scored_cases(facts, run, known)
    share = (SUITE_TEST_SHARE / 2 if scored else SUITE_TEST_SHARE) * compute_error_share(known.evidence.cases)
    confirmation = adjust_to_day(known.rerun_criteria, facts, known.day_effects)
    settlement = classify_cases(facts, confirmation, allowed=allowed, share=share, days=known.day_effects)
    answers = collect_base_agent_results(run, settlement.cases, known.evidence.pass_score)
    heard = clear_cases(settlement, facts, answers, confirmation)
    told_apart = reclassify_timeouts(heard.cases, facts, run, confirmation, known.evidence.pass_score)
    settled = {one.key: one for one in told_apart}
    scores = _run_score_test(scored, settlement, known.evidence.error_rate * share, allowed)

    def refined(change: CaseChange) -> CaseChange:
        one = settled.get(key := change.key)
        if one is None or change.change is CaseClass.REMOVED:
            return _add_case_record(change, known)
        grounds = replace(one.grounds, repeats=find_repeats(cases[key])) if one.grounds is not None else None
        return replace(_add_case_record(change, known), change=one.case_class, grounds=grounds)

    return replace(
        comparison,
        changes=tuple(refined(change) for change in comparison.changes),
        suite_finding=heard.suite_finding,
        score_finding=recheck_score_finding(scores, scored, run, answers),
        error_rate=known.evidence.error_rate,
        evidence=known.evidence,
    )
