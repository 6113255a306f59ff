"""What Braintrust 0.48 logs of an experiment, without the context of each span, and what `Eval()` returns."""

import csv
import json
from pathlib import Path

import pytest

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import ExitCode
from eval_gate.model.execution import ErrorKind
from tests.support.tool_results import ERROR, FAILED, FILES, PASSED, changed, load, refused, statuses

SPANS = "braintrust-spans.json"
RESULTS = "braintrust-results.json"
RULES = ("exact>=1", "policy>=0.3")
EXPECTED = {
    "Refund order 4711": [PASSED, PASSED],
    "When are you open?": [FAILED, FAILED],
    "Please crash": [ERROR, ERROR],
    "Can I reach you?": [ERROR, ERROR],
    "Thanks": [ERROR, ERROR],
    "Is this flaky?": [PASSED, FAILED],
}


def write(tmp_path: Path, document: object, name: str = "r.json") -> Path:
    file = tmp_path / name
    file.write_text(json.dumps(document))
    return file


def result(**new) -> dict[str, object]:
    return {"input": "q", "output": "a", "expected": "a", "scores": {"exact": 1}, "error": None} | new


@pytest.mark.parametrize("file", [SPANS, RESULTS])
def test_read_braintrust__spans_and_results__are_the_same_executions(file) -> None:
    brought = load(file, scores=RULES)
    assert brought.format is ResultsFormat.BRAINTRUST
    assert statuses(brought) == {("experiment", name): found for name, found in EXPECTED.items()}
    errors = {key.case_id: (rows[0].error_kind, rows[0].error) for key, rows in brought.cases.items()}
    assert errors["Please crash"] == (ErrorKind.AGENT_ERROR, "ValueError: the agent has no plan for this")
    assert errors["Can I reach you?"] == (
        ErrorKind.AGENT_UNREACHABLE,
        "ConnectionError: connection refused: api.example",
    )
    assert errors["Thanks"] == (ErrorKind.EVALUATION_ERROR, "policy: RuntimeError: the judge answered 500")
    row = brought.cases["experiment", "Refund order 4711"][0]
    assert (row.response, row.expectation) == ("Order 4711 is refunded.", ("Order 4711 is refunded.",))
    assert row.tags == ("t",)


def test_read_braintrust__spans__have_the_time_of_the_root() -> None:
    row = load(SPANS, scores=RULES).cases["experiment", "Refund order 4711"][0]
    assert row.duration_ms == pytest.approx(26.7, abs=0.1)


def test_read_braintrust__scores_without_a_rule__are_an_error_that_names_the_scorer() -> None:
    assert refused(RESULTS).code == "missing-score-rule"
    assert '"exact"' in refused(RESULTS).message


@pytest.mark.parametrize("form", ["lines", "summary and results", "events", "table"])
def test_read_braintrust__other_forms_of_the_same__are_known_by_their_content(tmp_path, form) -> None:
    spans, results = (json.loads((FILES / name).read_text()) for name in (SPANS, RESULTS))
    file = tmp_path / "out.json"
    if form == "lines":
        file.write_text("\n".join(map(json.dumps, spans)))
    elif form == "summary and results":
        file.write_text(json.dumps({"summary": {"projectName": "support"}, "results": results}))
    elif form == "events":
        file.write_text(json.dumps({"events": spans, "cursor": None}))
    else:
        names = list(dict.fromkeys(name for span in spans for name in span))
        with file.open("w") as stream:
            table = csv.writer(stream)
            table.writerow(names)
            for span in spans:
                values = [span.get(name) for name in names]
                table.writerow([json.dumps(one) if isinstance(one, dict | list) else one for one in values])
    brought = load(file, scores=RULES)
    assert brought.format is ResultsFormat.BRAINTRUST
    assert statuses(brought) == {("experiment", name): found for name, found in EXPECTED.items()}


