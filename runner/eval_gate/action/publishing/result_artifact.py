"""Artifacts of the run: result archive (next baseline, relay input) and report page.

Gates and attempts share a name: a gate replaces only its own artifact of an earlier attempt. The page is not packed,
because GitHub shows such a file in the browser with one click. The archive with the result has the page as well.
"""

from __future__ import annotations

import base64
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import MsgspecError
from msgspec import json as json_of

from eval_gate.action.precedence import NameTakenError, Publisher, build_name_taken_error, classify_publisher
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.action.step_plan import StepMode
from eval_gate.analysis.trend.trend_page import TREND_FILES, TREND_FOLDER
from eval_gate.errors import PAGES, GateError
from eval_gate.github.artifacts.artifact_service import (
    ARCHIVE_MIME_TYPE,
    ArtifactService,
    OwnArtifact,
    delete_own_artifact,
    fetch_own_artifact,
    find_own_artifact,
    reserve_artifact,
)
from eval_gate.github.artifacts.download import BadArchiveError
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model.base import decode_json
from eval_gate.model.result import ResultProducer
from eval_gate.results.archive import iter_result_files, write_archive
from eval_gate.results.run_reader import read_archived_head
from eval_gate.struct import FrozenStruct

CONFLICT_HINT = "another step of this run stored an artifact with this name: set another `artifact-name`"
UNFINISHED_HINT = "start a new run of the workflow, or set another `artifact-name`: a re-run cannot store it"
STEP_HINT = f"add an actions/upload-artifact step with `path: <folder of result-path>` ({PAGES}/baselines.md)"
_SIGNATURE: Final = re.compile(rb"<!-- eval-gate:page ([A-Za-z0-9+/=]{1,4000}) -->\s*\Z")
_SIGNATURE_BYTES: Final = 5_000
"""Bytes at the end of a page in which its signature is."""


class StoredArtifact(FrozenStruct):
    """Artifact of this run that was stored."""

    name: str
    id: int


def find_artifact_service(step: Step) -> ArtifactService | None:
    """Return the artifact service of this job, or None if it has none."""
    environment = step.environment
    if not environment.is_github_cloud or environment.results_url is None or environment.runtime_token is None:
        return None
    return ArtifactService(environment.results_url, environment.runtime_token, environment.retention_days)


class UnfinishedUploadError(GitHubError):
    """Error for a name blocked by an unfinished upload of an earlier attempt."""

    def __init__(self, name: str) -> None:
        why = "an unfinished upload of an earlier attempt blocks the name"
        super().__init__(FailureKind.REFUSED, f"storing the artifact {name}"[:120], why)


