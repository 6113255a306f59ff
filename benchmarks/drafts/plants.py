"""Forty planted changes, drawn at random from everything that can change.

Every question gets two changes of different kinds. Which kind, which call, which parameter and which fact is drawn with
a fixed seed, and not chosen by hand.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from benchmarks.drafts.questions import OTHER_TOOLS, QUESTIONS, Call, Question
from benchmarks.drafts.wording import find_marks, plant_mistake
from eval_gate.struct import FrozenStruct, replace

SEED: Final = 43
COUNTS: Final = {
    "tool dropped": 3,
    "tool swapped": 3,
    "tool called twice": 3,
    "parameter lost": 4,
    "parameter altered": 4,
    "parameter of another type": 4,
    "wrong number": 4,
    "wrong name": 3,
    "wrong date": 3,
    "refusal": 3,
    "empty response": 3,
    "half an answer": 3,
}
"""Number of planted changes of each kind."""
PER_QUESTION: Final = 2
_TRIES: Final = 250
"""Draws after which every change of one kind and question was drawn."""
REFUSALS: Final = (
    "I'm sorry, but I can't help with that.",
    "Unfortunately I am not able to answer this question.",
    "I cannot do that for you. Please contact our support team.",
)
OTHER_VALUES: Final = {
    "Ana Costa": "Rita Lopes",
    "CH": "AT",
    "CHK": "XRY",
    "EUR": "SEK",
    "GB": "IE",
    "GBP": "CHF",
    "KE": "TZ",
    "LIS": "FAO",
    "Lisbon": "Madrid",
    "NO": "SE",
    "OPO": "LIS",
    "Okafor": "Osei",
    "OSL": "BGO",
    "Oslo": "Bergen",
    "PT": "ES",
    "Porto": "Vigo",
    "USD": "CAD",
    "ZRH": "GVA",
    "Zurich": "Geneva",
    "adult": "child",
    "blood-pressure": "weight",
    "cardiology": "radiology",
    "damaged": "missing",
    "email": "phone",
    "en": "pt",
    "full": "short",
    "head": "nurse",
    "ibuprofen": "aspirin",
    "me": "team",
    "metric": "imperial",
    "price": "duration",
    "refund-times": "refunds",
    "refunds": "returns",
    "short": "full",
    "software": "media",
    "work": "private",
}
"""What a wrong parameter holds instead of these words."""

Path = tuple[int, tuple[str, ...]]
"""A parameter: the index of the call, and its keys from the outside in."""


class Plant(FrozenStruct):
    """One planted change of the agent."""

    number: int
    kind: str
    question: str
    """Id of the question."""
    detail: str
    """What changes, for people."""
    changed: Question
    """The question as the changed agent answers it."""
    is_half: bool = False
    """Whether the response breaks off in the middle of its words."""


def draw_plants(seed: int = SEED) -> tuple[Plant, ...]:
    """Draw the planted changes, in the order of the questions."""
    chance = random.Random(seed)
    by_id = {question.id: question for question in QUESTIONS}
    drawn = []
    for question_id, kind in _assign_kinds(chance):
        changed, detail = _MAKERS[kind](by_id[question_id], chance)
        drawn.append((kind, question_id, detail, changed))
    order = [question.id for question in QUESTIONS]
    kinds = list(COUNTS)
    drawn.sort(key=lambda one: (order.index(one[1]), kinds.index(one[0])))
    return tuple(
        Plant(number, kind, question_id, detail, changed, kind == "half an answer")
        for number, (kind, question_id, detail, changed) in enumerate(drawn, 1)
    )


def list_all_changes(questions: Sequence[Question] = QUESTIONS) -> tuple[Plant, ...]:
    """List every change that can be planted, of which the forty are drawn, in the order of the questions."""
    found: list[Plant] = []
    for question in questions:
        for kind, maker in _MAKERS.items():
            seen: dict[str, Question] = {}
            if _can(kind, question):
                for seed in range(_TRIES):
                    changed, detail = maker(question, random.Random(seed))
                    seen.setdefault(f"{detail}\n{changed}", changed)
            for key, changed in seen.items():
                detail, _, _ = key.partition("\n")
                found.append(Plant(len(found) + 1, kind, question.id, detail, changed, kind == "half an answer"))
    return tuple(found)


def _assign_kinds(chance: random.Random) -> list[tuple[str, str]]:
    """Draw a question for each change: (question, kind), every question twice, never the same kind twice."""
    kinds = [kind for kind, count in COUNTS.items() for _ in range(count)]
    while True:
        free = {question.id: PER_QUESTION for question in QUESTIONS}
        pairs: list[tuple[str, str]] = []
        for kind in sorted(kinds, key=lambda kind: (sum(map(_can, [kind] * len(QUESTIONS), QUESTIONS)), kind)):
            able = [q.id for q in QUESTIONS if free[q.id] and _can(kind, q) and (q.id, kind) not in pairs]
            if not able:
                break
            chosen = chance.choice(able)
            free[chosen] -= 1
            pairs.append((chosen, kind))
        else:
            return pairs


def _can(kind: str, question: Question) -> bool:
    """Tell whether a question has something that a change of this kind can change."""
    if kind.startswith("tool"):
        return bool(question.calls)
    if kind.startswith("parameter"):
        return bool(question.calls)
    if kind.startswith("wrong"):
        return any(mark.kind == kind.removeprefix("wrong ") for mark in find_marks(question.response))
    if kind == "refusal":
        return question.id != "private-data"
    return True


def _drop_tool(question: Question, chance: random.Random) -> tuple[Question, str]:
    at = chance.randrange(len(question.calls))
    calls = question.calls[:at] + question.calls[at + 1 :]
    return replace(question, calls=calls), f"call {at + 1}, `{question.calls[at].tool}`, is missing"


def _swap_tool(question: Question, chance: random.Random) -> tuple[Question, str]:
    at = chance.randrange(len(question.calls))
    old = question.calls[at]
    calls = list(question.calls)
    calls[at] = replace(old, tool=OTHER_TOOLS[old.tool])
    return replace(question, calls=tuple(calls)), f"`{calls[at].tool}` instead of `{old.tool}`"


def _repeat_tool(question: Question, chance: random.Random) -> tuple[Question, str]:
    at = chance.randrange(len(question.calls))
    calls = question.calls[: at + 1] + question.calls[at:]
    return replace(question, calls=calls), f"`{question.calls[at].tool}` called twice in a row"


def _lose_parameter(question: Question, chance: random.Random) -> tuple[Question, str]:
    path = chance.choice(list(_iter_parameters(question)))
    return _change_parameter(question, path, lambda _: _LOST), f"{_name(question, path)} is missing"


def _alter_parameter(question: Question, chance: random.Random) -> tuple[Question, str]:
    path = chance.choice(list(_iter_parameters(question)))
    now = _change_parameter(question, path, _other_value)
    return now, f"{_name(question, path)} is {_value(now, path)!r} instead of {_value(question, path)!r}"


def _retype_parameter(question: Question, chance: random.Random) -> tuple[Question, str]:
    path = chance.choice(list(_iter_parameters(question)))
    now = _change_parameter(question, path, _other_type)
    return now, f"{_name(question, path)} is {_value(now, path)!r} instead of {_value(question, path)!r}"


def _mistake(kind: str) -> Callable[[Question, random.Random], tuple[Question, str]]:
    def make(question: Question, chance: random.Random) -> tuple[Question, str]:
        marks = find_marks(question.response)
        at = chance.choice([index for index, mark in enumerate(marks) if mark.kind == kind])
        now = replace(question, response=plant_mistake(question.response, at))
        return now, f"“{marks[at].wrong}” instead of “{marks[at].right}”"

    return make


def _refuse(question: Question, chance: random.Random) -> tuple[Question, str]:
    words = chance.choice(REFUSALS)
    return replace(question, response=words), f"“{words}” after the same tool calls"


def _say_nothing(question: Question, chance: random.Random) -> tuple[Question, str]:
    del chance
    return replace(question, response=""), "no text after the same tool calls"


def _break_off(question: Question, chance: random.Random) -> tuple[Question, str]:
    del chance
    return question, "the second half of the words is missing"


_Maker = Callable[[Question, random.Random], tuple[Question, str]]
_MAKERS: Final[dict[str, _Maker]] = {
    "tool dropped": _drop_tool,
    "tool swapped": _swap_tool,
    "tool called twice": _repeat_tool,
    "parameter lost": _lose_parameter,
    "parameter altered": _alter_parameter,
    "parameter of another type": _retype_parameter,
    "wrong number": _mistake("number"),
    "wrong name": _mistake("name"),
    "wrong date": _mistake("date"),
    "refusal": _refuse,
    "empty response": _say_nothing,
    "half an answer": _break_off,
}
_LOST: Final = object()


def _iter_parameters(question: Question) -> Iterator[Path]:
    """Yield every parameter of every call that holds no other parameters, nested ones included."""

    def walk(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if not isinstance(value, dict):
            yield keys
            return
        for key, inner in value.items():
            yield from walk(inner, (*keys, key))

    for at, call in enumerate(question.calls):
        for keys in walk(call.params, ()):
            yield at, keys


def _change_parameter(question: Question, path: Path, change: Callable[[Any], Any]) -> Question:
    at, (*outer, last) = path
    params = deepcopy(question.calls[at].params)
    holder = params
    for key in outer:
        holder = holder[key]
    now = change(holder[last])
    if now is _LOST:
        del holder[last]
    else:
        holder[last] = now
    calls = list(question.calls)
    calls[at] = Call(calls[at].tool, params, calls[at].result)
    return replace(question, calls=tuple(calls))


def _other_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return value[:-1]
    digits = [index for index, sign in enumerate(value) if sign.isdigit()]
    if digits and value not in OTHER_VALUES:
        at = digits[-1]
        return value[:at] + ("8" if value[at] == "9" else str(int(value[at]) + 1)) + value[at + 1 :]
    return OTHER_VALUES[value]


def _other_type(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return value[0] if isinstance(value, list) else [value]


def _name(question: Question, path: Path) -> str:
    at, keys = path
    ordinal = f" of call {at + 1}" if len(question.calls) > 1 else ""
    return f"`{'.'.join(keys)}` of `{question.calls[at].tool}`{ordinal}"


def _value(question: Question, path: Path) -> Any:
    at, keys = path
    value: Any = question.calls[at].params
    for key in keys:
        value = value[key]
    return value
