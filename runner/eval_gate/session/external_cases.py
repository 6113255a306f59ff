"""Convert rows of external results to executions and case results, and redact them.

`keep_responses` and `redact` apply after a row has its status: neither changes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, cast

from eval_gate.config.score_rule import ScoreRule
from eval_gate.config.settings import ResponseRetention, RunConfig
from eval_gate.engine.case_result import join_trials
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.retention import add_turn_results, build_details, describe_keys
from eval_gate.external_results.result_rows import ResultRow, build_evaluator_results
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey, build_pass_rule
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.execution import NO_DETAILS, CaseDetails, Status, TurnResult
from eval_gate.model.limits import STORED_CHECK, STORED_CHECKS, STORED_PROMPT
from eval_gate.model.result import CaseFingerprints, CaseResult, CaseText, RerunStopReason
from eval_gate.results.detail_truncation import drop_response
from eval_gate.results.masking import TextChange, TextMasking, map_details, map_value
from eval_gate.struct import replace
from eval_gate.text.digest import DIGEST_DIGITS, compute_digest
from eval_gate.text.javascript.regex import PatternError, PatternMatcher, PatternWorkerError
from eval_gate.text.mask import MASK

MAX_ERROR: Final = 2_000
_NO_FINGERPRINTS: Final = CaseFingerprints()
_SCORED: Final = frozenset({Status.PASSED, Status.FAILED})


def build_score_rules(config: RunConfig) -> ScoreRules:
    """Build the rules for scores that the tool itself does not mark as passed or failed."""
    least = config.policy.pass_score
    return ScoreRules(config.results.scores, least if least < 1.0 else None)


def build_case_result(
    rows: Sequence[ResultRow],
    more: Sequence[ResultRow],
    end: RerunStopReason | None,
    config: RunConfig,
    *,
    max_reruns: int,
) -> CaseResult:
    """Build the result of a case from its rows.

    `rows` are its executions, `more` its re-runs, and `config` has the rules for scores and trials. Of the re-runs in
    the file itself, at most `max_reruns` count, as many as the gate would make.
    """
    firsts = every = rows
    if len(rows) + len(more) > 1:
        firsts = [row for row in rows if not row.rerun] or list(rows[:1])
        file_reruns = [row for row in rows if row.rerun and row is not firsts[0]]
        every = [*firsts, *file_reruns[:max_reruns], *more]
    first, content = every[0], every[0].content or ""
    unrun = CaseResult(
        id=first.id,
        description=first.description,
        tags=first.tags,
        graded=any(row.is_graded for row in every),
        location=first.location,
        fingerprint=first.content or None,
        passed=False,
        status=Status.NOT_RUN,
        target=first.target,
        text=_build_case_texts(first),
        fingerprints=_build_fingerprints(first, content, _digest_pass_rules(every, config.results.scores)),
        pass_rule=build_pass_rule(config.limits.trials, config.limits.passes),
    )
    executions = [build_execution(row, number) for number, row in enumerate(every)]
    return join_trials(unrun, executions, first=len(firsts), end=end)


def _build_fingerprints(row: ResultRow, content: str, grader: str | None) -> CaseFingerprints:
    if row.content is None:
        return _NO_FINGERPRINTS if grader is None else CaseFingerprints(grader=grader)
    parts = CaseFingerprints(prompt=compute_digest(row.prompt), expectation=content[:DIGEST_DIGITS], grader=grader)
    digests = row.digests
    return replace(parts, expectation=digests.expectation, fields=digests.fields) if digests else parts


def _digest_pass_rules(rows: Sequence[ResultRow], rules: Sequence[ScoreRule]) -> str | None:
    """Compute the digest of the limits from which this case passes: score rules, and thresholds of its tool."""
    scores = {score for row in rows for score in row.scores}
    names = {score.name for score in scores}
    applied = [str(rule) for rule in rules if rule.name in names]
    if all(row.status in _SCORED for row in rows):  # a tool names no thresholds for a case without a score
        ruled = {rule.name for rule in rules}
        thresholds = {(one.name, one.threshold) for one in scores if one.name not in ruled}
        thresholds |= {("", row.threshold) for row in rows}
        applied += [f"{name} {threshold:g}" for name, threshold in sorted(thresholds, key=str) if threshold is not None]
    whole: list[JsonValue] = [*applied]
    return compute_digest(whole) if whole else None


def _build_case_texts(row: ResultRow) -> CaseText | None:
    if not row.prompt and not row.expectation:
        return None
    expectation = _truncate_expectation(row.expectation)
    cut = len(row.prompt) > STORED_PROMPT or expectation != row.expectation
    return CaseText(prompt=row.prompt[:STORED_PROMPT], expectation=expectation, truncated=cut)


@lru_cache(1_000)
def _truncate_expectation(expectation: tuple[str, ...]) -> tuple[str, ...]:
    """One for all cases that expect the same."""
    return tuple([line[:STORED_CHECK] for line in expectation[:STORED_CHECKS]])


def build_execution(row: ResultRow, number: int) -> TrialRecord:
    """One row as the execution of this number."""
    status = row.status or Status.ERROR
    passed = status is Status.PASSED
    record = TrialRecord(
        eval_file=row.suite,
        case_id=row.id,
        trial=number,
        fingerprint=row.content or "",
        status=status,
        attempts=1,
        score=row.score if row.is_graded and row.score is not None else float(passed),
        duration_ms=row.duration_ms or 0.0,
        error=None if passed else _describe_failure(row)[:MAX_ERROR] or None,
        error_kind=row.error_kind if status is Status.ERROR else None,
        failed_turn=_find_failed_turn(row),
        details=_build_details(row),
        evaluator_results=build_evaluator_results(row.scores),
        assertions_run=len(row.scores),
        usage=row.usage,
        cost_usd=row.cost_usd,
    )
    return replace(record, warnings=describe_keys(record))


def _describe_failure(row: ResultRow) -> str:
    """Describe the scores that failed, and then the message of the tool; an error by its message alone."""
    failed = [one for one in row.scores if one.passed is False]
    reasons = ((one.name, one.reason or ("" if one.value is None else f"{one.value:g}")) for one in failed)
    missed = "; ".join(": ".join(filter(None, words)) for words in reasons)
    message = row.error or ""
    if row.status is Status.FAILED and missed and (message in missed or any(one.name in message for one in failed)):
        return missed
    parts = (missed, message) if row.status is Status.FAILED else (message or missed,)
    return "; ".join(filter(None, parts)) or (row.status or Status.ERROR).value


def _find_failed_turn(row: ResultRow) -> int | None:
    """Find the first turn that the tool says failed, of an execution that failed."""
    numbers = (number for number, turn in enumerate(row.turns, start=1) if turn.status is Status.FAILED)
    return next(numbers, None) if row.status is Status.FAILED else None


def _build_details(row: ResultRow) -> CaseDetails:
    """Build the details of a row in the form that eval cases have; a missing response stays None."""
    response = row.turns[-1].response if row.turns else row.response
    if not row.calls and not row.turns and not row.trace and response is None:
        return NO_DETAILS
    details = build_details(Response(text=response or "", tool_calls=row.calls, trace_id=row.trace))
    if row.turns:
        details = add_turn_results(details, [_complete_turn(turn) for turn in row.turns])
    return details if response is not None else replace(details, response=None)


def _complete_turn(turn: TurnResult) -> TurnResult:
    return replace(turn, response_length=len(turn.response or ""), error=turn.error and turn.error[:MAX_ERROR])


async def redact_rows(
    config: RunConfig, cases: Mapping[CaseKey, Sequence[ResultRow]]
) -> Mapping[CaseKey, Sequence[ResultRow]]:
    """Mask the texts of the rows, and drop those that may not be stored.

    If the `redact` patterns fail or take too long, every text is masked as a whole.
    """
    stored = cases
    if config.limits.keep_responses is ResponseRetention.NONE:
        stored = {key: [_drop_texts(row) for row in rows] for key, rows in cases.items()}
    if not config.redact:
        return stored
    masked, matcher = TextMasking(), PatternMatcher()
    for rows in stored.values():
        for row in rows:
            _map_texts(row, masked.collect_text)
    try:
        masked.set_masked(await matcher.replace_matches(config.redact, masked.texts, MASK))
    except (PatternError, PatternWorkerError):
        masked.set_masked(None)  # a text that could not be searched may contain anything
    finally:
        await matcher.aclose()
    return {key: [_map_texts(row, masked.mask_text) for row in rows] for key, rows in stored.items()}


def _drop_texts(row: ResultRow) -> ResultRow:
    """Drop all texts of the response. A failure keeps only the names of its scores: reasons may quote anything."""
    names = "; ".join(one.name for one in row.scores if one.passed is False)
    return row._replace(
        response=None,
        error=None if row.status is Status.PASSED else names or (row.status or Status.ERROR).value,
        scores=tuple(one._replace(reason=None) for one in row.scores),
        turns=drop_response(CaseDetails(turns=row.turns)).turns if row.turns else (),
        calls=tuple(ToolCall(name=call.name, success=call.success, duration_ms=call.duration_ms) for call in row.calls),
    )


def _map_texts(row: ResultRow, change: TextChange) -> ResultRow:
    return row._replace(
        prompt=change(row.prompt),
        expectation=tuple(map(change, row.expectation)),
        response=row.response and change(row.response),
        trace=row.trace and change(row.trace),
        error=row.error and change(row.error),
        scores=tuple(one._replace(reason=one.reason and change(one.reason)) for one in row.scores),
        calls=tuple(_map_call_texts(call, change) for call in row.calls),
        turns=map_details(CaseDetails(turns=row.turns), change).turns if row.turns else (),
    )


def _map_call_texts(call: ToolCall, change: TextChange) -> ToolCall:
    params = cast("dict[str, JsonValue]", map_value(call.params, change))
    return replace(call, params=params, result=map_value(call.result, change))
