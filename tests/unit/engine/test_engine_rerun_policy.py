"""Re-runs of doubtful cases: how many, in which order, and what the record says of them."""

import asyncio
import json
import os
import time
from itertools import pairwise

import msgspec
import pytest

from eval_gate.config.settings import ResponseRetention, RunLimits
from eval_gate.engine.journal import JOURNAL_NAME
from eval_gate.engine.judge_targets import Judges
from eval_gate.engine.run import Run
from eval_gate.evaluators.base import JudgeReply
from eval_gate.model.case import Aggregation, CaseKey
from eval_gate.model.conversation import Response
from eval_gate.model.execution import Status
from eval_gate.model.result import RerunStopReason
from eval_gate.model.specs.evaluator import LlmJudge
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.readiness import report_waiting_to
from tests.support.cases import EVAL_FILE, ScriptedTarget, Watching, make_case, make_plan, make_suite
from tests.support.virtual_time import VirtualTime


class Again:
    """Runs these cases again, so often each."""

    def __init__(self, interval_s: float = 0.0, **times: int) -> None:
        self._times = times
        self._interval_s = interval_s
        self.rerun_wait = round(interval_s)
        self.asked: list[tuple[str, str]] = []

    new_cases: frozenset[CaseKey] = frozenset()

    def get_interval_s(self, key) -> float:
        return self._interval_s

    def find_rerun_candidates(self, result):
        self.seen = {case.id: case.status for suite in result.suites for case in suite.cases}
        return [CaseKey(EVAL_FILE, name) for name in self._times]

    def select_next(self, waiting):
        return waiting

    def should_rerun(self, key, reruns) -> bool:
        letters = "".join({"passed": "P", "failed": "F", "error": "E"}[trial.status] for trial in reruns)
        self.asked.append((key.case_id, letters))
        return len(reruns) < self._times[key.case_id]

    def get_rerun_end(self, key, reruns) -> RerunStopReason:
        return RerunStopReason.DECIDED if len(reruns) >= self._times[key.case_id] else RerunStopReason.RUN_STOPPED


def run(folder, confirming, target=None, **fields):
    plan = make_plan(make_suite(*[make_case(f"c{n}") for n in range(3)]), target=target or ScriptedTarget(), **fields)
    return asyncio.run(Run(plan.with_rerun_policy(confirming, 6), folder, Watching()).execute())


def cases(result) -> dict:
    return {case.id: case for suite in result.suites for case in suite.cases}


def fails_then_passes(*names: str, failures: int = 1):
    seen: dict[str, int] = {}

    async def answer(request):
        seen[request.case_id] = seen.get(request.case_id, 0) + 1
        broken = request.case_id in names and seen[request.case_id] <= failures
        return Response(text="no" if broken else "ok")

    return ScriptedTarget(answer)


def test_reruns__of_one_case__come_after_all_first_ones_and_are_told_apart(tmp_path) -> None:
    target, confirming = fails_then_passes("c1"), Again(c1=2)
    result = run(tmp_path, confirming, target)
    assert confirming.seen == {"c0": Status.PASSED, "c1": Status.FAILED, "c2": Status.PASSED}
    assert target.asked == ["c0", "c1", "c2", "c1", "c1"]
    case = cases(result)["c1"]
    assert (case.reruns, [trial.status for trial in case.trials]) == (2, ["failed", "passed", "passed"])
    assert (case.flaky, case.passed, result.reruns) == (True, True, 6)
    assert cases(result)["c0"].reruns == 0


def test_reruns__stop_as_soon_as_nothing_is_to_be_learned(tmp_path) -> None:
    confirming = Again(c0=0, c2=1)
    target = ScriptedTarget()
    run(tmp_path, confirming, target)
    assert target.asked == ["c0", "c1", "c2", "c2"]
    assert confirming.asked == [("c0", ""), ("c2", ""), ("c2", "P")]


def test_reruns__that_break__are_counted_apart(tmp_path) -> None:
    async def breaks_later(request):
        if request.trial:
            raise TargetError("overloaded", fault=TargetFault.REFUSED)
        return Response(text="no")

    confirming = Again(c0=2)
    result = run(tmp_path, confirming, ScriptedTarget(breaks_later))
    assert confirming.asked[-1] == ("c0", "EE")
    case = cases(result)["c0"]
    assert (case.status, case.reruns) == (Status.FAILED, 2)


def test_reruns__trials__are_counted_from_behind_them(tmp_path) -> None:
    result = run(tmp_path, Again(c0=1), limits=RunLimits(trials=3))
    assert (len(cases(result)["c0"].trials), cases(result)["c0"].reruns) == (4, 1)
    assert (len(cases(result)["c1"].trials), cases(result)["c1"].reruns) == (3, 0)


