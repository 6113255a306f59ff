"""Everything a run needs, read and validated before the first request, and fingerprints of its executions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import structs

from eval_gate.config.rerun_budget import RerunBudget, parse_rerun_budget
from eval_gate.config.settings import RunLimits
from eval_gate.engine.judge_targets import Judges, is_rubric_case
from eval_gate.engine.preparation.measured_files import MeasuredFiles
from eval_gate.engine.preparation.program_files import ProgramFiles
from eval_gate.engine.rerun_policy import RerunPolicy
from eval_gate.model.base import JsonValue, as_fields
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite, PassRule, build_pass_rule
from eval_gate.model.conversation import ToolSpec
from eval_gate.model.policy import EvaluationSetup
from eval_gate.model.result import CaseFingerprints, CaseText, GitFacts, Shard, ShardPlan, SuiteResult
from eval_gate.model.reuse import EvaluatedState, ReuseSummary
from eval_gate.model.selection import CaseSelection
from eval_gate.model.setup import TargetIdentity
from eval_gate.process.environment import WithheldVariables
from eval_gate.results.run_setup import RunSetup
from eval_gate.staleness.staleness_checks import Staleness
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.targets.base import Target
from eval_gate.targets.model.recording import Recording
from eval_gate.targets.setup import compute_agent_setup, compute_setup_fingerprint
from eval_gate.text.escape import format_count
from eval_gate.text.redaction import Redactor
from eval_gate.text.tokens import TokenData

if TYPE_CHECKING:
    from eval_gate.engine.model_proxy import ModelProxy

SUITE_RERUNS: Final = 3
"""Times that the default budget can re-run the longest suite whose cases share files: four failures in a row decide
most cases."""

CheckBaselineFiles = Callable[[Mapping[str, int]], None]


class RunPlan(FrozenStruct):
    """One planned run. `suites` hold only the cases to execute; `staleness` is keyed by eval file."""

    run_id: str
    timestamp: str
    suites: tuple[EvalSuite, ...]
    target: Target
    limits: RunLimits
    tokens: TokenData
    concurrency: int | None = None
    """Cases in flight at once; None leaves it to each target."""
    staleness: Mapping[str, Staleness] = field(default_factory=dict)
    git: GitFacts | None = None
    shard: Shard | None = None
    shard_cut: ShardPlan | None = None
    """How all cases are divided into shards; None without shards."""
    selections: tuple[CaseSelection, ...] = ()
    """Selections of cases; empty if all are selected."""
    planned_cases: int | None = None
    """Runnable cases of the whole plan, in all shards and including those that were not selected."""
    warnings: tuple[str, ...] = ()
    targets: Mapping[tuple[str, str | None], Target] = field(default_factory=dict)
    """Targets other than `target`, by eval file and the name that a case gives."""
    judges: Judges = field(default_factory=Judges)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for commands of eval files."""
    withheld: WithheldVariables = field(default_factory=WithheldVariables)
    """Environment variables that these commands do not get."""
    redactor: Redactor = field(default_factory=Redactor)
    """Redacts every secret of the run."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools of the registry; empty if none is configured."""
    patterns: tuple[str, ...] = ()
    trace_url: str | None = None
    """Template of the links to traces; None for no links."""
    """Patterns whose matches are masked in everything that is stored."""
    case_texts: Mapping[CaseKey, CaseText] = field(default_factory=dict)
    """Prompt and expectation of every case, as the result has them."""
    recording: Recording | None = None
    model_proxy: ModelProxy | None = None
    """Proxy of the agent's model calls; None if they go nowhere that the run knows."""
    base_agent: Target | None = None
    """Base agent, which runs cases if the gate would fail; None without one."""
    rerun_policy: RerunPolicy | None = None
    """Decides which cases are re-run; None for no re-runs."""
    max_reruns: int = 0
    """Maximum re-runs of one case."""
    setup_fingerprints: Mapping[CaseKey, CaseFingerprints] = field(default_factory=dict)
    """Setup of every case: prompt, expectation, graders, seeds, snapshot, judge."""
    program_files: ProgramFiles | None = None
    """Files of the programs that grade or prepare, as they were when the run was planned; None for no such files."""
    agent_programs: Mapping[int, JsonValue] = field(default_factory=dict)
    """Digest of the files of a target's program, by the target's `id`."""
    evaluation_setup: EvaluationSetup | None = None
    """Evaluation setup of all cases: trials, re-runs, recordings, source of the snapshot."""
    evaluated_state: EvaluatedState | None = None
    """What the run evaluates; None if no suite has measures."""
    measured_files: MeasuredFiles | None = None
    """Files of the evaluated state, as they were when the run was planned; None without one."""
    reused: Mapping[str, SuiteResult] = field(default_factory=dict)
    """Results of the suites that are not executed, by eval file."""
    reuse: ReuseSummary | None = None
    """Which suites are reused, and why others are not; None if no suite has measures."""
    reused_agents: tuple[TargetIdentity, ...] = ()
    """Agents that the reused suites describe."""
    resumed_setup: RunSetup | None = None
    """Setup of the run before it was resumed; None for a new run."""
    keeps_artifacts: bool = False
    """Whether workspace artifacts of failing cases are stored next to the run result: the folders are removed."""
    rubrics_wait: bool = False
    """Rubric cases are run after the others, and only when these pass."""
    check_baseline_files: CheckBaselineFiles | None = None
    """Checks the eval files against a baseline that comes during the run. Raises GateError."""

    def is_deferred(self, case: EvalCase) -> bool:
        """Whether this case is run after the others."""
        return self.rubrics_wait and is_rubric_case(case)

    def count_trials(self, case: EvalCase) -> int:
        """Return how often the case is executed before any re-run: as its eval file says, else as the setting."""
        return case.trials or self.limits.trials

    def count_all_trials(self) -> int:
        """Count the executions of all cases before any re-run."""
        return sum(map(self.count_trials, self.list_runnable_cases()))

    def get_pass_rule(self, case: EvalCase) -> PassRule | None:
        """Return how many trials of the case have to pass; None for more than half."""
        one = self.limits if case.trials is None else case
        return build_pass_rule(one.trials, one.passes)

    def get_target(self, case: EvalCase) -> Target:
        """Return the target of a case."""
        return self.targets.get((case.suite, case.target), self.target)

    def list_targets(self) -> tuple[Target, ...]:
        """List all targets, each once, the one of the run first."""
        return tuple({id(target): target for target in (self.target, *self.targets.values())}.values())

    def get_concurrency(self, target: Target) -> int:
        """Return the number of concurrent cases: the setting, else that of the target, else 1.

        With a proxy of model calls, only the setting counts: calls that name no execution belong to the only open one.
        """
        return self.concurrency or (target.workers if self.model_proxy is None else None) or 1

    def with_rerun_policy(self, policy: RerunPolicy, max_reruns: int) -> RunPlan:
        """Return a copy of the plan with up to `max_reruns` re-runs of each case that `policy` selects."""
        return replace(self, rerun_policy=policy, max_reruns=max_reruns)

    def with_reused(self, results: Mapping[str, SuiteResult], summary: ReuseSummary) -> RunPlan:
        """Return a copy of the plan that has these results instead of executing their suites."""
        reused = [suite for suite in self.suites if suite.file in results]
        return replace(
            self,
            suites=tuple(suite for suite in self.suites if suite.file not in results),
            reused={suite.file: results[suite.file] for suite in reused},
            reuse=summary,
            reused_agents=tuple(iter_suite_agents(reused)),
        )

    def without_cases(self) -> RunPlan:
        """Return the plan without cases, so that these can be released."""
        return replace(self, suites=())

    async def aclose(self) -> None:
        """Close targets and judges."""
        for holder in (*self.list_targets(), *self.judges, *filter(None, (self.base_agent, self.model_proxy))):
            await holder.aclose()

    def list_base_agent_cases(self) -> frozenset[CaseKey]:
        """List the cases that the base agent, if there is one, can run each by itself."""
        base_agent = self.base_agent
        if base_agent is None:
            return frozenset()
        return frozenset(
            case.key
            for case in self.list_runnable_cases()
            if self.get_target(case) is self.target
            and not case.dependent
            and case.agent is None
            and (case.stubs is None or base_agent.takes_stubs)
            and (case.conversation is None or base_agent.conversation_problem is None)
        )

    def compute_rerun_budget(self) -> RerunBudget:
        """Compute the budget of all re-runs together, including the executions of the base agent."""
        if self.limits.rerun_budget is not None:
            return parse_rerun_budget(self.limits.rerun_budget)
        usual = RerunBudget.compute_default(self.count_all_trials(), base_agent=self.base_agent is not None)
        whole = Counter(case.suite for case in self.list_runnable_cases() if case.dependent)
        least = SUITE_RERUNS * max(whole.values(), default=0)
        return replace(usual, executions=max(usual.executions or 0, least))

    def list_runnable_cases(self) -> tuple[EvalCase, ...]:
        """List the cases that are not skipped, in the order of the files."""
        return tuple(case for suite in self.suites for case in suite.cases if case.skip_reason is None)


