"""`eval-gate trend [REF]`: writes the page of a branch over time, and its badge."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from eval_gate.cli import options

USED = ("passScore", "store")
"""The settings that this command has options for."""


def trend(
    reference: str | None = options.argument(
        "REF",
        "History file, folder of runs, run folder, zip or run id.  [default: the store, or the results folder]",
        default=None,
    ),
    *,
    output: str | None = options.option(
        "Folder for the files.  [default: trend/ in the results folder]", "--output", "-o", metavar="FOLDER"
    ),
    output_dir: str | None = options.RESULTS_DIR,
    **settings: object,
) -> None:
    """Write the trend of a branch over its runs: trend.html, badge.svg and badge.json, and print their paths.

    Shows pass rate, cost and time of each run, which commit broke and fixed a case, flaky cases, and drift. Runs
    nothing. Uses passScore and store of the configuration. badge.json is for badge services (shields.io).

      eval-gate trend main-runs/ -o public

    Exit codes: 0 written, 2 usage error.
    """
    from eval_gate.analysis.trend.trend_page import TREND_FOLDER, write_trend
    from eval_gate.cli.stored_runs.drift_lookup import find_history_up_to
    from eval_gate.cli.stored_runs.run_settings import load_settings_part
    from eval_gate.cli.terminal.console import print_output
    from eval_gate.errors import GateError
    from eval_gate.reports.context import ReportContext
    from eval_gate.results.baseline_store import BaselineStore
    from eval_gate.results.history import EMPTY_HISTORY
    from eval_gate.results.run_history import read_history_file
    from eval_gate.results.run_reader import RUN_GLOB, is_run_reference, list_stored_runs

    flags = options.select_given_settings({"outputDir": output_dir, **settings})
    config = load_settings_part(("outputDir", *USED), flags)
    results, history = Path(config.output_dir), EMPTY_HISTORY
    with ExitStack() as stack:
        if reference is None and config.store:
            reference = stack.enter_context(BaselineStore(config.store).fetch_newest())
        if reference and Path(reference).is_file() and not is_run_reference(reference):
            history = read_history_file(Path(reference))
        elif reference or any(results.glob(RUN_GLOB)):
            history = find_history_up_to(reference or str(results), results)
            newest = next((one.head for one in list_stored_runs(Path(reference or results))), None)
            if newest is not None and not (newest.complete or newest.selections or newest.shard):
                history = history.with_run(newest)  # no baseline, but the newest gate
    files = write_trend(Path(output or results / TREND_FOLDER), history, config.policy.pass_score, ReportContext())
    if not files:
        hint = "make one with `eval-gate run`, or name a history file or a folder of runs"
        raise GateError("run-not-found", f"{reference or results} contains no complete run of all cases", hint)
    print_output("\n".join(map(str, files)))
