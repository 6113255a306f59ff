"""What a judging command leaves behind: the summary on standard output, and the reports that were asked for."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.cli.console import Verbosity, ascii_only, colours, say
from runner.engine.store import write_atomically
from runner.errors import GateError, did_you_mean
from runner.model.comparison import CaseClass
from runner.model.result import RunResult, Status
from runner.reports.render import FORMATS, render
from runner.reports.view import ReportContext

DEFAULT_NAMES = {
    "md": "report.md",
    "html": "report.html",
    "junit": "junit.xml",
    "console": "report.txt",
    "json": "report.json",
}
MAX_RERUN_CASES = 20


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """A report that was asked for; `file` None means its usual name in the run's folder."""

    format: str
    file: Path | None


def parse_reports(texts: Iterable[str]) -> tuple[ReportRequest, ...]:
    """`html` and `junit=out/junit.xml`. Raises GateError `unknown-value` for an unknown format."""
    requests = []
    for text in texts:
        name, equals, file = text.partition("=")
        if name not in FORMATS or (equals and not file):
            raise GateError(
                "unknown-value",
                f'--report: "{text}" is not known{did_you_mean(name, FORMATS)}',
                f"FORMAT or FORMAT=FILE with FORMAT one of {', '.join(FORMATS)}",
            )
        requests.append(ReportRequest(name, Path(file) if file else None))
    return tuple(requests)


def write_reports(
    requests: Sequence[ReportRequest], result: RunResult, context: ReportContext, folder: Path
) -> tuple[Path, ...]:
    """Write every report; where they are. Reports without a file name go to `folder`."""
    written = []
    for request in requests:
        file = request.file or folder / DEFAULT_NAMES[request.format]
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, render(request.format, result, context))
        written.append(file)
    return tuple(written)


def print_result(result: RunResult, context: ReportContext, verbosity: Verbosity, *, as_json: bool) -> None:
    """The result on standard output: the summary for people, or the record for programs."""
    if as_json:
        print(result.model_dump_json(by_alias=True, indent=2))
        return
    from runner.reports.console import ConsoleStyle

    style = ConsoleStyle(
        colour=colours(sys.stdout), ascii=ascii_only(sys.stdout), verbose=verbosity is Verbosity.VERBOSE
    )
    print(render("console", result, context, style=style), end="")


def say_written(files: Iterable[Path], verbosity: Verbosity) -> None:
    """Where the reports are, beside the result."""
    if verbosity is not Verbosity.QUIET:
        for file in files:
            say(f"written {file}")


def rerun_command(arguments: Sequence[str], result: RunResult) -> str | None:
    """The same command for only the cases to look at; None when there are none."""
    ids = _worth_a_look(result)
    if not ids:
        return None
    kept = _without_option(arguments, "--case", "--resume")
    return shlex.join(["eval-gate", *kept, "--case", ",".join(ids[:MAX_RERUN_CASES])])


def _worth_a_look(result: RunResult) -> list[str]:
    """Regressions if there are any, else everything that did not pass."""
    if result.comparison is not None:
        regressions = [change.case_id for change in result.comparison.of(CaseClass.REGRESSION)]
        if regressions:
            return regressions
    bad = {Status.FAILED, Status.ERROR}
    return [case.id for suite in result.suites for case in suite.cases if case.status in bad]


def _without_option(arguments: Sequence[str], *names: str) -> list[str]:
    kept: list[str] = []
    skip_value = False
    for argument in arguments:
        if skip_value:
            skip_value = False
        elif argument in names:
            skip_value = True
        elif not argument.startswith(tuple(f"{name}=" for name in names)):
            kept.append(argument)
    return kept
