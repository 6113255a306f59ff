"""Find facts: what all responses to a question share beyond the words of the question.

Numbers, dates, codes and names are always facts. Ordinary words are facts only if they are nearly the whole response,
or if no response to another question has them. A word of the question is a fact only as one of the alternatives that
the question offers, or if a tool was called with it or returned it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Final, TypeAlias

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.limits import DRAFT_FACTS, STORED_RESPONSE
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.json_values import iter_leaves
from eval_gate.text.mask import MASK
from eval_gate.text.number_search import NumberToken, iter_numbers
from eval_gate.text.safe_output import INVISIBLE
from eval_gate.text.untrusted.surrogates import to_well_formed
from eval_gate.text.volatile_words import UUID

_LIST_NUMBER: Final = re.compile(r"^[ \t]*(\d{1,3})[.)][ \t]", re.MULTILINE)
"""The number of an entry of a list, which is form and not content."""
_WORD: Final = re.compile(r"(?<!\w)[^\W_](?:[\w'’&]|-(?=\w))*")
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:;\n\r*#>|•–—\"“”„(\[{/]|[-+]\s)\s{0,20}$")
_NO_NAMES: Final = frozenset(
    {
        *("I", "I'm", "I’m", "I'll", "I’ll", "I've", "I’ve", "I'd", "I’d", "OK", "Ok", "Yes", "No", "Please", "Sorry"),
        *("EUR", "USD", "US", "GBP", "CHF", "JPY", "CNY", "INR", "CAD", "AUD", "SEK", "NOK", "DKK", "PLN", "BRL"),
        *("AI", "API", "URL", "JSON", "The", "A", "An", "You", "We", "It", "This", "That"),
    }
)
"""Words with a capital letter that are no names; units are wording, since 4 EUR are 4 euros."""
_AFTER_NUMBER: Final = re.compile(r"\d[.)]? ?$")
"""What stands before a unit."""
_NOUN_CAPITALS: Final = frozenset(
    {"der", "die", "das", "und", "ist", "nicht", "ein", "eine", "für", "mit", "auf", "sie", "im", "zu"}
)
"""Words of a language that capitalizes every noun."""
_MIN_NOUN_CAPITALS: Final = 3
_MIN_NAME: Final = 2
_MAX_NAME_WORDS: Final = 8
_MAX_COMPARED: Final = 300
"""Facts of one response that are compared with those of the others."""
_MIN_LOWER_WORD: Final = 4
_FEW_WORDS: Final = 3
_MIN_OTHER_ANSWERS: Final = 5
"""Other questions that are needed to distinguish the agent's wording from the facts of one response."""
_FIRST_CLAUSE: Final = re.compile(r"\s*([^\W\d_]+)\s*(?:[.,;:!?\N{EN DASH}\N{EM DASH}-]|$)")
_OR: Final = re.compile(r"\b(?:or|oder|ou)\b", re.IGNORECASE)
"""Joins the alternatives of a question: in English, German, and in French and Portuguese."""
_MIN_ALTERNATIVE: Final = 3
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
"""What an expectation must not have: invisible signs, masked text, and what a format may read as a token."""
_UUID: Final = re.compile(UUID)
_HEX_ID: Final = re.compile(r"(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,}", re.IGNORECASE)
_LONG_NUMBER: Final = re.compile(r"\d{9,}")
_ISO_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
_EPOCH_DIGITS: Final = (10, 13)
_NEAR_NOW: Final = timedelta(days=8)
"""Dates within this time are relative, if the question is."""
_RELATIVE_TIME: Final = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|now|currently|latest|recent|(?:this|next|last|coming|past)\s+\w+|next|ago)\b",
    re.IGNORECASE,
)
"""Words of a question whose answer depends on the day on which it is asked."""


class ResponseFact(FrozenStruct):
    """One fact of a response: its text, and the pattern that finds a word; None where the text alone is enough.

    `place` is where it first stands, as a share of the response.
    """

    text: str
    pattern: str | None = None
    place: float = 0.0
    is_number: bool = False
    """Whether it is a number or date, which matches in every notation."""


class SharedFacts(FrozenStruct):
    """Facts that all responses to a question have, and texts of those that only some have."""

    facts: tuple[ResponseFact, ...] = ()
    word_groups: tuple[tuple[str, ...], ...] = ()
    """Groups of words that need one match each: another wording may replace a word."""
    differing: tuple[str, ...] = ()
    of_now: tuple[str, ...] = ()
    """Texts that look like values of the moment of the responses, and are no facts."""
    omitted_count: int = 0


