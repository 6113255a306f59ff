"""Converts a single EvalSuiteResult of the tool-forge contract into a run of one suite."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

from eval_gate.model.result import RunResult, SuiteResult, ToolIdentity
from eval_gate.model.run_totals import summarize_cases
from eval_gate.model.setup import TargetIdentity
from eval_gate.struct import replace

CONTRACT_TOOL: Final = "tool-forge contract"
"""Tool name of such a run, because the contract does not name its tool."""


def convert_suite(suite: SuiteResult) -> RunResult:
    """Convert one suite's result to a run result without fingerprints: its cases are compared by ids alone."""
    told = suite.summary
    summary = replace(
        summarize_cases(suite.cases),
        skipped_assertions=told.skipped_assertions,
        total_duration_ms=told.total_duration_ms,
        estimated_cost_usd=told.estimated_cost_usd,
    )
    name = suite.eval_file or f"{suite.tool_name}.{suite.tier}.json"
    endpoint = suite.agent_endpoint or "unknown"
    return RunResult(
        run_id=suite.run_id,
        timestamp=suite.timestamp,
        complete=True,
        tool=ToolIdentity(name=CONTRACT_TOOL, version="unknown"),
        target=TargetIdentity(name=PurePosixPath(endpoint).name or endpoint, provider="unknown", identity=endpoint),
        suites=(replace(suite, eval_file=name),),
        summary=summary,
    )
