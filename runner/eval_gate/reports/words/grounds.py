"""Why a case is called a regression, or is not, in plain words.

They hold the name of a branch as it is: whoever shows them escapes them.
"""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.grounds import (
    NO_RUNS,
    CaseRecord,
    Counts,
    GroundKind,
    Grounds,
    RunName,
    ScoreFinding,
    Steadiness,
    SuiteFinding,
)
from eval_gate.reports.context import ReportContext
from eval_gate.reports.words.numbers import count, seconds
from eval_gate.text.escape import first_few, one_line

MAX_BRANCH: Final = 60
LEAST_ODDS: Final = 2
"""What is more likely than not is not said to be by chance."""
_NOTICED: Final = 2
"""So many times likelier because of the days of a branch is worth a word."""
MAX_RUNS: Final = 5
"""Runs that are named as showing that a case is flaky."""
_NO_NAME: Final = re.compile(r"[^0-9A-Za-z-]")
_UNKNOWN: Final = "on record"
"""The place where the branch is not known."""
_PASSING: Final = frozenset({CaseClass.NEW_PASS, CaseClass.STILL_PASSING})
_UNDECIDED: Final = frozenset(
    {GroundKind.KNOWN, GroundKind.NOT_RERUN, GroundKind.NOT_ASKED, GroundKind.SPENT, GroundKind.SLOW}
)
"""Where no chance is said: nothing was decided by it."""
_PLAIN: Final = {
    GroundKind.NOT_RERUN: "the re-runs that would decide gave no result",
    GroundKind.NOT_ASKED: "suspected: not re-run, because the gate had failed already",
    GroundKind.SLOW: "no answer in time, as of so many others: a slow provider, or all of it is slow with this change",
    GroundKind.SPENT: "not asked again, or not often enough: the rerun-budget is spent",
}


def place_of(context: ReportContext) -> str:
    """Where the record was made: `on main`; `on record` where the branch is not known."""
    return f"on {one_line(context.branch, MAX_BRANCH)}" if context.branch else _UNKNOWN


def evidence(change: CaseChange, place: str) -> str | None:
    """`failed 4 of 4 here, 1 of 20 on main`; None where only the two runs were looked at."""
    return _seen(change.change, change.grounds, place) if change.grounds else None


def odds(change: CaseChange) -> str | None:
    """`if nothing changed, that happens 1 time in 50,000`; None where nothing rests on a chance."""
    grounds = change.grounds
    one_in = grounds.one_in if grounds is not None and grounds.why not in _UNDECIDED else None
    return _by_chance(one_in)


def _by_chance(one_in: int | None) -> str | None:
    return (
        f"if nothing changed, that happens 1 time in {one_in:,}"
        if one_in is not None and one_in >= LEAST_ODDS
        else None
    )


def _seen(change: CaseClass, grounds: Grounds, place: str) -> str:
    here, record = grounds.here, grounds.record
    passes = change in _PASSING
    if here.crashes and here.crashes == here.runs:
        return f"crashed {here.crashes} of {here.runs} here, {_answered(record, place)}"
    said_passes = passes or (change in {CaseClass.UNSETTLED, CaseClass.FLAKY} and here.passes > 0)
    seen = _counted("passed" if said_passes else "failed", here.passes if said_passes else here.failures, here, "here")
    if not record.runs:
        return f"{seen}, never judged {place}"
    verb = "" if said_passes == passes else "failed"
    return f"{seen}, {_counted(verb, record.passes if passes else record.failures, record, place)}"


def _counted(verb: str, number: int, counts: Counts, place: str) -> str:
    """`failed 4 of 4 here`, and where not every failure was an answer `failed 4 of 4 here (1 crashed)`."""
    crashed = f" ({counts.crashes} crashed)" if counts.crashes else ""
    return f"{verb} {number} of {counts.runs} {place}{crashed}".strip()


def _answered(record: Counts, place: str) -> str:
    """What a crash is held against: how often there was an answer, whatever it was worth."""
    if not record.runs:
        return f"never judged {place}"
    wrong = record.failures - record.crashes
    return f"answered in {record.runs - record.crashes} of {record.runs} {place}{f' ({wrong} wrong)' if wrong else ''}"


def run_name(run: RunName) -> str:
    """The commit of an earlier run, or the beginning of its id; they are anybody's, and nothing but a name is shown."""
    return _NO_NAME.sub("?", run.sha[:7] if run.sha else run.run_id[:8])


