"""What became of the regressions since the result before this one of the same pull request."""

from __future__ import annotations

from eval_gate.model.comparison import CaseClass
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.facts import changes_that_count
from eval_gate.reports.links import digest_of
from eval_gate.text.escape import one_line


def since_words(run: RunResult, context: ReportContext) -> str | None:
    """`Since your last push: 2 mended, 1 new`; None where nothing changed, or nothing is known.

    A case is mended when it was a regression and passes now. One that is gone, accepted or not sure is neither.
    """
    before = context.regressed_before
    if before is None or run.comparison is None:
        return None
    now = {one.key for one in changes_that_count(run, CaseClass.REGRESSION)}
    mended = sum(case.passed and key not in now and digest_of(key) in before for key, case in run.cases())
    new = sum(digest_of(key) not in before for key in now)
    said = [f"{number} {word}" for number, word in ((mended, "mended"), (new, "new")) if number]
    since = f"`{one_line(context.regressed_at)[:7]}`" if context.regressed_at else "your last push"
    return f"Since {since}: {', '.join(said)}" if said else None
