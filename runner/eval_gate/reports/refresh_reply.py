"""Replies to a comment on a pull request that asks for a new baseline."""

from __future__ import annotations

from typing import Final

from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown_fragments import describe_branch_run, format_prose, format_sentence
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import escape_markdown, format_code_span

MAX_REASON: Final = 1000
"""Characters of the reason why a command is not run."""


class RefreshRequest(FrozenStruct):
    """Comment that asks for a new baseline, and the workflow and branch that would make it."""

    author: str
    comment_url: str
    workflow: str
    branch: str


def render_refresh_start(request: RefreshRequest, context: ReportContext) -> str:
    """Render the reply before the workflow starts; it stays if the job ends too early."""
    return (
        f"{_format_command(request)} starts {_format_workflow(request, context)}.\n\n"
        "**Next step:** If this reply stays as it is, look whether that run is there. If not, write the command in a "
        "new comment.\n"
    )


def render_refresh_result(request: RefreshRequest, context: ReportContext) -> str:
    """Render the reply after the workflow was started."""
    return (
        f"🔄 **The baseline is being refreshed.** {_format_command(request)} started "
        f"{_format_workflow(request, context)}.\n\n"
        "**Next step:** When that run has ended, run the checks of this pull request again: they use the new baseline. "
        f"If {format_code_span(request.branch)} has moved on since this pull request was tested, update the pull "
        "request instead.\n"
    )


def render_refresh_problem(request: RefreshRequest, why: str, context: ReportContext, *, can_run: bool) -> str:
    """Render the reply if nothing was started; `can_run` means that a person can start it."""
    by_hand = f"\n**Next step:** To refresh it, {describe_branch_run(context)}.\n" if can_run else ""
    return (
        f"⚠️ **The baseline is not refreshed.** {_format_command(request)} was not carried out: "
        f"{format_prose(why, MAX_REASON)}.\n{by_hand}"
    )


def render_refresh_doubt(request: RefreshRequest, why: str, context: ReportContext) -> str:
    """Render the reply if GitHub did not say whether the workflow was started."""
    return (
        f"⚠️ **GitHub did not confirm that the baseline is being refreshed.** {_format_command(request)} is not "
        f"repeated: {format_prose(why, MAX_REASON)}.\n\n"
        f"**Next step:** Look whether {_format_workflow(request, context)} is running. If not, "
        f"{describe_branch_run(context)}.\n"
    )


def render_refresh_summary(reply: str, trail: list[str]) -> str:
    """Render the job summary of a step that replied to such a command."""
    steps = "".join(f"1. {format_sentence(one)}\n" for one in trail)
    return f"# Agent eval gate — baseline refresh\n\n{reply}\n## How this was decided\n\n{steps}"


def _format_command(request: RefreshRequest) -> str:
    return f"[The command]({request.comment_url}) of {escape_markdown(request.author, 60)}"


def _format_workflow(request: RefreshRequest, context: ReportContext) -> str:
    name = format_code_span(request.workflow)
    link = f"[{name}]({context.workflow_url})" if context.workflow_url else name
    return f"{link} on {format_code_span(request.branch)}"
