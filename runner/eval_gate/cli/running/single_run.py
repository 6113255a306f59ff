"""What happens when evals are run from a command line, from the configuration to the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from eval_gate.cli.options import options_given_by
from eval_gate.cli.terminal.console import Verbosity, hide_keys, say
from eval_gate.cli.terminal.output import print_result, say_written
from eval_gate.cli.terminal.progress import progress_for
from eval_gate.config.load import find_config, load_config, usual_evals
from eval_gate.config.selection import Selection
from eval_gate.config.settings import RunConfig
from eval_gate.engine.preparing.context import RunContext
from eval_gate.errors import ExitCode, GateError
from eval_gate.formats.discovery import chosen_paths
from eval_gate.process.ending import run_async
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rerun import rerun_command
from eval_gate.reports.words.waivers import accept_line
from eval_gate.session.failing import failing_cases
from eval_gate.session.git import git_facts
from eval_gate.session.keep import KeptRun, context_of, evaluate, report
from eval_gate.session.session import Session, open_session
from eval_gate.struct import FrozenStruct, replace


class RunCall(FrozenStruct):
    """One call of `run`: what was given on the command line."""

    flags: dict[str, JsonValue]
    config_file: Path | None
    selection: Selection
    resume: str | None
    as_json: bool
    verbosity: Verbosity
    failing: bool = False
    """Only the cases that failed when they were last run."""


def run_and_judge(call: RunCall) -> ExitCode:
    """Run, write, compare, print; the exit code. Raises GateError for what is wrong before anything was asked."""
    config = configuration(call)
    keys = failing_cases(Path(config.output_dir), config.target.name) if call.failing else None
    context = run_context(call.resume)
    session = open_session(config, replace(selection_of(call, config, context.root), keys=keys), context)
    kept = run_async(evaluate(session, progress_for(call.verbosity)))
    show_kept(call, session, kept)
    if kept.interrupted is not None:
        say(f"to go on: eval-gate run --resume {kept.run.run_id} with the same options")
    return kept.exit_code


def selection_of(call: RunCall, config: RunConfig, root: Path) -> Selection:
    """Which cases are chosen: paths that leave out eval files of the configuration are a choice. Raises GateError."""
    if "evals" not in call.flags:
        return call.selection
    usual = usual_evals(os.environ, call.config_file or find_config(root))
    return replace(call.selection, paths=chosen_paths(config.evals, usual, root))


def show_kept(call: RunCall, session: Session, kept: KeptRun) -> None:
    """The summary of a run, how to run its cases again or to accept them, and its reports."""
    arguments = map(hide_keys, _once(sys.argv[1:]))
    rerun = rerun_command([*arguments], kept.run, session.question.baseline)
    context = replace(
        context_of(session, kept),
        rerun_command=rerun.command if rerun else None,
        rerun_left_out=rerun.left_out if rerun else 0,
        accept_line=accept_line(kept.run, session.config.policy.accepted),
    )
    show(session, kept, context, call.verbosity, as_json=call.as_json)


def _once(arguments: Sequence[str]) -> list[str]:
    """The arguments of a call that runs cases by their names, once; behind `--` all are paths."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*(one for one in arguments[:end] if one != "--failing"), *arguments[end:]]


def refuse_together(call: RunCall, *, targets: int) -> None:
    """Raises GateError `options-conflict` for options that contradict `--failing`."""
    for other, given in [("--resume", call.resume is not None), ("--target given several times", targets > 1)]:
        if call.failing and given:
            raise GateError("options-conflict", f"--failing and {other} do not go together", "leave one of them out")


def configuration(call: RunCall) -> RunConfig:
    """Flags, variables and file as one. Raises GateError with every problem of all of them."""
    file = call.config_file or find_config(Path.cwd())
    config = load_config(call.flags, os.environ, file, hand=options_given_by())
    if file is not None and call.config_file is None and call.verbosity is Verbosity.VERBOSE:
        say(f"configuration: {file}")
    return config


def run_context(resume: str | None = None) -> RunContext:
    """What a run finds around it that somebody starts on a command line."""
    root = Path.cwd()
    return RunContext(root, os.environ, git_facts(os.environ, root), resume)


def show(
    session: Session, kept: KeptRun, context: ReportContext, verbosity: Verbosity, *, as_json: bool = False
) -> None:
    """Print the summary, then write the reports: one that cannot be written does not take it away."""
    print_result(kept.run, context, verbosity, as_json=as_json)
    say_written(report(session.config.files, kept, context), verbosity)
