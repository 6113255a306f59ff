"""Assertions about tool calls: which, in which order, with which parameters, and whether they worked.

Source: tool-forge runner contract, "Assertion Execution" 1 to 3; behaviour 1.6 and 1.7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.tool_forge.tally import AssertionTally
from eval_gate.evaluators.trace import reports_calls
from eval_gate.evaluators.wording import cut, names, single
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
from eval_gate.text.javascript.strings import compact_json, js_string
from eval_gate.text.tokens import resolve, resolve_members


def checks_tools(specs: Iterable[EvaluatorSpec]) -> bool:
    """Whether one of them judges by the tools that were called."""
    return any(isinstance(spec, _TOOL_SPECS) and not spec.checks_nothing for spec in specs)


_TOOL_SPECS: Final = (ToolsCalled, ToolsCalledAnyOrder, ToolsAcceptable, ToolsNotCalled, ToolParams, NoToolErrors)


def _calls(spec: EvaluatorSpec, context: EvaluationContext) -> tuple[ToolCall, ...]:
    """The calls of the response. Raises EvaluatorError when they are not known, which is not the same as none.

    A promised list that is missing counts as empty here: one answer alone cannot tell (`engine.unreported_tools` can).
    """
    if context.response.calls_known is False and not reports_calls(context.response):
        raise EvaluatorError(f"{spec.type}: {CALLS_UNKNOWN}: the target does not report its tool calls")
    return context.response.tool_calls


def _called(spec: EvaluatorSpec, context: EvaluationContext) -> list[str]:
    return [call.name for call in _calls(spec, context)]


async def tools_called(spec: ToolsCalled, context: EvaluationContext) -> Evaluation:
    """The names are equal, order and repeats included (A-02)."""
    tally, called = AssertionTally(spec.type), _called(spec, context)
    if called == list(spec.names):
        return tally.passed()
    same = sorted(called) == sorted(spec.names)
    only_order = ": only the order differs; toolsCalledAnyOrder takes any order" if same else ""
    return tally.failed(f"expected {names(spec.names)}, called {names(called)}{only_order}")


async def tools_called_any_order(spec: ToolsCalledAnyOrder, context: EvaluationContext) -> Evaluation:
    """The names are equal, repeats included, whatever their order."""
    tally, called = AssertionTally(spec.type), _called(spec, context)
    wanted, seen = Counter(spec.names), Counter(called)
    if wanted == seen:
        return tally.passed()
    differing = {"missing": wanted - seen, "extra": seen - wanted}
    what = ", ".join(f"{word} {names(one.elements())}" for word, one in differing.items() if one)
    expected = f"{names(spec.names)} in any order" if spec.names else "no tool"
    return tally.failed(f"expected {expected}, called {names(called) if called else 'no tool'}: {what}")


async def tools_acceptable(spec: ToolsAcceptable, context: EvaluationContext) -> Evaluation:
    """The set of called names is one of the sets; repeats do not matter (A-03)."""
    tally, called = AssertionTally(spec.type), _called(spec, context)
    sets = [frozenset() if spec.NONE in one else frozenset(one) for one in spec.sets]
    if frozenset(called) in sets:
        return tally.passed()
    acceptable = " or ".join(names(sorted(one)) if one else "no tool" for one in sets)
    return tally.failed(f"expected {cut(acceptable, 300)}, called {names(called) if called else 'no tool'}")


async def tools_not_called(spec: ToolsNotCalled, context: EvaluationContext) -> Evaluation:
    """None of the names was called."""
    tally = AssertionTally(spec.type)
    called = _called(spec, context) if spec.names else []
    for name in spec.names:
        if name in called:
            return tally.failed(f"{single(name)} was called, in {names(called)}")
        tally.holds()
    return tally.passed(of_values=True)


async def no_tool_errors(spec: NoToolErrors, context: EvaluationContext) -> Evaluation:
    """With stubs every called name has one; otherwise every call says that it succeeded (contract, section 3)."""
    tally = AssertionTally(spec.type)
    stubs = context.case.stubs
    for call in _calls(spec, context):
        if stubs is not None:
            if call.name not in stubs:
                return tally.failed(f"called {single(call.name)}, for which the case has no stub")
        elif call.success is False:
            return tally.failed(f"the call of {single(call.name)} failed")
        elif call.success is None:
            # silence is neither success nor failure
            tally.skips(f"the target does not say whether {single(call.name)} succeeded")
            continue
        tally.holds()
    return tally.passed()


async def tool_params(spec: ToolParams, context: EvaluationContext) -> Evaluation:
    """Every check holds for the first call of its tool; a check of a tool that was not called is skipped."""
    tally = AssertionTally(spec.type)
    calls = _calls(spec, context) if spec.checks else ()
    for check in spec.checks:
        call = next((call for call in calls if call.name == check.tool), None)
        if call is None:
            tally.skips()
            continue
        failure = await _param_failure(check, call, context, tally)
        if failure is not None:
            return tally.failed(f"{cut(check.tool, 80)}.{cut(check.param_name, 80)} {failure}")
    return tally.passed(of_values=True)


async def _param_failure(
    check: ParamCheck, call: ToolCall, context: EvaluationContext, tally: AssertionTally
) -> str | None:
    """What is wrong with one parameter; None when it holds or its token is unresolved (then it is counted skipped)."""
    present = check.param_name in call.params
    if check.assertion in {"exists", "notExists"}:
        if present is (check.assertion == "exists"):
            tally.holds()
            return None
        return "was not sent" if not present else f"was sent: {single(js_string(call.params[check.param_name]))}"
    expected = _expected(check, context, tally)
    if expected is None:
        return None
    if not present:
        return "was not sent"
    return await _compare(check, expected, call.params[check.param_name], context, tally)


def _expected(check: ParamCheck, context: EvaluationContext, tally: AssertionTally) -> tuple[str, ...] | None:
    """The expected texts; None when a token is unresolved. Only `oneOf` has several."""
    values = check.value if check.assertion == "oneOf" and isinstance(check.value, list) else [check.value]
    texts: list[str] = []
    for value in values:
        if not isinstance(value, str):
            texts.append(compact_json(value) if isinstance(value, dict | list) else js_string(value))
            continue
        members = resolve_members(value, context.tokens) if check.assertion == "oneOf" else None
        if members is not None:
            texts += members
            continue
        resolved = resolve(value, context.tokens)
        if resolved.text is None:
            tally.unresolved(resolved.unresolved)
            return None
        texts.append(resolved.text)
    return tuple(texts)


async def _compare(
    check: ParamCheck, expected: tuple[str, ...], actual: JsonValue, context: EvaluationContext, tally: AssertionTally
) -> str | None:
    seen = js_string(actual)
    # an array or object may also be written as its JSON
    forms = {seen, compact_json(actual)} if isinstance(actual, dict | list) else {seen}
    match check.assertion:
        case "equals":
            holds, wanted = expected[0] in forms, f"expected {single(expected[0])}"
        case "contains":
            holds, wanted = any(expected[0] in form for form in forms), f"expected to contain {single(expected[0])}"
        case "oneOf":
            holds, wanted = not forms.isdisjoint(expected), f"expected one of {names(expected)}"
        case _:
            try:
                holds = await context.patterns.search(expected[0], seen)
            except PatternError as error:
                return f"cannot be matched with /{cut(expected[0])}/: {error}"
            wanted = f"expected to match /{cut(expected[0])}/"
    if holds:
        tally.holds()
        return None
    return f"{wanted}, got {single(min(forms, key=len) if seen == '[object Object]' else seen)}"
