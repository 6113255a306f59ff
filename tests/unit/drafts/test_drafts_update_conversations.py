"""Updates of conversations: each turn, and the whole, takes what fails from what the target does now."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import yaml

from eval_gate.drafts.case_edit import read_case_file
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.update import CaseUpdate, ObservedCase, update_case
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.text.tokens import TokenData

ASKED, MONEY = "I want my money back.", "How much do I get?"
WHICH = "Which order is it? Order A-7 or B-9?"
PAID = "You get 49.90 euros back."


def respond(text: str, *tools: str) -> Response:
    return Response(
        text=text, tool_calls=tuple(ToolCall(name=one, success=True) for one in tools), tool_calls_known=True
    )


TURNS = (
    Observation(ASKED, (respond(WHICH, "find_order"),) * 3),
    Observation(MONEY, (respond(PAID, "find_order", "refund"),) * 3),
)
SEEN = Observation(MONEY, (respond(PAID, "find_order", "find_order", "refund"),) * 3, turns=TURNS)


def update(folder: Path, text: str, name: str = "a.golden.json", seen: Observation = SEEN) -> CaseUpdate:
    file = folder / name
    file.write_text(text)
    read = read_case_file(file, folder)
    return asyncio.run(update_case(read, read.suite.cases[0], ObservedCase(seen, seen), TokenData()))


def update_chat(folder: Path, *expects: dict | None, **fields: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Update a conversation with these expectations of its turns; return the new case and the remarks."""
    turns = [
        {"message": message} | ({"expect": expect} if expect is not None else {})
        for message, expect in zip((ASKED, MONEY), expects, strict=True)
    ]
    made = update(folder, json.dumps([{"id": "a", "turns": turns} | fields], indent=2))
    [case] = json.loads(made.file.data)
    return case, made.remarks


def test_update__second_turn__changes_only_what_fails_in_it(tmp_path) -> None:
    first = {"toolsCalled": ["find_order"], "responseContains": ["A-7"]}
    second = {"toolsCalled": ["refund"], "responseContainsNumber": ["39.90"], "maxTokens": 900}
    case, remarks = update_chat(tmp_path, first, second)
    assert [turn["message"] for turn in case["turns"]] == [ASKED, MONEY]
    assert case["turns"][0]["expect"] == first
    assert case["turns"][1]["expect"] == {
        "toolsCalled": ["find_order", "refund"],
        "responseContainsNumber": ["49.90"],
        "maxTokens": 900,
    }
    assert remarks == ()


def test_update__whole__is_about_the_calls_of_all_turns_and_the_last_response(tmp_path) -> None:
    case, remarks = update_chat(
        tmp_path, None, {"toolsCalled": ["refund"]}, expect={"toolsCalled": ["refund"], "responseContains": ["euros"]}
    )
    assert "expect" not in case["turns"][0]
    assert case["turns"][1]["expect"]["toolsCalled"] == ["find_order", "refund"]
    assert case["expect"] == {"toolsCalled": ["find_order", "find_order", "refund"], "responseContains": ["euros"]}
    assert remarks == ()


def test_update__what_still_fails__is_named_with_its_turn(tmp_path) -> None:
    case, remarks = update_chat(tmp_path, None, {"noToolErrors": True, "maxTokens": 1})
    assert case["turns"][1]["expect"] == {"noToolErrors": True, "maxTokens": 1}
    assert [one[:8] for one in remarks] == ["turn 2: "]


def test_update__description__is_renewed_only_if_draft_wrote_it(tmp_path) -> None:
    expects = ({"toolsCalled": ["find_order"]}, {"toolsCalled": ["refund"]})
    drafted = "turn 1: calls find_order; turn 2: calls refund"
    case, remarks = update_chat(tmp_path, *expects, description=drafted)
    assert case["description"].startswith("turn 1: calls find_order, answers with A-7")
    assert "; turn 2: calls find_order, refund" in case["description"]
    assert remarks == ()
    for written in ("a refund", "turn 1: calls find_order; turn 3: calls refund", "so turn 1: calls find_order"):
        case, remarks = update_chat(tmp_path, *expects, description=written)
        assert case["description"] == written
        assert remarks[0].startswith("its description stays")


def test_update__agentv__changes_the_turn_and_leaves_the_whole_to_a_person(tmp_path) -> None:
    text = f"""\
tests:
  # a refund
  - id: one
    mode: conversation
    input: [{{role: system, content: Be kind.}}]
    turns:
      - input: {ASKED}
        assertions: [{{type: contains, value: A-7}}]
      - input: {MONEY}
        assertions:
          - {{type: contains, value: "39.90"}}   # the old price
    assertions: [{{type: contains, value: "user: {ASKED}"}}]
"""
    made = update(tmp_path, text, "a.eval.yaml")
    new = made.file.data.decode()
    [case] = yaml.safe_load(new)["tests"]
    assert case["turns"][0] == {"input": ASKED, "assertions": [{"type": "contains", "value": "A-7"}]}
    assert case["turns"][1]["assertions"] == [{"type": "contains-number", "value": "49.90"}]
    assert case["assertions"] == [{"type": "contains", "value": f"user: {ASKED}"}]
    assert "# a refund" in new
    assert made.remarks == ("its assertions about the whole conversation: left as they are",)


def test_update__simulated_user__is_about_the_whole(tmp_path) -> None:
    seen = Observation("hi\n\nthanks", (respond(PAID, "refund"),) * 3)
    case = {"id": "a", "user": {"goal": "g"}, "expect": {"toolsCalled": ["find_order"]}}
    made = update(tmp_path, json.dumps([case]), seen=seen)
    assert json.loads(made.file.data) == [case | {"expect": {"toolsCalled": ["refund"]}}]
