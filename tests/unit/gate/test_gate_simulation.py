"""The simulation drives the shipped code, the page shows what it found, and the figures are within the targets."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from eval_gate.engine.case_result import build_unrun_result, join_trials
from eval_gate.model.result import RerunStopReason
from eval_gate.results.history import split_executions
from tests.support.histories import Asked
from tests.support.sizes import size

pytestmark = pytest.mark.slow

MODULES = ("branch", "worlds", "days", "rules", "suites_table", "simulate", "control")
ROOT = Path(__file__).parents[3]
PAGE = ROOT / "benchmarks" / "verdict" / "figures.md"
LINE = re.compile(r"^\| (?P<world>[^|]*) \|(?P<cells>.*)\|$", re.MULTILINE)
OURS = re.compile(r"\*\*([\d.]+) %\*\* \(([\d.]+)\)")


@pytest.fixture
def simulate(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "verdict"))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("simulate")


@pytest.fixture
def branch(simulate) -> ModuleType:
    return sys.modules["branch"]


def on_the_page() -> dict[str, list[tuple[float, float]]]:
    """This gate's share in per cent and its executions a case, at 100 and at 500 cases, by world."""
    lines = LINE.finditer(PAGE.read_text(encoding="utf-8"))
    found = ((line["world"], [(float(a), float(b)) for a, b in OURS.findall(line["cells"])]) for line in lines)
    return {world: cells for world, cells in found if cells}


def test_page__tables__have_every_world_of_the_simulation(simulate) -> None:
    known = sorted(simulate.worlds(100), key=lambda world: not world.harmless)
    assert list(on_the_page()) == [world.name for world in known]


def test_page__table_of_the_base_branchs_agent__has_every_day_of_the_simulation(simulate) -> None:
    days = [day.world.name for day in importlib.import_module("control").days(100)]
    lines = LINE.finditer(PAGE.read_text(encoding="utf-8"))
    assert [
        line["world"] for line in lines if line["world"] in days and line["cells"].startswith((" red |", " green |"))
    ] == days


@pytest.mark.contract("verdict.targets")
def test_page__figures__are_within_the_targets_at_100_and_500_cases() -> None:
    page = on_the_page()
    for at, most in ((0, 2.0), (1, 2.5)):  # of the few pull requests at 500 cases, one is 2.5 %
        assert page["nothing changed, every case fails 5% of the time"][at][0] <= 2.0
        for lost in ("1 case", "3 cases", "5 cases", "10 cases"):
            assert page[f"the branch itself lost {lost} in its newest run (2%)"][at][0] <= most
        assert page["the newest run of the branch was an outage (2%)"][at][0] <= 2.0
        assert page["one case died, and the newest run of the branch was an outage (2%)"][at][0] >= 99.0
        for rate in ("2%", "5%"):
            assert page[f"one case died ({rate})"][at][0] >= 99.5
        for rate, least in (("2%", 90.0), ("5%", 75.0)):  # what allows for bad days finds less of what flakes more
            assert page[f"every case lost 10 points ({rate})"][at][0] >= least
        assert max(cells[at][1] for name, cells in page.items() if name.startswith("nothing changed")) <= 1.25
        assert max(cells[at][1] for cells in page.values()) <= 1.6


@pytest.mark.contract("verdict.targets")
def test_page__graded_cases_near_the_pass_score__are_seldom_left_inconclusive() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (line,) = re.findall(
        r"^\| could not decide .*\n\|[-:|]*\|\n\| graded cases near the pass score (.*)$", text, re.MULTILINE
    )
    shares = [float(share) for share in re.findall(r"([\d.]+) %", line)]
    assert len(shares) == 2
    assert max(shares) <= 1.0


@pytest.mark.contract("verdict.targets")
@pytest.mark.parametrize(
    ("world", "least", "most"),
    [
        ("nothing changed, every case fails 5% of the time", 0.0, 0.05),
        ("the branch itself lost one case three runs ago (2%)", 0.0, 0.03),
        ("the branch itself lost 5 cases in its newest run (2%)", 0.0, 0.03),
        ("one case died, and the newest run of the branch was an outage (2%)", 0.98, 1.0),
        ("one case died (5%)", 0.98, 1.0),
        ("every case lost 10 points (5%)", 0.65, 1.0),
    ],
)
def test_simulation__a_few_worlds__the_code_does_what_the_page_says(simulate, world, least, most) -> None:
    names = [one.name for one in simulate.worlds(100)]
    setting = simulate.Setting(cases=100, world=names.index(world), history=10, reruns=6, seed=2)
    outcome = simulate.chunk(setting, 0, size(60))["gate"]
    share = (outcome.found if least else outcome.red) / outcome.worlds
    assert least <= share <= most
    # 1.25 is promised where nothing changed; where all cases got worse there are many suspects, and each is asked again
    assert outcome.executions / outcome.worlds / 100 <= (1.6 if "every case lost" in world else 1.25)


