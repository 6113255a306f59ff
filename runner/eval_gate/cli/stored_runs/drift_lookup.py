"""Find the history for `eval-gate drift`, and convert the drift to data and an exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from eval_gate.analysis.drift.branch_drift import FALSE_ALARM_RUNS, Degradation, Drift, ModelChange, find_drift
from eval_gate.analysis.drift.case_drift import CaseDegradation
from eval_gate.cli.stored_runs.run_settings import load_settings_part
from eval_gate.errors import ExitCode, GateError
from eval_gate.model.result import RunResult
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from eval_gate.results.history import EMPTY_HISTORY, History
from eval_gate.results.result_names import RUN_NAME
from eval_gate.results.run_reader import find_baseline, read_runs
from eval_gate.session.history_update import build_next_history


def find_drift_up_to(reference: str, flags: Mapping[str, JsonValue]) -> Drift:
    """Find what became worse up to this run. Raises GateError if there is no such run."""
    config = load_settings_part(("outputDir", "history", "passScore"), flags)
    return find_drift(find_history_up_to(reference, Path(config.output_dir), config.history), config.policy.pass_score)


def find_history_up_to(reference: str, output_dir: Path, history: str | None = None) -> History:
    """Find the history up to a run, or up to the newest of a folder, with the levels of all runs of the folder.

    Raises GateError if there is no such run.
    """
    baseline = find_baseline(reference, output_dir, history)
    if isinstance(baseline, NoBaseline):
        raise GateError(baseline.code, baseline.reason, "name a run, or make one with `eval-gate run`")
    folder, found_history = Path(reference), baseline.history
    if not folder.is_dir() or (folder / RUN_NAME).is_file():
        return found_history
    return found_history.with_levels(max(found_history.levels, _build_history(read_runs(folder)).levels, key=len))


def _build_history(runs: Sequence[RunResult]) -> History:
    """Build the history of these runs, newest first, as if each were the baseline of the next."""
    history, earlier = EMPTY_HISTORY, None
    for run in reversed(runs):
        if run.complete and run.eval_paths is not None and run.shard is None:
            history = build_next_history(run, Baseline(earlier, "", history=history) if earlier else NOT_REQUESTED)
            earlier = run
    return history


def choose_exit_code(drift: Drift) -> ExitCode:
    """Choose the exit code; too few runs are inconclusive."""
    if drift.has_degraded:
        return ExitCode.FAILED
    return ExitCode.PASSED if drift.can_detect else ExitCode.INCOMPLETE


def as_data(drift: Drift) -> dict[str, JsonValue]:
    """Convert the drift to JSON data, with levels in the units of the history."""
    return {
        "runs": drift.runs,
        "canDetect": drift.can_detect,
        "falseAlarmRuns": FALSE_ALARM_RUNS,
        "lookedAt": [one.value for one in drift.examined_levels],
        "worse": [_degradation_as_data(one) for one in drift.degradations],
        "broken": [_case_as_data(one) for one in drift.broken_cases],
        "models": [_model_change_as_data(one) for one in drift.model_changes],
    }


def _degradation_as_data(one: Degradation) -> JsonValue:
    return {
        "metric": one.kind.value,
        "levelBefore": one.level_before,
        "levelNow": one.level_now,
        "runs": one.runs,
        "goodSha": one.last_good.sha,
        "badSha": one.first_bad.sha,
        "since": one.first_bad.timestamp,
        "safelyGoodSha": one.last_surely_good.sha,
        "safelyBadSha": one.first_surely_bad.sha,
        "sameCommit": one.same_commit,
        "model": _model_change_as_data(one.model_change) if one.model_change else None,
        "cases": [_case_as_data(case) for case in one.cases],
    }


def _model_change_as_data(one: ModelChange) -> JsonValue:
    return {
        "before": list(one.old_run.models),
        "since": list(one.new_run.models),
        "runs": one.runs,
        "goodSha": one.old_run.sha,
        "badSha": one.new_run.sha,
        "timestamp": one.new_run.timestamp,
        "sameCommit": one.same_commit,
    }


def _case_as_data(one: CaseDegradation) -> JsonValue:
    return {
        "suite": one.key.suite,
        "caseId": one.key.case_id,
        "goodSha": one.last_good.sha,
        "badSha": one.first_bad.sha,
        "before": {"passes": one.counts_before.passes, "failures": one.counts_before.failures},
        "since": {"passes": one.counts_since.passes, "failures": one.counts_since.failures},
    }
