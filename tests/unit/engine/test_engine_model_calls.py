"""Model calls of executions: a call without an answer is never a pass, whatever the agent responds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from eval_gate.config.settings import RunLimits
from eval_gate.engine.run import Run
from eval_gate.model.case import AttemptRule
from eval_gate.model.conversation import Response
from eval_gate.model.execution import ErrorCause, ErrorKind, Status
from eval_gate.model.model_recording import CallMode, ExecutionCalls, ModelRecording
from eval_gate.model.result import RunResult
from eval_gate.targets.base import TargetError, TargetFault
from tests.support.cases import ScriptedTarget, Watching, make_case, make_plan, make_suite

MISS = ExecutionCalls(calls=1, miss="`prompt` differs")
REPLAYED = ExecutionCalls(calls=2)


class ScriptedProxy:
    """A proxy of model calls with these calls for each execution."""

    recording = ModelRecording(mode=CallMode.REPLAY, file="f")

    def __init__(self, *calls: ExecutionCalls) -> None:
        self._calls = list(calls)
        self.begun: list[str] = []
        self.ended: list[str] = []

    async def begin(self, execution_id: str) -> None:
        self.begun.append(execution_id)

    async def end(self, execution_id: str) -> ExecutionCalls:
        self.ended.append(execution_id)
        return self._calls.pop(0)

    def build_variables(self, execution_id: str) -> dict[str, str]:
        return {"OPENAI_BASE_URL": execution_id}

    async def aclose(self) -> None:
        """There is nothing to close."""


class WorkingTarget(ScriptedTarget):
    """A target that takes several cases at the same time."""

    workers = 4


def run(folder, proxy: ScriptedProxy, responses: Sequence[str | TargetError] = ("ok",), **fields) -> RunResult:
    requests = []

    async def respond(request):
        requests.append(request)
        response = responses[min(len(requests), len(responses)) - 1]
        if isinstance(response, TargetError):
            raise response
        return Response(text=response)

    trials = fields.pop("trials", 1)
    suite = make_suite(make_case("c0", **fields))
    target = WorkingTarget(respond)
    plan = make_plan(suite, target=target, model_proxy=proxy, limits=RunLimits(trials=trials))
    assert (plan.get_concurrency(target), make_plan(suite, target=target).get_concurrency(target)) == (1, 4)
    result = asyncio.run(Run(plan, folder, Watching()).execute())
    assert [one.variables["OPENAI_BASE_URL"] for one in requests] == [one.execution_id for one in requests]
    return result


def test_execution__all_calls_replayed__is_marked_and_its_run_names_the_recording(tmp_path) -> None:
    proxy = ScriptedProxy(REPLAYED, ExecutionCalls(calls=2, live_calls=1))
    result = run(tmp_path, proxy, trials=2)
    ((_, case),) = result.iter_cases()
    assert (case.status, result.model_recording) == (Status.PASSED, proxy.recording)
    details = [trial.details or case.details for trial in case.trials]
    assert sorted(one.replayed for one in details) == [False, True]
    assert proxy.begun == proxy.ended


@pytest.mark.parametrize(
    "response",
    [
        "ok",
        "wrong",
        TargetError("HTTP 500", fault=TargetFault.REFUSED, status=500),
        TargetError("no response", fault=TargetFault.LATE),
    ],
    ids=str,
)
def test_execution__call_without_an_answer__is_an_evaluation_error_whatever_the_agent_does(tmp_path, response) -> None:
    ((_, case),) = run(tmp_path, ScriptedProxy(MISS), [response]).iter_cases()
    assert (case.status, case.error_kind, case.error_cause, case.score, case.evaluator_results) == (
        *(Status.ERROR, ErrorKind.EVALUATION_ERROR, ErrorCause.MODEL_CALL_MISSING),
        *(0.0, ()),
    )
    assert case.error == "`prompt` differs"


def test_attempts__one_with_a_missing_call__is_not_outweighed_by_another_that_passes(tmp_path) -> None:
    proxy = ScriptedProxy(MISS, REPLAYED)
    ((_, case),) = run(tmp_path, proxy, ["no", "ok"], attempt_rule=AttemptRule(count=2)).iter_cases()
    assert (case.status, case.error_cause, len(proxy.ended)) == (Status.ERROR, ErrorCause.MODEL_CALL_MISSING, 2)
