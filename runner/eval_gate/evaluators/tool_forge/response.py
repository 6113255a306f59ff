"""Assertions about the answer's text, its length and its time.

Source: tool-forge runner contract, "Assertion Execution" 4 to 9; behaviour 1.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eval_gate.evaluators.base import Evaluation, EvaluationContext
from eval_gate.evaluators.tool_forge.tally import AssertionTally
from eval_gate.evaluators.wording import cut, double, names, single
from eval_gate.model.specs import evaluator as specs
from eval_gate.model.specs.everywhere import finds_everywhere
from eval_gate.text.javascript.regex import PatternError
from eval_gate.text.javascript.strings import js_number
from eval_gate.text.tokens import resolve

BYTES_PER_TOKEN = 4
"""The estimate where the provider gives no count: UTF-8 bytes by four, rounded up."""


def _resolved(
    values: Iterable[str], context: EvaluationContext, tally: AssertionTally, *, counted: bool = True
) -> Iterator[str]:
    """The values as they are compared, one after the other; one whose tokens lead nowhere is skipped."""
    for value in values:
        resolved = resolve(value, context.tokens)
        if resolved.text is None:
            tally.unresolved(resolved.unresolved, counted=counted)
        else:
            yield resolved.text


async def response_non_empty(spec: specs.ResponseNonEmpty, context: EvaluationContext) -> Evaluation:
    """The text is not blank."""
    tally = AssertionTally(spec.type)
    return tally.passed() if context.response.text.strip() else tally.failed("the response is empty")


async def response_contains(spec: specs.ResponseContains, context: EvaluationContext) -> Evaluation:
    """Every value is in the text; a value with an unresolved token is skipped."""
    tally = AssertionTally(spec.type)
    for text in _resolved(spec.values, context, tally):
        if text not in context.response.text:
            return tally.failed(f"expected {single(text)} in response but not found")
        if text:  # the empty one is in every other one
            tally.holds()
    return tally.passed(of_values=True)


async def response_contains_any(spec: specs.ResponseContainsAny, context: EvaluationContext) -> Evaluation:
    """Of every group a member is in the text; unresolved members leave their group, an emptied group is skipped."""
    tally = AssertionTally(spec.type)
    for group in spec.groups:
        members = [*_resolved(group, context, tally, counted=False)]
        if not members:
            tally.skips("a group with no member left is skipped")
        elif not any(member in context.response.text for member in members):
            return tally.failed(f"expected one of {names(members)} in response but found none")
        elif all(members):
            tally.holds()
    return tally.passed(of_values=True)


async def response_not_contains(spec: specs.ResponseNotContains, context: EvaluationContext) -> Evaluation:
    """No value is in the text; a value with an unresolved token is skipped."""
    tally = AssertionTally(spec.type)
    for text in _resolved(spec.values, context, tally):
        if text in context.response.text:
            return tally.failed(f"found {double(text)} in response")
        tally.holds()
    return tally.passed(of_values=True)


async def response_matches(spec: specs.ResponseMatches, context: EvaluationContext) -> Evaluation:
    """Every pattern finds something. A pattern that is none, or runs away, fails with the engine's words."""
    tally = AssertionTally(spec.type)
    for pattern in spec.patterns:
        try:
            found = await context.patterns.search(pattern, context.response.text)
        except PatternError as error:
            return tally.failed(f"/{cut(pattern)}/ {error}")
        if not found:
            return tally.failed(f"expected a match of /{cut(pattern)}/ in response but found none")
        if not finds_everywhere(pattern):
            tally.holds()
    return tally.passed(of_values=True)


async def max_latency(spec: specs.MaxLatency, context: EvaluationContext) -> Evaluation:
    """Our wall clock, never the agent's own figure."""
    tally = AssertionTally(spec.type)
    taken = context.response.duration_ms
    if taken <= spec.limit_ms:
        return tally.passed()
    took = next(shown for n in range(17) if float(shown := f"{taken:.{n}f}") > spec.limit_ms)
    return tally.failed(f"expected at most {js_number(spec.limit_ms)} ms, took {took} ms")


async def max_tokens(spec: specs.MaxTokens, context: EvaluationContext) -> Evaluation:
    """The provider's own count of output tokens, else an estimate; the message says which."""
    tally = AssertionTally(spec.type)
    usage = context.response.usage
    if usage is not None and usage.output_tokens is not None:
        count, how = usage.output_tokens, "counted by the provider"
    else:
        count = -(-len(context.response.text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
        how = "estimated as bytes / 4"
    if count <= spec.limit:
        return tally.passed()
    return tally.failed(f"expected at most {spec.limit} tokens, got {count} ({how})")
