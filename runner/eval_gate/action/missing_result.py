"""Whether a gate ran where a baseline is sought and left a result that is gone: deleting it must not hide what passed.

Whoever has `actions: write` can delete artifacts and runs, and nobody can delete a check run. So where no baseline is
found, the gate's own check run on the base, or on a commit shortly before it, says that there was one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from eval_gate.action.log import Log
from eval_gate.action.publishing.check import published_by
from eval_gate.action.step import Step
from eval_gate.github.artifacts.listed import BaselineSearch, artifacts_of_run, why_not_trusted
from eval_gate.github.checks import checks_on
from eval_gate.github.commits import workflow_run
from eval_gate.github.failure import GitHubError, if_there
from eval_gate.results.baseline import NoBaseline
from eval_gate.struct import replace

MAX_COMMITS: Final = 5
"""Commits whose check runs are looked at: the base, and its first parents."""


def confirm_absence(
    step: Step, absent: NoBaseline, wanted: BaselineSearch, commits: Iterable[str], log: Log
) -> NoBaseline:
    """The same, or that there was a result at one of these commits, which is gone: then nothing passes without it.

    Where the check runs cannot be read, only the words say so: a gate that was never run has none either.
    """
    settings, environment = step.settings, step.environment
    nothing_stored = settings.upload and not environment.on_github  # a server without artifacts keeps no result
    if absent.unavailable or absent.code != "no-artifact" or settings.check_run is None or nothing_stored:
        return absent
    try:
        lost = next((found for sha in commits if (found := _lost_run(step, wanted, sha)) is not None), None)
    except GitHubError as error:
        log.did(f"whether a result was deleted is not known: {error}")
        return replace(absent, reason=f"{absent.reason} (whether one was deleted is not known: no check run is shown)")
    if lost is None:
        return absent
    run_id, sha = lost
    why = f"the gate ran on {sha[:7]} of {wanted.branch} (run {run_id}), and its result is gone: deleted, or not stored"
    return replace(absent, reason=f"{why}; run the workflow on {wanted.branch} again", unavailable=True)


def _lost_run(step: Step, wanted: BaselineSearch, sha: str) -> tuple[int, str] | None:
    """The run that wrote the gate's check on this commit, and the commit, where no artifact of that run is there."""
    for check in checks_on(step.client, sha):
        shown = published_by(check)
        if (
            shown is None
            or shown.maker.run_id == wanted.own_run_id
            or not _is_this_gate(step, wanted, shown.maker.gate)
        ):
            continue
        run_id = shown.maker.run_id
        run = if_there(partial(workflow_run, step.client, run_id))
        if run is None:  # the whole run was deleted
            return run_id, sha
        if not why_not_trusted(run, wanted) and not artifacts_of_run(step.client, run_id, *wanted.names):
            return run_id, sha
    return None


def _is_this_gate(step: Step, wanted: BaselineSearch, gate: str) -> bool:
    """Whether the signature of a check run is this gate's; of a relay's run the job may have another name."""
    if gate in {step.gate_in(workflow) for workflow in (step.environment.workflow_path, *wanted.workflows)}:
        return True
    workflow = PurePosixPath(step.plan.baseline.workflow).name
    return step.plan.relayed_run is not None and bool(workflow) and gate.startswith(f"{workflow}.")
