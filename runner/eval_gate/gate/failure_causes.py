"""Cause of a failure, to group failing cases: the check that failed, or the error without its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.result import CaseResult
from eval_gate.results.turn_details import PARTS_OF_CONVERSATION
from eval_gate.text.escape import to_one_line

MAX_EVALUATOR_NAME: Final = 40
"""Characters of an evaluator's name."""
LOW_SCORE: Final = "low score"
_TURN: Final = re.compile(rf"(?:{LOW_SCORE}: )?(?:turn \d+|conversation)(?=:| /|$)(?:: )?")
_CHECK_PREFIX: Final = re.compile(r"([A-Za-z][\w ./-]{0,40}): (?=\S)")
"""What a failure begins with: the check, such as `toolsCalled`, or the exception."""


def find_cause(case: CaseResult) -> str | None:
    """Find the cause of a failure: the evaluator that costs a graded case most, or the first line of the error."""
    low = find_low_evaluators(case)
    if not low:
        return find_first_line(case.error)
    names = [to_one_line(one.name, MAX_EVALUATOR_NAME) for one in (low[0], *find_low_members(low[0])[:1])]
    return f"{LOW_SCORE}: {' / '.join(names)}"


def drop_error_prefix(error: str) -> str:
    """Drop `agent error: ` or `timeout: ` from the start of an error, where the text around it names the kind."""
    turn, error = _split_turn(error)
    return turn + error.removeprefix("agent error: ").removeprefix("timeout: ")


def _split_turn(failure: str) -> tuple[str, str]:
    """Split a failure into the turn of a conversation that it begins with, if it does, and the rest."""
    match = _TURN.match(failure)
    return (failure[: match.end()], failure[match.end() :]) if match else ("", failure)


def get_group_key(failure: str) -> str:
    """Equal for failures that are held together: by their turn, and by their check or exception if they name one."""
    turn, rest = _split_turn(failure)
    return find_check_name(failure) or turn + mask_numbers(rest)


def find_check_name(failure: str) -> str | None:
    """Find the name of the check or exception in a failure, or None.

    A low score has none, because it comes from many checks; neither has an error kind, which many errors share.
    """
    turn, rest = _split_turn(drop_error_prefix(failure))
    match = _CHECK_PREFIX.match(rest)
    return turn + match[1] if match and match[1] != LOW_SCORE and not turn.startswith(LOW_SCORE) else None


def mask_numbers(failure: str) -> str:
    """Replace the measured numbers in a failure, which differ from case to case, by `N`: for a key, not to be shown."""
    return re.sub(r"\b\d+(?:\.\d+)?(?=(?:ms|s)?\b)", "N", failure)


def find_low_evaluators(case: CaseResult) -> list[EvaluatorResult]:
    """List the evaluators that kept a case from its full score: vetoes, then the most costly first."""
    if not case.graded or not case.status.is_scored:
        return []
    return _select_low(case.evaluator_results)


def find_low_members(result: EvaluatorResult) -> list[EvaluatorResult]:
    """List the evaluators of a turn, or of the whole conversation, in the order of `find_low_evaluators`."""
    return _select_low(result.evaluator_results) if result.type in PARTS_OF_CONVERSATION else []


def list_evaluators(case: CaseResult) -> list[EvaluatorResult]:
    """List the evaluators of a case, with those of turns and of the whole conversation in place of these parts."""
    return [
        one
        for result in case.evaluator_results
        for one in (result.evaluator_results if result.type in PARTS_OF_CONVERSATION else (result,))
    ]


def _select_low(results: Iterable[EvaluatorResult]) -> list[EvaluatorResult]:
    low = [result for result in results if (result.score < 1 or result.vetoed) and result.weight > 0]
    return sorted(low, key=lambda result: (not result.vetoed, -result.weight * (1 - result.score)))


def find_first_line(text: str | None) -> str | None:
    """Return the first line of a text that is not blank, or None."""
    return text.strip().splitlines()[0] if text and text.strip() else None
