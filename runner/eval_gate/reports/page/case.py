"""What the page shows of one case, as data: question, both sides, checks, executions, record, where to go."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from eval_gate.model.comparison import Outcome
from eval_gate.model.conversation import Message
from eval_gate.model.execution import CaseDetails, EvaluatorResult, KeptCall, Status, Trial
from eval_gate.model.result import CaseResult
from eval_gate.reports.page.cuts import PageCut
from eval_gate.reports.rerun import cases_before, rerun_of
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words.numbers import money, score
from eval_gate.reports.words.waivers import accept_command, accept_line_of
from eval_gate.text.inert import visible_text

LETTERS: Final = {
    Status.PASSED: "P",
    Status.FAILED: "F",
    Status.ERROR: "E",
    Status.SKIPPED: "S",
    Status.NOT_RUN: "N",
}
MAX_EXPECTED: Final = 60
"""Lines of an expectation."""
MAX_DEPTH: Final = 4
"""How deep the members of checks are followed: the record may be anybody's."""
_PROMPTS: Final = ("systemPrompt", "userPrompt", "prompt", "command")
"""What a judge was asked, by the names of a judgement's facts."""

Data = dict[str, Any]


def case_data(row: CaseRow, view: View, cut: PageCut) -> Data:
    """One case. What is nothing is left out."""
    case = row.case
    said: Data = {
        "what": _text(row.what, cut, 600),
        "seen": [visible_text(line) for line in row.seen_lines],
        "then": row.then,
        "here": row.here,
        "scores": row.scores,
        "change": row.change_words,
        "compared": _text(row.reason, cut, 600) if row.reason != row.what else None,
        "record": visible_text(row.record) if row.record else None,
        "past": row.compared.past if row.compared else None,
        "waived": _waived(row),
        "before": _before(row, cut),
    }
    if case is not None:
        said |= _about(case, cut) | _ways(row, view)
        said["now"] = _now(case, cut)
        said["checks"] = _checks(case.evaluator_results, _then(row), cut)
        said["runs"] = _executions(case, cut)
    return _known(said)


def _known(data: Mapping[str, Any]) -> Data:
    """Without what is nothing; 0 and False are something."""
    return {name: value for name, value in data.items() if value is not None and value not in ("", [], {})}


def _text(text: str | None, cut: PageCut, most: int | None = None) -> str | None:
    """As much of the text as there is room for; how much there was is said at its end."""
    limit = min((one for one in (cut.text, most) if one is not None), default=None)
    if text is None or limit is None or len(text) <= limit:
        return visible_text(text) if text is not None else None
    return f"{visible_text(text[:limit])}… [{len(text) - limit:,} more characters]"


def _about(case: CaseResult, cut: PageCut) -> Data:
    asked = case.asked
    lines = asked.expectation[:MAX_EXPECTED] if asked else ()
    return {
        "about": _text(case.description, cut, 2_000),
        "error": _text(case.error, cut),
        "question": _text(asked.question, cut) if asked else None,
        "expected": [_text(line, cut, 2_000) for line in lines],
        "askedCut": (asked.cut or len(asked.expectation) > MAX_EXPECTED if asked else False) or None,
        "target": visible_text(case.target) if case.target else None,
        "difficulty": visible_text(case.difficulty) if case.difficulty else None,
        "asserted": [case.assertions_run, case.assertions_skipped] if case.status.judged else None,
        "skippedTokens": [visible_text(token) for token in case.details.skipped_tokens[:20]],
        "warnings": [_text(warning, cut, 600) for warning in case.warnings[:20]],
    }


def _ways(row: CaseRow, view: View) -> Data:
    """Where to go from here: the line, and what to run or to say."""
    assert row.case is not None
    place, context = row.case.location, view.context
    command = line = None
    before = cases_before([row.id], view.run) if row.case.dependent else ()
    if view.verdict.outcome is Outcome.FAIL and row in view.acceptable:
        command = accept_command((row.id,), context)
        line = accept_line_of(row.key, context.accept_line) if context.accept_line else None
    return {
        "place": visible_text(f"{place.file}:{place.line}") if place else None,
        "url": row.url,
        "rerun": rerun_of(row.id, context.rerun_command, before) if context.rerun_command else None,
        "comment": command,
        "accept": line,
    }


