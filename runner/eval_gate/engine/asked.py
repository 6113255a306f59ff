"""What a case asks and expects, as its result keeps it."""

from __future__ import annotations

from eval_gate.evaluators.expectation import expectation_of
from eval_gate.model.case import EvalCase
from eval_gate.model.conversation import Message
from eval_gate.model.limits import KEPT_QUESTION
from eval_gate.model.result import Asked
from eval_gate.text.javascript.strings import compact_json
from eval_gate.text.tokens import TokenData


def asked_of(case: EvalCase, tokens: TokenData) -> Asked:
    """Question and expectation in words, cut to what a record holds."""
    question, expected = _question(case.messages), expectation_of(case, tokens)
    return Asked(
        question=question[:KEPT_QUESTION],
        expectation=expected.lines,
        cut=expected.cut or len(question) > KEPT_QUESTION,
    )


def _question(messages: tuple[Message, ...]) -> str:
    """One message is its content; several are paragraphs, each behind its role."""
    if len(messages) == 1:
        return _content(messages[0])
    return "\n\n".join(f"{message.role}: {_content(message)}" for message in messages)


def _content(message: Message) -> str:
    return message.content if isinstance(message.content, str) else compact_json(message.content)