class _ArtifactKind(FrozenStruct):
    """Result archives or report pages of one step. The methods raise GitHubError."""

    step: Step
    service: ArtifactService
    label: str
    mime_type: str
    read_maker: Callable[[Path, OwnArtifact], ResultProducer | None]
    """Reads the producer from a fetched file; None if the file is of another kind or unsigned."""

    def upload_first_free(
        self, names: Sequence[str], file: Path, log: StepLog, on_name: Callable[[str], object] = lambda _: None
    ) -> StoredArtifact:
        """Store the file under the first of these names that is not another gate's. Raises NameTakenError.

        `on_name` is called with the artifact's name before the upload.
        """
        for name in names:
            try:
                number = self._upload_named(name, file, on_name)
            except UnfinishedUploadError as unfinished:
                if name == names[-1]:
                    raise
                log.record(str(unfinished))
                continue
            if number is not None:
                log.record(f"{self.label} stored as artifact {name} ({number})")
                return StoredArtifact(name, number)
            log.record(f"the artifact {name} of this run belongs to another gate")
        raise build_name_taken_error(f"the artifact {names[-1]}", "comment-key")

    def _upload_named(self, name: str, file: Path, on_name: Callable[[str], object]) -> int | None:
        """Upload, replacing this gate's artifact of an earlier attempt; None if the name belongs to another gate."""
        step, client = self.step, self.step.client

        def send() -> int:
            reserved = reserve_artifact(client, self.service, name, moment=datetime.now(UTC), mime_type=self.mime_type)
            on_name(name)
            return reserved.upload_file(file)

        try:
            return send()
        except GitHubError as error:
            is_taken = error.kind is FailureKind.CONFLICT
            stored = find_own_artifact(client, self.service, name) if is_taken else None
            if is_taken and stored is None and step.environment.run_attempt > 1:
                raise UnfinishedUploadError(name) from error
            maker = self.find_maker(stored) if stored else None
            if stored is None or maker is None:
                raise  # of another tool, such as an upload step
        if not self.is_own(name, maker):
            return None
        delete_own_artifact(client, self.service, stored)
        return send()

    def find_maker(self, artifact: OwnArtifact) -> ResultProducer | None:
        """Find the producer of an artifact of this run; None if it is too large, of another kind, or unsigned."""
        with tempfile.TemporaryDirectory(dir=self.step.environment.temporary_folder, prefix="eval-gate-") as folder:
            file = Path(folder) / "artifact"
            try:
                fetch_own_artifact(self.step.client, self.service, artifact, file)
            except BadArchiveError:
                return None
            return self.read_maker(file, artifact)

    def is_own(self, name: str, maker: ResultProducer) -> bool:
        """Whether an artifact of this name is this gate's own; raises NameTakenError where it cannot be shared."""
        publisher = classify_publisher(self.step.maker, maker)
        is_chosen = len(self.step.artifact_names) == 1
        if publisher is Publisher.ANOTHER_LEG or (publisher is Publisher.ANOTHER_GATE and is_chosen):
            raise build_name_taken_error(f"the artifact {name}", "artifact-name" if is_chosen else "comment-key")
        return publisher is Publisher.OURS


class ResultUpload:
    """Result upload in progress. Its name is known before it finishes; None if no artifact is stored."""

    def __init__(self, step: Step, record: Path, log: StepLog) -> None:
        self.name: Future[str | None] = Future()
        self.stored = log.start_work(lambda own: self._store_result(step, record, own), "storing the result")

    def _store_result(self, step: Step, record: Path, log: StepLog) -> StoredArtifact | None:
        try:
            return store_result(step, record, log, self._set_name)
        finally:
            self._set_name(None)

    def _set_name(self, name: str | None) -> None:
        if not self.name.done():  # an upload that is repeated names it again
            self.name.set_result(name)


def store_result(
    step: Step, record: Path, log: StepLog, on_name: Callable[[str], object] = lambda _: None
) -> StoredArtifact | None:
    """Upload the run's folder; the artifact, or None. Where it cannot be stored the log says why.

    `on_name` is called with the artifact's name as soon as that is certain.

    Raises NameTakenError where another leg of this run has stored its result under this name, and nothing else.
    """
    if not step.settings.upload or not step.plan.can_store:
        return None
    kind = _find_result_kind(step)
    if kind is None:
        log.warn("the result was not stored: no artifact service is available", STEP_HINT)  # noqa: PLE1205 (the log of a step)
        return None
    try:
        with tempfile.TemporaryDirectory(dir=step.environment.temporary_folder, prefix="eval-gate-") as folder:
            packed = Path(folder) / "result.zip"
            write_archive(_iter_files(record), packed)
            return kind.upload_first_free(step.artifact_names, packed, log, on_name)
    except OSError as error:
        log.warn(f"the result was not stored: {error.strerror}", STEP_HINT)
    except UnfinishedUploadError as error:
        log.warn(f"the result was not stored: {error}", UNFINISHED_HINT)
    except GitHubError as error:
        # where there is no room, another way to store it finds none either
        hint = {FailureKind.CONFLICT: CONFLICT_HINT, FailureKind.FULL: ""}.get(error.kind, STEP_HINT)
        log.warn(f"the result was not stored: {error}", hint)
    return None


