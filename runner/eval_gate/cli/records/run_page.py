"""The page of a stored run: made anew from its record, left where it is found again, and opened."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from eval_gate.cli.options import options_given_by
from eval_gate.cli.records.stored_runs import part_of_settings
from eval_gate.cli.terminal.console import in_ci, say
from eval_gate.cli.terminal.output import refuse_place
from eval_gate.config.settings import RunConfig
from eval_gate.errors import GateError
from eval_gate.files.writing import write_atomically
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.render import render
from eval_gate.reports.rerun import rerun_command
from eval_gate.reports.words.waivers import accept_line
from eval_gate.results.names import LATEST, is_run_id
from eval_gate.results.read import find_run
from eval_gate.session.rejudge import judge_again, rules_for

_SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY")
_ALWAYS_WITH_SCREEN: Final = ("darwin", "win32")


def make_page(reference: str, baseline: str | None, output: str | None, flags: Mapping[str, JsonValue]) -> Path:
    """Write the page of the run; where it is. Raises GateError for a run, a baseline or a place that cannot be had."""
    refuse_place(output)
    config = part_of_settings(("outputDir", "acceptedPath"), flags)
    results = config.output_dir
    try:
        run, folder = find_run(reference, Path(results))
    except GateError as error:
        if reference != LATEST or error.code != "baseline-not-found":
            raise
        hint = "`eval-gate run` makes one; --output-dir names another folder of runs, and RUN a file or an archive"
        raise GateError("no-such-run", f"there is no run in {results} yet", hint) from error
    name = "report.html"
    if baseline is not None:
        rules = rules_for(run, {**flags, "outputDir": results}, options_given_by())
        run = judge_again(run, baseline, rules, Path.cwd())
        # beside the run's own page, which says what its record says
        against = run.baseline_run_id or ""
        name = f"report-against-{against if is_run_id(against) else 'another'}.html"
    page = render("html", run, _context(run, config))
    if output is not None:
        write_atomically(Path(output), page)
        return Path(output)
    return _left(page, folder, name)


def _context(run: RunResult, config: RunConfig) -> ReportContext:
    """What to do from here: how to accept, and where the configuration says whom to ask, how to run cases again."""
    again = rerun_command(["run"], run) if config.target.said else None
    return ReportContext(
        rerun_command=again.command if again else None,
        rerun_left_out=again.left_out if again else 0,
        accept_line=accept_line(run, config.policy.accepted),
    )


def _left(page: str, folder: Path | None, name: str) -> Path:
    """The page in the run's folder; in one of its own where there is none, or it cannot be written."""
    if folder is not None:
        try:
            write_atomically(folder / name, page)
            return folder / name
        except GateError as error:
            say(f"{error.message}: the page is in a folder of its own")
    own = Path(tempfile.mkdtemp(prefix="eval-gate-")) / name
    own.write_bytes(page.encode("utf-8", "backslashreplace"))
    return own


def open_page(page: Path) -> bool:
    """Open it in the browser; False where nobody sits who could see it, or none could be started."""
    if not sys.stdout.isatty() or in_ci() or not _screen():
        return False
    import webbrowser

    return webbrowser.open(page.resolve().as_uri())


def _screen() -> bool:
    """Whether a browser would have a window: without one, a browser for terminals would take this one over."""
    return sys.platform in _ALWAYS_WITH_SCREEN or any(os.environ.get(name) for name in _SCREENS)
