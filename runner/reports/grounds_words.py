"""Why a case is called a regression, or is not, in plain words.

They hold the name of a branch as it is: whoever shows them escapes them.
"""

from __future__ import annotations

from typing import Final

from runner.model.comparison import CaseChange, CaseClass
from runner.model.grounds import NO_RUNS, CaseRecord, Grounds, Steadiness, SuiteFinding, Why
from runner.reports.context import ReportContext
from runner.reports.wording import count
from runner.text.escape import one_line

MAX_BRANCH: Final = 60
LEAST_ODDS: Final = 2
"""What is more likely than not is not said to be by chance."""
MAX_RUNS: Final = 5
"""Runs that are named as showing that a case is flaky."""
_PASSING: Final = frozenset({CaseClass.NEW_PASS, CaseClass.STILL_PASSING})
_UNDECIDED: Final = frozenset({Why.KNOWN, Why.NOT_RERUN})
"""Where no chance is said: nothing was decided by it."""


def place_of(context: ReportContext) -> str:
    """Where the record was made: `on main`; `on record` where the branch is not known."""
    branch = context.baseline_branch or context.base_branch
    return f"on {one_line(branch, MAX_BRANCH)}" if branch else "on record"


def evidence(change: CaseChange, place: str) -> str | None:
    """`failed 4 of 4 here, 1 of 20 on main`; None where only the two runs were looked at."""
    return _seen(change.change, change.grounds, place) if change.grounds else None


def odds(change: CaseChange) -> str | None:
    """`by chance 1 in 50,000`: when nothing has changed. None where no chance was looked at, or nothing rests on it."""
    grounds = change.grounds
    one_in = grounds.one_in if grounds is not None and grounds.why not in _UNDECIDED else None
    return f"by chance 1 in {one_in:,}" if one_in is not None and one_in >= LEAST_ODDS else None


def _seen(change: CaseClass, grounds: Grounds, place: str) -> str:
    here, record = grounds.here, grounds.record
    passes = change in _PASSING
    if passes or (change in {CaseClass.UNSETTLED, CaseClass.FLAKY} and here.passes):
        seen = f"passed {here.passes} of {here.runs} here"
    else:
        seen = f"failed {here.failures} of {here.runs} here"
    if not record.runs:
        return f"{seen}, never judged {place}"
    same = seen.startswith("passed") == passes
    verb = "" if same else "failed "
    return f"{seen}, {verb}{record.passes if passes else record.failures} of {record.runs} {place}"


def remarks(change: CaseChange, place: str) -> tuple[str, ...]:
    """What the counts alone do not say, in half sentences: what decided, and what else is known."""
    grounds = change.grounds
    if grounds is None:
        return ()
    said = [_decisive(change.change, grounds, place)]
    if grounds.newest_failed and change.change in {CaseClass.REGRESSION, CaseClass.UNSETTLED}:
        said.append(f"the newest run {place} failed it too")
    if change.case_record is not None and change.change not in {CaseClass.REGRESSION, *_PASSING}:
        said.append(flakiness(change.case_record, place))
    return tuple(filter(None, said))


def _decisive(change: CaseClass, grounds: Grounds, place: str) -> str | None:
    does = "passed" if change in _PASSING else "failed"
    match grounds.why:
        case Why.EVERY_RUN:
            return f"{does} every time, which is all that so few re-runs can show"
        case Why.SUITE:
            return "part of a drop of the suite as a whole"
        case Why.MUST_PASS:
            return "must pass, whatever its record"
        case Why.NOT_RERUN:
            return "re-runs that would decide are missing"
        case Why.RECOVERED if not grounds.here.passes:
            return "its record may explain that"
        case Why.KNOWN if change is CaseClass.FLAKY:
            return f"passes now and then {place} too"
        case Why.KNOWN:
            return f"the newest run {place} was an exception"
        case _:
            return None


def flakiness(record: CaseRecord, place: str) -> str | None:
    """`flaky on main: fails 15 % of the time, 3 runs show it`; None of a case that is steady there."""
    words = _flaky(record)
    return f"flaky {place}: {words}" if words else None


def record_words(record: CaseRecord, place: str) -> str:
    """The whole record: `passed 17 of 20 on main; flaky: fails 15 % of the time, 3 runs show it (a, b, c)`."""
    said = [f"passed {record.counts.passes} of {record.counts.runs} {place}"]
    if flaky := _flaky(record):
        named = ", ".join(one_line(run)[:8] for run in record.shown_by[:MAX_RUNS])
        rest = len(record.shown_by) - MAX_RUNS
        more = f" and {rest} more" if rest > 0 else ""
        said.append(f"flaky: {flaky}{f' ({named}{more})' if named else ''}")
    if record.since is not None:
        said.append("older runs are left out, because it broke or was mended after them")
    return "; ".join(said)


def suite_words(finding: SuiteFinding, *, others: bool = False) -> str:
    """`12 of 60 cases fail at first, and their records let expect 0.4, by chance 1 in 1,000,000`.

    `others`: there are cases that are regressions by themselves, which are not among these.
    """
    which = f"{finding.cases} {'other ' if others else ''}{'case' if finding.cases == 1 else 'cases'}"
    expected = f"and their records let expect {finding.expected:.1f}"
    one_in = Grounds(why=Why.SUITE, here=NO_RUNS, record=NO_RUNS, chance=finding.chance).one_in  # rounded as a case's
    by_chance = f", by chance 1 in {one_in:,}" if one_in is not None and one_in >= LEAST_ODDS else ""
    return f"{finding.failures} of {which} fail at first, {expected}{by_chance}"


def _flaky(record: CaseRecord) -> str | None:
    if record.steadiness is not Steadiness.FLAKY or record.failure_rate is None:
        return None
    shown = count(len(record.shown_by), "run shows it", "runs show it")
    return f"fails {record.failure_rate * 100:.0f} % of the time, {shown}"
