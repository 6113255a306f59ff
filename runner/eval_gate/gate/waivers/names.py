"""What names a case: its id, or a glob that says enough to be about some cases and not about all."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from eval_gate.model.waiver import MAX_NAME, MAX_REASON, CaseStanding
from eval_gate.text import globs

LITERALS: Final = 3
"""Letters and digits that a glob needs outside of its wildcards."""
MAX_FOLDED: Final = 4 * MAX_NAME
"""Characters of an id whose spelling is looked at. No name is so long, and sorting the marks on one letter is slow."""
_CONTROL: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING: Final = frozenset({"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"})
"""Characters that show the text around them in another order."""


def name_problem(text: str) -> str | None:
    """Why this names no case, as what is to be said of it; None when it does."""
    if not text.strip():
        return "must not be empty"
    if len(text) > MAX_NAME:
        return f"is longer than {MAX_NAME} characters"
    if odd := control_in(text):
        return f"holds the control character {odd}"
    literal = sum(char.isalnum() for char in globs.without_signs(text))
    if globs.is_glob(text) and literal < LITERALS:
        return f"says too little: a glob needs at least {LITERALS} letters or digits beside its wildcards"
    return None


def reason_problem(text: str) -> str | None:
    """Why this is no reason, or None when it may be one."""
    if not any(char.isalnum() for char in text):
        return "must say why, in words"
    return f"is longer than {MAX_REASON} characters" if len(text) > MAX_REASON else None


def control_in(text: str) -> str | None:
    """The first character that is not shown and changes how the rest is, as `U+202E`; None without one."""
    for char in text:
        if unicodedata.category(char) in _CONTROL or unicodedata.bidirectional(char) in _TURNING:
            return f"U+{ord(char):04X}"
    return None


class CaseNames:
    """The cases of a run, found by what people call them."""

    def __init__(self, cases: Iterable[CaseStanding]) -> None:
        self._cases = tuple((_folded(case.case_id), case) for case in cases)
        self._by_id: dict[str, list[CaseStanding]] = defaultdict(list)
        for name, case in self._cases:
            self._by_id[name].append(case)

    def find(self, case: str, suite: str | None) -> tuple[CaseStanding, ...]:
        """The cases of this id, or else of this glob, in eval files of this glob; both are case-sensitive.

        A name that is some case's id means that case only: ids may hold `[1]` and `?`.
        """
        name = _folded(case)
        if exact := [found for found in self._by_id.get(name, ()) if _in_suite(found, suite)]:
            return tuple(exact)
        if not globs.is_glob(name):
            return ()
        return tuple(found for known, found in self._cases if globs.fits(name, known) and _in_suite(found, suite))


def _folded(name: str) -> str:
    """The same for all spellings of one text: a comment is typed in a browser, an eval file in an editor."""
    return unicodedata.normalize("NFC", name) if len(name) <= MAX_FOLDED else name


def _in_suite(case: CaseStanding, suite: str | None) -> bool:
    return suite is None or case.suite == suite or globs.fits(suite, case.suite)
