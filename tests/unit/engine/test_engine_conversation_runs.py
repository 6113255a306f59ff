"""Conversations in a run: what a result says of their turns, and how cost, errors and interruptions end them."""

import asyncio
import time
from typing import NamedTuple

import pytest

from eval_gate.config.settings import ResponseRetention, RunLimits
from eval_gate.engine.base_agent_run import BaseAgentFollowUp
from eval_gate.engine.judge_targets import Judges
from eval_gate.engine.run import Run
from eval_gate.engine.simulated_user import UserMove
from eval_gate.evaluators.base import EvaluatorError, JudgeReply
from eval_gate.model.case import (
    Aggregation,
    AttemptRule,
    CaseBrief,
    CaseTurn,
    SimulatedUser,
    TurnAggregation,
    WorkspaceHook,
    WorkspaceHooks,
)
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.execution import ErrorCause, ErrorKind, Status
from eval_gate.model.result import CaseFingerprints, CaseResult, RunResult
from eval_gate.model.specs.evaluator import LlmJudge, ResponseContains, ToolsCalled
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from tests.support.cases import EVAL_FILE, ScriptedTarget, Watching, make_case, make_plan, make_suite
from tests.support.grading import ScriptedJudge
from tests.support.talks import AWAY, BROKEN, LATE, UNREACHABLE, SessionTarget, copy_error, make_talk, make_turn
from tests.support.virtual_time import VirtualTime

P, F, E, N = Status.PASSED, Status.FAILED, Status.ERROR, Status.NOT_RUN


def execute(target, folder, *cases, **fields) -> RunResult:
    plan = make_plan(make_suite(*(cases or (make_talk(),))), target=target, **fields)
    return asyncio.run(Run(plan, folder, Watching()).execute())


def run_one(target, folder, *cases, **fields) -> CaseResult:
    ((_, case),) = execute(target, folder, *cases, **fields).iter_cases()
    return case


class Scripted(SessionTarget):
    """An agent with one response a turn: a text, or a Response."""

    def __init__(self, *responses, faults=()):
        super().__init__(faults)
        self.responses = responses

    def make_response(self, request):
        response = self.responses[request.turn - 1]
        return Response(text=response, cost_usd=0.01, duration_ms=10.0) if isinstance(response, str) else response


def test_run__conversation__has_its_turns_and_the_sums(tmp_path) -> None:
    call = ToolCall(name="lookup", params={"a": 1})
    target = Scripted("ok 1", Response(text="ok 2", tool_calls=(call, call), cost_usd=0.02, duration_ms=5.0), "ok 3")
    case = run_one(target, tmp_path, make_talk(expect=[ToolsCalled(names=("lookup", "lookup"))]))
    assert (case.status, case.failed_turn, case.duration_ms, case.cost_usd) == (P, None, 25.0, 0.04)
    assert (case.details.response, case.details.tools_called) == ("ok 3", ("lookup", "lookup"))
    assert case.details.conversation == ()
    assert [(turn.message, turn.response, turn.calls, turn.status) for turn in case.details.turns] == [
        ("message 1", "ok 1", 0, P),
        ("message 2", "ok 2", 2, P),
        ("message 3", "ok 3", 0, P),
    ]
    assert case.assertions_run == 4


def test_run__failed_turn__is_named_and_later_ones_are_not_run(tmp_path) -> None:
    case = run_one(Scripted("ok", "no"), tmp_path)
    assert (case.status, case.failed_turn, case.trials[0].failed_turn) == (F, 2, 2)
    assert [(turn.status, turn.score) for turn in case.details.turns] == [(P, 1.0), (F, 0.0), (N, None)]
    assert case.error.startswith("turn 2: ")
    assert not case.details.turns[1].error.startswith("turn 2: ")


def test_run__whole_conversation_fails__no_turn_is_to_blame(tmp_path) -> None:
    case = run_one(Scripted("ok", "ok", "ok"), tmp_path, make_talk(expect=[ResponseContains(values=("bye",))]))
    assert (case.status, case.failed_turn) == (F, None)


