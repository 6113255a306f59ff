"""`eval-gate demo`: runs bundled evals against a bundled local agent. No key, no network."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    context: typer.Context,
    good: Annotated[
        bool, typer.Option("--no-regression", help="Run the agent before its change: nothing regresses.")
    ] = False,
    keep: Annotated[
        str | None, typer.Option("--output-dir", metavar="DIR", help="Where results go.  [default: a new folder]")
    ] = None,
) -> None:
    """See the main job: run, baseline diff, summary, and the pull request comment as it would be posted.

    Starts the weather agent of examples/weather with a change that broke one thing and mended another, runs its
    evals against it, and compares with a stored run of the agent before the change. Exits 0 when it could show this.
    """
    from eval_gate.cli.runs.demo_run import show_demo

    raise typer.Exit(show_demo(context.obj, regress=not good, output_dir=keep))
