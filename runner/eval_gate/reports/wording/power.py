"""Wording for detection power: which regressions a run can detect, and which cases it cannot gate."""

from __future__ import annotations

from typing import Final

from eval_gate.gate.power.case_groups import CaseGroups, group_run_cases, scale_history
from eval_gate.gate.power.detection_power import (
    SETTLED_RUNS,
    DetectionPower,
    UngatedCase,
    UngatedReason,
    can_compute_power,
    compute_case_detection,
    compute_detection_power,
)
from eval_gate.gate.power.false_alarms import FalseAlarms, estimate_run_false_alarms
from eval_gate.model.result import RunResult
from eval_gate.text.escape import format_count, to_one_line

MAX_NAMED: Final = 5
"""Maximum names of cases that are too flaky to gate; failing cases have lists of their own."""
MAX_NAME: Final = 100
_ALL: Final = 0.995
_NONE: Final = 0.01
_SHARES: Final = (
    *((1, of) for of in (100, 50, 20, 10, 7, 5, 4, 3, 2)),
    *((2, 3), (3, 4), (4, 5), (9, 10), (19, 20), (49, 50)),
)
"""Simple fractions to which shares are rounded."""


def describe_power(run: RunResult, place: str) -> tuple[str, ...]:
    """Describe what the run can detect, then the cases that it cannot gate.

    `place` is the origin of the history, such as `on main`. Empty without a history. For a short history,
    `describe_first_runs` describes what single cases can show.
    """
    if (cases := _group_cases(run)) is None:
        return ()
    sight = compute_detection_power(cases)
    flaky = [one for one in sight.ungated_cases if one.reason is UngatedReason.FLAKY]
    shared = sum(one.reason is UngatedReason.RUN_SHARE for one in sight.ungated_cases)
    ungated = [f"cannot be gated: {describe_ungated_case(one, place)}" for one in flaky[:MAX_NAMED]]
    if cases.runs >= SETTLED_RUNS:
        phrases = [format_power(sight), *ungated]
    else:
        phrases = [f"the gate {format_loss(sight)} pull requests", *ungated] if sight.is_loss_known else ungated
    if more := len(flaky) - len(ungated):
        phrases.append(f"{format_count(more, 'more case')} cannot be gated for the same reason")
    if shared:
        phrases.append(
            f"{format_count(shared, 'case')} cannot be gated by one run, because its executions belong together: "
            "if one fails every time, run the job again; if it fails again, fix or waive it"
        )
    if failing := len(sight.ungated_cases) - len(flaky) - shared:
        phrases.append(
            f"{format_count(failing, 'case')} cannot show a regression, because they fail or have no score {place}"
        )
    return tuple(phrases)


def describe_first_runs(run: RunResult, place: str) -> str | None:
    """Describe what a gate with a short history finds and misses, and what ten runs change; None with a longer one.

    `With 3 runs of history, the gate finds all cases that start failing every time, but only 1 of 3 …, and 1 of 50 … .
    After 7 more such runs on main, it finds all, 1 of 2 and 1 of 10 of them.` None if no case is comparable.
    """
    cases = _group_cases(run)
    if cases is None or cases.runs >= SETTLED_RUNS or not any(group.is_compared for group in cases.groups):
        return None
    dead, half, fifth = current = tuple(map(format_share, compute_case_detection(cases)))
    detection = (
        f"{dead} cases that start failing every time, but only {half} that start failing half of the time, and {fifth} "
        "that start failing 1 time in 5"
    )
    settled = tuple(map(format_share, compute_case_detection(scale_history(cases, SETTLED_RUNS))))
    missing_runs = SETTLED_RUNS - cases.runs
    more = f"{format_count(missing_runs, 'more such run')} {place}"
    if settled == current:
        change = f"{more} {'does' if missing_runs == 1 else 'do'} not change this"
    else:
        change = f"After {more}, it finds {', '.join(settled[:-1])} and {settled[-1]} of them"
    return f"With {format_run_count(cases.runs)}, the gate finds {detection}. {change}."


