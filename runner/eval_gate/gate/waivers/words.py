"""What there is to say about waivers, as sentences. They hold foreign text as it is: whoever shows them escapes it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from eval_gate.model.case import CaseName
from eval_gate.model.waiver import FileOrigin, Waiver, WaiverEntry, WaiverKind, WaiverState, Waiving
from eval_gate.text.escape import cut, first_few

MAX_NAMED: Final = 5
"""Cases that a sentence names; the rest is counted."""
MAX_ID: Final = 80
"""Characters of a name in a sentence, which is to have an end as well."""
DONE: Final = {WaiverKind.ACCEPTED: "accepted", WaiverKind.QUARANTINE: "quarantined"}


def notices(waiving: Waiving) -> tuple[str, ...]:
    """What is waived, one sentence for each waiver that counts: what it covers, until when, who, where and why."""
    return tuple(f"{_listed(entry.failing)}: {terms(entry)}" for entry in waiving.of(WaiverState.IN_USE))


def warnings(waiving: Waiving, *, without: Collection[WaiverState] = ()) -> tuple[str, ...]:
    """What somebody should do something about, in the order of the entries; refused commands and troubles first.

    Entries in the states of `without` are left out, for whoever says these elsewhere.
    """
    refused = (f"{login_words(one.author)}: {one.sentence} ({one.url})" for one in waiving.refusals)
    told = (entry for entry in waiving.entries if entry.state not in without)
    said = (sentence for entry in told if (sentence := _warning(entry)))
    return (*waiving.troubles, *refused, *said)


def terms(entry: WaiverEntry) -> str:
    """`accepted until 2026-12-05 by Kim (.eval-gate/accepted.yaml:12): the new tool answers later`."""
    waiver = entry.waiver
    brought = ", new in this pull request" if waiver.new else ""
    by = f" by {author(waiver)}" if waiver.by else ""
    return f"{DONE[waiver.kind]} until {waiver.until}{by} ({place_words(waiver)}{brought}): {waiver.reason}"


def place_words(waiver: Waiver) -> str:
    """Where it stands, for people: `.eval-gate/accepted.yaml:12`, or the comment's address."""
    origin = waiver.origin
    return f"{origin.file}:{origin.line}" if isinstance(origin, FileOrigin) else origin.url


def login_words(login: str) -> str:
    """`@ada` for a login at GitHub; `a deleted account` where there is none any more."""
    return f"@{login}" if login else "a deleted account"


def author(waiver: Waiver) -> str:
    """Whoever answers for it, if anybody is named. Only GitHub's word makes a login of a name."""
    return waiver.by or "" if isinstance(waiver.origin, FileOrigin) else login_words(waiver.origin.author)


def _warning(entry: WaiverEntry) -> str | None:
    waiver, from_file = entry.waiver, isinstance(entry.waiver.origin, FileOrigin)
    what = f"{place_words(waiver)}: `{cut(waiver.case, MAX_ID)}`"
    match entry.state:
        case WaiverState.EXPIRED if from_file or entry.failing:
            fails = f", and {_they(entry.failing, 'fails', 'fail')}" if entry.failing else ""
            return f"{what} was {DONE[waiver.kind]} until {waiver.until} and is no longer{fails}"
        case WaiverState.UNMATCHED:
            return f"{what} names no case of this run"
        case WaiverState.PROPOSED:
            return (
                f"{what} is new and does not count, because the base branch does not have it; "
                "somebody who may write to the repository can accept it by a comment"
            )
        case WaiverState.IN_USE | WaiverState.SUPERFLUOUS | WaiverState.IDLE if (
            waiver.kind is WaiverKind.QUARANTINE and entry.passing
        ):
            return f"{what}: {_they(entry.passing, 'passes', 'pass')} again, end the quarantine"
        case WaiverState.SUPERFLUOUS if from_file:
            return f"{what} is not needed: {_they(entry.passing, 'passes', 'pass')}, the entry can go"
        case _:
            return None


def _they(cases: Sequence[CaseName], does: str, do: str) -> str:
    return f"{_listed(cases)} {does if len(cases) == 1 else do}"


def _listed(cases: Sequence[CaseName]) -> str:
    return first_few(cases, MAX_NAMED, lambda case: f"`{cut(case.case_id, MAX_ID)}`")
