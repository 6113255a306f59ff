"""Store of baselines for CI systems without artifacts of other runs: a folder, or a URL that fsspec reads and writes.

Each run is one archive `<time>-<run id>.zip`, with what a GitHub artifact has. A name is written once: of two writers
one wins, and a reader sees all of an archive or none.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from eval_gate.errors import GateError, Problem, require_extra
from eval_gate.model import limits
from eval_gate.model.comparison import ReasonCode
from eval_gate.model.result import RunResult
from eval_gate.results.archive import extract_top_entry, iter_result_files, write_archive
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.history import HISTORY_NAME, MAX_HISTORY_BYTES
from eval_gate.results.result_names import RUN_NAME
from eval_gate.results.run_parsing import MAX_RESULT_BYTES
from eval_gate.results.run_reader import read_archived_head
from eval_gate.struct import replace
from eval_gate.text.escape import shorten_error
from eval_gate.text.urls import mask_address, mask_addresses

MAX_FETCHED: Final = 50
"""Runs that are fetched to find one that passed, the newest first."""
_HINT: Final = "check `store`, its credentials and the network; the first run of the default branch makes a store"
_NAME: Final = re.compile(r"\d{8}T\d{6}Z-[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\.zip", re.ASCII)


class _Folders:
    """Folders of this machine, with the calls of a file system of fsspec that a store makes."""

    def ls(self, root: str, *, detail: bool) -> Sequence[str]:
        return [one.name for one in Path(root).iterdir()]

    def cat_file(self, path: str, *, end: int) -> bytes:
        with Path(path).open("rb") as stream:
            return stream.read(end)

    def pipe_file(self, path: str, data: bytes, *, mode: str) -> None:
        folder = Path(path).parent
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".") as temporary:
            temporary.write(data)
            temporary.flush()
            Path(temporary.name).chmod(0o644)
            os.link(temporary.name, path)  # unlike a rename, it replaces nothing


class StoreError(Exception):
    """A store that cannot be read or written. The message continues a sentence."""


@contextmanager
def _describe_failures() -> Iterator[None]:
    """Raise StoreError with what failed. Its cause is a FileNotFoundError if the place or an archive is missing."""
    try:
        yield
    except (GateError, FileExistsError):
        raise
    except Exception as error:  # each file system of fsspec raises exceptions of its own
        is_absent = isinstance(error, FileNotFoundError)
        why = (
            "it does not exist" if is_absent else shorten_error(mask_addresses(f"{type(error).__name__}: {error}"), 300)
        )
        raise StoreError(why) from error


class BaselineStore:
    """Archives of runs at one place. Opening it raises GateError if a library is missing or its scheme is unknown."""

    def __init__(self, place: str) -> None:
        self._files: Any = _Folders()
        self._shown_as = self._root = place.rstrip("/")
        if "://" in place:
            self._files, self._root = _open_remote(place)
            self._shown_as = mask_address(self._shown_as)

    def find_latest(
        self, find: Callable[[Path], Baseline | NoBaseline], target: str | None, *, may_write: bool
    ) -> Baseline | NoBaseline:
        """Find what `latest` means by `find`, which searches a folder of runs. Raises GateError for a corrupt archive.

        The runs are fetched, newest first, until one of `target` passed. A place that is absent is empty to a run that
        `may_write` and makes it; to any other it may be a mistyped name.
        """
        with tempfile.TemporaryDirectory(prefix="eval-gate-") as name:
            folder, archives = Path(name), None
            try:
                with _describe_failures():
                    archives = self._list_newest()
                    for archive in archives[:MAX_FETCHED]:
                        head = self._fetch(archive, folder)
                        is_target = target in (None, head.target.name)
                        if head.has_passed and is_target and isinstance(find(folder), Baseline):
                            break
            except StoreError as error:
                is_absent = archives is None and isinstance(error.__cause__, FileNotFoundError)
                if not (may_write and is_absent):
                    reason = f"the store {self._shown_as} cannot be read: {error}"
                    return NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, reason, unavailable=True, hint=_HINT)
            baseline = find(folder)
            if isinstance(baseline, NoBaseline) and archives and archives[MAX_FETCHED:]:
                reason = f"none of the newest {MAX_FETCHED} runs in {self._shown_as} can be the baseline"
                return NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, reason, unavailable=True, hint=_HINT)
            if isinstance(baseline, NoBaseline):
                return replace(baseline, reason=baseline.reason.replace(name, self._shown_as))
            return replace(baseline, exact_reference=None, folder=None)

    @contextmanager
    def fetch_newest(self) -> Iterator[str]:
        """Fetch the newest runs into a folder that exists until the end. Raises GateError if they cannot be read."""
        with tempfile.TemporaryDirectory(prefix="eval-gate-") as folder:
            try:
                with _describe_failures():
                    for archive in self._list_newest()[:MAX_FETCHED]:
                        self._fetch(archive, Path(folder))
            except StoreError as error:
                message = f"the store {self._shown_as} cannot be read: {error}"
                raise GateError("run-not-found", message, _HINT) from error
            yield folder

    def write_run(self, run: RunResult, record: Path) -> str:
        """Write a run with the files of its folder under a new name, and return its place. Raises StoreError."""
        began = datetime.fromisoformat(run.timestamp).astimezone(UTC)
        name, packed = f"{began:%Y%m%dT%H%M%SZ}-{run.run_id}.zip", io.BytesIO()
        try:
            with _describe_failures():
                write_archive(iter_result_files(record), packed)
                self._files.pipe_file(f"{self._root}/{name}", packed.getvalue(), mode="create")
        except FileExistsError as error:
            raise StoreError(f"{self._shown_as} has {name} already") from error
        except StoreError as error:
            raise StoreError(f"{self._shown_as} cannot be written: {error}") from error
        return f"{self._shown_as}/{name}"

    def _list_newest(self) -> list[str]:
        names = (path.rpartition("/")[2] for path in self._files.ls(self._root, detail=False))
        return sorted(filter(_NAME.fullmatch, names), reverse=True)

    def _fetch(self, name: str, folder: Path) -> RunResult:
        """Unpack a run and its history into a folder of its own, and return the run's head. Raises GateError."""
        (run_folder := folder / name.removesuffix(".zip")).mkdir()
        data = self._files.cat_file(f"{self._root}/{name}", end=limits.ARCHIVE_BYTES)  # a larger one is a corrupt one
        (archive := run_folder / name).write_bytes(data)
        for part, limit in ((HISTORY_NAME, MAX_HISTORY_BYTES), (RUN_NAME, MAX_RESULT_BYTES)):
            extract_top_entry(archive, part, run_folder / part, limit)
        return read_archived_head(archive, f"{self._shown_as}/{name}")


def _open_remote(place: str) -> Any:
    try:
        with require_extra("store", f"the store {mask_address(place)}"):
            import fsspec  # type: ignore[import-untyped]

            return fsspec.url_to_fs(place)
    except ValueError as error:
        problems = [Problem(str(error), field="store")]
        hint = "name a folder, or a URL such as s3://bucket/prefix"
        raise GateError("invalid-configuration", "the store is not valid", hint, problems=problems) from error
