"""Cause of a failure, to group failing cases: the check that failed, or the error without its numbers."""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.result import CaseResult
from eval_gate.text.escape import to_one_line

MAX_EVALUATOR_NAME: Final = 40
"""Characters of an evaluator's name."""
LOW_SCORE: Final = "low score"
_CHECK_PREFIX: Final = re.compile(r"([A-Za-z][\w ./-]{0,40}): (?=\S)")
"""What a failure begins with: the check, such as `toolsCalled`, or the exception."""


def find_cause(case: CaseResult) -> str | None:
    """Find the cause of a failure: the evaluator that costs a graded case most, or the first line of the error."""
    low = find_low_evaluators(case)
    return f"{LOW_SCORE}: {to_one_line(low[0].name, MAX_EVALUATOR_NAME)}" if low else find_first_line(case.error)


def drop_error_prefix(error: str) -> str:
    """Drop `agent error: ` or `timeout: ` from the start of an error, where the text around it names the kind."""
    return error.removeprefix("agent error: ").removeprefix("timeout: ")


def get_group_key(failure: str) -> str:
    """Equal for failures that are held together: by their check or exception, where they name one."""
    return find_check_name(failure) or mask_numbers(failure)


def find_check_name(failure: str) -> str | None:
    """Find the name of the check or exception in a failure, or None.

    A low score has none, because it comes from many checks; neither has an error kind, which many errors share.
    """
    match = _CHECK_PREFIX.match(drop_error_prefix(failure))
    return match[1] if match and match[1] != LOW_SCORE else None


def mask_numbers(failure: str) -> str:
    """Replace the measured numbers in a failure, which differ from case to case, by `N`: for a key, not to be shown."""
    return re.sub(r"\b\d+(?:\.\d+)?(?=(?:ms|s)?\b)", "N", failure)


def find_low_evaluators(case: CaseResult) -> list[EvaluatorResult]:
    """List the evaluators that kept a case from its full score: vetoes, then the most costly first."""
    if not case.graded or not case.status.is_scored:
        return []
    low = [result for result in case.evaluator_results if (result.score < 1 or result.vetoed) and result.weight > 0]
    return sorted(low, key=lambda result: (not result.vetoed, -result.weight * (1 - result.score)))


def find_first_line(text: str | None) -> str | None:
    """Return the first line of a text that is not blank, or None."""
    return text.strip().splitlines()[0] if text and text.strip() else None
