"""Limits what is stored of one execution: response, tool calls, messages and judge prompts.

Dropped details are counted (`CaseDetails.dropped_counts`) or named (`StoredCall.truncated_parts`), so that results
show what is incomplete. The execution that decides its case keeps more than the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from eval_gate.config.settings import ResponseRetention
from eval_gate.engine.conversations import LedConversation
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.run_plan import RunPlan
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, Response, ToolCall
from eval_gate.model.execution import CaseDetails, Status, StoredCall, TurnResult
from eval_gate.model.limits import (
    STORED_CALL,
    STORED_CALLS,
    STORED_CONVERSATION,
    STORED_MESSAGES,
    STORED_MODEL,
    STORED_RESPONSE,
    STORED_TURNS,
)
from eval_gate.model.result import CaseResult
from eval_gate.results.detail_truncation import (
    drop_error_quotes,
    drop_judge_prompts,
    drop_quotes,
    drop_response,
    drop_trial_details,
    truncate_call,
    truncate_details,
    truncate_json,
    truncate_text,
    truncate_turns,
)
from eval_gate.results.masking import TextChange, TextMasking, map_details, map_results
from eval_gate.struct import replace
from eval_gate.text.escape import to_one_line, truncate_middle
from eval_gate.text.javascript.regex import PatternError, PatternMatcher, PatternWorkerError
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.key_forms import find_known_forms
from eval_gate.text.mask import MASK
from eval_gate.text.trace_addresses import clean_trace

MAX_ERROR: Final = 2_000
"""Characters of an error that are kept."""
_NOTHING_LEFT_OUT: Final[dict[str, int]] = {}
"""One object for all details that are complete; never changed."""


async def prepare_for_journal(trial_record: TrialRecord, plan: RunPlan, matcher: PatternMatcher) -> TrialRecord:
    """Return a finished trial as the journal may store it, with the response dropped or masked as the plan says.

    What only looks like a key stays, because it was scored; a warning names its place and form.
    """
    stored = _drop_response(trial_record, plan.limits.keep_responses)
    stored = await _redact_record(stored, plan.patterns, matcher) if plan.patterns else stored
    warnings = describe_keys(stored)
    return replace(stored, warnings=(*stored.warnings, *warnings)) if warnings else stored


def describe_keys(trial_record: TrialRecord) -> tuple[str, ...]:
    """Describe what looks like a key in the texts of a trial, by place and form."""
    details, results = trial_record.details, trial_record.evaluator_results
    texts = {"the response holds": details.response, "the error holds": trial_record.error}
    if details.conversation or details.turns:
        part = CaseDetails(conversation=details.conversation, turns=details.turns)
        texts["the conversation holds"] = _join_texts(partial(map_details, part))
    if details.fields:
        texts["the fields hold"] = dump_compact_json(details.fields)
    if details.tool_calls:
        texts["the tool calls hold"] = _join_texts(partial(map_details, CaseDetails(tool_calls=details.tool_calls)))
    if any(one.reasoning or one.misses or one.hits or one.evaluator_results for one in results):
        texts["the scores hold"] = _join_texts(partial(map_results, results))
    by_place = {place: sorted({key.form for key in find_known_forms(text)}) for place, text in texts.items() if text}
    return tuple(
        f"{place} what looks like a key ({', '.join(forms)}), and is stored as it is: name it as a secret or in redact"
        for place, forms in by_place.items()
        if forms
    )


def _join_texts(walk: Callable[[TextChange], object]) -> str:
    masking = TextMasking()
    walk(masking.collect_text)
    return "\n".join(masking.texts)


def _drop_response(trial_record: TrialRecord, store: ResponseRetention) -> TrialRecord:
    if store is not ResponseRetention.NONE:
        return trial_record  # whether a case simply passes is known when all of its trials are
    error, results = trial_record.error, trial_record.evaluator_results
    return replace(
        trial_record,
        details=replace(drop_response(trial_record.details), model=None),  # which is a text of the response
        evaluator_results=drop_quotes(results),
        error=error and drop_error_quotes(error, trial_record.status, trial_record.error_kind, results),
    )


async def _redact_record(trial_record: TrialRecord, patterns: Sequence[str], matcher: PatternMatcher) -> TrialRecord:
    """Mask the matches in a trial, then truncate it; a text that could not be searched may contain anything."""
    masking = TextMasking()
    _map_texts(trial_record, masking.collect_text)
    warnings = trial_record.warnings
    try:
        masking.set_masked(await matcher.replace_matches(patterns, masking.texts, MASK))
    except (PatternError, PatternWorkerError) as error:
        masking.set_masked(None)
        warnings = (f"redact: responses are not kept, because they could not be searched: {error}",)
    redacted = _map_texts(trial_record, masking.mask_text)
    return replace(redacted, details=truncate_details(redacted.details), warnings=warnings)


def _map_texts(trial_record: TrialRecord, change: TextChange) -> TrialRecord:
    return replace(
        trial_record,
        error=trial_record.error and change(trial_record.error),
        error_hint=trial_record.error_hint and change(trial_record.error_hint),
        details=map_details(trial_record.details, change),
        evaluator_results=map_results(trial_record.evaluator_results, change),
    )


def prepare_for_result(case: CaseResult, store: ResponseRetention) -> CaseResult:
    """Return the case as the run result stores it.

    If only the responses of failing cases are kept, the response and the judge prompts of a case are dropped when
    all its trials passed.
    """
    if store is not ResponseRetention.FAILING:
        return case
    if not (case.passed and all(trial.status is Status.PASSED for trial in case.trials)):
        return case
    return replace(
        case,
        details=drop_response(case.details),
        evaluator_results=drop_judge_prompts(case.evaluator_results),
        trials=drop_trial_details(case.trials),
    )


def build_details(response: Response, margin: int = 0, skipped_tokens: tuple[str, ...] = ()) -> CaseDetails:
    """Build the details of a case from the target's response, with each text truncated.

    `skipped_tokens` are the tokens of the case without a value, with which the response could not be compared. If
    patterns are applied later, each text is cut `margin` characters after its limit.
    """
    conversation = _truncate_conversation(response.conversation, margin) if response.conversation else ()
    too_many = len(response.text) - STORED_RESPONSE
    left_out = {
        "toolCalls": len(response.tool_calls) - STORED_CALLS,
        "messages": len(response.conversation) - len(conversation),
        "characters": too_many,
    }
    return CaseDetails(
        tools_called=tuple([call.name for call in response.tool_calls]),
        response_length=len(response.text),
        skipped_tokens=skipped_tokens,
        response=response.text[: STORED_RESPONSE + margin],
        response_truncated=too_many > 0,
        conversation=conversation,
        max_turns_reached=response.max_turns_reached,
        replayed=response.replayed,
        model=to_one_line(response.model, STORED_MODEL) or None if response.model else None,
        trace=clean_trace(response.trace_id),
        first_token_ms=None if response.first_token_ms is None else round(response.first_token_ms, 3),
        tool_calls=_truncate_calls(response, margin),
        dropped_counts={what: count for what, count in left_out.items() if count > 0} or _NOTHING_LEFT_OUT,
    )


def add_turns(details: CaseDetails, conversation: LedConversation, margin: int = 0) -> CaseDetails:
    """Add the turns of a conversation to its details, those that were not sent, too. `margin` as in `build_details`."""
    return replace(add_turn_results(details, [*_iter_turns(conversation)], margin), user_end=conversation.user_end)


def add_turn_results(details: CaseDetails, turns: Sequence[TurnResult], margin: int = 0) -> CaseDetails:
    """Add turns to the details of a conversation, as far as they are stored. `margin` as in `build_details`."""
    too_many = len(turns) - STORED_TURNS
    return replace(
        details,
        turns=truncate_turns(turns[:STORED_TURNS], STORED_CONVERSATION, margin),
        dropped_counts=details.dropped_counts | {"turns": too_many} if too_many > 0 else details.dropped_counts,
    )


def _iter_turns(conversation: LedConversation) -> Iterator[TurnResult]:
    failed_turn = conversation.failed_turn or 0
    failure = TurnResult(status=Status.ERROR, error=truncate_middle(str(conversation.error), MAX_ERROR))
    for number, (message, response, fields, score) in enumerate(conversation.turns, start=1):
        turn = failure if number == failed_turn else TurnResult()
        if score is not None and score.results:
            status = Status.PASSED if score.passed else Status.FAILED
            turn = TurnResult(status=status, score=score.score, error=score.error)
        yield replace(
            turn,
            message=message,
            response=response.text,
            response_length=len(response.text),
            calls=len(response.tool_calls),
            duration_ms=round(response.duration_ms, 3),
            usage=response.usage,
            cost_usd=response.cost_usd,
            fields=dict(fields),
        )
    if failed_turn > len(conversation.turns):
        yield replace(failure, message=conversation.failed_message)
    for unsent in conversation.unsent_turns:
        yield TurnResult(message=unsent.message, status=Status.NOT_RUN)


def _truncate_calls(response: Response, margin: int) -> tuple[StoredCall, ...]:
    """Return the first tool calls, truncated, with the arguments from messages: only these may be no mapping."""
    reported = [call for message in response.messages or () for call in message.tool_calls]
    have_arguments = len(reported) == len(response.tool_calls)
    return tuple(
        _build_stored_call(call, reported[at].input if have_arguments else call.params or None, STORED_CALL + margin)
        for at, call in enumerate(islice(response.tool_calls, STORED_CALLS))
    )


def _build_stored_call(call: ToolCall, arguments: JsonValue, limit: int) -> StoredCall:
    whole = StoredCall(
        name=call.name, arguments=arguments, result=call.result, success=call.success, duration_ms=call.duration_ms
    )
    return truncate_call(whole, limit)


def _truncate_conversation(messages: Sequence[Message], margin: int) -> tuple[Message, ...]:
    """Return the first messages that fit the limit, each text truncated like a response."""
    stored: list[Message] = []
    room = STORED_CONVERSATION
    for message in islice(messages, STORED_MESSAGES):
        truncated = _truncate_message(message, margin)
        room -= len(truncated.content if isinstance(truncated.content, str) else dump_compact_json(truncated.content))
        room -= sum(len(dump_compact_json(call.params)) for call in truncated.tool_calls)
        if room < 0:
            break
        stored.append(truncated)
    return tuple(stored)


def _truncate_message(message: Message, margin: int) -> Message:
    content = truncate_text(message.content, STORED_RESPONSE + margin)
    calls = tuple(_truncate_message_call(call, STORED_CALL + margin) for call in message.tool_calls[:STORED_CALLS])
    if content is message.content and calls == message.tool_calls:
        return message
    return replace(message, content=content, tool_calls=calls)


def _truncate_message_call(call: ToolCall, limit: int) -> ToolCall:
    """Return a tool call for storage in a message, without its result, which the next message contains."""
    params = truncate_json(call.params, limit)
    if isinstance(params, dict) and call.result is None:
        return call
    return replace(call, params=params if isinstance(params, dict) else {"…": params}, result=None)
