"""How a conversation is led: sessions, retries, restarts, turns that are not sent, and the response of the whole."""

import asyncio
import contextlib
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.engine.conversations import (
    BudgetUsedError,
    ConversationServices,
    LedConversation,
    join_turns,
)
from eval_gate.engine.simulated_user import UserMove
from eval_gate.engine.trials import TrialJob, build_request
from eval_gate.evaluators.base import CaseScore, EvaluatorError
from eval_gate.evaluators.trace import list_calls
from eval_gate.model.case import SimulatedUser
from eval_gate.model.conversation import Message, OutputCall, OutputMessage, Response, ToolCall, TraceEvent
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.secret_masking import mask_target
from eval_gate.text.redaction import Redactor
from tests.support.talks import (
    AWAY,
    BROKEN,
    BUSY,
    CUT_OFF,
    FAULTS,
    LATE,
    UNREACHABLE,
    SessionTarget,
    make_talk,
    make_turn,
)
from tests.support.virtual_time import VirtualTime


async def score_fully(response, turn, history) -> CaseScore:
    return CaseScore(passed=True, score=1.0)


def lead(target, case=None, **services) -> LedConversation:
    case = case or make_talk()

    async def score(response, turn, history):
        return CaseScore(passed="ok" in response.text, score=float("ok" in response.text))

    own = ConversationServices(
        **(
            {
                "send": target.respond,
                "score_turn": score,
                "retry_policy": target.retry_policy,
                "remembers_turns": target.remembers_turns,
            }
            | services
        )
    )
    led = LedConversation(build_request(TrialJob(case, 0)), case, own)
    asyncio.run(led.lead())
    return led


def test_led_conversation__turns__each_follows_the_response_before_in_one_session() -> None:
    target = SessionTarget()
    led = lead(target)
    assert [[message.content for message in request.messages] for request in target.requests] == [
        ["message 1"],
        ["message 1", "ok 1: message 1", "message 2"],
        ["message 1", "ok 1: message 1", "message 2", "ok 2: message 2", "message 3"],
    ]
    assert [request.turn for request in target.requests] == [1, 2, 3]
    assert len({request.session for request in target.requests}) == 1
    assert (led.error, led.failed_turn, led.attempts, led.warnings) == (None, None, 3, ())
    assert [message.role for message in led.history] == ["user", "assistant"] * 3


def test_led_conversation__each_execution__has_a_session_of_its_own() -> None:
    target = SessionTarget()
    lead(target)
    lead(target)
    assert [len(turns) for turns in target.taken_in.values()] == [3, 3]


class SharingTarget(SessionTarget):
    """An agent that returns the same session id in every conversation, from this turn on."""

    def __init__(self, since: int, faults=()) -> None:
        super().__init__(faults)
        self._since = since

    def make_response(self, request: Request) -> Response:
        if request.turn >= self._since:
            request.open_session.own_id = "shared"
        return super().make_response(request)


@pytest.mark.parametrize("since", [1, 3])
def test_led_conversation__id_of_another_conversation__is_an_agent_error_of_that_turn(since) -> None:
    target, sessions = SharingTarget(since), {}
    assert lead(target, sessions=sessions).error is None
    second = lead(target, sessions=sessions)
    assert isinstance(second.error, TargetError)
    assert (second.error.fault, second.failed_turn, len(second.turns)) == (TargetFault.MALFORMED, since, since - 1)
    assert "session id of another conversation" in second.error.message


def test_led_conversation__begun_again_in_the_session_that_was_given_up__sends_no_further_turn() -> None:
    target = SharingTarget(1, [None, AWAY])
    led = lead(target)
    assert (led.failed_turn, [request.turn for request in target.requests]) == (1, [1, 2, 1])


def test_led_conversation__failed_turn__is_the_last_unless_all_are_wanted() -> None:
    turns = [make_turn("one"), make_turn("two", None)]

    class Wrong(SessionTarget):
        def make_response(self, request):
            return Response(text="no")

    assert [len(lead(Wrong(), make_talk("c", *turns)).turns)] == [1]
    assert len(lead(Wrong(), make_talk("c", *turns, spec={"stop_score": None})).turns) == 2


def test_led_conversation__window__repeats_system_messages_and_the_newest_exchanges() -> None:
    system = Message(role="system", content="be brief")
    target = SessionTarget()
    lead(target, make_talk(messages=(system,), spec={"window": 1}))
    assert [message.content for message in target.requests[-1].messages] == ["be brief", "ok 2: message 2", "message 3"]


