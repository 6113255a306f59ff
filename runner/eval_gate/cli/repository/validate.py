"""`eval-gate validate`: checks everything that needs no request to a target."""

from __future__ import annotations

import typer

from eval_gate.cli import options
from eval_gate.process.signals import run_async

USED = (
    *("evals", "target", "agentEndpoint", "agentProtocol", "targets", "provider", "model", "baseUrl"),
    *(
        "systemPromptPath",
        "judge",
        "rubric",
        "baseAgentEndpoint",
        "baseAgentTarget",
        "seedManifestPath",
        "toolRegistryPath",
        "strict",
    ),
)
"""The keys that change what is checked."""


def validate(
    context: typer.Context,
    config: options.Config = None,
    **settings: object,
) -> None:
    """Check eval files, targets, tokens, patterns and registry. Calls nothing, lists every problem.

    Exit code 2 when there is a problem; warnings alone exit 0, unless --strict makes them problems.

    Needs no secrets: variables that are not set are notes.
    """
    import os
    from pathlib import Path

    from eval_gate.cli.repository.validation import check_everything, print_findings
    from eval_gate.config.loader import find_config, load_config

    file = Path(config) if config else find_config(Path.cwd())
    loaded = load_config(options.select_given_settings(settings), os.environ, file)
    findings = run_async(check_everything(loaded, Path.cwd(), os.environ))
    print_findings(findings, context.obj)
    raise typer.Exit(2 if findings.problems else 0)
