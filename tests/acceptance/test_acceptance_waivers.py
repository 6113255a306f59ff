"""What people made exceptions of: accepted, quarantined, must pass, allowed (12 of what was wrong)."""

from __future__ import annotations

import json

import pytest

from tests.support.world import expect

GOOD = "PPPPPPPP*4"
DROP = "F(P)F(P)F(P)F(P)F(P)PPP"


def test_waived_regression__passes_and_is_shown(world) -> None:
    made = world(GOOD)
    made.accept(0)
    seen = made.here("FPPPPPPP")
    expect(seen, 0, "1 regression waived", says=["known, #12"], regression=[0])
    assert [one["caseId"] for one in seen.json["waivers"]["waived"]] == ["gs-000"]


def test_waiver_that_has_expired__does_not_count_and_says_so(world) -> None:
    made = world(GOOD)
    made.accept(0, days=-1)
    seen = made.here("FPPPPPPP")
    expect(seen, 1, "1 regression", regression=[0])
    until = (made.folder / ".eval-gate" / "waivers.yaml").read_text().split("until: ")[1].split('"')[1]
    assert f"`gs-000` was waived until {until} and counts again, and `gs-000` fails" in seen.head


def test_all_cases_of_a_suite_drop_are_waived__is_green(world) -> None:
    made = world(GOOD)
    made.accept(*range(5))
    seen = made.here(DROP)
    assert (seen.code, seen.json["verdict"]["outcome"]) == (0, "passed"), seen.text
    assert "5 regressions waived" in seen.title
    assert "GATE PASSED" in seen.gate


def test_all_but_one_case_of_a_suite_drop_are_waived__is_red_for_the_one(world) -> None:
    made = world(GOOD)
    made.accept(*range(4))
    seen = made.here(DROP)
    assert seen.code == 1, seen.text
    assert "1 case failed at first" in seen.title


def test_must_pass__fails_on_main_too__blocks(world) -> None:
    seen = world("FPPPPPPP*4").here("FPPPPPPP", must_pass="gs-000")
    expect(seen, 1, "must-pass", first="must-pass", still_failing=[0])


@pytest.mark.parametrize("kind", ["waivers", "quarantine"])
def test_waived__a_case_that_must_pass__blocks_and_says_that_no_waiver_holds(world, kind) -> None:
    made = world("PPPP*2")
    made.accept("gs-00*", kind=kind)
    seen = made.here("FPPF", must_pass="gs-000")
    said = "1 must-pass case failed, and no waiver or quarantine can apply to it: gs-000"
    expect(seen, 1, "1 regression", says=[said], regression=[0, 3])
    assert said in " ".join(seen.text.split())
    assert [one["caseId"] for one in seen.json["waivers"]["waived"]] == ["gs-003"]
    offered = seen.text.partition("waive:  ")[2].splitlines()
    assert offered == [] or "gs-000" not in offered[0]
    assert made.here("FPPF").code == 0
    must = made.here("PPPP", must_pass="gs-000")
    assert (must.code, "no waiver" in must.text) == (0, False)


def test_must_pass__pattern_without_a_match__is_a_warning_above_the_verdict(world) -> None:
    seen = world(GOOD).here("PPPPPPPP", must_pass="gs-00O")
    expect(seen, 0, "no regressions")
    assert 'must-pass: "gs-00O" matches no case' in seen.text
    assert 'must-pass: "gs-00O" matches no case' in seen.report
    assert seen.json["warnings"]


@pytest.mark.parametrize("letters", ["FPPPPPPP", "FF(P)PPPPPP", "FFPPPPPP", "FFF(P)PPPPP", "FFFPPPPP"])
def test_allowed_regressions__one_more_failing_case__is_never_milder(world, letters) -> None:
    """With one allowed: one regression passes, two do not, and a further case in doubt changes neither."""
    seen = world(GOOD).here(letters, allowed_regressions="1")
    dead = letters.replace("F(P)", "").count("F")
    assert seen.code == (0 if dead <= 1 else 1), seen.text
    assert list(seen.classes.values()).count("regression") >= dead


def test_agent_crashes__acceptance_of_a_crash__cannot_excuse_what_nobody_has_seen(world) -> None:
    made = world(GOOD)
    made.accept(0)
    seen = made.here("LPPPPPPP")
    expect(seen, 3, "inconclusive", says=["agent unreachable"], first="max-errors", errored=[0])


def test_waive_line__of_a_red_run_with_a_crash__turns_it_green(world) -> None:
    """Whatever the summary offers to accept can be accepted."""
    made = world(GOOD)
    first = made.here("CFPPPPPP")
    expect(first, 1, "2 regressions", regression=[0, 1])
    assert "eval-gate waive gs-000 gs-001" in first.text
    made.accept(0, 1)
    seen = made.here("CFPPPPPP")
    expect(seen, 0, "2 regressions waived", regression=[0, 1])


def test_waived_crash__fail_on_failures__excuses_no_other_case(world) -> None:
    made = world(GOOD)
    made.accept(0)
    seen = made.here("CFPPPPPP", fail_on="failures", allowed_regressions="1")
    assert (seen.code, seen.reasons[0]) == (1, "failures"), seen.text


def test_every_case_in_quarantine__no_case_counts_for_the_pass_rate__could_not_decide(world) -> None:
    made = world("PPPP*2")
    made.accept("gs-00*", kind="quarantine")
    seen = made.here("FPPP", min_pass_rate="0.5")
    assert (seen.code, seen.reasons[0]) == (3, "min-pass-rate"), seen.text
    assert "no pass rate: no case with a score counts" in " ".join(seen.text.split())
    assert made.here("FPPP", min_pass_rate="0").code == 0


def test_waiver_of_an_eval_file_by_its_name__holds_for_no_other_file(empty) -> None:
    """As for ids: `[1].golden.json` is a file's name here, and no pattern that means `1.golden.json`."""
    made = empty
    made.of_length("PP")
    for number, name in enumerate(("[1].golden.json", "1.golden.json")):
        (made.folder / "evals" / name).write_text(json.dumps([made.cases[number] | {"id": "c1"}]))
    (made.folder / "evals" / made.suite).unlink()
    made.main("PP")
    made.accept("c1")
    file = made.folder / ".eval-gate" / "waivers.yaml"
    file.write_text(file.read_text() + "  suite: 'evals/[1].golden.json'\n")
    assert (made.here("FP").code, made.here("PF").code) == (0, 1)