class Wording(FrozenStruct):
    """The words of all responses of an agent: a word in responses to several questions is no fact of one of them."""

    counts: Mapping[str, int] = {}
    """Number of questions whose answers have a word."""
    size: int = 0
    """Number of questions whose answers were counted."""

    @classmethod
    def from_answers(cls, answers: Iterable[Sequence[Response]]) -> Wording:
        """Count the words of the responses to each question."""
        words = [
            {word.casefold() for one in responses for word in _WORD.findall(one.text[:STORED_RESPONSE])}
            for responses in answers
        ]
        return cls(Counter(word for one in words for word in one), len(words))

    def is_own(self, word: str, *, is_constant: bool) -> bool:
        """Whether only responses to one question have this word; with too few questions, whether it `is_constant`."""
        if self.size <= _MIN_OTHER_ANSWERS:
            return is_constant
        return self.counts.get(word.casefold(), 0) <= 1


def find_shared_facts(
    question: str, responses: Sequence[Response], moment: datetime | None = None, wording: Wording | None = None
) -> SharedFacts:
    """Find the facts that every response to the question has, in their order in the first response."""
    if not responses:
        return SharedFacts()
    texts = [to_well_formed(response.text[:STORED_RESPONSE]) for response in responses]
    known_texts = _KnownTexts(question, responses, texts)
    finder = _FactFinder(known_texts, Clock.from_prompt(question, len(responses), moment))
    by_response = [finder.find_facts(text) for text in texts]
    _add_names_of_others(by_response, texts)
    shared, differing = _compare_facts(by_response)
    groups = list(_iter_word_groups(responses, texts, [fact.text for fact in shared]))
    if not known_texts.has_same_wording:
        groups = [group for group in groups if len(group) >= _MIN_GROUP]
    else:  # no other wording is known: each word is expected
        places = ((word, texts[0].find(word)) for word in dict.fromkeys(word for group in groups for word in group))
        shared += [replace(_build_word_fact(word), place=at / len(texts[0])) for word, at in places]
        groups = []
    words = _find_shared_words(known_texts, texts, shared, wording or Wording())
    shared = sorted(_drop_contained([*shared, *words.facts]), key=lambda fact: fact.place)
    chosen = _choose_facts(shared)
    shared_texts = {fact.text.casefold() for fact in shared}
    return SharedFacts(
        tuple(chosen),
        (*groups, *words.word_groups),
        tuple(text for text in differing if text.casefold() not in shared_texts),
        tuple(finder.of_now),
        len(shared) - len(chosen),
    )


def _add_names_of_others(by_response: Sequence[_FactsByKeys], texts: Sequence[str]) -> None:
    """Add each name that all responses have to the facts of all: in some it may begin a sentence or a longer name."""
    names = {fact.text: fact for facts in by_response for fact in facts.values() if not fact.is_number}
    for name, fact in list(names.items())[:_MAX_COMPARED]:
        if not all(name in text for text in texts):
            continue
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        matches = [match for text in texts if (match := word.search(text)) is not None]
        if len(matches) == len(texts):
            for facts, match in zip(by_response, matches, strict=True):
                facts.setdefault((name,), replace(fact, place=match.start() / len(match.string)))


def _compare_facts(by_response: Sequence[_FactsByKeys]) -> tuple[list[ResponseFact], tuple[str, ...]]:
    """Return the first response's facts that share a key with all other responses, and the texts of other facts."""
    everywhere = set.intersection(*({key for keys in facts for key in keys} for facts in by_response))
    shared: dict[str, ResponseFact] = {}
    for keys, fact in by_response[0].items():
        key = next((one for one in keys if one in everywhere), None)
        if key is not None:
            is_as_written = key == keys[0]
            shared.setdefault(key, fact if is_as_written else replace(fact, text=key))
    differing = dict.fromkeys(
        fact.text for facts in by_response for keys, fact in facts.items() if everywhere.isdisjoint(keys)
    )
    return list(shared.values()), tuple(differing)


