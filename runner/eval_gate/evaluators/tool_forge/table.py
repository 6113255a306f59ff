"""The tool-forge assertions: each finds the first failure of a response, and counts the compared values.

Source: tool-forge runner contract, "Assertion Execution"; behaviour 1.6 and 1.7.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from eval_gate.evaluators.base import EvaluationContext, EvaluatorScore, EvaluatorTable, UnknownCallsError
from eval_gate.evaluators.json_fields import find_field, find_mismatch, format_value, list_documents
from eval_gate.evaluators.trace import has_reported_calls
from eval_gate.evaluators.wording import describe_missing_number, double_quote, format_names, single_quote, truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.execution import CALLS_UNKNOWN
from eval_gate.model.specs import evaluator as specs
from eval_gate.model.specs.match_all_patterns import matches_every_text
from eval_gate.text.dotted_path import NOT_FOUND
from eval_gate.text.javascript.regex import PatternError
from eval_gate.text.javascript.strings import as_text, dump_compact_json, format_js_number, format_js_string
from eval_gate.text.number_search import has_number
from eval_gate.text.tokens import find_tokens, resolve_members, resolve_tokens

_NUMBER: Final = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?")
BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 per token, for an estimate (rounded up) without the provider's count."""


@lru_cache(maxsize=1_000)
def _get_passed_score(checks_run: int) -> EvaluatorScore:
    """Return one score that all passed assertions without details share."""
    return EvaluatorScore(1.0, checks_run=checks_run)


class _Tally:
    """Counter of the values that one assertion compared and skipped (behaviour A-01)."""

    def __init__(self, context: EvaluationContext, assertion: str) -> None:
        self.context = context
        self.response = context.response
        self._assertion = assertion
        self._held = 0
        self._skipped = 0
        self._tokens: list[str] = []
        self._warnings: list[str] = []

    def add_pass(self) -> None:
        """Count one value that is as expected."""
        self._held += 1

    def add_skip(self, warning: str | None = None) -> None:
        """Count one value that cannot be evaluated."""
        self._skipped += 1
        if warning:
            self._warnings.append(f"{self._assertion}: {warning}")

    def add_unresolved(self, tokens: Iterable[str], *, counted: bool = True) -> None:
        """Record a value that is not compared because its tokens cannot be resolved.

        The value counts as skipped if `counted`. A value that leaves a group with other values to compare only adds a
        warning.
        """
        tokens = list(tokens)
        self._tokens += tokens
        self._skipped += counted
        self._warnings += [f"{self._assertion}: {token} not found, so it is not compared" for token in tokens]

    def iter_resolved(self, values: Iterable[str], *, counted: bool = True) -> Iterator[str]:
        """Yield the values with their tokens resolved, and skip those that cannot be resolved."""
        for value in values:
            resolved = resolve_tokens(value, self.context.tokens)
            if resolved.text is None:
                self.add_unresolved(resolved.unresolved, counted=counted)
            else:
                yield resolved.text

    def build_score(self, failure: str | None, *, of_values: bool) -> EvaluatorScore:
        """Build the score from the problem of the value that was compared last, or None without a problem.

        An assertion counts as one check, but for one `of_values`: without a value that may fail it checks nothing.
        """
        checks_run = self._held + 1 if failure else self._held or (0 if self._skipped or of_values else 1)
        if not (failure or self._skipped or self._tokens or self._warnings):
            return _get_passed_score(checks_run)
        error = f"{self._assertion}: {failure}" if failure else None
        return EvaluatorScore(
            score=0.0 if failure else 1.0,
            misses=(error,) if error else (),
            error=error,
            checks_run=checks_run,
            checks_skipped=self._skipped,
            skipped_tokens=tuple(self._tokens),
            warnings=tuple(self._warnings),
        )


_FindFailure: TypeAlias = Callable[[Any, _Tally], "str | Awaitable[str | None] | None"]
"""Function of its own class of spec and a new tally that returns the problem, the rest of a sentence, or None."""


async def _evaluate(
    find_failure: _FindFailure, spec: specs.EvaluatorSpec, context: EvaluationContext, *, of_values: bool = False
) -> EvaluatorScore:
    tally = _Tally(context, spec.type)
    failure = find_failure(spec, tally)
    if isinstance(failure, Awaitable):
        failure = await failure
    return tally.build_score(failure, of_values=of_values)


