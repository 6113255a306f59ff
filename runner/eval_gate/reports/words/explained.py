"""Which page of the documentation explains what a report says."""

from __future__ import annotations

from typing import Final

from eval_gate.model.comparison import CaseClass, Outcome, RuleCode, Verdict
from eval_gate.model.result import RunResult
from eval_gate.reports.facts import all_crash, changes_that_count, nothing_comparable
from eval_gate.struct import FrozenStruct


class Explained(FrozenStruct):
    """A page: `target` is its file in the documentation, with a heading; `words` are those of the link."""

    target: str
    words: str


REGRESSION: Final = Explained("verdict.md#what-the-report-says", "When is a failure a regression?")
DOUBT: Final = Explained("verdict.md#what-happens", "Why is that not sure?")
YARDSTICK: Final = Explained("setup-changes.md#what-counts", 'What does "measured otherwise" mean?')
NO_BASELINE: Final = Explained("baselines.md#when-there-is-none", "Where does a baseline come from?")
STALE_BASELINE: Final = Explained("baselines.md#which-one-is-taken", "Which baseline is taken?")
ACCEPTED: Final = Explained("accepting.md#what-it-does", "What does accepting do?")
ALL_CRASH: Final = Explained("errors.md#all-crashed", "What if every case crashes?")
BY_REASON: Final = {
    RuleCode.REGRESSIONS: REGRESSION,
    RuleCode.SUITE_DROP: DOUBT,
    RuleCode.REMOVED: YARDSTICK,
    RuleCode.CHANGED: YARDSTICK,
    RuleCode.LOOSENED: YARDSTICK,
}
"""Pages about the reason of a failed gate; every other code has its entry in the page of errors."""


def explained(run: RunResult, verdict: Verdict, *, baseline_is_stale: bool) -> Explained | None:
    """The one page about the state that the run is in; None where nothing has to be explained.

    Of a run without a verdict none: what it says to do names its page.
    """
    match verdict.outcome:
        case Outcome.FAIL:
            return _failed(run, verdict)
        case Outcome.ERROR:
            return None
    if run.comparison is None:
        return NO_BASELINE
    measured = run.comparison.measured
    states = {
        YARDSTICK: nothing_comparable(run) or (measured is not None and measured.loosened),
        REGRESSION: changes_that_count(run, CaseClass.REGRESSION),
        ACCEPTED: run.waived,
        DOUBT: changes_that_count(run, CaseClass.UNSETTLED, CaseClass.FLAKY),
        STALE_BASELINE: baseline_is_stale,
    }
    return next((page for page, holds in states.items() if holds), None)


def _failed(run: RunResult, verdict: Verdict) -> Explained | None:
    code = next((known for known in RuleCode if verdict.reasons and known == verdict.reasons[0].code), None)
    if code is None:
        return None  # of a version that knows more
    if code is RuleCode.REGRESSIONS and all_crash(run):
        return ALL_CRASH
    return BY_REASON.get(code) or Explained(f"errors.md#{code}", f"What does {code} mean?")
