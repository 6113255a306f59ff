"""Advice on a gate that did not pass: the cause, its owner, and the next step.

All reports show what `find_advice` returns. The hint of an error takes precedence over the advice on its cause, and the
cause of the errors over the reason of the verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from eval_gate.errors import ExitCode, GateError
from eval_gate.formats.dialect_names import UPDATABLE_DIALECTS
from eval_gate.gate.must_pass import find_must_pass_cases
from eval_gate.model.case import MistakeKind
from eval_gate.model.comparison import CaseClass, Outcome, ReasonCode, RuleCode, Verdict
from eval_gate.model.execution import ErrorCause, ErrorKind, Status, Trial
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.run_statistics import has_no_comparable_case, has_only_agent_errors, select_counted_changes
from eval_gate.reports.wording.advice_table import (
    ADVICE_BY_CAUSE,
    ADVICE_BY_KIND,
    ADVICE_BY_MISTAKE,
    ADVICE_BY_REASON,
    ALL_AGENT_ERRORS_PAGE,
    INCONCLUSIVE_PAGE,
    INCONCLUSIVE_RULES,
    MIXED_ERRORS,
    NO_ADVICE,
    NO_BASELINE_PAGE,
    OTHER_VERSION,
    OWNERS_OF_PROBLEMS,
    RECHECKED,
    REGRESSION_PAGE,
    REUSE_PAGE,
    SETUP_CHANGE_PAGE,
    STALE_BASELINE_PAGE,
    WAIVED_PAGE,
    AdviceRow,
    DocLink,
    Owner,
)
from eval_gate.reports.wording.failed_turns import describe_user_change
from eval_gate.reports.wording.reuse import is_cause_outside
from eval_gate.reports.wording.verdict import (
    INCONCLUSIVE,
    group_unwaived_regressions,
    list_unwaived_changes,
    to_sentence,
)
from eval_gate.results.baseline import describe_branch_rerun
from eval_gate.text.escape import format_count

UNRELATED_TO_CHANGE: Final = "This says nothing about your change."


class Advice(NamedTuple):
    """Cause, owner and next step."""

    cause: ErrorCause | MistakeKind | str
    """Mistake in the eval files, cause of the errors, or code of the verdict's reason."""
    owner: Owner
    next_step: str
    is_refresh: bool = False
    """Whether the next step makes a new baseline; a report may offer the commands."""

    def is_about(self, case: CaseResult) -> bool:
        """Whether it applies to this case: it has a score, or an error with this cause."""
        return case.status is not Status.ERROR or self.cause in {case.error_cause, str(case.error_kind)}


_ERROR_REASONS: Final = frozenset(
    {
        *(ReasonCode.NO_SCORED_CASES, ReasonCode.TOO_FEW_SCORED_CASES, RuleCode.ERRORS, RuleCode.COVERAGE),
        RuleCode.AGENT_ERRORS,
        *(ReasonCode.RUN_INCOMPLETE, ReasonCode.UNCONFIRMED_REGRESSIONS, ReasonCode.MISSING_MUST_PASS_RESULT),
        RuleCode.REGRESSIONS,
    }
)
"""Reasons that errors of cases can explain."""
_CHANGE_REASONS: Final = frozenset(
    {RuleCode.REGRESSIONS, RuleCode.SUITE_DROP, RuleCode.AGENT_ERRORS, ReasonCode.UNCONFIRMED_REGRESSIONS}
)
"""Reasons whose advice names the change as the cause, or as a possible one."""
_FAILURE_REASONS: Final = frozenset({RuleCode.FAILURES, RuleCode.MUST_PASS, RuleCode.PASS_RATE, RuleCode.NEW_FAILURES})
"""Reasons that mistakes of failing cases can explain; a case whose eval changed is no regression."""
_RESULT_REASONS: Final = frozenset(
    {ReasonCode.NO_SCORED_CASES, ReasonCode.MISSING_CASE_RESULT, ReasonCode.MISSING_MUST_PASS_RESULT}
)
"""Reasons that mistakes of skipped cases can explain."""


def find_advice(run: RunResult, verdict: Verdict, context: ReportContext, *, waive: str | None = None) -> Advice | None:
    """Find the advice on a gate that failed or is inconclusive; None if it passed or has no verdict yet.

    `waive` says how to waive the failures; None if that is not possible.
    """
    code = _get_code(run, verdict)
    if verdict.outcome is Outcome.PASSED or code in NO_ADVICE:
        return None
    mistake = _find_common_mistake(run, code)
    if mistake is not None:
        return Advice(mistake, Owner.EVALS, to_sentence(ADVICE_BY_MISTAKE[mistake].step))
    error_row = _find_error_row(run, verdict, code)
    if error_row is None:
        row, hint = _find_reason_row(run, verdict, code), verdict.reasons[0].hint if verdict.reasons else None
        step = to_sentence(hint) if hint else _format_step(run, verdict, context, row, _fill_in(run, row.step, waive))
        return Advice(code, _narrow_owner(run, row.owner), step, _is_refresh(code, hint, context))
    cause, row, hint = error_row
    if hint and row.before_hint is not None:
        step = f"{row.step}. {to_sentence(row.before_hint + hint)}"
    else:
        step = hint or row.step
    if verdict.outcome is Outcome.FAILED and not hint and not _may_be_outage(run, row):
        step += ", and fix the change" if row.owner is Owner.UNKNOWN and not is_cause_outside(run) else ""
        step += f", or {waive}" if waive else ""
    step = _format_step(run, verdict, context, row, step)
    if row.owner is Owner.UNKNOWN and verdict.outcome is Outcome.INCONCLUSIVE and context.base_branch:
        step += " This change may be the cause."
    return Advice(cause, _narrow_owner(run, row.owner), step)


