"""`eval-gate compare BASELINE CURRENT`: compares two stored results, with the output of `run`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from eval_gate.cli import options
from eval_gate.config.settings import POLICY_KEYS, SETTINGS

_USED = POLICY_KEYS - {"falseAlarmRate", "reruns"}
_USED |= {"history", "reports", "junitFailures", "exports"}
USED = tuple(key for key in SETTINGS if key in _USED)
"""The settings that judging a stored result has use for: whatever is about running is done."""


def compare(
    context: typer.Context,
    baseline: Annotated[
        str,
        typer.Argument(
            metavar="BASELINE",
            help="Run id, results file, run folder, folder of runs, zip, or latest: the newest that passed.",
            show_default=False,
        ),
    ],
    current: Annotated[
        str,
        typer.Argument(
            metavar="CURRENT",
            help="The same, for the run that is judged; latest: the newest; or a folder of its shards.",
            show_default=False,
        ),
    ],
    *,
    output_dir: options.ResultsDir = None,
    as_json: options.Json = False,
    **settings: object,
) -> None:
    """Compare two stored results and judge the second one as `run` would. Runs nothing, changes neither.

    The rules are those that the second run was judged by when it was made, but for the options given here. So the
    verdict is the same again, unless it is compared with another run than it was.
    """
    from pathlib import Path

    from eval_gate.cli.stored_runs.run_settings import find_results_folder
    from eval_gate.cli.terminal.result_output import print_result, print_written_files
    from eval_gate.config.loader import load_config
    from eval_gate.errors import ExitCode
    from eval_gate.reports.context import ReportContext
    from eval_gate.reports.rendering import write_reports
    from eval_gate.results.shards import read_merged_run
    from eval_gate.session.stored_run import load_run_config, redecide_verdict

    flags = options.select_given_settings(settings)
    load_config(flags, {}, None)  # what is wrong with them is said first
    folder = find_results_folder(output_dir, baseline, current)
    flags["outputDir"] = str(folder)
    with _hint_at_other_tool(current):
        run = read_merged_run([current], folder)
    config = load_run_config(run, flags, options.find_option_source())
    with _hint_at_other_tool(baseline):
        judged = redecide_verdict(run, baseline, config, Path.cwd())
    report_context = ReportContext(junit=config.junit_failures)
    files = write_reports(config.output_requests, judged, report_context, Path())
    print_result(judged, report_context, context.obj, as_json=as_json)
    print_written_files(files, context.obj)
    raise typer.Exit(judged.verdict.exit_code if judged.verdict else ExitCode.INCOMPLETE)


@contextmanager
def _hint_at_other_tool(reference: str) -> Iterator[None]:
    """Where a file is no result of ours because another tool wrote it: say who reads it."""
    from pathlib import Path

    from eval_gate.errors import GateError

    try:
        yield
    except GateError as error:
        from eval_gate.external_results.format_detection import find_tool
        from eval_gate.results.run_reader import is_run_reference

        damaged = error.code != "invalid-run-result" or is_run_reference(
            reference
        )  # one of ours that is cut off is nobody else's
        tool = None if damaged else find_tool(Path(reference))
        if tool is not None:
            error.hint = (
                f"these are results of another tool ({tool}): `eval-gate check {reference}` makes a run of them,"
                " which can be compared; `--baseline latest` does both at once"
            )
        raise
