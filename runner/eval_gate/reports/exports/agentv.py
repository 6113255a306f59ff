"""Export as AgentV records: JSON Lines, one line per case, with the specification's snake_case names.

The status is the specification's: `pass` at 1.0 only, whatever the pass score of the gate is. Each case without a score
is an `error` with its reason, also a skipped one, so that no case is missing.
"""

from __future__ import annotations

import json
from typing import Any, Final

from msgspec import structs

from eval_gate.gate.failure_causes import list_evaluators
from eval_gate.model.base import as_json
from eval_gate.model.execution import EvaluatorResult, Status
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.reports.context import ReportContext

STATUSES: Final = {Status.PASSED: "pass", Status.FAILED: "fail"}
"""Status of a case with a score; every other case is an `error`."""


def render(run: RunResult, _context: ReportContext) -> str:
    """Render the AgentV records in file order, one line each.

    The output is ASCII only, so that no reader finds line ends within a record.
    """
    records = (_build_record(run, suite, case) for suite in run.suites for case in suite.cases)
    return "".join(_encode_record(record) + "\n" for record in records)


def _encode_record(record: dict[str, Any]) -> str:
    try:
        return json.dumps(record, allow_nan=False)
    except ValueError:  # a judge prompt can contain any value, and JSON has no NaN
        return json.dumps(json.loads(json.dumps(record), parse_constant=lambda _: None))


def _build_record(run: RunResult, suite: SuiteResult, case: CaseResult) -> dict[str, Any]:
    """Build a record with every field; null if there is no value."""
    judged, results, usage = case.status.is_scored, list_evaluators(case), measure_execution(case)
    record = {
        "timestamp": run.timestamp,
        "eval_id": case.id,
        "dataset": suite.tool_name,
        "conversation_id": case.conversation_id,
        "score": case.score if judged else 0.0,
        "status": STATUSES.get(case.status, "error"),
        "hits": [hit for result in results for hit in result.hits],
        "misses": _collect_misses(case),
        # an error has no response; null is a response that was not stored
        "candidate_answer": case.details.response if judged else "",
        "target": case.target or run.target.name,
        "reasoning": " | ".join(f"{one.name}: {one.reasoning}" for one in results if one.reasoning) or None,
        # the first one to an LLM judge; the others are stored with their results
        "evaluator_provider_request": next(filter(None, (one.evaluator_provider_request for one in results)), None),
        "evaluator_results": [_build_evaluator(result) for result in case.evaluator_results],
        # the specification writes its keys in camelCase
        "trace_summary": case.trace_summary and as_json(case.trace_summary),
        "error": None if judged else _format_error(run, case),
        "duration_ms": usage.duration_ms,
        "usage": usage.usage and structs.asdict(usage.usage),
        "cost_usd": usage.cost_usd,
        "attempts": case.attempts,
    }
    return record | ({"candidate_answer_truncated": True} if case.details.response_truncated else {})


def _collect_misses(case: CaseResult) -> list[str]:
    """Collect what the evaluators missed, or the error of a failure that none of them saw, such as a timeout."""
    misses = [miss for result in list_evaluators(case) for miss in result.misses]
    unseen = not misses and not (case.graded and case.evaluator_results)
    # empty if an LLM judge named no misses or returned no score (AgentV specification)
    return [case.error] if unseen and case.error and case.status is Status.FAILED else misses


def _build_evaluator(result: EvaluatorResult) -> dict[str, Any]:
    return {
        # as AgentV names the turns of a conversation
        "name": result.name.replace("turn ", "turn-", 1) if result.type == "turn" else result.name,
        "type": result.type,
        "score": result.score,
        "weight": result.weight,
        "hits": list(result.hits),
        "misses": list(result.misses),
        "reasoning": result.reasoning,
        "evaluator_provider_request": result.evaluator_provider_request,
        "evaluator_results": [_build_evaluator(member) for member in result.evaluator_results],
    }


def _format_error(run: RunResult, case: CaseResult) -> str:
    match case.status:
        case Status.SKIPPED:
            return f"skipped: {case.error or 'no reason given'}"
        case Status.NOT_RUN:
            return f"not run: {run.stop_reason or 'the run ended first'}"
    return case.error or "no reason given"
