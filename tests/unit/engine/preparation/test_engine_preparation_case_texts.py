"""Question and expectation of a case, as its result keeps them."""

from eval_gate.engine.preparation.case_texts import build_case_text, build_case_texts
from eval_gate.model.case import SimulatedUser
from eval_gate.model.conversation import Message
from eval_gate.model.limits import STORED_PROMPT
from eval_gate.struct import replace
from eval_gate.text.tokens import TokenData
from tests.support.cases import make_case, make_suite
from tests.support.talks import make_talk, make_turn


def test_asked_of__one_message__is_its_content() -> None:
    found = build_case_text(make_case(messages=(Message(role="user", content="Where is it?"),)), TokenData())
    assert (found.prompt, found.expectation, found.truncated) == ("Where is it?", ('response contains "ok"',), False)


def test_asked_of__several_messages__stand_below_each_other_behind_their_roles() -> None:
    messages = (
        Message(role="system", content="Be short."),
        Message(role="user", content=[{"type": "text", "text": "hé"}]),
    )
    assert build_case_text(make_case(messages=messages), TokenData()).prompt == (
        'system: Be short.\n\nuser: [{"type":"text","text":"hé"}]'
    )


def test_asked_of__long_question__is_cut_and_says_so() -> None:
    for length in (STORED_PROMPT, STORED_PROMPT + 1):
        found = build_case_text(make_case(messages=(Message(role="user", content="x" * length),)), TokenData())
        assert (len(found.prompt), found.truncated) == (STORED_PROMPT, length > STORED_PROMPT)


def test_build_case_text__conversation__has_a_line_for_each_turn() -> None:
    found = build_case_text(make_talk("c", make_turn("Hi."), make_turn("And?", None)), TokenData())
    assert found.prompt == "turn 1: Hi.\nturn 2: And?"


def test_build_case_text__simulated_user__has_what_it_knows() -> None:
    user = SimulatedUser(goal="a refund", persona="curt", facts=("4711", "broken"), first_message="hi")
    system = (Message(role="system", content="Be short."),)
    case = make_talk(messages=system, spec={"turns": (), "user": user})
    assert build_case_text(case, TokenData()).prompt == (
        "system: Be short.\ngoal of the simulated user: a refund\npersona: curt\nfact: 4711\nfact: broken\n"
        "first message: hi"
    )


def test_build_case_texts__conversations_that_check_the_same_in_other_turns__have_expectations_of_their_own() -> None:
    checked = make_turn("a")
    talks = [make_talk("one", checked, make_turn("b", None)), make_talk("two", make_turn("b", None), checked)]
    talks[1] = replace(talks[1], conversation=replace(talks[1].conversation, all_evaluators=checked.evaluators))
    talks[0] = replace(talks[0], conversation=replace(talks[0].conversation, all_evaluators=checked.evaluators))
    texts = build_case_texts([make_suite(*talks)], TokenData(), ())
    assert [text.expectation[0] for text in texts.values()] == ["turn 1:", "turn 2:"]
