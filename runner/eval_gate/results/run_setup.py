"""The set-up of a run, and descriptions of how two set-ups differ."""

from __future__ import annotations

from collections.abc import Iterator

from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import RunResult
from eval_gate.model.setup import SettingRole, TargetIdentity, compare_settings, compare_targets, format_setting_change
from eval_gate.struct import FrozenStruct


class RunSetup(FrozenStruct):
    """Setup of a run: targets, evaluation setup, agents of suites, commit."""

    targets: tuple[TargetIdentity, ...] = ()
    setup: EvaluationSetup | None = None
    suite_agents: tuple[TargetIdentity, ...] = ()
    commit: str | None = None
    """Commit that was evaluated; None if unknown."""

    @classmethod
    def from_run(cls, run: RunResult) -> RunSetup:
        """Build the setup of a stored run."""
        return cls(run.targets or (run.target,), run.setup, run.suite_agents, run.sha)

    def iter_differences(self, other: RunSetup) -> Iterator[str]:
        """Describe what differs in `other`: `target a: responsePath response → extra`. The commit is not compared."""
        old, new = self.setup or EvaluationSetup(), other.setup or EvaluationSetup()
        for change in compare_settings(old.settings, new.settings):
            yield format_setting_change(change)
        yield from self._iter_moved_targets(other)
        for name, change in compare_targets(self.targets, other.targets):
            yield f"target {name}: {format_setting_change(change)}"
        for name, change in compare_targets(self.suite_agents, other.suite_agents):
            yield f"agent of suite {name}: {format_setting_change(change)}"
        for name, change in compare_targets(old.judges, new.judges):
            yield f"judge {name}: {format_setting_change(change)}"
        for name, change in compare_targets(old.users, new.users):
            yield f"simulated user {name}: {format_setting_change(change)}"

    def has_target_changes(self, other: RunSetup) -> bool:
        """Whether a target of the same name gets other requests or is read differently, apart from its address."""
        changed = compare_targets(self.targets, other.targets)
        return any(change.role is not SettingRole.LOCATION for _, change in changed)

    def _iter_moved_targets(self, other: RunSetup) -> Iterator[str]:
        """Describe the targets of the same name that moved elsewhere without stating by which setting."""
        by_name = {one.name: one for one in self.targets}
        for one in other.targets:
            old = by_name.get(one.name)
            described = old is not None and None not in {old.fingerprint, one.fingerprint}
            if old is not None and not described and old.identity != one.identity:
                yield f"target {one.name}: {old.identity} → {one.identity}"
