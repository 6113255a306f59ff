"""Advice on a gate that did not pass: what happened, whose it is, and the next step.

Comment, check run, summary, page and console show what `find_advice` returns, and none of them adds a next step. The
advice of an error wins over that of its cause, and the cause of the errors over the reason of the verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from eval_gate.errors import ExitCode, GateError
from eval_gate.formats.dialect_names import UPDATABLE_DIALECTS
from eval_gate.gate.must_pass import find_must_pass_cases
from eval_gate.model.case import MistakeKind
from eval_gate.model.comparison import CaseClass, Outcome, ReasonCode, RuleCode, Verdict
from eval_gate.model.execution import ErrorCause, ErrorKind, Status, Trial
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.run_statistics import has_only_agent_errors, select_counted_changes
from eval_gate.reports.wording.verdict import INCONCLUSIVE, is_suite_drop_alone, list_unwaived_changes, to_sentence
from eval_gate.results.baseline import describe_branch_rerun

UNRELATED_TO_CHANGE: Final = "This says nothing about your change."


class Owner(StrEnum):
    """Whose it is: where the reader looks first."""

    CHANGE = "change"
    AGENT_START = "agent_start"
    """The start of the agent: the change, or the environment of the job."""
    TARGET = "target"
    """Configuration of the target."""
    EVALS = "evals"
    EVALUATION = "evaluation"
    """LLM judge or grader."""
    PROVIDER = "provider"
    """Provider of the model."""
    WORKFLOW = "workflow"
    """The workflow, or another tool in it."""
    GITHUB = "github"
    EVAL_GATE = "eval_gate"
    UNKNOWN = "unknown"
    """May be the change."""

    @property
    def is_unrelated_to_change(self) -> bool:
        """Whether the change cannot be the cause."""
        return self in {Owner.EVALUATION, Owner.PROVIDER, Owner.GITHUB, Owner.EVAL_GATE}


class Advice(NamedTuple):
    """What happened, whose it is and the next step, in sentences."""

    cause: ErrorCause | MistakeKind | str
    """The mistake in the eval files, or the cause of the errors, or else the code of the verdict's reason."""
    owner: Owner
    next_step: str
    is_refresh: bool = False
    """Whether the next step is the run that makes a new baseline, which a report may offer with its commands."""

    def is_about(self, case: CaseResult) -> bool:
        """Whether it holds for this case: one with a score, or an error that has the cause."""
        return case.status is not Status.ERROR or self.cause in {case.error_cause, str(case.error_kind)}


class AdviceRow(NamedTuple):
    """Advice for one cause or one reason.

    `step` is half a sentence. With `may_pass`, the same run may end differently the next time.
    """

    owner: Owner
    step: str
    may_pass: bool = False
    before_hint: str | None = None
    """Words between the step and the hint of an error; None if the hint replaces the step."""


