"""Joining the results of shards: every case once, nothing passes on a part that is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.settings import Selection, parse_shard
from eval_gate.engine.preparing.select import select
from eval_gate.errors import GateError
from eval_gate.gate.limits import Policy
from eval_gate.model.case import Location
from eval_gate.model.comparison import Outcome
from eval_gate.model.result import GitFacts, Shard, TargetIdentity
from eval_gate.results.baseline import NOT_ASKED_FOR
from eval_gate.results.merge import merge
from tests.support.cases import make_case, make_suite
from tests.support.results import make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against


def part(index: int, count: int, *cases, **fields):
    return make_run(make_suite_result(list(cases)), shard=Shard(index=index, count=count), **fields)


def at(line: int) -> Location:
    return Location(file="evals/weather.golden.json", line=line)


def test_merge__all_shards__is_one_complete_run_in_file_order() -> None:
    first = part(1, 2, make_result("a", location=at(1)), make_result("c", "failed", location=at(9)))
    second = part(2, 2, make_result("b", location=at(5)))
    run = merge([second, first], "joined")
    assert (run.run_id, run.complete, run.shard, run.stopped) == ("joined", True, None, None)
    (suite,) = run.suites
    assert [case.id for case in suite.cases] == ["a", "b", "c"]
    assert (run.summary.total_cases, run.summary.passed, run.summary.wall_ms) == (3, 2, 1500.0)
    assert suite.summary.total_cases == 3


def test_merge__a_shard_is_missing__no_gate_passes_on_it() -> None:
    run = merge([part(1, 3, make_result("a")), part(3, 3, make_result("b"))], "joined")
    assert (run.complete, run.stopped) == (False, "shard 2 of 3 is missing")
    verdict = judge_against(run, NOT_ASKED_FOR, Policy()).verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == (Outcome.ERROR, 3)


def test_merge__a_part_was_interrupted__the_whole_is_not_complete() -> None:
    run = merge([part(1, 2, make_result("a")), part(2, 2, make_result("b", "not_run"), stopped="interrupted")], "x")
    assert (run.complete, run.summary.not_run, run.stopped) == (False, 1, "interrupted")


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (part(2, 2, make_result("a")), "a is in 2 of the results"),
        (part(2, 3, make_result("b")), "different divisions: 2, 3"),
        (
            part(2, 2, make_result("b"), target=TargetIdentity(name="other", provider="http", identity="http://x")),
            "different targets",
        ),
    ],
    ids=["same case", "other division", "other target"],
)
def test_merge__results_that_do_not_belong_together__are_refused(second, said) -> None:
    with pytest.raises(GateError) as caught:
        merge([part(1, 2, make_result("a")), second], "joined")
    assert said in str(caught.value.problems[0])


def test_merge__jobs_of_other_suites__keep_their_suites() -> None:
    sales = make_run(make_suite_result([make_result("a")], eval_file="sales.json"))
    support = make_run(make_suite_result([make_result("a")], eval_file="support.json"))
    assert [suite.eval_file for suite in merge([sales, support], "joined").suites] == ["sales.json", "support.json"]


def test_merge__another_commit__is_warned_about() -> None:
    other = part(2, 2, make_result("b"), git=GitFacts(sha="f" * 40))
    (warning,) = merge([part(1, 2, make_result("a")), other], "joined").warnings
    assert "ffffffffffff" in warning


@given(sizes=st.lists(st.integers(1, 7), min_size=1, max_size=4), count=st.integers(1, 9))
def test_shards__together__are_every_case_once_and_equally_large(sizes, count) -> None:
    suites = [
        make_suite(*[make_case(f"c{suite}-{number}") for number in range(size)], file=f"s{suite}.json")
        for suite, size in enumerate(sizes)
    ]
    seen, parts = [], []
    for index in range(1, count + 1):
        try:
            chosen = select(suites, Selection(shard=Shard(index=index, count=count)))
        except GateError:
            chosen = ()
        parts.append(sum(len(suite.cases) for suite in chosen))
        seen += [(suite.file, case.id) for suite in chosen for case in suite.cases]
    assert sorted(seen) == sorted((suite.file, case.id) for suite in suites for case in suite.cases)
    assert max(parts) - min(parts) <= 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3"])
def test_shard__that_is_no_part__is_refused(text) -> None:
    with pytest.raises(GateError):
        parse_shard(text)


def test_shard__none__is_everything() -> None:
    assert parse_shard(None) is None
    assert parse_shard("2/4") == Shard(index=2, count=4)
    assert not Selection(shard=Shard(index=2, count=4)).everything


def test_merge__parts_that_asked_several_targets__each_case_says_whom() -> None:
    a, b = (TargetIdentity(name=name, provider="mock", identity=f"mock:{name}") for name in "ab")
    first = part(1, 2, make_result("c1", location=at(1)), target=a, targets=(a, b))
    second = part(2, 2, make_result("c2", location=at(2)), target=b)
    merged = merge([first, second], "merged")
    assert (merged.target, merged.targets) == (a, (a, b))
    assert [case.target for suite in merged.suites for case in suite.cases] == [None, "b"]
