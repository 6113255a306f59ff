"""`eval-gate check`: compares external results and decides the verdict as for own runs."""

from __future__ import annotations

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
        "store",
        "storeBranch",
        "storeWrite",
        "outputDir",
        "reports",
        "junitFailures",
        "traceUrl",
        "exports",
        "passEnv",
        "keepResponses",
        "rerunBudget",
        "trials",
        "passes",
    }
)
USED = tuple(key for key in SETTINGS if key in _USED)
"""The configuration keys that apply to external results."""
COMMON = (
    *("config", "resultsFormat", "scores", "rerunCommand", "baseline"),
    *("failOn", "reruns", "mustPass", "minPassRate", "maxErrors", "waiversPath"),
    *("rerunBudget", "outputDir", "reports", "json"),
)
"""The options that `--help` shows."""


def check(
    context: typer.Context,
    paths: list[str] = options.argument(
        "PATH", "Files, folders or patterns with the results of one tool. NAME=PATH prefixes its suites with a name."
    ),
    *,
    config: str | None = options.CONFIG,
    json: bool = options.JSON,
    **settings: object,
) -> None:
    """Check results of another tool, such as promptfoo, pytest, vitest, DeepEval or Inspect, and decide the gate.

    Stores the same run result as `run`, compares it with a baseline if you name one, and exits with the verdict. The
    format is detected from the content. See https://github.com/eval-gate/eval-gate/blob/main/docs/other-tools.md
    for what each tool has to write. With --rerun-command, the tool re-runs suspected regressions:

      eval-gate check out.json --rerun-command 'npx promptfoo eval --filter-pattern {ids_regex} -o {output}'

    --baseline also takes results of the same tool: `eval-gate check now.xml --baseline before.xml`.

    With --base-agent-command, it also runs them with the base branch's agent before the gate fails.

    Exit codes: 0 gate passed, 1 gate failed, 2 the files or options are wrong, 3 inconclusive, or the tool did not
    finish.
    """
    import os
    from pathlib import Path

    from eval_gate.cli.runs.single_run import build_run_context, show_results
    from eval_gate.cli.terminal.console import Verbosity, print_progress
    from eval_gate.config.loader import find_config, load_config
    from eval_gate.config.policy import DEFAULT_RERUNS
    from eval_gate.config.selection import Selection
    from eval_gate.gate.verdict_decision import decide_verdict
    from eval_gate.model.result import RunResult
    from eval_gate.results.baseline import NOT_REQUESTED
    from eval_gate.session.evaluation import build_report_context, store_run
    from eval_gate.session.external_run import (
        is_external_reference,
        make_external_run,
        read_external_baseline,
        read_external_results,
    )
    from eval_gate.session.session import open_session
    from eval_gate.struct import replace

    file = Path(config) if config else find_config(Path.cwd())
    read = load_config(
        options.select_given_settings(settings),
        os.environ,
        file,
        defaults={"reruns": DEFAULT_RERUNS},
        flag_source=options.find_option_source(),
    )
    context_of_run = replace(build_run_context(), owns_process=False)
    placeholder = NOT_REQUESTED if is_external_reference(read.baseline) else None
    session = open_session(read, Selection(), context_of_run, placeholder)

    def decide() -> RunResult:
        nonlocal session
        results = read_external_results(read, paths, session.context)
        if placeholder and (baseline := run_async(read_external_baseline(session, results))):
            session = open_session(read, Selection(), context_of_run, baseline)
        external = run_async(make_external_run(session, results))
        if context.obj is not Verbosity.QUIET:
            for words in external.notes:
                print_progress(words)
        return decide_verdict(external.run, session.gate_inputs)

    evaluated_run = store_run(session, decide())  # no other reference holds the run, which may be large
    show_results(session, evaluated_run, build_report_context(session, evaluated_run), context.obj, as_json=json)
    raise typer.Exit(evaluated_run.exit_code)
