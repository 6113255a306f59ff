"""The words for a verdict: the headline, and why in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eval_gate.gate.compare import nobody_answered
from eval_gate.gate.evidence.fresh import FRESH, flakes
from eval_gate.gate.rules import new_errors
from eval_gate.gate.scores import limit_words
from eval_gate.model.comparison import CaseChange, CaseClass, Outcome, Reason, RuleCode, Verdict
from eval_gate.model.execution import Blame, Status
from eval_gate.model.grounds import Why
from eval_gate.model.result import RunResult, Summary
from eval_gate.reports.facts import all_crash, blame_of, blames, not_waived, nothing_comparable, rates_of, standing
from eval_gate.reports.words.blame import together
from eval_gate.reports.words.grounds import main_broke, score_words, suite_words
from eval_gate.reports.words.numbers import count, percent, points
from eval_gate.reports.words.waivers import waived_counts

FAIL, PASS, WARN, BROKEN = "❌", "✅", "⚠️", "🛠️"
_DROPPED = "all cases together fail more than before"
_STEADY_DROPPED = "the cases that seldom fail do so more than before"
_FELL = "scores of all cases together fell"


def headline(run: RunResult, verdict: Verdict, absent: str, *, baseline_is_stale: bool) -> tuple[str, str]:
    """The symbol and the few words behind the title; `absent` are those for a baseline there is not."""
    match verdict.outcome:
        case Outcome.ERROR:
            return BROKEN, _undecided_words(run.summary)
        case Outcome.FAIL:
            return FAIL, ", ".join([_failed_words(run, verdict), *waived_counts(run)])
    if worse := regression_words(run) if standing(run, CaseClass.REGRESSION) else _together(run):
        allowed = verdict.rule(RuleCode.REGRESSIONS)
        return WARN, ", ".join([worse, "allowed" if allowed else "reported only", *waived_counts(run)])
    doubtful = _loosened(run) or _not_decided(run) or _flaky_from_the_start(run)
    return WARN if doubtful else PASS, _passed_words(run, verdict, absent, baseline_is_stale=baseline_is_stale)


def _undecided_words(summary: Summary) -> str:
    judged = summary.passed + summary.failed
    if judged and summary.not_run:
        return f"could not decide, ended at {judged} of {count(summary.total_cases, 'case')}"
    return "could not decide"


def regression_words(run: RunResult) -> str:
    """`2 regressions`, and why where cases are only called so because all together fail more."""
    alone, dropped = _alone_and_dropped(run)
    words = count(len(alone) or len(dropped), "regression")
    if alone and dropped:
        return f"{words}, and {len(dropped)} more as the others together fail more than before"
    if not dropped and all_crash(run):
        return f"{words}: every case crashes"
    return f"{words}: {_dropped(run)}" if dropped else words


def _alone_and_dropped(run: RunResult) -> tuple[list[CaseChange], list[CaseChange]]:
    """Regressions by themselves, and those that are part of a drop of all cases together."""
    found = standing(run, CaseClass.REGRESSION)
    dropped = [one for one in found if one.grounds is not None and one.grounds.why is Why.SUITE]
    return [one for one in found if one not in dropped], dropped


def _failed_words(run: RunResult, verdict: Verdict) -> str:
    code, rates = verdict.reasons[0].code if verdict.reasons else "", rates_of(run)
    rule = next((rule for rule in verdict.rules if rule.code == code), None)
    match code:
        case RuleCode.REGRESSIONS:
            spared = sum(one.grounds is not None and one.grounds.spared for one in _changes(run))
            return f"{regression_words(run)}{f', {spared} more not asked again' if spared else ''}"
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
    still = standing(run, CaseClass.STILL_FAILING)
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
    if there := len(_by_control(run)):
        yield f"{count(there, 'case fails', 'cases fail')} with the base branch's agent too"
    if unsettled := len(_unsettled(run)):
        yield f"not sure about {count(unsettled, 'case')}"
    if new := _flaky_from_the_start(run):
        yield count(new, "new case flakes", "new cases flake")


def _loosened(run: RunResult) -> int:
    return run.comparison.measured.loosened if run.comparison and run.comparison.measured else 0


def _by_control(run: RunResult) -> list[CaseChange]:
    """What is not of this change, because the base branch's agent failed it in the same minutes."""
    return [one for one in _changes(run) if one.grounds is not None and one.grounds.why is Why.CONTROL]


def _flaky_from_the_start(run: RunResult) -> int:
    """How many new and changed cases were seen both to pass and to fail."""
    cases = run.by_key()
    return sum(one.key in cases and flakes(cases[one.key]) for one in standing(run, *FRESH))


