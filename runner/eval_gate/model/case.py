"""Cases and suites, independent of their eval format."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias, get_args

from pydantic import SerializeAsAny

from eval_gate.model.agent import SuiteAgent
from eval_gate.model.base import Frozen, JsonValue, Record, field
from eval_gate.model.conversation import Message
from eval_gate.model.specs.agent_evals import ABOUT_FILES
from eval_gate.model.specs.evaluator import EvaluatorSpec


class Tier(StrEnum):
    """Purpose of a suite (tool-forge contract)."""

    GOLDEN = "golden"
    LABELED = "labeled"
    REGRESSION = "regression"
    RUBRIC = "rubric"
    PERTURBATION = "perturbation"


class Aggregation(StrEnum):
    """How the results of a case's evaluators are combined into one result and score."""

    FIRST_FAILURE = "first_failure"
    """Evaluators run in order and stop at the first failure; the score is 1 or 0 (tool-forge)."""
    WEIGHTED_MEAN = "weighted_mean"
    """All evaluators run; the score is their weighted mean, and only 1 passes (AgentV, "Per-evaluator weights in
    top-level aggregation")."""
    ALL = "all"
    """All evaluators run. The case passes if all pass, or if it has none; the score is the share that passes."""


class AttemptStrategy(StrEnum):
    """How the scores of several attempts become the score of one execution (AgentV 4, `execution.trials`)."""

    PASS_AT_K = "pass_at_k"  # noqa: S105 (a name of AgentV)
    """The best score. No further attempt follows one that AgentV counts as passed."""
    MEAN = "mean"
    CONFIDENCE_INTERVAL = "confidence_interval"
    """Lower end of the 95 % confidence interval of the mean."""


class AttemptRule(Frozen, kw_only=True):
    """Number of attempts that make up one execution of a case, and how their scores are combined."""

    count: int
    strategy: AttemptStrategy = AttemptStrategy.PASS_AT_K
    max_cost_usd: float | None = None
    """Cost of the attempts, as the target reports it, after which no further one follows."""


class PassRule(Record, kw_only=True):
    """Number of a case's first executions with a score that decide it, and how many of them have to pass."""

    trials: int
    passes: int

    def __str__(self) -> str:
        return f"{self.passes} of {self.trials}"


def describe_impossible_passes(passes: int | None, trials: int | None) -> str | None:
    """Describe what a number of passes needs; None if it has that."""
    least = max(passes or 0, 2)
    return f"needs `trials` of at least {least}" if passes is not None and (trials or 1) < least else None


def build_pass_rule(trials: int | None, passes: int | None) -> PassRule | None:
    """Build the rule; None if more than half of the executions have to pass."""
    return PassRule(trials=trials, passes=passes) if trials and passes else None


def decide_pass(rule: PassRule | None, passed: Sequence[bool]) -> bool | None:
    """Decide whether a case passes whose executions with a score passed or not, in order; None if others could decide.

    Without a rule, more than half of them have to pass.
    """
    if rule is None:
        return sum(passed) * 2 > len(passed) if passed else None
    passes = sum(passed[: rule.trials])
    failures = len(passed[: rule.trials]) - passes
    return True if passes >= rule.passes else False if failures > rule.trials - rule.passes else None


class CaseKey(NamedTuple):
    """Identifies a case of a run by its eval file and id, both as the author wrote them."""

    suite: str
    case_id: str


class CaseName(Record, kw_only=True):
    """Identifies a case by its eval file and id."""

    suite: str
    case_id: str

    @property
    def key(self) -> CaseKey:
        """The name as a key for lookups."""
        return CaseKey(self.suite, self.case_id)


class Location(Frozen, kw_only=True):
    """Position in a file. `file` is a POSIX path as the user gave it; `line` counts from 1."""

    file: str
    line: int


class MistakeKind(StrEnum):
    """What the author of a case did wrong in its eval file, so that the file needs a correction and not the agent."""

    INVALID_PATTERN = "invalid_pattern"
    """A pattern cannot be compiled: its assertion fails with every response."""
    UNKNOWN_EXPECTATIONS = "unknown_expectations"
    """All keys that say what is expected are unknown: the case is skipped, because it would always pass."""


class EvalMistake(Record, kw_only=True):
    """Mistake in the eval file of a case. `field` is a path such as `cases[2].expect.responseMatches[0]`."""

    kind: MistakeKind
    message: str
    location: Location
    field: str | None = None


