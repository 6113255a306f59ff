"""Decide the verdict of a run: compare with the baseline, refine, waive, apply the policy.

What was known when the run was made is in the run result, so that a stored run gets the same verdict everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from eval_gate.config.policy import DEFAULT_RERUNS, Policy
from eval_gate.config.settings import RetentionRules
from eval_gate.gate.baseline_side import add_baseline_sides
from eval_gate.gate.behaviour_changes import add_behaviour_changes
from eval_gate.gate.case_comparison import add_contract_fields, compare_cases
from eval_gate.gate.case_matching import GateCases, find_earlier_keys, has_all_cases
from eval_gate.gate.comparison_refinement import (
    PriorEvidence,
    build_case_facts,
    build_facts_without_baseline,
    collect_prior_evidence,
    count_planned_cases,
    count_trials,
    refine_comparison,
    restore_prior_evidence,
)
from eval_gate.gate.evidence.agent_errors import ErrorShare
from eval_gate.gate.evidence.base_agent_clearance import iter_base_agent_notes
from eval_gate.gate.evidence.case_classification import NO_ERROR_SHARE, CaseFacts, adjust_to_day
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.evidence.run_share import compute_rerun_wait
from eval_gate.gate.judge_agreement import JudgeLookup, add_judges
from eval_gate.gate.lost_baseline import find_lost_baseline
from eval_gate.gate.metric_changes import add_metric_changes
from eval_gate.gate.missing_tool_calls import mark_unknown_calls
from eval_gate.gate.model_changes import iter_model_notes
from eval_gate.gate.must_pass import find_must_pass_cases
from eval_gate.gate.pass_score import apply_pass_score
from eval_gate.gate.prompt_fields import align_fingerprints, find_varying_fields, iter_left_out_notes
from eval_gate.gate.rules import RuleInput, compute_score_drop, compute_score_share, find_fallen_scores
from eval_gate.gate.score_changes import exceeds_limit, format_limit
from eval_gate.gate.setup_comparison import MAX_NAMED_CASES, build_changed_case, find_setup_changes
from eval_gate.gate.verdict_reasons import build_verdict
from eval_gate.gate.waivers.application import (
    apply_waivers,
    exclude_must_pass,
    find_waived_by_new_name,
    list_standings,
    mark_ended_permissions,
)
from eval_gate.gate.waivers.waiver_file import KnownWaivers
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import BaselineFacts, Comparison
from eval_gate.model.result import RunResult
from eval_gate.model.reuse import ReuseSource
from eval_gate.model.setup_change import SetupChange, SetupChangeKind
from eval_gate.model.waiver import AppliedWaivers, CaseStanding, WaiverKind, WaiverStanding
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.permitted_regressions import update_permitted_regressions
from eval_gate.struct import FrozenStruct, field, replace

WaiverLookup = Callable[[KnownWaivers], KnownWaivers]
"""Adds waivers from elsewhere, such as comments, to the known ones."""


class GateInputs(FrozenStruct):
    """Inputs of the verdict beyond the run: baseline, policy, waivers and agreement of judges.

    `waiver_lookup` is called only if a failure could be waived: for the verdict, or earlier if waived failures could
    make re-runs unnecessary.
    """

    baseline: Baseline | NoBaseline
    policy: Policy
    waivers: KnownWaivers | None = None
    waiver_lookup: WaiverLookup | None = None
    retention: RetentionRules = field(default_factory=RetentionRules)
    """How much of the baseline's responses the comparison may hold."""
    judge_lookup: JudgeLookup | None = None
    """What is known of judges; None where only the run result may say it."""


class _PairedRun(FrozenStruct):
    """Cases of a run paired with its baseline, as recorded and at the pass score, and their prior evidence."""

    as_recorded: GateCases
    at_pass_score: GateCases
    prior_evidence: PriorEvidence


def decide_verdict(run: RunResult, inputs: GateInputs) -> RunResult:
    """Decide the gate verdict of a run, and return the run with comparison and verdict, at the policy's pass score."""
    return _decide(run, inputs, is_final=True)


def decide_provisional_verdict(run: RunResult, inputs: GateInputs) -> RunResult:
    """Decide the verdict that a run would have now, without what only describes it and takes as long again."""
    return _decide(run, inputs, is_final=False)


