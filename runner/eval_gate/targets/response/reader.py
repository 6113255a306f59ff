"""Parse a response as its settings describe it: text, tool calls, usage and failures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeVar

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.execution import ErrorCause
from eval_gate.model.limits import (
    CALL_NAME,
    MAX_DURATION_MS,
    RESPONSE_CALLS,
    in_range,
)
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.response.extraction import extract_text, parse_cost, parse_tokens
from eval_gate.targets.response.field_paths import FieldPath, MissingValue
from eval_gate.targets.response.settings import EventRule, ResponseFormat, ResponseSettings, ToolResults, find_value
from eval_gate.text.escape import truncate_text
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.quoting import describe_name
from eval_gate.text.sources.validation_errors import describe_value
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.excerpt import format_excerpt
from eval_gate.text.untrusted.surrogates import may_hold_surrogates, to_well_formed

Values = TypeVar("Values", bound=JsonValue)
_SUCCESS_WORDS: Final = {
    "success": True,
    "ok": True,
    "completed": True,
    "succeeded": True,
    "error": False,
    "failed": False,
}
"""Words for the success status of a call that is not true or false."""
_FORMATS_BY_TYPE: Final = {
    "application/json": ResponseFormat.JSON,
    "text/plain": ResponseFormat.TEXT,
    "text/event-stream": ResponseFormat.SSE,
    "application/x-ndjson": ResponseFormat.NDJSON,
    "application/jsonl": ResponseFormat.NDJSON,
}
_INPUT_TOKEN_KEYS: Final = ("inputTokens", "prompt_tokens", "input_tokens")
_OUTPUT_TOKEN_KEYS: Final = ("outputTokens", "completion_tokens", "output_tokens")
_NEVER_NULL: Final = "response"
"""Response path of the contract, where null is not a response. Elsewhere, an agent that only calls tools can return
null."""


class ResponseReader:
    """Parser of the responses of one target."""

    def __init__(self, settings: ResponseSettings) -> None:
        self._paths = settings
        self._text_place = _format_place(settings, "responsePath")
        self._list_place = _format_place(settings, "toolCallsPath")
        place = describe_name(settings.find_reference("toolCallsPath") or settings.tool_calls_path)
        self._calls_place = f"a list of tool calls at `{place}` (toolCallsPath, agentProtocol)"

    def read(self, body: bytes, duration_ms: float) -> Response:
        """Read the response in a JSON body. Raises TargetError with the reason and the beginning of the body."""
        try:
            document = parse_untrusted_json(body)
        except UntrustedJsonError as error:
            raise build_malformed_error(f"the response {error}", body) from None
        try:
            return self.read_document(document, duration_ms, escaped=may_hold_surrogates(body))
        except ResponseShapeError as error:
            raise build_malformed_error(str(error), body, is_mapping=error.is_mapping) from None

    def read_document(self, document: JsonValue, duration_ms: float, *, escaped: bool) -> Response:
        """Read JSON; `escaped` texts may hold half a surrogate pair. Raises ResponseShapeError and TargetError."""
        failure = find_failure(document, self._paths.failure)
        if failure is not None:
            raise failure
        calls = self.read_calls(document, escaped=escaped)
        text = self._get_text(document, silent=bool(calls))
        # null in the place of the list, or the protocol, says that no tool was called
        has_list = calls is not None or self._paths.tool_calls_path.has_value(document)
        calls_known = has_list or self.is_without_calls(document)
        return Response(
            text=to_well_formed(text),
            tool_calls=calls or (),
            tool_calls_known=True if calls_known else None,
            tool_calls_location="" if calls_known else self._calls_place,
            usage=find_usage(document),
            cost_usd=parse_cost(document.get("costUsd")) if isinstance(document, dict) else None,
            duration_ms=duration_ms,
            model=self.find_model(document),
            trace_id=self.find_trace(document),
            body=document,
        )

    def read_text(self, body: bytes, encoding: str | None, duration_ms: float) -> Response:
        """Read a plain text, which cannot report tool calls, after `duration_ms` milliseconds."""
        try:
            text = body.decode(encoding or "utf-8", "replace")
        except LookupError:  # an unknown encoding
            text = body.decode("utf-8", "replace")
        return Response(text=to_well_formed(text), tool_calls_known=False, duration_ms=duration_ms)

    def build_format_error(self, body: bytes, content_type: str) -> TargetError:
        """Build the error for a response that is no stream of events: the agent's own failure if it has one."""
        try:
            failure = find_failure(parse_untrusted_json(body), self._paths.failure)
        except UntrustedJsonError:
            failure = None
        if failure is not None:
            return failure
        error = build_malformed_error(
            f"the response is not an event stream but {truncate_text(content_type, 80)}", body
        )
        error.hint = "set the target's responseFormat"
        return error

    def assemble_response(self, text: str, calls: tuple[ToolCall, ...], *, calls_known: bool) -> Response:
        """Assemble a response that arrived in parts; if `calls_known`, `calls` are all tool calls, even if empty."""
        calls_known = calls_known or bool(calls)
        return Response(
            text=text,
            tool_calls=calls,
            tool_calls_known=True if calls_known else None,
            tool_calls_location="" if calls_known else self._calls_place,
        )

    def _get_text(self, document: JsonValue, *, silent: bool) -> str:
        """Return the text at the first path that leads to one; a response with tool calls (`silent`) may have none."""
        for path in self._paths.response_path:
            text = _find_text_at(document, path)
            if text is not None:
                return text
        # a missing field is never taken for ""
        for path in self._paths.response_path:
            if path.is_gathering or _is_part_list(path.find_first(document)):
                if silent and path.has_value(document):
                    return ""
            elif path != _NEVER_NULL and path.find_first(document) is None:
                return ""
        places = " or ".join(f'"{path}"' for path in self._paths.response_path)
        what = "text" if any(path.has_value(document) for path in self._paths.response_path) else "value"
        keys = self._paths.response_path[0].describe_nearest_keys(document)
        message = f"the response has no {what} at {places}{self._text_place}"
        raise ResponseShapeError(f"{message}; {keys}" if keys else message, is_mapping=True)

    def find_model(self, document: JsonValue) -> str | None:
        """Find the name of the model in a response or in one of its events. Return None if the model is not given."""
        path = self._paths.model_path
        if path is None:
            return None
        names = path.find_all(document).values[-1:] if path.is_gathering else [path.find_first(document)]
        return next((name for name in names if isinstance(name, str)), None)

    def find_trace(self, document: JsonValue, name: str = "") -> str | None:
        """Find the id or address of the trace in a response or in its event `name`. Return None if it has none."""
        return _format_id(find_value(self._paths.trace_path, document, name, None)) or None

    def is_without_calls(self, document: JsonValue) -> bool:
        """Whether this is of a protocol that has a place for calls and leaves it out where there were none."""
        path = self._paths.no_tool_calls_path
        return path is not None and path.has_value(document)

    def read_calls(self, document: JsonValue, *, escaped: bool) -> tuple[ToolCall, ...] | None:
        """Read the list of tool calls, if the response has one; see `read_document`. Raises ResponseShapeError."""
        entries = self._find_entries(document)
        if entries is None:
            return None
        if len(entries) > RESPONSE_CALLS:
            raise ResponseShapeError(
                f'"{self._paths.tool_calls_path}" lists {len(entries):,} calls, more than {RESPONSE_CALLS:,}'
            )
        results = _read_results(document, self._paths.tool_results) if self._paths.tool_results and entries else {}
        place = self._paths.tool_calls_path.removesuffix("[]")
        return tuple(
            self._read_call(entry, f"{place}[{at}]", results, escaped=escaped) for at, entry in enumerate(entries)
        )

    def _find_entries(self, document: JsonValue) -> list[JsonValue] | None:
        path = self._paths.tool_calls_path
        if path.is_gathering:
            match = path.find_all(document)
            if match.first_missing is not None:
                raise ResponseShapeError(f'"{path}" has no value in member {match.first_missing} of the list')
            return match.values if match.has_list else None
        calls = path.find_first(document)
        if isinstance(calls, MissingValue) or calls is None:
            return None
        if not isinstance(calls, list):
            raise ResponseShapeError(f'"{path}"{self._list_place} is not a list but {describe_value(calls)}')
        return calls

    def _read_call(self, call: JsonValue, place: str, results: dict[str, CallFragment], *, escaped: bool) -> ToolCall:
        if isinstance(call, str) and self._paths.tool_calls_path.is_gathering:
            # toolCalls[].toolName: only the names were asked for
            return self.join_fragments([CallFragment(name=call)], place)
        fragment = self.read_fragment(call, place)
        more = results.get(fragment.id)
        return self.join_fragments([fragment] if more is None else [more, fragment], place, escaped=escaped)

    def read_fragment(self, call: JsonValue, place: str) -> CallFragment:
        """Read everything about a tool call that is at this place. Raises ResponseShapeError."""
        paths = self._paths
        name, failed = paths.name_field.find_first(call), paths.error_field
        success = _parse_success(paths.success_field.find_first(call), f"{place}.{paths.success_field}")
        if failed is not None and _is_present(problem := failed.find_first(call)):
            return CallFragment(
                self._find_id(call), _text_or_none(name), None, success=False, result=_value_or_none(problem)
            )
        return CallFragment(
            id=self._find_id(call),
            name=_text_or_none(name),
            args=_value_or_none(paths.args_field.find_first(call)),
            success=success,
            duration_ms=in_range(paths.duration_field.find_first(call), MAX_DURATION_MS),
            result=_value_or_none(paths.result_field.find_first(call)),
        )

    def join_fragments(self, parts: list[CallFragment], place: str, *, escaped: bool = True) -> ToolCall:
        """Join the fragments of a tool call: the first name counts, else the last value. Raises ResponseShapeError."""
        name, success, duration_ms, result = None, None, None, None
        for part in parts:
            name = name or part.name
            success = success if part.success is None else part.success
            duration_ms = duration_ms if part.duration_ms is None else part.duration_ms
            result = result if part.result is None else part.result
        if not name or len(name) > CALL_NAME:
            raise ResponseShapeError(f'"{place}" has no {self._paths.name_field} of up to {CALL_NAME} characters')
        params = self._join_params(parts, place)
        if escaped:  # only an escape can bring half a surrogate pair
            params, result = _clean_values(params), _clean_values(result)
        return ToolCall(
            name=to_well_formed(name),
            params=params,
            success=success,
            duration_ms=None if duration_ms is None else float(duration_ms),
            result=result,
        )

    def _join_params(self, parts: list[CallFragment], place: str) -> dict[str, JsonValue]:
        arguments = [part.args for part in parts if part.args is not None]
        params: JsonValue = next((args for args in reversed(arguments) if not isinstance(args, str)), None)
        if params is None and arguments:
            params = parse_arguments("".join(map(str, arguments)), f"{place}.{self._paths.args_field}")
        if params is not None and not isinstance(params, dict):
            raise ResponseShapeError(
                f'"{place}.{self._paths.args_field}" is not a mapping but {describe_value(params)}'
            )
        return params or {}

    def _find_id(self, call: JsonValue) -> str:
        """Find the id of a tool call, or return an empty text."""
        return next((key for path in self._paths.id_field if (key := _format_id(path.find_first(call)))), "")


