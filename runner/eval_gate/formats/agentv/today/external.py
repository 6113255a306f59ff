"""Cases that stand in other files: `tests: cases.yaml`, a folder of cases, and `file://` in the list.

Source: AgentV 4.42.4, "External test cases". Every such file lies in the repository; each case keeps its place in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.errors import Problem
from eval_gate.formats.agentv.files import EvalRepository, FileError, is_folder, tidy
from eval_gate.formats.agentv.guidelines import glob_match
from eval_gate.formats.base import EvalFileError, Positions, SeveralFiles, WrittenScalars
from eval_gate.formats.documents import parse_yaml, read_bytes
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import CASES
from eval_gate.text.sources.json import parse_json
from eval_gate.text.sources.shape import kind_of

_FILE: Final = "file://"
_YAML: Final = (".yaml", ".yml")
_OF_A_FOLDER: Final = ("case.yaml", "case.yml")
_GLOB: Final = frozenset("*?{[")
FILES_LOOKED_THROUGH: Final = 10_000
"""Files of a folder among which those that fit a pattern are looked for."""

Place = tuple[str, Positions | None, int | None]
"""The file of a case, what knows its lines, and its index in it (or its line, where nothing knows lines)."""


class CasePlaces:
    """Where values stand: cases in the files that they come from, everything else in the file that names these."""

    def __init__(self, file: str, own: Positions, name: str, places: Sequence[tuple[Place, int]]) -> None:
        self._file = file
        self._own = own
        self._name = name
        self._places = places

    def line(self, path: Sequence[str | int]) -> int:
        """The line (from 1) of the value, in the file where it stands."""
        (_, positions, index), inside = self._of(path)
        return (index or 1) if positions is None else positions.line(inside)

    def unquoted(self, path: Sequence[str | int]) -> str | None:
        """The scalar at `path` as it is written, where it stands without quotes."""
        place, inside = self._of(path)
        positions: object = place[1]
        return positions.unquoted(inside) if isinstance(positions, WrittenScalars) else None

    def place(self, path: Sequence[str | int]) -> tuple[str, Sequence[str | int]]:
        """The file in which the value at `path` stands, and its path there."""
        (file, positions, _), inside = self._of(path)
        if file == self._file and isinstance(positions, SeveralFiles):
            return positions.place(inside)
        return file, inside

    def _of(self, path: Sequence[str | int]) -> tuple[Place, Sequence[str | int]]:
        number = path[1] if len(path) > 1 and path[0] == self._name else None
        if isinstance(number, int) and number < len(self._places):
            place, index = self._places[number]
            if place[0] == self._file:
                return place, (self._name, index, *path[2:])
            if place[1] is None:
                return place, path[2:]
            return place, (*((index,) if index >= 0 else ()), *path[2:])
        return (self._file, self._own, None), path


def gather_cases(
    document: Mapping[str, JsonValue], name: str, positions: Positions, repository: EvalRepository
) -> tuple[dict[str, JsonValue], Positions]:
    """The document with all its cases in it, and where each stands. Raises EvalFileError for a missing file."""
    raw = document.get(name)
    if isinstance(raw, str):
        entries: list[tuple[JsonValue, int]] = [(raw if raw.startswith(_FILE) else _FILE + raw, -1)]
    elif isinstance(raw, list) and any(_names_a_file(one) for one in raw):
        entries = [(one, index) for index, one in enumerate(raw)]
    else:
        return dict(document), positions
    shown = repository.shown(repository.eval_file)
    cases: list[JsonValue] = []
    places: list[tuple[Place, int]] = []
    for entry, index in entries:
        if not _names_a_file(entry):
            cases.append(entry)
            places.append(((shown, positions, None), index))
            continue
        where: list[str | int] = [name] if index < 0 else [name, index]
        try:
            for case, place, inside in islice(_cases_of(str(entry).removeprefix(_FILE), repository), CASES + 1):
                cases.append(case)
                places.append((place, inside))
        except FileError as error:
            problem = Problem(
                f'"{str(raw if index < 0 else entry)[:100]}": {error}',
                file=shown,
                line=positions.line(where),
                field=name,
            )
            raise EvalFileError(shown, [problem]) from error
    return {**document, name: cases}, CasePlaces(shown, positions, name, places)


def _names_a_file(value: JsonValue) -> bool:
    return isinstance(value, str) and value.startswith(_FILE)


def _cases_of(written: str, repository: EvalRepository) -> Iterator[tuple[JsonValue, Place, int]]:
    """The cases of a file, of all files that fit a pattern, or of a folder. Raises FileError."""
    if _GLOB.intersection(written):
        found = _matching(written, repository)
        if not found:
            raise FileError("no file fits this pattern")
        for path in found:
            yield from _cases_in(path, repository)
        return
    path = repository.folder / written
    if is_folder(path):
        yield from _cases_of_folder(repository.find_folder(written), repository)
    else:
        yield from _cases_in(path, repository)


def _matching(written: str, repository: EvalRepository) -> list[Path]:
    """The files below the eval file's folder that fit a pattern, in the order of their names."""
    steps = [step for step in written.split("/") if step not in {"", "."}]
    if ".." in steps:
        raise FileError("a pattern cannot lead out of the eval file's folder")
    fixed = next(at for at, step in enumerate(steps) if _GLOB.intersection(step))
    below = repository.find_folder("/".join(steps[:fixed]) or ".")
    pattern = "/".join(steps)
    entries = list(islice(below.rglob("*"), FILES_LOOKED_THROUGH + 1))
    if len(entries) > FILES_LOOKED_THROUGH:
        raise FileError(f"more than {FILES_LOOKED_THROUGH:,} files to look through")
    fitting = (path for path in entries if glob_match(path.relative_to(repository.folder).as_posix(), [pattern]))
    return sorted(path for path in fitting if path.is_file())


