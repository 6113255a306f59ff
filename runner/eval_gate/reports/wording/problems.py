"""Wording for errors and their problems as log lines, and for a gate that waits for the base agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.struct import replace
from eval_gate.text.escape import format_comment_marker, format_count, to_console_line

MAX_SHOWN_PROBLEMS = 50


def render_error(error: GateError) -> Iterator[str]:
    """Render an error for the log: its code and message, every place it applies to, and a hint."""
    yield f"error[{error.code}]: {to_console_line(error.message)}"
    # a place does not repeat the message of the error
    places = [replace(one, message="") if one.message == error.message else one for one in error.problems]
    yield from render_problems(places, indent="  ")
    if error.hint:
        yield f"  hint: {to_console_line(error.hint)}"


def render_problems(problems: Sequence[Problem], indent: str = "") -> Iterator[str]:
    """Render each problem on its own line, up to a limit."""
    for problem in problems[:MAX_SHOWN_PROBLEMS]:
        yield f"{indent}{to_console_line(str(problem))}"
    if len(problems) > MAX_SHOWN_PROBLEMS:
        yield f"{indent}… and {len(problems) - MAX_SHOWN_PROBLEMS} more"


WAITING_TITLE: Final = "⏳ Agent eval gate — waiting for the base agent"


def format_waiting(suspects: int) -> str:
    """Format the sentence for the log."""
    what = format_count(suspects, "regression may", "regressions may")
    return (
        f"{what} fail with the base agent too. A second step with `results: latest` and `base-agent-endpoint` "
        "runs the base agent and publishes the verdict"
    )


def render_waiting_summary(suspects: int) -> str:
    """Render the job summary of a gate that waits for the base agent's results."""
    return (
        f"# {WAITING_TITLE}\n\n"
        f"**This step failed:** {format_waiting(suspects)}.\n\n"
        "Without a second step, the gate stays failed.\n"
    )


def render_waiting_comment(suspects: int, head_sha: str, key: str) -> str:
    """Render the comment of a gate that waits for the base agent's results.

    It replaces the comment about an earlier result that is no longer valid.
    """
    what = format_count(suspects, "regression", "regressions")
    return (
        f"{format_comment_marker(key)}\n## {WAITING_TITLE}\n\n"
        f"**No verdict yet:** {what} of `{head_sha[:7]}` may fail with the base agent too. A second step runs the base "
        "agent and publishes the verdict. Without it, the gate stays failed.\n"
    )
