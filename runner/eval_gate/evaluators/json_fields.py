"""Fields of the JSON in which an agent responds: lookup, comparison, and which are stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress

from eval_gate.evaluators.wording import MAX_VALUE, format_names, truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import EvaluatorSpec, ResponseFields
from eval_gate.text.distinct_values import format_distinct_values
from eval_gate.text.dotted_path import NOT_FOUND, WHOLE_BODY, find_by_path
from eval_gate.text.json_values import are_json_equal
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json, strip_fence


def list_documents(response: Response) -> list[JsonValue]:
    """List what fields are looked up in: the body, then the text, each if it is a JSON object or list."""
    documents = [response.body]
    with suppress(UntrustedJsonError):
        documents.append(parse_untrusted_json(strip_fence(response.text)))
    return [one for one in documents if isinstance(one, dict | list)]


def find_field(documents: Iterable[JsonValue], path: str) -> JsonValue:
    """Find the field in the first document that has it, or return `NOT_FOUND`."""
    values = (find_by_path(document, path) for document in documents)
    return next((value for value in values if value is not NOT_FOUND), NOT_FOUND)


def find_mismatch(actual: JsonValue, expected: Sequence[JsonValue]) -> str | None:
    """Describe how a value differs from all expected ones; None if it equals one of them as JSON."""
    if any(are_json_equal(actual, one) for one in expected):
        return None
    if len(expected) > 1:
        return f"is {format_value(actual)}, expected one of {format_names(map(format_value, expected))}"
    is_now, shall_be = format_distinct_values(actual, expected[0], format_value, MAX_VALUE)
    return f"is {is_now}, expected {shall_be}"


def format_value(value: object) -> str:
    """Format a value as JSON, truncated."""
    return truncate(json.dumps(value, ensure_ascii=False))


def collect_fields(specs: Iterable[EvaluatorSpec], response: Response, *, with_body: bool) -> dict[str, JsonValue]:
    """Collect the value of each field that these evaluators check, by path; `with_body`, the whole body instead."""
    if with_body:
        return {WHOLE_BODY: response.body}
    paths = [check.path for spec in specs if isinstance(spec, ResponseFields) for check in spec.checks]
    documents = list_documents(response) if paths else []
    values = {path: find_field(documents, path) for path in paths}
    return {path: value for path, value in values.items() if value is not NOT_FOUND}
