"""Observations that drafts are written from: a question and the responses that a target gave to it."""

from __future__ import annotations

from eval_gate.model.case import Location
from eval_gate.model.conversation import Message, Response, ToolSpec
from eval_gate.struct import FrozenStruct


class Observation(FrozenStruct):
    """One question, and one response for each execution of it."""

    question: str
    """The last user message, exactly as it was sent."""
    responses: tuple[Response, ...]
    """Responses in the order of the executions; empty if no execution gave one."""
    earlier_messages: tuple[Message, ...] = ()
    """Messages of the conversation before the question, oldest first."""
    refusals: tuple[bool, ...] = ()
    """Whether each response refuses what was asked, as an LLM judge says; empty without a judge."""
    errors: tuple[str, ...] = ()
    """Why executions gave no response, one text for each of them."""
    location: Location | None = None
    """Where the question stands."""


class ObservationSet(FrozenStruct):
    """All observations of one source."""

    observations: tuple[Observation, ...]
    tools: tuple[ToolSpec, ...] = ()
    """Tools that the target has, as far as the source says."""
    notes: tuple[str, ...] = ()
    """Sentences for people, such as about lines that were left out."""
