"""What happens when evals are run from a command line, from the configuration to the exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from eval_gate.cli.console import Verbosity, say
from eval_gate.cli.output import print_result, say_written
from eval_gate.cli.progress import progress_for
from eval_gate.config.load import find_config, load_config
from eval_gate.config.settings import RunConfig, Selection
from eval_gate.errors import ExitCode
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rerun import rerun_command
from eval_gate.reports.words.accepting import accept_line
from eval_gate.session.git import git_facts
from eval_gate.session.keep import Kept, context_of, evaluate, report
from eval_gate.session.session import Around, Session, open_session


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of `run`: what was given on the command line."""

    flags: dict[str, JsonValue]
    config_file: Path | None
    selection: Selection
    resume: str | None
    as_json: bool
    verbosity: Verbosity


def run_and_judge(asked: Asked) -> ExitCode:
    """Run, write, compare, print; the exit code. Raises GateError for what is wrong before anything was asked."""
    session = open_session(configuration(asked), asked.selection, around(asked.resume))
    kept = asyncio.run(evaluate(session, progress_for(asked.verbosity)))
    rerun = rerun_command(sys.argv[1:], kept.run, session.question.baseline)
    context = replace(
        context_of(session, kept),
        rerun_command=rerun.command if rerun else None,
        rerun_left_out=rerun.left_out if rerun else 0,
        accept_line=accept_line(kept.run, session.config.policy.accepted),
    )
    show(session, kept, context, asked.verbosity, as_json=asked.as_json)
    if kept.interrupted is not None:
        say(f"to go on: eval-gate run --resume {kept.run.run_id} with the same options")
    return kept.exit_code


def configuration(asked: Asked) -> RunConfig:
    """Flags, variables and file as one. Raises GateError with every problem of all of them."""
    file = asked.config_file or find_config(Path.cwd())
    config = load_config(asked.flags, os.environ, file)
    if file is not None and asked.config_file is None and asked.verbosity is Verbosity.VERBOSE:
        say(f"configuration: {file}")
    return config


def around(resume: str | None = None) -> Around:
    """What a run finds around it that somebody starts on a command line."""
    root = Path.cwd()
    return Around(root, os.environ, git_facts(os.environ, root), resume)


def show(session: Session, kept: Kept, context: ReportContext, verbosity: Verbosity, *, as_json: bool = False) -> None:
    """Print the summary, then write the reports: one that cannot be written does not take it away."""
    print_result(kept.run, context, verbosity, as_json=as_json)
    say_written(report(session, kept, context), verbosity)
