"""What the reports say while the history is short: what the gate finds and misses, and how many runs change that."""

import json
import re

import pytest

from tests.support.world import expect, plain

STEADY = "P" * 8
SEEN = re.compile(r"With \d+ runs? of history, the gate finds [^.]*\. [^.]*\.")


def first_runs(text: str) -> list[str]:
    """The sentences about a short history in a report, with the line breaks of a console undone."""
    return SEEN.findall(plain(" ".join(text.replace("**", "").split())))


DEAD = "the gate finds all cases that start failing every time, but only"
WORDS = {
    1: f"With 1 run of history, {DEAD} 1 of 20 that start failing half of the time, and hardly any that start failing "
    "1 time in 5. After 9 more such runs on main, it finds all, 1 of 2 and 1 of 10 of them.",
    3: f"With 3 runs of history, {DEAD} 1 of 4 that start failing half of the time, and 1 of 100 that start failing 1 "
    "time in 5. After 7 more such runs on main, it finds all, 1 of 2 and 1 of 10 of them.",
    9: f"With 9 runs of history, {DEAD} 1 of 2 that start failing half of the time, and 1 of 10 that start failing 1 "
    "time in 5. 1 more such run on main does not change this.",
}


@pytest.mark.parametrize("runs", [1, 3, 9, 10])
def test_first_runs__comment_of_a_pass__says_once_above_the_fold_what_the_gate_finds(action, runs) -> None:
    action.main(f"{STEADY}*{runs}")
    seen = action.here(STEADY)
    expect(seen, 0, "no regressions")
    wanted = [WORDS[runs]] if runs in WORDS else []
    assert first_runs(seen.report) == first_runs(seen.head) == wanted
    assert first_runs(seen.ended.summary) == wanted
    loss = "The gate finds a drop of every case's pass rate by"
    assert (loss in plain(seen.ended.summary)) is (runs in WORDS), "the figure that the sentence above leaves out"
    assert first_runs(seen.text) == wanted, "the log"


def test_first_runs__no_baseline__says_no_baseline_and_no_figure(action) -> None:
    seen = action.here(STEADY)
    assert "no baseline yet" in seen.title
    assert first_runs(seen.report + seen.ended.summary + seen.text) == []


def test_first_runs__regression__is_in_the_fold_because_the_failure_comes_first(action) -> None:
    action.main(f"{STEADY}*3")
    seen = action.here("F" + STEADY[1:])
    expect(seen, 1, "1 regression", regression=[0])
    assert (first_runs(seen.head), first_runs(seen.report)) == ([], [WORDS[3]])
    assert first_runs(seen.ended.summary) == [WORDS[3]]


def test_first_runs__no_case_is_comparable__says_that_and_no_figure(world) -> None:
    made = world(f"{STEADY}*3")
    for case in made.cases:
        case["input"]["message"] = f"please {case['input']['message']}"
    made.write()
    seen = made.here(STEADY)
    assert "The baseline is not comparable" in plain(seen.report)
    assert first_runs(seen.report + seen.text) == []


def test_first_runs__command_line__says_in_console_report_and_page_what_ten_runs_then_show(world) -> None:
    made = world(f"{STEADY}*3")
    seen = made.here(STEADY, "--report", "html=page.html")
    in_history = [WORDS[3].replace("on main", "in the history")]
    assert first_runs(seen.text) == first_runs(seen.head) == in_history
    assert first_runs((made.folder / "page.html").read_text()) == in_history
    made.main(f"{STEADY}*7")
    power = made.gate("power", "main", "--json")
    ten = json.loads(power.stdout)["rows"][0]["found"]
    assert (ten["always"], round(ten["half"], 1), round(ten["oneInFive"], 1)) == (1.0, 0.4, 0.1)
    assert first_runs(made.here(STEADY).text) == []


def test_first_runs__no_re_runs__says_nothing_because_history_decides_nothing(world) -> None:
    seen = world(f"{STEADY}*3").here(STEADY, reruns="0")
    assert first_runs(seen.text + seen.report) == []
