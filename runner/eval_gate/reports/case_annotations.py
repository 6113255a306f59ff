"""Annotations on the lines of eval files, for cases that need attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.errors import ExitCode
from eval_gate.formats.discovery import may_be_eval_file
from eval_gate.model.comparison import RuleCode
from eval_gate.reports.links import is_in_other_repository, to_repository_path
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.view.rows import CaseRow
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import to_one_line
from eval_gate.text.quoting import capitalize_first

MAX_ANNOTATIONS: Final = 10
"""Maximum annotations: GitHub keeps ten of each level for a step."""
MAX_ANNOTATION_TEXT: Final = 1_000


class CaseAnnotation(FrozenStruct):
    """Annotation on one line of an eval file; `line` counts from 1, `blocking` means it fails the gate.

    `file` is its path in the repository.
    """

    file: str
    line: int
    title: str
    message: str
    blocking: bool


class CaseAnnotations(FrozenStruct):
    """The most important annotations of a run, and how many were omitted."""

    items: tuple[CaseAnnotation, ...] = ()
    omitted_count: int = 0


def build_annotations(view: ReportView) -> CaseAnnotations:
    """Build at most ten annotations for eval files, the most severe first, and count those left out.

    Other files get no annotation, because a run result may be forged and can name any file.
    """
    annotations = [
        replace(remark, file=to_repository_path(remark.file, view.context))
        for remark in _iter_annotations(view)
        if may_be_eval_file(remark.file, view.context.evals)
        if not is_in_other_repository(remark.file, view.context)  # GitHub refuses a path that the commit does not have
    ]
    return CaseAnnotations(tuple(annotations[:MAX_ANNOTATIONS]), max(len(annotations) - MAX_ANNOTATIONS, 0))


def _iter_annotations(view: ReportView) -> Iterator[CaseAnnotation]:
    failed = view.verdict.exit_code is ExitCode.FAILED
    yield from _annotate_rows(view, view.regressions, "Regression", blocking=failed)
    yield from _annotate_rows(view, view.suspected, "Regression, not re-run", blocking=failed)
    yield from _annotate_mistakes(view)
    yield from _annotate_rows(view, view.must_pass, "Must-pass case failed", blocking=failed)
    yield from _annotate_rows(view, () if view.is_inconclusive else view.failing, "Failing case", blocking=failed)
    by_score = any(reason.code == RuleCode.SCORE_DROP for reason in view.verdict.reasons)
    yield from _annotate_rows(view, view.score_drops, "Score drop", blocking=failed and by_score)
    for group in view.errors_by_kind:
        yield from _annotate_rows(view, group.rows, group.title, blocking=False)
    yield from _annotate_rows(view, view.base_agent_failures, "Fails with the base agent too", blocking=False)
    yield from _annotate_rows(view, view.broken_on_main, "Broken before this change", blocking=False)
    yield from _annotate_rows(view, view.unconfirmed, capitalize_first(view.missing_evidence_title), blocking=False)
    yield from _annotate_rows(view, view.inconclusive_cases, "Inconclusive", blocking=failed and view.flaky_blocks)


def _annotate_mistakes(view: ReportView) -> Iterator[CaseAnnotation]:
    for key, case in view.run.iter_cases():
        title = to_one_line(f"Mistake in the eval file: {key.case_id}", 200)
        for one in (one for one in case.mistakes if one.location.line > 0):
            message = to_one_line(one.message, MAX_ANNOTATION_TEXT)
            yield CaseAnnotation(one.location.file, one.location.line, title, message, blocking=False)


def _annotate_rows(
    view: ReportView, rows: tuple[CaseRow, ...], word: str, *, blocking: bool
) -> Iterator[CaseAnnotation]:
    for row in rows:
        if row.location is not None and row.location.line > 0:
            baseline, current = row.baseline_result, row.current_result
            change = f"{baseline} → {current}. " if baseline and current else ""
            if row.evidence:
                change = f"{row.evidence_sentences} "
            reason = row.shorten_failure(max(MAX_ANNOTATION_TEXT - len(change), 1)) or "no reason given"
            reason = capitalize_first(reason) if row.failed_turn else reason
            message = to_one_line(f"{change}{reason}", MAX_ANNOTATION_TEXT)
            if blocking and view.advice and row.case and view.advice.is_about(row.case):
                message += f". Next step: {view.advice.next_step}"
            yield CaseAnnotation(
                row.location.file, row.location.line, to_one_line(f"{word}: {row.label}", 200), message, blocking
            )
