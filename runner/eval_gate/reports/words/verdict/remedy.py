"""Whose fault it looks like that the gate failed or could not decide, and what to do first."""

from __future__ import annotations

from typing import Final

from eval_gate.model.comparison import CaseClass, Outcome, Reason, RuleCode, Verdict
from eval_gate.model.execution import Blame
from eval_gate.model.result import RunResult
from eval_gate.reports.facts import blames, changes_that_count


def lead(run: RunResult, verdict: Verdict) -> str | None:
    """The words before the opening, in bold."""
    if verdict.reasons == (UNJUDGED,):
        return None
    if verdict.outcome is Outcome.ERROR:
        return NOTHING_SAID if says_nothing(run, verdict) else UNDECIDED
    return "Gate failed:" if verdict.outcome is Outcome.FAIL else None


UNJUDGED: Final = Reason(
    code="no-verdict",
    message="the run is complete, and no gate has decided on it: `eval-gate compare BASELINE RUN` does",
)
"""In place of a verdict: of a run that was joined of parts, for one."""
NOTHING_SAID: Final = "This says nothing about your change."
UNDECIDED: Final = "The gate could not decide:"
OF_THE_RUN: Final = frozenset({"nothing-judged", "too-many-errors", "not-complete"})
"""Reasons for no verdict that lie in the run itself; the others are about failures that nobody could explain."""


def says_nothing(run: RunResult, verdict: Verdict) -> bool:
    """Whether the change cannot be why there is no verdict: nothing is known against it, and what broke is ours."""
    if verdict.reasons and verdict.reasons[0].code not in OF_THE_RUN:
        return False
    suspect = run.summary.failed or changes_that_count(run, CaseClass.REGRESSION, CaseClass.UNSETTLED)
    return not suspect and set(blames(run)) <= {Blame.OURS}


def lacks_cases(run: RunResult) -> bool:
    """Whether cases are missing by nobody's choice: those of a shard, or of a workflow that chose others than asked."""
    return run.partial and not run.complete and not run.selections


def outage(run: RunResult, verdict: Verdict) -> bool:
    """Whether it looks as if the target could not be reached, or hung on everything."""
    mine = verdict.outcome is Outcome.ERROR and bool(verdict.reasons) and verdict.reasons[0].code in OF_THE_RUN
    found = blames(run)
    return mine and found.count(Blame.UNREACHABLE) * 2 > len(found)


def remedy(run: RunResult, verdict: Verdict) -> str:
    """Where to look if a run without a verdict ends the same way again."""
    if verdict.reasons and verdict.reasons[0].code == "baseline-unavailable":
        return "GitHub or the permissions of the job need a look, not this change"
    if lacks_cases(run):
        return "see why the workflow that ran the evals left cases out"
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
