"""Our own lines and tables: what is read, what is refused, and with which words."""

import pytest

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import GateError
from eval_gate.external_results.loader import load_external_results
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.model.execution import ErrorKind, Status


def load(tmp_path, text: str, name: str = "r.jsonl", pass_score: float | None = None):
    file = tmp_path / name
    file.write_text(text)
    return load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules(pass_score=pass_score))


def problem(tmp_path, text: str, name: str = "r.jsonl") -> str:
    with pytest.raises(GateError) as caught:
        load(tmp_path, text, name)
    return str(caught.value.problems[0]).partition("/r.")[2]


def test_read_jsonl__every_field__arrives(tmp_path) -> None:
    line = (
        '{"suite": "s", "id": "a", "status": "failed", "score": 0.4, "input": "q", "expected": "yes", "output": "no",'
        ' "error": "wrong", "duration_ms": 12.5, "cost_usd": 0.01, "input_tokens": 3, "output_tokens": 4,'
        ' "tool_calls": [{"name": "t", "params": {"x": 1}, "output": "r", "success": true, "duration_ms": 2}],'
        ' "checks": [{"name": "c", "score": 0.4, "passed": false, "reason": "because"}],'
        ' "file": "evals/a.py", "line": 7, "tags": ["x"], "our_own_note": 1}'
    )
    [row] = load(tmp_path, line).cases["s", "a"]
    assert (row.status, row.score, row.prompt, row.response, row.error) == (Status.FAILED, 0.4, "q", "no", "wrong")
    assert (row.duration_ms, row.cost_usd, row.expectation, row.tags) == (12.5, 0.01, ("yes",), ("x",))
    assert row.calls[0].params == {"x": 1}
    assert row.calls[0].result == "r"
    assert row.scores[0].reason == "because"
    assert row.location is not None
    assert (row.location.file, row.location.line) == ("evals/a.py", 7)


def test_read_jsonl__trials__are_executions_of_one_case(tmp_path) -> None:
    lines = '{"id": "a", "status": "passed", "trial": 1}\n\n{"id": "a", "status": "failed", "trial": 2}\n'
    assert [row.status for row in load(tmp_path, lines).cases["results", "a"]] == [Status.PASSED, Status.FAILED]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": "a"}', "jsonl:1: has no status, score or checks: add one of them"),
        ('{"id": "a", "status": "ok"}', "jsonl:1: status: "),
        ('{"id": "a", "status": "passed", "duration": 3}', "jsonl:1: duration"),
        ('{"id": "a", "status": "passed", "outptu": 3}', 'jsonl:1: outptu: is not known (did you mean "output"?)'),
        ('{"id": "a", "status": "passed"}\n{"id": "b"', "jsonl:2: ends in the middle"),
        ('{"id": "a", "status": "passed"}\n[]', "jsonl:2: is not a mapping"),
        ("", "jsonl: is empty"),
    ],
)
def test_read_jsonl__what_is_wrong__is_said_with_line_and_field(tmp_path, text, said) -> None:
    assert problem(tmp_path, text).startswith(said.partition(" is not one of")[0])


def test_read_jsonl__the_same_name_twice__is_an_error_with_both_lines(tmp_path) -> None:
    said = problem(tmp_path, '{"id": "a", "status": "passed"}\n{"id": "a", "status": "failed"}\n')
    assert said.startswith('jsonl:2: "a" occurs twice, first at ')
    assert said.endswith("r.jsonl:1")


def test_read_jsonl__the_same_name_in_two_files_of_evals__are_two_cases(tmp_path) -> None:
    lines = "\n".join(f'{{"id": "a", "status": "passed", "file": "{name}.py"}}' for name in "xy")
    assert {key.suite for key in load(tmp_path, lines).cases} == {"x.py: results", "y.py: results"}


def test_read_jsonl__a_threshold__decides_where_there_is_no_status(tmp_path) -> None:
    lines = '{"id": "a", "score": 0.8, "threshold": 0.7}\n{"id": "b", "score": 0.6, "threshold": 0.7}'
    assert [row.status for row in load(tmp_path, lines).rows] == [Status.PASSED, Status.FAILED]


