"""The journal loses nothing that was finished and keeps nothing that was not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.engine.journal import Journal, TrialRecord, read_journal
from eval_gate.errors import GateError
from eval_gate.model.execution import Status


def record(case_id: str = "a", trial: int = 0, **fields) -> TrialRecord:
    values = {"eval_file": "e.json", "fingerprint": "f", "status": Status.PASSED}
    return TrialRecord(case_id=case_id, trial=trial, **(values | fields))


def test_journal__appended__is_read_back_in_order(tmp_path) -> None:
    written = [record("a", score=0.5, error="snow ☃\nline"), record("b", 1)]
    with Journal(tmp_path / "cases.jsonl") as journal:
        for one in written:
            journal.append(one)
    assert list(read_journal(tmp_path / "cases.jsonl")) == written


def test_journal__missing__is_empty(tmp_path) -> None:
    assert list(read_journal(tmp_path / "none.jsonl")) == []


@pytest.mark.slow
@given(cut=st.integers(min_value=0, max_value=400))
def test_journal__cut_anywhere__keeps_every_whole_line_and_can_be_continued(tmp_path_factory, cut) -> None:
    file = tmp_path_factory.mktemp("journal") / "cases.jsonl"
    with Journal(file) as journal:
        journal.append(record("a"))
        journal.append(record("b"))
    whole = file.read_bytes()
    file.write_bytes(whole[:cut])
    kept = whole[:cut].count(b"\n")
    assert [one.case_id for one in read_journal(file)] == ["a", "b"][:kept]
    with Journal(file) as journal:
        journal.append(record("c"))
    assert [one.case_id for one in read_journal(file)] == [*["a", "b"][:kept], "c"]


def test_journal__foreign_line__is_an_error_with_its_number(tmp_path) -> None:
    file = tmp_path / "cases.jsonl"
    with Journal(file) as journal:
        journal.append(record())
    with file.open("a") as stream:
        stream.write("hello\n")
    with pytest.raises(GateError, match=r"cases\.jsonl:2 is not a finished trial"):
        list(read_journal(file))


def test_journal__no_folder__says_what_to_do(tmp_path) -> None:
    (tmp_path / "no").touch()
    with pytest.raises(GateError, match="cannot be written") as caught:
        Journal(tmp_path / "no" / "cases.jsonl")
    assert caught.value.hint == "choose another folder with --output-dir"
