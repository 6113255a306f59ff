"""Tool definitions, whatever they were written in."""

from eval_gate.model.base import Frozen, JsonValue


class ToolDefinition(Frozen):
    """One tool. A value that cannot be known without running code is None."""

    name: str
    description: str | None = None
    version: str | None = None
    status: str | None = None
    parameters: dict[str, JsonValue] | None = None
    """JSON Schema of the arguments."""


class Registry(Frozen):
    """All tools of one source. `size` counts unresolvable ones too; `notices` say what could not be read."""

    source: str
    tools: tuple[ToolDefinition, ...]
    unresolved: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many tools there are."""
        return len(self.tools) + len(self.unresolved)

    def find(self, name: str) -> ToolDefinition | None:
        """The tool of this name, or None."""
        return next((tool for tool in self.tools if tool.name == name), None)