def iter_suite_agents(suites: Iterable[EvalSuite]) -> Iterator[TargetIdentity]:
    """Yield the identities of the agents that these suites describe."""
    for suite in suites:
        agent = suite.cases[0].agent if suite.cases else None
        if agent is not None:
            bare = TargetIdentity(name=suite.file, provider=suite.format, identity=agent.name[:200])
            yield compute_agent_setup(agent).apply_to(bare)


MAX_NAMED_SETTINGS: Final = 5


def describe_discarded_executions(executions: int, earlier: RunSetup | None, current: RunSetup) -> str:
    """Describe the finished executions that a resumed run discards, and the setup changes that cause it."""
    changes = list(earlier.iter_differences(current)) if earlier else []
    if earlier and earlier.commit != current.commit:
        changes.insert(0, f"commit {(earlier.commit or 'unknown')[:7]} → {(current.commit or 'unknown')[:7]}")
    rest = len(changes) - MAX_NAMED_SETTINGS
    what = "; ".join([*changes[:MAX_NAMED_SETTINGS], *([f"and {rest} more"] if rest > 0 else [])])
    since = what or "cases, graders, the agent, or their files"
    return f"repeating {format_count(executions, 'finished execution')}, because the setup changed: {since}"


class ExecutionFingerprints:
    """Fingerprints of a case's setup: prompt, evaluators, target, settings, commit, agent files.

    They include prompt, expectation, graders, judges and target of the case, the agent of its suite, the settings of
    the run, the commit, and the files that the agent's command names. Values of a live snapshot are not included,
    because they differ in every run.
    """

    def __init__(
        self,
        setup: EvaluationSetup | None,
        setup_fingerprints: Mapping[CaseKey, CaseFingerprints],
        commit: str | None = None,
        program_of: Callable[[EvalCase], JsonValue] = lambda _: None,
    ) -> None:
        """`program_of` returns the digest of the files of a case's target; None if the target is no program."""
        how = setup or EvaluationSetup()
        settings: list[JsonValue] = [as_fields(one) for one in how.settings]
        self._run = compute_setup_fingerprint([how.snapshot, how.snapshot_program, commit, *settings])
        self._left_out = set() if how.snapshot_is_file else {"snapshot"}
        self._fingerprints = setup_fingerprints
        self._program_of = program_of

    @classmethod
    def from_plan(cls, plan: RunPlan) -> ExecutionFingerprints:
        """Build the execution fingerprints of the cases of this plan."""
        targets = plan.without_cases()
        programs = plan.agent_programs
        commit = plan.git.sha if plan.git else None
        setup, fingerprints = plan.evaluation_setup, plan.setup_fingerprints
        return cls(setup, fingerprints, commit, lambda case: programs.get(id(targets.get_target(case))))

    def compute(self, case: EvalCase) -> str:
        """Compute the fingerprint of an execution of this case, as 16 hexadecimal digits."""
        fingerprints = self._fingerprints.get(case.key)
        items = structs.asdict(fingerprints).items() if fingerprints else ()
        parts: JsonValue = {name: value for name, value in items if value is not None and name not in self._left_out}
        parts = parts if fingerprints else None
        own_trials = [case.trials] if case.trials else []  # else a resumed run could not tell trials from re-runs
        return compute_setup_fingerprint([self._run, case.fingerprint, parts, self._program_of(case), *own_trials])
