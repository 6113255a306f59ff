"""One judge: the same run judged again gets the same verdict in the same words (3 and 4 of what was wrong)."""

from __future__ import annotations

import json

import pytest

from tests.support.offered import offered
from tests.support.world import expect

GOOD = "PPPPPPPP*4"
RUNS = {
    "green": "PPPPPPPP",
    "dead": "FPPPPPPP",
    "not sure": "F(P)PPPPPPP",
    "crash": "CPPPPPPP",
    "all crash": "CCCCCCCC",
    "drop": "F(P)F(P)F(P)F(P)F(P)PPP",
    "refused": "LPPPPPPP",
    "dead and refused": "FLLPPPPP",
    "re-runs refused": "F(L)PPPPPPP",
}


def same(one, other) -> None:
    """Exit code, verdict, classes, grounds, and the words above the fold."""
    assert one.same == other.same, f"{one.text}\n=== and ===\n{other.text}"
    assert one.title == other.title
    assert _lines(one) == _lines(other)


def _lines(seen) -> list[str]:
    """Only `run` knows the command that made it."""
    return [line for line in seen.head.splitlines() if line and not line.startswith("Reproduce: ")]


@pytest.mark.parametrize("letters", RUNS.values(), ids=RUNS)
def test_compare__of_a_run_that_was_judged__says_the_same(world, letters) -> None:
    made = world(GOOD)
    first = made.here(letters)
    same(first, made.compare())


@pytest.mark.parametrize("letters", [RUNS["dead"], RUNS["not sure"], RUNS["drop"]], ids=["dead", "not sure", "drop"])
def test_compare__run_that_was_made_without_a_baseline__says_the_same_as_if_it_had_been(world, letters) -> None:
    made = world(GOOD)
    with_baseline = made.here(letters)
    made.here(letters, baseline="")
    without = made.compare()
    assert (without.code, without.classes) == (with_baseline.code, with_baseline.classes), without.text
    assert without.title == with_baseline.title


def test_compare__run_without_reruns__says_what_is_missing(world) -> None:
    made = world(GOOD)
    made.here(RUNS["not sure"], baseline="", reruns="0")
    again = made.compare()
    expect(again, 1, "1 regression", regression=[0])
    assert made.script.asked == [*range(8)] or sorted(made.script.asked) == [*range(8)]


def test_compare__false_alarm_rate_and_pass_score_of_the_run__are_what_it_is_judged_by_again(world) -> None:
    made = world(GOOD)
    first = made.here(RUNS["dead"], false_alarm_rate="0.2", must_pass="gs-001", allowed_regressions="1", max_errors="2")
    expect(first, 0, "regression", regression=[0])
    same(first, made.compare())


def test_compare__with_other_rules__says_so_by_the_verdict(world) -> None:
    made = world(GOOD)
    assert made.here(RUNS["dead"], allowed_regressions="1").code == 0
    again = made.compare("latest", "--allowed-regressions", "0")
    expect(again, 1, "1 regression", regression=[0])


# --- parts


def shards(made, letters: str, *options: str, count: int = 4, leave_out: int = 0) -> list[str]:
    """A run in parts, each judged by itself; where they are."""
    folders = []
    for part in range(1, count + 1):
        if part != leave_out:
            folder = f"shard-{part}"
            given = {"--baseline": "main", "--shard": f"{part}/{count}", "--output-dir": folder}
            rules = {"--fail-on": "regressions", "--reruns": "6"}
            flat = [word for pair in (given | rules).items() for word in pair]
            made.run(letters, *flat, *options)
            run = json.loads((made.folder / folder / "latest.json").read_text())["path"]
            folders.append(f"{folder}/{run}")
    return folders


@pytest.mark.parametrize("letters", [RUNS["dead"], RUNS["drop"], "FPPPCPPF(P)"], ids=["dead", "drop", "mixed"])
def test_four_shards__merged_and_compared__the_same_as_one_run(world, letters) -> None:
    made = world(GOOD)
    whole = made.here(letters)
    parts = shards(made, letters)
    merged = made.gate("merge", *parts)
    assert merged.returncode == 0, merged.stderr
    again = made.compare()
    assert again.json["summary"]["totalCases"] == 8
    assert (again.code, again.classes) == (whole.code, whole.classes), f"{whole.text}\n{again.text}"
    assert again.title == whole.title


