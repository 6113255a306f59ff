"""Refine the plain comparison with case history, re-runs, base agent and suite tests. Pure.

The plain rule is the contract's own ("passed then, fails now"). It stays as it is in a run without re-runs
(`--reruns 0`), and it is what makes a case a suspect in all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import multimode

from eval_gate.config.policy import Policy
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.evidence.agent_errors import ErrorShare, learn_error_share, recheck_error_finding
from eval_gate.gate.evidence.base_agent_clearance import (
    clear_cases,
    collect_base_agent_results,
    count_all_base_agent_executions,
    recheck_score_finding,
)
from eval_gate.gate.evidence.case_classification import (
    SUITE_TEST_SHARE,
    CaseFacts,
    Classification,
    adjust_to_day,
    classify_cases,
)
from eval_gate.gate.evidence.case_history import (
    NO_CASE_EVIDENCE,
    CaseEvidence,
    EarlierResult,
    HistoryEvidence,
    compute_first_score,
    count_case_responses,
    find_comparable_runs,
    has_only_timeouts,
)
from eval_gate.gate.evidence.day_effects import DayEffects, learn_day_effects
from eval_gate.gate.evidence.identical_responses import find_repeats
from eval_gate.gate.evidence.prior import Prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.evidence.suite.score_drop import (
    ScoredCase,
    compute_score_finding,
    drop_largest_falls,
    select_testable_cases,
)
from eval_gate.gate.evidence.thresholds import EvidenceThresholds, compute_error_share
from eval_gate.gate.must_pass import is_must_pass
from eval_gate.gate.pass_score import find_pass_rate
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison, PassCount, ScoreHistory
from eval_gate.model.evidence import NO_HISTORY, Evidence, FailurePrior, GroundKind, ScoreFinding
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.run_totals import count_scored_cases
from eval_gate.results.baseline import Baseline, has_enough_scores
from eval_gate.struct import FrozenStruct, replace


class PriorEvidence(FrozenStruct):
    """Evidence from before a run: the histories of its cases, and further data behind its verdict."""

    case_evidence: Mapping[CaseKey, CaseEvidence]
    evidence: Evidence

    @property
    def unscored_in_baseline(self) -> Mapping[CaseKey, EarlierResult]:
        """Earlier results of the cases that have no score in the baseline."""
        return {
            one.key: EarlierResult(PassCount(passes=one.passes, executions=one.executions, score=one.score), one.run)
            for one in self.evidence.unscored_in_baseline
        }

    @property
    def all_case_evidence(self) -> Mapping[CaseKey, CaseEvidence]:
        """The evidence on the cases of the run, and on those that only the baseline has, without a score."""
        unscored = {
            key: CaseEvidence(one, in_baseline=True, unscored_in_baseline=True)
            for key, one in self.unscored_in_baseline.items()
        }
        return {**unscored, **self.case_evidence}

    @property
    def rerun_criteria(self) -> RerunCriteria:
        """How the cases of the run are confirmed."""
        return build_rerun_criteria(self.evidence)

    @property
    def day_effects(self) -> DayEffects:
        """How much the failure rates of the branch's runs differ from day to day."""
        return learn_day_effects(self.evidence.branch_runs)

    @property
    def error_share(self) -> ErrorShare:
        """How often executions of the branch's runs end in an agent error."""
        return learn_error_share(self.evidence.error_runs)


def build_rerun_criteria(evidence: Evidence) -> RerunCriteria:
    """Build the criteria by which the cases of a run are confirmed that has this evidence."""
    prior, thresholds = evidence.prior, None
    if evidence.required_evidence is not None:
        thresholds = EvidenceThresholds(
            evidence.required_evidence,
            evidence.required_evidence_if_all_failed,
            evidence.required_evidence_if_never_failed,
        )
    return RerunCriteria(
        evidence.cases,
        Prior(prior.weights, prior.steady_share, evidence.shares, evidence.history_worth),
        evidence.false_alarm_rate,
        evidence.reruns,
        thresholds,
        trials=evidence.trials,
        pass_rule=evidence.pass_rule,
        run_share=evidence.run_share,
    )


