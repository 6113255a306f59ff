"""Find the question in a request to an HTTP agent, by the settings that say how a target sends it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from eval_gate.drafts.sources.source_messages import PromptError, UserPrompt, iter_messages, parse_prompt
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.text.json_values import find_at, iter_leaves
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.surrogates import replace_surrogates

_PLACEHOLDER: Final = re.compile(r"\{\{\s*([A-Za-z]\w*)\s*\}\}")
_PROMPT_NAMES: Final = ("conversation", "message", "prompt")
"""Placeholders for the question, the one that says most first."""
_SESSION: Final = "session"
_DEFAULT_TEMPLATE: Final[JsonValue] = {"message": "{{message}}", "conversation": "{{conversation}}"}
_MAX_FIELDS: Final = 1_000


class RequestPart(StrEnum):
    """Part of a request that may hold the question."""

    BODY = "body"
    FORM = "form"
    QUERY = "query"
    PATH = "path"


class RequestContent(NamedTuple):
    """One request of a client. `target` is path and query as received, `body` without compression."""

    method: str
    target: str
    body: bytes


class _Place(FrozenStruct):
    """Place of a placeholder: the part of the request, the steps in it and the text around the placeholder."""

    part: RequestPart
    steps: tuple[str | int, ...]
    pattern: re.Pattern[str] | None
    """Pattern that finds the value in a text; None if the placeholder is the whole value."""


class RequestMapping:
    """Reader of requests to one target."""

    def __init__(self, settings: HttpSettings) -> None:
        self._method = settings.method.value
        parts = urlsplit(settings.url.open())
        self._path = _compile_template(parts.path or "/", None)
        self._message_template = settings.message_template.open()
        templates: dict[RequestPart, JsonValue] = {
            RequestPart.PATH: parts.path,
            RequestPart.QUERY: {**dict(parse_qsl(parts.query)), **settings.query.open()},
        }
        if settings.form is not None:
            templates[RequestPart.FORM] = settings.form.open()
        elif settings.method.has_body:
            body = settings.request_template.open()
            body = _DEFAULT_TEMPLATE if body is None else body
            templates[RequestPart.BODY] = {**body, **settings.request_fields.open()} if isinstance(body, dict) else body
        self._places = {
            name: [place for part, template in templates.items() for place in _iter_places(template, name, part)]
            for name in (*_PROMPT_NAMES, _SESSION)
        }

    def is_exchange(self, request: RequestContent) -> bool:
        """Whether a request is one to the target, by method and path."""
        path = request.target.partition("?")[0]
        return request.method == self._method and self._path.fullmatch(path.removesuffix("/") or "/") is not None

    def parse_prompt(self, request: RequestContent) -> UserPrompt:
        """Parse the question in a request. Raises PromptError if no place of the target's settings has it."""
        values = _RequestValues(request)
        wrong = PromptError("no question where the target sends it (requestTemplate, form, query)")
        for name in _PROMPT_NAMES:
            for place in self._places[name]:
                value = values.find(place)
                if value is None:
                    continue
                try:
                    return parse_prompt(self._normalize_messages(value))
                except PromptError as error:
                    wrong = error
        raise wrong

    def find_session(self, request: RequestContent) -> str | None:
        """Find the id of the conversation that a request belongs to, or return None."""
        values = _RequestValues(request)
        ids = (values.find(place) for place in self._places[_SESSION])
        return next((str(one) for one in ids if isinstance(one, str | int) and one), None)

    def _normalize_messages(self, value: JsonValue) -> JsonValue:
        """Convert messages that are written by the target's `messageTemplate`."""
        if self._message_template is None or not isinstance(value, list):
            return value
        role, content = (
            next(_iter_places(self._message_template, name, RequestPart.BODY), None) for name in ("role", "content")
        )
        if role is None or content is None:
            return value
        return [
            entry
            if any(iter_messages(entry))
            else {"role": find_at(entry, role.steps), "content": find_at(entry, content.steps)}
            for entry in value
        ]


class _RequestValues:
    """Parts of one request, parsed on first use."""

    def __init__(self, request: RequestContent) -> None:
        self._request = request
        self._parsed: dict[RequestPart, JsonValue] = {}

    def find(self, place: _Place) -> JsonValue:
        if place.part not in self._parsed:
            self._parsed[place.part] = self._parse(place.part)
        value = find_at(self._parsed[place.part], place.steps)
        if place.pattern is None or value is None:
            return value
        match = place.pattern.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return None
        return unquote(match["value"]) if place.part is RequestPart.PATH else match["value"]

    def _parse(self, part: RequestPart) -> JsonValue:
        path, _, query = self._request.target.partition("?")
        match part:
            case RequestPart.PATH:
                return path
            case RequestPart.QUERY:
                return _parse_fields(query)
            case RequestPart.FORM:
                return _parse_fields(self._request.body.decode("utf-8", "replace"))
            case RequestPart.BODY:
                try:
                    return parse_untrusted_json(self._request.body)
                except UntrustedJsonError:
                    return None


def _parse_fields(text: str) -> JsonValue:
    """Parse a query or a form. The first of two fields with the same name counts."""
    try:
        fields = parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        return None
    values: JsonValue = dict(reversed(fields))
    return replace_surrogates(values)


def _iter_places(template: JsonValue, name: str, part: RequestPart) -> Iterator[_Place]:
    """Yield every place of the placeholder `name` in a template."""
    for steps, text in iter_leaves(template):
        if isinstance(text, str) and name in _PLACEHOLDER.findall(text):
            alone = _PLACEHOLDER.fullmatch(text) is not None
            yield _Place(part, steps, None if alone else _compile_template(text, name))


def _compile_template(template: str, name: str | None) -> re.Pattern[str]:
    """Compile a template whose first placeholder `name` is the group `value`, or that of a path without a name."""
    parts, begin, is_found = list[str](), 0, False
    for match in _PLACEHOLDER.finditer(template):
        parts.append(re.escape(template[begin : match.start()]))
        is_value = match[1] == name and not is_found
        parts.append("[^/?#]+" if name is None else "(?P<value>.*)" if is_value else ".*?")
        is_found, begin = is_found or is_value, match.end()
    rest = template[begin:]
    parts.append(re.escape(rest.removesuffix("/") if name is None and template != "/" else rest))
    return re.compile("".join(parts), re.DOTALL)
