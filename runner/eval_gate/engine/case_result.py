"""Joins the trials of a case into its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from eval_gate.engine.journal import FinishedTrials, TrialRecord
from eval_gate.engine.run_plan import RunPlan
from eval_gate.model.case import Aggregation, EvalCase, PassRule, decide_pass
from eval_gate.model.execution import CALLS_UNKNOWN, CaseDetails, ErrorCause, ErrorKind, Status, Trial, TurnResult
from eval_gate.model.result import CaseFingerprints, CaseResult, CaseText, RerunStopReason
from eval_gate.model.usage import Usage, add_up
from eval_gate.results.detail_truncation import drop_judge_prompts, reduce_details
from eval_gate.struct import replace

_Sum = TypeVar("_Sum", float, Usage)


def build_unrun_result(
    case: EvalCase,
    target: str | None = None,
    text: CaseText | None = None,
    fingerprints: CaseFingerprints | None = None,
) -> CaseResult:
    """Build the result of a case before its trials are added: skipped for its reason, else not run.

    `join_trials` adds the trials of a case that ran. `target` is named if it is not the one of the run.
    """
    return CaseResult(
        id=case.id,
        description=case.description,
        difficulty=case.difficulty,
        tags=case.tags,
        conversation_id=case.conversation_id,
        graded=case.aggregation is Aggregation.WEIGHTED_MEAN,
        dependent=case.dependent,
        location=case.location,
        mistakes=case.mistakes,
        fingerprint=case.fingerprint,
        passed=False,
        status=Status.SKIPPED if case.skip_reason else Status.NOT_RUN,
        error=case.skip_reason,
        target=target,
        text=text,
        fingerprints=fingerprints,
        warnings=case.warnings,
    )


def build_trial(trial_record: TrialRecord, *, decisive: bool = False) -> Trial:
    """One execution in short, as results and the gate know it."""
    return Trial(
        status=trial_record.status,
        score=trial_record.score,
        duration_ms=trial_record.duration_ms,
        error=trial_record.error,
        error_kind=trial_record.error_kind,
        error_cause=trial_record.error_cause,
        error_hint=trial_record.error_hint,
        http_status=trial_record.http_status,
        timed_out=trial_record.timed_out,
        failed_turn=trial_record.failed_turn,
        vetoed=trial_record.vetoed,
        decisive=decisive,
    )


def build_detailed_trial(trial_record: TrialRecord) -> Trial:
    """Build the trial of an execution that did not decide its case, with its response and its scores.

    The details are reduced, and the judge prompts are dropped.
    """
    return replace(
        build_trial(trial_record),
        details=reduce_details(trial_record.details),
        evaluator_results=drop_judge_prompts(trial_record.evaluator_results),
    )


def _build_trials(records: Sequence[TrialRecord], decisive: TrialRecord, first: int | None) -> tuple[Trial, ...]:
    """Build every execution; the case itself has the details of a single one, and of the decisive one."""
    trials = [
        build_trial(record, decisive=True) if record is decisive else build_detailed_trial(record) for record in records
    ]
    failed = next((record for record in records if record.status is Status.FAILED), None)
    if failed is None or first is None or len(records) == 1:
        return tuple(trials)
    repeats = [record.trial >= first and _is_repeat(record, failed) for record in records]
    return tuple(
        replace(one, repeats_first_failure=True) if same else one for one, same in zip(trials, repeats, strict=True)
    )


def build_base_agent_trials(records: Sequence[TrialRecord], current: CaseResult) -> tuple[Trial, ...]:
    """Build short trials of the base agent's executions of a case that the evaluated agent ran, too.

    `current` is the case result of the evaluated agent. Responses are compared byte for byte: a trial is marked as a
    repetition of the first failure, and as a response that also occurred in `current`.
    """
    failed = next((record for record in records if record.status is Status.FAILED), None)
    current_details = [current.details, *(one.details for one in current.trials if one.details is not None)]
    return tuple(
        replace(
            build_trial(one),
            repeats_first_failure=failed is not None and _is_repeat(one, failed),
            same_as_current=any(_is_same_response(one.details, other) for other in current_details),
        )
        for one in records
    )


def _is_repeat(trial_record: TrialRecord, failed: TrialRecord) -> bool:
    """Whether it failed with the same response and calls as `failed`; false if these are not stored."""
    return (
        trial_record is not failed
        and trial_record.status is Status.FAILED
        and _is_same_response(trial_record.details, failed.details)
    )


def _is_same_response(repeat: CaseDetails, first: CaseDetails) -> bool:
    return (
        repeat.response is not None
        and not repeat.replayed
        and (repeat.response, repeat.response_length, repeat.tools_called)
        == (first.response, first.response_length, first.tools_called)
        and [(call.arguments, call.result) for call in repeat.tool_calls]
        == [(call.arguments, call.result) for call in first.tool_calls]
        and repeat.fields == first.fields
        and len(repeat.turns) == len(first.turns)
        and all(map(_is_same_turn, repeat.turns, first.turns))
    )


def _is_same_turn(repeat: TurnResult, first: TurnResult) -> bool:
    """Compare the calls and as much of the responses as both sides store."""
    texts = repeat.response or "", first.response or ""
    least = min(map(len, texts))
    both = [(turn.response_length, turn.calls, turn.fields) for turn in (repeat, first)]
    return both[0] == both[1] and texts[0][:least] == texts[1][:least]


def join_trials(
    case: CaseResult,
    records: Sequence[TrialRecord],
    *,
    first: int | None = None,
    end: RerunStopReason | None = None,
) -> CaseResult:
    """Join the trials of a case, at least one, into its result so far.

    Trials from number `first` on are re-runs, and `end` is why there were no more of them.

    A case passes if more than half of its scored trials do, or as many of the first ones as its rule asks for. Without
    a rule, it is flaky if some pass and some fail. A case is an error if trials without a score could decide it, if it
    has no others, or if one missed a model call. The details are those of the first decisive trial: a failed one for a
    failed case, the first without a score for an error.
    """
    shortfall = None
    if len(records) == 1 and case.pass_rule is None:
        (decisive,) = records
        scored = records if decisive.status.is_scored else []
        status, whole = decisive.status if scored else _choose_unscored_status(records), TrialTotals.from_one(decisive)
        score, flaky = decisive.score if scored else 0.0, False
    else:
        records = sorted(records, key=lambda record: record.trial)
        scored = [record for record in records if record.status.is_scored]
        passes = decide_pass(case.pass_rule, [record.status is Status.PASSED for record in scored])
        decided = Status.PASSED if passes else Status.FAILED
        status = _choose_unscored_status(records, case.pass_rule) if passes is None else decided
        missed_call = next((one for one in records if one.error_cause is ErrorCause.MODEL_CALL_MISSING), None)
        status = status if missed_call is None else missed_call.status
        if status is Status.NOT_RUN:
            shortfall = f"{len(scored)} of its trials have a score, and {case.pass_rule} must pass"
        whole = TrialTotals.from_records(records)
        decisive = missed_call or next((record for record in records if record.status is status), records[0])
        score = sum([record.score for record in scored]) / len(scored) if status.is_scored else 0.0
        flaky = case.pass_rule is None and len({record.status for record in scored}) > 1
    return replace(
        case,
        passed=status is Status.PASSED,
        duration_ms=whole.duration_ms,
        assertions_run=decisive.assertions_run,
        assertions_skipped=decisive.assertions_skipped,
        error=shortfall or decisive.error,
        details=decisive.details,
        status=status,
        score=score,
        flaky=flaky,
        failed_turn=decisive.failed_turn,
        evaluator_results=decisive.evaluator_results,
        trace_summary=decisive.trace_summary,
        reruns=0 if first is None else sum([record.trial >= first for record in records]),
        rerun_stop_reason=end,
        trials=_build_trials(records, decisive, first),
        error_kind=decisive.error_kind,
        error_cause=decisive.error_cause,
        error_hint=decisive.error_hint,
        http_status=decisive.http_status,
        attempts=whole.attempts,
        ran_first=any(record.ran_first for record in records),
        usage=whole.usage,
        cost_usd=whole.cost_usd,
        judge_usage=whole.judge_usage,
        judge_cost_usd=whole.judge_cost_usd,
        warnings=case.warnings + whole.warnings,
    )


def count_reruns_as_new(case: CaseResult) -> CaseResult:
    """Count the re-runs of a case as first executions, because no earlier run knows the case."""
    return replace(
        case,
        reruns=0,
        new_case_executions=case.reruns,
        rerun_stop_reason=None,
    )


def add_preparatory_cost(case: CaseResult, records: Sequence[TrialRecord]) -> CaseResult:
    """Add the cost of the case's preparatory executions to its result.

    These executions were made only because a later case of the suite was re-run. The usage and the cost of the
    target are None if a part of the sum is unknown.
    """
    if not records:
        return case
    whole = TrialTotals.from_records(records)
    costs = None if case.cost_usd is None or whole.cost_usd is None else case.cost_usd + whole.cost_usd
    return replace(
        case,
        preparatory_executions=len(records),
        duration_ms=case.duration_ms + whole.duration_ms,
        attempts=case.attempts + whole.attempts,
        usage=None if case.usage is None or whole.usage is None else Usage.add_up((case.usage, whole.usage)),
        cost_usd=costs,
        judge_usage=Usage.add_up((case.judge_usage, whole.judge_usage)),
        judge_cost_usd=add_up((case.judge_cost_usd, whole.judge_cost_usd)),
    )


class TrialTotals(NamedTuple):
    """Totals over the executions of a case."""

    duration_ms: float
    attempts: int
    usage: Usage | None
    cost_usd: float | None
    judge_usage: Usage | None
    judge_cost_usd: float | None
    warnings: tuple[str, ...]

    @classmethod
    def from_one(cls, one: TrialRecord) -> TrialTotals:
        """Build the totals of a single execution without adding anything up. Nearly every case has one execution."""
        return cls(
            one.duration_ms,
            one.attempts,
            one.usage,
            one.cost_usd,
            one.judge_usage,
            one.judge_cost_usd,
            one.warnings and tuple(dict.fromkeys(one.warnings)),
        )

    @classmethod
    def from_records(cls, records: Sequence[TrialRecord]) -> TrialTotals:
        """Build the totals of several executions. Usage or cost of the target is None if a part is unknown."""
        return cls(
            sum(record.duration_ms for record in records),
            sum(record.attempts for record in records),
            _require_all_parts(Usage.add_up(record.usage for record in records), records, lambda one: one.usage),
            _require_all_parts(add_up(record.cost_usd for record in records), records, lambda one: one.cost_usd),
            Usage.add_up(record.judge_usage for record in records),
            add_up(record.judge_cost_usd for record in records),
            tuple(dict.fromkeys(line for record in records for line in record.warnings)),
        )


def _require_all_parts(
    whole: _Sum | None, records: Sequence[TrialRecord], of: Callable[[TrialRecord], object]
) -> _Sum | None:
    """Return the sum only if every scored execution has its part: usage of the others may be unknown."""
    return None if any(of(one) is None for one in records if one.status.is_scored) else whole


def _choose_unscored_status(records: Sequence[TrialRecord], rule: PassRule | None = None) -> Status:
    """Choose the status of a case without a score; trials are skipped in a dry run, and may be missing for the rule."""
    if rule is not None and all(record.status.is_scored for record in records):
        return Status.NOT_RUN
    return Status.SKIPPED if all(record.status is Status.SKIPPED for record in records) else Status.ERROR


ListingTargets = frozenset[int]
"""Targets (by `id`) that have listed tool calls in this run."""

_ERROR_TEMPLATE: Final = (
    "{unknown}: no response of this run has {missing}. An agent that calls no tool returns an empty list"
)


def find_listing_targets(plan: RunPlan, trials: FinishedTrials) -> ListingTargets:
    """Find the targets that listed calls in at least one response to a case of the plan, reused ones included."""
    cases = (case for suite in plan.reused.values() for case in suite.cases)
    names = {case.target for case in cases if case.details.tools_called}
    reused = (one for one in plan.list_targets() if (None if one is plan.target else one.identity.name) in names)
    return frozenset(map(id, reused)) | {
        id(plan.get_target(case)) for case in plan.list_runnable_cases() if trials.has_listed_calls(case.key)
    }


def mark_unlisted_calls(records: Iterable[TrialRecord], *, lists: bool) -> list[TrialRecord]:
    """Return the trials, with those marked as evaluation errors whose tool calls are unknown.

    If `lists`, the target has listed tool calls in this run, and no trial is marked.
    """
    return [record if lists else _mark_record(record) for record in records]


def _mark_record(trial_record: TrialRecord) -> TrialRecord:
    call_names = trial_record.missing_calls
    if call_names is None or not trial_record.status.is_scored:
        return trial_record
    return replace(
        trial_record,
        status=Status.ERROR,
        score=0.0,
        error=_ERROR_TEMPLATE.format(unknown=CALLS_UNKNOWN, missing=call_names),
        error_kind=ErrorKind.EVALUATION_ERROR,
        error_cause=ErrorCause.CALLS_UNKNOWN,
        failed_turn=None,
        vetoed=False,
        assertions_run=0,
        assertions_skipped=0,
        evaluator_results=(),
    )
