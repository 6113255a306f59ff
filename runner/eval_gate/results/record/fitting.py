"""Makes a record of a run that is too large to be read again smaller, part by part, the least missed part first.

A record that no later run could take as its baseline would be worth less than one without some answers. What was left
out is said in a warning of the run itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from eval_gate.model.base import SameObject
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.execution import CaseDetails, EvaluatorResult, Trial
from eval_gate.model.limits import RESULT_BYTES, RESULT_VALUES
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.results.lessening import without_answer, without_prompts, without_words
from eval_gate.results.record.forms import (
    FittedRecord,
    RecordForm,
    ShortForm,
    bare,
    record_pieces,
    short_of,
    short_of_change,
    short_without_suites,
    too_many,
)

CaseStep = Callable[[CaseResult], CaseResult]
ChangeStep = Callable[[CaseChange], CaseChange]

MANY: Final = 20_000
EVERY: Final = 47
"""One case of so many is looked at first; a prime number, since much in a suite comes round every ten or hundred."""
_OF_PASSING: Final = 3
"""The first of the steps are about passing cases, and only about these."""


class _Step(NamedTuple):
    what: str
    """What is left out, as the warning says it."""
    case: CaseStep | None = None
    change: ChangeStep | None = None


class LessenedRun(NamedTuple):
    """A run without what there is certainly no room for."""

    run: RunResult
    steps: int = 0
    """How many of the steps were taken."""
    left_out: tuple[str, ...] = ()
    """What they left out, in words."""


def lessened_run(run: RunResult, most: int = RESULT_BYTES) -> LessenedRun:
    """The beginning of `fitted_record`, for those who let go of the whole run before its record is made of the rest."""
    left_out = list[str]()
    certain = _certainly_too_large(run, most)
    less = _taken(run, _STEPS[:certain], left_out) if certain else run
    return LessenedRun(less, certain, tuple(left_out))


def may_fit(less: LessenedRun, most: int = RESULT_BYTES) -> bool:
    """Whether it is worth a try to write the run as it is, in the form that takes most room."""
    return not less.steps and _at_least(less.run) + bare(less.run, RecordForm.INDENTED) <= most


def fitted_record(run: RunResult | LessenedRun, most: int = RESULT_BYTES, values: int = RESULT_VALUES) -> FittedRecord:
    """The run with as much as can be read again: at most so many bytes and values."""
    short = ShortForm()
    run, certain, said = run if isinstance(run, LessenedRun) else lessened_run(run, most)
    left_out = list(said)
    for step in _STEPS[certain:]:
        if found := _as_it_is(_with_warning(run, left_out, most), short, most, values):
            return found
        run = _taken(run, (step,), left_out)
    told = _with_warning(run, left_out, most)
    return _as_it_is(told, short, most, values) or FittedRecord(told, short.of(told), RecordForm.SHORT)


def _as_it_is(run: RunResult, short: ShortForm, most: int, values: int) -> FittedRecord | None:
    """The run in the first form that is small enough."""
    answers = _at_least(run)
    for form in RecordForm:
        if answers + bare(run, form) > most:
            continue
        pieces: Sequence[bytes] | ShortForm = short.of(run) if form is RecordForm.SHORT else record_pieces(run, form)
        if sum(map(len, pieces)) > most:
            continue
        few = isinstance(pieces, ShortForm) and pieces.has_few(values)
        if few or not too_many(pieces, values):
            return FittedRecord(run, pieces, form)
    return None


def _certainly_too_large(run: RunResult, most: int) -> int:
    """After how many steps a large run is not worth a try yet, by a part of its cases; 0 of a run with few cases.

    What stands beside the cases is counted in full: compared with a baseline it may be half as much as they are.

    Writing a large run takes a second. Its size by that part is too large by chance once in thirty thousand times:
    four standard errors are taken off it.
    """
    cases = [case for suite in run.suites for case in suite.cases]
    if len(cases) < MANY:
        return 0
    part, changes = cases[::EVERY], run.comparison.changes if run.comparison else ()
    beside = len(short_without_suites(run))
    for done in range(len(_STEPS) + 1):
        step = _STEPS[done - 1] if done else _Step("nothing")
        if step.case is not None:
            part = list(map(step.case, part))
        if step.change is not None:
            before, changes = changes, tuple(map(step.change, changes))
            pairs = zip(before, changes, strict=True)
            beside -= sum(
                len(short_of_change(then)) - len(short_of_change(now)) for then, now in pairs if now is not then
            )
        if beside + _certain_bytes(part, len(cases)) <= most:
            return done
    return len(_STEPS)


def _certain_bytes(part: Sequence[CaseResult], cases: int) -> float:
    """What so many cases take at least, of which these are a part."""
    from statistics import fmean, stdev  # 5 ms that few runs need

    sizes = [len(short_of(case)) for case in part]
    error: float = stdev(sizes) / len(sizes) ** 0.5
    return cases * (fmean(sizes) - 4 * error)


class RoomKeeper:
    """Takes of passing cases, as they are made, what the record of so many has certainly no room for: the first steps.

    Taken of all of them when there are all, they would be in memory first.
    """

    def __init__(self, part: Sequence[CaseResult], cases: int, most: int = RESULT_BYTES) -> None:
        """`part` is one of `EVERY` of so many cases; of few cases it may be empty."""
        self._most = most
        self._counts = dict.fromkeys(range(_OF_PASSING), 0)
        spared = [_no_passing_answer(_no_exchange(case)) for case in part]  # so that all three are certain
        self._certain = cases >= MANY and _certain_bytes(spared, cases) > most

    def fit_case(self, case: CaseResult) -> CaseResult:
        """The case as the record will have it."""
        return _less_of_passing(case, self._counts) if self._certain else case

    def fit_details(
        self, details: CaseDetails, results: tuple[EvaluatorResult, ...]
    ) -> tuple[CaseDetails, tuple[EvaluatorResult, ...]]:
        """The same of what is kept of an execution, where its case has no other and passes."""
        return _less_said(details, results, self._counts) if self._certain else (details, results)

    def with_warning(self, run: RunResult) -> RunResult:
        """The run with a warning of what was left out."""
        left_out = [_left_out(step, count) for step, count in zip(_STEPS, self._counts.values(), strict=False) if count]
        return _with_warning(run, left_out, self._most)


def _with_warning(run: RunResult, left_out: Iterable[str], most: int) -> RunResult:
    """The run with a warning of what was left out, in that of what was left out of it before, if there is one."""
    parts = ", ".join(left_out)
    if not parts:
        return run
    said = f"the record would be larger than {most:,} bytes, which no run reads as a baseline; left out of it: "
    before = next((warning for warning in run.warnings if warning.startswith(said)), None)
    others = tuple(warning for warning in run.warnings if warning is not before)
    return run.model_copy(update={"warnings": (f"{before}, {parts}" if before else f"{said}{parts}", *others)})


def _left_out(step: _Step, count: int) -> str:
    return f"{step.what} ({count:,})"


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
    left_out += [_left_out(step, counts[at]) for at, step in enumerate(steps) if counts[at]]
    return run.model_copy(update={"suites": suites, "comparison": comparison})


def _suite_taken(suite: SuiteResult, steps: Sequence[tuple[int, CaseStep]], counts: dict[int, int]) -> SuiteResult:
    """The suite after these steps; `counts` has of how many cases each took something."""
    first = [_no_exchange, _no_passing_answer, _no_passing_words]
    cases, at_once = [], [step for _, step in steps[:_OF_PASSING]] == first
    for case in suite.cases:
        less = _less_of_passing(case, counts) if at_once else case
        for at, step in steps[_OF_PASSING:] if at_once else steps:
            before, less = less, step(less)
            counts[at] += less is not before
        cases.append(less)
    if all(map(operator.is_, cases, suite.cases)):
        return suite
    return suite.model_copy(update={"cases": tuple(cases)})


def _simply_passes(case: CaseResult) -> bool:
    return case.passed and not case.flaky


def _no_exchange(case: CaseResult) -> CaseResult:
    if not _simply_passes(case):
        return case
    return _saying(case, *_without_exchange(case.details, case.evaluator_results))


def _without_exchange(
    details: CaseDetails, said: tuple[EvaluatorResult, ...]
) -> tuple[CaseDetails, tuple[EvaluatorResult, ...]]:
    if not details.conversation and not details.tool_calls and not said:
        return details, said
    prompts = [one for one in said if one.evaluator_provider_request or one.evaluator_results]
    results = [call for call in details.tool_calls if call.result is not None]
    if not (details.conversation or results or prompts):
        return details, said
    calls = tuple(call.model_copy(update={"result": None}) for call in details.tool_calls)
    left_out = details.left_out | ({"messages": len(details.conversation)} if details.conversation else {})
    kept = details.model_copy(update={"conversation": (), "tool_calls": calls, "left_out": left_out})
    return kept, without_prompts(said)


def _saying(case: CaseResult, details: CaseDetails, said: tuple[EvaluatorResult, ...]) -> CaseResult:
    """The case with this in place of what it says."""
    if details is case.details and said is case.evaluator_results:
        return case
    return case.model_copy(update={"details": details, "evaluator_results": said})


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
    if not _simply_passes(case) or (silent := _silent(SameObject(case.evaluator_results))) is None:
        return case
    return case.model_copy(update={"evaluator_results": silent})


def _less_of_passing(case: CaseResult, counts: dict[int, int]) -> CaseResult:
    """The first three steps with one copy in the place of two: of a large run nearly all cases pass."""
    if not _simply_passes(case):
        return case
    return _saying(case, *_less_said(case.details, case.evaluator_results, counts))


def _less_said(
    details: CaseDetails, said: tuple[EvaluatorResult, ...], counts: dict[int, int]
) -> tuple[CaseDetails, tuple[EvaluatorResult, ...]]:
    less, results = _without_exchange(details, said)
    counts[0] += less is not details
    if less.response is not None or less.tool_calls:
        less = without_answer(less)
        counts[1] += 1
    if results and (silent := _silent(SameObject(results))) is not None:
        results = silent
        counts[2] += 1
    return less, results


def _no_held_checks(case: CaseResult) -> CaseResult:
    """Of a grade its parts are compared with those of the next run; a check that simply holds says no more."""
    results = case.evaluator_results
    if not results or case.graded or not _simply_passes(case):
        return case
    if any(result.score != 1 or result.vetoed or result.evaluator_results for result in results):
        return case
    return case.model_copy(update={"evaluator_results": ()})


@lru_cache(1_000)
def _silent(said: SameObject[tuple[EvaluatorResult, ...]]) -> tuple[EvaluatorResult, ...] | None:
    """The same without words; None where there are none. Many cases of another tool's run share what was said."""
    return without_words(said.thing) if any(map(_says, said.thing)) else None


SPARING_NOTHING: Final = RoomKeeper((), 0)
_STEPS: Final = (
    _Step("exchanges, results of calls and judges' prompts of passing cases", _no_exchange),
    _Step("answers and calls of passing cases", _no_passing_answer),
    _Step("evaluators' words about passing cases", _no_passing_words),
    _Step("what executions said that did not decide their case", _no_other_execution),
    _Step("the baseline's side of cases that still fail", change=_no_before_of_still_failing),
    _Step("answers, calls and judges' prompts of failing cases", _no_failing_answer),
    _Step("the baseline's side of all other cases", change=_no_before),
    _Step("checks that passing cases hold", _no_held_checks),
    _Step("questions and expectations", _no_question),
)
"""The order is that of what a person misses least."""