def _decide(run: RunResult, inputs: GateInputs, *, is_final: bool) -> RunResult:
    run = add_judges(run, inputs.judge_lookup)
    if isinstance(inputs.baseline, NoBaseline):
        return _decide_without_baseline(run, inputs, inputs.baseline)
    policy, paired = inputs.policy, _pair_run(run, inputs, inputs.baseline)
    run, cases = paired.as_recorded.run, paired.at_pass_score
    comparison = _compare_with_baseline(paired, inputs, inputs.baseline)
    if is_final:
        comparison = _describe_changes(comparison, cases, inputs.baseline, inputs.retention)
        run = replace(run, varying_fields=find_varying_fields(cases))
    waiving = _build_waiving(cases.run, comparison, inputs, cases.earlier_keys)
    comparison = _add_renamed_waivers(comparison, waiving, cases.earlier_keys)
    permitted = paired.prior_evidence.evidence.permitted_regressions
    covered = waiving.covered_keys if waiving else ()
    comparison = mark_ended_permissions(comparison, permitted, cases, covered, policy.max_score_drop)
    decided = replace(
        run,
        suites=add_contract_fields(paired.as_recorded),
        baseline_run_id=cases.baseline.run_id,
        policy=policy.to_run_policy(run),
        comparison=comparison,
        lost_baseline=None,
        waivers=waiving,
        verdict=build_verdict(RuleInput(cases.run, comparison, cases, waiving or AppliedWaivers()), policy),
    )
    fallen = find_fallen_scores(cases.run, comparison, policy.max_score_drop)
    permitted = update_permitted_regressions(permitted, decided, cases.earlier_keys, fallen)
    return replace(decided, permitted_regressions=permitted)


def _decide_without_baseline(run: RunResult, inputs: GateInputs, absent: NoBaseline) -> RunResult:
    policy, at_pass_score = inputs.policy, apply_pass_score(run, inputs.policy.pass_score)
    waiving, lost = _build_waiving(at_pass_score, None, inputs), find_lost_baseline(absent, at_pass_score, policy)
    verdict = build_verdict(RuleInput(at_pass_score, waiving=waiving or AppliedWaivers()), policy, absent, lost)
    decided = replace(run, policy=policy.to_run_policy(run), comparison=None, waivers=waiving, verdict=verdict)
    permitted = update_permitted_regressions((), decided, {})
    return replace(decided, lost_baseline=lost.change if lost else None, permitted_regressions=permitted)


def build_facts_before_reruns(run: RunResult, inputs: GateInputs) -> tuple[list[CaseFacts], RerunCriteria, ErrorShare]:
    """Build the facts of every case after its first execution, the criteria of the re-runs, and main's error share.

    If no baseline was requested, the run may still be compared with one later, and every failing case is a suspected
    regression without history. If one was requested and none is available, there is nothing to suspect.
    """
    policy, baseline = inputs.policy, inputs.baseline
    if isinstance(baseline, NoBaseline):
        if baseline.is_requested:
            return [], RerunCriteria(0), NO_ERROR_SHARE
        criteria = RerunCriteria(
            max(count_planned_cases(run), 1),
            false_alarm_rate=policy.false_alarm_rate,
            max_reruns=run.reruns,
            trials=count_trials(run),
        )
        at_pass_score = apply_pass_score(run, policy.pass_score)
        facts = build_facts_without_baseline(at_pass_score, policy.pass_score, policy.must_pass)
        return facts, criteria, NO_ERROR_SHARE
    paired = _pair_run(run, inputs, baseline)
    cases, evidence = paired.at_pass_score, paired.prior_evidence
    # a case that is too late is run again in a shard even if it is the only one there: the whole must know
    plain = compare_cases(cases, baseline, evidence.all_case_evidence, has_other_parts=run.shard is not None)
    facts = build_case_facts(plain, cases, evidence, policy.must_pass)
    return facts, adjust_to_day(evidence.rerun_criteria, facts, evidence.day_effects), evidence.error_share


def _pair_run(run: RunResult, inputs: GateInputs, baseline: Baseline) -> _PairedRun:
    """Pair the cases of a run with those of its baseline, once, and collect or restore their prior evidence."""
    policy, waivers = inputs.policy, inputs.waivers
    run = _count_results_of_others(run, baseline.result)
    cases = GateCases.pair(baseline.result, run)
    cases = replace(cases, run=mark_unknown_calls(cases, policy.pass_score))
    if (aligned := align_fingerprints(cases)) is not cases.run:
        cases = GateCases.pair(baseline.result, aligned)
    at_pass_score = cases.apply_pass_score(policy.pass_score)
    quarantined = find_quarantined_cases(at_pass_score.run, waivers, policy.must_pass, cases.earlier_keys)
    at_pass_score = replace(at_pass_score, quarantined=quarantined)
    recorded = run.comparison.evidence if run.comparison else None
    if recorded is not None and (recorded.baseline_run_id, recorded.false_alarm_rate, recorded.pass_score) == (
        baseline.result.run_id,
        policy.false_alarm_rate,
        policy.pass_score,
    ):
        return _PairedRun(cases, at_pass_score, restore_prior_evidence(at_pass_score, recorded))
    quarantined = find_quarantined_cases(at_pass_score.baseline, waivers, policy.must_pass)
    return _PairedRun(cases, at_pass_score, collect_prior_evidence(at_pass_score, baseline, policy, quarantined))