def test_reruns__used_up_budget__makes_none(tmp_path) -> None:
    async def dear(request):
        return Response(text="ok", cost_usd=1.0)

    target = ScriptedTarget(dear)
    result = run(tmp_path, Again(c0=3), target, limits=RunLimits(max_cost_usd=3.0))
    assert target.asked == ["c0", "c1", "c2"]
    assert result.complete
    assert {name: case.rerun_stop_reason for name, case in cases(result).items()} == {
        "c0": "run_stopped",
        "c1": None,
        "c2": None,
    }


def test_reruns__of_several_cases__are_spread_over_their_time(tmp_path) -> None:
    target = ScriptedTarget()
    run(tmp_path, Again(c0=2, c1=3, c2=2), target)
    assert target.asked == ["c0", "c1", "c2", "c0", "c1", "c2", "c0", "c1", "c2", "c1"]


@pytest.fixture
def virtual_time(monkeypatch):
    return VirtualTime(monkeypatch)


def noting(virtual_time: VirtualTime):
    """A target that notes when each case is asked."""
    times: dict[str, list[float]] = {}

    async def answer(request):
        times.setdefault(request.case_id, []).append(virtual_time.now)
        await asyncio.sleep(1)
        return Response(text="ok")

    return ScriptedTarget(answer), times


def run_spaced(virtual_time: VirtualTime, folder, confirming, target=None, **fields):
    plan = make_plan(make_suite(*[make_case(f"c{n}") for n in range(3)]), target=target or ScriptedTarget(), **fields)
    made = Run(plan.with_rerun_policy(confirming, 6), folder, Watching())
    return virtual_time.run(made.execute())


def test_reruns__spread__waits_between_two_executions_of_a_case_and_not_of_others(tmp_path, virtual_time) -> None:
    target, times = noting(virtual_time)
    said: list[str] = []
    with report_waiting_to(said.append):
        limits = RunLimits(rerun_interval="5m")
        result = run_spaced(virtual_time, tmp_path, Again(interval_s=300, c0=2, c1=2), target, limits=limits)
    for case in ("c0", "c1"):
        first, again, last = times[case]
        assert again - first >= 301 <= last - again
    # both wait at the same time: one wait for each round of re-runs, and none for the first execution
    assert virtual_time.now - 1_000 < 2 * 300 + 20
    assert [sorted(target.asked[at : at + 2]) for at in (3, 5)] == [["c0", "c1"], ["c0", "c1"]]
    assert said[0].startswith("rerun-interval 5m: a re-run waits 29")
    assert len(said) < 4
    assert result.rerun_wait == 300


def test_reruns__spread__a_case_that_ran_long_ago_does_not_wait(tmp_path, virtual_time) -> None:
    async def answer(request):
        await asyncio.sleep(400 if request.case_id == "c2" and not request.trial else 1)
        return Response(text="ok")

    run_spaced(virtual_time, tmp_path, Again(interval_s=300, c0=1), ScriptedTarget(answer))
    assert virtual_time.now - 1_000 < 410


def test_reruns__spread__because_of_what_was_learned__says_so_and_stays_within_a_budget_of_time(
    tmp_path, virtual_time
) -> None:
    target, times = noting(virtual_time)
    said: list[str] = []
    with report_waiting_to(said.append):
        limits = RunLimits(rerun_budget="6m")
        result = run_spaced(virtual_time, tmp_path, Again(interval_s=120, c0=6), target, limits=limits)
    assert said[0].startswith("executions of one run belong together: a re-run waits 11")
    # two waits and no third: the time that is left is for the executions
    assert cases(result)["c0"].rerun_stop_reason == "decided"
    assert [round(b - a) for a, b in pairwise(times["c0"])] == [121, 121, 1, 1, 1, 1]


def test_reruns__spread__nothing_learned__waits_for_nothing_and_says_nothing(tmp_path, virtual_time) -> None:
    target, _ = noting(virtual_time)
    said: list[str] = []
    with report_waiting_to(said.append):
        result = run_spaced(virtual_time, tmp_path, Again(c0=3), target)
    assert (said, result.rerun_wait) == ([], 0)
    assert virtual_time.now - 1_000 < 10


def test_reruns__spread__what_is_waited_counts_in_a_budget_of_time(tmp_path, virtual_time) -> None:
    limits = RunLimits(rerun_interval="6m", rerun_budget="10m")
    result = run_spaced(virtual_time, tmp_path, Again(interval_s=360, c0=9), limits=limits)
    case = cases(result)["c0"]
    assert (case.reruns, case.rerun_stop_reason) == (1, "budget_used")


