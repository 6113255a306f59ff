"""Data of one case for the page: prompt, both responses, checks, executions, history and next steps."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.conversation import Message
from eval_gate.model.execution import CaseDetails, EvaluatorResult, Status, StoredCall, Trial, TurnResult, format_error
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.result import CaseResult
from eval_gate.reports.page.truncation import PageTruncation
from eval_gate.reports.rerun_command import build_case_rerun_command, find_preparatory_cases
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.failed_turns import describe_user_end
from eval_gate.reports.wording.numbers import format_money, format_score
from eval_gate.reports.wording.waivers import build_case_waive_command, build_waive_comment
from eval_gate.results.turn_details import count_scripted_turns, select_turn
from eval_gate.struct import replace
from eval_gate.text.safe_output import reveal_invisible

STATUS_LETTERS: Final = {
    Status.PASSED: "P",
    Status.FAILED: "F",
    Status.ERROR: "E",
    Status.SKIPPED: "S",
    Status.NOT_RUN: "N",
}
_TURN_LETTERS: Final = STATUS_LETTERS | {Status.NOT_RUN: "U"}
MAX_EXPECTED: Final = 60
"""Lines of an expectation."""
MIN_TURN: Final = 100
"""Characters of a message or response that each turn of a truncated conversation keeps."""
MAX_BEHAVIOUR: Final = 30
"""Changes of behaviour of a case."""
MAX_DEPTH: Final = 4
"""Levels of members of checks that are shown: results are untrusted."""
_PROMPTS: Final = ("systemPrompt", "userPrompt", "prompt", "command")
"""Keys of a judge request that contain its prompts."""

Data = dict[str, Any]


def build_case_data(row: CaseRow, view: ReportView, cut: PageTruncation) -> Data:
    """Build the data of one case, without empty values."""
    case = row.case
    data: Data = {
        "what": _truncate_text(row.failure_summary, cut, 600),
        "seen": [reveal_invisible(line) for line in row.evidence_lines],
        "then": row.baseline_result,
        "here": row.current_result,
        "scores": row.scores,
        "change": row.change_text,
        "compared": _truncate_text(row.reason, cut, 600)
        if row.reason not in {row.failure_summary, case.error if case else None}
        else None,
        "record": reveal_invisible(row.history_text) if row.history_text else None,
        "past": row.case_change.recent_results if row.case_change else None,
        "waived": _build_waiver(row),
        "behaves": _build_behaviour(row, view),
        "changed": row.change_class is CaseClass.INCOMPARABLE or None,
        "before": _build_baseline_side(row, cut),
    }
    if case is not None:
        data |= _describe_case(row, case, cut) | _build_actions(row, view)
        data["now"] = _build_current_side(case, cut)
        for name in ("ms", "first", "tokens", "cost", "judge", "attempts") if row.reused else ():
            data["now"].pop(name, None)  # this run spent nothing on it
        data["checks"] = _build_checks(*_list_checks(row, case), cut)
        data["runs"] = _build_executions(case, cut)
    return _drop_empty(data)


def _drop_empty(data: Mapping[str, Any]) -> Data:
    """Drop empty values; 0 and False are not empty."""
    return {name: value for name, value in data.items() if value is not None and value not in ("", [], {})}


def _truncate_text(text: str | None, cut: PageTruncation, most: int | None = None) -> str | None:
    """Truncate a text to the smaller limit, with the number of dropped characters at its end."""
    limit = min((one for one in (cut.max_characters, most) if one is not None), default=None)
    if text is None or limit is None or len(text) <= limit:
        return reveal_invisible(text) if text is not None else None
    return f"{reveal_invisible(text[:limit])}… [{len(text) - limit:,} more characters]"


def _describe_case(row: CaseRow, case: CaseResult, cut: PageTruncation) -> Data:
    text = case.text
    lines = text.expectation[:MAX_EXPECTED] if text else ()
    return {
        "about": _truncate_text(case.description, cut, 2_000),
        "error": _truncate_text(row.expand_turn(format_error(case.error, case.error_hint)) or None, cut),
        "turn": select_turn(case, row.case_change.baseline_result if row.case_change else None),
        "turnCount": count_scripted_turns(case),
        "question": _truncate_text(text.prompt, cut) if text else None,
        "expected": [_truncate_text(line, cut, 2_000) for line in lines],
        "askedCut": (text.truncated or len(text.expectation) > MAX_EXPECTED if text else False) or None,
        "target": reveal_invisible(case.target) if case.target else None,
        "difficulty": reveal_invisible(case.difficulty) if case.difficulty else None,
        "asserted": [case.assertions_run, case.assertions_skipped] if case.status.is_scored else None,
        "skippedTokens": [reveal_invisible(token) for token in case.details.skipped_tokens[:20]],
        "warnings": [_truncate_text(warning, cut, 600) for warning in case.warnings[:20]],
    }


def _build_actions(row: CaseRow, view: ReportView) -> Data:
    """Build the next steps: the line of the case, and the commands to re-run or waive it."""
    assert row.case is not None
    place, context = row.case.location, view.context
    command = line = None
    needed = find_preparatory_cases([row.id], view.run) if row.case.dependent else ()
    if view.verdict.outcome is Outcome.FAILED and row in view.waivable:
        command = build_waive_comment((row.id,), context)
        line = build_case_waive_command(row.key, context.waive_command) if context.waive_command else None
    return {
        "place": reveal_invisible(f"{place.file}:{place.line}") if place else None,
        "url": row.url,
        "rerun": build_case_rerun_command(row.id, context.rerun_command, needed) if context.rerun_command else None,
        "comment": command,
        "waive": line,
    }


def _build_behaviour(row: CaseRow, view: ReportView) -> list[list[str]]:
    """List the changes of a passing case's behaviour: what, in the baseline, in this run."""
    if not row.behaves_differently or view.behaviour is None:
        return []
    changes = view.behaviour.list_case_changes(row.key)[:MAX_BEHAVIOUR]
    return [[reveal_invisible(text or "–") for text in (one.what, one.baseline, one.current)] for one in changes]


