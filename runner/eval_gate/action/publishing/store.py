"""Keeps the result as an artifact of this run: the next baseline, and what a relay publishes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from eval_gate.action.legs import Whose, taken, whose
from eval_gate.action.log import Log
from eval_gate.action.step import Step
from eval_gate.errors import GateError
from eval_gate.github.artifacts.download import BadArchiveError
from eval_gate.github.artifacts.own import OwnArtifact, delete_own, fetch_own, find_own
from eval_gate.github.artifacts.upload import Service, archive, upload
from eval_gate.github.failure import GitHubError, Kind
from eval_gate.model.result import MadeBy
from eval_gate.results.names import RUN_NAME
from eval_gate.results.read import read_archive
from eval_gate.targets.model.recording import RECORDING_NAME

CONFLICT_HINT = "another step of this run has stored something under this name: choose another `artifact-name`"
STEP_HINT = "an actions/upload-artifact step with `path: <result-path's folder>` does the same (docs/baselines.md)"


def store(step: Step, record: Path, log: Log) -> int | None:
    """Upload the run's folder; the artifact's id, or None. Where it cannot be stored the log says why.

    Raises TakenError where another leg of this run has stored its result under this name, and nothing else.
    """
    if not step.settings.upload or not step.plan.stores:
        return None
    service = _service(step)
    if service is None:
        log.commands.warning(f"The result was not stored: there is no artifact service here; {STEP_HINT}")
        log.trail.append("the result was not stored: there is no artifact service here")
        return None
    try:
        with tempfile.TemporaryDirectory(dir=step.environment.temporary, prefix="eval-gate-") as folder:
            packed = Path(folder) / "result.zip"
            archive(_files(record), packed)
            return _stored(step, service, packed, log)
    except OSError as error:
        log.commands.warning(f"The result was not stored: {error.strerror}; {STEP_HINT}")
        log.trail.append(f"the result was not stored: {error.strerror}")
    except GitHubError as error:
        hint = CONFLICT_HINT if error.kind is Kind.CONFLICT else STEP_HINT
        log.commands.warning(f"The result was not stored: {error}; {hint}")
        log.trail.append(f"the result was not stored: {error}")
    return None


def refuse_second(step: Step) -> None:
    """Raises TakenError where another leg of this run has stored its result already: before evals are run for nothing.

    Where the service does not answer, nothing is known, and the names are looked at again when they are used.
    """
    service = _service(step) if step.settings.upload and step.plan.stores else None
    if service is None:
        return
    try:
        for name in step.artifact_names:
            there = find_own(step.client, service, name)
            maker = _maker(step, service, there) if there else None
            if maker is None or _ours(step, name, maker):
                return
    except (GitHubError, OSError):
        return


def _service(step: Step) -> Service | None:
    environment = step.environment
    if not environment.on_github or environment.results_url is None or environment.runtime_token is None:
        return None
    return Service(environment.results_url, environment.runtime_token, environment.retention_days)


def _stored(step: Step, service: Service, packed: Path, log: Log) -> int:
    """The id of the artifact under the first name that is not another gate's. Raises GitHubError and TakenError."""
    for name in step.artifact_names:
        number = _put(step, service, name, packed)
        if number is not None:
            log.did(f"result stored as artifact {name} ({number})")
            return number
        log.did(f"the artifact {name} of this run is another gate's")
    raise taken(f"the artifact {step.artifact_names[-1]}", "comment-key")


def _put(step: Step, service: Service, name: str, packed: Path) -> int | None:
    """The id of the artifact; None where the name is another gate's. An earlier attempt's artifact is replaced."""
    try:
        return upload(step.client, service, name, packed, now=datetime.now(UTC))
    except GitHubError as error:
        there = find_own(step.client, service, name) if error.kind is Kind.CONFLICT else None
        maker = _maker(step, service, there) if there else None
        if there is None or maker is None:
            raise  # somebody else's, such as an upload step's
    if not _ours(step, name, maker):
        return None
    delete_own(step.client, service, there)
    return upload(step.client, service, name, packed, now=datetime.now(UTC))


def _ours(step: Step, name: str, maker: MadeBy) -> bool:
    """Whether an artifact of this name is this gate's own; raises TakenError where the name cannot be shared."""
    found = whose(step.made_by, maker)
    chosen = len(step.artifact_names) == 1
    if found is Whose.ANOTHER_LEG or (found is Whose.ANOTHER_GATE and chosen):
        raise taken(f"the artifact {name}", "artifact-name" if chosen else "comment-key")
    return found is Whose.OURS


def _maker(step: Step, service: Service, artifact: OwnArtifact) -> MadeBy | None:
    """Who made an artifact of this run; None where it is no result of ours, or does not say."""
    with tempfile.TemporaryDirectory(dir=step.environment.temporary, prefix="eval-gate-") as folder:
        file = Path(folder) / "artifact.zip"
        try:
            fetch_own(step.client, service, artifact, file)
            return read_archive(file, f"artifact {artifact.id}").made_by
        except (BadArchiveError, GateError):
            return None


def _files(record: Path) -> Iterator[tuple[Path, str]]:
    """The record, what people read, and recorded answers; not the journal, which only a run in progress needs."""
    yield record, RUN_NAME
    recording = record.parent / RECORDING_NAME
    if recording.is_file() and not recording.is_symlink():
        yield recording, RECORDING_NAME
    for file in sorted(record.parent.iterdir()):
        if (
            file.is_file()
            and not file.is_symlink()
            and file != record
            and file.suffix in {".json", ".html", ".xml", ".md"}
        ):
            yield file, file.name