def main_broke(change: CaseChange, place: str) -> str | None:
    """`main broke it at abc1234`: the branch itself fails it now, and passed it before. None where that is not so."""
    record, why = change.case_record, change.grounds.why if change.grounds else None
    if change.change is not CaseClass.STILL_FAILING or record is None or why is GroundKind.MUST_PASS:
        return None
    since = record.broken_since if record.newest_failed else None
    if since is not None and (why is GroundKind.MAIN_BROKE or record.steadiness is not Steadiness.FLAKY):
        return f"{_branch(place)} broke it at {run_name(since)}"
    return f"the newest run {place} failed it too" if why is GroundKind.MAIN_BROKE else None


def _branch(place: str) -> str:
    """`main` of `on main`."""
    return place.removeprefix("on ") if place != _UNKNOWN else "the default branch"


def beyond_counts(change: CaseChange, place: str) -> tuple[str, ...]:
    """What the counts alone do not say, in half sentences: what decided, and what else is known."""
    grounds = change.grounds
    elsewhere = _elsewhere(change)
    if grounds is None:
        return tuple(filter(None, [main_broke(change, place), elsewhere]))
    said = [
        _decisive(change.change, grounds, place),
        _cases_before(grounds),
        control_words(grounds),
        _needed(change.change, grounds),
        repeats_words(grounds),
        main_broke(change, place),
    ]
    shown = change.change in {CaseClass.REGRESSION, CaseClass.UNSETTLED} and grounds.why is not GroundKind.MUST_PASS
    if grounds.newest_failed and shown:
        said.append(f"the newest run {place} failed it too")
    if change.case_record is not None and change.change not in {CaseClass.REGRESSION, *_PASSING}:
        said.append(flakiness(change.case_record, place))
    return tuple(filter(None, [*said, elsewhere]))


def _cases_before(grounds: Grounds) -> str | None:
    """`run again each time with the 2 cases before it`: one that works on their files is not run again by itself."""
    if not (grounds.reruns and grounds.cases_before):
        return None
    which = "case" if grounds.cases_before == 1 else f"{grounds.cases_before:,} cases"
    return f"run again each time with the {which} before it"


def control_words(grounds: Grounds) -> str | None:
    """`asked the base branch's agent in the same minutes: passed 0 of 3 there too`; None where it brought no answer."""
    seen = grounds.control
    if not seen.runs:
        return None
    alone = seen.failures > seen.passes
    too = " too, so it is not of this change" if grounds.why is GroundKind.CONTROL and alone else ""
    words = f"asked the base branch's agent in the same minutes: passed {seen.passes} of {seen.runs} there{too}"
    if grounds.why is GroundKind.CONTROL and not alone:
        return f"{words}, where all cases together fail as often: not of this change"
    return words


def _elsewhere(change: CaseChange) -> str | None:
    """Which run it is compared with, where that is not the baseline."""
    if change.compared_with is None:
        return None
    return f"compared with {run_name(change.compared_with)}: the baseline did not judge it"


def _needed(change: CaseClass, grounds: Grounds) -> str | None:
    """What would have been sure, counted as what was seen is, beside every word of doubt and of certainty."""
    if grounds.chance is None or change not in {CaseClass.REGRESSION, CaseClass.UNSETTLED, CaseClass.ERRORED}:
        return None  # nothing was tested
    if grounds.why is GroundKind.MUST_PASS:
        return None
    enough = None if grounds.needed is None else f"{grounds.needed} failures of {grounds.needed}"
    if grounds.why is GroundKind.EVIDENCE:
        return "rare enough to be sure" if enough is None else f"rare enough to be sure: {enough} are"
    takes = f"to be sure takes {enough}" if enough else "no number of re-runs that confirm allows could make it sure"
    if (
        grounds.why in _UNDECIDED or grounds.why is GroundKind.EVERY_RUN
    ):  # it counts, or nobody knows: the bar, and no doubt
        return takes
    alone = " of it alone" if grounds.why is GroundKind.SUITE else ""
    return f"not rare enough to be sure{alone}: {f'that takes {enough}' if enough else takes}"