def test_led_conversation__window_and_calls_of_a_model__keeps_calls_with_their_results() -> None:
    call = Message(role="assistant", tool_calls=(ToolCall(name="t", id="1"),))
    own = (call, Message(role="tool", content="r", tool_call_id="1"), Message(role="assistant", content="ok"))

    class Calling(SessionTarget):
        def make_response(self, request):
            return Response(text="ok", new_messages=own)

    target = Calling()
    lead(target, make_talk(spec={"window": 1}))
    assert target.requests[-1].messages == (*own, Message(role="user", content="message 3"))


def test_led_conversation__window_and_calls_of_a_model__graders_see_the_message_of_the_user() -> None:
    call = Message(role="assistant", tool_calls=(ToolCall(name="t", id="1"),))
    own = (call, Message(role="tool", content="r", tool_call_id="1"), Message(role="assistant", content="ok"))
    seen = []

    class Calling(SessionTarget):
        def make_response(self, request):
            return Response(text="ok", new_messages=own)

    async def score(response, turn, history):
        seen.append(history)
        return await score_fully(response, turn, history)

    lead(Calling(), make_talk(spec={"window": 1}), score_turn=score)
    assert seen[-1] == (Message(role="user", content="message 3"), *own)


SECRET = "sk-0123456789abcdef0123"
SURE = (UNREACHABLE, BUSY)
UNSURE = (AWAY, CUT_OFF)


@pytest.mark.parametrize("fault", SURE, ids=lambda one: one.message)
def test_led_conversation__surely_not_processed__is_sent_again_in_the_same_session(fault) -> None:
    target = SessionTarget([None, fault])
    led = lead(target)
    assert list(target.taken_in.values()) == [[1, 2, 3]]
    assert (led.error, led.attempts, led.warnings) == (None, 4, ())


@pytest.mark.parametrize("fault", UNSURE, ids=lambda one: one.message)
def test_led_conversation__maybe_processed__begins_again_in_a_new_session(fault) -> None:
    target = SessionTarget([None, fault])
    led = lead(target)
    assert list(target.taken_in.values()) == [[1, 2], [1, 2, 3]]
    assert (led.error, led.attempts, len(led.turns), len(led.abandoned_turns)) == (None, 5, 3, 1)
    what = "turn 2: HTTP 503" if fault is AWAY else "turn 2: agent failed"
    assert led.warnings == (f"the conversation was started again 1 time: {what}",)


@pytest.mark.parametrize("fault", UNSURE, ids=lambda one: one.message)
def test_led_conversation__nothing_is_remembered__is_sent_again_in_the_same_session(fault) -> None:
    target = SessionTarget([None, fault], remembers=False)
    led = lead(target)
    assert list(target.taken_in.values()) == [[1, 2, 2, 3]]
    assert led.warnings == ()


def test_led_conversation__nothing_is_remembered_and_retries_used_up__does_not_begin_again() -> None:
    target = SessionTarget([None, CUT_OFF, CUT_OFF, CUT_OFF], remembers=False)
    led = lead(target)
    assert (list(target.taken_in.values()), led.failed_turn) == ([[1, 2, 2, 2]], 2)


def test_led_conversation__restarts_used_up__ends_with_the_error_and_keeps_its_turns() -> None:
    target = SessionTarget([None, AWAY, AWAY, None, AWAY])
    led = lead(target)
    assert list(target.taken_in.values()) == [[1, 2], [1], [1, 2]]
    assert (led.error.status, led.failed_turn, len(led.turns), led.attempts) == (503, 2, 1, 5)
    assert led.failed_message == "message 2"


@pytest.mark.parametrize("fault", [BROKEN, LATE], ids=lambda one: one.message)
def test_led_conversation__error_that_no_retry_helps__ends_in_its_turn(fault) -> None:
    target = SessionTarget([None, None, fault])
    led = lead(target)
    assert (led.error.fault, led.failed_turn, len(led.turns), len(target.taken_in)) == (fault.fault, 3, 2, 1)


@given(st.lists(st.sampled_from((None, *FAULTS)), max_size=14), st.booleans())
def test_led_conversation__any_faults__no_turn_is_sent_twice_that_may_be_remembered(faults, remembers) -> None:
    target = SessionTarget(faults, remembers=remembers)
    led = lead(target)
    for turns in target.taken_in.values():
        assert turns == sorted(turns)
        assert not remembers or turns == list(range(1, len(turns) + 1))
    assert len(target.taken_in) <= (1 + target.retry_policy.max_retries if remembers else 1)
    assert led.attempts <= len(target.requests)
    if led.error is None:
        assert [turn.message for turn in led.turns] == ["message 1", "message 2", "message 3"]
    else:
        assert led.failed_turn == len(led.turns) + 1


