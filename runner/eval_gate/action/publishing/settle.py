"""Leaves one comment of a gate, with the result that counts, whatever other runs write at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from eval_gate.action.log import Log
from eval_gate.action.precedence import (
    Overtaken,
    Publication,
    Publisher,
    name_taken,
    overtakes,
    publisher_of,
    rank,
)
from eval_gate.action.step import Step
from eval_gate.github.comments import Belongs, Sticky, delete_comment, read_conversation, write_comment
from eval_gate.github.failure import GitHubError
from eval_gate.model.comparison import Outcome
from eval_gate.model.result import MadeBy
from eval_gate.struct import replace

MAX_LOOKS: Final = 4
"""How often it is looked whether another run has written at the same time."""


def settle_comments(step: Step, number: int, body: str, written: Sticky, log: Log) -> Sticky | None:
    """Leave one comment, with the result that counts, whatever other runs write at the same time; None if unknown.

    GitHub has no lock: who has written looks again, as the last writer sees all. The oldest comment stays.
    Raises TakenError where the comment is another leg's of this run, and GitHubError.
    """
    client, ours = step.client, step.publication
    oldest = None
    for _ in range(MAX_LOOKS):
        try:
            thread = read_conversation(client, number, step.key, belongs_to(ours))
        except GitHubError as error:
            log.did(f"whether another run has commented meanwhile is not known: {error}")
            return None
        there = _own_ones(step, number, thread.ours, written)
        if not there:
            return None
        oldest, best = there[0], _best(ours, there, thread.head_sha)
        counts = best or next((one for one in there if _is_ours(ours, one)), None)
        if counts is not oldest:
            write_comment(client, number, step.key, counts.body if counts else body, oldest, belongs_to(ours))
        for one in there[1:]:
            delete_comment(client, number, one)
        if best is not None:
            return replace(oldest, state=best.state)
        if counts is oldest and len(there) == 1:
            return oldest
    return oldest


def _own_ones(step: Step, number: int, there: Sequence[Sticky], written: Sticky) -> list[Sticky]:
    """The comments of this gate without those of other legs, which take theirs away; the oldest first.

    Raises TakenError where another leg of this run was first, and GitHubError.
    """
    by_age = sorted(there, key=lambda one: one.id)
    legs = [one for one in by_age if find_publisher(step.publication, one) is Publisher.ANOTHER_LEG]
    if legs and legs[0] is by_age[0]:
        if written.id != legs[0].id:
            delete_comment(step.client, number, written)
        raise name_taken(f"the comment `{step.key}`", "comment-key")
    return [one for one in by_age if one not in legs]


def belongs_to(ours: Publication) -> Belongs:
    """Which comments with the key of a gate are its own."""
    return lambda state: state is None or state.gate in {None, ours.maker.gate}


def read_publication(ours: Publication, comment: Sticky) -> Publication | None:
    """The result that a comment of this gate shows; None where it does not say."""
    state = comment.state
    if state is None:
        return None
    theirs = MadeBy(gate=ours.maker.gate, run_id=state.run_id, attempt=state.attempt, leg=state.leg)
    return Publication(theirs, state.sha, state.judged)


def find_publisher(ours: Publication, comment: Sticky) -> Publisher:
    """Who wrote a comment with our key."""
    theirs = read_publication(ours, comment)
    return publisher_of(ours.maker, theirs.maker) if theirs else Publisher.OURS


def _is_ours(ours: Publication, comment: Sticky) -> bool:
    return read_publication(ours, comment) == ours


def _best(ours: Publication, comments: Iterable[Sticky], head: str) -> Sticky | None:
    """The comment among these whose result counts instead of ours; None where ours does."""
    counting = [
        (rank(theirs, head), one)
        for one in comments
        if (theirs := read_publication(ours, one)) is not None and overtakes(theirs, ours, head)
    ]
    return max(counting, key=lambda pair: pair[0])[1] if counting else None


def find_newer(ours: Publication, comments: Iterable[Sticky], head: str) -> Overtaken | None:
    """The result among these that counts instead of ours."""
    best = _best(ours, comments, head)
    if best is None or best.state is None:
        return None
    return Overtaken((best.state.judged or (best.state.run_id,))[0], best.state.outcome == Outcome.PASS.value)
