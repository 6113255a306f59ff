"""Writes the statuses of docs/other-tools.md from the readers' tables: `python -m tests.support.write_statuses`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pathlib import Path

import eval_gate.external_results
from eval_gate.external_results.statuses import StatusTable
from tests.support.write_verdict_page import fill_block

PAGE = Path(__file__).parents[2] / "docs" / "other-tools.md"
START = "<!-- statuses: made by `python -m tests.support.write_statuses` -->\n"
END = "<!-- end of statuses -->"
FOLDER = Path(eval_gate.external_results.__file__).parent


def list_tables() -> dict[str, tuple[StatusTable, ...]]:
    """The tables of each reader, by its module."""
    modules = (import_module(f"eval_gate.external_results.{file.stem}") for file in sorted(FOLDER.glob("*.py")))
    return {one.__name__.rpartition(".")[2]: one.STATUSES for one in modules if hasattr(one, "STATUSES")}


def page() -> str:
    """The page with its table made anew."""
    return fill_block(PAGE.read_text(encoding="utf-8"), START, END, "\n".join(_list_rows()))


def _list_rows() -> Iterator[str]:
    yield "| results | field | counted as |"
    yield "|:--|:--|:--|"
    for tables in list_tables().values():
        for table in tables:
            values = sorted(
                table.meanings.items(), key=lambda one: list(dict.fromkeys(table.meanings.values())).index(one[1])
            )
            kinds = (
                f"{kind}: {', '.join(f'`{value}`' if value else 'none' for value, _ in rows)}"
                for kind, rows in groupby(values, key=lambda one: one[1])
            )
            yield f"| {table.tool} | {f'`{table.field}` {table.where}'.strip()} | {'; '.join(kinds)} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
