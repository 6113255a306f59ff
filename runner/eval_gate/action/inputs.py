"""Table of the action's inputs and outputs: the source for both action.yml, parser and docs/action.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final, TypeVar

from eval_gate.config.selection import Selection, parse_shard
from eval_gate.config.setting import LARGEST
from eval_gate.config.settings import SETTINGS
from eval_gate.errors import GateError, Problem, format_suggestion
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
    "this action's container has none of your tools: use the action eval-gate/eval-gate/host, or `eval-gate check` in a"
    " step before, and `results: latest`"
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
"""Settings of commands that need the tools of whoever wrote the workflow."""
_OWN_INPUT: Final = frozenset(
    {
        *("evals", "agentEndpoint", "target", "targets", "model", "baseUrl", "baseAgentEndpoint"),
        *("seedManifestPath", "snapshotPath", "toolRegistryPath", "resultsFormat", "rerunCommand", "baseAgentCommand"),
        *("failOn", "minPassRate", "reruns", "trials", "concurrency", "timeoutMs", "maxCostUsd", "rerunBudget"),
    }
)
"""The settings with an input of their own: what differs between workflows of one repository. All others stand in the
configuration file, or in the input `set`."""


def _iter_setting_inputs() -> Iterator[ActionInput]:
    """Yield an action input for each setting that has one, with the setting's description."""
    for row in SETTINGS.values():
        if row.key in _OWN_INPUT:
            default = row.default_in_action
            otherwise = f" Empty: what the configuration file says, else {default}." if default else ""
            yield ActionInput(row.input_name, row.description + otherwise, key=row.key, host_only=row.key in _HOST_ONLY)


INPUTS: Final = (
    ActionInput("config", "Configuration file; the first eval-gate.yaml, .yml or .json from the workspace upward."),
    *_iter_setting_inputs(),
    ActionInput(
        SET_INPUT,
        "Other keys of the configuration file, one a line, as in `mustPass: refund-*`. They win over the file.",
    ),
    ActionInput(
        "policy-from",
        "Whose configuration file says what fails a pull request or merge group: head, its own; or base, that of the"
        " branch it is merged into, as always for forks. Inputs win over both.",
        "head",
    ),
    ActionInput(
        "secrets-for",
        "Which targets of a pull request are given variables such as keys: base, those that the branch it is merged"
        " into describes alike; or head, all that it describes itself. At a manual start, head also lets files count"
        " that a step has made (docs/action.md).",
        "base",
    ),
    ActionInput(
        "base-agent",
        "When the base branch's agent is asked: now, or later. Later, this step publishes nothing of a red result that"
        " may turn by it, and fails; a second step with `results: latest` asks it (docs/action.md).",
        "now",
    ),
    ActionInput("waive-label", "Label of pull requests on which acceptances in comments count.", DEFAULT_LABEL),
    ActionInput("case", "Only cases whose ids match these globs, separated by commas."),
    ActionInput("tag", "Only cases with one of these tags, separated by commas."),
    ActionInput("tier", "Only suites of these tiers, separated by commas."),
    ActionInput("shard", "Only the I-th of N equal parts of the cases, as I/N; `eval-gate merge` joins the results."),
    ActionInput("github-token", "Token for reading the baseline and for publishing.", "${{ github.token }}"),
    ActionInput(
        "results",
        "A finished result to compare and publish instead of running anything: a run's file or folder, or what another"
        " tool wrote (docs/results-of-other-tools.md); of these several, one a line.",
    ),
    ActionInput(
        "baseline",
        "auto: the nearest trusted artifact of the baseline branch; or a path, a workflow run's number, a run id; or"
        " none.",
        AUTO,
    ),
    ActionInput(
        "baseline-branch",
        "Branch whose runs make baselines; base is the one that the change is merged into, of a merge queue too. Empty:"
        " the default branch.",
    ),
    ActionInput("baseline-workflow", "Workflow files whose runs make baselines, separated by commas; this workflow."),
    ActionInput("artifact-name", "Name of the artifact with the result.", DEFAULT_ARTIFACT),
    ActionInput(
        "upload",
        "Whether to store the result as an artifact of this run, the next baseline, and its page as another.",
        "true",
    ),
    ActionInput(
        "comment",
        "When to write the comment: always, changes, failures or never. One that is there is updated.",
        "always",
    ),
    ActionInput(
        "comment-key",
        "What tells several gates apart: comment, artifact, check run; else workflow, job, config and artifact name.",
    ),
    ActionInput("check-run", "Name of the check run; empty for none.", DEFAULT_CHECK),
    ActionInput(
        "drift-issue",
        "Whether an issue is opened, kept up to date and closed when the default branch gets worse over its runs; needs"
        " issues: write. The job summary says it in any case.",
        "false",
    ),
    ActionInput("annotations", "Whether to annotate failing cases on their line of the eval file.", "true"),
    ActionInput("max-baseline-age-days", "Days after which a baseline is called stale.", "14"),
    ActionInput("max-baseline-commits", "Commits of the branch after which a baseline is called stale.", "50"),
)
OUTPUTS: Final = (
    ActionOutput("verdict", "passed, failed, or inconclusive where nothing could be decided."),
    ActionOutput("exit-code", "0 passed, 1 failed, 2 usage, 3 could not decide, 130 and 143 interrupted."),
    ActionOutput("total", "Cases of the run."),
    ActionOutput("passed", "Cases that passed."),
    ActionOutput("failed", "Cases that were answered, and wrong."),
    ActionOutput("errored", "Cases that could not be judged; crashes are among them, also those that are regressions."),
    ActionOutput(
        "regressions", "Cases that usually pass and fail or crash here, accepted ones apart; empty without baseline."
    ),
    ActionOutput("new-passes", "Cases that failed before and pass here; empty without a baseline."),
    ActionOutput("stale", "Suites whose evals are older than what they speak about."),
    ActionOutput("flaky", "Cases with passes and failures for the same code."),
    ActionOutput("pass-rate", "passed / (passed + failed) without quarantine, 0 to 1; empty when nothing was judged."),
    ActionOutput("cost-usd", "Cost as far as known; empty when unknown."),
    ActionOutput("result-path", "The run record, relative to the workspace."),
    ActionOutput("report-path", "The HTML report, relative to the workspace."),
    ActionOutput("run-id", "Id of the run."),
    ActionOutput("baseline-run-id", "Id of the run it was compared with; empty without one."),
    ActionOutput("baseline-sha", "Commit of the baseline; empty when unknown."),
    ActionOutput("needs-base-agent", "true where `base-agent: later` left a red result to a second step, else false."),
    ActionOutput("suspects", "Of such a result the ids of the regressions, at most 100, as a JSON list; else empty."),
    ActionOutput("comment-url", "The comment; empty when none was written."),
    ActionOutput("check-run-url", "The check run; empty when none was written."),
    ActionOutput(
        "drift", "On the default branch: what got worse over its runs, separated by commas; empty for nothing."
    ),
    ActionOutput("drift-issue-url", "The issue about that; empty when there is none."),
    ActionOutput("artifact-id", "The stored artifact; empty when none was stored."),
    ActionOutput("report-url", "Where the HTML report opens in a browser; empty when it was not stored by itself."),
)


