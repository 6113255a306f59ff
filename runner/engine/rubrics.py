"""The rubric tier: who grades it, and when it is run (tool-forge interfaces, "RubricEvalCase")."""

from __future__ import annotations

from runner.config.settings import RubricMode
from runner.model.case import EvalCase, EvalSuite
from runner.model.evaluator import Rubric

NO_JUDGE = "rubric dimensions need a judge, and none is configured"
SWITCHED_OFF = "rubric cases are switched off (rubric: never)"
OTHERS_FAILED = "rubric cases are run when all others pass (rubric: after-pass)"


def is_rubric(case: EvalCase) -> bool:
    """Whether a case is judged by a rubric alone."""
    return bool(case.evaluators) and all(isinstance(spec, Rubric) for spec in case.evaluators)


def gradable(suites: tuple[EvalSuite, ...], mode: RubricMode, *, has_judge: bool) -> tuple[EvalSuite, ...]:
    """The suites as they can be run: what cannot be graded is skipped, or loses its rubric, each with the reason."""
    reason = SWITCHED_OFF if mode is RubricMode.NEVER else None if has_judge else NO_JUDGE
    if reason is None or not any(isinstance(spec, Rubric) for suite in suites for spec in _specs(suite)):
        return suites
    return tuple(
        suite.model_copy(update={"cases": tuple(_ungraded(case, reason) for case in suite.cases)}) for suite in suites
    )


def _ungraded(case: EvalCase, reason: str) -> EvalCase:
    if case.skip_reason is not None or not any(isinstance(spec, Rubric) for spec in case.evaluators):
        return case
    if is_rubric(case):
        return case.model_copy(update={"skip_reason": reason})
    kept = tuple(spec for spec in case.evaluators if not isinstance(spec, Rubric))
    return case.model_copy(
        update={"evaluators": kept, "warnings": (*case.warnings, f"its rubric is not graded: {reason}")}
    )


def _specs(suite: EvalSuite) -> list[object]:
    return [spec for case in suite.cases for spec in case.evaluators]
