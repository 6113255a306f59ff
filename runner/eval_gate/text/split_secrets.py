"""Find a secret that is split into pieces, as by streamed responses and wrapped lines.

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
MAX_CANDIDATES: Final = 200
"""Candidates for the beginning of a secret that are followed at once, the latest ones."""
MIN_SIGNS: Final = 12
"""Letters and digits of a secret that is searched for in pieces: fewer may stand in a text by chance."""
_MIN_AT_CUT: Final = 8
"""Letters and digits of a secret that are masked at a place where the text was truncated."""
_MIN_PIECE: Final = 2
"""Signs of a piece in a response."""
_WORD: Final = re.compile(r"\\{1,8}(?:u[0-9a-fA-F]{4}|[abfnrtv])|(?P<word>[0-9A-Za-z]+)|(?P<cut>…|\.\.\.)")
NO_SIGN: Final = re.compile(r"[^0-9A-Za-z]")


class _Word(NamedTuple):
    text: str
    """Letters and digits, none where the text was cut."""
    begin: int
    """Where in the text it begins, in characters."""


class BareSecret:
    """The letters and digits of a secret, used to find it when it is split."""

    def __init__(self, secret: str) -> None:
        self.signs = NO_SIGN.sub("", secret)
        runs = [run for run in NO_SIGN.split(secret) if run]
        words = () if looks_like_key(self.signs) else runs
        self.breaks_of_words = frozenset(sum(map(len, words[:count])) for count in range(1, len(words)))
        self._rarest_first = sorted(set(self.signs))
        self.is_key = looks_like_key(self.signs)
        self._at_cut = sorted({*self.signs[:_MIN_AT_CUT]}), sorted({*self.signs[-_MIN_AT_CUT:]})

    def may_occur_in(self, text: str) -> bool:
        """Whether all of its signs are in the text, or those of an end of it in one that was cut."""
        if all(sign in text for sign in self._rarest_first):
            return True
        return ("…" in text or "..." in text) and any(all(sign in text for sign in end) for end in self._at_cut)


def build_bare_secrets(secrets: Iterable[str]) -> tuple[BareSecret, ...]:
    """Build the secrets that are long enough to be found in pieces."""
    return tuple(bare for bare in map(BareSecret, sorted(secrets)) if len(bare.signs) >= MIN_SIGNS)


def iter_secret_pieces(text: str, secrets: Iterable[BareSecret], *, in_message: bool) -> Iterator[tuple[int, int]]:
    """Yield where in a short text the pieces of these secrets begin and end, in characters.

    In a message any pieces count, and a part of a key where the text was cut. In a response ordinary words might be
    taken for them, and the verdict would be another one: only all of a key counts there, in pieces of some length.
    """
    if len(text) > MAX_SEARCHED:
        return
    words: list[_Word] = []
    for secret in secrets:
        if (in_message or secret.is_key) and secret.may_occur_in(text):
            words = words or [
                _Word(match["word"] or "", match.start()) for match in _WORD.finditer(text) if match.lastgroup
            ]
            yield from _iter_ranges(words, secret, in_message=in_message)


def _iter_ranges(words: Sequence[_Word], secret: BareSecret, *, in_message: bool) -> Iterator[tuple[int, int]]:
    signs, at_cut = secret.signs, in_message and secret.is_key
    for pieces in _iter_occurrences([word.text for word in words], signs, at_cut=at_cut):
        if in_message or all(end - begin >= _MIN_PIECE for _, begin, end in pieces):
            yield from _exclude_plain_words(secret, pieces, words)
    if not at_cut:
        return
    # from the end: the rest of a secret whose beginning was cut off
    turned = [word.text[::-1] for word in reversed(words)]
    for pieces in _iter_occurrences(turned, signs[::-1], whole=False):
        last = len(words) - 1
        own_pieces = [
            (last - at, len(words[last - at].text) - end, len(words[last - at].text) - begin)
            for at, begin, end in pieces
        ]
        yield from _exclude_plain_words(secret, own_pieces, words)


class _Piece(NamedTuple):
    """Piece of a secret with the word before it and its position there."""

    word_index: int
    begin: int
    end: int
    previous: _Piece | None

    def collect_pieces(self) -> list[tuple[int, int, int]]:
        pieces: list[tuple[int, int, int]] = []
        one: _Piece | None = self
        while one is not None:
            pieces.append((one.word_index, one.begin, one.end))
            one = one.previous
        return pieces[::-1]


def _iter_occurrences(
    words: Sequence[str], signs: str, *, whole: bool = True, at_cut: bool = True
) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the pieces of each occurrence of the secret, or of its beginning before a cut."""
    reached: dict[int, _Piece] = {}
    for at, word in enumerate(words):
        if not word:
            yield from (one.collect_pieces() for count, one in reached.items() if at_cut and count >= _MIN_AT_CUT)
            reached = {}
            continue
        next_reached: dict[int, _Piece] = {}
        for count, one in reached.items():
            rest = signs[count : count + len(word)]
            if word.startswith(rest):
                next_reached[count + len(rest)] = _Piece(at, 0, len(rest), one)
        for length in range(1, min(len(word), len(signs) - 1) + 1):
            if word.endswith(signs[:length]):
                next_reached.setdefault(length, _Piece(at, len(word) - length, len(word), None))
        complete = next_reached.pop(len(signs), None)
        if complete and whole:
            yield complete.collect_pieces()
        for count, one in next_reached.items():
            reached.pop(count, None)
            reached[count] = one
        for count in list(reached)[: max(len(reached) - MAX_CANDIDATES, 0)]:
            del reached[count]


def _exclude_plain_words(
    secret: BareSecret, pieces: list[tuple[int, int, int]], words: Sequence[_Word]
) -> Iterator[tuple[int, int]]:
    """Yield an occurrence's ranges, unless it is just words that a secret such as `weather-agent-prod` consists of."""
    lengths = [end - begin for _, begin, end in sorted(pieces)]
    breaks = {sum(lengths[:count]) for count in range(1, len(lengths))}
    if breaks and not breaks <= secret.breaks_of_words:
        yield from ((words[at].begin + begin, words[at].begin + end) for at, begin, end in pieces)
