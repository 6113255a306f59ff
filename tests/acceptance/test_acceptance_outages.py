"""Crashes, refusals and time-outs: on main, here, of some cases and of all of them (1 and 6 of what was wrong)."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.support.agents import vanishing_agent
from tests.support.world import NOBODY, expect

GOOD = "PPPPPPPP*4"


# --- what happens here


def test_everything_answers_500__main_answered_it__is_a_regression_with_the_outage_as_the_other_reading(world) -> None:
    seen = world(GOOD).here("CCCCCCCC")
    expect(seen, 1, "the agent answered 500 in 8 of 8 cases (usually 0)", first="regressions",
           says=["it was down during the run"], regression=range(8))  # fmt: skip
    assert "all-agent-errors" in seen.reasons
    assert seen.json["summary"]["passRate"] is None


def test_nobody_listens__main_answered_it__could_not_be_decided(world) -> None:
    seen = world(GOOD).here("PPPPPPPP", url=NOBODY, concurrency="1")
    expect(seen, 3, "inconclusive", says=["The agent did not start", "Connection refused"], not_run=range(8))


def test_nobody_listens_any_more__main_answered_it__could_not_be_decided(world) -> None:
    with vanishing_agent() as url:
        seen = world(GOOD).here("PPPPPPPP", url=url, concurrency="1")
    expect(seen, 3, "inconclusive", first="no-scored-cases", says=["why it stopped accepting connections"],
           errored=range(5), not_run=[5, 6, 7])  # fmt: skip


def test_everything_is_refused_with_429__could_not_be_decided(world) -> None:
    seen = world(GOOD).here("LLLLLLLL")
    assert "regression" not in seen.classes.values()
    assert (seen.code, seen.json["verdict"]["outcome"]) == (3, "inconclusive"), seen.text
    assert "inconclusive" in seen.title


def test_everything_hangs__ends_early_and_could_not_be_decided(world) -> None:
    made, begun = world(GOOD), time.monotonic()
    seen = made.here("HHHHHHHH", timeout_ms="300", concurrency="1")
    expect(seen, 3, "inconclusive", first="no-scored-cases", errored=range(5), not_run=[5, 6, 7])
    assert len(made.script.asked) <= 5
    assert time.monotonic() - begun < 30
    assert "in a row" in seen.head


def test_two_of_five_cases_are_too_late__is_a_slow_provider_and_not_as_many_regressions(world) -> None:
    seen = world("P" * 20 + "*6").here("PPHPH" * 4, timeout_ms="200")
    late = [number for number in range(20) if number % 5 in {2, 4}]
    said = "8 of 20 first executions ended in an agent error, usually 0: an outage, or the change"
    expect(seen, 3, "more agent errors than usual", says=[said], first="agent-errors", errored=late)
    assert seen.change(2)["grounds"]["kind"] == "agent_errors"


def test_a_few_are_late_and_answer_when_asked_again__is_one_finding_about_the_run(world) -> None:
    """One in eight: six are late at first, of which one is late once more."""
    letters = "PPPPPPPH(P)" * 5 + "PPPPPPPH(HP)"
    seen = world("P" * 48 + "*6").here(letters, timeout_ms="1000")
    said = "6 of 48 first executions ended in an agent error, usually 0: an outage, or the change"
    expect(seen, 3, "more agent errors than usual", says=[said], first="agent-errors")


def test_one_tool_hangs__whenever_it_is_asked__its_cases_are_the_regressions(world) -> None:
    letters = "P" * 42 + "HHHHHH"
    seen = world("P" * 48 + "*6").here(letters, timeout_ms="200", concurrency="8")
    assert seen.code == 1, seen.text
    assert "regressions" in seen.title


def test_one_case_hangs__main_answered_it__is_a_regression_like_any_other_agent_error(world) -> None:
    expect(world(GOOD).here("PPHPPPPP", timeout_ms="200"), 1, "1 regression", first="regressions",
           says=["agent error"], regression=[2])  # fmt: skip


def test_five_of_sixteen_cases_hang__whenever_they_are_asked__are_the_regressions(world) -> None:
    """Two re-runs of each show that these cases hang; after one it could be a slow day."""
    seen = world("P" * 16 + "*4").here("P" * 11 + "HHHHH", timeout_ms="200")
    expect(seen, 1, "the agent timed out in 5 of 16 cases (usually 0)", first="regressions", regression=range(11, 16))


def test_many_are_late_and_one_is_wrong__is_red_for_that_one(world) -> None:
    seen = world("P" * 20 + "*6").here("F" + "PPHPH" * 3 + "PPHP", timeout_ms="200")
    assert (seen.code, seen.classes["gs-000"]) == (1, "regression"), seen.text
    assert list(seen.classes.values()).count("regression") == 1


def test_half_of_the_cases_crash__they_are_the_regressions(world) -> None:
    seen = world(GOOD).here("CCCCPPPP")
    expect(seen, 1, "the agent answered 500 in 4 of 8 cases (usually 0)", first="regressions", regression=range(4))
    assert (seen.json["summary"]["errored"], seen.json["summary"]["passed"]) == (4, 4)


def test_half_of_the_cases_are_refused__nothing_is_a_regression_and_the_gate_does_not_pass(world) -> None:
    seen = world(GOOD).here("LLLLPPPP")
    expect(seen, 3, "inconclusive", says=["4 cases with the agent unreachable"], first="max-errors", errored=range(4))


def test_more_than_half_are_refused__could_not_be_decided(world) -> None:
    seen = world(GOOD).here("LLLLLPPP")
    expect(seen, 3, "inconclusive", first="too-few-scored-cases", errored=range(5))


def test_one_case_crashes_once__passes_by_its_first_response(world) -> None:
    seen = world(GOOD).here("C(P)PPPPPPP")
    expect(seen, 0, "no regressions")
    assert seen.json["comparison"]["errorFinding"]["errors"] == 1


def test_one_case_is_broken_off_always__is_a_regression(world) -> None:
    expect(world(GOOD).here("RPPPPPPP"), 1, "1 regression", regression=[0])


def test_new_case_crashes__is_an_error_that_main_does_not_have(world) -> None:
    made = world(GOOD)
    made.cases.append({"id": "gs-new", "input": {"message": "ask 8"}, "expect": {"responseContains": ["ok"]}})
    made.write()
    seen = made.here("PPPPPPPPC")
    expect(seen, 1, "1 agent error", first="max-errors", added=["gs-new"])


# --- what happened on main


def test_one_500_on_main__the_pull_request_breaks_exactly_this_case__is_red(world) -> None:
    """The case is held against the newest run that judged it."""
    made = world("PPPPPPPP*4 CPPPPPPP")
    seen = made.here("FPPPPPPP")
    expect(seen, 1, "1 regression", regression=[0])
    assert seen.change(0)["comparedWith"]["runId"] != seen.json["baselineRunId"]


def test_outage_is_mains_newest_run__everything_fails_here__is_red_and_the_outage_is_named(world) -> None:
    made = world("PPPPPPPP*4 CCCCCCCC")
    seen = made.here("FFFFFFFF")
    expect(seen, 1, "8 regressions", says=["cannot be the baseline", "Compared with"],
           regression=range(8))  # fmt: skip
    (unmeasured,) = seen.json["comparison"]["baseline"]["unscoredRuns"]
    assert (unmeasured["scored"], unmeasured["cases"]) == (0, 8)


def test_outage_is_mains_newest_run__nothing_changed_here__is_green_and_the_outage_is_named(world) -> None:
    expect(world("PPPPPPPP*4 CCCCCCCC").here("PPPPPPPP"), 0, "no regressions", says=["cannot be the baseline"])


@pytest.mark.parametrize("outage", ["CCCCCCCC", "C(P)C(P)C(P)C(P)C(P)C(P)PP"], ids=["whole", "most cases recover"])
def test_outage_is_named_as_the_baseline_after_one_run__one_case_is_dead_here__is_red(world, outage) -> None:
    """Agent errors are no failures in the history: with one run before, every case would seem to fail half of the
    time, and no number of re-runs would be proof."""
    made = world(f"PPPPPPPP {outage}")
    newest = json.loads((made.folder / made.MAIN / "latest.json").read_text())["path"]
    seen = made.here("FPPPPPPP", baseline=f"{made.MAIN}/{newest}")
    expect(seen, 1, "1 regression", regression=[0])
    assert seen.change(0)["caseHistory"]["counts"]["failures"] == 0


def test_one_crash_on_main_and_the_same_here__is_still_crashing_and_does_not_block(world) -> None:
    seen = world("PPPPPPPP*4 CPPPPPPP").here("CPPPPPPP")
    expect(seen, 0, "no regressions", still_errored=[0])


def test_one_crash_on_main_and_another_here__only_the_other_counts(world) -> None:
    seen = world("PPPPPPPP*4 CPPPPPPP").here("CCPPPPPP")
    expect(seen, 1, "1 regression", regression=[1], still_errored=[0])


def test_crash_on_main_is_fixed_here__is_compared_with_the_run_that_judged_it(world) -> None:
    expect(world("PPPPPPPP*4 CPPPPPPP").here("PPPPPPPP"), 0, "no regressions")


def test_main_has_crashed_ever_since__passes_here__has_nothing_to_be_compared_with(world) -> None:
    seen = world("CPPPPPPP*2").here("PPPPPPPP")
    expect(seen, 0, "no regressions", incomparable=[0])
    assert "no earlier run has a score for it" in seen.change(0)["reason"]


# --- the same in a pull request


def test_pull_request__outage_on_main__compared_with_the_run_before_it(action) -> None:
    good, outage = action.main("PPPP"), action.main("CCCC")
    seen = action.here("FFFF")
    expect(seen, 1, "4 regressions", says=[outage[0][:7], good[0][:7], "cannot be the baseline"], regression=range(4))
    assert seen.ended.outputs["baseline-sha"] == good[0]


def test_pull_request__half_of_the_cases_crash__red_and_never_called_infrastructure(action) -> None:
    action.main("PPPP*3")
    seen = action.here("CCPP")
    expect(seen, 1, "2 regressions", says=["this PR agent error"], regression=[0, 1])
    assert re.search(r"agent error in (\d) of \1 here, responded in 3 of 3 on main", seen.report)
    assert "says nothing about" not in seen.report


def test_pull_request__agent_is_not_there__could_not_decide(action) -> None:
    action.main("PPPP*2")
    seen = action.here("PPPP", url=NOBODY)
    expect(seen, 3, "inconclusive", says=["The agent did not start", "Connection refused"], not_run=range(4))


def test_pull_request__agent_goes_away_during_the_run__could_not_decide(action) -> None:
    action.main("PPPP*2")
    with vanishing_agent() as url:
        seen = action.here("PPPP", url=url)
    expect(seen, 3, "inconclusive", says=["why it stopped accepting connections"], errored=range(4))
