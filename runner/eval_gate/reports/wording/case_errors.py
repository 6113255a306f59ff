"""Wording for cases without a score: agent errors, unreachable agents and evaluation errors.

*Crashed*, *unreachable* and *ours* are three things for three people to look at. A failed case is none of them: it was
answered, and wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from eval_gate.model.execution import CALLS_UNKNOWN, ErrorKind
from eval_gate.model.result import CaseResult
from eval_gate.reports.wording.numbers import format_count

ERROR_KIND_ORDER: Final = (ErrorKind.AGENT_ERROR, ErrorKind.AGENT_UNREACHABLE, ErrorKind.EVALUATION_ERROR, None)
"""What may be of the change's making comes first; None is an error without a recorded kind."""
EXPLANATIONS: Final = {
    ErrorKind.AGENT_ERROR: "the target answered with an error of its own, broke off, or took too long",
    ErrorKind.AGENT_UNREACHABLE: (
        "the target could not be reached, answered nothing, or its provider refused. This says nothing about the "
        "change, unless it keeps the target from starting"
    ),
    ErrorKind.EVALUATION_ERROR: (
        "the judge gave no verdict, or a grader broke. This says nothing about the target's answers"
    ),
    None: "the result does not say whose fault that was",
}
_COUNT_PHRASES: Final = {
    ErrorKind.AGENT_ERROR: ("case crashed", "cases crashed"),
    ErrorKind.AGENT_UNREACHABLE: ("case got no answer", "cases got no answer"),
    ErrorKind.EVALUATION_ERROR: ("case was not graded", "cases were not graded"),
    None: ("case could not be judged", "cases could not be judged"),
}
TITLES: Final = {
    ErrorKind.AGENT_ERROR: "Crashed case",
    ErrorKind.AGENT_UNREACHABLE: "Unreachable case",
    ErrorKind.EVALUATION_ERROR: "Ungraded case",
    None: "Unjudged case",
}
_SHORT_WORDS: Final = {
    ErrorKind.AGENT_ERROR: "crashed",
    ErrorKind.AGENT_UNREACHABLE: "unreachable",
    ErrorKind.EVALUATION_ERROR: "not graded",
    None: "error",
}

CALLS_UNKNOWN_EXPLANATION: Final = f"{CALLS_UNKNOWN}, because the target does not list its tool calls"
CALLS_UNKNOWN_REMEDY: Final = (
    "see where the agent lists its tool calls (`toolCallsPath`, `agentProtocol`, its own answers or log), with this "
    "change and without it"
)
"""What to do where it is unknown which tools were called."""


def has_unknown_calls(case: CaseResult | None) -> bool:
    """Whether a case could not be judged because it is unknown which tools were called."""
    return case is not None and case.error_kind is ErrorKind.EVALUATION_ERROR and CALLS_UNKNOWN in (case.error or "")


def explain_errors(error_kind: ErrorKind | None, cases: Iterable[CaseResult | None]) -> str:
    """Explain why these cases have no score, as a text to follow a colon."""
    found = {has_unknown_calls(case) for case in cases}
    words = [CALLS_UNKNOWN_EXPLANATION] if True in found else []
    return ". Others: ".join([*words, EXPLANATIONS[error_kind]] if False in found else words)


def format_error_count(error_kind: ErrorKind | None, number: int) -> str:
    """`1 case crashed`, `3 cases got no answer`."""
    return format_count(number, *_COUNT_PHRASES[error_kind])


def format_error_kind(case: CaseResult, error_kind: ErrorKind | None) -> str:
    """One word for a case that could not be judged: `crashed`, `timed out`."""
    late = error_kind is ErrorKind.AGENT_ERROR and all(
        trial.timed_out for trial in case.trials if trial.error_kind is ErrorKind.AGENT_ERROR
    )
    return "timed out" if late and case.trials else _SHORT_WORDS[error_kind]


def format_error_kind_counts(error_kinds: Iterable[ErrorKind | None]) -> str:
    """`2 crashed, 1 unreachable, 1 not graded`; errors without a recorded kind are left out."""
    numbers = Counter(error_kinds)
    return ", ".join(
        f"{numbers[error_kind]} {_SHORT_WORDS[error_kind]}"
        for error_kind in ERROR_KIND_ORDER
        if error_kind and numbers[error_kind]
    )


def summarize_errors(error_kinds: Iterable[ErrorKind | None]) -> str:
    """`2 cases crashed`; of several kinds `4 cases could not be judged: 2 crashed, 1 unreachable, 1 not graded`."""
    found = tuple(error_kinds)
    if len(set(found)) == 1:
        return format_error_count(found[0], len(found))
    kinds = format_error_kind_counts(found)
    return f"{format_error_count(None, len(found))}{f': {kinds}' if kinds else ''}"
