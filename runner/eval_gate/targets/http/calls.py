"""The tool calls that an agent reports: objects with a name, arguments and what came of them, wherever these stand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, TypeVar

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.limits import ANSWER_CALLS, CALL_NAME, MAX_DURATION_MS, in_range
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


@dataclass(frozen=True, slots=True)
class ResultFields:
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one entry of a list of results says of its call."""

    result: JsonValue = None
    success: bool | None = None


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
        self._id = Path.parse(settings.id_field)
        apart = settings.tool_results
        self._apart = None if apart is None else ResultFields.of(apart)

    @property
    def path(self) -> Path:
        """Where the list is looked for."""
        return self._path

    def listed(self, document: JsonValue, *, escaped: bool) -> tuple[ToolCall, ...] | None:
        """The calls in order; None for an answer that has no list of them. Raises ShapeError.

        `escaped`: the answer's text may hold half a surrogate pair.
        """
        entries = self._entries(document)
        if entries is None:
            return None
        if len(entries) > ANSWER_CALLS:
            raise ShapeError(f'"{self._path}" lists {len(entries):,} calls, more than {ANSWER_CALLS:,}')
        outcomes = _outcomes(document, self._apart) if self._apart and entries else {}
        place = self._path.text.removesuffix("[]")
        return tuple(self._call(entry, f"{place}[{at}]", outcomes, escaped=escaped) for at, entry in enumerate(entries))

    def _entries(self, document: JsonValue) -> list[JsonValue] | None:
        if self._path.gathers:
            found = self._path.all(document)
            if found.lacking is not None:
                raise ShapeError(f'"{self._path}" leads nowhere in member {found.lacking} of what it gathers')
            return found.values if found.listed else None
        calls = self._path.one(document)
        if isinstance(calls, Missing) or calls is None:
            return None
        if not isinstance(calls, list):
            raise ShapeError(f'"{self._path}" is not a list but {kind_of(calls)}')
        return calls

    def _call(self, call: JsonValue, place: str, outcomes: dict[str, Outcome], *, escaped: bool) -> ToolCall:
        if isinstance(call, str) and self._path.gathers:  # toolCalls[].toolName: only the names were asked for
            return ToolCall(name=_name(call, place, self._path))
        name = _name(self._name.one(call), place, self._name)
        params = self._params(call, place)
        success = _went(self._success.one(call), f"{place}.{self._success}")
        if self._error is not None and _said(self._error.one(call)):
            success = False
        result = _value(self._result.one(call))
        if outcomes and (apart := outcomes.get(_key(self._id.one(call)))) is not None:
            result = apart.result if result is None else result
            success = apart.success if success is None else success
        if escaped:  # only an escape can bring half a surrogate pair
            params, result = _well_formed_values(params), _well_formed_values(result)
        return ToolCall(
            name=name,
            params=params,
            success=success,
            duration_ms=in_range(self._duration.one(call), MAX_DURATION_MS),
            result=result,
        )

    def _params(self, call: JsonValue, place: str) -> dict[str, JsonValue]:
        place = f"{place}.{self._args}"
        params = _value(self._args.one(call))
        if isinstance(params, str):
            params = arguments(params, place)
        if params is not None and not isinstance(params, dict):
            raise ShapeError(f'"{place}" is not a mapping but {kind_of(params)}')
        return params or {}


def _outcomes(document: JsonValue, fields: ResultFields) -> dict[str, Outcome]:
    """What is said of calls apart from them, by the id of the call."""
    found = fields.path.all(document).values
    if not fields.path.gathers and found and isinstance(found[0], list):
        found = found[0]
    return {key: _outcome(entry, fields) for entry in found if (key := _key(fields.id.one(entry)))}


def _outcome(entry: JsonValue, fields: ResultFields) -> Outcome:
    failed = fields.error is not None and _said(fields.error.one(entry))
    success = None
    if fields.success is not None:
        success = _went(fields.success.one(entry), f"{fields.path}.{fields.success}")
    result = _value(fields.result.one(entry)) if fields.result is not None else None
    return Outcome(result, False if failed else success)


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


def _name(name: object, place: str, path: Path) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= CALL_NAME:
        raise ShapeError(f'"{place}" has no {path} of up to {CALL_NAME} characters')
    return well_formed(name)


def _went(said: object, place: str) -> bool | None:
    if isinstance(said, Missing) or said is None:
        return None
    if isinstance(said, str) and (known := _WENT.get(said.strip().lower())) is not None:
        return known
    if not isinstance(said, bool):
        raise ShapeError(f'"{place}" is not true or false but {kind_of(said)}')
    return said


def _said(value: object) -> bool:
    return not isinstance(value, Missing) and value is not None and value is not False


def _value(found: JsonValue | Missing) -> JsonValue:
    return None if isinstance(found, Missing) else found


def _key(value: object) -> str:
    """An id as text; "" for none."""
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _well_formed_values(value: Values) -> Values:
    found = json.dumps(value, ensure_ascii=False) if value else ""
    if found.isascii():
        return value
    cleaned: Values = json.loads(well_formed(found))
    return cleaned
