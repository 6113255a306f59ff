"""Read an HTTP agent's response: text, tool calls, usage, whether it says that the agent failed, or what is wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeVar

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.limits import (
    ANSWER_CALLS,
    CALL_NAME,
    MAX_COST_USD,
    MAX_DURATION_MS,
    MAX_TOKENS,
    in_range,
)
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.paths import MISSING, Condition, Missing, Path
from eval_gate.targets.http.settings import EventRule, HttpSettings, ResponseFormat, ToolResults
from eval_gate.text.escape import cut
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.foreign.quote import quote
from eval_gate.text.foreign.well_formed import may_hold_halves, well_formed
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.quoting import shown_name
from eval_gate.text.sources.shape import kind_of

Values = TypeVar("Values", bound=JsonValue)
_WENT: Final = {"success": True, "ok": True, "completed": True, "succeeded": True, "error": False, "failed": False}
"""Words for whether a call went well, where no true and false says it."""
_FORMATS: Final = {
    "application/json": ResponseFormat.JSON,
    "text/plain": ResponseFormat.TEXT,
    "text/event-stream": ResponseFormat.SSE,
    "application/x-ndjson": ResponseFormat.NDJSON,
    "application/jsonl": ResponseFormat.NDJSON,
}
_INPUT: Final = ("inputTokens", "prompt_tokens", "input_tokens")
_OUTPUT: Final = ("outputTokens", "completion_tokens", "output_tokens")
_NEVER_NULL: Final = "response"
"""The contract's own field: null there is no answer. Elsewhere an agent that only calls tools may say so with null."""


class AnswerReader:
    """Reads the answers of one target."""

    def __init__(self, settings: HttpSettings) -> None:
        self._texts = tuple(Path.parse(path) for path in settings.response_path)
        self.calls = CallFields(settings)
        self.failures = tuple(map(EventMatch.of, settings.failure))
        self._model = None if settings.model_path is None else Path.parse(settings.model_path)
        self._none_at = None if settings.called_none_at is None else Path.parse(settings.called_none_at)
        place = shown_name(settings.reference("toolCallsPath") or settings.tool_calls_path)
        self._calls_place = f"a list of tool calls at `{place}` (toolCallsPath, preset)"

    def read(self, body: bytes, duration_ms: float) -> Response:
        """The answer, which took so long. Raises TargetError (malformed) that quotes its beginning and says why."""
        try:
            document = read_foreign(body)
        except ForeignJsonError as error:
            raise malformed(f"the answer {error}", body) from None
        try:
            return self.response(document, duration_ms, escaped=may_hold_halves(body))
        except ShapeError as error:
            raise malformed(str(error), body) from None

    def response(self, document: JsonValue, duration_ms: float, *, escaped: bool) -> Response:
        """The answer in a document. `escaped`: its text may hold half a surrogate pair.

        Raises ShapeError, and TargetError (refused) where it says that the agent failed.
        """
        failure = failure_in(document, self.failures)
        if failure is not None:
            raise failure
        calls = self.calls.calls_of(document, escaped=escaped)
        text = self._text(document, silent=bool(calls))
        known = calls is not None or self._said_none(document)
        return Response(
            text=well_formed(text),
            tool_calls=calls or (),
            calls_known=True if known else None,
            calls_place="" if known else self._calls_place,
            usage=usage_in(document),
            cost_usd=_cost(document),
            duration_ms=duration_ms,
            model=self.model_in(document),
        )

    def text(self, body: bytes, encoding: str | None, duration_ms: float) -> Response:
        """The answer that is nothing but a text: it has no way to say which tools were called."""
        try:
            text = body.decode(encoding or "utf-8", "replace")
        except LookupError:  # a name of an encoding that nobody knows
            text = body.decode("utf-8", "replace")
        return Response(text=well_formed(text), calls_known=False, duration_ms=duration_ms)

    def in_another_format(self, body: bytes, content_type: str) -> TargetError:
        """The error about an answer that does not come in events: what the agent says that went wrong, if it does."""
        try:
            failure = failure_in(read_foreign(body), self.failures)
        except ForeignJsonError:
            failure = None
        if failure is not None:
            return failure
        error = malformed(f"the answer is no stream of events but {cut(content_type, 80)}", body)
        error.hint = "describe it with responseFormat"
        return error

    def put_together(self, text: str, calls: tuple[ToolCall, ...], *, known: bool) -> Response:
        """The answer that came in parts. `known`: its calls, be they none, are all that were made."""
        known = known or bool(calls)
        return Response(
            text=text,
            tool_calls=calls,
            calls_known=True if known else None,
            calls_place="" if known else self._calls_place,
        )

    def _text(self, document: JsonValue, *, silent: bool) -> str:
        """The text at the first path that leads to one. `silent`: tools were called, so that there may be none."""
        for path in self._texts:
            found = _text_at(document, path)
            if found is not None:
                return found
        # a missing field is never taken for ""
        for path in self._texts:
            if path.gathers or _parts(path.first_value(document)):
                if silent and path.is_there(document):
                    return ""
            elif path.text != _NEVER_NULL and path.first_value(document) is None:
                return ""
        places = " or ".join(f'"{path}"' for path in self._texts)
        raise ShapeError(f"the answer has no text at {places}")

    def _said_none(self, document: JsonValue) -> bool:
        """Whether an answer without a list says that no tool was called: by null in its place, or by its protocol."""
        return self.calls.path.is_there(document) or self.says_none(document)

    def model_in(self, document: JsonValue) -> str | None:
        """The model that the answer, or an event of it, says it is from."""
        if self._model is None:
            return None
        found = self._model.all(document).values[-1:] if self._model.gathers else [self._model.first_value(document)]
        return next((name for name in found if isinstance(name, str)), None)

    def says_none(self, document: JsonValue) -> bool:
        """Whether this is of a protocol that has a place for calls and leaves it out where there were none."""
        return self._none_at is not None and self._none_at.is_there(document)


