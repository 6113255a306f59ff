"""Table of next steps: a row for each rule, reason, cause of an error and mistake in an eval file.

A row has the owner and the step; that of a rule also has its heading and its documentation page.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from eval_gate.model.case import MistakeKind
from eval_gate.model.comparison import ReasonCode, RuleCode
from eval_gate.model.execution import ErrorCause, ErrorKind
from eval_gate.struct import FrozenStruct


class Owner(StrEnum):
    """Owner of a problem: where the reader looks first."""

    CHANGE = "change"
    AGENT_START = "agent_start"
    """The agent does not start: the change, or the environment of the job."""
    TARGET = "target"
    """Configuration of the target."""
    EVALS = "evals"
    EVALUATION = "evaluation"
    """LLM judge, grader or simulated user."""
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


class DocLink(FrozenStruct):
    """Link to a documentation page: `target` is its file with the heading, `text` the link text."""

    target: str
    text: str


REGRESSION_PAGE: Final = DocLink("verdict.md#what-the-report-says", "When is a failure a regression?")
INCONCLUSIVE_PAGE: Final = DocLink("verdict.md#what-happens", "Why is this inconclusive?")
SETUP_CHANGE_PAGE: Final = DocLink("baselines.md#setup-changes", "What is a setup change?")
NO_BASELINE_PAGE: Final = DocLink("baselines.md#when-no-baseline-is-found", "Where does a baseline come from?")
STALE_BASELINE_PAGE: Final = DocLink("baselines.md#which-baseline-is-used", "Which baseline is used?")
WAIVED_PAGE: Final = DocLink("waivers.md#what-a-waiver-does", "What does a waiver do?")
REUSE_PAGE: Final = DocLink("reuse.md", "What is reused?")
ALL_AGENT_ERRORS_PAGE: Final = DocLink("errors.md#all-agent-errors", "What if every case has an agent error?")


class AdviceRow(NamedTuple):
    """Advice for one cause or one reason.

    `step` is half a sentence. With `may_pass`, the same run may end differently the next time.
    """

    owner: Owner
    step: str
    may_pass: bool = False
    before_hint: str | None = None
    """Words between the step and the hint of an error; None if the hint replaces the step."""
    heading: str | tuple[str, ...] = ()
    """Heading of a violated rule: a text with the value and the limit, or the words for one case and for several."""
    page: DocLink | None = None
    """Documentation page about the rule; None for its entry in the page of errors."""


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
    ErrorCause.HOOK_FAILED: AdviceRow(Owner.UNKNOWN, "correct the command or request, or what it needs", may_pass=True),
    ErrorCause.EVALUATOR_FAILED: AdviceRow(
        Owner.EVALUATION, "check the LLM judge and the graders, not this change", may_pass=True, before_hint=""
    ),
    ErrorCause.USER_FAILED: AdviceRow(
        Owner.EVALUATION, "check the model of the simulated user, not this change", may_pass=True
    ),
    ErrorCause.CALLS_UNKNOWN: AdviceRow(
        Owner.UNKNOWN,
        "check where the agent lists its tool calls (`toolCallsPath`, `agentProtocol`, its own log)",
    ),
    ErrorCause.DATA_MISSING: AdviceRow(
        Owner.UNKNOWN, "let the agent report the data that the error names, or remove the check"
    ),
    ErrorCause.MODEL_CALL_MISSING: AdviceRow(
        Owner.CHANGE,
        "record what the agent asks now: `eval-gate replay --on-miss live -- CMD`, then commit the recording",
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
"""Advice for errors of external results and older versions: only their kind is known."""
MIXED_ERRORS: Final = AdviceRow(Owner.UNKNOWN, "fix the most frequent error first", may_pass=True)
RECHECKED: Final = AdviceRow(
    Owner.UNKNOWN, "check the model, live data, and files that `measures` does not cover{waive}"
)
"""Advice on cases that got worse although nothing that their suites measure has changed."""
_COMPARE_RESPONSES: Final = AdviceRow(
    Owner.UNKNOWN, "run the failing cases with and without this change, and compare the responses", may_pass=True
)
ADVICE_BY_REASON: Final[Mapping[str, AdviceRow]] = {
    RuleCode.REGRESSIONS: AdviceRow(
        Owner.CHANGE,
        "{user}fix the change. If the agent should behave this way now, update the evals{update}{waive}",
        page=REGRESSION_PAGE,
    ),
    RuleCode.SUITE_DROP: AdviceRow(
        Owner.CHANGE,
        "re-run the job. If many cases fail at first again, this change makes the agent less reliable: find what these "
        "cases have in common{waive}",
        page=INCONCLUSIVE_PAGE,
    ),
    RuleCode.SUITE_SCORES: AdviceRow(
        Owner.CHANGE,
        "find what lowered the scores of many responses: no single case decides{waive}",
        heading="the scores of the whole suite fell",
    ),
    RuleCode.MUST_PASS: AdviceRow(
        Owner.CHANGE,
        "fix the must-pass cases that fail{waive}",
        heading=("must-pass case fails", "must-pass cases fail"),
    ),
    RuleCode.FAILURES: AdviceRow(
        Owner.CHANGE, "fix the failing cases or their evals: every case has to pass{waive}", heading=("failing case",)
    ),
    RuleCode.SCORE_DROP: AdviceRow(
        Owner.CHANGE, "review what lowered the scores{waive}", heading="score drop of {value} (limit {limit})"
    ),
    RuleCode.PASS_RATE: AdviceRow(Owner.CHANGE, "review the failing cases: more of them have to pass{waive}"),
    RuleCode.LATENCY: AdviceRow(
        Owner.CHANGE,
        "find what makes the responses slower, or raise max-latency-increase{waive}",
        heading="latency {value} (limit {limit})",
    ),
    RuleCode.COST: AdviceRow(
        Owner.CHANGE,
        "find what makes the responses more expensive, or raise max-cost-increase{waive}",
        heading="cost {value} (limit {limit})",
    ),
    RuleCode.TOKENS: AdviceRow(
        Owner.CHANGE,
        "find what makes the responses longer, or raise max-token-increase{waive}",
        heading="tokens {value} (limit {limit})",
    ),
    RuleCode.AGENT_ERRORS: AdviceRow(
        Owner.UNKNOWN,
        "fix the most frequent error: this change may cause it",
        may_pass=True,
        heading="agent errors in {value} first executions ({limit})",
    ),
    RuleCode.ERRORS: AdviceRow(Owner.UNKNOWN, "fix the errors, then re-run the job{waive}"),
    RuleCode.COVERAGE: AdviceRow(
        Owner.UNKNOWN,
        "fix what keeps cases without a score, then re-run the job{waive}",
        heading="only {value} of the cases have a score",
    ),
    RuleCode.FLAKY: AdviceRow(Owner.CHANGE, "fix or quarantine the flaky cases{waive}", heading=("flaky case",)),
    RuleCode.REMOVED_CASES: AdviceRow(
        Owner.CHANGE,
        "have the removal of these cases reviewed{waive}",
        heading=("removed case",),
        page=SETUP_CHANGE_PAGE,
    ),
    RuleCode.CHANGED_CASES: AdviceRow(
        Owner.CHANGE,
        "have the changes of these cases reviewed{waive}",
        heading=("changed case",),
        page=SETUP_CHANGE_PAGE,
    ),
    RuleCode.LOOSENED_RULES: AdviceRow(
        Owner.CHANGE, "have the loosened rules reviewed{waive}", heading=("loosened rule",), page=SETUP_CHANGE_PAGE
    ),
    RuleCode.NEW_FAILURES: AdviceRow(
        Owner.CHANGE,
        "make the new and changed cases pass before you merge them{waive}",
        heading=("new or changed case fails", "new or changed cases fail"),
    ),
    RuleCode.STALE: AdviceRow(Owner.EVALS, "generate the stale evals again from the current tools{waive}"),
    ReasonCode.ALL_AGENT_ERRORS: _LOOK_UP_ERROR,
    ReasonCode.NO_SCORED_CASES: AdviceRow(Owner.EVALS, "make at least one case run: each says why it was skipped"),
    ReasonCode.TOO_FEW_SCORED_CASES: MIXED_ERRORS,
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
"""Advice for every reason of a gate that failed or is inconclusive, and the headings and pages of rules."""
INCONCLUSIVE_RULES: Final[Mapping[str, AdviceRow]] = {
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
"""Advice for mistakes in eval files that decide the status of a case."""
NO_ADVICE: Final = frozenset(
    {
        *(ReasonCode.PASSED, ReasonCode.REPORT_ONLY, ReasonCode.NO_BASELINE, ReasonCode.NO_COMPARABLE_CASES),
        *(ReasonCode.BASELINE_NOT_REQUESTED, ReasonCode.NO_RUN_YET, ReasonCode.BRANCH_RENAMED),
        ReasonCode.NO_VERDICT,
    }
)
"""Codes of a gate that passed, of an absent baseline, and of a run without a verdict."""
OTHER_VERSION: Final = AdviceRow(
    Owner.UNKNOWN, "read the reason: this version of Eval Gate does not know it and has no advice"
)
"""Default for codes of other versions in stored results."""
OWNERS_OF_PROBLEMS: Final = {
    "base-branch-changed": Owner.GITHUB,
    "baseline-incomplete": Owner.WORKFLOW,
    "checkout-mismatch": Owner.WORKFLOW,
    "demo-agent-failed": Owner.EVAL_GATE,
    "github-unreachable": Owner.GITHUB,
    "internal-error": Owner.EVAL_GATE,
    "invalid-journal": Owner.WORKFLOW,
    "invalid-recording": Owner.UNKNOWN,
    "model-proxy-unreachable": Owner.WORKFLOW,
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
"""Owners of the problems that leave a step without a verdict, by code."""
