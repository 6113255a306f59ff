"""Settings of a VS Code target (agentv behaviour 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from eval_gate.targets.settings import (
    AGENT_PLACE,
    AGENT_SETTING,
    LONGEST_S,
    NoEffect,
    Place,
    ProgramSettings,
)

DEFAULT_TIMEOUT_S: Final = 600


def _check_wait(wait: bool) -> bool:  # noqa: FBT001 (a setting)
    if not wait:
        raise ValueError("false leaves every case without a response: leave it out")
    return wait


class VscodeSettings(ProgramSettings):
    """Settings of a VS Code target. Paths are relative to the root of the run; `~` is the home folder."""

    other_names: ClassVar[Mapping[str, str]] = {"command": "vscodeCmd"}

    provider: Literal["vscode", "vscode-insiders"] = "vscode"
    vscode_cmd: Annotated[Place | None, AGENT_PLACE] = Field(
        default=None, description="Program to start; code or code-insiders by default."
    )
    wait: Annotated[bool, AfterValidator(_check_wait)] = Field(
        default=True, description="Only true: without a response there is nothing to evaluate."
    )
    dry_run: bool = Field(default=False, description="Write the prompts without starting VS Code or evaluating.")
    subagent_root: Place | None = Field(
        default=None, description="Folder of the subagents; by default ~/.subagent/vscode-agents."
    )
    workspace_template: Annotated[Place | None, AGENT_SETTING] = Field(
        default=None, description="A .code-workspace file as template for the subagent's."
    )
    timeout_seconds: float = Field(default=DEFAULT_TIMEOUT_S, gt=0, le=LONGEST_S)
    workers: Annotated[int | None, NoEffect("it is one at a time, whatever is written")] = Field(
        default=None, ge=1, le=1000, description="Ignored: always one at a time."
    )
    provider_batching: bool = Field(default=False, description="Send all cases of a file in one chat.")

    @property
    def command(self) -> str:
        """The program, by name or path."""
        return self.vscode_cmd or ("code-insiders" if self.provider == "vscode-insiders" else "code")

    @property
    def subagents(self) -> str:
        """The folder with the subagents, as it is written."""
        folder = "vscode-insiders-agents" if self.provider == "vscode-insiders" else "vscode-agents"
        return self.subagent_root or f"~/.subagent/{folder}"
