"""Limits on re-runs: a budget for all of them, and the interval between two of one case."""

from __future__ import annotations

import re
from typing import Final

from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import format_count
from eval_gate.text.quoting import quote_value

MIN_DEFAULT_EXECUTIONS: Final = 100
"""The default budget of runs with fewer cases than that."""
MAX_INTERVAL_S: Final = 86_400.0
_FORM: Final = re.compile(r"(?P<usd>\$)?(?P<number>\d{1,9}(\.\d{1,6})?)(?P<unit>[smh])?")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


class RerunBudget(FrozenStruct):
    """Budget of all re-runs: executions, seconds or US dollars. Exactly one of them is set."""

    executions: int | None = None
    seconds: float | None = None
    usd: float | None = None

    @classmethod
    def compute_default(cls, first: int, *, base_agent: bool = False) -> RerunBudget:
        """Compute as many re-runs as there are first executions, at least 100, so that re-runs cost at most a run.

        An unchanged run needs a third of that at worst, and ten suspected regressions need sixty. A base agent adds
        two executions for each, because a suite drop is compared with it twice.
        """
        return cls(executions=max(first, MIN_DEFAULT_EXECUTIONS) + (2 * first if base_agent else 0))

    def __str__(self) -> str:
        """`50 re-runs`, `90 s`, `$2`."""
        if self.executions is not None:
            return format_count(self.executions, "re-run")
        return f"{self.seconds:g} s" if self.seconds is not None else f"${self.usd:g}"


def parse_rerun_budget(text: str | int) -> RerunBudget:
    """`50` (executions), `5m` (also `90s`, `1h`) or `$2`. Raises ValueError with what is wrong, for a person."""
    match = _FORM.fullmatch(str(text).strip())
    number = float(match["number"]) if match else 0.0
    if match and number > 0:
        if match["usd"] and not match["unit"]:
            return RerunBudget(usd=number)
        if match["unit"] and not match["usd"]:
            return RerunBudget(seconds=number * _SECONDS[match["unit"]])
        if not match["usd"] and number == int(number):
            return RerunBudget(executions=int(number))
    raise ValueError(
        f"{quote_value(str(text))} is not a number of re-runs such as 50, a time such as 5m, or money such as $2"
    )


def check_rerun_budget(text: str | int) -> str:
    """Validate a re-run budget, and return its text without surrounding space. Raises ValueError for a person."""
    parse_rerun_budget(text)
    return str(text).strip()


def parse_rerun_interval(text: str) -> float:
    """Seconds of `90s`, `5m` or `1h`, a day at most. Raises ValueError with what is wrong, for a person."""
    match = _FORM.fullmatch(text.strip())
    if match and match["unit"] and not match["usd"]:
        seconds = float(match["number"]) * _SECONDS[match["unit"]]
        if 0 <= seconds <= MAX_INTERVAL_S:
            return seconds
    raise ValueError(f"{quote_value(text)} is not a time such as 30s or 5m (at most 24h)")


def check_rerun_interval(text: str) -> str:
    """Validate a re-run interval, and return its text without surrounding space. Raises ValueError for a person."""
    parse_rerun_interval(text)
    return text.strip()
