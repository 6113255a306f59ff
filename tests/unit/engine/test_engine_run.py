"""The run as a whole, against targets that behave and targets that do not."""

import asyncio
import gc
import json
import weakref

import msgspec
import pytest

from eval_gate.config.settings import ResponseRetention, RunLimits
from eval_gate.engine.run import Run
from eval_gate.model.case import EvalCase
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.execution import ErrorCause, ErrorKind, Status
from eval_gate.model.result import RerunStopReason, RunResult
from eval_gate.model.specs.evaluator import ResponseContains
from eval_gate.results.run_writer import write_result
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from tests.support.cases import ScriptedTarget, Watching, make_case, make_plan, make_suite


def execute(plan, folder, observer=None) -> RunResult:
    return asyncio.run(Run(plan, folder, observer or Watching()).execute())


def statuses(result: RunResult) -> dict[str, str]:
    return {case.id: case.status.value for suite in result.suites for case in suite.cases}


def ten_cases() -> list:
    return [make_case(f"c{number}") for number in range(10)]


async def unreachable(request):
    raise TargetError("connection refused", fault=TargetFault.UNREACHABLE, hint="start the agent")


def test_run__all_answers__are_judged_in_file_order_whatever_finishes_first(tmp_path) -> None:
    async def slow_first(request):
        await asyncio.sleep(0.2 if request.case_id == "c0" else 0.03)
        return Response(text="ok" if request.case_id != "c3" else "no")

    target = ScriptedTarget(slow_first)
    watching = Watching()
    result = execute(make_plan(make_suite(*ten_cases()), target=target, concurrency=4), tmp_path, watching)
    assert list(statuses(result)) == [f"c{number}" for number in range(10)]
    assert statuses(result)["c3"] == "failed"
    assert result.complete
    assert (result.summary.passed, result.summary.failed, result.summary.pass_rate) == (9, 1, 0.9)
    assert target.most_in_flight == 4
    assert (watching.total, len(watching.records)) == (10, 10)


def test_run__token_without_a_value__is_in_what_is_kept_of_its_case(tmp_path) -> None:
    case = make_case("c0", expect=[ResponseContains(values=("ok", "{{seed:gone}}"))])
    ((_, found),) = execute(make_plan(make_suite(case)), tmp_path).iter_cases()
    assert (found.status, found.details.skipped_tokens) == (Status.PASSED, ("{{seed:gone}}",))
    assert found.details.response == "ok"


@pytest.mark.contract("run.concurrency.default")
def test_run__no_concurrency_named__one_at_a_time(tmp_path) -> None:
    target = ScriptedTarget()
    execute(make_plan(make_suite(*ten_cases()), target=target), tmp_path)
    assert target.most_in_flight == 1


@pytest.mark.contract("run.timeout")
def test_run__silent_agent__case_is_an_error_with_timeout_and_the_others_go_on(tmp_path) -> None:
    async def hangs(request):
        await asyncio.sleep(60 if request.case_id == "c1" else 0)
        return Response(text="ok")

    result = execute(
        make_plan(make_suite(*ten_cases()), target=ScriptedTarget(hangs), limits=RunLimits(timeout_ms=30)), tmp_path
    )
    case = result.suites[0].cases[1]
    assert (case.status, case.passed, case.error, case.assertions_run) == (
        Status.ERROR,
        False,
        "timeout: no response within 30 ms",
        0,
    )
    assert (case.error_kind, case.trials[0].error_kind, case.trials[0].timed_out) == (
        ErrorKind.AGENT_ERROR,
        ErrorKind.AGENT_ERROR,
        True,
    )
    assert result.summary.passed == 9


def test_run__case_with_its_own_timeout__that_one_holds(tmp_path) -> None:
    async def hangs(request):
        await asyncio.sleep(60)
        return Response(text="ok")

    plan = make_plan(make_suite(make_case(timeout_ms=10)), target=ScriptedTarget(hangs))
    assert execute(plan, tmp_path).suites[0].cases[0].error == "timeout: no response within 10 ms"


