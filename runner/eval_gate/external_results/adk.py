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

from eval_gate.external_results.json_streaming import JsonReader, iter_records, open_document, read_document
from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.records import Fields
from eval_gate.external_results.result_rows import (
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_usage,
    parse_seconds,
    to_text,
)
from eval_gate.external_results.statuses import end_execution, parse_tables
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import Status, TurnResult
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
_EVENTS: Final = "session_details.events"
_NO_ERROR: Final = "the agent ended without a response, and ADK keeps no error of it: see its log"


def read_adk(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every run of every eval case."""
    with open_document(file, shown_as) as document:
        yield from _iter_rows(document, shown_as, facts)


def read_nested_adk(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield the same of a document that is a JSON text within JSON."""
    text = read_document(file, shown_as)
    if not isinstance(text, str):
        raise RowPlace(shown_as).build_error("is not a mapping")
    yield from _iter_rows(JsonReader(io.StringIO(text), shown_as), shown_as, facts)


def _iter_rows(document: JsonReader, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    facts.tool, other_values = "Google ADK", dict[str, JsonValue](eval_set_result_id=None)
    for place, case in iter_records(document, shown_as, (_CASES,), other_values):
        yield _build_row(case, to_text(other_values["eval_set_result_id"]), place)


def _build_row(case: Fields, identifier: str, place: RowPlace) -> ResultRow:
    suite = case.text("eval_set_id")[:300] or "adk"
    # the identifier is that of the app, of the eval set and the time
    app = identifier.rpartition("_")[0].removesuffix(f"_{suite}")
    turns = case.members("eval_metric_result_per_invocation")
    is_scripted = any(turn.get("expected_invocation") is not None for turn in turns)  # else a model plays the user
    actual, expected = ([turn.at(f"{kind}_invocation") for turn in turns] for kind in ("actual", "expected"))
    prompts = [_join_parts(one.at("user_content")) for one in actual] or [
        _join_parts(event.at("content")) for event in case.members(_EVENTS) if event.get("author") == "user"
    ]
    responses = [text for one in actual if (text := _join_parts(one.at("final_response")))]
    expected_texts = [text for one in expected if (text := _join_parts(one.at("final_response")))]
    expected_calls = [f"tool call {call.name} {to_text(call.params)}" for one in expected for call in _iter_calls(one)]
    expectation: list[JsonValue] = [[*expected_texts], [*expected_calls]]
    scores = tuple(map(_build_score, case.members("overall_eval_metric_results")))
    seconds = [took for one in actual if (took := one.number("duration")) is not None]
    return ResultRow(
        suite=suite,
        id=case.name("eval_id", place=place),
        place=place,
        **_build_ending(case, actual, scores)._asdict(),
        scores=scores,
        prompt=to_text("\n".join(prompts)),
        expectation=(*expected_texts, *expected_calls),
        response=to_text("\n".join(responses)) if responses else None,
        duration_ms=parse_seconds(sum(seconds)) if seconds else None,
        usage=build_usage(*(_sum_tokens(actual, f"{kind}_token_count") for kind in ("prompt", "candidates"))),
        calls=tuple(call for one in actual for call in _iter_calls(one)),
        turns=tuple(map(_build_turn, turns)) if len(turns) > 1 else (),
        content=compute_fingerprint([[*prompts], *expectation]) if is_scripted else None,
        digests=digest_prompt("user_content", [*prompts], expectation) if is_scripted else None,
        repeat=app,
        longer_suites=(f"{app[:300]}: {suite}",) if app else (),
        named_by="eval_id",
    )


def _build_turn(turn: Fields) -> TurnResult:
    """Build the turn of an invocation, which passes if all of its metrics with a verdict do."""
    actual, scores = turn.at("actual_invocation"), [*map(_build_score, turn.members("eval_metric_results"))]
    failed = [one for one in scores if one.passed is False]
    is_decided = any(one.passed is not None for one in scores)
    return TurnResult(
        message=_join_parts(actual.at("user_content")),
        response=_join_parts(actual.at("final_response")) or None,
        calls=len([*_iter_calls(actual)]),
        status=Status.FAILED if failed else Status.PASSED if is_decided else None,
        error="; ".join(f"{one.name}: {one.reason}" for one in failed) or None,
        duration_ms=actual.seconds("duration") or 0.0,
    )


def _build_ending(case: Fields, actual: Sequence[Fields], scores: tuple[RowScore, ...]) -> ExecutionEnding:
    own, error = STATUSES[0].build_ending(case.get("final_eval_status")), _find_agent_error(case, actual)
    if error is None and own.status is Status.FAILED and not actual and not scores:
        error = _NO_ERROR
    return end_execution(scores, error, tools=own, scorer="metric")


def _find_agent_error(case: Fields, actual: Sequence[Fields]) -> str | None:
    responded = {one.text("invocation_id") for one in actual if _join_parts(one.at("final_response"))}
    # where the agent responded all the same, ADK's verdict counts
    for event in case.members(_EVENTS):
        texts = [event.text(name) for name in ("error_code", "error_message")]
        if any(texts) and event.text("invocation_id") not in responded:
            return ": ".join(filter(None, texts))
    return None


def _build_score(metric: Fields) -> RowScore:
    """Build a metric's score: what its status means depends on whether there is a score."""
    value, threshold = metric.number("score"), metric.number("criterion.threshold", "threshold")
    value_text = "no score" if value is None else f"{value:g}"
    rubrics = [why for one in metric.members("details.rubric_scores") if (why := one.text("rationale"))]
    reason = "; ".join([value_text if threshold is None else f"{value_text}, threshold {threshold:g}", *rubrics])
    name = metric.text("metric_name")[:200] or "metric"
    score = RowScore(name, value, reason=reason, threshold=threshold, is_minimum=True)
    return STATUSES[1 if value is not None else 2].apply_verdict(score, metric.get("eval_status"))


def _join_parts(content: Fields) -> str:
    return "".join(part.text("text") for part in content.members("parts") if part.get("thought") is not True)


def _iter_calls(invocation: Fields) -> Iterator[ToolCall]:
    """Yield the tool calls of an invocation, which older versions keep in a list of their own."""
    data = invocation.at("intermediate_data")
    parts = [part for event in data.members("invocation_events") for part in event.members("content.parts")]
    calls, responses = (
        [one for part in parts if isinstance((one := part.at(f"function_{kind}")).value, dict)]
        for kind in ("call", "response")
    )
    results = {
        key: one.get("response")
        for one in (*responses, *data.members("tool_responses"))
        if isinstance(key := one.get("id"), str)
    }
    for call in (*calls, *data.members("tool_uses")):
        key = call.get("id")
        yield call.call("name", "args", results.get(key) if isinstance(key, str) else None)


def _sum_tokens(actual: Sequence[Fields], kind: str) -> float | None:
    events = (event for one in actual for event in one.members("intermediate_data.invocation_events"))
    counts = [tokens for event in events if (tokens := event.number(f"usage_metadata.{kind}")) is not None]
    return sum(counts) if counts else None
