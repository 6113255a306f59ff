"""Whose something is that was published before, and which of two results counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.action.precedence import (
    NewerResult,
    Publication,
    Publisher,
    classify_publisher,
    is_of_run,
    is_superseding,
)
from eval_gate.model.result import ResultProducer

JOB, STEP, INPUTS, OTHER = "11111111", "22222222", "33333333", "99999999"


def made(gate: str = "gate.yml.gate", run_id: int = 5, attempt: int = 1, leg: str | None = f"{JOB}-{STEP}-{INPUTS}"):
    return ResultProducer(gate=gate, run_id=run_id, attempt=attempt, leg=leg)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (made(), Publisher.OURS),
        (made(gate="gate.yml.other"), Publisher.ANOTHER_GATE),
        (made(leg=f"{OTHER}-{STEP}-{INPUTS}"), Publisher.ANOTHER_LEG),
        (made(leg=f"{JOB}-{OTHER}-{INPUTS}"), Publisher.ANOTHER_LEG),
        (made(leg=f"{JOB}-{STEP}-{OTHER}"), Publisher.ANOTHER_LEG),
        (made(leg=f"{OTHER}-{STEP}-{INPUTS}", attempt=2), Publisher.OURS),
        (made(leg=f"{JOB}-{OTHER}-{INPUTS}", attempt=2), Publisher.ANOTHER_LEG),
        (made(leg=f"{OTHER}-{STEP}-{OTHER}", attempt=2), Publisher.ANOTHER_LEG),
        (made(leg=f"{OTHER}-{OTHER}-{OTHER}", run_id=4), Publisher.OURS),
        (made(leg=None), Publisher.OURS),
    ],
)
def test_publisher_of__run_attempt_and_leg__decide(theirs, expected) -> None:
    assert classify_publisher(made(), theirs) is expected


HEAD, BEFORE = "a" * 40, "b" * 40


def result(sha: str = HEAD, judged: tuple[int, int] | None = None, **maker) -> Publication:
    return Publication(made(**maker), sha, judged)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (result(), False),
        (result(run_id=6), True),
        (result(run_id=4), False),
        (result(run_id=4, attempt=9), False),
        (result(attempt=2), True),
        (result(BEFORE, run_id=6), False),
        (result(run_id=6, gate="gate.yml.other"), False),
        (result(run_id=5, leg=f"{OTHER}-{STEP}-{INPUTS}"), False),
        (result(run_id=99, judged=(4, 1)), False),
        (result(run_id=99, judged=(6, 1)), False),  # a fork's, of the same commit
        (result(run_id=99, judged=(5, 1)), False),
    ],
)
def test_overtakes__of_one_gate__commit_then_run_then_attempt_decide(theirs, expected) -> None:
    assert is_superseding(theirs, result(), HEAD) is expected


def test_overtakes__a_result_of_the_head__counts_before_a_newer_one_of_another_commit() -> None:
    assert is_superseding(result(run_id=4), result(BEFORE), HEAD)
    assert is_superseding(result(run_id=99, judged=(4, 1)), result(BEFORE), HEAD)


def test_overtakes__results_of_forks__go_by_the_run_that_was_judged() -> None:
    older, newer = result(run_id=99, judged=(4, 1)), result(run_id=98, judged=(6, 1))
    assert is_superseding(newer, older, HEAD)
    assert not is_superseding(older, newer, HEAD)


@given(st.lists(st.builds(result, st.sampled_from([HEAD, BEFORE]), st.none(), run_id=st.integers(1, 4))))
def test_overtakes__any_results_of_one_gate__there_is_one_that_none_overtakes(results) -> None:
    last = [one for one in results if not any(is_superseding(other, one, HEAD) for other in results)]
    assert len({(one.sha == HEAD, one.order) for one in last}) == min(len(results), 1)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (result(), True),
        (result(attempt=2), True),
        (result(BEFORE), False),
        (result(run_id=6), False),
        (result(run_id=99, judged=(5, 1)), False),
    ],
)
def test_is_of_run__what_another_run_published_for_it__is_not_by_itself(theirs, expected) -> None:
    assert is_of_run(theirs, HEAD, (5, 1)) is expected


@pytest.mark.parametrize("theirs", [True, False])
@pytest.mark.parametrize("ours", [True, False])
def test_overtaken__contradicts__only_another_outcome(ours, theirs) -> None:
    assert NewerResult(7, theirs).is_contradicting(passed=ours) is (ours is not theirs)
