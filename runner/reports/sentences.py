"""The words for a verdict: the headline, and why in a few sentences."""

from __future__ import annotations

from runner.gate.policy import SCORE_DROP
from runner.gate.scores import limit_words
from runner.model.comparison import CaseClass, Outcome, Verdict
from runner.model.result import RunResult, Summary
from runner.reports.wording import count, percent, points

FAIL, PASS, WARN, BROKEN = "❌", "✅", "⚠️", "🛠️"
_COMPARED = (
    *(CaseClass.REGRESSION, CaseClass.NEW_PASS, CaseClass.STILL_FAILING, CaseClass.STILL_PASSING),
    *(CaseClass.FLAKY, CaseClass.UNSETTLED),
)


def nothing_comparable(run: RunResult) -> bool:
    """Whether there is a baseline, but not one case that could be held against it."""
    return run.comparison is not None and not run.comparison.of(*_COMPARED)


def headline(run: RunResult, verdict: Verdict, absent: str, *, baseline_is_stale: bool) -> tuple[str, str]:
    """The symbol and the few words behind the title; `absent` are those for a baseline there is not."""
    regressions = len(run.comparison.of(CaseClass.REGRESSION)) if run.comparison else 0
    match verdict.outcome:
        case Outcome.ERROR:
            return BROKEN, _undecided_words(run.summary)
        case Outcome.FAIL:
            return FAIL, _failed_words(run, verdict, regressions)
    if regressions:
        return WARN, f"{count(regressions, 'regression')}, reported only"
    return PASS, _passed_words(run, verdict, absent, baseline_is_stale=baseline_is_stale)


def _undecided_words(summary: Summary) -> str:
    judged = summary.passed + summary.failed
    if judged and summary.not_run:
        return f"could not decide, ended at {judged} of {count(summary.total_cases, 'case')}"
    return "could not decide"


def _failed_words(run: RunResult, verdict: Verdict, regressions: int) -> str:
    summary = run.summary
    match verdict.reasons[0].code if verdict.reasons else "":
        case "regressions":
            return count(regressions, "regression")
        case "could-not-measure":
            return f"{count(summary.errored, 'case')} could not be measured"
        case "min-pass-rate":
            return f"pass rate {percent(summary.pass_rate)} is too low"
        case "max-score-drop":
            rule = next((rule for rule in verdict.rules if rule.name == SCORE_DROP), None)
            return f"score drop of {rule.value} (allowed: {rule.limit})" if rule else "score drop"
        case "stale":
            return count(sum(suite.stale for suite in run.suites), "stale suite")
        case "flaky":
            return count(summary.flaky, "flaky case")
        case _:
            return count(summary.failed, "failing case")


def _passed_words(run: RunResult, verdict: Verdict, absent: str, *, baseline_is_stale: bool) -> str:
    by_threshold = any(rule.name == "Pass rate" for rule in verdict.rules)
    passed = "passed on threshold" if by_threshold else "passed"
    if run.comparison is None:
        return f"{passed}, {absent}"
    if nothing_comparable(run):
        return f"{passed}, baseline not comparable"
    parts = ["no regressions"]
    if drops := len(run.comparison.score_drops()):
        parts.append(count(drops, "score drop"))
    if run.summary.errored:
        parts.append(f"{count(run.summary.errored, 'case')} could not be measured")
    if baseline_is_stale:
        parts.append("baseline is stale")
    return ", ".join(parts)


def lead(outcome: Outcome) -> str | None:
    """The words before the opening, in bold."""
    return {Outcome.FAIL: "Gate failed:", Outcome.ERROR: "This says nothing about your change."}.get(outcome)


def opening(run: RunResult, verdict: Verdict) -> str:
    """Why, in a few plain sentences."""
    match verdict.outcome:
        case Outcome.FAIL:
            return " ".join([*_sentences(verdict), *_rate_sentence(run, verdict), *_pass_score(run, verdict)])
        case Outcome.ERROR:
            return sentence(undecided(run, verdict))
    return _passing_sentences(run, verdict)


def undecided(run: RunResult, verdict: Verdict) -> str:
    """Why there is no verdict, and how far the run came; to be read after a colon."""
    why = run.stopped or next((reason.message for reason in verdict.reasons), "the run was not finished")
    return f"{why.rstrip('.')}. {_progress(run.summary)}"


def _passing_sentences(run: RunResult, verdict: Verdict) -> str:
    summary = run.summary
    judged = summary.passed + summary.failed
    limit = next((rule.limit for rule in verdict.rules if rule.name == "Pass rate"), None)
    rate = ", ".join([_rate_words(run), *([f"threshold {limit}"] if limit else [])])
    words = [f"{summary.passed} of {judged} cases pass ({rate})."]
    still = len(run.comparison.of(CaseClass.STILL_FAILING)) if run.comparison else 0
    if still:
        words.append(f"{still} still failing.")
    known = {"passed", "no-baseline"}
    words += [sentence(reason.message) for reason in verdict.reasons if reason.code not in known]
    return " ".join([*words, *_pass_score(run, verdict)])


def _pass_score(run: RunResult, verdict: Verdict) -> list[str]:
    """What counts as a pass, where that is not the specification's 1."""
    graded = any(case.graded for suite in run.suites for case in suite.cases)
    if not graded or verdict.pass_score >= 1.0:
        return []
    return [f"Graded cases pass from {limit_words(verdict.pass_score)} on."]


def _sentences(verdict: Verdict) -> list[str]:
    """The reasons; the first one goes on after the words before it."""
    first, *others = [reason.message for reason in verdict.reasons] or ["the rules do not hold"]
    return [f"{first.rstrip('.')}.", *map(sentence, others)]


def sentence(words: str) -> str:
    """The words with a capital at the beginning and one full stop at the end."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _progress(summary: Summary) -> str:
    judged = summary.passed + summary.failed
    words = [f"{judged} of {count(summary.total_cases, 'case')} {'was' if judged == 1 else 'were'} judged"]
    if summary.errored:
        words.append(f"{summary.errored} could not be measured")
    if summary.not_run:
        words.append(f"{summary.not_run} {'was' if summary.not_run == 1 else 'were'} not run")
    if summary.skipped:
        words.append(f"{summary.skipped} skipped")
    return ", ".join(words) + "."


def _rate_sentence(run: RunResult, verdict: Verdict) -> list[str]:
    now = run.summary.pass_rate
    before = run.comparison.baseline.pass_rate if run.comparison else None
    if any(reason.code == "min-pass-rate" for reason in verdict.reasons):
        return [] if now is None or before is None else [f"Baseline {percent(before)} ({points(before, now)})."]
    if now is None or before is None:
        return [f"Pass rate {percent(now)}."]
    return [f"Pass rate {percent(now)}, baseline {percent(before)} ({points(before, now)})."]


def _rate_words(run: RunResult) -> str:
    now = run.summary.pass_rate
    before = run.comparison.baseline.pass_rate if run.comparison else None
    if now is None or before is None or nothing_comparable(run):
        return percent(now)
    return f"{percent(now)}, baseline {percent(before)}, {points(before, now)}"
