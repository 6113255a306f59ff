"""Run the same evals against several targets one after the other, and tabulate the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eval_gate import __version__
from eval_gate.cli.runs.single_run import RunCall, build_run_context, build_selection, load_call_config
from eval_gate.cli.terminal.console import Verbosity, print_output, print_progress
from eval_gate.cli.terminal.live_progress import create_progress
from eval_gate.cli.terminal.result_output import build_style, print_written_files
from eval_gate.cli.terminal.standard_streams import reserve_stdout
from eval_gate.config.outputs import ReportRequest
from eval_gate.config.settings import RunConfig
from eval_gate.engine.preparation.assignment import assign_targets
from eval_gate.engine.preparation.plan_builder import read_inputs
from eval_gate.errors import ExitCode, GateError, treat_errors_as_incomplete
from eval_gate.model.comparison import ReasonCode
from eval_gate.model.selection import CaseSelection
from eval_gate.process.signals import run_async
from eval_gate.reports.matrix import Matrix, TargetRun, build_matrix, check_formats, render_matrix, write_matrix
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from eval_gate.results.result_names import LATEST, RUN_NAME
from eval_gate.results.run_reader import find_first_scored, find_newest_passed, list_stored_runs
from eval_gate.session.evaluation import EvaluatedRun, evaluate_session
from eval_gate.session.reuse import allow_reuse
from eval_gate.session.session import Session, add_unlinked_results, open_session
from eval_gate.struct import replace
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.catalog import TargetCatalog
from eval_gate.targets.model.recording import Recording
from eval_gate.text.escape import to_console_line
from eval_gate.text.quoting import describe_name, quote_name
from eval_gate.text.safe_output import TextFormat

MAX_TARGETS: Final = 10
"""Columns that a table may have."""


def run_against_each(call: RunCall, names: Sequence[str]) -> ExitCode:
    """Run against each target, print and write the table; return the exit code. Raises GateError before the runs."""
    check_target_names(names)
    configs = {name: load_call_config(replace(call, flags=call.flags | {"target": name})) for name in names}
    config = configs[names[0]]
    folder = Path(config.output_dir)
    requests = _get_report_requests(call, config)
    shared = build_run_context()
    selection = build_selection(call, config, shared.root)
    reference, chosen = config.baseline, selection.chosen_cases
    by_name = {name: find_target_baseline(name, reference, folder, chosen) for name in names}
    baselines = {
        name: add_unlinked_results(one, config, shared, chosen, targets=(name, *(set(names) - {name})))
        for name, one in _add_renamed_baseline(by_name, reference, folder, chosen).items()
    }
    sessions = {
        name: allow_reuse(open_session(own, selection, shared, baselines[name])) for name, own in configs.items()
    }
    with reserve_stdout():
        run_async(check_sessions(sessions.values()))

    def run_one(name: str) -> EvaluatedRun:
        with reserve_stdout():
            return run_async(evaluate_session(sessions[name], create_progress(call.verbosity)))

    legs, began, interrupted = run_each(names, run_one, call.verbosity)
    matrix = build_matrix(legs, began, __version__, score_tolerance=config.policy.score_tolerance)
    code = interrupted or matrix.exit_code
    print_matrix(matrix, code, call.verbosity, as_json=call.as_json)
    with treat_errors_as_incomplete():
        print_written_files(write_matrix(requests, matrix, folder), call.verbosity)
    return code


def _get_report_requests(call: RunCall, config: RunConfig) -> tuple[ReportRequest, ...]:
    """Return the reports to write for several targets; refuse options that make sense for one run only."""
    if call.resume is not None:
        raise GateError(
            "invalid-target-comparison",
            "--resume continues one run, and each of several targets is a run",
            "name only the target of that run",
        )
    if config.exports:
        raise GateError(
            "invalid-target-comparison",
            "--export writes the results of one run, and each of several targets is a run",
            "export each run afterwards with `eval-gate report RUN --format agentv`",
        )
    if config.store is not None:
        raise GateError(
            "invalid-target-comparison",
            "a store has the baselines of one gate, and each of several targets has its own",
            "name one target, or omit `store`",
        )
    check_formats(config.reports)
    return config.reports


def check_target_names(names: Sequence[str]) -> None:
    """Raise GateError for targets that cannot stand in one table."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise GateError("invalid-target-comparison", f"{quote_name(twice)} is named twice", "name each target once")
    if len(names) > MAX_TARGETS:
        raise GateError(
            "invalid-target-comparison",
            f"{len(names)} targets are too many for one table",
            f"name at most {MAX_TARGETS} targets",
        )