def _is_refresh(code: str, hint: str | None, context: ReportContext) -> bool:
    """Whether the step is to run the workflow on the baseline's branch, and the context offers exactly that."""
    if context.baseline_refresh is None or code != ReasonCode.BASELINE_ARTIFACT_NOT_FOUND:
        return False
    return hint is None or (context.branch is not None and hint == describe_branch_rerun(context.branch))


def _format_step(run: RunResult, verdict: Verdict, context: ReportContext, row: AdviceRow, step: str) -> str:
    """Format a step as a sentence, after the advice to run again if that may help."""
    rerun = "Re-run the failed job" if context.run_url else "Run it again"
    if row.may_pass and verdict.outcome is Outcome.INCONCLUSIVE:
        return to_sentence(f"{rerun}. If it ends the same way, {step}")
    if _may_be_outage(run, row):
        condition = "every case ends with an agent error again, this change is the cause"
        return to_sentence(f"{rerun} once. If {condition}: {step}")
    return to_sentence(step)


def _may_be_outage(run: RunResult, row: AdviceRow) -> bool:
    """Whether an outage may explain the errors, because every case has one."""
    return row.may_pass and has_only_agent_errors(run)


def find_problem_owner(error: GateError) -> Owner:
    """Find the owner of a problem that ended a step before it had a run."""
    if error.exit_code is ExitCode.USAGE:
        return Owner.CHANGE
    return OWNERS_OF_PROBLEMS.get(error.code, Owner.UNKNOWN)


def format_lead(advice: Advice | None, verdict: Verdict) -> str | None:
    """Return the bold text before the opening sentence of a verdict, or None if there is none."""
    if advice is None:
        return None
    if verdict.outcome is Outcome.FAILED:
        return "Gate failed:" if verdict.runs_until_failing is None else "Reported only:"
    return UNRELATED_TO_CHANGE if advice.owner.is_unrelated_to_change else INCONCLUSIVE


def _get_code(run: RunResult, verdict: Verdict) -> str:
    code = verdict.reasons[0].code if verdict.reasons else ReasonCode.RUN_INCOMPLETE
    return (
        RuleCode.SUITE_DROP
        if code == RuleCode.REGRESSIONS and group_unwaived_regressions(run).is_suite_drop_alone
        else code
    )


def _find_reason_row(run: RunResult, verdict: Verdict, code: str) -> AdviceRow:
    """Find the advice for a reason that no errors explain."""
    if code in _CHANGE_REASONS and is_cause_outside(run):
        return RECHECKED
    if code == ReasonCode.RUN_INCOMPLETE and run.is_external:
        what = "look up in the log of the tool why these cases did not run: this change may be the cause"
        return AdviceRow(Owner.UNKNOWN, what, may_pass=True)
    if code == ReasonCode.RUN_INCOMPLETE and run.partial and not run.selections:
        what = "find out why the workflow that ran the evals left cases out"
        return AdviceRow(Owner.WORKFLOW, what, may_pass=True)
    rows = dict(ADVICE_BY_REASON)
    if verdict.outcome is Outcome.INCONCLUSIVE:
        rows |= {**INCONCLUSIVE_RULES, RuleCode.ERRORS: MIXED_ERRORS, RuleCode.COVERAGE: MIXED_ERRORS}
        if run.summary.errored:
            rows[ReasonCode.NO_SCORED_CASES] = MIXED_ERRORS
    return rows.get(code, OTHER_VERSION)


def _find_common_mistake(run: RunResult, code: str) -> MistakeKind | None:
    """Find the mistake of most failing cases, or of any skipped case if the reason is about cases without a result."""
    status = Status.FAILED if code in _FAILURE_REASONS else Status.SKIPPED if code in _RESULT_REASONS else None
    cases = [case for _, case in run.iter_cases() if case.status is status]
    kinds = Counter(kind for case in cases for kind in {one.kind for one in case.mistakes})
    if not kinds:
        return None
    kind, count = kinds.most_common(1)[0]
    return kind if status is Status.SKIPPED or count * 2 > len(cases) else None


