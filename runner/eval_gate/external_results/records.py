"""Records: values in results of other tools, read by paths, and the lines of tables.

A path is names with dots between them. Of several paths the first with a value counts; a missing value, or one of
another kind, is None or empty. A table is CSV with a comma, a semicolon or a tab; its first line names the columns.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from eval_gate.external_results.result_rows import (
    RowPlace,
    build_usage,
    parse_cost,
    parse_milliseconds,
    parse_number,
    parse_seconds,
    require_name,
    to_text,
)
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.limits import EXTERNAL_COLUMNS, EXTERNAL_TEXT
from eval_gate.model.usage import Usage

_MAX_TAGS = 50


@lru_cache(1_000)
def _split_path(path: str) -> Sequence[str]:
    return path.split(".") if path else ()


class Fields:
    """A value in a results file, most often a mapping."""

    __slots__ = ("value",)

    def __init__(self, value: JsonValue) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)

    def get(self, path: str = "", *other_paths: str) -> JsonValue:
        """Return the first value at these paths that is not empty, else the last; without a path the whole."""
        value = self.value
        for name in _split_path(path):
            if not isinstance(value, dict):
                value = None
                break
            value = value.get(name)
        return self.get(*other_paths) if other_paths and not value else value

    def at(self, *paths: str) -> Fields:
        """Return the same as a record."""
        return Fields(self.get(*paths))

    def has(self, name: str) -> bool:
        """Whether a mapping has this name, if only with null."""
        return isinstance(self.value, dict) and name in self.value

    def columns(self, *prefixes: str) -> dict[str, JsonValue]:
        """Return the columns whose names begin with one of these, without that."""
        row = self.value if isinstance(self.value, dict) else {}
        names = ((name, prefix) for name in row for prefix in prefixes if name.startswith(prefix))
        return {name.removeprefix(prefix): row[name] for name, prefix in names}

    def text(self, *paths: str) -> str:
        """Return a text, or compact JSON, or nothing for null."""
        return to_text(self.get(*paths))

    def text_or_none(self, path: str) -> str | None:
        """Return the same text, or None for null."""
        value = self.get(path)
        return None if value is None else to_text(value)

    def name(self, *paths: str, place: RowPlace) -> str:
        """Return the name of a case. Raises GateError for what is none, calling it by its last path."""
        return require_name(self.get(*paths), place, paths[-1])

    def number(self, path: str = "", *other_paths: str) -> float | None:
        """Return the first finite number at these paths; true and false are none."""
        number = parse_number(self.get(path))
        return self.number(*other_paths) if other_paths and number is None else number

    def count(self, *paths: str) -> int:
        """Return a count that is not negative, or 0 for any other value."""
        return int(max(self.number(*paths) or 0, 0))

    def seconds(self, path: str) -> float | None:
        """Return a number of seconds as milliseconds."""
        return parse_seconds(self.get(path))

    def milliseconds(self, *paths: str) -> float | None:
        """Return a duration in milliseconds."""
        return parse_milliseconds(self.get(*paths))

    def cost(self, path: str) -> float | None:
        """Return a cost in US dollars."""
        return parse_cost(self.get(path))

    def usage(self, inputs: str, outputs: str) -> Usage | None:
        """Return the tokens, where at least one side is known."""
        return build_usage(self.get(inputs), self.get(outputs))

    def members(self, *paths: str) -> Sequence[Fields]:
        """Return the members of a list."""
        value = self.get(*paths)
        return [Fields(member) for member in value] if isinstance(value, list) else ()

    def items(self, *paths: str) -> Iterator[tuple[str, Fields]]:
        """Yield the names and values of a mapping."""
        value = self.get(*paths)
        return ((name, Fields(member)) for name, member in (value.items() if isinstance(value, dict) else ()))

    def tags(self, path: str) -> tuple[str, ...]:
        """Return the tags of a case."""
        return tuple(to_text(tag.value)[:100] for tag in self.members(path)[:_MAX_TAGS])

    def call(self, name: str, params: str, result: JsonValue = None) -> ToolCall:
        """Return a tool call. Parameters that are no mapping are left out."""
        value = self.get(params)
        return ToolCall(name=self.text(name)[:1_000], params=value if isinstance(value, dict) else {}, result=result)


def iter_listed_records(record: Fields, lists: Sequence[str], shown_as: str) -> Iterator[tuple[str, Fields, RowPlace]]:
    """Yield the mappings in a document's lists, with list and place. Raises GateError if the first list is missing."""
    if not isinstance(record.get(lists[0]), list):
        raise RowPlace(shown_as, field=lists[0]).build_error("is missing")
    for name in lists:
        for at, member in enumerate(record.members(name)):
            place = RowPlace(shown_as, field=f"{name}[{at}]")
            yield name, require_record(member.value, place), place


def require_record(value: JsonValue, place: RowPlace) -> Fields:
    """Return a mapping as a record. Raises GateError for any other value."""
    if not isinstance(value, dict):
        raise place.build_error("is not a mapping")
    return Fields(value)


_HEAD: Final = 1 << 16


def find_separator(line: str) -> str:
    """Find the column separator in the first line: a comma, or a semicolon or tab if the line has no comma."""
    return next((one for one in ",;\t" if one in line), ",")


def iter_table_rows(file: Path, shown_as: str) -> Iterator[tuple[RowPlace, dict[str, str]]]:
    """Yield each line by column, with its place. Raises GateError if it cannot be read or columns are unclear."""
    place = RowPlace(shown_as, 1)
    csv.field_size_limit(EXTERNAL_TEXT)
    try:
        with RowPlace(shown_as, 1).name_errors(), file.open(encoding="utf-8-sig", newline="") as stream:
            beginning = stream.readline(_HEAD)
            stream.seek(0)
            table = csv.DictReader(stream, delimiter=find_separator(beginning))
            names = table.fieldnames or ()
            if len(names) > EXTERNAL_COLUMNS:  # every row would have as many cells
                raise RowPlace(shown_as, 1).build_error(f"has more than {EXTERNAL_COLUMNS:,} columns")
            if twice := next((name for name in names if name and names.count(name) > 1), None):
                what = "is a column twice: it is unclear which one counts"
                raise RowPlace(shown_as, 1, twice[:100]).build_error(what)
            for cells in table:
                place = RowPlace(shown_as, table.line_num)
                if None in cells:
                    raise place.build_error("has more cells than columns")
                yield place, {name: cell or "" for name, cell in cells.items()}
    except csv.Error as error:
        raise place.build_error(f"is not CSV: {error}") from None