def _find_text_at(document: JsonValue, path: FieldPath) -> str | None:
    """Find the text at a path; the texts of several messages are joined line by line."""
    if not path.is_gathering:
        return extract_text(path.find_first(document))
    values = path.find_all(document).values
    if _is_part_list(values):
        return extract_text(values)
    texts = [text for value in values if (text := extract_text(value)) is not None]
    return "\n".join(texts) if texts else None


def _is_part_list(value: JsonValue | MissingValue) -> bool:
    """Whether this is a list of parts of one message, and not of messages."""
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def find_usage(document: JsonValue) -> Usage | None:
    """Find the token counts in the `usage` of a response. Return None if the response has no usage."""
    usage = document.get("usage") if isinstance(document, dict) else None
    if not isinstance(usage, dict):
        return None
    return Usage(
        input_tokens=_find_tokens(usage, _INPUT_TOKEN_KEYS), output_tokens=_find_tokens(usage, _OUTPUT_TOKEN_KEYS)
    )


def _find_tokens(usage: dict[str, JsonValue], keys: Sequence[str]) -> int | None:
    """Find the first number of tokens above 0, which an unset field has."""
    return next((count for key in keys if (count := parse_tokens(usage.get(key)))), None)


def find_format_hint(content_type: str, described: ResponseFormat) -> str | None:
    """Find the hint for a known content type that does not fit the described response format."""
    kind = content_type.partition(";")[0].strip().lower()
    actual = _FORMATS_BY_TYPE.get(kind)
    if actual is None or actual is described or {actual, described} == {ResponseFormat.NDJSON, ResponseFormat.JSON}:
        return None
    return f"the content type is {kind}: set responseFormat: {actual}, or an agentProtocol"


