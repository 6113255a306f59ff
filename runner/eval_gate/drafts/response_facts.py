"""Facts in responses: the numbers, dates, codes and names that carry an answer, whatever words are around them.

A fact is kept only where every response to a question has it. Ordinary words are no facts: another wording of the same
answer must not fail. Words that a tool returned are facts only of a target that answers in the same words each time; of
another one, one word of each result is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum
from typing import Final

from regress import Regex

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.limits import DRAFT_FACTS, STORED_RESPONSE
from eval_gate.struct import FrozenStruct
from eval_gate.text.safe_output import INVISIBLE
from eval_gate.text.secret import MASK
from eval_gate.text.untrusted.surrogates import to_well_formed

_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTH: Final = rf"(?:{'|'.join(_MONTHS)}|{'|'.join(month[:3] for month in _MONTHS)})"
_DAY: Final = "[0-9]{4}-[0-9][0-9]-[0-9][0-9]"
_TIME: Final = "[0-9][0-9]:[0-9][0-9]"
_ORDINAL: Final = "(?:st|nd|rd|th)?"
_SMALL_NUMBERS: Final = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_NUMBER_WORDS: Final = {word: str(number) for number, word in enumerate(_SMALL_NUMBERS, 2)}
_WORDS_BY_NUMBER: Final = {number: word for word, number in _NUMBER_WORDS.items()}
_FACT: Final = re.compile(
    rf"""
    (?P<stamp>\b{_DAY}[T ]{_TIME}(?::[0-9][0-9](?:\.[0-9]+)?)?(?:Z|[+-][0-9][0-9]:?[0-9][0-9])?)
    |(?P<iso>\b{_DAY}\b)
    |(?P<day_first>(?<![0-9.,/:-])(?P<day1>[0-9]{{1,2}}){_ORDINAL}(?:\ of)?\ (?P<month1>{_MONTH})\b)
    |(?P<month_first>\b(?P<month2>{_MONTH})\ (?P<day2>[0-9]{{1,2}}){_ORDINAL}\b)
    |(?P<code>(?<![\w/-])(?=[\w/-]*[0-9])(?=[\w/-]*[A-Za-z])[0-9]*[A-Za-z][A-Za-z0-9]*(?:[-/_][A-Za-z0-9]+|\.[0-9]+)*(?!\w))
    |(?P<number>(?<![A-Za-z0-9_])(?:(?<![\w.,)])[-\N{{MINUS SIGN}}])?[0-9]+(?:[.,:/-][0-9]+)*)
    """,
    re.VERBOSE,
)
"""Numbers and what is made of them, the longest reading first. Units are wording: 4 °C is 4 degrees."""
_NUMBER_WORD: Final = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b(?!-)", re.IGNORECASE | re.ASCII)
_LIST_NUMBER: Final = re.compile(r"^[ \t]*(\d{1,3})[.)][ \t]", re.MULTILINE)
"""The number of an entry of a list, which is form and not content."""
_WORD: Final = re.compile(r"[^\W_](?:[\w'’&]|-(?=\w))*")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:;\n\r*#>|•–—\"“”„(\[{/]|[-+]\s)\s{0,20}$")
_NO_NAMES: Final = frozenset(
    {
        *("I", "I'm", "I’m", "I'll", "I’ll", "I've", "I’ve", "I'd", "I’d", "OK", "Ok", "Yes", "No", "Please", "Sorry"),
        *("EUR", "USD", "US", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "SEK", "NOK", "DKK", "PLN", "BRL"),
        *("AI", "API", "URL", "JSON", "The", "A", "An", "You", "We", "It", "This", "That"),
    }
)
"""Words with a capital letter that are no names, or units, which are wording: 4 EUR are 4 euros."""
_AFTER_NUMBER: Final = re.compile(r"\d[.)]? ?$")
"""What stands before a unit."""
_NOUN_CAPITALS: Final = frozenset(
    {"der", "die", "das", "und", "ist", "nicht", "ein", "eine", "für", "mit", "auf", "sie", "im", "zu"}
)
"""Words of a language that writes each noun with a capital letter."""
_MIN_NOUN_CAPITALS: Final = 3
_MIN_NAME: Final = 2
_MAX_NAME_WORDS: Final = 8
_MAX_FOUND: Final = 300
"""Facts of one response that are compared with those of the others."""
_MIN_LOWER_WORD: Final = 4
_WORD_BOUNDARY: Final = r"\b"
_MIN_GROUP: Final = 2
_MAX_GROUP: Final = 8
_MAX_GROUPS: Final = 8
_FUNCTION_WORDS: Final = frozenset(
    {
        *("about", "above", "after", "also", "and", "are", "been", "before", "below", "between", "both", "can", "down"),
        *("each", "for", "from", "has", "have", "into", "its", "more", "most", "not", "only", "other", "over", "same"),
        *("some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those"),
        *("until", "very", "was", "were", "what", "when", "where", "which", "while", "will", "with", "would", "your"),
    }
)
"""Words that say nothing by themselves."""
_MAX_KNOWN: Final = 200_000
"""Characters of the question, arguments and results in which names are looked up."""
_MAX_FACT: Final = 80
"""Characters of one fact."""
_UNSAFE: Final = re.compile(rf"[\x00-\x1f{INVISIBLE}]|{re.escape(MASK)}|\{{\{{|\$\{{")
"""What must not be in an expectation: signs that nobody sees, masked text, and what a format may take for a token."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX_ID: Final = re.compile(r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,}", re.IGNORECASE)
_LONG_NUMBER: Final = re.compile(r"\d{9,}")
_ISO_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?!\d)")
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
_EPOCH_DIGITS: Final = (10, 13)
_NEAR_NOW: Final = timedelta(days=8)
"""Dates so near are relative to now where the question is."""
_RELATIVE_TIME: Final = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|now|currently|latest|recent|(?:this|next|last|coming|past)\s+\w+|next|ago)\b",
    re.IGNORECASE,
)
"""Words of a question whose answer depends on the day on which it is asked."""


