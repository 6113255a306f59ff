"""Re-runs of cases whose first result is in doubt. Which these are is not the engine's to know."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from runner.model.result import RunResult


class Confirming(Protocol):
    """Says which cases are run again."""

    def doubtful(self, result: RunResult) -> Collection[tuple[str, str]]:
        """Eval file and id of every case whose first execution (or trials) leaves something to decide.

        Asked once, in a thread of its own: it may have to fetch what it compares with. Raises GateError.
        """
        ...

    def again(self, eval_file: str, case_id: str, passes: int, failures: int, broken: int) -> bool:
        """Whether to run this case once more, after re-runs with these results; `broken` could not be judged.

        Asked after every re-run, so it must answer at once.
        """
        ...
