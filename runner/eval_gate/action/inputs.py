"""Table of the action's inputs and outputs: the source for both action.yml, parser and docs/action.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, TypeVar

from eval_gate.config.selection import Selection, parse_shard
from eval_gate.config.setting import LARGEST
from eval_gate.config.settings import KEYS, SETTINGS
from eval_gate.errors import PAGES, GateError, Problem, find_nearest, format_suggestion
from eval_gate.files.file_paths import find_path_problem
from eval_gate.github.artifacts.artifact_service import FORBIDDEN_IN_NAMES
from eval_gate.github.waiver_comments import DEFAULT_LABEL
from eval_gate.model.result import Shard
from eval_gate.struct import FrozenStruct
from eval_gate.text.quoting import quote_value
from eval_gate.text.secret import Secret

Word = TypeVar("Word", bound=StrEnum)
INPUT_PREFIX: Final = "INPUT_"
DEFAULT_ARTIFACT: Final = "eval-gate-results"
DEFAULT_CHECK: Final = "eval-gate"
AUTO: Final = "auto"
SET_INPUT: Final = "set"
"""The input that takes settings without an input of their own."""
NONE: Final = "none"
_RESERVED: Final = frozenset({"entrypoint", "args"})
"""Inputs that belong to the runner, which passes them on all the same."""
NOT_IN_CONTAINER: Final = (
    "the container of this action does not have your tools: use the action eval-gate/eval-gate/host, or run"
    " `eval-gate check` in an earlier step and set `results: latest`"
)
_VOLATILE_INPUTS: Final = frozenset(
    {"github-token", "agent-endpoint", "base-agent-endpoint", "base-url", "results", "baseline"}
    | {"base-agent", "base-agent-command"}
)
"""Inputs that a job may make anew in each attempt, or that differ in the second of two steps: they tell no leg."""
_VOLATILE_KEYS: Final = frozenset({"outputDir", "baseAgentTarget"})
"""The same of settings in `set`."""


class ActionInput(FrozenStruct):
    """Input of the action. With a `key` it is a setting; empty keeps the value of file and defaults."""

    name: str
    description: str
    default: str = ""
    key: str | None = None
    host_only: bool = False
    """Whether the container has no use for it: its action.yml has no such input, and refuses it."""


class ActionOutput(FrozenStruct):
    """Output of the step."""

    name: str
    description: str


_HOST_ONLY: Final = frozenset({"rerunCommand"})
"""Settings of commands that need the tools of the workflow's author."""
_OWN_INPUT: Final = frozenset(
    {
        *("evals", "agentEndpoint", "target", "targets", "model", "baseUrl", "baseAgentEndpoint"),
        *("seedManifestPath", "snapshotPath", "toolRegistryPath", "resultsFormat", "rerunCommand", "baseAgentCommand"),
        *("failOn", "minPassRate", "reruns", "trials", "passes", "concurrency", "timeoutMs", "maxCostUsd"),
        *("rerunBudget", "warmUp"),
    }
)
"""The settings with an input of their own: what differs between workflows of one repository. All others stand in the
configuration file, or in the input `set`."""


def _iter_setting_inputs() -> Iterator[ActionInput]:
    """Yield an action input for each setting that has one, with the setting's description."""
    for row in SETTINGS.values():
        if row.key in _OWN_INPUT:
            default = row.default_in_action
            text = (
                f"{row.description} Default: the configuration file's, or {default}."
                if default
                else row.full_description
            )
            yield ActionInput(row.input_name, text, key=row.key, host_only=row.key in _HOST_ONLY)


