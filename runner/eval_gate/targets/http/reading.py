"""How an HTTP agent's answer is read, and one clear sentence when it is wrong."""

from __future__ import annotations

from typing import Final

from pydantic import JsonValue, ValidationError

from eval_gate.model.conversation import Response
from eval_gate.model.limits import MAX_COST_USD, MAX_TOKENS, in_range
from eval_gate.model.usage import Usage
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.calls import CallFields, ShapeError
from eval_gate.targets.http.paths import Missing, Path
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.foreign.quote import MAX_QUOTE, quote
from eval_gate.text.foreign.well_formed import well_formed

_NEVER_NULL: Final = "response"
"""The contract's own field: null there is no answer. Elsewhere an agent that only calls tools may say so with null."""


class Reader:
    """Reads the answers of one target."""

    def __init__(self, settings: HttpSettings) -> None:
        self._texts = tuple(Path.parse(path) for path in settings.response_path)
        self._calls = CallFields(settings)
        self._none_at = None if settings.called_none_at is None else Path.parse(settings.called_none_at)
        self._calls_place = f"a list of tool calls at `{settings.tool_calls_path[:MAX_QUOTE]}` (toolCallsPath, preset)"

    def read(self, body: bytes, duration_ms: float) -> Response:
        """The answer, which took so long. Raises TargetError (malformed) that quotes its beginning and says why."""
        try:
            document = read_foreign(body)
        except ForeignJsonError as error:
            raise malformed(f"the answer {error}", body) from None
        try:
            return self.response(document, duration_ms, escaped=b"\\u" in body)
        except ShapeError as error:
            raise malformed(str(error), body) from None

    def response(self, document: JsonValue, duration_ms: float, *, escaped: bool) -> Response:
        """The answer in a document. `escaped`: its text may hold half a surrogate pair. Raises ShapeError."""
        calls = self._calls.listed(document, escaped=escaped)
        text = self._text(document, silent=bool(calls))
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

    def _text(self, document: JsonValue, *, silent: bool) -> str:
        """The text at the first path that leads to one. `silent`: tools were called, so that there may be none."""
        for path in self._texts:
            found = _text_at(document, path)
            if found is not None:
                return found
        # a missing field is never taken for ""
        for path in self._texts:
            if path.gathers or _parts(path.one(document)):
                if silent and path.is_there(document):
                    return ""
            elif path.text != _NEVER_NULL and path.one(document) is None:
                return ""
        places = " or ".join(f'"{path}"' for path in self._texts)
        raise ShapeError(f"the answer has no text at {places}")

    def _says_none(self, document: JsonValue) -> bool:
        """Whether an answer without a list says that no tool was called: by null in its place, or by its protocol."""
        if self._calls.path.is_there(document):
            return True
        return self._none_at is not None and self._none_at.is_there(document)


def _text_at(document: JsonValue, path: Path) -> str | None:
    """The text there, of several messages line by line; None where there is none."""
    if not path.gathers:
        return _said(path.one(document))
    values = path.all(document).values
    if _parts(values):
        return _said(values)
    said = [text for value in values if (text := _said(value)) is not None]
    return "\n".join(said) if said else None


def _said(value: JsonValue | Missing) -> str | None:
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


def _usage(document: JsonValue) -> Usage | None:
    usage = document.get("usage") if isinstance(document, dict) else None
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
    cost = in_range(document.get("costUsd"), MAX_COST_USD) if isinstance(document, dict) else None
    return None if cost is None else float(cost)


def malformed(what: str, body: bytes) -> TargetError:
    """The error about an answer that is not as described; it quotes how the answer begins."""
    return TargetError(
        f"agent error: {what}; it begins {quote(body)}",
        fault=TargetFault.MALFORMED,
        hint="describe the endpoint's shape with a target's responsePath, toolCallsPath or preset",
    )