class FactKind(IntEnum):
    """Kind of a fact. Where there are too many facts, those of the first kinds are kept."""

    NUMBER = 0
    NAME = 1
    WORD = 2


class ResponseFact(FrozenStruct):
    """One fact of a response: its text, and the pattern that finds it; None where the text alone is enough.

    `place` is where it first stands, as a share of the response.
    """

    text: str
    kind: FactKind
    pattern: str | None = None
    place: float = 0.0

    @property
    def key(self) -> str:
        """What makes two facts the same."""
        return self.pattern or self.text


class SharedFacts(FrozenStruct):
    """Facts that all responses to a question have, and texts of those that only some have."""

    facts: tuple[ResponseFact, ...] = ()
    word_groups: tuple[tuple[str, ...], ...] = ()
    """Words of one result of a tool. One of each group is enough: another wording may replace a word."""
    differing: tuple[str, ...] = ()
    omitted_count: int = 0
    """Facts beyond the limit."""


def find_shared_facts(question: str, responses: Sequence[Response], moment: datetime | None = None) -> SharedFacts:
    """Find the facts that every response to the question has, in their order in the first response."""
    if not responses:
        return SharedFacts()
    known = _KnownTexts(question, responses)
    finder = _FactFinder(known, Clock.from_prompt(question, len(responses), moment))
    texts = [to_well_formed(response.text[:STORED_RESPONSE]) for response in responses]
    by_response = [{fact.key: fact for fact in finder.iter_facts(text)} for text in texts]
    first = by_response[0]
    shared = [fact for key, fact in first.items() if all(key in found for found in by_response)]
    keys = {fact.key for fact in shared}
    differing = dict.fromkeys(fact.text for found in by_response for fact in found.values() if fact.key not in keys)
    shared = _drop_contained(shared)
    chosen = _choose_facts(shared)
    groups = tuple(_iter_word_groups(responses, texts, [fact.text for fact in shared]))
    return SharedFacts(tuple(chosen), groups, tuple(differing), len(shared) - len(chosen))


