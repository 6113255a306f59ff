"""Runs the hooks of workspaces: programs of an eval file that prepare a workspace or look after it.

Source: AgentV 4.42.4 (`executeWorkspaceScript`). They run as programs that grade do: without secrets, as the same user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from eval_gate.engine.run_plan import RunPlan
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase, HookName, WorkspaceHook
from eval_gate.process.captured_output import Mask
from eval_gate.process.environment import WithheldVariables
from eval_gate.process.misplaced_files import find_path_hint
from eval_gate.process.run import Command, ProcessError, run
from eval_gate.struct import FrozenStruct, field
from eval_gate.text.untrusted.surrogates import to_well_formed

_MAX_QUOTED: Final = 300
_VARIABLE: Final = re.compile(r"\{\{(\w+)\}\}")


class HookError(Exception):
    """A hook that failed, did not end in time or could not be started: an evaluation error."""


class HookRunner(FrozenStruct):
    """Runner of the hooks of one run."""

    environment: Mapping[str, str] = field(default_factory=dict)
    """All the variables that a hook gets."""
    withheld: WithheldVariables = field(default_factory=WithheldVariables)
    mask: Mask | None = None
    run_id: str = ""

    @classmethod
    def from_plan(cls, plan: RunPlan, run_id: str) -> Self:
        """Build the runner of a planned run."""
        return cls(plan.environment, plan.withheld, plan.redactor.mask_bytes, run_id)

    async def run(self, name: HookName, hook: WorkspaceHook, workspace: Path, case: EvalCase | None) -> None:
        """Run a hook in the workspace of `case`; with None, in one that is shared. Raises HookError."""
        told = _build_input(name, workspace, self.run_id, case)
        usual_s = limits.HOOK_CLEANUP_S if name.startswith("after") else limits.HOOK_PREPARATION_S
        limit_s = usual_s if hook.timeout_ms is None else hook.timeout_ms / 1000
        command = Command(
            tuple(_fill_in(word, told) for word in hook.command),
            Path(hook.cwd),
            self.environment,
            stdin=json.dumps(told).encode(),
            timeout_s=limit_s,
            max_output=limits.HOOK_BYTES,
            max_errors=limits.HOOK_BYTES,
            mask=self.mask,
        )
        try:
            finished = await run(command)
        except ProcessError as error:
            hint = find_path_hint(command.line, command.cwd)
            raise HookError(
                f"the {name} hook could not be run: {error.message}{f'; {hint}' if hint else ''}"
            ) from error
        words = finished.stderr.format_last_line(_MAX_QUOTED)
        said = f": {words}" if words else ""
        if finished.timed_out:
            raise HookError(f"the {name} hook did not end within {limit_s:g} s{said}")
        if finished.code:
            missing = self.withheld.find_hint(" ".join(hook.command), said) or find_path_hint(command.line, command.cwd)
            raise HookError(f"the {name} hook {finished.ending}{said}{f'; {missing}' if missing else ''}")


def _build_input(name: str, workspace: Path, run_id: str, case: EvalCase | None) -> dict[str, JsonValue]:
    """Build what a hook gets on its standard input, and in the words of its command."""
    brief = None if case is None else case.brief
    return {
        "workspace_path": str(workspace),
        "test_id": f"__{name}__" if case is None else case.id,
        "eval_run_id": run_id,
        "case_input": None if brief is None else brief.question,
        "case_metadata": None if brief is None else brief.metadata,
    }


def _fill_in(word: str, values: Mapping[str, JsonValue]) -> str:
    """Fill in the variables of a word; unknown ones stay."""

    def replace_variable(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        value = values[match[1]]
        return value if isinstance(value, str) else "" if value is None else json.dumps(value, separators=(",", ":"))

    return to_well_formed(_VARIABLE.sub(replace_variable, word))