INPUTS: Final = (
    ActionInput(
        "config", "Configuration file. Default: the first eval-gate.yaml, .yml or .json from the workspace upward."
    ),
    *_iter_setting_inputs(),
    ActionInput(
        SET_INPUT,
        "Other keys of the configuration file, one per line, such as `mustPass: refund-*`; they override the file.",
    ),
    ActionInput(
        "policy-from",
        "Configuration file whose policy applies to a pull request or merge group: head (its own) or base (that of the"
        " base branch, always for forks). Inputs override both.",
        "head",
    ),
    ActionInput(
        "secrets-for",
        "Targets of a pull request that get variables such as keys: base (those that the base branch defines in the"
        " same way) or head (all). At a manual start, head also allows files that a step wrote (docs/action.md).",
        "base",
    ),
    ActionInput(
        "base-agent",
        "Step in which the base agent runs: now, or later (this step fails without publishing a result that the base"
        " agent may clear, and a second step with `results: latest` runs it; docs/action.md).",
        "now",
    ),
    ActionInput("waive-label", "Label of pull requests on which waivers in comments count.", DEFAULT_LABEL),
    ActionInput("case", "Globs of case ids, separated by commas. Default: all cases."),
    ActionInput("tag", "Tags of cases to run, separated by commas. Default: all cases."),
    ActionInput("tier", "Tiers of suites to run, separated by commas. Default: all suites."),
    ActionInput(
        "shard", "Shard to run, as I/N: the I-th of N equal parts of the cases. `eval-gate merge` joins the results."
    ),
    ActionInput("github-token", "Token to read the baseline and to publish.", "${{ github.token }}"),
    ActionInput(
        "results",
        "Finished result to compare and publish, without a run: a file or folder of a run, `latest`, or files, folders"
        " and patterns with results of another tool, one per line (docs/other-tools.md).",
    ),
    ActionInput(
        "baseline",
        "Baseline to compare with: auto (the nearest trusted artifact of the baseline branch), a path, the number of a"
        " workflow run, a run id, or none.",
        AUTO,
    ),
    ActionInput(
        "baseline-branch",
        "Branch whose runs are baselines; `base` is the base branch of the pull request or merge queue. Default: the"
        " default branch.",
    ),
    ActionInput(
        "baseline-workflow", "Workflow files whose runs are baselines, separated by commas. Default: this workflow."
    ),
    ActionInput("artifact-name", "Name of the artifact with the result.", DEFAULT_ARTIFACT),
    ActionInput(
        "upload",
        "Store the result, which is the next baseline, and the report page as artifacts of this run.",
        "true",
    ),
    ActionInput(
        "comment",
        "Runs that write a comment: always, changes, failures or never. An existing comment is always updated.",
        "always",
    ),
    ActionInput(
        "comment-key",
        "Name that separates the comment, artifact and check run of several gates. Default: from workflow, job, config"
        " and artifact name.",
    ),
    ActionInput("check-run", "Name of the check run, or empty for none.", DEFAULT_CHECK),
    ActionInput(
        "drift-issue",
        "Open, update and close an issue when the default branch gets worse over several runs; needs `issues: write`."
        " The job summary always shows it.",
        "false",
    ),
    ActionInput("annotations", "Annotate failing cases in the eval file.", "true"),
    ActionInput("max-baseline-age-days", "Days after which a baseline is stale.", "14"),
    ActionInput("max-baseline-commits", "Commits of the branch after which a baseline is stale.", "50"),
)
OUTPUTS: Final = (
    ActionOutput("verdict", "passed, failed or inconclusive."),
    ActionOutput("exit-code", "0 passed, 1 failed, 2 usage error, 3 inconclusive, 130 and 143 interrupted."),
    ActionOutput("total", "Cases of the run."),
    ActionOutput("passed", "Cases that passed."),
    ActionOutput("failed", "Cases with a wrong response."),
    ActionOutput(
        "errored",
        "Cases without a score: agent errors (also those that are regressions), agent unreachable, evaluation errors.",
    ),
    ActionOutput("regressions", "Regressions, without waived ones; empty without a baseline."),
    ActionOutput(
        "new-passes", "New passes: cases that failed in the baseline and pass in this run; empty without a baseline."
    ),
    ActionOutput("reused", "Cases of suites whose result was reused: nothing that they measure has changed."),
    ActionOutput("stale", "Stale suites: their tools changed after they were generated."),
    ActionOutput("flaky", "Flaky cases: they passed and failed with the same code."),
    ActionOutput(
        "pass-rate",
        "passed / (passed + failed) without quarantined cases, from 0 to 1; empty when no case has a score.",
    ),
    ActionOutput("cost-usd", "Known cost; empty when unknown."),
    ActionOutput("result-path", "Path of the run result, relative to the workspace."),
    ActionOutput("report-path", "Path of the HTML report, relative to the workspace."),
    ActionOutput(
        "trend-path",
        "On the default branch: path of the folder with the page over time and the badge, relative to the workspace;"
        " empty otherwise.",
    ),
    ActionOutput("run-id", "Id of the run."),
    ActionOutput("baseline-run-id", "Id of the baseline run; empty without a baseline."),
    ActionOutput("baseline-sha", "Commit of the baseline; empty when unknown."),
    ActionOutput(
        "needs-base-agent", "true if a second step has to run the base agent (`base-agent: later`), else false."
    ),
    ActionOutput(
        "suspects",
        "Case ids of the regressions that the base agent has to run, at most 100, as a JSON list; else empty.",
    ),
    ActionOutput("comment-url", "URL of the comment; empty when none was written."),
    ActionOutput("check-run-url", "URL of the check run; empty when none was written."),
    ActionOutput(
        "drift", "On the default branch: what got worse over several runs, separated by commas; empty if nothing did."
    ),
    ActionOutput("drift-issue-url", "URL of the drift issue; empty without one."),
    ActionOutput("artifact-id", "Id of the stored artifact; empty when none was stored."),
    ActionOutput("report-url", "URL that opens the HTML report in a browser; empty when it was not stored separately."),
)


