"""How cases that pass in both runs behave differently: tools, numbers of calls, parameters and responses."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from eval_gate.model.base import Record
from eval_gate.model.case import CaseName


class BehaviourKind(StrEnum):
    """What a passing case does differently than in the baseline."""

    TOOL = "tool"
    """A tool is called that the baseline does not call, or the reverse."""
    CALL_COUNT = "call_count"
    """A tool is called another number of times."""
    PARAMETER = "parameter"
    """A tool is called with another parameter."""
    FIELD = "field"
    """A checked field of the agent's JSON has another value."""
    RESPONSE = "response"
    """The response lost many of the words that the baseline's response has."""


class ParameterDifference(StrEnum):
    """How a parameter of a tool call differs from the baseline."""

    VALUE = "value"
    TYPE = "type"
    """The value has another JSON type."""
    ADDED = "added"
    MISSING = "missing"


class BehaviourChange(CaseName, kw_only=True):
    """One thing that a case does differently. `baseline` and `current` are None if there is nothing on that side.

    For a tool they are names, for a number of calls numbers, for a parameter or field values as JSON, and for a
    response its number of words and its beginning.
    """

    kind: BehaviourKind
    turn: Annotated[int, Meta(ge=1)] | None = None
    """Turn of a conversation that the author of the case wrote; None for any other case."""
    tool: str | None = None
    """Tool of the calls; None for a response, and for a tool that replaces another."""
    parameter: str | None = None
    """Parameter, or field of the agent's JSON, as a path such as `order.id`."""
    difference: ParameterDifference | None = None
    baseline: str | None = None
    current: str | None = None


class BehaviourChanges(Record, kw_only=True):
    """Cases that pass in both runs and behave differently. They have no effect on the verdict.

    What varies on the baseline's branch by itself is left out.
    """

    cases: Annotated[int, Meta(ge=0)] = 0
    """Number of cases that behave differently, including those without an entry in `changes`."""
    changes: tuple[BehaviourChange, ...] = ()
    """Changes in file order, up to a limit."""
