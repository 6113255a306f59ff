"""How what is kept of a case becomes less, where not everything is to be kept. Pure; what is lost is counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple

from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.conversation import Message
from eval_gate.model.execution import BaselineSide, Blame, CaseDetails, EvaluatorResult, KeptCall, Status, Trial
from eval_gate.model.limits import KEPT_ANSWER, KEPT_CALL, OTHER_ANSWER, OTHER_CALL, OTHER_CALLS
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.struct import replace
from eval_gate.text.javascript.strings import compact_json

PROMPTS: Final = ("systemPrompt", "userPrompt")
"""Facts of a judgement that hold what a judge was told."""
PROMPT_CUT: Final = "promptCut"
"""The fact that names those of them of which only the beginning is kept."""
NOT_KEPT: Final = "what was answered is not kept"
_QUOTES_NOTHING: Final = frozenset(
    {
        *("toolsCalled", "toolsCalledAnyOrder", "toolsAcceptable", "toolsNotCalled", "noToolErrors", "tool_trajectory"),
        *("responseNonEmpty", "responseContains", "responseContainsAny", "responseNotContains", "responseMatches"),
        *("maxLatencyMs", "maxTokens"),
    }
)
"""Evaluators whose words hold nothing of an answer but names of tools, which are always kept."""
_OURS: Final = frozenset({"model", "replies", "judgeParseFailed", "command", "assertion", "expected"})
"""Facts of a judgement that are about who judged, and by what."""
_GRADED: Final = ("dimensions", "checks")
"""Facts that list grades, each with a judge's words."""
_FACES: Final = ("agent error: ", "timeout: ", "eval-gate broke over this case: ")
"""What an error may begin with before it says what happened."""
_SAID_BY_A_SERVER: Final = re.compile(r"\bHTTP (?P<status>[1-5][0-9]{2})\b(?P<words> .*)?", re.DOTALL)
"""A status, and the reason and the place that a server puts behind it in words of its own."""
_AS_BEFORE: Final = frozenset({CaseClass.STILL_PASSING, CaseClass.ADDED, CaseClass.REMOVED, CaseClass.NOT_RUN})
Part = Literal["arguments", "result"]


def json_beginning(value: JsonValue, limit: int) -> JsonValue:
    """The value itself, or the beginning of its JSON text where that is longer than `limit` characters."""
    if value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= limit - 2):
        return value
    text = compact_json(value)
    return value if len(text) <= limit else text[:limit]


def cut_parts(arguments: bool, result: bool) -> tuple[Part, ...]:  # noqa: FBT001 (the two parts of a call)
    """The names of the parts that are cut."""
    return (*(("arguments",) if arguments else ()), *(("result",) if result else ()))


def within(details: CaseDetails) -> CaseDetails:
    """What patterns have looked at, cut to what an execution keeps."""
    answer = details.response
    return replace(
        details,
        response=answer and answer[:KEPT_ANSWER],
        conversation=tuple(_message_within(message) for message in details.conversation),
        tool_calls=tuple(_lesser_call(call, KEPT_CALL) for call in details.tool_calls),
    )


def _message_within(message: Message) -> Message:
    content = message.content
    return replace(
        message, content=content[:KEPT_ANSWER] if isinstance(content, str) else json_beginning(content, KEPT_ANSWER)
    )


def lesser(details: CaseDetails) -> CaseDetails:
    """What an execution keeps that did not decide its case: less of answer and calls, and no exchange."""
    answer = details.response
    left_out = details.left_out | {
        "toolCalls": details.left_out.get("toolCalls", 0) + max(len(details.tool_calls) - OTHER_CALLS, 0),
        "messages": details.left_out.get("messages", 0) + len(details.conversation),
        "characters": max(details.response_length - OTHER_ANSWER, 0) if answer is not None else 0,
    }
    return replace(
        details,
        response=answer and answer[:OTHER_ANSWER],
        response_truncated=answer is not None and details.response_length > OTHER_ANSWER,
        conversation=(),
        tool_calls=tuple(_lesser_call(call, OTHER_CALL) for call in details.tool_calls[:OTHER_CALLS]),
        left_out={what: count for what, count in left_out.items() if count > 0},
    )


def _lesser_call(call: KeptCall, limit: int) -> KeptCall:
    arguments, result = (
        value[:limit] if part in call.cut and isinstance(value, str) else json_beginning(value, limit)
        for part, value in (("arguments", call.arguments), ("result", call.result))
    )
    cut = cut_parts(
        "arguments" in call.cut or arguments is not call.arguments, "result" in call.cut or result is not call.result
    )
    return replace(
        call,
        arguments=arguments,
        result=result,
        cut=cut,
    )


def without_prompts(results: Iterable[EvaluatorResult]) -> tuple[EvaluatorResult, ...]:
    """What the evaluators said, without what judges were told: that differs only by the answer from what is kept."""
    return tuple(
        result
        if result.evaluator_provider_request is None and not result.evaluator_results
        else replace(
            result,
            evaluator_provider_request=_without(result.evaluator_provider_request, PROMPTS),
            evaluator_results=without_prompts(result.evaluator_results),
        )
        for result in results
    )


def _without(facts: dict[str, Any] | None, names: Iterable[str]) -> dict[str, Any] | None:
    return facts and {name: value for name, value in facts.items() if name not in names}


def without_answer(details: CaseDetails) -> CaseDetails:
    """What is known of an answer that is not kept: its length, and which tools were called."""
    return replace(
        details,
        response=None,
        response_truncated=False,
        conversation=(),
        tool_calls=(),
        left_out={},
    )


