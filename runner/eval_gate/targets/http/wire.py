"""What is sent to an HTTP agent and how its answer is read: presets, paths, and one clear sentence when it is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import JsonValue, ValidationError

from eval_gate.model.conversation import Message, Response, ToolCall
from eval_gate.model.limits import ANSWER_CALLS, CALL_NAME, MAX_COST_USD, MAX_DURATION_MS, MAX_TOKENS, in_range
from eval_gate.model.usage import Usage
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.http.settings import HttpSettings, PresetName
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.foreign.quote import MAX_QUOTE, quote
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.javascript.strings import compact_json
from eval_gate.text.sources.shape import kind_of

MAX_INDEX_DIGITS = 12
_PLACEHOLDER: Final = re.compile(r"\{\{(message|conversation|caseId)\}\}")
Values = TypeVar("Values", bound=JsonValue)
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Preset:
    """How one kind of agent speaks. `body` None is the plain message; the other fields name what is read.

    `leaves_out_none`: where this object is there, an answer without a list of calls says that there was none.
    """

    text: str
    calls: str
    call_name: str = "name"
    call_params: str = "params"
    body: JsonValue = None
    leaves_out_none: str | None = None


PRESETS: Final = {
    PresetName.EVAL_GATE: Preset("response", "toolCalls"),
    PresetName.TOOL_FORGE_SIDECAR: Preset("message", "toolCalls", call_params="args"),
    PresetName.OPENAI_CHAT: Preset(
        "choices[0].message.content",
        "choices[0].message.tool_calls",
        call_name="function.name",
        call_params="function.arguments",
        body={"messages": "{{conversation}}"},
        leaves_out_none="choices[0].message",
    ),
}


class Wire:
    """Writes requests and reads answers for one target."""

    def __init__(self, settings: HttpSettings) -> None:
        preset = PRESETS[settings.preset]
        self._preset = preset
        self._template = settings.request_template if settings.request_template is not None else preset.body
        self._text_path = settings.response_path or preset.text
        self._calls_path = settings.tool_calls_path or preset.calls
        self._calls_place = f"a list of tool calls at `{self._calls_path[:MAX_QUOTE]}` (toolCallsPath, preset)"

    def body(self, request: Request) -> bytes:
        """The request's body: `{"message": …}`, with `conversation` for several messages, or the template filled in."""
        if self._template is not None:
            return json.dumps(_fill(self._template, request)).encode()
        body: dict[str, JsonValue] = {"message": request.messages[-1].content}
        if len(request.messages) > 1:
            body["conversation"] = _conversation(request.messages)
        return json.dumps(body).encode()

    def read(self, body: bytes, duration_ms: float) -> Response:
        """The answer, which took so long. Raises TargetError (malformed) that quotes its beginning and says why."""
        try:
            document = read_foreign(body)
        except ForeignJsonError as error:
            raise _malformed(f"the answer {error}", body) from None
        text = _at(document, self._text_path)
        if not isinstance(text, str):
            # an agent that only calls tools may say so with null; a missing field is never taken for ""
            if text is not None or not _exists(document, self._text_path) or self._text_path == "response":
                raise _malformed(f'the answer has no text at "{self._text_path}"', body)
            text = ""
        calls = self._tool_calls(document, body)
        known = calls is not None or self._says_none(document)
        return Response(
            text=well_formed(text),
            tool_calls=calls or (),
            calls_known=True if known else None,
            calls_place="" if known else self._calls_place,
            usage=_usage(document),
            cost_usd=_cost(document),
            duration_ms=duration_ms,
        )

    def _says_none(self, document: JsonValue) -> bool:
        """Whether an answer without a list says that no tool was called: by null in its place, or by its protocol."""
        if _exists(document, self._calls_path):
            return True
        holder = self._preset.leaves_out_none
        return holder is not None and self._calls_path == self._preset.calls and _exists(document, holder)

    def _tool_calls(self, document: JsonValue, body: bytes) -> tuple[ToolCall, ...] | None:
        """The calls in order; None for an answer that has no list of them."""
        calls = _at(document, self._calls_path)
        if calls is None:
            return None
        if not isinstance(calls, list):
            raise _malformed(f'"{self._calls_path}" is not a list but {kind_of(calls)}', body)
        if len(calls) > ANSWER_CALLS:
            raise _malformed(f'"{self._calls_path}" lists {len(calls):,} calls, more than {ANSWER_CALLS:,}', body)
        return tuple(self._tool_call(call, f"{self._calls_path}[{index}]", body) for index, call in enumerate(calls))

    def _tool_call(self, call: JsonValue, place: str, body: bytes) -> ToolCall:
        name = _at(call, self._preset.call_name)
        params = _at(call, self._preset.call_params)
        if isinstance(params, str):
            params = _arguments(params, f"{place}.{self._preset.call_params}", body)
        if not isinstance(name, str) or not 0 < len(name) <= CALL_NAME:
            raise _malformed(f'"{place}" has no {self._preset.call_name} of up to {CALL_NAME} characters', body)
        if params is not None and not isinstance(params, dict):
            raise _malformed(f'"{place}.{self._preset.call_params}" is not a mapping but {kind_of(params)}', body)
        success, duration = _at(call, "success"), _at(call, "durationMs")
        if success is not None and not isinstance(success, bool):
            raise _malformed(f'"{place}.success" is not true or false but {kind_of(success)}', body)
        result = _at(call, "result")
        if b"\\u" in body:  # only an escape can bring half a surrogate pair
            params, result = _well_formed_values(params), _well_formed_values(result)
        return ToolCall(
            name=well_formed(name),
            params=params or {},
            success=success,
            duration_ms=in_range(duration, MAX_DURATION_MS),
            result=result,
        )


