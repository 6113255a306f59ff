"""How an HTTP agent's answer is read, and one clear sentence when it is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from eval_gate.model.base import construct
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.limits import MAX_COST_USD, MAX_TOKENS, in_range
from eval_gate.model.usage import Usage
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.calls import CallFields, ShapeError
from eval_gate.targets.http.paths import Missing, Path
from eval_gate.targets.http.rules import EventMatch, failure_in
from eval_gate.targets.http.settings import HttpSettings, ResponseFormat
from eval_gate.text.escape import cut
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.foreign.quote import quote
from eval_gate.text.foreign.well_formed import may_hold_halves, well_formed
from eval_gate.text.quoting import shown_name

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
        return construct(
            Response,
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
    return construct(Usage, input_tokens=_tokens(usage, _INPUT), output_tokens=_tokens(usage, _OUTPUT))


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
