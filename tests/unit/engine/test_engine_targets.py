"""Several targets in one run, targets with limits of their own, dry runs."""

import asyncio

import pytest

from eval_gate.config.settings import RunLimits
from eval_gate.engine.run import Run
from eval_gate.model.conversation import Response
from eval_gate.model.execution import Status
from eval_gate.targets.base import TargetError, TargetFault
from tests.support.cases import EVAL_FILE, ScriptedTarget, Watching, make_case, make_plan, make_suite


def run(folder, *suites, **fields):
    return asyncio.run(Run(make_plan(*suites, **fields), folder, Watching()).execute())


def statuses(result) -> dict[str, Status]:
    return {case.id: case.status for suite in result.suites for case in suite.cases}


def mixed() -> list:
    return [make_case(f"c{number}", target="other" if number % 2 else None) for number in range(6)]


def test_targets__two__each_case_is_asked_of_its_own(tmp_path) -> None:
    main, other = ScriptedTarget(), ScriptedTarget()
    result = run(tmp_path, make_suite(*mixed()), target=main, targets={(EVAL_FILE, "other"): other})
    assert (main.asked, other.asked) == (["c0", "c2", "c4"], ["c1", "c3", "c5"])
    assert [case.target for case in result.suites[0].cases] == [None, "scripted"] * 3
    assert len(result.targets) == 2
    assert result.complete


def test_targets__one_that_is_unhealthy__its_cases_are_not_run_and_the_others_are(tmp_path) -> None:
    def ill() -> None:
        raise TargetError("the agent is down", fault=TargetFault.UNREACHABLE)

    main, other = ScriptedTarget(healthy=ill), ScriptedTarget()
    result = run(tmp_path, make_suite(*mixed()), target=main, targets={(EVAL_FILE, "other"): other})
    assert statuses(result) == {f"c{number}": Status.PASSED if number % 2 else Status.NOT_RUN for number in range(6)}
    assert result.stop_reason == "the agent is down"
    assert not result.complete


def test_targets__one_without_connection__is_given_up_alone(tmp_path) -> None:
    async def gone(request):
        raise TargetError("connection refused", fault=TargetFault.UNREACHABLE)

    cases = [make_case(f"a{number}") for number in range(20)] + [make_case("b", target="other")]
    main, other = ScriptedTarget(gone), ScriptedTarget()
    result = run(tmp_path, make_suite(*cases), target=main, targets={(EVAL_FILE, "other"): other})
    assert len(main.asked) == 5
    assert statuses(result)["b"] is Status.PASSED
    assert (result.summary.errored, result.summary.not_run) == (5, 15)


@pytest.mark.contract("agentv.parallel-test-execution.configurable-concurrency")
@pytest.mark.parametrize(("asked", "own", "most"), [(2, 4, 2), (None, 4, 4), (None, None, 1)])
def test_concurrency__configurable_concurrency__asked_for_else_workers_else_one(tmp_path, asked, own, most) -> None:
    async def slowly(request):
        await asyncio.sleep(0.03)
        return Response(text="ok")

    class Workers(ScriptedTarget):
        workers = own

    target = Workers(slowly)
    run(tmp_path, make_suite(*[make_case(f"c{n}") for n in range(8)]), target=target, concurrency=asked)
    assert target.most_in_flight == most


@pytest.mark.contract("agentv.parallel-test-execution.error-isolation-in-parallel-mode")
def test_run__error_isolation_in_parallel_mode__others_settle(tmp_path) -> None:
    async def one_breaks(request):
        if request.case_id == "c1":
            raise TargetError("exit code 9", fault=TargetFault.REFUSED)
        await asyncio.sleep(0.01)
        return Response(text="ok")

    cases = [make_case(f"c{number}") for number in range(6)]
    result = run(tmp_path, make_suite(*cases), target=ScriptedTarget(one_breaks), concurrency=3)
    assert (result.summary.passed, result.summary.errored) == (5, 1)
    assert result.complete


def test_limit__target_with_one_of_its_own__is_not_cut_short_by_the_runs(tmp_path) -> None:
    async def slowly(request):
        await asyncio.sleep(0.1)
        return Response(text="ok")

    target = ScriptedTarget(slowly)
    target.timeout_ms = 5_000.0
    result = run(tmp_path, make_suite(make_case()), target=target, limits=RunLimits(timeout_ms=20))
    assert result.summary.passed == 1


def test_dry_run__nobody_was_asked__is_skipped_and_never_a_pass(tmp_path) -> None:
    async def dry(request):
        return Response(text="", dry_run=True, warnings=("the prompt is in prompt.md",))

    result = run(tmp_path, make_suite(make_case("c", expect=())), target=ScriptedTarget(dry))
    case = result.suites[0].cases[0]
    assert (case.status, case.passed) == (Status.SKIPPED, False)
    assert case.error == "dry run: no request was sent; the prompt is in prompt.md"