def _build_waiver(row: CaseRow) -> Data | None:
    if row.waiver is None:
        return None
    waiver = row.waiver
    words = {"done": waiver.effect, "until": waiver.expiry, "owner": waiver.author, "where": waiver.place}
    return _drop_empty(
        {name: reveal_invisible(text) for name, text in words.items()}
        | {"reason": reveal_invisible(waiver.reason)[:2_000]}
    ) | ({"url": waiver.url} if waiver.url else {})


# Both results


def _build_current_side(case: CaseResult, cut: PageTruncation) -> Data:
    one = measure_execution(case)
    tries = case.attempts - max(len(case.trials) - 1, 0) - case.preparatory_executions
    return _drop_empty(
        {
            "status": STATUS_LETTERS[case.status],
            "ms": round(one.duration_ms, 1),
            "first": None if case.details.first_token_ms is None else round(case.details.first_token_ms, 1),
            "tokens": [one.usage.input_tokens, one.usage.output_tokens] if one.usage else None,
            "cost": _format_cost(one.cost_usd),
            "judge": _format_cost(one.judge_cost_usd),
            "attempts": tries if tries > 1 and not case.details.turns else None,
            **_build_response(case.details, cut),
        }
    )


def _build_baseline_side(row: CaseRow, cut: PageTruncation) -> Data | None:
    baseline = row.case_change.baseline_result if row.case_change else None
    if baseline is None:
        return None
    has_tokens = baseline.input_tokens is not None or baseline.output_tokens is not None
    return _drop_empty(
        {
            "status": STATUS_LETTERS[baseline.status],
            "ms": round(baseline.duration_ms, 1),
            "error": _truncate_text(baseline.error, cut),
            "tokens": [baseline.input_tokens, baseline.output_tokens] if has_tokens else None,
            "cost": _format_cost(baseline.cost_usd),
            "runs": "".join(STATUS_LETTERS[one] for one in baseline.executions),
            **_build_response(baseline.details, cut),
        }
    )


def _format_cost(dollars: float | None) -> str | None:
    return format_money(dollars) if dollars is not None else None


