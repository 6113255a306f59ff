"""Tells apart the gates of one workflow run, so that none of them takes what another has published.

What a comment, a check run and an artifact remember of who made them is held against who this step is. Gates of other
workflows, jobs and configurations have other keys. Legs of a matrix, calls of one reusable workflow and steps of one
job may share a key: then the second one stops.
"""

from __future__ import annotations

from enum import StrEnum

from eval_gate.errors import GateError
from eval_gate.model.result import MadeBy


class Publisher(StrEnum):
    """Whose something is that was published before."""

    OURS = "ours"
    """This gate's, from this attempt, an earlier one, or another run."""
    ANOTHER_LEG = "another leg"
    """Of the same run and with the same key, but of another leg, call or step."""
    ANOTHER_GATE = "another gate"


class TakenError(GateError):
    """Another leg, call or step of this run has published under a name of this one."""


def name_taken(what: str, remedy: str) -> TakenError:
    """The error; `what` is the name in the way, and `remedy` the input that gives another."""
    message = f"{what} is there already, from another job or step of this run; it was left as it is"
    hint = f"give each of them its own `{remedy}`, in a matrix for example `{remedy}: ${{{{ matrix.NAME }}}}`"
    return TakenError("same-name-twice", message, hint)


def publisher_of(ours: MadeBy, theirs: MadeBy) -> Publisher:
    """Whose work `theirs` signs.

    Within one attempt job, step and inputs have to be the same. In another attempt the job has another name: there step
    and inputs decide. Between runs all of it may have been edited, and the key decides.
    """
    if theirs.gate != ours.gate:
        return Publisher.ANOTHER_GATE
    if theirs.run_id != ours.run_id or theirs.leg is None or ours.leg is None:
        return Publisher.OURS
    same = theirs.leg == ours.leg if theirs.attempt == ours.attempt else same_leg(ours, theirs.leg)
    return Publisher.OURS if same else Publisher.ANOTHER_LEG


def same_leg(ours: MadeBy, leg: str | None) -> bool:
    """Whether step and inputs are those of this step; also where nothing is known about them."""
    return leg is None or ours.leg is None or leg.partition("-")[2] == ours.leg.partition("-")[2]
