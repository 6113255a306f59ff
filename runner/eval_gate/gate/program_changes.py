"""Changed files of the programs that grade or prepare a case. Pure."""

from __future__ import annotations

from typing import Final, TypeAlias

from eval_gate.model.policy import ComparedPrograms, EvaluationSetup
from eval_gate.model.result import CaseFingerprints, CaseResult, RunResult
from eval_gate.model.setup_change import SetupChangeKind

_Sides: TypeAlias = tuple[str | None, str | None]
_UNKNOWN: Final[_Sides] = (None, None)


class ProgramComparison:
    """Comparison of what programs can load in a baseline and a run, case by case.

    A result of an older version does not say it: nothing of it is a change then.
    """

    def __init__(self, baseline: RunResult, current: RunResult) -> None:
        before, after = baseline.setup or EvaluationSetup(), current.setup or EvaluationSetup()
        self._then, self._now = before.programs, after.programs
        self.is_known = self._then is not None and self._now is not None
        """Whether both results say what programs can load."""
        # cases are compared one by one, so an eval file beside a grader is none of its files; but a file that only
        # now became one was a file of the grader
        new = {suite.eval_file for suite in current.suites} - {
            file.path for file in (self._then or ComparedPrograms()).files
        }
        self._evals = frozenset({suite.eval_file for suite in baseline.suites} | new)
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, ...]] = {}
        one, other = before.snapshot_program, after.snapshot_program
        self.snapshot_files = self._compare((one,), (other,)) if one and other else ()
        """Changed files of the snapshot command."""

    def select_prompts(self, baseline: CaseFingerprints, current: CaseFingerprints) -> _Sides:
        """Return the prompts of both sides. An older version has the hooks in it."""
        return (baseline.prompt, current.prompt) if self.is_known or not current.preparation else _UNKNOWN

    def select_graders(self, baseline: CaseFingerprints, current: CaseFingerprints) -> _Sides:
        """Return what stands for the graders of a case on both sides; an older version has programs in another way."""
        if current.programs and not self.is_known:
            return _UNKNOWN
        return _join(baseline.grader, baseline.judge_program), _join(current.grader, current.judge_program)

    def find_changed_files(self, kind: SetupChangeKind, baseline: CaseResult, current: CaseResult) -> tuple[str, ...]:
        """Find the changed files of the programs of a case that a difference of this kind is about, sorted."""
        if kind is SetupChangeKind.SNAPSHOT_SOURCE:
            return self.snapshot_files
        before, after = baseline.fingerprints or CaseFingerprints(), current.fingerprints or CaseFingerprints()
        if kind is SetupChangeKind.PREPARATION:
            return self._compare(before.preparing_programs, after.preparing_programs)
        return self._compare(before.programs, after.programs)

    def _compare(self, baseline: tuple[str, ...], current: tuple[str, ...]) -> tuple[str, ...]:
        if self._then is None or self._now is None or not (baseline and current):
            return ()
        if (baseline, current) not in self._known:
            before = self._then.get_files(baseline, self._evals)
            after = self._now.get_files(current, self._evals)
            changed = (path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
            self._known[baseline, current] = tuple(sorted(changed))
        return self._known[baseline, current]


def _join(*parts: str | None) -> str | None:
    return " ".join(part for part in parts if part) or None
