"""The simulation of a year says what the installed program says: the same executions, by the command line."""

from __future__ import annotations

import importlib
import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from eval_gate.config.policy import FailOn
from eval_gate.errors import ExitCode
from eval_gate.struct import replace
from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CASES, HISTORY, CONFIRM = 20, 3, 6
LINES = (
    "all cases fail 2 %",
    "all cases fail 5 %",
    "a tenth fails 20 %, the others 1 %",
    "a fifth fails 30 %, the others 1 %",
)
MODULES = ("branch", "bounds", "worlds", "days", "rules", "rival_rules", "year_parts", "year_table", "year")


@pytest.fixture
def year(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("year")


class Tapes:
    """What becomes of each execution of each case in one run, whoever makes it: `P` or `F`."""

    def __init__(self, rates: list[float], seed: str) -> None:
        random = Random(seed)
        self.letters = [["F" if random.random() < rate else "P" for _ in range(1 + CONFIRM)] for rate in rates]
        self.executed: Counter[int] = Counter()

    def execute(self, at: int) -> str:
        self.executed[at] += 1
        return self.letters[at][self.executed[at] - 1]


class Playing:
    """An agent that answers by the tapes of the run that is under way."""

    tapes: Tapes

    async def __call__(self, exchange: Exchange) -> None:
        letter = self.tapes.execute(int(exchange.json["message"].rpartition("-")[2]))
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


@pytest.mark.contract("verdict.targets")
@pytest.mark.parametrize("kind", ["harmless", "dead", "half", "loss"])
@pytest.mark.parametrize("line", LINES)
def test_year__the_same_executions__have_the_same_verdict_by_the_command_line(year, tmp_path, line, kind) -> None:
    branch, usual, here = year.Branch(), rates_of(year, line, "harmless"), rates_of(year, line, kind)
    cases = [
        {"id": f"case-{at}", "input": {"message": f"case-{at}"}, "expect": {"responseContains": ["ok"]}}
        for at in range(CASES)
    ]
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals/suite.golden.json").write_text(json.dumps(cases))
    policy = year.policy(year.DEFAULT_ERROR_RATE, graded=False)
    playing = Playing()
    with agent(playing) as running:
        always = ("run", "--agent-endpoint", running.url, "--max-retries", "0")
        after = ("--baseline", "evals/results", "--confirm", str(CONFIRM))
        for number in range(HISTORY):
            mine, playing.tapes = (Tapes(usual, f"{line}/{kind}/{number}") for _ in range(2))
            firsts = [mine.execute(at) for at in range(CASES)]
            asking = year.Asking(replace(policy, fail_on=frozenset({FailOn.NEVER})), CONFIRM, mine.execute)
            branch = branch.pushed(number, firsts, asking)
            gate(tmp_path, *always, *(after if number else ()), "--fail-on", "never")
            assert playing.tapes.executed == mine.executed
        mine, playing.tapes = (Tapes(here, f"{line}/{kind}/here") for _ in range(2))
        firsts = [mine.execute(at) for at in range(CASES)]
        done = year.pull_request(branch, firsts, year.Asking(policy, CONFIRM, mine.execute))
        finished = gate(tmp_path, *always, *after, "--fail-on", "regressions")
    said = record(tmp_path)
    assert playing.tapes.executed == mine.executed
    comparison, verdict = done.judged.comparison, done.judged.verdict
    assert comparison is not None
    assert verdict is not None
    assert finished.returncode == int(verdict.exit_code)
    assert finished.returncode in {int(ExitCode.PASSED), int(ExitCode.FAILED)}
    assert {one["caseId"]: one["change"] for one in said["comparison"]["changes"]} == {
        one.case_id: one.change.value for one in comparison.changes
    }
