"""What langsmith's `evaluate(upload_results=False)` returned, as its rows and as tables that pandas wrote."""

import json
from pathlib import Path

import pytest

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import ExitCode
from eval_gate.model.execution import ErrorKind
from tests.support.tool_results import ERROR, FAILED, FILES, PASSED, changed, load, refused, statuses

ROWS = "langsmith-rows.json"
"""One run of each example; the tables have two."""
TABLES = ("langsmith-table.csv", "langsmith-table.json", "langsmith-table.jsonl")
ONCE = {
    "Refund order 4711": PASSED,
    "When are you open?": FAILED,
    "Please crash": ERROR,
    "Can I reach you?": ERROR,
    "Thanks": ERROR,
    "Is this flaky?": PASSED,
}


def change_row(tmp_path: Path, **new) -> Path:
    """A table with its first row alone, in which these columns are others."""

    def change(document) -> None:
        document[:] = [document[0] | {key.replace("__", "."): value for key, value in new.items()}]

    return changed(tmp_path, "langsmith-table.json", change)


def test_read_langsmith__rows__have_verdicts_and_errors_of_their_own_kind() -> None:
    brought = load(ROWS)
    assert brought.format is ResultsFormat.LANGSMITH
    assert statuses(brought) == {("experiment", name): [status] for name, status in ONCE.items()}
    errors = {key.case_id: (row.error_kind, row.error) for key, [row] in brought.cases.items()}
    assert errors["Please crash"] == (ErrorKind.AGENT_ERROR, "ValueError: the agent has no plan for this")
    assert errors["Can I reach you?"] == (
        ErrorKind.AGENT_UNREACHABLE,
        "ConnectionError: connection refused: api.example",
    )
    assert errors["Thanks"] == (ErrorKind.EVALUATION_ERROR, "policy: RuntimeError('the judge answered 500')")
    [row] = brought.cases["experiment", "Refund order 4711"]
    assert (row.response, row.expectation) == ("Order 4711 is refunded.", ("Order 4711 is refunded.",))
    assert [(one.name, one.value, one.passed, one.reason) for one in row.scores] == [
        ("correct", 1.0, True, None),
        ("policy", 0.8, None, "because"),
    ]
    assert row.duration_ms == pytest.approx(0.259)


@pytest.mark.parametrize("file", TABLES)
def test_read_langsmith__tables__have_both_repetitions_of_each_example(file) -> None:
    brought = load(file)
    assert brought.format is ResultsFormat.LANGSMITH
    twice = {("experiment", name): [status, status] for name, status in ONCE.items()}
    assert statuses(brought) == twice | {("experiment", "Is this flaky?"): [PASSED, FAILED]}
    assert brought.cases["experiment", "Thanks"][0].error == "policy: gave no score: see the log of the run"
    assert brought.cases["experiment", "Refund order 4711"][0].duration_ms == pytest.approx(0.259)


def test_read_langsmith__a_number__decides_by_a_rule_alone() -> None:
    assert statuses(load(ROWS, scores=("policy>=0.9",)))["experiment", "Refund order 4711"] == [FAILED]
    assert statuses(load(ROWS, scores=("policy>=0.7",)))["experiment", "Refund order 4711"] == [PASSED]


@pytest.mark.parametrize(
    ("new", "status", "kind"),
    [
        ({"feedback__correct": False}, FAILED, None),
        ({"feedback__correct": None}, ERROR, ErrorKind.EVALUATION_ERROR),
        ({"feedback__correct": None, "feedback__exact": False}, FAILED, None),
        ({"feedback__tone": "friendly"}, PASSED, None),
        ({"error": "RateLimitError('429')"}, ERROR, ErrorKind.AGENT_UNREACHABLE),
        ({"error": "KeyError('x')"}, ERROR, ErrorKind.AGENT_ERROR),
    ],
)
def test_read_langsmith__feedback_of_every_kind__is_told_apart(tmp_path, new, status, kind) -> None:
    [row] = load(change_row(tmp_path, **new)).rows
    assert (row.status, row.error_kind if kind else None) == (status, kind)


def test_read_langsmith__only_numbers__need_a_rule(tmp_path) -> None:
    def change(document) -> None:
        document[:] = [{k: v for k, v in document[0].items() if k != "feedback.correct"}]

    file = changed(tmp_path, "langsmith-table.json", change)
    assert "policy" in refused(file).message
    assert [row.status for row in load(file, scores=("policy>=0.7",)).rows] == [PASSED]


@pytest.mark.parametrize("feedback", [{}, {"feedback.tone": "friendly"}])
def test_read_langsmith__no_evaluator__is_no_pass(tmp_path, feedback) -> None:
    file = tmp_path / "r.json"
    file.write_text(json.dumps([{"inputs.q": "q", "execution_time": 1, "example_id": "e", "id": "r"} | feedback]))
    [row] = load(file).rows
    assert (row.status, row.error_kind) == (ERROR, ErrorKind.EVALUATION_ERROR)


def test_read_langsmith__two_examples_with_one_input__are_told_apart(tmp_path) -> None:
    def change(document) -> None:
        row = document[0]
        document[:] = [row, row | {"example_id": "other", "reference.answer": "No."}]

    cases = load(changed(tmp_path, "langsmith-table.json", change)).cases
    assert [key.case_id for key in cases] == [
        "Refund order 4711 → Order 4711 is refunded.",
        "Refund order 4711 → No.",
    ]


def test_read_langsmith__several_inputs__are_all_in_the_name(tmp_path) -> None:
    [key] = load(change_row(tmp_path, inputs__lang="en")).cases
    assert key.case_id == '{"question":"Refund order 4711","lang":"en"}'


@pytest.mark.parametrize(
    ("text", "code", "exit_code"),
    [
        ('[{"example_id": "e", "execution_time": 1}]', "invalid-results", ExitCode.USAGE),
        ('[{"example_id": "e", "execution_time": 1}, 3]', "invalid-results", ExitCode.USAGE),
        ('[{"run": 3, "example": null, "evaluation_results": []}]', "invalid-results", ExitCode.USAGE),
        ('[{"example_id": "e", "execution_time": 1, "inputs.q": "a', "results-incomplete", ExitCode.INCOMPLETE),
        ("example_id,execution_time,inputs.q\ne,1,q,more\n", "invalid-results", ExitCode.USAGE),
        ("example_id,execution_time,inputs.q,inputs.q\ne,1,q,q\n", "invalid-results", ExitCode.USAGE),
    ],
)
def test_read_langsmith__what_no_version_writes__is_refused(tmp_path, text, code, exit_code) -> None:
    file = tmp_path / "r.json"
    file.write_text(text)
    error = refused(file)
    assert (error.code, error.exit_code) == (code, exit_code)


def test_read_langsmith__times_of_other_shapes__are_left_out(tmp_path) -> None:
    def change(document) -> None:
        document[:] = document[:1]
        document[0]["run"] |= {"start_time": "yesterday", "end_time": 3}

    [row] = load(changed(tmp_path, ROWS, change)).rows
    assert (row.status, row.duration_ms) == (PASSED, None)

    def drop_zone(document) -> None:
        document[:] = document[:1]
        document[0]["run"]["start_time"] = document[0]["run"]["start_time"].partition("+")[0]

    [row] = load(changed(tmp_path, ROWS, drop_zone)).rows
    assert row.duration_ms == pytest.approx(0.259)
    text = (FILES / "langsmith-table.csv").read_text().replace("0.000259", "1e999")
    (tmp_path / "r.csv").write_text(text)
    assert load(tmp_path / "r.csv").cases["experiment", "Refund order 4711"][0].duration_ms is None