def test_four_shards__one_is_missing_and_nothing_fails__could_not_be_decided(world) -> None:
    made = world(GOOD)
    merged = made.gate("merge", *shards(made, "PPPPPPPP", leave_out=3))
    assert "shard 3 of 4 is missing" in merged.stderr
    again = made.compare()
    assert (again.code, again.json["verdict"]["outcome"]) == (3, "inconclusive"), again.text
    assert "inconclusive" in again.title
    assert "shard 3 of 4 is missing" in again.head
    assert "removed" not in (*again.classes.values(), again.head)


def test_four_shards__one_is_missing_and_another_has_a_regression__is_red(world) -> None:
    made = world(GOOD)
    parts = shards(made, "FFPPPPPP")
    # which shard a case is in is decided by what it took
    gone = next(part for part in parts if '"id":"gs-000"' not in (made.folder / part).read_text().replace(" ", ""))
    assert made.gate("merge", *(part for part in parts if part != gone)).returncode == 3
    again = made.compare()
    assert (again.code, again.classes["gs-000"]) == (1, "regression"), again.text
    assert "regression" in again.title
    assert f"shard {gone.partition('/')[0][-1]} of 4 is missing" in again.text


# --- again, resumed


def test_rerun_line__of_a_red_run__judges_these_cases_with_the_same_bar(world) -> None:
    made = world(GOOD)
    first = made.here("FFPPPPPP")
    words = offered("rerun:", first.text)
    made.script.begin("FFPPPPPP")
    done = made.gate(*words)
    again = made.seen(done)
    assert again.code == first.code == 1
    assert again.json["comparison"]["evidence"] == first.json["comparison"]["evidence"]
    for number in (0, 1):
        grounds = [seen.change(number)["grounds"] | {"repeats": None} for seen in (again, first)]  # it tells of times
        assert grounds[0] == grounds[1]
    assert again.json["baselineRunId"] == first.json["baselineRunId"]


def test_resumed_run__the_agent_was_gone_half_way__is_judged_as_one_run(world) -> None:
    made = world(GOOD)
    whole = made.here("FPPPPPPP")
    cut = made.here("FPPRPPPP", max_errors="0")
    assert cut.code == 1
    again = made.here("FPPPPPPP", resume=cut.json["runId"])
    assert (again.code, again.classes) == (whole.code, whole.classes), again.text
    same(again, made.compare(cut.json["runId"]))


def test_resumed_run__red_case_is_not_asked_until_it_passes(world) -> None:
    """Going on with a run that was decided does not give its failures another chance."""
    made = world(GOOD)
    first = made.here("FPPPPPPP")
    again = made.here("PPPPPPPP", resume=first.json["runId"])
    assert made.script.asked == []
    same(first, again)


def test_resumed_run__in_doubt_when_its_reruns_broke__asks_for_them_again(world) -> None:
    made = world(GOOD)
    first = made.here("F(L)PPPPPPP")
    expect(first, 3, "inconclusive", first="unconfirmed-regressions", errored=[0])
    again = made.here("FPPPPPPP", resume=first.json["runId"])
    expect(again, 1, "1 regression", regression=[0])
    assert set(made.script.asked) == {0}


def test_resumed_run__had_asked_for_more_executions__says_of_none_of_them_that_it_was_a_rerun(world) -> None:
    made = world("PPPP*2")
    cut = made.here("PPPC", trials="3", reruns="0")
    again = made.here("PPPP", resume=cut.json["runId"], reruns="0")
    cases = [case for suite in again.json["suites"] for case in suite["cases"]]
    assert [len(case["trials"]) for case in cases] == [3, 3, 3, 1]
    assert [case.get("reruns", 0) for case in cases] == [0] * 4
    assert (again.code, "re-run" in again.text + again.report) == (0, False), again.text
