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

_FAILING_STATUSES: Final = frozenset({Status.FAILED, Status.ERROR})


def find_failing_cases(folder: Path, target: str | None = None) -> frozenset[CaseKey]:
    """Find the cases whose newest result in a folder of runs is bad.

    Bad results are failures, errors, regressions and drops of the score. Only runs of `target` count, or those
    of the newest run's target if `target` has none. Waived failures, also those in quarantine, are left out.
    Raises GateError `run-not-found` and `no-failing-cases`.
    """
    runs = [run for run in read_runs(folder) if run.suites]
    if not runs:
        raise GateError("run-not-found", f"{folder} contains no run yet", "run without --failing first")
    name = target if any(run.target.name == target for run in runs) else runs[0].target.name
    newest: dict[CaseKey, bool] = {}
    for run in (one for one in runs if one.target.name == name):
        for key, bad in _classify_cases(run).items():
            newest.setdefault(key, bad)
        if run.complete and not run.partial and run.shard is None:
            break
    found = frozenset(key for key, bad in newest.items() if bad)
    if not found:
        raise GateError("no-failing-cases", f"no case failed in its last run ({folder})", "run without --failing")
    return found


def _classify_cases(run: RunResult) -> dict[CaseKey, bool]:
    """For each case that was run whether it is one to run again."""
    worse: set[CaseKey] = set()
    if run.comparison is not None:
        worse = {
            one.key
            for one in (*run.comparison.select_changes(CaseClass.REGRESSION), *run.comparison.list_score_drops())
        }
    return {
        key: (case.status in _FAILING_STATUSES or key in worse) and key not in run.waived_keys
        for key, case in apply_recorded_pass_score(run).iter_cases()
        if case.status.is_scored or case.status in _FAILING_STATUSES
    }
