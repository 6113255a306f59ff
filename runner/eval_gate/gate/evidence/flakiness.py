"""The record of one case over recent runs of the default branch: its rate, and whether it is flaky.

A record is only worth as much as it is about the same thing. A case that broke on the branch itself would look flaky,
and each pull request would be blamed for it; one that was mended would look broken. So a record starts where the case
last broke or was mended, when the newest runs are too much of a row for chance: two failures after five passes.

Where many cases come and go, some of them end in a row of passes by chance, and what is left of their records would
then be that they never fail. So a mend is held against how many such cases there are; a break is not, since whatever
the newest run fails is not of a change's making anyhow.

Only answers can say that. A case that crashed in the newest run was judged last in the run before it, and whoever makes
it answer wrong is not excused by the crash; in its rate a crash counts as a failure.

What it moves that a record starts there (`benchmarks/verdict/without.py`, without → with): the branch fixed a dead case
three runs ago and this breaks it, found 0.0 → 100.0 ± 1.2 % at 20 and 100 cases. At 500 and more,
three runs are too few to show that it was fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise, takewhile
from typing import Final, NamedTuple

from eval_gate.gate.evidence.suite.failures import Stratum, suite_finding
from eval_gate.model.grounds import NO_RECORD, NO_RUNS, CaseRecord, Counts, RunName, Steadiness

TURNED_LIMIT: Final = 0.05
"""The chance of such a row at the end of the record, given how often the case failed. One failure is never below it,
as long as no more than twenty runs are looked at."""
LEAST_OF_EACH: Final = 2
"""Passes and failures of a case that could look mended."""


class CaseSeen(NamedTuple):
    """One case in one run: the first execution (or trials), and re-runs because it failed."""

    run_id: str
    first: Counts
    again: Counts = NO_RUNS
    sha: str | None = None
    """The commit of the run, where that is known."""

    @property
    def all(self) -> Counts:
        """First executions and re-runs together."""
        return self.first.plus(self.again)

    @property
    def answered(self) -> CaseSeen:
        """Without the executions that gave no answer to judge."""
        return self._replace(first=self.first.answered, again=self.again.answered)


def record_of(seen: Sequence[CaseSeen], among: int = 1) -> CaseRecord:
    """The record of a case from its runs, newest first; runs that did not judge it are left out.

    `among` so many cases of the suite this one would be the mended one, if it is.
    """
    judged = [one for one in seen if one.first.runs]
    if not judged:
        return NO_RECORD
    answers = _answers(judged)
    cut = judged[: _since(judged, answers, among)]
    counts = _sum(one.first for one in cut)
    return CaseRecord(
        counts=counts,
        steadiness=_steadiness(cut),
        shown_by=_shown_by(cut, counts),
        newest=cut[0].first,
        newest_failed=bool(answers) and _broke(answers[0]),
        broken_since=broken_since(judged),
        since=cut[-1].run_id if len(cut) < len(judged) else None,
    )


def may_look_mended(seen: Iterable[CaseSeen]) -> bool:
    """Whether it passed and failed often enough for a row of passes at the end to be told from chance."""
    first = _sum(one.first.answered for one in seen)
    return min(first.passes, first.failures) >= LEAST_OF_EACH


def of_this_level(seen: Sequence[tuple[int, CaseSeen]], among: int = 1) -> Sequence[tuple[int, CaseSeen]]:
    """Those of the runs, newest first and each with its place, since the case last broke or was mended."""
    judged = [one for _, one in seen if one.first.runs]
    return [one for one in seen if one[1].first.runs][: _since(judged, _answers(judged), among)]


def _broke(one: CaseSeen) -> bool:
    """Whether it failed there, and mostly failed when it was run again: else it only flaked."""
    again = one.again
    return (one.first.fails or not one.first.runs) and (not again.runs or again.failures > again.passes)


def _since(judged: Sequence[CaseSeen], answers: Sequence[CaseSeen], among: int) -> int:
    """How many of the newest runs are at the level of the newest answers."""
    streak = _streak(answers) if answers else ()
    if not streak or len(streak) == len(answers) or not _turned(streak, answers[len(streak) :], among):
        return len(judged)
    return next(at for at, one in enumerate(judged, start=1) if one.run_id == streak[-1].run_id)


def _answers(seen: Iterable[CaseSeen]) -> list[CaseSeen]:
    """What was judged in each of the runs, without those that judged nothing."""
    return [answered for one in seen if (answered := one.answered).all.runs]


def broken_since(seen: Sequence[CaseSeen]) -> RunName | None:
    """The run with which the branch began to fail the case and has failed it ever since, if it ever passed it."""
    answers = _answers(seen)
    failing = list(takewhile(lambda one: one.all.fails, answers))
    if not failing or len(failing) == len(answers):
        return None
    return RunName(run_id=failing[-1].run_id, sha=failing[-1].sha)


def _streak(judged: Sequence[CaseSeen]) -> Sequence[CaseSeen]:
    """The newest runs in which it only passed or only failed, re-runs included."""
    newest = judged[0].all
    if newest.passes and newest.failures:
        return judged[:0]
    length = 1
    while length < len(judged) and not _mixed(newest.plus(judged[length].all)):
        length += 1
    return judged[:length]


def _turned(streak: Sequence[CaseSeen], older: Sequence[CaseSeen], among: int) -> bool:
    """Whether a case that mostly passed broke with the first run of the streak, or one that mostly failed was mended.

    And does not just happen to end so: the chance of that is the suite's test with this one case in it.
    """
    now, before = _sum(one.all for one in streak), _sum(one.first for one in older)
    if now.fails == before.fails:
        return False
    stratum = Stratum.of(before, now)
    if now.fails:
        return suite_finding([stratum]).chance < TURNED_LIMIT
    return suite_finding([stratum.swapped]).chance < TURNED_LIMIT / max(among, 1)


def _steadiness(judged: Sequence[CaseSeen]) -> Steadiness:
    everything = _sum(one.all for one in judged)
    if not _mixed(everything):
        return Steadiness.FAILING if everything.failures else Steadiness.PASSING
    turns = sum(one.first.fails != other.first.fails for one, other in pairwise(judged))
    by_turns = turns > 1 or any(_mixed(one.all) for one in judged)
    return Steadiness.FLAKY if by_turns else Steadiness.CHANGED


def _shown_by(judged: Sequence[CaseSeen], counts: Counts) -> tuple[str, ...]:
    """The runs that differ from what the case mostly does."""
    if counts.fails:
        return tuple(one.run_id for one in judged if one.all.passes)
    return tuple(one.run_id for one in judged if one.all.failures)


def _mixed(counts: Counts) -> bool:
    return bool(counts.passes and counts.failures)


def _sum(many: Iterable[Counts]) -> Counts:
    return reduce(Counts.plus, many, NO_RUNS)
