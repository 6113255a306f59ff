"""Observations that drafts are written from: a question and the responses to it.

People commit drafts, so secrets, apparent keys, and the matches of `redact` are masked first.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.model.case import Location
from eval_gate.model.conversation import Message, Response, ToolCall, ToolSpec
from eval_gate.results.masking import TextChange, TextMasking, map_value
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import format_count
from eval_gate.text.javascript.regex import PatternError, replace_matches_sync
from eval_gate.text.key_forms import mask_keys
from eval_gate.text.mask import MASK
from eval_gate.text.redaction import Redactor


class Observation(FrozenStruct):
    """One question, and one response for each execution of it."""

    question: str
    """The last user message, exactly as it was sent."""
    responses: tuple[Response, ...]
    """Responses in the order of the executions; empty if no execution gave one. Of a conversation, those of its last
    turn, or of the whole where the target was asked for it."""
    earlier_messages: tuple[Message, ...] = ()
    """Messages of the conversation before the question, oldest first."""
    refusals: tuple[bool, ...] = ()
    """Whether each response refuses what was asked, as an LLM judge says; empty without a judge."""
    errors: tuple[str, ...] = ()
    """Why executions gave no response, one text for each of them."""
    location: Location | None = None
    """Where the question stands."""
    turns: tuple[Observation, ...] = ()
    """Turns of a conversation, in order; `question` is that of the last one. Empty for one question."""


class ObservationSet(FrozenStruct):
    """All observations of one source."""

    observations: tuple[Observation, ...]
    tools: tuple[ToolSpec, ...] = ()
    """Tools that the target has, as far as the source says."""
    notes: tuple[str, ...] = ()
    """Sentences for people, such as about lines that were left out."""


def mask_observations(original: ObservationSet, redact: Redactor, patterns: Sequence[str] = ()) -> ObservationSet:
    """Mask every text of the observations except names of tools; in definitions of tools, only known secrets.

    An observation that cannot be searched for the patterns may hold anything: it is left out, and a note says so.
    """
    masked = [map_observation(one, lambda text: mask_keys(redact(text))) for one in original.observations]
    masked = _mask_matches(masked, patterns) if patterns else masked
    notes = [mask_keys(redact(note)) for note in original.notes]
    if left_out := len(original.observations) - len(masked):
        questions = format_count(left_out, "question")
        notes.append(f"Left out {questions} that could not be searched for the `redact` patterns.")
    tools = tuple(redact.mask_struct(tool) for tool in original.tools)
    return ObservationSet(tuple(masked), tools, tuple(notes))


def map_observation(observation: Observation, change: TextChange) -> Observation:
    """Apply `change` to every text of an observation, except for names of tools."""
    return replace(
        observation,
        question=change(observation.question),
        earlier_messages=tuple(
            replace(one, content=map_value(one.content, change)) for one in observation.earlier_messages
        ),
        responses=tuple(_map_response(one, change) for one in observation.responses),
        errors=tuple(map(change, observation.errors)),
        turns=tuple(map_observation(one, change) for one in observation.turns),
    )


def _mask_matches(observations: Sequence[Observation], patterns: Sequence[str]) -> list[Observation]:
    """Mask the matches with one search; if it fails, with one each, and leave out what cannot be searched."""
    masked = TextMasking()
    for observation in observations:
        map_observation(observation, masked.collect_text)
    try:
        masked.set_masked(replace_matches_sync(patterns, masked.texts, MASK))
    except PatternError:
        alone = ([one] for one in observations if len(observations) > 1)
        return [one_masked for one in alone for one_masked in _mask_matches(one, patterns)]
    return [map_observation(observation, masked.mask_text) for observation in observations]


def _map_response(response: Response, change: TextChange) -> Response:
    """Change a response of a source. The messages that some targets report are left out."""
    return replace(
        response,
        text=change(response.text),
        body=map_value(response.body, change),
        tool_calls=tuple(_map_call(call, change) for call in response.tool_calls),
        model=response.model and change(response.model),
        conversation=(),
        messages=None,
        trace=None,
    )


def _map_call(call: ToolCall, change: TextChange) -> ToolCall:
    params = {change(name): map_value(value, change) for name, value in call.params.items()}
    return replace(call, params=params, result=map_value(call.result, change))
