"""Find text that looks like a key, although no setting names it as a secret, in texts that are stored for good.

The forms are gitleaks' rules (`key_rules.json`, made by `tests/support/cut_key_rules.py`). Text that people are about
to commit is also searched for words of high entropy, which are in no rule: a draft can do without them. Responses are
not masked by this, because that could change a verdict: a report names what was found.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from eval_gate.struct import FrozenStruct
from eval_gate.text.quoting import looks_like_key
from eval_gate.text.secret import mask_ranges

_RULES: Final = Path(__file__).with_name("key_rules.json")
HIGH_ENTROPY: Final = "high-entropy"
"""The form of a word that no rule knows."""
_WORD: Final = re.compile(r"[A-Za-z0-9_+/=~-]{24,}")
_MIN_BITS: Final = 4.5
"""Entropy of such a word, in bits a character: the limit that detect-secrets has for base64."""


class FoundKey(NamedTuple):
    """What looks like a key: its form, and where it is in the text."""

    form: str
    begin: int
    end: int


class _Rule(FrozenStruct):
    id: str
    pattern: str
    entropy: float
    """Bits a character that the key has to exceed; 0 for any."""
    keywords: tuple[str, ...]
    """A text with such a key holds one of these, in lower case."""
    allowed: tuple[str, ...] = ()
    """Patterns of examples and placeholders."""


def find_known_forms(text: str) -> Iterator[FoundKey]:
    """Find keys of well-known forms."""
    lowered = text.lower()
    present = {word for word in _list_keywords() if word in lowered}
    for rule in _read_rules() if present else ():
        if not present.isdisjoint(rule.keywords):
            # `re` keeps what it compiled: most rules are never used
            for match in re.finditer(rule.pattern, text, re.ASCII):
                secret = next(filter(None, match.groups()), match[0])
                is_random = not rule.entropy or compute_entropy(secret) > rule.entropy
                if is_random and not any(re.search(allowed, secret) for allowed in rule.allowed):
                    yield FoundKey(rule.id, *match.span())


def find_keys(text: str) -> Iterator[FoundKey]:
    """Find keys of well-known forms and words of high entropy, in a text that people are about to commit."""
    yield from find_known_forms(text)
    for match in _WORD.finditer(text):
        if looks_like_key(match[0]) and compute_entropy(match[0]) >= _MIN_BITS:
            yield FoundKey(HIGH_ENTROPY, *match.span())


def mask_keys(text: str) -> str:
    """Mask what looks like a key, in a text that people are about to commit."""
    return mask_ranges(text, [(key.begin, key.end) for key in find_keys(text)])


def compute_entropy(text: str) -> float:
    """Compute the Shannon entropy in bits a character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


@cache
def _read_rules() -> tuple[_Rule, ...]:
    return msgspec.convert(msgspec.json.decode(_RULES.read_bytes())["rules"], tuple[_Rule, ...])


@cache
def _list_keywords() -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for rule in _read_rules() for word in rule.keywords))
