"""Judges a run that was made, and keeps it: the record first, so that nothing that fails later takes it away.

Something has been run by then. Whatever cannot be written is no mistake of usage any more, and the exit code says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from eval_gate.config.outputs import ReportRequest
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.judge import judge
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.render import write_reports
from eval_gate.results.baseline import NoBaseline
from eval_gate.results.write import write_ledger, write_result
from eval_gate.session.run import MadeRun, RunObserver, make_run
from eval_gate.session.run_ledger import ledger_after
from eval_gate.session.session import Session
from eval_gate.struct import FrozenStruct


class KeptRun(FrozenStruct):
    """A run that was judged and is on disk."""

    run: RunResult
    record: Path
    interrupted: ExitCode | None = None
    """The exit code of the signal that ended it early, if one did."""

    @property
    def exit_code(self) -> ExitCode:
        """How the process ends."""
        return exit_code_of(self.run, self.interrupted)


def exit_code_of(judged: RunResult, interrupted: ExitCode | None) -> ExitCode:
    """What the verdict says, unless a signal ended the run before it could be about everything."""
    return interrupted or (judged.verdict.exit_code if judged.verdict else ExitCode.INCOMPLETE)


@contextmanager
def after_asking() -> Iterator[None]:
    """From here on every GateError means that the run could not be completed."""
    try:
        yield
    except GateError as error:
        error.exit_code = ExitCode.INCOMPLETE
        raise


async def evaluate(session: Session, progress: RunObserver) -> KeptRun:
    """The whole use case: prepare, run, judge, keep. Raises GateError."""
    made = await make_run(session, progress)
    with after_asking():
        return keep(session, judge(made.handed_over(), session.question), made)


def keep(session: Session, judged: RunResult, made: MadeRun | None = None) -> KeptRun:
    """Write the record, and the ledger of earlier runs that ends with this one."""
    with after_asking():
        write_ledger(session.folder, judged.run_id, ledger_after(judged, session.question.baseline))
        written = write_result(session.folder, judged)
    return KeptRun(written.run, written.record, made.interrupted if made else None)


def context_of(session: Session, kept: KeptRun) -> ReportContext:
    """What a report may say beside the run, as far as every session knows it."""
    baseline = session.question.baseline
    reason = baseline.reason if isinstance(baseline, NoBaseline) else None
    return ReportContext(result_path=str(kept.record), no_baseline_reason=reason, junit=session.config.junit)


def report(wanted: Sequence[ReportRequest], kept: KeptRun, context: ReportContext) -> tuple[Path, ...]:
    """Write these reports; where they are, in that order."""
    with after_asking():
        return write_reports(wanted, kept.run, context, kept.record.parent)
