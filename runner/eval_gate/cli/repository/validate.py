"""`eval-gate validate`: checks everything that needs no request to a target."""

from __future__ import annotations

import typer

from eval_gate.cli import options
from eval_gate.process.signals import run_async

USED = (
    *("evals", "target", "agentEndpoint", "agentFunction", "agentProtocol", "targets", "provider", "model", "baseUrl"),
    *(
        "systemPromptPath",
        "judge",
        "simulatedUser",
        "rubric",
        "baseAgentEndpoint",
        "baseAgentTarget",
        "seedManifestPath",
        "toolRegistryPath",
        "strict",
    ),
)
"""The keys that change what is checked."""


def validate(context: typer.Context, config: str | None = options.CONFIG, **settings: object) -> None:
    """Check eval files, targets, tokens, patterns, tool definitions and waivers, without calling anything.

    Lists every problem. Needs no secrets: a variable that is not set is a note.

    Exit codes: 0 no problem, 2 at least one problem. With --strict, warnings about eval files are problems.
    """
    import os
    from pathlib import Path

    from eval_gate.cli.repository.validation import check_everything, print_findings
    from eval_gate.config.loader import find_config, load_config, load_eval_paths

    file = Path(config) if config else find_config(Path.cwd())
    loaded = load_config(options.select_given_settings(settings), os.environ, file)
    every_eval = load_eval_paths(os.environ, file)
    findings = run_async(check_everything(loaded, Path.cwd(), os.environ, every_eval))
    print_findings(findings, context.obj)
    raise typer.Exit(2 if findings.problems else 0)
