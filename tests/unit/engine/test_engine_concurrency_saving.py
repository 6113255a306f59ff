"""What more concurrency would have saved, against the pool itself on a simulated clock."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.engine.concurrency_saving import SequentialTimes
from eval_gate.engine.trials import TrialJob
from eval_gate.engine.worker_pool import run_jobs
from eval_gate.model.agent import SuiteAgent
from eval_gate.model.case import CaseWorkspace
from eval_gate.model.run_totals import ConcurrencySaving
from tests.support.cases import ScriptedTarget, make_case, make_plan
from tests.unit.targets.test_targets_rate_limit import simulated

WRITER = SuiteAgent(name="a", model="gpt-5-mini", instructions="", tools=("writeFile",))
Work = tuple[str, float, bool]
"""Suite, seconds and whether the case depends on the ones before it."""


def saving(work: list[Work], wall_s: float | None = None) -> ConcurrencySaving | None:
    times = SequentialTimes()
    times.begin_pool()
    for at, (suite, seconds, dependent) in enumerate(work):
        times.add(TrialJob(make_case(f"c{at}", suite=suite, agent=WRITER if dependent else None), 0), seconds)
    return times.compute_saving(sum(seconds for _, seconds, _ in work) if wall_s is None else wall_s)


def pool_takes(work: list[Work], concurrency: int = 4) -> float:
    """Seconds that the pool of a run takes, where cases of one suite that depend on each other hold a folder."""

    async def go() -> None:
        folders: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

        async def one(job: Work) -> None:
            suite, seconds, dependent = job
            if not dependent:
                await asyncio.sleep(seconds)
                return
            async with folders[suite]:
                await asyncio.sleep(seconds)

        await run_jobs(work, concurrency, one, asyncio.Event())

    return simulated(go())


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b"]), st.floats(0.5, 20), st.booleans()), min_size=20, max_size=40
    ).filter(lambda work: sum(not dependent for *_, dependent in work) >= 10)
)
def test_saving__any_cases__is_what_the_pool_takes(work) -> None:
    found, takes = saving(work), pool_takes(work)
    total = sum(seconds for _, seconds, _ in work)
    if found is None:
        assert takes >= 0.74 * total
    else:
        assert found.expected_s == pytest.approx(takes, abs=0.05 * len(work))
        assert found.wall_s == total


def test_saving__cases_that_share_a_workspace__wait_for_each_other() -> None:
    times, shared = SequentialTimes(), CaseWorkspace(folder="/evals", shared=True)
    times.begin_pool()
    for at in range(60):
        times.add(TrialJob(make_case(f"c{at}", workspace=shared if at < 40 else None), 0), 1.0)
    found = times.compute_saving(60.0)
    assert found is None or found.expected_s >= 40.0


def test_saving__sixty_cases_of_300_ms__are_15_rounds_and_what_the_run_took_besides() -> None:
    found = saving([("a", 0.3, False)] * 60, wall_s=19.0)
    assert found is not None
    assert (found.concurrency, found.wall_s, round(found.expected_s, 3)) == (4, 19.0, 5.5)


@pytest.mark.parametrize(
    "work",
    [
        [("a", 0.9, False)] * 11,
        [("a", 5.0, False)] * 9,
        [("a", 5.0, True)] * 40,
        [("a", 0.1, False)] * 20 + [("a", 60.0, False)],
    ],
    ids=["short", "few cases", "each needs the one before", "one case is most of it"],
)
def test_saving__little_to_save__says_nothing(work) -> None:
    assert saving(work) is None


def test_saving__pools_one_after_the_other__are_added_up() -> None:
    times = SequentialTimes()
    for pool in range(2):
        times.begin_pool()
        for at in range(10):
            times.add(TrialJob(make_case(f"c{pool}-{at}"), 0), 1.0)
    found = times.compute_saving(20.0)
    assert found is not None
    assert found.expected_s == 6.0


class Described(ScriptedTarget):
    """A target whose description says how many cases at the same time."""

    workers = 1


@pytest.mark.parametrize(
    ("concurrency", "target", "is_set"),
    [
        (None, ScriptedTarget(), False),
        (1, ScriptedTarget(), True),
        (4, ScriptedTarget(), True),
        (None, Described(), True),
    ],
    ids=["nobody", "for the run", "more than one", "of the target"],
)
def test_plan__concurrency__is_set_by_the_run_or_the_target(concurrency, target, is_set) -> None:
    plan = make_plan(target=target, concurrency=concurrency)
    assert plan.is_concurrency_set(target) is is_set
