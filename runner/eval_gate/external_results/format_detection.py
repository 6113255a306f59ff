"""Detection of the tool that wrote a file, by its content and never by its name alone."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, cast

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import GateError
from eval_gate.external_results.json_streaming import CUT_OFF, is_cut_off
from eval_gate.external_results.records import find_separator
from eval_gate.external_results.result_encoding import decode_head, open_as_utf8
from eval_gate.external_results.result_rows import (
    DOCS,
    ResultsReader,
    RowPlace,
)
from eval_gate.files.reading import read_limited_result
from eval_gate.struct import FrozenStruct
from eval_gate.text.untrusted.unsupported_files import describe_content, identify_text

_HEAD: Final = 1 << 16
_ZIP: Final = b"PK\x03\x04"
_ROOT: Final = re.compile(r"<(?:[A-Za-z_][\w.-]{0,40}:)?([A-Za-z_]\w{0,40})")
"""The first element of XML."""
_KEY: Final = re.compile(r'"((?:[^"\\]|\\.){1,60})"\s*:')


class KnownFormat(FrozenStruct):
    """Format with the reader that fits a file: `module:function` of this package, loaded on use."""

    format: ResultsFormat
    function: str

    def load_reader(self) -> ResultsReader:
        """Import the module of the format, which takes time and is needed for few files, and return its reader."""
        module, _, name = self.function.partition(":")
        return cast("ResultsReader", getattr(import_module(f"eval_gate.external_results.{module}"), name))


JSONL: Final = KnownFormat(ResultsFormat.JSONL, "jsonl:read_jsonl")
CSV: Final = KnownFormat(ResultsFormat.JSONL, "jsonl:read_csv")
JUNIT: Final = KnownFormat(ResultsFormat.JUNIT, "junit:read_junit")
TRX: Final = KnownFormat(ResultsFormat.TRX, "trx:read_trx")
INSPECT_ARCHIVE: Final = KnownFormat(ResultsFormat.INSPECT, "inspect_ai:read_inspect_archive")
PYDANTIC_EVALS: Final = KnownFormat(ResultsFormat.PYDANTIC_EVALS, "pydantic_evals:read_pydantic_evals")
NESTED_ADK: Final = KnownFormat(ResultsFormat.ADK, "adk:read_nested_adk")
AZURE: Final = KnownFormat(ResultsFormat.AZURE, "azure:read_azure")
BRAINTRUST: Final = KnownFormat(ResultsFormat.BRAINTRUST, "braintrust:read_braintrust")
BRAINTRUST_LINES: Final = KnownFormat(ResultsFormat.BRAINTRUST, "braintrust:read_braintrust_lines")
BRAINTRUST_TABLE: Final = KnownFormat(ResultsFormat.BRAINTRUST, "braintrust:read_braintrust_table")
LANGSMITH: Final = KnownFormat(ResultsFormat.LANGSMITH, "langsmith:read_langsmith")
LANGSMITH_LINES: Final = KnownFormat(ResultsFormat.LANGSMITH, "langsmith:read_langsmith_lines")

_Marks = tuple[tuple[set[str], KnownFormat], ...]
_LINE_KEYS: Final[_Marks] = (
    ({"spec"}, KnownFormat(ResultsFormat.OPENAI, "openai_evals:read_openai")),
    ({"test_id", "execution_status"}, KnownFormat(ResultsFormat.AGENTV, "agentv:read_agentv")),
    ({"promptIdx", "testCase"}, KnownFormat(ResultsFormat.PROMPTFOO, "promptfoo:read_promptfoo_lines")),
    ({"root_span_id"}, BRAINTRUST_LINES),
    ({"run", "example", "evaluation_results"}, LANGSMITH_LINES),
    ({"example_id", "execution_time"}, LANGSMITH_LINES),
    ({"id"}, JSONL),
    ({"input", "output", "expected", "scores"}, BRAINTRUST_LINES),
)
"""Keys of a line that only this format has, the surest first."""
_VERDICTS: Final = ("status", "score", "checks")
"""Keys of a line of our own format, of which one is needed; other tools name their rows by an `id`, too."""
_LONG_LINE_KEYS: Final[_Marks] = (
    *(keyed for keyed in _LINE_KEYS if keyed[1] is not JSONL),
    ({"id", "status"}, JSONL),
    ({"id", "score"}, JSONL),
    ({"id", "checks"}, JSONL),
)
"""The same of a first line so long that its end is not seen. What is no line of results says so when it is read."""
_DOCUMENT_KEYS: Final[_Marks] = (
    ({"evalId", "results"}, KnownFormat(ResultsFormat.PROMPTFOO, "promptfoo:read_promptfoo")),
    ({"testCases"}, KnownFormat(ResultsFormat.DEEPEVAL, "deepeval:read_deepeval")),
    ({"eval", "status"}, KnownFormat(ResultsFormat.INSPECT, "inspect_ai:read_inspect")),
    ({"cases", "failures"}, PYDANTIC_EVALS),
    ({"cases", "analyses"}, PYDANTIC_EVALS),
    ({"eval_set_result_id"}, KnownFormat(ResultsFormat.ADK, "adk:read_adk")),
    ({"index_path", "status", "counts"}, KnownFormat(ResultsFormat.AGENTV, "agentv:read_agentv_summary")),
    ({"rows", "metrics"}, AZURE),
    ({"rows", "inputs."}, AZURE),
)
"""The same for the beginning of a document. Of a large one only its first keys are seen."""
_NESTED_KEYS: Final[_Marks] = (
    ({"events", "root_span_id"}, BRAINTRUST),
    ({"results", "summary", "input", "scores"}, BRAINTRUST),
)
"""The same for keys of which some are in the members of a list, in documents of no other format."""
_LIST_KEYS: Final[_Marks] = (
    ({"root_span_id"}, BRAINTRUST),
    ({"run", "example", "evaluation_results"}, LANGSMITH),
    ({"example_id", "execution_time"}, LANGSMITH),
    ({"input", "output", "expected", "scores"}, BRAINTRUST),
)
"""The same for the beginning of a list."""
_TABLE_COLUMNS: Final[_Marks] = (
    ({"example_id", "execution_time"}, KnownFormat(ResultsFormat.LANGSMITH, "langsmith:read_langsmith_table")),
    ({"root_span_id"}, BRAINTRUST_TABLE),
    ({"id"}, CSV),
    ({"input", "output", "expected", "scores"}, BRAINTRUST_TABLE),
)
"""The same for the columns of a table."""
_READERS: Final[Mapping[ResultsFormat, KnownFormat]] = MappingProxyType(
    {
        known.format: known
        for known in (JUNIT, TRX, *(known for table in (_LINE_KEYS, _LIST_KEYS, _DOCUMENT_KEYS) for _, known in table))
    }
)
"""Who reads a file that somebody says is of this format, where its beginning does not show it."""
SUFFIXES: Final = (".jsonl", ".ndjson", ".csv", ".xml", ".json", ".eval", ".trx")
"""How files of results end; in a folder only such files are looked at."""


@contextmanager
def open_results(
    file: Path, shown: str, wanted: ResultsFormat, encoding: str | None = None
) -> Iterator[tuple[KnownFormat, Path]]:
    """Detect the format of a file, and yield it with the file in UTF-8. Raises GateError as `detect_format` does."""
    known = detect_format(file, shown, wanted, encoding)
    if known is INSPECT_ARCHIVE:
        yield known, file
        return
    with open_as_utf8(file, shown, encoding) as text:
        if known.format is ResultsFormat.AGENTV and text != file:  # its rows name files from where it stands
            raise RowPlace(shown).build_error("is not UTF-8, as AgentV writes it")
        yield known, text


def detect_format(
    file: Path, shown: str, wanted: ResultsFormat = ResultsFormat.AUTO, encoding: str | None = None
) -> KnownFormat:
    """Detect the format of a file and return it with its reader.

    Raises GateError if the format is unknown or is not `wanted`, and for a pipe or device, which may never end.
    """
    if file.exists() and not file.is_file():
        raise RowPlace(shown).build_error("is not a regular file")
    with RowPlace(shown).name_errors():
        head = read_limited_result(file, _HEAD)
    text = decode_head(head, encoding)
    found = _detect_from_head(text, file)
    if found is None and not head.strip():
        raise RowPlace(shown).build_error("is empty")
    if found is None and wanted in _READERS:
        return CSV if wanted is ResultsFormat.JSONL and not text.startswith(("{", "[")) else _READERS[wanted]
    if found is None:
        if head.startswith(_ZIP) or (len(head) < _HEAD and text.startswith("{") and is_cut_off(text)):
            raise RowPlace(shown).build_incomplete_error(CUT_OFF)
        raise _build_unknown_error(text, shown)
    if wanted is not ResultsFormat.AUTO and found.format is not wanted:
        raise RowPlace(shown).build_error(f"is {found.format}, not {wanted} as --results-format says")
    return found


def find_tool(file: Path) -> ResultsFormat | None:
    """Whose results a file holds; None where that is not known, or there is no such file."""
    try:
        return detect_format(file, file.name).format
    except GateError:
        return None


def _build_unknown_error(text: str, shown: str) -> GateError:
    """Name the tool that wrote a file of an unknown format, or else describe what its content looks like."""
    other = identify_text(text)
    if other is not None and other.is_result:
        return RowPlace(shown).build_error(f"is {other.description}, but not in a form that is read")
    if other is not None:
        return RowPlace(shown).build_error(other.describe_alternative(shown))
    names = ", ".join(one for one in ResultsFormat if one is not ResultsFormat.AUTO)
    return RowPlace(shown).build_error(
        f"is not a supported format; it looks like {describe_content(text)}",
        f"name the format with --results-format to see what is missing ({names}); {DOCS} shows what each format needs",
    )


def _detect_from_head(text: str, file: Path) -> KnownFormat | None:
    if zipfile.is_zipfile(file):
        return INSPECT_ARCHIVE
    if text.startswith("<"):
        root = _ROOT.search(text)
        return TRX if root and root[1] == "TestRun" else None if identify_text(text) else JUNIT
    if text.startswith('"{'):  # JSON within JSON
        return NESTED_ADK if "eval_set_result_id" in _find_first_keys(text.replace('\\"', '"')) else None
    if text.startswith("["):
        return _find_format(_LIST_KEYS, _find_first_keys(text))
    if not text.startswith("{"):
        return _find_format(_TABLE_COLUMNS, set(_split_columns(text)))
    line = text.partition("\n")[0].strip()
    keys = _parse_line_keys(line)
    if keys is not None and (keyed := _find_format(_LINE_KEYS, keys)):
        return None if keyed is JSONL and keys.isdisjoint(_VERDICTS) and identify_text(line) is not None else keyed
    seen = _find_first_keys(text)
    found = _find_format(_DOCUMENT_KEYS, seen if keys is None else keys) or _find_format(_NESTED_KEYS, seen)
    if found is None and keys is None and len(line) == len(text.strip()):
        found = _find_format(_LONG_LINE_KEYS, seen)
    return found


def _find_format(table: _Marks, seen: set[str]) -> KnownFormat | None:
    """Return the first format of a table all of whose marks were seen."""
    return next((known for marks, known in table if marks <= seen), None)


def _parse_line_keys(line: str) -> set[str] | None:
    """Return the keys of a JSON object in one line, or None if the line is not a whole object."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return set(value) if isinstance(value, dict) else None


def _find_first_keys(text: str) -> set[str]:
    """Return the keys at any depth, and what stands before their dots, in the beginning of a large document."""
    keys = {match[1] for match in _KEY.finditer(text)}
    return keys | {f"{head}." for head, dot, _ in (key.partition(".") for key in keys) if dot}


def _split_columns(text: str) -> list[str]:
    line = text.partition("\n")[0]
    return [name.strip().strip('"') for name in line.split(find_separator(line))]