def has_tool_assertions(expected: Iterable[specs.EvaluatorSpec]) -> bool:
    """Whether one of them depends on the called tools."""
    return any(isinstance(spec, _TOOL_SPECS) and not spec.checks_nothing for spec in expected)


_TOOL_SPECS: Final = (
    specs.ToolsCalled,
    specs.ToolsCalledAnyOrder,
    specs.ToolsAcceptable,
    specs.ToolsNotCalled,
    specs.ToolParams,
    specs.NoToolErrors,
)


def _get_calls(spec: specs.EvaluatorSpec, response: Response) -> tuple[ToolCall, ...]:
    """Return the tool calls; `engine.case_result` finds out whether a target ever lists those it promises."""
    if response.tool_calls_known is False and not has_reported_calls(response):
        raise UnknownCallsError(f"{spec.type}: {CALLS_UNKNOWN}: the target does not report its tool calls")
    return response.tool_calls


def _list_called_names(spec: specs.EvaluatorSpec, tally: _Tally) -> list[str]:
    return [call.name for call in _get_calls(spec, tally.response)]


def _check_tools_called(spec: specs.ToolsCalled, tally: _Tally) -> str | None:
    """Check that the called tools are the expected ones, in order and with repeats (A-02)."""
    calls = _list_called_names(spec, tally)
    if calls == list(spec.names):
        return None
    same = sorted(calls) == sorted(spec.names)
    only_order = ": only the order differs; toolsCalledAnyOrder takes any order" if same else ""
    return f"expected {format_names(spec.names)}, called {format_names(calls)}{only_order}"


def _check_tools_called_any_order(spec: specs.ToolsCalledAnyOrder, tally: _Tally) -> str | None:
    """Check that the called tools are the expected ones, repeats included, in any order."""
    calls = _list_called_names(spec, tally)
    expected_counts, actual_counts = Counter(spec.names), Counter(calls)
    if expected_counts == actual_counts:
        return None
    differing = {"missing": expected_counts - actual_counts, "extra": actual_counts - expected_counts}
    what = ", ".join(f"{word} {format_names(one.elements())}" for word, one in differing.items() if one)
    expected = f"{format_names(spec.names)} in any order" if spec.names else "no tool"
    return f"expected {expected}, called {format_names(calls) if calls else 'no tool'}: {what}"


def _check_tools_acceptable(spec: specs.ToolsAcceptable, tally: _Tally) -> str | None:
    """Check that the set of called tools is one of the acceptable sets. Repeated calls do not matter (A-03)."""
    calls = _list_called_names(spec, tally)
    sets = [frozenset() if spec.NONE in one else frozenset(one) for one in spec.sets]
    if frozenset(calls) in sets:
        return None
    acceptable = " or ".join(format_names(sorted(one)) if one else "no tool" for one in sets)
    return f"expected {truncate(acceptable, 300)}, called {format_names(calls) if calls else 'no tool'}"


def _check_tools_not_called(spec: specs.ToolsNotCalled, tally: _Tally) -> str | None:
    calls = _list_called_names(spec, tally) if spec.names else []
    for name in spec.names:
        if name in calls:
            return f"{single_quote(name)} was called, in {format_names(calls)}"
        tally.add_pass()
    return None


def _check_no_tool_errors(spec: specs.NoToolErrors, tally: _Tally) -> str | None:
    """Check that every called tool has a stub, or without stubs that every call succeeded (contract, section 3)."""
    stubs = tally.context.case.stubs
    for call in _get_calls(spec, tally.response):
        if stubs is not None:
            if call.name not in stubs:
                return f"called {single_quote(call.name)}, but the case has no stub for it"
        elif call.success is False:
            return f"the call of {single_quote(call.name)} failed"
        elif call.success is None:
            # silence is neither success nor failure
            tally.add_skip(f"the target does not say whether {single_quote(call.name)} succeeded")
            continue
        tally.add_pass()
    return None


async def _check_tool_params(spec: specs.ToolParams, tally: _Tally) -> str | None:
    """Check the parameters of the first call of each tool; skip a check of a tool that was not called."""
    calls = _get_calls(spec, tally.response) if spec.checks else ()
    for check in spec.checks:
        call = next((call for call in calls if call.name == check.tool), None)
        if call is None:
            tally.add_skip()
            continue
        failure = await _find_value_failure(check, call.params.get(check.param_name, NOT_FOUND), tally)
        if failure is not None:
            return f"{truncate(check.tool, 80)}.{truncate(check.param_name, 80)} {failure}"
    return None


