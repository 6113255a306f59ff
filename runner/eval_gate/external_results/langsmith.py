"""LangSmith's experiments: the rows of `evaluate()` as JSON, or `to_pandas()` as CSV, JSON or JSON lines.

Feedback that is true or false decides; a number needs a rule. An evaluator that raised has no score: the rows say why,
the table has an empty cell. A case is named by its inputs, because the id of an example is nothing that people read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eval_gate.external_results.chat_turns import find_turns
from eval_gate.external_results.json_streaming import iter_lines, iter_records, open_document
from eval_gate.external_results.records import Fields, iter_table_rows
from eval_gate.external_results.result_rows import (
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    find_exception,
    parse_seconds,
    to_text,
)
from eval_gate.external_results.statuses import (
    PromptedCase,
    build_prompted_row,
    build_score,
    end_execution,
    let_verdicts_decide,
    parse_tables,
)
from eval_gate.model.base import JsonValue

_SUITE: Final = "experiment"
_FEEDBACK: Final = "feedback."
STATUSES: Final = parse_tables("""
LangSmith 0.15.1: score that is no number, where a text is a category and has no verdict
  passed: true; failed: false; evaluation error: -
""")
_NO_SCORE: Final = "gave no score: see the log of the run"
_BOOLEANS: Final = {"True": True, "true": True, "False": False, "false": False}
_MISSING: Final = frozenset({"", "nan", "NaN", "None", "<NA>"})


def read_langsmith(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every run of every example in a JSON list."""
    facts.tool = "LangSmith"
    with open_document(file, shown_as) as document:
        for place, member in iter_records(document, shown_as, ("results",)):
            yield _read_member(member, place)


def read_langsmith_lines(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every run of every example in JSON lines."""
    facts.tool = "LangSmith"
    for place, member in iter_lines(file, shown_as):
        yield _read_member(member, place)


def read_langsmith_table(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every run of every example in a table."""
    facts.tool = "LangSmith"
    for place, cells in iter_table_rows(file, shown_as):
        yield _read_columns(Fields({name: _parse_cell(name, cell) for name, cell in cells.items()}), place)


def _parse_cell(name: str, cell: str) -> JsonValue:
    """Parse what pandas wrote: an empty cell has no value, and only feedback and times are no texts."""
    if cell in _MISSING:
        return None
    if not (name.startswith(_FEEDBACK) or name == "execution_time"):
        return cell
    if cell in _BOOLEANS:
        return _BOOLEANS[cell]
    try:
        return float(cell)
    except ValueError:
        return cell


def _read_member(member: Fields, place: RowPlace) -> ResultRow:
    return _read_nested(member, place) if member.has("run") else _read_columns(member, place)


def _read_columns(row: Fields, place: RowPlace) -> ResultRow:
    """Read a row of `to_pandas()`. Its columns are those of all rows, so that null may be none of this one."""
    scores = [_build_score(name, value, None, broke=False) for name, value in row.columns(_FEEDBACK).items()]
    built = _build_row(place, row.columns("inputs.", "input."), row.columns("reference."), scores, row.text("error"))
    return built._replace(
        response=_format_values(row.columns("outputs.")) or None,
        duration_ms=row.seconds("execution_time"),
        repeat=row.text("example_id") or None,
        trace=row.text("id") or None,
    )


def _read_nested(row: Fields, place: RowPlace) -> ResultRow:
    """Read a row of `evaluate()`: the run, its example and the results of the evaluators."""
    start, end = (_parse_time(row.get(f"run.{key}_time")) for key in ("start", "end"))
    scores = [*map(_read_score, row.members("evaluation_results.results"))]
    inputs = row.get("example.inputs", "run.inputs")
    return _build_row(place, inputs, row.get("example.outputs"), scores, row.text("run.error"))._replace(
        response=_format_values(row.get("run.outputs")) or None,
        turns=find_turns(row.at("run.outputs")),
        duration_ms=parse_seconds((end - start).total_seconds()) if start and end else None,
        repeat=row.text("run.reference_example_id", "example.id") or None,
        trace=row.text("run.url", "run.trace_id", "run.id") or None,
    )


def _read_score(result: Fields) -> RowScore:
    value, broke = result.get("score"), result.get("extra.error") is True
    value = result.get("value") if value is None else value
    return _build_score(result.text("key"), value, result.text("comment") or None, broke=broke)


def _parse_time(value: JsonValue) -> datetime | None:
    """Parse a time, of UTC where it names no zone. Return None for anything else."""
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time and (time if time.tzinfo else time.replace(tzinfo=UTC))


def _build_score(name: str, value: JsonValue, comment: str | None, *, broke: bool) -> RowScore:
    name = name[:200] or "evaluator"
    if broke or value is None:
        return RowScore(name, None, reason=comment or _NO_SCORE, grader_failed=True)
    if isinstance(value, bool | int | float):
        return build_score(STATUSES[0], name, value, comment)
    return RowScore(name, None, reason=comment or to_text(value), decides=False)


def _build_row(
    place: RowPlace, inputs: JsonValue, reference: JsonValue, scores: Sequence[RowScore], error: str
) -> ResultRow:
    """Build the row of one run of one example."""
    decisive = let_verdicts_decide(scores)
    ending = end_execution(decisive, find_exception(error) if error else None)
    case = PromptedCase(_SUITE, _format_values(inputs), _format_values(reference) or None, "inputs")
    return build_prompted_row(case, ending, place)._replace(scores=decisive)


def _format_values(mapping: JsonValue) -> str:
    """Return the value where there is only one, else all with their names; a run that raised has one of null."""
    members = mapping.items() if isinstance(mapping, dict) else ()
    values: dict[str, JsonValue] = {name: one for name, one in members if one is not None}
    return to_text(next(iter(values.values())) if len(values) == 1 else values) if values else ""
