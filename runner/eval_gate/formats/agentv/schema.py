"""The JSON Schema of an AgentV eval file, for editors: every field by every name that it may have."""

from __future__ import annotations

from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.findings import names_of
from eval_gate.formats.agentv.recognising import NAMES, OLD_FIELDS
from eval_gate.formats.agentv.today import wire as today
from eval_gate.model.base import JsonValue

_MODELS: tuple[type[wire.Wire], ...] = (
    wire.Case,
    wire.Check,
    wire.CodeAggregator,
    wire.CodeJudge,
    wire.Composite,
    wire.Execution,
    wire.JudgeAggregator,
    wire.LlmJudge,
    wire.Message,
)


_TODAY_MODELS: tuple[type[wire.Wire], ...] = (today.Case, today.Execution, wire.Check, wire.Message)
_PREFIX = "Today"


def file_schema() -> dict[str, JsonValue]:
    """The JSON Schema of an AgentV file: the suite, with a definition for each part of it, of 1.6 or of today."""
    of_old, old = _suite(wire.Suite, _MODELS, "")
    of_today, new = _suite(today.Suite, _TODAY_MODELS, _PREFIX)
    _require(of_old, [NAMES])
    case: JsonValue = {"type": "object", "anyOf": [{"required": [name]} for name in OLD_FIELDS]}
    cases: JsonValue = {"type": "array", "contains": case}
    is_old: JsonValue = {"properties": {"tests": cases}}
    return {
        "title": "AgentV eval file",
        "$defs": {**old, **new},
        "if": {"required": ["tests"], "not": is_old},
        "then": of_today,
        "else": of_old,
    }


def _suite(
    suite: type[wire.Wire], models: tuple[type[wire.Wire], ...], prefix: str
) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """The schema of a suite, and of its parts by their names with this prefix."""
    schema: dict[str, JsonValue] = suite.model_json_schema(ref_template=f"#/$defs/{prefix}{{model}}")
    definitions = schema.pop("$defs")
    assert isinstance(definitions, dict)
    for model in models:
        described = definitions[model.__name__]
        assert isinstance(described, dict)
        _other_names(model, described)
    _other_names(suite, schema)
    schema.pop("title")
    return schema, {f"{prefix}{name}": part for name, part in definitions.items()}


def _other_names(model: type[wire.Wire], schema: dict[str, JsonValue]) -> None:
    """Describe each field under its later names too; one that is required may stand under any of them."""
    properties, required = schema["properties"], schema.pop("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    needed = []
    for field in model.model_fields:
        names = names_of(model, field)
        for other in names[1:]:
            properties[other] = properties[names[0]]
        if names[0] in required:
            needed.append(names)
    _require(schema, needed)


def _require(schema: dict[str, JsonValue], fields: list[tuple[str, ...]]) -> None:
    """Every field under exactly one of its names."""
    plain: list[JsonValue] = [names[0] for names in fields if len(names) == 1]
    several: list[JsonValue] = [
        {"oneOf": [{"required": [name]} for name in names]} for names in fields if len(names) > 1
    ]
    if plain:
        schema["required"] = plain
    if several:
        schema["allOf"] = several
