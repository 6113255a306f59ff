"""Artifacts of the run: result archive (next baseline, relay input) and report page.

The page is not packed: GitHub shows such a file in the browser, by one click. It is also in the archive with the
result, so where it cannot be stored by itself nothing is lost but the click.
"""

from __future__ import annotations

import base64
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from msgspec import MsgspecError
from msgspec import json as json_of

from eval_gate.action.precedence import NameTakenError
from eval_gate.action.publishing.artifact_upload import (
    ArtifactKind,
    OutgoingArtifact,
    StoredArtifact,
    UnfinishedUploadError,
    find_artifact_service,
    find_maker,
    is_own_artifact,
    upload_first_free,
)
from eval_gate.action.step import Step
from eval_gate.action.step_log import StepLog
from eval_gate.errors import PAGES, GateError
from eval_gate.github.artifacts.artifact_service import ARCHIVE_MIME_TYPE, OwnArtifact, find_own_artifact, write_archive
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.model.base import decode_json
from eval_gate.model.result import ResultProducer
from eval_gate.results.result_names import RUN_NAME
from eval_gate.results.run_reader import read_archived_head
from eval_gate.targets.model.recording import RECORDING_NAME

CONFLICT_HINT = "another step of this run stored an artifact with this name: set another `artifact-name`"
UNFINISHED_HINT = "start a new run of the workflow, or set another `artifact-name`: a re-run cannot store it"
STEP_HINT = f"add an actions/upload-artifact step with `path: <folder of result-path>` ({PAGES}/baselines.md)"
_SIGNATURE: Final = re.compile(rb"<!-- eval-gate:page ([A-Za-z0-9+/=]{1,4000}) -->\s*\Z")
_SIGNATURE_BYTES: Final = 5_000
"""Bytes at the end of a page in which its signature is."""


class ResultUpload:
    """Result upload in progress. Its name is known before it finishes."""

    def __init__(self, step: Step, record: Path, log: StepLog) -> None:
        self._name: Future[str | None] = Future()
        self._stored = log.start_work(lambda own: self._store_result(step, record, own), "storing the result")

    def get_name(self) -> str | None:
        """Wait in other background work for the artifact's name, without its log; None if no artifact is stored."""
        return self._name.result()

    def peek_artifact(self) -> StoredArtifact | None:
        """Wait for the stored artifact from other background work, without replaying the log of the upload."""
        return self._stored.peek()

    def get_artifact(self) -> StoredArtifact | None:
        """As `store_result`."""
        return self._stored.get_result()

    def _store_result(self, step: Step, record: Path, log: StepLog) -> StoredArtifact | None:
        try:
            return store_result(step, record, log, self._set_name)
        finally:
            self._set_name(None)

    def _set_name(self, name: str | None) -> None:
        if not self._name.done():  # an upload that is repeated names it again
            self._name.set_result(name)


def store_result(
    step: Step, record: Path, log: StepLog, named: Callable[[str], object] = lambda _: None
) -> StoredArtifact | None:
    """Upload the run's folder; the artifact, or None. Where it cannot be stored the log says why.

    `named` is told what it will be called, as soon as that is certain.

    Raises NameTakenError where another leg of this run has stored its result under this name, and nothing else.
    """
    if not step.settings.upload or not step.plan.can_store:
        return None
    service = find_artifact_service(step)
    if service is None:
        log.warn("the result was not stored: no artifact service is available", STEP_HINT)  # noqa: PLE1205 (the log of a step)
        return None
    try:
        with tempfile.TemporaryDirectory(dir=step.environment.temporary_folder, prefix="eval-gate-") as folder:
            packed = Path(folder) / "result.zip"
            write_archive(_iter_files(record), packed)
            return upload_first_free(
                step, service, _RESULT_ARTIFACT, step.artifact_names, OutgoingArtifact(packed, named), log
            )
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
    service = find_artifact_service(step) if step.settings.upload and step.plan.can_store else None
    if service is None:
        return
    try:
        for name in step.artifact_names:
            there = find_own_artifact(step.client, service, name)
            maker = find_maker(step, service, _RESULT_ARTIFACT, there) if there else None
            if maker is None or is_own_artifact(step, name, maker):
                return
    except (GitHubError, OSError):
        return


def _read_result_maker(file: Path, artifact: OwnArtifact) -> ResultProducer | None:
    """Who made the result in this archive; None where it holds none of ours, or one that does not say."""
    try:
        return read_archived_head(file, f"artifact {artifact.id}").producer
    except GateError:
        return None


_RESULT_ARTIFACT = ArtifactKind("result", ARCHIVE_MIME_TYPE, _read_result_maker)


def _iter_files(record: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of the result artifact with their names, without the journal: only a run in progress needs it."""
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


def format_page_name(artifact_name: str) -> str:
    """Format the page's artifact name, without a dot behind the result's: relays take `<name>.…` for another gate's."""
    return f"{artifact_name}-report.html"


def store_page(
    step: Step, page: Callable[[], bytes], storing: ResultUpload | None, log: StepLog
) -> StoredArtifact | None:
    """Store the page beside the result, or by itself where none is stored; None where it cannot be, which is said.

    It follows the result by one call, when that has its name; a result that gets none has been tried for long enough.
    What is in the way is left as it is, another leg's page too: whether that matters, the other publications say.
    """
    service = find_artifact_service(step) if step.settings.upload else None
    if service is None:
        return None
    if step.environment.is_emulated:
        _report_missing_page(log, "act stores only archives", storing)
        return None
    names = step.artifact_names
    if storing is not None:
        name = storing.get_name()
        if name is None:
            return None
        names = names[names.index(name) :]
    try:
        with tempfile.TemporaryDirectory(dir=step.environment.temporary_folder, prefix="eval-gate-") as folder:
            file = Path(folder) / "report.html"
            file.write_bytes(_sign_page(page(), step.maker))
            return upload_first_free(
                step, service, _PAGE_ARTIFACT, [format_page_name(name) for name in names], OutgoingArtifact(file), log
            )
    except OSError as error:
        _report_missing_page(log, str(error.strerror), storing)
    except (GitHubError, NameTakenError) as error:
        _report_missing_page(log, str(error), storing)
    return None


def _report_missing_page(log: StepLog, why: str, storing: ResultUpload | None) -> None:
    """Say it, and where the page is all the same; where the result could not be stored either, that is said already."""
    result = storing.peek_artifact() if storing is not None else None
    if storing is None or result is not None:
        otherwise = f"; it is in the artifact {result.name}" if result is not None else ""
        log.record(f"the page was not stored separately: {why}{otherwise}")


def _sign_page(page: bytes, maker: ResultProducer) -> bytes:
    """Sign the page, so that a re-run replaces only its own; encoded, because no text may end the signature early."""
    packed = base64.b64encode(json_of.encode(maker))
    return page.rstrip() + b"\n<!-- eval-gate:page " + packed + b" -->\n"


def _read_page_maker(file: Path, _artifact: OwnArtifact) -> ResultProducer | None:
    """Whose signature is below this page; None where there is none that could be ours."""
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - _SIGNATURE_BYTES, 0))
        match = _SIGNATURE.search(stream.read())
    if match is None:
        return None
    try:
        return decode_json(base64.b64decode(match[1], validate=True), ResultProducer)
    except (ValueError, MsgspecError):
        return None


_PAGE_ARTIFACT = ArtifactKind("page", "text/html", _read_page_maker)
