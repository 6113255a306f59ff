"""The result of a run, as it is written to disk (docs/results.md). The contract's fields first, then ours."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from eval_gate.model.base import Record
from eval_gate.model.calibration import RunJudges
from eval_gate.model.case import CaseKey, Location, Tier
from eval_gate.model.comparison import Comparison, Verdict
from eval_gate.model.execution import NO_DETAILS, CaseDetails, ErrorKind, EvaluatorResult, Status, Trial
from eval_gate.model.policy import EvaluationSetup, RunPolicy
from eval_gate.model.selection import CaseSelection
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.usage import Usage
from eval_gate.model.waiver import AppliedWaivers
from eval_gate.struct import replace

SCHEMA_VERSION = 1
WAITS_FOR_GATE: Final = "rubric cases are run unless others fail the gate (rubric: after-pass)"
"""Why a case was skipped that waited for others: what it says of itself is not that it is checked no more."""


class RerunStopReason(StrEnum):
    """Why a case in doubt was not run once more."""

    DECIDED = "decided"
    """One more execution could not have changed what is known."""
    NO_RESULT = "no_result"
    """Re-runs said nothing about the target until none were left."""
    NOT_REPEATABLE = "impossible"
    """Nobody here can run it again: its result was brought."""
    GATE_FAILED = "gate_failed"
    """The gate was red for certain, and its cause was named by others."""
    BUDGET_USED = "budget_used"
    """The budget for re-runs was spent."""
    RUN_STOPPED = "run_stopped"
    """The run ended before: its budget was used up, the target was gone, or it was interrupted."""


class TraceSummary(Record, kw_only=True):
    """The trace in four numbers (AgentV)."""

    event_count: int
    tool_names: tuple[str, ...]
    tool_calls_by_name: dict[str, int]
    error_count: int


class CaseFingerprints(Record, kw_only=True):
    """What one case was measured with, part by part. None is "does not apply".

    All but `judge` and the time limit are the first 16 hex digits of a SHA-256. What holds for all cases is in the
    run's `setup`.
    """

    prompt: str | None = None
    """What was asked: messages, attachments, stubs, and the files in `tmp/` that the agent of a suite begins with."""
    cases_before: str | None = None
    """The cases before it in a suite that brings its agent: their prompts and time limits, in order."""
    expectation: str | None = None
    """What the answer is held against, as the eval file has it."""
    grader: str | None = None
    """Scripts and prompts that grade, by content."""
    seeds: str | None = None
    """The values that the case's seed tokens stood for."""
    snapshot: str | None = None
    """The values that its snapshot tokens stood for. They are current values: others are no other yardstick."""
    judge: str | None = None
    """Who graded, in plain text: name, model and address, without credentials."""
    judge_setup: str | None = None
    """The settings and programs of those who graded."""
    target: str | None = None
    """The settings by which the target was asked and its response read: the target's `fingerprint`."""
    agent: str | None = None
    """The agent that the suite itself describes: its instructions, tools and turns."""
    timeout_ms: int | None = None
    """The case's own time limit, in milliseconds; None where it has none."""


class CaseText(Record, kw_only=True):
    """What a case asks and expects, in words for people, each cut to a bounded length."""

    prompt: str = ""
    """What the agent is told. Several messages stand below each other, each behind its role: `user: …`."""
    expectation: tuple[str, ...] = ()
    """What a good answer is, a check a line: `calls lookup_order`, `answer contains "Sunday"`."""
    truncated: bool = False
    """More is asked or expected than stands here."""


class CaseResult(Record, kw_only=True):
    """One case. With several trials the details are those of the trial that decided."""

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
    """The score is a grade from 0 to 1, and a threshold makes sense; else it is a yes or no."""
    flaky: bool = False
    target: str | None = None
    """The name of the target that was asked, where it is not the run's own."""
    difficulty: str | None = None
    tags: tuple[str, ...] = ()
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    trace_summary: TraceSummary | None = None
    conversation_id: str | None = None
    trials: tuple[Trial, ...] = ()
    dependent: bool = False
    """It works on what earlier cases of its suite left behind: it is run again only with these before it."""
    preparatory_executions: Annotated[int, Meta(ge=0)] = 0
    """How often it was executed only so that a later case of its suite could be run again. Durations and costs of the
    case hold these executions, and nothing else does."""
    base_agent_trials: tuple[Trial, ...] = ()
    """What the base branch's agent did when it was asked the same in the same minutes; empty where it was not."""
    reruns: int = 0
    """How many of the trials, the last ones, were made because the first ones left a doubt."""
    new_case_executions: int = 0
    """How many of its first executions were made because no earlier run knows the case. They are no re-runs: whatever
    came of the first one, these were made."""
    rerun_stop_reason: RerunStopReason | None = None
    """Why there was no further re-run; None where nobody had asked for one."""
    attempts: int = 0
    usage: Usage | None = None
    cost_usd: float | None = None
    judge_usage: Usage | None = None
    judge_cost_usd: float | None = None
    location: Location | None = None
    text: CaseText | None = None
    """Question and expectation; None where an older version did not say."""
    fingerprint: str | None = None
    fingerprints: CaseFingerprints | None = None
    """What it was measured with; None where an older version did not say."""
    error_kind: ErrorKind | None = None
    """Of a case that could not be judged: of the execution that `error` is about."""
    warnings: tuple[str, ...] = ()

    def list_executions(self) -> tuple[Trial, ...]:
        """Trials and re-runs. Of a record that does not tell executions apart the case itself is the only one."""
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
            vetoed=bool(vetoes),
        )
        return (alone,)


