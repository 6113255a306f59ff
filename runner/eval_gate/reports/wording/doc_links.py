"""Links to the documentation page that explains the state of a run."""

from __future__ import annotations

from typing import Final

from eval_gate.model.comparison import CaseClass, Outcome, RuleCode, Verdict
from eval_gate.model.result import RunResult
from eval_gate.reports.run_statistics import has_no_comparable_case, has_only_agent_errors, select_counted_changes
from eval_gate.struct import FrozenStruct


class DocLink(FrozenStruct):
    """Link to a documentation page: `target` is its file with the heading, `text` the link text."""

    target: str
    text: str


REGRESSION: Final = DocLink("verdict.md#what-the-report-says", "When is a failure a regression?")
INCONCLUSIVE: Final = DocLink("verdict.md#what-happens", "Why is this inconclusive?")
SETUP_CHANGE: Final = DocLink("baselines.md#setup-changes", "What is a setup change?")
NO_BASELINE: Final = DocLink("baselines.md#when-no-baseline-is-found", "Where does a baseline come from?")
STALE_BASELINE: Final = DocLink("baselines.md#which-baseline-is-used", "Which baseline is used?")
WAIVED: Final = DocLink("waivers.md#what-a-waiver-does", "What does a waiver do?")
ALL_AGENT_ERRORS: Final = DocLink("errors.md#all-agent-errors", "What if every case has an agent error?")
LINKS_BY_RULE: Final = {
    RuleCode.REGRESSIONS: REGRESSION,
    RuleCode.SUITE_DROP: INCONCLUSIVE,
    RuleCode.REMOVED_CASES: SETUP_CHANGE,
    RuleCode.CHANGED_CASES: SETUP_CHANGE,
    RuleCode.LOOSENED_RULES: SETUP_CHANGE,
}
"""Pages about the reason of a failed gate; every other code has its entry in the page of errors."""


def find_doc_link(run: RunResult, verdict: Verdict, *, baseline_is_stale: bool) -> DocLink | None:
    """Find the documentation page about the state of a run; return None if it needs no explanation.

    An inconclusive run has none, because its next step already names a page.
    """
    match verdict.outcome:
        case Outcome.FAILED:
            return _find_failure_link(run, verdict)
        case Outcome.INCONCLUSIVE:
            return None
    if run.comparison is None:
        return NO_BASELINE
    measured = run.comparison.setup_changes
    states = {
        SETUP_CHANGE: has_no_comparable_case(run) or (measured is not None and measured.loosened_rules),
        REGRESSION: select_counted_changes(run, CaseClass.REGRESSION),
        WAIVED: run.waived_keys,
        INCONCLUSIVE: select_counted_changes(run, CaseClass.INCONCLUSIVE, CaseClass.FLAKY),
        STALE_BASELINE: baseline_is_stale,
    }
    return next((page for page, holds in states.items() if holds), None)


def _find_failure_link(run: RunResult, verdict: Verdict) -> DocLink | None:
    code = next((known for known in RuleCode if verdict.reasons and known == verdict.reasons[0].code), None)
    if code is None:
        return None  # of a version that knows more
    if code is RuleCode.REGRESSIONS and has_only_agent_errors(run):
        return ALL_AGENT_ERRORS
    return LINKS_BY_RULE.get(code) or DocLink(f"errors.md#{code}", f"What does {code} mean?")