def test_run__mean_of_turns_passes__a_low_turn_is_no_failed_one(tmp_path) -> None:
    turns = [make_turn("one"), make_turn("two")]
    spec = {"aggregation": TurnAggregation.MEAN, "stop_score": None}
    talk = make_talk("c", *turns, spec=spec, aggregation=Aggregation.WEIGHTED_MEAN)
    passing = run_one(Scripted("ok", "no"), tmp_path / "a", replace(talk, pass_score=0.5))
    assert (passing.status, passing.score, passing.failed_turn) == (P, 0.5, None)
    failing = run_one(Scripted("ok", "no"), tmp_path / "b", replace(talk, pass_score=0.6))
    assert (failing.status, failing.failed_turn) == (F, 2)


def test_run__error_in_a_turn__names_it_and_keeps_the_turns_before(tmp_path) -> None:
    case = run_one(SessionTarget([None, BROKEN]), tmp_path)
    assert (case.status, case.error, case.failed_turn) == (E, "turn 2: HTTP 500 Internal Server Error", 2)
    assert (case.error_kind, case.error_cause, case.http_status) == (ErrorKind.AGENT_ERROR, "agent_failed", 500)
    assert [(turn.status, turn.response, turn.error) for turn in case.details.turns] == [
        (P, "ok 1: message 1", None),
        (E, None, "HTTP 500 Internal Server Error"),
        (N, None, None),
    ]
    assert (case.details.response, case.cost_usd, case.attempts) == ("ok 1: message 1", 0.01, 2)


def test_run__error_in_the_first_turn__has_no_response(tmp_path) -> None:
    case = run_one(SessionTarget([BROKEN]), tmp_path)
    assert (case.error, case.details.response, case.cost_usd) == ("turn 1: HTTP 500 Internal Server Error", None, None)
    assert [turn.status for turn in case.details.turns] == [E, N, N]


class OneSession(SessionTarget):
    """An agent that returns the same id in every conversation."""

    def make_response(self, request):
        request.open_session.own_id = "shared"
        return super().make_response(request)


def test_run__agent_with_one_session_for_all__is_an_agent_error_of_every_other_conversation(tmp_path) -> None:
    result = execute(OneSession(), tmp_path, make_talk("first"), make_talk("second"), limits=RunLimits(trials=2))
    statuses = {key.case_id: [trial.status for trial in case.trials] for key, case in result.iter_cases()}
    assert statuses == {"first": [P, E], "second": [E, E]}
    assert all(case.error_kind in {None, ErrorKind.AGENT_ERROR} for _, case in result.iter_cases())


@pytest.mark.parametrize(
    ("last_s", "status", "error"), [(40, P, None), (60, E, "turn 3: timeout: no response within ")]
)
def test_run__time_limit__is_that_of_each_turn(tmp_path, monkeypatch, last_s, status, error) -> None:
    class Slow(SessionTarget):
        async def respond(self, request):
            await asyncio.sleep(last_s if request.turn == 3 else 40)
            return await super().respond(request)

    plan = make_plan(make_suite(make_talk()), target=Slow(), limits=RunLimits(timeout_ms=50_000))
    ((_, case),) = VirtualTime(monkeypatch).run(Run(plan, tmp_path, Watching()).execute()).iter_cases()
    assert (case.status, case.failed_turn) == (status, 3 if error else None)
    assert case.error is error or case.error.startswith(error)
    assert case.trials[0].timed_out is bool(error)


def test_run__turns_that_time_out_in_a_target_that_responds__are_not_the_whole_target(tmp_path) -> None:
    class Hanging(SessionTarget):
        def make_response(self, request):
            if request.turn == 2:
                raise TargetError("late", fault=TargetFault.LATE)
            return super().make_response(request)

    result = execute(Hanging(), tmp_path, *[make_talk(f"c{number}") for number in range(7)])
    assert [case.status for _, case in result.iter_cases()] == [E] * 7
    assert result.stop_reason is None


def test_run__conversations_without_a_connection__end_the_run_as_other_cases_do(tmp_path) -> None:
    result = execute(SessionTarget([UNREACHABLE] * 99), tmp_path, *[make_talk(f"c{number}") for number in range(9)])
    assert [case.status for _, case in result.iter_cases()] == [E] * 5 + [N] * 4
    assert result.suites[0].cases[0].error == "turn 1: connection refused"


def test_run__started_again__costs_of_all_sessions_count_and_assertions_see_the_last_one(tmp_path) -> None:
    case = run_one(SessionTarget([None, AWAY]), tmp_path)
    assert (case.status, case.cost_usd, case.attempts, case.duration_ms) == (P, 0.04, 5, 3.0)
    assert case.warnings == ("the conversation was started again 1 time: turn 2: HTTP 503",)


