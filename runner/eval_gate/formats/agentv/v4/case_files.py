"""Cases in other files: `tests: cases.yaml`, a folder of cases, and `file://` entries.

Source: AgentV 4.42.4, "External test cases". Every such file lies in the repository; each case keeps its place in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.errors import Problem
from eval_gate.formats.agentv.eval_repository import EvalRepository, FileError, is_folder, normalize_path
from eval_gate.formats.agentv.guidelines import matches_glob
from eval_gate.formats.base import CaseOrigin, EvalFileError, MultiFilePositions, Positions
from eval_gate.formats.documents import parse_yaml, read_bytes
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import CASES
from eval_gate.text.sources.json import parse_json
from eval_gate.text.sources.validation_errors import describe_value

_FILE_SCHEME: Final = "file://"
_YAML_SUFFIXES: Final = (".yaml", ".yml")
_CASE_FILE_NAMES: Final = ("case.yaml", "case.yml")
_GLOB_CHARACTERS: Final = frozenset("*?{[")
MAX_SEARCHED_FILES: Final = 10_000
"""Maximum files of a folder that are searched for a pattern."""


def load_external_cases(
    document: Mapping[str, JsonValue], name: str, positions: Positions, repository: EvalRepository
) -> tuple[dict[str, JsonValue], Positions]:
    """Return the document with the cases of other files, and positions. Raises EvalFileError if one is unusable."""
    raw = document.get(name)
    if isinstance(raw, str):
        entries: list[tuple[JsonValue, int]] = [(raw if raw.startswith(_FILE_SCHEME) else _FILE_SCHEME + raw, -1)]
    elif isinstance(raw, list) and any(_is_file_reference(one) for one in raw):
        entries = [(one, index) for index, one in enumerate(raw)]
    else:
        return dict(document), positions
    shown_as = repository.format_path(repository.eval_file)
    cases: list[JsonValue] = []
    places: list[tuple[CaseOrigin, int]] = []
    for entry, index in entries:
        if not _is_file_reference(entry):
            cases.append(entry)
            places.append(((shown_as, positions, None), index))
            continue
        where: list[str | int] = [name] if index < 0 else [name, index]
        try:
            for case, place, inside in islice(
                _iter_cases(str(entry).removeprefix(_FILE_SCHEME), repository), CASES + 1
            ):
                cases.append(case)
                places.append((place, inside))
        except FileError as error:
            problem = Problem(
                f'"{str(raw if index < 0 else entry)[:100]}": {error}',
                file=shown_as,
                line=positions.find_line(where),
                field=name,
            )
            raise EvalFileError(shown_as, [problem]) from error
    return {**document, name: cases}, MultiFilePositions(shown_as, positions, name, places)


def _is_file_reference(value: JsonValue) -> bool:
    return isinstance(value, str) and value.startswith(_FILE_SCHEME)


def _iter_cases(reference: str, repository: EvalRepository) -> Iterator[tuple[JsonValue, CaseOrigin, int]]:
    if _GLOB_CHARACTERS.intersection(reference):
        paths = _find_matching_files(reference, repository)
        if not paths:
            raise FileError("no file matches this pattern")
        for path in paths:
            yield from _iter_file_cases(path, repository)
        return
    path = repository.folder / reference
    if is_folder(path):
        yield from _iter_folder_cases(repository.find_folder(reference), repository)
    else:
        yield from _iter_file_cases(path, repository)


def _find_matching_files(reference: str, repository: EvalRepository) -> list[Path]:
    """Find the files below the eval file's folder that match a pattern, sorted by path."""
    steps = [step for step in reference.split("/") if step not in {"", "."}]
    if ".." in steps:
        raise FileError("a pattern must stay inside the eval file's folder")
    fixed = next(at for at, step in enumerate(steps) if _GLOB_CHARACTERS.intersection(step))
    folder = repository.find_folder("/".join(steps[:fixed]) or ".")
    pattern = "/".join(steps)
    entries = list(islice(folder.rglob("*"), MAX_SEARCHED_FILES + 1))
    if len(entries) > MAX_SEARCHED_FILES:
        raise FileError(f"more than {MAX_SEARCHED_FILES:,} files to search")
    fitting = (path for path in entries if matches_glob(path.relative_to(repository.folder).as_posix(), [pattern]))
    return sorted(path for path in fitting if path.is_file())


def _iter_folder_cases(folder: Path, repository: EvalRepository) -> Iterator[tuple[JsonValue, CaseOrigin, int]]:
    """Yield the `case.yaml` of every subfolder, by name; the folder's name is the default id."""
    for case_folder in sorted(one for one in folder.iterdir() if one.is_dir()):
        path = next((case_folder / name for name in _CASE_FILE_NAMES if (case_folder / name).is_file()), None)
        if path is None:
            raise FileError(f"{case_folder.name} has no case.yaml")
        value, positions, shown_as = _load_yaml(path, repository)
        if not isinstance(value, dict):
            raise FileError(f"{shown_as}: expected a case, got {describe_value(value)}")
        template: dict[str, JsonValue] = {}
        if (case_folder / "workspace").is_dir() and not value.get("workspace"):
            template["workspace"] = {"template": str(case_folder / "workspace")}
        yield {"id": case_folder.name, **value, **template}, (shown_as, positions, None), -1


def _iter_file_cases(path: Path, repository: EvalRepository) -> Iterator[tuple[JsonValue, CaseOrigin, int]]:
    if path.suffix == ".jsonl":
        shown_as = repository.format_path(path)
        for number, line in enumerate(_read_file_bytes(path, repository).split(b"\n"), 1):
            if line.strip():
                yield parse_json(line, shown_as)[0], (shown_as, None, number), -1
        return
    if path.suffix not in _YAML_SUFFIXES:
        raise FileError("cases must be in .yaml, .yml or .jsonl files")
    value, positions, shown_as = _load_yaml(path, repository)
    if not isinstance(value, list):
        raise FileError(f"expected a list of cases, got {describe_value(value)}")
    for index, case in enumerate(value):
        yield case, (shown_as, positions, None), index


def _load_yaml(path: Path, repository: EvalRepository) -> tuple[JsonValue, Positions, str]:
    shown_as = repository.format_path(path)
    document = parse_yaml(_read_file_bytes(path, repository), shown_as)
    return document.value, document.positions, shown_as


def _read_file_bytes(path: Path, repository: EvalRepository) -> bytes:
    file = repository.find_file_at(normalize_path(path))
    if file is None:
        raise FileError("the repository has no such file")
    return read_bytes(file.path, repository.format_path(file.path))