def collect_prior_evidence(
    cases: GateCases, baseline: Baseline, policy: Policy, quarantined_in_baseline: Collection[CaseKey] = ()
) -> PriorEvidence:
    """Collect what the history says about the cases of a run, whatever happened in it.

    Nothing is learned from `quarantined_in_baseline`, the cases of the baseline in quarantine.
    """
    run, score = cases.run, policy.pass_score
    history = HistoryEvidence(baseline, score, quarantined_in_baseline, run.rerun_wait)
    number, trials = max(count_planned_cases(run), 1), count_trials(run)
    criteria = RerunCriteria(number, history.prior, policy.false_alarm_rate, run.reruns, trials=trials)
    rule = next(iter(multimode(case.pass_rule for _, case in run.iter_cases() if case.pass_rule)), None)
    thresholds = replace(criteria, pass_rule=rule).add_thresholds(history.histories).thresholds
    evidence = Evidence(
        baseline_run_id=baseline.result.run_id,
        cases=number,
        false_alarm_rate=policy.false_alarm_rate,
        reruns=run.reruns,
        trials=trials,
        pass_rule=rule,
        pass_score=score,
        prior=FailurePrior(weights=history.prior.weights, steady_share=history.prior.steady),
        required_evidence=thresholds.threshold if thresholds else None,
        required_evidence_if_all_failed=thresholds.all_failed_threshold if thresholds else None,
        required_evidence_if_never_failed=thresholds.never_failed_threshold if thresholds else 0.0,
        run_share=history.run_shares.run_share,
        shares=history.run_shares.shares,
        history_worth=history.run_shares.history_worth,
        history_runs=history.typical_run_count,
        comparable_runs=len(find_comparable_runs(baseline.own_history)),
        branch_runs=history.run_days,
        error_runs=history.error_runs,
        unscored_in_baseline=history.unscored_in_baseline,
        permitted_regressions=history.permitted_regressions,
    )
    return PriorEvidence(history.get_case_evidence(cases), evidence)


def restore_prior_evidence(cases: GateCases, evidence: Evidence) -> PriorEvidence:
    """Restore from the run result what was known when the run was made.

    Whether the baseline has a case is looked up again: only a whole run, merged from parts, shows which cases moved.
    """
    assert cases.run.comparison is not None
    measured = has_enough_scores(cases.baseline)
    restored = {
        change.key: _restore_case_evidence(change, cases.get_earlier(change.key), measured=measured)
        for change in cases.run.comparison.changes
    }
    return PriorEvidence(restored, evidence)


def _restore_case_evidence(change: CaseChange, baseline: CaseResult | None, *, measured: bool) -> CaseEvidence:
    if change.change is CaseClass.ADDED and baseline is None:
        return NO_CASE_EVIDENCE
    newest = None
    if change.baseline is not None and change.change is not CaseClass.INCOMPARABLE:
        newest = EarlierResult(change.baseline, change.compared_with)
    return CaseEvidence(
        newest_result=newest,
        in_baseline=baseline is not None,
        unscored_in_baseline=baseline is not None and baseline.status is Status.ERROR and (measured or newest is None),
        history=change.case_history or NO_HISTORY,
        score_history=_drop_assumed_spread(change.score_history),
    )


def _drop_assumed_spread(scores: ScoreHistory | None) -> ScoreHistory | None:
    """Drop a spread that was estimated from one run: for a part of a run, the whole run may give another one."""
    if scores is None or not scores.from_one_run:
        return scores
    return replace(scores, spread=0.0, degrees_of_freedom=0, from_one_run=False)


def count_planned_cases(run: RunResult) -> int:
    """Count the cases that share the false alarm rate: those of the whole plan if the run has them."""
    return max(run.planned_cases or 0, count_scored_cases(run)[1])


def count_trials(run: RunResult) -> int:
    """Count the executions of a case before re-runs: the setting, or the most frequent number in external results."""
    if run.setup is not None and run.setup.trials is not None:
        return run.setup.trials
    planned = (len(case.trials) - case.reruns - case.new_case_executions for _, case in run.iter_cases())
    return max(multimode(max(number, 1) for number in planned), default=1)


def build_case_facts(
    comparison: Comparison, cases: GateCases, prior_evidence: PriorEvidence, patterns: Sequence[str]
) -> list[CaseFacts]:
    """Build the facts of every case in order, but of no quarantined or reused one, so that these are in no test."""
    classes = {one.key: one.change for one in comparison.changes if one.key not in cases.quarantined}
    classes = {key: change for key, change in classes.items() if change is not CaseClass.REMOVED}
    return _build_facts(cases.without_reused.run, classes, cases.pass_score, patterns, prior_evidence.case_evidence)


def build_facts_without_baseline(run: RunResult, pass_score: float, patterns: Sequence[str]) -> list[CaseFacts]:
    """Build the facts of the cases of a run that is not compared with anything yet; nothing is known of any case."""
    first = {key: count_case_responses(case, pass_score).first for key, case in run.iter_cases()}
    classes = {
        key: CaseClass.STILL_PASSING if one.executions and not one.is_failing else CaseClass.REGRESSION
        for key, one in first.items()
        if one.attempts
    }
    return _build_facts(run, classes, pass_score, patterns, {})