def test_run__evaluator_without_a_score_in_a_turn__is_an_evaluation_error_of_that_turn(tmp_path) -> None:
    unknown = Scripted("ok", Response(text="ok", tool_calls_known=False, duration_ms=5.0))
    turns = [make_turn("one"), replace(make_turn("two"), evaluators=(ToolsCalled(names=("t",)),))]
    case = run_one(unknown, tmp_path, make_talk("c", *turns))
    assert (case.status, case.error_kind, case.failed_turn) == (E, ErrorKind.EVALUATION_ERROR, 2)
    assert case.error.startswith("turn 2: ")
    assert [turn.status for turn in case.details.turns] == [P, E]
    assert case.details.turns[1].response == "ok"
    assert case.duration_ms == 15.0  # the agent's time alone


def test_run__program_changed_after_the_turns__their_judges_still_cost(tmp_path) -> None:
    class Changing:
        """Files of programs, of which one is written to after the checks around the first turn."""

        checks = 0
        notices = ()

        def find_change(self, keys):
            self.checks += 1
            return "grader.py" if self.checks > 2 else None

    judged = CaseTurn(message="hi", evaluators=(LlmJudge(),))
    talk = make_talk("c", judged, brief=CaseBrief(question="hi", linked_question="hi"))
    judge = ScriptedJudge(JudgeReply('{"score": 1}', Usage(input_tokens=7), 0.25))
    judge.notices = ()
    case = run_one(
        Scripted("ok"),
        tmp_path,
        talk,
        judges=Judges(defaults={(EVAL_FILE, None): judge}),
        program_files=Changing(),
        setup_fingerprints={talk.key: CaseFingerprints(programs=("grader",))},
    )
    assert (case.status, case.error_kind) == (E, ErrorKind.EVALUATION_ERROR)
    assert (case.judge_cost_usd, case.judge_usage) == (0.25, Usage(input_tokens=7))


@pytest.mark.parametrize(
    ("message", "fault", "duration_ms"), [("more", LATE, 2_000.0), (EvaluatorError("gone"), None, 1.0)]
)
def test_run__error_after_a_slow_simulated_user__only_requests_count_as_the_duration(
    tmp_path, monkeypatch, message, fault, duration_ms
) -> None:
    clock = VirtualTime(monkeypatch)
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)

    class Slow(SessionTarget):
        async def respond(self, request):
            await asyncio.sleep(1)
            return await super().respond(request)

    class Player:
        notices = ()

        async def move(self, user, history, sample):
            await asyncio.sleep(100)
            if isinstance(message, Exception):
                raise message
            return UserMove(message)

    talk = make_talk(spec={"turns": (), "user": SimulatedUser(goal="a refund", first_message="hi")})
    judges = Judges(users={(EVAL_FILE, None): Player()})
    plan = make_plan(make_suite(talk), target=Slow([None, fault]), judges=judges)
    ((_, case),) = clock.run(Run(plan, tmp_path, Watching()).execute()).iter_cases()
    assert (case.status, case.failed_turn, case.duration_ms) == (E, 2, duration_ms)


@pytest.mark.parametrize(("lists", "status"), [(False, E), (True, P)])
def test_run__turn_that_lists_no_calls__is_unknown_only_where_no_turn_of_the_run_lists_any(
    tmp_path, lists, status
) -> None:
    none_called = (ToolsCalled(names=()),)
    turns = [make_turn("one"), replace(make_turn("two"), evaluators=none_called)]
    talk = make_talk("c", *turns)
    target = Scripted(Response(text="ok", tool_calls_known=lists or None), Response(text="ok", tool_calls_known=None))
    case = run_one(target, tmp_path, talk)
    assert (case.status, case.error_cause) == (status, None if lists else ErrorCause.CALLS_UNKNOWN)
    assert case.failed_turn is None


def test_run__budget_used_between_turns__is_not_run_not_journalled_and_says_so(tmp_path) -> None:
    target = SessionTarget()
    result = execute(target, tmp_path, make_talk("a"), make_talk("b"), limits=RunLimits(max_cost_usd=0.045))
    assert [case.status for _, case in result.iter_cases()] == [P, N]
    assert [len(turns) for turns in target.taken_in.values()] == [3, 2]
    assert (result.stop_reason, result.stop_cause, result.complete) == (
        "the budget of $0.045 is used up ($0.0500 spent)",
        ErrorCause.BUDGET_USED,
        False,
    )
    assert result.warnings == (
        "case b was interrupted before turn 3, because the budget of $0.045 is used up: its turns cost $0.0200",
    )
    assert b'"b"' not in next(tmp_path.glob("*/cases.jsonl")).read_bytes()


