"""`eval-gate run`: runs the evals, stores the results, compares, and exits by the verdict."""

from __future__ import annotations

import typer

from eval_gate.cli import options
from eval_gate.config.setting import Panel
from eval_gate.config.settings import EXTERNAL_RESULT_KEYS, SETTINGS

USED = tuple(key for key in SETTINGS if key not in EXTERNAL_RESULT_KEYS)
"""The configuration keys that apply to a run."""
COMMON = (
    *("config", "cases", "tags", "failing", "trials", "passes"),
    *("agentEndpoint", "agentFunction", "agentProtocol", "target", "targets", "model", "judge", "concurrency"),
    *("baseline", "failOn", "reruns", "minPassRate"),
    *("timeoutMs", "maxCostUsd"),
    *("reports", "json"),
)
"""The options that `--help` shows."""


def run(
    context: typer.Context,
    config: str | None = options.CONFIG,
    target: list[str] | None = options.option(
        "Name of the target to evaluate, from the list of targets. Repeatable, for a table of targets.",
        "--target",
        metavar="NAME",
        panel=Panel.TARGET,
    ),
    *,
    resume: str | None = options.option("Id of an interrupted run to continue.", metavar="RUN_ID", panel=Panel.RUN),
    failing: bool = options.option(
        "Run only the cases that failed in their last run.", "--failing", default=False, panel=Panel.RUN
    ),
    json: bool = options.JSON,
    cases: list[str] | None = options.option(
        "Ids or globs of the cases to run, separated by commas. Repeatable.  [default: all]",
        "--case",
        metavar="GLOB",
        panel=Panel.RUN,
    ),
    tags: list[str] | None = options.option(
        "Tag of the cases to run. Repeatable.  [default: all]", "--tag", metavar="TAG", panel=Panel.RUN
    ),
    tiers: list[str] | None = options.option(
        "Tier of the suites to run. Repeatable.  [default: all]", "--tier", metavar="TIER", panel=Panel.RUN
    ),
    shard: str | None = options.option(
        "Part of the cases to run, the I-th of N equal ones.  [default: all]", "--shard", metavar="I/N", panel=Panel.RUN
    ),
    **settings: object,
) -> None:
    """Run the evals, store the results, compare them with a baseline if you name one, and decide the gate.

    Settings are also keys of the configuration file and environment variables: --timeout-ms, timeoutMs,
    EVAL_GATE_TIMEOUT_MS. A flag wins over a variable, a variable over the file.

    With several --target options, or several targets in an AgentV file, the evals run against one target after the
    other, and the result is a table of cases by targets, which --report md, html, json and console write. Each target
    has its own run result.

    Exit codes: 0 gate passed, 1 gate failed, 2 usage or configuration error (nothing ran), 3 inconclusive, 130 and 143
    interrupted (finished cases are stored).
    """
    from pathlib import Path

    from eval_gate.cli.runs.single_run import RunCall, check_failing_options, run_and_decide
    from eval_gate.config.selection import Selection, parse_shard
    from eval_gate.engine.preparation.assignment import SeveralTargetsError

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
    try:
        code = run_and_decide(call)
    except SeveralTargetsError as error:
        from eval_gate.cli.runs.target_matrix import run_against_each

        check_failing_options(call, targets=len(error.names))
        code = run_against_each(call, error.names)
    raise typer.Exit(code)
