"""The records of all cases, out of the recent runs of the default branch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from runner.gate.acceptable import held_to
from runner.gate.baseline import Baseline
from runner.gate.flakiness import Seen, record_of
from runner.gate.level import runs_of_this_level
from runner.model.case import CaseKey
from runner.model.grounds import NO_RUNS, CaseRecord, Counts
from runner.model.result import CaseResult, RunResult, Status


def records(baseline: Baseline, current: RunResult) -> Mapping[CaseKey, CaseRecord]:
    """The record of every case of this run that the history knows, by eval file and id.

    The history is the baseline and the newest complete runs before it, red ones too: only the green ones would make
    every flake look like a decline. Left out are runs after the baseline, whose changes are not in what is compared;
    runs of another target, which is another agent; runs of chosen cases, which were chosen for a reason; and cases
    that were asked with another fingerprint.
    """
    questions = {key: case.fingerprint for key, case in current.cases()}
    runs = [(run.run_id, _seen_in(run, questions)) for run in _history(baseline)]
    level = runs_of_this_level([{key: seen.first for key, seen in found.items()} for _, found in runs])
    return {key: record for key in questions if (record := record_of(_seen(key, runs[:level]))).counts.runs}


def held_baseline(baseline: Baseline, pass_score: float) -> Baseline:
    """The baseline and its history as a gate with this pass score counts them."""
    history = tuple(held_to(run, pass_score) for run in baseline.history)
    return replace(baseline, result=held_to(baseline.result, pass_score), history=history)


def _history(baseline: Baseline) -> Sequence[RunResult]:
    """The baseline, then what was before it, newest first, each run once."""
    first = baseline.result
    older = {
        run.run_id: run for run in baseline.history if run.run_id != first.run_id and run.timestamp <= first.timestamp
    }
    fit = [run for run in older.values() if run.complete and not run.partial and _target(run) == _target(first)]
    return [first, *sorted(fit, key=lambda run: run.timestamp, reverse=True)]


def _target(run: RunResult) -> tuple[str, str, str | None]:
    return run.target.name, run.target.provider, run.target.model


def _seen_in(run: RunResult, questions: Mapping[CaseKey, str | None]) -> dict[CaseKey, Seen]:
    """What this run says about the cases with the same question."""
    found = {}
    for suite in run.suites:
        for case in suite.cases:
            key = CaseKey(suite.eval_file, case.id)
            if key in questions and _same(case.fingerprint, questions[key]):
                first, again = executions(case)
                if first.runs:
                    found[key] = Seen(run.run_id, first, again)
    return found


def executions(case: CaseResult) -> tuple[Counts, Counts]:
    """The judged executions of a case in one run: the first one (or the trials), and the re-runs."""
    if not case.trials:
        return _counts([case.status]), NO_RUNS
    statuses = [trial.status for trial in case.trials]
    first = max(len(statuses) - case.reruns, 0)
    return _counts(statuses[:first]), _counts(statuses[first:])


def _counts(statuses: Iterable[Status]) -> Counts:
    judged = [status is Status.PASSED for status in statuses if status.judged]
    return Counts(passes=sum(judged), failures=len(judged) - sum(judged))


def _same(then: str | None, now: str | None) -> bool:
    """Runs of other programs have no fingerprints; their cases go by id, as in the comparison."""
    return not then or not now or then == now


def _seen(key: CaseKey, runs: Iterable[tuple[str, Mapping[CaseKey, Seen]]]) -> list[Seen]:
    return [found[key] for _, found in runs if key in found]
