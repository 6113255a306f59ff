"""JSON Schema of an AgentV eval file, with every alternative name of every field."""

from __future__ import annotations

from eval_gate.formats.agentv import file_model
from eval_gate.formats.agentv.detection import CASE_LIST_NAMES, PRE_V4_FIELDS
from eval_gate.formats.agentv.findings import get_field_names
from eval_gate.formats.agentv.v4 import file_model as today
from eval_gate.model.base import JsonValue

_MODELS: tuple[type[file_model.AgentVFileModel], ...] = (
    file_model.AgentVCase,
    file_model.AgentVCheck,
    file_model.AgentVCodeAggregator,
    file_model.AgentVCodeJudge,
    file_model.AgentVComposite,
    file_model.AgentVExecution,
    file_model.AgentVJudgeAggregator,
    file_model.AgentVLlmJudge,
    file_model.AgentVMessage,
)


_V4_MODELS: tuple[type[file_model.AgentVFileModel], ...] = (
    today.AgentV4Case,
    today.AgentV4Execution,
    today.AgentV4Turn,
    file_model.AgentVCheck,
    file_model.AgentVMessage,
)
_V4_PREFIX = "Today"


def build_file_schema() -> dict[str, JsonValue]:
    """Build the JSON Schema of an AgentV 1.6 or 4 file: the suite, with a definition for each part."""
    of_old, old = _build_suite_schema(file_model.AgentVSuite, _MODELS, "")
    of_today, new = _build_suite_schema(today.AgentV4Suite, _V4_MODELS, _V4_PREFIX)
    _require_fields(of_old, [CASE_LIST_NAMES])
    case: JsonValue = {"type": "object", "anyOf": [{"required": [name]} for name in PRE_V4_FIELDS]}
    cases: JsonValue = {"type": "array", "contains": case}
    is_old: JsonValue = {"properties": {"tests": cases}}
    return {
        "title": "AgentV eval file",
        "$defs": {**old, **new},
        "if": {"required": ["tests"], "not": is_old},
        "then": of_today,
        "else": of_old,
    }


def _build_suite_schema(
    suite: type[file_model.AgentVFileModel], models: tuple[type[file_model.AgentVFileModel], ...], prefix: str
) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    schema: dict[str, JsonValue] = suite.model_json_schema(ref_template=f"#/$defs/{prefix}{{model}}")
    definitions = schema.pop("$defs")
    assert isinstance(definitions, dict)
    for model in models:
        described = definitions[model.__name__]
        assert isinstance(described, dict)
        _add_alternative_names(model, described)
    _add_alternative_names(suite, schema)
    schema.pop("title")
    return schema, {f"{prefix}{name}": part for name, part in definitions.items()}


def _add_alternative_names(model: type[file_model.AgentVFileModel], schema: dict[str, JsonValue]) -> None:
    """Describe each field under its later names too; one that is required may stand under any of them."""
    properties, required = schema["properties"], schema.pop("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    needed = []
    for field in model.model_fields:
        names = get_field_names(model, field)
        for other in names[1:]:
            properties[other] = properties[names[0]]
        if names[0] in required:
            needed.append(names)
    _require_fields(schema, needed)


def _require_fields(schema: dict[str, JsonValue], fields: list[tuple[str, ...]]) -> None:
    """Require every field under exactly one of its names."""
    plain: list[JsonValue] = [names[0] for names in fields if len(names) == 1]
    several: list[JsonValue] = [
        {"oneOf": [{"required": [name]} for name in names]} for names in fields if len(names) > 1
    ]
    if plain:
        schema["required"] = plain
    if several:
        schema["allOf"] = several
