"""Braintrust's experiments: exported spans, and the results that `Eval()` returns, as JSON or JSON lines.

The export has a row for each span: the root span is an execution, and spans of scorers have its scores. A result has
all of it in one row. Both have scores from 0 to 1 and no verdict. A case is named by its input: where the task breaks,
the root span has neither metadata nor tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.json_streaming import iter_lines, iter_records, open_document, parse_value
from eval_gate.external_results.records import Fields, iter_table_rows
from eval_gate.external_results.result_rows import (
    MAX_ROWS,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_usage,
    find_exception,
    parse_cost,
    parse_seconds,
)
from eval_gate.external_results.statuses import (
    PromptedCase,
    build_prompted_row,
    build_score,
    end_execution,
    let_verdicts_decide,
    parse_tables,
)
from eval_gate.model.conversation import ToolCall
from eval_gate.struct import Struct, field

STATUSES: Final = parse_tables("""
Braintrust 0.48.1: scores that are no numbers
  passed: true; failed: false; skipped: -
""")
_LISTS: Final = ("results", "events")
"""What the list is called in what `Eval()` returns, and in a response of the API."""
_SUITE: Final = "experiment"


class _Trace(Struct):
    """The spans of one execution."""

    place: RowPlace
    root: Fields | None = None
    scores: dict[str, RowScore] = field(default_factory=dict)
    calls: list[ToolCall] = field(default_factory=list)
    tokens: list[float] = field(default_factory=lambda: [0.0, 0.0])
    cost: float = 0.0


def read_braintrust(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every execution in a list, or in the list of a document."""
    facts.tool = "Braintrust"
    with open_document(file, shown_as) as document:
        yield from _iter_rows(iter_records(document, shown_as, _LISTS))


def read_braintrust_lines(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every execution in JSON lines."""
    facts.tool = "Braintrust"
    return _iter_rows(iter_lines(file, shown_as))


def read_braintrust_table(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Yield every execution in a table; cells that are not text hold JSON."""
    facts.tool = "Braintrust"
    return _iter_rows((place, _parse_cells(row, place)) for place, row in iter_table_rows(file, shown_as))


def _parse_cells(row: dict[str, str], place: RowPlace) -> Fields:
    """Parse the lists and mappings in a line of a table. An empty cell has no value."""
    filled = {name: cell for name, cell in row.items() if cell}
    return Fields(
        {
            name: parse_value(cell, place._replace(field=name)) if cell.startswith(("{", "[")) else cell
            for name, cell in filled.items()
        }
    )


def _iter_rows(rows: Iterable[tuple[RowPlace, Fields]]) -> Iterator[ResultRow]:
    traces = dict[str, _Trace]()
    for place, row in rows:
        identifier = row.text("root_span_id")
        if not identifier:
            yield _build_row(row, _Trace(place, row))
            continue
        if len(traces) > MAX_ROWS:
            raise place.build_error(f"is one of more than {MAX_ROWS:,} executions")
        _add_span(traces.setdefault(identifier, _Trace(place)), row, place)
    for trace in traces.values():
        if trace.root is None:
            raise trace.place.build_incomplete_error("is a span without its root span: export all spans")
        yield _build_row(trace.root, trace)


def _add_span(trace: _Trace, span: Fields, place: RowPlace) -> None:
    """Add a span to its execution: prompt and response, a score, or a tool call."""
    kind, name = span.get("span_attributes.type"), span.text("span_attributes.name")
    if not span.members("span_parents"):
        trace.root, trace.place = span, place
    elif kind == "score":
        why = span.text("metadata.rationale", "output.metadata.rationale") or None
        for scorer, one in span.items("scores"):
            trace.scores.setdefault(scorer, build_score(STATUSES[0], scorer, one.value, why))
        if span.get("error") and not span.get("scores"):
            trace.scores[name] = _build_broken_score(name, span.at("error"))
    elif kind == "tool":
        trace.calls.append(span.call("span_attributes.name", "input", span.get("output")))
    elif kind == "llm":
        for at, key in enumerate(("prompt_tokens", "completion_tokens")):
            trace.tokens[at] += span.number(f"metrics.{key}") or 0.0
        trace.cost += span.number("metrics.estimated_cost") or 0.0


def _build_broken_score(name: str, error: Fields) -> RowScore:
    return RowScore(name[:200] or "scorer", None, reason=find_exception(error.text()), grader_failed=True)


def _build_row(row: Fields, trace: _Trace) -> ResultRow:
    scores = _collect_scores(row, trace)
    ending = end_execution(scores, _find_agent_error(row), scorer="scorer")
    base_row = build_prompted_row(
        PromptedCase(_SUITE, row.text("input"), row.get("expected"), "input"), ending, trace.place
    )
    return base_row._replace(
        repeat=base_row.content,
        scores=scores,
        response=row.text_or_none("output"),
        duration_ms=_parse_duration(row),
        cost_usd=row.cost("metrics.estimated_cost") or parse_cost(trace.cost or None),
        usage=build_usage(*trace.tokens) if any(trace.tokens) else None,
        calls=tuple(trace.calls),
        tags=row.tags("tags"),
        trace=row.text("root_span_id") or None,
    )


def _collect_scores(row: Fields, trace: _Trace) -> tuple[RowScore, ...]:
    """Return the scores of the row and of its spans. A scorer that skipped the case has null, and is left out."""
    scores = {name: build_score(STATUSES[0], name, one.value) for name, one in row.items("scores")} | trace.scores
    scores |= {name: _build_broken_score(name, error) for name, error in row.items("metadata.scorer_errors")}
    return let_verdicts_decide([one for one in scores.values() if one.value is not None or one.grader_failed])


def _find_agent_error(row: Fields) -> str | None:
    if row.get("error") is None:
        return None
    error = find_exception(row.text("exc_info", "error"))
    # an error in JavaScript is an empty object in JSON
    return "the task raised an error that the results do not name" if error in {"", "{}"} else error


def _parse_duration(row: Fields) -> float | None:
    start, end = row.number("metrics.start"), row.number("metrics.end")
    if start is not None and end is not None and end >= start:
        return parse_seconds(end - start)
    return row.seconds("metrics.duration")