async def _find_value_failure(check: specs.ValueCheck, actual: JsonValue, tally: _Tally) -> str | None:
    """Find what is wrong with a value, or with `NOT_FOUND`; with an unresolved token, the check counts as skipped.

    A field also has the type that is expected, unless a token is compared; of a parameter only the text counts.
    """
    is_field, is_missing = isinstance(check, specs.FieldValueCheck), actual is NOT_FOUND
    absence = "is missing" if is_field else "was not sent"
    if check.assertion in {"exists", "notExists"}:
        if is_missing is (check.assertion == "notExists"):
            tally.add_pass()
            return None
        if is_missing:
            return absence
        return f"exists: {format_value(actual)}" if is_field else f"was sent: {single_quote(as_text(actual))}"
    values = check.value if check.assertion == "oneOf" and isinstance(check.value, list) else [check.value]
    has_token = any(find_tokens(value) for value in values if isinstance(value, str))
    if is_field and check.assertion in {"equals", "oneOf"} and not has_token:
        failure = absence if is_missing else find_mismatch(actual, values)
        if failure is None:
            tally.add_pass()
        return failure
    expected = _resolve_expected(check, values, tally)
    if expected is None:
        return None
    return absence if is_missing else await _compare_texts(check, expected, actual, tally)


def _resolve_expected(check: specs.ValueCheck, values: Iterable[JsonValue], tally: _Tally) -> tuple[str, ...] | None:
    """Resolve the tokens of the expected texts, if they all can be; only `oneOf` has more than one text."""
    texts: list[str] = []
    for value in values:
        if not isinstance(value, str):
            texts.append(dump_compact_json(value) if isinstance(value, dict | list) else format_js_string(value))
            continue
        members = resolve_members(value, tally.context.tokens) if check.assertion == "oneOf" else None
        if members is not None:
            texts += members
            continue
        resolved = resolve_tokens(value, tally.context.tokens)
        if resolved.text is None:
            tally.add_unresolved(resolved.unresolved)
            return None
        texts.append(resolved.text)
    return tuple(texts)


async def _compare_texts(
    check: specs.ValueCheck, expected: tuple[str, ...], actual: JsonValue, tally: _Tally
) -> str | None:
    text = format_js_string(actual)
    # an array or object may also be written as its JSON
    forms = {text, dump_compact_json(actual)} if isinstance(actual, dict | list) else {text}
    match check.assertion:
        case "equals":
            holds, expectation = expected[0] in forms, f"expected {_format_value(expected[0])}"
        case "contains":
            holds, expectation = (
                any(expected[0] in form for form in forms),
                f"expected to contain {single_quote(expected[0])}",
            )
        case "oneOf":
            holds, expectation = not forms.isdisjoint(expected), f"expected one of {format_names(expected)}"
        case _:
            try:
                holds = await tally.context.patterns.search(expected[0], text)
            except PatternError as error:
                return str(error)
            expectation = f"expected to match /{truncate(expected[0])}/"
    if holds:
        tally.add_pass()
        return None
    return f"{expectation}, got {_format_value(as_text(actual))}"


def _format_value(text: str) -> str:
    """Format a parameter as a failure shows it: a text in quotes, a number as it is."""
    return text if _NUMBER.fullmatch(text) else single_quote(text)


def _check_response_non_empty(spec: specs.ResponseNonEmpty, tally: _Tally) -> str | None:
    return None if tally.response.text.strip() else "the response is empty"


def _check_response_contains(spec: specs.ResponseContains, tally: _Tally) -> str | None:
    """Check that every value is in the text; skip a value with an unresolved token."""
    for text in tally.iter_resolved(spec.values):
        if text not in tally.response.text:
            return f"expected {single_quote(text)} in response but not found"
        if text:  # every text contains the empty one
            tally.add_pass()
    return None


def _check_response_contains_any(spec: specs.ResponseContainsAny, tally: _Tally) -> str | None:
    """Check that the text has a member of every group; skip unresolved members, and groups without others."""
    for group in spec.groups:
        members = [*tally.iter_resolved(group, counted=False)]
        if not members:
            tally.add_skip("a group without members is skipped")
        elif not any(member in tally.response.text for member in members):
            return f"expected one of {format_names(members)} in response but found none"
        elif all(members):
            tally.add_pass()
    return None


