"""`eval-gate drift` at work: the record is found and looked at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from eval_gate.config.load import find_config, load_config
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.drift.cases import CaseSince
from eval_gate.gate.drift.drift import FALSE_ALARM_RUNS, Drift, Worse, drift_of
from eval_gate.results.baseline import NoBaseline
from eval_gate.results.read import find_baseline


def looked_back(reference: str, flags: Mapping[str, JsonValue]) -> Drift:
    """What became worse up to this run. Raises GateError where there is no such run."""
    config = load_config(flags, os.environ, find_config(Path.cwd()))
    found = find_baseline(reference, Path(config.output_dir), config.history)
    if isinstance(found, NoBaseline):
        raise GateError(found.code, found.reason, "name a run, or make one: `eval-gate run`")
    return drift_of(found.ledger, config.policy.pass_score)


def exit_code_of(found: Drift) -> ExitCode:
    """Not knowing is no all-clear."""
    if found.found:
        return ExitCode.FAILED
    return ExitCode.PASSED if found.known else ExitCode.INCOMPLETE


def as_data(found: Drift) -> dict[str, JsonValue]:
    """The same for programs. Levels are in the ledger's own measures (docs/drift.md)."""
    return {
        "runs": found.runs,
        "known": found.known,
        "falseAlarmRuns": FALSE_ALARM_RUNS,
        "lookedAt": [one.value for one in found.looked_at],
        "worse": [_worse(one) for one in found.worse],
        "broken": [_case(one) for one in found.broken],
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
        "cases": [_case(case) for case in one.cases],
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
