"""Which suites `eval-gate agent-evals` runs, and where its reports go: names from a command line, made paths.

Source: Agent Evals, "Arguments"; agent-evals behaviour 3.1, 3.4, 3.5, E-07.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem, did_you_mean
from eval_gate.files.writing import make_folder
from eval_gate.sandbox.paths import LINK, NO_FOLDER, SandboxError, file_names, names_of
from eval_gate.text.quoting import quoted_name

SUFFIX: Final = ".json"
REPORTS: Final = "reports"


def suite_files(wanted: str | None, folder: Path) -> tuple[str, ...]:
    """The path of the suite `wanted`, or of all suites in `folder`, by name.

    Raises GateError for a name that is more than one name of a file, for links, and where there is no suite.
    """
    try:
        found = {path.stem: path for path in _listed(folder)}
    except OSError as error:
        raise GateError(
            "no-suites", f"the suites in {folder} cannot be listed: {error.strerror}", "say where with --suites-dir"
        ) from error
    if wanted is None:
        chosen = [*found.values()]
    else:
        _refuse_path(wanted)
        if wanted not in found:
            raise GateError(
                "no-such-suite",
                f"there is no suite {quoted_name(wanted)} in {folder}{did_you_mean(wanted, found)}",
                f"NAME is that of a file {folder / 'NAME.json'}, without its ending",
            )
        chosen = [found[wanted]]
    if not chosen:
        raise GateError("no-suites", f"there are no suites in {folder}", "a suite is a file NAME.json: nothing was run")
    links = [Problem(LINK, file=path.as_posix()) for path in chosen if path.is_symlink()]
    if links:
        raise GateError("no-such-suite", "suites are files, not links", "put the files there", problems=links)
    return tuple(path.as_posix() for path in chosen)


def _listed(folder: Path) -> Iterator[Path]:
    """What may be suites, by name. Hidden files are none."""
    for path in sorted(folder.iterdir()):
        if path.suffix == SUFFIX and not path.name.startswith(".") and (path.is_symlink() or path.is_file()):
            yield path


def _refuse_path(wanted: str) -> None:
    """A suite is named by one name and nothing that leads anywhere."""
    try:
        names = names_of(wanted)
    except SandboxError as error:
        raise _no_name(wanted, str(error)) from None
    if len(names) != 1:
        raise _no_name(wanted, "it is not one name")


def _no_name(wanted: str, why: str) -> GateError:
    message = f"--suite {quoted_name(wanted)} is not the name of a suite: {why}"
    return GateError("no-such-suite", message, "the name of a file in --suites-dir, without its folder and .json")


def output_names(out: str) -> tuple[str, ...]:
    """The names that lead from the folder of temporary files to the output. Raises GateError."""
    try:
        return file_names(out)
    except SandboxError as error:
        raise GateError(
            "bad-out", f"--out {quoted_name(out)}: {error}", "a path inside --tmp-dir, such as agent-evals"
        ) from None


def output_folder(tmp: Path, names: tuple[str, ...]) -> Path:
    """The folder for reports and results, made if needed, as are the folders on the way. Raises GateError.

    Neither `tmp` nor anything below it on the way may be a link.
    """
    place = tmp
    for name in (".", *names, REPORTS):
        place /= name
        with contextlib.suppress(OSError):  # what is not there, or not to be looked at, cannot be made either
            _refuse_other(place)
        make_folder(place)
    return place.parent


def _refuse_other(place: Path) -> None:
    kind = place.lstat().st_mode
    if not stat.S_ISDIR(kind):
        why = LINK if stat.S_ISLNK(kind) else NO_FOLDER
        raise GateError("bad-out", f"{place}: {why}", "choose another folder with --out or --tmp-dir")
