"""The yardstick changes with the change: it is said above the fold, and can be made to block (8 of what was wrong)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eval_gate.model.execution import CALLS_UNKNOWN, ErrorCause
from eval_gate.reports.wording.advice_table import ADVICE_BY_CAUSE
from tests.acceptance.test_acceptance_reruns import shards
from tests.integration.test_integration_models import KEY, model
from tests.support.agents import agent
from tests.support.program import gate
from tests.support.world import QUICK, World, cases_of, expect

GOOD = "PPPPPPPP*4"
DIFFERS = "Evaluation setup changed since the baseline"


def differs(seen) -> str:
    """What is said above the fold about how it was measured, a list too."""
    lines = seen.head.splitlines()
    found = [at for at, line in enumerate(lines) if DIFFERS in line]
    assert found, seen.head
    return "\n".join([lines[found[0]], *(line for line in lines[found[0] :] if line.startswith("- "))])


@pytest.fixture
def bent(world) -> World:
    return world(GOOD)


def of_case(made: World, number: int, **fields: Any) -> None:
    made.cases[number] |= fields
    made.write()


def test_nothing_changed__nothing_is_said(bent) -> None:
    seen = bent.here("PPPPPPPP")
    expect(seen, 0, "no regressions")
    assert DIFFERS not in seen.report


def test_failing_case_is_removed__is_green_and_said_above_the_fold(bent) -> None:
    del bent.cases[0]
    bent.write()
    seen = bent.here("FPPPPPPP")
    expect(seen, 0, "no regressions", removed=[0])
    assert "was removed: `gs-000`" in differs(seen)
    blocked = bent.here("FPPPPPPP", "--fail-on", "removed")
    expect(blocked, 1, "1 removed case", first="removed", removed=[0])


def test_failing_case_is_marked_as_draft__is_said_and_blocked_as_one_that_is_removed(bent) -> None:
    of_case(bent, 0, draft=True)
    seen = bent.here("FPPPPPPP")
    expect(seen, 0, "no regressions", removed=[0])
    assert "was removed: `gs-000`" in differs(seen)
    assert "1 draft was not run: gs-000. Review it with" in " ".join(seen.report.split())
    blocked = bent.here("FPPPPPPP", "--fail-on", "removed")
    expect(blocked, 1, "1 removed case", first="removed", removed=[0])


LOST = "PPPPPPPP*3 LPPPPPPP"
"""Main's newest run got no answer for the first case, which passed before."""


def test_failing_case_that_main_could_not_judge_last__is_removed__counts_as_one_that_passed(world) -> None:
    made = world(LOST)
    del made.cases[0]
    made.write()
    seen = made.here("FPPPPPPP", "--fail-on", "removed")
    expect(seen, 1, "1 removed case", first="removed", removed=[0])
    assert "was removed: `gs-000`" in differs(seen)
    assert made.compare().same == seen.same
    assert made.gate("merge", *shards(made, "FPPPPPPP", "--fail-on", "removed", count=2)).returncode == 0
    merged = made.compare()
    assert (merged.code, merged.reasons, differs(merged)) == (1, seen.reasons, differs(seen))


def test_failing_case_that_main_could_not_judge_last__is_weakened__counts_as_one_that_passed(world) -> None:
    made = world(LOST)
    of_case(made, 0, expect={"responseNonEmpty": True})
    seen = made.here("FPPPPPPP", "--fail-on", "changed")
    assert (seen.code, seen.reasons[0]) == (1, "changed"), seen.text
    assert "gs-000" in differs(seen)
    assert made.compare().same == seen.same


def test_file_moved__its_cases_keep_their_record_and_regress(bent) -> None:
    bent.suite = "forecast.golden.json"
    (bent.folder / "evals" / "weather.golden.json").rename(bent.folder / "evals" / bent.suite)
    seen = bent.here("FPPPPPPP")
    expect(seen, 1, "1 regression", regression=[0])
    assert seen.change(0)["grounds"]["history"]["passes"] == 4


def test_case_renamed__keeps_its_record_and_regresses(bent) -> None:
    of_case(bent, 0, id="gs-renamed")
    seen = bent.here("FPPPPPPP")
    expect(seen, 1, "1 regression", regression=["gs-renamed"])
    assert "removed" not in seen.classes.values()


