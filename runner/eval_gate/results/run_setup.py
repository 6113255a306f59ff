"""The set-up of a run, and descriptions of how two set-ups differ."""

from __future__ import annotations

from collections.abc import Iterator

from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import RunResult
from eval_gate.model.setup import SettingRole, TargetIdentity, compare_settings, compare_targets, format_setting_change
from eval_gate.struct import FrozenStruct


class RunSetup(FrozenStruct):
    """Setup of a run: targets, measurement, agents of suites, commit."""

    targets: tuple[TargetIdentity, ...] = ()
    setup: EvaluationSetup | None = None
    suite_agents: tuple[TargetIdentity, ...] = ()
    """Agents that suites describe."""
    commit: str | None = None
    """Commit that was evaluated; None if unknown."""

    @classmethod
    def from_run(cls, run: RunResult) -> RunSetup:
        """Build the setup of a stored run."""
        return cls(run.targets or (run.target,), run.setup, run.suite_agents, run.sha)

    def iter_differences(self, other: RunSetup) -> Iterator[str]:
        """Describe what differs in `other`: `target a: responsePath response → extra`. The commit is not compared."""
        before, after = self.setup or EvaluationSetup(), other.setup or EvaluationSetup()
        for change in compare_settings(before.settings, after.settings):
            yield format_setting_change(change)
        yield from self._iter_moved_targets(other)
        for name, change in compare_targets(self.targets, other.targets):
            yield f"target {name}: {format_setting_change(change)}"
        for name, change in compare_targets(self.suite_agents, other.suite_agents):
            yield f"agent of suite {name}: {format_setting_change(change)}"
        for name, change in compare_targets(before.judges, after.judges):
            yield f"judge {name}: {format_setting_change(change)}"

    def has_target_changes(self, other: RunSetup) -> bool:
        """Whether a target of the same name gets other requests or is read differently, apart from its address."""
        changed = compare_targets(self.targets, other.targets)
        return any(change.role is not SettingRole.LOCATION for _, change in changed)

    def _iter_moved_targets(self, other: RunSetup) -> Iterator[str]:
        """Describe the targets of the same name that moved elsewhere without stating by which setting."""
        before = {one.name: one for one in self.targets}
        for one in other.targets:
            known = before.get(one.name)
            described = known is not None and None not in {known.fingerprint, one.fingerprint}
            if known is not None and not described and known.identity != one.identity:
                yield f"target {one.name}: {known.identity} → {one.identity}"
