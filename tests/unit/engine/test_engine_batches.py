"""Batches: one call for all cases of a file, and what happens when that call breaks."""

import asyncio

import pytest

from eval_gate.config.settings import RunLimits
from eval_gate.engine.run import Run
from eval_gate.model.case import AttemptRule
from eval_gate.model.conversation import Response
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from tests.support.cases import ScriptedTarget, Watching, make_case, make_plan, make_suite
from tests.support.talks import make_talk


class Batching(ScriptedTarget):
    """A target that takes batches, and remembers them."""

    batches = True

    def __init__(self, batch) -> None:
        super().__init__()
        self._batch = batch
        self.calls: list[list[str]] = []

    async def respond_batch(self, requests):
        self.calls.append([request.case_id for request in requests])
        return await self._batch(requests)


def run(target, folder, *suites, **fields):
    return asyncio.run(Run(make_plan(*suites, target=target, **fields), folder, Watching()).execute())


def three() -> list:
    return [make_case(f"c{number}") for number in range(3)]


async def everything(requests):
    return {request.case_id: Response(text="ok") for request in reversed(requests)}


@pytest.mark.contract("agentv.provider-level-batching-flag.enabled-for-batching-capable-provider")
def test_batch__enabled_for_batching_capable_provider__one_call_and_answers_by_id(tmp_path) -> None:
    target = Batching(everything)
    result = run(target, tmp_path, make_suite(*three()))
    assert target.calls == [["c0", "c1", "c2"]]
    assert target.asked == []
    assert [case.passed for case in result.suites[0].cases] == [True, True, True]


@pytest.mark.contract("agentv.provider-level-batching-flag.enabled-for-batching-capable-provider")
def test_batch__call_that_breaks__each_case_is_asked_and_the_result_says_so(tmp_path) -> None:
    async def broken(requests):
        raise TargetError("line 2 is no record", fault=TargetFault.MALFORMED)

    target = Batching(broken)
    result = run(target, tmp_path, make_suite(*three()))
    assert target.asked == ["c0", "c1", "c2"]
    assert result.summary.passed == 3
    assert [notice for notice in result.warnings if "line 2 is no record" in notice]


def test_batch__answer_that_is_missing__that_case_is_asked_by_itself(tmp_path) -> None:
    async def but_one(requests):
        return {request.case_id: Response(text="ok") for request in requests if request.case_id != "c1"}

    target = Batching(but_one)
    assert run(target, tmp_path, make_suite(*three())).summary.passed == 3
    assert target.asked == ["c1"]


def test_batch__conversation__is_sent_by_itself_turn_by_turn(tmp_path) -> None:
    target = Batching(everything)
    result = run(target, tmp_path, make_suite(make_talk("talk"), *three()))
    assert (target.calls, target.asked) == ([["c0", "c1", "c2"]], ["talk"] * 3)
    assert result.summary.passed == 4


def test_batch__two_files_and_two_trials__a_call_for_each(tmp_path) -> None:
    target = Batching(everything)
    suites = [make_suite(*three(), file=f"evals/{name}.yaml") for name in ("a", "b")]
    result = run(target, tmp_path, *suites, limits=RunLimits(trials=2))
    assert target.calls == [["c0", "c1", "c2"]] * 4
    assert result.summary.passed == 6


def test_batch__case_of_several_attempts__is_in_none(tmp_path) -> None:
    one, attempted, other = three()
    target = Batching(everything)
    result = run(target, tmp_path, make_suite(one, replace(attempted, attempt_rule=AttemptRule(count=2)), other))
    assert target.calls == [["c0", "c2"]]
    assert (target.asked, result.summary.passed) == (["c1"], 3)


def test_batch__that_hangs__ends_with_the_cases_limits_and_each_is_asked(tmp_path) -> None:
    async def hangs(requests):
        await asyncio.sleep(60)

    target = Batching(hangs)
    result = run(target, tmp_path, make_suite(*three()), limits=RunLimits(timeout_ms=30))
    assert result.summary.passed == 3
    assert [notice for notice in result.warnings if "no response within" in notice]


def test_batch__single_case__is_still_one_batch_call(tmp_path) -> None:
    target = Batching(everything)
    run(target, tmp_path, make_suite(make_case("only")))
    assert (target.calls, target.asked) == ([["only"]], [])


def test_batch__not_asked_for__case_by_case(tmp_path) -> None:
    target = Batching(everything)
    target.batches = False
    run(target, tmp_path, make_suite(*three()))
    assert (target.calls, len(target.asked)) == ([], 3)