def test_led_conversation__evaluator_without_a_score__ends_in_its_turn_and_keeps_the_response() -> None:
    async def score(response, turn, history):
        raise EvaluatorError("the judge is gone")

    led = lead(SessionTarget(), score_turn=score)
    assert (str(led.error), led.failed_turn, led.failed_message) == ("the judge is gone", 1, None)
    assert [turn.response.text for turn in led.turns] == ["ok 1: message 1"]


@pytest.mark.parametrize("fault", [None, AWAY, BROKEN])
def test_led_conversation__end_of_any_kind__closes_what_the_session_holds(fault) -> None:
    closed = []

    class Opening(SessionTarget):
        async def respond(self, request):
            await request.open_session.enter("it", lambda: Closing(request.session))
            return await super().respond(request)

    class Closing:
        def __init__(self, name):
            self.name = name

        async def __aenter__(self):
            return self

        async def __aexit__(self, *_):
            closed.append(self.name)

    target = Opening([None, fault])
    lead(target)
    assert sorted(closed) == sorted(target.taken_in)


def make_response(text="", **fields) -> Response:
    return Response(text=text, **fields)


def test_join_turns__has_the_last_text_all_calls_and_sums() -> None:
    whole = join_turns(
        [
            make_response("a", tool_calls=(ToolCall(name="x"),), usage=Usage(input_tokens=1, output_tokens=2)),
            make_response("b", tool_calls=(ToolCall(name="y"),), usage=Usage(input_tokens=3), cost_usd=1.0),
        ]
    )
    assert (whole.text, [call.name for call in whole.tool_calls]) == ("b", ["x", "y"])
    assert (whole.usage, whole.cost_usd) == (Usage(input_tokens=4, output_tokens=None), None)


@pytest.mark.parametrize(
    ("levels", "whole"),
    [((True, True), True), ((True, None), None), ((None, False), False), ((True, False), False)],
)
def test_join_turns__calls_that_no_response_has__are_known_as_in_the_response_that_says_least(levels, whole) -> None:
    assert join_turns([make_response(tool_calls_known=known) for known in levels]).tool_calls_known is whole


def test_join_turns__one_response_has_calls__those_of_the_whole_are_known() -> None:
    first = make_response(tool_calls=(ToolCall(name="x"),))
    assert join_turns([first, make_response(tool_calls_known=None)]).tool_calls_known is True


def test_join_turns__messages_in_one_response_only__lose_no_call_of_the_others() -> None:
    call = OutputMessage(role="assistant", tool_calls=(OutputCall(tool="x"),))
    plain = make_response("b", tool_calls=(ToolCall(name="y", params={"a": 1}),))
    whole = join_turns([make_response("a", messages=(call,), tool_calls=(ToolCall(name="x"),)), plain])
    assert [(one.name, one.args) for one in list_calls(whole)] == [("x", {}), ("y", {"a": 1})]
    event = TraceEvent(type="tool_call", name="x")
    whole = join_turns([make_response("a", trace=(event,), tool_calls=(ToolCall(name="x"),)), plain])
    assert [(one.name, one.args) for one in list_calls(whole)] == [("x", {}), ("y", {"a": 1})]


def test_join_turns__messages_in_all_responses__are_those_of_the_whole() -> None:
    turns = [
        make_response(name, messages=(OutputMessage(role="assistant", tool_calls=(OutputCall(tool=name, input=[1]),)),))
        for name in "ab"
    ]
    assert [(one.name, one.args) for one in list_calls(join_turns(turns))] == [("a", [1]), ("b", [1])]
    turns = [make_response(name, trace=(TraceEvent(type="error", text=name),)) for name in "ab"]
    assert [event.text for event in join_turns(turns).trace] == ["a", "b"]


def test_join_turns__one_response__is_the_whole() -> None:
    one = make_response("a", tool_calls_known=None, usage=Usage(input_tokens=1), cost_usd=0.0)
    messages = (Message(role="user", content="q"),)
    # what a model was asked stands in the turns
    assert join_turns([replace(one, conversation=messages, new_messages=messages)]) == one


def play(*replies, **user):
    """A conversation with a user who says these messages, then ends with `reached`; None ends, an error is raised."""
    left = iter([*replies, None])

    async def move(user, history, sample):
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return UserMove(reply, None if reply else "reached", Usage(input_tokens=5), 0.25)

    target = SessionTarget()
    spec = {"turns": (), "user": SimulatedUser(goal="a refund", **user), "stop_score": None}
    return target, lead(target, make_talk(spec=spec), move_user=move)


def test_led_conversation__simulated_user__writes_until_it_ends() -> None:
    target, led = play("hi", "4711")
    assert [request.message for request in target.requests] == ["hi", "4711"]
    assert (led.user_end, led.judge_costs) == ("reached", (Usage(input_tokens=15), 0.75))