def _build_facts(
    run: RunResult,
    classes: Mapping[CaseKey, CaseClass],
    pass_score: float,
    patterns: Sequence[str],
    evidence: Mapping[CaseKey, CaseEvidence],
) -> list[CaseFacts]:
    """Build the facts of the cases that have a plain class."""
    preceding_cases = dict(_iter_dependent_cases(run))
    return [
        CaseFacts(
            key,
            classes[key],
            evidence.get(key, NO_CASE_EVIDENCE).history,
            *count_case_responses(case, pass_score),
            rate=find_pass_rate(case, case.list_executions(), pass_score),
            has_only_timeouts=has_only_timeouts(case.list_executions()),
            must_pass=is_must_pass(case, patterns),
            rerun_end=case.rerun_stop_reason,
            preceding_cases=preceding_cases.get(key),
        )
        for key, case in run.iter_cases()
        if key in classes
    ]


def _iter_dependent_cases(run: RunResult) -> Iterator[tuple[CaseKey, int]]:
    """Every case that works on files of earlier ones, with how many cases of its suite run before it."""
    for suite in run.suites:
        dependent = [case.id for case in suite.cases if case.dependent and case.status is not Status.SKIPPED]
        yield from ((CaseKey(suite.eval_file, case_id), at) for at, case_id in enumerate(dependent))


def _select_scored_cases(
    facts: Sequence[CaseFacts], cases: Mapping[CaseKey, CaseResult], prior_evidence: PriorEvidence
) -> list[ScoredCase]:
    """Select the graded cases to test together by the scores of first executions, as in every test of the suite."""
    scored = []
    for one in facts:
        history = prior_evidence.case_evidence.get(one.key, NO_CASE_EVIDENCE).score_history
        if history is None or not history.by_run or not one.plain_class.is_compared or not cases[one.key].graded:
            continue
        if (score := compute_first_score(cases[one.key])) is not None:
            scored.append(ScoredCase(one.key, score, history.by_run))
    return select_testable_cases(scored)


def _run_score_test(
    scored: Sequence[ScoredCase], classification: Classification, limit: float, allowed: int
) -> ScoreFinding | None:
    """Test the scores without the regressions; each further allowed regression leaves out the largest fall."""
    alone = {
        one.key
        for one in classification.cases
        if one.case_class is CaseClass.REGRESSION
        and (one.grounds is None or one.grounds.kind is not GroundKind.SUITE_DROP)
    }
    tested_cases = select_testable_cases(
        drop_largest_falls([one for one in scored if one.key not in alone], allowed - len(alone))
    )
    return compute_score_finding(tested_cases, limit) if tested_cases else None


def refine_comparison(
    comparison: Comparison, cases: GateCases, prior_evidence: PriorEvidence, policy: Policy
) -> Comparison:
    """Refine a plain comparison with histories, re-runs, base agent and suite tests; without re-runs, classes stay."""
    run, evidence = cases.without_reused.run, prior_evidence.evidence
    histories = {key: one.history for key, one in prior_evidence.case_evidence.items() if one.history.counts.executions}
    changes = tuple(
        replace(one, case_history=histories[one.key]) if one.key in histories else one for one in comparison.changes
    )
    comparison = replace(comparison, changes=changes, evidence=evidence)
    if not run.reruns:
        return comparison
    facts = build_case_facts(comparison, cases, prior_evidence, policy.must_pass)
    scored, allowed = _select_scored_cases(facts, cases.current_cases, prior_evidence), policy.allowed_regressions
    share = (SUITE_TEST_SHARE / 2 if scored else SUITE_TEST_SHARE) * compute_error_share(evidence.cases)
    days, errors = prior_evidence.day_effects, prior_evidence.error_share
    criteria = adjust_to_day(prior_evidence.rerun_criteria, facts, days)
    classification = classify_cases(facts, criteria, allowed=allowed, share=share, days=days, error_share=errors)
    base_agent = collect_base_agent_results(run, classification.cases, cases.pass_score)
    cleared = clear_cases(classification, facts, base_agent, criteria)
    classified = {one.key: one for one in cleared.cases}
    scores = _run_score_test(scored, classification, evidence.false_alarm_rate * share, allowed)

    def refine_change(change: CaseChange) -> CaseChange:
        one = classified.get(key := change.key)
        if one is None or change.change is CaseClass.REMOVED:
            return change
        grounds = one.grounds and replace(one.grounds, repeats=find_repeats(cases.current_cases[key]))
        return replace(change, change=one.case_class, grounds=grounds)

    return replace(
        comparison,
        changes=tuple(map(refine_change, changes)),
        suite_finding=cleared.suite_finding,
        error_finding=recheck_error_finding(cleared.error_finding, count_all_base_agent_executions(run)),
        score_finding=recheck_score_finding(scores, scored, cases.current_cases, base_agent),
        false_alarm_rate=evidence.false_alarm_rate,
    )
