"""A history over runs that reused results: every execution is in it once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.model.case import CaseKey
from eval_gate.model.result import RunResult
from eval_gate.results.history import (
    MAX_PLACES,
    MAX_RUNS,
    REUSED_ENTRY,
    History,
    encode_history,
    parse_history,
)
from eval_gate.results.run_history import join_histories, trim_to_run
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_suite_result
from tests.support.reuse import CARE, PAY, build_history, make_branch_runs, reuse_suites

A, B = CaseKey(CARE, "a"), CaseKey(PAY, "b")
STATUS = {"P": "passed", "F": "failed"}
STEPS = st.lists(st.tuples(st.sampled_from("PF="), st.sampled_from("PF=")), min_size=1, max_size=30)


def runs_of(steps: list[tuple[str, str]]) -> list[RunResult]:
    """The runs of a branch, oldest first; each one reuses from the one before."""
    cases = {CARE: "a", PAY: "b"}
    return make_branch_runs(steps, lambda file, word: [make_result(cases[file], STATUS.get(word, "passed"))])


def branch(*runs: RunResult) -> History:
    return build_history(runs)


def executed(history: History, key: CaseKey) -> list[tuple[str, object]]:
    """The entries of a case that are executions, with their runs, newest first."""
    entries = history.get_case(key).decode_entries()
    return [(run.run_id, entry) for run, entry in zip(history.runs, entries, strict=False) if entry is not None]


@given(STEPS)
def test_history__any_mixture_of_executed_and_reused__has_every_execution_once(steps) -> None:
    runs = runs_of(steps)
    history = branch(*runs)
    for key in (A, B):
        own = [run for run in runs if key.suite not in run.baseline_suites]
        assert executed(history, key) == executed(branch(*own), key)
    assert parse_history(encode_history(history), "it") == history


@given(STEPS)
def test_history__reused_behaviour__is_that_of_the_executed_runs(steps) -> None:
    runs = runs_of(steps)
    own = [run for run in runs if CARE not in run.baseline_suites]
    words = branch(*runs).get_case(A).list_behaviour_words()
    assert [word for word in words if word != REUSED_ENTRY] == branch(*own).get_case(A).list_behaviour_words()


def test_history__nothing_reused__is_as_it_was_byte_for_byte() -> None:
    history = branch(*runs_of([("P", "F")] * 60))
    assert len(history.runs) == MAX_RUNS
    assert history.get_case(A).runs == "0P*50"
    assert b"reused" not in encode_history(history)


def test_history__runs_that_only_reused__take_no_place() -> None:
    history = branch(*runs_of([("P", "P"), *[("=", "=")] * 7, ("P", "P"), ("=", "=")]))
    assert [run.run_id for run in history.runs] == ["r9", "r8", "r0"]
    assert history.get_case(A).runs == "= 0P*2"
    assert history.reused_places == {0}


def test_history__outage_of_all_that_was_executed__is_no_usable_run() -> None:
    (first,) = runs_of([("P", "P")])
    broken = make_baseline_run(make_suite_result({"b": "error"}, eval_file=PAY), run_id="r1")
    history = branch(first, reuse_suites(broken, first, {CARE}))
    assert [(one.scored, one.cases, one.is_usable) for one in history.runs] == [(0, 1, False), (2, 2, True)]


def test_history__suite_that_is_seldom_executed__keeps_its_runs_among_a_hundred() -> None:
    history = branch(*runs_of([("P", "P") if number % 6 == 0 else ("P", "=") for number in range(97)]))
    assert len(history.runs) == 97
    assert history.get_case(A).runs == "0P*50"
    assert len(executed(history, B)) == 17


def test_history__execution_older_than_all_places__counts_from_now_on() -> None:
    history = branch(*runs_of([("P", "F"), *[("P", "=")] * 150]))
    assert len(history.runs) <= MAX_PLACES
    assert len(executed(history, B)) == 1


def test_history__without_the_run_that_executed_it__takes_the_result_in() -> None:
    first, *later = runs_of([("P", "F"), ("=", "P"), ("=", "="), ("=", "P"), ("=", "P")])
    lost = branch(*later)
    assert executed(lost, A) == [("r1", branch(first).get_case(A).decode_entries()[0])]
    assert [run_id for run_id, _ in executed(lost, B)] == ["r4", "r3", "r1"]


@given(STEPS, st.integers(0, 29))
def test_trim_to__run_in_the_middle__is_the_history_that_ended_with_it(steps, place) -> None:
    runs = runs_of(steps)
    middle = runs[min(place, len(runs) - 1)]
    whole, until = branch(*runs), branch(*runs[: runs.index(middle) + 1])
    trimmed = trim_to_run(whole.trim_to(middle), middle)
    assert {key: executed(trimmed, key) for key in (A, B)} == {key: executed(until, key) for key in (A, B)}


def test_trim_to_run__history_that_hides_an_execution__is_replaced() -> None:
    first, second = runs_of([("P", "P"), ("F", "P")])
    history = branch(first, second)
    cases = {CARE: {"a": replace(history.get_case(A), runs="= 0P")}, PAY: {"b": history.get_case(B)}}
    found = trim_to_run(replace(history, suites=cases), second)
    assert [entry.first[0].letter for _, entry in executed(found, A)] == ["F", "P"]


@given(STEPS)
def test_join__parallel_histories__have_every_execution_once(steps) -> None:
    runs = runs_of(steps)
    histories = [branch(*runs[: end + 1]) for end in range(len(runs))]
    joined = join_histories(histories[-1], histories[:-1])
    for key in (A, B):
        assert executed(joined, key) == executed(histories[-1], key)


@pytest.mark.parametrize("words", ["=*100", "==", "=P", "0=", "= *2", "=*x"])
def test_parse_history__reused_word_that_is_none__is_refused(words) -> None:
    text = '{"suites": {"s": {"c": {"runs": "WORDS", "fingerprints": ["f"]}}}}'.replace("WORDS", words)
    with pytest.raises(GateError, match="not a valid entry"):
        parse_history(text.encode(), "it")


def test_parse_history__more_reused_runs_than_places__is_limited() -> None:
    text = '{"suites": {"s": {"c": {"runs": "=*99 0P*99 =*99", "fingerprints": ["f"]}}}}'
    entries = parse_history(text.encode(), "it").get_case(CaseKey("s", "c")).decode_entries()
    assert len(entries) == MAX_PLACES
    assert sum(entry is not None for entry in entries) == 1


def test_history__suite_that_is_reused_while_another_one_is_executed__keeps_the_executions_that_the_gate_uses() -> None:
    history = branch(*runs_of([("P", "P")] * 20 + [("=", "P")] * (MAX_PLACES + 30)))
    assert len(history.runs) == MAX_PLACES
    assert [run for run, _ in executed(history, A)] == [f"r{number}" for number in reversed(range(20))]
    assert len(executed(history, B)) == MAX_RUNS