def test_reruns__spread__a_wait_that_would_last_longer_than_the_budget_does_not_begin(tmp_path, virtual_time) -> None:
    said: list[str] = []
    with report_waiting_to(said.append):
        limits = RunLimits(rerun_interval="1h", rerun_budget="10m")
        result = run_spaced(virtual_time, tmp_path, Again(interval_s=3_600, c0=2), limits=limits)
    case = cases(result)["c0"]
    assert (case.reruns, case.rerun_stop_reason, said) == (0, "budget_used", [])
    spent = (
        "1 suspected regression is not decided: the rerun-budget of 600 s is used up, "
        "because `rerun-interval` would wait longer"
    )
    assert result.warnings == (spent,)


def test_reruns__spread__a_run_that_is_stopped_does_not_wait(tmp_path, virtual_time) -> None:
    plan = make_plan(make_suite(make_case("c0")), target=ScriptedTarget()).with_rerun_policy(
        Again(interval_s=600, c0=2), 6
    )

    async def main():
        made = Run(plan, tmp_path, Watching())
        asyncio.get_running_loop().call_later(20, made.stop, "enough")
        return await made.execute()

    result = virtual_time.run(main())
    assert (result.stop_reason, cases(result)["c0"].rerun_stop_reason) == ("enough", "run_stopped")
    assert virtual_time.now - 1_000 < 30


@pytest.mark.parametrize(("later_s", "waited_s"), [(100, 200), (1_000, 0)])
def test_reruns__spread__a_resumed_run_waits_only_for_what_is_left(tmp_path, virtual_time, later_s, waited_s) -> None:
    run_spaced(virtual_time, tmp_path, Again(c0=1))
    os.utime(next(tmp_path.rglob(JOURNAL_NAME)), times=(time.time(), time.time()))
    virtual_time.now += later_s
    began = virtual_time.now
    target, times = noting(virtual_time)
    run_spaced(virtual_time, tmp_path, Again(interval_s=300, c0=2), target)
    (asked,) = times["c0"]
    assert abs(asked - began - waited_s) < 1


def test_reruns__their_budget_is_spent__the_first_case_is_run_to_its_end_and_the_others_say_why_not(tmp_path) -> None:
    target = ScriptedTarget()
    result = run(tmp_path, Again(c0=2, c1=2, c2=1), target, limits=RunLimits(rerun_budget="3"))
    assert target.asked == ["c0", "c1", "c2", "c0", "c0", "c1"]
    assert [cases(result)[name].rerun_stop_reason for name in ("c0", "c1", "c2")] == [
        "decided",
        "budget_used",
        "budget_used",
    ]
    assert result.warnings == ("2 suspected regressions are not decided: the rerun-budget of 3 re-runs is used up",)


def test_reruns__budget_in_dollars__counts_what_re_runs_cost(tmp_path) -> None:
    async def dear(request):
        return Response(text="ok", cost_usd=1.0)

    target = ScriptedTarget(dear)
    result = run(tmp_path, Again(c0=9), target, limits=RunLimits(rerun_budget="$2"))
    assert target.asked == ["c0", "c1", "c2", "c0", "c0"]
    assert cases(result)["c0"].rerun_stop_reason == "budget_used"


def test_reruns__resumed_run__budget_counts_those_that_were_made_before(tmp_path) -> None:
    run(tmp_path, Again(c0=2))
    target = ScriptedTarget()
    run(tmp_path, Again(c0=9), target, limits=RunLimits(rerun_budget="3"))
    assert target.asked == ["c0"]


def test_reruns__resumed_run__goes_on_where_it_was(tmp_path) -> None:
    run(tmp_path, Again(c0=1))
    target = ScriptedTarget()
    result = run(tmp_path, Again(c0=3), target)
    assert target.asked == ["c0", "c0"]
    assert cases(result)["c0"].reruns == 3
    journal = next(tmp_path.rglob("cases.jsonl")).read_text().splitlines()
    assert [json.loads(line)["trial"] for line in journal if json.loads(line)["caseId"] == "c0"] == [0, 1, 2, 3]


def test_run__responses_are_not_stored__no_prompt_of_a_judge_holds_them(tmp_path) -> None:
    class Grades:
        notices = ()

        async def ask(self, system: str, user: str, schema: object = None) -> JudgeReply:
            return JudgeReply('{"score": 1}')

        async def aclose(self) -> None:
            """Nothing to give back."""

    async def secret(request):
        return Response(text="the vault is open")

    case = make_case("c", expect=(LlmJudge(),), aggregation=Aggregation.WEIGHTED_MEAN)
    plan = make_plan(
        make_suite(case),
        target=ScriptedTarget(secret),
        limits=RunLimits(keep_responses=ResponseRetention.NONE),
        judges=Judges({(EVAL_FILE, None): Grades()}),
    )
    result = asyncio.run(Run(plan, tmp_path, Watching()).execute())
    assert result.summary.passed == 1
    assert "the vault is open" not in msgspec.json.encode(result).decode()
    assert "the vault is open" not in next(tmp_path.rglob("cases.jsonl")).read_text()
