"""Google ADK's results of an eval set: `*.evalset_result.json`, which `adk eval` and AgentEvaluator write.

ADK calls a run without a response failed. It counts as an agent error here, by the error that the session holds. A
metric that could not run leaves ADK's own verdict as it is; here it is an evaluation error, unless another one failed.
Versions before 2 write a file for each case, those before 1.22 as a JSON text within JSON.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from eval_gate.external_results.json_streaming import JsonReader, iter_listed_mappings, open_document, read_document
from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.result_rows import (
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_tool_call,
    build_unreadable_error,
    build_usage,
    get_members,
    get_nested,
    parse_number,
    parse_seconds,
    require_name,
    to_text,
)
from eval_gate.external_results.scored_rows import end_execution
from eval_gate.external_results.statuses import parse_tables
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import Status
from eval_gate.text.digest import compute_fingerprint

STATUSES: Final = parse_tables("""
Google ADK 2.13: final_eval_status
  passed: 1; failed: 2; no verdict: 3, 4
Google ADK 2.13: eval_status of a metric with a score
  passed: 1; failed: 2; no verdict: 3, 4
Google ADK 2.13: eval_status of a metric without a score
  passed: 1; failed: 2; no verdict: 4; evaluation error: 3
""")
_CASES: Final = "eval_case_results"
_NO_ERROR: Final = "the agent ended without a response, and ADK keeps no error of it: see its log"


def read_adk(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every run of every eval case."""
    with open_document(file, shown_as) as document:
        yield from _iter_rows(document, shown_as, facts)


