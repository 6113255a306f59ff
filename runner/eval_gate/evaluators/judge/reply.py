"""What a judge's reply says: the first valid JSON object in it, whatever stands around it.

Source: agentv evaluation spec, "Parse JSON evaluator response"; agentv behaviour 6.1.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeVar

from eval_gate.evaluators.judge.prompt import MAX_ITEMS
from eval_gate.evaluators.wording import cut
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.foreign.json import one_score, refuse_constant
from eval_gate.text.foreign.well_formed import well_formed

MAX_REPLY: Final = limits.VERDICT_CHARACTERS
"""Characters of a reply that are looked at."""
MAX_WORK: Final = 500_000
"""What may be spent on one reply: characters that were read in vain, and `ATTEMPT_COST` for each beginning."""
ATTEMPT_COST: Final = 500
MAX_QUOTES: Final = 20
"""Verdicts quoted from the answer that are passed over before the reply counts as unreadable."""
MAX_ITEM: Final = 500
"""Characters of a hit, a miss or a dimension's reasoning that are kept."""
MAX_REASONING: Final = 2_000
MAX_SHOWN: Final = 30
"""Characters of a score that is of another scale."""
ROUNDING: Final = 1e-6
"""The share of a scale by which a score may be beyond its ends: what is computed is rounded."""

_START: Final = re.compile(r'\{[ \t\r\n]*+"')
_FENCE_OPEN: Final = re.compile(r"\s*+(?:```\w*+\s*+)?+")
_FENCE_CLOSE: Final = re.compile(r"\s*+(?:```\s*+)?+")

Read = TypeVar("Read")


class JudgeVerdict(FrozenStruct):
    """A judge's grade: `score` 0..1, at most four hits and misses, none of them blank."""

    score: float
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str | None = None
    outside: str | None = None
    """The score as it was given, where it was outside of 0..1 by more than rounding."""


def read_verdict(reply: str, candidate: str = "") -> JudgeVerdict | None:
    """The first valid verdict in a reply to a question about `candidate`; None when there is none."""
    return first_valid(reply, candidate, _verdict)


def _verdict(found: dict[str, JsonValue]) -> JudgeVerdict | None:
    """Valid is an object with a finite number `score`; everything else in it may be missing or wrong."""
    score = number(found.get("score"))
    if score is None:
        return None
    return JudgeVerdict(
        clamped(score, 1),
        tuple(islice(texts_in(found.get("hits")), MAX_ITEMS)),
        tuple(islice(texts_in(found.get("misses")), MAX_ITEMS)),
        text_of(found.get("reasoning")),
        None if on_scale(score, 1) is not None else shown_score(score),
    )


def first_valid(reply: str, candidate: str, read: Callable[[dict[str, JsonValue]], Read | None]) -> Read | None:
    """What `read` makes of the first object it accepts; None when it accepts none.

    An object that stands among other text and stands in the candidate too, but for white space, is a quotation and
    no verdict. A reply that is nothing but the object (a fence around it is nothing) is always the judge's own.
    """
    squeezed: str | None = None
    quotes = 0
    for value, start, end in _objects(reply[:MAX_REPLY]):
        verdict = read(value)
        if verdict is None:
            continue
        if _is_whole(reply, start, end):
            return verdict
        squeezed = _squeezed(candidate) if squeezed is None else squeezed
        if _squeezed(reply[start:end]) not in squeezed:
            return verdict
        quotes += 1
        if quotes == MAX_QUOTES:
            break
    return None


def _objects(text: str) -> Iterator[tuple[dict[str, JsonValue], int, int]]:
    """Every JSON object from the left, nested ones after the one around them, with where it begins and ends.

    Hostile replies make the search end early, never long: each beginning and each character read has its price.
    """
    work = MAX_WORK
    for match in _START.finditer(text):
        start = match.start()
        try:
            value, end = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            end = error.pos
        except (ValueError, RecursionError):  # NaN, a number of thousands of digits, nested too deep: place unknown
            end = len(text)
        else:
            yield value, start, end
        work -= ATTEMPT_COST + end - start
        if work <= 0:
            return


_DECODER: Final = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=one_score)


def _is_whole(reply: str, start: int, end: int) -> bool:
    before, after = _FENCE_OPEN.match(reply), _FENCE_CLOSE.fullmatch(reply, end)
    return before is not None and before.end() == start and after is not None


def _squeezed(text: str) -> str:
    return "".join(text.split())


def number(value: JsonValue) -> float | None:
    """A finite number, or None: true is no number, and `1e999` is none either."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def clamped(score: float, limit: float) -> float:
    """The score within 0..limit; an integer may have thousands of digits."""
    return float(min(max(score, 0), limit)) + 0.0


def on_scale(score: float, limit: float) -> float | None:
    """The score, where it is from 0 to `limit` but for what rounding adds; None for a score of another scale."""
    rounding = ROUNDING * limit
    return clamped(score, limit) if -rounding <= score <= limit + rounding else None


def shown_score(score: float) -> str:
    """The score as it was given, cut: an integer may have thousands of digits."""
    return cut(str(score), MAX_SHOWN)


def text_of(value: JsonValue, limit: int = MAX_REASONING) -> str | None:
    """A trimmed, bounded text that UTF-8 can hold; None for a blank one and for anything else."""
    return cut(well_formed(value).strip(), limit) or None if isinstance(value, str) else None


def texts_in(value: JsonValue) -> Iterator[str]:
    """The texts of a list of hits or misses, as `text_of` has them."""
    texts = (text_of(member, MAX_ITEM) for member in (value if isinstance(value, list) else []))
    return (text for text in texts if text is not None)
