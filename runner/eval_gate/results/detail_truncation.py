"""Drops and truncates details of case results, and counts dropped details."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from http import HTTPStatus
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.execution import CaseDetails, ErrorKind, EvaluatorResult, Status, StoredCall, Trial, TurnResult
from eval_gate.model.limits import (
    OTHER_CALL,
    OTHER_CALLS,
    OTHER_RESPONSE,
    STORED_CALL,
    STORED_CONVERSATION,
    STORED_FIELD,
    STORED_FIELDS,
    STORED_GRADER_PROMPT,
    STORED_RESPONSE,
)
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.results.turn_details import PARTS_OF_CONVERSATION
from eval_gate.struct import replace
from eval_gate.text.dotted_path import WHOLE_BODY
from eval_gate.text.javascript.strings import dump_compact_json

_PROMPT_FACTS: Final = ("systemPrompt", "userPrompt")
"""Keys of a judge's result that contain its prompt."""
PROMPT_CUT: Final = "promptCut"
"""Key that lists the truncated prompts."""
RESPONSE_NOT_KEPT: Final = "the response is not kept"
_QUOTE_FREE_TYPES: Final = frozenset(
    {
        *("toolsCalled", "toolsCalledAnyOrder", "toolsAcceptable", "toolsNotCalled", "noToolErrors", "tool_trajectory"),
        *("responseNonEmpty", "responseContains", "responseContainsAny", "responseNotContains", "responseMatches"),
        *("maxLatencyMs", "maxTokens"),
    }
)
"""Evaluators whose messages quote only tool names from a response, which are always kept."""
_JUDGE_FACTS: Final = frozenset({"model", "replies", "judgeParseFailed", "command", "assertion", "expected"})
"""Keys of a judge's result about the judge itself."""
_GRADE_LISTS: Final = ("dimensions", "checks")
"""Keys with lists of grades, each with a comment of the judge."""
_ERROR_PREFIXES: Final = ("agent error: ", "timeout: ", "eval-gate failed on this case: ")
"""Possible prefixes of an error before its description."""
_TURN_PREFIX: Final = re.compile(r"turn [0-9]+: ")
_SERVER_STATUS: Final = re.compile(r"\bHTTP (?P<status>[1-5][0-9]{2})\b(?P<words> .*)?", re.DOTALL)
"""Status with the reason and place in the server's own text."""
_UNCHANGED_CLASSES: Final = frozenset({CaseClass.STILL_PASSING, CaseClass.ADDED, CaseClass.REMOVED, CaseClass.NOT_RUN})
CallPart = Literal["arguments", "result"]


def truncate_json(value: JsonValue, limit: int) -> JsonValue:
    """Return `value`, or the beginning of its JSON text if that exceeds `limit` characters."""
    if value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= limit - 2):
        return value
    text = dump_compact_json(value)
    return value if len(text) <= limit else text[:limit]


def truncate_text(value: JsonValue, limit: int) -> JsonValue:
    """Return a text, or any other JSON value as `truncate_json`, with at most `limit` characters."""
    return value[:limit] if isinstance(value, str) else truncate_json(value, limit)


def truncate_details(details: CaseDetails) -> CaseDetails:
    """Truncate details to what an execution stores, after the `redact` patterns were applied."""
    response = details.response
    return replace(
        details,
        response=response and response[:STORED_RESPONSE],
        conversation=tuple(
            replace(message, content=truncate_text(message.content, STORED_RESPONSE))
            for message in details.conversation
        ),
        tool_calls=tuple(truncate_call(call, STORED_CALL) for call in details.tool_calls),
        fields=truncate_fields(details.fields),
        turns=truncate_turns(details.turns, STORED_CONVERSATION),
    )


def truncate_turns(turns: Sequence[TurnResult], whole: int, margin: int = 0) -> tuple[TurnResult, ...]:
    """Truncate the texts of turns to `whole` characters together: only the longest, all at the same limit.

    Each text is cut `margin` characters after the limit.
    """
    limit = _find_text_limit([len(text) for turn in turns for text in (turn.message, turn.response) if text], whole)
    return tuple(
        replace(
            turn,
            message=turn.message and turn.message[: limit + margin],
            response=turn.response and turn.response[: limit + margin],
            response_truncated=turn.response is not None and turn.response_length > limit,
            fields=truncate_fields(turn.fields, margin),
        )
        for turn in turns
    )


def _find_text_limit(lengths: Sequence[int], whole: int) -> int:
    """Find the largest limit of one text with which all of them fit; at most that of a response."""
    room = whole
    for number, length in enumerate(sorted(lengths)):
        share = room // (len(lengths) - number)
        if length > share:
            return min(share, STORED_RESPONSE)
        room -= length
    return STORED_RESPONSE


