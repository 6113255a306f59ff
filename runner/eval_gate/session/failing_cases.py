"""Find the cases that failed when they were last run, for `--failing`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.gate.pass_score import apply_recorded_pass_score
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult
from eval_gate.results.run_reader import read_runs
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_first_few, to_one_line

_FAILING_STATUSES: Final = frozenset({Status.FAILED, Status.ERROR})
_MAX_NAMED: Final = 5
_MAX_ID: Final = 100


class FailingCases(FrozenStruct):
    """Cases whose newest result is bad, apart from those whose failure does not block (waived or quarantined)."""

    keys: frozenset[CaseKey]
    waived: frozenset[CaseKey]

    @property
    def waived_names(self) -> str:
        """The first waived cases by name, and the number of the others."""
        return format_first_few(
            sorted(key.case_id for key in self.waived), _MAX_NAMED, lambda id_: to_one_line(id_, _MAX_ID)
        )


def find_failing_cases(folder: Path, target: str | None = None) -> FailingCases:
    """Find the cases whose newest result in a folder of runs is bad.

    Bad results are failures, errors, regressions and drops of the score. Only runs of `target` count, or those
    of the newest run's target if `target` has none. Waived failures, also those in quarantine, are returned
    separately, because the gate passes with them. Raises GateError `run-not-found` and `no-failing-cases`.
    """
    runs = [run for run in read_runs(folder) if run.suites]
    if not runs:
        raise GateError("run-not-found", f"{folder} contains no run yet", "run without --failing first")
    name = target if any(run.target.name == target for run in runs) else runs[0].target.name
    newest: dict[CaseKey, _CaseOutcome] = {}
    for run in (one for one in runs if one.target.name == name):
        newest = _classify_cases(run) | newest
        if run.complete and not run.partial and run.shard is None:
            break
    bad = {key for key, one in newest.items() if one.is_bad}
    failing = FailingCases(
        frozenset(key for key in bad if not newest[key].is_waived),
        frozenset(key for key in bad if newest[key].is_waived),
    )
    if failing.keys:
        return failing
    if failing.waived:
        message = f"only waived cases failed in their last run ({folder}): {failing.waived_names}"
        raise GateError("no-failing-cases", message, "run them with --case, or run without --failing")
    raise GateError("no-failing-cases", f"no case failed in its last run ({folder})", "run without --failing")


class _CaseOutcome(FrozenStruct):
    is_bad: bool
    is_waived: bool


def _classify_cases(run: RunResult) -> dict[CaseKey, _CaseOutcome]:
    worse: set[CaseKey] = set()
    if run.comparison is not None:
        worse = {
            one.key
            for one in (*run.comparison.select_changes(CaseClass.REGRESSION), *run.comparison.list_score_drops())
        }
    return {
        key: _CaseOutcome(case.status in _FAILING_STATUSES or key in worse, key in run.waived_keys)
        for key, case in apply_recorded_pass_score(run).iter_cases()
        if case.status.is_scored or case.status in _FAILING_STATUSES
    }
