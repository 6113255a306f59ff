"""The configuration of a run: flags, environment and file become one frozen RunConfig, or one list of problems.

Precedence: flag, then `EVAL_GATE_…` variable, then file, then default. Keys are camelCase; a flag is the same name
in kebab-case, a variable the same in upper case: `timeoutMs`, `--timeout-ms`, `EVAL_GATE_TIMEOUT_MS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic.alias_generators import to_camel, to_snake

from runner.errors import GateError, Problem, did_you_mean
from runner.model.result import Shard
from runner.text.shape import sentence

CONFIG_NAMES = ("eval-gate.yaml", "eval-gate.yml", "eval-gate.json")
FLAGS = {
    "evals": "PATHS",
    "seedManifestPath": "--seed-manifest",
    "snapshotPath": "--snapshot",
    "toolRegistryPath": "--tool-registry",
    "systemPromptPath": "--system-prompt",
    "baselineRunId": "--baseline",
    "reports": "--report",
}
"""Keys whose flag is not simply the same name in kebab-case."""
DEFAULT_SEED_MANIFEST = "evals/seed-manifest.json"
ENVIRONMENT_PREFIX = "EVAL_GATE_"
MAX_CONFIG_BYTES = 1_000_000

Text = Annotated[str, Field(min_length=1)]


class RubricMode(StrEnum):
    """When rubric cases are run."""

    ALWAYS = "always"
    AFTER_PASS = "after-pass"  # noqa: S105 (not a password)
    NEVER = "never"


class CacheMode(StrEnum):
    """What is done with recorded answers of models."""

    OFF = "off"
    RECORD = "record"
    REPLAY = "replay"
    AUTO = "auto"


class RunConfig(BaseModel):
    """Everything a run can be told in its file, with defaults (CONTRACTS, section 1).

    Paths are relative to the working directory, not to the configuration file.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        title="Eval Gate configuration",
    )

    evals: tuple[Text, ...] = Field(
        ("evals",), min_length=1, description="Eval files, folders and globs, relative to the working directory."
    )
    agent_endpoint: Text | None = Field(
        None, description="URL of the agent: POST {message} answers {response, toolCalls}."
    )
    target: Text | None = Field(None, description="Name of the target to evaluate, of those in `targets`.")
    targets: Text | tuple[dict[str, JsonValue], ...] | None = Field(
        None, description="Targets, inline or as the path of a YAML file."
    )
    provider: Text | None = Field(None, description="Evaluate a model of this provider, without an agent.")
    model: Text | None = Field(None, description="The model or deployment; or provider:model in one.")
    base_url: Text | None = Field(None, description="Address of the provider's API, where it is not the vendor's own.")
    system_prompt_path: Text | None = Field(None, description="File with the model's system prompt.")
    judge: Text | None = Field(
        None, description="Who grades where a case asks for a judge: a target by name, or provider:model."
    )
    rubric: RubricMode = Field(
        RubricMode.AFTER_PASS, description="When rubric cases are run: always, after-pass (all others pass) or never."
    )
    cache: CacheMode = Field(
        CacheMode.OFF, description="Recorded answers of models: off, record, replay (never ask) or auto."
    )
    seed_manifest_path: Text | None = Field(
        None, description=f"Stable values for {{{{seed:…}}}} tokens; {DEFAULT_SEED_MANIFEST} if it exists."
    )
    snapshot_enabled: bool | None = Field(
        None, description="Whether to capture the snapshot; on when a path or command is given."
    )
    snapshot_path: Text | None = Field(
        None, description="JSON file or URL with current values for {{snapshot:…}} tokens."
    )
    snapshot_command: Text | None = Field(
        None, description="Command that prints the snapshot as JSON, run immediately before the evals."
    )
    tool_registry_path: Text | None = Field(
        None, description="Tool definitions: a JSON file, a folder or barrel of tool files, or an MCP server's URL."
    )
    output_dir: Text = Field("evals/results", description="Where results are written.")
    baseline: Text | None = Field(
        None, description="Earlier run to compare with: run id, results file, run folder, folder of runs, zip."
    )
    baseline_run_id: Text | None = Field(None, description="Run id of the baseline; the same as `baseline`.")
    concurrency: int | None = Field(
        None, ge=1, le=1000, description="Cases in flight at once; the target's `workers`, else 1."
    )
    timeout_ms: int = Field(60_000, gt=0, description="Time limit of one case, retries included, in milliseconds.")
    max_retries: int | None = Field(
        None, ge=0, le=20, description="Tries after the first one that broke; the target's own, else 2."
    )
    trials: int = Field(1, ge=1, le=100, description="How often every case is run.")
    fail_on: tuple[Text, ...] = Field(
        ("failures",), description="What fails the gate: failures, regressions or never; also stale, flaky."
    )
    min_pass_rate: float | None = Field(None, ge=0, le=1, description="Least share of judged cases that pass, 0 to 1.")
    max_cost_usd: float | None = Field(
        None, gt=0, description="What a run may cost before no further case is begun, in US dollars."
    )
    max_errors: int = Field(0, ge=0, description="Cases that may end in an execution error.")
    strict: bool = Field(
        default=False, description="Unknown keys, empty `expect` and cases that check nothing are errors."
    )
    store_responses: bool = Field(default=True, description="Keep responses in the results, each cut at 20,000.")
    reports: tuple[Text, ...] = Field((), description="Reports to write: FORMAT or FORMAT=FILE.")

    @property
    def baseline_reference(self) -> str | None:
        """The baseline under whichever of its two names it was given."""
        return self.baseline or self.baseline_run_id