def test_led_conversation__first_message_and_most_messages__need_no_request_of_the_user() -> None:
    target, led = play("4711", "more", first_message="hi", max_messages=2)
    assert [request.message for request in target.requests] == ["hi", "4711"]
    assert (led.user_end, led.judge_costs[1]) == ("max_messages", 0.25)


def test_led_conversation__user_without_a_message__is_an_error_of_the_turn_that_it_should_begin() -> None:
    _, led = play("hi", EvaluatorError("no message", cost_usd=0.5))
    assert (str(led.error), led.failed_turn, len(led.turns), led.judge_costs[1], led.attempts) == (
        "no message",
        2,
        1,
        0.25,
        1,
    )


def test_led_conversation__session_that_cannot_be_closed__is_an_error_of_the_last_turn() -> None:
    class Stubborn:
        async def __aenter__(self):
            return self

        async def __aexit__(self, *_):
            raise TargetError("the program did not end", fault=TargetFault.REFUSED)

    class Opening(SessionTarget):
        async def respond(self, request):
            await request.open_session.enter("it", Stubborn)
            return await super().respond(request)

    led = lead(Opening())
    assert (str(led.error), led.failed_turn, len(led.turns)) == ("the program did not end", 3, 3)


def test_led_conversation__cancelled__closes_its_session() -> None:
    closed = []

    class Waiting(SessionTarget):
        async def respond(self, request):
            stack = AsyncExitStack()
            stack.callback(closed.append, request.session)
            await request.open_session.enter("it", lambda: stack)
            await asyncio.sleep(60)

    async def cancel() -> None:
        target, case = Waiting(), make_talk()
        services = ConversationServices(send=target.respond, score_turn=None)
        with contextlib.suppress(TimeoutError):
            request = build_request(TrialJob(case, 0))
            await asyncio.wait_for(LedConversation(request, case, services).lead(), 0.01)

    asyncio.run(cancel())
    assert len(closed) == 1


def test_led_conversation__secret_in_a_response__is_masked_in_what_the_next_turn_repeats() -> None:
    class Leaking(SessionTarget):
        def make_response(self, request):
            call = ToolCall(name="t", params={"key": SECRET}, id="1")
            own = (Message(role="assistant", content=f"ok {SECRET}", tool_calls=(call,)),)
            return Response(text=f"ok {SECRET}", new_messages=own if request.turn == 2 else ())

    target = Leaking()
    led = lead(mask_target(target, Redactor([SECRET])))
    assert led.error is None
    assert [one.content for one in target.requests[2].messages][1:4:2] == ["ok ***", "ok ***"]
    assert SECRET not in repr(target.requests[2].messages)


@pytest.mark.parametrize(
    ("response", "what"),
    [
        (Response(text="ok" * 2_500_000), "10,000,000 characters"),
        (Response(text="ok", tool_calls=(ToolCall(name="t"),) * 4_000), "10,000 tool calls"),
    ],
    ids=["text", "calls"],
)
def test_led_conversation__responses_larger_than_one_may_be__end_it_with_an_agent_error(response, what) -> None:
    class Long(SessionTarget):
        def make_response(self, request):
            return response

    led = lead(Long())
    assert str(led.error) == f"agent error: the responses of the conversation have more than {what}"
    assert (led.failed_turn, led.error.cause, led.error.error_kind) == (3, "too_large", "agent_error")


def test_led_conversation__retry_after__is_waited_for_before_it_begins_again(monkeypatch) -> None:
    clock = VirtualTime(monkeypatch)

    class Away(SessionTarget):
        async def respond(self, request):
            if len(self.taken_in) == 1 and request.turn == 2:
                raise TargetError("HTTP 503", fault=TargetFault.REFUSED, status=503, retryable=True, retry_after_s=20)
            return await super().respond(request)

    target, case = Away(), make_talk()
    services = ConversationServices(send=target.respond, score_turn=score_fully, retry_policy=target.retry_policy)
    began = clock.now
    led = LedConversation(build_request(TrialJob(case, 0)), case, services)
    clock.run(led.lead())
    assert (led.error, len(led.turns), clock.now - began) == (None, 3, 20.0)


def test_led_conversation__budget_used__does_not_begin_again() -> None:
    target = SessionTarget([None, AWAY])
    with pytest.raises(BudgetUsedError) as caught:
        lead(target, can_continue=lambda usd: len(target.requests) < 2)
    assert (caught.value.turn, caught.value.cost_usd, len(target.taken_in)) == (1, 0.01, 1)