def build_malformed_error(
    what: str,
    body: bytes,
    described: str = "responsePath, toolCallsPath or agentProtocol",
    *,
    shapes: str | None = None,
    is_mapping: bool = False,
) -> TargetError:
    """Build the error for a response that does not fit the `described` settings, which may be wrong if `is_mapping`."""
    hint, cause = f"describe the shape of the response with the target's {described}", ErrorCause.WRONG_SHAPE
    if body.lstrip()[:9].lower().startswith((b"<!doctype", b"<html")):
        hint, cause = "this is a web page: check the port and the path of the agent's URL", ErrorCause.WEB_PAGE
    elif not body.strip():
        hint, cause = "the body is empty: check the path and the method of the agent's URL", ErrorCause.EMPTY_RESPONSE
    who = "" if is_mapping else "agent error: "
    message = f"{who}{what}; {shapes or f'it begins {format_excerpt(body)}'}"
    return TargetError(message, fault=TargetFault.MALFORMED, hint=hint, known_cause=cause)


class ResponseShapeError(Exception):
    """Response without the described structure. The message names the place.

    `is_mapping` means that the settings may name the wrong place.
    """

    def __init__(self, message: str, *, is_mapping: bool = False) -> None:
        super().__init__(message)
        self.is_mapping = is_mapping


