"""How much of one execution the record keeps."""

import json

import pytest

from eval_gate.engine.retention import build_details
from eval_gate.model import limits
from eval_gate.model.conversation import Message, OutputCall, OutputMessage, Response, ToolCall
from eval_gate.model.execution import EvaluatorResult, Status, StoredCall
from eval_gate.results.detail_truncation import (
    drop_error_quotes,
    drop_judge_prompts,
    reduce_details,
    truncate_json,
    truncate_judge_prompts,
)

LONG = {"text": "é" * limits.STORED_CALL}


def test_details_of__calls__keep_arguments_result_success_and_duration() -> None:
    call = ToolCall(name="t", params={"a": 1}, result=[1], success=False, duration_ms=2.5)
    found = build_details(Response(text="hi", tool_calls=(call, ToolCall(name="u"))))
    assert found.tool_calls == (
        StoredCall(name="t", arguments={"a": 1}, result=[1], success=False, duration_ms=2.5),
        StoredCall(name="u"),
    )
    assert (found.tools_called, found.response, found.dropped_counts) == (("t", "u"), "hi", {})


def test_details_of__arguments_that_are_no_mapping__are_as_the_target_reported_them() -> None:
    message = OutputMessage(role="assistant", tool_calls=(OutputCall(tool="t", input="plain"),))
    call = ToolCall(name="t", params={"input": "plain"})
    found = build_details(Response(text="", messages=(message,), tool_calls=(call,)))
    assert found.tool_calls == (StoredCall(name="t", arguments="plain"),)


def test_details_of__long_arguments_and_result__are_the_beginning_of_their_json() -> None:
    (found,) = build_details(Response(text="", tool_calls=(ToolCall(name="t", params=LONG, result=LONG),))).tool_calls
    text = json.dumps(LONG, ensure_ascii=False, separators=(",", ":"))[: limits.STORED_CALL]
    assert (found.arguments, found.result, found.truncated_parts) == (text, text, ("arguments", "result"))
    only = ToolCall(name="t", params={"a": 1}, result=LONG)
    assert build_details(Response(text="", tool_calls=(only,))).tool_calls[0].truncated_parts == ("result",)


@pytest.mark.parametrize("length", [limits.STORED_CALL - 2, limits.STORED_CALL - 1])
def test_beginning__text__counts_its_quotes(length) -> None:
    found = truncate_json("x" * length, limits.STORED_CALL)
    assert found == ("x" * length if length <= limits.STORED_CALL - 2 else '"' + "x" * (limits.STORED_CALL - 1))


def test_details_of__too_much__is_counted() -> None:
    calls = tuple(ToolCall(name="t") for _ in range(limits.STORED_CALLS + 3))
    talk = tuple(Message(role="user", content="x") for _ in range(limits.STORED_MESSAGES + 2))
    found = build_details(Response(text="x" * (limits.STORED_RESPONSE + 1), tool_calls=calls, conversation=talk))
    assert found.dropped_counts == {"toolCalls": 3, "messages": 2, "characters": 1}
    assert (len(found.tool_calls), len(found.conversation)) == (limits.STORED_CALLS, limits.STORED_MESSAGES)
    assert (len(found.response or ""), found.response_truncated) == (limits.STORED_RESPONSE, True)


def test_details_of__long_exchange__keeps_its_first_messages() -> None:
    size = limits.STORED_RESPONSE
    talk = tuple(Message(role="user", content=str(number) * size * 2) for number in range(9))
    found = build_details(Response(text="", conversation=talk))
    room = limits.STORED_CONVERSATION // size
    assert [message.content for message in found.conversation] == [str(number) * size for number in range(room)]
    assert found.dropped_counts == {"messages": 9 - room}


def test_details_of__calls_within_messages__are_bounded_too() -> None:
    talk = (
        Message(role="assistant", tool_calls=(ToolCall(name="t", params=LONG), ToolCall(name="u", params={"a": 1}))),
        Message(role="assistant", tool_calls=(ToolCall(name="v"),) * 200),
    )
    first, second = build_details(Response(text="", conversation=talk)).conversation
    assert [[len(str(value)) for value in call.params.values()] for call in first.tool_calls] == [
        [limits.STORED_CALL],
        [1],
    ]
    assert len(second.tool_calls) == limits.STORED_CALLS