def refuse_second_leg(step: Step) -> None:
    """Raise NameTakenError if another leg of this run has already stored its result.

    The check runs before the evals, to avoid a useless run. If the service does not answer, nothing is known; the
    names are checked again when they are used.
    """
    stores = step.settings.upload and step.plan.can_store and step.plan.mode is StepMode.GATE
    kind = _find_result_kind(step) if stores else None
    if kind is None:
        return
    with suppress(GitHubError, OSError):
        for name in step.artifact_names:
            stored = find_own_artifact(step.client, kind.service, name)
            maker = kind.find_maker(stored) if stored else None
            if maker is None or kind.is_own(name, maker):
                return


def _find_result_kind(step: Step) -> _ArtifactKind | None:
    service = find_artifact_service(step)
    return _ArtifactKind(step, service, "result", ARCHIVE_MIME_TYPE, _read_result_maker) if service else None


def _read_result_maker(file: Path, artifact: OwnArtifact) -> ResultProducer | None:
    try:
        return read_archived_head(file, f"artifact {artifact.id}").producer
    except GateError:
        return None


def _iter_files(record: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of the artifact with their names: those of the result, and the trend."""
    yield from iter_result_files(record)
    trend = record.parent / TREND_FOLDER
    for name in TREND_FILES if trend.is_dir() and not trend.is_symlink() else ():
        yield trend / name, f"{TREND_FOLDER}/{name}"


def store_page(
    step: Step, page: Callable[[], bytes], storing: ResultUpload | None, log: StepLog
) -> StoredArtifact | None:
    """Store the page next to the result, or alone if no result is stored. A failure is logged, and None returned.

    The upload begins when the result has its name; without a name for the result, no page is stored.
    An artifact that uses the name stays, also another leg's page: the other publications report such a conflict.
    """
    service = find_artifact_service(step) if step.settings.upload else None
    if service is None:
        return None
    if step.environment.is_emulated:
        _report_missing_page(log, "act stores only archives", storing)
        return None
    names = step.artifact_names
    if storing is not None:
        name = storing.name.result()
        if name is None:
            return None
        names = names[names.index(name) :]
    try:
        with tempfile.TemporaryDirectory(dir=step.environment.temporary_folder, prefix="eval-gate-") as folder:
            file = Path(folder) / "report.html"
            file.write_bytes(_sign_page(page(), step.maker))
            kind = _ArtifactKind(step, service, "page", "text/html", _read_page_maker)
            # without a dot behind the result's name: relays take `<name>.…` for another gate's
            return kind.upload_first_free([f"{name}-report.html" for name in names], file, log)
    except OSError as error:
        _report_missing_page(log, str(error.strerror), storing)
    except (GitHubError, NameTakenError) as error:
        _report_missing_page(log, str(error), storing)
    return None


def _report_missing_page(log: StepLog, why: str, storing: ResultUpload | None) -> None:
    """Log why the page is missing, and which artifact has it, unless storing the result failed too."""
    result = storing.stored.peek() if storing is not None else None
    if storing is None or result is not None:
        otherwise = f"; it is in the artifact {result.name}" if result is not None else ""
        log.record(f"the page was not stored separately: {why}{otherwise}")


def _sign_page(page: bytes, maker: ResultProducer) -> bytes:
    """Sign the page, so that a re-run replaces only its own; encoded, because no text may end the signature early."""
    packed = base64.b64encode(json_of.encode(maker))
    return page.rstrip() + b"\n<!-- eval-gate:page " + packed + b" -->\n"


def _read_page_maker(file: Path, _artifact: OwnArtifact) -> ResultProducer | None:
    """Read the producer from the page's signature; None without a valid one."""
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - _SIGNATURE_BYTES, 0))
        match = _SIGNATURE.search(stream.read())
    try:
        return decode_json(base64.b64decode(match[1], validate=True), ResultProducer) if match else None
    except (ValueError, MsgspecError):
        return None
