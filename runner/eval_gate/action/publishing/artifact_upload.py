"""Upload of artifacts under shared names: replace those of this gate's earlier attempts only."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from eval_gate.action.precedence import Publisher, build_name_taken_error, classify_publisher
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.github.artifacts.artifact_service import (
    ArtifactService,
    OwnArtifact,
    delete_own_artifact,
    fetch_own_artifact,
    find_own_artifact,
    reserve_artifact,
)
from eval_gate.github.artifacts.download import BadArchiveError
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model.result import ResultProducer
from eval_gate.struct import FrozenStruct


class StoredArtifact(FrozenStruct):
    """Artifact of this run that was stored."""

    name: str
    id: int


class ArtifactKind(FrozenStruct):
    """Kind of artifact: the result archive or the report page."""

    label: str
    mime_type: str
    read_maker: Callable[[Path, OwnArtifact], ResultProducer | None]
    """Who made one that was fetched into this file; None where it is none of this sort, or does not say."""


def find_artifact_service(step: Step) -> ArtifactService | None:
    """Return the artifact service of this job, or None if it has none."""
    environment = step.environment
    if not environment.is_github_cloud or environment.results_url is None or environment.runtime_token is None:
        return None
    return ArtifactService(environment.results_url, environment.runtime_token, environment.retention_days)


class OutgoingArtifact(FrozenStruct):
    """File to upload as an artifact."""

    file: Path
    on_name: Callable[[str], object] = lambda _: None
    """Told what it will be called, before anything of it is sent."""


def upload_first_free(
    step: Step,
    service: ArtifactService,
    kind: ArtifactKind,
    names: Sequence[str],
    sending: OutgoingArtifact,
    log: StepLog,
) -> StoredArtifact:
    """Store the file under the first of these names that is not another gate's. Raises GitHubError, NameTakenError."""
    for name in names:
        try:
            number = _upload_named(step, service, kind, name, sending)
        except UnfinishedUploadError as unfinished:
            if name == names[-1]:
                raise
            log.record(str(unfinished))
            continue
        if number is not None:
            log.record(f"{kind.label} stored as artifact {name} ({number})")
            return StoredArtifact(name, number)
        log.record(f"the artifact {name} of this run belongs to another gate")
    raise build_name_taken_error(f"the artifact {names[-1]}", "comment-key")


class UnfinishedUploadError(GitHubError):
    """Error for a name blocked by an unfinished upload of an earlier attempt."""

    def __init__(self, name: str) -> None:
        why = "an unfinished upload of an earlier attempt blocks the name"
        super().__init__(FailureKind.REFUSED, f"storing the artifact {name}"[:120], why)


def find_maker(
    step: Step, service: ArtifactService, kind: ArtifactKind, artifact: OwnArtifact
) -> ResultProducer | None:
    """Who made an artifact of this run; None where it is none of this sort, or does not say. Raises GitHubError."""
    with tempfile.TemporaryDirectory(dir=step.environment.temporary_folder, prefix="eval-gate-") as folder:
        file = Path(folder) / "artifact"
        return kind.read_maker(file, artifact) if _try_fetch(step, service, artifact, file) else None


def is_own_artifact(step: Step, name: str, maker: ResultProducer) -> bool:
    """Whether an artifact of this name is this gate's own; raises NameTakenError where it cannot be shared."""
    found = classify_publisher(step.maker, maker)
    chosen = len(step.artifact_names) == 1
    if found is Publisher.ANOTHER_LEG or (found is Publisher.ANOTHER_GATE and chosen):
        raise build_name_taken_error(f"the artifact {name}", "artifact-name" if chosen else "comment-key")
    return found is Publisher.OURS


def _upload_named(
    step: Step, service: ArtifactService, sort: ArtifactKind, name: str, sending: OutgoingArtifact
) -> int | None:
    """Upload, replacing this gate's artifact of an earlier attempt; None if the name belongs to another gate."""

    def send() -> int:
        reserved = reserve_artifact(step.client, service, name, now=datetime.now(UTC), mime_type=sort.mime_type)
        sending.on_name(name)
        return reserved.upload_file(sending.file)

    try:
        return send()
    except GitHubError as error:
        taken = error.kind is FailureKind.CONFLICT
        there = find_own_artifact(step.client, service, name) if taken else None
        if taken and there is None and step.environment.run_attempt > 1:
            raise UnfinishedUploadError(name) from error
        maker = find_maker(step, service, sort, there) if there else None
        if there is None or maker is None:
            raise  # somebody else's, such as an upload step's
    if not is_own_artifact(step, name, maker):
        return None
    delete_own_artifact(step.client, service, there)
    return send()


def _try_fetch(step: Step, service: ArtifactService, artifact: OwnArtifact, to: Path) -> bool:
    """Whether it could be had; one that is larger than any of ours could not."""
    try:
        fetch_own_artifact(step.client, service, artifact, to)
    except BadArchiveError:
        return False
    return True