def _find_shared_words(
    known_texts: _KnownTexts, texts: Sequence[str], facts: Sequence[ResponseFact], wording: Wording
) -> SharedFacts:
    """Find the words that all texts share, unless there are other facts: another wording must not fail."""
    if facts:
        return SharedFacts()
    by_text = [{_lower_first(match[0]): match for match in reversed([*_WORD.finditer(text)])} for text in texts]
    rests = [{word for word in words if not known_texts.is_repeated(word)} for words in by_text]
    everywhere = set.intersection(*rests)
    shared = [word for word in reversed(by_text[0]) if word in everywhere and word.isalpha()]
    chosen = [word for word in shared if all(_stands_alone(word, text) for text in texts)]
    more: Sequence[str] = ()
    if not chosen:
        content = [word for word in shared if _is_content_word(word)]
        if min(map(len, rests)) <= _FEW_WORDS:
            chosen = content or shared
        else:
            own = [word for word in content if wording.is_own(word, is_constant=known_texts.has_same_wording)]
            chosen, more = (own, ()) if len(own) <= _FEW_WORDS else ([], own[:_MAX_GROUP])
    length = max(len(texts[0]), 1)
    word_facts = [
        replace(_build_word_fact(word), text=match[0], place=match.start() / length)
        for word, match in ((word, by_text[0][word]) for word in chosen)
    ]
    return SharedFacts(tuple(word_facts), (tuple(more),) if more else ())


def _stands_alone(word: str, text: str) -> bool:
    """Whether a text begins with this word and a sign that ends a clause, or is only this word."""
    first = _FIRST_CLAUSE.match(text)
    return first is not None and _lower_first(first[1]) == word


def _iter_word_groups(
    responses: Sequence[Response], texts: Sequence[str], facts: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """Yield the words of each tool result that all responses have, without those of facts; a list is one group."""
    fact_words = {word.casefold() for text in facts for word in _WORD.findall(text)}
    groups: set[tuple[str, ...]] = set()
    for call in responses[0].tool_calls:
        for result in _iter_short_texts(call.result):
            words = dict.fromkeys(word.lower() for word in _WORD.findall(result) if _is_content_word(word))
            group = tuple(
                word
                for word in words
                if word not in fact_words and all(re.search(rf"(?<!\w){re.escape(word)}", text) for text in texts)
            )
            if group and group not in groups and len(groups) < _MAX_GROUPS:
                groups.add(group)
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
    """Moment of the responses, to distinguish its values from lasting ones."""

    moment: datetime
    is_relative: bool = False
    """Whether the response to the question depends on the day."""
    has_one_response: bool = False
    """Whether ids and time stamps count as volatile, because a second response is missing."""

    @classmethod
    def from_prompt(cls, question: str, response_count: int, moment: datetime | None = None) -> Clock:
        """Build the clock for the responses to a question."""
        return cls(moment or datetime.now(UTC), _RELATIVE_TIME.search(question) is not None, response_count == 1)

    def is_volatile(self, text: str) -> bool:
        """Whether a text looks like a value of this moment, such as a time stamp of today."""
        if self.has_one_response and any(one.fullmatch(text) for one in (_UUID, _HEX_ID, _LONG_NUMBER, _STAMP)):
            return True
        if _ISO_DATE.match(text):
            with suppress(ValueError):
                return self.is_near(date.fromisoformat(text[:10]))
        if text.isascii() and text.isdigit() and len(text) in _EPOCH_DIGITS:
            return abs(int(text[:10]) - self.moment.timestamp()) < _NEAR_NOW.total_seconds()
        return text == str(self.moment.year)

    def is_near(self, day: date) -> bool:
        """Whether a day is today, or near today and the answer depends on the day."""
        return abs(day - self.moment.date()) <= (_NEAR_NOW if self.is_relative else timedelta(0))


def iter_leaf_texts(value: JsonValue) -> Iterator[str]:
    """Yield the texts and numbers of a JSON value, without keys, true, false and null."""
    return (str(leaf) for _, leaf in iter_leaves(value) if leaf is not None and not isinstance(leaf, bool))


def list_alternatives(question: str) -> frozenset[str]:
    """List words that a question offers next to an "or" or before its commas: `Lisbon` of `Lisbon or Porto?`."""
    alternatives: set[str] = set()
    for joint in _OR.finditer(question):
        left_parts = re.split(r"[.;:?!\n]", question[: joint.start()])[-1].split(",")
        right_part = re.split(r"[,.;:?!\n]", question[joint.end() :])[0]
        sides = [_WORD.findall(one) for one in (*left_parts, right_part)]
        for number, words in enumerate(sides):
            other_words = {word.casefold() for at, one in enumerate(sides) if at != number for word in one}
            in_order = words if number == len(sides) - 1 else reversed(words)
            own = (one for one in in_order if one.casefold() not in other_words)
            alternatives.update([one.casefold() for one in own if len(one) >= _MIN_ALTERNATIVE or one.isdigit()][:1])
    return frozenset(alternatives)


class _KnownTexts:
    """Texts of the question, of the arguments and results of tools, and of all responses."""

    def __init__(self, question: str, responses: Sequence[Response], texts: Sequence[str]) -> None:
        calls = [call for response in responses for call in response.tool_calls]
        params = {text for call in calls for text in iter_leaf_texts(call.params)}
        results = {text for call in calls for text in iter_leaf_texts(call.result)}
        self.has_results = bool(results)
        """Whether the target reports what its tools returned."""
        self._tool_texts = "\n".join((*sorted(params), *sorted(results)))[:_MAX_KNOWN]
        self._names_in_tools: dict[tuple[str, bool], bool] = {}
        self.has_same_wording = len(texts) > 1 and len(set(texts)) == 1
        self.uncased_params = [
            text
            for text in sorted(params)
            if _MIN_NAME <= len(text) <= _MAX_FACT and text.lower() == text.upper() and any(map(str.isalpha, text))
        ][:_MAX_COMPARED]
        """Arguments in a script without capital letters."""
        self._alternatives = list_alternatives(question)
        self._question_words = {word.casefold() for word in _WORD.findall(question)}
        self._question_numbers = {key for token in iter_numbers(question) for key in token.keys}
        self._tool_numbers = {key for token in iter_numbers(self._tool_texts) for key in token.keys}
        self._tool_words = {word.casefold() for word in _WORD.findall(self._tool_texts)}
        self._names = {
            word
            for text in texts
            for begin, run in _iter_capital_runs(text)
            for at, word in run
            if at > begin or not _is_sentence_start(text, begin)
        }

    def is_repeated(self, word: str) -> bool:
        """Whether a word only repeats the question: no tool has it, and it is no alternative that is offered."""
        folded = word.casefold()
        forms = {folded, folded.removesuffix("s"), f"{folded}s"}
        if folded in self._alternatives or not forms.isdisjoint(self._tool_words):
            return False
        return not forms.isdisjoint(self._question_words)

    def is_repeated_number(self, token: NumberToken) -> bool:
        """Whether a number only repeats the question: no tool has it, and it is no alternative that is offered."""
        if self._question_numbers.isdisjoint(token.keys) or not self._tool_numbers.isdisjoint(token.keys):
            return False
        return self._alternatives.isdisjoint({key.casefold() for key in token.keys})

    def has_number(self, token: NumberToken) -> bool:
        return not self._question_numbers.isdisjoint(token.keys)

    def is_name(self, name: str) -> bool:
        """Whether a name has a capital letter in some response where no sentence begins."""
        return all(word in self._names for word in name.split(" "))

    def has_name(self, name: str, *, exact: bool) -> bool:
        """Whether a tool has the name, or the question offers it as an alternative; `exact`: with the same capitals."""
        key = name, exact
        if key not in self._names_in_tools:
            flags = re.NOFLAG if exact else re.IGNORECASE
            match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self._tool_texts, flags)
            self._names_in_tools[key] = match is not None or name.casefold() in self._alternatives
        return self._names_in_tools[key]


