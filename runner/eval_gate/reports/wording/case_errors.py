"""Wording for cases without a score: agent errors, unreachable agents and evaluation errors.

*Crashed*, *unreachable* and *ours* are three things for three people to look at. A failed case is none of them: it was
answered, and wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from eval_gate.model.execution import CALLS_UNKNOWN, Blame
from eval_gate.model.result import CaseResult
from eval_gate.reports.wording.numbers import format_count

BLAME_ORDER: Final = (Blame.CRASHED, Blame.UNREACHABLE, Blame.OURS, None)
"""What may be of the change's making comes first; None is what nobody blamed."""
EXPLANATIONS: Final = {
    Blame.CRASHED: "the target answered with an error of its own, broke off, or took too long",
    Blame.UNREACHABLE: (
        "the target could not be reached, answered nothing, or its provider refused. This says nothing about the "
        "change, unless it keeps the target from starting"
    ),
    Blame.OURS: "the judge gave no verdict, or a grader broke. This says nothing about the target's answers",
    None: "the result does not say whose fault that was",
}
_COUNT_PHRASES: Final = {
    Blame.CRASHED: ("case crashed", "cases crashed"),
    Blame.UNREACHABLE: ("case got no answer", "cases got no answer"),
    Blame.OURS: ("case was not graded", "cases were not graded"),
    None: ("case could not be judged", "cases could not be judged"),
}
TITLES: Final = {
    Blame.CRASHED: "Crashed case",
    Blame.UNREACHABLE: "Unreachable case",
    Blame.OURS: "Ungraded case",
    None: "Unjudged case",
}
_SHORT_WORDS: Final = {
    Blame.CRASHED: "crashed",
    Blame.UNREACHABLE: "unreachable",
    Blame.OURS: "not graded",
    None: "error",
}

CALLS_UNKNOWN_EXPLANATION: Final = f"{CALLS_UNKNOWN}, because the target does not list its tool calls"
CALLS_UNKNOWN_REMEDY: Final = (
    "see where the agent lists its tool calls (`toolCallsPath`, `preset`, its own answers or log), with this change "
    "and without it"
)
"""What to do where it is unknown which tools were called."""


def has_unknown_calls(case: CaseResult | None) -> bool:
    """Whether a case could not be judged because it is unknown which tools were called."""
    return case is not None and case.blame is Blame.OURS and CALLS_UNKNOWN in (case.error or "")


def explain_errors(blame: Blame | None, cases: Iterable[CaseResult | None]) -> str:
    """What it means that these cases could not be judged, to be read after a colon."""
    found = {has_unknown_calls(case) for case in cases}
    words = [CALLS_UNKNOWN_EXPLANATION] if True in found else []
    return ". Others: ".join([*words, EXPLANATIONS[blame]] if False in found else words)


def format_error_count(blame: Blame | None, number: int) -> str:
    """`1 case crashed`, `3 cases got no answer`."""
    return format_count(number, *_COUNT_PHRASES[blame])


def format_blame(case: CaseResult, blame: Blame | None) -> str:
    """One word for a case that could not be judged: `crashed`, `timed out`."""
    late = blame is Blame.CRASHED and all(trial.timed_out for trial in case.trials if trial.blame is Blame.CRASHED)
    return "timed out" if late and case.trials else _SHORT_WORDS[blame]


def format_blame_counts(blamed: Iterable[Blame | None]) -> str:
    """`2 crashed, 1 unreachable, 1 not graded`; nothing of those that nobody blamed."""
    numbers = Counter(blamed)
    return ", ".join(f"{numbers[blame]} {_SHORT_WORDS[blame]}" for blame in BLAME_ORDER if blame and numbers[blame])


def summarize_errors(blamed: Iterable[Blame | None]) -> str:
    """`2 cases crashed`; of several kinds `4 cases could not be judged: 2 crashed, 1 unreachable, 1 not graded`."""
    found = tuple(blamed)
    if len(set(found)) == 1:
        return format_error_count(found[0], len(found))
    kinds = format_blame_counts(found)
    return f"{format_error_count(None, len(found))}{f': {kinds}' if kinds else ''}"
