"""Comment of a gate: decide whether to write it, write it, and keep the result that counts."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from eval_gate.action.inputs import CommentMode
from eval_gate.action.precedence import (
    NewerResult,
    Publication,
    Publisher,
    build_name_taken_error,
    classify_publisher,
    compute_rank,
    is_same_leg,
    is_superseding,
)
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.pass_score import apply_recorded_pass_score
from eval_gate.github.comments import (
    CommentState,
    IsOwnComment,
    PullRequestThread,
    StickyComment,
    delete_comment,
    read_thread,
    show_comment,
    write_comment,
)
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.github.marked_texts import append_state
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.result import ResultProducer, RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import DETAIL_LEVELS
from eval_gate.reports.links import compute_case_digest
from eval_gate.reports.markdown import render_comment
from eval_gate.reports.run_statistics import select_counted_changes
from eval_gate.reports.view.report_view import build_view
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.quoting import quote_value

MAX_STORED_REGRESSIONS: Final = 500
"""Regressions that a comment remembers, four bytes of each."""
MAX_SHORTER_VERSIONS: Final = 3
"""How often a comment that GitHub finds too long is made shorter, before it is given up."""
MAX_CONFLICT_CHECKS: Final = 4
"""How often it is looked whether another run has written at the same time."""


class CommentDraft(FrozenStruct):
    """Draft of a comment. `render` takes the context and the step of the length ladder to start at."""

    outcome: Outcome
    noteworthy: bool
    """Whether anything changed that the mode `changes` speaks about."""
    render: Callable[[ReportContext, int], str]
    has_regressions: bool = False
    """Whether there are regressions, which a later comment may say are fixed."""
    regressions: frozenset[str] | None = None
    """Digests of the regressions that count, by which a later comment says which are mended; None without a verdict."""


def draft_comment(result: RunResult) -> CommentDraft:
    """Build the comment draft for a run result that has a gate verdict."""
    outcome = result.verdict.outcome if result.verdict else Outcome.INCONCLUSIVE

    def render(context: ReportContext, start: int) -> str:
        return render_comment(build_view(result, context), start=start)

    regressed = result.comparison is not None and bool(result.comparison.select_changes(CaseClass.REGRESSION))
    noteworthy = outcome is not Outcome.PASSED or _has_changed(result)
    return CommentDraft(
        outcome,
        noteworthy,
        render,
        regressed,
        _digest_regressions(result) if outcome is not Outcome.INCONCLUSIVE else None,
    )


def _digest_regressions(result: RunResult) -> frozenset[str] | None:
    """Return the digests of the regressions that are not waived, or None without a comparison."""
    if result.comparison is None:
        return None
    return frozenset(compute_case_digest(one.key) for one in select_counted_changes(result, CaseClass.REGRESSION))


class CommentPlace(FrozenStruct):
    """Thread to comment on; None when no comment is written."""

    thread: PullRequestThread | None = None
    newer_result: NewerResult | None = None
    """The result that the comment shows and that counts, where it is not ours."""


class WrittenComment(FrozenStruct):
    """Comment after publication."""

    url: str | None = None
    newer_result: NewerResult | None = None
    """The result that another run wrote there meanwhile, where it counts."""


NO_COMMENT: Final = WrittenComment()


def find_comment_place(step: Step, draft: CommentDraft, log: StepLog) -> CommentPlace:
    """Where the comment is to be written; nowhere where the log says why.

    Raises TakenError where another leg of this run has written it, GateError `base-branch-changed` for a verdict about
    another branch than the pull request goes into by now, and nothing else.
    """
    if step.plan.pull_number is None:
        return CommentPlace()
    try:
        thread = read_thread(step.client, step.plan.pull_number, step.key, build_ownership_test(step.publication))
    except GitHubError as error:
        if step.settings.comment is CommentMode.NEVER:
            log.record(f"no comment: comment is `never`; cannot check for an earlier one ({error})")
        else:
            log.record_loss("No comment", error)
        return CommentPlace()
    if not thread.is_open:
        log.record("no comment: the pull request is closed")
        return CommentPlace()
    head = step.plan.head_sha
    if thread.head_sha != head:
        moved = f"the pull request is now at {thread.head_sha[:7]}, but this result is for {head[:7]}"
        log.record(f"no comment: {moved}")
        return CommentPlace()
    if draft.outcome is not Outcome.INCONCLUSIVE:
        _refuse_old_base(step, thread)
    if (newer := find_newer_result(step.publication, thread.own_comments, head)) is not None:
        return CommentPlace(newer_result=newer)
    reason = _find_skip_reason(step, draft) if thread.sticky is None else None
    if reason is not None:
        log.record(f"no comment: {reason}")
        return CommentPlace()
    _refuse_second_leg(step, thread)
    return CommentPlace(thread)


def write_comment_at(
    place: PullRequestThread | None, step: Step, draft: CommentDraft, context: ReportContext, log: StepLog
) -> WrittenComment:
    """Write the comment in a known thread, unless `place` is None.

    GitHub failures are logged, not raised. Raises NameTakenError if another leg of this run writes the comment at
    the same time.
    """
    if place is None:
        return NO_COMMENT
    assert step.plan.pull_number is not None  # there is a place
    try:
        written, body = _render_and_write(step, step.plan.pull_number, draft, context, place.sticky, log)
    except GitHubError as error:
        log.record_loss("No comment", error)
        return NO_COMMENT
    log.record(f"comment {'updated' if place.sticky else 'written'} on #{step.plan.pull_number}")
    left = None
    try:
        left = keep_one_comment(step, step.plan.pull_number, body, written, log)
    except GitHubError as error:
        log.record_loss("A comment of another run may remain", error)
    if draft.outcome is not Outcome.PASSED:
        _unhide_comment(step, step.plan.pull_number, left or place.sticky, log)
    overtaken = find_newer_result(step.publication, (left,), left.state.sha) if left and left.state else None
    return WrittenComment((left.url if left else written.url) or None, overtaken)


def _render_and_write(
    step: Step, number: int, draft: CommentDraft, context: ReportContext, sticky: StickyComment | None, log: StepLog
) -> tuple[StickyComment, str]:
    """Write the comment, shorter if GitHub finds it too long, and return it with its text."""
    earlier = sticky.state if sticky else None
    ours = step.publication
    # what another leg said was broken is not fixed here
    if earlier is not None and not is_same_leg(ours.maker, earlier.leg):
        earlier = None
    fixed = earlier.red_sha if earlier and draft.outcome is Outcome.PASSED else None
    head = step.plan.head_sha
    context = replace(_add_previous_regressions(context, earlier, head), previous_red_sha=fixed)
    regressed, regressed_at = _choose_stored_regressions(draft, earlier)
    state = CommentState(
        sha=head,
        run_id=ours.maker.run_id,
        attempt=ours.maker.attempt,
        outcome=draft.outcome.value,
        red_sha=_find_red_commit(draft, earlier, head),
        leg=ours.maker.leg,
        regressed=regressed,
        regressed_at=regressed_at,
        gate=ours.maker.gate,
        judged=ours.source_run,
    )
    for start in range(min(MAX_SHORTER_VERSIONS + 1, len(DETAIL_LEVELS))):
        body = append_state(draft.render(context, start), state)
        try:
            return write_comment(step.client, number, step.key, body, sticky, build_ownership_test(ours)), body
        except GitHubError as error:
            if error.kind is not FailureKind.REFUSED or "too long" not in error.detail:
                raise
            log.record(f"the comment was too long for GitHub ({len(body):,} characters): trying a shorter one")
            last = error
    raise last


def _unhide_comment(step: Step, number: int, comment: StickyComment | None, log: StepLog) -> None:
    """Have a comment that does not pass shown, where somebody has hidden an earlier result."""
    if comment is None or not comment.is_hidden:
        return
    try:
        show_comment(step.client, number, comment)
        log.record("the comment was hidden, and is shown again")
    except GitHubError as error:
        log.record_loss("The comment stays hidden", error)


def _add_previous_regressions(context: ReportContext, earlier: CommentState | None, head: str) -> ReportContext:
    """With the regressions of the result before this one; without, where that was of the same commit."""
    if earlier is None or earlier.regressed is None or earlier.sha == head:
        return context
    return replace(
        context, previous_regressions=_unpack_digests(earlier.regressed), previous_regressions_sha=earlier.regressed_at
    )


def _choose_stored_regressions(draft: CommentDraft, earlier: CommentState | None) -> tuple[str | None, str | None]:
    """Return the packed regressions that the next comment needs, and their commit if it is an earlier one."""
    if draft.regressions is not None:
        return _pack_digests(draft.regressions), None
    if draft.outcome is not Outcome.INCONCLUSIVE or earlier is None:
        return None, None
    return earlier.regressed, (earlier.regressed_at or earlier.sha) if earlier.regressed is not None else None


def _pack_digests(digests: frozenset[str]) -> str | None:
    """None where there are too many: of some of them nobody can say how many were mended."""
    if len(digests) > MAX_STORED_REGRESSIONS:
        return None
    return base64.b64encode(bytes.fromhex("".join(sorted(digests)))).decode()


def _unpack_digests(packed: str) -> frozenset[str] | None:
    """None for what we have not written so."""
    try:
        data = base64.b64decode(packed, validate=True)
    except ValueError:
        return None
    return frozenset(data[place : place + 4].hex() for place in range(0, len(data), 4))


def _refuse_second_leg(step: Step, thread: PullRequestThread) -> None:
    """Raise NameTakenError if another leg of this run wrote the existing comment."""
    if thread.sticky and find_publisher(step.publication, thread.sticky) is Publisher.ANOTHER_LEG:
        raise build_name_taken_error(f"the comment `{step.key}`", "comment-key")


def _refuse_old_base(step: Step, thread: PullRequestThread) -> None:
    """Refuse a pull request whose base branch has changed: another one has another policy and another baseline."""
    judged, now = step.plan.base_branch, thread.base_ref
    if not judged or not now or judged == now:
        return
    raise GateError(
        "base-branch-changed",
        f"the pull request now targets {quote_value(now)}, but this result is for {quote_value(judged)}",
        "push a commit, or close the pull request and reopen it: a re-run repeats the old event",
        exit_code=ExitCode.INCOMPLETE,
    )


def _find_red_commit(draft: CommentDraft, earlier: CommentState | None, head: str) -> str | None:
    """Find the commit whose regressions are not known to be fixed: `head`, or an earlier one if this run has none."""
    if draft.outcome is Outcome.PASSED:
        return None
    return head if draft.has_regressions else (earlier.red_sha if earlier else None)


def _find_skip_reason(step: Step, draft: CommentDraft) -> str | None:
    """Why none is made where there is none. One that is there must not go on saying what is not true any more."""
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
    """Whether a case, or the freshness of a suite, is not as it was; without a baseline, whether anything fails."""
    comparison = result.comparison
    if comparison is None:
        return apply_recorded_pass_score(result).summary.failed > 0
    stale = any(suite.stale for suite in result.suites)
    same = {"still_passing", "still_failing"}
    return stale or any(change.score_drop or change.change.value not in same for change in comparison.changes)


def keep_one_comment(step: Step, number: int, body: str, written: StickyComment, log: StepLog) -> StickyComment | None:
    """Leave one comment, with the result that counts, whatever other runs write at the same time; None if unknown.

    GitHub has no lock: who has written looks again, as the last writer sees all. The oldest comment stays.
    Raises TakenError where the comment is another leg's of this run, and GitHubError.
    """
    client, ours = step.client, step.publication
    oldest = None
    for _ in range(MAX_CONFLICT_CHECKS):
        try:
            thread = read_thread(client, number, step.key, build_ownership_test(ours))
        except GitHubError as error:
            log.record(f"cannot check whether another run commented meanwhile: {error}")
            return None
        there = _list_own_comments(step, number, thread.own_comments, written)
        if not there:
            return None
        oldest, best = there[0], _find_newest(ours, there, thread.head_sha)
        counts = best or next((one for one in there if _is_own_result(ours, one)), None)
        if counts is not oldest:
            write_comment(client, number, step.key, counts.body if counts else body, oldest, build_ownership_test(ours))
        for one in there[1:]:
            delete_comment(client, number, one)
        if best is not None:
            return replace(oldest, state=best.state)
        if counts is oldest and len(there) == 1:
            return oldest
    return oldest


def _list_own_comments(
    step: Step, number: int, there: Sequence[StickyComment], written: StickyComment
) -> list[StickyComment]:
    """List this gate's comments, oldest first, without those of other legs, which delete their own."""
    by_age = sorted(there, key=lambda one: one.id)
    legs = [one for one in by_age if find_publisher(step.publication, one) is Publisher.ANOTHER_LEG]
    if legs and legs[0] is by_age[0]:
        if written.id != legs[0].id:
            delete_comment(step.client, number, written)
        raise build_name_taken_error(f"the comment `{step.key}`", "comment-key")
    return [one for one in by_age if one not in legs]


