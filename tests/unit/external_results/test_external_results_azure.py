"""What azure-ai-evaluation 1.18 wrote of a target and of recorded responses, with evaluators that are code."""

import json
from pathlib import Path

import pytest

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import ExitCode
from eval_gate.model.execution import ErrorKind
from tests.support.tool_results import ERROR, FAILED, FILES, PASSED, changed, load, refused, statuses

TARGET = "azure-target.json"
"""`evaluate()` with a target: its response is an output."""
DATA = "azure-data.json"
"""`evaluate()` with responses in the data: they are an input."""


def change_row(tmp_path: Path, number: int = 0, **new) -> Path:
    """The file with one row alone, in which these outputs are others; None is what pandas writes as NaN."""

    def change(document) -> None:
        row = document["rows"][number]
        document["rows"] = [row | {f"outputs.{key.replace('__', '.')}": value for key, value in new.items()}]

    return changed(tmp_path, TARGET, change)


@pytest.mark.parametrize("file", [TARGET, DATA])
def test_read_azure__rows__have_verdicts_and_errors_of_their_own_kind(file) -> None:
    brought = load(file)
    assert brought.format is ResultsFormat.AZURE
    rows = {key.case_id: row for key, [row] in brought.cases.items()}
    assert {name: (row.status, row.error_kind if row.status is ERROR else None) for name, row in rows.items()} == {
        "refund": (PASSED, None),
        "hours": (FAILED, None),
        "thanks": (ERROR, ErrorKind.EVALUATION_ERROR),
        "silence": (ERROR, ErrorKind.AGENT_ERROR),
    }
    assert rows["hours"].error == "f1: 0, threshold 0.6"
    assert rows["thanks"].error == "polite: gave no result: see the log of the run"
    assert rows["silence"].error == "the target returned no response"
    assert (rows["refund"].prompt, rows["refund"].response) == ("Refund order 4711", "Order 4711 is refunded.")
    assert rows["refund"].expectation == ("Order 4711 is refunded.",)
    assert [(one.name, one.value, one.passed) for one in rows["refund"].scores] == [
        ("f1", 1.0, True),
        ("polite", 1.0, None),
        ("length", 23.0, None),
    ]


def test_read_azure__an_evaluator_without_threshold__decides_by_a_rule() -> None:
    assert statuses(load(TARGET, scores=("length>=20",)))["evaluation", "refund"] == [PASSED]
    assert statuses(load(TARGET, scores=("length>=30",)))["evaluation", "refund"] == [FAILED]


def test_read_azure__only_numbers__need_a_rule(tmp_path) -> None:
    file = tmp_path / "r.json"
    file.write_text('{"rows": [{"inputs.query": "q", "outputs.length.length": 3}], "metrics": {}}')
    assert "length" in refused(file).message
    assert statuses(load(file, scores=("length<=5",))) == {("evaluation", "q"): [PASSED]}


@pytest.mark.parametrize(
    ("outputs", "status", "scores"),
    [
        ({"f1__f1_score_result": "FAIL", "f1__f1_score_passed": None}, FAILED, None),
        ({"f1__f1_score_passed": False}, FAILED, None),  # beside a result of pass
        ({"violence__violence_result": "pass", "violence__violence": "Very low"}, PASSED, None),
        ({"violence__violence_result": "fail", "violence__violence_score": 6}, FAILED, ("violence", 6.0, False)),
        ({"old__f1_result": "fail", "old__f1_score": 0.1, "old__f1_threshold": 0.5}, FAILED, ("old.f1", 0.1, False)),
        ({"grader__passed": False, "grader__score": 0.2}, FAILED, ("grader", 0.2, False)),
        ({"exact__exact": False}, FAILED, ("exact", 0.0, False)),
        (
            {"tools__tools": None, "tools__tools_result": "not_applicable", "tools__tools_status": "skipped"},
            PASSED,
            None,
        ),
        ({"tools__tools": None, "tools__tools_result": None, "tools__tools_status": "error"}, ERROR, None),
        ({"tools__tools": None, "tools__tools_result": None}, ERROR, None),
        ({"f1__f1_score_total_tokens": 12}, PASSED, None),
    ],
)
def test_read_azure__results_of_every_kind__are_verdicts(tmp_path, outputs, status, scores) -> None:
    [row] = load(change_row(tmp_path, **outputs)).rows
    assert row.status is status
    if status is ERROR:
        assert row.error_kind is ErrorKind.EVALUATION_ERROR
    if scores:
        assert scores in [(one.name, one.value, one.passed) for one in row.scores]
    assert "tokens" not in " ".join(one.name for one in row.scores)


