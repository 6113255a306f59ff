"""Agent that an Agent Evals suite describes: a model with instructions and file tools."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from eval_gate.model.base import Frozen

SUITE_MODEL: Final = "gpt-5-mini"
"""The only model that a suite may name. The caller of a run can choose another (Agent Evals, Suite Field Notes)."""

MAX_TURNS: Final = 5
"""Default maximum turns of a suite's agent."""

FileTool = Literal["readFile", "writeFile", "listFiles", "deleteFile"]
"""Names of the available tools."""

CHANGING_TOOLS: Final[frozenset[FileTool]] = frozenset({"writeFile", "deleteFile"})
"""Tools that change the files of a folder."""


class SuiteAgent(Frozen, kw_only=True):
    """Agent that runs the cases of a suite. A model chosen for the run overrides `model`."""

    name: str
    model: str
    instructions: str
    tools: tuple[FileTool, ...] = ()
    max_turns: Annotated[int, Meta(gt=0)] = MAX_TURNS

    @property
    def changes_files(self) -> bool:
        """Whether a tool of the agent can create or remove files that a later case of the suite uses."""
        return not CHANGING_TOOLS.isdisjoint(self.tools)
