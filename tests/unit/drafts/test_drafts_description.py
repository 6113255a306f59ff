"""Whether a description is the one that `draft` wrote: it is renewed then, and a person's own words never are."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from eval_gate.drafts.case_writers import build_assertions, build_expect
from eval_gate.drafts.expectations import derive_expectation
from eval_gate.drafts.observation import Observation
from eval_gate.drafts.update import is_drafted_description
from eval_gate.model.conversation import Response, ToolCall


def answer(text: str, *calls: ToolCall) -> Response:
    return Response(text=text, tool_calls=calls, tool_calls_known=True)


def call(name: str, *, success: bool = True, **params) -> ToolCall:
    return ToolCall(name=name, params=params, success=success)


WEATHER = [answer(f"It is 21.5 °C in Lisbon, order A-7, {word}.", call("get_weather", city="Lisbon")) for word in "abc"]
OBSERVED = {
    "tool and facts": Observation("How warm is it?", tuple(WEATHER)),
    "no tool": Observation("Capital of Portugal?", (answer("The capital of Portugal is Lisbon."),) * 3),
    "many facts": Observation("Who?", (answer("Ann Lee, Bob Ray, Cy Fox, Di Ode and Ed Orr met on 2024-03-05."),) * 3),
    "different tools": Observation("How?", (answer("Oslo.", call("a")), answer("Oslo.", call("a"), call("b")))),
    "a failed call, and no response": Observation(
        "How?", (answer("Oslo.", call("find", success=False)),) * 2, errors=("timeout",)
    ),
    "values of today": Observation(
        "How warm is it in Oslo today?",
        (answer(f"On {datetime.now(UTC).date()} it is 12 degrees and Kim Li is in.", call("log")),) * 3,
    ),
    "different values": Observation(
        "How?", (answer("Oslo has 12.", call("find", q="x")), answer("Oslo has 13.", call("find", q="y")))
    ),
}


@pytest.mark.parametrize("build", [build_expect, build_assertions], ids=["tool-forge", "agentv"])
@pytest.mark.parametrize("observed", OBSERVED.values(), ids=OBSERVED)
def test_description__written_by_draft__is_recognized_until_a_person_changes_it(observed, build) -> None:
    expectation = derive_expectation(observed)
    written, expected = expectation.description, build(expectation)
    assert is_drafted_description(written, expected), (written, expected)
    summary, dot, remarks = written.partition(". ")
    edits = (f"{written}. Refunds need an order.", f"Refunds: {written}", f"{summary} (ours){dot}{remarks}")
    for changed in (*edits, "", "Says hello", summary.upper()):
        assert not is_drafted_description(changed, expected), changed


def test_description__names_what_the_case_does_not_expect__is_not_ours() -> None:
    expected = build_expect(derive_expectation(OBSERVED["tool and facts"]))
    assert not is_drafted_description("calls get_forecast, answers with Lisbon", expected)
    assert not is_drafted_description("calls get_weather, answers with Porto", expected)
    assert not is_drafted_description("answers with care", expected)


def test_description__hostile_length__is_answered_at_once() -> None:
    begun = time.process_time()
    assert not is_drafted_description("calls " + "answers with . Left out" * 100_000, {})
    assert not is_drafted_description("calls " + "answers with , . A call failed: x" * 80 + "!. ", {})
    assert time.process_time() - begun < 5
