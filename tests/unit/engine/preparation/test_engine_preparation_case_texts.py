"""Question and expectation of a case, as its result keeps them."""

from eval_gate.engine.preparation.case_texts import build_case_text
from eval_gate.model.conversation import Message
from eval_gate.model.limits import STORED_PROMPT
from eval_gate.text.tokens import TokenData
from tests.support.cases import make_case


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