def reduce_details(details: CaseDetails) -> CaseDetails:
    """Reduce the details of an execution that did not decide its case.

    The response, the turns and the tool calls are truncated further, and the conversation is dropped. What is dropped
    is counted.
    """
    response = details.response
    left_out = details.dropped_counts | {
        "toolCalls": details.dropped_counts.get("toolCalls", 0) + max(len(details.tool_calls) - OTHER_CALLS, 0),
        "messages": details.dropped_counts.get("messages", 0) + len(details.conversation),
        "characters": max(details.response_length - OTHER_RESPONSE, 0) if response is not None else 0,
    }
    return replace(
        details,
        response=response and response[:OTHER_RESPONSE],
        response_truncated=response is not None and details.response_length > OTHER_RESPONSE,
        conversation=(),
        tool_calls=tuple(truncate_call(call, OTHER_CALL) for call in details.tool_calls[:OTHER_CALLS]),
        turns=truncate_turns(details.turns, OTHER_RESPONSE),
        dropped_counts={what: count for what, count in left_out.items() if count > 0},
    )


def truncate_fields(fields: Mapping[str, JsonValue], margin: int = 0) -> dict[str, JsonValue]:
    """Truncate each value `margin` characters after its limit, and drop a whole body that is longer than a response."""
    if WHOLE_BODY in fields:
        return dict(fields) if len(dump_compact_json(fields[WHOLE_BODY])) <= STORED_RESPONSE else {}
    return {path: truncate_json(one, STORED_FIELD + margin) for path, one in islice(fields.items(), STORED_FIELDS)}


def truncate_call(call: StoredCall, limit: int) -> StoredCall:
    """Truncate arguments and result of a call, and name the parts that are."""
    values: dict[CallPart, JsonValue] = {"arguments": call.arguments, "result": call.result}
    short = {
        part: truncate_text(value, limit) if part in call.truncated_parts else truncate_json(value, limit)
        for part, value in values.items()
    }
    parts = tuple(part for part in values if part in call.truncated_parts or short[part] is not values[part])
    return replace(call, arguments=short["arguments"], result=short["result"], truncated_parts=parts)


def drop_judge_prompts(results: Iterable[EvaluatorResult]) -> tuple[EvaluatorResult, ...]:
    """Drop the prompts of LLM judges: apart from the response, they repeat what is stored elsewhere."""
    return _map_judge_facts(
        results, lambda facts: {name: value for name, value in facts.items() if name not in _PROMPT_FACTS}
    )


def truncate_judge_prompts(results: Iterable[EvaluatorResult]) -> tuple[EvaluatorResult, ...]:
    """Truncate the prompts of LLM judges, and name those that are."""
    return _map_judge_facts(results, _truncate_prompts)


