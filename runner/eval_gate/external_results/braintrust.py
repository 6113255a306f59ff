"""Braintrust's experiments: exported spans, and the results that `Eval()` returns, as JSON or JSON lines.

The export has a row for each span: the root span is an execution, and spans of scorers have its scores. A result has
all of it in one row. Both have scores from 0 to 1 and no verdict. A case is named by its input: where the task breaks,
the root span has neither metadata nor tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eval_gate.external_results.json_streaming import iter_json_lines, open_document, parse_value
from eval_gate.external_results.result_rows import (
    MAX_ROWS,
    ExecutionEnding,
    FileFacts,
    ResultRow,
    RowPlace,
    RowScore,
    build_ending,
    build_incomplete_error,
    build_unreadable_error,
    build_usage,
    classify_error_kind,
    find_exception,
    get_members,
    get_nested,
    let_verdicts_decide,
    parse_cost,
    parse_number,
    parse_seconds,
    require_mapping,
    require_name,
    shorten_name,
    to_text,
)
from eval_gate.external_results.result_tables import iter_table_rows
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.struct import Struct, field
from eval_gate.text.digest import compute_fingerprint

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
    return _iter_rows(_iter_members(file, shown_as), shown_as)


def read_braintrust_lines(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every execution in JSON lines."""
    facts.tool = "Braintrust"
    return _iter_rows(iter_json_lines(file, shown_as), shown_as)


def read_braintrust_table(file: Path, shown_as: str, facts: FileFacts) -> Iterator[ResultRow]:
    """Every execution in a table whose cells hold JSON where they are no texts."""
    facts.tool = "Braintrust"
    cells = ((place, _parse_cells(row, place)) for place, row in iter_table_rows(file, shown_as))
    return _iter_rows(cells, shown_as)


def _parse_cells(row: dict[str, str], place: RowPlace) -> JsonValue:
    """Parse the lists and mappings in a line of a table. An empty cell has no value."""
    return {
        name: parse_value(cell, RowPlace(place.file, place.line, name)) if cell.startswith(("{", "[")) else cell
        for name, cell in row.items()
        if cell
    }


def _iter_members(file: Path, shown_as: str) -> Iterator[tuple[RowPlace, JsonValue]]:
    found = False
    with open_document(file, shown_as) as document:
        if document.begins_with("["):
            found = True
            for at, member in enumerate(document.iter_members()):
                yield RowPlace(shown_as, field=f"[{at}]"), member
        else:
            for key in document.iter_keys():
                if key in _LISTS:
                    found = True
                    for at, member in enumerate(document.iter_members()):
                        yield RowPlace(shown_as, field=f"{key}[{at}]"), member
                else:
                    document.read_value()
        document.require_end()
    if not found:
        raise build_unreadable_error(RowPlace(shown_as, field=_LISTS[0]), "is missing")


def _iter_rows(members: Iterator[tuple[RowPlace, JsonValue]], shown_as: str) -> Iterator[ResultRow]:
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
        for scorer, value in given.items() if isinstance(given, dict) else ():
            trace.scores.setdefault(scorer, _build_score(scorer, value, span))
        if span.get("error") and not given:
            trace.scores[to_text(name)] = _build_broken_score(to_text(name), span["error"])
    elif kind == "tool":
        asked = span.get("input")
        trace.calls.append(
            ToolCall(
                name=to_text(name)[:1_000], params=asked if isinstance(asked, dict) else {}, result=span.get("output")
            )
        )
    elif kind == "llm":
        for at, key in enumerate(("prompt_tokens", "completion_tokens")):
            trace.tokens[at] += parse_number(get_nested(span, "metrics", key)) or 0.0
        trace.cost += parse_number(get_nested(span, "metrics", "estimated_cost")) or 0.0


def _build_score(name: str, value: JsonValue, span: dict[str, JsonValue]) -> RowScore:
    why = get_nested(span, "metadata", "rationale") or get_nested(span, "output", "metadata", "rationale")
    if isinstance(value, bool):
        return RowScore(name[:200], float(value), value, to_text(why) or None)
    return RowScore(name[:200], parse_number(value), None, to_text(why) or None)


def _build_broken_score(name: str, error: JsonValue) -> RowScore:
    return RowScore(name[:200] or "scorer", None, reason=find_exception(to_text(error)), grader_failed=True)


def _build_row(row: dict[str, JsonValue], trace: _Trace) -> ResultRow:
    place, wanted, metrics = trace.place, row.get("expected"), row.get("metrics")
    prompt = to_text(row.get("input"))
    name, content = require_name(shorten_name(prompt), place, "input"), compute_fingerprint([row.get("input"), wanted])
    scores = _collect_scores(row, trace)
    ended = _build_ending(row, scores)
    tokens = trace.tokens if any(trace.tokens) else [None, None]
    return ResultRow(
        suite=_SUITE,
        id=name,
        status=ended.status,
        place=place,
        scores=scores,
        prompt=prompt,
        expectation=(to_text(wanted),) if wanted is not None else (),
        response=to_text(row["output"]) if row.get("output") is not None else None,
        error=ended.error,
        error_kind=ended.error_kind,
        duration_ms=_parse_duration(metrics),
        cost_usd=parse_cost(get_nested(metrics, "estimated_cost")) or parse_cost(trace.cost or None),
        usage=build_usage(*tokens),
        calls=tuple(trace.calls),
        tags=tuple(to_text(tag)[:100] for tag in get_members(row.get("tags"))[:50]),
        content=content,
        repeat=content,
        longer_name=f"{name[:300]} → {shorten_name(to_text(wanted))}" if wanted is not None else None,
        named_by="input",
    )


def _collect_scores(row: dict[str, JsonValue], trace: _Trace) -> tuple[RowScore, ...]:
    """Return the scores of the row and of its spans. A scorer that skipped the case has null, and is left out."""
    given, broke = row.get("scores"), get_nested(row, "metadata", "scorer_errors")
    scores = dict(trace.scores)
    for name, value in given.items() if isinstance(given, dict) else ():
        scores.setdefault(name, _build_score(name, value, {}))
    for name, error in broke.items() if isinstance(broke, dict) else ():
        scores[name] = _build_broken_score(name, error)
    return let_verdicts_decide([one for one in scores.values() if one.value is not None or one.grader_failed])


def _build_ending(row: dict[str, JsonValue], scores: tuple[RowScore, ...]) -> ExecutionEnding:
    if row.get("error") is not None:
        error = find_exception(to_text(row.get("exc_info") or row["error"]))
        if error in {"", "{}"}:  # an error in JavaScript is an empty object in JSON
            error = "the task raised an error that the results do not name"
        return ExecutionEnding(Status.ERROR, classify_error_kind(error), error)
    if not scores:
        return ExecutionEnding(Status.ERROR, ErrorKind.EVALUATION_ERROR, "no scorer gave a score")
    failed = "; ".join(f"{one.name}: {one.reason or one.value}" for one in scores if one.passed is False)
    return build_ending(None, tuple(one for one in scores if one.decides), failed or None)


def _parse_duration(metrics: JsonValue) -> float | None:
    start, end = (parse_number(get_nested(metrics, key)) for key in ("start", "end"))
    if start is not None and end is not None and end >= start:
        return parse_seconds(end - start)
    return parse_seconds(get_nested(metrics, "duration"))
