"""Keeps re-runs apart in time from the execution of the same case before, so that they share less with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from eval_gate.engine.worker_pool import yield_slot
from eval_gate.model.case import CaseKey
from eval_gate.targets.readiness import report_waiting


class RerunSpacing:
    """Waits between the executions of each case of a run. All cases that are due wait at the same time."""

    def __init__(self) -> None:
        self.get_interval_s: Callable[[CaseKey], float] = lambda _: 0.0
        """Returns how many seconds a re-run of a case keeps from the execution before it."""
        self.reason = ""
        """Why re-runs wait, for the progress display."""
        self._earlier = time.monotonic()
        """When an earlier process of the run ended its last execution; the beginning of this one if there was none."""
        self._ended: dict[CaseKey, float] = {}
        self._reported_until = 0.0

    def resume(self, journal: Path) -> None:
        """Count from the last line of the journal: the time before this process has been waited for already."""
        if journal.exists():
            self._earlier = time.monotonic() - max(time.time() - journal.stat().st_mtime, 0.0)

    def note_end(self, key: CaseKey) -> None:
        """Note that an execution of a case ended now."""
        self._ended[key] = time.monotonic()

    def compute_wait_s(self, key: CaseKey) -> float:
        """Compute the seconds until a re-run of a case may begin."""
        interval_s = self.get_interval_s(key)
        due = self._ended.get(key, self._earlier) + interval_s
        return max(due - time.monotonic(), 0.0) if interval_s else 0.0

    async def wait(self, key: CaseKey) -> None:
        """Let others go first until a re-run of a case may begin."""
        wait_s, now = self.compute_wait_s(key), time.monotonic()
        if wait_s and now >= self._reported_until:
            self._reported_until = now + wait_s
            report_waiting(f"{self.reason}: a re-run waits {wait_s:.1f} s")
        await yield_slot(wait_s)