def _iter_word_groups(
    responses: Sequence[Response], texts: Sequence[str], facts: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield the lower-case words of each result of a tool that all responses have, if they are two or more.

    The words of a list of texts are one group. Words in facts are left out.
    """
    known = {word.casefold() for text in facts for word in _WORD.findall(text)}
    seen: set[tuple[str, ...]] = set()
    for call in responses[0].tool_calls:
        for result in _iter_short_texts(call.result):
            words = dict.fromkeys(word.lower() for word in _WORD.findall(result) if _is_content_word(word))
            group = tuple(
                word
                for word in words
                if word not in known and all(re.search(rf"(?<!\w){re.escape(word)}", text) for text in texts)
            )
            if len(group) >= _MIN_GROUP and group not in seen and len(seen) < _MAX_GROUPS:
                seen.add(group)
                yield group[:_MAX_GROUP]


def _iter_short_texts(value: JsonValue) -> Iterator[str]:
    """Yield the short texts of a result; those in one list are one text."""
    match value:
        case str() if len(value) <= _MAX_FACT:
            yield value
        case list():
            texts = [member for member in value if isinstance(member, str) and len(member) <= _MAX_FACT]
            if texts:
                yield " ".join(texts[:_MAX_GROUP])
            for member in value:
                if not isinstance(member, str):
                    yield from _iter_short_texts(member)
        case dict():
            for member in value.values():
                yield from _iter_short_texts(member)


def _is_content_word(word: str) -> bool:
    return len(word) >= _MIN_LOWER_WORD and word.isalpha() and word.lower() not in _FUNCTION_WORDS


def is_safe_text(text: str) -> bool:
    """Whether a text may stand in an expectation: all of it is visible, and no format replaces a part of it."""
    return _UNSAFE.search(text) is None


class Clock(FrozenStruct):
    """Moment of the responses, by which values of this moment are told from lasting ones.

    `is_relative`: the answer to the question depends on the day. `has_one_response`: whether an id or a time stamp
    differs each time is not known, so that it counts as volatile.
    """

    now: datetime
    is_relative: bool = False
    has_one_response: bool = False

    @classmethod
    def from_prompt(cls, question: str, response_count: int, moment: datetime | None = None) -> Clock:
        """Build the clock for the responses to a question."""
        return cls(moment or datetime.now(UTC), _RELATIVE_TIME.search(question) is not None, response_count == 1)

    def is_volatile(self, text: str) -> bool:
        """Whether a text looks like a value of this moment, such as a time stamp of today."""
        if self.has_one_response and any(one.fullmatch(text) for one in (_UUID, _HEX_ID, _LONG_NUMBER, _STAMP)):
            return True
        if match := _ISO_DATE.match(text):
            try:
                return self.is_near(date(int(match[1]), int(match[2]), int(match[3])), has_time=len(text) > 10)
            except ValueError:
                return False
        if text.isascii() and text.isdigit() and len(text) in _EPOCH_DIGITS:
            return abs(int(text[:10]) - self.now.timestamp()) < _NEAR_NOW.total_seconds()
        return text == str(self.now.year)

    def is_near(self, day: date, *, has_time: bool = False) -> bool:
        """Whether a day is today, or near today and the answer depends on the day."""
        distance = abs(day - self.now.date())
        if has_time and not self.is_relative:
            return distance == timedelta(0)
        return distance == timedelta(0) or (self.is_relative and distance <= _NEAR_NOW)


def iter_leaf_texts(value: JsonValue) -> Iterator[str]:
    """Yield the texts and numbers of a JSON value, without keys, true, false and null."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case list():
            for member in value:
                yield from iter_leaf_texts(member)
        case dict():
            for member in value.values():
                yield from iter_leaf_texts(member)


def _is_uncased_name(text: str) -> bool:
    return _MIN_NAME <= len(text) <= _MAX_FACT and text.lower() == text.upper() and any(map(str.isalpha, text))


def _iter_named_texts(value: JsonValue) -> Iterator[str]:
    """Yield the texts that have a name of their own, and are no members of a list."""
    for member in value.values() if isinstance(value, dict) else ():
        if isinstance(member, str):
            yield member
        else:
            yield from _iter_named_texts(member)


class _KnownTexts:
    """Texts of the question, of the arguments and of the results of tools, in which names are looked up."""

    def __init__(self, question: str, responses: Sequence[Response]) -> None:
        calls = [call for response in responses for call in response.tool_calls]
        self.question = question
        params = {text for call in calls for text in iter_leaf_texts(call.params)}
        results = {text for call in calls for text in iter_leaf_texts(call.result)}
        self.has_results = bool(results)
        """Whether the target reports what its tools returned."""
        self._tool_texts = "\n".join((*sorted(params), *sorted(results)))[:_MAX_KNOWN]
        self._found: dict[tuple[str, bool, bool], bool] = {}
        self.has_same_wording = len(responses) > 1 and len({response.text for response in responses}) == 1
        """Whether all of several responses have the same text."""
        self.uncased_params = [text for text in sorted(params) if _is_uncased_name(text)][:_MAX_FOUND]
        """Arguments in a script without capital letters."""
        self._question_words = {word.casefold() for word in _WORD.findall(question)}
        self._param_words = {text.casefold() for call in calls for text in _iter_named_texts(call.params)}
        short = (text for call in calls for text in _iter_short_texts(call.result))
        self._result_words = {word.casefold() for text in short for word in _WORD.findall(text)}

    def has_name(self, name: str, *, exact: bool, only_tools: bool) -> bool:
        """Whether the name stands in a text of a tool or, unless `only_tools`, in the question.

        `exact`: with the same capital letters.
        """
        key = name, exact, only_tools
        if key not in self._found:
            text = self._tool_texts if only_tools else f"{self.question}\n{self._tool_texts}"
            flags = re.NOFLAG if exact else re.IGNORECASE
            self._found[key] = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, flags) is not None
        return self._found[key]

    def has_tool_word(self, word: str) -> bool:
        """Whether a tool returned the word, or the question and an argument of a tool have it."""
        folded = word.casefold()
        forms = {folded, folded.removesuffix("s"), f"{folded}s"}
        if folded in self._result_words:
            return True
        return not forms.isdisjoint(self._question_words) and not forms.isdisjoint(self._param_words)


