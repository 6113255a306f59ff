"""The export for AgentV: one record a line, with the specification's names and statuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.loader import load_config
from eval_gate.config.policy import Policy
from eval_gate.errors import GateError
from eval_gate.model.execution import CaseDetails, EvaluatorResult
from eval_gate.model.result import RunResult, TraceSummary
from eval_gate.model.usage import Usage
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render, write_reports
from eval_gate.results.baseline import NOT_REQUESTED
from eval_gate.struct import replace
from tests.support.graded import make_evaluator, make_graded, make_graded_run
from tests.support.results import make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against

FIELDS = [
    *("timestamp", "eval_id", "dataset", "conversation_id", "score", "status", "hits", "misses", "candidate_answer"),
    *("target", "reasoning", "evaluator_provider_request", "evaluator_results", "trace_summary", "error"),
    *("duration_ms", "usage", "cost_usd", "attempts"),
]


def exported(run: RunResult) -> list[dict[str, Any]]:
    text = render("agentv", run, ReportContext())
    assert text == "" or text.endswith("\n")
    assert text.isascii()
    return [json.loads(line) for line in text.splitlines()]


def whole() -> RunResult:
    """A case with everything, and one of every status."""
    request = {"systemPrompt": "grade it", "userPrompt": "the answer: …"}
    style = make_evaluator("style", 0.5, hits=("it greets",), misses=("too long",), reasoning="wordy")
    facts = make_evaluator("facts", 1.0, weight=2.0, hits=("names the limit",), evaluator_provider_request=request)
    both = make_evaluator(
        "both", 0.75, type="composite", hits=(), misses=("[style] too long",), evaluator_results=(style, facts)
    )
    everything = make_graded(
        "refund",
        0.75,
        evaluator_results=(make_evaluator("policy", 1.0, reasoning="as written"), facts, style, both),
        conversation_id="refunds",
        target="stage",
        trace_summary=TraceSummary(
            event_count=3, tool_names=("lookup", "refund"), tool_calls_by_name={"lookup": 2, "refund": 1}, error_count=0
        ),
        usage=Usage(input_tokens=10, output_tokens=20),
        cost_usd=0.0125,
        attempts=2,
    )
    cases = [
        everything,
        make_graded("full"),
        make_graded("broken", status="error"),
        make_graded("skipped", status="skipped", error="its judge has no target"),
        make_graded("unrun", status="not_run"),
        make_graded("late", 0.0, error="timeout: no response within 60000 ms"),
    ]
    return make_graded_run(cases)


@pytest.mark.contract("agentv.results.record", "agentv.results.more", "agentv.results.trace-keys")
def test_agentv__everything__looks_like_this(golden) -> None:
    records = exported(whole())
    golden("agentv/whole.json", json.dumps(records, indent=2, ensure_ascii=False) + "\n")
    assert all(list(record) == FIELDS for record in records)
    assert list(records[0]["trace_summary"]) == ["eventCount", "toolNames", "toolCallsByName", "errorCount"]


@pytest.mark.contract("agentv.persist-evaluator-weight-in-results.weight-included-in-evaluator-results")
def test_agentv__weight_included_in_evaluator_results() -> None:
    case = make_graded("a", 0.5, evaluator_results=(make_evaluator("facts", 0.5, weight=2.0), make_evaluator("style")))
    assert [result["weight"] for result in exported(make_graded_run([case]))[0]["evaluator_results"]] == [2, 1]


@pytest.mark.contract("agentv.results.status", "agentv.score-aggregation.multiple-evaluators-aggregation")
def test_agentv__multiple_evaluators_aggregation__fails_below_one() -> None:
    records = exported(make_graded_run([make_graded("a", evaluators={"A": 1.0, "B": 0.0}), make_graded("b")]))
    assert [(record["score"], record["status"]) for record in records] == [(0.5, "fail"), (1.0, "pass")]


@pytest.mark.contract("agentv.results.status", "agentv.results.status-and-threshold-apart")
def test_agentv__accepted_by_the_gate__is_still_a_fail() -> None:
    judged = judge_against(make_graded_run({"a": 0.9}), NOT_REQUESTED, Policy(pass_score=0.8))
    assert judged.verdict is not None
    assert judged.verdict.outcome.value == "passed"
    assert exported(judged)[0]["status"] == "fail"


@pytest.mark.contract("agentv.results.error", "agentv.results.status")
@pytest.mark.parametrize(
    ("case", "error"),
    [
        (replace(make_graded("a", status="error"), score=0.9), "agent error: HTTP 500"),
        (make_graded("a", status="error", error=None), "no reason given"),
        (make_graded("a", status="skipped", error="needs a judge"), "skipped: needs a judge"),
        (make_graded("a", status="skipped"), "skipped: no reason given"),
        (make_graded("a", status="not_run"), "not run: the run ended first"),
    ],
    ids=["error", "error-without-words", "skipped", "skipped-without-words", "not-run"],
)
def test_agentv__not_judged__is_an_error_with_its_reason(case, error) -> None:
    record = exported(make_graded_run([case]))[0]
    assert (record["status"], record["score"], record["candidate_answer"]) == ("error", 0.0, "")
    assert (record["error"], record["misses"]) == (error, [])


def test_agentv__run_that_was_stopped__says_why_cases_were_not_run() -> None:
    run = make_graded_run([make_graded("a", status="not_run")], stop_reason="no connection to the target")
    assert exported(run)[0]["error"] == "not run: no connection to the target"


def test_agentv__failure_without_an_evaluator__says_what_is_missing() -> None:
    record = exported(make_graded_run([make_graded("a", 0.0, error="timeout: no response")]))[0]
    assert (record["status"], record["misses"], record["error"]) == ("fail", ["timeout: no response"], None)


@pytest.mark.contract("agentv.llm-judge-evaluator-json-contract.parse-json-evaluator-response")
def test_agentv__judge_that_missed_nothing_or_gave_no_verdict__has_empty_lists() -> None:
    judge = make_evaluator("judge", 0.0, hits=(), misses=())
    said = "judge: none of 3 replies of the judge held a valid JSON verdict"
    record = exported(make_graded_run([make_graded("a", 0.0, error=said, evaluator_results=(judge,))]))[0]
    assert (record["status"], record["hits"], record["misses"]) == ("fail", [], [])


@pytest.mark.contract("agentv.results.reasoning")
def test_agentv__several_evaluators__are_joined_in_their_order() -> None:
    results = (
        make_evaluator("b", 0.5, hits=("one",), misses=("two",), reasoning="first"),
        make_evaluator("silent"),
        make_evaluator("a", 0.5, hits=("three",), misses=("four",), reasoning="second"),
    )
    record = exported(make_graded_run([make_graded("x", 0.5, evaluator_results=results)]))[0]
    assert record["reasoning"] == "b: first | a: second"
    assert (record["hits"], record["misses"]) == (["one", "it greets", "three"], ["two", "four"])


@pytest.mark.contract("agentv.results.order")
def test_agentv__all_suites__are_in_file_order() -> None:
    run = make_run(make_suite_result({"b": "passed", "a": "failed"}), make_suite_result({"c": "passed"}, eval_file="z"))
    assert [record["eval_id"] for record in exported(run)] == ["b", "a", "c"]
    assert {record["dataset"] for record in exported(run)} == {"get_weather"}


def test_agentv__answers_not_kept_or_cut__are_not_made_up() -> None:
    absent = make_graded("a", details=CaseDetails(response_length=9))
    cut = make_graded("b", details=CaseDetails(response="xx", response_length=9, response_truncated=True))
    records = exported(make_graded_run([absent, cut]))
    assert [record["candidate_answer"] for record in records] == [None, "xx"]
    assert [record.get("candidate_answer_truncated") for record in records] == [None, True]


def test_agentv__request_of_a_judge_with_what_json_has_no_word_for__is_null() -> None:
    judge_result = make_evaluator("j", 0.5, evaluator_provider_request={"temperature": float("nan"), "n": 1})
    record = exported(make_graded_run([make_graded("a", 0.5, evaluator_results=(judge_result,))]))[0]
    assert record["evaluator_provider_request"] == {"temperature": None, "n": 1}


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5, unique=True), st.text(max_size=20))
def test_agentv__any_text__is_one_line_and_comes_back(ids, text) -> None:
    cases = [make_result(case_id, error=text, details=CaseDetails(response=text)) for case_id in ids]
    records = exported(make_run(make_suite_result(cases, tool_name=text)))
    assert [record["eval_id"] for record in records] == ids
    assert all((record["candidate_answer"], record["dataset"]) == (text, text) for record in records)


def test_export__asked_for__is_written_whole_where_it_says(tmp_path: Path) -> None:
    file = tmp_path / "out" / "cases.jsonl"
    config = load_config({"exports": [f"agentv={file}"], "reports": ["junit"]}, {}, None)
    written = write_reports(config.output_requests, whole(), ReportContext(), tmp_path)
    assert written == (tmp_path / "junit.xml", file)
    assert [json.loads(line)["eval_id"] for line in file.read_text().splitlines()][:2] == ["refund", "full"]
    assert sorted(path.name for path in file.parent.iterdir()) == ["cases.jsonl"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agentv", '--export[0]: "agentv" has no file: write agentv=FILE'),
        ("agentv=", '--export[0]: "agentv=" has no file: write agentv=FILE'),
        ("agent=x", '--export[0]: "agent=x" is not known (did you mean "agentv"?)'),
        ("junit=x.xml", '--export[0]: "junit" is a report, not an export'),
    ],
)
def test_export__without_a_file_or_unknown__is_a_usage_error(text, message) -> None:
    with pytest.raises(GateError) as refused:
        load_config({"exports": [text]}, {}, None)
    assert str(refused.value.problems[0]).startswith(message)


def test_report__agentv__is_not_a_report_for_people() -> None:
    with pytest.raises(GateError) as refused:
        load_config({"reports": ["agentv"]}, {}, None)
    assert str(refused.value.problems[0]).startswith('--report[0]: "agentv" is an export, not a report')


def test_agentv__conversation__turns_have_its_names_and_misses_are_those_of_evaluators() -> None:
    style = make_evaluator("style", 0.5)
    parts = (
        EvaluatorResult(name="turn 1", type="turn", score=0.5, evaluator_results=(style,)),
        EvaluatorResult(name="conversation", type="conversation", score=1.0),
        EvaluatorResult(name="turn 9", type="llm_judge", score=1.0, hits=("fine",)),
    )
    (record,) = exported(make_graded_run([make_graded("a", 0.5, evaluator_results=parts, conversation_id="c-1")]))
    assert [one["name"] for one in record["evaluator_results"]] == ["turn-1", "conversation", "turn 9"]
    assert record["misses"] == list(style.misses)
    assert record["hits"] == [*style.hits, "fine"]
    assert record["conversation_id"] == "c-1"
