"""Read routes, fields and headers from the OpenAPI description of an untrusted server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from eval_gate.cli.starter.response_places import SAMPLE_TEXT
from eval_gate.config.preset import PresetName
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.json_values import find_at

MAX_ROUTES: Final = 500
_MAX_MEMBERS: Final = 100
_MAX_NAME: Final = 100
_MAX_DEPTH: Final = 8
_MAX_STEPS: Final = 2_000
"""References and members that are followed for one route: references may lead in circles."""
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_STANDARD_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""Header parameters that an OpenAPI description has to ignore: other parts of it say what they are."""

Schema = dict[str, JsonValue]


class RequestField(FrozenStruct):
    """Field of a request. `place` is where its value stands in the description of a target."""

    place: tuple[str, ...]
    required: bool = True
    prompt: str | None = None
    """The placeholder with which it can take the prompt: a text, or a list of messages."""
    value: JsonValue = None
    """A value that the server itself names: a constant, a default or an example."""
    choices: tuple[str, ...] = ()


class RequestHeader(FrozenStruct):
    """Header of a request that takes a secret, after `prefix`."""

    name: str
    prefix: str = ""
    required: bool = True


class AgentRoute(FrozenStruct):
    """A route that takes POST, as the description has it. Without a protocol, fields and headers say what it needs."""

    path: str
    protocol: PresetName | None = None
    fields: tuple[RequestField, ...] = ()
    headers: tuple[RequestHeader, ...] = ()
    sample: JsonValue = None
    """A response of the described form, with placeholder values; None if the form is not described."""
    is_text: bool = False


