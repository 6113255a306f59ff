"""Artifacts of this run under names that gates share: an own one of an earlier attempt is replaced, no other is."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from eval_gate.action.log import Log
from eval_gate.action.precedence import Publisher, name_taken, publisher_of
from eval_gate.action.step import Step
from eval_gate.github.artifacts.download import BadArchiveError
from eval_gate.github.artifacts.service import ArtifactService, OwnArtifact, delete_own, fetch_own, find_own, reserve
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model.result import MadeBy
from eval_gate.struct import FrozenStruct


class Stored(FrozenStruct):
    """An artifact of this run that is there now."""

    name: str
    id: int


class ArtifactKind(FrozenStruct):
    """One sort of artifact of ours: the archive with the result, or the page."""

    words: str
    mime_type: str
    maker: Callable[[Path, OwnArtifact], MadeBy | None]
    """Who made one that was fetched into this file; None where it is none of this sort, or does not say."""


def service_of(step: Step) -> ArtifactService | None:
    """The artifact service of this job; None where there is none."""
    environment = step.environment
    if not environment.on_github or environment.results_url is None or environment.runtime_token is None:
        return None
    return ArtifactService(environment.results_url, environment.runtime_token, environment.retention_days)


class OutgoingArtifact(FrozenStruct):
    """A file that is to be an artifact."""

    file: Path
    on_name: Callable[[str], object] = lambda _: None
    """Told what it will be called, before anything of it is sent."""


def put_first(
    step: Step, service: ArtifactService, kind: ArtifactKind, names: Sequence[str], sending: OutgoingArtifact, log: Log
) -> Stored:
    """Store the file under the first of these names that is not another gate's. Raises GitHubError and TakenError."""
    for name in names:
        try:
            number = _put(step, service, kind, name, sending)
        except UnfinishedError as unfinished:
            if name == names[-1]:
                raise
            log.did(str(unfinished))
            continue
        if number is not None:
            log.did(f"{kind.words} stored as artifact {name} ({number})")
            return Stored(name, number)
        log.did(f"the artifact {name} of this run is another gate's")
    raise name_taken(f"the artifact {names[-1]}", "comment-key")


class UnfinishedError(GitHubError):
    """The name is taken in this run by an upload of an earlier attempt that never ended: nobody can use it any more."""

    def __init__(self, name: str) -> None:
        why = "an upload of an earlier attempt was not finished, and keeps the name"
        super().__init__(FailureKind.REFUSED, f"storing the artifact {name}"[:120], why)


def maker_of(step: Step, service: ArtifactService, kind: ArtifactKind, artifact: OwnArtifact) -> MadeBy | None:
    """Who made an artifact of this run; None where it is none of this sort, or does not say. Raises GitHubError."""
    with tempfile.TemporaryDirectory(dir=step.environment.temporary, prefix="eval-gate-") as folder:
        file = Path(folder) / "artifact"
        return kind.maker(file, artifact) if _fetched(step, service, artifact, file) else None


def is_ours(step: Step, name: str, maker: MadeBy) -> bool:
    """Whether an artifact of this name is this gate's own; raises TakenError where the name cannot be shared."""
    found = publisher_of(step.made_by, maker)
    chosen = len(step.artifact_names) == 1
    if found is Publisher.ANOTHER_LEG or (found is Publisher.ANOTHER_GATE and chosen):
        raise name_taken(f"the artifact {name}", "artifact-name" if chosen else "comment-key")
    return found is Publisher.OURS


def _put(step: Step, service: ArtifactService, sort: ArtifactKind, name: str, sending: OutgoingArtifact) -> int | None:
    """The id of the artifact; None where the name is another gate's. An earlier attempt's artifact is replaced."""

    def send() -> int:
        reserved = reserve(step.client, service, name, now=datetime.now(UTC), mime_type=sort.mime_type)
        sending.on_name(name)
        return reserved.fill(sending.file)

    try:
        return send()
    except GitHubError as error:
        taken = error.kind is FailureKind.CONFLICT
        there = find_own(step.client, service, name) if taken else None
        if taken and there is None and step.environment.run_attempt > 1:
            raise UnfinishedError(name) from error
        maker = maker_of(step, service, sort, there) if there else None
        if there is None or maker is None:
            raise  # somebody else's, such as an upload step's
    if not is_ours(step, name, maker):
        return None
    delete_own(step.client, service, there)
    return send()


def _fetched(step: Step, service: ArtifactService, artifact: OwnArtifact, to: Path) -> bool:
    """Whether it could be had; one that is larger than any of ours could not."""
    try:
        fetch_own(step.client, service, artifact, to)
    except BadArchiveError:
        return False
    return True