_FactsByKeys: TypeAlias = dict[tuple[str, ...], ResponseFact]
"""Facts of one response. Two that have a key in common are the same."""


class _FactFinder:
    def __init__(self, known_texts: _KnownTexts, clock: Clock) -> None:
        self._known_texts = known_texts
        self._clock = clock
        self.of_now: dict[str, None] = {}

    def find_facts(self, text: str) -> _FactsByKeys:
        length = max(len(text), 1)
        names = [(begin, (fact.text,), fact) for begin, fact in self._iter_names(text)]
        facts: _FactsByKeys = {}
        for begin, keys, fact in sorted([*self._iter_numbers(text), *names], key=lambda one: one[0]):
            if len(facts) < _MAX_COMPARED and is_safe_text(fact.text) and len(fact.text) <= _MAX_FACT:
                facts.setdefault(keys, replace(fact, place=begin / length))
        return facts

    def _iter_numbers(self, text: str) -> Iterator[tuple[int, tuple[str, ...], ResponseFact]]:
        lists = {match.start(1) for match in _LIST_NUMBER.finditer(text)}
        for token in iter_numbers(text):
            if token.start in lists or self._known_texts.is_repeated_number(token):
                continue
            if not self._is_stable(token):
                self.of_now[token.text] = None
                continue
            yield token.start, token.keys, ResponseFact(token.text, is_number=True)

    def _is_stable(self, token: NumberToken) -> bool:
        if self._known_texts.has_number(token):
            return True
        if token.day:
            return not any(map(self._clock.is_near, _iter_days(*token.day, self._clock.moment.year)))
        return not self._clock.is_volatile(token.text)

    def _iter_names(self, text: str) -> Iterator[tuple[int, ResponseFact]]:
        """Yield words with capital letters; only known names where these say little or tool results are known."""
        capitals_say_nothing = len(_NOUN_CAPITALS.intersection(_WORD.findall(text))) >= _MIN_NOUN_CAPITALS
        dates = [(one.start, one.start + len(one.text)) for one in iter_numbers(text) if one.kind == "date"]
        for begin, words in _iter_capital_runs(text):
            if _AFTER_NUMBER.search(text[max(0, begin - 3) : begin]):
                continue
            run = [(at, word) for at, word in words if not any(first <= at < last for first, last in dates)]
            while run and run[0][1] in _NO_NAMES:
                run = run[1:]
            at_start = bool(run) and run[0][0] == begin and _is_sentence_start(text, begin)
            if capitals_say_nothing or self._known_texts.has_results:
                run = self._trim_to_known(run, exact=at_start or capitals_say_nothing)
            elif at_start and not self._known_texts.is_name(run[0][1]):
                run = self._trim_to_known(run, exact=True)
            while run and self._known_texts.is_repeated(run[0][1]):
                run = run[1:]
            name = " ".join(word for _, word in run)
            if len(name) >= _MIN_NAME and name not in _NO_NAMES and not self._known_texts.is_repeated(run[-1][1]):
                yield run[0][0], ResponseFact(name, _build_name_pattern(name))
        for name in self._known_texts.uncased_params:
            if (at := text.find(name)) >= 0:
                yield at, ResponseFact(name)

    def _trim_to_known(self, words: list[tuple[int, str]], *, exact: bool) -> list[tuple[int, str]]:
        """Return the longest end of the run that is known, or its longest beginning; `exact` with the same capitals."""
        ends = [words[first:] for first in range(len(words))]
        beginnings = [words[:last] for last in range(len(words) - 1, 0, -1)]
        for part in (*ends, *beginnings):
            if self._known_texts.has_name(" ".join(word for _, word in part), exact=exact):
                return part
        return []


