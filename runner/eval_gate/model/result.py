"""Run result as stored on disk (docs/results.md): first the fields of the contract, then our own."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from eval_gate.model import limits
from eval_gate.model.base import Record
from eval_gate.model.calibration import RunJudges
from eval_gate.model.case import CaseKey, EvalMistake, Location, PassRule, Tier
from eval_gate.model.comparison import Comparison, Outcome, Verdict
from eval_gate.model.evidence import PermittedRegression
from eval_gate.model.execution import NO_DETAILS, CaseDetails, ErrorCause, ErrorKind, EvaluatorResult, Status, Trial
from eval_gate.model.model_recording import ModelRecording
from eval_gate.model.policy import EvaluationSetup, RunPolicy
from eval_gate.model.reuse import EvaluatedState, ReusedResult, ReuseSource, ReuseSummary
from eval_gate.model.selection import CaseSelection
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.setup_change import SetupChange
from eval_gate.model.usage import Usage
from eval_gate.model.waiver import AppliedWaivers
from eval_gate.struct import replace

SCHEMA_VERSION = 1
NO_JUDGE: Final = "rubric dimensions need a judge, and none is configured (`judge`, --judge)"
"""Reason for skipping a case that only an LLM judge can score."""
WAITS_FOR_GATE: Final = "rubric cases run only if the other cases pass the gate (rubric: after-pass)"
"""Reason for skipping a case until other cases pass. It does not mean that the case lost its checks."""


class RerunStopReason(StrEnum):
    """Why a case had no further re-run."""

    DECIDED = "decided"
    """Another execution could not have changed the result."""
    NO_RESULT = "no_result"
    """All available re-runs ended without a score."""
    NOT_REPEATABLE = "not_repeatable"
    """Eval Gate cannot re-run the case, because another tool ran it."""
    GATE_FAILED = "gate_failed"
    """The gate had already failed because of other cases."""
    BUDGET_USED = "budget_used"
    """The re-run budget is used up."""
    RUN_STOPPED = "run_stopped"
    """The run ended early: its budget was used up, the target was unreachable, or it was interrupted."""


class TraceSummary(Record, kw_only=True):
    """Counts of a trace (AgentV)."""

    event_count: int
    tool_names: tuple[str, ...]
    tool_calls_by_name: dict[str, int]
    error_count: int


class FieldDigests(Record, kw_only=True, omit_defaults=True):
    """Digests of one field of the prompt in results of another tool, such as a variable."""

    name: Annotated[str, Meta(max_length=200)]
    value: str
    stable: str | None = None
    """Digest of the field without dates, times and random words; None if it has none that may be left out."""
    fixed: str | None = None
    """Digest of the field without words that have a digit; None if it has none that may be left out."""


class CaseFingerprints(Record, kw_only=True):
    """Fingerprints of one case's evaluation setup, one for each part. None: does not apply.

    All but `judge` and the time limit are the first 16 hex digits of a SHA-256. The setup that applies to all cases is
    in the run's `setup`.
    """

    prompt: str | None = None
    """Messages, attachments, stubs, and the initial files in `tmp/` of a suite's agent."""
    cases_before: str | None = None
    """Prompts and time limits, in order, of the cases before this one in a suite with its own agent."""
    expectation: str | None = None
    """Expectation as in the eval file."""
    grader: str | None = None
    """Judge prompts, grading commands and the content of the files that these can load."""
    judge_program: str | None = None
    """Commands of LLM judges that are programs, and the content of the files that these can load."""
    preparation: str | None = None
    """Hooks of the case's workspace, health check of its target, and the content of the files that these can load."""
    programs: tuple[str, ...] = ()
    """Keys of the grading programs, in the run's `setup.programs`."""
    preparing_programs: tuple[str, ...] = ()
    """Keys of the programs that prepare."""
    seeds: str | None = None
    """Values of the case's seed tokens."""
    snapshot: str | None = None
    """Values of the case's snapshot tokens. These are live values: a difference is not a setup change."""
    judge: str | None = None
    """The judge in plain text: name, model and address, without credentials."""
    judge_setup: str | None = None
    """Settings and programs of the judges."""
    user: str | None = None
    """The model that plays the simulated user, in plain text as `judge`; None without one."""
    user_setup: str | None = None
    """Settings of the model that plays the simulated user, and its prompt."""
    target: str | None = None
    """Settings for the target's requests and responses: the `fingerprint` of the target."""
    agent: str | None = None
    """Agent that the suite describes: its instructions, tools and turns."""
    timeout_ms: int | None = None
    """The case's own time limit, in milliseconds; None if it has none."""
    fields: tuple[FieldDigests, ...] | None = None
    """Digests of the fields of the prompt, by name; None for own evals."""