def _check_response_contains_number(spec: specs.ResponseContainsNumber, tally: _Tally) -> str | None:
    """Check that every number, date or code is in the text, in any way of writing it."""
    for value in spec.values:
        if not has_number(tally.response.text, value):
            return describe_missing_number(value, tally.response.text)
        tally.add_pass()
    return None


def _check_response_not_contains(spec: specs.ResponseNotContains, tally: _Tally) -> str | None:
    """Check that no value is in the text; skip a value with an unresolved token."""
    for text in tally.iter_resolved(spec.values):
        if text in tally.response.text:
            return f"found {double_quote(text)} in response"
        tally.add_pass()
    return None


async def _check_response_matches(spec: specs.ResponseMatches, tally: _Tally) -> str | None:
    """Check that every pattern matches; an invalid or slow one fails with the engine's message."""
    for pattern in spec.patterns:
        try:
            matches = await tally.context.patterns.search(pattern, tally.response.text)
        except PatternError as error:
            return str(error)
        if not matches:
            return f"expected a match of /{truncate(pattern)}/ in response but found none"
        if not matches_every_text(pattern):
            tally.add_pass()
    return None


async def _check_fields(spec: specs.ResponseFields, tally: _Tally) -> str | None:
    """Check the fields of the agent's JSON."""
    documents = list_documents(tally.response)
    if not documents:
        return "the response is not JSON"
    for check in spec.checks:
        failure = await _find_value_failure(check, find_field(documents, check.path), tally)
        if failure is not None:
            return f"{truncate(check.path, 80)} {failure}"
    return None


def _check_max_latency(spec: specs.MaxLatency, tally: _Tally) -> str | None:
    """Check the duration that Eval Gate measured, never the agent's own figure."""
    duration_ms = tally.response.duration_ms
    if duration_ms <= spec.limit_ms:
        return None
    took = next(digits for n in range(17) if float(digits := f"{duration_ms:.{n}f}") > spec.limit_ms)
    return f"expected at most {format_js_number(spec.limit_ms)} ms, took {took} ms"


def _check_max_tokens(spec: specs.MaxTokens, tally: _Tally) -> str | None:
    """Check the output tokens: as the provider counts them, or else estimated as one per 4 bytes."""
    usage = tally.response.usage
    if usage is not None and usage.output_tokens is not None:
        count, how = usage.output_tokens, "counted by the provider"
    else:
        sizes = (len(text.encode("utf-8", "surrogatepass")) for text in tally.context.response_texts)
        count = -(-sum(sizes) // BYTES_PER_TOKEN)
        how = "estimated as bytes / 4"
    if count <= spec.limit:
        return None
    return f"expected at most {spec.limit} tokens, got {count} ({how})"


async def _evaluate_rubric(spec: specs.Rubric, context: EvaluationContext) -> EvaluatorScore:
    """Score by an LLM judge, whose module is loaded with the first rubric."""
    from eval_gate.evaluators.tool_forge.rubric import evaluate_rubric

    return await evaluate_rubric(spec, context)


TABLE: Final[EvaluatorTable] = {
    specs.ToolsCalled: partial(_evaluate, _check_tools_called),
    specs.ToolsCalledAnyOrder: partial(_evaluate, _check_tools_called_any_order),
    specs.ToolsAcceptable: partial(_evaluate, _check_tools_acceptable),
    specs.ToolsNotCalled: partial(_evaluate, _check_tools_not_called, of_values=True),
    specs.ToolParams: partial(_evaluate, _check_tool_params, of_values=True),
    specs.NoToolErrors: partial(_evaluate, _check_no_tool_errors),
    specs.ResponseNonEmpty: partial(_evaluate, _check_response_non_empty),
    specs.ResponseContains: partial(_evaluate, _check_response_contains, of_values=True),
    specs.ResponseContainsAny: partial(_evaluate, _check_response_contains_any, of_values=True),
    specs.ResponseContainsNumber: partial(_evaluate, _check_response_contains_number, of_values=True),
    specs.ResponseNotContains: partial(_evaluate, _check_response_not_contains, of_values=True),
    specs.ResponseMatches: partial(_evaluate, _check_response_matches, of_values=True),
    specs.ResponseFields: partial(_evaluate, _check_fields, of_values=True),
    specs.MaxLatency: partial(_evaluate, _check_max_latency),
    specs.MaxTokens: partial(_evaluate, _check_max_tokens),
    specs.Rubric: _evaluate_rubric,
}
