"""Evaluators and tags in the baseline and in this run, over the cases that both scored. No verdict reads them. Pure.

A case counts with the executions that were made whatever they showed: all trials, and no re-run. Only failed cases are
re-run, so re-runs would improve the means. If the evaluator results of a trial are not stored, the first trial stands
for all of them. A case without a result on one side is left out of the row on both sides.

The members of a composite have rows of their own, which the test counts as it counts all others. If one member falls,
the composite of several changes too little to be marked; its member is. In simulated pull requests of 20 cases in which
one of three members fell, its row was marked in 91 %, and without such rows the composite in 9 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.evidence.paired_difference import adjust_chances, compute_interval, compute_sign_chance
from eval_gate.gate.score_changes import clamp_score
from eval_gate.model.comparison import Comparison
from eval_gate.model.execution import EvaluatorResult, Status, Trial
from eval_gate.model.limits import EVALUATORS_DEPTH, METRIC_NAME, METRIC_ROWS
from eval_gate.model.metric_change import MetricChange, MetricChanges, MetricKind
from eval_gate.model.result import CaseResult
from eval_gate.results.turn_details import PARTS_OF_CONVERSATION
from eval_gate.struct import replace

MAX_CHANCE: Final = 0.05
"""Chance that any row of a run is marked although nothing changed."""
MIN_CASES: Final = 2
"""Cases of a row: what one case did, the case itself says."""
MEMBER_SEPARATOR: Final = " / "
"""Stands between the name of a composite and that of its member."""
_CHECK: Final = "check"
"""Type of a result for which another tool says whether it passed, whatever its score."""
_TOOL_TYPES: Final = frozenset({_CHECK, "score"})
_DIGITS: Final = 9


class _Outcome(NamedTuple):
    """Score from 0 to 1, and the share of executions that passed; None if it is unknown which score passes."""

    score: float
    passes: float | None


_Pair = tuple[_Outcome, _Outcome]
_Row = tuple[MetricKind, str]


def add_metric_changes(comparison: Comparison, cases: GateCases) -> Comparison:
    """Add how evaluators and tags compare with the baseline to a comparison.

    A stored run that is checked again keeps its changes: evaluator results may be lost to the limits of its size.
    """
    metrics, recorded = find_metric_changes(comparison, cases), cases.run.comparison
    if recorded is not None and recorded.metric_changes is not None:
        same = recorded.baseline.run_id == comparison.baseline.run_id
        if same and _count_cases(recorded.metric_changes) > _count_cases(metrics):
            metrics = recorded.metric_changes
    return replace(comparison, metric_changes=replace(metrics, rows=metrics.rows[:METRIC_ROWS]))


def _count_cases(changes: MetricChanges) -> int:
    return sum(row.cases for row in changes.rows[:METRIC_ROWS])


def find_metric_changes(comparison: Comparison, cases: GateCases) -> MetricChanges:
    """Compare each evaluator and tag over the cases that `comparison` compared with this baseline.

    There are no rows for a single evaluator without tags: the pass rate and the mean score of all cases say the same.
    """
    pairs = _collect_pairs(comparison, cases)
    tested = [_build_row(kind, name, both) for (kind, name), both in pairs.items() if len(both) >= MIN_CASES]
    if not any(row.kind is MetricKind.TAG for row in tested) and len(tested) < 2:
        return MetricChanges()
    adjusted = adjust_chances([row.p_value for row in tested])
    rows = [replace(row, changed=chance <= MAX_CHANCE) for row, chance in zip(tested, adjusted, strict=True)]
    rows.sort(key=lambda row: (row.kind is MetricKind.TAG, not row.changed, row.p_value))
    return MetricChanges(rows=tuple(rows), tested=len(rows), changed=sum(row.changed for row in rows))


def _collect_pairs(comparison: Comparison, cases: GateCases) -> Mapping[_Row, Sequence[_Pair]]:
    pairs: dict[_Row, list[_Pair]] = defaultdict(list)
    for earlier, case in _iter_compared_cases(comparison, cases):
        old, new = _average_case(earlier), _average_case(case)
        if old is not None and new is not None:
            for tag in dict.fromkeys(case.tags):
                pairs[MetricKind.TAG, tag].append((old, new))
        for name, both in _iter_evaluator_pairs(earlier, case, cases.pass_score):
            pairs[MetricKind.EVALUATOR, name].append(both)
    return pairs


def _iter_compared_cases(comparison: Comparison, cases: GateCases) -> Iterator[tuple[CaseResult, CaseResult]]:
    """Yield each case that this run and the baseline itself scored with the same fingerprint, the baseline's first."""
    for change in comparison.changes:
        if not change.change.is_compared or change.compared_with is not None:
            continue
        case, earlier = cases.current_cases.get(change.key), cases.get_earlier(change.key)
        if case is not None and earlier is not None and case.status.is_scored and earlier.status.is_scored:
            yield earlier, case


def _list_first_executions(case: CaseResult) -> Sequence[Trial]:
    """List the scored executions that were made whatever the others showed."""
    executions = case.list_executions()
    return [one for one in executions[: max(len(executions) - case.reruns, 1)] if one.status.is_scored]


