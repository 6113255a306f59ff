"""Writes drafts as tool-forge cases, in the order in which a person writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from eval_gate.drafts.case_format import DraftCase, DraftFormat
from eval_gate.drafts.expectations import DraftExpectation, ToolMode
from eval_gate.drafts.refusal import REFUSAL_RUBRIC
from eval_gate.model.base import JsonValue
from eval_gate.model.specs.evaluator import ParamCheck
from eval_gate.text.safe_output import neutralize_json


def build_expect(expectation: DraftExpectation) -> dict[str, JsonValue]:
    """Build the `expect` of a case, with only the keys that check something."""
    expect: dict[str, JsonValue] = {}
    match expectation.tool_mode:
        case ToolMode.IN_ORDER:
            expect["toolsCalled"] = list(expectation.tools)
        case ToolMode.ANY_ORDER:
            expect["toolsCalledAnyOrder"] = list(expectation.tools)
        case ToolMode.ACCEPTABLE:
            expect["toolsAcceptable"] = [list(one) for one in expectation.tool_sets]
        case ToolMode.UNKNOWN:
            pass
    listed: dict[str, list[JsonValue]] = {
        "toolParams": [_build_param(check) for check in expectation.params],
        "responseContains": list(expectation.contains),
        "responseContainsAny": [list(group) for group in expectation.contains_any],
        "responseContainsNumber": list(expectation.numbers),
        "responseMatches": list(expectation.patterns),
        "responseNotContains": list(expectation.not_contains),
    }
    if listed["toolParams"]:
        expect["toolParams"] = listed.pop("toolParams")
    if expectation.no_tool_errors:
        expect["noToolErrors"] = True
    if expectation.non_empty:
        expect["responseNonEmpty"] = True
    expect.update({key: values for key, values in listed.items() if values})
    return expect


def _build_param(check: ParamCheck) -> dict[str, JsonValue]:
    built: dict[str, JsonValue] = {"tool": check.tool, "paramName": check.param_name, "assertion": check.assertion}
    return built if check.assertion == "exists" else built | {"value": check.value}


def build_tool_forge_case(case: DraftCase) -> dict[str, JsonValue]:
    """Build the case as it is written."""
    built: dict[str, JsonValue] = {
        "id": case.id,
        "description": case.expectation.description,
        "draft": True,
        "input": {"message": case.observation.question},
        "expect": build_expect(case.expectation),
    }
    if case.expectation.refusal:
        built["rubric"] = [dict(REFUSAL_RUBRIC)]
    return built


def build_tool_forge_text(cases: Sequence[dict[str, JsonValue]]) -> str:
    """Build the text of a file with these cases: a bare list, whose ids say that the cases are golden."""
    return neutralize_json(json.dumps(list(cases), indent=2, ensure_ascii=False)) + "\n"


TOOL_FORGE: Final = DraftFormat(
    name="tool-forge",
    suffix=".golden.json",
    suffixes=(".json",),
    id_prefix="gs-",
    has_earlier_messages=False,
    build_case=build_tool_forge_case,
    build_text=build_tool_forge_text,
)
