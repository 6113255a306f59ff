"""What a reviewer sees in thirty seconds: the comments of nine whole runs, to the letter (tests/golden/first-look/)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.github.state import iso
from tests.support.world import ActionWorld, World, scripted

NAMES = {
    "refund": ("partial-order", "expired-window", "gift-card", "two-items", "no-receipt", "wrong-size"),
    "order": (
        "split",
        "express",
        "late-cancel",
        "bulk",
        "invoice",
        "pickup",
        "intl-tax",
        "gift-wrap",
        "backorder",
        "return-label",
    ),
    "faq": ("opening-hours", "address", "warranty", "newsletter"),
}
IDS = tuple(f"{group}/{name}" for group, names in NAMES.items() for name in names)
TOOLS = {"refund": "issue_refund", "order": "quote_price"}
ALL = "P" * len(IDS)


def answer(number: int, **changed: Any) -> dict[str, Any]:
    """What the agent of main says to the case of this number; with another tool, price or text."""
    group, _, name = IDS[number].partition("/")
    params = {"refund": {"reason": name}, "order": {"item": name, "price": changed.get("price", 12)}}
    tool = changed.get("tool", TOOLS.get(group))
    calls = [{"name": tool, "success": True, "durationMs": 4, "params": params[group]}] if group in TOOLS else []
    return {"response": changed.get("text", f"This is what we do about {name}."), "toolCalls": calls}


def make_cases() -> list[dict[str, Any]]:
    """A case for each id: the tool it needs, the price it has, and its name in the response."""
    made = []
    for number, case_id in enumerate(IDS):
        group, _, name = case_id.partition("/")
        expect: dict[str, Any] = {"toolsCalled": [TOOLS[group]], "noToolErrors": True} if group in TOOLS else {}
        if group == "order":
            price = {"tool": "quote_price", "paramName": "price", "assertion": "equals", "value": "12"}
            expect["toolParams"] = [price]
        expect["responseContains"] = [name]
        made.append({"id": case_id, "input": {"message": f"ask {number}"}, "expect": expect})
    return made


def make_graded(names: tuple[str, ...]) -> str:
    """An eval file of twenty cases with an evaluator each that takes its number out of the response."""
    evaluators = [
        {"name": name, "type": "code_judge", "script": rf"""sed 's/.*{name} \([0-9.]*\).*/{{"score": \1}}/'"""}
        for name in names
    ]
    cases = [
        {
            "id": case_id,
            "expected_outcome": "a good answer",
            "input_messages": [{"role": "user", "content": f"ask {number}"}],
            "execution": {"evaluators": evaluators},
        }
        for number, case_id in enumerate(IDS)
    ]
    return json.dumps({"evalcases": cases}, indent=1)  # JSON is YAML


@pytest.fixture
def desk(github, tmp_path) -> Iterator[ActionWorld]:
    """A help desk's repository on GitHub."""
    with scripted() as script:
        script.replies = {
            "P": answer,
            "E": lambda number: answer(number, tool="escalate"),
            "Z": lambda number: answer(number, price=0),
            "W": lambda number: answer(number, text="I do not know."),
        }
        made = ActionWorld(tmp_path, github, script)
        made.cases = make_cases()
        made.write()
        yield made


@pytest.fixture
def look(golden) -> Callable[[str, str], None]:
    """`look("one-regression", comment)`: this is what people see."""
    return lambda name, text: golden(f"first-look/{name}.md", mask(text))


MASKS = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "RUN"),
    (r"\b[0-9a-f]{40}\b", "COMMIT"),
    (r"`[0-9a-f]{7}`", "`COMMIT`"),
    (r"\d{4}-\d\d-\d\d", "DATE"),
    (r"(?<=127\.0\.0\.1&#58;)\d+|(?<=internal&#58;)\d+", "PORT"),
    (r"(?<=/artifacts/)\d+", "N"),
    (r"http://127\.0\.0\.1:\d+", "http://localhost"),
    (r"<br>[^<]*agent time[^<]*</sub>", "<br>SPENT</sub>"),
    (r"⚠️ \*\*\d+ warnings?\*\*:\n\n(?:- .*\n)+\n", ""),  # who runs the tests, and what the graders here are
    (r"\d+(?:\.\d+)? m?s\b", "TIME"),
)