def test_file_moved_and_case_renamed__both_sides_of_a_fork_of_it_are_told_apart(bent) -> None:
    """Renamed, with a copy left behind: the copy is the case, the other one is new."""
    bent.cases.append({**bent.cases[0], "id": "gs-copy"})
    bent.write()
    seen = bent.here("FPPPPPPP")
    assert seen.classes["gs-000"] == "regression"
    assert seen.classes["gs-copy"] == "added"
    assert seen.code == 1


def test_expectation_weakened__is_incomparable_and_said_above_the_fold(bent) -> None:
    of_case(bent, 0, expect={"responseNonEmpty": True})
    seen = bent.here("FPPPPPPP")
    expect(seen, 0, "no regressions", incomparable=[0])
    assert "gs-000" in differs(seen)
    expect(bent.here("FPPPPPPP", "--fail-on", "changed"), 1, "changed case", first="changed", incomparable=[0])


def test_attack__live_snapshot_says_nothing_any_more__is_said_above_the_fold_and_can_block(empty) -> None:
    """The same checks against nothing: what a snapshot's command imports is not looked at, what comes of it is."""
    asks = {"responseContains": ["{{snapshot:word}}"]}
    empty.cases = [{"id": "gs-000", "input": {"message": "ask 0"}, "expect": asks}, *cases_of(3)[1:]]
    empty.write()
    (empty.folder / "snapshot.py").write_text("import said; print(said.WHAT)")
    (empty.folder / "said.py").write_text("""WHAT = '{"word": "ok"}'""")
    (empty.folder / "eval-gate.json").write_text('{"snapshotCommand": "python3 -B snapshot.py"}')
    empty.main("PPP*4")
    assert DIFFERS not in empty.here("PPP").report
    (empty.folder / "said.py").write_text("WHAT = '{}'")
    seen = empty.here("FPP")
    expect(seen, 0, "no regressions")
    assert "1 case that passes in the baseline no longer has a check: `gs-000`" in differs(seen)
    expect(empty.here("FPP", "--fail-on", "changed"), 1, "changed case", first="changed")


@pytest.mark.parametrize("other", [{"tags": ["x"]}, {"tags": ["x"], "id": "gs-other"}])
def test_attack__case_loses_the_tag_by_which_it_must_pass__is_a_loosened_rule_above_the_fold(empty, other) -> None:
    """The rule stays as it is, and another case keeps its tag: nothing else says that this one is out of it."""
    empty.of_length("PPPP")
    for number in (0, 1):
        of_case(empty, number, tags=["critical"])
    must = ("--must-pass", "tag:critical")
    empty.main("PPPP*3 FPPP", *must)
    kept = empty.here("FPPP", *must)
    expect(kept, 1, "1 must-pass case fails", still_failing=[0])
    assert "must-pass" not in kept.head.partition(DIFFERS)[2]
    of_case(empty, 0, **other)
    seen = empty.here("FPPP", *must)
    assert seen.code == 0, seen.text
    assert "`must-pass` loosened: no longer covers `gs-000`" in differs(seen)
    blocked = empty.here("FPPP", *must, fail_on="regressions, changed")
    assert blocked.code == 1, blocked.text


def test_question_changed__is_incomparable_and_said_above_the_fold(bent) -> None:
    of_case(bent, 0, input={"message": "please ask 0"})
    seen = bent.here("FPPPPPPP")
    expect(seen, 0, "no regressions", incomparable=[0])
    assert "changed prompt" in differs(seen)


def test_tier_chosen__is_a_part_that_says_nothing_of_the_others(empty) -> None:
    """Nothing is called removed, the bar is that of all, and compared again it is the same."""
    empty.of_length("PPPP")
    others = [case | {"id": f"lb-{at}", "difficulty": "straightforward"} for at, case in enumerate(empty.cases)]
    (empty.folder / "evals" / "weather.labeled.json").write_text(json.dumps(others))
    empty.main("PPPP*3")
    seen = empty.here("FPPP", "--tier", "golden")
    expect(seen, 1, "1 regression", regression=[0])
    assert (seen.json["partial"], seen.json["comparison"]["evidence"]["cases"]) == (True, 8)
    again = empty.compare()
    assert again.same == seen.same


