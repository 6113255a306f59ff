"""Cases of a run grouped by history, so that power costs as much as there are different histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from eval_gate.config.policy import Policy
from eval_gate.gate.comparison_refinement import build_rerun_criteria, count_planned_cases, count_trials
from eval_gate.gate.evidence.case_classification import CaseFacts
from eval_gate.gate.evidence.case_history import build_history_evidence
from eval_gate.gate.evidence.day_effects import NO_DAY_EFFECTS, DayEffects, learn_day_effects
from eval_gate.gate.evidence.prior import learn_prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.evidence.thresholds import compute_run_thresholds
from eval_gate.gate.must_pass import is_must_pass
from eval_gate.gate.pass_score import apply_pass_score
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import NO_HISTORY, CaseHistorySummary, Counts
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.baseline import Baseline
from eval_gate.struct import FrozenStruct, replace


class CaseGroup(FrozenStruct):
    """Cases with the same history; `number` is how many, `keys` are their names.

    `is_compared` means that an earlier result with the same fingerprint exists, `passed_before` that it passed. Cases
    that are `dependent` use files of others, and are in no test that counts cases.
    """

    history: CaseHistorySummary
    number: int
    keys: tuple[CaseKey, ...] = ()
    is_compared: bool = True
    passed_before: bool = True
    must_pass: bool = False
    dependent: bool = False

    @property
    def facts(self) -> CaseFacts:
        """One of them as the verdict will see it, not executed yet."""
        plain = CaseClass.REGRESSION if self.is_compared else CaseClass.INCOMPARABLE
        before = 0 if self.dependent else None
        return CaseFacts(CaseKey("", ""), plain, self.history, must_pass=self.must_pass, preceding_cases=before)


class CaseGroups(FrozenStruct):
    """All cases of a verdict, in groups, and the criteria of their re-runs.

    `runs` is the number of runs in their histories, `trials` the number of first executions of a case,
    `allowed_regressions` the number of regressions that do not fail the gate, and `quarantined` the number of cases in
    quarantine, which no test includes.
    """

    groups: tuple[CaseGroup, ...]
    criteria: RerunCriteria
    runs: int
    trials: int = 1
    allowed_regressions: int = 0
    quarantined: int = 0
    day_effects: DayEffects = NO_DAY_EFFECTS
    """How much whole runs of the branch differ."""

    @property
    def number(self) -> int:
        """How many cases there are."""
        return sum(kind.number for kind in self.groups)


class _SingleCase(FrozenStruct):
    key: CaseKey
    history: CaseHistorySummary
    is_compared: bool
    passed_before: bool
    must_pass: bool
    dependent: bool


def group_run_cases(run: RunResult) -> CaseGroups | None:
    """Group the cases of a run by the history that its verdict used.

    Return None if there is no such history: the run was compared with nothing, has only some cases, or is part of a
    run.
    """
    comparison = run.comparison
    if comparison is None or comparison.evidence is None or run.eval_paths is None or run.shard is not None:
        return None
    evidence, policy, results = comparison.evidence, run.policy, run.index_cases()
    patterns = policy.must_pass if policy else ()
    aside = run.quarantined_keys

    def one_by_one() -> Iterator[_SingleCase]:
        for change in comparison.changes:
            case = results.get(key := change.key)
            if case is None or key in aside:
                continue
            compared = change.baseline is not None and change.change is not CaseClass.INCOMPARABLE
            yield _SingleCase(
                key,
                change.case_history or NO_HISTORY,
                compared,
                compared and change.baseline is not None and change.baseline.passed,
                is_must_pass(case, patterns),
                case.dependent,
            )

    kinds = _group_cases(one_by_one())
    number = sum(kind.number for kind in kinds)
    return CaseGroups(
        kinds,
        build_rerun_criteria(evidence),
        evidence.history_runs,
        trials=evidence.trials,
        allowed_regressions=policy.allowed_regressions if policy else 0,
        quarantined=len(results) - number,
        day_effects=learn_day_effects(evidence.branch_runs),
    )


def group_baseline_cases(baseline: Baseline, policy: Policy, quarantined: Collection[CaseKey] = ()) -> CaseGroups:
    """Group the cases of a baseline by the history that ends with it, which the next run will use."""
    past, run = (
        build_history_evidence(baseline, policy.pass_score),
        apply_pass_score(baseline.result, policy.pass_score),
    )
    pasts, results = past.get_case_evidence(run), run.index_cases()

    def one(key: CaseKey, case: CaseResult) -> _SingleCase:
        known = pasts[key]
        return _SingleCase(
            key,
            known.history,
            known.newest_result is not None,
            known.newest_result is not None and known.newest_result.passed,
            is_must_pass(case, policy.must_pass),
            case.dependent,
        )

    kinds = _group_cases(one(key, case) for key, case in run.iter_cases() if key not in quarantined)
    shares = past.learn_run_shares(quarantined)
    confirmation = _set_thresholds(
        RerunCriteria(
            max(count_planned_cases(run), 1),
            past.learn_prior(quarantined, shares),
            policy.false_alarm_rate,
            policy.most_reruns,
            trials=count_trials(run),
        ),
        past.count_histories(quarantined),
    )
    aside = len(results) - sum(kind.number for kind in kinds)
    days = learn_day_effects(past.build_run_days(quarantined, shares))
    return CaseGroups(
        kinds, confirmation, past.level_run_count, confirmation.trials, policy.allowed_regressions, aside, days
    )


def _group_cases(cases: Iterable[_SingleCase]) -> tuple[CaseGroup, ...]:
    """Group the cases with the same history, largest groups first."""
    found: dict[tuple[object, ...], tuple[_SingleCase, list[CaseKey]]] = {}
    for one in cases:
        history = one.history
        same = (
            _to_numbers(history.counts),
            _to_numbers(history.newest_run),
            history.newest_failed,
            one.is_compared,
            one.passed_before,
            one.must_pass,
            one.dependent,
        )
        found.setdefault(same, (one, []))[1].append(one.key)
    kinds = [
        CaseGroup(one.history, len(keys), tuple(keys), one.is_compared, one.passed_before, one.must_pass, one.dependent)
        for one, keys in found.values()
    ]
    return tuple(sorted(kinds, key=lambda kind: -kind.number))


def _to_numbers(counts: Counts) -> tuple[int, int]:
    return counts.passes, counts.failures


def scale_history(cases: CaseGroups, runs: int) -> CaseGroups:
    """Scale the histories to `runs` runs with the same failure rates, if there are any; learn the prior anew."""
    if not cases.runs:
        return cases
    factor = runs / cases.runs
    kinds = tuple(replace(kind, history=_scale_history(kind.history, factor)) for kind in cases.groups)
    return relearn_prior(replace(cases, groups=kinds, runs=runs))


def scale_number(cases: CaseGroups, number: int) -> CaseGroups:
    """Scale the number of cases; the shares of the histories stay, and the cases share the error rate."""
    factor = number / max(cases.number, 1)
    ends = [round(sum(kind.number for kind in cases.groups[: at + 1]) * factor) for at in range(len(cases.groups))]
    counts = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    kinds = tuple(
        replace(kind, number=count, keys=kind.keys[:count])
        for kind, count in zip(cases.groups, counts, strict=True)
        if count
    )
    confirmation = replace(cases.criteria, cases=max(round(cases.criteria.cases * factor), 1))
    return relearn_prior(replace(cases, groups=kinds, criteria=confirmation))


def set_max_reruns(cases: CaseGroups, max_reruns: int) -> CaseGroups:
    """Set the maximum number of re-runs of one case, and recompute the evidence thresholds."""
    return _recompute_thresholds(replace(cases, criteria=replace(cases.criteria, max_reruns=max_reruns)))


def drop_shares(cases: CaseGroups) -> CaseGroups:
    """Take the executions of one run for independent, and recompute the evidence thresholds."""
    prior = cases.criteria.prior
    if not prior.shares:
        return cases
    return _recompute_thresholds(replace(cases, criteria=replace(cases.criteria, prior=replace(prior, shares=()))))


def relearn_prior(cases: CaseGroups) -> CaseGroups:
    """Learn the prior anew from the histories of the cases, and recompute the evidence thresholds."""
    before = cases.criteria.prior
    prior = replace(learn_prior(_count_histories(cases), before.history_worth), shares=before.shares)
    return _recompute_thresholds(replace(cases, criteria=replace(cases.criteria, prior=prior)))


def _recompute_thresholds(cases: CaseGroups) -> CaseGroups:
    return replace(cases, criteria=_set_thresholds(cases.criteria, _count_histories(cases)))


def _count_histories(cases: CaseGroups) -> Counter[tuple[int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for kind in cases.groups:
        found[kind.history.counts.passes, kind.history.counts.failures] += kind.number
    return found


def _set_thresholds(criteria: RerunCriteria, histories: Mapping[tuple[int, int], int]) -> RerunCriteria:
    """With the evidence that cases with these histories need."""
    asked = compute_run_thresholds(
        criteria.prior, histories, criteria.cases, criteria.execution_limits, criteria.false_alarm_rate
    )
    return replace(
        criteria,
        computed_threshold=asked.threshold if asked else None,
        all_failed_threshold=asked.all_failed_threshold if asked else None,
        never_failed_threshold=asked.never_failed_threshold if asked else 0.0,
    )


def _scale_history(history: CaseHistorySummary, factor: float) -> CaseHistorySummary:
    """Multiply the executions of a history, with the same share of failures; the newest run stays."""
    counts = history.counts
    if not counts.executions:
        return history
    runs = max(round(counts.executions * factor), 1)
    failures = round(counts.failures * runs / counts.executions)
    return replace(history, counts=Counts(passes=runs - failures, failures=failures))
