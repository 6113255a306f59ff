"""The words for whose fault it is that a case could not be judged.

*Crashed*, *unreachable* and *ours* are three things for three people to look at. A failed case is none of them: it was
answered, and wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from eval_gate.model.execution import CALLS_UNKNOWN, Blame
from eval_gate.model.result import CaseResult
from eval_gate.reports.words.numbers import count

ORDER: Final = (Blame.CRASHED, Blame.UNREACHABLE, Blame.OURS, None)
"""What may be of the change's making comes first; None is what nobody blamed."""
MEANS: Final = {
    Blame.CRASHED: "the target answered with an error of its own, broke off, or took too long",
    Blame.UNREACHABLE: (
        "the target could not be reached, answered nothing, or its provider refused. This says nothing about the "
        "change, unless it keeps the target from starting"
    ),
    Blame.OURS: "the judge gave no verdict, or a grader broke. This says nothing about the target's answers",
    None: "the result does not say whose fault that was",
}
_DID: Final = {
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
_HERE: Final = {Blame.CRASHED: "crashed", Blame.UNREACHABLE: "unreachable", Blame.OURS: "not graded", None: "error"}

CALLS_MEAN: Final = f"{CALLS_UNKNOWN}, because the target does not list its tool calls"
LISTS_CALLS: Final = (
    "see where the agent lists its tool calls (`toolCallsPath`, `preset`, its own answers or log), with this change "
    "and without it"
)
"""What to do where it is unknown which tools were called."""


def lacks_calls(case: CaseResult | None) -> bool:
    """Whether a case could not be judged because it is unknown which tools were called."""
    return case is not None and case.blame is Blame.OURS and CALLS_UNKNOWN in (case.error or "")


def explain_errors(blame: Blame | None, cases: Iterable[CaseResult | None]) -> str:
    """What it means that these cases could not be judged, to be read after a colon."""
    found = {lacks_calls(case) for case in cases}
    words = [CALLS_MEAN] if True in found else []
    return ". Others: ".join([*words, MEANS[blame]] if False in found else words)


def did(blame: Blame | None, number: int) -> str:
    """`1 case crashed`, `3 cases got no answer`."""
    return count(number, *_DID[blame])


def blame_word(case: CaseResult, blame: Blame | None) -> str:
    """One word for a case that could not be judged: `crashed`, `timed out`."""
    late = blame is Blame.CRASHED and all(trial.timed_out for trial in case.trials if trial.blame is Blame.CRASHED)
    return "timed out" if late and case.trials else _HERE[blame]


def blame_counts(blamed: Iterable[Blame | None]) -> str:
    """`2 crashed, 1 unreachable, 1 not graded`; nothing of those that nobody blamed."""
    numbers = Counter(blamed)
    return ", ".join(f"{numbers[blame]} {_HERE[blame]}" for blame in ORDER if blame and numbers[blame])


def together(blamed: Iterable[Blame | None]) -> str:
    """`2 cases crashed`; of several kinds `4 cases could not be judged: 2 crashed, 1 unreachable, 1 not graded`."""
    found = tuple(blamed)
    if len(set(found)) == 1:
        return did(found[0], len(found))
    kinds = blame_counts(found)
    return f"{did(None, len(found))}{f': {kinds}' if kinds else ''}"
