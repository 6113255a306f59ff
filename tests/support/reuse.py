"""Runs of which some suites are not executed, but have the result of an earlier run."""

from __future__ import annotations

from collections.abc import Collection

from eval_gate.model.result import RunResult, SuiteResult
from eval_gate.model.reuse import ReusedResult, ReuseSource
from eval_gate.model.run_totals import summarize_cases
from eval_gate.struct import replace


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