class ToolFacts(Record, kw_only=True):
    """The tool and its registry at the time of the run; None where unknown."""

    tool_version: str | None = None
    description_hash: str | None = None
    registry_size: int | None = None
    eval_file_hash: str | None = None


class StaleKind(StrEnum):
    """In which way an eval file is older than the tool it speaks about."""

    DESCRIPTION = "description"
    """The description is another one; the values are hashes."""
    REGISTRY_SIZE = "registrySize"
    """The registry has grown by more than half; the values are counts."""
    VERSION = "version"
    """The major version is another one."""
    MISSING = "missing"
    """The tool is not in the registry; there are no values."""
    STATUS = "status"
    """The tool is deprecated or removed; `current` is that word."""


class StaleFact(Record, kw_only=True):
    """One staleness warning as data: what the eval file records, and what is true now."""

    kind: StaleKind
    recorded: str | None = None
    current: str | None = None


class Summary(Record, kw_only=True):
    """Counts over cases. `totalDurationMs` is the sum of the cases, `wallMs` the clock; unknown cost is null."""

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
    """What the judges cost, apart from the target; None when unknown or none was asked."""
    replayed: int = 0
    """Cases that were answered from a recording."""
    pass_rate: float | None = None
    """passed / (passed + failed); None when nothing was judged."""


class SuiteResult(Record, kw_only=True):
    """The contract's EvalSuiteResult, complete, one per eval file."""

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
    stale: bool = False
    stale_facts: tuple[StaleFact, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class ToolIdentity(Record, kw_only=True):
    """Which program made the result."""

    name: str = "eval-gate"
    version: str


class BaseAgentSummary(Record, kw_only=True):
    """The base branch's agent, asked in the same minutes about what would have failed the gate.

    What it did stands with each case (`CaseResult.control`).
    """

    target: TargetIdentity
    problem: str | None = None
    """Why it was not asked, or not any further, in one sentence; None where nothing was in the way."""
    cost_usd: float | None = None
    """What asking it cost, judges included, in US dollars; None when unknown. It is in no other sum."""


class GitFacts(Record, kw_only=True):
    """The commit that was evaluated; None where unknown."""

    sha: Annotated[str, Meta(max_length=100)] | None = None
    ref: str | None = None
    repository: str | None = None
    workspace_sha: Annotated[str, Meta(max_length=100)] | None = None
    """The commit in the workspace: of a pull request its head, or a test merge of it. None where nobody read it, or an
    older version made the result."""
    run_id: int | None = None
    """The workflow run in which it was evaluated; None outside of one, or where an older version made the result."""
    attempt: int | None = None
    """The attempt of that run."""
    job: Annotated[str, Meta(max_length=200)] | None = None
    """The id of the job in its workflow file."""


LEG_PATTERN = r"^[0-9a-f]{8}(-[0-9a-f]{8}){2}$"


class ResultProducer(Record, kw_only=True):
    """Which gate of which attempt of which workflow run made a result. A claim like the rest of the record."""

    gate: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,200}$")]
    """The gate's key: `comment-key`, or workflow file, job, configuration and artifact name (docs/action.md)."""
    run_id: int
    attempt: int = 1
    leg: Annotated[str, Meta(pattern=LEG_PATTERN)] | None = None
    """Digests of job, step and inputs, which tell legs of a matrix apart; None where it is not known."""


MAX_SHARDS: Final = 999_999  # what `--shard` takes


class Shard(Record, kw_only=True):
    """Part `index` of `count`, counting from 1."""

    index: Annotated[int, Meta(ge=1, le=MAX_SHARDS)]
    count: Annotated[int, Meta(ge=1, le=MAX_SHARDS)]


