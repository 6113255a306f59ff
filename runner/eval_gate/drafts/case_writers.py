"""Write drafts as cases of tool-forge and of current AgentV, with keys in the order that people use."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from eval_gate.drafts.expectations import DraftExpectation, ToolMode
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.refusal import REFUSAL_RUBRIC
from eval_gate.drafts.turn_joining import list_turns
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.model.specs.evaluator import ParamCheck
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import to_plain_word
from eval_gate.text.safe_output import neutralize_json
from eval_gate.text.sources.yaml_edit import format_flow, format_scalar

NO_TOOL: Final = "no-tool"
"""Stands for the tool in the id of a case without tool calls."""
UNKNOWN_TOOLS: Final = "question"
"""Stands for the tool in the id of a case whose tool calls are unknown."""
_MAX_ID_WORD: Final = 60
_CAMEL_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where a word begins in `openingHours`."""


class DraftCase(FrozenStruct):
    """A draft to write: its id, the observation that it is made from, and what it expects."""

    id: str
    observation: Observation
    expectations: tuple[DraftExpectation, ...]
    """What is expected of each turn; one for a case with one message."""

    @property
    def description(self) -> str:
        """The description of the case."""
        return describe_draft(self.observation, self.expectations)


def describe_draft(observation: Observation, expectations: Sequence[DraftExpectation]) -> str:
    """Describe what a draft expects; in a conversation, turn by turn, without those that expect nothing."""
    if not observation.turns:
        return expectations[0].description
    described = ((number, one.description) for number, one in enumerate(expectations, 1))
    return "; ".join(f"turn {number}: {text}" for number, text in described if text)


class DraftFormat(NamedTuple):
    """A format in which drafts are written."""

    name: str
    suffix: str
    """The suffix that hints propose for its files."""
    suffixes: tuple[str, ...]
    id_prefix: str
    has_earlier_messages: bool
    """Whether a case may have messages before its question, which are otherwise turns of a conversation."""
    build_case: Callable[[DraftCase], dict[str, JsonValue]]
    build_text: Callable[[Sequence[dict[str, JsonValue]]], str]
    """Builds the text of a file with these cases."""


def build_case_id(
    prefix: str, counts: Counter[str], expectations: Sequence[DraftExpectation], observation: Observation
) -> str:
    """Build the id of the next case, after the first tool that it calls: `gs-get-weather-001`; count it in `counts`."""
    first = (one.responses[0].tool_calls for one in list_turns(observation) if one.responses)
    calls = next(filter(None, first), ())
    name = _CAMEL_HUMP.sub("-", calls[0].name).replace("_", "-") if calls else ""
    word = to_plain_word(name).strip("-.").lower()
    if not calls:
        word = NO_TOOL if any(one.has_tools for one in expectations) else UNKNOWN_TOOLS
    word = word[:_MAX_ID_WORD] or "tool"
    counts[word] += 1
    return f"{prefix}{word}-{counts[word]:03}"


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
    if expectation.fields:
        expect["fields"] = dict(expectation.fields)
    return expect


def _build_param(check: ParamCheck) -> dict[str, JsonValue]:
    built: dict[str, JsonValue] = {"tool": check.tool, "paramName": check.param_name, "assertion": check.assertion}
    return built if check.assertion == "exists" else built | {"value": check.value}


def build_tool_forge_case(case: DraftCase) -> dict[str, JsonValue]:
    """Build the case as it is written."""
    head: dict[str, JsonValue] = {"id": case.id, "description": case.description, "draft": True}
    if case.observation.turns:
        pairs = zip(case.observation.turns, case.expectations, strict=True)
        return {**head, "turns": [_build_turn(turn.question, expectation) for turn, expectation in pairs]}
    (expectation,) = case.expectations
    rubric: dict[str, JsonValue] = {"rubric": [dict(REFUSAL_RUBRIC)]} if expectation.refusal else {}
    return {**head, "input": {"message": case.observation.question}, "expect": build_expect(expectation), **rubric}


def _build_turn(message: str, expectation: DraftExpectation) -> dict[str, JsonValue]:
    expect = build_expect(expectation)
    return {"message": message, **({"expect": expect} if expect else {})}


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


_WIDTH: Final = 100
"""Characters up to which a list or a mapping stands on one line."""


def build_assertions(expectation: DraftExpectation) -> list[JsonValue]:
    """Build the `assertions` of a case."""
    return [*_iter_tool_assertions(expectation), *_iter_text_assertions(expectation)]


