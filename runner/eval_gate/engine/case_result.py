"""Joins the trials of a case into its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from eval_gate.engine.journal import TrialRecord
from eval_gate.model.case import Aggregation, EvalCase, Location
from eval_gate.model.execution import CaseDetails, Status, Trial
from eval_gate.model.result import AskedWords, CaseResult, RerunEnd, Yardstick
from eval_gate.model.usage import Usage, total
from eval_gate.results.detail_truncation import drop_judge_prompts, reduce_details
from eval_gate.struct import replace

_Sum = TypeVar("_Sum", float, Usage)


class CaseSetup(NamedTuple):
    """Prompt and expectation of a case as text, and its setup fingerprint."""

    texts: AskedWords | None = None
    setup_fingerprint: Yardstick | None = None


NO_SETUP: Final = CaseSetup()


class CaseOutline(NamedTuple):
    """Known facts about a case of another tool, in place of an `EvalCase`."""

    id: str
    description: str
    tags: tuple[str, ...]
    aggregation: Aggregation
    location: Location | None
    fingerprint: str | None
    difficulty: str | None = None
    conversation_id: str | None = None
    dependent: bool = False
    warnings: tuple[str, ...] = ()


def build_unrun_result(case: EvalCase, target: str | None = None) -> CaseResult:
    """The result of a case without a finished trial: skipped for its reason, or not run."""
    return replace(
        _build_empty_result(case),
        status=Status.SKIPPED if case.skip_reason else Status.NOT_RUN,
        error=case.skip_reason,
        target=target,
        warnings=case.warnings,
    )


def _build_empty_result(case: EvalCase | CaseOutline) -> CaseResult:
    """Build the result of a case that has not been run: what it takes over from the case, whatever comes of it."""
    return CaseResult(
        id=case.id,
        description=case.description,
        difficulty=case.difficulty,
        tags=case.tags,
        conversation_id=case.conversation_id,
        graded=case.aggregation is Aggregation.WEIGHTED_MEAN,
        dependent=case.dependent,
        location=case.location,
        fingerprint=case.fingerprint,
        passed=False,
        status=Status.NOT_RUN,
    )


def build_trial(record: TrialRecord, *, decisive: bool = False) -> Trial:
    """One execution in short, as results and the gate know it."""
    return Trial(
        status=record.status,
        score=record.score,
        duration_ms=record.duration_ms,
        error=record.error,
        blame=record.blame,
        timed_out=record.timed_out,
        vetoed=record.vetoed,
        decisive=decisive,
    )


def build_detailed_trial(record: TrialRecord) -> Trial:
    """The same of an execution that did not decide its case, with what it answered and what was made of that."""
    return replace(
        build_trial(record),
        details=reduce_details(record.details),
        evaluator_results=drop_judge_prompts(record.evaluator_results),
    )


def _build_trials(records: Sequence[TrialRecord], shown: TrialRecord, first: int | None) -> tuple[Trial, ...]:
    """Every execution; of one that is alone, and of the one that is shown, the case itself says the rest."""
    told = [
        build_trial(record, decisive=True) if record is shown else build_detailed_trial(record) for record in records
    ]
    failed = next((record for record in records if record.status is Status.FAILED), None)
    if failed is None or first is None or len(records) == 1:
        return tuple(told)
    again = [record.trial >= first and _is_repeat(record, failed) for record in records]
    return tuple(replace(one, repeats=True) if same else one for one, same in zip(told, again, strict=True))


def build_base_agent_trials(records: Sequence[TrialRecord], here: CaseResult) -> tuple[Trial, ...]:
    """Executions of the base branch's agent, in short, of a case that the change's agent was asked as well.

    A failure that repeats the first one, and what was answered here too, each byte for byte, is known as that.
    """
    failed = next((record for record in records if record.status is Status.FAILED), None)
    answered = [here.details, *(one.details for one in here.trials if one.details is not None)]
    return tuple(
        replace(
            build_trial(one),
            repeats=failed is not None and _is_repeat(one, failed),
            as_here=any(_is_same_response(one.details, other) for other in answered),
        )
        for one in records
    )


def _is_repeat(record: TrialRecord, failed: TrialRecord) -> bool:
    """Whether it failed with the very answer and calls of that one. What is not kept is not known to be the same."""
    return record is not failed and record.status is Status.FAILED and _is_same_response(record.details, failed.details)


def _is_same_response(said: CaseDetails, before: CaseDetails) -> bool:
    return (
        said.response is not None
        and not said.replayed
        and (said.response, said.response_length, said.tools_called)
        == (before.response, before.response_length, before.tools_called)
        and [(call.arguments, call.result) for call in said.tool_calls]
        == [(call.arguments, call.result) for call in before.tool_calls]
    )


def join_trials(
    case: EvalCase | CaseOutline,
    records: Sequence[TrialRecord],
    target: str | None = None,
    *,
    first: int | None = None,
    end: RerunEnd | None = None,
    measure: CaseSetup = NO_SETUP,
) -> CaseResult:
    """Join the trials of a case, of which there is at least one.

    `target` is named where the run's own was not the one that was asked. Trials from number `first` on are re-runs,
    and `end` is why there were no more of them.

    A case passes when more than half of its judged trials do; it is flaky when both passes and failures were seen.
    Trials that could not be judged count for neither; a case with no judged trial is an error. The details are those
    of the first trial that decided: a failed one for a failed case, the first that broke for an error.
    """
    if len(records) == 1:
        (shown,) = records
        judged = records if shown.status.judged else []
        status, whole = shown.status if judged else _choose_unscored_status(records), _TrialTotals.from_one(shown)
        score, flaky = shown.score if judged else 0.0, False
    else:
        records = sorted(records, key=lambda record: record.trial)
        judged = [record for record in records if record.status.judged]
        passes = sum([record.status is Status.PASSED for record in judged])
        decided = Status.PASSED if passes * 2 > len(judged) else Status.FAILED
        status, whole = decided if judged else _choose_unscored_status(records), _TrialTotals.from_records(records)
        shown = next(record for record in records if record.status is status)
        score = sum([record.score for record in judged]) / len(judged) if judged else 0.0
        flaky = len({record.status for record in judged}) > 1
    return replace(
        _build_empty_result(case),
        passed=status is Status.PASSED,
        duration_ms=whole.duration_ms,
        assertions_run=shown.assertions_run,
        assertions_skipped=shown.assertions_skipped,
        error=shown.error,
        details=shown.details,
        status=status,
        score=score,
        flaky=flaky,
        evaluator_results=shown.evaluator_results,
        trace_summary=shown.trace_summary,
        reruns=0 if first is None else sum([record.trial >= first for record in records]),
        rerun_end=end,
        trials=_build_trials(records, shown, first),
        blame=shown.blame,
        attempts=whole.attempts,
        usage=whole.usage,
        cost_usd=whole.cost_usd,
        judge_usage=whole.judge_usage,
        judge_cost_usd=whole.judge_cost_usd,
        target=target,
        asked=measure.texts,
        yardstick=measure.setup_fingerprint,
        warnings=case.warnings + whole.warnings,
    )


def count_reruns_as_new(case: CaseResult) -> CaseResult:
    """The same of a case that was run more often because no earlier run knows it: these are first executions."""
    return replace(
        case,
        reruns=0,
        new_runs=case.reruns,
        rerun_end=None,
    )


def add_preparatory_cost(case: CaseResult, records: Sequence[TrialRecord]) -> CaseResult:
    """The same with the cost of executions that were made only because a later case of its suite was run again."""
    if not records:
        return case
    whole = _TrialTotals.from_records(records)
    costs = None if case.cost_usd is None or whole.cost_usd is None else case.cost_usd + whole.cost_usd
    return replace(
        case,
        preparatory_runs=len(records),
        duration_ms=case.duration_ms + whole.duration_ms,
        attempts=case.attempts + whole.attempts,
        usage=None if case.usage is None or whole.usage is None else Usage.total((case.usage, whole.usage)),
        cost_usd=costs,
        judge_usage=Usage.total((case.judge_usage, whole.judge_usage)),
        judge_cost_usd=total((case.judge_cost_usd, whole.judge_cost_usd)),
    )


class _TrialTotals(NamedTuple):
    """What the executions of a case took together."""

    duration_ms: float
    attempts: int
    usage: Usage | None
    cost_usd: float | None
    judge_usage: Usage | None
    judge_cost_usd: float | None
    warnings: tuple[str, ...]

    @classmethod
    def from_one(cls, one: TrialRecord) -> _TrialTotals:
        """The same without a sum: nearly every case has one execution."""
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
    def from_records(cls, records: Sequence[TrialRecord]) -> _TrialTotals:
        return cls(
            sum(record.duration_ms for record in records),
            sum(record.attempts for record in records),
            _require_all_parts(Usage.total(record.usage for record in records), records, lambda one: one.usage),
            _require_all_parts(total(record.cost_usd for record in records), records, lambda one: one.cost_usd),
            Usage.total(record.judge_usage for record in records),
            total(record.judge_cost_usd for record in records),
            tuple(dict.fromkeys(line for record in records for line in record.warnings)),
        )


def _require_all_parts(
    whole: _Sum | None, records: Sequence[TrialRecord], of: Callable[[TrialRecord], object]
) -> _Sum | None:
    """The sum, unless a part is missing: of an execution that broke nobody may know what it took."""
    return None if any(of(one) is None for one in records if one.status.judged) else whole


def _choose_unscored_status(records: Sequence[TrialRecord]) -> Status:
    """A case that was only ever skipped (a dry run) is skipped; else something broke."""
    return Status.SKIPPED if all(record.status is Status.SKIPPED for record in records) else Status.ERROR
