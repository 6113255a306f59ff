"""The AgentV dialect: how its eval files are recognized and loaded, also as lines of JSON with a YAML companion file.

Source: agentv evaluation spec; agentv behaviour 1, 3, 6 and 13. The reader is loaded with the first such file.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.formats.agentv.detection import has_eval_in_name, is_agentv_suite, recognize_document
from eval_gate.formats.base import (
    Dialect,
    Document,
    EvalFileError,
    EvalSource,
    MultiFilePositions,
    Notation,
    Positions,
    ReadOptions,
)
from eval_gate.formats.documents import JSON, YAML, parse_yaml, read_bytes
from eval_gate.formats.outlines import outline_lines
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalSuite
from eval_gate.text.sources.json import parse_json
from eval_gate.text.sources.validation_errors import describe_value

_CASES_KEY: Final = "cases"
"""Key of the lines in the document that they form."""
MAX_PROBLEMS: Final = 20
"""Maximum invalid lines that are reported; later lines are not read."""
_SUFFIX: Final = ".jsonl"


def _parse_jsonl(data: bytes, path: Path, file: str) -> Document:
    """Parse the cases of all lines, with the settings of the YAML companion file unless it is a suite itself."""
    values, numbers = _parse_lines(data, file)
    cases: dict[str, JsonValue] = {_CASES_KEY: values}
    places = [((file, None, number), -1) for number in numbers]
    alone = MultiFilePositions(file, None, _CASES_KEY, places, list_is_elsewhere=True)
    speaker = _find_companion(path) if is_agentv_suite(cases) else None
    if speaker is None:
        return Document(cases, alone)
    name = PurePosixPath(file).with_name(speaker.name).as_posix()
    settings = parse_yaml(read_bytes(speaker, name), name)
    if is_agentv_suite(settings.value) or settings.value is None:  # a suite of its own, or nothing
        return Document(cases, alone)
    if not isinstance(settings.value, dict):
        problem = Problem(f"expected a mapping for the cases of {file}, got {describe_value(settings.value)}", name, 1)
        raise EvalFileError(name, [problem])
    positions = MultiFilePositions(name, settings.positions, _CASES_KEY, places, list_is_elsewhere=True)
    return Document(settings.value | cases, positions)


JSONL: Final = {_SUFFIX: Notation(_parse_jsonl, outline_lines)}


def _find_companion(path: Path) -> Path | None:
    """Return the YAML companion file of a JSONL file; a link is not followed, because it may lead anywhere."""
    candidates = (path.with_suffix(suffix) for suffix in YAML)
    return next((one for one in candidates if one.is_file() and not one.is_symlink()), None)


def is_companion(path: Path) -> bool:
    """Whether this YAML file has the name of a JSONL file in its folder, and may hold settings of its cases."""
    return path.suffix in YAML and path.with_suffix(_SUFFIX).is_file()


def _parse_lines(data: bytes, file: str) -> tuple[list[JsonValue], list[int]]:
    values: list[JsonValue] = []
    numbers: list[int] = []
    problems: list[Problem] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value, _ = parse_json(line, file)
        except GateError as error:
            problems += [Problem(problem.message, file=file, line=number) for problem in error.problems]
            if len(problems) >= MAX_PROBLEMS:
                break
        else:
            values.append(value)
            numbers.append(number)
    if problems:
        raise GateError(
            "invalid-json",
            f"{file} is not valid JSONL",
            "correct the file; each line is a JSON value",
            problems=problems,
        )
    return values, numbers


def build_json_schema() -> dict[str, JsonValue]:
    """Build the JSON Schema of an eval file, with every name that its fields may have."""
    from eval_gate.formats.agentv.json_schema import build_file_schema

    return build_file_schema()


def load_suite(document: JsonValue, positions: Positions, source: EvalSource, reading: ReadOptions) -> EvalSuite:
    """Load the suite from this document. Raises EvalFileError with all problems of the file at once."""
    from eval_gate.formats.agentv.suite_reader import read_suite

    return read_suite(document, positions, source, reading)


DIALECT: Final = Dialect(
    JSON | YAML | JSONL, recognize_document, load_suite, build_json_schema, has_eval_in_name, is_companion
)
