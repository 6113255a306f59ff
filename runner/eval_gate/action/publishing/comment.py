"""Comment of a gate: decide whether to write it, write it, and keep the result that counts."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final

from eval_gate.action.inputs import CommentMode
from eval_gate.action.publishing.check_run import PreviousResult
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.pass_score import apply_recorded_pass_score
from eval_gate.github.check_runs import CheckState
from eval_gate.github.comments import (
    PullRequestThread,
    StickyComment,
    delete_comment,
    read_thread,
    show_comment,
    write_comment,
)
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import DETAIL_LEVELS
from eval_gate.reports.links import compute_case_digest
from eval_gate.reports.markdown import render_comment, render_problem
from eval_gate.reports.run_statistics import select_counted_changes
from eval_gate.reports.view.report_view import build_view
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import format_comment_marker
from eval_gate.text.quoting import quote_value

MAX_STORED_REGRESSIONS: Final = 500
"""Regressions that a comment remembers, four bytes of each."""
MAX_SHORTER_VERSIONS: Final = 3
"""How often a comment that GitHub finds too long is made shorter, before it is given up."""


class CommentDraft(FrozenStruct):
    """Draft of a comment. `render` takes the context and the step of the length ladder to start at."""

    outcome: Outcome
    noteworthy: bool
    """Whether anything changed that the mode `changes` reports."""
    render: Callable[[ReportContext, int], str]
    regressions: frozenset[str] | None = None
    """Digests of the regressions that count: a later comment lists which are fixed. None without a verdict."""


def draft_comment(result: RunResult) -> CommentDraft:
    """Build the comment draft for a run result that has a gate verdict."""
    outcome = result.verdict.outcome if result.verdict else Outcome.INCONCLUSIVE

    def render(context: ReportContext, start: int) -> str:
        return render_comment(build_view(result, context), start=start)

    digests = None
    if result.comparison is not None and outcome is not Outcome.INCONCLUSIVE:
        counted = select_counted_changes(result, CaseClass.REGRESSION)
        digests = frozenset(compute_case_digest(one.key) for one in counted)
    return CommentDraft(outcome, outcome is not Outcome.PASSED or _has_changed(result), render, digests)


def draft_problem(error: GateError, heading: str) -> CommentDraft:
    """Build the comment draft for an error that takes the place of a result."""

    def render(context: ReportContext, _start: int) -> str:
        return render_problem(error, context, heading, as_comment=True)

    return CommentDraft(Outcome.INCONCLUSIVE, noteworthy=True, render=render)


class WrittenComment(FrozenStruct):
    """Comment after publication, with its text."""

    comment: StickyComment
    body: str


def _get_marker(step: Step) -> str:
    return format_comment_marker(step.publication.maker.gate)


def find_comment_place(
    step: Step, draft: CommentDraft, log: StepLog, comment_id: int | None = None
) -> PullRequestThread | None:
    """Find the thread in which the comment is to be written; None where the log says why there is none.

    `comment_id` is the comment that the gate is known to have written. Raises GateError `base-branch-changed` for a
    verdict about another branch than the pull request goes into by now, and nothing else.
    """
    if step.plan.pull_number is None:
        return None
    try:
        thread = read_thread(step.client, step.plan.pull_number, _get_marker(step), comment_id)
    except GitHubError as error:
        if step.settings.comment is CommentMode.NEVER:
            log.record(f"no comment: comment is `never`; cannot check for an earlier one ({error})")
        else:
            log.record_loss("No comment", error)
        return None
    if not thread.is_open:
        log.record("no comment: the pull request is closed")
        return None
    head = step.plan.head_sha
    if thread.head_sha != head:
        log.record(f"no comment: the pull request is now at {thread.head_sha[:7]}, but this result is for {head[:7]}")
        return None
    if draft.outcome is not Outcome.INCONCLUSIVE:
        _refuse_old_base(step, thread)
    reason = _find_skip_reason(step, draft) if thread.sticky is None else None
    if reason is not None:
        log.record(f"no comment: {reason}")
        return None
    return thread


def write_comment_in(
    thread: PullRequestThread | None, step: Step, draft: CommentDraft, context: ReportContext, log: StepLog
) -> WrittenComment | None:
    """Write the comment in a known thread, unless it is None. GitHub failures are logged, not raised."""
    if thread is None:
        return None
    number = step.plan.pull_number
    assert number is not None  # there is a thread
    try:
        comment = _render_and_write(step, number, draft, context, thread.sticky, log)
    except GitHubError as error:
        log.record_loss("No comment", error)
        return None
    log.record(f"comment {'updated' if thread.sticky else 'written'} on #{number}")
    if draft.outcome is not Outcome.PASSED and thread.sticky is not None and thread.sticky.is_hidden:
        try:
            show_comment(step.client, number, thread.sticky)
            log.record("the comment was hidden, and is shown again")
        except GitHubError as error:
            log.record_loss("The comment stays hidden", error)
    return comment


def _render_and_write(
    step: Step, number: int, draft: CommentDraft, context: ReportContext, sticky: StickyComment | None, log: StepLog
) -> WrittenComment:
    for start in range(min(MAX_SHORTER_VERSIONS + 1, len(DETAIL_LEVELS))):
        body = draft.render(context, start)
        try:
            return WrittenComment(write_comment(step.client, number, _get_marker(step), body, sticky), body)
        except GitHubError as error:
            if error.kind is not FailureKind.REFUSED or "too long" not in error.detail:
                raise
            log.record(f"the comment was too long for GitHub ({len(body):,} characters): trying a shorter one")
            last = error
    raise last


def add_previous_regressions(context: ReportContext, previous: PreviousResult | None) -> ReportContext:
    """Add the regressions of the result before the last push, if they are known."""
    state = previous.state if previous else None
    if state is None or state.regressed is None:
        return context
    return replace(
        context, previous_regressions=_unpack_digests(state.regressed), previous_regressions_sha=state.regressed_at
    )


def build_check_state(draft: CommentDraft, previous: PreviousResult | None) -> CheckState:
    """Build what the next result has to know: the regressions, or the earlier ones if this result is inconclusive."""
    if draft.regressions is not None:
        return CheckState(regressed=_pack_digests(draft.regressions))
    state = previous.state if previous else None
    if previous is None or state is None or state.regressed is None:
        return CheckState()
    return CheckState(regressed=state.regressed, regressed_at=state.regressed_at or previous.sha)


def _pack_digests(digests: frozenset[str]) -> str | None:
    """Return None for too many: with some of them, the count of fixed ones would be wrong."""
    if len(digests) > MAX_STORED_REGRESSIONS:
        return None
    return base64.b64encode(bytes.fromhex("".join(sorted(digests)))).decode()


def _unpack_digests(packed: str) -> frozenset[str] | None:
    """Return None for text that is not packed like this."""
    try:
        data = base64.b64decode(packed, validate=True)
    except ValueError:
        return None
    return frozenset(data[place : place + 4].hex() for place in range(0, len(data), 4))


def _refuse_old_base(step: Step, thread: PullRequestThread) -> None:
    """Refuse a pull request whose base branch has changed: another one has another policy and another baseline."""
    result_base, base_ref = step.plan.base_branch, thread.base_ref
    if not result_base or not base_ref or result_base == base_ref:
        return
    raise GateError(
        "base-branch-changed",
        f"the pull request now targets {quote_value(base_ref)}, but this result is for {quote_value(result_base)}",
        "push a commit, or close the pull request and reopen it: a re-run repeats the old event",
        exit_code=ExitCode.INCOMPLETE,
    )


def _find_skip_reason(step: Step, draft: CommentDraft) -> str | None:
    """Return why no new comment is written, if so. An existing one is always updated, so that it stays true."""
    if step.provisional:
        return "a later step publishes"
    match step.settings.comment:
        case CommentMode.NEVER:
            return "comment is `never`"
        case CommentMode.FAILURES if draft.outcome is Outcome.PASSED:
            return "comment is `failures`, and the gate passed"
        case CommentMode.CHANGES if not draft.noteworthy:
            return "comment is `changes`, and nothing changed"
    return None


def _has_changed(result: RunResult) -> bool:
    """Whether a case changed, or a suite is stale; without a baseline, whether a case failed."""
    comparison = result.comparison
    if comparison is None:
        return apply_recorded_pass_score(result).summary.failed > 0
    stale = any(suite.stale for suite in result.suites)
    same = {"still_passing", "still_failing"}
    return stale or any(change.score_drop or change.change.value not in same for change in comparison.changes)


def keep_one_comment(
    step: Step,
    own_comment: WrittenComment,
    comment_id: int | None,
    superseded: CommentDraft | None,
    context: ReportContext,
    log: StepLog,
) -> StickyComment:
    """Leave one comment of this gate, also if other runs write at the same time: the known one, else the oldest.

    GitHub has no lock, so each run reads the comments again after it has written. Only the time of a comment tells
    whether another run wrote it. `superseded` replaces the text if a newer result counts. GitHub failures are logged.
    """
    try:
        return _remove_others(step, own_comment, comment_id, superseded.render(context, 0) if superseded else None)
    except GitHubError as error:
        log.record_loss("A comment of another run may remain", error)
        return own_comment.comment


def _remove_others(
    step: Step, own_comment: WrittenComment, comment_id: int | None, superseded: str | None
) -> StickyComment:
    client, number, ours = step.client, step.plan.pull_number, own_comment.comment
    assert number is not None  # there is a comment
    comments = read_thread(client, number, _get_marker(step), comment_id).own_comments
    sole_comment = min(comments, key=lambda one: (one.id != comment_id, one.id), default=ours)
    if superseded is not None:
        if sole_comment.id != ours.id:
            delete_comment(client, number, ours)
        elif sole_comment.updated_at == ours.updated_at:  # no other run has overwritten it
            write_comment(client, number, _get_marker(step), superseded, sole_comment)
        return sole_comment
    if sole_comment.id != ours.id:
        write_comment(client, number, _get_marker(step), own_comment.body, sole_comment)
    for one in comments:
        if one.id != sole_comment.id:
            delete_comment(client, number, one)
    return sole_comment
