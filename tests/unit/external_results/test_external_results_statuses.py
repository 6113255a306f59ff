"""The tables of statuses, walked over every recorded file: one value changed at a time."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from eval_gate.errors import GateError
from eval_gate.external_results.format_detection import detect_format
from eval_gate.external_results.inspect_ai import _read_entry
from eval_gate.external_results.loader import ExternalResults
from eval_gate.external_results.statuses import Meaning, StatusTable, parse_tables
from eval_gate.model.execution import ErrorKind, Status
from tests.support.tool_results import FILES, load
from tests.support.write_statuses import PAGE, list_tables, page

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
RECORDED = sorted(
    file
    for folder in (FILES, *CORPUS.glob("results-*"))
    for file in folder.rglob("*")
    if file.suffix in {".json", ".jsonl", ".xml", ".trx", ".csv", ".eval"}
)
MOST_READ = 39
ODD = "strange-status"
REFUSED = {"promptfoo-junit.xml", "damaged-deflate.eval", "unknown-encoding.xml"}
"""Recorded files that nobody reads: what is in them says so."""

PLACES: dict[str, tuple[str, ...]] = {
    "adk": (
        r"eval_case_results\.\d+\.final_eval_status",
        r"eval_case_results\.\d+\.overall_eval_metric_results\.\d+\.eval_status",
        r"eval_case_results\.\d+\.overall_eval_metric_results\.\d+\.eval_status",
    ),
    "agentv": (r"execution_status", r"failure_stage", r"scores\.\d+\.verdict", r"scores\.\d+\.pass"),
    "azure": (
        r"rows\.\d+\.outputs\.\w+\.\w*_?status",
        r"rows\.\d+\.outputs\.\w+\.\w*_?result",
        r"rows\.\d+\.outputs\.\w+\.\w*_?passed",
    ),
    "braintrust": (r"(\d+\.)?scores\.\w+",),
    "deepeval": (r"testCases\.\d+\.success", r"testCases\.\d+\.metricsData\.\d+\.success"),
    "inspect_ai": (
        r"status",
        r"(samples\.\d+\.)?limit\.type",
        r"(samples\.\d+\.)?scores\.\w+\.reason",
        r"(samples\.\d+\.)?scores\.\w+\.value(\.\w+)?",
    ),
    "jsonl": (r"status",),
    "junit": ("element", "status|result", "message", "message", "type"),
    "langsmith": (r"(\d+\.)?(feedback\.\w+|evaluation_results\.results\.\d+\.score)",),
    "openai_evals": (r"data\.correct",),
    "promptfoo": (
        r"(results\.results\.\d+\.)?failureReason",
        r"(results\.results\.\d+\.)?success",
        r"(results\.results\.\d+\.)?gradingResult\.pass",
        r"(results\.results\.\d+\.)?gradingResult\.componentResults\.\d+\.pass",
    ),
    "pydantic_evals": (r"cases\.\d+\.assertions\.\w+\.value",),
    "trx": ("outcome", "outcome"),
}
"""Where the value of each table stands in the files, as a path of keys, or the name of an attribute."""
OPEN = {
    ("inspect_ai", "reason"): "a scorer may write its own",
    ("langsmith", "score"): "a text is a category",
    ("junit", "message"): "is any text, of which only some are statuses",
    ("junit", "type"): "is any class",
}


class Change(NamedTuple):
    """A recorded file with another value in one place."""

    path: str
    before: str
    write: Callable[[Path, Any], None]


def test_tables__of_every_reader__have_a_place_and_stand_on_the_page() -> None:
    assert {name: len(tables) for name, tables in list_tables().items()} == {
        name: len(places) for name, places in PLACES.items()
    }
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.support.write_statuses"


def test_parse_tables__meaning_that_does_not_exist__is_refused() -> None:
    with pytest.raises(ValueError, match="fine"):
        parse_tables("Tool 1: status\n  fine: ok\n")


def reader_of(file: Path) -> str:
    return detect_format(file, file.name).function.partition(":")[0]


def iter_leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value that is no list and no mapping, with its path."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if members is None:
        yield path, value
    for key, inner in members or ():
        yield from iter_leaves(inner, (*path, key))


def put(document: Any, path: tuple[str | int, ...], value: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def write_json(text: str, path: tuple[str | int, ...], nested: bool, lines: bool) -> Callable[[Path, Any], None]:
    def write(file: Path, value: Any) -> None:
        document = [json.loads(line) for line in text.splitlines() if line.strip()] if lines else json.loads(text)
        document = json.loads(document) if nested else document
        put(document, path, value)
        made = json.dumps(document)
        file.write_text(
            "".join(json.dumps(one) + "\n" for one in document) if lines else json.dumps(made) if nested else made
        )

    return write


def list_changes(file: Path, place: str) -> list[Change]:
    """Every place of a file in which a value of a table stands."""
    ways = {".xml": _list_in_xml, ".trx": _list_in_xml, ".csv": _list_in_table, ".eval": _list_in_archive}
    return list(ways.get(file.suffix, _list_in_json)(file, place))


def _list_in_xml(file: Path, place: str) -> Iterator[Change]:
    text = prepare(file)
    if place == "element":  # a test that passed has none
        for match in re.finditer(r"(<testcase\b[^>]*?)(/>|>\s*</testcase>|>\s*<system-out>)", text):
            yield Change(match[1], "warning", _write_element(text, match))
        return
    for match in re.finditer(rf'<(?:UnitTestResult|testcase)\b[^>]*? (?:{place})="([^"]*)"', text):
        yield Change(match[0], match[1], _write_span(text, match.span(1)))


def _list_in_table(file: Path, place: str) -> Iterator[Change]:
    text = file.read_text()
    if any(re.fullmatch(place, name) for name in text.splitlines()[0].split(",")):
        for match in re.finditer(r"(?<=,)(True|False)(?=,|$)", text, re.MULTILINE):
            yield Change(str(match.start()), match[0].lower(), _write_span(text, match.span()))


def _list_in_archive(file: Path, place: str) -> Iterator[Change]:
    with zipfile.ZipFile(file) as archive:
        documents = {one.filename: _read_entry(archive, one, file.name) for one in archive.infolist()}
    for name, document in documents.items():
        for path, value in iter_leaves(document):
            if name.startswith(("samples/", "header")) and re.fullmatch(place, ".".join(map(str, path))):
                yield Change(f"{name}: {path}", key_of(value), _write_archive(documents, name, path))


def _list_in_json(file: Path, place: str) -> Iterator[Change]:
    text, lines = file.read_text(), file.suffix == ".jsonl"
    document = [json.loads(line) for line in text.splitlines() if line.strip()] if lines else json.loads(text)
    nested = isinstance(document, str)
    for path, value in iter_leaves(json.loads(document) if nested else document):
        shown = ".".join(map(str, path[1:] if lines else path))
        if re.fullmatch(place, shown):
            yield Change(shown, key_of(value), write_json(text, path, nested, lines))


def prepare(file: Path) -> str:
    """The text of a file, in which what could not be loaded is a test: else the whole file is refused."""
    return file.read_text().replace('testName="b.jest.js"', 'testName="not loaded"')


def _write_element(text: str, match: re.Match[str]) -> Callable[[Path, Any], None]:
    def write(file: Path, value: Any) -> None:
        tail = "</testcase>" if "system-out" not in match[2] else "<system-out>"
        inner = f'{match[1]}><{value} message="changed"/>{tail}'
        file.write_text(text[: match.start()] + inner + text[match.end() :])

    return write


def _write_span(text: str, span: tuple[int, int]) -> Callable[[Path, Any], None]:
    def write(file: Path, value: Any) -> None:
        said = str(value) if not isinstance(value, bool) or file.suffix != ".csv" else str(value).title()
        file.write_text(text[: span[0]] + said + text[span[1] :])

    return write


def _write_archive(documents: dict[str, Any], name: str, path: tuple[str | int, ...]) -> Callable[[Path, Any], None]:
    def write(file: Path, value: Any) -> None:
        changed = json.loads(json.dumps(documents[name]))
        put(changed, path, value)
        with zipfile.ZipFile(file, "w") as archive:
            for each, document in documents.items():
                archive.writestr(each, json.dumps(changed if each == name else document))

    return write


def key_of(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def as_written(word: str) -> Any:
    """A value as the tool writes it: true and false, a number, a text."""
    return {"true": True, "false": False}.get(word, int(word) if word.isdecimal() else word)


def read_prepared(file: Path, folder: Path) -> ExternalResults | GateError:
    if file.suffix != ".trx":
        return read(file)
    (folder / file.name).write_text(prepare(file))
    return read(folder / file.name)


def read(file: Path) -> ExternalResults | GateError:
    try:
        return load(file, pass_score=0.5)
    except GateError as error:
        return error


def worst(found: ExternalResults) -> dict[tuple[str, str], bool]:
    """Whether each case passed in all of its executions."""
    return {tuple(key): all(row.status is Status.PASSED for row in rows) for key, rows in found.cases.items()}


def copy_beside(file: Path, folder: Path) -> Path:
    """The place of a changed copy, with what the file names beside it."""
    root = file.parent.parent if file.parent.name == ".internal" else None
    if root is None:
        return folder / file.name
    for one in root.rglob("*"):
        if one.is_file():
            (folder / one.relative_to(root)).parent.mkdir(parents=True, exist_ok=True)
            (folder / one.relative_to(root)).write_bytes(one.read_bytes())
    return folder / file.relative_to(root)


def iter_places(file: Path) -> Iterator[tuple[str, StatusTable, Change]]:
    name = reader_of(file)
    for table, place in zip(list_tables()[name], PLACES[name], strict=True):
        for change in list_changes(file, place):
            yield name, table, change


FOUND = [file for file in RECORDED if file.name not in REFUSED]


@pytest.mark.parametrize("file", FOUND, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_recorded_file__one_pass_becomes_a_fail__is_never_greener(tmp_path, file) -> None:
    base, target = read_prepared(file, tmp_path), copy_beside(file, tmp_path)
    if isinstance(base, GateError):
        return  # it is refused as it is, and the tests of its reader say why
    for _, table, change in iter_places(file):
        fails = [value for value, meaning in table.meanings.items() if meaning is Meaning.FAILED and value]
        if table.meanings.get(change.before) is not Meaning.PASSED or not fails:
            continue
        change.write(target, as_written(fails[0]))
        now = read(target)
        if isinstance(now, ExternalResults):
            before, after = worst(base), worst(now)
            assert {key for key, passed in after.items() if passed} <= {key for key, passed in before.items() if passed}
            assert before.keys() <= after.keys(), (table, change.path)


@pytest.mark.parametrize("file", FOUND, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_recorded_file__a_status_that_nobody_knows__is_an_evaluation_error_that_names_it(tmp_path, file) -> None:
    base, target = read_prepared(file, tmp_path), copy_beside(file, tmp_path)
    if isinstance(base, GateError):
        return  # it is refused as it is, and the tests of its reader say why
    for name, table, change in iter_places(file):
        is_number = name == "braintrust" and re.fullmatch(r"[\d.]+", change.before)
        if (name, table.field) in OPEN or not (change.before in table.meanings or is_number):
            continue
        change.write(target, ODD)
        now = read(target)
        if isinstance(now, GateError):
            assert ODD in str(now.problems) or now.code == "results-incomplete", (table, change.path)
            continue
        lost = [key for key, passed in worst(base).items() if passed and not worst(now)[key]]
        named = [row for row in now.rows if row.error_kind is ErrorKind.EVALUATION_ERROR and ODD in str(row.error)]
        failing = [key for key, passed in worst(base).items() if not passed]
        assert named or (failing and not lost), (table, change.path)


def test_recorded_files__are_read_by_every_reader_and_hold_passes(tmp_path) -> None:
    found = {file: read_prepared(file, tmp_path) for file in FOUND}
    passes = {
        reader_of(file)
        for file, results in found.items()
        if isinstance(results, ExternalResults)
        if any(table.meanings.get(change.before) is Meaning.PASSED for _, table, change in iter_places(file))
    }
    assert passes == PLACES.keys() - {"braintrust", "jsonl"}, "what has only numbers has no status that could be turned"
    assert len([one for one in found.values() if isinstance(one, ExternalResults)]) >= MOST_READ
