"""`eval-gate measures`: shows which files the suites measure, and what a run would reuse."""

from __future__ import annotations

import typer

from eval_gate.cli import options
from eval_gate.cli.repository.validate import USED as CHECKED
from eval_gate.config.setting import Panel

USED = (*CHECKED, "outputDir")


def measures(
    context: typer.Context,
    config: str | None = options.CONFIG,
    *,
    explain: bool = options.option(
        "Also show the measured files, what changed, and what a run would reuse.", "--explain", default=False
    ),
    since: str | None = options.option(
        "Commit from which on files count as changed.  [default: where the branch left origin's default branch, or "
        "HEAD]",
        "--since",
        metavar="COMMIT",
        panel=Panel.RUN,
    ),
    **settings: object,
) -> None:
    """Show which files each suite measures (`measures` of the configuration), without calling anything.

    With --explain, changed files that no suite measures come first: a run does not see them.

      eval-gate measures --explain --since main

    Exit codes: 0 shown, 2 usage or configuration error.
    """
    from pathlib import Path

    from eval_gate.cli.repository.measured_changes import iter_changes, iter_suite_lines, plan_offline
    from eval_gate.cli.runs.single_run import RunCall, build_run_context, build_selection, load_call_config
    from eval_gate.cli.terminal.console import Verbosity, print_output
    from eval_gate.config.selection import Selection
    from eval_gate.process.signals import run_async
    from eval_gate.session.session import open_session

    flags = options.select_given_settings(settings)
    call = RunCall(flags, Path(config) if config else None, Selection(), None, as_json=False, verbosity=context.obj)
    loaded, run_context = load_call_config(call), build_run_context()
    session = open_session(loaded, build_selection(call, loaded, run_context.root), run_context)
    plan = run_async(plan_offline(session))
    if (state := plan.evaluated_state) is None:
        print_output("no suite measures files: a run executes all of them. Name files in `measures`")
        return
    every = context.obj is Verbosity.VERBOSE
    changes = iter_changes(session, plan, state, since, every=every) if explain else ()
    print_output("\n".join((*changes, *iter_suite_lines(session, state))))
