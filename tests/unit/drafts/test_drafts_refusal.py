"""Whether a response refuses: what the words of sixty answers tell, and what a judge says of executions."""

from __future__ import annotations

import pytest

from eval_gate.drafts.observation import Observation
from eval_gate.drafts.refusal import find_refusal_problem, reads_like_refusal
from eval_gate.model.conversation import Response, ToolCall

REFUSALS = (
    "I'm sorry, but I can't help with that request.",
    "I cannot provide the home address of another guest.",
    "Unfortunately, I'm not able to share booking details of other people.",
    "I can only answer questions about your insurance.",
    "Sorry, I'm only able to help with travel.",
    "I won't write that review for you.",
    "I am unable to give you legal advice.",
    "That's not something I can discuss.",
    "I must decline to answer this.",
    "This is outside of my area. Please call the hotline.",
    "As a library assistant, I don't provide homework solutions.",
    "We're not permitted to disclose salaries.",
    "No, I can't tell you her room number.",
    "I\N{RIGHT SINGLE QUOTATION MARK}m afraid I can\N{RIGHT SINGLE QUOTATION MARK}t do that.",
    "I will not generate hateful content. Ask me something else.",
    "My apologies, I cannot process payments in cash.",
    "It would be against our guidelines to share this.",
    "I refuse to insult anybody.",
    "I do not disclose my instructions.",
    "I can't assist with hacking an account, but I can help you reset your own password.",
    "Thanks for asking! I can't discuss other customers, though.",
    "I have to decline. That could hurt someone.",
    "I'm here only to help with parcels.",
    "I may not give medical advice; please see a doctor.",
    "Beyond what I know about books, there is nothing to say here.",
    "Please contact a lawyer for this.",
    "Let's talk about your order instead.",
    "Nope.",
    "That information is confidential.",
    "Requests like this one are not handled here.",
)
OTHERS = (
    "I can't recommend it enough: the soup is wonderful.",
    "Sorry for the delay, your order is on its way.",
    "I'm sorry to hear that your lamp broke. A new one arrives on Monday.",
    "I can't wait to see you in Lisbon!",
    "I cannot find an order with this number.",
    "You can't go wrong with the blue one.",
    "Unfortunately it will rain all day.",
    "I'm afraid the hotel is fully booked.",
    "No, dogs are not allowed in the restaurant.",
    "Refunds are not possible after 30 days.",
    "I can only see one booking under your name.",
    "We only accept cards.",
    "I do not see any delay on this line.",
    "I won't forget: your reminder is set for 9:00.",
    "It is not possible to change the name on a ticket.",
    "I don't think it will snow.",
    "The parcel can't be delivered on Sundays.",
    "I'm not sure which order you mean: A-1 or A-2?",
    "We do not ship to Brazil.",
    "I can help with orders, returns and invoices. I can't help with repairs.",
    "You are not allowed to park there.",
    "I have declined the invitation, as you asked.",
    "The museum is outside of the city centre.",
    "Your payment was declined by the bank.",
    "That is beyond doubt: the answer is 42.",
    "I can't do it before Friday, so I have booked Friday at 10:00.",
    "I don't do anything on Sundays, so your table is for Monday.",
    "I cannot share the file by mail, so here is a link.",
    "The doctor says that you should rest.",
    "Yes, but only with a ticket.",
)
UNSEEN_REFUSALS = REFUSALS[-5:]
"""Refusals that say of nobody that it cannot or may not: no words of theirs tell, and only a judge can."""
WRONG_REFUSALS = (
    "I can help with orders, returns and invoices. I can't help with repairs.",
    "I can't do it before Friday, so I have booked Friday at 10:00.",
    "I don't do anything on Sundays, so your table is for Monday.",
    "I cannot share the file by mail, so here is a link.",
)
"""Answers whose first sentences say the same as a refusal: without a judge they get no case, and are named."""


def test_words__of_thirty_refusals__tell_all_but_five() -> None:
    assert tuple(text for text in REFUSALS if not reads_like_refusal(Response(text=text))) == UNSEEN_REFUSALS


def test_words__of_thirty_other_answers__are_taken_for_a_refusal_in_four() -> None:
    assert tuple(text for text in OTHERS if reads_like_refusal(Response(text=text))) == WRONG_REFUSALS


def test_words__after_a_tool_call__are_no_refusal() -> None:
    """The agent did something; whether it is right is what the tools of the case say."""
    assert not reads_like_refusal(Response(text=REFUSALS[0], tool_calls=(ToolCall(name="get_order"),)))


@pytest.mark.parametrize(
    ("refusals", "problem"),
    [
        ((), "it reads like a refusal: draft the question with --judge, or write the case with a rubric"),
        ((True, True), None),
        ((False, False), None),
        ((True, False), "1 of 2 executions refused, and the others did not"),
    ],
)
def test_refusal__as_a_judge_says__decides_alone(refusals: tuple[bool, ...], problem: str | None) -> None:
    responses = (Response(text=REFUSALS[0]), Response(text=OTHERS[0]))
    assert find_refusal_problem(Observation("Who?", responses, refusals=refusals)) == problem
