"""Publication of a stored run on the pull request of a job of GitLab, Azure DevOps or Bitbucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from eval_gate.ci import azure_devops, bitbucket, gitlab
from eval_gate.ci.job import find_ci_job
from eval_gate.ci.publication import PublicationError, Review, ReviewText, adapt_markdown
from eval_gate.cli.stored_runs.run_settings import find_results_folder
from eval_gate.cli.terminal.console import print_message
from eval_gate.errors import PAGES, ExitCode, GateError, format_suggestion
from eval_gate.model.result import RunResult
from eval_gate.reports.check_run import format_check_title, format_problem_title
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.console.summary import render_console
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_problem
from eval_gate.reports.view.report_view import build_view
from eval_gate.reports.wording.problems import render_error
from eval_gate.results.run_reader import read_run
from eval_gate.session.evaluated_commit import find_git_facts
from eval_gate.session.evaluation import get_exit_code
from eval_gate.text.escape import format_comment_marker, to_comment_key, to_console_line

_SYSTEMS: Final = {
    "gitlab": gitlab.describe_review,
    "azure": azure_devops.describe_review,
    "bitbucket": bitbucket.describe_review,
}
MAX_PLAIN: Final = 30_000
"""Characters of a comment without HTML; Bitbucket takes 32,768."""


def publish_run(to: str, reference: str, key: str, output_dir: str | None) -> ExitCode:
    """Publish a run, or why there is none, and return the exit code of the run. Raises GateError."""
    if to not in _SYSTEMS:
        allowed = f"allowed: {', '.join(_SYSTEMS)}"
        raise GateError("unknown-value", f'--to: there is no "{to}"{format_suggestion(to, _SYSTEMS)}', allowed)
    result: RunResult | GateError
    try:
        result = read_run(reference, find_results_folder(output_dir, reference))
        _require_commit(result)
    except GateError as error:
        result = error
        if error.code == "baseline-not-found":
            hint = "look at the log of the step that runs the evals"
            result = GateError("result-not-found", error.message, hint, exit_code=ExitCode.INCOMPLETE)
    try:
        review = _SYSTEMS[to](os.environ)
    except PublicationError as error:
        print_message(to_console_line(f"warning: not published: {error}"))
    else:
        job = find_ci_job(os.environ)
        text = build_text(review, job.target_branch if job else None, to_comment_key(key), result)
        for line in review.publish(text):
            print_message(to_console_line(line))
    if isinstance(result, GateError):
        raise result
    return get_exit_code(result, None)


def _require_commit(run: RunResult) -> None:
    """Refuse a run that an earlier job left in this folder."""
    facts = find_git_facts({}, Path.cwd())
    if run.git and run.git.sha and facts and facts.sha and run.git.sha != facts.sha:
        message = f"the run to publish is of {run.git.sha[:7]}, but {facts.sha[:7]} is checked out"
        raise GateError(
            "checkout-mismatch", message, "find out why this job made no run", exit_code=ExitCode.INCOMPLETE
        )


def build_text(review: Review, branch: str | None, key: str, result: RunResult | GateError) -> ReviewText:
    """Build comment and status of a run, or of the error in its place.

    `branch` is the target of the pull request, and `key` that of the gate.
    """
    context = ReportContext(
        comment_key=key,
        base_branch=branch,
        head_sha=review.sha,
        workspace_sha=result.git.sha if isinstance(result, RunResult) and result.git else None,
        run_url=review.run_url,
        errors_doc_url=f"{PAGES}/errors.md",
    )
    if isinstance(result, GateError):
        title, passed = format_problem_title(result.message, usage=result.exit_code is ExitCode.USAGE), False
        plain = "\n".join(render_error(result))
        markdown = render_problem(result, context, "inconclusive", as_comment=True)
    else:
        view = build_view(result, context)
        title, passed = format_check_title(view), get_exit_code(result, None) is ExitCode.PASSED
        plain, markdown = render_console(view, ConsoleStyle()), render_comment(view)
    name = "eval-gate" if key == "default" else f"eval-gate/{key}"
    if review.has_html:
        return ReviewText(adapt_markdown(markdown), format_comment_marker(key), title, passed, name)
    # an indented block, which nothing in it can end
    block = "\n".join(f"    {line}" for line in [title, "", *plain.splitlines()])
    marker = f"eval-gate:v1 key={key}"
    return ReviewText(f"{block[:MAX_PLAIN]}\n\n{marker}", marker, title, passed, name)
