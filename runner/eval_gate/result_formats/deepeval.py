"""DeepEval's test run: `.deepeval/.latest_run_full.json`, or a file of its results folder (read from 4.3).

A case is named by its `name`. One that pytest named holds its parameters, and these may hold the answer; one that
DeepEval named holds its number, which shifts. Then the question is its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import Status
from eval_gate.result_formats.rows import (
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    broken_off,
    dollars,
    ending,
    list_members,
    mapping,
    members,
    name_of,
    nested,
    number,
    seconds,
    usage,
    whole_number,
    words,
)
from eval_gate.result_formats.streaming import read_whole
from eval_gate.text.digest import digest, fingerprint

_NOT_ITS_OWN: Final = re.compile(r"test\w*\[.*\](-\d+-\d+)?|(conversational_)?test_case_\d+", re.DOTALL)
_SHOWN: Final = 200


def read_deepeval(file: Path, shown: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every test case, then every conversation."""
    facts.tool = "DeepEval"
    run = mapping(read_whole(file, shown), RowPlace(shown))
    facts.failures = whole_number(run.get("testFailed"))
    facts.executions = facts.failures + whole_number(run.get("testPassed"))
    suite, graded = words(run.get("testFile")) or "deepeval", Counter[str]()
    for _, case, place in list_members(run, ("testCases", "conversationalTestCases"), shown):
        graded.update(map(_counted_as, members(case.get("metricsData"))))
        yield _row(case, suite, place)
    if not run.get("traceMetricsScores"):  # else the metrics of spans are counted among the others
        _refuse_fewer(run.get("metricsScores"), graded, shown)


def _counted_as(metric: JsonValue) -> str:
    """As what DeepEval counts a metric."""
    success = nested(metric, "success")
    if nested(metric, "score") is None or success is None:
        return "errors"
    return "passes" if success is True else "fails"


def _refuse_fewer(counted: JsonValue, graded: Counter[str], shown: str) -> None:
    """Raise GateError where fewer metrics of a kind were found than DeepEval counted."""
    for kind in ("fails", "errors", "passes"):
        said = sum(whole_number(nested(one, kind)) for one in members(counted))
        if graded[kind] < said:
            what = f"counts {said:,} {kind} of metrics, and {graded[kind]:,} are in it"
            raise broken_off(RowPlace(shown, field="metricsScores"), what)


def _row(case: dict[str, JsonValue], suite: str, place: RowPlace) -> ResultRow:
    scores = tuple(_score(one) for one in members(case.get("metricsData")))
    question = words(case.get("input")) or "\n".join(
        words(nested(turn, "content")) for turn in members(case.get("turns"))
    )
    failed = "; ".join(f"{one.name}: {one.reason or one.value}" for one in scores if one.passed is False)
    ended = ending(Status.PASSED if case.get("success") is True else Status.FAILED, scores, failed or None)
    name, by = _name(case, question, place)
    content = fingerprint([question, case.get("expectedOutput"), case.get("expectedTools")])
    return ResultRow(
        suite=suite[:300],
        id=name,
        status=ended.status,
        place=place,
        scores=scores,
        question=question,
        expectation=(words(case["expectedOutput"]),) if case.get("expectedOutput") is not None else (),
        answer=words(case["actualOutput"]) if case.get("actualOutput") is not None else None,
        error=ended.error,
        blame=ended.blame,
        duration_ms=seconds(case.get("runDuration")),
        cost_usd=dollars(case.get("tokenCost")),
        usage=usage(case.get("inputTokenCount"), case.get("outputTokenCount")),
        calls=tuple(_call(one) for one in members(case.get("toolsCalled"))),
        tags=tuple(words(tag)[:100] for tag in members(case.get("tags"))[:50]),
        content=content,
        repeat=content,
        longer=f"{name}: {asked}" if by == "name" and (asked := _shortened(question)) else None,
        named_by=by,
    )


def _name(case: dict[str, JsonValue], question: str, place: RowPlace) -> tuple[str, str]:
    name = name_of(case.get("name"), place, "name")
    if not _NOT_ITS_OWN.fullmatch(name) or not question:
        return name, "name"
    return _shortened(question), "input"


def _shortened(question: str) -> str:
    return question if len(question) <= _SHOWN else f"{question[:_SHOWN]}… {digest(question)[:8]}"


def _score(one: JsonValue) -> RowScore:
    """A metric's score; one that has none, or no verdict on it, has not graded, also where nothing says why.

    One that is marked as flaky decides nothing.
    """
    error, score, success = nested(one, "error"), number(nested(one, "score")), nested(one, "success")
    broke, decides = bool(error) or score is None or not isinstance(success, bool), nested(one, "flaky") is not True
    return RowScore(
        words(nested(one, "name"))[:200] or "metric",
        score,
        success is True if decides and not broke else None,
        words(error or nested(one, "reason")) or None,
        broke=broke and decides,
    )


def _call(one: JsonValue) -> ToolCall:
    given = nested(one, "inputParameters")
    return ToolCall(
        name=words(nested(one, "name"))[:1_000],
        params=given if isinstance(given, dict) else {},
        result=nested(one, "output"),
    )
