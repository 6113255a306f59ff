"""Which targets of a pull request are given variables of the step: those that its base branch describes alike.

Whoever may push a branch may write a target that sends `${{ KEY }}` to an address of their own. What the base branch
says was reviewed; what only the pull request says was not. Inputs and variables stand in the workflow and win.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from eval_gate.action.inputs import ReportedSide
from eval_gate.action.log import Log
from eval_gate.action.step import Step
from eval_gate.action.trust.base import (
    base_config,
    path_in_repository,
    trusted_branch,
    warning_of_named_branch,
    words_of,
)
from eval_gate.action.trust.event_files import is_believed
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.github.commits import file_at
from eval_gate.github.failure import GitHubError, unavailable
from eval_gate.model.base import JsonValue
from eval_gate.process.environment import is_plain
from eval_gate.targets.build import described_by_flags
from eval_gate.targets.listing import TargetList, parse_targets, read_targets
from eval_gate.targets.variables import Doorkeeper, Receiver, alike

_ADVICE = "merge that first, or say in the workflow that this is fine: input secrets-for: head"


def doorkeeper_for(step: Step, config: RunConfig, variables: Mapping[str, str], log: Log) -> Doorkeeper | None:
    """Who decides for this step; None where every target is given what it asks for: outside of a pull request.

    Raises GateError where the pull request's configuration passes variables on that its base branch's does not.
    """
    if step.settings.secrets_for is ReportedSide.HEAD:
        return None
    if step.plan.base_branch is not None:
        base = BaseDescriptions(step, variables, log)
    elif is_believed(step):
        base = BaseDescriptions(step, variables, log, step.plan.head_sha)
    else:
        return None
    names = [name for name in config.pass_env if variables.get(name, "").strip() and not is_plain(name)]
    for name in names:
        if name not in base.config.pass_env:
            raise GateError(
                "secret-not-given",
                f"passEnv would give {name} to commands, and the configuration of {base.named} does not",
                _ADVICE,
            )
    if names:
        base.warn_once()
    return base


class BaseDescriptions:
    """The base branch's descriptions, each read from GitHub when it is needed; those of a commit where one is given.

    The base branch is the one whose word counts (`trusted_branch`).
    """

    def __init__(self, step: Step, variables: Mapping[str, str], log: Log, commit: str | None = None) -> None:
        self._step = step
        self._variables = variables
        self._commit = commit
        self._log = log
        self._has_warned = False

    def warn_once(self) -> None:
        """Something is given by this branch's word: say where it counts only because the workflow names it."""
        if self._has_warned or self._commit is not None:
            return
        self._has_warned = True
        if warning := warning_of_named_branch(self._step):
            self._log.commands.warning(warning)

    def __call__(self, receiver: Receiver) -> None:
        """Raises GateError for a target that the base branch does not describe alike, or where it cannot be read."""
        names = " and ".join(receiver.variables)
        if any(alike(receiver.entry.open(), entry) for entry in self.entries(receiver.file)):
            self._log.did(f"target {receiver.name[:80]} is given {names}: {self.named} describes it alike")
            self.warn_once()
            return
        place = f" at {receiver.place[:300]}" if receiver.place else ""
        raise GateError(
            "secret-not-given",
            f"target {receiver.name[:80]}{place} would be given {names}, and {self.named} does not describe it so",
            _ADVICE,
        )

    @cached_property
    def branch(self) -> str:
        """The branch or commit. Raises GateError where it cannot be told."""
        try:
            return self._commit or trusted_branch(self._step) or ""
        except GitHubError as error:
            raise self._unavailable(error) from error

    @property
    def named(self) -> str:
        """The same for people."""
        return self._commit[:7] if self._commit else words_of(self._step, self.branch)

    @cached_property
    def config(self) -> RunConfig:
        """The base branch's configuration, with the inputs and variables of this step."""
        try:
            return base_config(self._step, self._variables, self.branch)[0]
        except GitHubError as error:
            raise self._unavailable(error) from error

    def entries(self, file: str | None) -> tuple[Mapping[str, JsonValue], ...]:
        """What the base branch describes in this file; for None, in its configuration. Raises GateError."""
        if file is not None:
            found = self._list(file)
            return found.entries if found else ()
        choice = self.config.target
        try:
            fixed = described_by_flags(choice)
            listed = () if choice.targets is None or isinstance(choice.targets, str) else choice.targets
            inline = read_targets(listed, Path()).entries
        except GateError:  # what is not valid describes nothing
            return ()
        return (*inline, *((fixed.entry.open(),) if fixed else ()))

    def _list(self, file: str) -> TargetList | None:
        """The list in this file of the workspace as the base branch has it; None where it has none that is valid."""
        workspace = os.path.normpath(self._step.environment.workspace)
        path = Path(os.path.normpath(Path(workspace) / file))
        if not path.is_relative_to(workspace):
            return None
        name = path_in_repository(self._step, path.relative_to(workspace).as_posix())
        try:
            data = file_at(self._step.client, name, self.branch)
        except GitHubError as error:
            raise self._unavailable(error) from error
        try:
            return parse_targets(name, data) if data is not None else None
        except GateError:  # what is no list describes nothing
            return None

    def _unavailable(self, error: GitHubError) -> GateError:
        where = (self._commit or self._step.plan.base_branch or "")[:200]
        return unavailable(f"which targets may be given variables could not be read from {where}: {error}")