def repeats_words(grounds: Grounds) -> str | None:
    """`3 re-runs answered byte for byte the same in 4 ms at most, the first in 2.1 s: that looks like a cache; …`.

    None where the re-runs said different things.
    """
    found = grounds.repeats
    if found is None:
        return None
    said = f"{count(grounds.reruns, 're-run')} answered byte for byte the same"
    if not found.cached:
        return said
    took = f"in {seconds(found.slowest_ms)} at most, the first in {seconds(found.first_ms)}"
    return f"{said} {took}: that looks like a cache; rerunNonce may get past it"


def _decisive(change: CaseClass, grounds: Grounds, place: str) -> str | None:
    match grounds.why:
        case GroundKind.EVERY_RUN:
            return "passed every time" if change in _PASSING else "counts because it failed every time"
        case GroundKind.SUITE:
            which = f"more often than {place}" if change is CaseClass.FLAKY else "at once"
            return f"counts because too many cases fail {which}"
        case GroundKind.MUST_PASS:
            failing = grounds.newest_failed or grounds.record.fails
            return f"must pass, though it fails {place} too" if failing else "must pass, whatever its record"
        case GroundKind.NOT_RERUN | GroundKind.NOT_ASKED | GroundKind.SPENT | GroundKind.SLOW:
            return _PLAIN[grounds.why]
        case GroundKind.RECOVERED if not grounds.here.passes:
            return "its record may explain that"
        case GroundKind.KNOWN if change is CaseClass.FLAKY:
            return f"passes now and then {place} too"
        case GroundKind.KNOWN:
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
        named = first_few(record.shown_by, MAX_RUNS, lambda run: one_line(run)[:8])
        said.append(f"flaky: {flaky}{f' ({named})' if named else ''}")
    if record.since is not None:
        said.append("older runs are left out, because it broke or was mended after them")
    return "; ".join(said)


def suite_words(finding: SuiteFinding, *, others: bool = False) -> str:
    """`6 of 60 cases failed at first, where fewer than 1 usually does; if nothing changed, …`.

    Then what the branch's own days make of it, and from which chance on it is called a drop. `others`: there are cases
    that are regressions by themselves, which are not among these.
    """
    which = f"{finding.cases} {'other ' if others else ''}{'case' if finding.cases == 1 else 'cases'}"
    if finding.executions is not None:
        which = f"{count(finding.executions, 'execution')} of {which}"
    seldom = " that seldom fail" if finding.steady else ""
    usual = round(finding.expected)
    expected = f"where {'fewer than 1' if finding.expected < 0.95 else f'about {usual}'} usually do"
    expected += "es" if usual <= 1 else ""
    limit = f"from 1 in {round(1 / finding.limit):,} on it is a drop" if 0 < finding.limit <= 1 else None
    seen = finding.control
    there = f"the base branch's agent failed {seen.failures} of {seen.runs} in the same minutes" if seen.runs else None
    failed = f"{finding.failures} of {which}{seldom} failed at first, {expected}"
    return "; ".join(filter(None, [failed, _by_chance(_one_in(finding.chance)), _days(finding), limit, there]))


def _days(finding: SuiteFinding) -> str | None:
    """What is said of the branch's own runs: only where they make a difference that one would notice."""
    if finding.if_alike is None or finding.if_alike * _NOTICED > finding.chance:
        return None
    return f"whole runs on record differ too: if they did not, it would be 1 in {_one_in(finding.if_alike):,}"


def _one_in(chance: float) -> int:
    """As the chance of a case is rounded."""
    return Grounds(why=GroundKind.SUITE, here=NO_RUNS, record=NO_RUNS, chance=chance).one_in or 1


def score_words(finding: ScoreFinding) -> str:
    """`scores of 50 graded cases fell by 0.06 on average; 47 of 50 are lower; if nothing changed, …`, and the bar."""
    fell = f"scores of {count(finding.cases, 'graded case')} fell by {finding.fall:.2f} on average"
    limit = f"from 1 in {round(1 / finding.limit):,} on it is a drop" if 0 < finding.limit <= 1 else None
    there = finding.control_fall
    against = f"by {there:.2f} against the base branch's agent in the same minutes" if there is not None else None
    said = [fell, f"{finding.lower} of {finding.cases} are lower", _by_chance(finding.one_in), limit, against]
    return "; ".join(filter(None, said))


def _flaky(record: CaseRecord) -> str | None:
    if record.steadiness is not Steadiness.FLAKY or record.failure_rate is None:
        return None
    shown = count(len(record.shown_by), "run shows it", "runs show it")
    return f"fails {record.failure_rate * 100:.0f} % of the time, {shown}"
