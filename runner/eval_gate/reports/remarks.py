"""Cases that need a look, as remarks on their lines of the eval files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.formats.discovery import may_be_evals
from eval_gate.model.comparison import Outcome, RuleCode
from eval_gate.reports.links import path_in_repository
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.view import View
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import one_line

MAX_REMARKS: Final = 10
"""More are read by nobody, and the runner keeps no more of a kind in a step."""
MAX_WORDS: Final = 1_000


class Remark(FrozenStruct):
    """What is said on one line of an eval file; `line` counts from 1. `blocking`: it fails the gate.

    `file` is its path in the repository.
    """

    file: str
    line: int
    title: str
    message: str
    blocking: bool


class Remarks(FrozenStruct):
    """The worst of the remarks, and how many there are besides."""

    shown: tuple[Remark, ...] = ()
    left_out: int = 0


def remarks_of(view: View) -> Remarks:
    """The worst first, at most ten; only for eval files: a result may be forged, and names what it likes."""
    found = [
        replace(remark, file=path_in_repository(remark.file, view.context))
        for remark in _remarks(view)
        if may_be_evals(remark.file, view.context.evals)
    ]
    return Remarks(tuple(found[:MAX_REMARKS]), max(len(found) - MAX_REMARKS, 0))


def _remarks(view: View) -> Iterator[Remark]:
    failed = view.verdict.outcome is Outcome.FAIL
    yield from _rows(view.regressions, "Regression", blocking=failed)
    yield from _rows(view.suspected, "Suspected regression", blocking=failed)
    yield from _rows(view.must_pass, "Must pass", blocking=failed)
    yield from _rows(() if view.undecided else view.failing, "Failing case", blocking=failed)
    by_score = any(reason.code == RuleCode.SCORE_DROP for reason in view.verdict.reasons)
    yield from _rows(view.score_drops, "Score drop", blocking=failed and by_score)
    for group in view.errors_by_blame:
        yield from _rows(group.rows, group.title, blocking=False)
    yield from _rows(view.by_control, "Fails with the base branch's agent too", blocking=False)
    yield from _rows(view.main_broke, "Broken before this change", blocking=False)
    yield from _rows(view.not_decided, "Not decided", blocking=False)
    yield from _rows(view.unsettled, "Not sure", blocking=failed and view.flaky_blocks)


def _rows(rows: tuple[CaseRow, ...], word: str, *, blocking: bool) -> Iterator[Remark]:
    for row in rows:
        if row.location is not None and row.location.line > 0:
            change = f"{row.then} → {row.here}. " if row.then and row.here else ""
            if row.evidence:
                change = f"{row.why_words}. "
            reason = one_line(row.what or "", MAX_WORDS) or "no reason was given"
            message = one_line(f"{change}{reason}", MAX_WORDS)
            yield Remark(row.location.file, row.location.line, one_line(f"{word}: {row.label}", 200), message, blocking)
