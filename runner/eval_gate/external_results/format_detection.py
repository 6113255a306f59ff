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
from eval_gate.external_results.result_rows import DOCS, ResultsReader, RowPlace
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
"""A line of Eval Gate's own format has one of these keys: other tools name their rows by an `id`, too."""
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
"""The same for a document of no other format; some of the keys are in the members of a list."""
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
        one.format: one
        for one in (JUNIT, TRX, *(row[1] for table in (_LINE_KEYS, _LIST_KEYS, _DOCUMENT_KEYS) for row in table))
    }
)
"""The readers by the format that --results-format names, for a file whose beginning does not show it."""
SUFFIXES: Final = (".jsonl", ".ndjson", ".csv", ".xml", ".json", ".eval", ".trx")
"""How files of results end; in a folder only such files are looked at."""


@contextmanager
def open_results(
    file: Path, shown_as: str, tool_format: ResultsFormat, encoding: str | None = None
) -> Iterator[tuple[KnownFormat, Path]]:
    """Detect the format of a file, and yield it with the file in UTF-8. Raises GateError as `detect_format` does."""
    known_format = detect_format(file, shown_as, tool_format, encoding)
    if known_format is INSPECT_ARCHIVE:
        yield known_format, file
        return
    with open_as_utf8(file, shown_as, encoding) as text:
        if known_format.format is ResultsFormat.AGENTV and text != file:  # its rows name files from where it stands
            raise RowPlace(shown_as).build_error("is not UTF-8, as AgentV writes it")
        yield known_format, text


def detect_format(
    file: Path, shown_as: str, tool_format: ResultsFormat = ResultsFormat.AUTO, encoding: str | None = None
) -> KnownFormat:
    """Detect the format of a file and return it with its reader.

    Raises GateError if the format is unknown or is not `tool_format`, and for a pipe or device, which may never end.
    """
    if file.exists() and not file.is_file():
        raise RowPlace(shown_as).build_error("is not a regular file")
    with RowPlace(shown_as).name_errors():
        head = read_limited_result(file, _HEAD)
    text = decode_head(head, encoding)
    match = _detect_from_head(text, file)
    if match is None and not head.strip():
        raise RowPlace(shown_as).build_error("is empty")
    if match is None and tool_format in _READERS:
        return CSV if tool_format is ResultsFormat.JSONL and not text.startswith(("{", "[")) else _READERS[tool_format]
    if match is None:
        if head.startswith(_ZIP) or (len(head) < _HEAD and text.startswith("{") and is_cut_off(text)):
            raise RowPlace(shown_as).build_incomplete_error(CUT_OFF)
        raise _build_unknown_error(text, shown_as)
    if tool_format is not ResultsFormat.AUTO and match.format is not tool_format:
        raise RowPlace(shown_as).build_error(f"is {match.format}, not {tool_format} as --results-format says")
    return match


def find_tool(file: Path) -> ResultsFormat | None:
    """Find the tool whose results a file holds; None if it is unknown or the file does not exist."""
    try:
        return detect_format(file, file.name).format
    except GateError:
        return None


def _build_unknown_error(text: str, shown_as: str) -> GateError:
    """Name the tool that wrote a file of an unknown format, or else describe what its content looks like."""
    other = identify_text(text)
    if other is not None and other.is_result:
        return RowPlace(shown_as).build_error(f"is {other.description}, but not in a form that is read")
    if other is not None:
        return RowPlace(shown_as).build_error(other.describe_alternative(shown_as))
    names = ", ".join(one for one in ResultsFormat if one is not ResultsFormat.AUTO)
    return RowPlace(shown_as).build_error(
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
    head_keys = _find_first_keys(text)
    match = _find_format(_DOCUMENT_KEYS, head_keys if keys is None else keys) or _find_format(_NESTED_KEYS, head_keys)
    if match is None and keys is None and len(line) == len(text.strip()):
        match = _find_format(_LONG_LINE_KEYS, head_keys)
    return match


def _find_format(table: _Marks, keys: set[str]) -> KnownFormat | None:
    """Return the first format of a table all of whose marks were seen."""
    return next((known_format for marks, known_format in table if marks <= keys), None)


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
