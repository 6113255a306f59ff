"""What is right for one run, told from the graph alone: its base, the baselines that may serve, and who broke what.

Nothing of the program is used here, and nothing of how it asks GitHub.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.simulation.repository import EVENTS, Extent, Repository


@dataclass(frozen=True)
class Question:
    """One run that is judged, and what it is about."""

    run_id: int
    gate: str
    measured: str
    """The commit in the workspace."""
    base: str
    """The commit that it is right to compare with."""
    branch: str
    """The branch whose runs make baselines."""
    own: tuple[str, ...] = ()
    """In a promotion: the branches of whose runs only the base's own count."""


@dataclass(frozen=True)
class Answer:
    """What is right: the commits that may be compared with, and what to say with each of them."""

    baselines: tuple[str, ...]
    """Usually one, and none where there is no usable result of the base, or of a commit before it."""
    needed: bool
    """Whether one of them has to be found: what a merge group has stored may serve."""
    unknown: bool
    """Without a baseline: whether there was something to compare with. Nothing may pass then as if there were not."""
    may_be_unknown: bool = False
    """Whether there is anything that nobody can tell from such a result without reading it."""


def answer(repository: Repository, question: Question) -> Answer:
    """What is right at this moment.

    What the measured commit itself broke was not broken before it: its own results count only where the gate passed.
    """
    of_gate = [one for one in repository.runs if one.gate == question.gate and one.run_id != question.run_id]
    done = [one for one in of_gate if one.passed or one.sha != question.measured]
    red = [one for one in of_gate if one not in done and one.ended <= repository.minute and not one.expired]
    there = [one for one in done if one.ended <= repository.minute and one.makes_baselines]
    if question.own:
        own = [one for one in there if one.branch in question.own and one.sha == question.base]
        return Answer(tuple({one.sha for one in own}), bool(own), unknown=True, may_be_unknown=True)
    line = repository.main_line[question.branch]
    before = repository.ancestors(question.base)
    usable = {one.sha for one in there if one.branch == question.branch and one.sha in line}
    queued = {one.sha for one in done if one.event == "merge_group" and not one.expired} & set(line)
    best = {one for found in (usable, usable | queued) for one in newest(repository, found & before)}
    needed = bool(usable & before)
    # whatever it was compared with, which may be gone by now
    was_red = any(one.makes_baselines and one.branch == question.branch for one in red)
    may_be_red = any(one.event == "merge_group" for one in red)
    gone = [one for one in done if one.expired and one.branch == question.branch and one.ended <= repository.minute]
    was_there = any(one.made_baselines and one.sha in before and one.sha in line for one in gone)
    # of these cases nobody said there what they do
    parts = [one for one in of_gate if one.extent is Extent.SOME and not one.expired and one.event in EVENTS]
    parts = [one for one in parts if one.branch == question.branch and one.ended <= repository.minute]
    was_part = any(one.sha in before and one.sha in line for one in parts)
    may_be_gone = any(one.expired and one.branch == question.branch for one in repository.runs)
    # whose a result is, and of which cases, only the result says
    others = [one for one in repository.runs if one.branch == question.branch and not one.expired]
    may_be = any(one.sha not in before or one.gate != question.gate for one in others)
    unknown = (bool(usable) or was_red or was_there or was_part) and not needed
    return Answer(tuple(best), needed, unknown=unknown, may_be_unknown=may_be or may_be_red or may_be_gone or was_part)


def newest(repository: Repository, found: set[str]) -> set[str]:
    """Those of these commits that are before none of the others: more than one only where a force push parted them."""
    return found - {one for sha in found for one in repository.ancestors(sha) if one != sha}


def between(repository: Repository, baseline: str, base: str) -> int:
    """How many commits the base has that the baseline has not."""
    return len(repository.ancestors(base) - repository.ancestors(baseline))


def passes(then: str | None, here: str, *, unknown: bool = False) -> bool:
    """Whether a gate passes: `then` is what the commit does that it is compared with, None where there is none."""
    return not (unknown and "F" in here) if then is None else "regression" not in blamed(then, here).values()


def blamed(then: str, here: str) -> dict[int, str]:
    """By case what has become of it since the commit that it is compared with."""
    words = {"PP": "still_passing", "PF": "regression", "FF": "still_failing", "FP": "new_pass"}
    return {at: words[before + after] for at, (before, after) in enumerate(zip(then, here, strict=True))}