def test_run__several_conversations_at_once__budget_counts_all_that_are_in_progress(tmp_path) -> None:
    target = SessionTarget()
    cases = [make_talk(f"c{number}") for number in range(10)]
    execute(target, tmp_path, *cases, limits=RunLimits(max_cost_usd=0.1), concurrency=10)
    assert sum(map(len, target.taken_in.values())) <= 10 + 10


def test_run__conversation_of_a_target_that_is_given_up__its_cost_counts_for_other_targets(tmp_path) -> None:
    class Broken(SessionTarget):
        async def respond(self, request):
            if request.turn == 2:
                await asyncio.Event().wait()
            if request.turn == 0:
                raise copy_error(UNREACHABLE)
            return Response(text="ok", cost_usd=1.0)

    async def respond(request):
        return Response(text="ok", cost_usd=0.4)

    other = ScriptedTarget(respond)
    cases = [make_talk("talk"), *(make_case(f"a{number}") for number in range(5))]
    cases += [make_case(f"b{number}", target="other") for number in range(4)]
    targets = {(EVAL_FILE, "other"): other}
    result = execute(Broken(), tmp_path, *cases, targets=targets, limits=RunLimits(max_cost_usd=1.5), concurrency=2)
    assert "no connection to the target" in result.stop_reason
    assert [case.cost_usd for _, case in result.iter_cases()][6:] == [0.4, 0.4, None, None]


def test_run__budget_used_in_an_attempt__earlier_attempts_of_the_execution_cost_too(tmp_path) -> None:
    talk = make_talk("a", attempt_rule=AttemptRule(count=3))

    class Failing(SessionTarget):
        def make_response(self, request):
            return Response(text="no", cost_usd=0.01)

    talk = replace(talk, conversation=replace(talk.conversation, stop_score=None))
    result = execute(Failing(), tmp_path, talk, limits=RunLimits(max_cost_usd=0.045))
    assert [case.status for _, case in result.iter_cases()] == [N]
    assert "its turns cost $0.0500" in result.warnings[0]


def test_run__unknown_cost_of_one_turn__the_others_still_count_in_the_budget(tmp_path) -> None:
    class Unknown(SessionTarget):
        def make_response(self, request):
            return Response(text="ok", cost_usd=None if request.turn == 1 else 0.02)

    limits = RunLimits(max_cost_usd=0.01)
    result = execute(Unknown(), tmp_path, make_talk("a", *map(make_turn, "abc")), make_talk("b"), limits=limits)
    assert [case.cost_usd for _, case in result.iter_cases()] == [None, None]
    assert [case.status for _, case in result.iter_cases()] == [N, N]


def test_run__responses_not_stored__turns_keep_only_how_they_ended(tmp_path) -> None:
    limits = RunLimits(keep_responses=ResponseRetention.NONE)
    case = run_one(Scripted("ok secret", "no secret"), tmp_path, limits=limits)
    assert [(turn.message, turn.response, turn.status, turn.response_length) for turn in case.details.turns] == [
        (None, None, P, 9),
        (None, None, F, 9),
        (None, None, N, 0),
    ]
    assert b"secret" not in b"".join(file.read_bytes() for file in tmp_path.rglob("*.json*"))


def test_run__redact_pattern__masks_the_turns(tmp_path) -> None:
    case = run_one(
        Scripted("ok 12345", "ok", "ok"), tmp_path, make_talk("c", make_turn("I am 777")), patterns=("\\d+",)
    )
    assert [(turn.message, turn.response) for turn in case.details.turns] == [("I am ***", "ok ***")]


def test_run__many_long_turns__share_one_limit(tmp_path) -> None:
    turns = [make_turn("m" * 30_000, None) for _ in range(10)]
    case = run_one(Scripted(*["ok", *["x" * 30_000] * 9]), tmp_path, make_talk("c", *turns))
    texts = [text for turn in case.details.turns for text in (turn.message, turn.response)]
    assert sum(map(len, texts)) <= 100_000
    assert (case.details.turns[0].response, case.details.turns[0].response_truncated) == ("ok", False)
    assert {len(text) for text in texts if text != "ok"} == {5_263}
    assert all(turn.response_truncated for turn in case.details.turns[1:])


