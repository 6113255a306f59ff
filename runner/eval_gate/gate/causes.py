"""What a failure may have in common with others: its check, or what it says without the numbers in it."""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.result import CaseResult
from eval_gate.text.escape import one_line

MAX_NAME: Final = 40
"""Characters of an evaluator's name."""
LOW_SCORE: Final = "low score"
_CHECK: Final = re.compile(r"([A-Za-z][\w ./-]{0,40}): (?=\S)")
"""What a failure begins with: the check, such as `toolsCalled`, or the kind of an error."""


def cause_of(case: CaseResult) -> str | None:
    """What failed in one line: the evaluator that costs a grade most, else the first line of the error."""
    low = low_evaluators(case)
    return f"{LOW_SCORE}: {one_line(low[0].name, MAX_NAME)}" if low else first_line(case.error)


def group_of(failure: str) -> str:
    """Equal for failures that are held together: by their check, where they name one."""
    return check_of(failure) or without_numbers(failure)


def check_of(failure: str) -> str | None:
    """The check that a failure names; None where it names none, and of low scores, which are of many checks."""
    found = _CHECK.match(failure)
    return found[1] if found and found[1] != LOW_SCORE else None


def without_numbers(failure: str) -> str:
    """A failure without the numbers that were measured, which differ from case to case."""
    return re.sub(r"\b\d+(?:\.\d+)?(?=(?:ms|s)?\b)", "N", failure)


def low_evaluators(case: CaseResult) -> list[EvaluatorResult]:
    """What kept a graded case from its full score, the evaluator that costs most first; vetoes before all others."""
    if not case.graded or not case.status.judged:
        return []
    low = [result for result in case.evaluator_results if (result.score < 1 or result.vetoed) and result.weight > 0]
    return sorted(low, key=lambda result: (not result.vetoed, -result.weight * (1 - result.score)))


def first_line(text: str | None) -> str | None:
    """The first line that says something; None where there is none."""
    return text.strip().splitlines()[0] if text and text.strip() else None
