"""The words for numbers and verdicts, the same in every report."""

from __future__ import annotations

from runner.model.comparison import CaseClass, Outcome, Tally, Verdict
from runner.model.result import RunResult

FAIL, PASS, WARN, BROKEN = "❌", "✅", "⚠️", "🛠️"
MINUS = "−"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 regression`, `3 regressions`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def percent(share: float | None) -> str:
    """`92.5 %`; a dash where nothing was judged."""
    return "–" if share is None else f"{share * 100:.1f} %"


def points(before: float, now: float) -> str:
    """`+1.7 pp`, `−1.7 pp`."""
    difference = round((now - before) * 100, 1)
    sign = MINUS if difference < 0 else "+" if difference > 0 else ""
    return f"{sign}{abs(difference):.1f} pp"


def signed(number: int) -> str:
    """`+2`, `−1`, `0`."""
    return f"{MINUS if number < 0 else '+' if number > 0 else ''}{abs(number)}"


def tally_words(tally: Tally | None) -> str | None:
    """`2/3` for several trials, else `pass` or `fail`."""
    if tally is None:
        return None
    if tally.n > 1:
        return f"{tally.k}/{tally.n}"
    return "pass" if tally.k else "fail"


def age(days: float | None) -> str | None:
    """`2 days old`, `5 hours old`."""
    if days is None:
        return None
    return f"{count(round(days), 'day')} old" if days >= 1 else f"{count(max(round(days * 24), 0), 'hour')} old"


def headline(run: RunResult, verdict: Verdict, max_age_days: float, max_commits: int) -> tuple[str, str]:
    """The symbol and the few words behind the title."""
    regressions = len(run.comparison.of(CaseClass.REGRESSION)) if run.comparison else 0
    if verdict.outcome is Outcome.ERROR:
        return BROKEN, "could not decide"
    if verdict.outcome is Outcome.FAIL:
        return FAIL, count(regressions, "regression") if regressions else _failed_words(run, verdict)
    if run.comparison is None:
        return PASS, _no_baseline_words(verdict)
    if regressions:
        return WARN, f"{count(regressions, 'regression')}, reported only"
    facts = run.comparison.baseline
    stale = (facts.age_days or 0) > max_age_days or (facts.commits_behind or 0) > max_commits
    return PASS, "no regressions, baseline is stale" if stale else "no regressions"


def _failed_words(run: RunResult, verdict: Verdict) -> str:
    summary = run.summary
    match verdict.reasons[0].code if verdict.reasons else "":
        case "could-not-measure":
            return f"{count(summary.errored, 'case')} could not be measured"
        case "min-pass-rate":
            return f"pass rate {percent(summary.pass_rate)} is too low"
        case "stale":
            return count(sum(suite.stale for suite in run.suites), "stale suite")
        case "flaky":
            return count(summary.flaky, "flaky case")
        case _:
            return count(summary.failed, "failing case")


def _no_baseline_words(verdict: Verdict) -> str:
    by_threshold = any(rule.name == "Pass rate" for rule in verdict.rules)
    return "passed on threshold, no baseline yet" if by_threshold else "passed, no baseline yet"


def opening(run: RunResult, verdict: Verdict) -> str:
    """Why, in one or two plain sentences."""
    summary = run.summary
    rate = _rate_words(run)
    reasons = "; ".join(reason.message for reason in verdict.reasons)
    if verdict.outcome is Outcome.FAIL:
        return f"{reasons}. Pass rate {rate}."
    if verdict.outcome is Outcome.ERROR:
        done = summary.passed + summary.failed
        why = reasons or "the run was not finished"
        return f"{why[:1].upper()}{why[1:]}. {done} of {summary.total_cases} cases were judged."
    judged = summary.passed + summary.failed
    words = f"{summary.passed} of {count(judged, 'case')} pass{'es' if judged == 1 else ''} ({rate})."
    known = {"passed", "no-baseline"}
    said = [reason.message for reason in verdict.reasons if reason.code not in known]
    return " ".join([words, *(f"{message[:1].upper()}{message[1:]}." for message in said)])


def _rate_words(run: RunResult) -> str:
    now = run.summary.pass_rate
    before = run.comparison.baseline.pass_rate if run.comparison else None
    if now is None or before is None:
        return percent(now)
    return f"{percent(now)}, baseline {percent(before)}, {points(before, now)}"
