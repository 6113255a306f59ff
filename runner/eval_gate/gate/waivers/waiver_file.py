"""Waiver file of a repository: waived failures and quarantined cases, read strictly.

The file is read strictly: all problems at once, each with its line.

waivers:
  - case: refund/partial-order
    reason: "the new tool answers later, #481"
    until: 2026-12-05
quarantine:
  - case: faq/opening-*
    suite: evals/faq*.yaml
    reason: the judge disagrees with itself about Sundays
    until: 2026-12-01
    owner: Kim
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eval_gate.config.policy import DEFAULT_WAIVERS
from eval_gate.errors import PAGES, GateError, Problem, format_suggestion
from eval_gate.files.reading import read_optional
from eval_gate.gate.waivers.case_names import find_control_character, find_name_problem, find_reason_problem
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import FINDINGS
from eval_gate.model.waiver import MAX_NAME, MAX_WAIVER_DAYS, FileOrigin, RefusedCommand, Waiver, WaiverKind
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.quoting import quote_value
from eval_gate.text.sources.validation_errors import describe_value, format_field_path

if TYPE_CHECKING:
    from eval_gate.config.settings import RunConfig
    from eval_gate.text.sources.yaml import YamlPositions


DEFAULT_PATH: Final = DEFAULT_WAIVERS
MAX_FILE_BYTES: Final = limits.WAIVERS_BYTES
MAX_ENTRIES: Final = limits.WAIVERS
"""The most entries that `waivers` or `quarantine` may have."""
_FIELDS: Final = ("case", "suite", "reason", "until", "owner")
_REQUIRED: Final = ("case", "reason", "until")
_ISSUE_PATTERN: Final = re.compile(r"\s#\d{1,9}\b")
_DATE_PATTERN: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def read_waivers(file: Path, today: date, *, shown_as: str) -> tuple[Waiver, ...]:
    """Read the waivers of a file, expired ones included; return none if there is no such file.

    Raises GateError `invalid-configuration` or `invalid-yaml` with every problem, and `configuration-unreadable` if the
    file cannot be read.
    """
    return parse_waivers(read_waiver_bytes(file, shown_as=shown_as), today, shown_as=shown_as)


def read_waiver_bytes(file: Path, *, shown_as: str) -> bytes:
    """Read at most one byte more of a waiver file than is allowed; none if there is no file.

    Raises GateError `configuration-unreadable`.
    """
    hint = f"see the example in {PAGES}/waivers.md"
    return read_optional(file, MAX_FILE_BYTES, shown_as=shown_as, hint=hint) or b""


def parse_waivers(data: bytes, today: date, *, shown_as: str) -> tuple[Waiver, ...]:
    """Parse the bytes of a waiver file, as `read_waivers` does. `shown_as` names the file in errors."""
    if len(data) > MAX_FILE_BYTES:
        raise _build_invalid_error(shown_as, [Problem(f"is larger than {MAX_FILE_BYTES:,} bytes", file=shown_as)])
    from eval_gate.text.sources.yaml import parse_yaml  # 10 ms that most runs need nothing of

    document, positions = parse_yaml(data, shown_as)
    reader = _WaiverReader(shown_as, positions, today, data.decode("utf-8", "replace").split("\n"))
    waivers = reader.read_document(document)
    if reader.problems:
        raise _build_invalid_error(shown_as, reader.problems)
    return waivers


def mark_added_waivers(waivers: Iterable[Waiver], base: Sequence[Waiver]) -> tuple[Waiver, ...]:
    """Mark each waiver from a file as new or as known to the base branch.

    The base branch knows a waiver if it has the same promise for the same name, for at least as long.
    """
    ends: dict[tuple[WaiverKind, str, str | None], date] = {}
    for one in base:
        ends[one.identity] = max(one.until, ends.get(one.identity, one.until))
    return tuple(
        replace(one, origin=replace(one.origin, is_new=ends.get(one.identity, date.min) < one.until))
        if isinstance(one.origin, FileOrigin)
        else one
        for one in waivers
    )


def _build_invalid_error(shown_as: str, problems: Sequence[Problem]) -> GateError:
    return GateError(
        "invalid-configuration",
        f"{shown_as} is not valid",
        f"see {PAGES}/waivers.md for the keys",
        problems=problems,
    )


class _EntryPlace(FrozenStruct):
    """Position of an entry: its list and its index there, counting from 0."""

    kind: WaiverKind
    index: int

    def to_path(self, *keys: str) -> tuple[str | int, ...]:
        return (self.kind.list_key, self.index, *keys)


class _WaiverReader:
    """Reader of one document that collects its problems."""

    def __init__(self, shown_as: str, positions: YamlPositions, today: date, lines: Sequence[str]) -> None:
        self._file = shown_as
        self._positions = positions
        self._today = today
        self._lines = lines
        self._seen: dict[tuple[WaiverKind, str, str | None], _EntryPlace] = {}
        self.problems: list[Problem] = []

    def read_document(self, document: JsonValue) -> tuple[Waiver, ...]:
        if document is None:
            return ()
        if not isinstance(document, dict):
            self._add_problem((), f"expected a mapping with `waivers` and `quarantine`, got {describe_value(document)}")
            return ()
        lists = [kind.list_key for kind in WaiverKind]
        self._report_unknown_keys((), document, lists)
        waivers = [
            waiver
            for kind in WaiverKind
            for index, entry in enumerate(self._read_list(kind, document.get(kind.list_key)))
            if (waiver := self._read_waiver(_EntryPlace(kind, index), entry)) is not None
        ]
        return tuple(waivers)

    def _report_unknown_keys(
        self, path: tuple[str | int, ...], entry: dict[str, JsonValue], known_keys: Collection[str]
    ) -> None:
        for key in (key for key in entry if key not in known_keys):
            hint = format_suggestion(key, known_keys) if len(self.problems) < FINDINGS else ""
            self._add_problem((*path, key), f"unknown key{hint}")

    def _read_list(self, kind: WaiverKind, value: JsonValue) -> list[JsonValue]:
        if value is None:  # `waivers:` with nothing below is a list that became empty
            return []
        if not isinstance(value, list):
            self._add_problem((kind.list_key,), f"expected a list, got {describe_value(value)}")
            return []
        if len(value) > MAX_ENTRIES:
            self._add_problem((kind.list_key,), f"{len(value):,} entries: at most {MAX_ENTRIES} in one list")
            return []
        return value

    def _read_waiver(self, place: _EntryPlace, entry: JsonValue) -> Waiver | None:
        """Read the waiver of this entry, or report what is wrong with it and return None."""
        if not isinstance(entry, dict):
            self._add_problem(
                place.to_path(), f"expected a mapping with {', '.join(_REQUIRED)}, got {describe_value(entry)}"
            )
            return None
        problem_count = len(self.problems)
        self._report_unknown_keys(place.to_path(), entry, _FIELDS)
        texts = {name: self._read_text(place, name, entry) for name in _FIELDS}
        until = self._read_until(place, texts["until"])
        self._report_duplicate(place, texts["case"], texts["suite"])
        if len(self.problems) > problem_count or until is None:
            return None
        line = self._positions.find_line(place.to_path())
        return Waiver(
            kind=place.kind,
            case=texts["case"] or "",
            suite=texts["suite"],
            reason=(texts["reason"] or "").strip(),
            until=until,
            owner=texts["owner"],
            origin=FileOrigin(file=self._file, line=line),
        )

    def _read_text(self, place: _EntryPlace, name: str, entry: dict[str, JsonValue]) -> str | None:
        """Read the text of a field, and report what is wrong with it, also a required one that is missing."""
        value = entry.get(name)
        if value is None:
            if name in entry:
                self._add_problem(place.to_path(name), "expected text, got null")
            elif name in _REQUIRED:
                self._add_problem(place.to_path(name), "is missing")
            return None
        if not isinstance(value, str):
            quotes = ": put it in quotes" if isinstance(value, int | float) else ""
            self._add_problem(place.to_path(name), f"expected text, got {describe_value(value)}{quotes}")
            return None
        if problem := _find_text_problem(name, value) or self._find_yaml_comment(place, name):
            self._add_problem(place.to_path(name), problem)
        return value

    def _find_yaml_comment(self, place: _EntryPlace, name: str) -> str | None:
        """Find an issue number that YAML took for a comment, and return the problem, or None."""
        line = self._positions.find_line(place.to_path(name)) - 1
        if self._positions.find_unquoted(place.to_path(name)) is None or line >= len(self._lines):
            return None
        reference = _ISSUE_PATTERN.search(self._lines[line])
        return f"{reference[0].strip()} is a comment in YAML: put the text in quotes" if reference else None

    def _read_until(self, place: _EntryPlace, text: str | None) -> date | None:
        if text is None:
            return None
        try:
            until = parse_date(text)
        except ValueError as error:
            self._add_problem(place.to_path("until"), str(error))
            return None
        if (days := (until - self._today).days) > MAX_WAIVER_DAYS:
            self._add_problem(place.to_path("until"), f"{text} is {days:,} days ahead: at most {MAX_WAIVER_DAYS}")
        return until

    def _report_duplicate(self, place: _EntryPlace, case: str | None, suite: str | None) -> None:
        if case is None:
            return
        first = self._seen.setdefault((place.kind, case, suite), place)
        if first != place:
            line = self._positions.find_line(first.to_path())
            self._add_problem(place.to_path("case"), f'"{case[:80]}" is already in line {line}')

    def _add_problem(self, path: tuple[str | int, ...], message: str) -> None:
        line = self._positions.find_line(path)
        self.problems.append(Problem(message, file=self._file, line=line, field=format_field_path(path)[:200] or None))


def parse_date(text: str) -> date:
    """Parse a day in the form `2026-12-05` and in no other. Raises ValueError with what is wrong."""
    if not _DATE_PATTERN.fullmatch(text):
        raise ValueError(f"{quote_value(text)} is not a date like 2026-12-05")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text} is not a calendar date") from None


def _find_text_problem(name: str, value: str) -> str | None:
    match name:
        case "case":
            return find_name_problem(value)
        case "reason":
            return find_reason_problem(value)
        case "suite" | "owner":
            if not value.strip():
                return "must not be empty"
            if len(value) > MAX_NAME:
                return f"is longer than {MAX_NAME} characters"
            odd = find_control_character(value)
            return f"contains the control character {odd}" if odd else None
        case _:
            return None


class KnownWaivers(FrozenStruct):
    """Waivers for the verdict of a run, and the current day (UTC).

    `trusted` is False if the file comes from a fork, or if only the base branch's rules count: entries that the base
    branch does not have then do not count. `refusals` are refused commands in comments, `troubles` sentences about
    failed lookups.
    """

    today: date
    waivers: Sequence[Waiver] = ()
    trusted: bool = True
    refusals: tuple[RefusedCommand, ...] = ()
    troubles: tuple[str, ...] = ()

    @property
    def has_content(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self.waivers or self.refusals or self.troubles)

    def merge(self, other: KnownWaivers) -> KnownWaivers:
        """Merge what was found elsewhere; `trusted` stays as it is."""
        return replace(
            self,
            waivers=(*self.waivers, *other.waivers),
            refusals=(*self.refusals, *other.refusals),
            troubles=(*self.troubles, *other.troubles),
        )


def load_waivers(config: RunConfig, root: Path, today: date) -> KnownWaivers:
    """Load the waiver file that the configuration names, or the default one if it exists. Raises GateError."""
    name = config.policy.waivers
    file = root / (name or DEFAULT_PATH)
    if name is None and not file.exists():
        return KnownWaivers(today)
    return KnownWaivers(today, read_waivers(file, today, shown_as=name or DEFAULT_PATH))
