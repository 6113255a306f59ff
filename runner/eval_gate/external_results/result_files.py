"""Find results files: parse the paths of a user, and expand globs and folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from glob import has_magic
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import GateError
from eval_gate.external_results.agentv import INDEX, SUMMARY, find_run_folder
from eval_gate.external_results.format_detection import SUFFIXES, find_tool
from eval_gate.external_results.result_rows import RowPlace, shorten_name
from eval_gate.model.limits import EXTERNAL_DEPTH, EXTERNAL_FILES
from eval_gate.results.result_names import PIPE_HINT, PIPE_PROBLEM
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count, format_first_few

_PREFIXED: Final = re.compile(r"(?P<prefix>[^/\\=*?\[\]\x00-\x1f\x7f]{1,100})=(?P<path>.+)", re.DOTALL)
_STARS: Final = re.compile(r"\*{2,}")


class ResultsPath(FrozenStruct):
    """A path of results, and the prefix of the suites in them: `linux=out/junit.xml`."""

    path: str
    prefix: str = ""

    @property
    def exists(self) -> bool:
        """Whether a file or folder of this name is there; a link to nothing is one too."""
        return os.path.lexists(self.path)

    @property
    def is_glob(self) -> bool:
        """Whether the path is a pattern, and not what a file or folder of this name is called."""
        return has_magic(self.path) and not self.exists

    @property
    def root(self) -> Path:
        """The folder that is named without a pattern; for a file or a folder the path itself."""
        if not self.is_glob:
            return Path(self.path)
        parts = Path(self.path).parts
        return Path(*parts[: next(at for at, part in enumerate(parts) if has_magic(part))])

    def find_leg(self, folder: Path) -> str | None:
        """Find the part of a folder that the patterns for folders in a glob match: its leg of a matrix.

        For `results/*/x.xml` that is the folder in `results`. Return None for a glob without such a pattern: `**`,
        which matches any number of folders, is none.
        """
        if not self.is_glob:
            return None
        parts, depth = Path(self.path).parts, 0
        for at, part in enumerate(parts[: len(folder.parts)]):
            if part == "**":
                break
            depth = at + 1 if has_magic(part) else depth
        return Path(*folder.parts[len(self.root.parts) : depth]).as_posix() if depth else None

    def list_matches(self, folder: Path | None = None) -> list[str]:
        """List what a glob matches below a folder or here, sorted, or the path itself if it is no glob.

        What is inside another match is left out. `**` within a name matches what `*` does.
        """
        if not self.is_glob:
            return [str(folder / self.path) if folder else self.path]
        parts = Path(self.path).parts
        own = Path(*(part if part == "**" else _STARS.sub("*", part) for part in parts))
        pattern = folder / own if folder else own
        paths = Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))
        matched = sorted(str(path) for path in islice(paths, EXTERNAL_FILES + 1))
        nested_paths = {path for path in matched if any(parent in matched for parent in map(str, Path(path).parents))}
        return [path for path in matched if path not in nested_paths]

    def __str__(self) -> str:
        return f"{self.prefix}={self.path}" if self.prefix else self.path


def parse_results_path(path_text: str | ResultsPath) -> ResultsPath:
    """Parse a path of results, unless it is one. A file that is called `name=path` is that file."""
    if isinstance(path_text, ResultsPath):
        return path_text
    match = None if os.path.lexists(path_text) else _PREFIXED.fullmatch(path_text)
    if match is None or not match["prefix"].strip() or not match["path"].strip():
        return ResultsPath(path_text)
    return ResultsPath(match["path"].strip(), match["prefix"].strip())


_NON_RESULT_FILES: Final = {
    "eval-set.json": "Inspect's",
    "logs.json": "Inspect's",
    "listing.json": "Inspect's",
    "failsafe-summary.xml": "Maven's",
    "testng-failed.xml": "TestNG's",
    "testng-results.xml": "TestNG's",
    "coverage.xml": "a coverage report",
    "coverage-final.json": "Istanbul's",
    ".last-run.json": "Playwright's",
    ".eval-set-id": "Inspect's",
}
"""Files without results that tools write into the same folder, by name; each is skipped with a note."""
_IGNORED_NAMES: Final = frozenset(
    {".DS_Store", ".git", ".gitignore", ".gitkeep", ".pytest_cache", "Thumbs.db", "__pycache__", "desktop.ini"}
)
"""Files and folders of systems, of git and of Python: each is skipped without a note."""
_ARCHIVE_SUFFIXES: Final = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz", ".7z")
_SUITES: Final = re.compile(rb"<(?:[\w.-]{1,40}:)?testsuites?[\s>/]")
_HEAD: Final = 1 << 12
_MAX_NAMED: Final = 3
_OTHER_KIND: Final = "is of another kind"
_RUN_NAME: Final = re.compile(r"20\d\d[-_.]?[01]\d[-_.]?[0-3]\d|\d{8}|[0-9a-fA-F]{12}")
"""What the name of a folder has that belongs to one run: a date, a number of a run, or a hash."""


class ResultsFile(NamedTuple):
    """File to read or skip. `shown_as` is its name in messages."""

    path: Path
    shown_as: str
    skip_reason: str | None = None
    """Why it is not read, as a sentence goes on behind its name; None where it is read."""
    prefix: str = ""
    """Prefix of the names of its suites."""


def find_result_files(paths: Sequence[str | ResultsPath]) -> Iterator[ResultsFile]:
    """Yield the results files at these paths, in order.

    A path may name the prefix of its suites. Without one, folders that are legs of a matrix are their prefixes. A file
    that several paths or links name is read once.

    Raises GateError for a path that does not exist, for a folder without results, for too many files, and for one file
    with two prefixes.
    """
    count, files_by_target = 0, dict[Path, ResultsFile]()
    for source in map(parse_results_path, paths):
        files = list[ResultsFile]()
        error: GateError | None = None
        try:
            for file in (one for path in _expand_glob(source) for one in _iter_path_files(path)):
                files.append(file)
                if count + len(files) > EXTERNAL_FILES:
                    raise RowPlace(source.path).build_error(f"contains more than {EXTERNAL_FILES:,} files")
        except GateError as raised:  # what was found before is read, for what is wrong in it
            error = raised
        count += len(files)
        legs = {} if source.prefix else _find_legs(files, source)
        for file in files:
            yield _skip_if_read(file._replace(prefix=source.prefix or legs.get(file.path.parent, "")), files_by_target)
        if error is not None:
            raise error


def _skip_if_read(file: ResultsFile, files_by_target: dict[Path, ResultsFile]) -> ResultsFile:
    """Return a file as one to skip if it was read, and add it to `files_by_target` otherwise."""
    if file.skip_reason:
        return file
    first = files_by_target.setdefault(file.path.resolve(), file)
    if first is file:
        return file
    same = f"is the same file as {first.shown_as}"
    # a path without a prefix says nothing about legs, but the results of one leg are not those of another
    if file.prefix and first.prefix != file.prefix:
        raise GateError(
            "duplicate-results",
            "one file is named as the results of two legs of a matrix",
            "name the file that each leg wrote",
            problems=[RowPlace(file.shown_as).build_problem(same)],
        )
    what = "is named twice" if first.shown_as == file.shown_as else same
    return file._replace(skip_reason=f"{what}, and was read once")


def _find_legs(files: Sequence[ResultsFile], results_path: ResultsPath) -> dict[Path, str]:
    groups: dict[str, set[Path]] = {}
    legs: dict[Path, str] = {}
    for file in files:
        folder = file.path.parent
        leg = results_path.find_leg(folder)
        # a folder that is called after a run is called differently the next time
        if leg is not None and not _RUN_NAME.search(leg):
            legs[folder] = shorten_name(leg)
        elif not file.skip_reason:
            # by file name, whatever the cases are called, so that a new case renames no other
            groups.setdefault(file.path.name, set()).add(folder)
    for folders in groups.values():
        # a folder within another one is no leg of the same matrix
        if len(folders) < 2 or any(parent in folders for folder in folders for parent in folder.parents):
            continue
        names = {folder: folder.relative_to(results_path.root).as_posix() for folder in folders}
        if not any(map(_RUN_NAME.search, names.values())):
            legs.update((folder, shorten_name(name)) for folder, name in names.items())
    return legs


def find_tool_at(path: str) -> ResultsFormat | None:
    """Find the tool whose results a file, a folder or a glob holds; None if it is unknown or nothing exists."""
    try:
        files = (file for file in find_result_files([path]) if not file.skip_reason)
        return next((tool for file in files if (tool := find_tool(file.path)) is not None), None)
    except (GateError, OSError):
        return None


def _expand_glob(results_path: ResultsPath) -> list[str]:
    matched = results_path.list_matches()
    if not matched:
        what = "matches no file: the tool did not write one, or wrote it elsewhere"
        raise RowPlace(results_path.path).build_incomplete_error(what)
    return matched


def _iter_path_files(text: str) -> Iterator[ResultsFile]:
    path = Path(text)
    if path.is_file():
        yield ResultsFile(path, text)
        return
    if text == "-" or (path.exists() and not path.is_dir()):
        raise RowPlace(text).build_error(PIPE_PROBLEM, PIPE_HINT)
    if not path.is_dir():
        raise RowPlace(text).build_incomplete_error("does not exist: the tool did not write it, or wrote it elsewhere")
    if not any(path.iterdir()):
        raise RowPlace(text).build_incomplete_error("is empty: the tool made the folder and wrote no results")
    inside, other_names = list[ResultsFile](), list[str]()
    for file in _iter_folder_files(path, path.resolve(), EXTERNAL_DEPTH):
        if file.skip_reason == _OTHER_KIND:
            other_names.append(file.shown_as)
        else:
            inside.append(file)
        if len(inside) > EXTERNAL_FILES:  # what is wrong in each of them is not looked for
            raise RowPlace(text).build_error(f"contains more than {EXTERNAL_FILES:,} files")
    if all(file.skip_reason for file in inside):
        only = f"; only {format_first_few(other_names, _MAX_NAMED)}" if other_names else ""
        raise RowPlace(text).build_error(f"contains no {', '.join(SUFFIXES)}{only}")
    yield from inside
    if other_names:
        count = format_count(len(other_names), "file that was", "files that were")
        *kinds, last = SUFFIXES
        names = format_first_few(other_names, _MAX_NAMED)
        why = f"contains {count} not read: {names} (only {', '.join(kinds)} and {last} are read)"
        yield ResultsFile(path, text, why)


def _iter_folder_files(folder: Path, root: Path, depth: int) -> Iterator[ResultsFile]:
    """Yield AgentV's index, DeepEval's newest run, or every file below; each other gets a reason or an error."""
    if not depth:
        raise RowPlace(str(folder)).build_error(f"is nested in more than {EXTERNAL_DEPTH} folders")
    entries = [one for one in sorted(folder.iterdir()) if one.name not in _IGNORED_NAMES]
    for name in (SUMMARY, INDEX):
        if find_tool(folder / name) is ResultsFormat.AGENTV:
            yield from _iter_agentv_files(folder, folder / name, entries)
            return
    files = [one for one in entries if not one.is_dir() and _has_results_suffix(one)]
    runs = [one for one in files if one.name.startswith("test_run_") and one.suffix == ".json"]
    # DeepEval keeps a file for every run of the past
    past = runs[:-1] if len(runs) == len(files) else []
    if past:
        why = f"holds {len(past):,} past runs of DeepEval, which were not read: the newest is {runs[-1].name}"
        yield ResultsFile(folder, str(folder), why)
    for one in entries:
        if one in past:
            continue
        if _is_duplicate_link(one, root):
            yield ResultsFile(one, str(one), f"is a link to {one.resolve().relative_to(root)}, which is read anyway")
        elif one.is_dir():
            yield from _iter_folder_files(one, root, depth - 1)
        else:
            yield ResultsFile(one, str(one), _find_skip_reason(one))


def _iter_agentv_files(folder: Path, own: Path, entries: Sequence[Path]) -> Iterator[ResultsFile]:
    """Yield the index (version 4) or summary (5) of a run, `own`, then other files and indexes in its folder."""
    yield ResultsFile(own, str(own))
    # the rows name the files of their own run, so these are of no such run
    for one in entries:
        if one.is_file() and one != own and _has_results_suffix(one) and find_tool(one) is not None:
            yield ResultsFile(one, str(one))
    for other in folder.rglob(INDEX):
        if other.parent != folder and find_run_folder(other) != folder:
            yield ResultsFile(other, str(other))


def _is_duplicate_link(link: Path, root: Path) -> bool:
    """Whether this is a link to what is read under its own name: below the root, and a folder or called results."""
    if not link.is_symlink() or not link.exists():
        return False
    target = link.resolve()
    return target.is_relative_to(root) and (target.is_dir() or _has_results_suffix(target))


def _has_results_suffix(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES


def _find_skip_reason(file: Path) -> str | None:
    """Find why a file of a folder is skipped; None if it is read. Raises GateError if it cannot be read but should."""
    name, suffix = file.name.lower(), file.suffix.lower()
    if (whose := _NON_RESULT_FILES.get(file.name)) and not _has_results(file):
        return f"is {whose} and has no results: it was not read"
    if suffix in _ARCHIVE_SUFFIXES and Path(name.removesuffix(suffix)).suffix in SUFFIXES:
        raise RowPlace(str(file)).build_error("is an archive: unpack it, or name the files one by one")
    if not _has_results_suffix(file):
        return _OTHER_KIND
    if not file.exists():
        raise RowPlace(str(file)).build_incomplete_error("is a broken link: its file is missing")
    return None


def _has_results(file: Path) -> bool:
    """Whether a file named in `_NON_RESULT_FILES` has results nevertheless."""
    if not file.is_file():
        return True  # reading it says what is wrong
    if file.suffix != ".xml":
        return find_tool(file) is not None
    try:
        with file.open("rb") as stream:
            return _SUITES.search(stream.read(_HEAD)) is not None
    except OSError:
        return True  # reading it says what is wrong
