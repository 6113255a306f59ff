"""Writes the tables of the README of the draft benchmark from its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.drafts.plants import COUNTS, Plant, draw_plants
from eval_gate.struct import FrozenStruct

README: Final = Path(__file__).with_name("README.md")
_BEGIN: Final = "<!-- tables: begin -->"
_END: Final = "<!-- tables: end -->"


class Column(FrozenStruct):
    """One way to check a suite, as a column of the table."""

    title: str
    suite: str
    """Key of the suite in the results."""
    statuses: frozenset[str] | None = None
    """Statuses of EvalView that fail the check; None: the exit code and the named cases decide."""

    def finds(self, results: Mapping[str, Any], plant: Plant) -> bool:
        """Tell whether the check fails because of the case of the changed question."""
        outcome = results[self.suite]["plants"][str(plant.number)]
        if self.statuses is None:
            return outcome["exit"] == 1 and outcome["failed"]
        return outcome["reason"] in self.statuses

    def count_red(self, results: Mapping[str, Any]) -> int:
        """Count the runs of the unchanged agent that are red."""
        runs = results[self.suite]["unchanged"]
        if self.statuses is None:
            return _count_red(runs)
        return sum(bool(self.statuses & set(run["reasons"])) for run in runs)


COLUMNS: Final = (
    Column("Eval Gate", "drafted"),
    Column("… `--format agentv`", "agentv"),
    Column("EvalView `capture`", "capture"),
    Column("… `--fail-on REGRESSION,TOOLS_CHANGED`", "capture", frozenset({"regression", "tools_changed"})),
    Column("… `--strict`", "capture", frozenset({"regression", "tools_changed", "output_changed"})),
    Column("EvalView `generate`", "generate"),
)
EVERY: Final = {
    "every": "twenty questions",
    "every-agentv": "twenty questions, `--format agentv`",
    "clinic": "the clinic",
}
"""Suites that are tried with every possible change, as columns."""
WEAK: Final = {
    "weak-response": "a response that is not empty",
    "weak-tools": "which tools were called, but not how often or with what",
}
"""Weak suites: what each case of them still checks."""


def write_readme(results: Mapping[str, Any]) -> None:
    """Replace the tables of the README."""
    text = README.read_text(encoding="utf-8")
    head, _, rest = text.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    README.write_text(f"{head}{_BEGIN}\n{render_tables(results)}{_END}{tail}", encoding="utf-8")


def render_tables(results: Mapping[str, Any]) -> str:
    """Return all tables for which there are results."""
    plants = draw_plants()
    columns = [column for column in COLUMNS if column.suite in results]
    parts = [_render_kinds(results, plants, columns)]
    weak = [name for name in WEAK if name in results]
    if weak:
        parts += ["## Where the suite is too weak to fail\n", _render_weak(results, plants, weak)]
    every = [name for name in EVERY if name in results]
    if every:
        parts += ["## Every change that could have been planted\n", _render_every(results, every)]
    parts += ["## The forty planted changes\n", _render_plants(results, plants, columns, weak)]
    return "\n" + "\n".join(parts) + "\n"


def _render_kinds(results: Mapping[str, Any], plants: Sequence[Plant], columns: Sequence[Column]) -> str:
    rows = [
        (f"{kind} ({count})", *(_count(plants, kind, column.finds, results) for column in columns))
        for kind, count in COUNTS.items()
    ]
    found = [sum(column.finds(results, plant) for plant in plants) for column in columns]
    rows.append(("**found of 40**", *(f"**{count}**" for count in found)))
    red = [f"**{column.count_red(results)} of {len(results[column.suite]['unchanged'])}**" for column in columns]
    rows.append(("**unchanged agent: red runs**", *red))
    rows.append(("questions with a case (20)", *(len(results[column.suite]["covered"]) for column in columns)))
    return _render_table(["planted change", *(column.title for column in columns)], rows)


def _count(
    plants: Sequence[Plant], kind: str, finds: Callable[[Mapping[str, Any], Plant], bool], results: Mapping[str, Any]
) -> int:
    return sum(finds(results, plant) for plant in plants if plant.kind == kind)


def _render_weak(results: Mapping[str, Any], plants: Sequence[Plant], weak: Sequence[str]) -> str:
    rows = []
    for name in weak:
        outcomes = [results[name]["plants"][str(plant.number)] for plant in plants]
        runs = results[name]["unchanged"]
        failed = sum(outcome["exit"] == 1 and outcome["failed"] for outcome in outcomes)
        noticed = sum(outcome["noticed"] and not outcome["failed"] for outcome in outcomes)
        wrong = sum(bool(run["noticed"]) for run in runs)
        rows.append((WEAK[name], failed, noticed, 40 - failed - noticed, f"{wrong} of {len(runs)}"))
    head = [
        "each case checks only",
        "fails",
        "passes, and is named as changed",
        "neither",
        "unchanged agent: names a case",
    ]
    return _render_table(head, rows)


def _render_every(results: Mapping[str, Any], names: Sequence[str]) -> str:
    counts = {name: results[name]["kinds"] for name in names}
    rows: list[tuple[object, ...]] = [
        (kind, *("{} of {}".format(*counts[name][kind]) for name in names)) for kind in COUNTS
    ]
    sums = [[sum(pair[at] for pair in counts[name].values()) for at in (0, 1)] for name in names]
    rows.append(("**found**", *(f"**{found} of {total}**" for found, total in sums)))
    noticed = [sum(one["noticed"] for one in results[name]["missed"]) for name in names]
    rows.append(("passes, and is named as changed", *noticed))
    runs = [results[name]["unchanged"] for name in names]
    rows.append(("**unchanged agent: red runs**", *(f"**{_count_red(each)} of {len(each)}**" for each in runs)))
    return _render_table(["change", *(EVERY[name] for name in names)], rows)


def _count_red(runs: Sequence[Mapping[str, Any]]) -> int:
    return sum(run["exit"] != 0 for run in runs)


def _render_plants(
    results: Mapping[str, Any], plants: Sequence[Plant], columns: Sequence[Column], weak: Sequence[str]
) -> str:
    shown = [column for column in columns if column.statuses is None]
    rows = [
        (
            plant.number,
            plant.question,
            plant.kind,
            plant.detail,
            *("found" if column.finds(results, plant) else "" for column in shown),
            *(_say_noticed(results[name]["plants"][str(plant.number)]) for name in weak),
        )
        for plant in plants
    ]
    titles = [*(column.title for column in shown), *(f"`{name}`" for name in weak)]
    return _render_table(["#", "question", "kind", "change", *titles], rows)


def _say_noticed(outcome: Mapping[str, Any]) -> str:
    return "fails" if outcome["failed"] else "named" if outcome["noticed"] else ""


def _render_table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, [":--"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)
