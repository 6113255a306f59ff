"""Rows by what became of the case. A failing case is in exactly one of the lists of failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from eval_gate.model.comparison import CaseClass
from eval_gate.model.grounds import Why
from eval_gate.model.result import Status
from eval_gate.reports.view.rows import CaseRow

_FAILURES: Final = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.UNSETTLED, CaseClass.FLAKY})
"""Classes whose failing cases have a list of their own."""
_SAID: Final = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.UNSETTLED})
"""Classes that say more of a case than that it is flaky."""
_NO_NEW_ERRORS: Final = frozenset({CaseClass.REGRESSION, CaseClass.STILL_FAILING, CaseClass.STILL_ERRORED})
"""Classes of cases that could not be judged, and are no errors of their own."""
_APART: Final = frozenset({Why.MUST_PASS, Why.NOT_RERUN})
"""Grounds that have a list of their own, whatever the class."""


class Lists:
    """Rows by what became of the case; a failure that is waived is in `waived` and in no other list of failures."""

    def __init__(self, rows: tuple[CaseRow, ...]) -> None:
        self._all = rows
        self.here = tuple(row for row in rows if row.status is not None)
        self.waived = tuple(row for row in self.here if row.waived)
        self._open = tuple(row for row in rows if not row.waived)

    def of(self, wanted: CaseClass) -> tuple[CaseRow, ...]:
        """Rows of one class, waived ones too: for classes that are no failures."""
        return tuple(row for row in self._all if row.change is wanted)

    def errors(self) -> tuple[CaseRow, ...]:
        """Cases that could not be judged, those apart that have a list of their own: what the change may have to do."""
        return self._where(
            lambda row: row.status is Status.ERROR and row.change not in _NO_NEW_ERRORS and row.why not in _APART
        )

    def still_errored(self) -> tuple[CaseRow, ...]:
        """Cases that could not be judged here, nor in the baseline."""
        return self.of(CaseClass.STILL_ERRORED)

    def main_broke(self) -> tuple[CaseRow, ...]:
        """Failures that the default branch has too since it broke."""
        return self._where(lambda row: row.main_broke)

    def with_status(self, status: Status) -> tuple[CaseRow, ...]:
        """Rows of one status."""
        return tuple(row for row in self.here if row.status is status)

    def regressions(self) -> tuple[CaseRow, ...]:
        """The largest drop first."""
        found = self._where(lambda row: row.change is CaseClass.REGRESSION)
        return tuple(sorted(found, key=lambda row: -row.drop))

    def must_pass(self) -> tuple[CaseRow, ...]:
        """Cases that must pass and do not, regressions apart."""
        return self._where(lambda row: row.why is Why.MUST_PASS and row.change is not CaseClass.REGRESSION)

    def not_decided(self) -> tuple[CaseRow, ...]:
        """Cases that may be regressions, and whose re-runs are missing."""
        return self._where(lambda row: row.why is Why.NOT_RERUN)

    def still_failing(self) -> tuple[CaseRow, ...]:
        """Failures that are not of this change; those that must pass are a matter of their own."""
        return self._where(lambda row: row.change is CaseClass.STILL_FAILING and row.why not in _APART)

    def score_drops(self) -> tuple[CaseRow, ...]:
        """The largest drop first."""
        return tuple(sorted(self._where(lambda row: row.score_drop), key=lambda row: -row.drop))

    def unsettled(self) -> tuple[CaseRow, ...]:
        """Failures that may be chance; what crashed and was never judged is among the errors."""
        return self._where(lambda row: row.change is CaseClass.UNSETTLED and row.status is not Status.ERROR)

    def flaky(self) -> tuple[CaseRow, ...]:
        """Rows with both results among their trials, or by their record, where that is the most to say about them."""
        seen = (row for row in self._open if row.flaky or row.change is CaseClass.FLAKY)
        return tuple(row for row in seen if row.why not in _APART and row.change not in _SAID)

    def flaky_on_record(self) -> tuple[CaseRow, ...]:
        """Rows that pass here, as they do now and then."""
        return self._where(lambda row: row.flaky_on_record and row.change is CaseClass.STILL_PASSING and not row.flaky)

    def unexplained_failures(self) -> tuple[CaseRow, ...]:
        """Failing cases that the comparison says nothing else about: without a baseline, added, incomparable."""
        return self._where(
            lambda row: row.status is Status.FAILED and row.change not in _FAILURES and row.why not in _APART
        )

    def _where(self, holds: Callable[[CaseRow], bool]) -> tuple[CaseRow, ...]:
        return tuple(row for row in self._open if row.status is not None and holds(row))