def _cases_of_folder(folder: Path, repository: EvalRepository) -> Iterator[tuple[JsonValue, Place, int]]:
    """`case.yaml` of every folder below, in the order of their names; its folder's name is the id where it has none."""
    for below in sorted(one for one in folder.iterdir() if one.is_dir()):
        path = next((below / name for name in _OF_A_FOLDER if (below / name).is_file()), None)
        if path is None:
            raise FileError(f"there is no case.yaml in {below.name}")
        value, positions, shown = _yaml(path, repository)
        if not isinstance(value, dict):
            raise FileError(f"{shown}: expected a case, got {kind_of(value)}")
        template = {"workspace": "workspace"} if (below / "workspace").is_dir() and "workspace" not in value else {}
        yield {"id": below.name, **value, **template}, (shown, positions, None), -1


def _cases_in(path: Path, repository: EvalRepository) -> Iterator[tuple[JsonValue, Place, int]]:
    if path.suffix == ".jsonl":
        shown = repository.shown(path)
        for number, line in enumerate(_bytes(path, repository).split(b"\n"), 1):
            if line.strip():
                yield parse_json(line, shown)[0], (shown, None, number), -1
        return
    if path.suffix not in _YAML:
        raise FileError("cases stand in .yaml, .yml and .jsonl files")
    value, positions, shown = _yaml(path, repository)
    if not isinstance(value, list):
        raise FileError(f"expected a list of cases, got {kind_of(value)}")
    for index, case in enumerate(value):
        yield case, (shown, positions, None), index


def _yaml(path: Path, repository: EvalRepository) -> tuple[JsonValue, Positions, str]:
    shown = repository.shown(path)
    document = parse_yaml(_bytes(path, repository), shown)
    return document.value, document.positions, shown


def _bytes(path: Path, repository: EvalRepository) -> bytes:
    """What is in a file of the repository."""
    found = repository.at(tidy(path))
    if found is None:
        raise FileError("there is no such file in the repository")
    return read_bytes(found.path, repository.shown(found.path))
