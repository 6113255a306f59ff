"""What re-runs of doubtful cases took."""

from __future__ import annotations

from eval_gate.model.result import CaseResult, RunResult
from eval_gate.reports.words.numbers import count, money, seconds
from eval_gate.results.totals import total


def rerun_words(run: RunResult) -> str | None:
    """`12 re-runs of 5 cases, 3.4 s, about $0.0200`; None where nothing was run again.

    Only the whole cost of a case is known, so a re-run is taken to cost what an execution of it does on average.
    """
    again = [case for suite in run.suites for case in suite.cases if 0 < case.reruns <= len(case.trials)]
    if not again:
        return None
    number = sum(case.reruns for case in again)
    took = sum(trial.duration_ms for case in again for trial in case.trials[-case.reruns :])
    costs = [_cost(case) for case in again]
    words = [f"{count(number, 're-run')} of {count(len(again), 'case')}", seconds(took)]
    if all(cost is not None for cost in costs):
        words.append(f"about {money(sum(cost or 0.0 for cost in costs))}")
    return ", ".join(words)


def _cost(case: CaseResult) -> float | None:
    """Target and judge together; None when the target's cost is unknown."""
    cost = total((case.cost_usd, case.judge_cost_usd)) if case.cost_usd is not None else None
    return cost * case.reruns / len(case.trials) if cost is not None else None
