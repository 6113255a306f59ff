"""Counter of the values that one assertion evaluated and skipped."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from eval_gate.evaluators.base import EvaluatorScore


@lru_cache(maxsize=1_000)
def _get_passed_score(checks_run: int) -> EvaluatorScore:
    """One object for all assertions of which no more is to be said."""
    return EvaluatorScore(1.0, checks_run=checks_run)


class AssertionTally:
    """Counter for one assertion. `finish_passed` or `finish_failed` ends it (behaviour A-01)."""

    def __init__(self, assertion: str) -> None:
        self._assertion = assertion
        self._held = 0
        self._skipped = 0
        self._tokens: list[str] = []
        self._warnings: list[str] = []

    def add_pass(self) -> None:
        """One more value was evaluated and is as expected."""
        self._held += 1

    def add_skip(self, warning: str | None = None) -> None:
        """One more value could not be evaluated."""
        self._skipped += 1
        if warning:
            self._warnings.append(f"{self._assertion}: {warning}")

    def add_unresolved(self, tokens: Iterable[str], *, counted: bool = True) -> None:
        """Record a value that is not compared because its tokens cannot be resolved.

        The value counts as skipped if `counted`. A value that leaves a group with other values to compare only adds a
        warning.
        """
        tokens = list(tokens)
        self._tokens += tokens
        self._skipped += counted
        self._warnings += [f"{self._assertion}: {token} not found, so it is not compared" for token in tokens]

    def finish_passed(self, *, of_values: bool = False) -> EvaluatorScore:
        """Everything that was evaluated holds.

        An assertion counts as one check, but for one `of_values`: without a value that may fail it checks nothing.
        """
        checks_run = self._held or (0 if self._skipped or of_values else 1)
        if self._skipped or self._tokens or self._warnings:
            return self._build_score(1.0, checks_run, None)
        return _get_passed_score(checks_run)

    def finish_failed(self, what: str) -> EvaluatorScore:
        """Build the failed score: the value that is evaluated now is not as expected."""
        return self._build_score(0.0, self._held + 1, f"{self._assertion}: {what}")

    def _build_score(self, score: float, checks_run: int, error: str | None) -> EvaluatorScore:
        return EvaluatorScore(
            score=score,
            misses=(error,) if error else (),
            error=error,
            checks_run=checks_run,
            checks_skipped=self._skipped,
            skipped_tokens=tuple(self._tokens),
            warnings=tuple(self._warnings),
        )
