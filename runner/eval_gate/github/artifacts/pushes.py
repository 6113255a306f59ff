"""What the run of the push before this one left, in the artifacts of the pull request's own runs.

Whether a run is of this repository's code, of this workflow and of a pull request is asked of GitHub. Which pull
request it was, when one branch had several, only the file can say: whoever may write to the branch may write it, and
with it nothing but that their own pull request looks worse (docs/baselines.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import quote

from eval_gate.errors import GateError
from eval_gate.github.artifacts.download import BadArchiveError, artifact_file
from eval_gate.github.artifacts.listed import Artifact, artifacts_of_run
from eval_gate.github.client import Client
from eval_gate.github.commits import ACTIONS, RunFacts
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model import limits
from eval_gate.results.archive import ArchiveError, read_one
from eval_gate.results.pushes import MAX_PUSHES_BYTES, PUSHES_NAME, Pushes, read_pushes
from eval_gate.struct import FrozenStruct, field

MAX_SOUGHT: Final = limits.PUSHES_SOUGHT


class WatchedChange(FrozenStruct):
    """A pull request, and the gate that wants to know what it saw of it before."""

    number: int
    branch: str
    """Its own, in this repository."""
    event: str
    workflow: str
    """The path of the workflow file."""
    names: tuple[str, ...]
    """What the artifact may be called; where a run has several of them, the later name first."""
    gate: str
    own_run_id: int


class EarlierPushes(FrozenStruct):
    """The pushes before this one, and what was seen and not taken, in words."""

    pushes: Pushes
    run_id: int | None = None
    """The run that left them; None where none did."""
    notes: list[str] = field(default_factory=list)


def remembered(client: Client, change: WatchedChange, temporary: Path | None) -> EarlierPushes:
    """What the newest earlier run of this pull request left; nothing where none did. Raises GitHubError.

    A file that is damaged, or of another pull request, is passed over for that of the run before.
    """
    found = EarlierPushes(Pushes(pull_request=change.number, gate=change.gate))
    for run in islice(_earlier_runs(client, change), MAX_SOUGHT):
        for artifact in artifacts_of_run(client, run.id, *reversed(change.names)):
            if artifact.expired:
                continue
            pushes = _pushes_in(client, artifact, temporary, found.notes)
            if pushes is None or (pushes.pull_request, pushes.gate) != (change.number, change.gate):
                continue
            return EarlierPushes(pushes, run.id, found.notes)
    return found


def _earlier_runs(client: Client, change: WatchedChange) -> Iterator[RunFacts]:
    """Runs of this workflow for the branch, newest first: of this repository's code, and begun before this run.

    One page is enough: a branch of the same name in forks fills no more than that.
    """
    path = f"/actions/workflows/{quote(PurePosixPath(change.workflow).name)}/runs"
    query = {"branch": change.branch, "event": change.event}
    doing = f"listing the runs of {change.branch}"[:120]
    runs = client.page(doing, path, RunFacts, permission=ACTIONS, query=query, key="workflow_runs")
    for run in sorted(runs, key=lambda one: one.id, reverse=True):
        mine = run.of_this_repository and run.head_branch == change.branch and run.event == change.event
        if mine and run.id < change.own_run_id:
            yield run


def _pushes_in(client: Client, artifact: Artifact, temporary: Path | None, notes: list[str]) -> Pushes | None:
    shown = f"artifact {artifact.id}"
    try:
        with artifact_file(client, artifact.id, artifact.digest, temporary) as file:
            kept = read_one(file, PUSHES_NAME, MAX_PUSHES_BYTES)
            return read_pushes(kept[1], shown) if kept is not None else None
    except (BadArchiveError, ArchiveError, GateError) as error:
        notes.append(f"{shown} cannot be used: {error.message if isinstance(error, GateError) else error}")
    except OSError as error:
        notes.append(f"{shown} could not be kept here: {error.strerror}")
    except GitHubError as error:
        if error.kind not in {FailureKind.GONE, FailureKind.NOT_FOUND}:
            raise
    return None
