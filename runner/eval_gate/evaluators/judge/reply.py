"""Parser for the replies of LLM judges: the first valid JSON object in a reply.

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
from eval_gate.evaluators.wording import truncate
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.untrusted.bounded_json import refuse_constant, require_single_score
from eval_gate.text.untrusted.surrogates import to_well_formed

MAX_REPLY: Final = limits.VERDICT_CHARACTERS
MAX_WORK: Final = 500_000
"""Budget of one reply: characters read without a result, and `ATTEMPT_COST` for each attempt."""
ATTEMPT_COST: Final = 500
MAX_QUOTES: Final = 20
"""Maximum verdicts quoted from the response that are skipped before the reply counts as unreadable."""
MAX_ITEM: Final = 500
"""Maximum characters of a hit, a miss or a dimension's reasoning."""
MAX_REASONING: Final = 2_000
MAX_SHOWN: Final = 30
"""Maximum characters of a score of another scale."""
ROUNDING: Final = 1e-6
"""Share of a scale by which a rounded score may exceed its ends."""

_START: Final = re.compile(r'\{[ \t\r\n]*+"')
_FENCE_OPEN: Final = re.compile(r"\s*+(?:```\w*+\s*+)?+")
_FENCE_CLOSE: Final = re.compile(r"\s*+(?:```\s*+)?+")

VerdictT = TypeVar("VerdictT")


class JudgeVerdict(FrozenStruct):
    """A judge's verdict: `score` 0..1, at most four hits and misses, none of them blank."""

    score: float
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str | None = None
    raw_score: str | None = None
    """Score as the judge wrote it, if it is outside of 0..1 by more than rounding."""


def read_verdict(reply: str, candidate: str = "") -> JudgeVerdict | None:
    """Return the first valid verdict in a judge's reply about `candidate`, or None."""
    return find_first_valid(reply, candidate, _parse_verdict)


def _parse_verdict(document: dict[str, JsonValue]) -> JudgeVerdict | None:
    """Parse a verdict from an object with a finite number `score`; every other field may be missing or wrong."""
    score = parse_number(document.get("score"))
    if score is None:
        return None
    return JudgeVerdict(
        clamp_score(score, 1),
        tuple(islice(iter_texts(document.get("hits")), MAX_ITEMS)),
        tuple(islice(iter_texts(document.get("misses")), MAX_ITEMS)),
        parse_text(document.get("reasoning")),
        None if fit_to_scale(score, 1) is not None else format_raw_score(score),
    )


def find_first_valid(
    reply: str, candidate: str, read: Callable[[dict[str, JsonValue]], VerdictT | None]
) -> VerdictT | None:
    """Return the result of `read` for the first object in a reply that it accepts, or None.

    An object inside other text is a quotation, and no verdict, if the candidate contains it too; white space is
    ignored in this comparison. A reply that consists only of the object, with or without a fence, is always the
    judge's own.
    """
    squeezed: str | None = None
    quotes = 0
    for value, start, end in _iter_objects(reply[:MAX_REPLY]):
        verdict = read(value)
        if verdict is None:
            continue
        if _is_whole(reply, start, end):
            return verdict
        squeezed = _remove_whitespace(candidate) if squeezed is None else squeezed
        if _remove_whitespace(reply[start:end]) not in squeezed:
            return verdict
        quotes += 1
        if quotes == MAX_QUOTES:
            break
    return None


def _iter_objects(text: str) -> Iterator[tuple[dict[str, JsonValue], int, int]]:
    """Yield JSON objects with their place, outer before inner, within the budget of a reply."""
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


_DECODER: Final = json.JSONDecoder(parse_constant=refuse_constant, object_pairs_hook=require_single_score)


def _is_whole(reply: str, start: int, end: int) -> bool:
    opening, closing = _FENCE_OPEN.match(reply), _FENCE_CLOSE.fullmatch(reply, end)
    return opening is not None and opening.end() == start and closing is not None


def _remove_whitespace(text: str) -> str:
    return "".join(text.split())


def parse_number(value: JsonValue) -> float | None:
    """Return the value if it is a finite number, else None. `true` is not a number, and `1e999` is not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def clamp_score(score: float, limit: float) -> float:
    """Limit a score to the range from 0 to `limit`. The score may be an integer of thousands of digits."""
    return float(min(max(score, 0), limit)) + 0.0


def fit_to_scale(score: float, limit: float) -> float | None:
    """Return a score from 0 to `limit`, with rounding errors removed. Returns None for a score of another scale."""
    rounding = ROUNDING * limit
    return clamp_score(score, limit) if -rounding <= score <= limit + rounding else None


def format_raw_score(score: float) -> str:
    """Format the score as it was given, truncated. An integer may have thousands of digits."""
    return truncate(str(score), MAX_SHOWN)


def parse_text(value: JsonValue, limit: int = MAX_REASONING) -> str | None:
    """Trim a text, truncated to `limit` and encodable as UTF-8; None for a blank one or any other value."""
    return truncate(to_well_formed(value).strip(), limit) or None if isinstance(value, str) else None


def iter_texts(value: JsonValue) -> Iterator[str]:
    """Iterate over the texts of a list of hits or misses, each as `parse_text` returns it."""
    texts = (parse_text(member, MAX_ITEM) for member in (value if isinstance(value, list) else []))
    return (text for text in texts if text is not None)
