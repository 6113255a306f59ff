"""How much the executions of a case in one run belong together, learned from the runs of the default branch."""

from __future__ import annotations

from typing import Final

SHORTEST_WAIT: Final = 0.03
WAIT_SECONDS: Final = 600.0
LONGEST_WAIT: Final = 300.0
"""Re-runs wait from a share of 0.03 on: a minute for each tenth of the variance, five minutes at most."""


def compute_rerun_wait(share: float) -> float:
    """Compute the seconds that a re-run waits, so that it shares as little as possible with the executions before."""
    return 0.0 if share < SHORTEST_WAIT else min(share * WAIT_SECONDS, LONGEST_WAIT)