def _count_results_of_others(run: RunResult, baseline: RunResult) -> RunResult:
    """Count reused results as executions of this run unless the baseline has them: they are news to another one."""
    if not run.baseline_suites:
        return run
    origins = {one.eval_file: one.reused.run_id if one.reused else baseline.run_id for one in baseline.suites}
    suites = [
        replace(one, reused=replace(one.reused, source=ReuseSource.OWN_RUN))
        if one.reused and one.reused.run_id != origins.get(one.eval_file)
        else one
        for one in run.suites
    ]
    return replace(run, suites=tuple(suites))


def _compare_with_baseline(paired: _PairedRun, inputs: GateInputs, baseline: Baseline) -> Comparison:
    """Compare and refine, with the changes of the setup and the notes on what bears on the verdict."""
    policy, cases, prior_evidence = inputs.policy, paired.at_pass_score, paired.prior_evidence
    run, evidence = cases.run, prior_evidence.all_case_evidence
    plain = compare_cases(cases, baseline, evidence, score_tolerance=policy.score_tolerance)
    refined = refine_comparison(plain, cases, prior_evidence, policy)
    notes = (
        *refined.notes,
        *_iter_rerun_notes(run, policy, prior_evidence.evidence.run_share),
        *_iter_baseline_change_notes(run, refined),
        *_iter_score_notes(run, refined, policy),
        *iter_base_agent_notes(run, refined),
        *iter_model_notes(cases.without_reused.run, cases.baseline),
    )
    setup = find_setup_changes(cases, policy.to_run_policy(run), lost=prior_evidence.unscored_in_baseline)
    return replace(refined, notes=notes, setup_changes=setup)


def _describe_changes(
    comparison: Comparison, cases: GateCases, baseline: Baseline, retention: RetentionRules
) -> Comparison:
    history = baseline.own_history
    executed = cases.without_reused
    comparison = add_metric_changes(add_behaviour_changes(comparison, executed, history, retention), executed)
    comparison = replace(comparison, notes=(*comparison.notes, *iter_left_out_notes(cases)))
    return add_baseline_sides(comparison, cases, history, retention)


def _iter_rerun_notes(run: RunResult, policy: Policy, run_share: float) -> Iterator[str]:
    """Yield a note if the policy has re-runs and the run has none, or if they waited."""
    if run.rerun_wait:
        why = ", because executions of one run belong together on the default branch"
        yield f"re-runs waited {run.rerun_wait} s each{why if compute_rerun_wait(run_share) else ''}"
    if policy.reruns and not run.reruns:
        yield (
            "this run had no re-runs, so every case that passed in the baseline and failed counts as a regression. "
            f"To re-run suspected regressions, run with a baseline or with --reruns {DEFAULT_RERUNS}"
        )


def _iter_score_notes(run: RunResult, current: Comparison, policy: Policy) -> Iterator[str]:
    """Which scores are lower by more than the rule allows and do not count, and why."""
    max_drop = policy.max_score_drop
    if max_drop is None:
        return
    share, cases = compute_score_share(current), run.index_cases()
    small_drops = [
        change
        for change in current.changes
        if change.score_change is not None
        and exceeds_limit(-change.score_change, max_drop)
        and not exceeds_limit(compute_score_drop(change, cases[change.key].score, max_drop, share), max_drop)
    ]
    if not small_drops:
        return
    largest = min(small_drops, key=lambda change: (change.score_change or 0.0, change.key))
    history = largest.score_history
    assert history is not None  # else every fall counts
    many = f"{len(small_drops)} scores are" if len(small_drops) > 1 else "1 score is"
    source = "estimated from all cases" if history.from_one_run else "by its history"
    yield (
        f"{many} lower than in the baseline by more than {format_limit(max_drop)}, but may only vary, so "
        f"max-score-drop holds ({largest.case_id[:100]} is {-(largest.score_change or 0.0):.2f} lower and varies by "
        f"{history.spread:.2f} from run to run, {source})"
    )


def _iter_baseline_change_notes(run: RunResult, current: Comparison) -> Iterator[str]:
    """Yield a note on what changed if the run was compared with another baseline before."""
    earlier = run.comparison
    if earlier is None or earlier.baseline.run_id == current.baseline.run_id:
        return
    classes = {change.key: change.change for change in earlier.changes}
    changed_cases = [one for one in current.changes if one.key in classes and classes[one.key] is not one.change]
    what = "no case changed its class"
    if changed_cases:
        first, many = changed_cases[0], "cases changed their" if len(changed_cases) > 1 else "case changed its"
        words = (classes[first.key].value.replace("_", " "), first.change.value.replace("_", " "))
        what = f"{len(changed_cases)} {many} class ({first.case_id[:100]}: {words[0]}, now {words[1]})"
    yield (
        f"this run was first compared with {_format_baseline(earlier.baseline)}, and is now compared with "
        f"{_format_baseline(current.baseline)}: {what}"
    )


