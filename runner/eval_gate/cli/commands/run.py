"""`eval-gate run`: run the evals, write the results, compare, print the summary, exit by the gate."""

from __future__ import annotations

import typer

from eval_gate.cli import options, options_gate


def run(
    context: typer.Context,
    paths: options.Paths = None,
    config: options.Config = None,
    agent_endpoint: options.AgentEndpoint = None,
    target: options.TargetNames = None,
    targets: options.Targets = None,
    provider: options.Provider = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    system_prompt: options.SystemPrompt = None,
    judge: options.Judge = None,
    seed_manifest: options.SeedManifest = None,
    snapshot: options.Snapshot = None,
    snapshot_command: options.SnapshotCommand = None,
    pass_env: options.PassEnv = None,
    snapshot_enabled: options.SnapshotEnabled = None,
    tool_registry: options.ToolRegistry = None,
    concurrency: options.Concurrency = None,
    timeout_ms: options.TimeoutMs = None,
    max_retries: options.MaxRetries = None,
    trials: options.Trials = None,
    rubric: options.Rubric = None,
    cache: options.Cache = None,
    max_cost_usd: options.MaxCost = None,
    strict: options.Strict = None,
    resume: options.Resume = None,
    baseline: options.Baseline = None,
    history: options.History = None,
    fail_on: options.FailOn = None,
    min_pass_rate: options.MinPassRate = None,
    max_errors: options.MaxErrors = None,
    pass_score: options.PassScore = None,
    score_tolerance: options.ScoreTolerance = None,
    max_score_drop: options.MaxScoreDrop = None,
    confirm: options_gate.Confirm = None,
    error_rate: options_gate.ErrorRate = None,
    must_pass: options_gate.MustPass = None,
    allowed_regressions: options_gate.AllowedRegressions = None,
    min_coverage: options_gate.MinCoverage = None,
    max_latency_increase: options_gate.MaxLatencyIncrease = None,
    max_cost_increase: options_gate.MaxCostIncrease = None,
    max_token_increase: options_gate.MaxTokenIncrease = None,
    accepted: options_gate.Accepted = None,
    output_dir: options.OutputDir = None,
    report: options.Report = None,
    export: options.Export = None,
    store_responses: options.StoreResponses = None,
    json: options.Json = False,
    cases: options.Cases = None,
    tags: options.Tags = None,
    tiers: options.Tiers = None,
    shard: options.Shard = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Run the evals, write the results, compare with a baseline if one is given, and exit by the gate.

    Every option is also a key of the configuration file and a variable: --timeout-ms, timeoutMs, EVAL_GATE_TIMEOUT_MS.
    A flag wins over a variable, a variable over the file.

    With --target given several times the evals are run against each of these targets, one after the other, and shown
    as a table of cases by targets; --report md, html, json and console write the table. Each run has its own record.

    Exit codes: 0 gate passed, 1 gate failed, 2 usage or configuration error (nothing was run), 3 the run could not
    be completed, 130 and 143 interrupted after writing what was done.
    """
    from pathlib import Path

    from eval_gate.cli.running import Asked, run_and_judge
    from eval_gate.config.settings import Selection, parse_shard

    asked = Asked(
        flags=options.given_flags(context) | ({"target": target[0]} if target else {}),
        config_file=Path(config) if config else None,
        selection=Selection(options.split_commas(cases), tuple(tags or ()), tuple(tiers or ()), parse_shard(shard)),
        resume=resume,
        as_json=json,
        verbosity=context.obj,
    )
    if target and len(target) > 1:
        from eval_gate.cli.matrix import run_against_each

        raise typer.Exit(run_against_each(asked, target))
    raise typer.Exit(run_and_judge(asked))