def _text_at(document: JsonValue, path: Path) -> str | None:
    """The text there, of several messages line by line; None where there is none."""
    if not path.gathers:
        return said_by(path.first_value(document))
    values = path.all(document).values
    if _parts(values):
        return said_by(values)
    said = [text for value in values if (text := said_by(value)) is not None]
    return "\n".join(said) if said else None


def said_by(value: JsonValue | Missing) -> str | None:
    """What one message says: a text, or the texts of its parts (`{"type": "text", "text": …}`) one after the other."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    texts = [text for part in value if isinstance(text := part.get("text") if isinstance(part, dict) else part, str)]
    return "".join(texts) if texts else None


def _parts(value: JsonValue | Missing) -> bool:
    """Whether this is a list of parts of one message, and not of messages."""
    return isinstance(value, list) and all(isinstance(part, dict) for part in value)


def usage_in(document: JsonValue) -> Usage | None:
    """The tokens that were counted, where it says so."""
    usage = document.get("usage") if isinstance(document, dict) else None
    if not isinstance(usage, dict):
        return None
    return Usage(input_tokens=_tokens(usage, _INPUT), output_tokens=_tokens(usage, _OUTPUT))


def _tokens(usage: dict[str, JsonValue], keys: Sequence[str]) -> int | None:
    for key in keys:
        count = usage.get(key)
        if isinstance(count, int) and in_range(count, MAX_TOKENS):  # no tokens at all is what an unset field says
            return count
    return None


def _cost(document: JsonValue) -> float | None:
    cost = in_range(document.get("costUsd"), MAX_COST_USD) if isinstance(document, dict) else None
    return None if cost is None else float(cost)


def other_format(content_type: str, described: ResponseFormat) -> str | None:
    """What to write where the answer says of itself that it is of another format than was described."""
    kind = content_type.partition(";")[0].strip().lower()
    found = _FORMATS.get(kind)
    if found is None or found is described or {found, described} == {ResponseFormat.NDJSON, ResponseFormat.JSON}:
        return None
    return f"the answer says that it is {kind}: say responseFormat: {found}, or take a preset"


def malformed(
    what: str, body: bytes, described: str = "responsePath, toolCallsPath or preset", *, seen: str | None = None
) -> TargetError:
    """The error about an answer that is not as described: how the answer begins, or what is `seen` of it.

    `described`: the settings by which it could be described otherwise.
    """
    hint = f"describe the endpoint's shape with a target's {described}"
    if body.lstrip()[:9].lower().startswith((b"<!doctype", b"<html")):
        hint = "this is a web page: look at port and path of the agent's address"
    return TargetError(
        f"agent error: {what}; {seen or f'it begins {quote(body)}'}", fault=TargetFault.MALFORMED, hint=hint
    )


class ShapeError(Exception):
    """The answer is not of the shape that was described; the message names the place."""


class ResultFields(FrozenStruct):
    """Where the results are that are listed apart from the calls."""

    path: Path
    id: Path
    result: Path | None
    success: Path | None
    error: Path | None

    @classmethod
    def of(cls, settings: ToolResults) -> ResultFields:
        """As they are described."""
        return cls(
            Path.parse(settings.path),
            Path.parse(settings.id_field),
            _path(settings.result_field),
            _path(settings.success_field),
            _path(settings.error_field),
        )


class CallFragment(FrozenStruct):
    """What is said of one call at one place; several places may say something of the same call."""

    id: str = ""
    name: str | None = None
    args: JsonValue = None
    """A mapping, or its JSON text or a part of that."""
    success: bool | None = None
    duration_ms: float | None = None
    result: JsonValue = None


class CallFields:
    """Reads calls by the fields that a target's description names."""

    def __init__(self, settings: HttpSettings) -> None:
        self._path = Path.parse(settings.tool_calls_path)
        self._name = Path.parse(settings.name_field)
        self._args = Path.parse(settings.args_field)
        self._success = Path.parse(settings.success_field)
        self._error = _path(settings.error_field)
        self._duration = Path.parse(settings.duration_field)
        self._result = Path.parse(settings.result_field)
        self._ids = tuple(Path.parse(path) for path in settings.id_field)
        apart = settings.tool_results
        self._apart = None if apart is None else ResultFields.of(apart)

    @property
    def path(self) -> Path:
        """Where the list is looked for."""
        return self._path

    def calls_of(self, document: JsonValue, *, escaped: bool) -> tuple[ToolCall, ...] | None:
        """The calls in order; None for an answer that has no list of them. Raises ShapeError.

        `escaped`: the answer's text may hold half a surrogate pair.
        """
        entries = self._entries(document)
        if entries is None:
            return None
        if len(entries) > ANSWER_CALLS:
            raise ShapeError(f'"{self._path}" lists {len(entries):,} calls, more than {ANSWER_CALLS:,}')
        apart = _results(document, self._apart) if self._apart and entries else {}
        place = self._path.text.removesuffix("[]")
        return tuple(self._call(entry, f"{place}[{at}]", apart, escaped=escaped) for at, entry in enumerate(entries))

    def _entries(self, document: JsonValue) -> list[JsonValue] | None:
        if self._path.gathers:
            found = self._path.all(document)
            if found.lacking is not None:
                raise ShapeError(f'"{self._path}" leads nowhere in member {found.lacking} of what it gathers')
            return found.values if found.listed else None
        calls = self._path.first_value(document)
        if isinstance(calls, Missing) or calls is None:
            return None
        if not isinstance(calls, list):
            raise ShapeError(f'"{self._path}" is not a list but {kind_of(calls)}')
        return calls

    def _call(self, call: JsonValue, place: str, apart: dict[str, CallFragment], *, escaped: bool) -> ToolCall:
        if isinstance(call, str) and self._path.gathers:  # toolCalls[].toolName: only the names were asked for
            return self.joined([CallFragment(name=call)], place)
        said = self.fragment_of(call, place)
        more = apart.get(said.id)
        return self.joined([said] if more is None else [more, said], place, escaped=escaped)

    def fragment_of(self, call: JsonValue, place: str) -> CallFragment:
        """What is said of a call here. Raises ShapeError."""
        name = self._name.first_value(call)
        success = _went(self._success.first_value(call), f"{place}.{self._success}")
        if self._error is not None and _there(problem := self._error.first_value(call)):
            return CallFragment(self._id(call), _text(name), None, success=False, result=_value(problem))
        return CallFragment(
            id=self._id(call),
            name=_text(name),
            args=_value(self._args.first_value(call)),
            success=success,
            duration_ms=in_range(self._duration.first_value(call), MAX_DURATION_MS),
            result=_value(self._result.first_value(call)),
        )

    def joined(self, parts: list[CallFragment], place: str, *, escaped: bool = True) -> ToolCall:
        """The call that all of this is said of; what is said later wins. Raises ShapeError.

        `escaped`: it may hold half a surrogate pair.
        """
        name, success, duration_ms, result = None, None, None, None
        for said in parts:
            name = name or said.name
            success = success if said.success is None else said.success
            duration_ms = duration_ms if said.duration_ms is None else said.duration_ms
            result = result if said.result is None else said.result
        if not name or len(name) > CALL_NAME:
            raise ShapeError(f'"{place}" has no {self._name} of up to {CALL_NAME} characters')
        params = self._params(parts, place)
        if escaped:  # only an escape can bring half a surrogate pair
            params, result = _well_formed_values(params), _well_formed_values(result)
        return ToolCall(
            name=well_formed(name),
            params=params,
            success=success,
            duration_ms=None if duration_ms is None else float(duration_ms),
            result=result,
        )

    def _params(self, parts: list[CallFragment], place: str) -> dict[str, JsonValue]:
        given = [said.args for said in parts if said.args is not None]
        params: JsonValue = next((args for args in reversed(given) if not isinstance(args, str)), None)
        if params is None and given:
            params = arguments("".join(map(str, given)), f"{place}.{self._args}")
        if params is not None and not isinstance(params, dict):
            raise ShapeError(f'"{place}.{self._args}" is not a mapping but {kind_of(params)}')
        return params or {}

    def _id(self, call: JsonValue) -> str:
        """What the call is known by; "" for nothing."""
        return next((key for path in self._ids if (key := _key(path.first_value(call)))), "")