def _waived(row: CaseRow) -> Data | None:
    if row.waived is None:
        return None
    waiver = row.waived
    words = {"done": waiver.done, "until": waiver.until, "by": waiver.by, "where": waiver.where}
    return _known(
        {name: visible_text(text) for name, text in words.items()} | {"reason": visible_text(waiver.reason)[:2_000]}
    ) | ({"url": waiver.url} if waiver.url else {})


# The two sides


def _now(case: CaseResult, cut: PageCut) -> Data:
    usage = case.usage
    return _known(
        {
            "status": LETTERS[case.status],
            "ms": round(case.duration_ms, 1),
            "first": None if case.details.first_token_ms is None else round(case.details.first_token_ms, 1),
            "tokens": [usage.input_tokens, usage.output_tokens] if usage else None,
            "cost": _money(case.cost_usd),
            "judge": _money(case.judge_cost_usd),
            "attempts": case.attempts if case.attempts > 1 else None,
            **_answered(case.details, cut),
        }
    )


def _before(row: CaseRow, cut: PageCut) -> Data | None:
    before = row.compared.before if row.compared else None
    if before is None:
        return None
    known = before.input_tokens is not None or before.output_tokens is not None
    return _known(
        {
            "status": LETTERS[before.status],
            "ms": round(before.duration_ms, 1),
            "error": _text(before.error, cut),
            "tokens": [before.input_tokens, before.output_tokens] if known else None,
            "cost": _money(before.cost_usd),
            "runs": "".join(LETTERS[one] for one in before.executions),
            **_answered(before.details, cut),
        }
    )


def _money(dollars: float | None) -> str | None:
    return money(dollars) if dollars is not None else None


def _answered(details: CaseDetails, cut: PageCut) -> Data:
    """What one execution left: answer, calls, conversation. Of calls without arguments there are the names."""
    answer = _text(details.response, cut)
    kept = details.tool_calls
    calls = [_call(call, cut) for call in kept[: cut.parts]]
    calls = calls or [{"name": visible_text(name)} for name in details.tools_called[: cut.parts]]
    messages = details.conversation[: cut.parts]
    missing = dict(details.left_out)
    if more := max(len(kept), len(details.tools_called)) - len(calls):
        missing["toolCalls"] = missing.get("toolCalls", 0) + more
    if more := len(details.conversation) - len(messages):
        missing["messages"] = missing.get("messages", 0) + more
    return {
        "answer": answer,
        "length": details.response_length if details.response_truncated else None,
        "calls": calls,
        "talk": [_message(message, cut) for message in messages],
        "missing": {visible_text(name): number for name, number in missing.items()},
        "turns": details.max_turns_reached or None,
        "replayed": details.replayed or None,
    }


def _call(call: KeptCall, cut: PageCut) -> Data:
    return _known(
        {
            "name": visible_text(call.name),
            "args": _json(call.arguments, cut),
            "result": _json(call.result, cut),
            "ok": call.success,
            "ms": round(call.duration_ms, 1) if call.duration_ms is not None else None,
            "cut": list(call.cut),
        }
    )


def _json(value: Any, cut: PageCut) -> str | None:
    """As people read it: a text as it is, all else as JSON over several lines."""
    if value is None:
        return None
    return _text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2), cut)


def _message(message: Message, cut: PageCut) -> Data:
    calls = [
        _known({"name": visible_text(call.name), "args": _json(call.params or None, cut)})
        for call in message.tool_calls
    ]
    name = visible_text(message.name) if message.name else None
    return _known(
        {"role": message.role, "name": name, "text": _json(message.content or None, cut), "calls": calls[: cut.parts]}
    )


# Checks


