"""Patterns that find something in every text, so that it says nothing when they do.

A pattern that may match nothing at all does so in any text, unless an anchor or something beside it forbids that. What
is too unusual to be sure of counts as a pattern that may fail.
"""

from functools import lru_cache
from typing import Final

from eval_gate.model.limits import DEPTH

MAX_PATTERN: Final = 500
"""Characters of a pattern that is looked at."""
_FLAGS: Final = frozenset("dgimsuy")
"""All but `v`, with which brackets stand within brackets."""
_WHOLE: Final = frozenset({r"[\s\S]", r"[\S\s]", r"[\d\D]", r"[\D\d]", r"[\w\W]", r"[\W\w]", "[^]"})
"""What stands for any character."""


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
    """The pattern has a part of which only the engine knows where it matches."""


class _Pattern:
    """One walk through a pattern: which of its parts may match nothing."""

    def __init__(self, text: str, *, sticky: bool) -> None:
        self._text = text
        self._at = 0
        self._sticky = sticky

    def may_be_empty(self) -> bool:
        """Whether all of it may. Raises _UnsureError, and IndexError for what ends too early."""
        found = self._alternatives(0)
        if self._at < len(self._text):  # a parenthesis that nothing opens
            raise _UnsureError
        return found

    def _here(self) -> str:
        return self._text[self._at : self._at + 1]

    def _alternatives(self, depth: int) -> bool:
        if depth > DEPTH:
            raise _UnsureError
        found = self._sequence(depth)
        while self._here() == "|":
            self._at += 1
            found |= self._sequence(depth)
        return found

    def _sequence(self, depth: int) -> bool:
        empty, anchored = True, False
        begin = self._at
        while self._here() not in {"", "|", ")"}:
            if self._here() == "^" and not depth and self._at == begin:
                self._at += 1
                anchored = True
                continue
            if self._here() == "$" and not depth and not anchored and not self._sticky:
                self._at += 1
                if self._here() not in {"", "|"}:
                    raise _UnsureError
                continue
            atom = self._atom(depth)
            empty &= self._may_be_left_out() or atom
        return empty

    def _atom(self, depth: int) -> bool:
        """Whether the part that begins here may match nothing; it is passed."""
        sign = self._here()
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
        if self._here() == "?":
            if self._text[self._at + 1] != ":":  # looks around, or has a name
                raise _UnsureError
            self._at += 2
        found = self._alternatives(depth + 1)
        if self._text[self._at] != ")":
            raise _UnsureError
        self._at += 1
        return found

    def _may_be_left_out(self) -> bool:
        """Whether what stands behind a part lets it be missing; it is passed."""
        sign = self._here()
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
        if self._here() == "?":
            self._at += 1
        return sign in {"*", "?"} or (sign == "{" and int(least) == 0)