class TrustedSide(StrEnum):
    """Side of a pull request whose files are trusted: its own branch or its base branch."""

    HEAD = "head"
    BASE = "base"


class BaseAgentTiming(StrEnum):
    """When the base agent is run: in this step or in a second one."""

    NOW = "now"
    LATER = "later"


class CommentMode(StrEnum):
    """When a comment is created. An existing comment is updated in every mode."""

    ALWAYS = "always"
    CHANGES = "changes"
    FAILURES = "failures"
    NEVER = "never"


class StepSettings(FrozenStruct):
    """Parsed inputs of one step. `flags` holds the inputs that are configuration keys, as text."""

    flags: Mapping[str, str]
    config: str | None
    selection: Selection
    token: Secret[str]
    results: str | None
    baseline: str
    baseline_branch: str | None
    baseline_workflows: tuple[str, ...]
    artifact_name: str
    upload: bool
    comment: CommentMode
    comment_key: str | None
    check_run: str | None
    drift_issue: bool
    annotations: bool
    max_baseline_age_days: float
    max_baseline_commits: int
    waive_label: str = DEFAULT_LABEL
    leg: str = ""
    """All inputs that are the same in every attempt of one leg, in one text."""
    policy_from: TrustedSide = TrustedSide.HEAD
    secrets_for: TrustedSide = TrustedSide.BASE
    base_agent: BaseAgentTiming = BaseAgentTiming.NOW
    on_host: bool = False
    """Whether this is the machine of the job, and not our container."""


def read_inputs(variables: Mapping[str, str], *, on_host: bool = False) -> StepSettings:
    """Read the settings of this step. Raises GateError `invalid-input` with the problems of all inputs at once."""
    reader = _InputReader(variables, on_host=on_host)
    settings = _build_settings(reader, variables, on_host=on_host)
    if reader.problems:
        raise GateError(
            "invalid-input",
            "the inputs of this step are not valid",
            f"correct each input; {PAGES}/action-inputs.md lists them",
            problems=reader.problems,
        )
    return settings


def guess_inputs(variables: Mapping[str, str], *, on_host: bool = False) -> StepSettings:
    """Read the settings with defaults in place of invalid inputs: good enough to publish that these are invalid."""
    return _build_settings(_InputReader(variables, on_host=on_host), variables, on_host=on_host)


