"""Makes a record of a run that is too large to be read again smaller, part by part, the least missed part first.

A record that no later run could take as its baseline would be worth less than one without some answers. What was left
out is said in a warning of the run itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from pydantic import TypeAdapter

from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.execution import CaseDetails, Trial
from eval_gate.model.limits import RESULT_BYTES, RESULT_VALUES
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.lessening import without_answer, without_prompts
from eval_gate.text.foreign.json import ForeignJsonError, refuse_too_much

_RUN: Final = TypeAdapter(RunResult)  # bytes at once: a large run's text would be in memory three times otherwise
CaseStep = Callable[[CaseResult], CaseResult]
ChangeStep = Callable[[CaseChange], CaseChange]


class Fitted(NamedTuple):
    """The record as it can be read again, and its JSON."""

    run: RunResult
    data: bytes


class _Step(NamedTuple):
    what: str
    """What is left out, as the warning says it."""
    case: CaseStep | None = None
    change: ChangeStep | None = None


def fitted(run: RunResult, most: int = RESULT_BYTES, values: int = RESULT_VALUES) -> Fitted:
    """The run with as much as can be read again: at most so many bytes and values."""
    steps, left_out = iter(_STEPS), list[str]()
    while True:
        told = _with_warning(run, left_out, most)
        if _at_least(told) <= most:
            data = _RUN.dump_json(told, by_alias=True, indent=2)
            if len(data) > most:
                data = _RUN.dump_json(
                    told, by_alias=True
                )  # line breaks and blanks are half of a record without answers
            if len(data) <= most and not _too_many(data, values):
                return Fitted(told, data)
        step = next(steps, None)
        if step is None:
            data = _RUN.dump_json(told, by_alias=True)
            return Fitted(told, data)
        run, count = _taken(run, step)
        if count:
            left_out.append(f"{step.what} ({count:,})")


def _with_warning(run: RunResult, left_out: Iterable[str], most: int) -> RunResult:
    parts = ", ".join(left_out)
    if not parts:
        return run
    said = f"the record would be larger than {most:,} bytes, which no run reads as a baseline; left out of it: {parts}"
    return run.model_copy(update={"warnings": (said, *run.warnings)})


def _at_least(run: RunResult) -> int:
    """Characters of all answers: many are quicker counted than written."""
    answers = (details.response for details in _details(run) if details is not None)
    return sum(len(answer) for answer in answers if answer is not None)


def _details(run: RunResult) -> Iterator[CaseDetails | None]:
    for _, case in run.cases():
        yield case.details
        yield from (trial.details for trial in case.trials)
    for change in run.comparison.changes if run.comparison else ():
        yield change.before.details if change.before else None


def _too_many(data: bytes, values: int) -> bool:
    try:
        refuse_too_much(data, values=values)
    except ForeignJsonError:
        return True
    return False


def _taken(run: RunResult, step: _Step) -> tuple[RunResult, int]:
    """The run without this part, and of how many cases that was taken."""
    count = 0

    def case_of(case: CaseResult) -> CaseResult:
        nonlocal count
        made = step.case(case) if step.case else case
        count += made is not case
        return made

    def change_of(change: CaseChange) -> CaseChange:
        nonlocal count
        made = step.change(change) if step.change else change
        count += made is not change
        return made

    suites = tuple(
        suite.model_copy(update={"cases": tuple(case_of(case) for case in suite.cases)}) for suite in run.suites
    )
    comparison = run.comparison
    if comparison is not None:
        changes = tuple(change_of(change) for change in comparison.changes)
        comparison = comparison.model_copy(update={"changes": changes})
    return run.model_copy(update={"suites": suites, "comparison": comparison}), count


def _simply_passes(case: CaseResult) -> bool:
    return case.passed and not case.flaky


def _no_exchange(case: CaseResult) -> CaseResult:
    details = case.details
    prompts = any(result.evaluator_provider_request or result.evaluator_results for result in case.evaluator_results)
    results = any(call.result is not None for call in details.tool_calls)
    if not _simply_passes(case) or not (details.conversation or results or prompts):
        return case
    calls = tuple(call.model_copy(update={"result": None}) for call in details.tool_calls)
    left_out = details.left_out | ({"messages": len(details.conversation)} if details.conversation else {})
    kept = details.model_copy(update={"conversation": (), "tool_calls": calls, "left_out": left_out})
    return case.model_copy(update={"details": kept, "evaluator_results": without_prompts(case.evaluator_results)})


def _no_answer(case: CaseResult) -> CaseResult:
    if case.details.response is None and not case.details.tool_calls:
        return case
    return case.model_copy(update={"details": without_answer(case.details)})


def _no_passing_answer(case: CaseResult) -> CaseResult:
    return _no_answer(case) if _simply_passes(case) else case


def _no_other_execution(case: CaseResult) -> CaseResult:
    if all(trial.details is None for trial in case.trials):
        return case
    return case.model_copy(update={"trials": tuple(map(_bare_trial, case.trials))})


def _bare_trial(trial: Trial) -> Trial:
    return trial.model_copy(update={"details": None, "evaluator_results": ()})


def _no_before_of_still_failing(change: CaseChange) -> CaseChange:
    return _no_before(change) if change.change is CaseClass.STILL_FAILING else change


def _no_before(change: CaseChange) -> CaseChange:
    return change if change.before is None else change.model_copy(update={"before": None})


def _no_failing_answer(case: CaseResult) -> CaseResult:
    bare = _no_answer(case)
    if bare is case and not case.evaluator_results:
        return case
    return bare.model_copy(update={"evaluator_results": without_prompts(case.evaluator_results)})


def _no_question(case: CaseResult) -> CaseResult:
    return case if case.asked is None else case.model_copy(update={"asked": None})


_STEPS: Final = (
    _Step("exchanges, results of calls and judges' prompts of passing cases", _no_exchange),
    _Step("answers and calls of passing cases", _no_passing_answer),
    _Step("what executions said that did not decide their case", _no_other_execution),
    _Step("the baseline's side of cases that still fail", change=_no_before_of_still_failing),
    _Step("answers, calls and judges' prompts of failing cases", _no_failing_answer),
    _Step("the baseline's side of all other cases", change=_no_before),
    _Step("questions and expectations", _no_question),
)
"""The order is that of what a person misses least."""
