"""The rules side by side: ours by the path that a user's run takes, and the two that people use instead.

Every rule sees the same draw and may run a case again. It says which cases it calls regressions, whether the gate is
red, and how many executions it took.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from branch import Again, Asking, Branch, policy, pull_request
from days import DayDrawn
from worlds import Drawn

from eval_gate.config.policy import Policy
from eval_gate.errors import ExitCode
from eval_gate.model.comparison import CaseClass

RETRIES = 2
SHARDED_EACH, STORED_EACH = 4, 10
"""One in so many worlds is run in four shards and merged, and one in so many goes over the disk."""


@dataclass(frozen=True)
class Called:
    """What a rule said: the cases it calls regressions, the gate's colour, and the executions it took."""

    regressions: frozenset[int]
    executions: int
    red: bool
    undecided: bool = False
    asked_there: int = 0
    """Executions of the base branch's agent."""


AnyDrawn = Drawn | DayDrawn
Rule = Callable[[AnyDrawn, Random], Called]


def ours(
    reruns: int, false_alarm_rate: float = 0.05, there: Sequence[float] | None = None, *, whole: bool = False
) -> Rule:
    """Build the rule that decides as the shipped gate does.

    The rule simulates the branch's runs with their own re-runs and their history, then the pull request. `there` is
    how often the base agent fails each case today (0 to 1); None if no base agent is available. If `whole` is set,
    no pull request is cut into shards.
    """
    branches: dict[str, Branch] = {}

    def rule(drawn: AnyDrawn, random: Random) -> Called:
        rules = policy(
            false_alarm_rate, graded=drawn.graded, pass_score=drawn.pass_score, max_score_drop=drawn.max_score_drop
        )
        if drawn.seed not in branches:
            branches.clear()
            branches[drawn.seed] = _branch(drawn, rules, reruns)
        done = pull_request(
            branches[drawn.seed],
            drawn.firsts(None),
            Asking(rules, reruns, _asked(drawn, None, random), _control(there, drawn)),
            sharded=drawn.number % SHARDED_EACH == 0 and not whole,
            stored=drawn.number % STORED_EACH == 0,
        )
        comparison, verdict = done.judged.comparison, done.judged.verdict
        assert comparison is not None
        assert verdict is not None
        regressed = (int(one.case_id.rpartition("-")[2]) for one in comparison.select_changes(CaseClass.REGRESSION))
        red, undecided = verdict.exit_code is ExitCode.FAILED, verdict.exit_code is ExitCode.INCOMPLETE
        return Called(frozenset(regressed), done.executions, red, undecided, done.asked_there)

    return rule


def _control(there: Sequence[float] | None, drawn: AnyDrawn) -> Again | None:
    if there is None:
        return None
    random = Random(f"{drawn.seed}/{drawn.number}/there")
    return lambda at: "F" if random.random() < there[at] else "P"


def _branch(drawn: AnyDrawn, rules: Policy, reruns: int) -> Branch:
    """All runs of the branch, the oldest first, each with its re-runs."""
    branch, random = Branch(), Random(f"{drawn.seed}/again")
    for number in range(drawn.runs):
        run = drawn.runs - 1 - number
        branch = branch.pushed(number, drawn.firsts(run), Asking(rules, reruns, _asked(drawn, run, random)))
    return branch


def _asked(drawn: AnyDrawn, run: int | None, random: Random) -> Again:
    return lambda at: drawn.again(at, run, random)


def plain(drawn: AnyDrawn, _random: Random) -> Called:
    """Call out the cases that passed in the newest run of the branch and fail now."""
    found = frozenset(_suspects(drawn))
    return Called(found, len(drawn.first), bool(found))


def retry_twice(drawn: AnyDrawn, random: Random) -> Called:
    """Apply the plain rule, but clear a case that passes in one of two more tries."""
    found, executions = set[int](), len(drawn.first)
    for at in _suspects(drawn):
        for _ in range(RETRIES):
            executions += 1
            if not drawn.failed(drawn.again(at, None, random)):
                break
        else:
            found.add(at)
    return Called(frozenset(found), executions, bool(found))


def _suspects(drawn: AnyDrawn) -> list[int]:
    """List the cases that passed in the newest run of the branch and fail now.

    In a run that was an outage, the agent answered nothing, so no case passed.
    """
    newest = drawn.firsts(0)
    return [
        at
        for at, now in enumerate(drawn.firsts(None))
        if drawn.failed(now) and newest[at] != "C" and not drawn.failed(newest[at])
    ]
