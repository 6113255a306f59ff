"""Command of a comment that asks for a new baseline: it starts the workflow once, if its author may.

The step runs for the comment's event on the default branch, never with code of the pull request. It takes only the
command and its author from the comment, as GitHub returns them now; workflow and branch are those of this workflow.
The reply to a command is its trace: no command with a reply is carried out again.
"""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.action.baseline_refresh import (
    dispatch_baseline_workflow,
    find_baseline_workflow,
    find_dispatch_problem,
    format_dispatch,
)
from eval_gate.action.publishing.run_publication import StepEnd, build_outputs, write_job_summary
from eval_gate.action.step import Step
from eval_gate.action.step_failure import publish_nothing_to_do
from eval_gate.action.step_log import StepLog
from eval_gate.action.workflow_context import build_workflow_context
from eval_gate.errors import ExitCode
from eval_gate.gate.waivers.waive_command import REFRESH_COMMAND, CommandVerb, MalformedCommand, parse_commands
from eval_gate.github.client import PER_PAGE
from eval_gate.github.command_comments import (
    MAX_PAGES,
    PermissionLookup,
    find_comment,
    find_comment_refusal,
)
from eval_gate.github.comments import (
    PullRequestComment,
    StickyComment,
    delete_comment,
    read_thread,
    write_comment,
)
from eval_gate.github.failure import GitHubError, build_unavailable_error
from eval_gate.model.comparison import Outcome
from eval_gate.reports.context import BaselineRefresh
from eval_gate.reports.refresh_reply import (
    RefreshRequest,
    render_refresh_doubt,
    render_refresh_problem,
    render_refresh_result,
    render_refresh_start,
    render_refresh_summary,
)
from eval_gate.struct import replace
from eval_gate.text.escape import format_comment_marker


def refresh_baseline(step: Step, variables: Mapping[str, str], log: StepLog) -> StepEnd:
    """Carry out the command of the comment that the plan names, and reply to it.

    A command that is refused ends the step with exit code 0: this step decides about no change. Raises GateError if
    GitHub does not answer, or if no reply can be written, which is the trace of the command.
    """
    try:
        comment = _find_command_comment(step, log)
        if comment is None:
            return publish_nothing_to_do(step, log)
        return _CommandReply(step, comment, variables, log).carry_out()
    except GitHubError as error:
        raise build_unavailable_error(f"the baseline is not refreshed: {error}") from error


def _find_command_comment(step: Step, log: StepLog) -> PullRequestComment | None:
    """Find the comment if it still asks for a new baseline; else log why not. Raises GitHubError."""
    plan = step.plan
    assert plan.pull_number is not None  # which the plan of this mode names
    assert plan.refresh_comment is not None
    comment = find_comment(step.client, plan.pull_number, plan.refresh_comment)
    if comment is None:
        newest = f"the newest {MAX_PAGES * PER_PAGE:,}"
        log.record(f"nothing is started: comment {plan.refresh_comment} was deleted, or is not among {newest}")
    elif not any(one.verb is CommandVerb.REFRESH for one in parse_commands(comment.body)):
        log.record(f"nothing is started: comment {plan.refresh_comment} does not begin with `{REFRESH_COMMAND}`")
    elif not comment.is_by_person:  # two bots could reply to each other for ever
        log.record(f"nothing is started: {find_comment_refusal(comment)}")
    else:
        return comment
    return None