@pytest.mark.contract("run.agent-error")
def test_run__agent_breaks_once__is_an_error_of_that_case_only(tmp_path) -> None:
    async def breaks(request):
        if request.case_id == "c1":
            raise TargetError("agent error: 500 boom", fault=TargetFault.REFUSED, status=500)
        return Response(text="ok")

    result = execute(make_plan(make_suite(*ten_cases()), target=ScriptedTarget(breaks)), tmp_path)
    case = result.suites[0].cases[1]
    assert (case.status, case.passed, case.error) == (Status.ERROR, False, "agent error: 500 boom")
    assert (result.summary.errored, result.summary.failed, result.summary.passed) == (1, 0, 9)


def test_run__trials_in_the_journal_alone__gives_the_same_result_as_those_in_memory(tmp_path) -> None:
    async def answers(request):
        said = "ok" if request.trial else f"no {request.case_id} ☃"
        return Response(text=said, duration_ms=2.5, tool_calls=(ToolCall(name="t", params={"a": 1}),))

    suite = make_suite(*ten_cases())
    in_memory, on_disk = (
        asyncio.run(
            Run(
                make_plan(suite, target=ScriptedTarget(answers), limits=RunLimits(trials=3)),
                tmp_path / name,
                Watching(),
                **most,
            ).execute()
        )
        for name, most in (("memory", {}), ("disk", {"in_memory": 0}))
    )
    same = {"summary": in_memory.summary}  # the clock is in it
    assert msgspec.json.encode(replace(on_disk, **same)).decode() == msgspec.json.encode(in_memory).decode()
    assert (on_disk.summary.flaky, in_memory.suites[0].cases[0].trials[0].details.response) == (10, "no c0 ☃")


class WatchedCase(EvalCase, weakref=True):
    """A case of which a test can tell whether anybody still holds it."""


def test_run__over__holds_none_of_its_cases(tmp_path) -> None:
    watched = [WatchedCase(**msgspec.structs.asdict(case)) for case in ten_cases()]
    plan, cases = make_plan(make_suite(*watched), target=ScriptedTarget()), [weakref.ref(case) for case in watched]
    del watched
    run = Run(plan, tmp_path, Watching())
    del plan
    result = asyncio.run(run.execute())
    gc.collect()
    assert result.summary.passed == 10
    assert [one() for one in cases] == [None] * 10


def test_run__target_gone__gives_up_and_the_rest_is_not_run(tmp_path) -> None:
    target = ScriptedTarget(unreachable)
    result = execute(make_plan(make_suite(*ten_cases()), target=target), tmp_path)
    assert len(target.asked) == 5
    assert (result.summary.errored, result.summary.not_run, result.complete) == (5, 5, False)
    assert result.stop_reason == "no connection to the target, 5 cases in a row: connection refused"
    assert (result.stop_cause, result.stop_hint) == (ErrorCause.NO_CONNECTION, "start the agent")
    cases = [case for _, case in result.iter_cases() if case.error]
    assert {(case.error, case.error_cause, case.error_hint) for case in cases} == {
        ("connection refused", ErrorCause.NO_CONNECTION, "start the agent")
    }


