"""The tool calls that an agent reports: objects with a name, arguments and what came of them, wherever these stand."""

from __future__ import annotations

import json
from typing import Final, TypeVar

from eval_gate.model.base import JsonValue, construct
from eval_gate.model.conversation import ToolCall
from eval_gate.model.limits import ANSWER_CALLS, CALL_NAME, MAX_DURATION_MS, in_range
from eval_gate.struct import FrozenStruct
from eval_gate.targets.http.paths import Missing, Path
from eval_gate.targets.http.settings import HttpSettings, ToolResults
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.sources.shape import kind_of

Values = TypeVar("Values", bound=JsonValue)
_WENT: Final = {"success": True, "ok": True, "completed": True, "succeeded": True, "error": False, "failed": False}
"""Words for whether a call went well, where no true and false says it."""


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
        return construct(
            ToolCall,
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
