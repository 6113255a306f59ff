"""Braintrust's experiments: exported spans, and the results that `Eval()` returns, as JSON or JSON lines.

The export has a row for each span: the root span is an execution, and spans of scorers have its scores. A result has
all of it in one row. Both have scores from 0 to 1 and no verdict. A case is named by its input: where the task breaks,
the root span has neither metadata nor tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.json_streaming import iter_json_lines, iter_listed_mappings, open_document, parse_value
from eval_gate.external_results.result_rows import (
    MAX_ROWS,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_incomplete_error,
    build_tool_call,
    build_unreadable_error,
    build_usage,
    find_exception,
    get_items,
    get_members,
    get_nested,
    parse_cost,
    parse_number,
    parse_seconds,
    require_mapping,
    to_text,
    to_text_or_none,
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
from eval_gate.model.conversation import ToolCall
from eval_gate.struct import Struct, field

STATUSES: Final = parse_tables("""
Braintrust 0.48.1: scores that are no numbers
  passed: true; failed: false; skipped: -
""")
_LISTS: Final = ("results", "events")
"""What the list is called in what `Eval()` returns, and in an answer of the API."""
_SUITE: Final = "experiment"


class _Trace(Struct):
    """The spans of one execution."""

    place: RowPlace
    root: dict[str, JsonValue] | None = None
    scores: dict[str, RowScore] = field(default_factory=dict)
    calls: list[ToolCall] = field(default_factory=list)
    tokens: list[float] = field(default_factory=lambda: [0.0, 0.0])
    cost: float = 0.0


def read_braintrust(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every execution in a list, or in the list of a document."""
    facts.tool = "Braintrust"
    with open_document(file, shown_as) as document:
        yield from _iter_rows(iter_listed_mappings(document, shown_as, _LISTS))


def read_braintrust_lines(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every execution in JSON lines."""
    facts.tool = "Braintrust"
    return _iter_rows(iter_json_lines(file, shown_as))


def read_braintrust_table(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every execution in a table whose cells hold JSON where they are no texts."""
    facts.tool = "Braintrust"
    cells = ((place, _parse_cells(row, place)) for place, row in iter_table_rows(file, shown_as))
    return _iter_rows(cells)


def _parse_cells(row: dict[str, str], place: RowPlace) -> JsonValue:
    """Parse the lists and mappings in a line of a table. An empty cell has no value."""
    return {
        name: parse_value(cell, RowPlace(place.file, place.line, name)) if cell.startswith(("{", "[")) else cell
        for name, cell in row.items()
        if cell
    }


def _iter_rows(members: Iterable[tuple[RowPlace, JsonValue]]) -> Iterator[ResultRow]:
    traces = dict[str, _Trace]()
    for place, member in members:
        row = require_mapping(member, place)
        identifier = to_text(row.get("root_span_id"))
        if not identifier:
            yield _build_row(row, _Trace(place, row))
            continue
        if len(traces) > MAX_ROWS:
            raise build_unreadable_error(place, f"is one of more than {MAX_ROWS:,} executions")
        _add_span(traces.setdefault(identifier, _Trace(place)), row, place)
    for trace in traces.values():
        if trace.root is None:
            raise build_incomplete_error(trace.place, "is a span without its root span: export all spans")
        yield _build_row(trace.root, trace)


def _add_span(trace: _Trace, span: dict[str, JsonValue], place: RowPlace) -> None:
    """Add a span to its execution: what was asked and answered, a score, or a tool call."""
    kind, name = (get_nested(span, "span_attributes", key) for key in ("type", "name"))
    if not get_members(span.get("span_parents")):
        trace.root, trace.place = span, place
    elif kind == "score":
        given = span.get("scores")
        for scorer, value in get_items(given):
            trace.scores.setdefault(scorer, build_score(STATUSES[0], scorer, value, _find_reason(span)))
        if span.get("error") and not given:
            trace.scores[to_text(name)] = _build_broken_score(to_text(name), span["error"])
    elif kind == "tool":
        trace.calls.append(build_tool_call(name, span.get("input"), span.get("output")))
    elif kind == "llm":
        for at, key in enumerate(("prompt_tokens", "completion_tokens")):
            trace.tokens[at] += parse_number(get_nested(span, "metrics", key)) or 0.0
        trace.cost += parse_number(get_nested(span, "metrics", "estimated_cost")) or 0.0


def _find_reason(span: dict[str, JsonValue]) -> str | None:
    why = get_nested(span, "metadata", "rationale") or get_nested(span, "output", "metadata", "rationale")
    return to_text(why) or None


def _build_broken_score(name: str, error: JsonValue) -> RowScore:
    return RowScore(name[:200] or "scorer", None, reason=find_exception(to_text(error)), grader_failed=True)


def _build_row(row: dict[str, JsonValue], trace: _Trace) -> ResultRow:
    metrics, scores = row.get("metrics"), _collect_scores(row, trace)
    ended = end_execution(scores, _find_agent_error(row), scorer="scorer")
    case = PromptedCase(_SUITE, to_text(row.get("input")), row.get("expected"), "input")
    asked = build_prompted_row(case, ended, trace.place)
    return asked._replace(
        repeat=asked.content,
        scores=scores,
        response=to_text_or_none(row.get("output")),
        duration_ms=_parse_duration(metrics),
        cost_usd=parse_cost(get_nested(metrics, "estimated_cost")) or parse_cost(trace.cost or None),
        usage=build_usage(*trace.tokens) if any(trace.tokens) else None,
        calls=tuple(trace.calls),
        tags=tuple(to_text(tag)[:100] for tag in get_members(row.get("tags"))[:50]),
    )


def _collect_scores(row: dict[str, JsonValue], trace: _Trace) -> tuple[RowScore, ...]:
    """Return the scores of the row and of its spans. A scorer that skipped the case has null, and is left out."""
    given = get_items(row.get("scores"))
    scores = {name: build_score(STATUSES[0], name, value) for name, value in given} | trace.scores
    for name, error in get_items(get_nested(row, "metadata", "scorer_errors")):
        scores[name] = _build_broken_score(name, error)
    return let_verdicts_decide([one for one in scores.values() if one.value is not None or one.grader_failed])


def _find_agent_error(row: dict[str, JsonValue]) -> str | None:
    if row.get("error") is None:
        return None
    error = find_exception(to_text(row.get("exc_info") or row["error"]))
    # an error in JavaScript is an empty object in JSON
    return "the task raised an error that the results do not name" if error in {"", "{}"} else error


def _parse_duration(metrics: JsonValue) -> float | None:
    start, end = (parse_number(get_nested(metrics, key)) for key in ("start", "end"))
    if start is not None and end is not None and end >= start:
        return parse_seconds(end - start)
    return parse_seconds(get_nested(metrics, "duration"))
