"""Waived failures and quarantined flaky cases, with owner, reason and end.

A waiver is an entry that a person wrote. `WaiverEntry` is its effect on one run, and `AppliedWaivers` are all of the
run.
"""

from datetime import date
from enum import StrEnum
from typing import Final

from eval_gate.model.base import Record
from eval_gate.model.case import CaseKey, CaseName

MAX_WAIVER_DAYS: Final = 90
"""Maximum duration of a waiver in days: a longer problem needs a change of the eval."""
MAX_NAME: Final = 300
"""Maximum characters of a case id or glob."""
MAX_REASON: Final = 500
"""Maximum characters of a reason."""


class WaiverKind(StrEnum):
    """Kind of a waiver."""

    WAIVER = "waiver"
    """The failure is known and accepted for now."""
    QUARANTINE = "quarantine"
    """The case is flaky: its result does not count until someone has examined it."""

    @property
    def list_key(self) -> str:
        """Return the key of the waiver file under which entries of this kind stand."""
        return "waivers" if self is WaiverKind.WAIVER else "quarantine"


class FileOrigin(Record, kw_only=True, tag_field="source", tag="file"):
    """Line of a file in the repository."""

    file: str
    line: int
    is_new: bool | None = None
    """The base branch does not have the waiver, or only with an earlier end; None if unknown."""


class CommentOrigin(Record, kw_only=True, tag_field="source", tag="comment"):
    """Comment on the pull request, by a user with write access to the repository."""

    author: str
    """GitHub login of the author."""
    url: str
    written_at: str
    """Time of the comment from GitHub: ISO 8601 in UTC."""
    commit: str | None = None
    """The only commit that the waiver applies to, if the comment names one."""


class Waiver(Record, kw_only=True):
    """One case, or the cases that match a glob, whose failure does not block until the end of a day."""

    kind: WaiverKind
    case: str
    """Case id, or a glob that matches a whole id."""
    suite: str | None = None
    """Glob over eval files; None for all of them."""
    reason: str
    until: date
    """Last day of the waiver, in UTC."""
    owner: str | None = None
    """Person responsible for the waiver. In a file, this is an unverified claim."""
    origin: FileOrigin | CommentOrigin

    @property
    def identity(self) -> tuple[WaiverKind, str, str | None]:
        """Identity of the waiver: its kind, the name of the case and the glob over eval files."""
        return self.kind, self.case, self.suite

    @property
    def is_new(self) -> bool | None:
        """Whether the pull request itself adds the waiver; None if unknown, or for a comment."""
        return self.origin.is_new if isinstance(self.origin, FileOrigin) else None


class RefusedCommand(Record, kw_only=True):
    """Command in a comment that was refused, with the message for its author."""

    author: str
    """GitHub login of the author; empty if the account no longer exists."""
    url: str
    message: str


class WaiverStanding(StrEnum):
    """Standing of a case at the end of a run, as far as it matters for waivers."""

    REGRESSED = "regressed"
    FAILS = "fails"
    """The case fails and is not a known regression."""
    UNSTABLE = "unstable"
    """The case passes, but with failed trials, an inconclusive result or a score drop."""
    PASSES = "passes"
    NO_RESULT = "no_result"
    """The case has an execution error or was not run. It is never waived, because this says nothing about it."""

    @property
    def is_waivable(self) -> bool:
        """Whether the case can be waived, which includes unstable cases."""
        return self in {WaiverStanding.REGRESSED, WaiverStanding.FAILS, WaiverStanding.UNSTABLE}


class CaseStanding(CaseName, kw_only=True):
    """A case with its standing."""

    standing: WaiverStanding


class WaiverState(StrEnum):
    """Effect of a waiver on this run. Only `in_use` has one."""

    IN_USE = "in_use"
    EXPIRED = "expired"
    UNMATCHED = "unmatched"
    """No case of this run matches: the name may have a typo, or the case was removed."""
    UNNEEDED = "unneeded"
    """All cases that match pass."""
    PROPOSED = "proposed"
    """The pull request adds the waiver, and its author may not waive anything: it has no effect."""
    IDLE = "idle"
    """Nothing to report: the cases that match have no score, or were not selected."""


class WaiverEntry(Record, kw_only=True):
    """One waiver with its effect and the standing of the cases that match."""

    waiver: Waiver
    state: WaiverState
    days_left: int
    """Days until the last day, which is 0; negative after it."""
    failing: tuple[CaseName, ...] = ()
    """Failing cases that match; they are waived only if the state is `in_use`."""
    passing: tuple[CaseName, ...] = ()
    without_result: tuple[CaseName, ...] = ()


class WaivedCase(CaseStanding, kw_only=True):
    """Case whose failure does not block, with the index of the decisive entry in `AppliedWaivers.entries`."""

    entry: int


class AppliedWaivers(Record, kw_only=True):
    """All waivers of a run and their effect, independent of the order of the waivers."""

    entries: tuple[WaiverEntry, ...] = ()
    waived: tuple[WaivedCase, ...] = ()
    """Waived cases in the order of the run, each case once."""
    refusals: tuple[RefusedCommand, ...] = ()
    problems: tuple[str, ...] = ()
    """Problems that were found, in sentences, such as a failed lookup or a label without a comment."""

    @property
    def keys(self) -> frozenset[CaseKey]:
        """Every case whose failure does not block."""
        return frozenset(one.key for one in self.waived)

    @property
    def quarantined_keys(self) -> frozenset[CaseKey]:
        """Every quarantined case, whatever its result: no pass rate includes it."""
        return frozenset(
            case.key
            for entry in self.entries
            if entry.state in {WaiverState.IN_USE, WaiverState.UNNEEDED} and entry.waiver.kind is WaiverKind.QUARANTINE
            for case in (*entry.failing, *entry.passing)
        )

    @property
    def covered_keys(self) -> frozenset[CaseKey]:
        """Every case that a waiver or quarantine names that has not ended, whatever the result of the case."""
        not_ended = (entry for entry in self.entries if entry.state is not WaiverState.EXPIRED)
        return frozenset(case.key for one in not_ended for case in (*one.failing, *one.passing, *one.without_result))

    def count_cases(self, *standings: WaiverStanding) -> int:
        """Count the waived cases with one of these standings."""
        return sum(one.standing in standings for one in self.waived)

    def get_entry(self, waived: WaivedCase) -> WaiverEntry:
        """Return the entry that waives a case."""
        return self.entries[waived.entry]
