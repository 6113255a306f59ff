"""Makes a record of a run that is too large to be read again smaller, part by part, the least missed part first.

A record that no later run could take as its baseline would be worth less than one without some answers. What was left
out is said in a warning of the run itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from typing import Final, NamedTuple

from pydantic import TypeAdapter

from eval_gate.model.base import made
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.execution import CaseDetails, EvaluatorResult, Status, Trial
from eval_gate.model.limits import RESULT_BYTES, RESULT_VALUES
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.results.lessening import without_answer, without_prompts, without_words
from eval_gate.text.foreign.json import ForeignJsonError, refuse_too_much

_RUN: Final = TypeAdapter(RunResult)  # bytes at once: a large run's text would be in memory three times otherwise
_SUITE: Final = TypeAdapter(SuiteResult)
_CASE: Final = TypeAdapter(CaseResult)
_CASES: Final = TypeAdapter(tuple[CaseResult, ...])
_NO_CASES: Final = b'"cases":[]'
_AT_ONCE: Final = 1_000
CaseStep = Callable[[CaseResult], CaseResult]
ChangeStep = Callable[[CaseChange], CaseChange]


_MANY: Final = 20_000
_EVERY: Final = 47
"""One case of so many is looked at first; a prime number, since much in a suite comes round every ten or hundred."""


class Form(Enum):
    """How a record is written. All three say the same, each in less room than the one before."""

    INDENTED = "indented"
    COMPACT = "compact"
    """Without line breaks and blanks, which are half of a record without answers."""
    SHORT = "short"
    """Without what is as it is where nothing is said, too: another three quarters of such a record."""


class Fitted(NamedTuple):
    """The record as it can be read again, and its JSON in pieces."""

    run: RunResult
    pieces: Iterable[bytes]
    form: Form = Form.INDENTED


class _Step(NamedTuple):
    what: str
    """What is left out, as the warning says it."""
    case: CaseStep | None = None
    change: ChangeStep | None = None


def fitted(run: RunResult, most: int = RESULT_BYTES, values: int = RESULT_VALUES) -> Fitted:
    """The run with as much as can be read again: at most so many bytes and values."""
    short, left_out = _Short(), list[str]()
    certain = _certainly_too_large(run, most)
    run = _taken(run, _STEPS[:certain], left_out) if certain else run
    for step in _STEPS[certain:]:
        if found := _as_it_is(_with_warning(run, left_out, most), short, most, values):
            return found
        run = _taken(run, (step,), left_out)
    told = _with_warning(run, left_out, most)
    return _as_it_is(told, short, most, values) or Fitted(told, short.of(told), Form.SHORT)


def _as_it_is(run: RunResult, short: _Short, most: int, values: int) -> Fitted | None:
    """The run in the first form that is small enough."""
    answers = _at_least(run)
    for form in Form:
        if answers + _bare(run, form) > most:
            continue
        pieces: Sequence[bytes] | _Short = short.of(run) if form is Form.SHORT else (_written(run, form),)
        if sum(map(len, pieces)) <= most and not _too_many(pieces, values):
            return Fitted(run, pieces, form)
    return None


def _certainly_too_large(run: RunResult, most: int) -> int:
    """After how many steps a large run is not worth a try yet, by a part of its cases; 0 of a run with few cases.

    Writing a large run takes a second. Its size by that part is too large by chance once in thirty thousand times:
    four standard errors are taken off it.
    """
    cases = [case for suite in run.suites for case in suite.cases]
    if len(cases) < _MANY:
        return 0
    from statistics import fmean, stdev  # 5 ms that few runs need

    part = cases[::_EVERY]
    for done in range(len(_STEPS) + 1):
        if done and (leave_out := _STEPS[done - 1].case):
            part = list(map(leave_out, part))
        sizes = [len(_short(case)) for case in part]
        error = len(cases) * stdev(sizes) / len(sizes) ** 0.5
        if len(cases) * fmean(sizes) - 4 * error <= most:
            return done
    return len(_STEPS)


class _Short:
    """The short form of a run that becomes less and less: of what stays as it was, nothing is written again.

    To go through it gives the whole record, piece by piece.
    """

    def __init__(self) -> None:
        self._run: RunResult | None = None
        self._head = b""
        self._cases: list[list[bytes]] = []

    def of(self, run: RunResult) -> _Short:
        """Of this run from now on, which has the cases of the one before, or less of them."""
        if self._run is None:
            self._cases = [[_short(case) for case in suite.cases] for suite in run.suites]
        else:
            for before, suite, cases in zip(self._run.suites, run.suites, self._cases, strict=True):
                for at, (then, now) in enumerate(zip(before.cases, suite.cases, strict=True)):
                    if then is not now:
                        cases[at] = _short(now)
        self._run = run
        rest = _RUN.dump_json(run.model_copy(update={"suites": ()}), by_alias=True, exclude_defaults=True)
        # a record is known by its first key, which is always there
        self._head = b'{"schemaVersion":%d,%b,"suites":[' % (run.schema_version, rest[1:-1])
        return self

    def __iter__(self) -> Iterator[bytes]:
        """No piece ends within a text."""
        assert self._run is not None
        yield self._head
        for number, (suite, cases) in enumerate(zip(self._run.suites, self._cases, strict=True)):
            own = _SUITE.dump_json(suite.model_copy(update={"cases": ()}), by_alias=True, exclude_defaults=True)
            yield b'%b%b,"cases":[' % (b"," if number else b"", own[:-1])
            for start in range(0, len(cases), _AT_ONCE):
                yield (b"," if start else b"") + b",".join(cases[start : start + _AT_ONCE])
            yield b"]}"
        yield b"]}"


def _short(case: CaseResult) -> bytes:
    return _CASE.serializer.to_json(case, by_alias=True, exclude_defaults=True)  # at once: there are many


def suite_file(suite: SuiteResult, form: Form) -> Iterator[bytes]:
    """A suite's own file, some cases at a time where it is large.

    It has all of the contract's fields in every form: whoever reads it may know no other.
    """
    if form is Form.INDENTED:
        yield _SUITE.dump_json(suite, by_alias=True, indent=2)
        return
    empty = _SUITE.dump_json(suite.model_copy(update={"cases": ()}), by_alias=True)
    head, between, rest = empty.partition(_NO_CASES)  # in no text, where its quotes would be escaped
    yield head + between[:-1]
    for start in range(0, len(suite.cases), _AT_ONCE):
        cases = _CASES.dump_json(suite.cases[start : start + _AT_ONCE], by_alias=True)[1:-1]
        yield b"," + cases if start else cases
    yield b"]" + rest


def _written(run: RunResult, form: Form) -> bytes:
    return _RUN.dump_json(run, by_alias=True, indent=2 if form is Form.INDENTED else None)


def _bare(run: RunResult, form: Form) -> int:
    """Bytes that this many cases take at least, with nothing in them: known without writing them."""
    return _bare_case(form) * sum(len(suite.cases) for suite in run.suites)


@cache
def _bare_case(form: Form) -> int:
    case = made(CaseResult, id="", passed=True, status=Status.PASSED)
    indent, short = 2 if form is Form.INDENTED else None, form is Form.SHORT
    return len(_CASE.dump_json(case, by_alias=True, indent=indent, exclude_defaults=short))


def _with_warning(run: RunResult, left_out: Iterable[str], most: int) -> RunResult:
    parts = ", ".join(left_out)
    if not parts:
        return run
    said = f"the record would be larger than {most:,} bytes, which no run reads as a baseline; left out of it: {parts}"
    return run.model_copy(update={"warnings": (said, *run.warnings)})


def _at_least(run: RunResult) -> int:
    """Characters of all answers: many are quicker counted than written."""
    return sum(len(details.response) for details in _details(run) if details.response is not None)


def _details(run: RunResult) -> Iterator[CaseDetails]:
    for suite in run.suites:
        for case in suite.cases:
            yield case.details
            for trial in case.trials:
                if trial.details is not None:
                    yield trial.details
    for change in run.comparison.changes if run.comparison else ():
        if change.before is not None:
            yield change.before.details


def _too_many(pieces: Iterable[bytes], values: int) -> bool:
    try:
        refuse_too_much(pieces, values=values)
    except ForeignJsonError:
        return True
    return False


def _taken(run: RunResult, steps: Sequence[_Step], left_out: list[str]) -> RunResult:
    """The run without these parts, one after the other; what there was of them is added to `left_out`."""
    counts = dict.fromkeys(range(len(steps)), 0)
    case_steps = [(at, step.case) for at, step in enumerate(steps) if step.case is not None]
    suites = tuple(_suite_taken(suite, case_steps, counts) for suite in run.suites) if case_steps else run.suites
    comparison = run.comparison
    for at, step in enumerate(steps):
        if step.change is not None and comparison is not None:
            changes = tuple(map(step.change, comparison.changes))
            counts[at] += sum(map(operator.is_not, changes, comparison.changes))
            comparison = comparison.model_copy(update={"changes": changes})
    left_out += [f"{step.what} ({counts[at]:,})" for at, step in enumerate(steps) if counts[at]]
    return run.model_copy(update={"suites": suites, "comparison": comparison})


def _suite_taken(suite: SuiteResult, steps: Sequence[tuple[int, CaseStep]], counts: dict[int, int]) -> SuiteResult:
    """The suite after these steps; `counts` has of how many cases each took something."""
    cases = []
    for case in suite.cases:
        less = case
        for at, step in steps:
            before, less = less, step(less)
            counts[at] += less is not before
        cases.append(less)
    if all(map(operator.is_, cases, suite.cases)):
        return suite
    return suite.model_copy(update={"cases": tuple(cases)})


def _simply_passes(case: CaseResult) -> bool:
    return case.passed and not case.flaky


def _no_exchange(case: CaseResult) -> CaseResult:
    details = case.details
    if not details.conversation and not details.tool_calls and not case.evaluator_results:
        return case
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
    bare_results = without_prompts(case.evaluator_results)
    if all(map(operator.is_, bare_results, case.evaluator_results)):
        return bare
    return bare.model_copy(update={"evaluator_results": bare_results})


def _no_question(case: CaseResult) -> CaseResult:
    return case if case.asked is None else case.model_copy(update={"asked": None})


def _says(result: EvaluatorResult) -> bool:
    return bool(result.hits or result.misses or result.reasoning or any(map(_says, result.evaluator_results)))


def _no_passing_words(case: CaseResult) -> CaseResult:
    if not _simply_passes(case) or not any(map(_says, case.evaluator_results)):
        return case
    return case.model_copy(update={"evaluator_results": without_words(case.evaluator_results)})


_STEPS: Final = (
    _Step("exchanges, results of calls and judges' prompts of passing cases", _no_exchange),
    _Step("answers and calls of passing cases", _no_passing_answer),
    _Step("evaluators' words about passing cases", _no_passing_words),
    _Step("what executions said that did not decide their case", _no_other_execution),
    _Step("the baseline's side of cases that still fail", change=_no_before_of_still_failing),
    _Step("answers, calls and judges' prompts of failing cases", _no_failing_answer),
    _Step("the baseline's side of all other cases", change=_no_before),
    _Step("questions and expectations", _no_question),
)
"""The order is that of what a person misses least."""
