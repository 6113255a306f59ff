"""Settings of a run: all keys of the configuration with their defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final

from eval_gate.config.measures import check_measured_pattern
from eval_gate.config.outputs import REPORTS, JunitFailures, ReportRequest, parse_export, parse_report
from eval_gate.config.policy import Policy
from eval_gate.config.preset import PresetName
from eval_gate.config.rerun_budget import check_rerun_budget, check_rerun_interval
from eval_gate.config.score_rule import ScoreRule, parse_score_rule
from eval_gate.config.setting import Panel, Place, Setting, Text, define_setting, iter_settings
from eval_gate.config.setting_sources import UNKNOWN_SOURCES, SettingSources
from eval_gate.text.quoting import describe_name, quote_value
from eval_gate.text.secret import SecretAddress
from eval_gate.text.trace_addresses import parse_trace_template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue


_define_target = partial(define_setting, panel=Panel.TARGET)
_define_choice = partial(_define_target, compared_as="the target")
_define_base_agent = partial(_define_target, compared_as="the base agent")
_define_limit = partial(define_setting, panel=Panel.BUDGET)
_define_run = partial(define_setting, panel=Panel.RUN)
_define_snapshot = partial(_define_run, input=False, compared_as="the source of the snapshot")
_define_baseline = partial(
    define_setting, panel=Panel.BASELINE, input=False, no_effect="it is what a result is compared with"
)
_define_store = partial(
    define_setting, panel=Panel.BASELINE, input=False, no_effect="it is where baselines are read and stored"
)
_define_output = partial(define_setting, panel=Panel.OUTPUT, no_effect="it is what is written of a result")
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
    """Send every request, and store every response."""
    REPLAY = "replay"
    """Send no request: a response that was not recorded is an error of the case."""
    AUTO = "auto"
    """Use the recording where it has a response, and otherwise send the request and store its response."""


class ResponseRetention(StrEnum):
    """Cases whose responses are kept in the run result."""

    ALL = "all"
    FAILING = "failing"
    """Of every case that does not simply pass: one that fails, broke, or passes and fails."""
    NONE = "none"


_FUNCTION_PLACE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def parse_agent_function(text: str) -> str:
    """Validate the place of a Python function, and return it. Raises ValueError with a message."""
    if _FUNCTION_PLACE.fullmatch(text) is None:
        raise ValueError(f"{quote_value(text)} is not module:name: write one such as my_agent:answer, for my_agent.py")
    return text


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """Target to evaluate: an endpoint, a model, or a named target from a list or file."""

    endpoint: SecretAddress[Text] | None = _define_choice(
        None,
        "URL of the agent, which gets POST {message} and returns {response, toolCalls}.",
        key="agentEndpoint",
        metavar="URL",
    )
    protocol: PresetName | None = _define_choice(
        None,
        "Protocol of the agent at `agentEndpoint`, such as langgraph or ag-ui.",
        default_text=str(PresetName.EVAL_GATE),
        key="agentProtocol",
        metavar="NAME",
    )
    function: Text | None = _define_choice(
        None,
        "Python function to evaluate, as module:name, imported from the working directory.",
        key="agentFunction",
        metavar="MODULE:NAME",
        each=parse_agent_function,
        input=False,
    )
    name: Text | None = _define_choice(
        None,
        "Name of the target to evaluate, from `targets`.",
        key="target",
        metavar="NAME",
    )
    targets: Place | tuple[dict[str, JsonValue], ...] | None = _define_choice(
        None,
        "Targets to choose from, inline or as the path of a YAML file.",
        metavar="FILE",
        help="YAML file that describes the targets to choose from.",
    )
    provider: Text | None = _define_choice(
        None,
        "Provider of a model to evaluate without an agent: azure, openai, anthropic, gemini.",
        metavar="NAME",
    )
    model: Text | None = _define_choice(
        None,
        "Model or deployment to evaluate without an agent, also as provider:model.",
        metavar="NAME",
    )
    base_url: SecretAddress[Text] | None = _define_choice(
        None,
        "URL of the provider's API.",
        default_text="the vendor's",
        metavar="URL",
    )
    system_prompt: Place | None = _define_choice(
        None,
        "File with the model's system prompt, which replaces the one of the target.",
        key="systemPromptPath",
        other_keys=("systemPrompt",),
        flag="--system-prompt",
        metavar="FILE",
    )
    concurrency: int | None = _define_target(
        None,
        "Number of cases to run at the same time.",
        default_text="the target's `workers`, or 1",
        other_keys=("maxConcurrency",),
        other_flags=("--workers",),
        limits={"ge": 1, "le": 1000},
        no_effect="it is how many cases run at the same time",
    )
    wait_for: float | None = _define_target(
        None,
        "Seconds to wait until the agent is up.",
        default_text="the target's, or 30 on this machine and 0 elsewhere",
        metavar="SECONDS",
        limits={"ge": 0, "le": 3600},
        no_effect="it only decides how long to wait for the agent before the first case",
    )
    max_retries: int | None = _define_target(
        None,
        "Maximum retries of a failed request.",
        default_text="the target's, or 2",
        limits={"ge": 0, "le": 20},
        no_effect="only failed requests are retried; a response stays as it is",
    )
    requests_per_minute: float | None = _define_target(
        None,
        "Maximum requests per minute to each target, with retries, from all shards together.",
        limits={"gt": 0, "le": 1_000_000},
        no_effect="it is how fast requests are sent",
    )
    sources: SettingSources = field(default=UNKNOWN_SOURCES, compare=False, repr=False)
    """Origins of all settings, for problems that are found later."""

    @property
    def is_chosen(self) -> bool:
        """Whether a target is chosen."""
        return any((self.endpoint, self.function, self.name, self.targets, self.provider, self.model))


def parse_results_encoding(text: str) -> str:
    """Return Python's name of an encoding. Raises ValueError with a message for one that is not known."""
    from eval_gate.text.untrusted.encoding_names import parse_encoding

    return parse_encoding(text)