def test_one_case_chosen__the_bar_is_that_of_the_whole_plan(bent) -> None:
    whole, part = bent.here("FPPPPPPP"), bent.here("FPPPPPPP", "--case", "gs-000")
    assert part.json["comparison"]["evidence"]["cases"] == whole.json["comparison"]["evidence"]["cases"] == 8
    assert (part.code, part.classes) == (1, {"gs-000": "regression"})
    grounds = [seen.change(0)["grounds"] | {"repeats": None} for seen in (part, whole)]  # that tells how long they took
    assert grounds[0] == grounds[1]


def test_allowed_regressions_and_never__are_named_as_loosened(bent) -> None:
    seen = bent.here("FFFFFFFF", fail_on="never", allowed_regressions="100")
    assert seen.code == 0
    assert "`fail-on` loosened: regressions → never" in differs(seen)
    assert "`allowed-regressions` loosened: 0 → 100" in differs(seen)


def targets(made: World, *, url: str, model: str | None = None, provider: str = "http") -> None:
    target = {"name": "desk", "provider": provider, "url": url}
    (made.folder / "eval-gate.json").write_text(json.dumps({"targets": [target | ({"model": model} if model else {})]}))


def of_target(made: World, letters: str, *options: str):
    made.script.begin(letters)
    quick = [word for pair in QUICK.items() for word in pair]
    rules = ("--fail-on", "regressions", "--reruns", "6", "--report", "md=report.md")
    return made.gate("run", *quick, *rules, *options)


def test_another_url_behind_the_same_name__is_said_above_the_fold(empty) -> None:
    empty.of_length("PPPP")
    targets(empty, url=empty.script.url)
    of_target(empty, "PPPP", "--output-dir", "main")
    (empty.folder / "report.md").unlink()
    targets(empty, url=empty.script.url + "/other")
    seen = empty.seen(of_target(empty, "FPPP", "--baseline", "main"))
    expect(seen, 1, "1 regression", regression=[0])
    assert "target" in differs(seen)


def test_another_target__no_case_has_a_record_and_that_is_said(empty) -> None:
    empty.of_length("PPPP")
    empty.main("PPPP*2")
    targets(empty, url=empty.script.url)
    seen = empty.seen(of_target(empty, "FPPP", "--baseline", "main"))
    assert "target" in differs(seen)
    assert seen.code == 1, seen.text


def test_trials_differ_between_the_sides__is_judged_and_said(bent) -> None:
    seen = bent.here("F(F)PPPPPPP", trials="3")
    expect(seen, 1, "1 regression", regression=[0])
    assert "trials" in differs(seen)
    flaky = bent.here("F(PP)PPPPPPP", trials="3")
    expect(flaky, 0, "no regressions", flaky=[0])


def test_fewer_trials_than_main_had__is_judged_and_said(empty) -> None:
    empty.main("PPPP*2", "--trials", "3")
    seen = empty.here("FPPP")
    expect(seen, 1, "1 regression", regression=[0])
    assert "trials" in differs(seen)


@pytest.fixture
def rubric(empty):
    """A case that a model answers and another grades."""
    case = {
        "id": "rb-1",
        "input": {"message": "how is Lisbon?"},
        "referenceData": {"celsius": 21},
        "rubric": [{"dimension": "accuracy", "maxScore": 3, "criteria": "3: right"}],
    }
    plain = {"id": "gs-000", "input": {"message": "how is it?"}, "expect": {"responseNonEmpty": True}}
    (empty.folder / "evals").mkdir()
    (empty.folder / "evals" / "weather.rubric.json").write_text(json.dumps([case]))
    (empty.folder / "evals" / "weather.golden.json").write_text(json.dumps([plain]))
    with agent(model()) as running:
        base = f"{running.url.removesuffix('/chat')}/v1"
        given = ("run", "--provider", "openai", "--model", "gpt-4o", "--base-url", base, "--report", "md=report.md")
        yield empty, lambda *options: gate(empty.folder, *given, "--fail-on", "regressions", *options, **KEY)


