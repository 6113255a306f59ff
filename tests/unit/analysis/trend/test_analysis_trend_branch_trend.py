"""The trend of a branch: what each run counts, and which run broke and fixed a case."""

from __future__ import annotations

import pytest

from eval_gate.analysis.trend.branch_trend import Trend, find_trend
from eval_gate.model.case import PassRule
from eval_gate.model.result import RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.results.history import EMPTY_HISTORY, encode_history, parse_history
from eval_gate.results.run_history import join_histories
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_suite_result
from tests.support.reuse import build_history, make_branch_runs

STATUS = {"P": "passed", "F": "failed", "E": "error"}


def runs_of(*suites: str) -> list[RunResult]:
    """The runs of a branch, oldest first: a tape for each of the two suites, which have a case each."""
    tapes = suites if len(suites) > 1 else (suites[0], "P" * len(suites[0]))
    return make_branch_runs(
        zip(*tapes, strict=True), lambda file, word: [make_result(file, STATUS.get(word, "passed"), cost_usd=0.02)]
    )


def trend_of(*suites: str) -> Trend:
    trend = find_trend(parse_history(encode_history(build_history(runs_of(*suites))), "it"))
    assert trend is not None
    return trend


def breaks_of(tape: str) -> list[tuple[str, str, str, str | None, int]]:
    return [
        (
            one.last_good.run_id,
            one.first_bad.run_id,
            one.last_bad.run_id,
            one.fixed and one.fixed.run_id,
            one.failed_runs,
        )
        for one in trend_of(tape).breaks
    ]


@pytest.mark.parametrize(
    ("tape", "breaks", "flaky"),
    [
        ("PPPPPPPP", [], []),
        ("PPPPPPFFPPP", [("r5", "r6", "r7", "r8", 2)], []),
        ("PPPPPPFFFPFF", [("r5", "r6", "r11", None, 5)], []),
        ("PPPF", [("r2", "r3", "r3", None, 1)], []),
        ("PPPPPPFFPPPPPPPPFPPPFP", [("r5", "r6", "r7", "r8", 2)], [(2, 14)]),
        ("PPPPPFPPPP", [], [(1, 10)]),
        ("PFPPFPPFF", [], [(4, 9)]),
        ("FFFF", [], []),
        ("PPPPPPEE", [], []),
    ],
)
def test_find_trend__breaks_of_a_tape__are_what_chance_does_not_explain(tape, breaks, flaky) -> None:
    assert breaks_of(tape) == breaks
    assert [(counts.failures, counts.executions) for _, counts in trend_of(tape).flaky] == flaky


def test_find_trend__breaks_several__those_that_fail_now_come_first_then_the_newest() -> None:
    trend = trend_of("PPPPPPFFPPPPPPPFFPPPPP", "PPPPPPPPPPPPPPPPPPPPFF")
    assert [(one.first_bad.run_id, one.fixed is None) for one in trend.breaks] == [
        ("r20", True), ("r15", False), ("r6", False)
    ]  # fmt: skip


def test_find_trend__runs_reused_results__count_as_those_of_the_run_that_executed_them() -> None:
    trend = trend_of("PF==P", "PPP=P")
    assert [(one.run.run_id, one.passed, one.ran, one.reused) for one in trend.runs] == [
        ("r0", 2, 2, 0), ("r1", 1, 2, 0), ("r2", 1, 2, 1), ("r4", 2, 2, 0)
    ]  # fmt: skip
    assert [one.run.figures.cost_usd for one in trend.runs if one.run.figures] == [0.04] * 4


def test_find_trend__runs_without_a_score__ran_and_did_not_pass() -> None:
    (one,) = trend_of("E").runs
    assert (one.passed, one.ran, one.pass_rate) == (1, 2, 0.5)


def test_find_trend__runs_warm_up_rounds__are_executions_of_their_run() -> None:
    first, second = runs_of("PF")
    rounds = [replace(second, run_id=f"w{number}") for number in range(5)]
    trend = find_trend(build_history([first, second]).with_warm_up(second, rounds, first))
    assert trend is not None
    assert [(one.run.run_id, one.rounds) for one in trend.runs] == [("r0", 0), ("r1", 5)]
    (broken,) = trend.breaks
    assert (broken.last_good.run_id, broken.fixed, broken.failed_runs) == ("r0", None, 1)


def test_find_trend__runs_incomplete_partial_or_of_another_target__are_no_points() -> None:
    one, two, three, four = runs_of("PPPP")
    other = TargetIdentity(name="other", provider="http", identity="http://localhost:1/chat")
    odd = [replace(one, target=other), replace(three, complete=False), replace(four, partial=True)]
    trend = find_trend(build_history([odd[0], two, *odd[1:]]))
    assert trend is not None
    assert [one.run.run_id for one in trend.runs] == ["r1"]
    assert find_trend(build_history(odd[1:])) is None
    assert find_trend(EMPTY_HISTORY) is None


@pytest.mark.parametrize(
    ("rule", "trials", "passed", "broken", "flaky"),
    [
        (PassRule(trials=4, passes=4), "PPPF", 0, 1, 0),
        (PassRule(trials=4, passes=1), "PFFF", 1, 0, 0),
        (PassRule(trials=4, passes=3), "PPFE|P", 1, 0, 0),
        (None, "PFFF", 0, 1, 0),
    ],
)
def test_find_trend__runs_case_with_a_pass_rate__counts_by_its_rate(rule, trials, passed, broken, flaky) -> None:
    """Also in what is flaky and what broke, and in histories that are joined."""
    first, _, reruns = trials.partition("|")
    runs = runs_of("P" * 9)
    newest = make_result("a", trials=first + reruns, reruns=len(reruns), pass_rule=rule)
    good = make_result("a", trials="P" * 4, pass_rule=rule)
    runs = [
        replace(run, suites=(make_suite_result([newest if run is runs[-1] else good]), *run.suites[1:])) for run in runs
    ]
    whole = parse_history(encode_history(build_history(runs)), "it")
    for history in (whole, join_histories(build_history(runs[5:]), [build_history(runs[:5])])):
        trend = find_trend(history)
        assert trend is not None
        assert (trend.runs[-1].passed - 1, len(trend.breaks), len(trend.flaky)) == (passed, broken, flaky)


def test_find_trend__runs_graded_case__passes_at_the_pass_score() -> None:
    run = make_baseline_run(make_suite_result([make_result("a", "failed", score=0.85, graded=True)]))
    trends = [find_trend(build_history([run]), score) for score in (1.0, 0.8)]
    assert [trend.runs[0].passed for trend in trends if trend] == [0, 1]
