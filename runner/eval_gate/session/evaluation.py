"""Decide the verdict of a finished run, store it, and write its reports.

A file that cannot be written is then an incomplete run, and no mistake of usage: the exit code shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eval_gate.ci.job import find_write_objection
from eval_gate.config.outputs import ReportRequest
from eval_gate.errors import ExitCode, treat_errors_as_incomplete
from eval_gate.gate.verdict_decision import decide_verdict
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import write_reports
from eval_gate.results.baseline import NoBaseline
from eval_gate.results.baseline_store import BaselineStore, StoreError
from eval_gate.results.run_writer import write_history, write_result
from eval_gate.session.history_update import build_next_history
from eval_gate.session.run import ExecutedRun, RunObserver, make_run
from eval_gate.session.session import Session
from eval_gate.struct import FrozenStruct, replace


class EvaluatedRun(FrozenStruct):
    """A run with a verdict that is stored on disk."""

    run: RunResult
    result_path: Path
    interrupted: ExitCode | None = None
    """The exit code of the signal that ended it early, if one did."""

    @property
    def exit_code(self) -> ExitCode:
        """How the process ends."""
        return get_exit_code(self.run, self.interrupted)


def get_exit_code(run: RunResult, interrupted: ExitCode | None) -> ExitCode:
    """Return the exit code of the verdict, or that of the signal that ended the run early."""
    return interrupted or (run.verdict.exit_code if run.verdict else ExitCode.INCOMPLETE)


async def evaluate_session(session: Session, progress: RunObserver) -> EvaluatedRun:
    """Prepare and execute a run, decide its verdict, and store it. Raises GateError."""
    executed = await make_run(session, progress)
    with treat_errors_as_incomplete():
        stored = store_run(session, decide_verdict(executed.take_result(), session.gate_inputs), executed)
        return await warm_up_run(session, stored, progress)


async def warm_up_run(session: Session, stored: EvaluatedRun, progress: RunObserver) -> EvaluatedRun:
    """Fill the history of a stored run of the branch by warm-up rounds, and store their summary with the run."""
    if session.config.warm_up is None or not session.is_run_of_branch or stored.interrupted:
        return stored
    from eval_gate.session.warm_up import WarmUpRounds  # few runs need it

    with treat_errors_as_incomplete():
        rounds = WarmUpRounds(session, stored.run, progress)
        await rounds.make_all()
        if (summary := rounds.summary) is None:
            return replace(stored, interrupted=rounds.interrupted)
        write_history(session.folder, stored.run.run_id, rounds.history)
        result = write_result(session.folder, replace(stored.run, warm_up=summary))
    return EvaluatedRun(result.run, result.file, rounds.interrupted)


def store_baseline(session: Session, evaluated_run: EvaluatedRun) -> str | None:
    """Write a run into the store of baselines if it may, and say in a line what was done; None without a store."""
    place, run = session.config.store, evaluated_run.run
    if place is None:
        return None
    objection = find_write_objection(session.config, session.context.environment)
    if run.partial or run.shard or session.selection.chosen_cases:
        objection = objection or "it has some of the cases only"
    if evaluated_run.interrupted or not run.complete:
        objection = objection or "it is incomplete"
    if objection:
        return f"not stored: {objection}"
    try:
        return f"stored: {BaselineStore(place).write_run(run, evaluated_run.result_path)}"
    except StoreError as error:
        return f"warning: not stored, so later runs lack this one: {error}"


def store_run(session: Session, run: RunResult, executed: ExecutedRun | None = None) -> EvaluatedRun:
    """Write the run result, and the history that ends with it."""
    with treat_errors_as_incomplete():
        write_history(session.folder, run.run_id, build_next_history(run, session.gate_inputs.baseline))
        result = write_result(session.folder, run)
    return EvaluatedRun(result.run, result.file, executed.interrupted if executed else None)


def build_report_context(session: Session, evaluated_run: EvaluatedRun) -> ReportContext:
    """Build the report context of a session."""
    baseline = session.gate_inputs.baseline
    reason = baseline.reason if isinstance(baseline, NoBaseline) else None
    return ReportContext(
        result_path=str(evaluated_run.result_path),
        no_baseline_reason=reason,
        junit=session.config.junit_failures,
    )


def write_run_reports(
    requests: Sequence[ReportRequest], evaluated_run: EvaluatedRun, context: ReportContext
) -> tuple[Path, ...]:
    """Write these reports, and return their files in the same order."""
    with treat_errors_as_incomplete():
        return write_reports(requests, evaluated_run.run, context, evaluated_run.result_path.parent)