def _arguments(text: str, place: str, body: bytes) -> JsonValue:
    """Arguments as JSON text, as OpenAI's wire has them; what is not JSON counts as none (tool-forge behaviour 1.4)."""
    try:
        return read_foreign(text)
    except ForeignJsonError as error:
        if error.too_much:
            raise _malformed(f'"{place}" {error}', body) from None
        return {}


def _usage(document: JsonValue) -> Usage | None:
    usage = _at(document, "usage")
    if not isinstance(usage, dict):
        return None
    counts = [
        next((usage[key] for key in keys if isinstance(usage.get(key), int) and in_range(usage[key], MAX_TOKENS)), None)
        for keys in (
            ("inputTokens", "prompt_tokens", "input_tokens"),
            ("outputTokens", "completion_tokens", "output_tokens"),
        )
    ]
    try:
        return Usage.model_validate({"input_tokens": counts[0], "output_tokens": counts[1]})
    except ValidationError:
        return None


def _cost(document: JsonValue) -> float | None:
    cost = in_range(_at(document, "costUsd"), MAX_COST_USD)
    return None if cost is None else float(cost)


def _fill(template: JsonValue, request: Request) -> JsonValue:
    match template:
        case str():
            alone = _PLACEHOLDER.fullmatch(template)
            if alone:
                return _placeholder(alone[1], request)
            return _PLACEHOLDER.sub(lambda match: _as_text(_placeholder(match[1], request)), template)
        case list():
            return [_fill(member, request) for member in template]
        case dict():
            return {key: _fill(member, request) for key, member in template.items()}
        case _:
            return template


def _placeholder(name: str, request: Request) -> JsonValue:
    match name:
        case "message":
            return request.messages[-1].content
        case "conversation":
            return _conversation(request.messages)
        case _:
            return request.case_id


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else compact_json(value)


def _conversation(messages: tuple[Message, ...]) -> JsonValue:
    return [{"role": message.role, "content": message.content} for message in messages]


def _at(document: JsonValue, path: str) -> JsonValue:
    value = document
    if path.isidentifier():  # the usual case, without the cost of a pattern
        return value.get(path) if isinstance(value, dict) else None
    for key, index in _STEP.findall(path):
        if index:
            at = int(index[:MAX_INDEX_DIGITS])
            value = value[at] if isinstance(value, list) and at < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _exists(document: JsonValue, path: str) -> bool:
    """Whether the last step of the path is there, be it with null."""
    parent, _, last = path.rpartition(".")
    holder = _at(document, parent) if parent else document
    return isinstance(holder, dict) and last in holder


def _well_formed_values(value: Values) -> Values:
    found = json.dumps(value, ensure_ascii=False) if value else ""
    if found.isascii():
        return value
    cleaned: Values = json.loads(well_formed(found))
    return cleaned


def _malformed(what: str, body: bytes) -> TargetError:
    return TargetError(
        f"agent error: {what}; it begins {quote(body)}",
        fault=TargetFault.MALFORMED,
        hint="describe the endpoint's shape with a target's responsePath, toolCallsPath or preset",
    )
