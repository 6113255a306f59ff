"""Cases of a run grouped by history, so that power costs as much as there are different histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from eval_gate.config.policy import Policy
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.comparison_refinement import build_rerun_criteria, collect_prior_evidence
from eval_gate.gate.evidence.case_classification import CaseFacts
from eval_gate.gate.evidence.day_effects import NO_DAY_EFFECTS, DayEffects, learn_day_effects
from eval_gate.gate.evidence.prior import learn_prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.must_pass import is_must_pass
from eval_gate.gate.pass_score import apply_pass_score
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import NO_HISTORY, CaseHistorySummary, Counts, Evidence
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
        preceding = 0 if self.dependent else None
        return CaseFacts(CaseKey("", ""), plain, self.history, must_pass=self.must_pass, preceding_cases=preceding)


class CaseGroups(FrozenStruct):
    """All cases of a verdict, in groups, and the criteria of their re-runs.

    `runs` is the number of runs in their histories, `allowed_regressions` that of regressions that do not fail the
    gate, and `quarantined` the number of cases in quarantine, which no test includes.
    """

    groups: tuple[CaseGroup, ...]
    criteria: RerunCriteria
    runs: int
    allowed_regressions: int = 0
    quarantined: int = 0
    day_effects: DayEffects = NO_DAY_EFFECTS

    @property
    def number(self) -> int:
        """How many cases there are."""
        return sum(kind.number for kind in self.groups)


def group_run_cases(run: RunResult) -> CaseGroups | None:
    """Group the cases that a run executed by the history that its verdict used; None if it has none, or lacks some."""
    comparison = run.comparison
    if comparison is None or comparison.evidence is None or run.eval_paths is None or run.shard is not None:
        return None
    evidence, policy, results = comparison.evidence, run.policy, run.without_reused.index_cases()
    patterns = policy.must_pass if policy else ()
    aside = run.quarantined_keys

    def iter_cases() -> Iterator[CaseGroup]:
        for change in comparison.changes:
            case = results.get(key := change.key)
            if case is None or key in aside:
                continue
            baseline = None if change.change is CaseClass.INCOMPARABLE else change.baseline
            passed = baseline is not None and baseline.passed
            history, must_pass = change.case_history or NO_HISTORY, is_must_pass(case, patterns)
            yield CaseGroup(history, 1, (key,), baseline is not None, passed, must_pass, case.dependent)

    allowed = policy.allowed_regressions if policy else 0
    return _build_case_groups(_group_cases(iter_cases()), evidence, allowed, len(results))


def group_baseline_cases(baseline: Baseline, policy: Policy, quarantined: Collection[CaseKey] = ()) -> CaseGroups:
    """Group the cases of a baseline by the history that ends with it, which the next run will use."""
    run = apply_pass_score(baseline.result, policy.pass_score)
    run = replace(run, reruns=policy.max_reruns, rerun_wait=0)
    evidence = collect_prior_evidence(GateCases.pair(run, run), baseline, policy, quarantined)

    def build_group(key: CaseKey, case: CaseResult) -> CaseGroup:
        own, must_pass = evidence.case_evidence[key], is_must_pass(case, policy.must_pass)
        passed = own.newest_result is not None and own.newest_result.passed
        return CaseGroup(own.history, 1, (key,), own.newest_result is not None, passed, must_pass, case.dependent)

    kinds = _group_cases(build_group(key, case) for key, case in run.iter_cases() if key not in quarantined)
    return _build_case_groups(kinds, evidence.evidence, policy.allowed_regressions, len(evidence.case_evidence))


def _build_case_groups(groups: tuple[CaseGroup, ...], evidence: Evidence, allowed: int, cases: int) -> CaseGroups:
    return CaseGroups(
        groups,
        build_rerun_criteria(evidence),
        evidence.history_runs,
        allowed_regressions=allowed,
        quarantined=cases - sum(kind.number for kind in groups),
        day_effects=learn_day_effects(evidence.branch_runs),
    )


def _group_cases(cases: Iterable[CaseGroup]) -> tuple[CaseGroup, ...]:
    by_kind: dict[tuple[object, ...], list[CaseGroup]] = {}
    for one in cases:
        counts, newest = one.history.counts.without_agent_errors, one.history.newest_run.without_agent_errors
        flags = one.history.newest_failed, one.is_compared, one.passed_before, one.must_pass, one.dependent
        by_kind.setdefault((counts, newest, *flags), []).append(one)
    kinds = [
        replace(group[0], number=len(group), keys=tuple(key for one in group for key in one.keys))
        for group in by_kind.values()
    ]
    return tuple(sorted(kinds, key=lambda kind: -kind.number))


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
    sizes = zip(cases.groups, counts, strict=True)
    kinds = tuple(replace(kind, number=count, keys=kind.keys[:count]) for kind, count in sizes if count)
    criteria = replace(cases.criteria, cases=max(round(cases.criteria.cases * factor), 1))
    return relearn_prior(replace(cases, groups=kinds, criteria=criteria))


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
    old = cases.criteria.prior
    prior = replace(learn_prior(_count_histories(cases), old.history_worth), shares=old.shares)
    return _recompute_thresholds(replace(cases, criteria=replace(cases.criteria, prior=prior)))


def _recompute_thresholds(cases: CaseGroups) -> CaseGroups:
    return replace(cases, criteria=cases.criteria.add_thresholds(_count_histories(cases)))


def _count_histories(cases: CaseGroups) -> Counter[tuple[int, int]]:
    numbers: Counter[tuple[int, int]] = Counter()
    for kind in cases.groups:
        numbers[kind.history.counts.passes, kind.history.counts.failures] += kind.number
    return numbers


def _scale_history(history: CaseHistorySummary, factor: float) -> CaseHistorySummary:
    """Multiply the executions of a history, with the same share of failures; the newest run stays."""
    counts = history.counts
    if not counts.executions:
        return history
    runs = max(round(counts.executions * factor), 1)
    failures = round(counts.failures * runs / counts.executions)
    return replace(history, counts=Counts(passes=runs - failures, failures=failures))
