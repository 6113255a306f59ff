"""An error for a person, as lines of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eval_gate.errors import GateError, Problem
from eval_gate.text.escape import console_line

MAX_SHOWN_PROBLEMS = 50


def error_lines(error: GateError) -> Iterator[str]:
    """The error's sentence, every place it holds for, and what to do."""
    yield f"error[{error.code}]: {console_line(error.message)}"
    yield from problem_lines(error.problems, indent="  ")
    if error.hint:
        yield f"  hint: {console_line(error.hint)}"


def problem_lines(problems: Sequence[Problem], indent: str = "") -> Iterator[str]:
    """Every problem on its own line, up to a bound."""
    for problem in problems[:MAX_SHOWN_PROBLEMS]:
        yield f"{indent}{console_line(str(problem))}"
    if len(problems) > MAX_SHOWN_PROBLEMS:
        yield f"{indent}… and {len(problems) - MAX_SHOWN_PROBLEMS} more"
