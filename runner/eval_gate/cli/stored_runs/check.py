"""`eval-gate check`: compares external results and decides the verdict as for own runs."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.cli import options
from eval_gate.config.settings import EXTERNAL_RESULT_KEYS, POLICY_KEYS, SETTINGS
from eval_gate.process.signals import run_async

_USED = (
    POLICY_KEYS
    | EXTERNAL_RESULT_KEYS
    | {
        "baseAgentCommand",
        "baseline",
        "history",
        "outputDir",
        "reports",
        "exports",
        "passEnv",
        "keepResponses",
        "rerunBudget",
    }
)
USED = tuple(key for key in SETTINGS if key in _USED)
"""The configuration keys that judging such results has use for."""


def check(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Results files or folders of one tool.", show_default=False),
    ],
    *,
    config: options.Config = None,
    json: options.Json = False,
    **settings: object,
) -> None:
    """Judge results that another tool made: promptfoo, pytest, vitest, DeepEval, Inspect and others, or your own.

    Writes the same record as `run`, compares it with a baseline if one is given, and exits by the gate. What the files
    are is seen from what is in them. What each tool has to write is shown by
    https://github.com/eval-gate/eval-gate/blob/v1/docs/results-of-other-tools.md. With
    --rerun-command cases in doubt are run again by that tool, as in

      eval-gate check out.json --rerun-command 'npx promptfoo eval --filter-pattern {ids_regex} -o {output}'

    --base-agent-command does the same with the base branch's agent, where the gate would be red.

    Exit codes: 0 gate passed, 1 gate failed, 2 the files or options are wrong, 3 the gate could not
    decide, or the tool did not finish.
    """
    import os
    from pathlib import Path

    from eval_gate.cli.runs.single_run import build_run_context, show_results
    from eval_gate.cli.terminal.console import Verbosity, print_message
    from eval_gate.config.loader import find_config, load_config
    from eval_gate.config.policy import DEFAULT_CONFIRM
    from eval_gate.config.selection import Selection
    from eval_gate.gate.verdict_decision import decide_verdict as judged_by
    from eval_gate.model.result import RunResult
    from eval_gate.session.evaluation import build_report_context, store_run
    from eval_gate.session.external_run import make_external_run, read_external_results
    from eval_gate.session.session import open_session
    from eval_gate.struct import replace

    file = Path(config) if config else find_config(Path.cwd())
    read = load_config(
        options.select_given_settings(settings),
        os.environ,
        file,
        defaults={"reruns": DEFAULT_CONFIRM},
        hand=options.find_option_source(),
    )
    session = open_session(read, Selection(), replace(build_run_context(), owns_process=False))

    def judged() -> RunResult:
        brought = run_async(make_external_run(session, read_external_results(read, paths, session.context)))
        if context.obj is not Verbosity.QUIET:
            for words in brought.notes:
                print_message(words)
        return judged_by(brought.run, session.gate_inputs)

    kept = store_run(session, judged())  # nobody else holds the run, which may be large
    show_results(session, kept, build_report_context(session, kept), context.obj, as_json=json)
    raise typer.Exit(kept.exit_code)
