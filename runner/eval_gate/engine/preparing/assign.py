"""Which case is asked of which target, and who grades it: everything looked up before anything is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from eval_gate.config.settings import RubricMode, RunConfig
from eval_gate.engine.judging import Grading, Judges, ModelJudge, TargetJudge, wanted_judges
from eval_gate.errors import GateError, Problem
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.specs.evaluator import Rubric
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import Target
from eval_gate.targets.lookup import Grader, TargetBook
from eval_gate.targets.model.asker import Asker

MAX_PROBLEMS = 20
"""Cases that are named in one message."""

Looked = TypeVar("Looked")
Place = tuple[str, str | None]
"""Eval file, and the name of the target that its case wants."""


class Assignment(FrozenStruct):
    """Who is asked and who grades, by place. `main` stands for the run where one target has to."""

    main: Target
    targets: dict[Place, Target]
    judges: Judges


def assign(suites: Sequence[EvalSuite], book: TargetBook, config: RunConfig) -> Assignment:
    """Look up every target and judge that the cases need.

    Raises GateError with all problems: a target that is not described, a grade that nobody could give. A rubric that
    nobody could grade is none: its case is skipped, as its own rule has it.
    """
    cases = [case for suite in suites for case in suite.cases if case.skip_reason is None]
    cases = cases or [case for suite in suites for case in suite.cases]
    targets = _look_up(cases, book.target, decided=book.decided)
    judges = _Judges(book, config.judge, config.limits.timeout_ms / 1000).of(cases, config.rubric)
    return Assignment(targets[cases[0].suite, cases[0].target], targets, judges)


def _look_up(
    cases: Sequence[EvalCase], find: Callable[[str, str | None], Looked], *, decided: bool
) -> dict[Place, Looked]:
    """What is found for every place, once. Raises the first GateError, with the case that wants it.

    `decided`: nothing is as the cases want it, so that none of them is to blame.
    """
    found: dict[Place, Looked] = {}
    for case in cases:
        place = case.suite, case.target
        if place in found:
            continue
        try:
            found[place] = find(*place)
        except GateError as error:
            if case.target is None or error.problems or decided:
                raise
            field = "agent.model" if case.agent is not None else "execution.target"
            said = Problem(error.message, case.location.file, case.location.line, field)
            raise GateError(
                error.code, error.message, error.hint, problems=[said], exit_code=error.exit_code
            ) from error
    return found


class _Judges:
    """Builds each judge once."""

    def __init__(self, book: TargetBook, named: str | None, timeout_s: float) -> None:
        self._book = book
        self._named = named
        self._timeout_s = timeout_s
        self._made: dict[int, Grading] = {}

    def of(self, cases: Sequence[EvalCase], rubric: RubricMode) -> Judges:
        """All judges these cases need. Raises GateError for a grade that nobody could give."""
        defaults: dict[Place, Grading] = {}
        named: dict[str, dict[str, Grading]] = {}
        missing: list[Problem] = []
        for case in cases:
            for name, needed in _wanted(case, rubric):
                if name is not None:
                    named.setdefault(case.suite, {})[name] = self._grading(self._named_by(case, name))
                    continue
                place = case.suite, case.target
                found = defaults.get(place) or self._default(place)
                if found is not None:
                    defaults[place] = found
                elif needed:
                    said = f"{case.id}: nobody to grade it"
                    missing.append(Problem(said, case.location.file, case.location.line))
        if missing:
            rest = len(missing) - MAX_PROBLEMS
            raise GateError(
                "no-judge",
                f"{len(missing)} case{'s need' if len(missing) != 1 else ' needs'} a judge, and the target is no model "
                f"that could grade itself{f' (the first {MAX_PROBLEMS} are named)' if rest > 0 else ''}",
                "set `judge_target` at the target, or `judge` (--judge) to a target's name or to provider:model",
                problems=missing[:MAX_PROBLEMS],
            )
        return Judges(defaults, named)

    def _named_by(self, case: EvalCase, name: str) -> tuple[str, Grader]:
        """The judge that an evaluator of the case asks. Raises GateError, with the case for its place."""
        try:
            return self._book.grader(case.suite, name)
        except GateError as error:
            error.problems = error.problems or (Problem(error.message, case.location.file, case.location.line),)
            raise

    def _default(self, place: Place) -> Grading | None:
        found = self._book.judge(*place, self._named)
        return None if found is None else self._grading(found)

    def _grading(self, found: tuple[str, Grader]) -> Grading:
        name, grader = found
        if id(grader) not in self._made:
            made = ModelJudge(name, grader) if isinstance(grader, Asker) else TargetJudge(name, grader, self._timeout_s)
            self._made[id(grader)] = made
        return self._made[id(grader)]


def _wanted(case: EvalCase, rubric: RubricMode) -> Iterator[tuple[str | None, bool]]:
    """The judges a case asks for, and whether it cannot do without: a rubric can, it is skipped then."""
    for spec in case.evaluators:
        if isinstance(spec, Rubric) and rubric is RubricMode.NEVER:
            continue
        for name in sorted(wanted_judges(spec), key=str):
            yield name, not isinstance(spec, Rubric)