_LOOK_UP_ERROR: Final = AdviceRow(Owner.UNKNOWN, "look up the error in the log of the agent", may_pass=True)
_CHECK_URL: Final = AdviceRow(Owner.TARGET, "check the scheme, the port and the path of the agent's URL")
ADVICE_BY_CAUSE: Final = {
    ErrorCause.NO_CONNECTION: AdviceRow(
        Owner.AGENT_START,
        "the agent did not start: see the log of the step that starts it",
        before_hint="if it did start: ",
    ),
    ErrorCause.AGENT_GONE: AdviceRow(
        Owner.AGENT_START, "look up in the log of the agent why it stopped accepting connections", may_pass=True
    ),
    ErrorCause.HOST_NOT_FOUND: AdviceRow(Owner.TARGET, "correct the host of the agent's URL"),
    ErrorCause.PROXY_REFUSED: AdviceRow(
        Owner.TARGET,
        "check the proxy's address and credentials in `HTTPS_PROXY` or `HTTP_PROXY`, or name the agent's host in "
        "`NO_PROXY`",
    ),
    ErrorCause.TLS_FAILED: _CHECK_URL,
    ErrorCause.CONNECTION_LOST: AdviceRow(
        Owner.UNKNOWN, "look up in the log of the agent why it closed the connection", may_pass=True
    ),
    ErrorCause.NOT_HTTP: AdviceRow(Owner.TARGET, "check whether the agent expects https:// at this port"),
    ErrorCause.ACCESS_REFUSED: AdviceRow(Owner.TARGET, "set the credentials that the agent requires"),
    ErrorCause.NOT_FOUND: _CHECK_URL,
    ErrorCause.WRONG_METHOD: AdviceRow(Owner.TARGET, "set the target's method"),
    ErrorCause.WRONG_REQUEST: AdviceRow(Owner.TARGET, "set the target's requestTemplate, headers or query"),
    ErrorCause.MODEL_NOT_FOUND: AdviceRow(Owner.TARGET, "correct the name of the model"),
    ErrorCause.REDIRECTED: _CHECK_URL,
    ErrorCause.RATE_LIMITED: AdviceRow(Owner.UNKNOWN, "lower requestsPerMinute or concurrency", may_pass=True),
    ErrorCause.QUOTA_USED: AdviceRow(Owner.PROVIDER, "renew the quota or credit of the account"),
    ErrorCause.WEB_PAGE: _CHECK_URL,
    ErrorCause.EMPTY_RESPONSE: _CHECK_URL,
    ErrorCause.WRONG_SHAPE: AdviceRow(Owner.TARGET, "describe the shape of the response in the target"),
    ErrorCause.TOO_LARGE: AdviceRow(Owner.TARGET, "find out why the response is so large"),
    ErrorCause.TIMED_OUT: AdviceRow(
        Owner.UNKNOWN, "look up in the log of the agent what it waited for", may_pass=True, before_hint=""
    ),
    ErrorCause.AGENT_FAILED: _LOOK_UP_ERROR,
    ErrorCause.PROGRAM_FAILED: AdviceRow(
        Owner.UNKNOWN, "read what the agent's program printed, which is part of each error", before_hint=""
    ),
    ErrorCause.PROGRAM_NOT_STARTED: AdviceRow(
        Owner.TARGET, "install the program of the target, or correct its path", before_hint=""
    ),
    ErrorCause.PROVIDER_FAILED: AdviceRow(Owner.PROVIDER, "see the status page of the model's provider", may_pass=True),
    ErrorCause.PROVIDER_UNREACHABLE: AdviceRow(
        Owner.TARGET, "check that the model's server runs, and its `baseUrl`", may_pass=True
    ),
    ErrorCause.NOT_SENT: AdviceRow(Owner.TARGET, "correct what the error names"),
    ErrorCause.EVALUATOR_FAILED: AdviceRow(
        Owner.EVALUATION, "check the LLM judge and the graders, not this change", may_pass=True, before_hint=""
    ),
    ErrorCause.CALLS_UNKNOWN: AdviceRow(
        Owner.UNKNOWN,
        "check where the agent lists its tool calls (`toolCallsPath`, `agentProtocol`, its own log)",
    ),
    ErrorCause.DATA_MISSING: AdviceRow(
        Owner.UNKNOWN, "let the agent report the data that the error names, or remove the check"
    ),
    ErrorCause.INTERNAL_ERROR: AdviceRow(
        Owner.EVAL_GATE, "report the error with the traceback that `--verbose` shows", may_pass=True
    ),
    ErrorCause.BUDGET_USED: AdviceRow(Owner.UNKNOWN, "raise `maxCostUsd`, or run fewer cases"),
    ErrorCause.INTERRUPTED: AdviceRow(Owner.UNKNOWN, "look up in its log what ended it", may_pass=True),
}
"""Advice for every cause of an execution error or of the end of a run."""
ADVICE_BY_KIND: Final = {
    ErrorKind.AGENT_ERROR: _LOOK_UP_ERROR,
    ErrorKind.AGENT_UNREACHABLE: AdviceRow(
        Owner.AGENT_START,
        "check that the agent starts with this change, then its machine and its model provider",
        may_pass=True,
    ),
    ErrorKind.EVALUATION_ERROR: AdviceRow(
        Owner.UNKNOWN, "look up in the log of the tool what kept it from evaluating these cases", may_pass=True
    ),
}
"""Advice for errors of other tools and older versions, of which only the kind is known."""
_MIXED_ERRORS: Final = AdviceRow(Owner.UNKNOWN, "fix the most frequent error first", may_pass=True)
_COMPARE_RESPONSES: Final = AdviceRow(
    Owner.UNKNOWN, "run the failing cases with and without this change, and compare the responses", may_pass=True
)
ADVICE_BY_REASON: Final[Mapping[str, AdviceRow]] = {
    RuleCode.REGRESSIONS: AdviceRow(
        Owner.CHANGE, "fix the change. If the agent should behave this way now, update the evals{update}{waive}"
    ),
    RuleCode.SUITE_DROP: AdviceRow(
        Owner.CHANGE,
        "re-run the job. If many cases fail at first again, this change makes the agent less reliable: find what these "
        "cases have in common{waive}",
    ),
    RuleCode.SUITE_SCORES: AdviceRow(
        Owner.CHANGE, "find what lowered the scores of many responses: no single case decides{waive}"
    ),
    RuleCode.MUST_PASS: AdviceRow(Owner.CHANGE, "fix the must-pass cases that fail{waive}"),
    RuleCode.FAILURES: AdviceRow(Owner.CHANGE, "fix the failing cases or their evals: every case has to pass{waive}"),
    RuleCode.SCORE_DROP: AdviceRow(Owner.CHANGE, "review what lowered the scores{waive}"),
    RuleCode.PASS_RATE: AdviceRow(Owner.CHANGE, "review the failing cases: more of them have to pass{waive}"),
    RuleCode.LATENCY: AdviceRow(
        Owner.CHANGE, "find what makes the responses slower, or raise max-latency-increase{waive}"
    ),
    RuleCode.COST: AdviceRow(
        Owner.CHANGE, "find what makes the responses more expensive, or raise max-cost-increase{waive}"
    ),
    RuleCode.TOKENS: AdviceRow(
        Owner.CHANGE, "find what makes the responses longer, or raise max-token-increase{waive}"
    ),
    RuleCode.AGENT_ERRORS: AdviceRow(
        Owner.UNKNOWN, "fix the most frequent error: this change may cause it", may_pass=True
    ),
    RuleCode.ERRORS: AdviceRow(Owner.UNKNOWN, "fix the errors, then re-run the job{waive}"),
    RuleCode.COVERAGE: AdviceRow(Owner.UNKNOWN, "fix what keeps cases without a score, then re-run the job{waive}"),
    RuleCode.FLAKY: AdviceRow(Owner.CHANGE, "fix or quarantine the flaky cases{waive}"),
    RuleCode.REMOVED_CASES: AdviceRow(Owner.CHANGE, "have the removal of these cases reviewed{waive}"),
    RuleCode.CHANGED_CASES: AdviceRow(Owner.CHANGE, "have the changes of these cases reviewed{waive}"),
    RuleCode.LOOSENED_RULES: AdviceRow(Owner.CHANGE, "have the loosened rules reviewed{waive}"),
    RuleCode.NEW_FAILURES: AdviceRow(Owner.CHANGE, "make the new and changed cases pass before you merge them{waive}"),
    RuleCode.STALE: AdviceRow(Owner.EVALS, "generate the stale evals again from the current tools{waive}"),
    ReasonCode.ALL_AGENT_ERRORS: _LOOK_UP_ERROR,
    ReasonCode.NO_SCORED_CASES: AdviceRow(Owner.EVALS, "make at least one case run: each says why it was skipped"),
    ReasonCode.TOO_FEW_SCORED_CASES: _MIXED_ERRORS,
    ReasonCode.RUN_INCOMPLETE: AdviceRow(Owner.UNKNOWN, "find out why cases did not run", may_pass=True),
    ReasonCode.UNCONFIRMED_REGRESSIONS: _COMPARE_RESPONSES,
    ReasonCode.MISSING_MUST_PASS_RESULT: AdviceRow(
        Owner.CHANGE, "run or restore the must-pass cases without a result, or correct `must-pass`"
    ),
    ReasonCode.MISSING_CASE_RESULT: AdviceRow(Owner.CHANGE, "run or restore the cases without a result"),
    ReasonCode.NOT_IN_BASELINE: AdviceRow(
        Owner.UNKNOWN, "compare with a complete run of this gate, or restore the names of the cases"
    ),
    ReasonCode.NOT_COMPARABLE: AdviceRow(
        Owner.UNKNOWN,
        "fix the failing cases. If a value is new in every run, leave it out of the prompt and variables. If this "
        "change edited the cases, waive the failures: after the merge they are compared again",
    ),
    ReasonCode.NO_PASSING_BASELINE: AdviceRow(
        Owner.UNKNOWN,
        "name a baseline by its run id, or make one: run without a baseline and with `--fail-on regressions`",
    ),
    ReasonCode.BASELINE_LOST: AdviceRow(Owner.CHANGE, "restore the name under which the results are stored"),
    ReasonCode.BASELINE_UNAVAILABLE: AdviceRow(
        Owner.GITHUB, "check GitHub and the permissions of the job, not this change", may_pass=True
    ),
    ReasonCode.BASELINE_BRANCH_NOT_FOUND: AdviceRow(
        Owner.WORKFLOW, "set `baseline-branch` to the branch whose runs make baselines"
    ),
    ReasonCode.BASELINE_ARTIFACT_NOT_FOUND: AdviceRow(
        Owner.WORKFLOW, "run the workflow on the default branch to make a baseline"
    ),
}
"""Advice for every reason of a gate that failed or is inconclusive."""
_INCONCLUSIVE_RULES: Final[Mapping[str, AdviceRow]] = {
    RuleCode.PASS_RATE: AdviceRow(Owner.CHANGE, "take cases out of quarantine: the others have no score"),
    RuleCode.LATENCY: AdviceRow(Owner.UNKNOWN, "find out why this run has no durations"),
    RuleCode.COST: AdviceRow(Owner.UNKNOWN, "find out why this run has no costs"),
    RuleCode.TOKENS: AdviceRow(Owner.UNKNOWN, "find out why this run has no token counts"),
}
"""Advice for rules that could not be applied for lack of data."""
ADVICE_BY_MISTAKE: Final = {
    MistakeKind.INVALID_PATTERN: AdviceRow(Owner.EVALS, "fix the invalid patterns in the eval files"),
    MistakeKind.UNKNOWN_EXPECTATIONS: AdviceRow(
        Owner.EVALS, "correct the unknown expectations in the eval files: nothing else checks these cases"
    ),
}
"""Advice for mistakes in eval files that decide how a case ends."""
NO_ADVICE: Final = frozenset(
    {
        *(ReasonCode.PASSED, ReasonCode.REPORT_ONLY, ReasonCode.NO_BASELINE, ReasonCode.NO_COMPARABLE_CASES),
        *(ReasonCode.BASELINE_NOT_REQUESTED, ReasonCode.NO_RUN_YET, ReasonCode.BRANCH_RENAMED),
        ReasonCode.NO_VERDICT,
    }
)
"""Codes of a gate that passed, of a baseline that is simply absent, and of a run that nobody has decided on."""
_OTHER_VERSION: Final = AdviceRow(
    Owner.UNKNOWN, "read the reason: this version of Eval Gate does not know it and has no advice"
)
"""The one default: a stored result may have the code of another version."""
_ERROR_REASONS: Final = frozenset(
    {
        *(ReasonCode.NO_SCORED_CASES, ReasonCode.TOO_FEW_SCORED_CASES, RuleCode.ERRORS, RuleCode.COVERAGE),
        RuleCode.AGENT_ERRORS,
        *(ReasonCode.RUN_INCOMPLETE, ReasonCode.UNCONFIRMED_REGRESSIONS, ReasonCode.MISSING_MUST_PASS_RESULT),
        RuleCode.REGRESSIONS,
    }
)
"""Reasons that errors of cases can explain."""
_FAILURE_REASONS: Final = frozenset({RuleCode.FAILURES, RuleCode.MUST_PASS, RuleCode.PASS_RATE, RuleCode.NEW_FAILURES})
"""Reasons that mistakes of failing cases can explain; a case whose eval changed is no regression."""
_RESULT_REASONS: Final = frozenset(
    {ReasonCode.NO_SCORED_CASES, ReasonCode.MISSING_CASE_RESULT, ReasonCode.MISSING_MUST_PASS_RESULT}
)
"""Reasons that mistakes of skipped cases can explain."""
OWNERS_OF_PROBLEMS: Final = {
    "base-branch-changed": Owner.GITHUB,
    "baseline-incomplete": Owner.WORKFLOW,
    "demo-agent-failed": Owner.EVAL_GATE,
    "github-unreachable": Owner.GITHUB,
    "internal-error": Owner.EVAL_GATE,
    "invalid-journal": Owner.WORKFLOW,
    "invalid-recording": Owner.UNKNOWN,
    "no-drafts": Owner.UNKNOWN,
    "output-not-writable": Owner.WORKFLOW,
    "registry-unreachable": Owner.UNKNOWN,
    "resource-exhausted": Owner.UNKNOWN,
    "result-not-found": Owner.WORKFLOW,
    "results-incomplete": Owner.UNKNOWN,
    "run-incomplete": Owner.WORKFLOW,
    "snapshot-failed": Owner.UNKNOWN,
    "superseded-by-newer-run": Owner.GITHUB,
    "unmatched-results": Owner.UNKNOWN,
    "untrusted-workflow-run": Owner.WORKFLOW,
}
"""Whose a problem is that left a step without a verdict, by its code."""


