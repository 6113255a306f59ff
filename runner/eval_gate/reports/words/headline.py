"""The headline of a verdict: a symbol and few words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.gate.evidence.fresh import FRESH, flakes
from eval_gate.model.comparison import CaseChange, CaseClass, Outcome, RuleCode, Verdict
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult, Summary
from eval_gate.reports.facts import all_crash, changes_that_count, not_waived, nothing_comparable, rates_of
from eval_gate.reports.words.grounds import main_broke
from eval_gate.reports.words.numbers import count, percent
from eval_gate.reports.words.verdict import (
    UNJUDGED,
    alone_and_dropped,
    by_control,
    changes_not_waived,
    errors_words,
)
from eval_gate.reports.words.waivers import waived_counts

FAIL, PASS, WARN, BROKEN = "❌", "✅", "⚠️", "🛠️"
_DROPPED = "all cases together fail more than before"
_STEADY_DROPPED = "the cases that seldom fail do so more than before"
_FELL = "scores of all cases together fell"


def headline(run: RunResult, verdict: Verdict, absent: str, *, baseline_is_stale: bool) -> tuple[str, str]:
    """The symbol and the few words behind the title; `absent` are those for a baseline there is not."""
    match verdict.outcome:
        case Outcome.ERROR:
            return BROKEN, "no verdict yet" if verdict.reasons == (UNJUDGED,) else _undecided_words(run.summary)
        case Outcome.FAIL:
            return FAIL, ", ".join([_failed_words(run, verdict), *_before(run), *waived_counts(run)])
    if worse := regression_words(run) if changes_that_count(run, CaseClass.REGRESSION) else _together(run):
        allowed = verdict.rule(RuleCode.REGRESSIONS)
        return WARN, ", ".join([worse, *_before(run), "allowed" if allowed else "reported only", *waived_counts(run)])
    doubtful = _loosened(run) or _not_decided(run) or _flaky_from_the_start(run)
    return WARN if doubtful else PASS, _passed_words(run, verdict, absent, baseline_is_stale=baseline_is_stale)


def _before(run: RunResult) -> Iterator[str]:
    """Which commits before the change count too, where what it is held against has no result of its own."""
    counted = commits_before(run)
    if counted is not None and (changes_that_count(run, CaseClass.REGRESSION) or _together(run)):
        commits, between = counted
        yield f"counting {count(commits, 'commit')} before this change ({between})"


def commits_before(run: RunResult) -> tuple[int, str] | None:
    """How many commits there are between baseline and change, and which, as git names them; None for none.

    A push is held against its own commit, which is the change and none before it.
    """
    facts = run.comparison.baseline if run.comparison else None
    if facts is None or not (facts.commits_since and facts.base_sha and facts.sha):
        return None
    is_own = run.sha == facts.base_sha
    commits = facts.commits_since - is_own
    return (commits, f"{facts.sha[:7]}..{facts.base_sha[:7]}{'^' * is_own}") if commits else None


def _undecided_words(summary: Summary) -> str:
    judged = summary.passed + summary.failed
    if judged and summary.not_run:
        return f"could not decide, ended at {judged} of {count(summary.total_cases, 'case')}"
    return "could not decide"


def regression_words(run: RunResult) -> str:
    """`2 regressions, 3 suspected`, and why where cases are only called so because all together fail more."""
    alone, dropped = alone_and_dropped(run)
    words = count(len(alone) or len(dropped), "regression")
    if spared := sum(one.grounds is not None and one.grounds.spared for one in changes_not_waived(run)):
        words += f", {spared} suspected"
    if alone and dropped:
        return f"{words}, and {len(dropped)} more as the others together fail more than before"
    if not dropped and all_crash(run):
        return f"{words}: every case crashes"
    return f"{words}: {_dropped(run)}" if dropped else words


def _failed_words(run: RunResult, verdict: Verdict) -> str:
    code, rates = verdict.reasons[0].code if verdict.reasons else "", rates_of(run)
    rule = next((rule for rule in verdict.rules if rule.code == code), None)
    match code:
        case RuleCode.REGRESSIONS:
            return regression_words(run)
        case RuleCode.SUITE_DROP:
            return _dropped(run)
        case RuleCode.UNMEASURED if words := errors_words(run):
            return words[0]
        case RuleCode.PASS_RATE:
            return f"pass rate {percent(rates.now)} of {count(rates.judged, 'case')} is too low"
        case RuleCode.STALE:
            return count(sum(suite.stale for suite in run.suites), "stale suite")
    if rule is not None and rule.code in _LIMITS:
        return _LIMITS[rule.code].format(value=rule.value, limit=rule.limit)
    # what waived cases are not in; the record may be anybody's
    if rule is not None and rule.code in _COUNTED and rule.value.isdecimal() and len(rule.value) < 10:
        return count(int(rule.value), *_COUNTED[rule.code])
    return (
        count(run.summary.flaky, "flaky case") if code == RuleCode.FLAKY else count(run.summary.failed, "failing case")
    )


_COUNTED: Final[dict[RuleCode | None, tuple[str, ...]]] = {
    RuleCode.MUST_PASS: ("must-pass case fails", "must-pass cases fail"),
    RuleCode.FLAKY: ("flaky case",),
    RuleCode.FAILURES: ("failing case",),
    RuleCode.REMOVED: ("removed case",),
    RuleCode.CHANGED: ("case measured otherwise", "cases measured otherwise"),
    RuleCode.LOOSENED: ("loosened rule",),
    RuleCode.NEW_FAILURES: ("new or changed case fails", "new or changed cases fail"),
}
"""Headlines of rules that allow none."""
_LIMITS: Final[dict[RuleCode | None, str]] = {
    RuleCode.SUITE_SCORES: _FELL,
    RuleCode.SCORE_DROP: "score drop of {value} (allowed: {limit})",
    RuleCode.LATENCY: "latency {value} (allowed: {limit})",
    RuleCode.COST: "cost {value} (allowed: {limit})",
    RuleCode.TOKENS: "tokens {value} (allowed: {limit})",
    RuleCode.COVERAGE: "only {value} of the cases were judged",
}
"""Headlines of rules with a limit."""


def _passed_words(run: RunResult, verdict: Verdict, absent: str, *, baseline_is_stale: bool) -> str:
    passed = "passed on threshold" if verdict.rule(RuleCode.PASS_RATE) else "passed"
    waived = waived_counts(run)
    if run.comparison is None:
        return ", ".join([passed, absent, *waived])
    if nothing_comparable(run):
        return ", ".join([passed, "baseline not comparable", *waived])
    parts = ["passed" if any("regression" in words for words in waived) else "no regressions", *waived]
    parts += _doubts(run)
    if drops := not_waived(run, run.comparison.score_drops()):
        parts.append(count(len(drops), "score drop"))
    still = changes_that_count(run, CaseClass.STILL_FAILING)
    if broken := sum(main_broke(one, "") is not None for one in still):
        parts.append(f"{count(broken, 'case')} broken before this change")
    parts += errors_words(run)
    if undecided := _not_decided(run):
        parts.append(f"{count(undecided, 'case')} not decided")
    if loosened := _loosened(run):
        parts.append(count(loosened, "loosened rule"))
    if baseline_is_stale:
        parts.append("baseline is stale")
    return ", ".join(parts)


def _doubts(run: RunResult) -> Iterator[str]:
    """What failed here now and then, or not by this change."""
    if there := len(by_control(run)):
        yield f"{count(there, 'case fails', 'cases fail')} with the base branch's agent too"
    if unsettled := len(_unsettled(run)):
        yield f"not sure about {count(unsettled, 'case')}"
    if new := _flaky_from_the_start(run):
        yield count(new, "new case flakes", "new cases flake")


def _loosened(run: RunResult) -> int:
    return run.comparison.measured.loosened if run.comparison and run.comparison.measured else 0


def _flaky_from_the_start(run: RunResult) -> int:
    """How many new and changed cases were seen both to pass and to fail."""
    cases = run.by_key()
    return sum(one.key in cases and flakes(cases[one.key]) for one in changes_that_count(run, *FRESH))


def _unsettled(run: RunResult) -> list[CaseChange]:
    """Those whose answers leave a doubt; what was never judged is among the errors."""
    broken = {key for key, case in run.cases() if case.status is Status.ERROR}
    cleared = {one.key for one in by_control(run)}
    return [one for one in changes_that_count(run, CaseClass.UNSETTLED) if one.key not in broken | cleared]


def _together(run: RunResult) -> str | None:
    """What all cases together show, of which no rule had to say anything; None where they show nothing."""
    found, scores = (run.comparison.suite_finding, run.comparison.score_finding) if run.comparison else (None, None)
    if found is not None and found.dropped:
        return _dropped(run)
    return _FELL if scores is not None and scores.dropped else None


def _dropped(run: RunResult) -> str:
    """What a drop of the suite is a drop of."""
    found = run.comparison.suite_finding if run.comparison else None
    return _STEADY_DROPPED if found is not None and found.steady else _DROPPED


def _not_decided(run: RunResult) -> int:
    return sum(one.grounds is not None and one.grounds.why.undecided for one in changes_not_waived(run))
