"""Remaining budget for re-runs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from eval_gate.config.rerun_budget import RerunBudget
from eval_gate.text.escape import format_count


class RerunAllowance:
    """Allows re-runs to start until the budget is used; started re-runs always finish."""

    def __init__(self, budget: RerunBudget) -> None:
        self.budget = budget
        self.refused = False
        """Whether a re-run was wanted and not made for it."""
        self._waits = False
        """Whether that was because it would have had to wait beyond the end."""
        self._begun = 0
        self._since: float | None = None
        self._spent_s = 0.0
        """Seconds that were spent before the last pause."""
        self._usd = 0.0

    def with_begun(self, begun: int) -> RerunAllowance:
        """Count `begun` more re-runs, made by an earlier process of the same run, and return the allowance."""
        self._begun += begun
        return self

    def pause(self) -> RerunAllowance:
        """Stop the clock until the next re-run begins, and return the allowance."""
        self._spent_s += 0.0 if self._since is None else time.monotonic() - self._since
        self._since = None
        return self

    @property
    def remaining(self) -> int | None:
        """How many more re-runs may begin; None where their number is not what is bounded."""
        most = self.budget.executions
        return None if most is None else max(most - self._begun, 0)

    def iter_notices(self, *, suspects: int, new: int) -> Iterator[str]:
        """Yield notices about how many suspected regressions and new cases the budget did not suffice for."""
        spent = f"the rerun-budget of {self.budget} is used up"
        if self._waits:
            spent += ", because `rerun-interval` would wait longer"
        if suspects:
            which = format_count(suspects, "suspected regression is", "suspected regressions are")
            yield f"{which} not decided: {spent}"
        if new:
            yield f"{format_count(new, 'new case')} ran fewer times than configured: {spent}"

    def add_cost(self, usd: float) -> None:
        """So much was spent on re-runs, in US dollars."""
        self._usd += usd

    def try_begin(self, count: int = 1, *, wait_s: float = 0.0) -> bool:
        """Whether so many more may begin after `wait_s` seconds, which are counted then."""
        budget, has_time = self.budget, self.has_time(wait_s)
        fits = has_time and (budget.executions is None or self._begun + count <= budget.executions)
        fits = fits and (budget.usd is None or self._usd < budget.usd)
        self._begun += count if fits else 0
        self.refused = self.refused or not fits
        self._waits = self._waits or (not has_time and self.has_time(0.0))
        return fits

    def has_time(self, wait_s: float) -> bool:
        """Whether time is left after a wait of so many seconds. The clock runs from the first call on."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        return self.budget.seconds is None or self._spent_s + now - self._since + wait_s < self.budget.seconds