def find_advice(run: RunResult, verdict: Verdict, context: ReportContext, *, waive: str | None = None) -> Advice | None:
    """Find the advice on a gate that failed or is inconclusive; None if it passed or nobody has decided yet.

    `waive` says how to waive the failures; None if that is not possible.
    """
    code = _get_code(run, verdict)
    if verdict.outcome is Outcome.PASSED or code in NO_ADVICE:
        return None
    mistake = _find_common_mistake(run, code)
    if mistake is not None:
        return Advice(mistake, Owner.EVALS, to_sentence(ADVICE_BY_MISTAKE[mistake].step))
    found = _find_error_row(run, verdict, code)
    if found is None:
        row, hint = _find_reason_row(run, verdict, code), verdict.reasons[0].hint if verdict.reasons else None
        step = to_sentence(hint) if hint else _format_step(run, verdict, context, row, _fill_in(run, row.step, waive))
        return Advice(code, _narrow_owner(run, row.owner), step, _is_refresh(code, hint, context))
    cause, row, hint = found
    if hint and row.before_hint is not None:
        step = f"{row.step}. {to_sentence(row.before_hint + hint)}"
    else:
        step = hint or row.step
    if verdict.outcome is Outcome.FAILED and not hint and not _may_be_outage(run, row):
        step += ", and fix the change" if row.owner is Owner.UNKNOWN else ""
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
    again = "Re-run the failed job" if context.run_url else "Run it again"
    if row.may_pass and verdict.outcome is Outcome.INCONCLUSIVE:
        return to_sentence(f"{again}. If it ends the same way, {step}")
    if _may_be_outage(run, row):
        ended = "every case ends with an agent error again, this change is the cause"
        return to_sentence(f"{again} once. If {ended}: {step}")
    return to_sentence(step)


