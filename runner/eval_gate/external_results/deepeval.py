"""DeepEval test run: `.deepeval/.latest_run_full.json` or a file of its results folder (since 4.3).

A case is named by its `name`. One that pytest named holds its parameters, and these may hold the answer; one that
DeepEval named holds its number, which shifts. Then the question is its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.json_streaming import read_document
from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.result_rows import (
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_incomplete_error,
    build_tool_call,
    build_usage,
    get_members,
    get_nested,
    iter_list_members,
    parse_cost,
    parse_count,
    parse_number,
    parse_seconds,
    require_mapping,
    require_name,
    shorten_name,
    to_text,
    to_text_or_none,
)
from eval_gate.external_results.scored_rows import end_execution
from eval_gate.external_results.statuses import parse_tables
from eval_gate.model.base import JsonValue
from eval_gate.text.digest import compute_fingerprint

STATUSES: Final = parse_tables("""
DeepEval 4.3.1: success of a test case
  passed: true; failed: false; no verdict: -
DeepEval 4.3.1: success of a metric with a score and without an `error`
  passed: true; failed: false; no verdict: -
""")
_GENERATED_NAME: Final = re.compile(r"test\w*\[.*\](-\d+-\d+)?|(conversational_)?test_case_\d+", re.DOTALL)


def read_deepeval(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every test case, then every conversation."""
    facts.tool = "DeepEval"
    run = require_mapping(read_document(file, shown), RowPlace(shown))
    facts.failures = parse_count(run.get("testFailed"))
    facts.executions = facts.failures + parse_count(run.get("testPassed"))
    suite, graded = to_text(run.get("testFile")) or "deepeval", Counter[str]()
    for _, case, place in iter_list_members(run, ("testCases", "conversationalTestCases"), shown):
        graded.update(map(_classify_metric, get_members(case.get("metricsData"))))
        yield _build_row(case, suite, place)
    if not run.get("traceMetricsScores"):  # else the metrics of spans are counted among the others
        _check_metric_counts(run.get("metricsScores"), graded, shown)


def _classify_metric(metric: JsonValue) -> str:
    """As what DeepEval counts a metric."""
    success = get_nested(metric, "success")
    if get_nested(metric, "score") is None or success is None:
        return "errors"
    return "passes" if success is True else "fails"


def _check_metric_counts(counted: JsonValue, graded: Counter[str], shown: str) -> None:
    """Raise GateError where fewer metrics of a kind were found than DeepEval counted."""
    for kind in ("fails", "errors", "passes"):
        said = sum(parse_count(get_nested(one, kind)) for one in get_members(counted))
        if graded[kind] < said:
            what = f"counts {said:,} {kind} of metrics, but has {graded[kind]:,}"
            raise build_incomplete_error(RowPlace(shown, field="metricsScores"), what)


def _build_row(case: dict[str, JsonValue], suite: str, place: RowPlace) -> ResultRow:
    scores = tuple(_build_score(one) for one in get_members(case.get("metricsData")))
    turns = [to_text(get_nested(turn, "content")) for turn in get_members(case.get("turns"))]
    question = to_text(case.get("input")) or "\n".join(turns)
    ended = end_execution(scores, tools=STATUSES[0].build_ending(case.get("success")), scorer="metric")
    name, by = _choose_name(case, question, place)
    content = compute_fingerprint([question, case.get("expectedOutput"), case.get("expectedTools")])
    return ResultRow(
        suite=suite[:300],
        id=name,
        place=place,
        **ended._asdict(),
        scores=scores,
        prompt=question,
        expectation=(to_text(case["expectedOutput"]),) if case.get("expectedOutput") is not None else (),
        response=to_text_or_none(case.get("actualOutput")),
        duration_ms=parse_seconds(case.get("runDuration")),
        cost_usd=parse_cost(case.get("tokenCost")),
        usage=build_usage(case.get("inputTokenCount"), case.get("outputTokenCount")),
        calls=tuple(
            build_tool_call(*(get_nested(one, key) for key in ("name", "inputParameters", "output")))
            for one in get_members(case.get("toolsCalled"))
        ),
        tags=tuple(to_text(tag)[:100] for tag in get_members(case.get("tags"))[:50]),
        content=content,
        digests=digest_prompt("input", question, [case.get("expectedOutput"), case.get("expectedTools")]),
        repeat=content,
        longer_name=f"{name}: {asked}" if by == "name" and (asked := shorten_name(question)) else None,
        named_by=by,
    )


def _choose_name(case: dict[str, JsonValue], prompt: str, place: RowPlace) -> tuple[str, str]:
    name = require_name(case.get("name"), place, "name")
    if not _GENERATED_NAME.fullmatch(name) or not prompt:
        return name, "name"
    return shorten_name(prompt), "input"


def _build_score(one: JsonValue) -> RowScore:
    """Build a metric's score: without a score its grader failed, and if it is flaky it decides nothing."""
    error, value = get_nested(one, "error"), parse_number(get_nested(one, "score"))
    score = RowScore(
        to_text(get_nested(one, "name"))[:200] or "metric",
        value,
        reason=to_text(error or get_nested(one, "reason")) or None,
        threshold=parse_number(get_nested(one, "threshold")),
        is_minimum=True,
    )
    if get_nested(one, "flaky") is True:
        return score._replace(decides=False)
    if error or value is None:
        return score._replace(grader_failed=True)
    return STATUSES[1].apply_verdict(score, get_nested(one, "success"))
