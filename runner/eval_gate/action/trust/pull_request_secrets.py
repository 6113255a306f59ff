"""Secrets for targets of a pull request: only targets that the base branch describes the same way.

Anybody who may push a branch can write a target that sends `${{ KEY }}` to an address of their own. Targets of the base
branch were reviewed; targets of the pull request alone were not. Inputs and variables of the workflow take precedence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from eval_gate.action.inputs import TrustedSide
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.action.trust.base_branch import (
    describe_branch,
    find_branch_warning,
    find_trusted_branch,
    load_base_config,
    resolve_repository_path,
)
from eval_gate.action.trust.event_files import is_unverified_start
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.github.commits import fetch_file
from eval_gate.github.failure import GitHubError, build_unavailable_error
from eval_gate.model.base import JsonValue
from eval_gate.process.environment import is_always_passed
from eval_gate.targets.build import find_flag_target
from eval_gate.targets.build_context import SecretPolicy, SecretRequest
from eval_gate.targets.secret_requests import has_same_access
from eval_gate.targets.target_list import TargetList, parse_targets, read_targets

_ADVICE = "merge it first, or allow it in the workflow with the input secrets-for: head"


def build_secret_policy(
    step: Step, config: RunConfig, variables: Mapping[str, str], log: StepLog
) -> SecretPolicy | None:
    """Build the step's secret policy; None outside of pull requests, where every target gets its secrets.

    Raises GateError where the pull request's configuration passes variables on that its base branch's does not, or
    leads model calls of agents, which have keys, to another proxy.
    """
    if step.settings.secrets_for is TrustedSide.HEAD:
        return None
    if step.plan.base_branch is not None:
        base = BaseBranchTargets(step, variables, log)
    elif is_unverified_start(step):
        base = BaseBranchTargets(step, variables, log, step.plan.head_sha)
    else:
        return None
    if config.model_proxy is not None and config.model_proxy != base.config.model_proxy:
        host = (urlsplit(config.model_proxy).hostname or "")[:200]
        what = f"modelProxy would give the keys of model calls to {host}, but the configuration of {base.display_name}"
        raise GateError("secret-not-allowed", f"{what} does not", f"{_ADVICE}, or set EVAL_GATE_MODEL_PROXY there")
    names = [name for name in config.pass_env if variables.get(name, "").strip() and not is_always_passed(name)]
    for name in names:
        if name not in base.config.pass_env:
            raise GateError(
                "secret-not-allowed",
                f"passEnv would give {name} to commands, but the configuration of {base.display_name} does not",
                _ADVICE,
            )
    if names:
        base.warn_once()
    return base


class BaseBranchTargets:
    """Targets as the trusted base branch (`find_trusted_branch`), or a commit, describes them, read on demand."""

    def __init__(self, step: Step, variables: Mapping[str, str], log: StepLog, commit: str | None = None) -> None:
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
        if warning := find_branch_warning(self._step):
            self._log.commands.write_warning(warning)

    def __call__(self, secret_request: SecretRequest) -> None:
        """Allow the secrets of a target that the base branch describes with the same access; else raise GateError."""
        names = " and ".join(secret_request.variables)
        if any(has_same_access(secret_request.entry.open(), entry) for entry in self.get_entries(secret_request.file)):
            self._log.record(
                f"target {secret_request.name[:80]} gets {names}: {self.display_name} defines it in the same way"
            )
            self.warn_once()
            return
        place = f" at {secret_request.place[:300]}" if secret_request.place else ""
        raise GateError(
            "secret-not-allowed",
            f"target {secret_request.name[:80]}{place} would get {names}, but {self.display_name} does not define it "
            "in this way",
            _ADVICE,
        )

    @cached_property
    def branch(self) -> str:
        """The branch or commit. Raises GateError if it is unknown."""
        try:
            return self._commit or find_trusted_branch(self._step) or ""
        except GitHubError as error:
            raise self._build_unavailable_error(error) from error

    @property
    def display_name(self) -> str:
        """The branch or commit as messages show it."""
        return self._commit[:7] if self._commit else describe_branch(self._step, self.branch)

    @cached_property
    def config(self) -> RunConfig:
        """The base branch's configuration, with the inputs and variables of this step."""
        try:
            return load_base_config(self._step, self._variables, self.branch)[0]
        except GitHubError as error:
            raise self._build_unavailable_error(error) from error

    def get_entries(self, file: str | None) -> tuple[Mapping[str, JsonValue], ...]:
        """Return the target entries of the base branch in this file, or in its configuration for None.

        Raises GateError if the base branch cannot be read. Invalid targets count as no entries.
        """
        if file is not None:
            target_list = self._read_target_list(file)
            return target_list.entries if target_list else ()
        choice = self.config.target
        try:
            fixed = find_flag_target(choice)
            listed = () if choice.targets is None or isinstance(choice.targets, str) else choice.targets
            inline = read_targets(listed, Path()).entries
        except GateError:  # what is not valid describes nothing
            return ()
        return (*inline, *((fixed.entry.open(),) if fixed else ()))

    def _read_target_list(self, file: str) -> TargetList | None:
        """Read the base branch's version of a target list in the workspace."""
        workspace = os.path.normpath(self._step.environment.workspace)
        path = Path(os.path.normpath(Path(workspace) / file))
        if not path.is_relative_to(workspace):
            return None
        name = resolve_repository_path(self._step, path.relative_to(workspace).as_posix())
        try:
            data = fetch_file(self._step.client, name, self.branch)
        except GitHubError as error:
            raise self._build_unavailable_error(error) from error
        try:
            return parse_targets(name, data) if data is not None else None
        except GateError:  # what is no list describes nothing
            return None

    def _build_unavailable_error(self, error: GitHubError) -> GateError:
        where = (self._commit or self._step.plan.base_branch or "")[:200]
        return build_unavailable_error(f"cannot read from {where} which targets get variables: {error}")
