"""A secret that stands in a text in pieces, as agents stream their responses and programs break their lines.

`{"t": "sk-Qz7X"}{"t": "k2Lm9Pw"}`, `0:"sk-Qz7X"` in one line and `0:"k2Lm9Pw"` in the next: whatever the form is, the
words of the text that are the next piece of the secret, one after the other, make up all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from eval_gate.text.quoting import looks_like_key

MAX_SEARCHED: Final = 4_096
"""Characters of a text that is searched for pieces: a message is shorter."""
MIN_SIGNS: Final = 12
"""Letters and digits of a secret that is searched for in pieces: fewer may stand in a text by chance."""
_MIN_AT_CUT: Final = 8
"""So many of them are masked where the text was cut."""
_WORD: Final = re.compile(r"\\{1,8}(?:u[0-9a-fA-F]{4}|[abfnrtv])|(?P<word>[0-9A-Za-z]+)|(?P<cut>…|\.\.\.)")
_NO_SIGN: Final = re.compile(r"[^0-9A-Za-z]")


class _Word(NamedTuple):
    text: str
    """Letters and digits, none where the text was cut."""
    begin: int
    """Where in the text it begins, in characters."""


class BareSecret:
    """The letters and digits of a secret, and where its own signs stand between words that people write."""

    def __init__(self, secret: str) -> None:
        self.signs = _NO_SIGN.sub("", secret)
        runs = [run for run in _NO_SIGN.split(secret) if run]
        words = () if looks_like_key(self.signs) else runs
        self.breaks_of_words = frozenset(sum(map(len, words[:count])) for count in range(1, len(words)))
        self._rarest_first = sorted(set(self.signs))
        self._at_cut = sorted({*self.signs[:_MIN_AT_CUT]}), sorted({*self.signs[-_MIN_AT_CUT:]})

    def may_stand_in(self, text: str) -> bool:
        """Whether all of its signs are in the text, or those of an end of it in one that was cut."""
        if all(sign in text for sign in self._rarest_first):
            return True
        return ("…" in text or "..." in text) and any(all(sign in text for sign in end) for end in self._at_cut)


def bare_secrets(secrets: Iterable[str]) -> tuple[BareSecret, ...]:
    """Those of the secrets that are long enough to be found in pieces."""
    return tuple(bare for bare in map(BareSecret, sorted(secrets)) if len(bare.signs) >= MIN_SIGNS)


def pieces_in(text: str, secrets: Iterable[BareSecret]) -> Iterator[tuple[int, int]]:
    """Where in a short text the pieces of these secrets begin and end, in characters."""
    if len(text) > MAX_SEARCHED:
        return
    words: list[_Word] = []
    for secret in secrets:
        if secret.may_stand_in(text):
            words = words or [
                _Word(match["word"] or "", match.start()) for match in _WORD.finditer(text) if match.lastgroup
            ]
            yield from _stretches(words, secret)


def _stretches(words: Sequence[_Word], secret: BareSecret) -> Iterator[tuple[int, int]]:
    signs = secret.signs
    for found in _found([word.text for word in words], signs):
        yield from _unless_words(secret, found, words)
    # from behind: what is left of a secret whose beginning was cut off
    turned = [word.text[::-1] for word in reversed(words)]
    for found in _found(turned, signs[::-1], only_at_cut=True):
        last = len(words) - 1
        there = [
            (last - at, len(words[last - at].text) - end, len(words[last - at].text) - begin)
            for at, begin, end in found
        ]
        yield from _unless_words(secret, there, words)


def _found(words: Sequence[str], signs: str, *, only_at_cut: bool = False) -> Iterator[list[tuple[int, int, int]]]:
    """The pieces of each occurrence: which word, and from where to where in it."""
    reached: dict[int, list[tuple[int, int, int]]] = {}
    for at, word in enumerate(words):
        if not word:
            yield from (found for count, found in reached.items() if count >= _MIN_AT_CUT)
            reached = {}
            continue
        after: dict[int, list[tuple[int, int, int]]] = {}
        for count, found in reached.items():
            rest = signs[count : count + len(word)]
            if word.startswith(rest):
                after[count + len(rest)] = [*found, (at, 0, len(rest))]
        for length in range(1, min(len(word), len(signs) - 1) + 1):
            if word.endswith(signs[:length]):
                after.setdefault(length, [(at, len(word) - length, len(word))])
        whole = after.pop(len(signs), None)
        if whole and not only_at_cut:
            yield whole
        reached |= after


def _unless_words(
    secret: BareSecret, found: list[tuple[int, int, int]], words: Sequence[_Word]
) -> Iterator[tuple[int, int]]:
    """A secret that is a name of several words, such as `weather-agent-prod`, may be written as these words."""
    lengths = [end - begin for _, begin, end in sorted(found)]
    breaks = {sum(lengths[:count]) for count in range(1, len(lengths))}
    if breaks and not breaks <= secret.breaks_of_words:
        yield from ((words[at].begin + begin, words[at].begin + end) for at, begin, end in found)
