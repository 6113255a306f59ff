"""Assigns a target and judges to every case before the first request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from eval_gate.config.settings import RubricMode, RunConfig
from eval_gate.engine.judge_targets import AnyJudge, Judges, ModelJudge, TargetJudge, list_judge_names
from eval_gate.errors import GateError, Problem
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.specs.evaluator import Rubric
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import Target
from eval_gate.targets.catalog import Grader, TargetCatalog
from eval_gate.targets.model.model_client import ModelClient
from eval_gate.text.escape import format_count

MAX_PROBLEMS = 20
"""Cases that are named in one message."""

Resolved = TypeVar("Resolved")
TargetKey = tuple[str, str | None]
"""Eval file, and the name of the target that its case wants."""


class Assignment(FrozenStruct):
    """Targets and judges by eval file and target name; `main` is the run's own target."""

    main: Target
    targets: dict[TargetKey, Target]
    judges: Judges


def assign_targets(suites: Sequence[EvalSuite], catalog: TargetCatalog, config: RunConfig) -> Assignment:
    """Look up every target and judge that the cases need.

    Raises GateError with all problems: a target that is not described, a grade that nobody could give. A rubric that
    nobody could grade is none: its case is skipped, as its own rule has it.
    """
    cases = [case for suite in suites for case in suite.cases if case.skip_reason is None]
    cases = cases or [case for suite in suites for case in suite.cases]
    targets = _look_up(cases, catalog.get_target, decided=catalog.is_fixed)
    judges = _JudgeBuilder(catalog, config.judge, config.limits.timeout_ms / 1000).build(cases, config.rubric)
    return Assignment(targets[cases[0].suite, cases[0].target], targets, judges)


def _look_up(
    cases: Sequence[EvalCase], find: Callable[[str, str | None], Resolved], *, decided: bool
) -> dict[TargetKey, Resolved]:
    """Resolve every pair of suite and target name once; an error names the case, unless all is `decided` without it."""
    found: dict[TargetKey, Resolved] = {}
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


class _JudgeBuilder:
    """Builds each judge once."""

    def __init__(self, catalog: TargetCatalog, named: str | None, timeout_s: float) -> None:
        self._catalog = catalog
        self._named = named
        self._timeout_s = timeout_s
        self._made: dict[int, AnyJudge] = {}

    def build(self, cases: Sequence[EvalCase], rubric: RubricMode) -> Judges:
        """Build all judges that these cases need. Raises GateError if an evaluator has no judge."""
        defaults: dict[TargetKey, AnyJudge] = {}
        named: dict[str, dict[str, AnyJudge]] = {}
        missing: dict[Problem, None] = {}
        for case in cases:
            for name, needed in _iter_wanted_judges(case, rubric):
                if name is not None:
                    named.setdefault(case.suite, {})[name] = self._get_judge(self._find_named(case, name))
                    continue
                place = case.suite, case.target
                found = defaults.get(place) or self._find_default(place)
                if found is not None:
                    defaults[place] = found
                elif needed:
                    missing[Problem(f"{case.id}: no judge", case.location.file, case.location.line)] = None
        if missing:
            rest = len(missing) - MAX_PROBLEMS
            raise GateError(
                "missing-judge",
                f"{format_count(len(missing), 'case needs', 'cases need')} a judge: none is configured, and "
                f"the target is not a model{f' (first {MAX_PROBLEMS} listed)' if rest > 0 else ''}",
                "set `judge_target` in the target, or `judge` (--judge) to the name of a target or to provider:model",
                problems=[*missing][:MAX_PROBLEMS],
            )
        return Judges(defaults, named)

    def _find_named(self, case: EvalCase, name: str) -> tuple[str, Grader]:
        """Find the LLM judge that an evaluator names; an error without a location gets that of the case."""
        try:
            return self._catalog.get_grader(case.suite, name)
        except GateError as error:
            error.problems = error.problems or (Problem(error.message, case.location.file, case.location.line),)
            raise

    def _find_default(self, place: TargetKey) -> AnyJudge | None:
        found = self._catalog.find_judge(*place, self._named)
        return None if found is None else self._get_judge(found)

    def _get_judge(self, found: tuple[str, Grader]) -> AnyJudge:
        name, grader = found
        if id(grader) not in self._made:
            made = (
                ModelJudge(name, grader)
                if isinstance(grader, ModelClient)
                else TargetJudge(name, grader, self._timeout_s)
            )
            self._made[id(grader)] = made
        return self._made[id(grader)]


def _iter_wanted_judges(case: EvalCase, rubric: RubricMode) -> Iterator[tuple[str | None, bool]]:
    """Yield the judges that a case names, and whether it requires each: a rubric is skipped without a judge."""
    for spec in case.evaluators:
        if isinstance(spec, Rubric) and rubric is RubricMode.NEVER:
            continue
        for name in sorted(list_judge_names(spec), key=str):
            yield name, not isinstance(spec, Rubric)