@pytest.mark.contract("verdict.targets")
@pytest.mark.parametrize("history", [1, 10])
@pytest.mark.parametrize(
    ("world", "least", "most"),
    [
        ("every score falls by 0.06 (noise 0.03)", 0.95, 1.0),
        ("nothing changed (noise 0.03)", 0.0, 0.05),
        ("nothing changed, `max-score-drop` 0.1 (noise 0.05)", 0.0, 0.05),
    ],
)
def test_simulation__scores__the_code_does_what_the_page_says(simulate, world, least, most, history) -> None:
    names = [one.name for one in simulate.every_world(50)]
    setting = simulate.Setting(cases=50, world=names.index(world), history=history, reruns=6, seed=2)
    outcome = simulate.chunk(setting, 0, size(40))["gate"]
    assert least <= outcome.red / outcome.worlds <= most


def test_simulation__same_seed__same_figures_however_it_is_divided(simulate) -> None:
    setting = simulate.Setting(cases=50, world=3, history=3, reruns=2, seed=7, rules=simulate.RULES)
    whole = simulate.chunk(setting, 0, 12)
    parts = [simulate.chunk(setting, start, start + 4) for start in (0, 4, 8)]
    assert whole == {rule: parts[0][rule].plus(parts[1][rule]).plus(parts[2][rule]) for rule in simulate.RULES}


@pytest.mark.contract("verdict.suspect")
def test_simulation__nothing_fails__costs_one_execution_a_case(simulate) -> None:
    setting = simulate.Setting(cases=100, world=0, history=10, reruns=6, seed=1)
    outcome = simulate.chunk(setting, 0, 5)["gate"]
    assert (outcome.red, outcome.executions) == (0, 500)


TAPES = ["P", "F", "FPP", "FPF", "FFFFFFF", "CF", "CCC", "PFF", "CP"]


@pytest.mark.parametrize("tape", TAPES)
def test_simulation__a_case__is_as_the_engine_makes_it(branch, tape) -> None:
    """The simulation joins executions in its own way, which is fast; nothing that a verdict looks at may differ."""
    asked = Asked("suite.json", "case-0", tape)
    histories = [asked.record(at) for at in range(len(tape))]
    real = join_trials(build_unrun_result(asked.case()), histories, first=1, end=RerunStopReason.DECIDED)
    fast = branch._case(0, tuple(tape), RerunStopReason.DECIDED)
    looked_at = ("status", "passed", "score", "graded", "flaky", "reruns", "rerun_stop_reason", "error_kind")
    assert [getattr(fast, name) for name in looked_at] == [getattr(real, name) for name in looked_at]
    assert split_executions(fast) == split_executions(real)


@pytest.mark.parametrize("tape", TAPES)
def test_simulation__sharded_and_stored__say_the_same(branch, tape) -> None:
    """What one world in four, and one in ten, is judged by."""
    rules, steady = branch.policy(0.05, graded=False), ["P"] * 8
    main = branch.Branch()
    for number in range(4):
        main = main.pushed(number, steady, branch.Asking(rules, 6, lambda _at: "P"))

    def again(seen: list[int]):
        def one_more(at: int) -> str:
            seen.append(at)
            return tape[min(seen.count(at), len(tape) - 1)] if at == 0 else "P"

        return one_more

    found, executions = [], []
    for sharded in (False, True):
        for stored in (False, True):
            ask = branch.Asking(rules, 6, again([]))
            done = branch.pull_request(main, [tape[0], *steady[1:]], ask, sharded=sharded, stored=stored)
            classes = {one.case_id: one.change for one in done.judged.comparison.changes}
            found.append((done.judged.verdict.outcome, classes))
            executions.append(done.executions)
    assert found == [found[0]] * 4
    # a shard does not know the errors of the whole run, so it re-runs a silent case to the end
    assert (executions[0], executions[2]) == (executions[1], executions[3])
    assert executions[0] == executions[2] or tape == "CCC"
