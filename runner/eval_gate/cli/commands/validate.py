"""`eval-gate validate`: check everything that can be checked without asking a target."""

from __future__ import annotations

import typer

from eval_gate.cli import options


def validate(
    context: typer.Context,
    paths: options.Paths = None,
    config: options.Config = None,
    target: options.TargetName = None,
    targets: options.Targets = None,
    seed_manifest: options.SeedManifest = None,
    tool_registry: options.ToolRegistry = None,
    strict: options.Strict = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Check eval files, targets, tokens, patterns and registry. Calls nothing, lists every problem.

    Exit code 2 when there is a problem; warnings alone exit 0, unless --strict makes them problems.
    """
    import asyncio
    import os
    from pathlib import Path

    from eval_gate.cli.checking import check_everything, print_findings
    from eval_gate.config.load import find_config, load_config

    file = Path(config) if config else find_config(Path.cwd())
    settings = load_config(options.given_flags(context), os.environ, file)
    findings = asyncio.run(check_everything(settings, Path.cwd(), os.environ))
    print_findings(findings, context.obj)
    raise typer.Exit(2 if findings.problems else 0)