class CaseText(Record, kw_only=True):
    """Prompt and expectation of a case as text for people, truncated to a limit."""

    prompt: str = ""
    """Prompt of the agent. Multiple messages follow each other, each with its role: `user: …`."""
    expectation: tuple[str, ...] = ()
    """Expectation, one check for each line: `calls lookup_order`, `answer contains "Sunday"`."""
    truncated: bool = False
    """Prompt or expectation is longer than the stored text."""


class CaseResult(Record, kw_only=True):
    """Result of one case. With several trials, the details are from the decisive trial."""

    id: str
    description: str = ""
    passed: bool
    duration_ms: float = 0.0
    assertions_run: int = 0
    assertions_skipped: int = 0
    error: str | None = None
    details: CaseDetails = field(default_factory=lambda: NO_DETAILS)

    status: Status
    score: float = 0.0
    graded: bool = False
    """The score ranges from 0 to 1 and can have a threshold; otherwise it is only 0 or 1."""
    flaky: bool = False
    target: str | None = None
    """Name of the case's target, if it is not the target of the run."""
    difficulty: str | None = None
    tags: tuple[str, ...] = ()
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    trace_summary: TraceSummary | None = None
    conversation_id: str | None = None
    failed_turn: Annotated[int, Meta(ge=1)] | None = None
    """First turn that failed or had an error in the decisive execution of a conversation; None if none did."""
    trials: tuple[Trial, ...] = ()
    pass_rule: PassRule | None = None
    """How many of the trials have to pass; None for more than half of all executions with a score."""
    dependent: bool = False
    """The case depends on files of earlier cases in its suite, and is re-run only after them."""
    preparatory_executions: Annotated[int, Meta(ge=0)] = 0
    """Number of executions made only to re-run a later case of the suite. They count only in the case's durations and
    costs."""
    base_agent_trials: tuple[Trial, ...] = ()
    """Executions of the case with the base agent, run at the same time; empty if it was not run."""
    reruns: int = 0
    """Number of trials that are re-runs; they are the last ones."""
    new_case_executions: int = 0
    """Number of first executions that were made because the case has no history. They are not re-runs, because they do
    not depend on the first result."""
    rerun_stop_reason: RerunStopReason | None = None
    """Why the case had no further re-run; None if re-runs were off."""
    attempts: int = 0
    ran_first: bool = False
    """No execution with the target had ended before: the case opened a connection, so that its time says little."""
    usage: Usage | None = None
    cost_usd: float | None = None
    judge_usage: Usage | None = None
    judge_cost_usd: float | None = None
    location: Location | None = None
    mistakes: tuple[EvalMistake, ...] = ()
    """Mistakes in the eval file that decide how the case ends: the file needs a correction, not the agent."""
    text: CaseText | None = None
    """Prompt and expectation; None if unknown."""
    fingerprint: str | None = None
    fingerprints: CaseFingerprints | None = None
    """Fingerprints of the evaluation setup; None if unknown."""
    error_kind: ErrorKind | None = None
    """Cause of the error of a case without a score, for the execution that `error` describes."""
    error_cause: ErrorCause | None = None
    """What happened, for a case without a score; None if another tool wrote the result."""
    error_hint: str | None = None
    """What to do about the error, as half a sentence, if it says more than its cause."""
    http_status: int | None = None
    """HTTP status of the response, for a case without a score whose response has one."""
    warnings: tuple[str, ...] = ()

    def list_executions(self) -> tuple[Trial, ...]:
        """List trials and re-runs. In a result without single executions, the case itself is the only one."""
        if len(self.trials) > 1:
            return self.trials
        vetoes = [result for result in self.evaluator_results if result.vetoed and result.weight > 0]
        if self.trials:
            return (replace(self.trials[0], vetoed=True),) if vetoes else self.trials
        alone = Trial(
            status=self.status,
            score=self.score,
            duration_ms=self.duration_ms,
            error_kind=self.error_kind,
            error_cause=self.error_cause,
            error_hint=self.error_hint,
            http_status=self.http_status,
            vetoed=bool(vetoes),
        )
        return (alone,)


