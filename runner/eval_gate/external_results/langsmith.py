"""LangSmith's experiments: the rows of `evaluate()` as JSON, or `to_pandas()` as CSV, JSON or JSON lines.

Feedback that is true or false decides; a number needs a rule. An evaluator that raised has no score: the rows say why,
the table has an empty cell. A case is named by its inputs, because the id of an example is nothing that people read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eval_gate.external_results.json_streaming import iter_json_lines, iter_listed_mappings, open_document
from eval_gate.external_results.result_rows import (
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    find_exception,
    get_members,
    get_nested,
    parse_seconds,
    require_mapping,
    to_text,
)
from eval_gate.external_results.result_tables import iter_table_rows
from eval_gate.external_results.scored_rows import (
    PromptedCase,
    build_prompted_row,
    build_score,
    end_execution,
    let_verdicts_decide,
)
from eval_gate.external_results.statuses import parse_tables
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct

_SUITE: Final = "experiment"
_FEEDBACK: Final = "feedback."
STATUSES: Final = parse_tables("""
LangSmith 0.15.1: score that is no number, where a text is a category and has no verdict
  passed: true; failed: false; evaluation error: -
""")
_NO_SCORE: Final = "gave no score: see the log of the run"
_BOOLEANS: Final = {"True": True, "true": True, "False": False, "false": False}
_MISSING: Final = frozenset({"", "nan", "NaN", "None", "<NA>"})


class _Execution(FrozenStruct):
    """One run of one example."""

    example: str
    inputs: dict[str, JsonValue]
    outputs: dict[str, JsonValue]
    reference: dict[str, JsonValue]
    scores: tuple[RowScore, ...]
    error: str
    duration_ms: float | None


def read_langsmith(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every run of every example in a JSON list."""
    facts.tool = "LangSmith"
    with open_document(file, shown_as) as document:
        for place, member in iter_listed_mappings(document, shown_as, ("results",)):
            yield _build_row(_read_member(member), place)


def read_langsmith_lines(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every run of every example in JSON lines."""
    facts.tool = "LangSmith"
    for place, member in iter_json_lines(file, shown_as):
        yield _build_row(_read_member(require_mapping(member, place)), place)


def read_langsmith_table(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every run of every example in a table."""
    facts.tool = "LangSmith"
    for place, cells in iter_table_rows(file, shown_as):
        yield _build_row(_read_columns({name: _parse_cell(name, cell) for name, cell in cells.items()}), place)


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


def _read_member(member: dict[str, JsonValue]) -> _Execution:
    return _read_nested(member) if "run" in member else _read_columns(member)


def _read_columns(row: Mapping[str, JsonValue]) -> _Execution:
    """Read a row of `to_pandas()`. Its columns are those of all rows, so that null may be none of this one."""

    def select(*prefixes: str) -> dict[str, JsonValue]:
        names = ((name, prefix) for name in row for prefix in prefixes if name.startswith(prefix))
        return {name.removeprefix(prefix): row[name] for name, prefix in names if row[name] is not None}

    feedback = {name.removeprefix(_FEEDBACK): value for name, value in row.items() if name.startswith(_FEEDBACK)}
    return _Execution(
        to_text(row.get("example_id")),
        select("inputs.", "input."),
        select("outputs."),
        select("reference."),
        tuple(_build_score(name, value, None, broke=False) for name, value in feedback.items()),
        to_text(row.get("error")),
        parse_seconds(row.get("execution_time")),
    )


def _read_nested(row: dict[str, JsonValue]) -> _Execution:
    """Read a row of `evaluate()`: the run, its example and what the evaluators said."""
    run, example = row.get("run"), row.get("example")
    results = get_members(get_nested(row.get("evaluation_results"), "results"))
    times = [_parse_time(get_nested(run, key)) for key in ("start_time", "end_time")]
    return _Execution(
        to_text(get_nested(run, "reference_example_id") or get_nested(example, "id")),
        _get_mapping(get_nested(example, "inputs") or get_nested(run, "inputs")),
        _get_mapping(get_nested(run, "outputs")),
        _get_mapping(get_nested(example, "outputs")),
        tuple(_read_result(one) for one in results),
        to_text(get_nested(run, "error")),
        parse_seconds((times[1] - times[0]).total_seconds()) if times[0] and times[1] else None,
    )


def _read_result(result: JsonValue) -> RowScore:
    value = get_nested(result, "score")
    return _build_score(
        to_text(get_nested(result, "key")),
        get_nested(result, "value") if value is None else value,
        to_text(get_nested(result, "comment")) or None,
        broke=get_nested(result, "extra", "error") is True,
    )


def _get_mapping(value: JsonValue) -> dict[str, JsonValue]:
    """Return what is in a mapping but its nulls: a run that raised has an `output` of null."""
    return {name: one for name, one in value.items() if one is not None} if isinstance(value, dict) else {}


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


def _build_row(found: _Execution, place: RowPlace) -> ResultRow:
    scores = let_verdicts_decide(found.scores)
    ended = end_execution(scores, find_exception(found.error) if found.error else None)
    case = PromptedCase(_SUITE, _format_values(found.inputs), _format_values(found.reference) or None, "inputs")
    row = build_prompted_row(case, ended, place)
    return row._replace(
        scores=scores,
        response=_format_values(found.outputs) or None,
        duration_ms=found.duration_ms,
        repeat=found.example or None,
    )


def _format_values(values: dict[str, JsonValue]) -> str:
    """Return the value where there is only one, else all with their names."""
    return to_text(next(iter(values.values())) if len(values) == 1 else values) if values else ""
