"""Evaluators for tool-forge assertions on tool calls: names, order, parameters and errors.

Source: tool-forge runner contract, "Assertion Execution" 1 to 3; behaviour 1.6 and 1.7.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from eval_gate.evaluators.base import EvaluationContext, EvaluatorScore, UnknownCallsError
from eval_gate.evaluators.tool_forge.assertion_tally import AssertionTally
from eval_gate.evaluators.trace import has_reported_calls
from eval_gate.evaluators.wording import format_names, single_quote, truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import CALLS_UNKNOWN
from eval_gate.model.specs.evaluator import (
    EvaluatorSpec,
    NoToolErrors,
    ParamCheck,
    ToolParams,
    ToolsAcceptable,
    ToolsCalled,
    ToolsCalledAnyOrder,
    ToolsNotCalled,
)
from eval_gate.text.javascript.regex import PatternError
from eval_gate.text.javascript.strings import as_text, dump_compact_json, format_js_string
from eval_gate.text.tokens import resolve_members, resolve_tokens

_NUMBER: Final = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?")


def has_tool_assertions(specs: Iterable[EvaluatorSpec]) -> bool:
    """Whether one of them judges by the tools that were called."""
    return any(isinstance(spec, _TOOL_SPECS) and not spec.checks_nothing for spec in specs)


_TOOL_SPECS: Final = (ToolsCalled, ToolsCalledAnyOrder, ToolsAcceptable, ToolsNotCalled, ToolParams, NoToolErrors)


def _get_calls(spec: EvaluatorSpec, context: EvaluationContext) -> tuple[ToolCall, ...]:
    """Return the tool calls; `engine.case_result` finds out whether a target ever lists those it promises."""
    if context.response.tool_calls_known is False and not has_reported_calls(context.response):
        raise UnknownCallsError(f"{spec.type}: {CALLS_UNKNOWN}: the target does not report its tool calls")
    return context.response.tool_calls


def _list_called_names(spec: EvaluatorSpec, context: EvaluationContext) -> list[str]:
    return [call.name for call in _get_calls(spec, context)]


async def evaluate_tools_called(spec: ToolsCalled, context: EvaluationContext) -> EvaluatorScore:
    """Check that the called tools are the expected ones, in order and with repeats (A-02)."""
    tally, called = AssertionTally(spec.type), _list_called_names(spec, context)
    if called == list(spec.names):
        return tally.finish_passed()
    same = sorted(called) == sorted(spec.names)
    only_order = ": only the order differs; toolsCalledAnyOrder takes any order" if same else ""
    return tally.finish_failed(f"expected {format_names(spec.names)}, called {format_names(called)}{only_order}")


async def evaluate_tools_called_any_order(spec: ToolsCalledAnyOrder, context: EvaluationContext) -> EvaluatorScore:
    """Check that the called tools are the expected ones, repeats included, in any order."""
    tally, called = AssertionTally(spec.type), _list_called_names(spec, context)
    wanted, seen = Counter(spec.names), Counter(called)
    if wanted == seen:
        return tally.finish_passed()
    differing = {"missing": wanted - seen, "extra": seen - wanted}
    what = ", ".join(f"{word} {format_names(one.elements())}" for word, one in differing.items() if one)
    expected = f"{format_names(spec.names)} in any order" if spec.names else "no tool"
    return tally.finish_failed(f"expected {expected}, called {format_names(called) if called else 'no tool'}: {what}")


async def evaluate_tools_acceptable(spec: ToolsAcceptable, context: EvaluationContext) -> EvaluatorScore:
    """Check that the set of called tools is one of the acceptable sets. Repeated calls do not matter (A-03)."""
    tally, called = AssertionTally(spec.type), _list_called_names(spec, context)
    sets = [frozenset() if spec.NONE in one else frozenset(one) for one in spec.sets]
    if frozenset(called) in sets:
        return tally.finish_passed()
    acceptable = " or ".join(format_names(sorted(one)) if one else "no tool" for one in sets)
    return tally.finish_failed(
        f"expected {truncate(acceptable, 300)}, called {format_names(called) if called else 'no tool'}"
    )


async def evaluate_tools_not_called(spec: ToolsNotCalled, context: EvaluationContext) -> EvaluatorScore:
    """None of the names was called."""
    tally = AssertionTally(spec.type)
    called = _list_called_names(spec, context) if spec.names else []
    for name in spec.names:
        if name in called:
            return tally.finish_failed(f"{single_quote(name)} was called, in {format_names(called)}")
        tally.add_pass()
    return tally.finish_passed(of_values=True)


async def evaluate_no_tool_errors(spec: NoToolErrors, context: EvaluationContext) -> EvaluatorScore:
    """With stubs every called name has one; otherwise every call says that it succeeded (contract, section 3)."""
    tally = AssertionTally(spec.type)
    stubs = context.case.stubs
    for call in _get_calls(spec, context):
        if stubs is not None:
            if call.name not in stubs:
                return tally.finish_failed(f"called {single_quote(call.name)}, but the case has no stub for it")
        elif call.success is False:
            return tally.finish_failed(f"the call of {single_quote(call.name)} failed")
        elif call.success is None:
            # silence is neither success nor failure
            tally.add_skip(f"the target does not say whether {single_quote(call.name)} succeeded")
            continue
        tally.add_pass()
    return tally.finish_passed()


async def evaluate_tool_params(spec: ToolParams, context: EvaluationContext) -> EvaluatorScore:
    """Every check holds for the first call of its tool; a check of a tool that was not called is skipped."""
    tally = AssertionTally(spec.type)
    calls = _get_calls(spec, context) if spec.checks else ()
    for check in spec.checks:
        call = next((call for call in calls if call.name == check.tool), None)
        if call is None:
            tally.add_skip()
            continue
        failure = await _find_param_failure(check, call, context, tally)
        if failure is not None:
            return tally.finish_failed(f"{truncate(check.tool, 80)}.{truncate(check.param_name, 80)} {failure}")
    return tally.finish_passed(of_values=True)


async def _find_param_failure(
    check: ParamCheck, call: ToolCall, context: EvaluationContext, tally: AssertionTally
) -> str | None:
    """Find what is wrong with one parameter; with an unresolved token, the check counts as skipped."""
    present = check.param_name in call.params
    if check.assertion in {"exists", "notExists"}:
        if present is (check.assertion == "exists"):
            tally.add_pass()
            return None
        return "was not sent" if not present else f"was sent: {single_quote(as_text(call.params[check.param_name]))}"
    expected = _resolve_expected(check, context, tally)
    if expected is None:
        return None
    if not present:
        return "was not sent"
    return await _compare_param(check, expected, call.params[check.param_name], context, tally)


def _resolve_expected(check: ParamCheck, context: EvaluationContext, tally: AssertionTally) -> tuple[str, ...] | None:
    """Resolve the tokens of the expected texts, if they all can be; only `oneOf` has more than one text."""
    values = check.value if check.assertion == "oneOf" and isinstance(check.value, list) else [check.value]
    texts: list[str] = []
    for value in values:
        if not isinstance(value, str):
            texts.append(dump_compact_json(value) if isinstance(value, dict | list) else format_js_string(value))
            continue
        members = resolve_members(value, context.tokens) if check.assertion == "oneOf" else None
        if members is not None:
            texts += members
            continue
        resolved = resolve_tokens(value, context.tokens)
        if resolved.text is None:
            tally.add_unresolved(resolved.unresolved)
            return None
        texts.append(resolved.text)
    return tuple(texts)


async def _compare_param(
    check: ParamCheck, expected: tuple[str, ...], actual: JsonValue, context: EvaluationContext, tally: AssertionTally
) -> str | None:
    seen = format_js_string(actual)
    # an array or object may also be written as its JSON
    forms = {seen, dump_compact_json(actual)} if isinstance(actual, dict | list) else {seen}
    match check.assertion:
        case "equals":
            holds, wanted = expected[0] in forms, f"expected {_format_value(expected[0])}"
        case "contains":
            holds, wanted = (
                any(expected[0] in form for form in forms),
                f"expected to contain {single_quote(expected[0])}",
            )
        case "oneOf":
            holds, wanted = not forms.isdisjoint(expected), f"expected one of {format_names(expected)}"
        case _:
            try:
                holds = await context.patterns.search(expected[0], seen)
            except PatternError as error:
                return str(error)
            wanted = f"expected to match /{truncate(expected[0])}/"
    if holds:
        tally.add_pass()
        return None
    return f"{wanted}, got {_format_value(as_text(actual))}"


def _format_value(text: str) -> str:
    """Format a parameter as a failure shows it: a text in quotes, a number as it is."""
    return text if _NUMBER.fullmatch(text) else single_quote(text)