class CallFragment(FrozenStruct):
    """Part of one tool call found at one place; several parts may belong to the same call."""

    id: str = ""
    name: str | None = None
    args: JsonValue = None
    """Mapping, its JSON text, or a part of that text."""
    success: bool | None = None
    duration_ms: float | None = None
    result: JsonValue = None


def _read_results(document: JsonValue, fields: ToolResults) -> dict[str, CallFragment]:
    """Read the results that are listed apart from the tool calls, by the id of the call."""
    entries = fields.path.find_all(document).values
    if not fields.path.is_gathering and entries and isinstance(entries[0], list):
        entries = entries[0]
    fragments = (_read_result(entry, fields) for entry in entries[: 2 * RESPONSE_CALLS])
    return {one.id: one for one in fragments if one.id}


def _read_result(entry: JsonValue, fields: ToolResults) -> CallFragment:
    success = None
    if fields.success_field is not None:
        success = _parse_success(fields.success_field.find_first(entry), f"{fields.path}.{fields.success_field}")
    if fields.error_field is not None and _is_present(fields.error_field.find_first(entry)):
        success = False
    result = None if fields.result_field is None else _value_or_none(fields.result_field.find_first(entry))
    return CallFragment(_format_id(fields.id_field.find_first(entry)), success=success, result=result)


def parse_arguments(text: str, place: str) -> JsonValue:
    """Parse arguments as JSON text; other text counts as none (tool-forge behaviour 1.4). Raises ResponseShapeError."""
    try:
        return parse_untrusted_json(text)
    except UntrustedJsonError as error:
        if error.too_much:
            raise ResponseShapeError(f'"{place}" {error}') from None
        return {}


def _format_place(settings: ResponseSettings, key: str) -> str:
    """Format the place of a setting as a suffix of its value; empty if unknown."""
    place = settings.find_place(key)
    return f" ({place})" if place else ""


def _text_or_none(value: JsonValue | MissingValue) -> str | None:
    return value if isinstance(value, str) else None


def _parse_success(value: object, place: str) -> bool | None:
    if isinstance(value, MissingValue) or value is None:
        return None
    if isinstance(value, str) and (success := _SUCCESS_WORDS.get(value.strip().lower())) is not None:
        return success
    if not isinstance(value, bool):
        raise ResponseShapeError(f'"{place}" is not true or false but {describe_value(value)}')
    return value


def _is_present(value: object) -> bool:
    return not isinstance(value, MissingValue) and value is not None and value is not False


def _value_or_none(value: JsonValue | MissingValue) -> JsonValue:
    return None if isinstance(value, MissingValue) else value


def _format_id(value: object) -> str:
    """Format an id as text. The result is empty if the value is not an id."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _clean_values(value: Values) -> Values:
    text = json.dumps(value, ensure_ascii=False) if value else ""
    if text.isascii():
        return value
    cleaned: Values = json.loads(to_well_formed(text))
    return cleaned


def find_failure(value: JsonValue, rules: tuple[EventRule, ...], name: str = "") -> TargetError | None:
    """Find the failure that a response, or its event `name`, reports by one of the rules."""
    for rule in rules:
        if rule.matches(value, name):
            reason = rule.select_value(value)
            if isinstance(reason, MissingValue) or reason is None:
                if rule.where is None and rule.event is None:
                    continue  # only a value at the path means a failure
                reason = value
            excerpt = format_excerpt(as_text(reason).encode("utf-8", "replace"))
            return TargetError(f"agent error: {excerpt}", fault=TargetFault.REFUSED)
    return None