@dataclass(frozen=True, slots=True)
class Selection:
    """Which cases of the suites are run; empty means all. Globs match case ids."""

    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    shard: Shard | None = None
    """One part of what is left: every n-th case, so that parts are equally large whatever the files are."""

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.chosen or self.shard)

    @property
    def chosen(self) -> bool:
        """Whether cases are chosen by what they are; a shard only divides."""
        return bool(self.cases or self.tags or self.tiers)


def parse_shard(text: str | None) -> Shard | None:
    """`2/4` is the second of four parts. Raises GateError `unknown-value`."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise GateError("unknown-value", f'shard: "{text[:40]}" is not a part such as 2/4', "I/N with I from 1 to N")
    return Shard(index=int(match[1]), count=int(match[2]))


@dataclass(frozen=True, slots=True)
class _Given:
    """One value and where a person wrote it. `type` is the flag, the variable or the key, as they know it."""

    value: JsonValue
    name: str
    file: str | None = None
    line: int | None = None

    def problem(self, message: str, below: str = "") -> Problem:
        """A problem with this value, or with the part of it at `below`."""
        return Problem(message, file=self.file, line=self.line, field=self.name + below)


def keys() -> dict[str, str]:
    """Every configuration key with its Python name."""
    return {field.alias or name: name for name, field in RunConfig.model_fields.items()}


def flag_of(key: str) -> str:
    """`timeoutMs` is `--timeout-ms` on the command line."""
    return FLAGS.get(key) or "--" + to_snake(key).replace("_", "-")


def variable_of(key: str) -> str:
    """`timeoutMs` is `EVAL_GATE_TIMEOUT_MS` in the environment."""
    return ENVIRONMENT_PREFIX + to_snake(key).upper()


def find_config(start: Path) -> Path | None:
    """The first configuration file from `start` upward, or None."""
    for folder in (start, *start.parents):
        for name in CONFIG_NAMES:
            if (folder / name).is_file():
                return folder / name
    return None


def load_config(
    flags: Mapping[str, JsonValue],
    environment: Mapping[str, str],
    file: Path | None,
    *,
    shown_as: str | None = None,
    defaults: Mapping[str, JsonValue] | None = None,
    name_of: Callable[[str], str] = flag_of,
) -> RunConfig:
    """Join the layers. `flags` maps keys to values that were given; absent ones are not in it.

    `defaults` stand below the file, in place of a key's own default. `name_of` is what the person who gave a flag
    calls it. Raises GateError `invalid-configuration` with every problem of all layers at once.
    """
    problems: list[Problem] = []
    given = {key: _Given(value, key) for key, value in (defaults or {}).items()}
    if file is not None:
        given.update(_from_file(file, shown_as or str(file), problems))
    given.update(_from_environment(environment, problems))
    given.update({key: _Given(value, name_of(key)) for key, value in flags.items()})
    config = _validated(given, problems)
    if config is None or problems:
        raise GateError(
            "invalid-configuration",
            "the configuration is not valid",
            "`eval-gate run --help` and `eval-gate schema config` say what is known",
            problems=problems,
        )
    return config


def _from_file(file: Path, shown_as: str, problems: list[Problem]) -> dict[str, _Given]:
    data = _read(file, shown_as)
    document, line = _parse(data, shown_as, as_json=file.suffix == ".json")
    if document is None:
        return {}
    if not isinstance(document, dict):
        problems.append(Problem("a configuration is a mapping of keys to values", file=shown_as, line=1))
        return {}
    found = {key: _Given(value, key, shown_as, line([key])) for key, value in document.items()}
    known = keys()
    for key, given in found.items():
        if key not in known:
            problems.append(given.problem(f"unknown key{did_you_mean(key, known)}"))
    return {key: given for key, given in found.items() if key in known}


def _parse(data: bytes, shown_as: str, *, as_json: bool) -> tuple[JsonValue, Callable[[Sequence[str | int]], int]]:
    """The document and where its keys stand."""
    if as_json:
        from runner.text.json_source import parse_json

        document, json_positions = parse_json(data, shown_as)
        return document, json_positions.line
    from runner.text.yaml_source import parse_yaml

    document, yaml_positions = parse_yaml(data, shown_as)
    return document, yaml_positions.line


def _read(file: Path, shown_as: str) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise GateError(
            "no-configuration", f"{shown_as} cannot be read: {error.strerror}", "name an existing file with --config"
        ) from error
    if len(data) > MAX_CONFIG_BYTES:
        raise GateError("no-configuration", f"{shown_as} is larger than {MAX_CONFIG_BYTES:,} bytes")
    return data


def _from_environment(environment: Mapping[str, str], problems: list[Problem]) -> dict[str, _Given]:
    known = {variable_of(key): key for key in keys()}
    found = {}
    for variable, text in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        if variable not in known:
            problems.append(Problem(f"unknown variable{did_you_mean(variable, known)}", field=variable))
        elif text != "":  # an empty variable is how workflows say "not set"
            found[known[variable]] = _Given(from_text(known[variable], text), variable)
    return found


def from_text(key: str, text: str) -> JsonValue:
    """A text as the key's kind of value: JSON for numbers and flags, lists by comma or line."""
    kind = str(RunConfig.model_fields[keys()[key]].annotation)
    if "tuple" in kind and not text.lstrip().startswith("["):
        return text if key == "targets" else [part.strip() for part in re.split(r"[,\n]", text) if part.strip()]
    if "str" in kind and "tuple" not in kind:
        return text
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text  # the validation below says what was expected
    return value


def _validated(given: Mapping[str, _Given], problems: list[Problem]) -> RunConfig | None:
    values = {key: one.value for key, one in given.items()}
    if "baseline" in given and "baselineRunId" in given:
        problems.append(given["baselineRunId"].problem("`baseline` is given too: name the baseline once"))
    try:
        return RunConfig.model_validate_json(json.dumps(values))
    except ValidationError as error:
        seen = set()
        for detail in error.errors():
            key, *below = detail["loc"]
            # a union reports each of its members: the first one is enough for a person
            if key not in seen:
                seen.add(key)
                path = "".join(f"[{step}]" for step in below if isinstance(step, int))
                problems.append(given[str(key)].problem(sentence(detail), path))
        return None
