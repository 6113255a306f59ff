"""Detection of patterns that match every text, so that a match has no meaning.

A pattern that can match the empty text matches every text, unless an anchor or a neighboring part prevents it. An
unusual pattern counts as one that can fail.
"""

from functools import lru_cache
from typing import Final

from eval_gate.model.limits import DEPTH

MAX_PATTERN: Final = 500
"""Maximum characters of an analyzed pattern."""
_FLAGS: Final = frozenset("dgimsuy")
"""Analyzed flags: all but `v`, which allows nested brackets."""
_WHOLE: Final = frozenset({r"[\s\S]", r"[\S\s]", r"[\d\D]", r"[\D\d]", r"[\w\W]", r"[\W\w]", "[^]"})
"""Classes that match any character."""


@lru_cache(maxsize=1_000)
def matches_every_text(pattern: str, flags: str = "") -> bool:
    """Whether an ECMAScript pattern certainly finds something in every text, the empty one too."""
    if len(pattern) > MAX_PATTERN or not _FLAGS.issuperset(flags) or len(set(flags)) < len(flags):
        return False
    if pattern.startswith("^") and pattern.endswith("$"):
        inner = pattern[1:-1].removesuffix("?").removesuffix("*")
        line = "." if {"m", "s"}.intersection(flags) else ""
        return pattern[1:-1] in {f"{inner}*", f"{inner}*?"} and (inner in _WHOLE or inner == line != "")
    try:
        return _Pattern(pattern, sticky="y" in flags).may_be_empty()
    except (_UnsureError, IndexError):
        return False


class _UnsureError(Exception):
    """The pattern has a part whose matches only the regex engine knows."""


class _Pattern:
    """Parser that finds which parts of a pattern can match the empty text."""

    def __init__(self, text: str, *, sticky: bool) -> None:
        self._text = text
        self._at = 0
        self._sticky = sticky

    def may_be_empty(self) -> bool:
        """Whether all of it may. Raises _UnsureError, and IndexError for what ends too early."""
        is_empty = self._alternatives(0)
        if self._at < len(self._text):  # a parenthesis that nothing opens
            raise _UnsureError
        return is_empty

    def _get_character(self) -> str:
        return self._text[self._at : self._at + 1]

    def _alternatives(self, depth: int) -> bool:
        if depth > DEPTH:
            raise _UnsureError
        is_empty = self._sequence(depth)
        while self._get_character() == "|":
            self._at += 1
            is_empty |= self._sequence(depth)
        return is_empty

    def _sequence(self, depth: int) -> bool:
        empty, anchored = True, False
        begin = self._at
        while self._get_character() not in {"", "|", ")"}:
            if self._get_character() == "^" and not depth and self._at == begin:
                self._at += 1
                anchored = True
                continue
            if self._get_character() == "$" and not depth and not anchored and not self._sticky:
                self._at += 1
                if self._get_character() not in {"", "|"}:
                    raise _UnsureError
                continue
            atom = self._atom(depth)
            empty &= self._may_be_left_out() or atom
        return empty

    def _atom(self, depth: int) -> bool:
        """Whether the part that begins here may match nothing; it is passed."""
        sign = self._get_character()
        self._at += 1
        match sign:
            case "(":
                return self._group(depth)
            case "[":
                while (inner := self._text[self._at]) != "]":
                    self._at += 2 if inner == "\\" else 1
                self._at += 1
            case "\\":
                if self._text[self._at] in "bBkxucpP123456789":
                    raise _UnsureError
                self._at += 1
            case "^" | "$" | "*" | "+" | "?" | "{" | "}" | "]":
                raise _UnsureError
        return False

    def _group(self, depth: int) -> bool:
        if self._get_character() == "?":
            if self._text[self._at + 1] != ":":  # looks around, or has a name
                raise _UnsureError
            self._at += 2
        is_empty = self._alternatives(depth + 1)
        if self._text[self._at] != ")":
            raise _UnsureError
        self._at += 1
        return is_empty

    def _may_be_left_out(self) -> bool:
        """Whether what stands behind a part lets it be missing; it is passed."""
        sign = self._get_character()
        if sign == "{":
            bounds, end, _ = self._text[self._at + 1 :].partition("}")
            least, _, most = bounds.partition(",")
            if not end or not least.isdecimal() or not (most == "" or most.isdecimal()):
                raise _UnsureError
            self._at += len(bounds) + 2
        elif sign and sign in "*+?":
            self._at += 1
        else:
            return False
        if self._get_character() == "?":
            self._at += 1
        return sign in {"*", "?"} or (sign == "{" and int(least) == 0)
