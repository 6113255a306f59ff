"""What is left of the budget for re-runs."""

from __future__ import annotations

import time

from eval_gate.config.rerun_budget import RerunBudget
from eval_gate.engine.rerun_policy import RerunAllowance


def test_allowance__executions__are_counted_as_they_begin() -> None:
    allowance = RerunAllowance(RerunBudget(executions=5)).with_begun(2)
    assert (allowance.remaining, allowance.try_begin(2), allowance.remaining) == (3, True, 1)
    assert (allowance.try_begin(2), allowance.refused) == (False, True)
    assert (allowance.try_begin(), allowance.try_begin()) == (True, False)


def test_allowance__money__is_what_re_runs_cost() -> None:
    allowance = RerunAllowance(RerunBudget(usd=1))
    assert allowance.remaining is None
    assert allowance.try_begin()
    allowance.add_cost(0.9)
    assert allowance.try_begin()
    assert not allowance.refused
    allowance.add_cost(0.1)
    assert not allowance.try_begin()


def test_allowance__time__runs_from_the_first_re_run_on(monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    allowance = RerunAllowance(RerunBudget(seconds=10))
    now[0] = 1_000.0
    assert allowance.try_begin()
    now[0] = 1_009.0
    assert allowance.try_begin()
    now[0] = 1_010.0
    assert not allowance.try_begin()


def test_allowance__paused__the_time_of_the_pause_is_not_spent(monkeypatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    allowance = RerunAllowance(RerunBudget(seconds=10))
    assert allowance.try_begin()
    now = 6.0
    paused = allowance.pause()
    now = 1_000.0
    assert paused.try_begin()
    now = 1_003.9
    assert paused.try_begin()
    now = 1_004.1
    assert not paused.try_begin()
