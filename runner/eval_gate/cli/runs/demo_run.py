"""Run `eval-gate demo`: start the bundled agent, run the evals, show the comment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

from eval_gate.cli.runs.single_run import show_results
from eval_gate.cli.terminal.console import Verbosity, print_message, print_output, print_progress
from eval_gate.cli.terminal.live_progress import create_progress
from eval_gate.config.loader import load_config
from eval_gate.config.selection import Selection
from eval_gate.config.settings import RunConfig
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import ExitCode, GateError
from eval_gate.process.signals import run_async
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.session.evaluated_commit import find_git_facts
from eval_gate.session.evaluation import build_report_context, evaluate_session
from eval_gate.session.session import open_session

READY_WITHIN_S = 30
BASELINE_ADDRESS = "http://localhost:8080"
"""Where the agent listened when the bundled baseline was made."""
_PACKAGE = Path(__file__).parents[2]
EXAMPLE_FOLDERS = (_PACKAGE / "_examples" / "weather", _PACKAGE.parents[1] / "examples" / "weather")
"""Where the example is: inside an installed package, or next to the package in a checkout."""


def show_demo(verbosity: Verbosity, *, regress: bool, output_dir: str | None) -> ExitCode:
    """Run the demonstration. A failed gate is part of it, so only a run without a verdict is a failure."""
    home = _find_example_folder()
    folder = Path(output_dir) if output_dir else Path(tempfile.mkdtemp(prefix="eval-gate-demo-"))
    with _start_agent(home, regress=regress) as url:
        print_progress(f"The weather agent {'with' if regress else 'without'} the change listens at {url}")
        run_context = RunContext(home, os.environ, find_git_facts(os.environ, home))
        session = open_session(_build_config(home, url, folder), Selection(), run_context)
        evaluated_run = run_async(evaluate_session(session, create_progress(verbosity)))
        show_results(session, evaluated_run, build_report_context(session, evaluated_run), verbosity)
    if evaluated_run.exit_code not in {ExitCode.PASSED, ExitCode.FAILED}:
        return evaluated_run.exit_code
    print_output("\nThe comment on the pull request would be:\n")
    print_output(render("md", evaluated_run.run, ReportContext(comment_key="demo", base_branch="main")))
    print_message(f"report: {evaluated_run.result_path.with_name('report.html')}")
    print_progress(f"In a pull request, this gate would exit with {int(evaluated_run.exit_code)}")
    return ExitCode.PASSED


def _build_config(home: Path, url: str, folder: Path) -> RunConfig:
    """Build the configuration of the demo, without any file or variable of the user."""
    # write the baseline with the agent's current address, so that the comparison shows no change of its port
    text = (home / "baseline" / "run.json").read_text(encoding="utf-8").replace(BASELINE_ADDRESS, url)
    file = folder / "baseline.json"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    flags: dict[str, JsonValue] = {
        "evals": ["evals"],
        "agentEndpoint": f"{url}/chat",
        "snapshotPath": "snapshot.json",
        "toolRegistryPath": "tools/tools.exports.ts",
        "baseline": str(file),
        "outputDir": str(folder.absolute()),
        "concurrency": 4,
        "failOn": ["regressions"],
        "reports": ["html"],
    }
    return load_config(flags, {}, None)


def _find_example_folder() -> Path:
    for home in EXAMPLE_FOLDERS:
        if (home / "agent.py").is_file():
            return home
    raise GateError("demo-files-not-found", "this installation has no bundled example", "install eval-gate again")


@contextmanager
def _start_agent(home: Path, *, regress: bool) -> Iterator[str]:
    """Start the bundled agent, which prints its URL when it is ready and ends when its input ends; yield the URL."""
    command = [
        sys.executable,
        "-I",
        str(home / "agent.py"),
        "--port",
        "0",
        "--until-input-ends",
        *(["--regress"] if regress else []),
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 (the bundled agent)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url.startswith("http://"):
            raise GateError(
                "demo-agent-failed",
                "the bundled agent did not start",
                "see its output above",
                exit_code=ExitCode.INCOMPLETE,
            )
        yield url
    finally:
        process.terminate()
        process.communicate(timeout=READY_WITHIN_S)