def read_nested_adk(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield the same of a document that is a JSON text within JSON."""
    text = read_document(file, shown_as)
    if not isinstance(text, str):
        raise build_unreadable_error(RowPlace(shown_as), "is not a mapping")
    yield from _iter_rows(JsonReader(io.StringIO(text), shown_as), shown_as, facts)


def _iter_rows(document: JsonReader, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    facts.tool, others = "Google ADK", dict[str, JsonValue](eval_set_result_id=None)
    for place, case in iter_listed_mappings(document, shown_as, (_CASES,), others):
        yield _build_row(case, to_text(others["eval_set_result_id"]), place)


def _build_row(case: dict[str, JsonValue], identifier: str, place: RowPlace) -> ResultRow:
    suite = to_text(case.get("eval_set_id"))[:300] or "adk"
    # the identifier is that of the app, of the eval set and the time
    app = identifier.rpartition("_")[0].removesuffix(f"_{suite}")
    turns = get_members(case.get("eval_metric_result_per_invocation"))
    actual = [get_nested(turn, "actual_invocation") for turn in turns]
    expected = [get_nested(turn, "expected_invocation") for turn in turns]
    prompts = [_join_parts(get_nested(one, "user_content")) for one in actual] or _list_session_prompts(case)
    answers = [text for one in actual if (text := _join_parts(get_nested(one, "final_response")))]
    wanted = [text for one in expected if (text := _join_parts(get_nested(one, "final_response")))]
    wanted_calls = [f"tool call {call.name} {to_text(call.params)}" for one in expected for call in _iter_calls(one)]
    scores = tuple(_build_score(one) for one in get_members(case.get("overall_eval_metric_results")))
    ended = _build_ending(case, actual, scores)
    return ResultRow(
        suite=suite,
        id=require_name(case.get("eval_id"), place, "eval_id"),
        place=place,
        **ended._asdict(),
        scores=scores,
        prompt=to_text("\n".join(prompts)),
        expectation=(*wanted, *wanted_calls),
        response=to_text("\n".join(answers)) if answers else None,
        duration_ms=_sum_duration(actual),
        usage=build_usage(_sum_tokens(actual, "prompt_token_count"), _sum_tokens(actual, "candidates_token_count")),
        calls=tuple(call for one in actual for call in _iter_calls(one)),
        content=compute_fingerprint([[*prompts], [*wanted], [*wanted_calls]]) if turns else None,
        digests=digest_prompt("user_content", [*prompts], [[*wanted], [*wanted_calls]]) if turns else None,
        repeat=app,
        longer_suites=(f"{app[:300]}: {suite}",) if app else (),
        named_by="eval_id",
    )


def _build_ending(
    case: dict[str, JsonValue], actual: Sequence[JsonValue], scores: tuple[RowScore, ...]
) -> ExecutionEnding:
    own, error = STATUSES[0].build_ending(case.get("final_eval_status")), _find_agent_error(case, actual)
    if error is None and own.status is Status.FAILED and not actual and not scores:
        error = _NO_ERROR
    return end_execution(scores, error, tools=own, scorer="metric")


def _find_agent_error(case: dict[str, JsonValue], actual: Sequence[JsonValue]) -> str | None:
    """Return the error of an invocation without a response, or of a run without invocations."""
    responded = [get_nested(one, "invocation_id") for one in actual if _join_parts(get_nested(one, "final_response"))]
    # where the agent responded all the same, ADK's verdict counts
    for event in get_members(get_nested(case.get("session_details"), "events")):
        said = [to_text(get_nested(event, name)) for name in ("error_code", "error_message")]
        if any(said) and get_nested(event, "invocation_id") not in responded:
            return ": ".join(filter(None, said))
    return None


def _list_session_prompts(case: dict[str, JsonValue]) -> list[str]:
    events = get_members(get_nested(case.get("session_details"), "events"))
    return [_join_parts(get_nested(one, "content")) for one in events if get_nested(one, "author") == "user"]


def _build_score(metric: JsonValue) -> RowScore:
    """Build a metric's score: what its status means depends on whether there is a score."""
    name = to_text(get_nested(metric, "metric_name"))[:200] or "metric"
    value = parse_number(get_nested(metric, "score"))
    threshold = parse_number(get_nested(metric, "criterion", "threshold"))
    threshold = parse_number(get_nested(metric, "threshold")) if threshold is None else threshold
    reason = _describe_score(metric, value, threshold)
    score = RowScore(name, value, reason=reason, threshold=threshold, is_minimum=True)
    return STATUSES[1 if value is not None else 2].apply_verdict(score, get_nested(metric, "eval_status"))


def _describe_score(metric: JsonValue, value: float | None, threshold: float | None) -> str:
    said = "no score" if value is None else f"{value:g}"
    rated = get_members(get_nested(metric, "details", "rubric_scores"))
    rubrics = [to_text(why) for one in rated if (why := get_nested(one, "rationale"))]
    return "; ".join([said if threshold is None else f"{said}, threshold {threshold:g}", *rubrics])


def _join_parts(content: JsonValue) -> str:
    """Return the text of a message, without what the model thought."""
    parts = get_members(get_nested(content, "parts"))
    return "".join(to_text(get_nested(one, "text")) for one in parts if get_nested(one, "thought") is not True)


def _iter_calls(invocation: JsonValue) -> Iterator[ToolCall]:
    """Yield the tool calls of an invocation, which older versions keep in a list of their own."""
    data = get_nested(invocation, "intermediate_data")
    events = get_members(get_nested(data, "invocation_events"))
    parts = [part for event in events for part in get_members(get_nested(event, "content", "parts"))]
    made = [one for part in parts if isinstance(one := get_nested(part, "function_call"), dict)]
    told = [one for part in parts if isinstance(one := get_nested(part, "function_response"), dict)]
    results = {
        key: get_nested(one, "response")
        for one in (*told, *get_members(get_nested(data, "tool_responses")))
        if isinstance(key := get_nested(one, "id"), str)
    }
    for call in (*made, *get_members(get_nested(data, "tool_uses"))):
        given, key = get_nested(call, "args"), get_nested(call, "id")
        yield build_tool_call(get_nested(call, "name"), given, results.get(key) if isinstance(key, str) else None)


def _sum_duration(actual: Sequence[JsonValue]) -> float | None:
    found = [seconds for one in actual if (seconds := parse_number(get_nested(one, "duration"))) is not None]
    return parse_seconds(sum(found)) if found else None


def _sum_tokens(actual: Sequence[JsonValue], kind: str) -> float | None:
    events = (get_members(get_nested(one, "intermediate_data", "invocation_events")) for one in actual)
    counts = [parse_number(get_nested(event, "usage_metadata", kind)) for several in events for event in several]
    found = [tokens for tokens in counts if tokens is not None]
    return sum(found) if found else None
