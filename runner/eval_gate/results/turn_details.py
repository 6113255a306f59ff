"""Turns of an executed conversation: what belongs to one of them, and which one shows best what differs."""

from __future__ import annotations

from typing import Final

from eval_gate.model.execution import NO_DETAILS, BaselineResult, CaseDetails, Status
from eval_gate.model.limits import STORED_TURNS
from eval_gate.model.result import CaseResult

PARTS_OF_CONVERSATION: Final = frozenset({"turn", "conversation"})
"""Types of results whose members scored one turn of a conversation, or all of it."""


def slice_turn(details: CaseDetails, number: int) -> CaseDetails:
    """Return the details of one turn, counted from 1: its response and its calls; none if there is no such turn.

    Details without turns are those of one request, which is the first turn.
    """
    if number == 1 and not details.turns:
        return details
    if not 1 <= number <= min(len(details.turns), STORED_TURNS):  # a result from elsewhere may have any number
        return NO_DETAILS
    turn = details.turns[number - 1]
    start = sum(one.calls for one in details.turns[: number - 1])
    return CaseDetails(
        tools_called=details.tools_called[start : start + turn.calls],
        tool_calls=details.tool_calls[start : start + turn.calls],
        response=turn.response,
        fields=turn.fields,
        response_length=turn.response_length,
        response_truncated=turn.response_truncated,
    )


def select_turn(case: CaseResult, baseline: BaselineResult | None) -> int | None:
    """Select the turn to show: the first that failed, else the first that differs from the baseline, else the last.

    Other tool calls count before other words, because many agents word every response anew. None for a case with one
    request.
    """
    earlier = baseline.details if baseline else NO_DETAILS
    most = min(max(len(case.details.turns), len(earlier.turns)), STORED_TURNS)
    if case.failed_turn is not None or not most:
        return case.failed_turn
    sides = case.details, earlier
    if not all(side.turns for side in sides) and all(side.response is not None for side in sides):
        return 1  # one side has only one request
    if earlier.turns:
        for differs in (has_other_calls, has_other_response):
            for number in range(1, most + 1):
                if differs(case.details, earlier, number):
                    return number
    return sum(turn.status is not Status.NOT_RUN for turn in case.details.turns) or None


def has_other_response(details: CaseDetails, baseline: CaseDetails, number: int) -> bool:
    """Whether both sides responded differently in a turn."""
    return slice_turn(details, number).response != slice_turn(baseline, number).response


def has_other_calls(details: CaseDetails, baseline: CaseDetails, number: int) -> bool:
    """Whether both sides called other tools in a turn, or with other arguments as far as these are stored."""
    sides = slice_turn(details, number), slice_turn(baseline, number)
    # as text, because Python takes 1 and true for equal
    arguments = [repr([call.arguments for call in side.tool_calls]) for side in sides]
    return sides[0].tools_called != sides[1].tools_called or (
        all(side.tool_calls for side in sides) and arguments[0] != arguments[1]
    )


def has_simulated_user(case: CaseResult) -> bool:
    """Whether a model wrote the messages of the user, which then differ from execution to execution."""
    return case.details.user_end is not None or (case.fingerprints is not None and case.fingerprints.user is not None)


def count_scripted_turns(case: CaseResult) -> int | None:
    """Count the turns of the script, those that were not sent included; None if they are unknown or have no script."""
    return None if has_simulated_user(case) else len(case.details.turns) or None
