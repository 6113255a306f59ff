"""Settings that changed since the baseline, for each case. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from eval_gate.model.policy import Measuring
from eval_gate.model.result import CaseResult, RunResult, Yardstick
from eval_gate.model.setup import SettingChange, SettingRole, TargetIdentity, changed_settings
from eval_gate.model.yardstick import DifferenceKind, SetupOf

UNNAMED_SETTINGS = "settings"
"""Stands for settings of which a record does not tell which."""


class CaseSettingChange(NamedTuple):
    """One changed setting, as far as it concerns a case."""

    kind: DifferenceKind
    owner: SetupOf
    subject: str
    name: str
    baseline_value: str | None
    current_value: str | None


class SettingComparison:
    """Compares the settings of a baseline and a run, case by case.

    What one of the records does not say is no change.
    """

    def __init__(self, then: RunResult, now: RunResult) -> None:
        self._then, self._now = _RunSetup(then), _RunSetup(now)
        before, after = then.measuring, now.measuring
        changed = changed_settings(before.settings, after.settings) if before and after else ()
        self._of_run = tuple(_build_change(SetupOf.RUN, "", one) for one in changed)
        before_by, after_by = ({one.name: one for one in run.agents} for run in (then, now))
        self._agents = before_by, after_by
        self._known: dict[tuple[object, ...], tuple[CaseSettingChange, ...]] = {}

    def find_changes(self, then: CaseResult, now: CaseResult, files: tuple[str, str]) -> tuple[CaseSettingChange, ...]:
        """The changes that this case is measured with. `files` are its eval files, then and now."""
        before, after = then.yardstick or Yardstick(), now.yardstick or Yardstick()
        names = self._then.get_target_name(then), self._now.get_target_name(now)
        key = (
            *(names, files, before.target, after.target, before.timeout_ms, after.timeout_ms),
            *(before.judge, after.judge, before.judge_setup, after.judge_setup, before.agent, after.agent),
        )
        if key not in self._known:
            self._known[key] = (
                *(self._of_run if then.yardstick and now.yardstick else ()),
                *self._compare_targets(names, before, after),
                *self._compare_suites(files, before, after),
                *self._compare_judges(before, after),
                *self._compare_cases(before, after),
            )
        return self._known[key]

    def _compare_targets(self, names: tuple[str, str], then: Yardstick, now: Yardstick) -> Iterator[CaseSettingChange]:
        was, is_now = self._then.find_target(names[0], then.target), self._now.find_target(names[1], now.target)
        if was is None or is_now is None:
            return
        if names[0] != names[1]:
            if was.file or is_now.file:  # else it is the run's own target, which is compared by itself
                yield CaseSettingChange(DifferenceKind.MOVED, SetupOf.CASE, "", "target", *names)
            return
        if None in {then.target, now.target} or then.target == now.target:
            return
        changed = list(changed_settings(was.setup, is_now.setup))
        elsewhere = (was.provider, was.model, was.identity) != (is_now.provider, is_now.model, is_now.identity)
        # that it is somewhere else, or another model, is said of the target as a whole
        shown = [one for one in changed if not (elsewhere and (one.role is SettingRole.PLACE or one.name == "model"))]
        for one in shown:
            yield _build_change(SetupOf.TARGET, names[0], one)
        if not changed and not elsewhere:
            yield _build_unnamed_change(SetupOf.TARGET, names[0], then.target, now.target)

    def _compare_suites(self, files: tuple[str, str], then: Yardstick, now: Yardstick) -> Iterator[CaseSettingChange]:
        if None in {then.agent, now.agent} or then.agent == now.agent:
            return
        was, is_now = self._agents[0].get(files[0]), self._agents[1].get(files[1])
        changed = list(changed_settings(was.setup, is_now.setup)) if was and is_now else []
        yield from (_build_change(SetupOf.SUITE, files[1], one) for one in changed)
        if not changed:
            unnamed = _build_unnamed_change(SetupOf.SUITE, files[1], str(then.agent), str(now.agent))
            yield unnamed._replace(kind=DifferenceKind.AGENT)

    def _compare_judges(self, then: Yardstick, now: Yardstick) -> Iterator[CaseSettingChange]:
        if None in {then.judge_setup, now.judge_setup} or then.judge_setup == now.judge_setup:
            return
        before, after = self._then.find_judges(then.judge), self._now.find_judges(now.judge)
        changed = [
            _build_change(SetupOf.JUDGE, name, one._replace(role=None))
            for name in sorted(before.keys() & after.keys())
            for one in changed_settings(before[name].setup, after[name].setup)
        ]
        yield from changed
        if not changed and then.judge == now.judge:
            yield _build_unnamed_change(SetupOf.JUDGE, ", ".join(sorted(after)), then.judge_setup, now.judge_setup)

    @staticmethod
    def _compare_cases(then: Yardstick, now: Yardstick) -> Iterator[CaseSettingChange]:
        if then.timeout_ms != now.timeout_ms:
            limits = (None if one.timeout_ms is None else str(one.timeout_ms) for one in (then, now))
            yield CaseSettingChange(DifferenceKind.SETUP, SetupOf.CASE, "", "timeout", *limits)


class _RunSetup:
    """The targets and judges of one record, by name."""

    def __init__(self, run: RunResult) -> None:
        self._main = run.target.name
        self._targets = _group_by_name(run.targets or (run.target,))
        self._judges = (run.measuring or Measuring()).judges

    def get_target_name(self, case: CaseResult) -> str:
        """The name of the target that was asked."""
        return case.target or self._main

    def find_target(self, name: str, fingerprint: str | None) -> TargetIdentity | None:
        """The target of this name and fingerprint; of targets that nobody described, the name says all."""
        named = self._targets.get(name, ())
        return next((one for one in named if one.fingerprint == fingerprint), named[0] if named else None)

    def find_judges(self, who: str | None) -> Mapping[str, TargetIdentity]:
        """The judges that a case names, by name."""
        return {judge.name: judge for judge in self._judges if who and judge.identity in who}


def _build_change(whose: SetupOf, subject: str, one: SettingChange) -> CaseSettingChange:
    kind = DifferenceKind.SETUP if one.role is None else DifferenceKind.AGENT
    return CaseSettingChange(kind, whose, subject, one.name, one.then, one.now)


def _build_unnamed_change(whose: SetupOf, subject: str, then: str | None, now: str | None) -> CaseSettingChange:
    return CaseSettingChange(DifferenceKind.SETUP, whose, subject, UNNAMED_SETTINGS, f"#{then}", f"#{now}")


def _group_by_name(targets: Iterable[TargetIdentity]) -> Mapping[str, tuple[TargetIdentity, ...]]:
    found: dict[str, tuple[TargetIdentity, ...]] = {}
    for one in targets:
        found[one.name] = (*found.get(one.name, ()), one)
    return found
