"""How turns of a conversation are worded."""

from __future__ import annotations

import pytest

from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.reports.wording.failed_turns import (
    describe_failed_turns,
    describe_user_end,
    format_turns,
    split_turn,
)


@pytest.mark.parametrize(
    ("error", "total", "kind", "label", "rest"),
    [
        ("turn 3: toolsCalled: no", 5, None, "turn 3 of 5", "toolsCalled: no"),
        ("turn 3: toolsCalled: no", None, None, "turn 3", "toolsCalled: no"),
        ("turn 2: agent error: HTTP 500", 5, None, "agent error in turn 2 of 5", "HTTP 500"),
        ("turn 2: agent error: HTTP 500", 5, ErrorKind.AGENT_ERROR, "agent error in turn 2 of 5", "HTTP 500"),
        ("turn 2: timeout: no", 5, ErrorKind.AGENT_ERROR, "agent error in turn 2 of 5", "timeout: no"),
        ("turn 2: no reply", 5, ErrorKind.EVALUATION_ERROR, "evaluation error in turn 2 of 5", "no reply"),
        ("turn 3 1.00 → 0.40: style: no", 5, None, "turn 3 of 5", "1.00 → 0.40: style: no"),
        ("conversation: turn 3: no", 5, None, None, "conversation: turn 3: no"),
    ],
)
def test_split_turn__error__is_the_turn_that_it_begins_with_and_the_rest(error, total, kind, label, rest) -> None:
    assert split_turn(error, total, kind) == (label, rest)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([3], "turn 3"),
        ([1, 2], "turns 1 and 2"),
        ([*range(1, 99)], "turns 1 to 98"),
        ([1, 3, 4, 5, 9], "turns 1, 3 to 5 and 9"),
    ],
)
def test_format_turns__numbers__neighbours_are_ranges(numbers, words) -> None:
    assert format_turns(numbers) == words


def trial(letter: str, turn: int | None) -> Trial:
    status = {"P": Status.PASSED, "F": Status.FAILED}.get(letter, Status.ERROR)
    kinds = {"E": ErrorKind.AGENT_ERROR, "U": ErrorKind.AGENT_UNREACHABLE, "J": ErrorKind.EVALUATION_ERROR}
    return Trial(status=status, score=0, duration_ms=1, failed_turn=turn, error_kind=kinds.get(letter))


@pytest.mark.parametrize(
    ("trials", "words"),
    [
        ([("F", 3)], ()),
        ([("F", None), ("F", None)], ()),
        ([("F", 3), ("P", None), ("F", 3)], ("failed in turn 3 each time",)),
        ([("E", 2), ("E", 2)], ("agent error in turn 2 each time",)),
        ([("F", 2), ("F", 3), ("F", 3)], ("failed in turn 3 (2 executions) and turn 2 (1)",)),
        ([("F", 3), ("F", None)], ("failed in turn 3 (1 execution) and no single turn (1)",)),
        (
            [("F", 3), ("E", 3), ("J", 3)],
            (
                "failed in turn 3 (1 execution)",
                "agent error in turn 3 (1 execution)",
                "evaluation error in turn 3 (1 execution)",
            ),
        ),
        (
            [("F", number) for number in range(1, 8)],
            ("failed in turn 1 (1 execution), turn 2 (1), turn 3 (1), turn 4 (1) and 3 other turns",),
        ),
    ],
    ids=str,
)
def test_describe_failed_turns__executions__are_counted_by_turn_and_kind(trials, words) -> None:
    assert describe_failed_turns([trial(*one) for one in trials]) == words


def test_describe_user_end__is_called_a_claim_where_it_is_one() -> None:
    assert describe_user_end(None, "reached") is None
    assert describe_user_end("reached", "reached") == "the simulated user ended: reached (its own claim)"
    both = "the simulated user ended: given up (its own claim); in the baseline: reached (its own claim)"
    assert describe_user_end("given_up", "reached") == both
    assert "claim" not in (describe_user_end("max_messages", None) or "claim")