class _CommandReply:
    """Reply to one command, which begins as the claim of the run that carries it out."""

    def __init__(self, step: Step, comment: PullRequestComment, variables: Mapping[str, str], log: StepLog) -> None:
        assert step.plan.pull_number is not None
        self._step, self._client, self._number, self._log = step, step.client, step.plan.pull_number, log
        self._comment = comment
        self._workflow = find_baseline_workflow(step)
        self._branch = step.plan.baseline.branch
        self._request = RefreshRequest(comment.login, comment.url, self._workflow, self._branch)
        command = format_dispatch(self._workflow, self._branch)
        self._context = replace(build_workflow_context(step, variables), baseline_refresh=BaselineRefresh(command))
        self._marker, self._refusals_marker = (
            format_comment_marker(f"refresh.{self._workflow}.{self._branch}.{about}")
            for about in (comment.number, "refused")
        )
        """One workflow is started once on one branch for a comment; two jobs may start two."""
        maker = step.maker
        self._own = format_comment_marker(f"run.{maker.run_id}.{maker.attempt}.{maker.leg}")
        """Marks the replies of this step, which finds its reply by it after a lost response."""

    def carry_out(self) -> StepEnd:
        """Start the workflow, if it is permitted and possible, and reply. Raises GitHubError."""
        thread = read_thread(self._client, self._number, self._marker)
        if not thread.is_open:
            self._log.record("nothing is started: the pull request is closed")
            return publish_nothing_to_do(self._step, self._log)
        if thread.sticky is not None:
            return self._end_repeated(thread.sticky)
        if why_not := self._find_refusal():
            return self._reply_problem(why_not, can_run=False)
        if why_not := find_dispatch_problem(self._step, self._workflow):
            return self._reply_problem(f"{why_not}: see `baseline-workflow` of this step", can_run=False)
        # the reply is written first; there is none where another run has written one before
        claim = self._write_first(self._marker, render_refresh_start(self._request, self._context))
        return self._end_repeated(None) if claim is None else self._start_workflow(claim)

    def _find_refusal(self) -> str | None:
        """Return why the command does not count, or None if it does. Raises GitHubError."""
        malformed = (one for one in parse_commands(self._comment.body) if isinstance(one, MalformedCommand))
        wrong = next((one.message for one in malformed if one.verb is CommandVerb.REFRESH), None)
        return (
            find_comment_refusal(self._comment) or wrong or PermissionLookup(self._client).find_refusal(self._comment)
        )

    def _write_reply(self, marker: str, text: str, reply: StickyComment | None) -> StickyComment:
        own = f"{marker}{self._own}"
        return write_comment(self._client, self._number, own, f"{own}\n{text}", reply)

    def _write_first(self, marker: str, text: str) -> StickyComment | None:
        """Write the first comment with this marker: GitHub has no lock, so look again, and the oldest one counts."""
        reply = self._write_reply(marker, text, None)
        try:
            replies = read_thread(self._client, self._number, marker).own_comments
        except GitHubError:
            self._withdraw_reply(reply)
            raise
        if all(one.id >= reply.id for one in replies):
            return reply
        self._withdraw_reply(reply)
        return None

    def _withdraw_reply(self, reply: StickyComment) -> None:
        """Delete a comment of this step. A failure is logged."""
        try:
            delete_comment(self._client, self._number, reply)
        except GitHubError as error:
            self._log.record_loss(f"The reply {reply.url} stays, although it started nothing", error)

    def _start_workflow(self, claim: StickyComment) -> StepEnd:
        try:
            dispatch_baseline_workflow(self._step, self._workflow)
        except GitHubError as error:
            if error.is_outcome_unknown:
                self._log.warn(f"GitHub did not confirm the start of {self._workflow}: {error}")
                return self._finish(render_refresh_doubt(self._request, str(error), self._context), claim)
            self._withdraw_reply(claim)  # so that the job can be run again
            self._log.warn(f"the baseline is not refreshed: {error}")
            return self._reply_problem(str(error), can_run=True)
        self._log.record(f"started {self._workflow} on {self._branch} for {self._comment.login}")
        return self._finish(render_refresh_result(self._request, self._context), claim)

    def _finish(self, text: str, claim: StickyComment) -> StepEnd:
        try:
            self._write_reply(self._marker, text, claim)
        except GitHubError as error:
            self._log.record_loss("The reply stays as it was", error)
        return self._end(text, claim.url)

    def _end_repeated(self, reply: StickyComment | None) -> StepEnd:
        place = f": {reply.url}" if reply else ""
        self._log.record(f"nothing is started: a run has replied to this command already{place}")
        return publish_nothing_to_do(self._step, self._log)

    def _reply_problem(self, why: str, *, can_run: bool) -> StepEnd:
        """Reply why nothing was started, in one comment for all refused commands, so that no author causes many."""
        self._log.record(f"nothing is started: {why}")
        text = render_refresh_problem(self._request, why, self._context, can_run=can_run)
        try:
            return self._end(text, self._write_refusal(text).url)
        except GitHubError as error:
            self._log.record_loss("No reply", error)
            return self._end(text, "")

    def _write_refusal(self, text: str) -> StickyComment:
        """Write into the comment that all refused commands share, the oldest. Raises GitHubError."""
        marker = self._refusals_marker
        shared = read_thread(self._client, self._number, marker).own_comments
        if not shared:
            if first := self._write_first(marker, text):
                return first
            shared = read_thread(self._client, self._number, marker).own_comments
        oldest = min(shared, key=lambda one: one.id, default=None)
        return self._write_reply(marker, text, oldest)

    def _end(self, text: str, url: str) -> StepEnd:
        summary = render_refresh_summary(text, self._log.trail)
        write_job_summary(self._step.environment, summary, self._log.commands)
        outputs = build_outputs(None, Outcome.PASSED, ExitCode.PASSED)
        return StepEnd(ExitCode.PASSED, {**outputs, "verdict": "", "comment-url": url})
