"""`eval-gate run`: runs the evals, writes the results, compares, and exits by the verdict."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.cli import options
from eval_gate.config.settings import EXTERNAL_RESULT_KEYS, SETTINGS

USED = tuple(key for key in SETTINGS if key not in EXTERNAL_RESULT_KEYS)
"""The configuration keys that a run has use for."""


def run(
    context: typer.Context,
    config: options.Config = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="Which target is evaluated, by its name in the list of targets. Repeated: each of them, side by side.",
        ),
    ] = None,
    *,
    resume: Annotated[str | None, typer.Option(metavar="RUN_ID", help="Go on with a run that was interrupted.")] = None,
    failing: Annotated[
        bool, typer.Option("--failing", help="Only the cases that failed when they were last run.")
    ] = False,
    json: options.Json = False,
    cases: options.Cases = None,
    tags: options.Tags = None,
    tiers: options.Tiers = None,
    shard: options.Shard = None,
    **settings: object,
) -> None:
    """Run the evals, write the results, compare with a baseline if one is given, and exit by the gate.

    Every option is also a key of the configuration file and a variable: --timeout-ms, timeoutMs, EVAL_GATE_TIMEOUT_MS.
    A flag wins over a variable, a variable over the file.

    With --target given several times the evals are run against each of these targets, one after the other, and shown
    as a table of cases by targets; --report md, html, json and console write the table. Each run has its own record.

    Exit codes: 0 gate passed, 1 gate failed, 2 usage or configuration error (nothing was run), 3 the gate could not
    decide, 130 and 143 interrupted after writing what was done.
    """
    from pathlib import Path

    from eval_gate.cli.runs.single_run import RunCall, check_failing_options, run_and_decide
    from eval_gate.config.selection import Selection, parse_shard

    call = RunCall(
        flags=options.select_given_settings(settings) | ({"target": target[0]} if target else {}),
        config_file=Path(config) if config else None,
        selection=Selection(options.split_commas(cases), tuple(tags or ()), tuple(tiers or ()), parse_shard(shard)),
        resume=resume,
        as_json=json,
        verbosity=context.obj,
        only_failing=failing,
    )
    check_failing_options(call, targets=len(target or ()))
    if target and len(target) > 1:
        from eval_gate.cli.runs.target_matrix import run_against_each

        raise typer.Exit(run_against_each(call, target))
    raise typer.Exit(run_and_decide(call))