class CaseBrief(Frozen, kw_only=True):
    """Parts of a case in addition to its messages, for graders and for targets that take a prompt and files.

    The parts of an AgentV case (agentv behaviour 1.4). File paths are absolute, and the files were readable when the
    case was loaded. `question` includes the text of attached files; `linked_question` only names them, for agents that
    read files themselves. Neither includes guidelines. `reference_answer` is None if the case has none. The messages
    have the structure of the eval file, for graders that receive them as JSON.
    """

    question: str
    linked_question: str
    expected_outcome: str = ""
    reference_answer: str | None = None
    input_messages: JsonValue = None
    expected_messages: JsonValue = None
    guidelines: str = ""
    guideline_files: tuple[str, ...] = ()
    input_files: tuple[str, ...] = ()
    metadata: JsonValue = None
    """The case's own data for graders (current AgentV)."""


HookName: TypeAlias = Literal["before_all", "before_each", "after_each", "after_all"]


class WorkspaceHook(Frozen, kw_only=True):
    """Program or request that prepares a workspace or an agent, or looks after it. `cwd` is absolute."""

    command: tuple[str, ...]
    cwd: str
    timeout_ms: float | None = None
    place: str | None = None
    """Place in the eval file, for messages; None if the hook has a name of its own."""
    request: str = ""
    """Method and URL, instead of a command. A path alone is one at the target's host, and gets its headers too."""
    headers: dict[str, str] = field(default_factory=dict)
    body: JsonValue = None

    @property
    def is_for_target(self) -> bool:
        """Whether it is a request with a path alone."""
        return " /" in self.request


class WorkspaceHooks(Frozen, kw_only=True):
    """Hooks that run before and after the cases of a workspace or suite, and before and after each of them.

    In a workspace that is not shared, `before_all` also runs for each case, and `after_all` never does.
    """

    before_all: tuple[WorkspaceHook, ...] = ()
    before_each: tuple[WorkspaceHook, ...] = ()
    after_each: tuple[WorkspaceHook, ...] = ()
    after_all: tuple[WorkspaceHook, ...] = ()

    def list_hooks(self) -> tuple[tuple[HookName, WorkspaceHook], ...]:
        """List the hooks that there are, with their names."""
        return tuple((name, hook) for name in get_args(HookName) for hook in getattr(self, name))


class CaseTurn(Frozen, kw_only=True):
    """One message of the user in a conversation, and what is expected of the response to it."""

    message: str
    evaluators: tuple[SerializeAsAny[EvaluatorSpec], ...] = ()
    """What is checked in this response and its calls; empty if the message is only sent."""
    expected_messages: JsonValue = None
    """Response that the eval file expects, for the graders of this turn (AgentV)."""


class SimulatedUser(Frozen, kw_only=True):
    """User whom a model plays: it writes the messages of a conversation until its goal is reached or given up."""

    goal: str
    persona: str = ""
    facts: tuple[str, ...] = ()
    """All that the user knows. It answers questions of the agent from these alone."""
    max_messages: int = 10
    first_message: str | None = None
    """The user's first message; None if the model writes it, too."""


class TurnAggregation(StrEnum):
    """How the scores of turns, and of the whole conversation, become the score of a case."""

    FIRST_FAILURE = "first_failure"
    """Turns in order, then the whole, up to the first failure; the score is 1 or 0 (tool-forge)."""
    MEAN = "mean"
    """Mean of the turns and the whole, which weighs as much as one turn (AgentV; so do the next two)."""
    MIN = "min"
    MAX = "max"


class ConversationSpec(Frozen, kw_only=True):
    """Turns of a case, written by its author or by a simulated user; `evaluators` of the case are about the whole."""

    turns: tuple[CaseTurn, ...] = ()
    """Scripted turns; empty if a simulated user writes the messages."""
    user: SimulatedUser | None = None
    aggregation: TurnAggregation = TurnAggregation.FIRST_FAILURE
    stop_score: float | None = 1.0
    """Score below which a turn is the last that is sent; None to send all turns."""
    window: int | None = None
    """Number of exchanges, the newest last, that a request repeats; None for all (AgentV, `window_size`)."""
    scores_transcript: bool = False
    """Whether evaluators of the whole see the transcript as response (AgentV), instead of the last response."""
    all_evaluators: tuple[SerializeAsAny[EvaluatorSpec], ...] = ()
    """Evaluators of all turns, then those of the whole. Caches look them up by identity, so they are joined once."""


class CaseWorkspace(Frozen, kw_only=True):
    """Folder in which the target works on a case, made for it by Eval Gate (AgentV 4, `workspace`).

    Paths are absolute. `digest` is that of the template's content when the case was loaded.
    """

    folder: str
    """Folder of the eval file, whose owner runs the programs that work in the workspace."""
    template: str | None = None
    """Folder that is copied into a fresh workspace; None for an empty one."""
    digest: str | None = None
    shared: bool = False
    """Whether all cases of the suite work in one folder, one after the other. Each execution of the suite has a fresh
    one. Otherwise every execution of the case has its own."""
    hooks: WorkspaceHooks = WorkspaceHooks()


