"""What passed before and has no result here is never green without a word: chosen away, renamed, gone, or held back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.support.world import World, cases_of, expect

GONE = "1 case that passes in the baseline was removed: `gs-000`"


def tagged(made: World) -> World:
    """Three cases with a tag that main's runs know, and one without it."""
    made.of_length("PPPP")
    for case in made.cases[:3]:
        case["tags"] = ["fast"]
    made.write()
    made.main("PPPP*2")
    return made


def another_tag(made: World) -> None:
    made.cases[0]["tags"] = ["slow"]
    made.write()


def another_tier(made: World) -> None:
    moved = made.cases.pop(0) | {"difficulty": "straightforward"}
    (made.folder / "evals" / "weather.labeled.json").write_text(json.dumps([moved]))
    made.write()


def another_id(made: World) -> None:
    made.cases[0] |= {"id": "other", "tags": []}
    made.write()


def deleted(made: World) -> None:
    del made.cases[0]
    made.write()


CHOICES = [("--tag", "fast"), ("--tier", "golden"), ("--case", "gs-*")]
ESCAPES: list[tuple[Callable[[World], None], tuple[str, str]]] = [
    *((deleted, choice) for choice in CHOICES),
    (another_tag, CHOICES[0]),
    (another_tier, CHOICES[1]),
    (another_id, CHOICES[0]),
    (another_id, CHOICES[2]),
]


@pytest.mark.parametrize(("escape", "choice"), ESCAPES)
def test_chosen_cases__one_that_was_among_them_broke_and_is_not_any_more__is_named_and_can_block(
    empty, escape, choice
) -> None:
    made = tagged(empty)
    escape(made)
    seen = made.here("FPPP", *choice)
    expect(seen, 0, "no regressions", says=[GONE], removed=[0])
    assert made.here("FPPP", *choice, fail_on="regressions,removed").code == 1
    again = made.compare()
    assert (again.code, again.classes["gs-000"]) == (1, "removed")
    must = made.here("FPPP", *choice, must_pass="gs-000")
    expect(must, 3, "inconclusive", first="missing-must-pass-result", removed=[0])
    assert "1 must-pass case has no result in this run: gs-000" in must.gate


def test_chosen_cases__that_were_not_among_them_before__are_only_counted(empty) -> None:
    made = tagged(empty)
    seen = made.here("PPPF", "--tag", "fast", fail_on="regressions,removed,changed")
    expect(seen, 0, "no regressions")
    assert "1 of the baseline's 4 cases was not selected for this run" in seen.report
    assert made.here("PPPF", "--tag", "fast", must_pass="gs-003").code == 3


@pytest.mark.parametrize("escape", [deleted, another_id])
@pytest.mark.parametrize("pattern", ["gs-000", "tag:critical"])
def test_must_pass__its_pattern_names_no_case_any_more__could_not_decide(empty, escape, pattern) -> None:
    """Whatever else runs: who wrote the pattern wants to hear of it, and takes it out where that is meant."""
    empty.of_length("PPPP")
    empty.cases[0]["tags"] = ["critical"]
    empty.write()
    empty.main("PPPP", "--must-pass", pattern)
    escape(empty)
    seen = empty.here("PPPP", must_pass=pattern)
    expect(seen, 3, "inconclusive", first="missing-must-pass-result", removed=[0] if escape is deleted else [])
    assert f"must-pass {pattern} matches no case in this run; in the baseline it matches gs-000" in seen.gate
    assert empty.here("PPPP").code == 0
    assert empty.here("PPPP", must_pass="gs-*" if escape is deleted else "*").code == 0


def test_renamed_into_a_quarantine__broken__is_a_regression(world) -> None:
    made = world("PPPP*2")
    made.accept("flaky-*", kind="quarantine")
    made.cases[0]["id"] = "flaky-0"
    made.write()
    seen = made.here("FPPP")
    expect(seen, 1, "1 regression", regression=["flaky-0"])
    assert "`flaky-*` matches no case of this run" in seen.head


def test_renamed_into_an_waived_id__broken__is_a_rule_loosened(world) -> None:
    made = world("PPPP*2")
    made.accept("known-0")
    made.cases[0]["id"] = "known-0"
    made.write()
    seen = made.here("FPPP")
    loosened = "`waiver` loosened: 1 renamed case: `gs-000` → `known-0`"
    expect(seen, 0, "1 regression waived", says=[loosened], regression=["known-0"])
    assert made.here("FPPP", fail_on="regressions,changed").code == 1