def _find_error_row(
    run: RunResult, verdict: Verdict, code: str
) -> tuple[ErrorCause | str, AdviceRow, str | None] | None:
    """Find the cause, advice and hint of the errors that explain a reason, if more than half of them agree."""
    if code not in _ERROR_REASONS:
        return None
    if run.stop_cause is not None and verdict.outcome is Outcome.INCONCLUSIVE:
        return run.stop_cause, ADVICE_BY_CAUSE[run.stop_cause], run.stop_hint
    errors = _select_errors(run, code)
    if not errors:
        return None
    common = Counter((one.error_cause, one.error_kind, one.error_hint) for one in errors)
    (cause, kind, hint), count = common.most_common(1)[0]
    if count * 2 <= len(errors):
        same = Counter((one.error_cause, one.error_kind) for one in errors)
        ((cause, kind), count), hint = same.most_common(1)[0], None
    if count * 2 <= len(errors):
        return None
    return None if cause is None and kind is None else (cause or str(kind), _find_cause_row(cause, kind), hint)


def _find_cause_row(cause: ErrorCause | None, kind: ErrorKind | None) -> AdviceRow:
    """Return the advice for the cause of an error, or for its kind if no cause is recorded."""
    return ADVICE_BY_CAUSE[cause] if cause else ADVICE_BY_KIND[kind] if kind else MIXED_ERRORS


def _select_errors(run: RunResult, code: str) -> Sequence[CaseResult | Trial]:
    """Select the errors that explain this reason of a verdict; none if something else explains it too."""
    cases = {key: case for key, case in run.iter_cases() if case.status is Status.ERROR}
    if code == RuleCode.REGRESSIONS:
        regressions = select_counted_changes(run, CaseClass.REGRESSION)
        return [cases[one.key] for one in regressions] if all(one.key in cases for one in regressions) else ()
    if code == ReasonCode.UNCONFIRMED_REGRESSIONS:
        by_key = run.index_cases()
        still = [
            by_key[one.key] for one in list_unwaived_changes(run) if one.grounds and one.grounds.kind.is_inconclusive
        ]
        return [trial for case in still for trial in case.list_executions() if trial.status is Status.ERROR]
    if code == ReasonCode.MISSING_MUST_PASS_RESULT:
        must = find_must_pass_cases(run, run.policy.must_pass if run.policy else ())
        return [case for key, case in cases.items() if key in must]
    return () if code == ReasonCode.RUN_INCOMPLETE else list(cases.values())


def _narrow_owner(run: RunResult, owner: Owner) -> Owner:
    """Return the owner, or UNKNOWN if a failure or another error may come from the change."""
    if not owner.is_unrelated_to_change:
        return owner
    failed = run.summary.failed or select_counted_changes(run, CaseClass.REGRESSION, CaseClass.INCONCLUSIVE)
    errors = (case for _, case in run.iter_cases() if case.status is Status.ERROR)
    rows = (_find_cause_row(case.error_cause, case.error_kind) for case in errors)
    return Owner.UNKNOWN if failed or not all(row.owner.is_unrelated_to_change for row in rows) else owner


def _fill_in(run: RunResult, step: str, waive: str | None) -> str:
    """Fill in what a simulated user did otherwise, how to update the evals and how to waive the failures."""
    formats = {suite.eval_file: suite.format for suite in run.suites}
    regressions = select_counted_changes(run, CaseClass.REGRESSION)
    can_update = not run.is_external and any(formats.get(one.suite) in UPDATABLE_DIALECTS for one in regressions)
    cases = run.index_cases()
    users = [
        one
        for one in regressions
        if one.key in cases and describe_user_change(cases[one.key].details, one.baseline_result)
    ]
    compare = (
        f"compare first what the simulated user wrote in {format_count(len(users), 'case')}: it is not as in the "
        "baseline. If the agent is the cause, "
    )
    return step.format(
        user=compare if users else "",
        update=" with `eval-gate draft --update CASE`" if can_update else "",
        waive=f", or {waive}" if waive else "",
    )


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
        return NO_BASELINE_PAGE
    measured = run.comparison.setup_changes
    states = {
        SETUP_CHANGE_PAGE: has_no_comparable_case(run) or (measured is not None and measured.loosened_rules),
        REGRESSION_PAGE: select_counted_changes(run, CaseClass.REGRESSION),
        WAIVED_PAGE: run.waived_keys,
        INCONCLUSIVE_PAGE: select_counted_changes(run, CaseClass.INCONCLUSIVE, CaseClass.FLAKY),
        STALE_BASELINE_PAGE: baseline_is_stale,
        REUSE_PAGE: run.reused_suites,
    }
    return next((page for page, holds in states.items() if holds), None)


def _find_failure_link(run: RunResult, verdict: Verdict) -> DocLink | None:
    code = next((rule_code for rule_code in RuleCode if verdict.reasons and rule_code == verdict.reasons[0].code), None)
    if code is None:
        return None  # the code of a newer version
    if code is RuleCode.REGRESSIONS and has_only_agent_errors(run):
        return ALL_AGENT_ERRORS_PAGE
    return ADVICE_BY_REASON[code].page or DocLink(f"errors.md#{code}", f"What does {code} mean?")
