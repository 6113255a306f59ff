"""`eval-gate drift` at work: the record is found and looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from eval_gate.analysis.drift.cases import CaseSince
from eval_gate.analysis.drift.drift import FALSE_ALARM_RUNS, Drift, ModelChange, Worse, drift_of
from eval_gate.cli.records.stored_runs import part_of_settings
from eval_gate.errors import ExitCode, GateError
from eval_gate.model.result import RunResult
from eval_gate.results.baseline import NOT_ASKED_FOR, Baseline, NoBaseline
from eval_gate.results.ledger import EMPTY, Ledger
from eval_gate.results.names import RUN_NAME
from eval_gate.results.read import find_baseline, runs_in
from eval_gate.session.run_ledger import ledger_after


def drift_up_to(reference: str, flags: Mapping[str, JsonValue]) -> Drift:
    """What became worse up to this run. Raises GateError where there is no such run."""
    config = part_of_settings(("outputDir", "history", "passScore"), flags)
    found = find_baseline(reference, Path(config.output_dir), config.history)
    if isinstance(found, NoBaseline):
        raise GateError(found.code, found.reason, "name a run, or make one: `eval-gate run`")
    folder = Path(reference)
    among = _over(runs_in(folder)) if folder.is_dir() and not (folder / RUN_NAME).is_file() else found.ledger
    known = max(found.ledger, among, key=lambda ledger: len(ledger.levels))
    return drift_of(known, config.policy.pass_score)


def _over(runs: Sequence[RunResult]) -> Ledger:
    """The ledger that these runs would have left, newest first, had each known of the one before it."""
    ledger, before = EMPTY, None
    for run in reversed(runs):
        if run.complete and run.eval_paths is not None and run.shard is None:
            ledger = ledger_after(run, Baseline(before, "", ledger=ledger) if before else NOT_ASKED_FOR)
            before = run
    return ledger


def exit_code_of(drift: Drift) -> ExitCode:
    """Not knowing is no all-clear."""
    if drift.anything_worse:
        return ExitCode.FAILED
    return ExitCode.PASSED if drift.could_find else ExitCode.INCOMPLETE


def as_data(drift: Drift) -> dict[str, JsonValue]:
    """The same for programs. Levels are in the ledger's own measures."""
    return {
        "runs": drift.runs,
        "known": drift.could_find,
        "falseAlarmRuns": FALSE_ALARM_RUNS,
        "lookedAt": [one.value for one in drift.looked_at],
        "worse": [_worse(one) for one in drift.worse],
        "broken": [_case(one) for one in drift.broken],
        "models": [_model(one) for one in drift.models],
    }


def _worse(one: Worse) -> JsonValue:
    return {
        "measured": one.measured.value,
        "then": one.then,
        "now": one.now,
        "runs": one.runs,
        "goodSha": one.before.sha,
        "badSha": one.since.sha,
        "since": one.since.timestamp,
        "safelyGoodSha": one.safely_before.sha,
        "safelyBadSha": one.at_latest.sha,
        "sameCommit": one.same_commit,
        "model": _model(one.model) if one.model else None,
        "cases": [_case(case) for case in one.cases],
    }


def _model(one: ModelChange) -> JsonValue:
    return {
        "before": list(one.before.models),
        "since": list(one.since.models),
        "runs": one.runs,
        "goodSha": one.before.sha,
        "badSha": one.since.sha,
        "timestamp": one.since.timestamp,
        "sameCommit": one.same_commit,
    }


def _case(one: CaseSince) -> JsonValue:
    return {
        "suite": one.key.suite,
        "caseId": one.key.case_id,
        "goodSha": one.good.sha,
        "badSha": one.bad.sha,
        "before": {"passes": one.before.passes, "failures": one.before.failures},
        "since": {"passes": one.since.passes, "failures": one.since.failures},
    }
