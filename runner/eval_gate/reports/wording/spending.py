"""Wording for cost, time and re-runs of a run, and for the confidence intervals of its pass rate."""

from __future__ import annotations

from eval_gate.model.comparison import BaselineFacts
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.result import CaseResult, RunResult, Summary
from eval_gate.reports.run_statistics import (
    compute_paired_interval,
    compute_pass_rates,
    compute_wilson_interval,
    list_executed_cases,
    pair_outcomes,
)
from eval_gate.reports.wording.numbers import format_money, format_percent, format_points, format_seconds, format_signed
from eval_gate.text.escape import format_count


def describe_spending(summary: Summary, baseline: BaselineFacts | None, *, has_users: bool = False) -> str:
    """`cost $0.84 (+3 %) · agent time 214 s (−5 %) · wall time 30 s`; changes only for as many cases, none replayed."""
    same = baseline is not None and baseline.total_cases == summary.total_cases and not summary.replayed
    then_cost = baseline.estimated_cost_usd if same and baseline else None
    then_time = baseline.total_duration_ms if same and baseline else None
    parts = []
    if summary.estimated_cost_usd is not None:
        parts.append(
            f"cost {format_money(summary.estimated_cost_usd)}{_format_change(then_cost, summary.estimated_cost_usd)}"
        )
    if summary.judge_cost_usd is not None:
        parts.append(f"LLM judges{' and simulated users' if has_users else ''} {format_money(summary.judge_cost_usd)}")
    if summary.replayed:
        parts.append(f"{summary.replayed} replayed")
    parts.append(
        f"agent time {format_seconds(summary.total_duration_ms)}{_format_change(then_time, summary.total_duration_ms)}"
    )
    if summary.wall_ms is not None:
        parts.append(f"wall time {format_seconds(summary.wall_ms)}")
    if summary.input_tokens is not None or summary.output_tokens is not None:
        parts.append(f"{summary.input_tokens or 0:,} tokens in, {summary.output_tokens or 0:,} out")
    if summary.skipped_assertions:
        parts.append(format_count(summary.skipped_assertions, "skipped assertion"))
    return " · ".join(parts)


def _format_change(baseline: float | None, current: float) -> str:
    if not baseline:
        return ""
    return f" ({format_signed(round((current - baseline) / baseline * 100))} %)"


def describe_reruns(run: RunResult) -> str | None:
    """`12 re-runs of 5 cases, 3.4 s, about $0.0200`; None if nothing was re-run.

    Only the whole cost of a case is known, so a re-run counts with the average cost of an execution of its case.
    Executions that a re-run needs before it are counted separately, and are in time and cost.
    """
    executed = list_executed_cases(run)
    rerun_cases = [case for case in executed if 0 < case.reruns <= len(case.trials)]
    new = [case for case in executed if 0 < case.new_case_executions <= len(case.trials)]
    executions = sum(case.new_case_executions for case in new)
    more = f"{format_count(executions, 'more run')} of {format_count(len(new), 'new case')}" if new else None
    base_agent = describe_base_agent_runs(run)
    if not rerun_cases:
        return "; ".join(filter(None, [more, base_agent])) or None
    needed = [case for case in executed if case.preparatory_executions]
    took = sum(trial.duration_ms for case in rerun_cases for trial in case.trials[-case.reruns :])
    took += sum(max(case.duration_ms - sum(trial.duration_ms for trial in case.trials), 0.0) for case in needed)
    costs = [_estimate_cost(case, case.reruns) for case in rerun_cases] + [
        _estimate_cost(case, case.preparatory_executions) for case in needed
    ]
    words = [count_reruns(run) or "", format_seconds(took)]
    if needed:
        preparatory = sum(case.preparatory_executions for case in needed)
        words.insert(1, f"with {format_count(preparatory, 'execution')} of the cases they depend on")
    if all(cost is not None for cost in costs):
        words.append(f"about {format_money(sum(cost or 0.0 for cost in costs))}")
    return "; ".join(filter(None, [", ".join(words), more, base_agent]))


def describe_warm_up(run: RunResult) -> str | None:
    """`9 warm-up rounds: the history has 10 runs now; 540 executions, $1.20`; None if the run made none."""
    warm_up = run.warm_up
    if warm_up is None:
        return None
    rounds = format_count(warm_up.rounds, "warm-up round") if warm_up.rounds else "no warm-up round"
    words = [f"{rounds}: the history has {format_count(warm_up.history_runs, 'run')} now"]
    if warm_up.rounds:
        cost = "" if warm_up.cost_usd is None else f", {format_money(warm_up.cost_usd)}"
        words.append(f"{format_count(warm_up.executions, 'execution')}{cost}")
    return "; ".join([*words, *([warm_up.problem] if warm_up.problem else [])])


def count_reruns(run: RunResult) -> str | None:
    """`16 re-runs of 6 cases`; None if nothing was re-run."""
    cases = [case for case in list_executed_cases(run) if 0 < case.reruns <= len(case.trials)]
    number = sum(case.reruns for case in cases)
    return f"{format_count(number, 're-run')} of {format_count(len(cases), 'case')}" if number else None


def describe_base_agent_runs(run: RunResult) -> str | None:
    """`5 executions of the base agent, 0.9 s, $0.0100`; None if it did not run."""
    trials = [trial for case in list_executed_cases(run) for trial in case.base_agent_trials]
    if run.base_agent is None or not trials:
        return None
    words = [
        f"{format_count(len(trials), 'execution')} of the base agent",
        format_seconds(sum(one.duration_ms for one in trials)),
    ]
    if run.base_agent.cost_usd is not None:
        words.append(format_money(run.base_agent.cost_usd))
    return ", ".join(words)


def _estimate_cost(case: CaseResult, number: int) -> float | None:
    """Estimate the cost of target and judges for a number of executions; None if the target's cost is unknown."""
    one = measure_execution(case)
    return None if one.cost_usd is None else (one.cost_usd + (one.judge_cost_usd or 0.0)) * number


def describe_certainty(run: RunResult) -> tuple[str, ...]:
    """Describe the intervals of the pass rate and its change as phrases; empty if only the plain rule applies."""
    if run.comparison is None or run.comparison.false_alarm_rate is None:
        return ()
    rates = compute_pass_rates(run)
    low, high = compute_wilson_interval(rates.passed, rates.judged)
    rate = f"{format_percent(rates.current)} of {format_count(rates.judged, 'case')} with a score"
    is_known = rates.judged * 2 >= run.summary.ran  # of fewer cases, the rate would not describe the run
    phrases = [f"pass rate {rate} (95 % interval {low * 100:.1f} to {high * 100:.1f} %)"] if is_known else []
    if both := pair_outcomes(run):
        worse = sum(baseline and not current for baseline, current in both)
        better = sum(current and not baseline for baseline, current in both)
        low, high = compute_paired_interval(worse, better, len(both))
        span = f"{format_points(0.0, low).removesuffix(' pp')} to {format_points(0.0, high)}"
        change = format_points(0.0, (better - worse) / len(both))
        scored = f"{format_count(len(both), 'case')} with a score in both runs"
        phrases.append(f"{scored}: {worse} got worse, {better} got better, {change} (95 % interval {span})")
    return tuple(phrases)
