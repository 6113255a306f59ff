"""Names of cases in waivers: an id, or a glob that is specific enough."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from eval_gate.model.case import CaseKey
from eval_gate.model.waiver import MAX_NAME, MAX_REASON, CaseStanding
from eval_gate.text import globs

MIN_LITERALS: Final = 3
"""Letters and digits that a glob needs outside of its wildcards."""
MAX_NORMALIZED: Final = 4 * MAX_NAME
"""Characters of an id whose spelling is looked at. No name is so long, and sorting the marks on one letter is slow."""
_UNPRINTABLE_CATEGORIES: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_BIDI_CONTROLS: Final = frozenset({"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"})
"""Characters that show the text around them in another order."""


def find_name_problem(text: str) -> str | None:
    """Return why the text names no case, as the end of a sentence; None if it can name one."""
    if not text.strip():
        return "must not be empty"
    if len(text) > MAX_NAME:
        return f"is longer than {MAX_NAME} characters"
    if odd := find_control_character(text):
        return f"contains the control character {odd}"
    literal = sum(char.isalnum() for char in globs.strip_wildcards(text))
    if globs.is_glob(text) and literal < MIN_LITERALS:
        return f"is too general: a glob needs at least {MIN_LITERALS} letters or digits besides its wildcards"
    return None


def find_reason_problem(text: str) -> str | None:
    """Why this is no reason, or None when it may be one."""
    if not any(char.isalnum() for char in text):
        return "must contain a letter or digit"
    return f"is longer than {MAX_REASON} characters" if len(text) > MAX_REASON else None


def find_control_character(text: str) -> str | None:
    """Find the first invisible character that changes how the rest is shown, as `U+202E`, or None."""
    for char in text:
        if unicodedata.category(char) in _UNPRINTABLE_CATEGORIES or unicodedata.bidirectional(char) in _BIDI_CONTROLS:
            return f"U+{ord(char):04X}"
    return None


class RenameRule(Enum):
    """Whether a waiver may name a renamed case by its new name."""

    NEVER = "never"
    BY_ID = "by id"
    """Only by its written id, and by no glob."""
    ALWAYS = "always"


class CaseNameIndex:
    """Cases of a run, found by id or glob, also by their names in the baseline.

    `baseline_keys` maps renamed cases to their names in the baseline. A renamed case matches by its earlier name,
    because a glob was written for the earlier names. `RenameRule` decides whether it also matches by its new name.
    """

    def __init__(
        self, cases: Iterable[CaseStanding], baseline_keys: Mapping[CaseKey, CaseKey] = MappingProxyType({})
    ) -> None:
        self._known: list[_NamedCase] = []
        self._new: list[_NamedCase] = []
        for case in cases:
            earlier_key = baseline_keys.get(case.key)
            self._known.append(_NamedCase.from_case(earlier_key or case.key, case))
            if earlier_key is not None:
                self._new.append(_NamedCase.from_case(case.key, case))
        self._by_id = _group_by_id(self._known)
        self._files = {one.suite for one in (*self._known, *self._new)}
        self._new_by_id = _group_by_id(self._new)

    def find_cases(
        self, case: str, suite: str | None, renamed: RenameRule = RenameRule.BY_ID
    ) -> tuple[CaseStanding, ...]:
        """Find the cases with this id, or else those that match it as a glob, in the eval files of `suite`.

        `suite` is an eval file or a glob; None stands for all eval files. Both are case-sensitive. A name that is the
        id of a case matches that case only, and one that is an eval file matches that file only, because both may
        contain `[1]` and `?`.
        """
        name = _normalize_name(case)
        if suite is not None and suite in self._files:
            suite = globs.escape_glob(suite)
        exact = list(self._by_id.get(name, ()))
        exact += self._new_by_id.get(name, ()) if renamed is not RenameRule.NEVER else ()
        if matches := [one.case for one in exact if _is_in_suite(one.suite, suite)]:
            return tuple(dict.fromkeys(matches))
        if not globs.is_glob(name):
            return ()
        candidates = (*self._known, *self._new) if renamed is RenameRule.ALWAYS else self._known
        return tuple(
            dict.fromkeys(
                one.case for one in candidates if globs.matches_glob(name, one.name) and _is_in_suite(one.suite, suite)
            )
        )


class _NamedCase(NamedTuple):
    """A case under one of its names."""

    name: str
    suite: str
    case: CaseStanding

    @classmethod
    def from_case(cls, key: CaseKey, case: CaseStanding) -> _NamedCase:
        return cls(_normalize_name(key.case_id), key.suite, case)


def _group_by_id(cases: Iterable[_NamedCase]) -> Mapping[str, list[_NamedCase]]:
    groups: dict[str, list[_NamedCase]] = defaultdict(list)
    for one in cases:
        groups[one.name].append(one)
    return groups


def _normalize_name(name: str) -> str:
    """Make all spellings of a name equal: a comment is typed in a browser, an eval file in an editor."""
    return unicodedata.normalize("NFC", name) if len(name) <= MAX_NORMALIZED else name


def _is_in_suite(file: str, suite: str | None) -> bool:
    return suite is None or file == suite or globs.matches_glob(suite, file)
