"""Failures that somebody accepted, and flaky cases that are set aside: who said so, why, and until when.

A waiver is what a person wrote. What it did to one run is a `WaiverEntry`; all of them together are the
`AppliedWaivers` of the run.
"""

from datetime import date
from enum import StrEnum
from typing import Final

from eval_gate.model.base import Record
from eval_gate.model.case import CaseKey, CaseName

MAX_WAIVER_DAYS: Final = 90
"""The longest that anything may be waived: what is wrong for longer belongs into the eval, or out of it."""
MAX_NAME: Final = 300
"""The most characters that a case id or glob may have."""
MAX_REASON: Final = 500
"""The most characters that a reason may have."""


class WaiverKind(StrEnum):
    """Which promise was made about the case."""

    WAIVER = "waiver"
    """Its failure is known and wanted for now."""
    QUARANTINE = "quarantine"
    """It is flaky: its result is not asked for until somebody has looked."""

    @property
    def list_key(self) -> str:
        """Return the key of the waiver file under which entries of this kind stand."""
        return "waivers" if self is WaiverKind.WAIVER else "quarantine"


class FileOrigin(Record, kw_only=True, tag_field="source", tag="file"):
    """A line of a file of the repository."""

    file: str
    line: int
    is_new: bool | None = None
    """The base branch does not have it, or only for a shorter time; None when that was not asked or not answered."""


class CommentOrigin(Record, kw_only=True, tag_field="source", tag="comment"):
    """A comment on the pull request, by somebody who may write to the repository."""

    author: str
    """Their login at GitHub."""
    url: str
    written_at: str
    """When, as GitHub says it: ISO 8601 in UTC."""
    commit: str | None = None
    """The one commit that it is about, where the comment names it."""


class Waiver(Record, kw_only=True):
    """One case, or the cases of one glob, whose failure is not to block until the end of a day."""

    kind: WaiverKind
    case: str
    """An id, or a glob over whole ids."""
    suite: str | None = None
    """A glob over eval files; None for all of them."""
    reason: str
    until: date
    """The last day on which it holds, in UTC."""
    owner: str | None = None
    """Who answers for it. In a file that is what the file claims."""
    origin: FileOrigin | CommentOrigin

    @property
    def identity(self) -> tuple[WaiverKind, str, str | None]:
        """What it promises about which cases: its kind, the name of the case and the glob over eval files."""
        return self.kind, self.case, self.suite

    @property
    def is_new(self) -> bool | None:
        """Whether the pull request itself brings it; None when that is not known. A comment always stands apart."""
        return self.origin.is_new if isinstance(self.origin, FileOrigin) else None


class RefusedCommand(Record, kw_only=True):
    """A command in a comment that was not followed, and the sentence for whoever wrote it."""

    author: str
    """Their login at GitHub; empty where the account is gone."""
    url: str
    message: str


class WaiverStanding(StrEnum):
    """How a case stands at the end of a run, as far as waiving it is concerned."""

    REGRESSED = "regressed"
    FAILS = "fails"
    """Fails, and is not known to be a regression."""
    UNSTABLE = "unstable"
    """Passes, but not cleanly: failures among its trials, an unsettled result, or a score that dropped."""
    PASSES = "passes"
    NO_RESULT = "no_result"
    """An execution error, or not run. Never waived: it says nothing about the case."""

    @property
    def is_waivable(self) -> bool:
        """Whether there is anything to waive. A case that wavers is: else failing wholly were better than in part."""
        return self in {WaiverStanding.REGRESSED, WaiverStanding.FAILS, WaiverStanding.UNSTABLE}


class CaseStanding(CaseName, kw_only=True):
    """A case and how it stands."""

    standing: WaiverStanding


class WaiverState(StrEnum):
    """What a waiver did to this run. Only `in_use` changes anything."""

    IN_USE = "in_use"
    EXPIRED = "expired"
    UNMATCHED = "unmatched"
    """It names no case of this run: perhaps a typo, perhaps the case is gone."""
    UNNEEDED = "unneeded"
    """Every case that it names passes."""
    PROPOSED = "proposed"
    """It comes with a pull request whose author may not waive anything: it does not count."""
    IDLE = "idle"
    """There is nothing to say: its cases could not be judged, or were not selected."""


class WaiverEntry(Record, kw_only=True):
    """One waiver, what it did, and how the cases that it names stand."""

    waiver: Waiver
    state: WaiverState
    days_left: int
    """Until its last day, which is 0; negative when that is past."""
    failing: tuple[CaseName, ...] = ()
    """Waived if the state is `in_use`, and not otherwise."""
    passing: tuple[CaseName, ...] = ()
    without_result: tuple[CaseName, ...] = ()


class WaivedCase(CaseStanding, kw_only=True):
    """A case whose failure does not block, with the place of the decisive entry in `Waiving.entries`."""

    entry: int


class AppliedWaivers(Record, kw_only=True):
    """Everything about waived failures that a verdict and a report need. The same whatever the order of waivers."""

    entries: tuple[WaiverEntry, ...] = ()
    waived: tuple[WaivedCase, ...] = ()
    """In the order of the run, each case once."""
    refusals: tuple[RefusedCommand, ...] = ()
    problems: tuple[str, ...] = ()
    """Sentences about what could not be asked or does not fit together, such as a label without a comment."""

    @property
    def keys(self) -> frozenset[CaseKey]:
        """Every case whose failure does not block."""
        return frozenset(one.key for one in self.waived)

    @property
    def quarantined_keys(self) -> frozenset[CaseKey]:
        """Every case that is set aside, whatever its result: none of them enters a pass rate."""
        return frozenset(
            case.key
            for entry in self.select_entries(WaiverState.IN_USE, WaiverState.UNNEEDED)
            if entry.waiver.kind is WaiverKind.QUARANTINE
            for case in (*entry.failing, *entry.passing)
        )

    def select_entries(self, *states: WaiverState) -> tuple[WaiverEntry, ...]:
        """Return the entries that are in one of these states."""
        return tuple(entry for entry in self.entries if entry.state in states)

    def count_cases(self, *standings: WaiverStanding) -> int:
        """How many waived cases stand so."""
        return sum(one.standing in standings for one in self.waived)

    def get_entry(self, waived: WaivedCase) -> WaiverEntry:
        """Return the entry that waives a case."""
        return self.entries[waived.entry]