def _results(document: JsonValue, fields: ResultFields) -> dict[str, CallFragment]:
    """What is said of calls apart from them, by the id of the call."""
    found = fields.path.all(document).values
    if not fields.path.gathers and found and isinstance(found[0], list):
        found = found[0]
    said = (_result(entry, fields) for entry in found[: 2 * ANSWER_CALLS])
    return {one.id: one for one in said if one.id}


def _result(entry: JsonValue, fields: ResultFields) -> CallFragment:
    success = None
    if fields.success is not None:
        success = _went(fields.success.first_value(entry), f"{fields.path}.{fields.success}")
    if fields.error is not None and _there(fields.error.first_value(entry)):
        success = False
    result = None if fields.result is None else _value(fields.result.first_value(entry))
    return CallFragment(_key(fields.id.first_value(entry)), success=success, result=result)


def arguments(text: str, place: str) -> JsonValue:
    """Arguments as JSON text, as OpenAI's wire has them; what is not JSON counts as none (tool-forge behaviour 1.4).

    Raises ShapeError for what is too much to be read.
    """
    try:
        return read_foreign(text)
    except ForeignJsonError as error:
        if error.too_much:
            raise ShapeError(f'"{place}" {error}') from None
        return {}


def _path(text: str | None) -> Path | None:
    return None if text is None else Path.parse(text)


