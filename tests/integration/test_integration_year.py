"""The simulation says what the installed program says: the same executions, by the command line."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from eval_gate.config.policy import FailOn
from eval_gate.struct import replace
from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CASES, HISTORY, CONFIRM = 20, 3, 6
GRID_HISTORY, SHARES = 4, 8
"""Runs of main before a line of the grid, which has room for all that befell main; and tests that share the lines."""
LINES = (
    "all cases fail 2 %",
    "all cases fail 5 %",
    "a tenth fails 20 %, the others 1 %",
    "a fifth fails 30 %, the others 1 %",
)
MODULES = (
    "branch",
    "bounds",
    "worlds",
    "days",
    "rules",
    "rival_rules",
    "year_parts",
    "long_reruns",
    "year_table",
    "year_page",
    "year",
    "case_worlds",
    "grid",
)


@pytest.fixture
def year(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("year")


class Tapes:
    """What becomes of each execution of each case in one run, whoever makes it: `P`, `F`, or `C` for a crash."""

    def __init__(self, firsts: list[str], rates: list[float], seed: str) -> None:
        random = Random(f"{seed}/again")
        self.letters = [
            [first, *("C" if first == "C" else "F" if random.random() < rate else "P" for _ in range(CONFIRM))]
            for first, rate in zip(firsts, rates, strict=True)
        ]
        self.executed: Counter[int] = Counter()

    @classmethod
    def drawn(cls, rates: list[float], seed: str) -> Tapes:
        """With first executions by the same rates."""
        random = Random(seed)
        return cls(["F" if random.random() < rate else "P" for rate in rates], rates, seed)

    def execute(self, at: int) -> str:
        self.executed[at] += 1
        return self.letters[at][self.executed[at] - 1]


class Playing:
    """An agent that answers by the tapes of the run that is under way."""

    tapes: Tapes

    async def __call__(self, exchange: Exchange) -> None:
        letter = self.tapes.execute(int(exchange.json["message"].rpartition("-")[2]))
        if letter == "C":
            exchange.answer({"error": "it broke"}, status=500)
            return
        exchange.answer({"response": "ok" if letter == "P" else "no", "toolCalls": []})


def rates_of(year: ModuleType, line: str, kind: str) -> list[float]:
    """How often each case fails in a pull request of this kind; the case that it changes is the last one."""
    usual = [one.rate for one in year.kinds(line, CASES) for _ in range(one.cases)]
    match kind:
        case "dead":
            return [*usual[:-1], 1.0]
        case "half":
            return [*usual[:-1], year.half_broken(usual[-1])]
        case "loss":
            return [rate + year.LOST for rate in usual]
        case _:
            return usual


def hold_beside(year: ModuleType, folder: Path, mains: list[Callable[[], Tapes]], here: Callable[[], Tapes]) -> None:
    """The same executions by the simulation and by the program: as many re-runs, the same classes, the same verdict."""
    branch, playing = year.Branch(), Playing()
    cases = [
        {"id": f"case-{at}", "input": {"message": f"case-{at}"}, "expect": {"responseContains": ["ok"]}}
        for at in range(CASES)
    ]
    (folder / "evals").mkdir(parents=True)
    (folder / "evals/suite.golden.json").write_text(json.dumps(cases))
    policy = year.policy(year.DEFAULT_FALSE_ALARM_RATE, graded=False)
    with agent(playing) as running:
        always = ("run", "--agent-endpoint", running.url, "--max-retries", "0")
        after = ("--baseline", "evals/results", "--reruns", str(CONFIRM))
        for number, tapes in enumerate(mains):
            mine, playing.tapes = tapes(), tapes()
            firsts = [mine.execute(at) for at in range(CASES)]
            asking = year.Asking(replace(policy, fail_on=frozenset({FailOn.NEVER})), CONFIRM, mine.execute)
            branch = branch.pushed(number, firsts, asking)
            gate(folder, *always, *(after if number else ()), "--fail-on", "never")
            assert playing.tapes.executed == mine.executed
        mine, playing.tapes = here(), here()
        firsts = [mine.execute(at) for at in range(CASES)]
        done = year.pull_request(branch, firsts, year.Asking(policy, CONFIRM, mine.execute))
        finished = gate(folder, *always, *after, "--fail-on", "regressions")
    assert playing.tapes.executed == mine.executed
    comparison, verdict = done.judged.comparison, done.judged.verdict
    assert comparison is not None
    assert verdict is not None
    assert finished.returncode == int(verdict.exit_code)
    assert {one["caseId"]: one["change"] for one in record(folder)["comparison"]["changes"]} == {
        one.case_id: one.change.value for one in comparison.changes
    }


@pytest.mark.contract("verdict.targets")
@pytest.mark.parametrize("kind", ["harmless", "dead", "half", "loss"])
@pytest.mark.parametrize("line", LINES)
def test_year__the_same_executions__have_the_same_verdict_by_the_command_line(year, tmp_path, line, kind) -> None:
    usual, here = rates_of(year, line, "harmless"), rates_of(year, line, kind)
    mains = [partial(Tapes.drawn, usual, f"{line}/{kind}/{number}") for number in range(HISTORY)]
    hold_beside(year, tmp_path / "it", mains, partial(Tapes.drawn, here, f"{line}/{kind}/here"))


@pytest.mark.parametrize("share", range(SHARES))
def test_grid__each_line_but_graded_ones__has_the_same_verdict_by_the_command_line(year, tmp_path, share) -> None:
    grid = importlib.import_module("grid")
    lines = [
        (name, world)
        for name, world in grid.known(CASES).items()
        if grid.fits(world, CASES, GRID_HISTORY) and getattr(world, "near", None) is None
    ]
    assert len(lines) >= 40
    for number, (name, world) in enumerate(lines[share::SHARES]):
        draw = grid.draw_day if isinstance(world, grid.DayWorld) else grid.draw
        drawn = draw(world, GRID_HISTORY, f"by the command line/{name}")

        def rates(run: int, drawn: Any = drawn) -> list[float]:
            if isinstance(drawn, sys.modules["days"].DayDrawn):
                return list(drawn.rates_then[run])
            return [lately if run < recent else usual for usual, recent, lately in drawn.rates_then]

        mains = [partial(Tapes, drawn.firsts(run), rates(run), f"{name}/{run}") for run in reversed(range(drawn.runs))]
        here = partial(Tapes, drawn.firsts(None), drawn.rates, f"{name}/here")
        hold_beside(year, tmp_path / str(number), mains, here)
