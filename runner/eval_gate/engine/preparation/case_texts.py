"""Prompt and expectation of a case as text, as stored in its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eval_gate.errors import GateError
from eval_gate.evaluators.expectation import Expectation, describe_expectation
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite, SimulatedUser
from eval_gate.model.conversation import Message
from eval_gate.model.limits import STORED_PROMPT
from eval_gate.model.result import CaseText
from eval_gate.results.masking import TextMasking, map_case_texts
from eval_gate.text.javascript.regex import PatternError, replace_matches_sync
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.mask import MASK
from eval_gate.text.tokens import TokenData


def build_case_text(case: EvalCase, tokens: TokenData, expected: Expectation | None = None) -> CaseText:
    """Build prompt and expectation as text, truncated to the limits of results; `expected` is built if missing."""
    prompt, expected = _format_case(case), expected or describe_expectation(case, tokens)
    return CaseText(
        prompt=prompt[:STORED_PROMPT],
        expectation=expected.lines,
        truncated=expected.is_truncated or len(prompt) > STORED_PROMPT,
    )


def build_case_texts(
    suites: Iterable[EvalSuite], tokens: TokenData, patterns: Sequence[str]
) -> Mapping[CaseKey, CaseText]:
    """Build the prompt and expectation of every case as text, with the matches of `patterns` masked.

    Raises GateError if the patterns cannot be applied to the texts.
    """
    by_evaluators: dict[int, Expectation] = {}  # cases that expect the same share their evaluators

    def describe(case: EvalCase) -> Expectation:
        if case.conversation is not None:
            return describe_expectation(case, tokens)
        if case.brief is not None or id(case.evaluators) not in by_evaluators:
            by_evaluators[id(case.evaluators)] = describe_expectation(case, tokens)
        return by_evaluators[id(case.evaluators)]

    texts = {case.key: build_case_text(case, tokens, describe(case)) for suite in suites for case in suite.cases}
    if not patterns:
        return texts
    masked = TextMasking()
    for text in texts.values():
        map_case_texts(text, masked.collect_text)
    try:
        masked.set_masked(replace_matches_sync(patterns, masked.texts, MASK))
    except PatternError as error:
        hint = "use a simpler pattern, without a repetition inside a repetition"
        raise GateError("invalid-configuration", f"redact cannot search the prompts: {error}", hint) from error
    return {key: map_case_texts(text, masked.mask_text) for key, text in texts.items()}


def _format_case(case: EvalCase) -> str:
    """Format the messages of a case, and each turn of a conversation on a line of its own."""
    spec = case.conversation
    if spec is None:
        return _format_prompt(case.messages)
    first = [f"{message.role}: {_format_content(message)}" for message in case.messages]
    turns = [f"turn {number}: {turn.message}" for number, turn in enumerate(spec.turns, start=1)]
    return "\n".join([*first, *turns, *(_iter_user_lines(spec.user) if spec.user is not None else ())])


def _iter_user_lines(user: SimulatedUser) -> Iterator[str]:
    yield f"goal of the simulated user: {user.goal}"
    if user.persona:
        yield f"persona: {user.persona}"
    yield from (f"fact: {fact}" for fact in user.facts)
    if user.first_message is not None:
        yield f"first message: {user.first_message}"


def _format_prompt(messages: tuple[Message, ...]) -> str:
    """One message is its content; several are paragraphs, each behind its role."""
    if len(messages) == 1:
        return _format_content(messages[0])
    return "\n\n".join(f"{message.role}: {_format_content(message)}" for message in messages)


def _format_content(message: Message) -> str:
    return message.content if isinstance(message.content, str) else dump_compact_json(message.content)