class ToolFacts(Record, kw_only=True):
    """Version, description and registry of the tool at the time of the run; None if unknown."""

    tool_version: str | None = None
    description_hash: str | None = None
    registry_size: int | None = None
    eval_file_hash: str | None = None


class StaleKind(StrEnum):
    """Why an eval file is stale compared with its tool."""

    DESCRIPTION = "description"
    """The description changed; values are hashes."""
    REGISTRY_SIZE = "registry_size"
    """The registry grew by more than half; values are counts."""
    VERSION = "version"
    """The major version changed."""
    MISSING = "missing"
    """The tool is not in the registry; values are None."""
    STATUS = "status"
    """The tool is deprecated or removed; `current` is that status."""


class StaleFact(Record, kw_only=True):
    """One staleness warning: the value in the eval file and the current value."""

    kind: StaleKind
    recorded: str | None = None
    current: str | None = None


class Summary(Record, kw_only=True):
    """Counts over cases. `totalDurationMs` is agent time, `wallMs` wall time; an unknown cost is null."""

    total_cases: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    not_run: int = 0
    flaky: int = 0
    skipped_assertions: int = 0
    total_duration_ms: float = 0.0
    wall_ms: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    estimated_cost_usd: float | None = None
    judge_cost_usd: float | None = None
    """Cost of the judges, not included in the cost of the target. None if unknown or without judges."""
    replayed: int = 0
    """Number of cases with a recorded response."""
    pass_rate: float | None = None
    """passed / (passed + failed); None if no case has a score."""

    @property
    def ran(self) -> int:
        """Cases that passed, failed or had an error."""
        return self.passed + self.failed + self.errored


