"""`eval-gate action`: entry point of the GitHub Action."""

from __future__ import annotations

import typer

from eval_gate.cli import options


def action(
    *,
    on_host: bool = options.option(
        "Run without a container, with the tools of this machine.", "--on-host", default=False
    ),
) -> None:
    """Run as the GitHub Action: run the evals for the event, compare, publish, and exit with the verdict.

    The runner configures it with INPUT_… variables (action.yml lists all inputs) and the event. It is the entry point
    of the container and of `host/`. On your own machine, use `eval-gate run`.
    """
    import os

    from eval_gate.action.flow import run_action

    raise typer.Exit(run_action(os.environ, on_host=on_host))
