"""`eval-gate action` and `eval-gate publish`: entry points of the GitHub Actions."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.config.settings import SETTINGS


def action(
    *,
    on_host: Annotated[
        bool, typer.Option("--on-host", help="Without a container: re-runs may use what is installed here.")
    ] = False,
) -> None:
    """Be the GitHub Action: plan by the event, run, compare with the baseline, publish, exit by the verdict.

    Configured by INPUT_… variables, as the runner sets them (action.yml lists all inputs), and by the event. Meant to
    be the entry of the container, and of `host/`; on your own machine use `eval-gate run`.
    """
    import os

    from eval_gate.action.flow import run_action

    raise typer.Exit(run_action(os.environ, on_host=on_host))


def publish(
    artifact_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The artifact with the result.  [default: eval-gate-results]")
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="WHAT", help=f"What fails the gate.  [default: {SETTINGS['failOn'].default_in_action}]"),
    ] = None,
    comment: Annotated[
        str | None, typer.Option(metavar="MODE", help="always, changes, failures or never.  [default: always]")
    ] = None,
    comment_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="What tells comments of several gates apart.")
    ] = None,
    check_run: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the check run; empty for none.  [default: eval-gate]")
    ] = None,
) -> None:
    """Publish the result of a pull request from a fork: the second stage, in a workflow_run workflow.

    Reads the result that the pull request's own run left as an artifact, judges it anew, and writes the comment and
    the check run with this job's token (GITHUB_TOKEN). Runs no code of the pull request. Exits 0 when it published,
    whatever the verdict: that is on the pull request. The other settings are those of the action, as INPUT_… variables.
    """
    import os

    from eval_gate.action.flow import run_publish

    given = {
        "artifact-name": artifact_name,
        "fail-on": fail_on,
        "comment": comment,
        "comment-key": comment_key,
        "check-run": check_run,
    }
    inputs = {f"INPUT_{name.upper()}": value for name, value in given.items() if value is not None}
    raise typer.Exit(run_publish({**os.environ, **inputs}))
