"""The mock target: canned answers, delays, errors."""

from __future__ import annotations

import asyncio
import time

import pytest
from pydantic import ValidationError

from eval_gate.model.conversation import Message
from eval_gate.targets.base import Request, TargetError
from eval_gate.targets.mock import MockSettings, MockTarget


def respond(case_id: str = "a", **settings):
    target = MockTarget(MockSettings.model_validate({"name": "m", **settings}))
    return asyncio.run(target.respond(Request(case_id, (Message(role="user", content="?"),))))


@pytest.mark.contract("provider.mock")
def test_mock__response__is_what_was_configured() -> None:
    assert respond(response="canned").text == "canned"


def test_mock__answers_by_case__with_calls() -> None:
    responses = {"a": "for a", "b": {"response": "for b", "toolCalls": [{"tool": "t", "input": {"x": 1}}]}}
    assert respond("a", responses=responses).text == "for a"
    (call,) = respond("b", responses=responses).tool_calls
    assert (call.name, call.params, call.success) == ("t", {"x": 1}, True)
    assert respond("c", responses=responses, response="other").text == "other"


def test_mock__error__breaks_the_case() -> None:
    with pytest.raises(TargetError, match="mock error: out of order"):
        respond(error="out of order")


@pytest.mark.slow
@pytest.mark.contract("provider.mock")
@pytest.mark.parametrize("delay", [{"delayMs": 60}, {"delayMinMs": 60, "delayMaxMs": 70}])
def test_mock__delay__is_waited_for(delay) -> None:
    started = time.perf_counter()
    response = respond(**delay)
    assert time.perf_counter() - started >= 0.059
    assert response.duration_ms >= 59


@pytest.mark.parametrize("wrong", [{"delayMs": -1}, {"delayMinMs": 5, "delayMaxMs": 1}, {"respons": "x"}])
def test_mock__wrong_settings__are_refused(wrong) -> None:
    with pytest.raises(ValidationError):
        MockSettings.model_validate({"name": "m", **wrong})


@pytest.mark.contract("agentv.provider-integration.mock-provider-for-dry-run")
def test_mock__provider_for_dry_run__canned_messages_and_trace_without_asking_anybody() -> None:
    calls = [{"tool": "look", "input": {"at": "sea"}}]
    settings = MockSettings.model_validate(
        {
            "name": "m",
            "response": "plain",
            "responses": {
                "said": {"outputMessages": [{"role": "assistant", "content": "calm", "tool_calls": calls}]},
                "traced": {"response": "windy", "trace": [{"type": "tool_call", "name": "look"}]},
            },
        }
    )
    target = MockTarget(settings)
    said, traced, plain = (asyncio.run(target.respond(Request(name, ()))) for name in ("said", "traced", "plain"))
    assert (said.text, said.messages[0].tool_calls[0].input) == ("calm", {"at": "sea"})
    assert (traced.text, traced.trace[0].name, traced.messages) == ("windy", "look", None)
    assert (plain.text, plain.messages, plain.trace) == ("plain", None, None)
