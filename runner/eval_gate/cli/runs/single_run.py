"""Run evals from the command line: configuration, run, verdict, summary, exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from eval_gate.cli.options import find_option_source
from eval_gate.cli.terminal.console import Verbosity, hide_keys, print_message, print_progress
from eval_gate.cli.terminal.live_progress import create_progress
from eval_gate.cli.terminal.result_output import print_result, print_written_files
from eval_gate.cli.terminal.standard_streams import reserve_stdout
from eval_gate.config.loader import find_config, load_config, load_eval_paths
from eval_gate.config.selection import Selection
from eval_gate.config.settings import RunConfig
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import ExitCode, GateError
from eval_gate.formats.discovery import find_partial_selection
from eval_gate.model.case import CaseKey
from eval_gate.process.signals import run_async
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rerun_command import build_rerun_command
from eval_gate.reports.wording.waivers import build_waive_command
from eval_gate.session.evaluated_commit import find_git_facts
from eval_gate.session.evaluation import (
    EvaluatedRun,
    build_report_context,
    evaluate_session,
    store_baseline,
    write_run_reports,
)
from eval_gate.session.failing_cases import find_failing_cases
from eval_gate.session.reuse import allow_reuse
from eval_gate.session.session import Session, open_session
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import format_count, to_console_line


class RunCall(FrozenStruct):
    """Command line arguments of one `run`."""

    flags: dict[str, JsonValue]
    config_file: Path | None
    selection: Selection
    resume: str | None
    as_json: bool
    verbosity: Verbosity
    only_failing: bool = False
    """Only the cases that failed when they were last run."""


def run_and_decide(call: RunCall) -> ExitCode:
    """Run, store, compare and print; return the exit code. Raises GateError for problems found before the run."""
    config = load_call_config(call)
    keys = _find_failing_keys(call, config)
    context = build_run_context(call.resume)
    selection = replace(build_selection(call, config, context.root), keys=keys)
    session = allow_reuse(open_session(config, selection, context))
    with reserve_stdout():
        evaluation = run_async(evaluate_session(session, create_progress(call.verbosity)))
    show_run(call, session, evaluation)
    if evaluation.interrupted is not None:
        print_message(f"Next step: continue with eval-gate run --resume {evaluation.run.run_id} and the same options")
    return evaluation.exit_code


def _find_failing_keys(call: RunCall, config: RunConfig) -> frozenset[CaseKey] | None:
    """Find the cases of `--failing`, and say which waived failures are left out; None without the option."""
    if not call.only_failing:
        return None
    failing = find_failing_cases(Path(config.output_dir), config.target.name)
    if failing.waived and call.verbosity is not Verbosity.QUIET:
        them = "it" if len(failing.waived) == 1 else "them"
        count = format_count(len(failing.waived), "waived failure")
        print_progress(f"--failing leaves out {count}: {failing.waived_names} (--case runs {them})")
    return failing.keys


def build_selection(call: RunCall, config: RunConfig, root: Path) -> Selection:
    """Build the selection of cases; paths that omit eval files of the configuration select too. Raises GateError."""
    if "evals" not in call.flags:
        return call.selection
    usual = load_eval_paths(os.environ, call.config_file or find_config(root))
    return replace(call.selection, paths=find_partial_selection(config.evals, usual, root))


def show_run(call: RunCall, session: Session, evaluated_run: EvaluatedRun) -> None:
    """Print the summary of a run, the commands that re-run or waive its cases, and its reports."""
    arguments = map(hide_keys, _drop_failing_option(sys.argv[1:]))
    rerun = build_rerun_command([*arguments], evaluated_run.run, session.gate_inputs.baseline)
    context = replace(
        build_report_context(session, evaluated_run),
        rerun_command=rerun.command if rerun else None,
        rerun_omitted_count=rerun.omitted_count if rerun else 0,
        waive_command=build_waive_command(evaluated_run.run, session.config.policy.waivers),
    )
    show_results(session, evaluated_run, context, call.verbosity, as_json=call.as_json)


def _drop_failing_option(arguments: Sequence[str]) -> list[str]:
    """Remove `--failing`, since the re-run command names its cases; all arguments after `--` are paths and stay."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*(one for one in arguments[:end] if one != "--failing"), *arguments[end:]]


def check_failing_options(call: RunCall, *, targets: int) -> None:
    """Check that no option contradicts `--failing`.

    Raises GateError `conflicting-options` for `--resume` and for several targets.
    """
    for other, is_used in [("--resume", call.resume is not None), ("several --target options", targets > 1)]:
        if call.only_failing and is_used:
            raise GateError("conflicting-options", f"--failing cannot be combined with {other}", "omit one of them")


def load_call_config(call: RunCall) -> RunConfig:
    """Load the configuration from options, variables and file.

    Raises GateError with every problem of all of them.
    """
    file = call.config_file or find_config(Path.cwd())
    config = load_config(call.flags, os.environ, file, flag_source=find_option_source())
    if file is not None and call.config_file is None and call.verbosity is Verbosity.VERBOSE:
        print_message(f"configuration: {file}")
    return config


def build_run_context(resume: str | None = None) -> RunContext:
    """Build the run context of a run that is started on a command line."""
    root = Path.cwd()
    return RunContext(root, os.environ, find_git_facts(os.environ, root), resume)


def show_results(
    session: Session,
    evaluated_run: EvaluatedRun,
    context: ReportContext,
    verbosity: Verbosity,
    *,
    as_json: bool = False,
) -> None:
    """Print the summary, then write the reports, so that a report that cannot be written does not hide the summary."""
    print_result(evaluated_run.run, context, verbosity, as_json=as_json)
    print_written_files(write_run_reports(session.config.output_requests, evaluated_run, context), verbosity)
    if line := store_baseline(session, evaluated_run):
        print_message(to_console_line(line, 1_000))
