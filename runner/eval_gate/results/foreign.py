"""A single EvalSuiteResult, as any runner of the tool-forge contract writes it, as a run of one suite."""

from __future__ import annotations

from pathlib import PurePosixPath

from eval_gate.model.result import RunResult, Status, SuiteResult, Summary, TargetIdentity, ToolIdentity


def run_of_suite(suite: SuiteResult) -> RunResult:
    """The run. It has no fingerprints, so that its cases are compared by their ids alone."""
    counts = {status: sum(case.status is status for case in suite.cases) for status in Status}
    judged = counts[Status.PASSED] + counts[Status.FAILED]
    summary = Summary(
        total_cases=len(suite.cases),
        passed=counts[Status.PASSED],
        failed=counts[Status.FAILED],
        errored=counts[Status.ERROR],
        skipped=counts[Status.SKIPPED],
        not_run=counts[Status.NOT_RUN],
        skipped_assertions=suite.summary.skipped_assertions,
        total_duration_ms=suite.summary.total_duration_ms,
        estimated_cost_usd=suite.summary.estimated_cost_usd,
        pass_rate=counts[Status.PASSED] / judged if judged else None,
    )
    name = suite.eval_file or f"{suite.tool_name}.{suite.tier}.json"
    endpoint = suite.agent_endpoint or "unknown"
    return RunResult(
        run_id=suite.run_id,
        timestamp=suite.timestamp,
        complete=True,
        tool=ToolIdentity(name="tool-forge contract", version="unknown"),
        target=TargetIdentity(name=PurePosixPath(endpoint).name or endpoint, provider="unknown", identity=endpoint),
        suites=(suite.model_copy(update={"eval_file": name}),),
        summary=summary,
    )