class SuiteResult(Record, kw_only=True):
    """Result of one eval file: the contract's complete EvalSuiteResult."""

    run_id: str
    timestamp: str
    tier: Tier | None
    tool_name: str
    agent_endpoint: str | None = None
    metadata: ToolFacts = ToolFacts()
    staleness_warnings: tuple[str, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    summary: Summary = Summary()
    baseline_run_id: str | None = None
    regressions: tuple[str, ...] = ()
    new_passes: tuple[str, ...] = ()

    eval_file: str = ""
    format: str = "tool-forge"
    matrix_leg: str | None = None
    """Leg of a matrix that ran the suite, in results of another tool. None if no folder and no prefix names one."""
    stale: bool = False
    stale_facts: tuple[StaleFact, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    reused: ReusedResult | None = None
    """Origin of the result; None if this run executed the suite."""


class ToolIdentity(Record, kw_only=True):
    """Program that wrote the result."""

    name: str = "eval-gate"
    version: str


class BaseAgentSummary(Record, kw_only=True):
    """Base agent, run at the same time on the cases that would have failed the gate.

    Its executions are stored with each case (`CaseResult.base_agent_trials`).
    """

    target: TargetIdentity
    problem: str | None = None
    """Why the base agent did not run, or stopped, in one sentence; None otherwise."""
    cost_usd: float | None = None
    """Cost of the base agent including judges, in US dollars; None if unknown. Not included in any other sum."""


class WarmUp(Record, kw_only=True):
    """Warm-up rounds of a run of the branch: executions of all cases that only fill its history."""

    rounds: Annotated[int, Meta(ge=0)]
    history_runs: Annotated[int, Meta(ge=0)]
    """Runs of the history after them, with this run and its rounds."""
    executions: Annotated[int, Meta(ge=0)]
    cost_usd: float | None = None
    """Cost of the rounds with judges, in US dollars; None if unknown. Not included in any other sum."""
    problem: str | None = None
    """Why there are fewer rounds than the setting asks for, as half a sentence; None otherwise."""


class GitFacts(Record, kw_only=True):
    """Commit that was evaluated; None if unknown."""

    sha: Annotated[str, Meta(max_length=100)] | None = None
    ref: str | None = None
    repository: str | None = None
    workspace_sha: Annotated[str, Meta(max_length=100)] | None = None
    """Commit in the workspace: for a pull request its head or its test merge. None if it was not read."""
    run_id: int | None = None
    """Workflow run of the evaluation; None outside a workflow."""
    attempt: int | None = None
    """Attempt of the workflow run."""
    job: Annotated[str, Meta(max_length=200)] | None = None
    """Id of the job in its workflow file."""


LEG_PATTERN = r"^[0-9a-f]{8}(-[0-9a-f]{8}){2}$"


class ResultProducer(Record, kw_only=True):
    """Gate, workflow run and attempt that made a result. Unverified, like the rest of the result."""

    gate: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,200}$")]
    """Key of the gate: `comment-key`, or workflow file, job, configuration and artifact name (docs/action.md)."""
    run_id: int
    attempt: int = 1
    leg: Annotated[str, Meta(pattern=LEG_PATTERN)] | None = None
    """Digests of job, step and inputs, which identify the legs of a matrix; None if unknown."""


MAX_SHARDS: Final = 999_999  # what `--shard` takes


class Shard(Record, kw_only=True):
    """Shard `index` of `count`, counting from 1."""

    index: Annotated[int, Meta(ge=1, le=MAX_SHARDS)]
    count: Annotated[int, Meta(ge=1, le=MAX_SHARDS)]


class ShardPlan(Record, kw_only=True):
    """How cases are divided into shards. The shards of one plan together contain each case once."""

    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")]
    """Digest of the number of shards, and of all cases with their weights."""
    durations_from: Annotated[str, Meta(max_length=200)] | None = None
    """Id of the run whose durations are the weights; None if all cases weigh the same."""


class RunResult(Record, kw_only=True):
    """Run result, `run.json`. `complete` is false if cases are missing (interrupted, target unreachable)."""

    schema_version: Literal[1] = 1
    run_id: Annotated[str, Meta(max_length=200)]
    timestamp: Annotated[str, Meta(max_length=100)]
    complete: bool
    tool: ToolIdentity
    target: TargetIdentity
    targets: tuple[TargetIdentity, ...] = ()
    """All targets, if the run has more than one."""
    suite_agents: tuple[TargetIdentity, ...] = ()
    """Agents that suites describe, each named after its eval file."""
    git: GitFacts | None = None
    shard: Shard | None = None
    shard_plan: ShardPlan | None = None
    """How the cases are divided into shards; None without shards."""
    producer: ResultProducer | None = None
    """Gate of the workflow that stored the result; None on the command line."""
    partial: bool = False
    """Only selected cases were run: the run cannot be the baseline of all cases."""
    selections: tuple[CaseSelection, ...] = ()
    """Selections of a `partial` run, which contains the cases of any of them. Empty if unknown."""
    suites: tuple[SuiteResult, ...] = ()
    summary: Summary = Summary()
    warnings: tuple[str, ...] = ()
    stop_reason: str | None = None
    """Why the run ended before its last case, in one sentence; None if it did not."""
    stop_cause: ErrorCause | None = None
    """What happened, if a target that gave no response ended the run."""
    stop_hint: str | None = None
    """What to do about that, as half a sentence."""
    baseline_run_id: str | None = None
    planned_cases: Annotated[int, Meta(ge=0)] | None = None
    """Runnable cases of the whole plan, including those of other shards and those not selected."""
    reruns: Annotated[int, Meta(ge=0, le=100)] = 0
    """Maximum of re-runs for each case; with 0, the contract's plain rule decides about regressions."""
    rerun_wait: Annotated[int, Meta(ge=0)] = 0
    """Whole seconds that every re-run kept from the execution before it; 0 if none waited."""
    setup: EvaluationSetup | None = None
    """Evaluation setup of all cases; None in a result of another tool, and if merged shards have different ones."""
    evaluated_state: EvaluatedState | None = None
    """What was evaluated; None without measures, and in a result of another tool."""
    reuse: ReuseSummary | None = None
    """Which suites were reused, and why others were not; None if no suite has measures."""
    model_recording: ModelRecording | None = None
    """Recording of the agent's model calls; None if they do not go through a proxy."""
    base_agent: BaseAgentSummary | None = None
    """Base agent, if the run needed one; None otherwise."""
    warm_up: WarmUp | None = None
    """Warm-up rounds that this run made; None without any."""
    judges: RunJudges | None = None
    """Judges and their calibration; None without judges, or if it was not looked up. No effect on the verdict."""
    policy: RunPolicy | None = None
    """Policy of the verdict; None without a verdict."""
    comparison: Comparison | None = None
    varying_fields: dict[str, bool] | None = None
    """Fields of the prompts of another tool that differ from the baseline in every case that has them, by name; true if
    numbers differ, and not only dates, times and random words. None if no earlier run has such fields."""
    lost_baseline: SetupChange | None = None
    """Result of the same cases under an earlier name, if that is why there is no baseline; None otherwise."""
    waivers: AppliedWaivers | None = None
    """Waived and quarantined failures; None without any."""
    verdict: Verdict | None = None
    permitted_regressions: Annotated[tuple[PermittedRegression, ...], Meta(max_length=limits.CASES)] = ()
    """Regressions that this run or an earlier one of the branch was allowed to pass with, and that no run passes
    since."""

    def iter_cases(self) -> Iterator[tuple[CaseKey, CaseResult]]:
        """Every case with its key, in file order."""
        return ((CaseKey(suite.eval_file, case.id), case) for suite in self.suites for case in suite.cases)

    @property
    def has_passed(self) -> bool:
        """Whether its gate passed, by the verdict that is stored with it."""
        return self.verdict is not None and self.verdict.outcome is Outcome.PASSED

    def index_cases(self) -> Mapping[CaseKey, CaseResult]:
        """Return the case results by eval file and id."""
        return dict(self.iter_cases())

    @property
    def baseline_suites(self) -> frozenset[str]:
        """Eval files of the suites whose result is the baseline's own: these executions are in the history already."""
        return frozenset(
            suite.eval_file for suite in self.suites if suite.reused and suite.reused.source is ReuseSource.BASELINE
        )

    @property
    def reused_suites(self) -> frozenset[str]:
        """Eval files of the suites that another run executed: nothing can be re-run in them."""
        return frozenset(suite.eval_file for suite in self.suites if suite.reused)

    @property
    def without_reused(self) -> "RunResult":
        """This run without the suites whose result is the baseline's own; totals stay those of the whole run."""
        reused = self.baseline_suites
        suites = tuple(suite for suite in self.suites if suite.eval_file not in reused)
        return replace(self, suites=suites) if reused else self

    def replace_cases(self, changed: Mapping[CaseKey, CaseResult]) -> "RunResult":
        """Return the run result with these case results in place of its own."""
        if not changed:
            return self
        suites = tuple(
            replace(suite, cases=tuple([changed.get(CaseKey(suite.eval_file, one.id), one) for one in suite.cases]))
            for suite in self.suites
        )
        return replace(self, suites=suites)

    def __repr__(self) -> str:
        """Return a short text: one with all cases would take seconds, and Python asks for it in unexpected places."""
        return f"RunResult({self.run_id}, {self.summary.total_cases} cases)"

    @property
    def sha(self) -> str | None:
        """Commit that was evaluated; None if unknown."""
        return self.git.sha if self.git else None

    def covers(self, chosen: Sequence[CaseSelection]) -> bool:
        """Whether the run has all cases of these selections; without selections, all cases."""
        if not self.partial:
            return True
        return bool(chosen) and all(any(own.covers(one) for own in self.selections) for one in chosen)

    @property
    def eval_paths(self) -> tuple[str, ...] | None:
        """Eval paths whose cases were all selected: empty without a selection, None if individual cases were selected.

        Cases of other shards do not count as deselected.
        """
        if not self.partial:
            return ()
        paths = self.selections[0].paths if self.selections else ()
        return paths if paths and self.selections == (CaseSelection(paths=paths),) else None

    @property
    def is_external(self) -> bool:
        """Whether another tool ran the cases; suites and target then have its name."""
        return bool(self.suites) and all(suite.format == self.target.provider for suite in self.suites)

    @property
    def waived_keys(self) -> frozenset[CaseKey]:
        """The cases whose failure does not block."""
        return self.waivers.keys if self.waivers else frozenset()

    @property
    def quarantined_keys(self) -> frozenset[CaseKey]:
        """Quarantined cases, whatever their result."""
        return self.waivers.quarantined_keys if self.waivers else frozenset()