class _FactFinder:
    """Finds the facts of one text."""

    def __init__(self, known: _KnownTexts, clock: Clock) -> None:
        self._known = known
        self._clock = clock

    def iter_facts(self, text: str) -> Iterator[ResponseFact]:
        """Yield the facts in the order of the text, each once."""
        length = max(len(text), 1)
        names = list(self._iter_names(text))
        named = {fact.text.casefold() for _, fact in names}
        words = (one for one in self._iter_plain_words(text) if one[1].text not in named)
        found = [*self._iter_numbers(text), *names, *words]
        seen: set[str] = set()
        for begin, fact in sorted(found, key=lambda one: one[0]):
            if fact.key in seen:
                continue
            if len(seen) >= _MAX_FOUND:
                return
            seen.add(fact.key)
            if is_safe_text(fact.text) and len(fact.text) <= _MAX_FACT and _can_find(fact, text):
                yield ResponseFact(fact.text, fact.kind, fact.pattern, begin / length)

    def _iter_numbers(self, text: str) -> Iterator[tuple[int, ResponseFact]]:
        lists = {match.start(1) for match in _LIST_NUMBER.finditer(text)}
        for match in _FACT.finditer(text):
            if match.start() in lists or not self._is_stable(match):
                continue
            yield match.start(), ResponseFact(match[0], FactKind.NUMBER, _build_number_pattern(match))
        for match in _NUMBER_WORD.finditer(text):
            pattern = _build_integer_pattern(_NUMBER_WORDS[match[0].lower()])
            yield match.start(), ResponseFact(match[0].lower(), FactKind.NUMBER, pattern)

    def _is_stable(self, match: re.Match[str]) -> bool:
        text = match[0]
        if text in self._known.question:
            return True
        if match["day_first"] or match["month_first"]:
            return not any(map(self._clock.is_near, _iter_days(match, self._clock.now.year)))
        return not self._clock.is_volatile(text)

    def _iter_names(self, text: str) -> Iterator[tuple[int, ResponseFact]]:
        """Yield names: words with capital letters.

        If they begin a sentence, if the language writes all nouns so, or if the target says what its tools returned,
        only names that the question or a tool has.
        """
        capitals_say_nothing = _writes_nouns_with_capitals(text)
        dates = [match.span() for match in _FACT.finditer(text) if match["day_first"] or match["month_first"]]
        for begin, words in _iter_capital_runs(text):
            if _AFTER_NUMBER.search(text[max(0, begin - 3) : begin]):
                continue
            kept = [(at, word) for at, word in words if not any(first <= at < last for first, last in dates)]
            while kept and kept[0][1] in _NO_NAMES:
                kept = kept[1:]
            at_start = bool(kept) and kept[0][0] == begin and self._is_start_of(text, begin)
            if at_start or capitals_say_nothing or self._known.has_results:
                kept = self._trim_to_known(
                    kept, exact=at_start or capitals_say_nothing, only_tools=capitals_say_nothing
                )
            name = " ".join(word for _, word in kept)
            if len(name) >= _MIN_NAME and name not in _NO_NAMES:
                yield kept[0][0], ResponseFact(name, FactKind.NAME, _build_name_pattern(name))
        for name in self._known.uncased_params:
            if (at := text.find(name)) >= 0:
                yield at, ResponseFact(name, FactKind.NAME)

    def _trim_to_known(self, words: list[tuple[int, str]], *, exact: bool, only_tools: bool) -> list[tuple[int, str]]:
        """Return the longest end of the run that the question or a tool has, or its longest beginning, or nothing.

        `exact`: with the same capital letters, because those of the response say nothing. `only_tools`: in the question
        they say nothing either.
        """
        ends = [words[first:] for first in range(len(words))]
        beginnings = [words[:last] for last in range(len(words) - 1, 0, -1)]
        for part in (*ends, *beginnings):
            if self._known.has_name(" ".join(word for _, word in part), exact=exact, only_tools=only_tools):
                return part
        return []

    def _iter_plain_words(self, text: str) -> Iterator[tuple[int, ResponseFact]]:
        """Yield words of the tools, if the target writes the same text each time, so that no other wording is known."""
        for match in _WORD.finditer(text) if self._known.has_same_wording else ():
            word = match[0]
            is_plain = word.islower() or (word[1:].islower() and self._is_start_of(text, match.start()))
            if is_plain and _is_content_word(word) and self._known.has_tool_word(word):
                yield match.start(), _build_word_fact(word)

    @staticmethod
    def _is_start_of(text: str, at: int) -> bool:
        return _SENTENCE_START.search(text[max(0, at - 20) : at]) is not None