def _average_case(case: CaseResult) -> _Outcome | None:
    if not case.trials:
        return _Outcome(clamp_score(case.score), float(case.status is Status.PASSED))
    executions = _list_first_executions(case)
    if not executions:
        return None
    passes = [float(one.status is Status.PASSED) for one in executions]
    return _Outcome(_average([clamp_score(one.score) for one in executions]), _average(passes))


def _iter_evaluator_pairs(earlier: CaseResult, case: CaseResult, pass_score: float) -> Iterator[tuple[str, _Pair]]:
    old, new = _average_evaluators(earlier, pass_score), _average_evaluators(case, pass_score)
    for name in new | old:
        both = old.get(name) or _infer_passed_check(earlier, case), new.get(name) or _infer_passed_check(case, earlier)
        if both[0] is not None and both[1] is not None:
            yield name, (both[0], both[1])


def _average_evaluators(case: CaseResult, pass_score: float) -> dict[str, _Outcome]:
    """Map the name of each evaluator to its mean outcome; evaluators of one name are one."""
    executions = [case.evaluator_results]
    if len(case.trials) > 1:
        executions = [
            case.evaluator_results if one.decisive else one.evaluator_results for one in _list_first_executions(case)
        ]
        if not all(executions):
            executions = executions[:1]
    results: dict[str, list[EvaluatorResult]] = defaultdict(list)
    for execution in executions:
        for name, result in iter_named_results(execution):
            results[name].append(result)
    return {name: _average_results(named_results, pass_score) for name, named_results in results.items()}


def iter_named_results(
    results: Iterable[EvaluatorResult], composite: str = "", depth: int = 0
) -> Iterator[tuple[str, EvaluatorResult]]:
    """Yield evaluator results with the names of their rows: `policy / facts` for a member of the composite `policy`.

    A composite with a single member stands for it. Evaluators of a conversation have no turn in their names: the turns
    of two cases have only their numbers in common.
    """
    for result in results:
        if result.type in PARTS_OF_CONVERSATION:
            if depth < EVALUATORS_DEPTH:
                yield from iter_named_results(result.evaluator_results, composite, depth + 1)
            continue
        name = f"{composite}{result.name}"
        yield name, result
        if len(result.evaluator_results) > 1 and depth < EVALUATORS_DEPTH:
            yield from iter_named_results(result.evaluator_results, f"{name}{MEMBER_SEPARATOR}", depth + 1)


def _average_results(results: Sequence[EvaluatorResult], pass_score: float) -> _Outcome:
    passes = _average_known([_is_passing(one, pass_score) for one in results])
    return _Outcome(_average([clamp_score(one.score) for one in results]), passes)


def _is_passing(result: EvaluatorResult, pass_score: float) -> bool | None:
    """Whether an evaluator passed by itself; None if another tool gave a score without a pass or fail."""
    if result.vetoed:
        return False
    if result.type == _CHECK and (result.hits or result.misses):
        return not result.misses
    if not 0 < result.score < 1:
        return result.score >= 1
    return None if result.type in _TOOL_TYPES else result.score >= pass_score


def _infer_passed_check(case: CaseResult, other: CaseResult) -> _Outcome | None:
    """Infer a passed check that a large run result dropped: otherwise only cases that failed would count."""
    own, reference = case.fingerprints, other.fingerprints
    if not case.passed or case.graded or case.flaky or case.text is not None or own is None or reference is None:
        return None
    return _PASSED if own.expectation is not None and own.expectation == reference.expectation else None


_PASSED: Final = _Outcome(1.0, 1.0)


def _average(values: Sequence[float]) -> float:
    return values[0] if len(values) == 1 else fmean(values)


def _average_known(values: Sequence[float | None]) -> float | None:
    """Average the values, or return None if one of them is unknown."""
    numbers = [float(one) for one in values if one is not None]
    return _round_share(_average(numbers)) if len(numbers) == len(values) else None


def _build_row(kind: MetricKind, name: str, pairs: Sequence[_Pair]) -> MetricChange:
    differences = [round(new.score - old.score, _DIGITS) for old, new in pairs]
    interval = compute_interval(differences)
    rates = _average_known([old.passes for old, _ in pairs]), _average_known([new.passes for _, new in pairs])
    if rates[0] is None or rates[1] is None:
        rates = None, None
    return MetricChange(
        kind=kind,
        name=name[:METRIC_NAME],
        cases=len(pairs),
        baseline_score=_round_share(fmean(old.score for old, _ in pairs)),
        current_score=_round_share(fmean(new.score for _, new in pairs)),
        baseline_pass_rate=rates[0],
        current_pass_rate=rates[1],
        difference=round(fmean(differences), _DIGITS) + 0.0,  # never -0.0
        low=interval and round(interval.low, _DIGITS),
        high=interval and round(interval.high, _DIGITS),
        p_value=compute_sign_chance(differences),
    )


def _round_share(share: float) -> float:
    return min(round(share, _DIGITS), 1.0)
