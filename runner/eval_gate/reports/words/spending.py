"""What a run took, and how sure its pass rate is: money, time and intervals in half sentences."""

from __future__ import annotations

from eval_gate.model.comparison import BaselineFacts
from eval_gate.model.result import CaseResult, RunResult, Summary
from eval_gate.model.usage import total
from eval_gate.reports.facts import paired_interval, pairs, rates_of, wilson
from eval_gate.reports.words.numbers import count, money, percent, points, seconds, signed


def spending_words(summary: Summary, baseline: BaselineFacts | None) -> str:
    """`$0.84 (+3 %) · 214 s of answers (−5 %)`; changes only where both runs have equally many cases."""
    same = baseline is not None and baseline.total_cases == summary.total_cases
    then_cost = baseline.estimated_cost_usd if same and baseline else None
    then_time = baseline.total_duration_ms if same and baseline else None
    parts = []
    if summary.estimated_cost_usd is not None:
        parts.append(f"{money(summary.estimated_cost_usd)}{_change(then_cost, summary.estimated_cost_usd)}")
    if summary.judge_cost_usd is not None:
        parts.append(f"{money(summary.judge_cost_usd)} for judges")
    if summary.replayed:
        parts.append(f"{summary.replayed} replayed")
    parts.append(f"{seconds(summary.total_duration_ms)} of answers{_change(then_time, summary.total_duration_ms)}")
    if summary.wall_ms is not None:
        parts.append(f"{seconds(summary.wall_ms)} by the clock")
    if summary.input_tokens is not None or summary.output_tokens is not None:
        parts.append(f"{summary.input_tokens or 0:,} tokens in, {summary.output_tokens or 0:,} out")
    if summary.skipped_assertions:
        parts.append(count(summary.skipped_assertions, "skipped assertion"))
    return " · ".join(parts)


def _change(then: float | None, now: float) -> str:
    if not then:
        return ""
    return f" ({signed(round((now - then) / then * 100))} %)"


def rerun_words(run: RunResult) -> str | None:
    """`12 re-runs of 5 cases, 3.4 s, about $0.0200`; None where nothing was run again.

    Only the whole cost of a case is known, so a re-run is taken to cost what an execution of it does on average.
    Executions that a re-run needed before it are counted apart, and are in time and cost.
    """
    again = [case for _, case in run.cases() if 0 < case.reruns <= len(case.trials)]
    new = [case for _, case in run.cases() if 0 < case.new_runs <= len(case.trials)]
    more = f"{count(sum(case.new_runs for case in new), 'more run')} of {count(len(new), 'new case')}" if new else None
    there = control_words(run)
    if not again:
        return "; ".join(filter(None, [more, there])) or None
    number, needed = sum(case.reruns for case in again), [case for _, case in run.cases() if case.preparatory_runs]
    took = sum(trial.duration_ms for case in again for trial in case.trials[-case.reruns :])
    took += sum(max(case.duration_ms - sum(trial.duration_ms for trial in case.trials), 0.0) for case in needed)
    costs = [_cost(case, case.reruns) for case in again] + [_cost(case, case.preparatory_runs) for case in needed]
    words = [f"{count(number, 're-run')} of {count(len(again), 'case')}", seconds(took)]
    if needed:
        before = sum(case.preparatory_runs for case in needed)
        words.insert(1, f"with {count(before, 'execution')} of the cases before them")
    if all(cost is not None for cost in costs):
        words.append(f"about {money(sum(cost or 0.0 for cost in costs))}")
    return "; ".join(filter(None, [", ".join(words), more, there]))


def control_words(run: RunResult) -> str | None:
    """`5 questions to the base branch's agent, 0.9 s, $0.0100`; None where it was not asked."""
    asked = [trial for _, case in run.cases() for trial in case.control]
    if run.control is None or not asked:
        return None
    words = [
        f"{count(len(asked), 'question')} to the base branch's agent",
        seconds(sum(one.duration_ms for one in asked)),
    ]
    if run.control.cost_usd is not None:
        words.append(money(run.control.cost_usd))
    return ", ".join(words)


def _cost(case: CaseResult, number: int) -> float | None:
    """Target and judge together, of so many executions of it; None when the target's cost is unknown."""
    cost = total((case.cost_usd, case.judge_cost_usd)) if case.cost_usd is not None else None
    return cost * number / (len(case.trials) + case.preparatory_runs) if cost is not None else None


def certainty(run: RunResult) -> tuple[str, ...]:
    """How sure the pass rate and its change are, in half sentences. Nothing where only the plain rule was asked for."""
    if run.comparison is None or run.comparison.error_rate is None:
        return ()
    rates = rates_of(run)
    low, high = wilson(rates.passed, rates.judged)
    said = [f"pass rate {percent(rates.now)} of {count(rates.judged, 'case')} (95 % interval {_span(low, high)})"]
    if both := pairs(run):
        worse = sum(then and not here for then, here in both)
        better = sum(here and not then for then, here in both)
        low, high = paired_interval(worse, better, len(both))
        span = f"{points(0.0, low).removesuffix(' pp')} to {points(0.0, high)}"
        change = points(0.0, (better - worse) / len(both))
        moved = f"of {count(len(both), 'case')} in both runs {worse} got worse and {better} better"
        said.append(f"{moved}: {change} (95 % interval {span})")
    return tuple(said)


def _span(low: float, high: float) -> str:
    return f"{low * 100:.1f} to {high * 100:.1f} %"
