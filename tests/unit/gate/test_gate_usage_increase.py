"""Time, money and tokens beside the baseline: the typical case, and never a guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.usage_increase import (
    UsageIncrease,
    compute_increase,
    count_tokens,
    get_cost_usd,
    get_latency_ms,
    pair_values,
)
from eval_gate.model.execution import CaseDetails, Status, Trial
from eval_gate.model.result import RunResult
from eval_gate.model.usage import Usage
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_suite_result
from tests.support.verdicts import compare_with


def run_of(*cases, **fields) -> RunResult:
    return make_baseline_run(make_suite_result(list(cases)), **fields)


def pairs(*ratios: float):
    return tuple((100.0, 100.0 * ratio) for ratio in ratios)


@pytest.mark.contract("verdict.budgets")
@pytest.mark.parametrize(
    ("ratios", "over"),
    [
        ([1.5] * 7, True),
        ([1.5] * 6, False),
        ([1.5] * 8 + [1.0] * 2, False),
        ([1.5] * 30 + [1.0] * 10, True),
        ([1.0] * 40 + [50.0], False),
        ([1.19] * 50, False),
        ([1.21] * 50, True),
        ([], False),
    ],
    ids=[
        "seven of seven",
        "six are too few to be sure",
        "not sure",
        "most of many",
        "one slow case",
        "within the limit",
        "beyond it",
        "nothing to compare",
    ],
)
def test_increase__typical_case__is_over_only_when_that_is_sure(ratios, over) -> None:
    assert compute_increase(pairs(*ratios), 0.2).exceeds_limit is over


def test_increase__seven_of_seven__has_the_chance_of_seven_heads() -> None:
    found = compute_increase(pairs(*[2.0] * 7), 0.2)
    assert (found.cases, found.ratio, found.chance) == (7, 2.0, 1 / 128)


def test_increase__nothing_in_the_baseline__anything_more_is_too_much() -> None:
    assert compute_increase(((0.0, 5.0),) * 9, 0.2).exceeds_limit
    assert not compute_increase(((0.0, 0.0),) * 9, 0.2).exceeds_limit
    assert not compute_increase(((0.0, 5.0),) * 4 + ((1.0, 1.0),) * 5, 0.2).exceeds_limit
    assert compute_increase(((0.0, None),) * 9, 0.2).unknown


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=40), st.floats(0, 2))
def test_increase__more_expensive_everywhere__is_never_milder(ratios, most) -> None:
    before = compute_increase(pairs(*ratios), most)
    after = compute_increase(pairs(*[ratio * 1.5 for ratio in ratios]), most)
    assert after.exceeds_limit >= before.exceeds_limit


def test_increase__exactly_at_the_limit__is_not_above_it() -> None:
    assert compute_increase(pairs(*[1.25] * 50), 0.25) == UsageIncrease(50, 1.25, 1.0, exceeds_limit=False)


def test_increase__many_are_above_but_not_the_typical_case__is_within() -> None:
    # six of ten are above the limit, which is far from sure
    assert not compute_increase(pairs(*[1.3] * 6, *[1.0] * 4), 0.2).exceeds_limit


@pytest.mark.parametrize(
    ("told", "untold", "unknown"), [(0, 1, True), (1, 2, True), (2, 2, True), (3, 2, False), (50, 1, False)]
)
def test_increase__not_told_here__is_unknown_where_it_could_be_the_typical_case(told, untold, unknown) -> None:
    found = compute_increase((*pairs(*[1.0] * told), *[(1.0, None)] * untold), 0.2)
    assert (found.missing_cases, found.unknown, found.exceeds_limit) == (untold, unknown, False)


def test_increase__sure_by_what_is_told__is_over_whatever_is_not() -> None:
    found = compute_increase((*pairs(*[1.5] * 9), (1.0, None)), 0.2)
    assert (found.exceeds_limit, found.unknown) == (True, False)


MEASURED = {"usage": Usage(input_tokens=300, output_tokens=60), "cost_usd": 0.6}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (MEASURED, (120.0, 0.6, 360.0)),
        (MEASURED | {"trials": "PPF"}, (40.0, pytest.approx(0.2), 120.0)),
        (MEASURED | {"details": CaseDetails(replayed=True)}, (None, None, 360.0)),
        (MEASURED | {"trials": "FF", "reruns": 1, "preparatory_executions": 1}, (40.0, pytest.approx(0.2), 120.0)),
        ({}, (120.0, None, None)),
        ({"usage": Usage(input_tokens=300)}, (120.0, None, None)),
        ({"usage": Usage(output_tokens=60)}, (120.0, None, None)),
        ({"duration_ms": 0.0, "usage": Usage(input_tokens=0, output_tokens=0)}, (None, None, None)),
    ],
    ids=[
        "one",
        "three trials",
        "replayed",
        "re-run after a preparatory execution",
        "unknown",
        "no output",
        "no input",
        "nothing at all",
    ],
)
def test_measures__case__are_of_one_execution(fields, expected) -> None:
    case = make_result("a", **fields)
    assert (get_latency_ms(case), get_cost_usd(case), count_tokens(case)) == expected


def test_latency__execution_that_broke__does_not_count() -> None:
    fast, slow = (Trial(status=Status.PASSED, score=1, duration_ms=each) for each in (10, 30))
    broken = Trial(status=Status.ERROR, score=0, duration_ms=60_000)
    case = replace(make_result("a"), trials=(fast, slow, broken))
    assert get_latency_ms(case) == 20.0


def test_latency__rerun_answered_from_a_cache__does_not_count() -> None:
    slow, cached = (Trial(status=Status.FAILED, score=0, duration_ms=each) for each in (4_000, 5))
    assert get_latency_ms(replace(make_result("a", "failed"), trials=(slow, cached, cached), reruns=2)) == 4_000
    broken = Trial(status=Status.ERROR, score=0, duration_ms=60_000)
    assert get_latency_ms(replace(make_result("a", "failed"), trials=(broken, slow), reruns=1)) == 4_000


def test_pairs_of__case_that_is_another_question_now__is_left_out() -> None:
    then = run_of(make_result("a", duration_ms=10.0), make_result("b", duration_ms=10.0))
    changed = make_result("b", duration_ms=90.0, fingerprint="another")
    here = run_of(make_result("a", duration_ms=20.0), changed, make_result("new", duration_ms=7.0), run_id="here")
    found = compare_with(Baseline(then, "b"), here)
    assert pair_values(found, here, then, get_latency_ms) == ((10.0, 20.0),)


def test_increase__costs_of_less_than_a_cent__are_compared_as_any() -> None:
    assert compute_increase(((0.002, 0.003),) * 9, 0.2) == UsageIncrease(9, 1.5, 1 / 512, exceeds_limit=True)
