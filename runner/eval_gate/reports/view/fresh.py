"""New and changed cases: what a few runs of each have shown, before anybody relies on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from eval_gate.gate.evidence.fresh import FRESH, flakes, seen_here
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.grounds import Counts
from eval_gate.model.result import CaseResult, RunResult

_WHICH: Final = {CaseClass.ADDED: "new", CaseClass.INCOMPARABLE: "changed"}
MEND: Final = "it flakes: mend it before it is merged"


def is_fresh(change: CaseChange | None) -> bool:
    """Whether no earlier run judged it by the same question and expectation."""
    return change is not None and change.change in FRESH


def flakes_from_the_start(case: CaseResult | None, change: CaseChange | None) -> bool:
    """Whether a new or changed case was seen both to pass and to fail."""
    return case is not None and is_fresh(change) and flakes(case)


def fresh_words(case: CaseResult | None, change: CaseChange | None) -> str | None:
    """`new: passed 2 of 3 here, it flakes: mend it before it is merged`; None of one that ran once, or is not new."""
    if case is None or change is None or not is_fresh(change):
        return None
    seen = seen_here(case)
    if seen.runs < 2:
        return None
    crashed = f" ({seen.crashes} crashed)" if seen.crashes else ""
    done = f"failed {seen.failures}" if not seen.passes else f"passed {seen.passes}"
    more = f", {MEND}" if flakes(case) else ""
    return f"{_WHICH[change.change]}: {done} of {seen.runs} here{crashed}{more}"


def fresh_counts(run: RunResult) -> str | None:
    """`12 new and 2 changed cases ran several times: 11 always passed, 2 flake, 1 always failed; 3 more ran once`.

    None where none of them ran more than once: then there is nothing more to say of them than of any other case.
    """
    classes = {one.key: one.change for one in (run.comparison.changes if run.comparison else ()) if is_fresh(one)}
    found = [(classes[key], seen_here(case)) for key, case in run.cases() if key in classes]
    several = [(change, seen) for change, seen in found if seen.runs > 1]
    if not several:
        return None
    ran = " and ".join(
        f"{number} {_WHICH[kind]}" for kind in _WHICH if (number := sum(change is kind for change, _ in several))
    )
    once = sum(seen.runs == 1 for _, seen in found)
    shown = _shown(seen for _, seen in several)
    said = f"{ran} {'case' if len(several) == 1 else 'cases'} ran several times: {shown}"
    return f"{said}; {once} more ran once" if once else said


def _shown(seen: Iterable[Counts]) -> str:
    found = list(seen)
    always = sum(not one.failures for one in found)
    never = sum(not one.passes for one in found)
    flaky = len(found) - always - never
    said = [f"{always} always passed"] if always else []
    said += [f"{flaky} {'flakes' if flaky == 1 else 'flake'}"] if flaky else []
    said += [f"{never} always failed"] if never else []
    return ", ".join(said)