class TrustedSide(StrEnum):
    """Side of a pull request whose files are trusted: its own branch or its base branch."""

    HEAD = "head"
    BASE = "base"


class BaseAgentTiming(StrEnum):
    """When the base agent is run: in this step or in a second one."""

    NOW = "now"
    LATER = "later"
    """By a second step."""


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
    """Which cases are run."""
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
    """Read the settings of this step from its inputs.

    Raises GateError `invalid-input` with the problems of all inputs at once.
    """
    reader = _InputReader(variables, on_host=on_host)
    settings = _build_settings(reader, variables, on_host=on_host)
    if reader.problems:
        raise GateError(
            "invalid-input",
            "the inputs of this step are not valid",
            "action.yml lists every input with its default",
            problems=reader.problems,
        )
    return settings


def guess_inputs(variables: Mapping[str, str], *, on_host: bool = False) -> StepSettings:
    """Read the settings of a step despite invalid inputs, with defaults in their place.

    The result is good enough to publish that the inputs are invalid.
    """
    return _build_settings(_InputReader(variables, on_host=on_host), variables, on_host=on_host)


def _build_settings(reader: _InputReader, variables: Mapping[str, str], *, on_host: bool) -> StepSettings:
    return StepSettings(
        flags={one.key: value for one in INPUTS if one.key and (value := reader.read_text(one.name))}
        | reader.get_settings(),
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
    """How a setting is written in a workflow: `timeout-ms`, or `set: mustPass`."""
    return SETTINGS[key].input_name if key in _OWN_INPUT else f"{SET_INPUT}: {key}"


def _describe_unknown_input(name: str) -> str:
    if name in _BY_INPUT:
        return f"there is no such input: `{_BY_INPUT[name]}: …` is a line of the input `{SET_INPUT}`, or of the file"
    return f"there is no such input{format_suggestion(name, [one.name for one in INPUTS])}"


def _find_line_problem(key: str, colon: str, value: str, before: Mapping[str, str]) -> str | None:
    """Describe the problem of one line of the input `set`, or return None if the line is valid."""
    if not colon or not key:
        return f"{quote_value(key or value)} is not written as `key: value`"
    if key in _OWN_INPUT:
        return f"{key} has an input of its own: `{SETTINGS[key].input_name}`"
    if key not in _BY_INPUT.values():
        return (
            f"{quote_value(key)} is no key of the configuration that a workflow "
            f"sets{format_suggestion(key, _BY_INPUT.values())}"
        )
    if key in before:
        return f"{key} stands there twice"
    return None if value else f"{key} has no value"


class _InputReader:
    """Reads one input after the other and keeps what is wrong with them."""

    def __init__(self, variables: Mapping[str, str], *, on_host: bool) -> None:
        self._defaults = {one.name: one.default for one in INPUTS}
        self._given = {
            name.removeprefix(INPUT_PREFIX).lower(): value
            for name, value in variables.items()
            if name.startswith(INPUT_PREFIX)
        }
        self.problems = [
            Problem(_describe_unknown_input(name), field=name)
            for name in self._given
            if name not in self._defaults and name not in _RESERVED
        ]
        self._settings = self._parse_set_lines()
        if not on_host:
            here = [one.name for one in INPUTS if one.host_only and self._given.get(one.name, "").strip()]
            here += [f"{SET_INPUT}: {key}" for key in self._settings if key in _HOST_ONLY]
            self.problems += [Problem(NOT_IN_CONTAINER, field=name) for name in here]

    def build_leg(self) -> str:
        """Format the inputs that distinguish the legs of one job as text."""
        values = {name: self.read_text(name) for name in self._defaults.keys() - _VOLATILE_INPUTS - {SET_INPUT}}
        values |= {f"{SET_INPUT}: {key}": self._settings[key] for key in self._settings.keys() - _VOLATILE_KEYS}
        return json.dumps(values, sort_keys=True)

    def get_settings(self) -> dict[str, str]:
        """Return the lines of `set` by configuration key."""
        return self._settings

    def _parse_set_lines(self) -> dict[str, str]:
        found = dict[str, str]()
        for number, line in enumerate(self.read_text(SET_INPUT).splitlines(), 1):
            key, colon, value = (part.strip() for part in line.partition(":"))
            if not line.strip():
                continue
            if problem := _find_line_problem(key, colon, value, found):
                self.problems.append(Problem(f"line {number}: {problem}", field=SET_INPUT))
            else:
                found[key] = value
        return found

    def read_text(self, name: str, *, keep_empty: bool = False) -> str:
        """Return the stripped value of an input, or its default if the value is empty.

        With `keep_empty`, only a missing value takes the default.
        """
        given = self._given.get(name)
        default = self._defaults[name]
        if default.startswith("${{"):  # an expression: the runner puts its value in
            default = ""
        if given is None or (not given.strip() and not keep_empty):
            return default
        return given.strip()

    def read_path_lines(self, name: str) -> str:
        """Return the value of an input whose lines are paths or references.

        A line that is not a valid path is recorded as a problem.
        """
        text = self.read_text(name)
        for line in text.splitlines():
            if why := find_path_problem(line.strip()):
                self.problems.append(Problem(f'"{line.strip()[:80]}" {why}', field=name))
        return text

    def read_list(self, name: str) -> tuple[str, ...]:
        """Parts between commas and line breaks."""
        return tuple(part.strip() for part in self.read_text(name).replace("\n", ",").split(",") if part.strip())

    def read_flag(self, name: str) -> bool:
        """Return the value of a boolean input: `true` or `false` in the spellings of YAML.

        Any other value is recorded as a problem.
        """
        text = self.read_text(name)
        if text not in {"true", "True", "TRUE", "false", "False", "FALSE"}:
            self.problems.append(Problem(f"{quote_value(text)} is neither true nor false", field=name))
        return text.lower() == "true"

    def read_number(self, name: str) -> float:
        """Return the value of a number input, from 0 to `LARGEST`.

        Any other value is recorded as a problem and read as 0.
        """
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
        """One of these words; the first of them where it is none."""
        text, words = self.read_text(name), [word.value for word in kind]
        if text not in words:
            message = f"{quote_value(text)} is not known{format_suggestion(text, words)}; allowed: {', '.join(words)}"
            self.problems.append(Problem(message, field=name))
        return kind(text if text in words else words[0])

    def read_shard(self) -> Shard | None:
        """`2/4`."""
        try:
            return parse_shard(self.read_text("shard") or None)
        except GateError as error:
            self.problems.append(Problem(error.message, field="shard"))
            return None

    def read_artifact_name(self) -> str:
        """Return the artifact name.

        A name that the artifact service rejects is recorded as a problem.
        """
        name = self.read_text("artifact-name")
        if FORBIDDEN_IN_NAMES & set(name):
            self.problems.append(Problem('must not hold any of " : < > | * ? \\ /', field="artifact-name"))
        return name
