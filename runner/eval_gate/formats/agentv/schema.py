"""The JSON Schema of an AgentV eval file, for editors: every field by every name that it may have."""

from __future__ import annotations

from eval_gate.formats.agentv import wire
from eval_gate.formats.agentv.findings import names_of
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


def file_schema() -> dict[str, JsonValue]:
    """The JSON Schema of an AgentV file: the suite, with a definition for each part of it."""
    schema: dict[str, JsonValue] = wire.Suite.model_json_schema()
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    for model in _MODELS:
        described = definitions[model.__name__]
        assert isinstance(described, dict)
        _other_names(model, described)
    _other_names(wire.Suite, schema)
    _require(schema, [wire.CASES])
    return {"title": "AgentV eval file", **{key: value for key, value in schema.items() if key != "title"}}


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
