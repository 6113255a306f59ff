"""Numbers, dates, times and codes in texts, whichever way they are written: 1,250.40 is 1250.4.

Two of them are the same if they have a key in common:

- A number is its value, with a point before its decimals. Thousands are separated by a comma, point, apostrophe or
  blank before each three digits, and decimals by a point or comma. Where a text allows two readings, as `1.250` does,
  both are keys; the first one is that of the English notation.
- English words from two to twenty are numbers. Of digits with letters behind them (`5km`) the digits are one, too.
- A day with a month is the same in each order, and `2026-12-12` is 12 December too. A time is the same with and without
  its leading zero.
- Everything else with digits, such as `A-1043` or `2.1.3`, is only what it is; `v2.1.3` is 2.1.3, too.

A number is never found inside one of the others: 12 is not in 112, in 12.5 or in 12:30.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from eval_gate.struct import FrozenStruct

MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTH: Final = rf"(?:{'|'.join(MONTHS)}|{'|'.join(month[:3] for month in MONTHS)})"
_DAY: Final = "[0-9]{4}-[0-9][0-9]-[0-9][0-9]"
_TIME: Final = "[0-9][0-9]:[0-9][0-9]"
_ORDINAL: Final = "(?:st|nd|rd|th)?"
_SMALL_NUMBERS: Final = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_NUMBER_WORDS: Final = {word: str(number) for number, word in enumerate(_SMALL_NUMBERS, 2)}
_MINUS: Final = "-\N{MINUS SIGN}"
_APOSTROPHES: Final = "'\N{RIGHT SINGLE QUOTATION MARK}"
_BLANKS: Final = " \N{NO-BREAK SPACE}\N{THIN SPACE}\N{NARROW NO-BREAK SPACE}"
_TOKEN: Final = re.compile(
    rf"""
    (?P<stamp>\b{_DAY}[T ]{_TIME}(?::[0-9][0-9](?:\.[0-9]+)?)?(?:Z|[+-][0-9][0-9]:?[0-9][0-9])?)
    |(?P<iso>\b{_DAY}\b)
    |(?P<day_first>(?<![0-9.,/:-])(?P<day1>[0-9]{{1,2}}){_ORDINAL}(?:\ of)?\ (?P<month1>{_MONTH})\b)
    |(?P<month_first>\b(?P<month2>{_MONTH})\.?\ (?P<day2>[0-9]{{1,2}}){_ORDINAL}\b(?!\.?[0-9]))
    |(?P<code>(?<![\w/-])(?=[\w/-]*[0-9])(?=[\w/-]*[A-Za-z])[0-9]*[A-Za-z][A-Za-z0-9]*(?:[-/_][A-Za-z0-9]+|\.[0-9]+)*(?!\w))
    |(?P<number>(?<![A-Za-z0-9_])(?:(?<![\w.,)])[{_MINUS}])?
        (?:[0-9]{{1,3}}(?:[{_BLANKS}{_APOSTROPHES}][0-9]{{3}})+(?:[.,][0-9]+)?(?![0-9])|[0-9]+(?:[.,:/-][0-9]+)*
        |(?<![.,])\.[0-9]+(?![.,:/-]?[0-9])))
    |(?P<word>\b(?i:{"|".join(_NUMBER_WORDS)})\b(?!-))
    """,
    re.VERBOSE,
)
"""What has digits, the longest reading first. Units are no part of it: 4 °C is 4 degrees."""
_DIGITS_WITH_UNIT: Final = re.compile(r"([0-9]+)[A-Za-z]+")
_VERSION: Final = re.compile(r"[vV]([0-9]+(?:\.[0-9]+)+)")
_SEPARATORS: Final = re.compile(rf"[.,{_APOSTROPHES}{_BLANKS}]")
TokenKind = Literal["number", "date", "time", "code"]


class NumberToken(FrozenStruct):
    """A number, date, time or code in a text. Tokens that have a key in common are the same."""

    text: str
    start: int
    kind: TokenKind
    keys: tuple[str, ...]
    """The first one is that of the English notation."""
    day: tuple[int, int] | None = None
    """Day and month of a date without a year."""


def iter_numbers(text: str) -> Iterator[NumberToken]:
    """Yield the numbers, dates, times and codes of a text in their order."""
    for match in _TOKEN.finditer(text):
        token, start = match[0], match.start()
        match match.lastgroup:
            case "day_first":
                yield _build_date(match, match["day1"], match["month1"])
            case "month_first":
                yield _build_date(match, match["day2"], match["month2"])
            case "iso" | "stamp":
                month, day = int(token[5:7]), int(token[8:10])
                keys = (token, f"{day} {MONTHS[month - 1]}") if 1 <= month <= 12 else (token,)
                yield NumberToken(token, start, "code", keys)
            case "number":
                yield from _iter_tokens_of_number(token, start)
            case "word":
                yield NumberToken(token, start, "number", (_NUMBER_WORDS[token.lower()],))
            case "code" if unit := _DIGITS_WITH_UNIT.fullmatch(token):
                yield NumberToken(token, start, "code", (token, _normalize(unit[1])))
            case _:
                version = _VERSION.fullmatch(token)
                yield NumberToken(token, start, "code", (token, version[1]) if version else (token,))


def parse_number(text: str) -> NumberToken | None:
    """Return the number, date, time or code that this text is; None if it is something else, or several."""
    stripped = text.strip()
    return next((one for one in iter_numbers(stripped) if one.text == stripped), None)


def has_number(text: str, number: str) -> bool:
    """Whether a text has a number, date, time or code, written in whichever way; `number` is read as in English."""
    number_token = parse_number(number)
    return number_token is not None and any(number_token.keys[0] in token.keys for token in iter_numbers(text))


def _build_date(match: re.Match[str], day: str, month: str) -> NumberToken:
    number = next(at for at, one in enumerate(MONTHS, 1) if one.startswith(month))
    return NumberToken(match[0], match.start(), "date", (f"{int(day)} {MONTHS[number - 1]}",), (int(day), number))


def _iter_tokens_of_number(text: str, start: int) -> Iterator[NumberToken]:
    """Yield what digits with separators are: one number, a list of numbers, or a time, version or the like."""
    sign = "-" if text[0] in _MINUS else ""
    digits = text[len(sign) :]
    if any(one in digits for one in ":/-"):
        kind: TokenKind = "time" if ":" in digits else "code"
        yield NumberToken(text, start, kind, (re.sub(r"^0(?=[0-9]:)", "", text),))
        return
    readings = tuple(f"{sign}{one}" for one in _list_readings(digits))
    if readings:
        # a blank may also stand between two numbers, so that these are keys as well
        separate = [one for part in digits.split(" ") for one in _list_readings(part)] if " " in digits else []
        yield NumberToken(text, start, "number", (*readings, *separate))
    elif "." in digits:
        yield NumberToken(text, start, "code", (text,))
    else:
        for part in re.finditer("[0-9]+", text):
            yield NumberToken(part[0], start + part.start(), "number", (_normalize(part[0]),))


def _list_readings(digits: str) -> tuple[str, ...]:
    """List the values that digits with separators can have, that of the English notation first."""
    separators = _SEPARATORS.findall(digits)
    if not separators:
        return (_normalize(digits),)
    groups = _SEPARATORS.split(digits)
    *leading, last = separators
    whole = "".join(groups)
    has_thousands = len(set(separators)) == 1 and _are_thousands(groups)
    has_decimals = last in ".," and (not leading or (set(leading) != {last} and _are_thousands(groups[:-1])))
    decimal = _normalize("".join(groups[:-1]), groups[-1])
    if has_thousands and has_decimals:
        return (_normalize(whole), decimal) if last == "," else (decimal, _normalize(whole))
    return (_normalize(whole),) if has_thousands else (decimal,) if has_decimals and len(set(leading)) <= 1 else ()


def _are_thousands(groups: list[str]) -> bool:
    first, *rest = groups
    return 1 <= len(first) <= 3 and not first.startswith("0") and all(len(one) == 3 for one in rest)


def _normalize(whole: str, decimals: str = "") -> str:
    decimals = decimals.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{decimals}" if decimals else "")