def _build_response(details: CaseDetails, cut: PageTruncation) -> Data:
    """Build the data of one execution, truncated by `cut`, with counts of the dropped parts."""
    response = _truncate_text(details.response, cut)
    stored_calls = details.tool_calls
    calls = [_build_tool_call(call, cut) for call in stored_calls[: cut.max_parts]]
    calls = calls or [{"name": reveal_invisible(name)} for name in details.tools_called[: cut.max_parts]]
    messages = details.conversation[: cut.max_parts]
    turns = details.turns
    shared = cut.max_characters and max(4 * cut.max_characters // max(len(turns), 4), MIN_TURN)
    turn_cut = replace(cut, max_characters=shared)  # all turns together need about as much as one long response
    dropped_counts = dict(details.dropped_counts)
    if more := max(len(stored_calls), len(details.tools_called)) - len(calls):
        dropped_counts["toolCalls"] = dropped_counts.get("toolCalls", 0) + more
    if more := len(details.conversation) - len(messages):
        dropped_counts["messages"] = dropped_counts.get("messages", 0) + more
    return {
        "answer": response,
        "length": details.response_length if details.response_truncated else None,
        "calls": calls,
        "talk": [_build_message(message, cut) for message in messages],
        "perTurn": [_build_turn(turn, turn_cut) for turn in turns],
        "userEnd": describe_user_end(details.user_end, None),
        "missing": {reveal_invisible(name): number for name, number in dropped_counts.items()},
        "turns": details.max_turns_reached or None,
        "replayed": details.replayed or None,
        "trace": details.trace,
        "traceUrl": details.trace_url,
    }


def _build_turn(turn: TurnResult, cut: PageTruncation) -> Data:
    """Build the data of one turn; its tool calls are the next `calls` of the execution."""
    return _drop_empty(
        {
            "message": _truncate_text(turn.message, cut),
            "answer": _truncate_text(turn.response, cut),
            "length": turn.response_length if turn.response_truncated else None,
            "calls": turn.calls or None,
            "status": _select_turn_letter(turn),
            "ms": round(turn.duration_ms, 1) or None,
            "error": _truncate_text(turn.error, cut, 600),
        }
    )


def _select_turn_letter(turn: TurnResult) -> str | None:
    """Select the letter of a turn; `Q` if the simulated user had an error, so that there is no message to send."""
    if turn.status is Status.ERROR and turn.error and turn.message is None:
        return "Q"
    return _TURN_LETTERS[turn.status] if turn.status else None


def _build_tool_call(call: StoredCall, cut: PageTruncation) -> Data:
    return _drop_empty(
        {
            "name": reveal_invisible(call.name),
            "args": _format_json(call.arguments, cut),
            "result": _format_json(call.result, cut),
            "ok": call.success,
            "ms": round(call.duration_ms, 1) if call.duration_ms is not None else None,
            "cut": list(call.truncated_parts),
        }
    )


def _format_json(value: Any, cut: PageTruncation) -> str | None:
    """Format a value for people: a text as it is, everything else as indented JSON."""
    if value is None:
        return None
    return _truncate_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2), cut)


def _build_message(message: Message, cut: PageTruncation) -> Data:
    calls = [
        _drop_empty({"name": reveal_invisible(call.name), "args": _format_json(call.params or None, cut)})
        for call in message.tool_calls
    ]
    name = reveal_invisible(message.name) if message.name else None
    return _drop_empty(
        {
            "role": message.role,
            "name": name,
            "text": _format_json(message.content or None, cut),
            "calls": calls[: cut.max_parts],
        }
    )


# Checks


def _list_checks(row: CaseRow, case: CaseResult) -> tuple[tuple[EvaluatorResult, ...], tuple[EvaluatorResult, ...]]:
    """List the evaluator results of both sides.

    A conversation with an error keeps none. Then the turns that were scored before the error are listed instead.
    """
    current, baseline = case.evaluator_results, _get_baseline_checks(row)
    if current or case.status is not Status.ERROR:
        return current, baseline
    current = tuple(
        EvaluatorResult(
            name=f"turn {number}", type="turn", score=turn.score, misses=(turn.error,) if turn.error else ()
        )
        for number, turn in enumerate(case.details.turns, 1)
        if turn.score is not None
    )
    scored_turns = {(one.name, one.type) for one in current}
    return current, tuple(
        replace(one, evaluator_results=()) if (one.name, one.type) in scored_turns else one for one in baseline
    )


def _get_baseline_checks(row: CaseRow) -> tuple[EvaluatorResult, ...]:
    """Return the evaluator results of the baseline, or only its scores if nothing else is known."""
    change = row.case_change
    if change is None:
        return ()
    if change.baseline_result is not None and change.baseline_result.evaluator_results:
        return change.baseline_result.evaluator_results
    return tuple(
        EvaluatorResult(name=name, type="", score=value) for name, value in change.baseline_evaluator_scores.items()
    )


