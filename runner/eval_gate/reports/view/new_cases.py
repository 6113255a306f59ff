"""New and changed cases: the results of their first executions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from eval_gate.gate.evidence.new_case_runs import NEW_CASE_CLASSES, count_outcomes, is_flaky
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.evidence import Counts
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.text.escape import format_count

_KINDS: Final = {CaseClass.ADDED: "new", CaseClass.INCOMPARABLE: "changed"}
FIX_HINT: Final = "flaky: fix it before you merge it"


def is_new_or_changed(change: CaseChange | None) -> bool:
    """Whether no earlier run scored the case with the same prompt and expectation."""
    return change is not None and change.change in NEW_CASE_CLASSES


def is_new_and_flaky(case: CaseResult | None, change: CaseChange | None) -> bool:
    """Whether a new or changed case both passed and failed."""
    return case is not None and is_new_or_changed(change) and is_flaky(case)


def describe_new_case(case: CaseResult | None, change: CaseChange | None) -> str | None:
    """Describe the executions of a new or changed case: `new: passed 2 of 3 here`.

    The text of a flaky case ends with a hint to fix it before the merge. Return None if the case ran only once, or
    is neither new nor changed.
    """
    if case is None or change is None or not is_new_or_changed(change):
        return None
    counts = count_outcomes(case)
    if counts.executions < 2:
        return None
    errors = f" ({format_count(counts.agent_errors, 'agent error')})" if counts.agent_errors else ""
    results = f"failed {counts.failures}" if not counts.passes else f"passed {counts.passes}"
    more = f", {FIX_HINT}" if is_flaky(case) else ""
    return f"{_KINDS[change.change]}: {results} of {counts.executions} here{errors}{more}"


def summarize_new_cases(run: RunResult) -> str | None:
    """`12 new and 2 changed cases ran several times: 11 always passed, 2 are flaky, 1 always failed; 3 more ran once`.

    None if each of them ran only once.
    """
    classes = {
        one.key: one.change for one in (run.comparison.changes if run.comparison else ()) if is_new_or_changed(one)
    }
    all_counts = [(classes[key], count_outcomes(case)) for key, case in run.iter_cases() if key in classes]
    several = [(change, counts) for change, counts in all_counts if counts.executions > 1]
    if not several:
        return None
    ran = " and ".join(
        f"{number} {_KINDS[kind]}" for kind in _KINDS if (number := sum(change is kind for change, _ in several))
    )
    once = sum(counts.executions == 1 for _, counts in all_counts)
    outcomes = _summarize_outcomes(counts for _, counts in several)
    text = f"{ran} {'case' if len(several) == 1 else 'cases'} ran several times: {outcomes}"
    return f"{text}; {once} more ran once" if once else text


def _summarize_outcomes(counts: Iterable[Counts]) -> str:
    cases = list(counts)
    always = sum(not one.failures for one in cases)
    never = sum(not one.passes for one in cases)
    flaky = len(cases) - always - never
    parts = [f"{always} always passed"] if always else []
    parts += [f"{format_count(flaky, 'is', 'are')} flaky"] if flaky else []
    parts += [f"{never} always failed"] if never else []
    return ", ".join(parts)
