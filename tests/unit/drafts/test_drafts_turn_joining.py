"""Conversations in drafts: turns of one session become one case, whatever source they come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.drafts.draft_file import FORMATS, DraftFile, build_draft_file
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.turn_joining import join_conversations
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import EvalFile, load_suites
from eval_gate.model.case import EvalCase
from eval_gate.model.conversation import Message, Response, ToolCall
from eval_gate.process.signals import run_async

FIND = ToolCall(name="find_order", params={"id": "A-4711"}, success=True)
REFUND = ToolCall(name="refund", params={"id": "A-4711"}, success=True)
MONEY = ("I want my money back for A-4711.", "Order A-4711 was 49.90 euros. Is it broken?")
HOW_MUCH = ("Yes. How much do I get?", "You get 49.90 euros back.")


def history(*exchanges: tuple[str, str]) -> tuple[Message, ...]:
    pairs = [(Message(role="user", content=said), Message(role="assistant", content=text)) for said, text in exchanges]
    return tuple(one for pair in pairs for one in pair)


def respond(text: str, *calls: ToolCall) -> Response:
    return Response(text=text, tool_calls=calls, tool_calls_known=True)


def observe(question: str, *responses: Response, after: tuple[tuple[str, str], ...] = ()) -> Observation:
    return Observation(question, responses, history(*after))


FIRST = observe(MONEY[0], respond(MONEY[1], FIND))
SECOND = observe(HOW_MUCH[0], respond(HOW_MUCH[1], REFUND), after=(MONEY,))


def list_turns(observation: Observation) -> list[tuple[str, list[str]]]:
    return [(turn.question, [one.text for one in turn.responses]) for turn in observation.turns]


def test_join_conversations__turn_that_begins_with_another_one__is_its_next_turn() -> None:
    other = observe("Where is it?", respond("In Oslo."))
    alone, joined = join_conversations([FIRST, other, SECOND])
    assert alone is other
    assert list_turns(joined) == [(MONEY[0], [MONEY[1]]), (HOW_MUCH[0], [HOW_MUCH[1]])]
    assert (joined.question, joined.earlier_messages) == (HOW_MUCH[0], ())


def test_join_conversations__two_interleaved_sessions__are_two_conversations_in_any_order_of_the_lines() -> None:
    hello, bye = ("Hello.", "Hi."), ("Bye.", "Ciao.")
    lines = [
        observe(MONEY[0], respond(MONEY[1])),
        observe(hello[0], respond(hello[1])),
        observe(HOW_MUCH[0], respond(HOW_MUCH[1]), after=(MONEY,)),
        observe(bye[0], respond(bye[1]), after=(hello,)),
        observe("Thanks.", respond("You are welcome."), after=(hello, bye)),
    ]
    money = [(MONEY[0], [MONEY[1]]), (HOW_MUCH[0], [HOW_MUCH[1]])]
    greeting = [(hello[0], [hello[1]]), (bye[0], [bye[1]]), ("Thanks.", ["You are welcome."])]
    assert [list_turns(one) for one in join_conversations(lines)] == [money, greeting]
    assert sorted(list_turns(one) for one in join_conversations(lines[::-1])) == sorted([money, greeting])


def test_join_conversations__users_who_say_the_same__are_executions_of_one_conversation() -> None:
    """A written conversation sends the messages of the user, whatever the agent responds."""
    other = (MONEY[0], "49.90 euros for A-4711. What happened?")
    joined = join_conversations(
        [
            observe(MONEY[0], respond(MONEY[1]), respond(other[1])),
            observe(HOW_MUCH[0], respond("49.90 it is."), after=(MONEY,)),
            observe(HOW_MUCH[0], respond(HOW_MUCH[1]), respond("49.90"), after=(other,)),
        ]
    )
    assert [list_turns(one) for one in joined] == [
        [(MONEY[0], [MONEY[1], other[1]]), (HOW_MUCH[0], ["49.90 it is.", HOW_MUCH[1], "49.90"])]
    ]


def test_join_conversations__two_endings_of_one_beginning__are_two_conversations_with_all_that_was_seen_of_it() -> None:
    joined = join_conversations(
        [
            FIRST,
            observe("No.", respond("Then keep it."), after=(MONEY,)),
            observe(HOW_MUCH[0], respond(HOW_MUCH[1]), after=(MONEY,)),
        ]
    )
    assert [[turn.question for turn in one.turns] for one in joined] == [[MONEY[0], "No."], [MONEY[0], HOW_MUCH[0]]]


def test_join_conversations__turn_without_a_response__takes_nothing_from_the_turns_before() -> None:
    failed = Observation(HOW_MUCH[0], (), history(MONEY), errors=("HTTP 500",))
    assert join_conversations([FIRST, failed]) == (FIRST, failed)


def test_join_conversations__turns_without_a_response_before_others__are_only_sent() -> None:
    said = history(MONEY)
    lines = [
        FIRST,
        Observation("Hm.", (), said, errors=("HTTP 500",)),
        Observation("Well?", (), (*said, Message(role="user", content="Hm.")), errors=("HTTP 500",)),
        Observation(
            HOW_MUCH[0],
            (respond(HOW_MUCH[1]),),
            (*said, *(Message(role="user", content=text) for text in ("Hm.", "Well?"))),
        ),
    ]
    (joined,) = join_conversations(lines)
    assert list_turns(joined) == [(MONEY[0], [MONEY[1]]), ("Hm.", []), ("Well?", []), (HOW_MUCH[0], [HOW_MUCH[1]])]
    assert joined.earlier_messages == ()


def test_join_conversations__earlier_turns_that_the_source_does_not_have__are_only_sent() -> None:
    (joined,) = join_conversations([SECOND])
    assert list_turns(joined) == [(MONEY[0], []), (HOW_MUCH[0], [HOW_MUCH[1]])]
    assert joined.earlier_messages == ()


def test_join_conversations__messages_that_are_not_in_turn__are_left_to_a_person() -> None:
    odd = Observation("c", (respond("d"),), (Message(role="user", content="a"), Message(role="user", content="b")))
    assert join_conversations([odd]) == (odd,)
    built = build("tool-forge", odd)
    assert [one.reason for one in built.skipped] == [
        "the messages before it are not those of a user and an agent in turn: use the format agentv"
    ]


def test_join_conversations__empty_response__is_no_message_of_the_next_turn() -> None:
    silent = observe("a", respond(" ", FIND))
    following = Observation("b", (respond("c"),), (Message(role="user", content="a"),))
    (joined,) = join_conversations([silent, following])
    assert [turn.question for turn in joined.turns] == ["a", "b"]


WORDS = st.sampled_from("abc")


@given(st.lists(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), min_size=1, max_size=5), st.randoms())
def test_join_conversations__any_sessions__give_each_script_once_with_every_response(sessions, random) -> None:
    lines = [
        observe(said, respond(text), after=tuple(session[:at]))
        for session in sessions
        for at, (said, text) in enumerate(session)
    ]
    random.shuffle(lines)
    joined = join_conversations(lines)
    scripts = [tuple(turn.question for turn in one.turns or (one,)) for one in joined]
    said = {tuple(said for said, _ in session) for session in sessions}
    longest = {one for one in said if not any(other[: len(one)] == one and other != one for other in said)}
    assert sorted(scripts) == sorted(longest)
    assert all(turn.responses for one in joined for turn in one.turns or (one,))


def build(name: str, *observations: Observation) -> DraftFile:
    file = {"tool-forge": "first.golden.json", "agentv": "first.eval.yaml"}[name]
    return run_async(build_draft_file(observations, FORMATS[name], Path("/nowhere") / file, Path("/nowhere")))


def load(folder: Path, built: DraftFile) -> EvalCase:
    file = folder / "first.golden.json"
    file.write_text(built.text, encoding="utf-8")
    [suite] = load_suites([EvalFile(file, explicit=True)], folder, ReadOptions(strict=True))
    return suite.cases[0]


def test_draft__conversation__is_one_case_with_what_each_turn_expects(tmp_path) -> None:
    built = build("tool-forge", FIRST, SECOND)
    [case] = json.loads(built.text)
    assert list(case) == ["id", "description", "draft", "turns"]
    assert case["id"] == "gs-find-order-001"
    assert case["description"] == (
        "turn 1: calls find_order, answers with A-4711, 49.90; turn 2: calls refund, answers with 49.90"
    )
    assert [turn["message"] for turn in case["turns"]] == [MONEY[0], HOW_MUCH[0]]
    assert case["turns"][1]["expect"]["toolsCalled"] == ["refund"]
    assert case["turns"][1]["expect"]["responseContainsNumber"] == ["49.90"]
    loaded = load(tmp_path, built)
    assert loaded.conversation is not None
    assert loaded.draft


def test_draft__turns_that_were_not_seen__are_sent_without_expectations() -> None:
    [case] = json.loads(build("tool-forge", SECOND).text)
    first, second = case["turns"]
    assert first == {"message": MONEY[0]}
    assert "expect" in second
    assert case["description"] == "turn 2: calls refund, answers with 49.90"


def test_draft__agentv__has_a_case_for_each_turn_because_a_conversation_needs_messages_before_it() -> None:
    built = build("agentv", FIRST, SECOND)
    assert [len(case.observation.earlier_messages) for case in built.cases] == [0, 2]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (observe("b", respond("I can't help with that."), after=(MONEY,)), "turn 2: it reads like a refusal: a turn"),
        (observe("b ***", respond("49.90"), after=(MONEY,)), "it holds a secret or personal data, which was masked"),
        (observe(" ", respond("49.90"), after=(MONEY,)), "the question is empty"),
    ],
)
def test_draft__conversation_that_no_case_can_be_written_for__is_named_with_the_reason(second, reason) -> None:
    built = build("tool-forge", FIRST, second)
    assert built.cases == ()
    assert built.skipped[0].reason.startswith(reason)


def test_draft__conversation_of_which_nothing_is_shared__gets_no_case() -> None:
    first = Observation("a", (Response(text="Perhaps so."), Response(text="Who knows?")))
    second = Observation("b", (Response(text="Well."), Response(text="Hm, no.")), history(("a", "Who knows?")))
    [skipped] = build("tool-forge", first, second).skipped
    assert skipped.reason.startswith("its responses share no tool call, fact or field")


def test_join_conversations__asked_conversations_that_end_with_the_same_message__stay_apart() -> None:
    thanks = observe("Thanks.", respond("You are welcome."))
    asked = [
        Observation("Thanks.", thanks.responses, turns=(observe(first, respond("Yes.")), thanks))
        for first in ("Is it paid?", "Is it sent?")
    ]
    assert join_conversations([*asked, thanks]) == (*asked, thanks)
