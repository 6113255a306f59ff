"""Runs of which some suites are not executed, but have the result of an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.model.reuse import ReusedResult, ReuseSource
from eval_gate.model.run_totals import summarize_cases
from eval_gate.results.history import EMPTY_HISTORY, History
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_suite_result

CARE, PAY = "evals/care.json", "evals/pay.json"


def reuse_suite(earlier: RunResult, file: str, source: ReuseSource = ReuseSource.BASELINE) -> SuiteResult:
    """The result of a suite in an earlier run, which keeps the run that executed it."""
    suite = next(one for one in earlier.suites if one.eval_file == file)
    origin = suite.reused or ReusedResult(
        source=source, run_id=earlier.run_id, timestamp=earlier.timestamp, sha=earlier.sha
    )
    return replace(suite, reused=replace(origin, source=source))


def reuse_suites(
    run: RunResult, earlier: RunResult, files: Collection[str], source: ReuseSource = ReuseSource.BASELINE
) -> RunResult:
    """The run with the result of an earlier run for these suites, which it has too or not."""
    if not files:
        return run
    own = {one.eval_file: one for one in run.suites}
    order = dict.fromkeys([*(one.eval_file for one in earlier.suites), *own])
    suites = [reuse_suite(earlier, file, source) if file in files else own[file] for file in order]
    totals = summarize_cases([case for suite in suites for case in suite.cases], run.summary.wall_ms)
    return replace(run, suites=tuple(suites), summary=totals)


def make_branch_runs(
    steps: Iterable[Sequence[Any]], make_cases: Callable[[str, Any], list[CaseResult]], **fields
) -> list[RunResult]:
    """The runs of a branch, oldest first: how both suites ended, or `=` for the result of the run before, if any."""
    made: list[RunResult] = []
    for number, words in enumerate(steps):
        named = {"run_id": f"r{number}", "timestamp": f"2026-10-01T{number // 60:02}:{number % 60:02}:00Z"}
        files = dict(zip((CARE, PAY), words, strict=True))
        suites = (make_suite_result(make_cases(file, word), eval_file=file) for file, word in files.items())
        run = make_baseline_run(*suites, **named, **fields)
        reused = {file for file, word in files.items() if word == "="}
        made.append(reuse_suites(run, made[-1], reused) if made else run)
    return made


def build_history(runs: Iterable[RunResult]) -> History:
    """The history of a branch with these runs, oldest first."""
    history, last = EMPTY_HISTORY, None
    for run in runs:
        history, last = history.with_run(run, last_run=last), run
    return history
