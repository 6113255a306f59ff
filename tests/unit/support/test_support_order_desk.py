"""The order desk of the conversations' tests: its variants break turn 3 and nothing before it."""

from __future__ import annotations

import pytest

from tests.support.order_desk import BROKEN, ORDER_DESK, SCRIPTS


def answers(messages: list[str], variant: str) -> list[tuple[str, list[str]]]:
    """Text without its opening, and the tools called, turn by turn."""
    found = []
    for at in range(len(messages)):
        text, calls = ORDER_DESK.answer(messages[: at + 1], variant)
        for opening in ORDER_DESK.OPENINGS[1:]:
            text = text.removeprefix(opening)
        found.append((text.replace("One moment.", "Noted."), [call["name"] for call in calls]))
    return found


@pytest.mark.parametrize("variant", BROKEN)
def test_support_order_desk__broken_variant__differs_from_turn_3_on_only(variant) -> None:
    for case in SCRIPTS:
        messages = [turn["message"] for turn in case["turns"]]
        steady, broken = answers(messages, "steady"), answers(messages, variant)
        assert broken[:2] == steady[:2]
        assert broken[2] != steady[2], case["id"]
        if variant != "loses_session":
            assert broken[3:] == steady[3:]
        assert answers(messages, "main") == answers(messages, f"{variant}:0000") == steady
