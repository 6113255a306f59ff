"""The journal loses nothing that was finished and keeps nothing that was not."""

import os
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.engine.journal import FinishedTrials, Journal, TrialRecord, read_lines
from eval_gate.errors import ExitCode, GateError
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import CaseDetails, EvaluatorResult, Status, StoredCall
from eval_gate.model.usage import Usage


def record(case_id: str = "a", trial: int = 0, **fields) -> TrialRecord:
    values = {"eval_file": "e.json", "fingerprint": "f", "status": Status.PASSED}
    return TrialRecord(case_id=case_id, trial=trial, **(values | fields))


def test_journal__appended__is_read_back_in_order(tmp_path) -> None:
    written = [record("a", score=0.5, error="snow ☃\nline"), record("b", 1)]
    with Journal(tmp_path / "cases.jsonl") as journal:
        for one in written:
            journal.append(one)
    assert [one for one, _ in read_lines(tmp_path / "cases.jsonl")] == written


def test_journal__missing__is_empty(tmp_path) -> None:
    assert list(read_lines(tmp_path / "none.jsonl")) == []


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
    assert [one.case_id for one, _ in read_lines(file)] == ["a", "b"][:kept]
    with Journal(file) as journal:
        journal.append(record("c"))
    assert [one.case_id for one, _ in read_lines(file)] == [*["a", "b"][:kept], "c"]


def test_journal__foreign_line__is_an_error_with_its_number(tmp_path) -> None:
    file = tmp_path / "cases.jsonl"
    with Journal(file) as journal:
        journal.append(record())
    with file.open("a") as stream:
        stream.write("hello\n")
    with pytest.raises(GateError, match=r"cases\.jsonl:2 is not a finished trial"):
        list(read_lines(file))


def test_journal__no_folder__says_what_to_do(tmp_path) -> None:
    (tmp_path / "no").touch()
    with pytest.raises(GateError, match="cannot be written") as caught:
        Journal(tmp_path / "no" / "cases.jsonl")
    assert caught.value.hint == "choose another folder with --output-dir"


A, B = CaseKey("e.json", "a"), CaseKey("e.json", "b")


def finished(journal: Journal, *records: TrialRecord, most: int = 0) -> FinishedTrials:
    """These trials, of which `most` are in memory."""
    kept = FinishedTrials(most)
    kept.journal = journal
    for one in records:
        kept.add(one, journal.append(one))
    return kept


SAID = st.builds(
    EvaluatorResult,
    name=st.sampled_from(["contains", "☃"]),
    type=st.just("check"),
    score=st.sampled_from([0.0, 0.3, 1.0]),
    weight=st.sampled_from([1.0, 2.5]),
    hits=st.sampled_from([(), ("h",)]),
    reasoning=st.none() | st.text(max_size=3),
    evaluator_provider_request=st.none() | st.just({"userPrompt": "q", "n": [1, 2.5, None]}),
    evaluator_results=st.sampled_from([(), (EvaluatorResult(name="m", type="t", score=1.0),)]),
    vetoed=st.booleans(),
)
ANSWERED = st.builds(
    CaseDetails,
    tools_called=st.sampled_from([(), ("t", "t")]),
    response=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    response_length=st.integers(0, 9),
    tool_calls=st.sampled_from([(), (StoredCall(name="t", arguments={"a": [1, {"b": 2.0}]}, duration_ms=0.1),)]),
    dropped_counts=st.sampled_from([{}, {"characters": 2}]),
)
USAGE = st.none() | st.builds(Usage, input_tokens=st.none() | st.integers(0, 3), output_tokens=st.none() | st.just(1))


@given(
    st.lists(st.builds(dict, details=ANSWERED, evaluator_results=st.lists(SAID).map(tuple), usage=USAGE), max_size=3)
)
def test_finished__in_the_journal_alone__is_as_it_was_in_memory(tmp_path_factory, several) -> None:
    records = [record(trial=trial, duration_ms=trial / 3, **fields) for trial, fields in enumerate(several)]
    with Journal(tmp_path_factory.mktemp("journal") / "cases.jsonl") as journal:
        on_disk, in_memory = finished(journal, *records), finished(journal, *records, most=9)
        journal.append(record("b"))  # what was read does not move what is written
        assert on_disk.load_trials(A) == in_memory.load_trials(A) == records
        assert [msgspec.json.encode(one).decode() for one in on_disk.load_trials(A)] == [
            msgspec.json.encode(one).decode() for one in records
        ]
        assert [one.case_id for one, _ in read_lines(journal._file)][-1:] == ["b"]


def test_finished__let_go__is_there_no_more(tmp_path) -> None:
    with Journal(tmp_path / "cases.jsonl") as journal:
        kept = finished(journal, record("a"), record("a", 1), record("b"), most=1)
        assert [one.trial for one in kept.load_trials(A)] == [0, 1]
        kept.forget_case(A)
        assert (kept.load_trials(A), kept.list_keys()) == ([], {(B, 0)})


def test_finished__the_same_trial_again__is_the_later_one(tmp_path) -> None:
    with Journal(tmp_path / "cases.jsonl") as journal:
        assert [one.score for one in finished(journal, record(score=0.1), record(score=0.9)).load_trials(A)] == [0.9]


@pytest.mark.parametrize(("lists", "left"), [(True, [0, 2]), (False, [0])])
def test_finished__trials_that_were_not_judged__are_not_kept_of_an_earlier_process(tmp_path, lists, left) -> None:
    with Journal(tmp_path / "cases.jsonl") as journal:
        broke, silent = record("a", 1, status=Status.ERROR), record("a", 2, missing_calls="at x")
        kept = finished(journal, record("a"), broke, silent, record("b", status=Status.ERROR))
        assert kept.keep_scored(A, lists=lists)
        assert not kept.keep_scored(B, lists=lists)
        assert [one.trial for one in kept.load_trials(A)] == left
        assert kept.list_cases() == [A]


@pytest.mark.parametrize(
    "change",
    [lambda text: "x" * len(text), lambda text: text.replace("failed", "passed"), lambda text: text[:-3], lambda _: ""],
    ids=["no trial", "a failure made a pass", "cut", "empty"],
)
def test_finished__journal_changed_meanwhile__is_an_error_that_says_so(tmp_path, change) -> None:
    file = tmp_path / "cases.jsonl"
    with Journal(file) as journal:
        kept = finished(journal, record(status=Status.FAILED))
        changed = change(file.read_text())
        assert changed != file.read_text()
        file.write_text(changed)
        with pytest.raises(GateError, match="changed while the run wrote it") as caught:
            kept.load_trials(A)
    assert (caught.value.code, caught.value.exit_code) == ("invalid-journal", ExitCode.INCOMPLETE)


MARKED = """
import sys
from pathlib import Path
from eval_gate.engine.journal import Journal, TrialRecord
from eval_gate.model.execution import Status
one = TrialRecord(eval_file="e", case_id="a", trial=0, fingerprint="f", status=Status.FAILED)
with Journal(Path(sys.argv[1])) as journal:
    print(journal.append(one).digest)
"""


@pytest.mark.slow
def test_line__known_again_by__nothing_that_another_process_can_work_out(tmp_path) -> None:
    """A case's command may read which hash seed we were started with, or set one in the job before."""
    seeded = {"PYTHONHASHSEED": "0", "PATH": os.environ.get("PATH", "")}
    said = [
        subprocess.run([sys.executable, "-c", MARKED, tmp_path / name], env=seeded, capture_output=True, check=True)
        for name in "ab"
    ]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != b""
    assert said[0].stdout != said[1].stdout