class EvalCase(Frozen, kw_only=True):
    """One test: messages to send, evaluators in order, and how to combine their results.

    `skip_reason` is set if the case cannot be run; it is then reported as `skipped`, never as passed. `stubs` is None
    if the case has no stubs; an empty mapping enables stub mode, because only its presence counts. `fingerprint` is the
    SHA-256 of prompt and expectation: results with equal fingerprints are comparable.
    """

    id: str
    suite: str
    """Eval file of the case."""
    description: str = ""
    messages: tuple[Message, ...]
    """Messages to send. In a conversation: those before the first turn, often none."""
    conversation: ConversationSpec | None = None
    """Turns of the conversation; None for a case with one request."""
    evaluators: tuple[SerializeAsAny[EvaluatorSpec], ...] = ()
    aggregation: Aggregation = Aggregation.FIRST_FAILURE
    pass_score: float | None = None
    """Score from which the case passes, if its eval file sets one. The pass score of the policy then does not apply."""
    attempt_rule: AttemptRule | None = None
    """Attempts of each execution; None for one."""
    trials: int | None = None
    """Number of executions, if the eval file sets one. Otherwise, that of the run applies, with its `passes`."""
    passes: int | None = None
    """Number of the `trials` that have to pass; None for more than half of those with a score."""
    difficulty: str | None = None
    tags: tuple[str, ...] = ()
    draft: bool = False
    """Whether the case is still to be reviewed: a run leaves it out and names it. Not part of the fingerprint."""
    keeps_body: bool = False
    """Whether executions keep the agent's whole JSON, for drafts; else only the fields that are checked."""
    stubs: dict[str, JsonValue] | None = None
    max_turns: int = 5
    timeout_ms: int | None = None
    brief: CaseBrief | None = None
    """Parts of the case in addition to its messages; None if its format has none."""
    agent: SuiteAgent | None = None
    """The agent that the eval file describes; None if it describes none."""
    workspace: CaseWorkspace | None = None
    """The folder that the case is run in; None if the target works where it likes."""
    agent_hooks: WorkspaceHooks = WorkspaceHooks()
    """Hooks of the suite and of the case, for a case without a workspace."""
    target: str | None = None
    """Name of the target that the eval file asks for. A target chosen for the run overrides it."""
    conversation_id: str | None = None
    skip_reason: str | None = None
    location: Location
    mistakes: tuple[EvalMistake, ...] = ()
    """Mistakes in the eval file that decide how the case ends. `warnings` do not repeat them."""
    fingerprint: str
    prompt_fingerprint: str | None = None
    """Fingerprint of the prompt alone: the first 16 hex digits of a SHA-256."""
    expectation_fingerprint: str | None = None
    """Fingerprint of the expectation, without the judge, its prompt, and grading programs."""
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> CaseKey:
        """Which case of a run it is."""
        return CaseKey(self.suite, self.id)

    @property
    def hooks(self) -> WorkspaceHooks:
        """Hooks of its workspace, else those for its agent."""
        return self.agent_hooks if self.workspace is None else self.workspace.hooks

    @property
    def all_evaluators(self) -> tuple[EvaluatorSpec, ...]:
        """Evaluators of the case and of all its turns."""
        return self.evaluators if self.conversation is None else self.conversation.all_evaluators

    @property
    def uses_files(self) -> bool:
        """Whether the case's agent works in a folder, or an assertion inspects one."""
        if self.agent is None:
            return False
        return bool(self.agent.tools) or any(isinstance(one, ABOUT_FILES) for one in self.evaluators)

    @property
    def dependent(self) -> bool:
        """Whether the case depends on files of earlier cases in its suite."""
        if self.workspace is not None and self.workspace.shared:
            return True
        return self.agent is not None and self.agent.changes_files


class SuiteMetadata(Frozen, kw_only=True):
    """Tool facts that the eval file records for the staleness check. A check is skipped if its fact is None."""

    tool_version: str | None = None
    description_hash: str | None = None
    registry_size: int | None = None


class EvalSuite(Frozen, kw_only=True):
    """One eval file with its cases.

    `file_hash` is the first 12 hex digits of the SHA-256 of its bytes, with line endings normalized to LF. `metadata`
    is None if the file has none; staleness is then not checked. `warnings` are about the file as a whole and about its
    cases.
    """

    file: str
    format: str
    tool_name: str
    version: str | None = None
    """The suite's own version, if its format has one (Agent Evals)."""
    tier: Tier | None
    metadata: SuiteMetadata | None = None
    file_hash: str
    cases: tuple[EvalCase, ...]
    targets: tuple[str, ...] = ()
    """Names of the targets that the eval file asks for, if there are several: each of them gets a run of its own."""
    warnings: tuple[str, ...] = ()
