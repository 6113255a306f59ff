"""Masking of observations: every text, no name of a tool, and what cannot be searched is left out."""

import pytest

from eval_gate.drafts.observation import Observation, ObservationSet, mask_observations
from eval_gate.model.conversation import Message, Response, ToolCall, ToolSpec
from eval_gate.text.redaction import Redactor

KEY = "sk-test-4f9a8b7c6d5e"


def observation(text: str) -> Observation:
    call = ToolCall(name=text, params={text: [text, 5550100]}, result={"r": text})
    return Observation(
        question=text,
        responses=(Response(text=text, tool_calls=(call,), model=text),),
        earlier_messages=(Message(role="user", content=text),),
        errors=(text,),
    )


def test_mask_observations__secrets__are_masked_in_every_text_but_names_of_tools() -> None:
    found = ObservationSet((observation(KEY),), (ToolSpec(name="f", description=KEY),), (KEY,))
    masked = mask_observations(found, Redactor([KEY]))
    [one] = masked.observations
    assert (one.question, one.errors, one.earlier_messages[0].content) == ("***", ("***",), "***")
    [call] = one.responses[0].tool_calls
    assert (one.responses[0].text, one.responses[0].model) == ("***", "***")
    assert (call.name, call.params, call.result) == (KEY, {"***": ["***", 5550100]}, {"r": "***"})
    assert masked.tools[0].description == "***"
    assert masked.notes == ("***",)


def test_mask_observations__patterns__mask_texts_and_numbers() -> None:
    found = ObservationSet((observation("call 555-0100 now"), observation("no number")))
    first, second = mask_observations(found, Redactor(), (r"555-?\d{4}",)).observations
    assert (first.question, first.responses[0].text) == ("call *** now", "call *** now")
    assert first.responses[0].tool_calls[0].params["call *** now"] == ["call *** now", "***"]
    assert (second.question, second.responses[0].tool_calls[0].name) == ("no number", "no number")


@pytest.mark.slow
def test_mask_observations__text_that_cannot_be_searched__is_left_out_alone() -> None:
    hard = "a" * 60 + "!"
    found = ObservationSet((observation("fine"), observation(hard)))
    masked = mask_observations(found, Redactor(), (r"(a+)+$",))
    assert [one.question for one in masked.observations] == ["fine"]
    assert masked.notes == ("Left out 1 question that could not be searched for the `redact` patterns.",)


def test_mask_observations__nothing_to_mask__changes_nothing() -> None:
    found = ObservationSet((observation("plain"),), notes=("note",))
    assert mask_observations(found, Redactor()) == found