@pytest.mark.parametrize(
    ("error", "kind"),
    [("ConnectionError: connection refused", ErrorKind.AGENT_UNREACHABLE), ("ValueError: no", ErrorKind.AGENT_ERROR)],
)
def test_read_azure__a_target_that_returns_its_error__is_an_agent_error_by_its_words(tmp_path, error, kind) -> None:
    [row] = load(change_row(tmp_path, 3, error=error)).rows
    assert (row.status, row.error_kind, row.error) == (ERROR, kind, error)


def test_read_azure__an_empty_response_that_an_evaluator_fails__is_a_wrong_response(tmp_path) -> None:
    [row] = load(change_row(tmp_path, 1, response="")).rows
    assert (row.status, row.response) == (FAILED, "")


def test_read_azure__messages__are_the_response_and_its_tool_calls(tmp_path) -> None:
    call = {"type": "tool_call", "tool_call_id": "1", "name": "lookup", "arguments": {"order": "4711"}}
    messages = [
        {"role": "assistant", "content": [call]},
        {"role": "tool", "content": [{"type": "tool_result", "tool_result": {"state": "paid"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Refunded."}]},
    ]
    [row] = load(change_row(tmp_path, response=messages)).rows
    assert row.response == "Refunded."
    assert [(one.name, one.params) for one in row.calls] == [("lookup", {"order": "4711"})]


def test_read_azure__rows_without_an_id__are_named_by_the_query_and_what_is_expected(tmp_path) -> None:
    def change(document) -> None:
        for row in document["rows"]:
            del row["inputs.id"]
        again = dict(document["rows"][0], **{"inputs.line_number": 9, "outputs.response": "No."})
        document["rows"].append(dict(again, **{"inputs.ground_truth": "Another"}))

    cases = load(changed(tmp_path, TARGET, change)).cases
    assert [(key.case_id, len(rows)) for key, rows in cases.items()] == [
        ("Refund order 4711 → Order 4711 is refunded.", 1),
        ("Refund order 4711 → Another", 1),
        ("When are you open?", 1),
        ("Thanks", 1),
        ("Silence", 1),
    ]


def test_read_azure__two_rows_ask_and_expect_the_same__are_no_executions_of_one_case(tmp_path) -> None:
    file = changed(tmp_path, TARGET, lambda document: document["rows"].append(document["rows"][0]))
    assert refused(file).code == "duplicate-results"


def test_read_azure__a_large_file__is_known_by_its_first_keys(tmp_path) -> None:
    row = json.loads((FILES / TARGET).read_text())["rows"][0]
    rows = [row | {"inputs.id": f"c{at}"} for at in range(300)]
    file = tmp_path / "large.json"
    file.write_text(json.dumps({"rows": rows, "metrics": {}, "studio_url": None}, indent=4))
    assert len(load(file).cases) == 300
    file.write_text(file.read_text()[:-3000])
    assert (refused(file).code, refused(file).exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"rows": [], "metrics": {}}', "has no cases"),
        ('{"rows": [3], "metrics": {}}', "rows[0]: is not a mapping"),
        ('{"rows": [{"inputs.id": true}], "metrics": {}}', "has no inputs.id"),
        ('{"rows": [{"inputs.query": ""}], "metrics": {}}', "has no inputs.query"),
        ('{"rows": {}, "metrics": {}}', "is not JSON: [ expected"),
    ],
)
def test_read_azure__what_no_version_writes__is_refused_with_its_place(tmp_path, text, said) -> None:
    file = tmp_path / "r.json"
    file.write_text(text)
    error = refused(file)
    assert error.code == "invalid-results"
    assert said in str(error.problems[0])


def test_read_azure__rows_that_nothing_evaluated__are_no_pass(tmp_path) -> None:
    file = tmp_path / "r.json"
    file.write_text('{"rows": [{"inputs.query": "q", "outputs.response": "a"}], "metrics": {}}')
    [row] = load(file).rows
    assert (row.status, row.error_kind, row.error) == (
        ERROR,
        ErrorKind.EVALUATION_ERROR,
        "no evaluator gave a score",
    )