def _iter_capital_runs(text: str) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Yield runs of words with a capital letter that only single blanks separate, each with its place.

    A run that is too long for a name is a heading, or no text.
    """
    run: list[tuple[int, str]] = []
    end = -1
    for match in _WORD.finditer(text):
        word = match[0]
        is_capital = word[0].isupper() and not any(sign.isdigit() for sign in word)
        if run and (not is_capital or text[end : match.start()] != " "):
            if len(run) <= _MAX_NAME_WORDS:
                yield run[0][0], run
            run = []
        if is_capital:
            word = re.sub(r"['’]s$", "", word)
            run.append((match.start(), word))
            end = match.start() + len(word)
    if run and len(run) <= _MAX_NAME_WORDS:
        yield run[0][0], run


def _writes_nouns_with_capitals(text: str) -> bool:
    words = {match[0] for match in _WORD.finditer(text) if match[0].islower()}
    return len(words & _NOUN_CAPITALS) >= _MIN_NOUN_CAPITALS


def _build_name_pattern(name: str) -> str | None:
    """Return a pattern for a short name, which may be a part of a longer word; None for a long one."""
    return rf"\b{re.escape(name)}\b" if len(name) <= 3 and name.isascii() and name.isalnum() else None


def _can_find(fact: ResponseFact, text: str) -> bool:
    """Whether the pattern of the fact finds it where it stands, such as not within a run of digits and dots."""
    return fact.pattern is None or Regex(fact.pattern).find(text) is not None


def _build_number_pattern(match: re.Match[str]) -> str | None:
    """Return the ECMAScript pattern that finds this number and no longer one; None where its text is enough."""
    if match["stamp"] or match["iso"]:
        return None
    if match["code"]:
        return None if len(match[0]) >= 5 else rf"\b{_escape_pattern(match[0])}\b"
    if match["day_first"] or match["month_first"]:
        day, month = _get_day_and_month(match)
        short = f"{month[:3]}({month[3:]})?" if len(month) > 3 else month
        ordinal = f"({_get_ordinal(day)})?"
        return rf"\b{day}{ordinal} (of )?{short}\b|\b{short} {day}{ordinal}\b"
    text = match[0]
    sign = ""
    if text[0] in "-\N{MINUS SIGN}":
        sign, text = "[-\N{MINUS SIGN}]", text[1:]
    if re.fullmatch(r"\d+\.\d+|\d\d:\d\d", text):
        return rf"{sign or _WORD_BOUNDARY}{_escape_pattern(text)}(?!\d)"
    if sign:
        return rf"{sign}{_escape_pattern(text)}(?![.,:]?\d)"
    return _build_integer_pattern(text)


def _build_integer_pattern(digits: str) -> str:
    """Return the pattern that finds a number and no longer one; a small number also as a word."""
    pattern = rf"(?<!\d[.,:]?){_escape_pattern(digits)}(?![.,:]?\d)"
    word = _WORDS_BY_NUMBER.get(digits)
    return rf"{pattern}|\b[{word[0].upper()}{word[0]}]{word[1:]}\b" if word else pattern


def _build_word_fact(word: str) -> ResponseFact:
    """Build the fact of a word, which may also begin a sentence; a plural also in the singular.

    ECMAScript finds the ends of words only where these are ASCII: another word is found as it is.
    """
    if not word.isascii():
        return ResponseFact(word, FactKind.WORD)
    word = word.lower()
    plural = f"{word[1:-1]}s?" if word.endswith("s") and not word.endswith("ss") else word[1:]
    return ResponseFact(word, FactKind.WORD, rf"\b[{word[0].upper()}{word[0]}]{plural}\b")


def _escape_pattern(text: str) -> str:
    """Escape a text for an ECMAScript pattern, and no more of it than necessary."""
    return re.sub(r"([\\^$.|?*+()\[\]{}/])", r"\\\1", text)


def _get_day_and_month(match: re.Match[str]) -> tuple[int, str]:
    day, month = (match["day1"], match["month1"]) if match["day_first"] else (match["day2"], match["month2"])
    return int(day), next(one for one in _MONTHS if one.startswith(month))


def _get_ordinal(day: int) -> str:
    if 11 <= day <= 13:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


def _iter_days(match: re.Match[str], year: int) -> Iterator[date]:
    """Yield the days that a date without a year may be."""
    day, month = _get_day_and_month(match)
    for one in (year - 1, year, year + 1):
        with suppress(ValueError):  # 31 June, or 29 February
            yield date(one, _MONTHS.index(month) + 1, day)


def _drop_contained(facts: Sequence[ResponseFact]) -> list[ResponseFact]:
    """Leave out plain texts that are a part of another plain text."""
    texts = [fact.text for fact in facts if fact.pattern is None]
    return [
        fact
        for fact in facts
        if fact.pattern is not None or not any(fact.text != other and fact.text in other for other in texts)
    ]


def _choose_facts(facts: Sequence[ResponseFact]) -> list[ResponseFact]:
    """Choose as many facts as a case may have, spread over the response: half an answer must be noticed."""
    if len(facts) <= DRAFT_FACTS:
        return list(facts)
    step = (len(facts) - 1) / (DRAFT_FACTS - 1)
    return [facts[round(number * step)] for number in range(DRAFT_FACTS)]


def has_fact_in_second_half(facts: Iterable[ResponseFact]) -> bool:
    """Whether the first place of some fact is in the second half of the response."""
    return any(fact.place >= 0.5 for fact in facts)


def is_masked(text: str) -> bool:
    """Whether a part of the text was masked."""
    return MASK in text
