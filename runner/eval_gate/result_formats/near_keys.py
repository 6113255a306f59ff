"""Keys of results that are none of ours: one that is nearly ours is misspelt, any other is whoever's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from pydantic import BaseModel

from eval_gate.errors import Problem, did_you_mean
from eval_gate.model.limits import BROUGHT_NEAR_KEYS
from eval_gate.result_formats.rows import RowPlace, unreadable

_KEPT: Final = 10_000
"""Keys of which it is remembered what they were meant to be: those of most files are the same in every line."""


class OurKeys:
    """The keys that a part of a result has, and which of them share so many letters with a word that it may be near.

    Comparing a word with each of them costs as much as reading fifty lines. Its letters rule out nearly all, in a tenth
    of that, and none that `did_you_mean` would find: it wants six letters of ten to be shared, in order besides.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._lengths = {name: len(name) for name in names}
        self._longest = max(self._lengths.values())
        # eight bits of a number for each name: that of ("t", 1) has a one for every name with a second t
        self._having: Counter[tuple[str, int]] = Counter()
        for at, name in enumerate(self._lengths):
            for letter, often in Counter(name).items():
                self._having.update({(letter, nth): 1 << 8 * at for nth in range(often)})

    def alike(self, word: str) -> list[str]:
        """Those that are not ruled out."""
        if 3 * len(word) > 7 * self._longest:  # not even all letters of the longest were enough
            return []
        shared, seen = 0, dict[str, int]()
        folded = word.casefold()
        for letter in folded:
            nth = seen.get(letter, 0)
            seen[letter] = nth + 1
            shared += self._having.get((letter, nth), 0)
        counts = zip(self._lengths.items(), shared.to_bytes(len(self._lengths), "little"), strict=True)
        return [name for (name, length), count in counts if 10 * count >= 3 * (length + len(folded))]


class NearKeys:
    """What the keys of one file that are none of ours were meant to be."""

    def __init__(self) -> None:
        self._meant: dict[tuple[type[BaseModel], str], str] = {}
        self._compared = 0

    def misspelt(self, part: type[BaseModel], keys: Iterable[str], place: RowPlace) -> Iterator[Problem]:
        """A key that is nearly one of ours is a mistake; any other is whoever's own and is left alone.

        Raises GateError `results-unreadable` for a file with more keys that look like ours than can be compared.
        """
        for key in keys:
            if key not in part.model_fields and (meant := self._near(part, key, place)):
                yield RowPlace(place.file, place.line, key[:80]).problem(f"is not known{meant}")

    def _near(self, part: type[BaseModel], key: str, place: RowPlace) -> str:
        meant = self._meant.get((part, key))
        if meant is None:
            meant = self._looked_for(part, key, place)
            if len(self._meant) < _KEPT:
                self._meant[part, key] = meant
        return meant

    def _looked_for(self, part: type[BaseModel], key: str, place: RowPlace) -> str:
        alike = _keys_of(part).alike(key)
        if not alike:
            return ""
        self._compared += 1
        if self._compared > BROUGHT_NEAR_KEYS:
            what = f"more than {BROUGHT_NEAR_KEYS:,} keys look like ones that are known"
            raise unreadable(place, f"{what}: whether one is misspelt, nobody can tell")
        return did_you_mean(key, alike)


@cache
def _keys_of(part: type[BaseModel]) -> OurKeys:
    return OurKeys(part.model_fields)
