"""Add or renew entries of the waiver file without touching the rest of its text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Final

import yaml
from msgspec import json

from eval_gate.errors import PAGES, GateError, Problem
from eval_gate.gate.waivers.case_names import find_control_character
from eval_gate.gate.waivers.waiver_file import parse_date, parse_waivers
from eval_gate.gate.waivers.wording import KIND_WORDS
from eval_gate.model.waiver import FileOrigin, Waiver, WaiverKind
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.key_forms import find_keys
from eval_gate.text.sources.yaml import parse_yaml
from eval_gate.text.sources.yaml_edit import append_entry, rewrite_yaml

_DAYS_PATTERN: Final = re.compile(r"(\d{1,3})d", re.ASCII)
_FIELD_OPTIONS: Final = {
    "case": "CASE",
    "suite": "--suite",
    "reason": "--reason",
    "until": "--until",
    "owner": "--owner",
}
"""What the command line calls the fields of an entry."""


class WaiverRequest(FrozenStruct):
    """Request to waive or quarantine cases, as given by the user."""

    kind: WaiverKind
    cases: tuple[str, ...]
    reason: str
    until: str
    """A day as `2026-12-05`, or a number of days as `14d`."""
    suite: str | None = None
    owner: str | None = None


class EditedWaivers(FrozenStruct):
    """Edited text of the waiver file, and the entries that are new or renewed in it."""

    text: str
    entries: tuple[Waiver, ...]
    renewed_cases: frozenset[str]


def add_entries(data: bytes, wish: WaiverRequest, today: date, *, shown_as: str) -> EditedWaivers:
    """Add the requested entries to the text of a waiver file.

    An expired entry is renewed in its place. An entry that is still in force is never changed.

    Raises GateError `waive-failed` with everything that is wrong with the request, or if nothing can be added to
    the file because of its layout. Also raises what `parse_waivers` raises for the file as it is.
    """
    old = parse_waivers(data, today, shown_as=shown_as)
    entries = _build_waivers(wish, today)
    mine = {(wish.kind, case, wish.suite) for case in wish.cases}
    expired = {one.case: one for one in old if one.identity in mine}
    if problems := [_build_active_problem(one) for one in expired.values() if one.until >= today]:
        raise _build_refusal(
            "the cases are already waived" if len(problems) > 1 else "the case is already waived", problems
        )
    try:
        text = data.decode("utf-8")
        for entry in entries:
            text = _add_entry(text, entry, old)
    except (ValueError, yaml.YAMLError) as error:
        raise _build_manual_edit_error(shown_as, str(error)) from error
    waivers = parse_waivers(text.encode(), today, shown_as=shown_as)
    rest = [one for one in old if one.identity not in mine]
    if sorted(map(_encode_waiver, waivers)) != sorted(map(_encode_waiver, [*rest, *_iter_renewed(entries, expired)])):
        raise _build_manual_edit_error(shown_as, "its layout is not supported")
    return EditedWaivers(text, tuple(one for one in waivers if one.identity in mine), frozenset(expired))


def parse_until(text: str, today: date) -> date:
    """Parse a day, or a number of days from today such as `14d`. Raises ValueError with what is wrong."""
    if days := _DAYS_PATTERN.fullmatch(text):
        return today + timedelta(days=int(days[1]))
    try:
        until = parse_date(text)
    except ValueError as error:
        raise ValueError(f"{error} or a number of days like 14d") from None
    if until < today:
        raise ValueError(f"{text} is in the past")
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
        problems.append(Problem(f"contains the control character {odd}", field="--reason"))
        wish = replace(wish, reason="said above")
    for field, text in (("--reason", wish.reason), ("--owner", wish.owner or "")):
        problems += [Problem(f"holds what looks like a key ({key.form})", field=field) for key in find_keys(text)]
    waivers: list[Waiver] = []
    for case in dict.fromkeys(wish.cases):
        try:
            waivers += parse_waivers(_build_single_entry_file(wish, case, until), today, shown_as="")
        except GateError as error:
            problems += [_to_option_problem(problem, case) for problem in error.problems]
    if problems:
        raise _build_refusal("the waiver is not valid", list(dict.fromkeys(problems)))
    return tuple(waivers)


def _build_single_entry_file(wish: WaiverRequest, case: str, until: date) -> bytes:
    """Build a file with nothing but the entry for this case, so that the reader checks it."""
    fields = {"case": case, "suite": wish.suite, "reason": wish.reason, "until": str(until), "owner": wish.owner}
    values = {name: value for name, value in fields.items() if value is not None}
    return append_entry("", wish.kind.list_key, values).encode("utf-8", "backslashreplace")


def _to_option_problem(problem: Problem, case: str) -> Problem:
    field = (problem.field or "").rpartition(".")[2]
    name = _FIELD_OPTIONS.get(field, "CASE")
    return Problem(problem.message, field=f'"{case[:80]}"' if name == "CASE" else name)


def _add_entry(text: str, entry: Waiver, old: Sequence[Waiver]) -> str:
    same_list = [one for one in old if one.kind is entry.kind]
    place = next((place for place, one in enumerate(same_list) if one.identity == entry.identity), None)
    if place is None:
        return append_entry(text, entry.kind.list_key, dict(_iter_fields(entry)))
    fresh = {name: value for name, value in _iter_fields(entry) if name not in {"case", "suite"}}
    document: Any = parse_yaml(text.encode(), "")[0]
    listed = document[entry.kind.list_key]
    renewed = [*listed[:place], {**listed[place], **fresh}, *listed[place + 1 :]]
    return rewrite_yaml(text, document, {**document, entry.kind.list_key: renewed})


def _iter_fields(entry: Waiver) -> Iterator[tuple[str, str]]:
    yield "case", entry.case
    if entry.suite is not None:
        yield "suite", entry.suite
    yield "reason", entry.reason
    yield "until", str(entry.until)
    if entry.owner is not None:
        yield "owner", entry.owner


def _iter_renewed(entries: Sequence[Waiver], expired: dict[str, Waiver]) -> Iterator[Waiver]:
    """Yield the entries; a renewed entry without an owner keeps its earlier owner."""
    for entry in entries:
        earlier = expired.get(entry.case)
        by = earlier.owner if earlier is not None and entry.owner is None else entry.owner
        yield replace(entry, owner=by)


_NO_ORIGIN: Final = FileOrigin(file="", line=0)


def _encode_waiver(waiver: Waiver) -> str:
    """All that an entry says, as JSON: not where it stands, which changes when another one comes before it."""
    return json.encode(replace(waiver, origin=_NO_ORIGIN)).decode()


def _build_active_problem(waiver: Waiver) -> Problem:
    line = waiver.origin.line if isinstance(waiver.origin, FileOrigin) else None
    file = waiver.origin.file if isinstance(waiver.origin, FileOrigin) else None
    message = f'"{waiver.case[:80]}" is already {KIND_WORDS[waiver.kind]} until {waiver.until}: change that entry'
    return Problem(message, file=file, line=line)


def _build_refusal(message: str, problems: Sequence[Problem]) -> GateError:
    hint = f"correct each place; {PAGES}/waivers.md lists the keys of an entry"
    return GateError("waive-failed", message, hint, problems=problems)


def _build_manual_edit_error(shown_as: str, why: str) -> GateError:
    return GateError(
        "waive-failed",
        f"cannot add an entry to {shown_as} without changing other parts of it: {' '.join(why.split())[:200]}",
        f"add the entry by hand (example: {PAGES}/waivers.md)",
    )
