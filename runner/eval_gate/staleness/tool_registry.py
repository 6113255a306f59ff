"""The tool registry and its tool definitions, independent of their source."""

from typing import Final

from eval_gate.model.base import Frozen, JsonValue

SCHEMA_KEYS: Final = ("parameters", "inputSchema", "input_schema", "schema")
"""Where definitions keep it: OpenAI, MCP, Anthropic, tool-forge. The first that is there counts."""

_JSON_SCHEMA_KEYS: Final = ("$schema", "$ref", "anyOf", "oneOf", "allOf")


class ToolDefinition(Frozen, kw_only=True):
    """One tool. A value is None when it cannot be known without running code."""

    name: str
    description: str | None = None
    version: str | None = None
    status: str | None = None
    parameters: dict[str, JsonValue] | None = None
    """JSON Schema of the arguments."""


class ToolRegistry(Frozen, kw_only=True):
    """All tools of one source. `size` includes unresolved tools; `notices` list what was not read."""

    source: str
    tools: tuple[ToolDefinition, ...]
    unresolved_tools: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many tools there are."""
        return len(self.tools) + len(self.unresolved_tools)

    def find_tool(self, name: str) -> ToolDefinition | None:
        """Return the tool with this name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)


def normalize_parameters(parameters: JsonValue) -> dict[str, JsonValue] | None:
    """Return the parameters of a tool as a JSON Schema.

    A JSON Schema stays as it is, and the short form of tool-forge is expanded. Returns None, which stands for any
    arguments, for everything else.

    The short form is `{city: {type: "string"}, units: {type: "string", optional: true}}`: every parameter that is
    not optional is required, and a missing type is `string` (tool-forge behaviour 1.9).
    """
    if not isinstance(parameters, dict):
        return None
    if isinstance(parameters.get("type"), str | list) or any(
        isinstance(parameters.get(key), str | list) for key in _JSON_SCHEMA_KEYS
    ):
        return parameters
    properties: dict[str, JsonValue] = {}
    required: list[JsonValue] = []
    for name, described in parameters.items():
        if not isinstance(described, dict):
            return None
        property_schema: dict[str, JsonValue] = {"type": "string", **described}
        property_schema.pop("optional", None)
        properties[name] = property_schema
        if described.get("optional") is not True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}
