"""VS Code targets as people describe them (agentv behaviour 4)."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import ConfigDict, Field, model_validator

from eval_gate.targets.codex.settings import LONGEST_S, Text, Value, Variable
from eval_gate.targets.described import Described
from eval_gate.targets.other_names import canonical, shown

OTHER_NAMES: Final = {"command": "vscodeCmd"}
"""Other names of settings, and ours."""
PROVIDERS: Final = ("vscode", "vscode-insiders")
DEFAULT_TIMEOUT_S: Final = 600
_NO_WAIT: Final = "wait: false leaves every case without an answer to judge; leave it out"


class VscodeSettings(Described):
    """One VS Code target. Paths are relative to the root of the run; `~` is the home folder."""

    model_config = ConfigDict(json_schema_extra=shown(OTHER_NAMES, PROVIDERS))

    name: Text
    provider: Literal["vscode", "vscode-insiders"] = "vscode"
    vscode_cmd: Text | None = Field(None, description="code, or code-insiders, unless given.")
    wait: bool = Field(default=True, description="Only true: without an answer there is nothing to judge.")
    dry_run: bool = Field(default=False, description="Write the prompts, start nothing, judge nothing.")
    subagent_root: Text | None = Field(
        None, description="Where the subagents are provisioned; ~/.subagent/vscode-agents unless given."
    )
    workspace_template: Text | None = Field(None, description="A .code-workspace file that the subagent's is made of.")
    timeout_seconds: float = Field(DEFAULT_TIMEOUT_S, gt=0, le=LONGEST_S)
    workers: int | None = Field(None, ge=1, le=1000, description="One at a time, whatever stands here.")
    judge_target: Text | None = None
    provider_batching: bool = Field(default=False, description="All cases of a file in one chat.")
    pass_env: tuple[Variable, ...] = Field((), description="Variables that are passed as they are set here.")
    env: dict[Variable, Value] = Field(default_factory=dict, description="More variables for VS Code.")

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        found = canonical(data, OTHER_NAMES)
        provider = found.get("provider")
        if isinstance(provider, str) and provider.strip().lower() in PROVIDERS:
            found["provider"] = provider.strip().lower()
        return found

    @model_validator(mode="after")
    def _waits(self) -> VscodeSettings:
        if not self.wait:
            raise ValueError(_NO_WAIT)
        return self

    @property
    def command(self) -> str:
        """The program, by name or path."""
        return self.vscode_cmd or ("code-insiders" if self.provider == "vscode-insiders" else "code")

    @property
    def subagents(self) -> str:
        """The folder with the subagents, as it is written."""
        folder = "vscode-insiders-agents" if self.provider == "vscode-insiders" else "vscode-agents"
        return self.subagent_root or f"~/.subagent/{folder}"
