"""How cases are cut into shards: by how long they took, alike everywhere, each case once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.engine.preparation.case_filter import compute_shard_cut, select_shard
from eval_gate.model.agent import SuiteAgent
from eval_gate.model.result import RunResult, Shard
from tests.support.cases import make_case, make_suite
from tests.support.results import make_result, make_run, make_suite_result

FILE = "evals/weather.golden.json"


def suite_of(count: int):
    return make_suite(*[make_case(f"c{number}") for number in range(count)], file=FILE)


def took(*durations_ms: float, **fields) -> RunResult:
    """A run in which the cases took so long."""
    cases = [make_result(f"c{number}", duration_ms=took) for number, took in enumerate(durations_ms)]
    return make_run(make_suite_result(cases, eval_file=FILE), **fields)


def parts(suites, count: int, before: RunResult | None = None) -> list[list[str]]:
    cut = [select_shard(suites, Shard(index=index, count=count), before) for index in range(1, count + 1)]
    return [[case.id for suite in suites for case in suite.cases] for suites in cut]


def test_part__one_case_takes_as_long_as_all_others__is_alone() -> None:
    assert parts([suite_of(5)], 2, took(10, 10, 40, 10, 10)) == [["c2"], ["c0", "c1", "c3", "c4"]]


def test_part__nothing_is_known__parts_are_equally_large() -> None:
    assert parts([suite_of(5)], 2) == [["c0", "c2", "c4"], ["c1", "c3"]]


def test_part__case_that_is_new__counts_as_the_usual_one() -> None:
    assert parts([suite_of(4)], 2, took(100, 1, 1)) == [["c0"], ["c1", "c2", "c3"]]


def test_part__answers_came_from_a_recording__parts_are_equally_large() -> None:
    assert [len(ids) for ids in parts([suite_of(6)], 3, took(0, 0, 0, 0, 0, 0))] == [2, 2, 2]


@pytest.mark.parametrize("fields", [{"partial": True}, {"shard": Shard(index=1, count=2)}])
def test_part__run_of_some_cases__does_not_decide_since_every_shard_may_know_another(fields) -> None:
    before = took(10, 10, 40, 10, 10, **fields)
    assert parts([suite_of(5)], 2, before) == parts([suite_of(5)], 2)
    assert compute_shard_cut([suite_of(5)], 2, before) == compute_shard_cut([suite_of(5)], 2)


def test_part__suite_whose_cases_share_files__stays_whole_and_weighs_their_sum() -> None:
    agent = SuiteAgent(name="a", model="m", instructions="", tools=("writeFile",))
    shared = make_suite(*[make_case(f"c{number}", agent=agent) for number in range(3)], file=FILE)
    others = make_suite(make_case("x"), make_case("y"), file="b.json")
    before = make_run(
        make_suite_result([make_result(f"c{number}", duration_ms=10) for number in range(3)], eval_file=FILE),
        make_suite_result([make_result("x", duration_ms=25), make_result("y", duration_ms=4)], eval_file="b.json"),
    )
    assert parts([shared, others], 2, before) == [["c0", "c1", "c2"], ["x", "y"]]


@given(
    durations=st.lists(st.floats(0, 1e6), min_size=1, max_size=40),
    known=st.integers(0, 40),
    count=st.integers(1, 9),
)
def test_parts__any_durations__hold_every_case_once_and_the_longest_is_within_what_graham_proved(
    durations, known, count
) -> None:
    """No shard is longer than the mean and one case: nothing is given to a shard that has more than another."""
    before = took(*durations[:known]) if known else None
    cut = parts([suite_of(len(durations))], count, before)
    assert sorted(name for ids in cut for name in ids) == sorted(f"c{number}" for number in range(len(durations)))
    if known >= len(durations):
        weights = [max(round(one * 1000), 1000) for one in durations]
        loads = [sum(weights[int(name[1:])] for name in ids) for ids in cut]
        assert max(loads) <= sum(weights) / count + (1 - 1 / count) * max(weights) + 1


def test_cut_of__other_durations_cases_or_numbers__is_another() -> None:
    cuts = [
        compute_shard_cut([suite_of(3)], 2),
        compute_shard_cut([suite_of(3)], 3),
        compute_shard_cut([suite_of(4)], 2),
        compute_shard_cut([suite_of(3)], 2, took(1, 2, 3)),
        compute_shard_cut([suite_of(3)], 2, took(1, 2, 30)),
    ]
    assert len({cut.digest for cut in cuts}) == len(cuts)
    assert [cut.durations_from is None for cut in cuts] == [True, True, True, False, False]
    assert compute_shard_cut([suite_of(3)], 2, took(1, 2, 3)) == cuts[3]
