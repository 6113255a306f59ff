"""Comparison of a case's response with the baseline's: prompt, both responses, tool call changes.

Tool call changes have names in backticks: whoever shows them escapes them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.comparison import CaseChange
from eval_gate.model.execution import BaselineResult, CaseDetails, Status, StoredCall
from eval_gate.model.result import CaseResult
from eval_gate.reports.text_difference import CONTEXT_CHARACTERS, TextDifference, compare_texts
from eval_gate.reports.wording.numbers import quote_in_backticks
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count, format_first_few

MAX_CALLS: Final = 100
"""Calls of each side that are held against each other."""
MAX_CHANGES: Final = 4
"""Half sentences; what is left is counted."""
MAX_VALUES: Final = 200
"""Single values in the arguments of one call that are compared."""
MAX_DEPTH: Final = 8
MAX_NAME: Final = 60
MAX_VALUE: Final = 50


class ResponseComparison(FrozenStruct):
    """Baseline response and current response of one case; None where a response was not kept."""

    question: str | None
    expected: tuple[str, ...]
    """What a good answer is, a check each."""
    expected_before: tuple[str, ...]
    """What it was in the baseline where it is another now."""
    call_changes: tuple[str, ...]
    """What differs in the tool calls, in half sentences."""
    baseline_response: str | None
    current_response: str | None
    notes: tuple[str, ...]

    has_baseline: bool
    """Whether there is an earlier side at all."""

    def compare_responses(self, around: int = CONTEXT_CHARACTERS) -> TextDifference | None:
        """Compare both responses; return None if neither side has one."""
        if self.baseline_response is None and self.current_response is None:
            return None
        return compare_texts(self.baseline_response or "", self.current_response or "", around)


def build_response_comparison(case: CaseResult, change: CaseChange | None) -> ResponseComparison | None:
    """Both sides of a case; None where nothing is kept that could be shown. Without a change there is only one side."""
    before = change.baseline_result if change else None
    shown = _find_failed_details(case)
    details = shown or case.details
    then = before.details.response if before else None
    here = details.response
    calls = describe_call_changes(before.details, details) if before and case.status is not Status.ERROR else ()
    if then is None and here is None and not calls:
        return None
    return ResponseComparison(
        question=case.text.prompt or None if case.text else None,
        expected=case.text.expectation if case.text else (),
        expected_before=before.expectation if before else (),
        call_changes=calls,
        baseline_response=then,
        current_response=here,
        notes=(
            *(["From an execution that failed; the case passed when it was re-run."] if shown else []),
            *_collect_notes(
                details, before, compared=change is not None and change.baseline is not None, status=case.status
            ),
        ),
        has_baseline=before is not None,
    )


def _find_failed_details(case: CaseResult) -> CaseDetails | None:
    """Find the details of a failed execution of a case that passed in the end."""
    failed = (trial.details for trial in case.trials if trial.status is Status.FAILED)
    return next((details for details in failed if details is not None), None) if case.passed else None


def _collect_notes(details: CaseDetails, before: BaselineResult | None, *, compared: bool, status: Status) -> list[str]:
    """Collect notes about what the difference of the responses alone would misrepresent."""
    notes = []
    if compared and (before is None or before.details.response is None):
        notes.append("The baseline has no stored response.")
    elif before is not None and before.details.response == "":
        notes.append("The baseline's response is empty.")
    if details.response is None:
        here = "There is no response here" if status is Status.ERROR else "The response here is not stored"
        notes.append(f"{here}. The baseline's:" if before is not None and before.details.response else f"{here}.")
    elif not details.response:
        notes.append("The response is empty.")
    if details.response_truncated or (before is not None and before.details.response_truncated):
        notes.append("Long responses are truncated.")
    if details.response is not None and before is not None and before.details.response == details.response:
        notes.append("Both responses are the same.")
    return notes


class _Call(FrozenStruct):
    """A call by its name; `arguments` is None where only names are kept."""

    name: str
    details: StoredCall | None


def describe_call_changes(baseline: CaseDetails, current: CaseDetails) -> tuple[str, ...]:
    """Phrases such as "called `escalate` instead of `issue_refund`", "`issue_refund`: `id` `"A17"` → `"A71"`".

    Empty if the calls are the same, as far as they are stored.
    """
    before, after = _list_calls(baseline), _list_calls(current)
    said = list(_iter_changes(before, after))
    rest = len(said) - MAX_CHANGES
    return (*said[:MAX_CHANGES], *([f"{format_count(rest, 'more difference')} in the calls"] if rest > 0 else []))


def _list_calls(details: CaseDetails) -> list[_Call]:
    if details.tool_calls:
        return [_Call(call.name, call) for call in details.tool_calls[:MAX_CALLS]]
    return [_Call(name, None) for name in details.tools_called[:MAX_CALLS]]


def _iter_changes(before: Sequence[_Call], after: Sequence[_Call]) -> Iterator[str]:
    names = ([call.name for call in before], [call.name for call in after])
    for operation, low, high, begin, end in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        were, are = before[low:high], after[begin:end]
        match operation:
            case "equal":
                for one, other in zip(were, are, strict=True):
                    yield from _iter_argument_changes(one, other)
            case "replace":
                yield f"called {_format_names(are)} instead of {_format_names(were)}"
            case "delete":
                yield f"did not call {_format_names(were)}{' again' if _has_all(were, after) else ''}"
            case "insert":
                yield f"called {_format_names(are)} {'again' if _has_all(are, before) else 'in addition'}"


def _has_all(calls: Sequence[_Call], others: Sequence[_Call]) -> bool:
    """Whether the other side has calls of these names too."""
    return {call.name for call in calls} <= {call.name for call in others}


def _iter_argument_changes(baseline: _Call, current: _Call) -> Iterator[str]:
    if baseline.details is None or current.details is None or baseline.details.arguments == current.details.arguments:
        return
    if "arguments" in (*baseline.details.truncated_parts, *current.details.truncated_parts):
        yield f"{quote_in_backticks(current.name, MAX_NAME)}: different arguments"
        return
    before, after = _flatten_arguments(baseline.details.arguments), _flatten_arguments(current.details.arguments)
    said = [
        f"{quote_in_backticks(place, MAX_NAME)} {_format_value(before.get(place))} → {_format_value(after.get(place))}"
        for place in dict.fromkeys((*before, *after))
        if before.get(place) != after.get(place)
    ]
    if not said:
        yield f"{quote_in_backticks(current.name, MAX_NAME)}: different arguments"  # beyond the compared values
        return
    yield f"{quote_in_backticks(current.name, MAX_NAME)}: {format_first_few(said, 2)}"


def _format_value(value: str | None) -> str:
    return "nothing" if value is None else quote_in_backticks(value, MAX_VALUE)


def _flatten_arguments(arguments: JsonValue) -> dict[str, str]:
    """Every single value by its place, such as `order.items[0].id`, as JSON."""
    return dict(islice(_iter_leaves(arguments, "", 0), MAX_VALUES))


def _iter_leaves(value: JsonValue, place: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value and depth < MAX_DEPTH:
        for name, one in value.items():
            yield from _iter_leaves(one, f"{place}.{name}" if place else name, depth + 1)
    elif isinstance(value, list) and value and depth < MAX_DEPTH:
        for number, one in enumerate(value):
            yield from _iter_leaves(one, f"{place}[{number}]", depth + 1)
    else:
        yield place or "arguments", json.dumps(value, ensure_ascii=False)


def _format_names(calls: Sequence[_Call]) -> str:
    """Format the tool names in the order of their first calls, with counts: `lookup` 3 times."""
    often = Counter(call.name for call in calls)
    times = {name: f" {number} times" if number > 1 else "" for name, number in often.items()}
    return format_first_few(list(often), 3, lambda name: quote_in_backticks(name, MAX_NAME) + times[name])
