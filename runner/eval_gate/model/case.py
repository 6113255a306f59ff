"""The one shape every eval format becomes before the engine sees it."""

from enum import StrEnum
from typing import NamedTuple

from pydantic import SerializeAsAny

from eval_gate.model.agent import SuiteAgent
from eval_gate.model.base import Frozen, JsonValue, Record
from eval_gate.model.conversation import Message
from eval_gate.model.specs.agent_evals import ABOUT_FILES
from eval_gate.model.specs.evaluator import EvaluatorSpec


class Tier(StrEnum):
    """What a suite is for (tool-forge contract)."""

    GOLDEN = "golden"
    LABELED = "labeled"
    REGRESSION = "regression"
    RUBRIC = "rubric"
    PERTURBATION = "perturbation"


class Aggregation(StrEnum):
    """How the evaluators' answers become one: a yes/no and a score."""

    FIRST_FAILURE = "first_failure"
    """In order, stop at the first failure; score 1 or 0 (tool-forge)."""
    WEIGHTED_MEAN = "weighted_mean"
    """All of them, weighted; passes at 1 only (AgentV, "Per-evaluator weights in top-level aggregation")."""
    ALL = "all"
    """All of them, none left out; passes when every one does, also when there is none; score: the share that passes."""


class CaseKey(NamedTuple):
    """Which case of a run: its eval file and its id. Both are as the author wrote them."""

    suite: str
    case_id: str


class CaseName(Record, kw_only=True):
    """Which case: its eval file and its id."""

    suite: str
    case_id: str

    @property
    def key(self) -> CaseKey:
        """The same, to look things up by."""
        return CaseKey(self.suite, self.case_id)


class Location(Frozen, kw_only=True):
    """Where something stands in a file. `file` is POSIX style as given by the user, `line` counts from 1."""

    file: str
    line: int


class CaseBrief(Frozen, kw_only=True):
    """What a case says beside the messages to send: for graders, and for targets that take a prompt and files.

    The parts of an AgentV case (agentv behaviour 1.4). Files are absolute paths that were readable at load. `question`
    has attached files written into it; `linked_question` only names them, for agents that read files themselves.
    Neither holds guidelines. `reference_answer` None means the case has none. The messages are as the file has them,
    for graders that are shown them as JSON.
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
    """What the case says of itself to those who grade (today's AgentV)."""


class EvalCase(Frozen, kw_only=True):
    """One test: messages to send, evaluators in order, and how their answers are joined.

    `skip_reason` set means the case cannot be run as things are: it is reported as `skipped`, never as a pass.
    `stubs` None means none were given; an empty mapping is stub mode (presence decides).
    `fingerprint` is the SHA-256 of what is asked and expected: equal fingerprints may be compared.
    """

    id: str
    suite: str
    """The eval file that it stands in."""
    description: str = ""
    messages: tuple[Message, ...]
    evaluators: tuple[SerializeAsAny[EvaluatorSpec], ...] = ()
    aggregation: Aggregation = Aggregation.FIRST_FAILURE
    difficulty: str | None = None
    tags: tuple[str, ...] = ()
    stubs: dict[str, JsonValue] | None = None
    max_turns: int = 5
    timeout_ms: int | None = None
    brief: CaseBrief | None = None
    """What the case says beside its messages, where its format has more."""
    agent: SuiteAgent | None = None
    """The agent that the eval file describes, where it brings one of its own."""
    target: str | None = None
    """The name of the target that the eval file wants asked; a target chosen for the run wins."""
    conversation_id: str | None = None
    skip_reason: str | None = None
    location: Location
    fingerprint: str
    prompt_fingerprint: str | None = None
    """What is asked alone, as the fingerprint has it: the first 16 hex digits of a SHA-256."""
    expectation_fingerprint: str | None = None
    """What the answer is held against, without what only says who grades it, and with which prompt or program."""
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> CaseKey:
        """Which case of a run it is."""
        return CaseKey(self.suite, self.id)

    @property
    def uses_files(self) -> bool:
        """Whether its agent works in a folder, or an assertion looks at one."""
        if self.agent is None:
            return False
        return bool(self.agent.tools) or any(isinstance(one, ABOUT_FILES) for one in self.evaluators)

    @property
    def dependent(self) -> bool:
        """Whether it works on files that earlier cases of its suite have left."""
        return self.agent is not None and self.agent.changes_files


class SuiteMetadata(Frozen, kw_only=True):
    """What the eval file says it was generated for. A missing fact is None and its check is not done."""

    tool_version: str | None = None
    description_hash: str | None = None
    registry_size: int | None = None


class EvalSuite(Frozen, kw_only=True):
    """One eval file. `file_hash` is the SHA-256 of its bytes with LF for every end of line, first 12 hex digits.

    `metadata` None means the file carries none: staleness is not checked.
    `warnings` hold sentences for people about the file as a whole and about its cases.
    """

    file: str
    format: str
    tool_name: str
    version: str | None = None
    """The suite's own version, where its format has one (Agent Evals)."""
    tier: Tier | None
    metadata: SuiteMetadata | None = None
    file_hash: str
    cases: tuple[EvalCase, ...]
    warnings: tuple[str, ...] = ()
