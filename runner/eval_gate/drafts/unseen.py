"""What a set of observations has never seen, so that a suite made of it cannot test it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from eval_gate.drafts.observation import Observation
from eval_gate.drafts.refusal import find_refusal_problem
from eval_gate.model.conversation import Response, ToolSpec
from eval_gate.text.escape import format_first_few, to_one_line

_MAX_LISTED: Final = 10
_MAX_NAME: Final = 60


def list_unseen(observations: Sequence[Observation], tools: Iterable[ToolSpec]) -> list[str]:
    """List in phrases what no response did: `a refusal`, `a tool error`. `tools` are those that are defined."""
    responses = [response for one in observations for response in one.responses]
    calls = [call for response in responses for call in response.tool_calls]
    called = {call.name for call in calls}
    unseen = []
    if not any(any(one.refusals) or find_refusal_problem(one) for one in observations):
        unseen.append("a refusal: ask for something that the agent must not do")
    if _knows_calls(responses):
        if not any(call.success is False for call in calls):
            unseen.append("a tool error: ask for something that a tool cannot find")
        if all(response.tool_calls for response in responses):
            unseen.append("a response without a tool: ask for something that needs none")
        missing = [to_one_line(tool.name, _MAX_NAME) for tool in tools if tool.name not in called]
        if missing:
            names = format_first_few(missing, _MAX_LISTED)
            unseen.append(f"a call of {names}: {'it is' if len(missing) == 1 else 'they are'} defined")
    elif responses:
        unseen.append("a tool: the target does not list its tool calls")
    if not any(one.earlier_messages for one in observations):
        unseen.append("a second turn of a conversation")
    return unseen


def _knows_calls(responses: Iterable[Response]) -> bool:
    return any(response.tool_calls_known is True or response.tool_calls for response in responses)