class ShardPlan(Record, kw_only=True):
    """How cases were cut into shards. Shards of one cut hold each case once, and together all of them."""

    digest: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")]
    """Of the number of shards, and of all cases with what they weigh."""
    durations_from: Annotated[str, Meta(max_length=200)] | None = None
    """Id of the run whose durations they weigh; None where all weigh alike."""


class RunResult(Record, kw_only=True):
    """The run record, `run.json`. `complete` is false while cases are missing (interrupted, target gone)."""

    schema_version: Literal[1] = 1
    run_id: Annotated[str, Meta(max_length=200)]
    timestamp: Annotated[str, Meta(max_length=100)]
    complete: bool
    tool: ToolIdentity
    target: TargetIdentity
    targets: tuple[TargetIdentity, ...] = ()
    """All that were asked, where it was more than one."""
    suite_agents: tuple[TargetIdentity, ...] = ()
    """The agents that suites bring along, each by the name of its eval file."""
    git: GitFacts | None = None
    shard: Shard | None = None
    shard_plan: ShardPlan | None = None
    """How the cases were cut into shards; None where they were not, or by an older version."""
    producer: ResultProducer | None = None
    """The gate of a workflow that stored it; None on the command line."""
    partial: bool = False
    """Only chosen cases were run: it says nothing about the others, and is no baseline for all."""
    selections: tuple[CaseSelection, ...] = ()
    """Which cases were chosen, where the run is `partial`: those that any of these takes. Empty where nobody says."""
    suites: tuple[SuiteResult, ...] = ()
    summary: Summary = Summary()
    warnings: tuple[str, ...] = ()
    stop_reason: str | None = None
    """Why the run ended before its last case, in one sentence; None when it did not."""
    baseline_run_id: str | None = None
    planned_cases: Annotated[int, Meta(ge=0)] | None = None
    """Cases that could be run of the whole plan, those of other shards and those that were not chosen among them."""
    reruns: Annotated[int, Meta(ge=0, le=100)] = 0
    """How often a doubtful case was run again at most; 0 leaves regressions to the contract's plain rule."""
    setup: EvaluationSetup | None = None
    """How all cases were measured; None where an older version did not say."""
    base_agent: BaseAgentSummary | None = None
    """The base branch's agent, where it was to be asked; None where nobody needed it."""
    judges: RunJudges | None = None
    """Who graded, and how well they are known; None where no judge did, or nobody looked. It turns no verdict."""
    policy: RunPolicy | None = None
    """The rules that it was judged by; None where it was not judged, or by an older version."""
    comparison: Comparison | None = None
    waivers: AppliedWaivers | None = None
    """Failures that somebody accepted or set aside; None where nobody did."""
    verdict: Verdict | None = None

    def iter_cases(self) -> Iterator[tuple[CaseKey, CaseResult]]:
        """Every case with its key, in file order."""
        return ((CaseKey(suite.eval_file, case.id), case) for suite in self.suites for case in suite.cases)

    def index_cases(self) -> Mapping[CaseKey, CaseResult]:
        """Return the case results by eval file and id."""
        return dict(self.iter_cases())

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
        """Short: with all of its cases it would take seconds, and Python asks for it in places nobody thinks of."""
        return f"RunResult({self.run_id}, {self.summary.total_cases} cases)"

    @property
    def sha(self) -> str | None:
        """The commit that was evaluated; None where unknown."""
        return self.git.sha if self.git else None

    def covers(self, chosen: Sequence[CaseSelection]) -> bool:
        """Whether no case was left out by choice that a run of these choices takes; without any, of all."""
        if not self.partial:
            return True
        return bool(chosen) and all(any(own.covers(one) for own in self.selections) for one in chosen)

    @property
    def eval_paths(self) -> tuple[str, ...] | None:
        """The eval paths of which all cases were chosen: none where nothing was chosen; None where cases were.

        What another shard has is not left out by choice.
        """
        if not self.partial:
            return ()
        paths = self.selections[0].paths if self.selections else ()
        return paths if paths and self.selections == (CaseSelection(paths=paths),) else None

    @property
    def is_external(self) -> bool:
        """Whether another tool ran the cases, and we only judged: of such a run suites and target have its name."""
        return bool(self.suites) and all(suite.format == self.target.provider for suite in self.suites)

    @property
    def waived_keys(self) -> frozenset[CaseKey]:
        """The cases whose failure does not block."""
        return self.waivers.keys if self.waivers else frozenset()

    @property
    def quarantined_keys(self) -> frozenset[CaseKey]:
        """The cases that are set aside, whatever their result."""
        return self.waivers.quarantined_keys if self.waivers else frozenset()