def _format_baseline(baseline: BaselineFacts) -> str:
    return f"commit {baseline.sha[:7]}" if baseline.sha else f"run {baseline.run_id[:8]}"


def find_quarantined_cases(
    run: RunResult,
    waivers: KnownWaivers | None,
    must_pass: Sequence[str],
    baseline_keys: Mapping[CaseKey, CaseKey] = MappingProxyType({}),
) -> frozenset[CaseKey]:
    """Find the cases of a run in quarantine, which are not re-run and are in no test of the suite.

    Each case is looked at by itself, so that parts of a run learn the same from the branch. Comments do not count,
    because they come after the run. A must-pass case is never in quarantine. `baseline_keys` has the
    baseline's names of renamed cases.
    """
    quarantine = [one for one in waivers.waivers if one.kind is WaiverKind.QUARANTINE] if waivers else []
    if not quarantine or waivers is None:
        return frozenset()
    standings = [
        CaseStanding(suite=key.suite, case_id=key.case_id, standing=WaiverStanding.FAILS) for key, _ in run.iter_cases()
    ]
    waivers = replace(waivers, waivers=quarantine)
    return _apply_waivers(waivers, standings, run, must_pass, baseline_keys).quarantined_keys


def _apply_waivers(
    waivers: KnownWaivers,
    standings: Sequence[CaseStanding],
    run: RunResult,
    must_pass: Sequence[str],
    baseline_keys: Mapping[CaseKey, CaseKey],
    *,
    everything: bool = True,
) -> AppliedWaivers:
    """Apply waivers to cases as they stand, but to no must-pass case."""
    waiving = apply_waivers(
        waivers.waivers,
        standings,
        waivers.today,
        everything=everything,
        trusted=waivers.trusted,
        baseline_keys=baseline_keys,
    )
    return exclude_must_pass(waiving, find_must_pass_cases(run, must_pass))


def find_waived_regressions(keys: Sequence[CaseKey], run: RunResult, inputs: GateInputs) -> frozenset[CaseKey]:
    """Find the cases whose regression a waiver covers, in the file or in comments, which are looked up."""
    waivers = inputs.waivers
    if waivers is not None and inputs.waiver_lookup is not None:
        waivers = inputs.waiver_lookup(waivers)
    if waivers is None or not waivers.waivers:
        return frozenset()
    standings = [CaseStanding(suite=key.suite, case_id=key.case_id, standing=WaiverStanding.REGRESSED) for key in keys]
    baseline_keys = find_earlier_keys(inputs.baseline.result, run) if isinstance(inputs.baseline, Baseline) else {}
    return _apply_waivers(waivers, standings, run, inputs.policy.must_pass, baseline_keys, everything=False).keys


def _add_renamed_waivers(
    comparison: Comparison, waiving: AppliedWaivers | None, baseline_keys: Mapping[CaseKey, CaseKey]
) -> Comparison:
    """Add, as a loosened rule, the cases that the waiver file waives only by their new name."""
    renamed_cases = find_waived_by_new_name(waiving, baseline_keys) if waiving is not None and baseline_keys else ()
    if not renamed_cases or comparison.setup_changes is None:
        return comparison
    cases = tuple(build_changed_case(baseline_keys[one.key], one.key) for one in renamed_cases)
    loosened = SetupChange(
        kind=SetupChangeKind.LOOSENED, subject="waiver", count=len(cases), cases=cases[:MAX_NAMED_CASES]
    )
    changes = comparison.setup_changes
    changes = replace(changes, changes=(loosened, *changes.changes), loosened_rules=changes.loosened_rules + 1)
    return replace(comparison, setup_changes=changes)


def _build_waiving(
    run: RunResult,
    comparison: Comparison | None,
    inputs: GateInputs,
    baseline_keys: Mapping[CaseKey, CaseKey] = MappingProxyType({}),
) -> AppliedWaivers | None:
    waivers = inputs.waivers
    if waivers is None or not (waivers.has_content or inputs.waiver_lookup):
        return None
    standings = list_standings(run, comparison, max_score_drop=inputs.policy.max_score_drop)
    is_waivable = any(one.standing.is_waivable and one.standing is not WaiverStanding.UNSTABLE for one in standings)
    if inputs.waiver_lookup is not None and is_waivable:
        waivers = inputs.waiver_lookup(waivers)
    if not waivers.has_content:
        return None
    everything, must_pass = has_all_cases(run), inputs.policy.must_pass
    waiving = _apply_waivers(waivers, standings, run, must_pass, baseline_keys, everything=everything)
    return replace(waiving, refusals=waivers.refusals, problems=(*waivers.troubles, *waiving.problems))
