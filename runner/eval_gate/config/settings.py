"""Settings of a run: all keys of the configuration with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from eval_gate.config.outputs import REPORTS, JunitFailures, ReportRequest, parse_export, parse_report
from eval_gate.config.policy import Policy
from eval_gate.config.preset import PresetName
from eval_gate.config.rerun_budget import check_rerun_budget, check_rerun_interval
from eval_gate.config.score_rule import ScoreRule, parse_score_rule
from eval_gate.config.setting import Place, Setting, Text, define_setting, iter_settings
from eval_gate.config.setting_sources import UNKNOWN_SOURCES, SettingSources
from eval_gate.text.quoting import describe_name, quote_name
from eval_gate.text.secret import SecretAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue


DEFAULT_SEED_MANIFEST = "evals/seed-manifest.json"


class RubricMode(StrEnum):
    """When rubric cases run."""

    ALWAYS = "always"
    AFTER_PASS = "after-pass"  # noqa: S105 (not a password)
    NEVER = "never"


class RecordingMode(StrEnum):
    """How recorded responses of models are used."""

    OFF = "off"
    RECORD = "record"
    """Ask, and keep every answer."""
    REPLAY = "replay"
    """Never ask: what was not recorded is an error of the case."""
    AUTO = "auto"
    """Answer from the recording where it can, else ask and keep."""


class ResponseRetention(StrEnum):
    """Cases whose responses are kept in the run result."""

    ALL = "all"
    FAILING = "failing"
    """Of every case that does not simply pass: one that fails, broke, or passes and fails."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """Target to evaluate: an endpoint, a model, or a named target from a list or file."""

    endpoint: SecretAddress[Text] | None = define_setting(
        None,
        "URL of the agent: POST {message} answers {response, toolCalls}.",
        key="agentEndpoint",
        metavar="URL",
        compared_as="the target",
    )
    protocol: PresetName | None = define_setting(
        None,
        "How the agent at `agentEndpoint` speaks, such as langgraph or ag-ui.",
        key="agentProtocol",
        metavar="NAME",
        compared_as="the target",
    )
    name: Text | None = define_setting(
        None,
        "Name of the target to evaluate, of those in `targets`.",
        key="target",
        metavar="NAME",
        compared_as="the target",
    )
    targets: Place | tuple[dict[str, JsonValue], ...] | None = define_setting(
        None,
        "Targets, inline or as the path of a YAML file.",
        metavar="FILE",
        help="YAML file that describes targets.",
        compared_as="the target",
    )
    provider: Text | None = define_setting(
        None,
        "Evaluate a model of this provider, without an agent.",
        metavar="NAME",
        help="Evaluate a model: azure, openai, anthropic, gemini.",
        compared_as="the target",
    )
    model: Text | None = define_setting(
        None,
        "The model or deployment; or provider:model in one.",
        metavar="NAME",
        compared_as="the target",
    )
    base_url: SecretAddress[Text] | None = define_setting(
        None,
        "Address of the provider's API, where it is not the vendor's own.",
        metavar="URL",
        compared_as="the target",
    )
    system_prompt: Place | None = define_setting(
        None,
        "File with the model's system prompt.",
        key="systemPromptPath",
        flag="--system-prompt",
        metavar="FILE",
        compared_as="the target",
    )
    """It wins over the target's own."""
    concurrency: int | None = define_setting(
        None,
        "Cases that are asked at the same time; the target's `workers`, else 1.",
        other_flags=("--workers",),
        limits={"ge": 1, "le": 1000},
        no_effect="it is how many cases are asked at once",
    )
    wait_for: float | None = define_setting(
        None,
        "Seconds until the agent has to be there; the target's own, else 30 on this machine and 0 elsewhere.",
        metavar="SECONDS",
        limits={"ge": 0, "le": 3600},
        no_effect="it is only about whether the agent is there before the first case",
    )
    max_retries: int | None = define_setting(
        None,
        "How often a request that broke is tried again; as the target says, else 2 times.",
        limits={"ge": 0, "le": 20},
        no_effect="what broke is tried again; what comes of a response stays as it is",
    )
    requests_per_minute: float | None = define_setting(
        None,
        "Most requests a minute to each target, repeated ones included. Shards share it: each sends its even part.",
        limits={"gt": 0, "le": 1_000_000},
        no_effect="it is how fast the agent is asked",
    )
    given: SettingSources = field(default=UNKNOWN_SOURCES, compare=False, repr=False)
    """Where all settings were given, for what turns out to be wrong with them later."""

    @property
    def is_chosen(self) -> bool:
        """Whether anybody said whom to ask."""
        return any((self.endpoint, self.name, self.targets, self.provider, self.model))


