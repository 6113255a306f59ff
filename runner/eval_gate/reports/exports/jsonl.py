"""The run as lines of our own format: one JSON object an execution, which `eval-gate judge` reads back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from eval_gate.model.execution import CaseDetails, EvaluatorResult, Status, Trial
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.reports.context import ReportContext


def render(run: RunResult, _context: ReportContext) -> str:
    """Every execution of every case, in file order, each ended by a line break. What is not known is left out."""
    lines = (line for suite in run.suites for case in suite.cases for line in _lines(suite, case))
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


def _lines(suite: SuiteResult, case: CaseResult) -> Iterator[dict[str, Any]]:
    trials = case.executions()
    several = len(trials) > 1
    for number, trial in enumerate(trials):
        details = trial.details if several and not trial.decisive else case.details
        results = trial.evaluator_results if several and not trial.decisive else case.evaluator_results
        told = {
            "suite": suite.eval_file,
            "id": case.id,
            **_ending(trial, case),
            "score": trial.score if trial.status.judged else None,
            "input": case.asked.question if case.asked else None,
            "expected": list(case.asked.expectation) if case.asked else None,
            **_answer(details),
            "duration_ms": trial.duration_ms,
            "cost_usd": None if several else case.cost_usd,
            "input_tokens": case.usage.input_tokens if case.usage and not several else None,
            "output_tokens": case.usage.output_tokens if case.usage and not several else None,
            "checks": [_check(result) for result in results] or None,
            "trial": number if several else None,
            "rerun": True if number >= len(trials) - case.reruns else None,
            "file": case.location.file if case.location else None,
            "line": case.location.line if case.location else None,
            "tags": list(case.tags) or None,
            "description": case.description or None,
            "target": case.target,
        }
        yield {name: value for name, value in told.items() if value is not None}


def _ending(trial: Trial, case: CaseResult) -> dict[str, Any]:
    """How it ended. What was not run is an error here: left out it would look as if it had never been there."""
    error = trial.error or (case.error if not trial.status.judged else None)
    if trial.status is Status.NOT_RUN:
        return {"status": "error", "error": f"not run: {error or 'the run ended before'}", "blame": "ours"}
    blame = trial.blame.value if trial.blame else None
    return {"status": trial.status.value, "error": error, "blame": blame}


def _answer(details: CaseDetails | None) -> dict[str, Any]:
    if details is None:
        return {}
    calls = [
        {"name": call.name, "params": call.arguments, "output": call.result, "success": call.success}
        for call in details.tool_calls
    ]
    shown = [{name: value for name, value in call.items() if value is not None} for call in calls]
    return {"output": details.response, "tool_calls": shown or None}


def _check(result: EvaluatorResult) -> dict[str, Any]:
    passed = result.score >= 1.0 and not result.vetoed
    reason = result.reasoning or "; ".join(result.misses) or None
    told = {"name": result.name, "score": result.score, "passed": passed, "reason": reason}
    return {name: value for name, value in told.items() if value is not None}
