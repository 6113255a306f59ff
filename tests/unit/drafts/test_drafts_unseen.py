"""What drafts have never seen."""

from __future__ import annotations

from eval_gate.drafts.draft_file import list_unseen
from eval_gate.drafts.observation import Observation
from eval_gate.model.conversation import Message, Response, ToolCall, ToolSpec

ANSWER = Response(text="It is 21.", tool_calls=(ToolCall(name="get_weather", success=True),))


def heads(unseen: list[str]) -> list[str]:
    return [one.partition(":")[0] for one in unseen]


def test_unseen__one_answer_with_one_tool__names_all_the_rest() -> None:
    tools = [ToolSpec(name="get_weather"), ToolSpec(name="list_alerts")]
    assert heads(list_unseen([Observation("How?", (ANSWER,))], tools)) == [
        "a refusal",
        "a tool error",
        "a response without a tool",
        "a call of list_alerts",
        "a second turn of a conversation",
    ]


def test_unseen__all_of_it_was_seen__names_nothing() -> None:
    failed = Response(text="There is none.", tool_calls=(ToolCall(name="list_alerts", success=False),))
    turn = Observation("And now?", (Response(text="I can't help with it."),), (Message(role="user", content="Hello"),))
    tools = [ToolSpec(name="get_weather"), ToolSpec(name="list_alerts")]
    assert list_unseen([Observation("How?", (ANSWER, failed)), turn], tools) == []


def test_unseen__target_lists_no_calls__says_so_instead_of_naming_tools() -> None:
    silent = Response(text="It is 21.", tool_calls_known=False)
    assert heads(list_unseen([Observation("How?", (silent,))], [ToolSpec(name="get_weather")])) == [
        "a refusal",
        "a tool",
        "a second turn of a conversation",
    ]


def test_unseen__many_tools__names_some_and_counts_the_others() -> None:
    tools = [ToolSpec(name=f"t{number}") for number in range(15)]
    assert "t9 and 5 more: they are defined" in "\n".join(list_unseen([Observation("How?", (ANSWER,))], tools))