def _build_settings(reader: _InputReader, variables: Mapping[str, str], *, on_host: bool) -> StepSettings:
    return StepSettings(
        flags={one.key: value for one in INPUTS if one.key and (value := reader.read_text(one.name))} | reader.settings,
        config=reader.read_path_lines("config") or None,
        selection=Selection(
            reader.read_list("case"), reader.read_list("tag"), reader.read_list("tier"), reader.read_shard()
        ),
        token=Secret(reader.read_text("github-token") or variables.get("GITHUB_TOKEN", "")),
        results=reader.read_path_lines("results") or None,
        baseline=reader.read_text("baseline") or AUTO,
        baseline_branch=reader.read_text("baseline-branch") or None,
        baseline_workflows=reader.read_list("baseline-workflow"),
        artifact_name=reader.read_artifact_name(),
        upload=reader.read_flag("upload"),
        comment=reader.read_choice("comment", CommentMode),
        comment_key=reader.read_text("comment-key") or None,
        check_run=reader.read_text("check-run", keep_empty=True) or None,
        drift_issue=reader.read_flag("drift-issue"),
        annotations=reader.read_flag("annotations"),
        policy_from=reader.read_choice("policy-from", TrustedSide),
        secrets_for=reader.read_choice("secrets-for", TrustedSide),
        base_agent=reader.read_choice("base-agent", BaseAgentTiming),
        waive_label=reader.read_text("waive-label") or DEFAULT_LABEL,
        max_baseline_age_days=reader.read_number("max-baseline-age-days"),
        max_baseline_commits=int(reader.read_number("max-baseline-commits")),
        leg=reader.build_leg(),
        on_host=on_host,
    )


_BY_INPUT: Final = {row.input_name: row.key for row in SETTINGS.values() if row.input and row.key not in _OWN_INPUT}
"""The settings that `set` takes, by what their input would be called."""


def format_input_name(key: str) -> str:
    """Format a setting as a workflow writes it: `timeout-ms`, or `set: mustPass`."""
    return SETTINGS[key].input_name if key in _OWN_INPUT else f"{SET_INPUT}: {key}"


def _describe_unknown_input(name: str) -> str:
    if name in _BY_INPUT:
        return f"unknown input: set `{_BY_INPUT[name]}: …` in the input `{SET_INPUT}` or in the configuration file"
    return f"unknown input{format_suggestion(name, [one.name for one in INPUTS])}"


def _find_line_problem(key: str, colon: str, value: str, earlier: Mapping[str, str]) -> str | None:
    """Describe the problem of one line of the input `set`, or return None if the line is valid."""
    if not colon or not key:
        return f"{quote_value(key or value)} is not a line such as `key: value`"
    if key in _OWN_INPUT:
        return f"{key} has its own input: use `{SETTINGS[key].input_name}`"
    if key not in _BY_INPUT.values():
        near = find_nearest(key, (*_BY_INPUT.values(), *_OWN_INPUT))
        meant = f"the input `{SETTINGS[near].input_name}`" if near in _OWN_INPUT else f'"{near}"'
        suggestion = f" (did you mean {meant}?)" if near else ""
        return f"{quote_value(key)} is not a key that a workflow can set{suggestion}"
    if key in earlier:
        return f"{key} is set twice"
    return None if value else f"{key} has no value"