def _text(found: JsonValue | Missing) -> str | None:
    return found if isinstance(found, str) else None


def _went(said: object, place: str) -> bool | None:
    if isinstance(said, Missing) or said is None:
        return None
    if isinstance(said, str) and (known := _WENT.get(said.strip().lower())) is not None:
        return known
    if not isinstance(said, bool):
        raise ShapeError(f'"{place}" is not true or false but {kind_of(said)}')
    return said


def _there(value: object) -> bool:
    return not isinstance(value, Missing) and value is not None and value is not False


def _value(found: JsonValue | Missing) -> JsonValue:
    return None if isinstance(found, Missing) else found


def _key(value: object) -> str:
    """An id as text; "" for none."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _well_formed_values(value: Values) -> Values:
    found = json.dumps(value, ensure_ascii=False) if value else ""
    if found.isascii():
        return value
    cleaned: Values = json.loads(well_formed(found))
    return cleaned


class EventMatch(FrozenStruct):
    """Everything of this name and with this in it. Without a path it is the whole of it that is meant."""

    event: str | None = None
    where: Condition | None = None
    path: Path | None = None
    id: Path | None = None

    @classmethod
    def of(cls, rule: EventRule) -> EventMatch:
        """As it is described."""
        return cls(
            rule.event,
            None if rule.where is None else Condition.parse(rule.where),
            None if rule.path is None else Path.parse(rule.path),
            None if rule.id is None else Path.parse(rule.id),
        )

    def at(self, value: JsonValue) -> JsonValue | Missing:
        """What is meant, in an answer or event that is."""
        if self.path is None:
            return value
        if self.path.gathers:
            return self.path.all(value).values or MISSING
        return self.path.first_value(value)


def failure_in(value: JsonValue, rules: tuple[EventMatch, ...], name: str = "") -> TargetError | None:
    """The error that the answer, or its event of this name, says it ended with."""
    for rule in rules:
        if (rule.event is None or rule.event == name) and (rule.where is None or rule.where(value)):
            found = rule.at(value)
            if isinstance(found, Missing) or found is None:
                if rule.where is None and rule.event is None:
                    continue  # only what stands there says that it failed
                found = value
            said = quote(as_text(found).encode("utf-8", "replace"))
            return TargetError(f"agent error: {said}", fault=TargetFault.REFUSED)
    return None
