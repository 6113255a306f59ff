"""How much of what other tools report may be stored: `store` and `redact`, as for own evals.

Both come after the verdict on a row: what is masked or left out changes no status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from eval_gate.config.settings import RunConfig, Store
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey
from eval_gate.model.conversation import ToolCall
from eval_gate.model.execution import Status
from eval_gate.result_formats.rows import ResultRow
from eval_gate.results.masking import Change, TextMasking, value_with
from eval_gate.text.javascript.regex import PatternError, PatternMatcher, PatternWorkerError
from eval_gate.text.secret import MASK


async def storable(
    config: RunConfig, cases: Mapping[CaseKey, Sequence[ResultRow]]
) -> Mapping[CaseKey, Sequence[ResultRow]]:
    """The rows with as much of what was said as may be kept; nothing of it where the patterns take too long."""
    kept = cases
    if config.limits.store is Store.NONE:
        kept = {key: [_unsaid(row) for row in rows] for key, rows in cases.items()}
    if not config.redact:
        return kept
    masked, matcher = TextMasking(), PatternMatcher()
    for rows in kept.values():
        for row in rows:
            _changed(row, masked.find)
    try:
        masked.learn(await matcher.replaced(config.redact, masked.texts, MASK))
    except (PatternError, PatternWorkerError):
        masked.learn(None)  # a text that nobody could look through may hold anything
    finally:
        await matcher.aclose()
    return {key: [_changed(row, masked.put) for row in rows] for key, rows in kept.items()}


def _unsaid(row: ResultRow) -> ResultRow:
    """Without a word of the answer. Of a failure only which scorers it is about: reasons may quote anything."""
    names = "; ".join(one.name for one in row.scores if one.passed is False)
    return row._replace(
        answer=None,
        error=None if row.status is Status.PASSED else names or (row.status or Status.ERROR).value,
        scores=tuple(one._replace(reason=None) for one in row.scores),
        calls=tuple(ToolCall(name=call.name, success=call.success, duration_ms=call.duration_ms) for call in row.calls),
    )


def _changed(row: ResultRow, change: Change) -> ResultRow:
    return row._replace(
        question=change(row.question),
        expectation=tuple(map(change, row.expectation)),
        answer=row.answer and change(row.answer),
        error=row.error and change(row.error),
        scores=tuple(one._replace(reason=one.reason and change(one.reason)) for one in row.scores),
        calls=tuple(_call(call, change) for call in row.calls),
    )


def _call(call: ToolCall, change: Change) -> ToolCall:
    params = cast("dict[str, JsonValue]", value_with(call.params, change))
    return call.model_copy(update={"params": params, "result": value_with(call.result, change)})