def _may_be_outage(run: RunResult, row: AdviceRow) -> bool:
    """Whether the errors may be over in the next run, because each case has one."""
    return row.may_pass and has_only_agent_errors(run)


def find_problem_owner(error: GateError) -> Owner:
    """Find whose a problem is that ended a step before it had a run."""
    if error.exit_code is ExitCode.USAGE:
        return Owner.CHANGE
    return OWNERS_OF_PROBLEMS.get(error.code, Owner.UNKNOWN)


def format_lead(advice: Advice | None, verdict: Verdict) -> str | None:
    """Return the bold text before the opening sentence of a verdict, or None if there is none."""
    if advice is None:
        return None
    if verdict.outcome is Outcome.FAILED:
        return "Gate failed:"
    return UNRELATED_TO_CHANGE if advice.owner.is_unrelated_to_change else INCONCLUSIVE


def _get_code(run: RunResult, verdict: Verdict) -> str:
    code = verdict.reasons[0].code if verdict.reasons else ReasonCode.RUN_INCOMPLETE
    return RuleCode.SUITE_DROP if code == RuleCode.REGRESSIONS and is_suite_drop_alone(run) else code


def _find_reason_row(run: RunResult, verdict: Verdict, code: str) -> AdviceRow:
    """Find the advice for a reason that no errors explain."""
    if code == ReasonCode.RUN_INCOMPLETE and run.is_external:
        what = "look up in the log of the tool why these cases did not run: this change may be the cause"
        return AdviceRow(Owner.UNKNOWN, what, may_pass=True)
    if code == ReasonCode.RUN_INCOMPLETE and run.partial and not run.selections:
        what = "find out why the workflow that ran the evals left cases out"
        return AdviceRow(Owner.WORKFLOW, what, may_pass=True)
    rows = dict(ADVICE_BY_REASON)
    if verdict.outcome is Outcome.INCONCLUSIVE:
        rows |= {**_INCONCLUSIVE_RULES, RuleCode.ERRORS: _MIXED_ERRORS, RuleCode.COVERAGE: _MIXED_ERRORS}
        if run.summary.errored:
            rows[ReasonCode.NO_SCORED_CASES] = _MIXED_ERRORS
    return rows.get(code, _OTHER_VERSION)