def parse_rerun_command(text: str) -> str:
    """Validate a template in which a shell reads each placeholder as a word. Raises ValueError for a person."""
    from eval_gate.text.command_template import CommandTemplate

    CommandTemplate.from_rerun_command(text)
    return text


def parse_base_agent_command(text: str) -> str:
    """Validate the base agent's template, with `{output}` for a file of its own. Raises ValueError for a person."""
    if "{output}" not in text:
        raise ValueError("must contain {output}, because the base agent's results need a file of their own")
    return parse_rerun_command(text)


@dataclass(frozen=True, slots=True)
class BaseAgentChoice:
    """Base agent: endpoint, target or command. Used only when the gate would fail."""

    endpoint: SecretAddress[Text] | None = _define_base_agent(
        None,
        "URL of the base branch's agent, which runs the cases that would fail the gate.",
        key="baseAgentEndpoint",
        metavar="URL",
    )
    target: Text | None = _define_base_agent(
        None,
        "Name of the target in `targets` that is the base branch's agent.",
        key="baseAgentTarget",
        metavar="NAME",
    )

    command: Text | None = _define_base_agent(
        None,
        "Command that runs external cases that would fail the gate with the base branch's agent; with {output} and the"
        " other placeholders of rerunCommand.",
        key="baseAgentCommand",
        metavar="CMD",
        each=parse_base_agent_command,
    )

    @property
    def display_name(self) -> str | None:
        """Name of the base agent in a run result: its URL without secrets, or the target's name; None without one."""
        from eval_gate.text.urls import to_public_url

        if self.endpoint is not None:
            return to_public_url(self.endpoint.open())
        return None if self.target is None else describe_name(self.target)

    @property
    def command_name(self) -> str | None:
        """Name of the command in a run result, without the command, which may hold secrets; None without one."""
        from eval_gate.text.digest import compute_digest

        return f"command #{compute_digest(self.command)[:8]}" if self.command is not None else None


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Trials, time limit and cost limit of a run. A case or its target may set its own `timeout_ms`."""

    timeout_ms: int = _define_limit(
        60_000,
        "Time limit of one case, or of one turn of a conversation, in milliseconds, with its retries.",
        limits={"gt": 0},
    )
    trials: int = _define_run(
        1,
        "Number of executions of each case.",
        limits={"ge": 1, "le": 100},
        compared_as="the rules",
    )
    passes: int | None = _define_run(
        None,
        "Number of a case's trials that have to pass.",
        default_text="more than half",
        limits={"ge": 1, "le": 100},
        compared_as="the rules",
    )
    max_cost_usd: float | None = _define_limit(
        None,
        "Cost in US dollars, of target and judges together, after which no further case or turn starts.",
        default_text="no limit",
        limits={"gt": 0},
        no_effect="a case that it leaves out is not run, and an incomplete run does not pass",
    )
    rerun_budget: Text | int | None = _define_limit(
        None,
        "Limit of all re-runs together, with those of the base agent: a number such as 50, a time such as 5m, or money"
        " such as $2.",
        default_text="the number of cases, at least 100; 10m for external results",
        metavar="BUDGET",
        each=check_rerun_budget,
        no_effect="a suspected regression without re-runs never passes",
    )
    rerun_interval: Text | None = _define_limit(
        None,
        "Minimum time between two executions of one case, such as 5m.",
        default_text="as learned: none, or up to 5m where executions of one run belong together",
        metavar="TIME",
        each=check_rerun_interval,
    )
    keep_responses: ResponseRetention = _define_output(
        ResponseRetention.ALL,
        "Cases whose responses, tool calls and judge prompts are stored: all, failing or none.",
        metavar="WHICH",
        no_effect="it is what is stored of a result",
    )


@dataclass(frozen=True, slots=True)
class RetentionRules:
    """Retention rules: the cases whose responses are kept, and the patterns that are redacted."""

    keep_responses: ResponseRetention = ResponseRetention.ALL
    patterns: tuple[str, ...] = ()


def parse_proxy_address(text: str) -> str:
    """Validate the address of a proxy on this machine. Raises ValueError with a message."""
    from eval_gate.text.urls import find_url_problem

    problem = find_url_problem(text)
    if problem is None and not re.fullmatch("http://[^/?#@]+/?", text):
        problem = "the URL is not of the form http://host:port"
    if problem is not None:
        raise ValueError(problem)
    return text


def check_store(text: str) -> str:
    """Refuse a URL with a password, which messages would show. Raises ValueError for a person."""
    if re.search("://[^@]*:[^@]*@", text):  # libraries take what URLs may not have in a password, such as a slash
        raise ValueError("has a password: give credentials by the variables of the storage service")
    return text


def parse_pattern(text: str) -> str:
    """Validate a JavaScript regular expression without slashes and flags. Raises ValueError for a person."""
    from eval_gate.text.javascript.regex import find_pattern_problem

    problem = find_pattern_problem(text)
    if problem is not None:
        raise ValueError(problem)
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
    ADK = "adk"
    AZURE = "azure"
    BRAINTRUST = "braintrust"
    LANGSMITH = "langsmith"
    TRX = "trx"


@dataclass(frozen=True, slots=True)
class ResultsChoice:
    """How to read external results, and the command that re-runs cases in their tool."""

    format: ResultsFormat = _define_run(
        ResultsFormat.AUTO,
        f"Format of the external results: {', '.join(ResultsFormat)}.",
        key="resultsFormat",
        metavar="FORMAT",
        compared_as="the target",
    )
    encoding: Text | None = _define_run(
        None,
        "Encoding of result files that are not UTF-8 and do not state their encoding, such as cp1252.",
        key="resultsEncoding",
        flag="--encoding",
        metavar="NAME",
        each=parse_results_encoding,
        no_effect="a case whose name it changes is another case, and removed cases are listed",
    )
    scores: tuple[ScoreRule, ...] = define_setting(
        (),
        "Score from which a scorer of an external result passes, such as policy>=0.7.",
        panel=Panel.VERDICT,
        flag="--score",
        metavar="RULE",
        each=parse_score_rule,
        limits={"max_length": 100},
        compared_as="the rules",
    )
    rerun_command: Text | None = _define_run(
        None,
        "Command that re-runs suspected regressions in their own tool; its placeholders are {ids}, {id}, {ids_regex},"
        " {ids_file} and {output}.",
        metavar="CMD",
        each=parse_rerun_command,
    )


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Complete configuration of a run, with defaults.

    Paths are relative to the working directory, not to the configuration file.
    """

    evals: tuple[Place, ...] = _define_run(
        ("evals",),
        "Eval files, folders and globs, relative to the working directory.",
        flag="PATHS",
        limits={"min_length": 1, "max_length": 1_000},
        no_effect="cases are compared one by one, and removed cases are listed",
    )
    target: TargetChoice = field(default_factory=TargetChoice)
    base_agent: BaseAgentChoice = field(default_factory=BaseAgentChoice)
    judge: Text | None = _define_target(
        None,
        "LLM judge of cases that ask for one: the name of a target, or provider:model.",
        default_text="the target's judge",
        metavar="NAME",
        compared_as="the judges of a case",
    )
    simulated_user: Text | None = _define_target(
        None,
        "Model that plays simulated users: provider:model, or the name of a target that is a model.",
        default_text="the target's user",
        metavar="NAME",
        input=False,
        compared_as="the simulated user of a case",
    )
    grader_files: tuple[Text, ...] = define_setting(
        (),
        "Globs of further files that graders and hooks load, relative to the working directory: they are compared too.",
        option=False,
        input=False,
        limits={"max_length": 100},
    )
    measures: tuple[Text, ...] | dict[str, tuple[Text, ...]] = define_setting(
        (),
        "Globs of the files that the evals measure, as a list for all suites or as lists by glob of eval files; `!glob`"
        " leaves files out, and env:NAME is a variable.",
        option=False,
        input=False,
        each=check_measured_pattern,
        limits={"max_length": 100},
    )
    reuse: bool = _define_run(
        False,
        "Reuse the result of a suite if nothing that it measures has changed since the baseline.",
        in_action=True,
        no_effect="a result is reused only for the same measured files and the same setup",
    )
    rubric: RubricMode = _define_run(
        RubricMode.AFTER_PASS,
        "Condition for rubric cases to run: always, after-pass (unless other cases fail the gate) or never.",
        metavar="WHEN",
        no_effect="a rubric case that it leaves out has no result, which is never a pass",
    )
    recording: RecordingMode = _define_target(
        RecordingMode.OFF,
        "Use of recorded model responses: off, record, replay (no requests) or auto (replay, or request and record).",
        metavar="MODE",
        no_effect="a response is replayed only for the same setup, and recordings of others are reported",
    )
    model_proxy: Text | None = _define_target(
        None,
        "URL of the proxy of `eval-gate record` or `eval-gate replay` through which the agent calls its models.",
        metavar="URL",
        each=parse_proxy_address,
        compared_as="the recording of model calls",
    )
    seed_manifest_path: Place | None = _define_run(
        None,
        "JSON file with stable values for {{seed:…}} tokens.",
        default_text=f"{DEFAULT_SEED_MANIFEST} if it exists",
        flag="--seed-manifest",
        metavar="FILE",
        compared_as="the seed values of a case",
    )
    snapshot_enabled: bool | None = _define_snapshot(
        None,
        "Capture the snapshot before the evals.",
        default_text="on if a path or command is given",
    )
    snapshot_path: Place | None = _define_snapshot(
        None,
        "JSON file or URL with current values for {{snapshot:…}} tokens.",
        flag="--snapshot",
        metavar="FILE-OR-URL",
        input=True,
    )
    snapshot_command: Text | None = _define_snapshot(
        None,
        "Command that prints the snapshot as JSON, run immediately before the evals.",
        metavar="CMD",
    )
    pass_env: tuple[Text, ...] = _define_target(
        (),
        "Environment variables that the commands of targets, judges and the snapshot get in addition to PATH and"
        " similar ones.",
        metavar="NAME",
    )
    tool_registry_path: Place | None = _define_run(
        None,
        "Tool definitions: a JSON file, a folder or barrel of tool files, the URL of an MCP server, or .mcp.json.",
        flag="--tool-registry",
        metavar="FILE-DIR-OR-URL",
    )
    strict: bool = _define_run(
        False,
        "Treat unknown keys, an empty `expect` and cases that check nothing as errors.",
    )
    limits: RunLimits = field(default_factory=RunLimits)
    redact: tuple[Text, ...] = define_setting(
        (),
        "Regular expressions whose matches are stored as *** in prompts, responses, tool calls and judge results.",
        option=False,
        input=False,
        each=parse_pattern,
        limits={"max_length": 50},
        no_effect="it is what is stored of a result",
    )
    baseline: Place | None = _define_baseline(
        None,
        "Earlier run to compare with: run id, results file, run folder, folder of runs, zip, or latest (the newest that"
        " passed).",
        default_text="none",
        other_keys=("baselineRunId",),
        metavar="REF",
    )
    history: Place | None = _define_baseline(
        None,
        "History of earlier runs: a history file or a folder of runs.",
        default_text="the history stored with the baseline",
        metavar="REF",
    )
    store: Place | None = _define_store(
        None,
        "Folder, or URL such as s3://bucket/prefix, that has the baselines of this gate: `latest` is looked for there,"
        " and a run of the default branch is stored there.",
        default_text="none",
        metavar="PLACE",
        each=check_store,
    )
    store_branch: Text | None = _define_store(
        None, "Default branch, whose runs are stored, where the CI system does not name it.", metavar="NAME"
    )
    store_write: bool = _define_store(False, "Store the run outside of a known CI system.")
    warm_up: int | None = define_setting(
        None,
        "Runs of history that a run of the default branch fills up to, by executing all cases in further rounds.",
        default_text="off",
        panel=Panel.BASELINE,
        limits={"ge": 2, "le": 20},
        no_effect="a pull request makes no rounds, and the history that it is compared with is stored already",
    )
    policy: Policy = field(default_factory=Policy)
    results: ResultsChoice = field(default_factory=ResultsChoice)
    output_dir: Place = _define_output(
        "evals/results",
        "Folder for results.",
        metavar="DIR",
        no_effect="it is where results are written",
    )
    reports: tuple[ReportRequest, ...] = _define_output(
        (),
        "Reports to write: FORMAT or FORMAT=FILE.",
        flag="--report",
        metavar="FORMAT[=FILE]",
        help=f"Report to write: {', '.join(REPORTS)}.",
        each=parse_report,
        limits={"max_length": 100},
        input=False,
    )
    junit_failures: JunitFailures = _define_output(
        JunitFailures.BLOCKING,
        "Cases that a JUnit report shows as failures: blocking (those that keep the gate from passing) or all.",
        metavar="WHICH",
        input=False,
    )
    trace_url: Text | None = _define_output(
        None,
        "Address of a trace, with {{traceId}}, which makes the ids of traces links.",
        default_text="no links",
        metavar="URL",
        each=parse_trace_template,
        input=False,
        no_effect="it is what is shown of a result",
    )
    exports: tuple[ReportRequest, ...] = _define_output(
        (),
        "File to write for another program, as FORMAT=FILE; agentv writes one JSON object per line.",
        flag="--export",
        metavar="FORMAT=FILE",
        each=parse_export,
    )

    @property
    def retention(self) -> RetentionRules:
        """Rules for what is stored of prompts and responses."""
        return RetentionRules(self.limits.keep_responses, self.redact)

    @property
    def output_requests(self) -> tuple[ReportRequest, ...]:
        """Reports and exports to write in addition to the run result."""
        return (*self.reports, *self.exports)


SETTINGS: Final[Mapping[str, Setting]] = {row.key: row for row in iter_settings(RunConfig)}
"""Every row by its key."""
KEYS: Final[Mapping[str, str]] = {name: row.key for row in SETTINGS.values() for name in row.keys}
"""The key of each setting by each of its keys: its own, and those of specifications."""
POLICY_KEYS: Final = frozenset(row.key for row in iter_settings(Policy))
RECORDED_RULES: Final[Mapping[str, str]] = {
    **{row.key: row.name for row in iter_settings(Policy)},
    **{row.key: "base_agent" for row in iter_settings(BaseAgentChoice)},
}
"""Name of each rule in a run result, by its key; without the rules on how cases are scored, such as trials."""
EXTERNAL_RESULT_KEYS: Final = frozenset(row.key for row in iter_settings(ResultsChoice))
"""Keys that apply to external results only."""
