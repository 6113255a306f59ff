"""What the figures say is what the simulation of whole runs finds, within its standard error."""

import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from eval_gate.gate.power.case_groups import CaseGroups, group_baseline_cases, group_run_cases
from eval_gate.gate.power.false_alarms import estimate_run_false_alarms
from eval_gate.gate.power.loss_detection import ExecutionTree, LossSimulation
from eval_gate.struct import replace
from tests.support.sizes import size

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
HISTORY, CONFIRM, BRANCHES, EACH = 10, 6, size(24), 5
"""Runs of main, re-runs at most, and how many branches with how many pull requests are simulated."""
ERRORS = 3.5
"""Standard errors that simulation and figure may be apart: by chance once in two thousand times."""


@pytest.fixture
def rules(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in ("branch", "worlds", "days", "rules", "case_worlds", "grid"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("rules")


def simulated(rules: ModuleType, name: str) -> Iterator[tuple[CaseGroups, bool, bool]]:
    """Of every pull request: the cases as known before it, whether it is red, and whether it names the case."""
    worlds = sys.modules["worlds"]
    world = next(one for one in worlds.worlds(100) if one.name == name)
    ours, policy = rules.ours(CONFIRM), sys.modules["branch"].policy(0.05, graded=False)
    for seed in range(BRANCHES):
        for number in range(EACH):
            drawn = worlds.draw(world, HISTORY, f"power/{seed}", number)
            if number == 0:
                known = group_baseline_cases(
                    rules._branch(drawn, policy, CONFIRM).baseline, replace(policy, reruns=CONFIRM)
                )
            called = ours(drawn, Random(f"{seed}/{number}"))
            yield known, called.red, bool(called.regressions & drawn.changed)


def apart(predicted: list[float], happened: list[bool]) -> float:
    """By how many standard errors they are."""
    expected, number = math.fsum(predicted), sum(happened)
    variance = math.fsum(one * (1 - one) for one in predicted)
    print(f"{expected:.1f} foretold, {number} found, of {len(happened)}")
    return abs(expected - number) / math.sqrt(variance)


def test_figures__a_case_that_is_half_broken__is_found_as_often_as_in_the_simulation(rules) -> None:
    predicted, happened = [], []
    for known, _red, found in simulated(rules, "one case fails every other time (2%)"):
        tree = next(
            ExecutionTree(kind, known) for kind in known.groups if any(key.case_id == "case-0" for key in kind.keys)
        )
        predicted.append(tree.compute_regression_chance(0.5))
        happened.append(found)
    assert apart(predicted, happened) <= ERRORS


def test_figures__a_loss_of_ten_points__is_found_as_often_as_in_the_simulation(rules) -> None:
    predicted, happened, before = [], [], None
    for known, red, _found in simulated(rules, "every case lost 10 points (5%)"):
        if known is not before:
            chance = LossSimulation(known, [ExecutionTree(kind, known) for kind in known.groups]).compute_red_chance(10)
        before = known
        predicted.append(chance)
        happened.append(red)
    assert apart(predicted, happened) <= ERRORS


FLAKY = (
    "nothing changed, a tenth of the cases fails 20%",
    "nothing changed, a fifth fails 30%, the others 1%",
    "nothing changed, four fifths solid, a fifth 20 to 50%",
)


def said_and_true(rules: ModuleType, name: str, cases: int, history: int) -> Iterator[tuple[float, float]]:
    """Of a run after each branch: how often it is said that harmless ones would be red (0 if nothing), and are."""
    worlds, branch = sys.modules["worlds"], sys.modules["branch"]
    world, policy = importlib.import_module("grid").known(cases)[name], branch.policy(0.05, graded=False)
    for seed in range(size(8)):
        drawn = worlds.draw(world, history, f"false alarms/{name}/{cases}/{history}/{seed}")
        main = rules._branch(drawn, policy, CONFIRM)
        again = rules._asked(drawn, None, Random(f"{name}/{seed}"))
        run = branch.pull_request(main, drawn.firsts(None), branch.Asking(policy, CONFIRM, again)).judged
        known = group_run_cases(run)
        assert known is not None
        expected = 0.0
        for kind in known.groups:
            tree = ExecutionTree(kind, known)
            rates = (drawn.rates[int(key.case_id.rpartition("-")[2])] for key in kind.keys)
            expected += math.fsum(map(tree.compute_regression_chance, rates))
        found = estimate_run_false_alarms(run)
        yield found.chance if found else 0.0, -math.expm1(-expected)


@pytest.mark.contract("verdict.targets")
@pytest.mark.parametrize("history", [1, 2])
def test_false_alarms__many_flaky_cases_and_few_runs__are_said_within_a_factor_of_two(rules, history) -> None:
    both = [one for name in FLAKY for one in said_and_true(rules, name, 500, history)]
    said, true = (math.fsum(one) / len(both) for one in zip(*both, strict=True))
    print(f"{said:.3f} said, {true:.3f} true")
    assert true > 0.02
    assert 0.5 <= said / true <= 2.0


@pytest.mark.parametrize("rate", ["2%", "5%", "10%"])
def test_false_alarms__cases_that_all_fail_alike__say_nothing(rules, rate) -> None:
    name = f"nothing changed, every case fails {rate} of the time"
    assert [said for said, _ in said_and_true(rules, name, 500, 1)] == [0.0] * size(8)
