"""Comment and check run: one look at both, one decision whether this result counts, then both at the same time."""

from __future__ import annotations

from eval_gate.action.log import Log
from eval_gate.action.precedence import Overtaken, TakenError
from eval_gate.action.publishing.check import CheckDraft, CheckPlace, check_at, find_name
from eval_gate.action.publishing.comment import Draft, comment_at, find_place
from eval_gate.action.step import Step
from eval_gate.model.comparison import Outcome
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_problem
from eval_gate.struct import FrozenStruct


class Published(FrozenStruct):
    """The addresses of both, None for what there is not; and the result that counts, where it is not ours."""

    comment_url: str | None = None
    check_url: str | None = None
    overtaken: Overtaken | None = None


def comment_and_check(step: Step, draft: Draft, check_draft: CheckDraft, context: ReportContext, log: Log) -> Published:
    """Publish both where this result counts, each where no newer one of this gate is. The log says what is lost.

    A comment is what anybody may edit who may write: whether the check run is written, check runs decide alone. A
    comment that shows nothing newer does not say otherwise than a check run that does.
    Raises TakenError where one of them is another leg's of this run: no check is written beside a comment that is, but
    the comment is beside a check that is.
    Raises GateError `base-changed` as `find_place`.
    """
    finding = log.begin(lambda own: find_place(step, draft, own), "where to comment")
    naming = log.begin(lambda own: find_name(step, own), "the name of the check run")
    place, taken = finding.result(), None
    try:
        name = naming.result()
    except TakenError as error:
        name, taken = CheckPlace(), error
    if name.overtaken is not None and name.overtaken.contradicts(passed=draft.outcome is Outcome.PASS):
        draft = _draft_of(name.overtaken, draft)
    commenting = log.begin(lambda own: comment_at(place.thread, step, draft, context, own), "the comment")
    checking = log.begin(lambda own: check_at(name, step, check_draft, own), "the check run")
    comment, check = commenting.result(), checking.result()
    if taken is not None:
        raise taken
    overtaken = place.overtaken or name.overtaken or comment.overtaken or check.overtaken
    if overtaken is not None:
        log.superseded(overtaken.words)
    return Published(comment.url, check.url, overtaken)


def _draft_of(overtaken: Overtaken, draft: Draft) -> Draft:
    """The comment in place of one that would contradict the result that counts."""
    error = overtaken.error(passed=draft.outcome is Outcome.PASS)

    def render(context: ReportContext, _start: int) -> str:
        return render_problem(error, context, "could not decide", as_comment=True)

    return Draft(Outcome.ERROR, noteworthy=True, render=render)