def find_target_baseline(
    name: str, reference: str | None, output_dir: Path, chosen: Sequence[CaseSelection] = ()
) -> Baseline | NoBaseline:
    """Find the baseline of one target: its newest complete run in a folder of runs.

    With `latest`, the baseline is the newest run of the target that passed. `chosen` says which cases are
    chosen: a run of all of these is as good as a run of all cases.

    Raises GateError for any other baseline: one run cannot be the baseline of several targets.
    """
    if reference is None:
        return NOT_REQUESTED
    if reference == LATEST:
        return find_newest_passed(output_dir, target=name, chosen=chosen)
    folder = Path(reference)
    if not folder.is_dir() or (folder / RUN_NAME).exists():
        raise GateError(
            "invalid-target-comparison",
            f"one run cannot be the baseline of several targets: {describe_name(reference)}",
            "name a folder of runs, or latest, so that each target is compared with its own newest run",
        )
    own = [one for one in list_stored_runs(folder) if one.head.target.name == name]
    complete = [one for one in own if one.head.complete and one.head.covers(chosen)]
    if not complete:
        return NoBaseline(ReasonCode.NO_RUN_YET, f"{folder} contains no complete run of {describe_name(name)} yet")
    absent = NoBaseline(
        ReasonCode.NO_RUN_YET,
        f"{folder} contains no run of {describe_name(name)} in which half of the cases have a score yet",
    )
    return find_first_scored(complete, reference, own) or absent


def _add_renamed_baseline(
    by_name: Mapping[str, Baseline | NoBaseline], reference: str | None, folder: Path, chosen: Sequence[CaseSelection]
) -> Mapping[str, Baseline | NoBaseline]:
    """Give targets without a run the newest passed run of one no longer evaluated: they may have been renamed."""
    if reference != LATEST or not any(isinstance(one, Baseline) for one in by_name.values()):
        return by_name
    other = find_newest_passed(folder, chosen=chosen, but=by_name.keys())
    if isinstance(other, NoBaseline):
        return by_name
    never = {name for name, one in by_name.items() if isinstance(one, NoBaseline) and one.code == ReasonCode.NO_RUN_YET}
    return {name: other if name in never else one for name, one in by_name.items()}


def run_each(
    names: Sequence[str], run_one: Callable[[str], EvaluatedRun], verbosity: Verbosity
) -> tuple[list[TargetRun], str, ExitCode | None]:
    """Run one target after the other; return the legs, the start time, and the exit code of a signal, if any.

    An error in one run is reported with its target, and does not hide the results of the others.
    """
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    legs: list[TargetRun] = []
    interrupted = None
    for number, name in enumerate(names, start=1):
        if interrupted is not None:
            legs.append(TargetRun(name))
            continue
        if verbosity is not Verbosity.QUIET:
            print_progress(f"target {number} of {len(names)}: {to_console_line(name, 200)}")
        try:
            evaluated_run = run_one(name)
        except GateError as error:
            if number == 1:
                raise
            legs.append(TargetRun(name, problem=f"{error.message} ({error.hint})" if error.hint else error.message))
            continue
        interrupted = evaluated_run.interrupted
        legs.append(TargetRun(name, evaluated_run.run, str(evaluated_run.result_path)))
    return legs, began, interrupted


def print_matrix(matrix: Matrix, code: ExitCode, verbosity: Verbosity, *, as_json: bool = False) -> None:
    """Print the table and its heading on standard output, or all of it as JSON."""
    if as_json:
        print_output(render_matrix("json", matrix), TextFormat.JSON, end="")
        return
    print_output(render_matrix("console", matrix, build_style(verbosity)))
    print_output(f"{matrix.heading}   exit {int(code)}")


async def check_sessions(sessions: Iterable[Session]) -> None:
    """Raise GateError for invalid files or targets, without any request. Drafts, which no target gets, are named."""
    notices: dict[str, None] = {}
    for session in sessions:
        config, context = session.config, session.context
        inputs = await read_inputs(config, session.selection, context, offline=True)
        shared = BuildContext(context.environment, context.root, recording=Recording(config.recording))
        assign_targets(inputs.suites, TargetCatalog(config.target, shared), config)
        notices |= dict.fromkeys(inputs.draft_notices)
    for notice in notices:
        print_progress(f"warning: {to_console_line(notice)}")