def mask(text: str) -> str:
    """Replace what differs in every run."""
    for pattern, name in MASKS:
        text = re.sub(pattern, name, text)
    return text


def change(letter: str, *cases: int) -> str:
    """Return a word in which these cases have this letter, and all others pass."""
    return "".join(letter if number in cases else "P" for number in range(len(IDS)))


@pytest.fixture
def graded(tmp_path) -> Iterator[World]:
    """A repository on this machine, whose cases two evaluators grade; the tone falls with the letters L and M."""
    with scripted() as script:
        made = World(tmp_path, script)
        made.cases = [{}] * len(IDS)
        (tmp_path / "evals").mkdir()
        (tmp_path / "evals" / "desk.eval.yaml").write_text(make_graded(("policy", "tone")))
        for letter, tone in {"P": "0.8", "L": "0.4", "M": "0.65"}.items():
            text = f"policy 0.9, tone {tone}"
            script.replies[letter] = lambda _, text=text: {"response": text, "toolCalls": []}
        yield made


def test_first_look__one_regression__names_tool_and_next_step(desk, look) -> None:
    desk.main(f"{ALL}*3")
    look("1-one-regression", desk.here(change("E", 0)).report)


def test_first_look__ten_cases_with_one_cause__are_one_group(desk, look) -> None:
    desk.main(f"{ALL}*3")
    look("2-ten-cases", desk.here(change("Z", *range(6, 16))).report)


def test_first_look__same_error_in_all_cases__is_one_thing(desk, look) -> None:
    desk.main(f"{ALL}*3")
    look("3-same-error", desk.here("C" * len(IDS)).report)


def test_first_look__flaky_case_that_mains_newest_run_fails__is_called_flaky(desk, look) -> None:
    for on_main in ("P", "W(P)", "P", "W(PW)", "W(PWPW)", "W"):
        desk.main(change(on_main, 17))
    look("4-flaky-case", desk.here(change("W(WWWWPW)", 17)).report)


def test_first_look__agent_down__says_so(desk, look) -> None:
    desk.main(f"{ALL}*3")
    desk.script.running.close()
    look("5-agent-down", desk.here(ALL, **{"wait-for": "1"}).report)


def test_first_look__changed_expectations__stand_beside_the_old_ones(desk, look) -> None:
    desk.main(f"{ALL}*3")
    for number in (6, 7):
        desk.cases[number]["expect"]["toolParams"][0]["value"] = "15"
    desk.cases[16]["expect"]["responseContains"] = ["warranty"]
    desk.write()
    look("6-changed-expectations", desk.here(ALL).report)


def test_first_look__score_of_one_of_two_evaluators_falls_in_all_cases__evaluator_is_named(graded, look) -> None:
    graded.main(f"{ALL}*3", "--pass-score", "0.5")
    look("7-score-falls-in-all", graded.here("L" * len(IDS), "--pass-score", "0.5").report)


def test_first_look__score_of_one_of_two_evaluators_falls_in_five_cases__five_are_named(graded, look) -> None:
    graded.main(f"{ALL}*3", "--pass-score", "0.5")
    letters = change("M", 5, 7, 11, 16).replace("PPM", "PLM", 1)
    look("8-score-falls-in-five", graded.here(letters, "--pass-score", "0.5").report)


def test_first_look__two_legs__each_has_its_comment(desk, look) -> None:
    legs = [{"comment-key": name} for name in ("small", "large")]
    for runs in (ALL, ALL):
        desk.main(runs, **legs[0])
        desk.job.begin_job()
        desk.main_again(runs, **legs[1])
    for artifact in desk.github.state.artifacts.values():
        artifact.created_at = iso(datetime.now(UTC) - timedelta(days=2))  # the fake's clock stands in January
    pull = desk.pull()
    desk.here(ALL, pull, **legs[0])
    desk.job.begin_job()
    desk.script.begin(change("E", 0, 3))
    desk.seen_step(pull, **legs[1])
    bodies = [one.body for one in desk.github.state.comments.values() if one.issue == pull.number]
    look("9-two-legs", "\n---\n\n".join(bodies))
