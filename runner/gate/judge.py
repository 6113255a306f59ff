"""The end of a run: compared with its baseline, and judged."""

from __future__ import annotations

from dataclasses import replace

from runner.gate.acceptable import held_to
from runner.gate.baseline import Baseline, NoBaseline
from runner.gate.compare import compare, with_contract_fields
from runner.gate.policy import Policy, decide
from runner.model.result import RunResult


def judge(
    run: RunResult, baseline: Baseline | NoBaseline, policy: Policy, *, everything_selected: bool = True
) -> RunResult:
    """The run with comparison and verdict filled in; both are made of the two sides held to the policy's pass score."""
    held = held_to(run, policy.pass_score)
    if isinstance(baseline, NoBaseline):
        return run.model_copy(update={"verdict": decide(held, None, policy, baseline)})
    comparison = compare(
        _held(baseline, policy.pass_score),
        held,
        everything_selected=everything_selected,
        score_tolerance=policy.score_tolerance,
    )
    return run.model_copy(
        update={
            "suites": with_contract_fields(run, baseline.result),
            "baseline_run_id": baseline.result.run_id,
            "comparison": comparison,
            "verdict": decide(held, comparison, policy),
        }
    )


def _held(baseline: Baseline, pass_score: float) -> Baseline:
    history = tuple(held_to(run, pass_score) for run in baseline.history)
    return replace(baseline, result=held_to(baseline.result, pass_score), history=history)