def _unsettled(run: RunResult) -> list[CaseChange]:
    """Those whose answers leave a doubt; what was never judged is among the errors."""
    broken = {key for key, case in run.cases() if case.status is Status.ERROR}
    cleared = {one.key for one in _by_control(run)}
    return [one for one in standing(run, CaseClass.UNSETTLED) if one.key not in broken | cleared]


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
    return sum(one.grounds is not None and one.grounds.why.undecided for one in _changes(run))


def _changes(run: RunResult) -> list[CaseChange]:
    """What became of every case that nobody waived."""
    return not_waived(run, run.comparison.changes if run.comparison else ())


def lead(run: RunResult, verdict: Verdict) -> str | None:
    """The words before the opening, in bold."""
    if verdict.outcome is Outcome.ERROR:
        return NOTHING_SAID if says_nothing(run, verdict) else UNDECIDED
    return "Gate failed:" if verdict.outcome is Outcome.FAIL else None


NOTHING_SAID: Final = "This says nothing about your change."
UNDECIDED: Final = "The gate could not decide:"
_OWN: Final = frozenset({"nothing-judged", "too-many-errors", "not-complete"})
"""Reasons for no verdict that lie in the run itself; the others are about failures that nobody could explain."""


def says_nothing(run: RunResult, verdict: Verdict) -> bool:
    """Whether the change cannot be why there is no verdict: nothing is known against it, and what broke is ours."""
    if verdict.reasons and verdict.reasons[0].code not in _OWN:
        return False
    suspect = run.summary.failed or standing(run, CaseClass.REGRESSION, CaseClass.UNSETTLED)
    return not suspect and set(blames(run)) <= {Blame.OURS}


def outage(run: RunResult, verdict: Verdict) -> bool:
    """Whether it looks as if the target could not be reached, or hung on everything."""
    mine = verdict.outcome is Outcome.ERROR and bool(verdict.reasons) and verdict.reasons[0].code in _OWN
    found = blames(run)
    return mine and found.count(Blame.UNREACHABLE) * 2 > len(found)


def remedy(run: RunResult, verdict: Verdict) -> str:
    """Where to look if a run without a verdict ends the same way again."""
    if verdict.reasons and verdict.reasons[0].code == "baseline-unavailable":
        return "GitHub or the permissions of the job need a look, not this change"
    if says_nothing(run, verdict):
        return "the judge or the engine needs a look, not this change"
    if outage(run, verdict):
        return "see whether the agent starts and answers in time with this change, then at its host or provider"
    return "see what the target does with this change, and without it"


_TO_DO: Final = {
    RuleCode.REGRESSIONS: "see below what changed; where that is meant, bring the evals up to date",
    RuleCode.SUITE_DROP: "see below what the failing cases have in common: no single one of them decides",
    RuleCode.SUITE_SCORES: "look for what made many answers a little worse: no single case decides",
    RuleCode.MUST_PASS: "mend the cases below that must pass, whatever they did before",
    RuleCode.FAILURES: "mend the cases below, or their evals: every case has to pass here",
    RuleCode.SCORE_DROP: "see below what the scores lost",
    RuleCode.PASS_RATE: "see below which cases fail: more of them have to pass",
    RuleCode.LATENCY: "see what makes the answers slower, or allow more with `max-latency-increase`",
    RuleCode.COST: "see what makes the answers dearer, or allow more with `max-cost-increase`",
    RuleCode.TOKENS: "see what makes the answers longer, or allow more with `max-token-increase`",
    RuleCode.UNMEASURED: "see below what kept cases from being judged, mend it, and run the job again",
    RuleCode.COVERAGE: "see below what kept cases from being judged, mend it, and run the job again",
    RuleCode.FLAKY: "mend the cases below that fail now and then, or quarantine them",
    RuleCode.REMOVED: "have it reviewed that these cases go",
    RuleCode.CHANGED: "have it reviewed that these cases are measured otherwise",
    RuleCode.LOOSENED: "have the rules reviewed that ask for less",
    RuleCode.NEW_FAILURES: "make the new and changed cases pass before they come in",
    RuleCode.STALE: "make the stale evals anew from the tools as they are now",
}
"""What to do first where a rule does not hold. The words are ours: nothing foreign is in them."""


def to_do(verdict: Verdict, *, acceptable: bool) -> str | None:
    """What to do about a failed gate; None where an older version named no reason that is known here."""
    code = verdict.reasons[0].code if verdict.reasons else ""
    words = next((words for rule, words in _TO_DO.items() if rule == code), None)
    return f"{words}, or accept it for now" if words and acceptable else words


