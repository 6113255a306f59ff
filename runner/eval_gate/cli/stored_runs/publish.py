"""`eval-gate publish`: publishes a result of an earlier step or job on the pull request."""

from __future__ import annotations

import typer

from eval_gate.cli import options
from eval_gate.config.settings import SETTINGS


def publish(
    run: str | None = options.argument(
        "RUN", "With --to: run id, results file, run folder, zip, or latest (the newest, default).", default=None
    ),
    to: str | None = options.option(
        "Publish a run of this job on a merge request or pull request, and exit with the verdict: gitlab, azure or "
        "bitbucket.",
        metavar="SYSTEM",
    ),
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
    output_dir: str | None = options.RESULTS_DIR,
) -> None:
    """Publish a finished result on the pull request: one comment, updated by later runs, and a status.

    With --to it publishes a run of GitLab CI, Azure Pipelines or Bitbucket Pipelines, and exits with the run's exit
    code. A failed publication is a warning. The token is a variable: GITLAB_TOKEN, SYSTEM_ACCESSTOKEN or
    BITBUCKET_TOKEN.

      eval-gate publish --to gitlab

    Without --to, it is the second stage for a pull request from a fork in a workflow_run workflow of GitHub. It reads
    the result that the pull request's own run stored as an artifact, decides the gate again, and writes the comment
    and the check run with this job's token (GITHUB_TOKEN). Runs no code of the pull request. If it published, it exits
    with 0 whatever the verdict, which is on the pull request. Further settings are those of the action, as INPUT_…
    variables.
    """
    import os

    from eval_gate.errors import GateError

    values = {"artifact-name": artifact_name, "fail-on": fail_on, "comment": comment, "check-run": check_run}
    inputs = {f"INPUT_{name.upper()}": value for name, value in values.items() if value is not None}
    if to is not None:
        from eval_gate.cli.stored_runs.review_publication import publish_run

        if inputs:
            option = next(iter(inputs)).removeprefix("INPUT_").lower()
            raise GateError("conflicting-options", f"--{option} cannot be combined with --to", f"omit --{option}")
        raise typer.Exit(publish_run(to, run or "latest", comment_key or "default", output_dir))
    if run or output_dir:
        option = "RUN" if run else "--output-dir"
        raise GateError("conflicting-options", f"{option} needs --to", "add --to gitlab, azure or bitbucket")
    from eval_gate.action.flow import run_publish

    inputs |= {"INPUT_COMMENT-KEY": comment_key} if comment_key is not None else {}
    raise typer.Exit(run_publish({**os.environ, **inputs}))