class _InputReader:
    """Reader of the inputs that collects their problems."""

    def __init__(self, variables: Mapping[str, str], *, on_host: bool) -> None:
        self._defaults = {one.name: one.default for one in INPUTS}
        self._values = {
            name.removeprefix(INPUT_PREFIX).lower(): value
            for name, value in variables.items()
            if name.startswith(INPUT_PREFIX)
        }
        self.problems = [
            Problem(_describe_unknown_input(name), field=name)
            for name in self._values
            if name not in self._defaults and name not in _RESERVED
        ]
        self.settings = self._parse_set_lines()
        """The lines of `set` by configuration key."""
        if not on_host:
            fields = [one.name for one in INPUTS if one.host_only and self._values.get(one.name, "").strip()]
            fields += [f"{SET_INPUT}: {key}" for key in self.settings if key in _HOST_ONLY]
            self.problems += [Problem(NOT_IN_CONTAINER, field=name) for name in fields]

    def build_leg(self) -> str:
        """Format the inputs that distinguish the legs of one job as text."""
        values = {name: self.read_text(name) for name in self._defaults.keys() - _VOLATILE_INPUTS - {SET_INPUT}}
        values |= {f"{SET_INPUT}: {key}": self.settings[key] for key in self.settings.keys() - _VOLATILE_KEYS}
        return json.dumps(values, sort_keys=True)

    def _parse_set_lines(self) -> dict[str, str]:
        settings = dict[str, str]()
        for number, line in enumerate(self.read_text(SET_INPUT).splitlines(), 1):
            key, colon, value = (part.strip() for part in line.partition(":"))
            if not line.strip():
                continue
            key = KEYS.get(key, key)
            if problem := _find_line_problem(key, colon, value, settings):
                self.problems.append(Problem(f"line {number}: {problem}", field=SET_INPUT))
            else:
                settings[key] = value
        return settings

    def read_text(self, name: str, *, keep_empty: bool = False) -> str:
        """Return the stripped value of an input; its default if it is empty, or with `keep_empty` if it is missing."""
        value = self._values.get(name)
        default = self._defaults[name]
        if default.startswith("${{"):  # an expression: the runner puts its value in
            default = ""
        if value is None or (not value.strip() and not keep_empty):
            return default
        return value.strip()

    def read_path_lines(self, name: str) -> str:
        """Return the value of an input whose lines are paths; a line that is no valid path is recorded as a problem."""
        text = self.read_text(name)
        for line in text.splitlines():
            if why := find_path_problem(line.strip()):
                self.problems.append(Problem(f'"{line.strip()[:80]}" {why}', field=name))
        return text

    def read_list(self, name: str) -> tuple[str, ...]:
        """Read the parts between commas and line breaks."""
        return tuple(part.strip() for part in self.read_text(name).replace("\n", ",").split(",") if part.strip())

    def read_flag(self, name: str) -> bool:
        """Read `true` or `false`, in the spellings of YAML; any other value is recorded as a problem."""
        text = self.read_text(name)
        if text not in {"true", "True", "TRUE", "false", "False", "FALSE"}:
            self.problems.append(Problem(f"{quote_value(text)} is neither true nor false", field=name))
        return text.lower() == "true"

    def read_number(self, name: str) -> float:
        """Read a number from 0 to `LARGEST`; any other value is recorded as a problem, and read as 0."""
        try:
            number = float(self.read_text(name))
        except ValueError:
            number = -1
        if not 0 <= number <= LARGEST:
            message = f"{quote_value(self.read_text(name))} is not a number from 0 to {LARGEST:,}"
            self.problems.append(Problem(message, field=name))
            return 0
        return number

    def read_choice(self, name: str, kind: type[Word]) -> Word:
        """Read one of these words; any other value is recorded as a problem, and read as the first word."""
        text, words = self.read_text(name), [word.value for word in kind]
        if text not in words:
            message = f"{quote_value(text)} is not known{format_suggestion(text, words)}; allowed: {', '.join(words)}"
            self.problems.append(Problem(message, field=name))
        return kind(text if text in words else words[0])

    def read_shard(self) -> Shard | None:
        """Read a shard such as `2/4`; any other value is recorded as a problem."""
        try:
            return parse_shard(self.read_text("shard") or None)
        except GateError as error:
            self.problems.append(Problem(error.message, field="shard"))
            return None

    def read_artifact_name(self) -> str:
        """Return the artifact name. A name that the artifact service rejects is recorded as a problem."""
        name = self.read_text("artifact-name")
        if FORBIDDEN_IN_NAMES & set(name):
            self.problems.append(Problem('must not contain any of " : < > | * ? \\ /', field="artifact-name"))
        return name
