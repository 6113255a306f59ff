"""Comparison of a case's response with the baseline's: prompt, both responses, tool call changes.

Of a conversation one turn is compared, and the others are described.

Names in tool call changes are in backticks and unescaped; the reports escape them.
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
from eval_gate.model.execution import NO_DETAILS, BaselineResult, CaseDetails, Status, StoredCall, Trial
from eval_gate.model.result import CaseResult
from eval_gate.reports.text_difference import CONTEXT_CHARACTERS, TextDifference, compare_texts
from eval_gate.reports.wording.failed_turns import describe_user_end, format_turns
from eval_gate.reports.wording.numbers import quote_in_backticks
from eval_gate.results.turn_details import has_other_calls, has_simulated_user, select_turn, slice_turn
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import format_count, format_first_few
from eval_gate.text.quoting import capitalize_first

MAX_CALLS: Final = 100
"""Calls of each side that are compared."""
MAX_CHANGES: Final = 4
"""Phrases about tool calls; the rest is counted."""
MAX_VALUES: Final = 200
"""Single values in the arguments of one call that are compared."""
MAX_DEPTH: Final = 8
MAX_NAME: Final = 60
MAX_VALUE: Final = 50
_TURN_RESULTS: Final = {
    Status.PASSED: ("passes", "pass"),
    Status.FAILED: ("fails too", "fail too"),
    Status.ERROR: ("has an error", "have errors"),
    Status.NOT_RUN: ("was not sent", "were not sent"),
    None: ("has no result of its own", "have no results of their own"),
}


class ComparedTurn(FrozenStruct):
    """The turn of a conversation that is compared, and sentences about the others."""

    number: int
    """Which turn, counted from 1."""
    message: str | None
    baseline_message: str | None
    """The user's message in the baseline, if it is another one."""
    earlier_turns: str
    later_turns: str


class ResponseComparison(FrozenStruct):
    """Baseline response and current response of one case; None if a response was not stored."""

    prompt: str | None
    expected: tuple[str, ...]
    """Expectation of the case, one text for each check."""
    expected_before: tuple[str, ...]
    """Expectation in the baseline, if it differs."""
    call_changes: tuple[str, ...]
    """Differences of the tool calls, as phrases: of the compared turn, or of all turns if none of them failed."""
    baseline_response: str | None
    current_response: str | None
    notes: tuple[str, ...]

    has_baseline: bool
    turn: ComparedTurn | None = None
    """The compared turn of a conversation; None for a case with one request."""

    def compare_responses(self, limit: int = CONTEXT_CHARACTERS) -> TextDifference | None:
        """Compare both responses; return None if neither side has one."""
        if self.baseline_response is None and self.current_response is None:
            return None
        return compare_texts(self.baseline_response or "", self.current_response or "", limit)


def build_response_comparison(case: CaseResult, change: CaseChange | None) -> ResponseComparison | None:
    """Build the comparison of a case; None if no response or call is stored; without `change` it has one side."""
    baseline = change.baseline_result if change else None
    failed_trial = _find_failed_trial(case)
    if failed_trial is not None and failed_trial.details is not None:
        case = replace(case, details=failed_trial.details, failed_turn=failed_trial.failed_turn)
    details, earlier = case.details, baseline.details if baseline else None
    number, unsent = select_turn(case, baseline), [False, False]
    if number is not None:
        unsent = [_is_unsent(side, number) for side in (details, earlier)]
        details, earlier = slice_turn(details, number), earlier and slice_turn(earlier, number)
    baseline_response = earlier.response if earlier else None
    calls: tuple[str, ...] = ()
    if baseline and case.status is not Status.ERROR:
        both, turn = (baseline.details, case.details), case.failed_turn
        calls = describe_call_changes(*(slice_turn(one, turn) if turn else one for one in both))
    if baseline_response is None and details.response is None and not calls:
        return None
    return ResponseComparison(
        prompt=case.text.prompt or None if case.text else None,
        expected=case.text.expectation if case.text else (),
        expected_before=baseline.expectation if baseline else (),
        call_changes=calls,
        baseline_response=baseline_response,
        current_response=details.response,
        notes=(
            *(["From an execution that failed; the case passed when it was re-run."] if failed_trial else []),
            *[
                f"This turn was not sent {where}."
                for where, no in zip(("here", "in the baseline"), unsent, strict=True)
                if no
            ],
            *_collect_notes(
                details,
                earlier,
                compared=change is not None and change.baseline is not None and not unsent[1],
                status=Status.NOT_RUN if unsent[0] else case.status,
            ),
        ),
        has_baseline=baseline is not None,
        turn=_build_turn(case, baseline, number) if number is not None else None,
    )


def _is_unsent(details: CaseDetails | None, number: int) -> bool:
    """Whether the turns of a side are known and this one was not sent."""
    turns = details.turns if details else ()
    return bool(turns) and (number > len(turns) or turns[number - 1].status is Status.NOT_RUN)


def _find_failed_trial(case: CaseResult) -> Trial | None:
    """Find a failed execution, with its details, of a case that passed in the end."""
    failed = (one for one in case.trials if one.status is Status.FAILED and one.details is not None)
    return next(failed, None) if case.passed else None


def _build_turn(case: CaseResult, baseline: BaselineResult | None, number: int) -> ComparedTurn:
    details, earlier = case.details, baseline.details if baseline else NO_DETAILS
    messages = [dict(enumerate((one.message for one in side.turns), 1)).get(number) for side in (details, earlier)]
    if has_simulated_user(case):  # its turns have no results of their own, and their calls need not be the same
        end = describe_user_end(details.user_end, earlier.user_end)
        sentences = ["", f"{capitalize_first(end)}." if end else ""]
    else:
        calls = _describe_earlier_calls(details, earlier, number)
        sentences = [_describe_turns(details, range(1, number), calls)]
        sentences.append(_describe_turns(details, range(number + 1, len(details.turns) + 1)))
    return ComparedTurn(
        number=number,
        message=messages[0],
        baseline_message=messages[1] if messages[0] != messages[1] else None,
        earlier_turns=sentences[0],
        later_turns=sentences[1],
    )