@pytest.mark.parametrize("cache", ["replay", "auto"])
def test_attack__answers_and_grades_recorded_beforehand__are_said_above_the_fold_and_can_block(rubric, cache) -> None:
    """Recorded with another agent, and brought along: the one of this change is never asked."""
    made, run = rubric
    (made.folder / "prompt.md").write_text("Be good.")
    made.seen(run("--system-prompt", "prompt.md"))
    main = made.record().parent
    (made.folder / "prompt.md").write_text("Be bad.")
    made.seen(run("--system-prompt", "prompt.md", "--recording", "record"))
    (made.folder / "eval-gate.json").write_text(json.dumps({"recording": cache}))
    nobody = ("--system-prompt", "prompt.md", "--baseline", str(main))
    seen = made.seen(run(*nobody))
    expect(seen, 0, "no regressions")
    said = "2 cases use recorded responses or scores (`evals/results/recording.jsonl`) instead of new ones"
    assert said in differs(seen)
    assert seen.json["setup"]["recording"] == "evals/results/recording.jsonl"
    assert run(*nobody, "--fail-on", "changed").returncode == 1


def test_attack__recorded_answers__are_not_said_of_a_case_that_a_command_graded(rubric) -> None:
    """Nobody records what a command says: of the two cases only the one that was replayed counts."""
    made, run = rubric
    said = {"dimensions": [{"dimension": "accuracy", "score": 3, "reasoning": "r"}]}
    (made.folder / "judge.py").write_text(f"print({json.dumps(said)!r})")
    judge = {"name": "j", "provider": "cli", "commandTemplate": "python3 judge.py {PROMPT}"}
    (made.folder / "eval-gate.json").write_text(json.dumps({"targets": [judge], "judge": "j"}))
    main = made.folder / "main"
    run("--output-dir", "main")
    run("--recording", "record", "--case", "gs-000")
    seen = made.seen(run("--recording", "auto", "--baseline", str(main)))
    assert "1 case uses recorded responses or scores" in differs(seen), seen.text


def test_attack__recorded_answers_that_no_case_took__are_not_spoken_of(rubric) -> None:
    made, run = rubric
    (made.folder / "prompt.md").write_text("Be good.")
    made.seen(run("--recording", "record", "--system-prompt", "prompt.md"))
    seen = made.seen(run("--baseline", "latest", "--recording", "auto", "--rubric", "never"))
    assert "recorded answers" not in seen.report


def test_skipped_here__passed_on_main__is_green_and_said_above_the_fold(rubric) -> None:
    made, run = rubric
    made.seen(run())
    seen = made.seen(run("--baseline", "latest", "--rubric", "never", "--reruns", "0"))
    expect(seen, 0, "no regressions", not_run=["rb-1"])
    assert "`rb-1`" in differs(seen)
    assert "skipped" in differs(seen)
    blocked = made.seen(run("--baseline", "latest", "--rubric", "never", "--fail-on", "removed"))
    assert seen.json["summary"]["skipped"] == blocked.json["summary"]["skipped"] == 1


def test_skipped_on_main__judged_here__has_nothing_to_be_compared_with(rubric) -> None:
    made, run = rubric
    made.seen(run("--rubric", "never"))
    seen = made.seen(run("--baseline", "latest"))
    assert (seen.code, seen.classes["gs-000"]) == (0, "still_passing"), seen.text
    assert seen.classes["rb-1"] == "incomparable", seen.classes
    assert "no regressions" in seen.title


def test_mistyped_tool_calls_path__calls_are_unknown_and_the_setup_change_is_named(empty) -> None:
    empty.of_length("PPPP")
    for number, wanted in enumerate(
        [{"toolsAcceptable": [["__none__"]]}, {"toolsNotCalled": ["sell"]}, {"toolsCalled": []}]
    ):
        of_case(empty, number, expect=wanted)
    empty.main("PPPP*2")
    target = {"name": "default", "provider": "http", "url": empty.script.url, "toolCallsPath": "tolCalls"}
    (empty.folder / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    seen = empty.seen(of_target(empty, "PPPP", "--baseline", "main"))
    expect(
        seen,
        3,
        "inconclusive",
        says=["tolCalls", CALLS_UNKNOWN, ADVICE_BY_CAUSE[ErrorCause.CALLS_UNKNOWN].step[1:]],
        errored=[0, 1, 2],
    )
    assert seen.json["summary"]["errored"] == 3
    assert "target `agent` → `default`" in differs(seen)