def drop_trial_details(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """Keep how the executions ended."""
    return tuple(one if one.details is None else replace(one, details=None, evaluator_results=()) for one in trials)


def is_as_before(change: CaseChange) -> bool:
    """Whether nothing about this case differs from the baseline, or whether the baseline does not have it."""
    return change.change in _AS_BEFORE and not change.score_drop


class DroppedDetails(NamedTuple):
    """A run result without the details of some cases, and those of them that had any."""

    run: RunResult
    cases: Set[CaseKey]


def drop_passing_details(run: RunResult) -> DroppedDetails:
    """Drop the details of the cases that passed and did not change."""
    changed = {one.key for one in run.comparison.changes if not is_as_before(one)} if run.comparison else set()
    return _drop_details(run, lambda key, case: case.passed and not case.flaky and key not in changed)


def drop_all_details(run: RunResult) -> DroppedDetails:
    """Drop the details of all cases, on the baseline's side too."""
    (less, cases), comparison = _drop_details(run, lambda _key, _case: True), run.comparison
    if comparison is None:
        return DroppedDetails(less, cases)
    changes = tuple(
        replace(one, before=_drop_side_details(one.before)) if one.before else one for one in comparison.changes
    )
    sides = {one.key for one, before in zip(changes, comparison.changes, strict=True) if one != before}
    comparison = replace(comparison, changes=changes)
    return DroppedDetails(replace(less, comparison=comparison), cases | sides)


def _drop_details(run: RunResult, is_chosen: Callable[[CaseKey, CaseResult], bool]) -> DroppedDetails:
    suites, dropped = list[SuiteResult](), set[CaseKey]()
    for suite in run.suites:
        cases = list(suite.cases)
        for at, case in enumerate(suite.cases):
            key = CaseKey(suite.eval_file, case.id)
            if is_chosen(key, case) and (less := _drop_case_details(case)) != case:
                cases[at] = less
                dropped.add(key)
        suites.append(replace(suite, cases=tuple(cases)))
    return DroppedDetails(replace(run, suites=tuple(suites)), dropped)


def _drop_case_details(case: CaseResult) -> CaseResult:
    """Keep what a later run compares the case by: scores, times, tokens, fingerprints, names of tools, who judged."""
    results = unquoted(case.evaluator_results)
    if case.passed and not case.graded and case.yardstick and case.yardstick.expectation:
        results = tuple(result for result in results if not _holds(result))  # the fingerprint stands for the checks
    return replace(
        case,
        details=without_answer(case.details),
        evaluator_results=results,
        trials=drop_trial_details(case.trials),
        trace_summary=None,
        asked=None,
    )


def _holds(result: EvaluatorResult) -> bool:
    """Whether it is a check that holds, and no judge's."""
    plain = result.evaluator_provider_request is None and not result.evaluator_results
    return plain and result.score == 1 and not result.vetoed


def _drop_side_details(side: BaselineSide) -> BaselineSide:
    return replace(side, details=without_answer(side.details), evaluator_results=unquoted(side.evaluator_results))


def unquoted(results: Iterable[EvaluatorResult]) -> tuple[EvaluatorResult, ...]:
    """Scores and weights, and of all words only those that cannot hold anything of an answer."""
    return tuple(_unquoted(result) for result in results)


def _unquoted(result: EvaluatorResult) -> EvaluatorResult:
    facts = _without_words(result.evaluator_provider_request)
    if result.type in _QUOTES_NOTHING and not result.evaluator_results:
        return result if facts is None else replace(result, evaluator_provider_request=facts)
    return replace(
        result,
        hits=(),
        misses=(),
        reasoning=None,
        evaluator_provider_request=facts,
        evaluator_results=unquoted(result.evaluator_results),
    )


def _without_words(facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Facts by the same names; None stands for what holds something of the answer."""
    if facts is None:
        return None
    told: dict[str, Any] = {name: value if name in _OURS else None for name, value in facts.items()}
    for name in set(_GRADED) & facts.keys():
        told[name] = [{key: value for key, value in grade.items() if key != "reasoning"} for grade in facts[name]]
    if "message" in facts:  # behind a colon, or in brackets, is what was seen
        told["message"] = re.split(r": | \(", str(facts["message"]))[0]
    return told


def _status_only(found: re.Match[str]) -> str:
    """The status with the words that the standard has for it; a server's own are left out."""
    with suppress(ValueError):
        usual = HTTPStatus(int(found["status"])).phrase
        if (found["words"] or "").startswith(f" {usual}"):
            return f"HTTP {found['status']} {usual}"
    return f"HTTP {found['status']}"


def error_unquoted(error: str, status: Status, blame: Blame | None, results: Iterable[EvaluatorResult]) -> str:
    """What went wrong, without a word of the answer. `results` are those of the execution, as they were made.

    What a target or a judge said itself stands behind a colon or a semicolon, in whoever's error it is.
    """
    if status is not Status.FAILED:
        ours = blame is Blame.OURS or error.startswith(_FACES)  # begins with the name of a judge, or such a word
        kept = ": ".join(error.split("; ", maxsplit=1)[0].split(": ")[: 2 if ours else 1])
        return _SAID_BY_A_SERVER.sub(_status_only, kept)
    short = [result for result in results if result.score < 1 or result.vetoed]
    if all(result.type in _QUOTES_NOTHING for result in short):
        return error
    first = next(result for result in short if result.type not in _QUOTES_NOTHING)
    return f"{first.name}: {'not as expected' if first.score == 0 else f'score {first.score:.2f}'}; {NOT_KEPT}"
