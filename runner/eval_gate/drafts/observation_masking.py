"""Mask secrets, what looks like a key, and the matches of the team's `redact` patterns in observations.

Drafts are made of what is left: people commit them.
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.drafts.observation import Observation, ObservationSet
from eval_gate.model.conversation import Message, Response, ToolCall
from eval_gate.results.masking import TextChange, TextMasking, map_value
from eval_gate.struct import replace
from eval_gate.text.javascript.regex import PatternError, replace_matches_sync
from eval_gate.text.key_forms import mask_keys
from eval_gate.text.redaction import Redactor
from eval_gate.text.secret import MASK


def mask_observations(original: ObservationSet, redact: Redactor, patterns: Sequence[str] = ()) -> ObservationSet:
    """Mask every text of the observations, except for names of tools, in which only known secrets are masked.

    An observation whose texts cannot be searched for the patterns is left out, because it may hold anything. A note
    says so.
    """
    before = original.observations
    observations: list[Observation | None] = [
        map_observation(one, lambda text: mask_keys(redact(text))) for one in before
    ]
    if patterns:
        observations = _mask_matches([one for one in observations if one is not None], patterns)
    kept = [one for one in observations if one is not None]
    notes = [mask_keys(redact(note)) for note in original.notes]
    if len(kept) < len(before):
        notes.append(
            f"Left out {_count(len(before) - len(kept))} that could not be searched for the `redact` patterns."
        )
    tools = tuple(redact.mask_struct(tool) for tool in original.tools)
    return ObservationSet(tuple(kept), tools, tuple(notes))


def map_observation(observation: Observation, change: TextChange) -> Observation:
    """Apply `change` to every text of an observation, except for names of tools."""
    return replace(
        observation,
        question=change(observation.question),
        earlier_messages=tuple(_map_message(one, change) for one in observation.earlier_messages),
        responses=tuple(_map_response(one, change) for one in observation.responses),
        errors=tuple(map(change, observation.errors)),
    )


def _mask_matches(observations: Sequence[Observation], patterns: Sequence[str]) -> list[Observation | None]:
    """Mask the matches of the patterns; None stands for an observation that could not be searched."""
    together = _mask_group(observations, patterns)
    if together is not None:
        return list(together)
    return [None if (one := _mask_group([observation], patterns)) is None else one[0] for observation in observations]


def _mask_group(observations: Sequence[Observation], patterns: Sequence[str]) -> list[Observation] | None:
    """Mask the matches of the patterns in all texts with one search; None if it fails."""
    masked = TextMasking()
    for observation in observations:
        map_observation(observation, masked.collect_text)
    try:
        masked.set_masked(replace_matches_sync(patterns, masked.texts, MASK))
    except PatternError:
        return None
    return [map_observation(observation, masked.mask_text) for observation in observations]


def _map_message(message: Message, change: TextChange) -> Message:
    return replace(message, content=map_value(message.content, change))


def _map_response(response: Response, change: TextChange) -> Response:
    """Change a response of a source. The messages that some targets report are left out."""
    return replace(
        response,
        text=change(response.text),
        tool_calls=tuple(_map_call(call, change) for call in response.tool_calls),
        model=response.model and change(response.model),
        conversation=(),
        messages=None,
        trace=None,
    )


def _map_call(call: ToolCall, change: TextChange) -> ToolCall:
    params = {change(name): map_value(value, change) for name, value in call.params.items()}
    return replace(call, params=params, result=map_value(call.result, change))


def _count(number: int) -> str:
    return f"{number:,} question{'' if number == 1 else 's'}"
