"""What a run can be told: its keys with their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from eval_gate.config.given import NOWHERE, GivenSettings
from eval_gate.config.outputs import REPORTS, JunitFailures, ReportRequest, parse_export, parse_report
from eval_gate.config.policy import Policy
from eval_gate.config.preset import PresetName
from eval_gate.config.rerun_budget import checked_rerun_budget, checked_rerun_spread
from eval_gate.config.score_rule import ScoreRule, parse_rule
from eval_gate.config.setting import Place, Setting, Text, setting, settings_of
from eval_gate.text.quoting import quoted_name, shown_name
from eval_gate.text.secret import SecretAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue


DEFAULT_SEED_MANIFEST = "evals/seed-manifest.json"


class RubricMode(StrEnum):
    """When rubric cases are run."""

    ALWAYS = "always"
    AFTER_PASS = "after-pass"  # noqa: S105 (not a password)
    NEVER = "never"


class CacheMode(StrEnum):
    """What is done with recorded answers of models."""

    OFF = "off"
    RECORD = "record"
    """Ask, and keep every answer."""
    REPLAY = "replay"
    """Never ask: what was not recorded is an error of the case."""
    AUTO = "auto"
    """Answer from the recording where it can, else ask and keep."""


class Store(StrEnum):
    """Of which cases what was answered is kept in the results."""

    ALL = "all"
    FAILING = "failing"
    """Of every case that does not simply pass: one that fails, broke, or passes and fails."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """What is to be evaluated: an endpoint, a model, or a target by name from a list or a file."""

    endpoint: SecretAddress[Text] | None = setting(
        None,
        "URL of the agent: POST {message} answers {response, toolCalls}.",
        key="agentEndpoint",
        metavar="URL",
        compared_as="the target",
    )
    preset: PresetName | None = setting(
        None,
        "How the agent at `agentEndpoint` speaks, such as langgraph or ag-ui.",
        key="agentPreset",
        metavar="NAME",
        compared_as="the target",
    )
    name: Text | None = setting(
        None,
        "Name of the target to evaluate, of those in `targets`.",
        key="target",
        metavar="NAME",
        compared_as="the target",
    )
    targets: Place | tuple[dict[str, JsonValue], ...] | None = setting(
        None,
        "Targets, inline or as the path of a YAML file.",
        metavar="FILE",
        help="YAML file that describes targets.",
        compared_as="the target",
    )
    provider: Text | None = setting(
        None,
        "Evaluate a model of this provider, without an agent.",
        metavar="NAME",
        help="Evaluate a model: azure, openai, anthropic, gemini.",
        compared_as="the target",
    )
    model: Text | None = setting(
        None,
        "The model or deployment; or provider:model in one.",
        metavar="NAME",
        compared_as="the target",
    )
    base_url: SecretAddress[Text] | None = setting(
        None,
        "Address of the provider's API, where it is not the vendor's own.",
        metavar="URL",
        compared_as="the target",
    )
    system_prompt: Place | None = setting(
        None,
        "File with the model's system prompt.",
        key="systemPromptPath",
        flag="--system-prompt",
        metavar="FILE",
        compared_as="the target",
    )
    """It wins over the target's own."""
    concurrency: int | None = setting(
        None,
        "Cases that are asked at the same time; the target's `workers`, else 1.",
        other_flags=("--workers",),
        limits={"ge": 1, "le": 1000},
        no_effect="it is how many cases are asked at once",
    )
    wait_for: float | None = setting(
        None,
        "Seconds until the agent has to be there; the target's own, else 30 on this machine and 0 elsewhere.",
        metavar="SECONDS",
        limits={"ge": 0, "le": 3600},
        no_effect="it is only about whether the agent is there before the first case",
    )
    max_retries: int | None = setting(
        None,
        "How often a request that broke is tried again; as the target says, else 2 times.",
        limits={"ge": 0, "le": 20},
        no_effect="what broke is tried again; what comes of a response stays as it is",
    )
    requests_per_minute: float | None = setting(
        None,
        "Most requests a minute to each target, repeated ones included. Shards share it: each sends its even part.",
        limits={"gt": 0, "le": 1_000_000},
        no_effect="it is how fast the agent is asked",
    )
    given: GivenSettings = field(default=NOWHERE, compare=False, repr=False)
    """Where all settings were given, for what turns out to be wrong with them later."""

    @property
    def said(self) -> bool:
        """Whether anybody said whom to ask."""
        return any((self.endpoint, self.name, self.targets, self.provider, self.model))


def parse_rerun_command(text: str) -> str:
    """A command whose places for names are where a shell takes them as words. Raises ValueError with what is wrong."""
    from eval_gate.text.command_template import CommandTemplate

    CommandTemplate.of_rerun(text)
    return text


def parse_control_command(text: str) -> str:
    """The same of a command that must leave its results in a file of its own. Raises ValueError."""
    if "{output}" not in text:
        raise ValueError("does not name {output}: what it finds must not stand where the results are that are judged")
    return parse_rerun_command(text)


