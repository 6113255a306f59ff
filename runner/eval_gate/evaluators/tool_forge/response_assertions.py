"""Evaluators for tool-forge assertions on the response: text, length and latency.

Source: tool-forge runner contract, "Assertion Execution" 4 to 9; behaviour 1.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eval_gate.evaluators.base import EvaluationContext, EvaluatorScore
from eval_gate.evaluators.tool_forge.assertion_tally import AssertionTally
from eval_gate.evaluators.wording import (
    describe_missing_number,
    double_quote,
    format_names,
    single_quote,
    truncate,
)
from eval_gate.model.specs import evaluator as specs
from eval_gate.model.specs.match_all_patterns import matches_every_text
from eval_gate.text.javascript.regex import PatternError
from eval_gate.text.javascript.strings import format_js_number
from eval_gate.text.number_search import has_number
from eval_gate.text.tokens import resolve_tokens

BYTES_PER_TOKEN = 4
"""The estimate where the provider gives no count: UTF-8 bytes by four, rounded up."""


def _iter_resolved(
    values: Iterable[str], context: EvaluationContext, tally: AssertionTally, *, counted: bool = True
) -> Iterator[str]:
    """Yield the values with their tokens resolved, and skip those that cannot be resolved."""
    for value in values:
        resolved = resolve_tokens(value, context.tokens)
        if resolved.text is None:
            tally.add_unresolved(resolved.unresolved, counted=counted)
        else:
            yield resolved.text


async def evaluate_response_non_empty(spec: specs.ResponseNonEmpty, context: EvaluationContext) -> EvaluatorScore:
    """Check that the text of the response is not blank."""
    tally = AssertionTally(spec.type)
    return tally.finish_passed() if context.response.text.strip() else tally.finish_failed("the response is empty")


async def evaluate_response_contains(spec: specs.ResponseContains, context: EvaluationContext) -> EvaluatorScore:
    """Every value is in the text; a value with an unresolved token is skipped."""
    tally = AssertionTally(spec.type)
    for text in _iter_resolved(spec.values, context, tally):
        if text not in context.response.text:
            return tally.finish_failed(f"expected {single_quote(text)} in response but not found")
        if text:  # the empty one is in every other one
            tally.add_pass()
    return tally.finish_passed(of_values=True)


async def evaluate_response_contains_any(spec: specs.ResponseContainsAny, context: EvaluationContext) -> EvaluatorScore:
    """Of every group a member is in the text; unresolved members leave their group, an emptied group is skipped."""
    tally = AssertionTally(spec.type)
    for group in spec.groups:
        members = [*_iter_resolved(group, context, tally, counted=False)]
        if not members:
            tally.add_skip("a group without members is skipped")
        elif not any(member in context.response.text for member in members):
            return tally.finish_failed(f"expected one of {format_names(members)} in response but found none")
        elif all(members):
            tally.add_pass()
    return tally.finish_passed(of_values=True)


async def evaluate_response_contains_number(
    spec: specs.ResponseContainsNumber, context: EvaluationContext
) -> EvaluatorScore:
    """Every number, date or code is in the text, in whichever way it is written there."""
    tally = AssertionTally(spec.type)
    for value in spec.values:
        if not has_number(context.response.text, value):
            return tally.finish_failed(describe_missing_number(value, context.response.text))
        tally.add_pass()
    return tally.finish_passed(of_values=True)


async def evaluate_response_not_contains(spec: specs.ResponseNotContains, context: EvaluationContext) -> EvaluatorScore:
    """No value is in the text; a value with an unresolved token is skipped."""
    tally = AssertionTally(spec.type)
    for text in _iter_resolved(spec.values, context, tally):
        if text in context.response.text:
            return tally.finish_failed(f"found {double_quote(text)} in response")
        tally.add_pass()
    return tally.finish_passed(of_values=True)


async def evaluate_response_matches(spec: specs.ResponseMatches, context: EvaluationContext) -> EvaluatorScore:
    """Every pattern finds something. One that cannot be compiled, or takes too long, fails with the engine's words."""
    tally = AssertionTally(spec.type)
    for pattern in spec.patterns:
        try:
            found = await context.patterns.search(pattern, context.response.text)
        except PatternError as error:
            return tally.finish_failed(str(error))
        if not found:
            return tally.finish_failed(f"expected a match of /{truncate(pattern)}/ in response but found none")
        if not matches_every_text(pattern):
            tally.add_pass()
    return tally.finish_passed(of_values=True)


async def evaluate_max_latency(spec: specs.MaxLatency, context: EvaluationContext) -> EvaluatorScore:
    """Our wall clock, never the agent's own figure."""
    tally = AssertionTally(spec.type)
    taken = context.response.duration_ms
    if taken <= spec.limit_ms:
        return tally.finish_passed()
    took = next(shown for n in range(17) if float(shown := f"{taken:.{n}f}") > spec.limit_ms)
    return tally.finish_failed(f"expected at most {format_js_number(spec.limit_ms)} ms, took {took} ms")


async def evaluate_max_tokens(spec: specs.MaxTokens, context: EvaluationContext) -> EvaluatorScore:
    """Check that the response has at most `spec.limit` output tokens.

    The count is the provider's own, or else an estimate of one token per 4 bytes. The message says which one it is.
    """
    tally = AssertionTally(spec.type)
    usage = context.response.usage
    if usage is not None and usage.output_tokens is not None:
        count, how = usage.output_tokens, "counted by the provider"
    else:
        count = -(-len(context.response.text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
        how = "estimated as bytes / 4"
    if count <= spec.limit:
        return tally.finish_passed()
    return tally.finish_failed(f"expected at most {spec.limit} tokens, got {count} ({how})")
