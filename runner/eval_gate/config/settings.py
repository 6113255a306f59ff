"""What a run can be told: its keys with their defaults, and which cases are chosen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from eval_gate.errors import GateError
from eval_gate.model.comparison import DEFAULT_SCORE_TOLERANCE
from eval_gate.model.result import Shard

DEFAULT_SEED_MANIFEST = "evals/seed-manifest.json"

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


RULES: Final = frozenset(
    {
        *("failOn", "minPassRate", "maxErrors", "passScore", "scoreTolerance", "maxScoreDrop"),
        *("mustPass", "allowedRegressions", "minCoverage", "acceptedPath"),
        *("maxLatencyIncrease", "maxCostIncrease", "maxTokenIncrease"),
    }
)
"""The keys of the rules that a finished run is held against."""


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
        ("evals",),
        min_length=1,
        max_length=1_000,
        description="Eval files, folders and globs, relative to the working directory.",
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
    pass_env: tuple[Text, ...] = Field(
        (), description="Variables that commands get beside what every program needs: of targets, judges, snapshot."
    )
    tool_registry_path: Text | None = Field(
        None, description="Tool definitions: a JSON file, a folder or barrel of tool files, or an MCP server's URL."
    )
    output_dir: Text = Field("evals/results", description="Where results are written.")
    baseline: Text | None = Field(
        None,
        description="Earlier run to compare with: run id, results file, run folder, folder of runs, zip or latest.",
    )
    baseline_run_id: Text | None = Field(None, description="Run id of the baseline; the same as `baseline`.")
    history: Text | None = Field(
        None, description="Ledger of earlier runs, or a folder of runs; else what lies beside the baseline."
    )
    concurrency: int | None = Field(
        None, ge=1, le=1000, description="Cases in flight at once; the target's `workers`, else 1."
    )
    timeout_ms: int = Field(60_000, gt=0, description="Time limit of one case, retries included, in milliseconds.")
    max_retries: int | None = Field(
        None, ge=0, le=20, description="Tries after the first one that broke; the target's own, else 2."
    )
    trials: int = Field(1, ge=1, le=100, description="How often every case is run.")
    confirm: int = Field(
        0, ge=0, le=100, description="How often a case that looks regressed is run again at most; 0 never does."
    )
    error_rate: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="Accepted chance that a run in which nothing changed shows a regression; with confirm.",
    )
    must_pass: tuple[Text, ...] = Field(
        (), description="Cases that must pass whatever their record: globs over ids, or tag:NAME."
    )
    allowed_regressions: int = Field(0, ge=0, description="Regressions that do not fail the gate.")
    min_coverage: float | None = Field(
        None, ge=0, le=1, description="Least share of all cases that are judged, 0 to 1."
    )
    max_latency_increase: float | None = Field(
        None, ge=0, description="Percent that the typical case may take longer than in the baseline."
    )
    max_cost_increase: float | None = Field(
        None, ge=0, description="Percent that the typical case may cost more than in the baseline."
    )
    max_token_increase: float | None = Field(
        None, ge=0, description="Percent that the typical case may use more tokens than in the baseline."
    )
    accepted_path: Text | None = Field(
        None, description="File with accepted failures and quarantine; .eval-gate/accepted.yaml if it exists."
    )
    fail_on: tuple[Text, ...] = Field(
        ("failures",),
        description="What fails the gate: failures, regressions or never; also stale, flaky, removed, changed,"
        " new-failures.",
    )
    min_pass_rate: float | None = Field(None, ge=0, le=1, description="Least share of judged cases that pass, 0 to 1.")
    pass_score: float = Field(
        1.0, gt=0, le=1, description="Score from which the gate takes a graded case for passing, above 0 to 1; else 1."
    )
    score_tolerance: float = Field(
        DEFAULT_SCORE_TOLERANCE,
        ge=0,
        le=1,
        description="Drop of a graded case's score that is not pointed out; else 0.1.",
    )
    max_score_drop: float | None = Field(
        None, ge=0, le=1, description="Most that a graded case's score may drop against the baseline, 0 to 1."
    )
    max_cost_usd: float | None = Field(
        None, gt=0, description="What a run may cost before no further case is begun, in US dollars."
    )
    max_errors: int = Field(0, ge=0, description="Cases that may end in an execution error.")
    strict: bool = Field(
        default=False, description="Unknown keys, empty `expect` and cases that check nothing are errors."
    )
    store_responses: bool = Field(default=True, description="Keep responses in the results, each cut at 20,000.")
    reports: tuple[Text, ...] = Field((), max_length=100, description="Reports to write: FORMAT or FORMAT=FILE.")
    exports: tuple[Text, ...] = Field(
        (), description="Results for other programs: FORMAT=FILE, where agentv is one JSON record a line."
    )

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