def test_renamed_after_it_was_quarantined__stays_so(world) -> None:
    made = world("PPPP*2")
    made.accept(0, kind="quarantine")
    made.cases[0]["id"] = "other"
    made.write()
    seen = made.here("FPPP")
    assert (seen.code, " loosened: " in seen.head) == (0, False), seen.text


def test_run_whose_clock_was_ahead__is_not_what_later_ones_are_compared_with(empty) -> None:
    made = empty
    made.of_length("PPPP")
    made.run("FPPP", "--fail-on", "never")
    record = made.record()
    record.write_text(re.sub(r'("timestamp": ")20\d\d', r"\g<1>2999", record.read_text()))
    made.run("PPPP", "--fail-on", "regressions")
    seen = made.here("FPPP", baseline="latest")
    expect(seen, 1, "1 regression", regression=[0])
    assert "has a timestamp in the future (2999-" in seen.report
    today = datetime.now(UTC).date().isoformat()
    assert f" of {today}" in seen.report
    assert f" of {today}" in next(line for line in seen.text.splitlines() if line.startswith("baseline "))


JUDGE = r"""import json, re, sys
score = int(re.search(r"\bok\b", sys.argv[1]) is not None)
print(json.dumps({"dimensions": [{"dimension": "polite", "score": score, "reasoning": "r"}]}))
"""
RUBRIC = {
    "id": "rb-1",
    "description": "d",
    "input": {"message": "ask 3"},
    "rubric": [{"dimension": "polite", "maxScore": 1, "criteria": "1: polite"}],
}


@pytest.fixture(scope="session")
def graded_branch(script, tmp_path_factory) -> World:
    """Three cases and one that is graded by a rubric when these have passed; all pass on main."""
    made = World(tmp_path_factory.mktemp("graded"), script)
    made.cases = cases_of(3)
    made.write()
    (made.folder / "evals" / "tone.rubric.json").write_text(json.dumps([RUBRIC]))
    (made.folder / "judge.py").write_text(JUDGE)
    judge = {"name": "j", "provider": "cli", "commandTemplate": "python3 judge.py {PROMPT}"}
    (made.folder / "eval-gate.json").write_text(json.dumps({"targets": [judge], "judge": "j"}))
    made.main("PPPP*2")
    return made


@pytest.fixture
def graded(graded_branch, tmp_path) -> World:
    return graded_branch.copied_to(tmp_path)


def test_rubric_case__another_flakes__is_run_and_regresses(graded) -> None:
    seen = graded.here("F(P)PPF")
    expect(seen, 1, "1 regression", inconclusive=[0], regression=["rb-1"])


def test_rubric_case__another_failure_is_accepted__is_run_and_regresses(graded) -> None:
    graded.accept(0)
    expect(graded.here("FPPF"), 1, "1 regression", regression=[0, "rb-1"])


def test_rubric_case__a_new_case_fails__is_run_and_regresses(graded) -> None:
    graded.cases = [*graded.cases, cases_of(5)[4]]
    graded.write()
    seen = graded.here("PPPFF")
    expect(seen, 1, "1 regression", regression=["rb-1"], added=[4])
    assert seen.json["summary"]["skipped"] == 0


def test_rubric_case__another_regresses__is_not_run_and_is_nobody_s_to_pass(graded) -> None:
    seen = graded.here("FPPF")
    expect(seen, 1, "1 regression", regression=[0], not_run=["rb-1"])
    assert graded.script.asked.count(3) == 0
    graded.accept(0)
    waived = graded.compare()
    assert (waived.code, waived.reasons[0]) == (3, "missing-case-result")
    assert "1 case that passed in the baseline was not run: rb-1" in waived.gate


def test_rubric_case__has_no_judge_any_more__is_never_green(graded) -> None:
    (graded.folder / "eval-gate.json").write_text("{}")
    seen = graded.here("PPPF")
    expect(seen, 3, "inconclusive", first="missing-case-result", not_run=["rb-1"])
    assert "1 case that passed in the baseline was not run: rb-1; rubric dimensions need a judge" in " ".join(
        seen.gate.split()
    )


def test_rubric_case__is_switched_off__is_named_and_can_block(graded) -> None:
    seen = graded.here("PPPF", "--rubric", "never")
    expect(seen, 0, "no regressions", says=["is now skipped: `rb-1`"], not_run=["rb-1"])
    assert graded.here("PPPF", "--rubric", "never", fail_on="regressions,changed").code == 1
