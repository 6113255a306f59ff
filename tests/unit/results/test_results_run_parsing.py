"""A sound record is read at once, and everything odd step by step: the same comes of both."""

import json

import pytest

from eval_gate.errors import GateError
from eval_gate.results import run_parsing, run_reader
from eval_gate.results.run_writer import iter_full_pieces
from tests.support.results import make_result, make_run, make_suite_result


@pytest.fixture
def record() -> bytes:
    run = make_run(make_suite_result([make_result("a"), make_result("b", "failed")]), warnings=("é \\ud800?",))
    return b"".join(piece.run_result for piece in iter_full_pieces(run))


def test_read__a_sound_record__is_the_same_at_once_and_step_by_step(tmp_path, monkeypatch, record) -> None:
    (tmp_path / "run.json").write_bytes(record)
    at_once = run_reader.find_baseline(str(tmp_path / "run.json"), tmp_path).result
    monkeypatch.setattr(run_parsing, "may_hold_non_json", lambda _: True)
    assert run_reader.find_baseline(str(tmp_path / "run.json"), tmp_path).result == at_once


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"score": 1.0', b'"score": NaN', "NaN is not a JSON value"),
        (b'"score": 1.0', b'"score": 1e999', "1e999, which is out of range"),
        (b'"score": 1.0', b'"score": "x"', "score"),
        (b'"schemaVersion": 1', b'"schemaVersion": 99', "newer version"),
        (b'"warnings": [', b'"warnings": [' + b"[" * 300, "nested deeper"),
    ],
)
def test_read__an_odd_record__is_refused_in_the_words_of_a_slow_look(tmp_path, record, old, new, said) -> None:
    assert old in record
    (tmp_path / "run.json").write_bytes(record.replace(old, new, 1))
    with pytest.raises(GateError) as caught:
        run_reader.find_baseline(str(tmp_path / "run.json"), tmp_path)
    assert said in f"{caught.value} {[str(problem) for problem in caught.value.problems]}"


def test_read__a_suite_of_any_runner__is_still_read(tmp_path, record) -> None:
    (suite,) = json.loads(record)["suites"]
    (tmp_path / "s.json").write_text(json.dumps(suite))
    assert len(run_reader.find_baseline(str(tmp_path / "s.json"), tmp_path).result.suites[0].cases) == 2