def _then(row: CaseRow) -> tuple[EvaluatorResult, ...]:
    """What the checks said in the baseline; where only their scores are known, these."""
    change = row.compared
    if change is None:
        return ()
    if change.before is not None and change.before.evaluator_results:
        return change.before.evaluator_results
    return tuple(EvaluatorResult(name=name, type="", score=value) for name, value in change.evaluators_then.items())


def _checks(
    now: Sequence[EvaluatorResult], then: Sequence[EvaluatorResult], cut: PageCut, depth: int = 0
) -> list[Data]:
    """Each check beside what it was, those that miss something first; then those that are no longer there."""
    earlier: dict[tuple[str, str], deque[EvaluatorResult]] = defaultdict(deque)
    for result in then:
        earlier[result.name, result.type].append(result)
        if result.type:
            earlier[result.name, ""].append(result)
    made = []
    taken: set[int] = set()
    for result in now:
        was = _first(earlier[result.name, result.type] or earlier[result.name, ""], taken)
        made.append((result.score >= 1 and not result.misses, _check(result, was, cut, depth)))
    made.sort(key=lambda one: one[0])
    gone = [_check(None, result, cut, depth) for result in then if id(result) not in taken and result.type]
    both = [data for _, data in made] + gone
    shown_ones = both[: cut.parts]
    left = len(both) - len(shown_ones)
    return [*shown_ones, *([{"more": left}] if left else [])]


def _first(found: deque[EvaluatorResult], taken: set[int]) -> EvaluatorResult | None:
    while found:
        if id(one := found.popleft()) not in taken:
            taken.add(id(one))
            return one
    return None


def _check(now: EvaluatorResult | None, then: EvaluatorResult | None, cut: PageCut, depth: int) -> Data:
    one = now or then
    assert one is not None
    members = now.evaluator_results if now else (), then.evaluator_results if then else ()
    facts = (now.evaluator_provider_request if now else None) or {}
    return _known(
        {
            "name": visible_text(one.name)[:300],
            "type": visible_text(one.type)[:100],
            "now": score(now.score) if now else None,
            "then": score(then.score) if then else None,
            "state": _state(now) if now else "gone",
            "weight": f"{one.weight:g}" if one.weight != 1 else None,
            "required": (now.vetoed if now else False) or None,
            "misses": _lines(now.misses, cut) if now else None,
            "hits": _lines(now.hits, cut) if now else None,
            "says": _text(now.reasoning, cut) if now else None,
            "said": _text(then.reasoning, cut) if then and now and then.reasoning != now.reasoning else None,
            "missed": _lines(then.misses, cut) if then and now and then.misses != now.misses else None,
            "model": visible_text(str(facts["model"]))[:200] if facts.get("model") else None,
            "prompts": [[name, _json(facts[name], cut)] for name in _PROMPTS if facts.get(name)],
            "members": _checks(*members, cut, depth + 1) if any(members) and depth < MAX_DEPTH else None,
        }
    )


def _state(result: EvaluatorResult) -> str:
    return "pass" if result.score >= 1 else "fail" if result.score <= 0 else "part"


def _lines(lines: Iterable[str], cut: PageCut) -> list[str | None]:
    found = tuple(lines)
    shown_ones = [_text(line, cut, 4_000) for line in found[: cut.parts]]
    left = len(found) - len(shown_ones)
    return [*shown_ones, *([f"and {left} more"] if left else [])]


# Executions


def _executions(case: CaseResult, cut: PageCut) -> list[Data]:
    """Each trial and re-run of a case that has several."""
    if len(case.trials) < 2:
        return []
    first_again = len(case.trials) - case.reruns
    return [_execution(trial, cut, again=place >= first_again) for place, trial in enumerate(case.trials)]


def _execution(trial: Trial, cut: PageCut, *, again: bool) -> Data:
    said: Data = {
        "status": LETTERS[trial.status],
        "ms": round(trial.duration_ms, 1),
        "error": _text(trial.error, cut, 4_000),
        "again": again or None,
        "decisive": trial.decisive or None,
    }
    if trial.details is not None and cut.executions:
        said["side"] = _known(_answered(trial.details, cut))
        said["checks"] = _checks(trial.evaluator_results, (), cut)
    return _known(said)