def test_run__trial_that_did_not_decide__keeps_its_turns(tmp_path) -> None:
    class Wording(SessionTarget):
        def make_response(self, request):
            first = f"ok {request.trial}" if request.turn == 1 else "ok"
            return Response(text="no" if request.turn == 3 else first)

    case = run_one(Wording(), tmp_path, limits=RunLimits(trials=2))
    assert [turn.response for turn in case.trials[1].details.turns] == ["ok 1", "ok", "no"]
    assert case.trials[1].failed_turn == 3


def test_run__one_request_beside__is_as_before(tmp_path) -> None:
    result = execute(SessionTarget(), tmp_path, make_case("plain"), make_talk("talk"))
    plain, talk = (case for _, case in result.iter_cases())
    assert (plain.details.turns, plain.failed_turn, len(talk.details.turns)) == ((), None, 3)


def test_run__late_turn__is_counted_as_one_execution(tmp_path) -> None:
    case = run_one(SessionTarget([None, LATE]), tmp_path)
    assert (case.error, case.attempts) == ("turn 2: timeout", 2)


def run_base_agent(folder, base_agent, usd: float | None = None, talk=None):
    """The base agent's part of a run of one conversation that failed, over two rounds at most."""
    plan = make_plan(make_suite(talk or make_talk()), limits=RunLimits(max_cost_usd=usd), base_agent=base_agent)
    stored = execute(Scripted("ok", "no"), folder, make_talk())
    stored = replace(stored, run_id="22222222-2222-4333-8444-555555555555")

    class Policy:
        rounds = 0

        def build_base_agent_request(self, result, keys):
            self.rounds += 1
            return Wanted(tuple(keys) if self.rounds <= 2 else (), 1, None)

    follow_up = BaseAgentFollowUp(plan, base_agent, stored, folder)
    return asyncio.run(follow_up.execute(Policy()))


class Wanted(NamedTuple):
    keys: tuple
    rounds: int
    trouble: None


def test_base_agent_follow_up__conversation__is_run_in_sessions_of_its_own(tmp_path) -> None:
    base_agent = Scripted("ok", "no")
    ((_, case),) = run_base_agent(tmp_path, base_agent).iter_cases()
    assert [(one.status, one.failed_turn, one.same_as_current) for one in case.base_agent_trials] == [(F, 2, True)] * 2
    assert list(base_agent.taken_in.values()) == [[1, 2], [1, 2]]


def test_base_agent_follow_up__one_session_for_all__is_an_agent_error_of_the_later_rounds(tmp_path) -> None:
    ((_, case),) = run_base_agent(tmp_path, OneSession()).iter_cases()
    assert [trial.status for trial in case.base_agent_trials] == [P, E]


def test_base_agent_follow_up__that_cannot_hold_a_conversation__does_not_run_it(tmp_path) -> None:
    base_agent = Scripted("ok", "no")
    base_agent.conversation_problem = "it forgets"
    ((_, case),) = run_base_agent(tmp_path, base_agent).iter_cases()
    assert (case.base_agent_trials, base_agent.asked) == ((), [])


def test_base_agent_follow_up__budget_used_between_turns__ends_with_its_cost_and_says_so(tmp_path) -> None:
    base_agent = SessionTarget()
    result = run_base_agent(tmp_path, base_agent, usd=0.015)
    assert result.base_agent.problem == "the cost limit of the run is used up"
    assert list(base_agent.taken_in.values()) == [[1, 2]]


def test_base_agent_follow_up__other_words_in_an_earlier_turn__are_another_response(tmp_path) -> None:
    ((_, case),) = run_base_agent(tmp_path, Scripted("ok, well", "no")).iter_cases()
    assert [one.same_as_current for one in case.base_agent_trials] == [False, False]


def test_base_agent_follow_up__hook_after_the_suite_that_fails__is_a_warning_of_the_result(tmp_path) -> None:
    hook = WorkspaceHook(command=("sh", "-c", "exit 3"), cwd=str(tmp_path), place="`after` of the suite")
    result = run_base_agent(
        tmp_path, Scripted("ok", "no"), talk=make_talk(agent_hooks=WorkspaceHooks(after_all=(hook,)))
    )
    assert result.warnings[-1] == f"{EVAL_FILE}: the hook `after` of the suite exited with code 3"