def test_read_braintrust__spans_of_tools_and_models__are_calls_and_tokens(tmp_path) -> None:
    root = {"id": "1", "span_id": "a", "root_span_id": "t", "span_parents": None, "input": "q", "output": "a"}
    spans = [
        {"span_parents": ["a"], "root_span_id": "t", "span_attributes": {"type": "tool", "name": "lookup"}}
        | {"input": {"order": "4711"}, "output": "paid"},
        {"span_parents": ["a"], "root_span_id": "t", "span_attributes": {"type": "llm"}}
        | {"metrics": {"prompt_tokens": 12, "completion_tokens": 5, "estimated_cost": 0.25}},
        {"span_parents": ["a"], "root_span_id": "t", "span_attributes": {"type": "score"}, "scores": {"exact": 1}},
        root,  # the order of an export is not that of time
    ]
    [row] = load(write(tmp_path, spans), scores=("exact>=1",)).rows
    assert [(one.name, one.params, one.result) for one in row.calls] == [("lookup", {"order": "4711"}, "paid")]
    assert row.usage is not None
    assert (row.usage.input_tokens, row.usage.output_tokens, row.cost_usd) == (12, 5, 0.25)
    assert row.status is PASSED
    error = refused(write(tmp_path, spans[:-1]), scores=("exact>=1",))
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)
    assert "without its root span" in str(error.problems[0])


@pytest.mark.parametrize(
    ("new", "status", "kind"),
    [
        ({"scores": {"exact": 1, "skipped": None}}, PASSED, None),
        ({"scores": {"exact": True}}, PASSED, None),
        ({"scores": {"exact": None}}, ERROR, ErrorKind.EVALUATION_ERROR),
        ({"scores": {}}, ERROR, ErrorKind.EVALUATION_ERROR),
        ({"scores": None}, ERROR, ErrorKind.EVALUATION_ERROR),
        ({"metadata": {"scorer_errors": {"exact": "ValueError: x"}}}, ERROR, ErrorKind.EVALUATION_ERROR),
        ({"error": {}, "scores": {"exact": 0}}, ERROR, ErrorKind.AGENT_ERROR),  # as JavaScript writes an Error
        ({"error": "fetch failed: ECONNREFUSED"}, ERROR, ErrorKind.AGENT_UNREACHABLE),
        ({"error": 'Traceback (most recent call last):\n  File "a.py", line 429, in f\nValueError: no'}, ERROR,
         ErrorKind.AGENT_ERROR),
    ],
)  # fmt: skip
def test_read_braintrust__what_is_no_score__is_told_apart(tmp_path, new, status, kind) -> None:
    [row] = load(write(tmp_path, [result(**new)]), scores=("exact>=1",)).rows
    assert (row.status, row.error_kind if kind else None) == (status, kind)


def test_read_braintrust__two_cases_with_one_input__are_told_apart_by_what_is_expected(tmp_path) -> None:
    rows = [result(), result(expected="b", scores={"exact": 0})] * 2
    cases = load(write(tmp_path, rows), scores=("exact>=1",)).cases
    assert [(key.case_id, len(rows)) for key, rows in cases.items()] == [("q → a", 2), ("q → b", 2)]
    assert "`trial_count`" in str(refused(write(tmp_path, rows[:3]), scores=("exact>=1",)).hint)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([result(input=None)], "has no input"),
        ([result(), 3], "[1]: is not a mapping"),
        ({"summary": {}, "results": [], "input": 1, "scores": 1}, "has no cases"),
    ],
)
def test_read_braintrust__what_no_version_writes__is_refused_with_its_place(tmp_path, document, said) -> None:
    error = refused(write(tmp_path, document), scores=("exact>=1",))
    assert error.code == "invalid-results"
    assert said in str(error.problems[0])


def test_read_braintrust__a_file_that_was_cut_off__is_no_result(tmp_path) -> None:
    file = tmp_path / "r.json"
    file.write_text((FILES / SPANS).read_text()[:-500])
    assert (refused(file).code, refused(file).exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)


def test_read_braintrust__changed_results__keep_their_names(tmp_path) -> None:
    def change(document) -> None:
        for one in document:
            one["metadata"] = None

    assert set(load(changed(tmp_path, RESULTS, change), pass_score=0.7).cases) == set(load(SPANS, pass_score=0.7).cases)
