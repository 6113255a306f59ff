"""Sentences about waivers. They contain untrusted text unescaped; the caller escapes it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from eval_gate.model.case import CaseName
from eval_gate.model.waiver import AppliedWaivers, FileOrigin, Waiver, WaiverEntry, WaiverKind, WaiverState
from eval_gate.text.escape import format_first_few, truncate_text

MAX_NAMED: Final = 5
"""Cases that a sentence names; the rest is counted."""
MAX_ID_LENGTH: Final = 80
"""Characters of a name in a sentence, which is to have an end as well."""
KIND_WORDS: Final = {WaiverKind.WAIVER: "waived", WaiverKind.QUARANTINE: "quarantined"}


def format_warnings(waiving: AppliedWaivers, *, excluded_states: Collection[WaiverState] = ()) -> tuple[str, ...]:
    """Format what needs attention, in the order of the entries; problems and refused commands come first.

    Callers report entries in `excluded_states` elsewhere.
    """
    refused = (f"{format_login(one.author)}: {one.message} ({one.url})" for one in waiving.refusals)
    entries = (entry for entry in waiving.entries if entry.state not in excluded_states)
    sentences = (sentence for entry in entries if (sentence := _format_warning(entry)))
    return (*waiving.problems, *refused, *sentences)


def format_terms(entry: WaiverEntry) -> str:
    """Format the terms of a waiver: kind, last day, owner, place and reason.

    An example is `waived until 2026-12-05 by Kim (.eval-gate/waivers.yaml:12): the new tool answers later`.
    """
    waiver = entry.waiver
    note = ", new in this pull request" if waiver.is_new else ""
    by = f" by {format_author(waiver)}" if waiver.owner else ""
    return f"{KIND_WORDS[waiver.kind]} until {waiver.until}{by} ({format_waiver_place(waiver)}{note}): {waiver.reason}"


def format_waiver_place(waiver: Waiver) -> str:
    """Where it stands, for people: `.eval-gate/waivers.yaml:12`, or the comment's address."""
    origin = waiver.origin
    return f"{origin.file}:{origin.line}" if isinstance(origin, FileOrigin) else origin.url


def format_login(login: str) -> str:
    """`@ada` for a login at GitHub; `a deleted account` where there is none any more."""
    return f"@{login}" if login else "a deleted account"


def format_author(waiver: Waiver) -> str:
    """Return the owner, or an empty text. Only an author that GitHub names has a login."""
    return waiver.owner or "" if isinstance(waiver.origin, FileOrigin) else format_login(waiver.origin.author)


def _format_warning(entry: WaiverEntry) -> str | None:
    waiver, from_file = entry.waiver, isinstance(entry.waiver.origin, FileOrigin)
    what = f"{format_waiver_place(waiver)}: `{truncate_text(waiver.case, MAX_ID_LENGTH)}`"
    match entry.state:
        case WaiverState.EXPIRED if from_file or entry.failing:
            fails = f", and {_format_cases_and_verb(entry.failing, 'fails', 'fail')}" if entry.failing else ""
            return f"{what} was {KIND_WORDS[waiver.kind]} until {waiver.until} and counts again{fails}"
        case WaiverState.UNMATCHED:
            return f"{what} matches no case of this run"
        case WaiverState.PROPOSED:
            return (
                f"{what} is new: it does not count until the base branch has it. "
                "A person with write access can waive the case in a comment"
            )
        case WaiverState.IN_USE | WaiverState.UNNEEDED | WaiverState.IDLE if (
            waiver.kind is WaiverKind.QUARANTINE and entry.passing
        ):
            return f"{_format_passing(what, entry)} again: end the quarantine"
        case WaiverState.UNNEEDED if from_file:
            return f"{_format_passing(what, entry)}, so the waiver is not needed: remove it"
        case _:
            return None


def _format_passing(what: str, entry: WaiverEntry) -> str:
    """Say which cases of an entry pass; its own name stands once where it is that of its only case."""
    if [case.case_id for case in entry.passing] == [entry.waiver.case]:
        return f"{what} passes"
    return f"{what}: {_format_cases_and_verb(entry.passing, 'passes', 'pass')}"


def _format_cases_and_verb(cases: Sequence[CaseName], does: str, do: str) -> str:
    names = format_first_few(cases, MAX_NAMED, lambda case: f"`{truncate_text(case.case_id, MAX_ID_LENGTH)}`")
    return f"{names} {does if len(cases) == 1 else do}"