def test_read_jsonl__a_score_alone__needs_a_rule(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        load(tmp_path, '{"id": "a", "score": 0.8}')
    assert caught.value.code == "missing-score-rule"
    [row] = load(tmp_path, '{"id": "a", "score": 0.8}', pass_score=0.7).rows
    assert row.is_graded


@pytest.mark.parametrize(
    ("checks", "status", "kind"),
    [
        ('{"name": "a", "passed": true}, {"name": "b", "passed": true}', Status.PASSED, None),
        ('{"name": "a", "passed": true}, {"name": "b", "passed": false}', Status.FAILED, None),
        ('{"name": "a", "passed": true}, {"name": "b", "score": 0.1}', Status.PASSED, None),
        ('{"name": "a", "passed": true}, {"name": "b"}', Status.ERROR, ErrorKind.EVALUATION_ERROR),
        ('{"name": "a", "passed": false}, {"name": "b"}', Status.FAILED, None),
        ('{"name": "a", "score": null}', Status.ERROR, ErrorKind.EVALUATION_ERROR),
    ],
)
def test_read_jsonl__checks_alone__decide_by_their_verdicts(tmp_path, checks, status, kind) -> None:
    [row] = load(tmp_path, f'{{"id": "a", "checks": [{checks}]}}').rows
    assert (row.status, row.error_kind if status is Status.ERROR else None) == (status, kind)


def test_read_jsonl__scores_of_checks_alone__need_a_rule(tmp_path) -> None:
    line = '{"id": "a", "checks": [{"name": "a", "score": 0.8}, {"name": "b", "score": 0.6}]}'
    with pytest.raises(GateError) as caught:
        load(tmp_path, line)
    assert caught.value.code == "missing-score-rule"
    [row] = load(tmp_path, line, pass_score=0.7).rows
    assert (row.score, row.is_graded) == (0.6, True)


def test_read_jsonl__a_pass_with_a_check_that_gave_nothing__was_not_judged(tmp_path) -> None:
    [row] = load(tmp_path, '{"id": "a", "status": "passed", "checks": [{"name": "b", "reason": "timed out"}]}').rows
    assert (row.status, row.error_kind, row.error) == (Status.ERROR, ErrorKind.EVALUATION_ERROR, "b: timed out")


@pytest.mark.parametrize("score", [55, -0.1])
def test_read_jsonl__a_grade_of_another_scale__was_not_judged(tmp_path, score) -> None:
    [row] = load(tmp_path, f'{{"id": "a", "score": {score}}}', pass_score=0.7).rows
    assert (row.status, row.error_kind) == (Status.ERROR, ErrorKind.EVALUATION_ERROR)
    assert row.error == f"the score {float(score)} is outside of the scale (0 to 1)"


def test_read_jsonl__a_verdict_with_a_score_of_another_scale__is_no_grade(tmp_path) -> None:
    [row] = load(tmp_path, '{"id": "a", "status": "failed", "score": 55}', pass_score=0.7).rows
    assert (row.status, row.is_graded) == (Status.FAILED, False)


def test_read_jsonl__two_scores_in_one_object__are_an_error(tmp_path) -> None:
    checks = '"checks": [{"name": "x", "score": 1}, {"name": "y", "score": 0}]'
    assert load(tmp_path, f'{{"id": "a", "status": "passed", "score": 1, {checks}}}').rows
    said = problem(tmp_path, '{"id": "a", "score": 0, "score": 1}')
    assert "has `score` twice in one object" in said


def test_read_csv__the_same_columns__are_the_same_cases(tmp_path) -> None:
    table = (
        'id,status,score,tags,tool_calls,duration_ms\n"a, 1",passed,,x;y,"[{""name"": ""t""}]",12\nb,failed,0.2,,,\n'
    )
    brought = load(tmp_path, table, "r.csv")
    rows = list(brought.rows)
    assert [(row.id, row.status, row.tags, row.duration_ms) for row in rows] == [
        ("a, 1", Status.PASSED, ("x", "y"), 12.0),
        ("b", Status.FAILED, (), None),
    ]
    assert rows[0].calls[0].name == "t"


def test_read_csv__a_number_that_is_none__names_line_and_column(tmp_path) -> None:
    assert problem(tmp_path, "id,status,duration_ms\na,passed,soon\n", "r.csv").startswith("csv:2: duration_ms")