def _describe_turns(details: CaseDetails, numbers: range, addition: str = "") -> str:
    """Describe the results of turns, as far as they are known: `Turn 4 passes; turn 5 was not sent.`."""
    results: dict[Status | None, list[int]] = {}
    for number, turn in enumerate(details.turns, 1):
        if number in numbers and turn.status in _TURN_RESULTS:
            results.setdefault(turn.status, []).append(number)
    texts = [f"{format_turns(listed)} {_TURN_RESULTS[status][len(listed) > 1]}" for status, listed in results.items()]
    return f"{capitalize_first('; '.join(texts))}{addition}." if texts else ""


def _describe_earlier_calls(details: CaseDetails, baseline: CaseDetails, number: int) -> str:
    """`, with the same calls as the baseline`; empty if that has no turns."""
    if not baseline.turns:
        return ""
    other = [one for one in range(1, min(number, len(details.turns) + 1)) if has_other_calls(details, baseline, one)]
    return f", with other calls in {format_turns(other)}" if other else ", with the same calls as the baseline"


def _collect_notes(details: CaseDetails, earlier: CaseDetails | None, *, compared: bool, status: Status) -> list[str]:
    """Collect notes about missing, empty, truncated and equal responses."""
    notes = []
    if compared and (earlier is None or earlier.response is None):
        notes.append("The baseline has no stored response.")
    elif earlier is not None and earlier.response == "":
        notes.append("The baseline's response is empty.")
    if details.response is None and status is not Status.NOT_RUN:
        note = "There is no response here" if status is Status.ERROR else "The response here is not stored"
        notes.append(f"{note}. The baseline's:" if earlier is not None and earlier.response else f"{note}.")
    elif details.response == "":
        notes.append("The response is empty.")
    if details.response_truncated or (earlier is not None and earlier.response_truncated):
        notes.append("Long responses are truncated.")
    if details.response is not None and earlier is not None and earlier.response == details.response:
        notes.append("Both responses have the same text.")
    return notes


class _Call(FrozenStruct):
    """Tool call; `details` is None if only names are stored."""

    name: str
    details: StoredCall | None


def describe_call_changes(baseline: CaseDetails, current: CaseDetails) -> tuple[str, ...]:
    """Describe differences: "called `escalate` instead of `issue_refund`", "`issue_refund`: `id` `"A17"` → `"A71"`".

    Empty if the calls are the same, as far as they are stored.
    """
    baseline_calls, current_calls = _list_calls(baseline), _list_calls(current)
    phrases = list(_iter_changes(baseline_calls, current_calls))
    rest = len(phrases) - MAX_CHANGES
    return (*phrases[:MAX_CHANGES], *([f"{format_count(rest, 'more difference')} in the calls"] if rest > 0 else []))


def _list_calls(details: CaseDetails) -> list[_Call]:
    if details.tool_calls:
        return [_Call(call.name, call) for call in details.tool_calls[:MAX_CALLS]]
    return [_Call(name, None) for name in details.tools_called[:MAX_CALLS]]


def _iter_changes(baseline: Sequence[_Call], current: Sequence[_Call]) -> Iterator[str]:
    names = ([call.name for call in baseline], [call.name for call in current])
    for operation, low, high, begin, end in SequenceMatcher(None, *names, autojunk=False).get_opcodes():
        were, are = baseline[low:high], current[begin:end]
        match operation:
            case "equal":
                for one, other in zip(were, are, strict=True):
                    yield from _iter_argument_changes(one, other)
            case "replace":
                yield f"called {_format_names(are)} instead of {_format_names(were)}"
            case "delete":
                yield f"did not call {_format_names(were)}{' again' if _has_all(were, current) else ''}"
            case "insert":
                yield f"called {_format_names(are)} {'again' if _has_all(are, baseline) else 'in addition'}"


def _has_all(calls: Sequence[_Call], other_calls: Sequence[_Call]) -> bool:
    """Whether `other_calls` have all names of these calls."""
    return {call.name for call in calls} <= {call.name for call in other_calls}


def _iter_argument_changes(baseline: _Call, current: _Call) -> Iterator[str]:
    if baseline.details is None or current.details is None or baseline.details.arguments == current.details.arguments:
        return
    if "arguments" in (*baseline.details.truncated_parts, *current.details.truncated_parts):
        yield f"{quote_in_backticks(current.name, MAX_NAME)}: different arguments"
        return
    sides = _flatten_arguments(baseline.details.arguments), _flatten_arguments(current.details.arguments)
    pairs = {place: tuple(side.get(place) for side in sides) for place in sides[0] | sides[1]}
    phrases = [
        f"{quote_in_backticks(place, MAX_NAME)} {' → '.join(map(_format_value, pair))}"
        for place, pair in pairs.items()
        if pair[0] != pair[1]
    ]
    if not phrases:
        yield f"{quote_in_backticks(current.name, MAX_NAME)}: different arguments"  # beyond the compared values
        return
    yield f"{quote_in_backticks(current.name, MAX_NAME)}: {format_first_few(phrases, 2)}"


def _format_value(value: str | None) -> str:
    return "nothing" if value is None else quote_in_backticks(value, MAX_VALUE)


def _flatten_arguments(arguments: JsonValue) -> dict[str, str]:
    """Map the place of each value, such as `order.items[0].id`, to the value as JSON."""
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
