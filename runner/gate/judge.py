"""The end of a run: compared with its baseline, and judged."""

from __future__ import annotations

from runner.gate.baseline import Baseline, NoBaseline
from runner.gate.compare import compare, with_contract_fields
from runner.gate.policy import Policy, decide
from runner.model.result import RunResult


def judge(
    run: RunResult, baseline: Baseline | NoBaseline, policy: Policy, *, everything_selected: bool = True
) -> RunResult:
    """The run with comparison and verdict filled in."""
    if isinstance(baseline, NoBaseline):
        return run.model_copy(update={"verdict": decide(run, None, policy, baseline)})
    comparison = compare(baseline, run, everything_selected=everything_selected)
    return run.model_copy(
        update={
            "suites": with_contract_fields(run, baseline.result),
            "baseline_run_id": baseline.result.run_id,
            "comparison": comparison,
            "verdict": decide(run, comparison, policy),
        }
    )
