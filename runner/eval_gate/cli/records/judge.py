"""`eval-gate judge`: results that another tool made, compared and judged as own runs are."""

from __future__ import annotations

from typing import Annotated

import typer

from eval_gate.cli import options
from eval_gate.config.settings import OF_OTHER_TOOLS, RULES, SETTINGS
from eval_gate.process.ending import run_async

_USED = (
    RULES
    | OF_OTHER_TOOLS
    | {
        "controlCommand",
        "baseline",
        "history",
        "outputDir",
        "reports",
        "exports",
        "passEnv",
        "store",
        "rerunBudget",
    }
)
USED = tuple(key for key in SETTINGS if key in _USED)
"""The configuration keys that judging such results has use for."""


def judge(
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

      eval-gate judge out.json --rerun-command 'npx promptfoo eval --filter-pattern {ids_regex} -o {output}'

    --control-command does the same with the base branch's agent, where the gate would be red.

    Exit codes: 0 gate passed, 1 gate failed, 2 the files or options are wrong, 3 the gate could not
    decide, or the tool did not finish.
    """
    import os
    from pathlib import Path

    from eval_gate.cli.running.single_run import run_context, show
    from eval_gate.cli.terminal.console import Verbosity, say
    from eval_gate.config.load import find_config, load_config
    from eval_gate.config.policy import DEFAULT_CONFIRM
    from eval_gate.config.selection import Selection
    from eval_gate.gate.judge import judge as judged_by
    from eval_gate.model.result import RunResult
    from eval_gate.session.foreign_results import brought_run, read_brought
    from eval_gate.session.keep import context_of, keep
    from eval_gate.session.session import open_session
    from eval_gate.struct import replace

    file = Path(config) if config else find_config(Path.cwd())
    read = load_config(
        options.given_settings(settings),
        os.environ,
        file,
        defaults={"confirm": DEFAULT_CONFIRM},
        hand=options.options_given_by(),
    )
    session = open_session(read, Selection(), replace(run_context(), owns_process=False))

    def judged() -> RunResult:
        brought = run_async(brought_run(session, read_brought(read, paths, session.context)))
        if context.obj is not Verbosity.QUIET:
            for words in brought.words:
                say(words)
        return judged_by(brought.run, session.question)

    kept = keep(session, judged())  # nobody else holds the run, which may be large
    show(session, kept, context_of(session, kept), context.obj, as_json=json)
    raise typer.Exit(kept.exit_code)
