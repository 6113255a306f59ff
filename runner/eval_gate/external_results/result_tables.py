"""Tables of results: CSV with a comma, a semicolon or a tab, whose first line names the columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.format_detection import find_separator
from eval_gate.external_results.result_rows import RowPlace, build_unreadable_error, name_errors
from eval_gate.model.limits import EXTERNAL_COLUMNS, EXTERNAL_TEXT

_HEAD: Final = 1 << 16


def iter_table_rows(file: Path, shown_as: str) -> Iterator[tuple[RowPlace, dict[str, str]]]:
    """Yield each line by column, with its place. Raises GateError if it cannot be read or columns are unclear."""
    place = RowPlace(shown_as, 1)
    csv.field_size_limit(EXTERNAL_TEXT)
    try:
        with name_errors(RowPlace(shown_as, 1)), file.open(encoding="utf-8-sig", newline="") as stream:
            beginning = stream.readline(_HEAD)
            stream.seek(0)
            table = csv.DictReader(stream, delimiter=find_separator(beginning))
            names = table.fieldnames or ()
            if len(names) > EXTERNAL_COLUMNS:  # every row would have as many cells
                raise build_unreadable_error(RowPlace(shown_as, 1), f"has more than {EXTERNAL_COLUMNS:,} columns")
            if twice := next((name for name in names if name and names.count(name) > 1), None):
                what = "is a column twice: it is unclear which one counts"
                raise build_unreadable_error(RowPlace(shown_as, 1, twice[:100]), what)
            for cells in table:
                place = RowPlace(shown_as, table.line_num)
                if None in cells:
                    raise build_unreadable_error(place, "has more cells than columns")
                yield place, {name: cell or "" for name, cell in cells.items()}
    except csv.Error as error:
        raise build_unreadable_error(place, f"is not CSV: {error}") from None
