"""`eval-gate compare BASELINE CURRENT`: compares two stored results, with the output of `run`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from eval_gate.cli import options
from eval_gate.config.settings import POLICY_KEYS, SETTINGS

_USED = POLICY_KEYS - {"falseAlarmRate", "reruns"}
_USED |= {"history", "reports", "junitFailures", "exports"}
USED = tuple(key for key in SETTINGS if key in _USED)
"""The settings that apply to a stored result; settings about running do not."""
COMMON = ("output_dir", "as_json", "failOn", "mustPass", "minPassRate", "maxErrors", "waiversPath", "reports")


def compare(
    context: typer.Context,
    baseline: str = options.argument(
        "BASELINE",
        "Run to compare with: run id, results file, run folder, folder of runs, zip, or latest "
        "(the newest that passed).",
    ),
    current: str = options.argument(
        "CURRENT", "Run to decide: the same, or a folder with its shards; latest is the newest run."
    ),
    *,
    output_dir: str | None = options.RESULTS_DIR,
    as_json: bool = options.JSON,
    **settings: object,
) -> None:
    """Compare two stored results and decide the gate for the second one, without running anything.

    The policy is the one stored with the second run, except for the options that you give here. Compared with its own
    baseline, a run therefore gets the same verdict again. Neither result is changed.
    """
    from pathlib import Path

    from eval_gate.cli.stored_runs.run_settings import find_results_folder
    from eval_gate.cli.terminal.result_output import print_result, print_written_files
    from eval_gate.config.loader import load_config
    from eval_gate.errors import ExitCode
    from eval_gate.reports.context import ReportContext
    from eval_gate.reports.rendering import write_reports
    from eval_gate.results.merge import read_merged_run
    from eval_gate.session.stored_run import load_run_config, redecide_verdict

    flags = options.select_given_settings(settings)
    load_config(flags, {}, None)  # reports invalid options first
    folder = find_results_folder(output_dir, baseline, current)
    flags["outputDir"] = str(folder)
    with _hint_at_other_tool(current, baseline):
        run = read_merged_run([current], folder)
    config = load_run_config(run, flags, options.find_option_source())
    with _hint_at_other_tool(baseline, baseline):
        decided = redecide_verdict(run, baseline, config, Path.cwd())
    report_context = ReportContext(junit=config.junit_failures)
    files = write_reports(config.output_requests, decided, report_context, Path())
    print_result(decided, report_context, context.obj, as_json=as_json)
    print_written_files(files, context.obj)
    raise typer.Exit(decided.verdict.exit_code if decided.verdict else ExitCode.INCOMPLETE)


@contextmanager
def _hint_at_other_tool(reference: str, baseline: str) -> Iterator[None]:
    """Name `check` if the unreadable file has results of another tool; `baseline` may be such a file too."""
    from shlex import quote

    from eval_gate.errors import GateError

    try:
        yield
    except GateError as error:
        if error.code not in {"invalid-run-result", "baseline-not-found"}:
            raise
        from eval_gate.external_results.result_files import find_tool_at
        from eval_gate.session.external_run import is_external_reference

        # a run result of this program that is cut off is not one of another tool
        tool = find_tool_at(reference) if is_external_reference(reference) else None
        if tool is None:
            raise
        other_baseline = quote(baseline) if reference != baseline and is_external_reference(baseline) else "latest"
        raise GateError(
            error.code,
            f"{reference} has results of {tool}, and `compare` reads stored runs",
            f"compare them with `eval-gate check {quote(reference)} --baseline {other_baseline}`"
            if reference != baseline
            else f"store them as a run with `eval-gate check {quote(reference)}`",
            exit_code=error.exit_code,
        ) from None
