"""The agent an Agent Evals suite describes: a model with instructions and tools that work on files."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from eval_gate.model.base import Frozen

SUITE_MODEL: Final = "gpt-5-mini"
"""The only model a suite may name unless the person running it chooses another (Agent Evals, Suite Field Notes)."""

MAX_TURNS: Final = 5
"""Turns of an agent whose suite does not say."""

FileTool = Literal["readFile", "writeFile", "listFiles", "deleteFile"]
"""The tools there are, by name."""

CHANGING_TOOLS: Final[frozenset[FileTool]] = frozenset({"writeFile", "deleteFile"})
"""Those after which a folder holds other files than before."""


class SuiteAgent(Frozen, kw_only=True):
    """Who answers the cases of a suite. `model` is what the suite names; a model chosen for the run wins."""

    name: str
    model: str
    instructions: str
    tools: tuple[FileTool, ...] = ()
    max_turns: Annotated[int, Meta(gt=0)] = MAX_TURNS

    @property
    def changes_files(self) -> bool:
        """Whether a tool of it can leave files that a later case of the suite finds, or takes some away."""
        return not CHANGING_TOOLS.isdisjoint(self.tools)