def _map_judge_facts(
    results: Iterable[EvaluatorResult], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> tuple[EvaluatorResult, ...]:
    return tuple(
        result
        if result.evaluator_provider_request is None and not result.evaluator_results
        else replace(
            result,
            evaluator_provider_request=result.evaluator_provider_request and change(result.evaluator_provider_request),
            evaluator_results=_map_judge_facts(result.evaluator_results, change),
        )
        for result in results
    )


def _truncate_prompts(facts: dict[str, Any]) -> dict[str, Any]:
    long = [name for name in _PROMPT_FACTS if len(facts.get(name) or "") > STORED_GRADER_PROMPT]
    return facts | {name: facts[name][:STORED_GRADER_PROMPT] for name in long} | ({PROMPT_CUT: long} if long else {})


def drop_response(details: CaseDetails) -> CaseDetails:
    """Drop the response, the tool calls and the conversation; keep lengths, names of tools, and how turns ended."""
    turns = tuple(
        replace(turn, message=None, response=None, response_truncated=False, error=None, fields={})
        for turn in details.turns
    )
    return replace(
        details,
        response=None,
        response_truncated=False,
        conversation=(),
        tool_calls=(),
        fields={},
        turns=turns,
        dropped_counts={},
    )


def drop_trial_details(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Keep how the executions ended."""
    return tuple(one if one.details is None else replace(one, details=None, evaluator_results=()) for one in trials)


def is_unchanged(change: CaseChange) -> bool:
    """Whether nothing about this case differs from the baseline, or whether the baseline does not have it."""
    return change.change in _UNCHANGED_CLASSES and not (change.score_drop or change.behaves_differently)


class DroppedDetails(NamedTuple):
    """A run result without the details of some cases, and the keys of these cases."""

    run: RunResult
    cases: Set[CaseKey]


def drop_passing_details(run: RunResult) -> DroppedDetails:
    """Drop the details of the cases that passed and did not change."""
    changed = {one.key for one in run.comparison.changes if not is_unchanged(one)} if run.comparison else set()
    return _drop_details(run, lambda key, case: case.passed and not case.flaky and key not in changed)


def drop_all_details(run: RunResult) -> DroppedDetails:
    """Drop the details of all cases, on the baseline's side too."""
    (less, cases), comparison = _drop_details(run, lambda _key, _case: True), run.comparison
    if comparison is None:
        return DroppedDetails(less, cases)
    changes = tuple(
        one
        if (side := one.baseline_result) is None
        else replace(
            one,
            baseline_result=replace(
                side, details=drop_response(side.details), evaluator_results=drop_quotes(side.evaluator_results)
            ),
        )
        for one in comparison.changes
    )
    sides = {one.key for one, original in zip(changes, comparison.changes, strict=True) if one != original}
    comparison = replace(comparison, changes=changes)
    return DroppedDetails(replace(less, comparison=comparison), cases | sides)


def _drop_details(run: RunResult, is_chosen: Callable[[CaseKey, CaseResult], bool]) -> DroppedDetails:
    suites, dropped = list[SuiteResult](), set[CaseKey]()
    for suite in run.suites:
        cases = list(suite.cases)
        for at, case in enumerate(suite.cases):
            key = CaseKey(suite.eval_file, case.id)
            if is_chosen(key, case) and (less := _drop_case_details(case)) != case:
                cases[at] = less
                dropped.add(key)
        suites.append(replace(suite, cases=tuple(cases)))
    return DroppedDetails(replace(run, suites=tuple(suites)), dropped)


def _drop_case_details(case: CaseResult) -> CaseResult:
    """Keep what a later comparison needs: scores, times, tokens, fingerprints, names of tools and judges."""
    results = drop_quotes(case.evaluator_results)
    if case.passed and not case.graded and case.fingerprints and case.fingerprints.expectation:
        results = tuple(
            result for result in results if not _is_passed_check(result)
        )  # the fingerprint stands for the checks
    return replace(
        case,
        details=drop_response(case.details),
        evaluator_results=results,
        trials=drop_trial_details(case.trials),
        trace_summary=None,
        text=None,
    )


def _is_passed_check(result: EvaluatorResult) -> bool:
    """Whether it is a passed assertion without a judge."""
    plain = result.evaluator_provider_request is None and not result.evaluator_results
    return plain and result.score == 1 and not result.vetoed


def drop_quotes(results: Iterable[EvaluatorResult]) -> tuple[EvaluatorResult, ...]:
    """Keep scores and weights, and only texts that cannot quote the response."""
    return tuple(_drop_result_quotes(result) for result in results)


def _drop_result_quotes(result: EvaluatorResult) -> EvaluatorResult:
    facts = _drop_fact_texts(result.evaluator_provider_request)
    if result.type in _QUOTE_FREE_TYPES and not result.evaluator_results:
        return result if facts is None else replace(result, evaluator_provider_request=facts)
    return replace(
        result,
        hits=(),
        misses=(),
        reasoning=None,
        evaluator_provider_request=facts,
        evaluator_results=drop_quotes(result.evaluator_results),
    )


def _drop_fact_texts(facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Drop the texts of facts; None replaces a fact that holds text of the response."""
    if facts is None:
        return None
    kept_facts: dict[str, Any] = {name: value if name in _JUDGE_FACTS else None for name, value in facts.items()}
    for name in set(_GRADE_LISTS) & facts.keys():
        kept_facts[name] = [{key: value for key, value in grade.items() if key != "reasoning"} for grade in facts[name]]
    if "message" in facts:  # the response is quoted behind a colon or in brackets
        kept_facts["message"] = re.split(r": | \(", str(facts["message"]))[0]
    return kept_facts


def _is_quote_free(result: EvaluatorResult) -> bool:
    """Whether the message of a result that failed cannot quote the response."""
    if result.type not in PARTS_OF_CONVERSATION:
        return result.type in _QUOTE_FREE_TYPES
    return all(_is_quote_free(member) for member in result.evaluator_results if member.score < 1 or member.vetoed)


def _keep_status(match: re.Match[str]) -> str:
    """Format an HTTP status with its standard phrase, without the text that the server added."""
    with suppress(ValueError):
        usual = HTTPStatus(int(match["status"])).phrase
        if (match["words"] or "").startswith(f" {usual}"):
            return f"HTTP {match['status']} {usual}"
    return f"HTTP {match['status']}"


def drop_error_quotes(
    error: str, status: Status, error_kind: ErrorKind | None, results: Iterable[EvaluatorResult]
) -> str:
    """Return the error without any text of the response.

    `results` are those of the execution, before anything is dropped. Text of a target or an LLM judge follows a
    colon or a semicolon, whatever failed.
    """
    turn = _TURN_PREFIX.match(error)
    if turn is not None and status is not Status.FAILED:
        return turn[0] + drop_error_quotes(error[turn.end() :], status, error_kind, results)
    if status is not Status.FAILED:
        is_own = error_kind is ErrorKind.EVALUATION_ERROR or error.startswith(
            _ERROR_PREFIXES
        )  # begins with the name of a judge, or such a word
        message = ": ".join(error.split("; ", maxsplit=1)[0].split(": ")[: 2 if is_own else 1])
        return _SERVER_STATUS.sub(_keep_status, message)
    short = [result for result in results if result.score < 1 or result.vetoed]
    if all(map(_is_quote_free, short)):
        return error
    first = next(result for result in short if not _is_quote_free(result))
    return f"{first.name}: {'not as expected' if first.score == 0 else f'score {first.score:.2f}'}; {RESPONSE_NOT_KEPT}"