def test_lesser__another_execution__keeps_less_and_says_so() -> None:
    call = ToolCall(name="t", params={"a": "x" * 1_000}, result="ok")
    full = build_details(
        Response(
            text="x" * 30_000,
            tool_calls=(call,) * (limits.OTHER_CALLS + 4),
            conversation=(Message(role="user", content="x"),),
        )
    )
    found = reduce_details(full)
    assert found.response == "x" * limits.OTHER_RESPONSE
    assert (found.response_truncated, found.response_length, found.conversation) == (True, 30_000, ())
    assert found.dropped_counts == {"toolCalls": 4, "messages": 1, "characters": 30_000 - limits.OTHER_RESPONSE}
    assert {(len(str(one.arguments)), one.result, one.truncated_parts) for one in found.tool_calls} == {
        (limits.OTHER_CALL, "ok", ("arguments",))
    }


def test_lesser__part_that_was_cut_before__is_not_quoted_once_more() -> None:
    (full,) = build_details(Response(text="", tool_calls=(ToolCall(name="t", result=LONG),))).tool_calls
    (found,) = reduce_details(
        build_details(Response(text="", tool_calls=(ToolCall(name="t", result=LONG),)))
    ).tool_calls
    assert (found.result, found.truncated_parts) == (str(full.result)[: limits.OTHER_CALL], ("result",))


def test_lesser__short_answer__is_as_it_was() -> None:
    full = build_details(Response(text="hi", tool_calls=(ToolCall(name="t", params={"a": 1}),)))
    assert reduce_details(full) == full


def judged(**facts) -> EvaluatorResult:
    inner = EvaluatorResult(name="m", type="llm_judge", score=1, evaluator_provider_request=facts)
    return EvaluatorResult(name="c", type="composite", score=1, evaluator_results=(inner,))


def test_results_of__long_prompts_of_members__are_cut_and_named() -> None:
    (found,) = truncate_judge_prompts([judged(systemPrompt="s", userPrompt="u" * 50_000, model="gpt", replies=1)])
    assert found.evaluator_results[0].evaluator_provider_request == {
        "systemPrompt": "s",
        "userPrompt": "u" * limits.STORED_GRADER_PROMPT,
        "promptCut": ["userPrompt"],
        "model": "gpt",
        "replies": 1,
    }


def test_without_prompts__members__keep_the_other_facts() -> None:
    (found,) = drop_judge_prompts([judged(systemPrompt="s", userPrompt="u", model="gpt")])
    assert found.evaluator_results[0].evaluator_provider_request == {"model": "gpt"}


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("agent error: HTTP 400 Joe Bloggs owes 77 dollars: «x»", "agent error: HTTP 400"),
        ("agent error: HTTP 302 Found to «http://h/joe-bloggs/owes-77»", "agent error: HTTP 302 Found"),
        ("agent error: HTTP 503 Service Unavailable", "agent error: HTTP 503 Service Unavailable"),
        ("agent error: HTTP 599 Joe", "agent error: HTTP 599"),
        ("timeout: no answer within 5 s", "timeout: no answer within 5 s"),
        ("turn 3: agent error: HTTP 503 Joe", "turn 3: agent error: HTTP 503"),
    ],
)
def test_error_unquoted__what_a_server_says_of_its_status__is_not_kept(error, kept) -> None:
    assert drop_error_quotes(error, Status.ERROR, None, ()) == kept


@pytest.mark.parametrize(("kind", "is_stored"), [("toolsCalled", True), ("llm_judge", False)])
def test_drop_error_quotes__failed_turn__is_named_and_stays_if_its_assertion_quotes_nothing(kind, is_stored) -> None:
    members = (
        EvaluatorResult(name="judge", type="llm_judge", score=1.0),
        EvaluatorResult(name=kind, type=kind, score=0.0),
    )
    results = [
        EvaluatorResult(name="turn 2", type="turn", score=1.0, evaluator_results=members[:1]),
        EvaluatorResult(name="turn 3", type="turn", score=0.0, evaluator_results=members),
    ]
    error = f"turn 3: {kind}: Joe"
    assert drop_error_quotes(error, Status.FAILED, None, results) == (
        error if is_stored else "turn 3: not as expected; the response is not kept"
    )
