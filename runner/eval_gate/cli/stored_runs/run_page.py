"""The page of a stored run: rendered from its result, stored and opened."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from eval_gate.cli.options import find_option_source
from eval_gate.cli.stored_runs.run_settings import load_settings_part
from eval_gate.cli.terminal.console import is_in_ci, print_message
from eval_gate.cli.terminal.result_output import check_output_path
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.files.writing import write_atomically
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.reports.rerun_command import build_rerun_command
from eval_gate.reports.wording.waivers import build_waive_command
from eval_gate.results.result_names import LATEST, is_run_id
from eval_gate.results.run_reader import read_run_and_folder
from eval_gate.session.stored_run import load_run_config, redecide_verdict

_SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
_ALWAYS_WITH_SCREEN: Final = ("darwin", "win32")


def write_page(reference: str, baseline: str | None, output: str | None, flags: Mapping[str, JsonValue]) -> Path:
    """Write the report of the run, and return its path. Raises GateError for an invalid run, baseline or path."""
    check_output_path(output)
    config = load_settings_part(("outputDir", "waiversPath"), flags)
    results = config.output_dir
    try:
        run, folder = read_run_and_folder(reference, Path(results))
    except GateError as error:
        if reference != LATEST or error.code != "baseline-not-found":
            raise
        hint = "make one with `eval-gate run`, or name a folder of runs with --output-dir, or a file as RUN"
        raise GateError("run-not-found", f"{results} contains no run yet", hint) from error
    name = "report.html"
    if baseline is not None:
        rules = load_run_config(run, {**flags, "outputDir": results}, find_option_source())
        run = redecide_verdict(run, baseline, rules, Path.cwd())
        # next to the run's own report, which shows what the run result says
        against = run.baseline_run_id or ""
        name = f"report-against-{against if is_run_id(against) else 'another'}.html"
    page = render("html", run, _build_context(run, config))
    if output is not None:
        write_atomically(Path(output), page)
        return Path(output)
    return _store_page(page, folder, name)


def _build_context(run: RunResult, config: RunConfig) -> ReportContext:
    """Build the context with the command that waives failures and, with a chosen target, the one that re-runs cases."""
    rerun = build_rerun_command(["run"], run) if config.target.is_chosen else None
    return ReportContext(
        rerun_command=rerun.command if rerun else None,
        rerun_omitted_count=rerun.omitted_count if rerun else 0,
        waive_command=build_waive_command(run, config.policy.waivers),
    )


def _store_page(page: str, folder: Path | None, name: str) -> Path:
    """Write the page into the run's folder, or into a new one if that is None or cannot be written."""
    if folder is not None:
        try:
            write_atomically(folder / name, page)
            return folder / name
        except GateError as error:
            print_message(f"{error.message}: writing the report to another folder")
    own = Path(tempfile.mkdtemp(prefix="eval-gate-")) / name
    own.write_bytes(page.encode("utf-8", "backslashreplace"))
    return own


def open_page(page: Path) -> bool:
    """Open the page in the browser; return False without a terminal, a screen or a browser."""
    if not sys.stdout.isatty() or is_in_ci() or not _has_screen():
        return False
    import webbrowser

    return webbrowser.open(page.resolve().as_uri())


def _has_screen() -> bool:
    """Whether a browser would have a window: without one, a text browser would take over this terminal."""
    return sys.platform in _ALWAYS_WITH_SCREEN or any(os.environ.get(name) for name in _SCREENS)
