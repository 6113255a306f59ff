"""What is promised of a year of pull requests is held against: suites, pull requests, and what came of a part of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from bounds import Kind
from rules import Called

SIZES = (20, 100, 500, 2000)
PULLS: Mapping[int, int] = MappingProxyType({20: 1000, 100: 600, 500: 400, 2000: 100})
"""So many harmless pull requests of each line, by the number of cases."""
A_DAY, DAYS = 4, 25
"""Harmless pull requests of one day, and days of one part of a year."""
HISTORIES = TWENTY, TEN, ONE = "twenty", "ten", "one"
RUNS_BEFORE: Mapping[str, int] = MappingProxyType({TWENTY: 20, TEN: 10, ONE: 1})
"""So many runs of main the history has, in every pull request."""
EACH_BAD, TIMES, EACH_BREAK, LOST = 50, 3.0, 100, 0.10
"""One day in so many is bad, and multiplies failures; one run of main in so many breaks; what a loss of all is."""
HARMLESS, FIRST_BAD, DEAD, HALF, LOSS = "harmless", "first bad day", "dead", "half", "loss"
RULES = ("ours", "ours + base", "plain", "retry twice", "−5 points", "gemini", "gemini + base", "McNemar", "paired t")
SUITE_RULES = frozenset({"−5 points", "McNemar", "paired t"})
"""These name no case: what they find they find by being red."""

Shares = tuple[tuple[float, float], ...]
"""The kinds of cases: their share of the suite, and how often they fail (0 to 1)."""
LINES: Mapping[str, Shares] = MappingProxyType(
    {
        "all cases fail 2 %": ((1.0, 0.02),),
        "all cases fail 5 %": ((1.0, 0.05),),
        "a tenth fails 20 %, the others 1 %": ((0.9, 0.01), (0.1, 0.2)),
        "a fifth fails 30 %, the others 1 %": ((0.8, 0.01), (0.2, 0.3)),
    }
)


def kinds(line: str, cases: int) -> tuple[Kind, ...]:
    """How many cases of each kind there are in a suite of this size, the steadiest first."""
    return tuple(Kind(round(share * cases), rate) for share, rate in LINES[line])


def half_broken(usual: float) -> float:
    """How often a case fails that passes half as often as usual."""
    return 1 - (1 - usual) / 2


@dataclass(frozen=True)
class Place:
    """One part of one cell."""

    line: str
    cases: int
    history: str
    part: int


@dataclass
class Part:
    """What came of the pull requests of a part: how many of each kind, and of these red or found, by rule.

    A kind of pull request is `harmless`, `loss`, or `dead/0`: with the number of the kind of the case that it broke.
    """

    line: str
    cases: int
    history: str
    part: int
    pulls: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    executions: Counter[str] = field(default_factory=Counter)
    """Of harmless pull requests, those of the base branch's agent among them."""
    chances: dict[str, list[float]] = field(default_factory=dict)
    """Of broken cases: the chance that this gate finds one, on average over all cases of the kind, by day."""

    def add(self, kind: str, changed: frozenset[int], called: Mapping[str, Called]) -> None:
        """One pull request, that changed these cases."""
        self.pulls[kind] += 1
        for rule, one in called.items():
            named = kind.startswith((DEAD, HALF)) and rule not in SUITE_RULES
            self.said[f"{kind}|{rule}"] += bool(one.regressions & changed) if named else one.red
            if kind == HARMLESS:
                self.undecided[rule] += one.undecided
                self.executions[rule] += one.executions + one.asked_there

    @property
    def place(self) -> Place:
        """Where it belongs."""
        return Place(self.line, self.cases, self.history, self.part)


def kept_in(file: Path) -> dict[Place, Part]:
    """Read the parts that a file keeps, by place; empty if there is no such file.

    If the file has a part twice, the longer one is returned. The last line of a killed run may be cut off, and is
    then left out.
    """
    found: dict[Place, Part] = {}
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in (one for one in lines if one.endswith("}")):
        values = json.loads(line)
        counters = {name: Counter(values[name]) for name in ("pulls", "said", "undecided", "executions")}
        place = values["line"], values["cases"], values["history"], values["part"]
        part = Part(*place, **counters, chances=values["chances"])
        if part.place not in found or part.pulls[HARMLESS] > found[part.place].pulls[HARMLESS]:
            found[part.place] = part
    return found
