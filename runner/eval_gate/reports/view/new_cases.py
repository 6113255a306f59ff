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
    """Whether no earlier run judged it by the same question and expectation."""
    return change is not None and change.change in NEW_CASE_CLASSES


def is_new_and_flaky(case: CaseResult | None, change: CaseChange | None) -> bool:
    """Whether a new or changed case was seen both to pass and to fail."""
    return case is not None and is_new_or_changed(change) and is_flaky(case)


def describe_new_case(case: CaseResult | None, change: CaseChange | None) -> str | None:
    """Describe the executions of a new or changed case: `new: passed 2 of 3 here`.

    The text of a flaky case ends with a hint to fix it before the merge. Return None if the case ran only once, or
    is neither new nor changed.
    """
    if case is None or change is None or not is_new_or_changed(change):
        return None
    seen = count_outcomes(case)
    if seen.executions < 2:
        return None
    errors = f" ({format_count(seen.agent_errors, 'agent error')})" if seen.agent_errors else ""
    done = f"failed {seen.failures}" if not seen.passes else f"passed {seen.passes}"
    more = f", {FIX_HINT}" if is_flaky(case) else ""
    return f"{_KINDS[change.change]}: {done} of {seen.executions} here{errors}{more}"


def summarize_new_cases(run: RunResult) -> str | None:
    """`12 new and 2 changed cases ran several times: 11 always passed, 2 are flaky, 1 always failed; 3 more ran once`.

    None where none of them ran more than once: then there is nothing more to say of them than of any other case.
    """
    classes = {
        one.key: one.change for one in (run.comparison.changes if run.comparison else ()) if is_new_or_changed(one)
    }
    found = [(classes[key], count_outcomes(case)) for key, case in run.iter_cases() if key in classes]
    several = [(change, seen) for change, seen in found if seen.executions > 1]
    if not several:
        return None
    ran = " and ".join(
        f"{number} {_KINDS[kind]}" for kind in _KINDS if (number := sum(change is kind for change, _ in several))
    )
    once = sum(seen.executions == 1 for _, seen in found)
    shown = _summarize_outcomes(seen for _, seen in several)
    said = f"{ran} {'case' if len(several) == 1 else 'cases'} ran several times: {shown}"
    return f"{said}; {once} more ran once" if once else said


def _summarize_outcomes(seen: Iterable[Counts]) -> str:
    found = list(seen)
    always = sum(not one.failures for one in found)
    never = sum(not one.passes for one in found)
    flaky = len(found) - always - never
    said = [f"{always} always passed"] if always else []
    said += [f"{format_count(flaky, 'is', 'are')} flaky"] if flaky else []
    said += [f"{never} always failed"] if never else []
    return ", ".join(said)
