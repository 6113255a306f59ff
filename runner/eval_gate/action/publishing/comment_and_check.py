"""Comment and check run, at the same time; who looks at them finds the same as if one were written after the other."""

from __future__ import annotations

from eval_gate.action.log import Log
from eval_gate.action.publishing.check import CheckDraft, check
from eval_gate.action.publishing.comment import Draft, comment_at, place_for
from eval_gate.action.step import Step
from eval_gate.reports.context import ReportContext


def comment_and_check(
    step: Step, draft: Draft, check_draft: CheckDraft, context: ReportContext, log: Log
) -> tuple[str | None, str | None]:
    """The addresses of both, None for what there is not. The log says what is lost.

    Raises TakenError where one of them is another leg's of this run: where it is the comment, no check is written.
    """
    place = log.begin(lambda own: place_for(step, draft, own), "where to comment")
    commenting = log.begin(lambda own: comment_at(place.peek(), step, draft, context, own), "the comment")
    checking = log.begin(lambda own: check(step, check_draft, own, first=place.peek), "the check run")
    place.result()
    return commenting.result(), checking.result()