def _build_checks(
    current: Sequence[EvaluatorResult], baseline: Sequence[EvaluatorResult], cut: PageTruncation, depth: int = 0
) -> list[Data]:
    """Build each check with its baseline, those that miss something first; then the removed checks."""
    earlier: dict[tuple[str, str], deque[EvaluatorResult]] = defaultdict(deque)
    for result in baseline:
        earlier[result.name, result.type].append(result)
        if result.type:
            earlier[result.name, ""].append(result)
    checks = []
    paired_ids: set[int] = set()
    for result in current:
        counterpart = _take_first(earlier[result.name, result.type] or earlier[result.name, ""], paired_ids)
        checks.append((result.score >= 1 and not result.misses, _build_check(result, counterpart, cut, depth)))
    checks.sort(key=lambda one: one[0])
    removed = (result for result in baseline if id(result) not in paired_ids and result.type)
    both = [data for _, data in checks] + [_build_check(None, result, cut, depth) for result in removed]
    shown_ones = both[: cut.max_parts]
    rest = len(both) - len(shown_ones)
    return [*shown_ones, *([{"more": rest}] if rest else [])]


def _take_first(queue: deque[EvaluatorResult], paired_ids: set[int]) -> EvaluatorResult | None:
    while queue:
        if id(one := queue.popleft()) not in paired_ids:
            paired_ids.add(id(one))
            return one
    return None


def _build_check(
    current: EvaluatorResult | None, baseline: EvaluatorResult | None, cut: PageTruncation, depth: int
) -> Data:
    one = current or baseline
    assert one is not None
    members = current.evaluator_results if current else (), baseline.evaluator_results if baseline else ()
    facts = (current.evaluator_provider_request if current else None) or {}
    return _drop_empty(
        {
            "name": reveal_invisible(one.name)[:300],
            "type": reveal_invisible(one.type)[:100],
            "now": format_score(current.score) if current else None,
            "then": format_score(baseline.score) if baseline else None,
            "state": _classify_check(current) if current else "gone",
            "weight": f"{one.weight:g}" if one.weight != 1 else None,
            "required": (current.vetoed if current else False) or None,
            "misses": _truncate_lines(current.misses, cut) if current else None,
            "hits": _truncate_lines(current.hits, cut) if current else None,
            "says": _truncate_text(current.reasoning, cut) if current else None,
            "said": _truncate_text(baseline.reasoning, cut)
            if baseline and current and baseline.reasoning != current.reasoning
            else None,
            "missed": _truncate_lines(baseline.misses, cut)
            if baseline and current and baseline.misses != current.misses
            else None,
            "model": reveal_invisible(str(facts["model"]))[:200] if facts.get("model") else None,
            "prompts": [[name, _format_json(facts[name], cut)] for name in _PROMPTS if facts.get(name)],
            "members": _build_checks(*members, cut, depth + 1) if any(members) and depth < MAX_DEPTH else None,
        }
    )


def _classify_check(result: EvaluatorResult) -> str:
    return "pass" if result.score >= 1 else "fail" if result.score <= 0 else "part"


def _truncate_lines(lines: Iterable[str], cut: PageTruncation) -> list[str | None]:
    texts = tuple(lines)
    shown_ones = [_truncate_text(line, cut, 4_000) for line in texts[: cut.max_parts]]
    rest = len(texts) - len(shown_ones)
    return [*shown_ones, *([f"and {rest} more"] if rest else [])]


# Executions


def _build_executions(case: CaseResult, cut: PageTruncation) -> list[Data]:
    """Build each trial and re-run of a case that has several."""
    if len(case.trials) < 2:
        return []
    first_rerun = len(case.trials) - case.reruns
    return [_build_execution(trial, cut, is_rerun=place >= first_rerun) for place, trial in enumerate(case.trials)]


def _build_execution(trial: Trial, cut: PageTruncation, *, is_rerun: bool) -> Data:
    data: Data = {
        "status": STATUS_LETTERS[trial.status],
        "ms": round(trial.duration_ms, 1),
        "error": _truncate_text(trial.error, cut, 4_000),
        "again": is_rerun or None,
        "decisive": trial.decisive or None,
        "turn": trial.failed_turn,
    }
    if trial.details is not None and cut.executions:
        data["side"] = _drop_empty(_build_response(trial.details, cut))
        data["checks"] = _build_checks(trial.evaluator_results, (), cut)
    return _drop_empty(data)