def parse_rerun_command(text: str) -> str:
    """Validate a command template, and return it: a shell must read each placeholder as a word.

    Raises ValueError with a message.
    """
    from eval_gate.text.command_template import CommandTemplate

    CommandTemplate.from_rerun_command(text)
    return text


def parse_base_agent_command(text: str) -> str:
    """Validate the command template of the base agent, which must write its results to a file of its own.

    The template therefore has to contain `{output}`. Raises ValueError with a message.
    """
    if "{output}" not in text:
        raise ValueError("does not name {output}: what it finds must not stand where the results are that are judged")
    return parse_rerun_command(text)


@dataclass(frozen=True, slots=True)
class BaseAgentChoice:
    """Base agent: endpoint, target or command. Used only when the gate would fail."""

    endpoint: SecretAddress[Text] | None = define_setting(
        None,
        "URL of the base branch's agent, which is asked about what would fail the gate, only then.",
        key="baseAgentEndpoint",
        metavar="URL",
        compared_as="the base agent",
    )
    target: Text | None = define_setting(
        None,
        "Name of the target, of those in `targets`, that is the base branch's agent; for what is no address.",
        key="baseAgentTarget",
        metavar="NAME",
        compared_as="the base agent",
    )

    command: Text | None = define_setting(
        None,
        "Command by which another tool runs cases with the base branch's agent, where its results would fail the gate;"
        " written like rerunCommand, with {output} in it.",
        key="baseAgentCommand",
        metavar="CMD",
        each=parse_base_agent_command,
        compared_as="the base agent",
    )

    @property
    def display_name(self) -> str | None:
        """What a record calls an agent that we ask: the address without what nobody may see, or the name; or None."""
        from eval_gate.text.urls import to_public_url

        if self.endpoint is not None:
            return to_public_url(self.endpoint.open())
        return None if self.target is None else describe_name(self.target)

    @property
    def command_name(self) -> str | None:
        """What a record calls the command, which may hold what nobody may see; None for none."""
        from eval_gate.text.digest import compute_digest

        return f"command #{compute_digest(self.command)[:8]}" if self.command is not None else None


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Trials, time limit and cost limit of a run. A case or its target may set its own `timeout_ms`."""

    timeout_ms: int = define_setting(
        60_000, "Time limit of one case, retries included, in milliseconds.", limits={"gt": 0}
    )
    trials: int = define_setting(
        1,
        "How often every case is run.",
        limits={"ge": 1, "le": 100},
        compared_as="the rules",
    )
    max_cost_usd: float | None = define_setting(
        None,
        "What a run may cost before no further case is begun, in US dollars.",
        limits={"gt": 0},
        no_effect="a case that it leaves out is not run, and a run that is not complete does not pass",
    )
    """Target and judges together."""
    rerun_budget: Text | int | None = define_setting(
        None,
        "What all re-runs together may take, those of the control too: a number of them such as 50, a time such as 5m,"
        " or money such as $2; else as many as the run has cases, 100 at least (of results of other tools 10m).",
        metavar="BUDGET",
        each=check_rerun_budget,
        no_effect="a suspected regression that it leaves without re-runs never passes",
    )
    rerun_interval: Text | None = define_setting(
        None,
        "How long to wait at least between two executions of one case that is run again, such as 5m; else nobody waits,"
        " and re-runs of other cases come between.",
        metavar="TIME",
        each=check_rerun_interval,
    )
    rerun_cache_busting: bool = define_setting(
        False,
        "Whether every execution of a case but its first is sent with `cache-control: no-cache` and an"
        " `x-eval-gate-nonce` of its own, so that caches on the way to a model do not answer in its place.",
        help="Send every execution of a case but its first with headers that keep caches from answering it.",
    )
    keep_responses: ResponseRetention = define_setting(
        ResponseRetention.ALL,
        "Of which cases answers, tool calls and judges' prompts are kept in the results: all, failing or none.",
        metavar="WHICH",
        no_effect="it is what is kept of a result",
    )


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """Retention rules: the cases whose responses are kept, and the patterns that are redacted."""

    keep_responses: ResponseRetention = ResponseRetention.ALL
    patterns: tuple[str, ...] = ()


def parse_pattern(text: str) -> str:
    """Validate a JavaScript regular expression without slashes and flags, and return it.

    Raises ValueError with a message.
    """
    from eval_gate.text.javascript.regex import find_pattern_problem

    problem = find_pattern_problem(text)
    if problem is not None:
        raise ValueError(f"{quote_name(text)} is not a regular expression: {problem}")
    return text


class ResultsFormat(StrEnum):
    """Format of external results."""

    AUTO = "auto"
    """By what is in them."""
    JSONL = "jsonl"
    JUNIT = "junit"
    PROMPTFOO = "promptfoo"
    DEEPEVAL = "deepeval"
    INSPECT = "inspect"
    PYDANTIC_EVALS = "pydantic-evals"
    AGENTV = "agentv"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True)
class ResultsChoice:
    """How to read external results, and the command that re-runs cases in their tool."""

    format: ResultsFormat = define_setting(
        ResultsFormat.AUTO,
        f"Whose results they are: {', '.join(ResultsFormat)}.",
        key="resultsFormat",
        metavar="FORMAT",
        compared_as="the target",
    )
    scores: tuple[ScoreRule, ...] = define_setting(
        (),
        "From where on a scorer's score passes, such as policy>=0.7.",
        key="scores",
        flag="--score",
        metavar="RULE",
        each=parse_score_rule,
        limits={"max_length": 100},
        compared_as="the rules",
    )
    rerun_command: Text | None = define_setting(
        None,
        "Command that runs cases in doubt again; {ids}, {id}, {ids_regex}, {ids_file} and {output} stand for them.",
        metavar="CMD",
        each=parse_rerun_command,
    )


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Complete configuration of a run, with defaults (CONTRACTS, section 1).

    Paths are relative to the working directory, not to the configuration file.
    """

    evals: tuple[Place, ...] = define_setting(
        ("evals",),
        "Eval files, folders and globs, relative to the working directory.",
        flag="PATHS",
        limits={"min_length": 1, "max_length": 1_000},
        no_effect="cases are compared one by one, and a case that is gone is said",
    )
    target: TargetChoice = field(default_factory=TargetChoice)
    base_agent: BaseAgentChoice = field(default_factory=BaseAgentChoice)
    judge: Text | None = define_setting(
        None,
        "Who grades where a case asks for a judge: a target by name, or provider:model.",
        metavar="NAME",
        compared_as="the judges of a case",
    )
    rubric: RubricMode = define_setting(
        RubricMode.AFTER_PASS,
        "When rubric cases are run: always, after-pass (unless others fail the gate) or never.",
        metavar="WHEN",
        no_effect="a rubric case that it leaves out has no result, which is never a pass",
    )
    recording: RecordingMode = define_setting(
        RecordingMode.OFF,
        "Recorded answers of models: off, record, replay (never ask) or auto.",
        metavar="MODE",
        no_effect="a response is replayed only for the same set-up; others' recordings are said by themselves",
    )
    seed_manifest_path: Place | None = define_setting(
        None,
        f"Stable values for {{{{seed:…}}}} tokens; {DEFAULT_SEED_MANIFEST} if it exists.",
        flag="--seed-manifest",
        metavar="FILE",
        compared_as="the seed values of a case",
    )
    snapshot_enabled: bool | None = define_setting(
        None,
        "Whether to capture the snapshot; on when a path or command is given.",
        input=False,
        compared_as="the source of the snapshot",
    )
    snapshot_path: Place | None = define_setting(
        None,
        "JSON file or URL with current values for {{snapshot:…}} tokens.",
        flag="--snapshot",
        metavar="FILE-OR-URL",
        compared_as="the source of the snapshot",
    )
    snapshot_command: Text | None = define_setting(
        None,
        "Command that prints the snapshot as JSON, run immediately before the evals.",
        metavar="CMD",
        input=False,
        compared_as="the source of the snapshot",
    )
    pass_env: tuple[Text, ...] = define_setting(
        (),
        "Variables that commands of targets, judges and the snapshot are given, beside PATH and the like.",
        metavar="NAME",
    )
    tool_registry_path: Place | None = define_setting(
        None,
        "Tool definitions: a JSON file, a folder or barrel of tool files, an MCP server's URL, or .mcp.json.",
        flag="--tool-registry",
        metavar="FILE-DIR-OR-URL",
    )
    strict: bool = define_setting(
        False,
        "Unknown keys, empty `expect` and cases that check nothing are errors.",
    )
    limits: RunLimits = field(default_factory=RunLimits)
    redact: tuple[Text, ...] = define_setting(
        (),
        "Regular expressions: what they find is *** in all that is stored of questions, answers, calls and judgements.",
        option=False,
        input=False,
        each=parse_pattern,
        limits={"max_length": 50},
        no_effect="it is what is kept of a result",
    )
    baseline: Place | None = define_setting(
        None,
        "Earlier run to compare with: run id, results file, run folder, folder of runs, zip or latest.",
        metavar="REF",
        help="Earlier run to compare with: run id, results file, run folder, folder of runs, zip, or latest, which is"
        " the newest that passed its gate.",
        input=False,
        no_effect="it says with what a result is compared",
    )
    history: Place | None = define_setting(
        None,
        "Ledger of earlier runs, or a folder of runs; else what lies beside the baseline.",
        metavar="REF",
        input=False,
        no_effect="it says with what a result is compared",
    )
    policy: Policy = field(default_factory=Policy)
    results: ResultsChoice = field(default_factory=ResultsChoice)
    output_dir: Place = define_setting(
        "evals/results",
        "Where results are written.",
        metavar="DIR",
        no_effect="it is where results are written",
    )
    reports: tuple[ReportRequest, ...] = define_setting(
        (),
        "Reports to write: FORMAT or FORMAT=FILE.",
        flag="--report",
        metavar="FORMAT[=FILE]",
        help=f"Also write a report: {', '.join(REPORTS)}.",
        each=parse_report,
        limits={"max_length": 100},
        input=False,
        no_effect="it is what is written of a result",
    )
    junit_failures: JunitFailures = define_setting(
        JunitFailures.BLOCKING,
        "Which cases are failures in a JUnit report: blocking (what keeps the gate from passing) or all that fail.",
        metavar="WHICH",
        input=False,
        no_effect="it is what is written of a result",
    )
    exports: tuple[ReportRequest, ...] = define_setting(
        (),
        "Results for other programs: FORMAT=FILE, where agentv is one JSON record a line.",
        flag="--export",
        metavar="FORMAT=FILE",
        each=parse_export,
        no_effect="it is what is written of a result",
    )

    @property
    def retention(self) -> RetentionRules:
        """How much of what is said may be stored."""
        return RetentionRules(self.limits.keep_responses, self.redact)

    @property
    def output_requests(self) -> tuple[ReportRequest, ...]:
        """All that is to be written beside the record."""
        return (*self.reports, *self.exports)


SETTINGS: Final[Mapping[str, Setting]] = {row.key: row for row in iter_settings(RunConfig)}
"""Every row by its key."""
POLICY_KEYS: Final = frozenset(row.key for row in iter_settings(Policy))
"""The keys of the rules that a finished run is held against, and of how sure a regression has to be."""
RECORDED_RULES: Final[Mapping[str, str]] = {
    **{row.key: row.name for row in iter_settings(Policy)},
    **{row.key: "base_agent" for row in iter_settings(BaseAgentChoice)},
}
"""What the record of a run calls each rule, by its key, those apart that say how cases are measured: trials, scores."""
EXTERNAL_RESULT_KEYS: Final = frozenset(row.key for row in iter_settings(ResultsChoice))
"""The keys that only results of other tools have use for."""
