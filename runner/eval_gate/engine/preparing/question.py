"""What a case asks and expects, as its result keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eval_gate.errors import GateError
from eval_gate.evaluators.expectation import Expectation, expectation_of
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite
from eval_gate.model.conversation import Message
from eval_gate.model.limits import KEPT_QUESTION
from eval_gate.model.result import AskedWords
from eval_gate.results.masking import TextMasking, asked_words_with
from eval_gate.text.javascript.regex import PatternError, replaced_at_once
from eval_gate.text.javascript.strings import compact_json
from eval_gate.text.secret import MASK
from eval_gate.text.tokens import TokenData


def asked_of(case: EvalCase, tokens: TokenData, expected: Expectation | None = None) -> AskedWords:
    """Question and expectation in words, cut to what a record holds. `expected` is that of the case, if it is known."""
    question, expected = _question(case.messages), expected or expectation_of(case, tokens)
    return AskedWords(
        question=question[:KEPT_QUESTION],
        expectation=expected.lines,
        cut=expected.cut or len(question) > KEPT_QUESTION,
    )


def asked_words_of(
    suites: Iterable[EvalSuite], tokens: TokenData, patterns: Sequence[str]
) -> Mapping[CaseKey, AskedWords]:
    """The same of every case, without what the patterns find. Raises GateError where they cannot look through it."""
    known: dict[int, Expectation] = {}  # by the identity of the evaluators: cases that expect the same share them

    def expected(case: EvalCase) -> Expectation:
        if case.brief is not None or id(case.evaluators) not in known:
            known[id(case.evaluators)] = expectation_of(case, tokens)
        return known[id(case.evaluators)]

    found = {case.key: asked_of(case, tokens, expected(case)) for suite in suites for case in suite.cases}
    if not patterns:
        return found
    masked = TextMasking()
    for asked in found.values():
        asked_words_with(asked, masked.find)
    try:
        masked.learn(replaced_at_once(patterns, masked.texts, MASK))
    except PatternError as error:
        hint = "a simpler pattern: one without a repetition within a repetition"
        raise GateError("invalid-configuration", f"redact cannot look through the questions: {error}", hint) from error
    return {key: asked_words_with(asked, masked.put) for key, asked in found.items()}


def _question(messages: tuple[Message, ...]) -> str:
    """One message is its content; several are paragraphs, each behind its role."""
    if len(messages) == 1:
        return _content(messages[0])
    return "\n\n".join(f"{message.role}: {_content(message)}" for message in messages)


def _content(message: Message) -> str:
    return message.content if isinstance(message.content, str) else compact_json(message.content)