def build_ownership_test(ours: Publication) -> IsOwnComment:
    """Which comments with the key of a gate are its own."""
    return lambda state: state is None or state.gate in {None, ours.maker.gate}


def read_publication(ours: Publication, comment: StickyComment) -> Publication | None:
    """Read the result that a comment of this gate shows. Returns None if the comment holds no state."""
    state = comment.state
    if state is None:
        return None
    theirs = ResultProducer(gate=ours.maker.gate, run_id=state.run_id, attempt=state.attempt, leg=state.leg)
    return Publication(theirs, state.sha, state.judged)


def find_publisher(ours: Publication, comment: StickyComment) -> Publisher:
    """Who wrote a comment with our key."""
    theirs = read_publication(ours, comment)
    return classify_publisher(ours.maker, theirs.maker) if theirs else Publisher.OURS


def _is_own_result(ours: Publication, comment: StickyComment) -> bool:
    return read_publication(ours, comment) == ours


def _find_newest(ours: Publication, comments: Iterable[StickyComment], head: str) -> StickyComment | None:
    """Find the comment whose result takes precedence over this one, or None if this result does."""
    counting = [
        (compute_rank(theirs, head), one)
        for one in comments
        if (theirs := read_publication(ours, one)) is not None and is_superseding(theirs, ours, head)
    ]
    return max(counting, key=lambda pair: pair[0])[1] if counting else None


def find_newer_result(ours: Publication, comments: Iterable[StickyComment], head: str) -> NewerResult | None:
    """Find the result among the comments that takes precedence over this one, or return None."""
    best = _find_newest(ours, comments, head)
    if best is None or best.state is None:
        return None
    return NewerResult((best.state.judged or (best.state.run_id,))[0], best.state.outcome == Outcome.PASSED.value)
