"""The options of `eval-gate run`, one per configuration key, and what of them was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eval_gate.cli.console import Verbosity

if TYPE_CHECKING:
    from pydantic import JsonValue


def _louder(context: typer.Context, value: bool) -> bool:  # noqa: FBT001 (typer's callback shape)
    if value:
        context.obj = Verbosity.VERBOSE
    return value


def _quieter(context: typer.Context, value: bool) -> bool:  # noqa: FBT001 (typer's callback shape)
    if value and context.obj is not Verbosity.VERBOSE:
        context.obj = Verbosity.QUIET
    return value


Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=_louder, help="Say more: every case, every warning and notice.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", callback=_quieter, help="Only the result: no progress.")]
Paths = Annotated[
    list[str] | None, typer.Argument(metavar="PATHS", help="Eval files, folders and globs.  [default: evals]")
]
Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Configuration file.  [default: eval-gate.yaml, .yml or .json, from the working directory upward]",
    ),
]

_TARGET, _DATA, _HOW, _GATE, _OUT, _WHICH = (
    "What is evaluated",
    "What the evals refer to",
    "How it is run",
    "What fails the gate",
    "What is written",
    "Which cases",
)

AgentEndpoint = Annotated[
    str | None, typer.Option(metavar="URL", help="The agent: POST {message} here.", rich_help_panel=_TARGET)
]
TargetName = Annotated[
    str | None, typer.Option(metavar="NAME", help="The target of this name, of --targets.", rich_help_panel=_TARGET)
]
TargetNames = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="NAME",
        help="The target of this name, of --targets. Repeated: each of them, side by side.",
        rich_help_panel=_TARGET,
    ),
]
Targets = Annotated[
    str | None, typer.Option(metavar="FILE", help="YAML file that describes targets.", rich_help_panel=_TARGET)
]
Provider = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Evaluate a model: azure, openai, anthropic, gemini.", rich_help_panel=_TARGET),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The model or deployment; or provider:model.", rich_help_panel=_TARGET),
]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="The provider's API, if not the vendor's.", rich_help_panel=_TARGET)
]
SystemPrompt = Annotated[
    str | None,
    typer.Option("--system-prompt", metavar="FILE", help="The model's system prompt.", rich_help_panel=_TARGET),
]
Judge = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who grades: a target by name, or provider:model.", rich_help_panel=_TARGET),
]
Rubric = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        help="Rubric cases: always, after-pass or never.  [default: after-pass]",
        rich_help_panel=_HOW,
    ),
]
Cache = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="Recorded answers of models: off, record, replay or auto.  [default: off]",
        rich_help_panel=_HOW,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost-usd", metavar="X", help="Begin no further case beyond this cost.", rich_help_panel=_HOW),
]
SeedManifest = Annotated[
    str | None,
    typer.Option(
        "--seed-manifest",
        metavar="FILE",
        help="Values for {{seed:…}}.  [default: evals/seed-manifest.json if it exists]",
        rich_help_panel=_DATA,
    ),
]
Snapshot = Annotated[
    str | None,
    typer.Option(
        "--snapshot", metavar="FILE-OR-URL", help="JSON with current values for {{snapshot:…}}.", rich_help_panel=_DATA
    ),
]
PassEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--pass-env", metavar="NAME", help="A variable that commands get as well. Repeatable.", rich_help_panel=_DATA
    ),
]
SnapshotCommand = Annotated[
    str | None,
    typer.Option(metavar="CMD", help="Command that prints the snapshot, run just before.", rich_help_panel=_DATA),
]
SnapshotEnabled = Annotated[
    bool | None, typer.Option(help="Whether to capture the configured snapshot.", rich_help_panel=_DATA)
]
ToolRegistry = Annotated[
    str | None,
    typer.Option(
        "--tool-registry",
        metavar="FILE-DIR-OR-URL",
        help="Current tool definitions, for staleness checks.",
        rich_help_panel=_DATA,
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        "--workers",
        metavar="N",
        help="Cases in flight at once.  [default: the target's workers, else 1]",
        rich_help_panel=_HOW,
    ),
]
TimeoutMs = Annotated[
    int | None,
    typer.Option(metavar="N", help="Time limit of a case, retries included.  [default: 60000]", rich_help_panel=_HOW),
]
MaxRetries = Annotated[
    int | None,
    typer.Option(metavar="N", help="Tries after one that broke.  [default: the target's or 2]", rich_help_panel=_HOW),
]
Trials = Annotated[
    int | None, typer.Option(metavar="N", help="How often each case is run.  [default: 1]", rich_help_panel=_HOW)
]
Strict = Annotated[
    bool | None,
    typer.Option(help="Make unknown keys and cases that check nothing errors, not warnings.", rich_help_panel=_HOW),
]
Resume = Annotated[
    str | None,
    typer.Option(metavar="RUN_ID", help="Go on with a run that was interrupted.", rich_help_panel=_HOW),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="REF",
        help="Earlier run to compare with: run id, results file, run folder, folder of runs, zip, or latest, "
        "which is the newest that passed its gate.",
        rich_help_panel=_GATE,
    ),
]
History = Annotated[
    str | None,
    typer.Option(
        metavar="REF",
        help="Record of earlier runs: a ledger.json, or a folder of runs.  [default: what lies beside the baseline]",
        rich_help_panel=_GATE,
    ),
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WHAT",
        help="failures, regressions or never; add stale, flaky, removed, changed, new-failures. Repeatable."
        "  [default: failures]",
        rich_help_panel=_GATE,
    ),
]
MinPassRate = Annotated[
    float | None,
    typer.Option(metavar="X", help="Least share of judged cases that pass, 0..1.", rich_help_panel=_GATE),
]
MaxErrors = Annotated[
    int | None,
    typer.Option(metavar="N", help="Cases that may end in an execution error.  [default: 0]", rich_help_panel=_GATE),
]
PassScore = Annotated[
    float | None,
    typer.Option(metavar="X", help="Score that is enough in graded cases, 0..1.  [default: 1]", rich_help_panel=_GATE),
]
ScoreTolerance = Annotated[
    float | None,
    typer.Option(metavar="X", help="Point out scores that drop by more.  [default: 0.1]", rich_help_panel=_GATE),
]
MaxScoreDrop = Annotated[
    float | None,
    typer.Option(metavar="X", help="Most that a graded case's score may drop, 0..1.", rich_help_panel=_GATE),
]
OutputDir = Annotated[
    str | None, typer.Option(metavar="DIR", help="Where results go.  [default: evals/results]", rich_help_panel=_OUT)
]
Report = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        metavar="FORMAT[=FILE]",
        help="Also write a report: md, html, junit, console or json. Repeatable.",
        rich_help_panel=_OUT,
    ),
]
Export = Annotated[
    list[str] | None,
    typer.Option(
        "--export",
        metavar="FORMAT=FILE",
        help="Also write the results for other programs: agentv is JSON lines. Repeatable.",
        rich_help_panel=_OUT,
    ),
]
StoreResponses = Annotated[
    bool | None,
    typer.Option(help="Keep responses in the results, each cut at 20,000 characters.", rich_help_panel=_OUT),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the run record instead of the summary.", rich_help_panel=_OUT)
]
Cases = Annotated[
    list[str] | None,
    typer.Option("--case", metavar="GLOB", help="Only cases with these ids; commas join.", rich_help_panel=_WHICH),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only cases with this tag.", rich_help_panel=_WHICH)
]
Tiers = Annotated[
    list[str] | None,
    typer.Option("--tier", metavar="TIER", help="Only suites of this tier.", rich_help_panel=_WHICH),
]

Shard = Annotated[
    str | None,
    typer.Option("--shard", metavar="I/N", help="Only the I-th of N equal parts of the cases.", rich_help_panel=_WHICH),
]

KEYS = {
    "paths": "evals",
    "seed_manifest": "seedManifestPath",
    "snapshot": "snapshotPath",
    "tool_registry": "toolRegistryPath",
    "system_prompt": "systemPromptPath",
    "report": "reports",
    "export": "exports",
    "accepted": "acceptedPath",
}
"""Parameters whose configuration key is not simply the same name in camelCase."""

NOT_CONFIGURABLE = frozenset({"config", "resume", "json", "cases", "tags", "tiers", "shard", "verbose", "quiet"})
"""Parameters that belong to one call and have no key."""


def given_flags(context: typer.Context) -> dict[str, JsonValue]:
    """The configuration keys that were given on the command line, with their values."""
    from pydantic.alias_generators import to_camel

    return {
        KEYS.get(name, to_camel(name)): value
        for name, value in context.params.items()
        if name not in NOT_CONFIGURABLE and value not in (None, [], ())
    }


def split_commas(values: list[str] | None) -> tuple[str, ...]:
    """`--case 'a,b' --case c` are three globs."""
    return tuple(part.strip() for value in values or [] for part in value.split(",") if part.strip())
