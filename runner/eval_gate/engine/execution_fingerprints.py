"""Fingerprints of executions: `--resume` reuses only executions made with the same set-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import structs

from eval_gate.engine.run_plan import RunPlan
from eval_gate.model.base import JsonValue, as_fields
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import CaseFingerprints
from eval_gate.results.run_setup import RunSetup
from eval_gate.targets.setup import compute_setup_fingerprint
from eval_gate.text.escape import format_count

MAX_NAMED_SETTINGS: Final = 5
"""Settings that one sentence names."""


def describe_discarded_executions(executions: int, before: RunSetup | None, current: RunSetup) -> str:
    """Describe the finished executions that a resumed run discards, and the setup changes that cause it."""
    named = list(before.iter_differences(current)) if before else []
    if before and before.commit != current.commit:
        named.insert(0, f"commit {(before.commit or 'unknown')[:7]} → {(current.commit or 'unknown')[:7]}")
    rest = len(named) - MAX_NAMED_SETTINGS
    what = "; ".join([*named[:MAX_NAMED_SETTINGS], *([f"and {rest} more"] if rest > 0 else [])])
    since = what or "cases, graders, the agent, or their files"
    return f"repeating {format_count(executions, 'finished execution')}, because the setup changed: {since}"


class ExecutionFingerprints:
    """Fingerprints of a case's setup: prompt, evaluators, target, settings, commit, agent files.

    They include prompt, expectation, graders, judges and target of the case, the agent of its suite, the settings of
    the run, the commit, and the files that the agent's command names. Values of a live snapshot are not included,
    because they differ in every run.
    """

    def __init__(
        self,
        measuring: EvaluationSetup | None,
        yardsticks: Mapping[CaseKey, CaseFingerprints],
        commit: str | None = None,
        program_of: Callable[[EvalCase], JsonValue] = lambda _: None,
    ) -> None:
        """`program_of` says what stands for the files of the program that a case asks; None where it is none."""
        how = measuring or EvaluationSetup()
        settings: list[JsonValue] = [as_fields(one) for one in how.settings]
        self._run = compute_setup_fingerprint([how.snapshot, how.snapshot_program, commit, *settings])
        self._left_out = set() if how.snapshot_is_file else {"snapshot"}
        self._yardsticks = yardsticks
        self._program_of = program_of

    @classmethod
    def from_plan(cls, plan: RunPlan) -> ExecutionFingerprints:
        """Those of the cases of this plan."""
        targets = plan.without_cases()
        programs = plan.agent_programs
        commit = plan.git.sha if plan.git else None
        return cls(
            plan.measurement, plan.setup_fingerprints, commit, lambda case: programs.get(id(targets.get_target(case)))
        )

    def compute(self, case: EvalCase) -> str:
        """Compute the fingerprint of an execution of this case, as 16 hexadecimal digits."""
        yardstick = self._yardsticks.get(case.key)
        parts = self._select_parts(yardstick) if yardstick else None
        return compute_setup_fingerprint([self._run, case.fingerprint, parts, self._program_of(case)])

    def _select_parts(self, fingerprints: CaseFingerprints) -> dict[str, JsonValue]:
        known = structs.asdict(fingerprints)
        return {name: value for name, value in known.items() if value is not None and name not in self._left_out}
