"""Random wording of a response: a share of its words changes, its facts do not.

Synonyms, words that say nothing, another order of the same words. The number of changed words is counted, not assumed:
`count_changed_words` compares two texts word by word.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from math import ceil
from typing import Final, Literal, NamedTuple

from eval_gate.struct import FrozenStruct

SHARE: Final = 0.10
"""Share of the words that changes in each response."""

Kind = Literal["number", "name", "date"]

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "a list of": ("a note with",),
    "a little": ("slightly",),
    "about": ("around", "roughly", "approximately"),
    "adults": ("grown-ups",),
    "after that": ("then", "afterwards"),
    "all day": ("the whole day", "throughout the day"),
    "altogether": ("in total", "all in all"),
    "and arrives": ("and lands",),
    "apart": ("between them",),
    "are free": ("have time", "have nothing planned"),
    "arrive": ("get there", "be with you"),
    "ask a doctor": ("see a doctor", "talk to a doctor"),
    "at least": ("a minimum of",),
    "at most": ("no more than", "up to"),
    "at the current rate": ("at today's rate", "with the current rate"),
    "at today's rate": ("at the current rate", "with today's rate"),
    "begins": ("starts",),
    "best": ("cheapest",),
    "book": ("make an appointment",),
    "bring": ("take along",),
    "broken": ("damaged",),
    "called": ("named", "titled"),
    "can still": ("may still", "are able to"),
    "cancelled": ("called off",),
    "cheapest": ("least expensive", "most affordable"),
    "check in": ("get your room",),
    "christmas": ("the holidays", "the end of the year"),
    "close to": ("near", "next to"),
    "cm": ("centimetres",),
    "colleague": ("member of the team", "coworker"),
    "complete": ("whole",),
    "contains": ("holds", "includes"),
    "cost": ("came to", "amounted to"),
    "currently": ("right now", "at the moment", "now"),
    "damaged": ("broken",),
    "direct": ("non-stop",),
    "doctors": ("physicians",),
    "done": ("all right", "OK"),
    "empty": ("free", "clear"),
    "enough": ("sufficient",),
    "euros": ("EUR",),
    "every age": ("all ages",),
    "excluded": ("not included", "exempt"),
    "expected": ("forecast", "predicted"),
    "explain": ("tell you about",),
    "finally": ("last", "lastly"),
    "find": ("look up", "get"),
    "for free": ("at no cost",),
    "forecast says": ("forecast shows", "outlook is"),
    "gets": ("has", "sees"),
    "hand the parcel in": ("drop the parcel off",),
    "here are": ("these are",),
    "here is": ("this is", "below is"),
    "however": ("but",),
    "i can": ("I am able to", "I could"),
    "id": ("identity card",),
    "if you like": ("if you want", "should you wish"),
    "if you want": ("if you like", "should you wish"),
    "immediately": ("at once", "right away"),
    "in full": ("completely",),
    "in good condition": ("in good shape", "undamaged"),
    "in total": ("altogether", "overall"),
    "is kept": ("will be kept", "stays there"),
    "is on": ("takes place on", "is planned for"),
    "it costs": ("it comes to",),
    "it is currently": ("it's currently", "right now it is"),
    "keep": ("hold on to",),
    "kg": ("kilograms",),
    "lasts": ("takes",),
    "leaves": ("departs",),
    "light rain": ("a little rain", "some light rain"),
    "likely": ("probable", "to be expected"),
    "longer than": ("more than",),
    "look for": ("search for", "find"),
    "look up": ("check", "find"),
    "medicines": ("medication",),
    "message": ("note",),
    "mg": ("milligrams",),
    "most products": ("nearly all products", "almost all products"),
    "nearest": ("closest",),
    "needs up to": ("can take up to",),
    "needs": ("takes", "requires"),
    "nobody": ("no one",),
    "offer": ("option", "deal"),
    "one dose": ("a single dose",),
    "only": ("just",),
    "opened software is": ("software that was opened is", "opened programs are"),
    "pack": ("bring", "take along"),
    "parcel": ("package",),
    "pass on": ("forward",),
    "pharmacy": ("chemist's",),
    "please": ("kindly",),
    "pounds": ("GBP", "British pounds"),
    "print": ("print out",),
    "product": ("item",),
    "products": ("items",),
    "readings": ("values", "measurements"),
    "remember": ("bring", "do not forget"),
    "required": ("mandatory", "compulsory"),
    "roughly": ("about", "around"),
    "send": ("transfer",),
    "share": ("give out", "pass along"),
    "shipped": ("sent", "dispatched"),
    "should arrive": ("is expected to arrive", "will probably arrive"),
    "slightly": ("a bit",),
    "slower": ("less fast",),
    "so that you have": ("which gives you",),
    "somebody near you": ("someone nearby",),
    "something is wrong": ("there is a problem", "you have trouble"),
    "start the return": ("begin the return",),
    "stay overnight": ("spend the night",),
    "stays": ("remains",),
    "sunny": ("clear",),
    "takes": ("needs",),
    "team has": ("group has", "department has"),
    "tell me": ("let me know", "say"),
    "the full price": ("the full amount",),
    "the tax": ("taxes", "sales tax"),
    "there is no fee": ("it is free of charge", "you pay nothing"),
    "three events": ("3 events", "three appointments"),
    "tuesday": ("Tue",),
    "unfortunately not": ("sadly not", "I'm afraid not"),
    "us dollars": ("USD", "American dollars"),
    "usually": ("normally", "generally"),
    "wait": ("leave",),
    "warm": ("thick",),
    "we recommend": ("you should have", "our advice is"),
    "we treat": ("we look after", "we see"),
    "which is about": ("that is about", "which makes about"),
    "while": ("whereas",),
    "with high priority": ("as urgent", "with a high priority"),
    "without insurance": ("if you are not insured",),
    "working days": ("business days", "weekdays"),
    "yes": ("yes indeed", "indeed", "that's right"),
    "you can return": ("you can send back", "you may return"),
    "you get": ("you will get", "you receive"),
    "you have three": ("there are three", "you've got three"),
    "you pay": ("the price is", "you would pay"),
    "you reach them": ("they can be reached",),
    "your next": ("the next",),
    "°c": ("degrees", "degrees Celsius"),
}
OPENINGS: Final = (
    "Sure.",
    "Of course.",
    "Certainly!",
    "Thanks for asking.",
    "Let me see.",
    "Here you go:",
    "I had a look.",
)
CLOSINGS: Final = (
    "I hope this helps.",
    "Let me know if you need more.",
    "Anything else?",
    "Happy to help.",
    "Just ask if something is unclear.",
)

_MARK: Final = re.compile(r"\[(?P<kind>number|name|date):(?P<right>[^\]>]+)>(?P<wrong>[^\]]+)\]")
_CHOICE: Final = re.compile(r"\{(?P<first>[^{}|]*)\|(?P<second>[^{}|]*)\}")
_FACT: Final = re.compile(r"\x00(\d+)\x01")


class Mark(NamedTuple):
    """A fact of a response."""

    kind: Kind
    right: str
    wrong: str


def find_marks(text: str) -> list[Mark]:
    """List the facts of a marked text in the canonical order of its words."""
    canonical = _CHOICE.sub(lambda found: found["first"], text)
    return [_read_mark(found) for found in _MARK.finditer(canonical)]


def plant_mistake(text: str, place: int) -> str:
    """Replace the fact with this index in `find_marks` by its wrong value, in both orders of the words."""
    seen = 0

    def mistake(part: str, wrong: int) -> str:
        marks = iter(range(len(_MARK.findall(part))))
        return _MARK.sub(lambda found: _wrong(found) if next(marks) == wrong else found[0], part)

    parts = []
    for part, choice in _split_choices(text):
        canonical = choice[0] if choice else part
        marks = [_read_mark(found) for found in _MARK.finditer(canonical)]
        at = place - seen
        seen += len(marks)
        if not 0 <= at < len(marks):
            parts.append(part)
        elif choice:
            second = [_read_mark(found) for found in _MARK.finditer(choice[1])]
            same = next((index for index, mark in enumerate(second) if mark == marks[at]), at)
            parts.append(f"{{{mistake(choice[0], at)}|{mistake(choice[1], same)}}}")
        else:
            parts.append(mistake(part, at))
    return "".join(parts)


def render_canonical(text: str) -> str:
    """Return a marked text without its marks, in its canonical wording."""
    return _MARK.sub(lambda found: found["right"], _CHOICE.sub(lambda found: found["first"], text))


def render_randomly(text: str, chance: random.Random, share: float = SHARE) -> str:
    """Return a marked text in a wording of its own: at most this share of its words is changed, rounded up."""
    words = _Words.read(text)
    allowed = ceil(share * len(words.canonical.split()))
    edits = list(words.iter_edits())
    chance.shuffle(edits)
    current, changed = words.draft, 0
    for edit in edits:
        tried = edit(current, chance)
        cost = count_changed_words(words.canonical, words.finish(tried))
        if tried != current and changed < cost <= allowed:
            current, changed = tried, cost
        if changed == allowed:
            break
    return words.finish(current)


def count_changed_words(before: str, after: str) -> int:
    """Count the words that two texts do not share in the same order, of the side that has more of them."""
    old, new = before.lower().split(), after.lower().split()
    same = sum(block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return max(len(old), len(new)) - same


class _Words(FrozenStruct):
    """A marked text in which every fact is one sign that no edit touches."""

    draft: str
    """The canonical text with signs for facts."""
    choices: tuple[tuple[str, str], ...]
    facts: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> _Words:
        facts: list[str] = []

        def sign(found: re.Match[str]) -> str:
            facts.append(found["right"])
            return f"\x00{len(facts) - 1}\x01"

        signed = _MARK.sub(sign, text)
        choices = tuple((found["first"], found["second"]) for found in _CHOICE.finditer(signed))
        return cls(_CHOICE.sub(lambda found: found["first"], signed), choices, tuple(facts))

    @property
    def canonical(self) -> str:
        return self.finish(self.draft)

    def finish(self, draft: str) -> str:
        """Put the facts back."""
        return _FACT.sub(lambda found: self.facts[int(found[1])], draft)

    def iter_edits(self) -> Iterator[Callable[[str, random.Random], str]]:
        """Yield every change of wording that this text allows."""
        yield lambda now, chance: f"{chance.choice(OPENINGS)} {now}"
        yield lambda now, chance: f"{now} {chance.choice(CLOSINGS)}"
        for first, second in self.choices:
            yield lambda now, _, first=first, second=second: now.replace(first, second, 1)
        for phrase in SYNONYMS:
            pattern = re.compile(rf"(?<![\w'-]){re.escape(phrase)}(?![\w'-])", re.IGNORECASE)
            for index, _ in enumerate(pattern.finditer(self.draft)):
                yield lambda now, chance, p=pattern, i=index, w=phrase: _replace_one(
                    now, p, i, chance.choice(SYNONYMS[w])
                )


def _replace_one(text: str, pattern: re.Pattern[str], index: int, word: str) -> str:
    """Replace one of the places where the pattern is found, with the case of its first letter."""
    for at, found in enumerate(pattern.finditer(text)):
        if at == index:
            fitting = word[0].upper() + word[1:] if found[0][0].isupper() else word
            return text[: found.start()] + fitting + text[found.end() :]
    return text


def _split_choices(text: str) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Yield the parts of a text, and for a choice of two orders both of them."""
    end = 0
    for found in _CHOICE.finditer(text):
        yield text[end : found.start()], None
        yield found[0], (found["first"], found["second"])
        end = found.end()
    yield text[end:], None


def _wrong(found: re.Match[str]) -> str:
    """Return a mark whose right value is the wrong one."""
    return f"[{found['kind']}:{found['wrong']}>{found['right']}]"


def _read_mark(found: re.Match[str]) -> Mark:
    kind = found["kind"]
    assert kind in {"number", "name", "date"}
    return Mark(kind, found["right"], found["wrong"])  # type: ignore[arg-type]
