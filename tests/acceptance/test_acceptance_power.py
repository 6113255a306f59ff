"""What a suite can see, from runs on disk to words: `eval-gate power`, the console and the record it speaks of."""

import json

from eval_gate.config.policy import DEFAULT_RERUNS
from tests.support.world import GATE, World, words

STEADY = "P" * 8
FLAKED = "F" + STEADY[1:]
FLAKY = " ".join([FLAKED, STEADY, FLAKED, STEADY, FLAKED, STEADY, FLAKED, STEADY, STEADY])
"""Nine runs of main, in four of which the first case failed; it passed in the newest."""


def figures(world: World, *arguments: str) -> dict:
    done = world.gate("power", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_power__steady_cases__says_what_more_of_everything_would_buy(world) -> None:
    made = world(f"{STEADY}*4")
    done = made.gate("power", "main")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "8 cases, 4 runs in the history, up to 6 re-runs of a suspected regression"
    labels = ["current history", "with 8 runs in the history", "with 16 such cases", "with up to 12 re-runs"]
    table = [line for line in lines if line.startswith(("current history", "with "))]
    assert [line.split("   ")[0].strip() for line in table] == labels
    assert all(line.split()[-1] in {"point", "points"} and " 100 %" in line for line in table)
    assert "cannot be gated" not in done.stdout
    rows = figures(made, "main")["rows"]
    now, longer, larger = (row["smallestLossPoints"] for row in rows[:3])
    assert (longer < now, larger < now) == (True, True)
    assert [row["cases"] for row in rows] == [8, 8, 16, 8]
    assert [row["runs"] for row in rows] == [4, 8, 4, 4]


def test_power__something_supposed__is_the_one_row_beside_the_record(world) -> None:
    made = world(f"{STEADY}*4")
    supposed = figures(made, "main", "--history-runs", "20", "--cases", "400", "--reruns", "2")["rows"]
    assert [(one["runs"], one["cases"], one["reruns"]) for one in supposed] == [(4, 8, 6), (20, 400, 2)]
    assert supposed[1]["smallestLossPoints"] < supposed[0]["smallestLossPoints"]


def test_power__a_case_that_flakes_too_much__is_listed_with_what_would_help_and_named_by_the_next_run(world) -> None:
    made = world(FLAKY)
    assert figures(made, "main")["ungated"] == []
    seen = made.here(STEADY, "--verbose", reruns="3")
    would = (
        "gs-000 fails 4 of 9 in the history: 4 failures in a row would not confirm a regression, 8 would; "
        "fix it, quarantine it"
    )
    assert f"cannot be gated: {would}, or give it more re-runs or trials" in seen.text
    assert "With 9 runs of history, the gate finds " in seen.text
    assert "the gate finds a drop of every case's pass rate by" in seen.text
    assert "cannot be gated" not in seen.report, "the comment has what somebody has to look at"
    assert "cannot be gated" not in made.here(STEADY, reruns="3").text, "only --verbose has it"


def test_power__a_run_with_fewer_re_runs__lists_the_case_they_cannot_gate(world) -> None:
    made = world(FLAKY)
    done = made.run(STEADY, *words(GATE | {"--reruns": "3", "--baseline": "main", "--output-dir": "main"}))
    assert done.returncode == 0, done.stderr
    (one,) = figures(made, "main")["ungated"]
    assert (one["caseId"], one["reason"], one["failures"], one["runs"], one["executions"]) == (
        "gs-000",
        "flaky",
        4,
        10,
        4,
    )
    assert one["needed"] > 4
    said = made.gate("power", "main").stdout
    assert "1 case cannot be gated, even if it always fails:\n  gs-000 fails 4 of 10 in the history" in said
    made.accept(0, kind="quarantine")
    aside = figures(made, "main")
    assert (aside["ungated"], aside["quarantined"]) == ([], 1)


def test_power__no_re_runs__says_what_cannot_be_said(world) -> None:
    made = world(f"{STEADY}*4")
    again = made.run(STEADY, *words(GATE | {"--reruns": "0", "--baseline": "main"}))
    assert again.returncode == 0, again.stderr
    done = made.gate("power")
    assert "no re-runs" in done.stdout.splitlines()[0]
    assert "Without re-runs, every failure of a case that passed before counts" in done.stdout
    first, *_, more = figures(made)["rows"]
    assert (first["found"]["half"], first["smallestLossPoints"], more["reruns"]) == (0.5, None, DEFAULT_RERUNS)


def test_power__before_the_first_run__says_that_there_is_no_record(empty) -> None:
    done = empty.gate("power")
    assert done.returncode == 2
    assert "no history yet: evals/results contains no complete run" in done.stderr