def errors_words(run: RunResult) -> tuple[str, ...]:
    """The same in few words, where there are any: `4 cases could not be judged`."""
    return (_errors_words(run).partition(":")[0],) if any(new_errors(run, run.comparison)) else ()


def _errors_words(run: RunResult) -> str:
    """`2 cases crashed`, `4 cases could not be judged: 2 crashed, 1 unreachable, 1 not graded`: those that count."""
    silent = nobody_answered(run)
    return together(blame_of(case, silent=silent) for case in new_errors(run, run.comparison))


def _counted_errors(run: RunResult) -> str:
    """The same beside all that were not judged, where others of these are regressions or not judged on main either."""
    words, counted = _errors_words(run), len(list(new_errors(run, run.comparison)))
    if counted == run.summary.errored:
        return words
    which = words.partition(": ")[2] or words
    count_words = "counts" if counted == 1 else "count"
    return f"{counted} of the {run.summary.errored} cases that could not be judged {count_words}: {which}"


def opening(run: RunResult, verdict: Verdict) -> str:
    """Why, in a few plain sentences."""
    match verdict.outcome:
        case Outcome.FAIL:
            said = [*_sentences(run, verdict), *_rate_sentence(run, verdict), *_waived(run)]
            return " ".join([*said, *_pass_score(run, verdict)])
        case Outcome.ERROR:
            why = undecided(run, verdict)
            if outage(run, verdict):
                why = f"this looks like an outage. {sentence(why)}"
            words = " ".join([why, *_other_reading(run, verdict)])
            return words if lead(run, verdict) == UNDECIDED else sentence(words)
    return _passing_sentences(run, verdict)


def message(run: RunResult, reason: Reason) -> str:
    """The sentence of a reason, in words that fit what decided: where it was records, not one run of the baseline."""
    errors = run.verdict.rule(RuleCode.UNMEASURED) if run.verdict else None
    if reason.code == RuleCode.UNMEASURED and errors is not None:
        return f"{_counted_errors(run)} (allowed: {errors.limit})"
    if run.comparison is None or run.comparison.error_rate is None:
        return reason.message
    if reason.code == RuleCode.SUITE_DROP and run.comparison.suite_finding is not None:
        return suite_drop(run)
    if reason.code == RuleCode.SUITE_SCORES and run.comparison.score_finding is not None:
        return score_words(run.comparison.score_finding)
    rule = run.verdict.rule(RuleCode.REGRESSIONS) if run.verdict else None
    apart = _crashes_and_drops(run) if reason.code == RuleCode.REGRESSIONS else None
    return f"{apart} (allowed: {rule.limit})" if rule is not None and apart else reason.message


def _crashes_and_drops(run: RunResult) -> str | None:
    """How many cases crash for themselves, and how many are only called regressions because all dropped.

    None where there are none of these: then the gate's own sentence says it all.
    """
    alone, dropped = _alone_and_dropped(run)
    broken = {key for key, case in run.cases() if case.status is Status.ERROR}
    crash = sum(one.key in broken for one in alone)
    if not crash and not dropped:
        return None
    if not alone:
        return f"{count(len(dropped), 'case that usually passes', 'cases that usually pass')} failed here at first"
    said = []
    if len(alone) > crash:
        said.append(count(len(alone) - crash, "case that usually passes fails", "cases that usually pass fail"))
    if crash:
        said.append(count(crash, "case that usually passes crashes", "cases that usually pass crash"))
    return f"{' and '.join(said)} here{f', and {len(dropped)} more failed at first' if dropped else ''}"


def suite_drop(run: RunResult) -> str:
    """How all cases together compare with their records."""
    assert run.comparison is not None
    assert run.comparison.suite_finding is not None
    grounds = [one.grounds for one in run.comparison.of(CaseClass.REGRESSION)]
    alone = any(one is not None and one.why is not Why.SUITE for one in grounds)
    return suite_words(run.comparison.suite_finding, others=alone)


def undecided(run: RunResult, verdict: Verdict) -> str:
    """Why there is no verdict, and how far the run came; to be read after a colon."""
    why = run.stopped or next((message(run, reason) for reason in verdict.reasons), "the run was not finished")
    return f"{why.rstrip('.')}. {_progress(run.summary)}"


def _other_reading(run: RunResult, verdict: Verdict) -> list[str]:
    """What else it may be where it looks like an outage: a change that keeps the target from starting looks so too."""
    if outage(run, verdict):
        return [f"If this change keeps the agent from starting, or from answering in time, {_NEXT}."]
    if Blame.CRASHED in blames(run) and verdict.reasons and verdict.reasons[0].code in _OWN:
        return [f"The agent may have been down; if this change is what breaks it, {_NEXT}."]
    return []


