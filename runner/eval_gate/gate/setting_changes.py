"""Settings and files of programs that changed since the baseline, for each case. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from eval_gate.model.policy import ComparedPrograms, EvaluationSetup
from eval_gate.model.result import CaseFingerprints, CaseResult, RunResult
from eval_gate.model.setup import SettingChange, SettingRole, TargetIdentity, compare_settings
from eval_gate.model.setup_change import SettingOwner, SetupChange, SetupChangeKind
from eval_gate.struct import replace

UNNAMED_SETTINGS = "settings"
"""Stands for settings whose names a run result does not have."""


class SettingComparison:
    """Comparison of the settings of a baseline and a run, case by case; one that a result lacks is no change."""

    def __init__(self, baseline: RunResult, current: RunResult) -> None:
        self._old, self._new = _RunSetup(baseline), _RunSetup(current)
        old, new = baseline.setup, current.setup
        changed = compare_settings(old.settings, new.settings) if old and new else ()
        self._of_run = tuple(_build_change(SettingOwner.RUN, "", one) for one in changed)
        old_agents, new_agents = ({one.name: one for one in run.suite_agents} for run in (baseline, current))
        self._agents = old_agents, new_agents
        self._cache: dict[tuple[object, ...], tuple[SetupChange, ...]] = {}

    def find_changes(
        self, baseline: CaseResult, current: CaseResult, files: tuple[str, str]
    ) -> tuple[SetupChange, ...]:
        """Find the changed settings that concern this case, whose eval files in both runs are `files`."""
        old, new = baseline.fingerprints or CaseFingerprints(), current.fingerprints or CaseFingerprints()
        names = self._old.get_target_name(baseline), self._new.get_target_name(current)
        key = (
            *(names, files, old.target, new.target, old.timeout_ms, new.timeout_ms),
            *(old.judge, new.judge, old.judge_setup, new.judge_setup, old.agent, new.agent),
            *(old.user, new.user, old.user_setup, new.user_setup),
        )
        if key not in self._cache:
            self._cache[key] = (
                *(self._of_run if baseline.fingerprints and current.fingerprints else ()),
                *self._compare_targets(names, old, new),
                *self._compare_suites(files, old, new),
                *self._compare_models(old, new),
                *self._compare_cases(old, new),
            )
        return self._cache[key]

    def _compare_targets(
        self, names: tuple[str, str], baseline: CaseFingerprints, current: CaseFingerprints
    ) -> Iterator[SetupChange]:
        was, is_now = self._old.find_target(names[0], baseline.target), self._new.find_target(names[1], current.target)
        if was is None or is_now is None:
            return
        if names[0] != names[1]:
            if was.file or is_now.file:  # else it is the run's own target, which is compared by itself
                yield _build_difference(SetupChangeKind.TARGET_ASSIGNMENT, SettingOwner.CASE, "", "target", *names)
            return
        if None in {baseline.target, current.target} or baseline.target == current.target:
            return
        changed = list(compare_settings(was.setup, is_now.setup))
        elsewhere = (was.provider, was.model, was.identity) != (is_now.provider, is_now.model, is_now.identity)
        # the target as a whole shows another place or model
        settings = [
            one for one in changed if not (elsewhere and (one.role is SettingRole.LOCATION or one.name == "model"))
        ]
        for one in settings:
            yield _build_change(SettingOwner.TARGET, names[0], one)
        if not changed and not elsewhere:
            yield _build_unnamed_change(SettingOwner.TARGET, names[0], baseline.target, current.target)

    def _compare_suites(
        self, files: tuple[str, str], baseline: CaseFingerprints, current: CaseFingerprints
    ) -> Iterator[SetupChange]:
        if None in {baseline.agent, current.agent} or baseline.agent == current.agent:
            return
        was, is_now = self._agents[0].get(files[0]), self._agents[1].get(files[1])
        changed = list(compare_settings(was.setup, is_now.setup)) if was and is_now else []
        yield from (_build_change(SettingOwner.SUITE, files[1], one) for one in changed)
        if not changed:
            unnamed = _build_unnamed_change(SettingOwner.SUITE, files[1], str(baseline.agent), str(current.agent))
            yield replace(unnamed, kind=SetupChangeKind.AGENT)

    def _compare_models(self, baseline: CaseFingerprints, current: CaseFingerprints) -> Iterator[SetupChange]:
        """Compare the settings of LLM judges and simulated users; another model is a change of the case."""
        yield from self._compare_model(
            SettingOwner.JUDGE, (baseline.judge, current.judge), (baseline.judge_setup, current.judge_setup)
        )
        yield from self._compare_model(
            SettingOwner.USER, (baseline.user, current.user), (baseline.user_setup, current.user_setup)
        )

    def _compare_model(
        self, whose: SettingOwner, names: tuple[str | None, str | None], setups: tuple[str | None, str | None]
    ) -> Iterator[SetupChange]:
        if None in setups or setups[0] == setups[1]:
            return
        old, new = self._old.find_models(whose, names[0]), self._new.find_models(whose, names[1])
        changed = [
            _build_change(whose, name, one._replace(role=None))
            for name in sorted(old.keys() & new.keys())
            for one in compare_settings(old[name].setup, new[name].setup)
        ]
        yield from changed
        if not changed and names[0] == names[1]:
            yield _build_unnamed_change(whose, ", ".join(sorted(new)), *setups)

    @staticmethod
    def _compare_cases(baseline: CaseFingerprints, current: CaseFingerprints) -> Iterator[SetupChange]:
        if baseline.timeout_ms != current.timeout_ms:
            limits = (None if one.timeout_ms is None else str(one.timeout_ms) for one in (baseline, current))
            yield _build_difference(SetupChangeKind.SETUP, SettingOwner.CASE, "", "timeout", *limits)


class _RunSetup:
    def __init__(self, run: RunResult) -> None:
        self._main = run.target.name
        self._targets: dict[str, list[TargetIdentity]] = defaultdict(list)
        for one in run.targets or (run.target,):
            self._targets[one.name].append(one)
        setup = run.setup or EvaluationSetup()
        self._models = {SettingOwner.JUDGE: setup.judges, SettingOwner.USER: setup.users}

    def get_target_name(self, case: CaseResult) -> str:
        return case.target or self._main

    def find_target(self, name: str, fingerprint: str | None) -> TargetIdentity | None:
        """Find the target with this name and fingerprint, else with this name; None if there is none."""
        targets = self._targets.get(name, ())
        return next((one for one in targets if one.fingerprint == fingerprint), targets[0] if targets else None)

    def find_models(self, role: SettingOwner, who: str | None) -> Mapping[str, TargetIdentity]:
        return {one.name: one for one in self._models[role] if who and one.identity in who}


class ProgramComparison:
    """Comparison of what programs that grade or prepare a case can load in a baseline and a run, case by case."""

    def __init__(self, baseline: RunResult, current: RunResult) -> None:
        old, new = baseline.setup or EvaluationSetup(), current.setup or EvaluationSetup()
        self._old, self._new = old.programs or ComparedPrograms(), new.programs or ComparedPrograms()
        # cases are compared one by one, so an eval file next to a grader is none of its files; but a file that only
        # now became one was a file of the grader
        new_evals = {suite.eval_file for suite in current.suites} - {file.path for file in self._old.files}
        self._evals = frozenset({suite.eval_file for suite in baseline.suites} | new_evals)
        self._cache: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}
        one, other = old.snapshot_program, new.snapshot_program
        self.snapshot_files = self._compare((one,), (other,)) if one and other else ()

    def find_changed_files(self, kind: SetupChangeKind, baseline: CaseResult, current: CaseResult) -> tuple[str, ...]:
        """Find the changed files of the programs of a case that a difference of this kind is about, sorted."""
        if kind is SetupChangeKind.SNAPSHOT_SOURCE:
            return self.snapshot_files
        old, new = baseline.fingerprints or CaseFingerprints(), current.fingerprints or CaseFingerprints()
        if kind is SetupChangeKind.PREPARATION:
            return self._compare(old.preparing_programs, new.preparing_programs)
        return self._compare(old.programs, new.programs)

    def _compare(self, baseline: tuple[str, ...], current: tuple[str, ...]) -> tuple[str, ...]:
        if not (baseline and current):
            return ()
        if (baseline, current) not in self._cache:
            old = self._old.get_files(baseline, self._evals)
            new = self._new.get_files(current, self._evals)
            changed = (path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
            self._cache[baseline, current] = tuple(sorted(changed))
        return self._cache[baseline, current]


def _build_change(whose: SettingOwner, subject: str, one: SettingChange) -> SetupChange:
    kind = SetupChangeKind.SETUP if one.role is None else SetupChangeKind.AGENT
    return _build_difference(kind, whose, subject, one.name, one.baseline, one.current)


def _build_unnamed_change(whose: SettingOwner, subject: str, baseline: str | None, current: str | None) -> SetupChange:
    sides = f"#{baseline}", f"#{current}"
    return _build_difference(SetupChangeKind.SETUP, whose, subject, UNNAMED_SETTINGS, *sides)


def _build_difference(
    kind: SetupChangeKind, whose: SettingOwner, subject: str, name: str, baseline: str | None, current: str | None
) -> SetupChange:
    return SetupChange(kind=kind, owner=whose, subject=subject, setting=name, baseline=baseline, current=current)
