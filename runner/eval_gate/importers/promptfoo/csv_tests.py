"""promptfoo tests in CSV tables: one column per variable, `__expected` columns for assertions.

Source: promptfoo 0.121, src/csv.ts.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.importers.import_result import NotImportableError, SourcePlace
from eval_gate.importers.promptfoo.assertions import KNOWN_TYPES, split_commas
from eval_gate.importers.promptfoo.config_files import LocatedValue, read_text_file
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import EXTERNAL_TEXT

_ASSERTION_CELL: Final = re.compile(
    rf"(not-)?({'|'.join(sorted(map(re.escape, KNOWN_TYPES)))})(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?", re.ASCII
)
_PROGRAMS: Final = {"javascript:": "javascript", "fn:": "javascript", "eval:": "javascript", "python:": "python"}
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_WITH_THRESHOLD: Final = frozenset(
    {
        *("answer-relevance", "classifier", "context-faithfulness", "context-recall", "context-relevance", "cost"),
        *("latency", "levenshtein", "perplexity-score", "perplexity", "rouge-n", "similar", "starts-with"),
    }
)
_OUTPUT_COLUMN: Final = "__providerOutput"


def iter_table_tests(path: Path, shown: str) -> Iterator[LocatedValue]:
    """Yield a test for each row of a table.

    Raises NotImportableError if the table cannot be read.
    """
    text = read_text_file(path, shown)
    csv.field_size_limit(EXTERNAL_TEXT)
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [name.strip() for name in next(rows, [])]
        if len(set(head)) != len(head):
            raise NotImportableError(f"{shown} has two columns with the same name")
        line = rows.line_num
        for cells in rows:
            place, line = SourcePlace(shown, line + 1), rows.line_num
            if any(cell.strip() for cell in cells):
                if len(cells) != len(head):
                    raise NotImportableError(f"{place} has {len(cells)} cells below {len(head)} columns")
                yield LocatedValue(_build_test(dict(zip(head, cells, strict=True))), place)
    except csv.Error as error:
        raise NotImportableError(f"{shown}:{rows.line_num} is not CSV: {error}") from error


def _build_test(row: dict[str, str]) -> dict[str, JsonValue]:
    """Convert a table row to a test as it is written in a configuration."""
    variables: dict[str, JsonValue] = {}
    asserts: list[JsonValue] = []
    options: dict[str, JsonValue] = {}
    metadata: dict[str, JsonValue] = {}
    test: dict[str, JsonValue] = {"vars": variables, "assert": asserts, "options": options, "metadata": metadata}
    for key, cell in row.items():
        if key.startswith("__expected"):
            asserts += [parse_assertion_cell(cell.strip())] if cell.strip() else []
        elif key in {"__prefix", "__suffix"}:
            options[key.removeprefix("__")] = cell
        elif key == "__threshold":
            test |= {"threshold": float(cell)} if _NUMBER.fullmatch(cell.strip()) else {}
        elif key.startswith("__metadata:"):
            metadata |= {key.removeprefix("__metadata:"): cell} if cell else {}
        elif key in {"__description", "__metric", "__metadata"}:
            test |= {"description": cell} if key == "__description" and cell else {}
        elif key.startswith("__config:") or key == _OUTPUT_COLUMN:
            test |= {key: cell} if cell else {}
        else:
            variables[key] = cell
    return test


def parse_assertion_cell(cell: str) -> dict[str, JsonValue]:
    """Parse a cell such as `icontains-any: yes, sure` as an assertion.

    A cell without an assertion type is the expected whole response.
    """
    if cell.startswith("file://"):
        # promptfoo runs what is a program, and compares with the path itself where it is none
        return {"type": "javascript"} if re.search(r"\.(?:[cm]?[jt]s|py)(?::|$)", cell) else _build_equals(cell)
    for prefix, kind in _PROGRAMS.items():
        if cell.startswith(prefix):
            return {"type": kind}
    for prefix in ("grade:", "llm-rubric:"):
        if cell.startswith(prefix):
            return {"type": "llm-rubric", "value": cell.removeprefix(prefix)}
    found = _ASSERTION_CELL.fullmatch(cell)
    if found is None:
        return _build_equals(cell)
    inverse, kind, threshold, value = found.groups()
    written: dict[str, JsonValue] = {"type": f"{inverse or ''}{kind}", "value": value and value.strip()}
    if kind in {"contains-all", "contains-any", "icontains-all", "icontains-any"}:
        written["value"] = [*split_commas(value)] if value else value
    if kind in _WITH_THRESHOLD:
        written["threshold"] = float(threshold) if threshold else 0.8 if kind == "similar" else 0.75
    return written


def _build_equals(cell: str) -> dict[str, JsonValue]:
    return {"type": "equals", "value": cell}
