"""`eval-gate action` and `eval-gate publish`: entry points of the GitHub Actions."""

from __future__ import annotations

import typer

from eval_gate.cli import options
from eval_gate.config.settings import SETTINGS


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


def publish(
    artifact_name: str | None = options.option(
        "Name of the artifact with the result.  [default: eval-gate-results]", metavar="NAME"
    ),
    fail_on: str | None = options.option(
        f"Conditions that fail the gate.  [default: {SETTINGS['failOn'].default_in_action}]", metavar="WHAT"
    ),
    comment: str | None = options.option(
        "Condition for a comment: always, changes, failures or never.  [default: always]", metavar="MODE"
    ),
    comment_key: str | None = options.option("Key that distinguishes the comments of several gates.", metavar="KEY"),
    check_run: str | None = options.option(
        "Name of the check run; empty for none.  [default: eval-gate]", metavar="NAME"
    ),
) -> None:
    """Publish the result of a pull request from a fork, as the second stage in a workflow_run workflow.

    Reads the result that the pull request's own run stored as an artifact, decides the gate again, and writes the
    comment and the check run with this job's token (GITHUB_TOKEN). Runs no code of the pull request. If it published,
    it exits with 0 whatever the verdict, which is on the pull request. Further settings are those of the action, as
    INPUT_… variables.
    """
    import os

    from eval_gate.action.flow import run_publish

    values = {
        "artifact-name": artifact_name,
        "fail-on": fail_on,
        "comment": comment,
        "comment-key": comment_key,
        "check-run": check_run,
    }
    inputs = {f"INPUT_{name.upper()}": value for name, value in values.items() if value is not None}
    raise typer.Exit(run_publish({**os.environ, **inputs}))
