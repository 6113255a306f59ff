"""`eval-gate demo`: runs bundled evals against a bundled local agent. No key, no network."""

from __future__ import annotations

import typer

from eval_gate.cli import options


def demo(
    context: typer.Context,
    good: bool = options.option(
        "Run the agent without its change, so that nothing regresses.", "--no-regression", default=False
    ),
    keep: str | None = options.option("Folder for results.  [default: a new folder]", "--output-dir", metavar="DIR"),
) -> None:
    """Run bundled evals against a bundled agent, and show the comparison and the pull request comment.

    Starts the weather agent of examples/weather with a change that breaks one case and fixes another, runs its evals,
    and compares them with a stored run of the agent without the change. Exits with 0 if it can show all of this.
    """
    from eval_gate.cli.runs.demo_run import show_demo

    raise typer.Exit(show_demo(context.obj, regress=not good, output_dir=keep))