def _iter_tool_assertions(expectation: DraftExpectation) -> Iterator[JsonValue]:
    match expectation.tool_mode:
        case ToolMode.IN_ORDER if expectation.tools:
            calls = zip(expectation.tools, expectation.call_args, strict=True)
            yield {
                "type": "tool-trajectory",
                "mode": "exact",
                "expected": [
                    {"tool": tool, "args": args, "args_match": "superset"} if args else {"tool": tool}
                    for tool, args in calls
                ],
            }
            yield _limit_calls(expectation.tools)  # "exact" ignores further calls
        case ToolMode.ANY_ORDER:
            yield {"type": "tool-trajectory", "mode": "superset", "expected": _build_calls(expectation.tools)}
            yield _limit_calls(expectation.tools)
        case ToolMode.ACCEPTABLE:
            always = set.intersection(*map(set, expectation.tool_sets))
            ever = dict.fromkeys(name for one in expectation.tool_sets for name in one)
            always_in_order = tuple(name for name in ever if name in always)
            if always_in_order:
                yield {"type": "tool-trajectory", "mode": "superset", "expected": _build_calls(always_in_order)}
            yield {"type": "tool-trajectory", "mode": "subset", "expected": _build_calls(tuple(ever))}
        case ToolMode.IN_ORDER:
            yield _limit_calls(())
        case ToolMode.UNKNOWN:
            return


def _limit_calls(tools: Sequence[str]) -> JsonValue:
    return {"type": "execution-metrics", "max_tool_calls": len(tools)}


def _build_calls(tools: Sequence[str]) -> list[JsonValue]:
    return [{"tool": tool} for tool in tools]


def _iter_text_assertions(expectation: DraftExpectation) -> Iterator[JsonValue]:
    if expectation.contains:
        yield {"type": "contains-all", "value": list(expectation.contains)}
    for group in expectation.contains_any:
        yield {"type": "contains-any", "value": list(group)}
    for number in expectation.numbers:
        yield {"type": "contains-number", "value": number}
    for pattern in expectation.patterns:
        yield {"type": "regex", "value": pattern}
    if expectation.refusal:
        yield {"type": "rubrics", "criteria": [expectation.refusal]}
    elif expectation.non_empty and not (expectation.contains or expectation.numbers or expectation.patterns):
        yield {"type": "regex", "value": r"\S"}
    for text in expectation.not_contains:
        yield {"type": "contains", "value": text, "negate": True}


def build_agentv_case(case: DraftCase) -> dict[str, JsonValue]:
    """Build the case as it is written."""
    observation = case.observation
    (expectation,) = case.expectations
    earlier: list[JsonValue] = [_build_message(message) for message in observation.earlier_messages]
    return {
        "id": case.id,
        "description": case.description,
        "draft": True,
        "input": [*earlier, {"role": "user", "content": observation.question}] if earlier else observation.question,
        "assertions": build_assertions(expectation),
    }


def _build_message(message: Message) -> JsonValue:
    content = message.content
    return {"role": message.role, "content": content if isinstance(content, str | dict) else json.dumps(content)}


def build_agentv_text(cases: Sequence[dict[str, JsonValue]]) -> str:
    """Build the text of a file with these cases, with a blank line between them."""
    blocks = ["\n".join(_iter_block_lines([case], 2)) for case in cases]
    return "tests:\n" + "\n\n".join(blocks) + "\n"


def _iter_block_lines(value: JsonValue, indent: int) -> Iterator[str]:
    """Yield the lines of a list or mapping that is not empty."""
    blank = " " * indent
    if isinstance(value, dict):
        for key, member in value.items():
            head = f"{blank}{format_scalar(key)}:"
            if _is_short(member, indent + len(key)):
                yield f"{head} {format_flow(member)}"
            else:
                yield head
                yield from _iter_block_lines(member, indent + 2)
        return
    assert isinstance(value, list)
    for member in value:
        if not isinstance(member, dict) or not member or (indent > 2 and _is_short(member, indent)):
            yield f"{blank}- {format_flow(member)}"
            continue
        first, *more_lines = _iter_block_lines(member, indent + 2)
        yield f"{blank}- {first.lstrip(' ')}"
        yield from more_lines


def _is_short(value: JsonValue, indent: int) -> bool:
    """Whether a value stands on one line: a scalar, and a short list or mapping without mappings in a list."""
    if not isinstance(value, list | dict) or not value:
        return True
    if isinstance(value, list) and any(isinstance(member, dict) for member in value):
        return False
    return len(format_flow(value)) + indent <= _WIDTH


AGENTV: Final = DraftFormat(
    name="agentv",
    suffix=".eval.yaml",
    suffixes=(".yaml", ".yml"),
    id_prefix="",
    has_earlier_messages=True,
    build_case=build_agentv_case,
    build_text=build_agentv_text,
)
