"""Words of a text that look as if they were new in every run: dates, times and random identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

UUID: Final = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_DAY: Final = r"[0-3]?\d(?:st|nd|rd|th)?"
_VOLATILE: Final = re.compile(
    rf"(?P<id>(?<![0-9A-Za-z]){UUID}(?![0-9A-Za-z]))"
    r"|(?P<date>(?<!\d)20\d\d(?:[01]\d[0-3]\d(?:T\d{4,6}Z?)?|(?P<sign>[-/.])[01]?\d(?P=sign)[0-3]?\d)(?!\d)"
    r"|(?<!\d)[0-3]?\d(?P<other_sign>[-/.])[0-3]?\d(?P=other_sign)20\d\d(?!\d)"
    rf"|(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{{0,6}},? )?"
    rf"(?:\b{_DAY} {_MONTH},? 20\d\d\b|\b{_MONTH} {_DAY},? 20\d\d\b))"
    r"|(?P<time>(?<![\d:])[0-2]?\d:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?"
    r"(?:\s?[AaPp]\.?[Mm]\b\.?)?(?:Z\b|\s?[+-]\d\d:?\d\d\b)?(?![\d:])"
    r"|(?<![\d.])1[5-9]\d{8}(?:\d{3}){0,3}(?:\.\d{1,9})?(?![\d.]))"
    r"|(?P<word>[A-Za-z0-9]{16,})",
    re.ASCII,
)
"""A UUID, a date, a time of the day or since 1970, and a word that is random where letters and digits take turns."""
_SWITCH: Final = re.compile(r"[A-Za-z][0-9]|[0-9](?=[A-Za-z])")


def iter_volatile_words(text: str) -> Iterator[str]:
    """Yield the words that look as if they were new in every run."""
    return (match[0] for match in _VOLATILE.finditer(text) if _is_volatile(match))


def replace_volatile_words(text: str) -> str:
    """Replace each of these words by its kind, such as `<date>`."""
    return _VOLATILE.sub(lambda match: f"<{_get_kind(match)}>" if _is_volatile(match) else match[0], text)


def _is_volatile(match: re.Match[str]) -> bool:
    return match["word"] is None or len(_SWITCH.findall(match["word"])) > 1


def _get_kind(match: re.Match[str]) -> str:
    return "date" if match["date"] else "time" if match["time"] else "id"