@dataclass(frozen=True, slots=True)
class ControlChoice:
    """Who is the base branch's agent, which is asked only where the gate would be red: address, target or command."""

    endpoint: SecretAddress[Text] | None = setting(
        None,
        "URL of the base branch's agent, which is asked about what would fail the gate, only then.",
        key="controlEndpoint",
        metavar="URL",
        compared_as="the base agent",
    )
    target: Text | None = setting(
        None,
        "Name of the target, of those in `targets`, that is the base branch's agent; for what is no address.",
        key="controlTarget",
        metavar="NAME",
        compared_as="the base agent",
    )

    command: Text | None = setting(
        None,
        "Command by which another tool runs cases with the base branch's agent, where its results would fail the gate;"
        " written like rerunCommand, with {output} in it.",
        key="controlCommand",
        metavar="CMD",
        each=parse_control_command,
        compared_as="the base agent",
    )

    @property
    def named(self) -> str | None:
        """What a record calls an agent that we ask: the address without what nobody may see, or the name; or None."""
        from eval_gate.text.urls import public_url

        if self.endpoint is not None:
            return public_url(self.endpoint.open())
        return None if self.target is None else shown_name(self.target)

    @property
    def named_command(self) -> str | None:
        """What a record calls the command, which may hold what nobody may see; None for none."""
        from eval_gate.text.digest import digest

        return f"command #{digest(self.command)[:8]}" if self.command is not None else None


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How often, how long, and at what cost. A case or its target may set its own `timeout_ms`."""

    timeout_ms: int = setting(60_000, "Time limit of one case, retries included, in milliseconds.", limits={"gt": 0})
    trials: int = setting(
        1,
        "How often every case is run.",
        limits={"ge": 1, "le": 100},
        compared_as="the rules",
    )
    max_cost_usd: float | None = setting(
        None,
        "What a run may cost before no further case is begun, in US dollars.",
        limits={"gt": 0},
        no_effect="a case that it leaves out is not run, and a run that is not complete does not pass",
    )
    """Target and judges together."""
    rerun_budget: Text | int | None = setting(
        None,
        "What all re-runs together may take, those of the control too: a number of them such as 50, a time such as 5m,"
        " or money such as $2; else as many as the run has cases, 100 at least (of results of other tools 10m).",
        metavar="BUDGET",
        each=checked_rerun_budget,
        no_effect="a suspected regression that it leaves without re-runs never passes",
    )
    rerun_spread: Text | None = setting(
        None,
        "How long to wait at least between two executions of one case that is run again, such as 5m; else nobody waits,"
        " and re-runs of other cases come between.",
        metavar="TIME",
        each=checked_rerun_spread,
    )
    rerun_nonce: bool = setting(
        False,
        "Whether every execution of a case but its first is sent with `cache-control: no-cache` and an"
        " `x-eval-gate-nonce` of its own, so that caches on the way to a model do not answer in its place.",
        help="Send every execution of a case but its first with headers that keep caches from answering it.",
    )
    store: Store = setting(
        Store.ALL,
        "Of which cases answers, tool calls and judges' prompts are kept in the results: all, failing or none.",
        metavar="WHICH",
        no_effect="it is what is kept of a result",
    )


@dataclass(frozen=True, slots=True)
class Keeping:
    """How much of what was said may be stored: of which cases, and without what these patterns find."""

    store: Store = Store.ALL
    patterns: tuple[str, ...] = ()


def parse_pattern(text: str) -> str:
    """A regular expression as JavaScript has them, without slashes and flags. Raises ValueError with what is wrong."""
    from eval_gate.text.javascript.regex import pattern_problem

    problem = pattern_problem(text)
    if problem is not None:
        raise ValueError(f"{quoted_name(text)} is not a regular expression: {problem}")
    return text


class ResultsFormat(StrEnum):
    """Whose results are judged."""

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
    """How results that another tool made are read, and how that tool is asked once more."""

    format: ResultsFormat = setting(
        ResultsFormat.AUTO,
        f"Whose results they are: {', '.join(ResultsFormat)}.",
        key="resultsFormat",
        metavar="FORMAT",
        compared_as="the target",
    )
    scores: tuple[ScoreRule, ...] = setting(
        (),
        "From where on a scorer's score passes, such as policy>=0.7.",
        key="scores",
        flag="--score",
        metavar="RULE",
        each=parse_rule,
        limits={"max_length": 100},
        compared_as="the rules",
    )
    rerun_command: Text | None = setting(
        None,
        "Command that runs cases in doubt again; {ids}, {id}, {ids_regex}, {ids_file} and {output} stand for them.",
        metavar="CMD",
        each=parse_rerun_command,
    )


@dataclass(frozen=True, slots=True)
class RunConfig:
    """Everything a run can be told in its file, with defaults (CONTRACTS, section 1).

    Paths are relative to the working directory, not to the configuration file.
    """

    evals: tuple[Place, ...] = setting(
        ("evals",),
        "Eval files, folders and globs, relative to the working directory.",
        flag="PATHS",
        limits={"min_length": 1, "max_length": 1_000},
        no_effect="cases are compared one by one, and a case that is gone is said",
    )
    target: TargetChoice = field(default_factory=TargetChoice)
    control: ControlChoice = field(default_factory=ControlChoice)
    judge: Text | None = setting(
        None,
        "Who grades where a case asks for a judge: a target by name, or provider:model.",
        metavar="NAME",
        compared_as="the judges of a case",
    )
    rubric: RubricMode = setting(
        RubricMode.AFTER_PASS,
        "When rubric cases are run: always, after-pass (unless others fail the gate) or never.",
        metavar="WHEN",
        no_effect="a rubric case that it leaves out has no result, which is never a pass",
    )
    cache: CacheMode = setting(
        CacheMode.OFF,
        "Recorded answers of models: off, record, replay (never ask) or auto.",
        metavar="MODE",
        no_effect="a response is replayed only for the same set-up; others' recordings are said by themselves",
    )
    seed_manifest_path: Place | None = setting(
        None,
        f"Stable values for {{{{seed:…}}}} tokens; {DEFAULT_SEED_MANIFEST} if it exists.",
        flag="--seed-manifest",
        metavar="FILE",
        compared_as="the seed values of a case",
    )
    snapshot_enabled: bool | None = setting(
        None,
        "Whether to capture the snapshot; on when a path or command is given.",
        input=False,
        compared_as="the source of the snapshot",
    )
    snapshot_path: Place | None = setting(
        None,
        "JSON file or URL with current values for {{snapshot:…}} tokens.",
        flag="--snapshot",
        metavar="FILE-OR-URL",
        compared_as="the source of the snapshot",
    )
    snapshot_command: Text | None = setting(
        None,
        "Command that prints the snapshot as JSON, run immediately before the evals.",
        metavar="CMD",
        input=False,
        compared_as="the source of the snapshot",
    )
    pass_env: tuple[Text, ...] = setting(
        (),
        "Variables that commands of targets, judges and the snapshot are given, beside PATH and the like.",
        metavar="NAME",
    )
    tool_registry_path: Place | None = setting(
        None,
        "Tool definitions: a JSON file, a folder or barrel of tool files, an MCP server's URL, or .mcp.json.",
        flag="--tool-registry",
        metavar="FILE-DIR-OR-URL",
    )
    strict: bool = setting(
        False,
        "Unknown keys, empty `expect` and cases that check nothing are errors.",
    )
    limits: RunLimits = field(default_factory=RunLimits)
    redact: tuple[Text, ...] = setting(
        (),
        "Regular expressions: what they find is *** in all that is stored of questions, answers, calls and judgements.",
        option=False,
        input=False,
        each=parse_pattern,
        limits={"max_length": 50},
        no_effect="it is what is kept of a result",
    )
    baseline: Place | None = setting(
        None,
        "Earlier run to compare with: run id, results file, run folder, folder of runs, zip or latest.",
        metavar="REF",
        help="Earlier run to compare with: run id, results file, run folder, folder of runs, zip, or latest, which is"
        " the newest that passed its gate.",
        input=False,
        no_effect="it says with what a result is compared",
    )
    history: Place | None = setting(
        None,
        "Ledger of earlier runs, or a folder of runs; else what lies beside the baseline.",
        metavar="REF",
        input=False,
        no_effect="it says with what a result is compared",
    )
    policy: Policy = field(default_factory=Policy)
    results: ResultsChoice = field(default_factory=ResultsChoice)
    output_dir: Place = setting(
        "evals/results",
        "Where results are written.",
        metavar="DIR",
        no_effect="it is where results are written",
    )
    reports: tuple[ReportRequest, ...] = setting(
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
    junit: JunitFailures = setting(
        JunitFailures.BLOCKING,
        "Which cases are failures in a JUnit report: blocking (what keeps the gate from passing) or all that fail.",
        metavar="WHICH",
        input=False,
        no_effect="it is what is written of a result",
    )
    exports: tuple[ReportRequest, ...] = setting(
        (),
        "Results for other programs: FORMAT=FILE, where agentv is one JSON record a line.",
        flag="--export",
        metavar="FORMAT=FILE",
        each=parse_export,
        no_effect="it is what is written of a result",
    )

    @property
    def keeping(self) -> Keeping:
        """How much of what is said may be stored."""
        return Keeping(self.limits.store, self.redact)

    @property
    def files(self) -> tuple[ReportRequest, ...]:
        """All that is to be written beside the record."""
        return (*self.reports, *self.exports)


SETTINGS: Final[Mapping[str, Setting]] = {row.key: row for row in settings_of(RunConfig)}
"""Every row by its key."""
RULES: Final = frozenset(row.key for row in settings_of(Policy))
"""The keys of the rules that a finished run is held against, and of how sure a regression has to be."""
RECORDED_RULES: Final[Mapping[str, str]] = {
    **{row.key: row.name for row in settings_of(Policy)},
    **{row.key: "control" for row in settings_of(ControlChoice)},
}
"""What the record of a run calls each rule, by its key, those apart that say how cases are measured: trials, scores."""
OF_OTHER_TOOLS: Final = frozenset(row.key for row in settings_of(ResultsChoice))
"""The keys that only results of other tools have use for."""
