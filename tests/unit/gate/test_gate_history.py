"""The runs before, counted, and a letter each for a case."""

import pytest

from eval_gate.gate.baseline_side import summarize_outcomes, summarize_runs
from eval_gate.model.case import CaseKey
from eval_gate.results.history import CaseHistory, History, HistoryRun
from tests.support.results import make_result

KEY = CaseKey("e.json", "a")


def ledger(*cases: CaseHistory, runs: int = 3) -> History:
    made = tuple(HistoryRun(run_id=f"r{number}", timestamp="t", sha=f"s{number}") for number in range(runs))
    return History(runs=made, suites={"e.json": dict(zip("abcdefg", cases, strict=False))})


@pytest.mark.parametrize(
    ("word", "letter"),
    [
        *(("0P", "P"), ("0F", "F"), ("0FPP", "M"), ("0F|P", "M"), ("0C", "C"), ("0T", "C")),
        *(("0FC", "F"), ("0PC", "P"), ("0U", "E"), ("0O", "E"), ("0UP", "P"), ("-", "-")),
    ],
)
def test_letters_of__what_a_run_saw__is_one_letter(word, letter) -> None:
    known = ledger(CaseHistory(fingerprints=("f",), runs=f"{word} 0P"))
    found = summarize_outcomes(known, {KEY: make_result("a", fingerprint="f")}, 1.0)
    assert found == {KEY: f"{letter}P-"}


def test_letters_of__another_fingerprint__says_nothing() -> None:
    known = ledger(CaseHistory(fingerprints=("new", "old"), runs="0P 1F 0F"))
    assert summarize_outcomes(known, {KEY: make_result("a", fingerprint="new")}, 1.0) == {KEY: "P-F"}
    assert summarize_outcomes(known, {KEY: make_result("a", fingerprint="third")}, 1.0) == {KEY: ""}


def test_letters_of__same_question_and_other_graders__counts_where_nothing_else_is_known() -> None:
    known = ledger(CaseHistory(fingerprints=("q.11111111",), runs="0P*3"))
    assert summarize_outcomes(known, {KEY: make_result("a", fingerprint="q")}, 1.0) == {KEY: "PPP"}


def test_letters_of__grades__are_held_to_the_pass_score() -> None:
    known = ledger(CaseHistory(fingerprints=("f",), runs="0F:0.8 0F:0.4 0F:0.9"))
    assert summarize_outcomes(known, {KEY: make_result("a", fingerprint="f")}, 0.8) == {KEY: "PFP"}


def test_past_runs__cases__are_counted_once_by_their_majority() -> None:
    known = ledger(
        CaseHistory(fingerprints=("f",), runs="0P 0FPP -"),
        CaseHistory(fingerprints=("f",), runs="0F|F 0F 0C"),
        CaseHistory(fingerprints=("f",), runs="0U*2"),
    )
    found = [(run.run_id, run.sha, run.passed, run.failed, run.errored) for run in summarize_runs(known, 1.0)]
    assert found == [("r0", "s0", 1, 1, 1), ("r1", "s1", 1, 1, 1), ("r2", "s2", 0, 0, 1)]