_NEXT: Final = "the next run will say the same"


def _passing_sentences(run: RunResult, verdict: Verdict) -> str:
    rule = verdict.rule(RuleCode.PASS_RATE)
    words = [f"{_of_judged(run, *([f'threshold {rule.limit}'] if rule else []))}{_unjudged(run)}."]
    if still := standing(run, CaseClass.STILL_FAILING):
        words.append(f"{len(still)} still failing.")
    words += _cleared(run)
    words += _waived(run)
    known = {"passed", "no-baseline"}
    words += [sentence(message(run, reason)) for reason in verdict.reasons if reason.code not in known]
    return " ".join([*words, *_pass_score(run, verdict)])


def _cleared(run: RunResult) -> list[str]:
    """What would have failed the gate, had nobody asked the base branch's agent."""
    if not (found := len(_by_control(run))):
        return []
    which = count(found, "case that usually passes fails", "cases that usually pass fail")
    them = "it" if found == 1 else "them"
    return [f"{which} here; the base branch's agent, asked in the same minutes, fails {them} too: not of this change."]


def _pass_score(run: RunResult, verdict: Verdict) -> list[str]:
    """What counts as a pass, where that is not the specification's 1."""
    graded = any(case.graded for _, case in run.cases())
    if not graded or verdict.pass_score >= 1.0:
        return []
    return [f"Graded cases pass from {limit_words(verdict.pass_score)} on."]


def _waived(run: RunResult) -> list[str]:
    """What was left out of the numbers, and by whose word."""
    words = [f"Not counted: {', '.join(found)}."] if (found := waived_counts(run)) else []
    aside = rates_of(run).set_aside
    if aside:
        words.append(f"{count(aside, 'case')} in quarantine {'is' if aside == 1 else 'are'} in no pass rate.")
    return words


def _sentences(run: RunResult, verdict: Verdict) -> list[str]:
    """The reasons; the first one goes on after the words before it."""
    first, *others = [message(run, reason) for reason in verdict.reasons] or ["the rules do not hold"]
    return [f"{first.rstrip('.')}.", *map(sentence, others)]


def sentence(words: str) -> str:
    """The words with a capital at the beginning and one full stop at the end."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _progress(summary: Summary) -> str:
    judged = summary.passed + summary.failed
    were = "was" if 1 in {judged, summary.total_cases} else "were"
    words = [f"{judged} of {count(summary.total_cases, 'case')} {were} judged"]
    if summary.errored:
        words.append(f"{summary.errored} could not be")
    if summary.not_run:
        words.append(f"{summary.not_run} {'was' if summary.not_run == 1 else 'were'} not run")
    if summary.skipped:
        words.append(f"{summary.skipped} skipped")
    return ", ".join(words) + "."


def _rate_sentence(run: RunResult, verdict: Verdict) -> list[str]:
    rates = rates_of(run)
    now, before = rates.now, rates.before
    if any(reason.code == RuleCode.PASS_RATE for reason in verdict.reasons):
        return [] if now is None or before is None else [f"Baseline {percent(before)} ({points(before, now)})."]
    return [f"{_of_judged(run)}{_unjudged(run)}."]


def _of_judged(run: RunResult, *more: str) -> str:
    """`7 of 8 judged cases pass (87.5 %, baseline 90.0 %, −2.5 pp)`; `after re-runs` where these did it."""
    rates = rates_of(run)
    if not rates.judged:
        return "No case was judged"
    which = f"{'judged ' if _unjudged(run) else ''}{'case passes' if rates.judged == 1 else 'cases pass'}"
    passed = {key for key, case in run.cases() if case.passed}
    again = any(one.key in passed for one in standing(run, CaseClass.REGRESSION))
    rate = ", ".join([_rate_words(run), *more])
    return f"{rates.passed} of {rates.judged} {which}{' after re-runs' if again else ''} ({rate})"


def _unjudged(run: RunResult) -> str:
    """`, 2 could not be judged`: what a pass rate says nothing about."""
    summary = run.summary
    numbers = {"could not be judged": summary.errored, "not run": summary.not_run, "skipped": summary.skipped}
    return "".join(f", {number} {words}" for words, number in numbers.items() if number)


def _rate_words(run: RunResult) -> str:
    rates = rates_of(run)
    now, before = rates.now, rates.before
    if now is None or before is None or nothing_comparable(run):
        return percent(now)
    return f"{percent(now)}, baseline {percent(before)}, {points(before, now)}"
