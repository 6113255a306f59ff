"""Add or renew entries of the waiver file without touching the rest of its text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Final

import yaml
from msgspec import json

from eval_gate.errors import PAGES, GateError, Problem
from eval_gate.gate.waivers.case_names import find_control_character
from eval_gate.gate.waivers.waiver_file import parse_date, parse_waivers
from eval_gate.gate.waivers.wording import KIND_WORDS
from eval_gate.model.waiver import FileOrigin, Waiver, WaiverKind
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.sources.yaml_edit import append_entry, replace_values

_DAYS_PATTERN: Final = re.compile(r"(\d{1,3})d", re.ASCII)
_FIELD_OPTIONS: Final = {"case": "CASE", "suite": "--suite", "reason": "--reason", "until": "--until", "by": "--by"}
"""What the command line calls the fields of an entry."""


class WaiverRequest(FrozenStruct):
    """Request to waive or quarantine cases, as given by the user."""

    kind: WaiverKind
    cases: tuple[str, ...]
    reason: str
    until: str
    """A day as `2026-12-05`, or a number of days as `14d`."""
    suite: str | None = None
    by: str | None = None


class EditedWaivers(FrozenStruct):
    """Edited text of the waiver file, and the entries that are new or renewed in it."""

    text: str
    entries: tuple[Waiver, ...]
    renewed_cases: frozenset[str]


def add_entries(data: bytes, wish: WaiverRequest, today: date, *, shown_as: str) -> EditedWaivers:
    """The file with the wish fulfilled. What has ended is renewed in its place; what still holds is not touched.

    Raises GateError `cannot-accept` with everything that is wrong with the wish, or where the file is written in a way
    that nothing can be added to; and what the reader raises for the file as it is.
    """
    old = parse_waivers(data, today, shown_as=shown_as)
    entries = _build_waivers(wish, today)
    mine = {(wish.kind, case, wish.suite) for case in wish.cases}
    before = {one.case: one for one in old if one.promise in mine}
    if problems := [_build_active_problem(one) for one in before.values() if one.until >= today]:
        raise _build_refusal("they are accepted already" if len(problems) > 1 else "it is accepted already", problems)
    try:
        text = data.decode("utf-8")
        for entry in entries:
            text = _add_entry(text, entry, old)
    except (ValueError, yaml.YAMLError) as error:
        raise _build_manual_edit_error(shown_as, str(error)) from error
    found = parse_waivers(text.encode(), today, shown_as=shown_as)
    kept = [one for one in old if one.promise not in mine]
    if sorted(map(_encode_waiver, found)) != sorted(map(_encode_waiver, [*kept, *_iter_renewed(entries, before)])):
        raise _build_manual_edit_error(shown_as, "its layout is unusual")
    return EditedWaivers(text, tuple(one for one in found if one.promise in mine), frozenset(before))


def parse_until(text: str, today: date) -> date:
    """A day, or so many days from today. Raises ValueError with a sentence."""
    if days := _DAYS_PATTERN.fullmatch(text):
        return today + timedelta(days=int(days[1]))
    try:
        until = parse_date(text)
    except ValueError as error:
        raise ValueError(f"{error}, and no number of days like 14d") from None
    if until < today:
        raise ValueError(f"{text} is over")
    return until


def _build_waivers(wish: WaiverRequest, today: date) -> tuple[Waiver, ...]:
    """One entry for each case, as the reader takes it. Raises GateError with every problem."""
    problems: list[Problem] = []
    until = today
    try:
        until = parse_until(wish.until, today)
    except ValueError as error:
        problems.append(Problem(str(error), field="--until"))
    if odd := find_control_character(wish.reason):
        problems.append(Problem(f"holds the control character {odd}", field="--reason"))
        wish = replace(wish, reason="said above")
    found: list[Waiver] = []
    for case in dict.fromkeys(wish.cases):
        try:
            found += parse_waivers(_build_single_entry_file(wish, case, until), today, shown_as="")
        except GateError as error:
            problems += [_to_option_problem(problem, case) for problem in error.problems]
    if problems:
        raise _build_refusal("this cannot be accepted", list(dict.fromkeys(problems)))
    return tuple(found)


def _build_single_entry_file(wish: WaiverRequest, case: str, until: date) -> bytes:
    """A file that holds nothing but the entry for this case, so that the reader checks it."""
    fields = {"case": case, "suite": wish.suite, "reason": wish.reason, "until": str(until), "by": wish.by}
    given = {name: value for name, value in fields.items() if value is not None}
    return append_entry("", wish.kind.value, given).encode("utf-8", "backslashreplace")


def _to_option_problem(problem: Problem, case: str) -> Problem:
    field = (problem.field or "").rpartition(".")[2]
    name = _FIELD_OPTIONS.get(field, "CASE")
    return Problem(problem.message, field=f'"{case[:80]}"' if name == "CASE" else name)


def _add_entry(text: str, entry: Waiver, old: Sequence[Waiver]) -> str:
    """The text with this entry at the end of its list, or in the place of the one that had ended."""
    same_list = [one for one in old if one.kind is entry.kind]
    place = next((place for place, one in enumerate(same_list) if one.promise == entry.promise), None)
    if place is None:
        return append_entry(text, entry.kind.value, dict(_iter_fields(entry)))
    fresh = {name: value for name, value in _iter_fields(entry) if name not in {"case", "suite"}}
    return replace_values(text, entry.kind.value, place, fresh)


def _iter_fields(entry: Waiver) -> Iterator[tuple[str, str]]:
    yield "case", entry.case
    if entry.suite is not None:
        yield "suite", entry.suite
    yield "reason", entry.reason
    yield "until", str(entry.until)
    if entry.by is not None:
        yield "by", entry.by


def _iter_renewed(entries: Sequence[Waiver], before: dict[str, Waiver]) -> Iterator[Waiver]:
    """The entries; one that is renewed by nobody in particular keeps the name that it had."""
    for entry in entries:
        earlier = before.get(entry.case)
        by = earlier.by if earlier is not None and entry.by is None else entry.by
        yield replace(entry, by=by)


_NO_ORIGIN: Final = FileOrigin(file="", line=0)


def _encode_waiver(waiver: Waiver) -> str:
    """All that an entry says, as JSON: not where it stands, which changes when another one comes before it."""
    return json.encode(replace(waiver, origin=_NO_ORIGIN)).decode()


def _build_active_problem(waiver: Waiver) -> Problem:
    line = waiver.origin.line if isinstance(waiver.origin, FileOrigin) else None
    file = waiver.origin.file if isinstance(waiver.origin, FileOrigin) else None
    message = f'"{waiver.case[:80]}" is {KIND_WORDS[waiver.kind]} until {waiver.until} already: change that entry'
    return Problem(message, file=file, line=line)


def _build_refusal(message: str, problems: Sequence[Problem]) -> GateError:
    return GateError("cannot-accept", message, f"{PAGES}/accepting.md says what an entry holds", problems=problems)


def _build_manual_edit_error(shown_as: str, why: str) -> GateError:
    return GateError(
        "cannot-accept",
        f"nothing can be added to {shown_as} without changing more of it: {' '.join(why.split())[:200]}",
        f"add the entry by hand: {PAGES}/accepting.md shows one",
    )
