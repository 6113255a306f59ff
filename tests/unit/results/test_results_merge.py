"""Joining the results of shards: every case once, nothing passes on a part that is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.policy import Policy
from eval_gate.config.selection import Selection, parse_shard
from eval_gate.engine.preparation.case_filter import select_cases
from eval_gate.errors import GateError
from eval_gate.model.case import Location
from eval_gate.model.comparison import Outcome
from eval_gate.model.policy import EvaluationSetup, RunPolicy
from eval_gate.model.result import GitFacts, ResultProducer, Shard, ShardPlan
from eval_gate.model.reuse import ReusedResult, ReuseOff, ReuseSource, ReuseSummary, SuiteDecision
from eval_gate.model.setup import SettingRole, SettingValue, TargetIdentity
from eval_gate.results.baseline import NOT_REQUESTED
from eval_gate.results.merge import merge_runs
from eval_gate.struct import replace
from tests.support.cases import make_case, make_suite
from tests.support.results import make_result, make_run, make_suite_result
from tests.support.verdicts import STEADY, judge_against, make_executed, make_judged


def part(index: int, count: int, *cases, **fields):
    return make_run(make_suite_result(list(cases)), shard=Shard(index=index, count=count), **fields)


def at(line: int) -> Location:
    return Location(file="evals/weather.golden.json", line=line)


def test_merge__all_shards__is_one_complete_run_in_file_order() -> None:
    first = part(1, 2, make_result("a", location=at(1)), make_result("c", "failed", location=at(9)))
    second = part(2, 2, make_result("b", location=at(5)))
    run = merge_runs([second, first], "joined")
    assert (run.run_id, run.complete, run.shard, run.stop_reason) == ("joined", True, None, None)
    (suite,) = run.suites
    assert [case.id for case in suite.cases] == ["a", "b", "c"]
    assert (run.summary.total_cases, run.summary.passed, run.summary.wall_ms) == (3, 2, 1500.0)
    assert suite.summary.total_cases == 3


def test_merge__re_runs_of_a_shard_waited__those_of_the_whole_did() -> None:
    parts = [part(1, 2, make_result("a")), part(2, 2, make_result("b"), rerun_wait=90)]
    assert merge_runs(parts, "joined").rerun_wait == 90


def test_merge__a_shard_is_missing__no_gate_passes_on_it() -> None:
    run = merge_runs([part(1, 3, make_result("a")), part(3, 3, make_result("b"))], "joined")
    assert (run.complete, run.stop_reason) == (False, "shard 2 of 3 is missing")
    verdict = judge_against(run, NOT_REQUESTED, Policy()).verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == (Outcome.INCONCLUSIVE, 3)


@pytest.mark.parametrize(
    ("there", "count", "said"),
    [
        ((1, 2, 4, 5, 6, 7, 8), 8, "shard 3 of 8 is missing"),
        ((1, 4), 4, "shards 2 and 3 of 4 are missing"),
        ((2, 8), 8, "shards 1 and 3 to 7 of 8 are missing"),
        ((1,), 999_999, "shards 2 to 999999 of 999,999 are missing"),
        (tuple(range(1, 40, 2)), 40, "20 in all, of 40 are missing"),
    ],
)
def test_merge__shards_are_missing__each_is_named(there, count, said) -> None:
    run = merge_runs([part(index, count, make_result(f"c{index}")) for index in there], "joined")
    assert not run.complete
    assert run.stop_reason is not None
    assert run.stop_reason.endswith(said)


def test_merge__a_part_was_interrupted__the_whole_is_not_complete() -> None:
    run = merge_runs(
        [part(1, 2, make_result("a")), part(2, 2, make_result("b", "not_run"), stop_reason="interrupted")], "x"
    )
    assert (run.complete, run.summary.not_run, run.stop_reason) == (False, 1, "interrupted")


FIRST = part(
    1,
    2,
    make_result("a"),
    shard_plan=ShardPlan(digest="a" * 16),
    planned_cases=2,
    policy=RunPolicy(fail_on=("regressions",)),
    setup=EvaluationSetup(trials=1),
    producer=ResultProducer(gate="evals", run_id=41),
    git=GitFacts(sha="9e8d7c6b5a4f", workspace_sha="e" * 40),
)
MADE = ResultProducer(gate="evals", run_id=42)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (part(2, 2, make_result("a")), "a is in 2 of the results"),
        (
            part(2, 3, make_result("b")),
            "different numbers of shards: shard 1 of 2 (run 11111111), shard 2 of 3 (run 11111111)",
        ),
        (part(1, 2, make_result("b"), run_id="again"), "shard 1 of 2 is given 2 times: run 11111111, run again"),
        (part(5, 2, make_result("b")), "shard 5 of 2 (run 11111111) cannot exist"),
        (
            part(2, 2, make_result("b"), git=GitFacts(sha="f" * 40)),
            "shard 1 of 2 (run 11111111) and shard 2 of 2 (run 11111111) evaluated different commits: ",
        ),
        (
            part(2, 2, make_result("b"), git=replace(FIRST.git, workspace_sha="f" * 40)),
            "shard 1 of 2 (run 11111111) and shard 2 of 2 (run 11111111) had different commits checked out: ",
        ),
        (part(2, 2, make_result("b"), producer=MADE), "are from different workflow runs: 41, 42"),
        (part(2, 2, make_result("b"), policy=RunPolicy(fail_on=("never",))), "have different policies"),
        (part(2, 2, make_result("b"), setup=EvaluationSetup(trials=3)), "have different setups"),
        (part(2, 2, make_result("b"), planned_cases=3), "are from runs with different numbers of cases: 2, 3"),
        (
            part(2, 2, make_result("b"), shard_plan=ShardPlan(digest="b" * 16, durations_from="main-2")),
            "were divided by different durations: none, the durations of run main-2",
        ),
        (part(2, 2, make_result("b"), shard_plan=ShardPlan(digest="b" * 16)), "were divided by different cases"),
        (make_run(make_suite_result([make_result("b")]), run_id="whole"), "run whole is not a shard, but shard 1 of 2"),
        (
            part(2, 2, make_result("b"), target=TargetIdentity(name="other", provider="http", identity="http://x")),
            "different targets",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_merge__results_that_do_not_belong_together__are_refused(second, said) -> None:
    with pytest.raises(GateError) as caught:
        merge_runs([FIRST, second], "joined")
    assert said in "\n".join(map(str, caught.value.problems))


def test_merge__jobs_of_other_suites__keep_their_suites() -> None:
    sales = make_run(make_suite_result([make_result("a")], eval_file="sales.json"))
    support = make_run(make_suite_result([make_result("a")], eval_file="support.json"))
    assert [suite.eval_file for suite in merge_runs([sales, support], "joined").suites] == [
        "sales.json",
        "support.json",
    ]


def test_merge__jobs_of_another_commit__are_warned_about() -> None:
    other = make_run(make_suite_result([make_result("b")]), git=GitFacts(sha="f" * 40))
    (warning,) = merge_runs([make_run(make_suite_result([make_result("a")])), other], "joined").warnings
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
            chosen = select_cases(suites, Selection(shard=Shard(index=index, count=count)))
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


def test_merge__parts_that_asked_several_targets__each_case_says_whom() -> None:
    a, b = (TargetIdentity(name=name, provider="mock", identity=f"mock:{name}") for name in "ab")
    first = part(1, 2, make_result("c1", location=at(1)), target=a, targets=(a, b))
    second = part(2, 2, make_result("c2", location=at(2)), target=b)
    merged = merge_runs([first, second], "merged")
    assert (merged.target, merged.targets) == (a, (a, b))
    assert [case.target for suite in merged.suites for case in suite.cases] == [None, "b"]


def test_merge__part_that_claims_to_be_complete_and_is_not__is_not_believed() -> None:
    run = merge_runs([part(1, 2, make_result("a")), part(2, 2, make_result("b", "not_run"), complete=True)], "x")
    assert not run.complete


def test_merge__case_whose_place_nobody_knows__stands_before_the_others() -> None:
    first = part(1, 2, make_result("a", location=at(3)))
    second = part(2, 2, make_result("b", location=None))
    assert [case.id for case in merge_runs([first, second], "x").suites[0].cases] == ["b", "a"]


def test_merge__policy__is_theirs_only_where_all_had_the_same() -> None:
    strict, easy = RunPolicy(fail_on=("regressions",)), RunPolicy(fail_on=("never",))
    a, b = make_result("a"), make_result("b")
    assert merge_runs([part(1, 2, a, policy=strict), part(2, 2, b, policy=strict)], "x").policy == strict
    jobs = [make_run(make_suite_result([one]), policy=policy) for one, policy in ((a, strict), (b, easy))]
    assert merge_runs(jobs, "x").policy is None


@pytest.mark.parametrize(
    ("one", "other", "whole"),
    [
        (EvaluationSetup(trials=3), EvaluationSetup(trials=3), EvaluationSetup(trials=3)),
        (EvaluationSetup(trials=3), EvaluationSetup(trials=1), None),
        (EvaluationSetup(trials=3), None, None),
        (None, None, None),
        (
            EvaluationSetup(trials=3),
            EvaluationSetup(trials=3, recording="a.jsonl"),
            EvaluationSetup(trials=3, recording="a.jsonl"),
        ),
        (
            EvaluationSetup(trials=3),
            EvaluationSetup(trials=1, recording="a.jsonl"),
            EvaluationSetup(recording="a.jsonl"),
        ),
        (None, EvaluationSetup(recording="a.jsonl"), EvaluationSetup(recording="a.jsonl")),
    ],
    ids=["alike", "unlike", "one-unknown", "none", "recorded", "unlike-and-recorded", "unknown-and-recorded"],
)
def test_merge__how_parts_were_measured__is_what_they_agree_on_and_what_was_recorded(one, other, whole) -> None:
    jobs = [(make_result("a"), one), (make_result("b"), other)]
    runs = [make_run(make_suite_result([case]), setup=how) for case, how in jobs]
    assert merge_runs(runs, "x").setup == whole


def judged_part(index: int, case_id: str):
    """A part that was compared with a branch that knows both cases."""
    run = make_judged([make_executed(case_id, "FFF")], {"a": STEADY, "b": STEADY}, shard=Shard(index=index, count=2))
    assert run.comparison is not None
    return run


def test_merge__what_was_known_of_the_cases__is_known_of_the_whole() -> None:
    first, second = judged_part(1, "a"), judged_part(2, "b")
    whole = merge_runs([first, second], "x").comparison
    assert whole is not None
    assert [change.case_id for change in whole.changes] == ["a", "b"]
    assert whole.evidence == first.comparison.evidence
    assert (whole.suite_finding, whole.notes) == (None, ())


def test_merge__part_that_was_compared_with_nothing__nothing_is_known_of_the_whole() -> None:
    assert merge_runs([judged_part(1, "a"), part(2, 2, make_result("b"))], "x").comparison is None


def test_merge__shards_that_read_responses_differently__belong_to_no_run() -> None:
    """Another address is another machine; another setting measures something else."""
    here, there, otherwise = (
        TargetIdentity(
            name="agent",
            provider="http",
            identity="http://a/",
            fingerprint=value,
            setup=(SettingValue(name=name, value=value, role=role),),
        )
        for name, value, role in (
            ("url", "1", SettingRole.LOCATION),
            ("url", "2", SettingRole.LOCATION),
            ("responsePath", "3", None),
        )
    )
    first = part(1, 2, make_result("a"), target=here)
    assert "url 1 → 2" in merge_runs([first, part(2, 2, make_result("b"), target=there)], "joined").warnings[0]
    with pytest.raises(GateError) as caught:
        merge_runs([first, part(2, 2, make_result("b"), target=otherwise)], "joined")
    assert "target agent: responsePath not set → 3" in caught.value.problems[0].message


def test_merge__jobs_that_reused_suites__keeps_their_origins_and_sums_up_what_ran() -> None:
    origin = ReusedResult(source=ReuseSource.BASELINE, run_id="main", timestamp="2026-11-19T10:00:00Z")
    decision = SuiteDecision(suite="a.yaml", reused=origin)
    reused = make_suite_result([make_result("a", cost_usd=4.0)], eval_file="a.yaml", reused=origin)
    executed = make_suite_result([make_result("b", cost_usd=0.5)], eval_file="b.yaml")
    summaries = (
        ReuseSummary(suites=(decision,), saved_executions=1, saved_usd=4.0),
        ReuseSummary(off=ReuseOff.OTHER_EVENT),
    )
    runs = [make_run(one, reuse=summary) for one, summary in zip((reused, executed), summaries, strict=True)]

    run = merge_runs(runs, "joined")

    assert [suite.reused for suite in run.suites] == [origin, None]
    assert (run.summary.total_cases, run.summary.estimated_cost_usd) == (2, 0.5)
    assert run.reuse == summaries[0]
    assert run.evaluated_state is None


def test_merge__shards_of_a_run_with_measures__reused_nothing_for_that_reason() -> None:
    parts = [
        part(number, 2, make_result(str(number)), reuse=ReuseSummary(off=ReuseOff.SELECTED_CASES)) for number in (1, 2)
    ]
    assert merge_runs(parts, "joined").reuse == ReuseSummary(off=ReuseOff.SELECTED_CASES)


def test_merge__only_a_part_of_a_suite_was_reused__counts_as_executed() -> None:
    origin = ReusedResult(source=ReuseSource.BASELINE, run_id="main", timestamp="2026-11-19T10:00:00Z")
    runs = [
        make_run(make_suite_result([make_result("a")], reused=origin)),
        make_run(make_suite_result({"b": "passed"})),
    ]
    assert merge_runs(runs, "joined").suites[0].reused is None
