"""The rubric tier: who grades it, and when it is run (tool-forge interfaces, "RubricEvalCase")."""

from __future__ import annotations

from eval_gate.config.settings import RubricMode
from eval_gate.engine.judging import Judges
from eval_gate.model.case import EvalCase, EvalSuite
from eval_gate.model.specs.evaluator import Rubric

NO_JUDGE = "rubric dimensions need a judge, and none is configured (`judge`, --judge)"
SWITCHED_OFF = "rubric cases are switched off (rubric: never)"


def is_rubric(case: EvalCase) -> bool:
    """Whether a case is judged by a rubric alone."""
    return bool(case.evaluators) and all(isinstance(spec, Rubric) for spec in case.evaluators)


def gradable(suites: tuple[EvalSuite, ...], mode: RubricMode, judges: Judges) -> tuple[EvalSuite, ...]:
    """The suites as they can be run: what cannot be graded is skipped, or loses its rubric, each with the reason."""
    return tuple(
        suite.model_copy(update={"cases": tuple(_gradable(case, mode, judges) for case in suite.cases)})
        for suite in suites
    )


def _gradable(case: EvalCase, mode: RubricMode, judges: Judges) -> EvalCase:
    if mode is RubricMode.NEVER:
        return _ungraded(case, SWITCHED_OFF)
    return case if judges.default(case) is not None else _ungraded(case, NO_JUDGE)


def _ungraded(case: EvalCase, reason: str) -> EvalCase:
    if case.skip_reason is not None or not any(isinstance(spec, Rubric) for spec in case.evaluators):
        return case
    if is_rubric(case):
        return case.model_copy(update={"skip_reason": reason})
    kept = tuple(spec for spec in case.evaluators if not isinstance(spec, Rubric))
    return case.model_copy(
        update={"evaluators": kept, "warnings": (*case.warnings, f"its rubric is not graded: {reason}")}
    )