def _group_cases(run: RunResult) -> CaseGroups | None:
    """Group the cases of a run; None if what they can show is unknown or takes too long to compute."""
    cases = group_run_cases(run)
    return cases if cases is not None and can_compute_power(cases) else None


def describe_false_alarms(run: RunResult, place: str) -> str | None:
    """Describe how often harmless pull requests would fail; None unless that is more often than promised."""
    alarms = estimate_run_false_alarms(run)
    return format_false_alarms(alarms, place) if alarms else None


def format_false_alarms(alarms: FalseAlarms, place: str) -> str:
    """`With 2 runs on main and about 100 of 500 cases flaky, about 1 in 8 harmless pull requests would fail. …`."""
    cases = f"{alarms.flaky:,} of {alarms.cases:,} cases"
    would = f"about 1 in {max(round(1 / alarms.chance), 2)} harmless pull requests would fail"
    if alarms.more_runs is None:
        change = "More runs do not change this soon: fix or quarantine the flaky cases"
    else:
        more, reduce = format_count(alarms.more_runs, "more run"), "reduces" if alarms.more_runs == 1 else "reduce"
        change = f"{more} {place} {reduce} this to under 1 in {round(1 / alarms.promised_share)}"
    return f"With {format_count(alarms.runs, 'run')} {place} and about {cases} flaky, {would}. {change}."


def format_power(sight: DetectionPower) -> str:
    """`with these 40 cases and 10 runs of history, the gate finds a case that … in … pull requests, …`."""
    evidence = (
        f"with {'this case' if sight.cases == 1 else f'these {sight.cases:,} cases'} and {format_run_count(sight.runs)}"
    )
    dead, half = format_share(sight.chances.dead_case), format_share(sight.chances.half_failing)
    detection = (
        f"the gate finds a case that starts failing every time in {dead} pull requests, "
        f"and one that starts failing half of the time in {half}"
    )
    return f"{evidence}, {detection}{f'; it {format_loss(sight)}' if sight.is_loss_known else ''}"


def format_loss(sight: DetectionPower) -> str:
    """Format the smallest loss that is found: `finds a drop of every case's pass rate by 6 points in 9 of 10`."""
    if sight.smallest_loss is None:
        return "finds no drop of all pass rates together in 9 of 10, however large"
    return f"finds a drop of every case's pass rate by {format_count(sight.smallest_loss, 'point')} in 9 of 10"


def format_run_count(runs: int) -> str:
    """`10 runs of history`."""
    return f"{format_count(runs, 'run')} of history"


def format_share(chance: float) -> str:
    """`1 of 4`, the nearest simple fraction; `all`, or `hardly any`."""
    if chance >= _ALL:
        return "all"
    if chance < _NONE:
        return "hardly any"
    part, of = min(_SHARES, key=lambda share: abs(share[0] / share[1] - chance))
    return f"{part} of {of}"


def describe_ungated_case(one: UngatedCase, place: str) -> str:
    """`refund/x fails 9 of 20 on main: 7 failures in a row would not confirm a regression, 10 would; …`."""
    name, history = to_one_line(one.key.case_id, MAX_NAME), one.history
    match one.reason:
        case UngatedReason.FLAKY | UngatedReason.RUN_SHARE:
            row = "1 failure" if one.executions == 1 else f"{one.executions} failures in a row"
            fails = (
                f"{name} fails {history.failures} of {history.executions} {place}: {row} would not confirm a regression"
            )
            if one.reason is UngatedReason.RUN_SHARE:
                return (
                    f"{fails}, because executions of one run belong together: if it fails every time, run the job "
                    "again; if it fails again, fix or waive it"
                )
            if one.needed_failures is None:
                return f"{fails}; fix it or quarantine it"
            return f"{fails}, {one.needed_failures} would; fix it, quarantine it, or give it more re-runs or trials"
        case UngatedReason.MAIN_BROKE:
            return f"{name} failed in the newest run {place}: its failures do not count until it passes there"
        case UngatedReason.FAILING:
            return f"{name} fails {history.failures} of {history.executions} {place}: fix it there or quarantine it"
        case UngatedReason.NO_HISTORY:
            return f"{name} has no score {place} with its current prompt and checks: its first run there gives it one"
