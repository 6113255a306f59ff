"""GitHub's own description as a judge: does this request, or this answer, fit it?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from openapi_schema_validator import OAS30Validator, oas30_format_checker

DESCRIPTION = Path(__file__).parent / "openapi" / "api.json"

# GitHub can give these answers to any request; its description lists them only here and there.
ANYWHERE = {400, 401, 403, 404, 422, 429, 500, 502, 503, 504}

# The end of a finding about something that GitHub does not refuse: it takes no notice of it.
IGNORED = "is not in the description"

# Every fake listens on another one: but for it, most answers are alike.
PORT = re.compile(r"(?<=127\.0\.0\.1):\d+")

Schema = dict[str, Any]


class Judge:
    """A compiled schema. An item of a list that was already found good is not judged again."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.items = Judge(schema["items"]) if schema.get("type") == "array" and "items" in schema else None
        self.validator = OAS30Validator(schema, format_checker=oas30_format_checker)
        self.good: set[str] = set()

    def faults(self, value: Any, where: str) -> list[str]:
        if self.items and isinstance(value, list) and not self.schema.keys() - {"type", "items"}:
            return [fault for index, item in enumerate(value) for fault in self.items.faults(item, f"{where}[{index}]")]
        text = PORT.sub("", json.dumps(value))
        if text in self.good:
            return []
        found = [
            f"{where}{''.join(f'[{step!r}]' for step in error.absolute_path)}: {_short(error.message)}"
            for error in self.validator.iter_errors(value)
        ]
        if not found:
            self.good.add(text)
        return found


@dataclass
class Operation:
    """One method of one path of the description."""

    method: str
    template: str
    parameters: dict[tuple[str, str], Judge]
    body: Judge | None
    answers: dict[int, Judge | None]
    pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(self.template))
        for name in ("basehead", "path"):  # a branch of a comparison may hold a slash, and so may a path
            pattern = pattern.replace(f"(?P<{name}>[^/]+)", f"(?P<{name}>.+)")
        if "/git/ref/" in self.template:  # there it is a name in full, such as `heads/a/b`
            pattern = pattern.replace("(?P<ref>[^/]+)", "(?P<ref>.+)")
        self.pattern = re.compile(f"^{pattern}$")


class GitHubSpec:
    """The description, parsed. `GitHubSpec.load()` gives the one copy of this process."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.schemas: dict[str, Schema] = {}
        self._components = document["components"]
        for name in self._components["schemas"]:
            self.schemas[name] = self._inlined({"$ref": f"#/components/schemas/{name}"})
        self.operations = [
            self._operation(method.upper(), template, operation)
            for template, operations in document["paths"].items()
            for method, operation in operations.items()
        ]
        self.operations.sort(key=lambda operation: operation.template.count("{"))
        self._error = Judge(self.schemas["basic-error"] | {"required": ["message"]})

    @staticmethod
    @cache
    def load() -> GitHubSpec:
        return GitHubSpec(json.loads(DESCRIPTION.read_text(encoding="utf-8")))

    def find(self, method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        """The operation that this request means, and what its path fills in."""
        for operation in self.operations:
            if operation.method == method and (hit := operation.pattern.match(path)):
                return operation, {name: unquote(value) for name, value in hit.groupdict().items()}
        return None

    def describes(self, method: str, target: str, status: int) -> bool:
        """Whether the description says what this status answers here."""
        hit = self.find(method, urlsplit(target).path)
        return hit is not None and status in hit[0].answers

    def request(self, method: str, target: str, headers: Mapping[str, str], body: Any) -> list[str]:
        """What is wrong with a request. `body` is None where none was sent."""
        found = [f"no {name} header" for name in ("User-Agent", "Authorization") if not headers.get(name)]
        url = urlsplit(target)
        if (hit := self.find(method, url.path)) is None:
            return [*found, f"no such operation: {method} {url.path}"]
        operation, filled = hit
        for where, pairs in (("path", filled.items()), ("query", parse_qsl(url.query, keep_blank_values=True))):
            for name, text in pairs:
                if judge := operation.parameters.get((where, name)):
                    found += judge.faults(_typed(text, judge.schema), f"{where}.{name}")
                else:
                    found.append(f"{where}.{name} {IGNORED} of {method} {operation.template}")
        if operation.body:
            found += operation.body.faults(body, "body") + list(_unknown(body, operation.body.schema, "body"))
        elif body is not None:
            found.append("a body, where the operation takes none")
        return found

    def answer(self, method: str, target: str, status: int, body: Any) -> list[str]:
        """What is wrong with an answer."""
        hit = self.find(method, urlsplit(target).path)
        if hit is None or (status not in hit[0].answers and status in ANYWHERE):
            return self._error.faults(body, "answer") if status in ANYWHERE else [f"{status} of an unknown operation"]
        if status not in hit[0].answers:
            return [f"status {status} is not in the description of {method} {hit[0].template}"]
        judge = hit[0].answers[status]
        if judge is None:
            return [] if body is None else ["a body, where the answer has none"]
        return judge.faults(body, "answer")

    def _operation(self, method: str, template: str, operation: dict[str, Any]) -> Operation:
        parameters = [self._inlined(parameter) for parameter in operation.get("parameters", [])]
        answers = {int(status): _content(self._inlined(answer)) for status, answer in operation["responses"].items()}
        body = _content(self._inlined(operation["requestBody"])) if "requestBody" in operation else None
        return Operation(
            method,
            template,
            {(each["in"], each["name"]): Judge(each["schema"]) for each in parameters},
            Judge(body) if body else None,
            {status: Judge(schema) if schema else None for status, schema in answers.items()},
        )

    def _inlined(self, node: Any) -> Any:
        """The node with every reference replaced by what it names (nothing here refers to itself)."""
        if isinstance(node, list):
            return [self._inlined(each) for each in node]
        if not isinstance(node, dict):
            return node
        if "$ref" not in node:
            return {key: self._inlined(value) for key, value in node.items()}
        _, _, kind, name = node["$ref"].split("/")
        if kind != "schemas":
            return self._inlined(self._components[kind][name])
        if name not in self.schemas:
            self.schemas[name] = self._inlined(self._components[kind][name])
        return self.schemas[name]


def _short(message: str) -> str:
    """The two ends of a message: it begins with the value and ends with what is wrong about it."""
    return message if len(message) <= 200 else f"{message[:90]} … {message[-100:]}"


def _content(node: dict[str, Any]) -> Schema | None:
    return node.get("content", {}).get("application/json", {}).get("schema")


def _typed(text: str, schema: Schema) -> Any:
    """The text of a path or a query as the type its schema asks for, where it can be read so."""
    if schema.get("type") == "integer" and re.fullmatch(r"-?\d+", text):
        return int(text)
    if schema.get("type") == "boolean" and text in {"true", "false"}:
        return text == "true"
    return text


def _unknown(value: Any, schema: Schema, where: str) -> Iterator[str]:
    """Fields nobody described. GitHub ignores a misspelt field in silence; here it is a fault."""
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _unknown(item, schema["items"], f"{where}[{index}]")
    elif isinstance(value, dict) and "properties" in schema:
        for key, item in value.items():
            if key in schema["properties"]:
                yield from _unknown(item, schema["properties"][key], f"{where}.{key}")
            else:
                yield f"{where}.{key} {IGNORED}"