def _find_common_mistake(run: RunResult, code: str) -> MistakeKind | None:
    """Find the mistake of most failing cases, or of any skipped case if the reason is about cases without a result."""
    status = Status.FAILED if code in _FAILURE_REASONS else Status.SKIPPED if code in _RESULT_REASONS else None
    cases = [case for _, case in run.iter_cases() if case.status is status]
    found = Counter(kind for case in cases for kind in {one.kind for one in case.mistakes})
    if not found:
        return None
    kind, count = found.most_common(1)[0]
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
    return ADVICE_BY_CAUSE[cause] if cause else ADVICE_BY_KIND[kind] if kind else _MIXED_ERRORS


def _select_errors(run: RunResult, code: str) -> Sequence[CaseResult | Trial]:
    """Select the errors that can be why a verdict has this reason; none if something else is the reason too."""
    cases = {key: case for key, case in run.iter_cases() if case.status is Status.ERROR}
    if code == RuleCode.REGRESSIONS:
        found = select_counted_changes(run, CaseClass.REGRESSION)
        return [cases[one.key] for one in found] if all(one.key in cases for one in found) else ()
    if code == ReasonCode.UNCONFIRMED_REGRESSIONS:
        here = run.index_cases()
        still = [
            here[one.key] for one in list_unwaived_changes(run) if one.grounds and one.grounds.kind.is_inconclusive
        ]
        return [trial for case in still for trial in case.list_executions() if trial.status is Status.ERROR]
    if code == ReasonCode.MISSING_MUST_PASS_RESULT:
        must = find_must_pass_cases(run, run.policy.must_pass if run.policy else ())
        return [case for key, case in cases.items() if key in must]
    return () if code == ReasonCode.RUN_INCOMPLETE else list(cases.values())


def _narrow_owner(run: RunResult, owner: Owner) -> Owner:
    """Return the owner, or UNKNOWN if anything else, such as an unknown error, may be the change's."""
    if not owner.is_unrelated_to_change:
        return owner
    failed = run.summary.failed or select_counted_changes(run, CaseClass.REGRESSION, CaseClass.INCONCLUSIVE)
    errors = (case for _, case in run.iter_cases() if case.status is Status.ERROR)
    rows = (_find_cause_row(case.error_cause, case.error_kind) for case in errors)
    return Owner.UNKNOWN if failed or not all(row.owner.is_unrelated_to_change for row in rows) else owner


def _fill_in(run: RunResult, step: str, waive: str | None) -> str:
    """Fill in how to update the evals and how to waive the failures."""
    formats = {suite.eval_file: suite.format for suite in run.suites}
    regressions = select_counted_changes(run, CaseClass.REGRESSION)
    can_update = not run.is_external and any(formats.get(one.suite) in UPDATABLE_DIALECTS for one in regressions)
    return step.format(
        update=" with `eval-gate draft --update CASE`" if can_update else "",
        waive=f", or {waive}" if waive else "",
    )
