"""DeepEval test run: `.deepeval/.latest_run_full.json` or a file of its results folder (since 4.3).

A case is named by its `name`, or by its prompt where that name is generated: pytest's holds parameters, which may hold
the response, and DeepEval's a number, which shifts. The prompt of a conversation is its scenario, else what the user
says: a simulated user says something else each time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.chat_turns import build_turns, is_of_user
from eval_gate.external_results.json_streaming import read_record
from eval_gate.external_results.prompt_digests import digest_prompt
from eval_gate.external_results.records import Fields, iter_listed_records
from eval_gate.external_results.result_rows import FileFacts, ResultRow, RowPlace, RowScore, shorten_name, to_text
from eval_gate.external_results.statuses import end_execution, parse_tables
from eval_gate.text.digest import compute_fingerprint

STATUSES: Final = parse_tables("""
DeepEval 4.3.1: success of a test case
  passed: true; failed: false; no verdict: -
DeepEval 4.3.1: success of a metric with a score and without an `error`
  passed: true; failed: false; no verdict: -
""")
_GENERATED_NAME: Final = re.compile(r"test\w*\[.*\](-\d+-\d+)?|(conversational_)?test_case_\d+", re.DOTALL)


def read_deepeval(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every test case, then every conversation."""
    facts.tool, run = "DeepEval", read_record(file, shown_as)
    facts.failures = run.count("testFailed")
    facts.executions = facts.failures + run.count("testPassed")
    suite, graded = run.text("testFile") or "deepeval", Counter[str]()
    for _, case, place in iter_listed_records(run, ("testCases", "conversationalTestCases"), shown_as):
        graded.update(map(_classify_metric, case.members("metricsData")))
        yield _build_row(case, suite, place)
    if not run.get("traceMetricsScores"):  # else the metrics of spans are counted among the others
        counted = run.members("metricsScores")
        for kind in ("fails", "errors", "passes"):
            declared_number = sum(one.count(kind) for one in counted)
            RowPlace(shown_as, field="metricsScores").check_count(declared_number, graded[kind], f"{kind} of metrics")


def _classify_metric(metric: Fields) -> str:
    """Classify a metric as DeepEval counts it."""
    success = metric.get("success")
    if metric.get("score") is None or success is None:
        return "errors"
    return "passes" if success is True else "fails"


def _build_row(case: Fields, suite: str, place: RowPlace) -> ResultRow:
    scores, turns = tuple(map(_build_score, case.members("metricsData"))), case.members("turns")
    user_messages = "\n".join(turn.text("content") for turn in turns if is_of_user(turn))
    prompt = case.text("input", "scenario") or user_messages
    expected, tools = case.get("expectedOutcome" if turns else "expectedOutput"), case.get("expectedTools")
    ending = end_execution(scores, tools=STATUSES[0].build_ending(case.get("success")), scorer="metric")
    name, named_by = case.name("name", place=place), "name"
    if prompt and _GENERATED_NAME.fullmatch(name):
        name, named_by = shorten_name(prompt), "input"
    content = compute_fingerprint([prompt, expected, tools])
    tool_calls = [one for part in (case, *turns) for one in part.members("toolsCalled")]
    return ResultRow(
        suite=suite[:300],
        id=name,
        place=place,
        **ending._asdict(),
        scores=scores,
        prompt=prompt,
        expectation=() if expected is None else (to_text(expected),),
        response=case.text_or_none("actualOutput"),
        duration_ms=case.seconds("runDuration"),
        cost_usd=case.cost("tokenCost"),
        usage=case.usage("inputTokenCount", "outputTokenCount"),
        calls=tuple(one.call("name", "inputParameters", one.get("output")) for one in tool_calls),
        turns=build_turns(turns, "toolsCalled"),
        tags=case.tags("tags"),
        content=content,
        digests=digest_prompt("input", prompt, [expected, tools]),
        repeat=content,
        longer_name=f"{name}: {prompt_name}" if named_by == "name" and (prompt_name := shorten_name(prompt)) else None,
        named_by=named_by,
    )


def _build_score(metric: Fields) -> RowScore:
    """Build a metric's score: without a score its grader failed, and if it is flaky it decides nothing."""
    score = RowScore(
        metric.text("name")[:200] or "metric",
        metric.number("score"),
        reason=metric.text("error", "reason") or None,
        threshold=metric.number("threshold"),
        is_minimum=True,
    )
    if metric.get("flaky") is True:
        return score._replace(decides=False)
    if metric.get("error") or score.value is None:
        return score._replace(grader_failed=True)
    return STATUSES[1].apply_verdict(score, metric.get("success"))