class Doubts:
    """Wants every case of the first pass again, so often."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked = False

    new_cases = frozenset()
    rerun_wait = 0

    def get_interval_s(self, key):
        return 0.0

    def find_rerun_candidates(self, result):
        self.asked = True
        return [key for key, _ in result.iter_cases()]

    def select_next(self, waiting):
        return waiting

    def should_rerun(self, key, reruns):
        return len(reruns) < self.times

    def get_rerun_end(self, key, reruns):
        return RerunStopReason.DECIDED if len(reruns) >= self.times else RerunStopReason.RUN_STOPPED


def hanging(*numbers: int) -> ScriptedTarget:
    """Never answers these cases; all of them where none is named."""

    async def answer(request):
        if not numbers or int(request.case_id[1:]) in numbers:
            await asyncio.sleep(60)
        return Response(text="ok")

    return ScriptedTarget(answer)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_run__target_hangs__gives_up_after_so_many_cases_and_runs_nothing_again(tmp_path, concurrency) -> None:
    target, doubts, limit = hanging(), Doubts(6), max(5, concurrency)
    limits = RunLimits(timeout_ms=50, trials=2)
    cases = [make_case(f"c{number}") for number in range(100)]
    result = execute(
        make_plan(make_suite(*cases), target=target, limits=limits, concurrency=concurrency, rerun_policy=doubts),
        tmp_path,
    )
    assert limit <= len(target.asked) <= 2 * limit
    assert (result.summary.errored, result.summary.not_run, result.complete) == (limit, 100 - limit, False)
    said = f"no response from the target in time, {limit} cases in a row: timeout: no response within 50 ms"
    assert (result.stop_reason, result.stop_cause) == (said, ErrorCause.TIMED_OUT)
    assert result.stop_hint == "increase timeoutMs if it needs longer"
    assert not doubts.asked


@pytest.mark.slow
def test_run__some_cases_hang_and_others_answer_in_between__goes_on_and_runs_them_again(tmp_path) -> None:
    slow = (0, 1, 2, 3, 5, 6, 7, 8)
    target, limits = hanging(*slow), RunLimits(timeout_ms=20)
    plan = make_plan(make_suite(*ten_cases()), target=target, limits=limits, rerun_policy=Doubts(3))
    result = execute(plan, tmp_path)
    assert (result.stop_reason, result.summary.errored, result.summary.passed) == (None, 8, 2)
    assert {case.id: case.reruns for case in result.suites[0].cases} == {f"c{number}": 3 for number in range(10)}


@pytest.mark.parametrize(("slow", "given_up"), [(9, False), (19, True)])
def test_run__cases_that_hang_side_by_side__are_not_the_whole_target_before_there_are_many(
    tmp_path, slow, given_up
) -> None:
    target, limits = hanging(*range(1, slow + 1)), RunLimits(timeout_ms=20)
    cases = [make_case(f"c{number}") for number in range(20)]
    result = execute(make_plan(make_suite(*cases), target=target, limits=limits, concurrency=4), tmp_path)
    assert (result.stop_reason is not None) == given_up
    assert (result.summary.errored == slow) != given_up


def test_run__few_cases_and_no_answer_at_all__their_re_runs_end_early_too(tmp_path) -> None:
    target, limits = hanging(), RunLimits(timeout_ms=20)
    plan = make_plan(make_suite(*ten_cases()[:4]), target=target, limits=limits, rerun_policy=Doubts(6))
    result = execute(plan, tmp_path)
    assert len(target.asked) == 4 + 5
    assert result.stop_reason is not None


def test_run__gone_and_hanging_by_turns__is_given_up_in_words_that_are_true_of_both(tmp_path) -> None:
    async def answer(request):
        if int(request.case_id[1:]) % 2:
            await unreachable(request)
        await asyncio.sleep(60)

    plan = make_plan(make_suite(*ten_cases()), target=ScriptedTarget(answer), limits=RunLimits(timeout_ms=20))
    said = "no response from the target, 5 cases in a row: timeout: no response within 20 ms"
    assert execute(plan, tmp_path).stop_reason.startswith(said)


@pytest.mark.parametrize(
    ("fault", "status", "error_kind"),
    [
        (TargetFault.UNREACHABLE, None, ErrorKind.AGENT_UNREACHABLE),
        (TargetFault.REFUSED, None, ErrorKind.AGENT_ERROR),
        (TargetFault.REFUSED, 500, ErrorKind.AGENT_ERROR),
        (TargetFault.REFUSED, 503, ErrorKind.AGENT_ERROR),
        (TargetFault.REFUSED, 422, ErrorKind.AGENT_ERROR),
        (TargetFault.REFUSED, 401, ErrorKind.AGENT_UNREACHABLE),
        (TargetFault.REFUSED, 403, ErrorKind.AGENT_UNREACHABLE),
        (TargetFault.REFUSED, 429, ErrorKind.AGENT_UNREACHABLE),
        (TargetFault.MALFORMED, None, ErrorKind.AGENT_ERROR),
        (TargetFault.LATE, None, ErrorKind.AGENT_ERROR),
        (TargetFault.NOT_SENT, None, ErrorKind.EVALUATION_ERROR),
    ],
)
def test_run__target_breaks__has_the_blame_of_its_fault(tmp_path, fault, status, error_kind) -> None:
    async def breaks(request):
        raise TargetError("broken", fault=fault, status=status)

    (case,) = execute(make_plan(target=ScriptedTarget(breaks)), tmp_path).suites[0].cases
    assert (case.status, case.error_kind, case.trials[0].error_kind) == (Status.ERROR, error_kind, error_kind)
    assert case.trials[0].timed_out is (fault is TargetFault.LATE)


def test_run__unhealthy_target__asks_nothing(tmp_path) -> None:
    def unhealthy() -> None:
        raise TargetError("health check answered 503", fault=TargetFault.UNREACHABLE)

    target = ScriptedTarget(healthy=unhealthy)
    result = execute(make_plan(make_suite(*ten_cases()), target=target), tmp_path)
    assert target.asked == []
    assert (result.summary.not_run, result.stop_reason) == (10, "health check answered 503")


def test_run__skipped_case__is_not_asked_and_keeps_its_reason(tmp_path) -> None:
    target = ScriptedTarget()
    suite = make_suite(make_case("a"), make_case("b", skip_reason="no judge"))
    result = execute(make_plan(suite, target=target), tmp_path)
    assert target.asked == ["a"]
    assert statuses(result) == {"a": "passed", "b": "skipped"}
    assert result.complete


def test_run__trials__every_case_so_often_and_all_first_ones_first(tmp_path) -> None:
    target = ScriptedTarget()
    suite = make_suite(make_case("a"), make_case("b"))
    result = execute(make_plan(suite, target=target, limits=RunLimits(trials=3)), tmp_path)
    assert target.asked == ["a", "b"] * 3
    assert [len(case.trials) for case in result.suites[0].cases] == [3, 3]


def test_run__stopped_half_way__keeps_what_is_finished_and_resumes_without_asking_it_again(tmp_path) -> None:
    async def first_process() -> RunResult:
        run = Run(make_plan(make_suite(*ten_cases()), target=first), tmp_path, Watching())

        async def stop_at_five() -> None:
            while len(first.asked) < 5:  # noqa: ASYNC110 (the target is not to know that it is watched)
                await asyncio.sleep(0)
            run.stop("interrupted")

        _, result = await asyncio.gather(stop_at_five(), run.execute())
        return result

    first, second, watching = ScriptedTarget(), ScriptedTarget(), Watching()
    stopped = asyncio.run(first_process())
    finished = {case_id for case_id, status in statuses(stopped).items() if status == "passed"}
    assert 0 < len(finished) < 10
    assert (stopped.complete, stopped.stop_reason) == (False, "interrupted")

    result = execute(make_plan(make_suite(*ten_cases()), target=second), tmp_path, watching)
    assert set(second.asked) == set(statuses(stopped)) - finished
    assert watching.done == len(finished)
    assert (result.summary.passed, result.complete, result.stop_reason) == (10, True, None)


def test_run__resumed__asks_again_what_could_not_be_judged_or_has_changed(tmp_path) -> None:
    async def breaks(request):
        if request.case_id == "c1":
            raise TargetError("agent error", fault=TargetFault.REFUSED)
        return Response(text="ok")

    execute(make_plan(make_suite(*ten_cases()), target=ScriptedTarget(breaks)), tmp_path)
    changed = [*ten_cases()[:9], make_case("c9", fingerprint="another question")]
    target = ScriptedTarget()
    assert execute(make_plan(make_suite(*changed), target=target), tmp_path).summary.passed == 10
    assert target.asked == ["c1", "c9"]


def test_run__killed_at_once__has_left_a_record_that_says_it_is_not_complete(tmp_path) -> None:
    seen = []

    async def look(request):
        seen.append(json.loads(next(tmp_path.glob("*/run.json")).read_text()))
        return Response(text="ok")

    execute(make_plan(target=ScriptedTarget(look)), tmp_path)
    assert seen[0]["complete"] is False
    assert (seen[0]["suites"], seen[0]["summary"]["notRun"]) == ([], 1)


def test_run__long_response__is_cut_in_the_results(tmp_path) -> None:
    async def long(request):
        return Response(text="ok" * 20_000)

    details = execute(make_plan(target=ScriptedTarget(long)), tmp_path).suites[0].cases[0].details
    assert (details.response_length, len(details.response), details.response_truncated) == (40_000, 20_000, True)


def test_run__responses_not_stored__are_nowhere(tmp_path) -> None:
    async def secret(request):
        return Response(text="ok top-secret")

    plan = make_plan(target=ScriptedTarget(secret), limits=RunLimits(keep_responses=ResponseRetention.NONE))
    write_result(tmp_path, execute(plan, tmp_path))
    assert not [file for file in tmp_path.rglob("*.json*") if "top-secret" in file.read_text()]