def _is_sentence_start(text: str, at: int) -> bool:
    return _SENTENCE_START.search(text[max(0, at - 20) : at]) is not None


def _iter_capital_runs(text: str) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Yield runs of words with a capital letter, with places; a run too long for a name is a heading, or no text."""
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


def _build_name_pattern(name: str) -> str | None:
    """Return a pattern for a short name, which may be a part of a longer word; None for a long one."""
    return rf"\b{re.escape(name)}\b" if len(name) <= 3 and name.isascii() and name.isalnum() else None


def _build_word_fact(word: str) -> ResponseFact:
    """Build the fact of a word, which may begin a sentence; ECMAScript finds ends only of words that are ASCII."""
    first, rest = word[0], word[1:]
    cases = f"[{first.upper()}{first}]" if len(first.upper()) == 1 and first.upper() != first else first
    if not word.isascii():
        return ResponseFact(word, f"{cases}{rest}")
    has_plural = len(word) >= _MIN_LOWER_WORD and word.endswith("s") and not word.endswith("ss")
    return ResponseFact(word, rf"\b{cases}{f'{rest[:-1]}s?' if has_plural else rest}\b")


def _lower_first(word: str) -> str:
    lower = word[0].lower()
    return lower + word[1:] if len(lower) == 1 else word


def _iter_days(day: int, month: int, year: int) -> Iterator[date]:
    """Yield the days that a date without a year may be."""
    for one in (year - 1, year, year + 1):
        with suppress(ValueError):  # 31 June, or 29 February
            yield date(one, month, day)


def _drop_contained(facts: Sequence[ResponseFact]) -> list[ResponseFact]:
    """Leave out plain texts that are a part of another plain text."""
    texts = [fact.text for fact in facts if not fact.pattern and not fact.is_number]
    return [
        fact
        for fact in facts
        if fact.pattern or fact.is_number or not any(fact.text != other and fact.text in other for other in texts)
    ]


def _choose_facts(facts: Sequence[ResponseFact]) -> list[ResponseFact]:
    """Choose as many facts as a case may have, spread over the response, so that half a response fails."""
    if len(facts) <= DRAFT_FACTS:
        return list(facts)
    step = (len(facts) - 1) / (DRAFT_FACTS - 1)
    return [facts[round(number * step)] for number in range(DRAFT_FACTS)]
