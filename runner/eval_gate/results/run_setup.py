"""The set-up of a run, and descriptions of how two set-ups differ."""

from __future__ import annotations

from collections.abc import Iterator

from eval_gate.model.policy import Measuring
from eval_gate.model.result import RunResult
from eval_gate.model.setup import SettingRole, TargetIdentity, changed_between, changed_settings, in_words
from eval_gate.struct import FrozenStruct


class RunSetup(FrozenStruct):
    """Set-up of a run: targets, measurement, agents of suites, commit."""

    targets: tuple[TargetIdentity, ...] = ()
    measurement: Measuring | None = None
    agents: tuple[TargetIdentity, ...] = ()
    """Those that suites bring along."""
    commit: str | None = None
    """The commit that was evaluated; None where unknown."""

    @classmethod
    def from_run(cls, run: RunResult) -> RunSetup:
        """That of a run on record."""
        return cls(run.targets or (run.target,), run.measuring, run.agents, run.sha)

    def iter_differences(self, other: RunSetup) -> Iterator[str]:
        """What the other one has otherwise, in words: `target a: responsePath response → extra`. No commit."""
        before, after = self.measurement or Measuring(), other.measurement or Measuring()
        for change in changed_settings(before.settings, after.settings):
            yield in_words(change)
        yield from self._iter_moved_targets(other)
        for name, change in changed_between(self.targets, other.targets):
            yield f"target {name}: {in_words(change)}"
        for name, change in changed_between(self.agents, other.agents):
            yield f"agent of {name}: {in_words(change)}"
        for name, change in changed_between(before.judges, after.judges):
            yield f"judge {name}: {in_words(change)}"

    def has_target_changes(self, other: RunSetup) -> bool:
        """Whether targets of the same name are asked or read in another way; that they are elsewhere is none."""
        changed = changed_between(self.targets, other.targets)
        return any(change.role is not SettingRole.PLACE for _, change in changed)

    def _iter_moved_targets(self, other: RunSetup) -> Iterator[str]:
        """The targets of the same name that are somewhere else and do not say by which setting."""
        before = {one.name: one for one in self.targets}
        for one in other.targets:
            known = before.get(one.name)
            described = known is not None and None not in {known.fingerprint, one.fingerprint}
            if known is not None and not described and known.identity != one.identity:
                yield f"target {one.name}: {known.identity} → {one.identity}"