class OpenApiDocument:
    """An OpenAPI description. Only the parts that a request needs are read."""

    def __init__(self, document: Schema) -> None:
        self._document = document
        self._steps = 0

    def list_operations(self) -> tuple[AgentRoute, ...]:
        """List the routes that take POST."""
        paths = self._document.get("paths")
        items = {path: self._resolve(item) for path, item in (paths if isinstance(paths, dict) else {}).items()}
        operations = ((path, item, self._resolve(item.get("post"))) for path, item in items.items())
        return tuple(self._read_operation(*one) for one in islice((one for one in operations if one[2]), MAX_ROUTES))

    def _read_operation(self, path: str, item: Schema, operation: Schema) -> AgentRoute:
        self._steps = 0
        content = self._resolve(operation.get("requestBody")).get("content")
        parameters = [*_to_list(item.get("parameters")), *_to_list(operation.get("parameters"))]
        fields = [*self._read_fields(self._get_schema(content, "application/json"), "requestTemplate")]
        headers = {one.name.lower(): one for one in self._iter_security_headers(operation)}
        for parameter in map(self._resolve, parameters[:_MAX_MEMBERS]):
            name, place, required = parameter.get("name"), parameter.get("in"), parameter.get("required") is True
            if not isinstance(name, str):
                continue
            if place == "query" and required and len(name) <= _MAX_NAME:
                fields.append(self._read_field(("query", name), parameter.get("schema"), required=True))
            elif place == "header" and name.lower() not in _STANDARD_HEADERS and _HEADER_NAME.fullmatch(name):
                headers.setdefault(name.lower(), RequestHeader(name, required=required))
        responses = self._resolve(operation.get("responses"))
        bodies = self._resolve(responses.get("200") or responses.get("201") or responses.get("default")).get("content")
        schema = self._get_schema(bodies, "application/json")
        is_text = isinstance(bodies, dict) and "text/plain" in bodies and "application/json" not in bodies
        sample = self._build_sample(schema) if schema else None
        return AgentRoute(path, None, tuple(fields), tuple(headers.values()), sample, is_text)

    def _iter_security_headers(self, operation: Schema) -> Iterator[RequestHeader]:
        """Yield the headers of the first way to authenticate; they are optional if there is a way without one."""
        ways = _to_list(operation.get("security", self._document.get("security")))
        way = next((one for one in ways if isinstance(one, dict) and one), {})
        schemes = self._resolve(self._resolve(self._document.get("components")).get("securitySchemes"))
        for name in list(way)[:_MAX_MEMBERS]:
            scheme = self._resolve(schemes.get(name))
            header = scheme.get("name")
            if scheme.get("type") == "apiKey" and scheme.get("in") == "header" and isinstance(header, str):
                if _HEADER_NAME.fullmatch(header):
                    yield RequestHeader(header, required={} not in ways)
            elif scheme.get("type") in {"http", "oauth2", "openIdConnect"}:
                prefix = "Basic " if str(scheme.get("scheme")).lower() == "basic" else "Bearer "
                yield RequestHeader("Authorization", prefix, {} not in ways)

    def _read_fields(self, schema: JsonValue, *place: str) -> Iterator[RequestField]:
        """Yield the fields of a body with this schema, which stands at `place` in the description of the target."""
        for option in self._list_options(schema)[:1]:
            required = _to_list(option.get("required"))
            for name, member in _list_members(option):
                yield self._read_field((*place, name), member, required=name in required)

    def _read_field(self, place: tuple[str, ...], schema: JsonValue, *, required: bool) -> RequestField:
        options = self._list_options(schema)
        prompt = next(filter(None, map(self._find_prompt, options)), None)
        choices = [one for option in options for one in _to_list(option.get("enum")) if isinstance(one, str)]
        sources = [*options, self._resolve(schema)]
        value = next((one for one in map(_find_value, sources) if one is not None), None)
        return RequestField(place, required, prompt, value, tuple(filter(is_plain_value, choices)))

    def _find_prompt(self, option: Schema) -> str | None:
        if _has_type(option, "string") and not {"const", "enum", "format"} & option.keys():
            return "{{message}}"
        for message in self._list_options(option.get("items")) if _has_type(option, "array") else ():
            if {"role", "content"} <= {name for name, _ in _list_members(message)}:
                return "{{conversation}}"
        return None

    def _list_options(self, schema: JsonValue, depth: int = 0) -> list[Schema]:
        """List the forms that a value may have, without null; the parts of `allOf` are joined."""
        form = self._resolve(schema)
        if depth > _MAX_DEPTH or not form:
            return []
        alternatives = form.get("anyOf") or form.get("oneOf")
        if isinstance(alternatives, list):
            return [one for part in alternatives[:_MAX_MEMBERS] for one in self._list_options(part, depth + 1)]
        if isinstance(parts := form.get("allOf"), list):
            joined: dict[str, JsonValue] = dict(form)
            for part in parts[:_MAX_MEMBERS]:
                for option in self._list_options(part, depth + 1)[:1]:
                    members = {**dict(_list_members(option)), **dict(_list_members(joined))}
                    required = [*_to_list(option.get("required")), *_to_list(joined.get("required"))]
                    joined = {**option, **joined, "properties": members, "required": required}
            return [{key: value for key, value in joined.items() if key != "allOf"}]
        return [] if form.get("type") == "null" else [form]

    def _build_sample(self, schema: JsonValue, depth: int = 0) -> JsonValue:
        """Build a value of this form: texts are `…`, lists have one member."""
        option = next(iter(self._list_options(schema)), None)
        if option is None or depth > _MAX_DEPTH:
            return None
        if members := _list_members(option):
            return {name: self._build_sample(member, depth + 1) for name, member in members}
        if _has_type(option, "array"):
            return [self._build_sample(option.get("items"), depth + 1)]
        return SAMPLE_TEXT if _has_type(option, "string") else {} if _has_type(option, "object") else None

    def _get_schema(self, content: JsonValue, kind: str) -> Schema:
        return self._resolve(self._resolve(self._resolve(content).get(kind)).get("schema"))

    def _resolve(self, value: JsonValue) -> Schema:
        """Follow references within the document; return an empty mapping for external, circular and broken ones."""
        for _ in range(_MAX_DEPTH):
            self._steps += 1
            if not isinstance(value, dict) or self._steps > _MAX_STEPS:
                return {}
            place = value.get("$ref")
            if not isinstance(place, str):
                return value
            keys = [step.replace("~1", "/").replace("~0", "~") for step in place[2:].split("/")]
            value = find_at(self._document, tuple(keys)) if place.startswith("#/") else None
        return {}


def is_plain_value(value: JsonValue) -> bool:
    """Whether an untrusted value may be written to a file: short, and without placeholders and variables."""
    text = json.dumps(value)
    return len(text) <= 1_000 and "{{" not in text


def _find_value(schema: Schema) -> JsonValue:
    values = [schema.get("const"), schema.get("default"), schema.get("example"), *_to_list(schema.get("examples"))[:1]]
    choices = _to_list(schema.get("enum"))
    values += choices if len(choices) == 1 else []
    return next((one for one in values if one is not None and is_plain_value(one)), None)


def _list_members(schema: Schema) -> list[tuple[str, JsonValue]]:
    members = schema.get("properties")
    pairs = list(members.items())[:_MAX_MEMBERS] if isinstance(members, dict) else []
    return [(name, member) for name, member in pairs if len(name) <= _MAX_NAME]


def _has_type(schema: Schema, name: str) -> bool:
    kind = schema.get("type")
    return kind == name or (isinstance(kind, list) and name in kind)


def _to_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
