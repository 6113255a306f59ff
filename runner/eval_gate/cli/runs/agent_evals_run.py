"""Run `eval-gate agent-evals`: prepare, run, report; once, or once per target.

It also converts the names of suites and of the output on the command line to paths. Source: Agent Evals, "Arguments";
agent-evals behaviour 3.1, 3.4, 3.5, E-07.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from eval_gate import __version__
from eval_gate.cli.runs.single_run import build_run_context
from eval_gate.cli.runs.target_matrix import check_sessions, check_target_names, print_matrix, run_each
from eval_gate.cli.terminal.console import Verbosity, print_output
from eval_gate.cli.terminal.live_progress import create_progress
from eval_gate.cli.terminal.result_output import build_style
from eval_gate.cli.terminal.standard_streams import reserve_stdout
from eval_gate.config.loader import load_config
from eval_gate.config.policy import Policy
from eval_gate.config.selection import Selection
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.preparation.plan_builder import read_inputs
from eval_gate.engine.preparation.project_tmp import ProjectTmp
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.engine.run_plan import RunPlan
from eval_gate.errors import ExitCode, GateError, Problem, format_suggestion, treat_errors_as_incomplete
from eval_gate.files.writing import make_folder
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.result import RunResult
from eval_gate.process.signals import run_async
from eval_gate.reports.agent_evals import (
    FORMAT,
    ReportTimes,
    build_report,
    render_console_summary,
    render_json,
    render_markdown,
    write_report_files,
)
from eval_gate.reports.context import ReportContext
from eval_gate.reports.matrix import build_matrix, render_matrix
from eval_gate.reports.view.report_view import build_view
from eval_gate.results.baseline import NOT_REQUESTED
from eval_gate.sandbox.paths import LINK, NO_FOLDER, SandboxError, split_file_path, split_path
from eval_gate.session.evaluation import EvaluatedRun, store_run
from eval_gate.session.run import RunObserver, execute_plan, plan_run
from eval_gate.session.session import Session
from eval_gate.struct import FrozenStruct, Struct, field, replace
from eval_gate.text.escape import format_count
from eval_gate.text.quoting import quote_name

SUFFIX: Final = ".json"
REPORTS_FOLDER: Final = "reports"


class SuitesCall(FrozenStruct):
    """One call of the command. `kinds` are report endings; `output` is the path below `tmp`."""

    suites: tuple[str, ...]
    tmp: Path
    output: tuple[str, ...]
    kinds: tuple[str, ...]
    target_settings: Mapping[str, Mapping[str, JsonValue]]
    """Run settings of each target, by its name; empty settings if the suites choose the target."""
    tags: tuple[str, ...]
    verbosity: Verbosity
    context: RunContext = field(default_factory=build_run_context)

    @property
    def folder(self) -> Path:
        """Where reports and results go."""
        return self.tmp.joinpath(*self.output)

    def build_session(self, settings: Mapping[str, JsonValue]) -> Session:
        """Build the session of the run, without the project's configuration: that is about other evals."""
        fixed: dict[str, JsonValue] = {
            "evals": [*self.suites],
            "outputDir": str(self.folder),
            "concurrency": 1,  # one case at a time
        }
        config = load_config({**fixed, **settings}, {}, None)
        # several targets begin with the same copies; one target gets the folder of the format itself
        context = replace(
            self.context,
            tmp=ProjectTmp(self.tmp, in_place=len(self.target_settings) < 2, checked_in=False, output=self.output),
        )
        return Session(config, Selection(tags=self.tags), context, GateInputs(NOT_REQUESTED, Policy()))


class ReportedRun(FrozenStruct):
    """A run with its report as data and as files, and its warnings."""

    evaluated_run: EvaluatedRun
    data: Mapping[str, object]
    files: tuple[Path, ...]
    warnings: tuple[str, ...]


def run_suites(call: SuitesCall) -> ExitCode:
    """Run the suites, report, and return the exit code. Raises GateError for problems found before the run."""
    run_async(_check_formats(call))
    if len(call.target_settings) > 1:
        return _run_each_target(call)
    (settings,) = call.target_settings.values()
    reported = _run_once(call, settings)
    print_output(render_console_summary(reported.data, reported.warnings, build_style(call.verbosity)), end="")
    for file in reported.files:
        print_output(f"report: {file}")
    print_output(f"result: {reported.evaluated_run.result_path}")
    return reported.evaluated_run.interrupted or _get_exit_code([reported])


def _run_each_target(call: SuitesCall) -> ExitCode:
    """Run the suites once for each target, with a report of each, and tabulate the results."""
    names = [*call.target_settings]
    check_target_names(names)
    with reserve_stdout():
        run_async(check_sessions(map(call.build_session, call.target_settings.values())))
    runs: dict[str, ReportedRun] = {}

    def run_one(name: str) -> EvaluatedRun:
        runs[name] = _run_once(call, call.target_settings[name])
        return runs[name].evaluated_run

    legs, began, interrupted = run_each(names, run_one, call.verbosity)
    matrix = build_matrix(legs, began, __version__)
    code = interrupted or _get_exit_code([*runs.values()])
    if len(runs) < len(names) and code is ExitCode.PASSED:
        code = ExitCode.INCOMPLETE
    print_matrix(matrix, code, call.verbosity)
    texts = {kind: render_matrix(kind, matrix) for kind in call.kinds}
    with treat_errors_as_incomplete():
        files = write_report_files(call.folder / REPORTS_FOLDER, texts, datetime.now(UTC), "matrix")
    for name, reported in runs.items():
        for file in reported.files:
            print_output(f"report of {name}: {file}")
    for file in files:
        print_output(f"report: {file}")
    return code


def _get_exit_code(reported: Sequence[ReportedRun]) -> ExitCode:
    """Return 0 if every case passed; 1 if one failed, has no score or a mistake, or if no case ran."""
    good = reported and all(_has_passed(one.evaluated_run.run) for one in reported)
    return ExitCode.PASSED if good else ExitCode.FAILED


def _has_passed(run: RunResult) -> bool:
    """Whether all cases passed except those skipped on purpose; a mistake in the suite is no such case."""
    counts = run.summary
    is_mistaken = any(case.mistakes for _, case in run.iter_cases())
    return counts.passed > 0 and counts.passed + counts.skipped == counts.total_cases and not is_mistaken


def _run_once(call: SuitesCall, settings: Mapping[str, JsonValue]) -> ReportedRun:
    with reserve_stdout():
        return run_async(_run_and_report(call, call.build_session(settings)))


async def _run_and_report(call: SuitesCall, session: Session) -> ReportedRun:
    plan = await plan_run(session)
    try:
        place = call.tmp
        for name in (".", *call.output, REPORTS_FOLDER):
            place /= name
            with contextlib.suppress(OSError):  # a missing or unreadable folder cannot be created either
                _require_folder(place)
            make_folder(place)
        folder = place.parent
    except GateError:
        await plan.aclose()
        raise
    clock = SuiteClock(create_progress(call.verbosity))
    executed_run = await execute_plan(session, plan, clock)
    with treat_errors_as_incomplete():
        evaluated_run = store_run(session, decide_verdict(executed_run.result, session.gate_inputs), executed_run)
        data = build_report(evaluated_run.run, plan.suites, ReportTimes(datetime.now(UTC), clock.suites))
        texts = {kind: render_json(data) if kind == "json" else render_markdown(data) for kind in call.kinds}
        files = write_report_files(folder / REPORTS_FOLDER, texts, datetime.now(UTC))
    return ReportedRun(evaluated_run, data, files, build_view(evaluated_run.run, ReportContext()).warnings)


async def _check_formats(call: SuitesCall) -> None:
    """Refuse evals of other formats, which this command's reports could not hold. Raises GateError."""
    session = call.build_session(next(iter(call.target_settings.values())))
    inputs = await read_inputs(session.config, Selection(), session.context)
    other_files = [suite.file for suite in inputs.suites if suite.format != FORMAT]
    if other_files:
        raise GateError(
            "unsupported-suite-format",
            f"{format_count(len(other_files), 'file')} in another format than Agent Evals",
            "run evals of every format with `eval-gate run`",
            problems=[Problem("this eval file has another format", file=file) for file in other_files],
        )


class SuiteClock(Struct):
    """Observer that records the start and end of each suite and forwards every event."""

    inner: RunObserver
    suites: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """Begin and end by eval file."""
    _last: datetime = field(default_factory=lambda: datetime.now(UTC))

    def on_start(self, plan: RunPlan, total: int, completed: int) -> None:
        """Record the start of the first case, and forward the event."""
        self._last = datetime.now(UTC)
        self.inner.on_start(plan, total, completed)

    def on_trial(self, trial_record: TrialRecord) -> None:
        """Record the end of a case, which is the start of the next one, and forward the event."""
        moment = datetime.now(UTC)
        began, _ = self.suites.get(trial_record.eval_file, (self._last, moment))
        self.suites[trial_record.eval_file] = (began, moment)
        self._last = moment
        self.inner.on_trial(trial_record)

    def on_wait(self, message: str) -> None:
        """Forward the event."""
        self.inner.on_wait(message)

    def close(self) -> None:
        """Close the display."""
        self.inner.close()


def find_suite_files(name: str | None, folder: Path) -> tuple[str, ...]:
    """Find the path of the suite `name`, or the paths of all suites in `folder`, by name.

    Raises GateError for a name that is not a single file name, for links, and if there is no suite.
    """
    try:
        paths = {path.stem: path for path in _iter_suite_files(folder)}
    except OSError as error:
        raise GateError(
            "missing-suites",
            f"cannot list the suites in {folder}: {error.strerror}",
            "name the folder with --suites-dir",
        ) from error
    if name is None:
        chosen = [*paths.values()]
    else:
        _check_suite_name(name)
        if name not in paths:
            raise GateError(
                "suite-not-found",
                f"no suite {quote_name(name)} in {folder}{format_suggestion(name, paths)}",
                f"use the name of a file {folder / 'NAME.json'}, without its ending",
            )
        chosen = [paths[name]]
    if not chosen:
        raise GateError(
            "missing-suites", f"no suites in {folder}", "add a suite as a file NAME.json, or name another --suites-dir"
        )
    links = [Problem(LINK, file=path.as_posix()) for path in chosen if path.is_symlink()]
    if links:
        raise GateError(
            "suite-not-found", "suites must not be links", "replace each link with its file", problems=links
        )
    return tuple(path.as_posix() for path in chosen)


def _iter_suite_files(folder: Path) -> Iterator[Path]:
    """Yield the paths that may be suites, by name, without hidden files."""
    for path in sorted(folder.iterdir()):
        if path.suffix == SUFFIX and not path.name.startswith(".") and (path.is_symlink() or path.is_file()):
            yield path


def _check_suite_name(name: str) -> None:
    """Check that the name of a suite is a single name and not a path. Raises GateError if it is not."""
    try:
        names = split_path(name)
    except SandboxError as error:
        raise _build_name_error(name, str(error)) from None
    if len(names) != 1:
        raise _build_name_error(name, "it is a path")


def _build_name_error(name: str, why: str) -> GateError:
    message = f"--suite {quote_name(name)} is not a valid name of a suite: {why}"
    return GateError("suite-not-found", message, "use the name of a file in --suites-dir, without its folder and .json")


def split_output_path(path: str) -> tuple[str, ...]:
    """Split the output path into names below the temporary folder. Raises GateError if it is invalid or leads out."""
    try:
        return split_file_path(path)
    except SandboxError as error:
        raise GateError(
            "invalid-output-path",
            f"--out {quote_name(path)}: {error}",
            "use a path inside --tmp-dir, such as agent-evals",
        ) from None


def _require_folder(place: Path) -> None:
    kind = place.lstat().st_mode
    if not stat.S_ISDIR(kind):
        why = LINK if stat.S_ISLNK(kind) else NO_FOLDER
        raise GateError("invalid-output-path", f"{place}: {why}", "choose another folder with --out or --tmp-dir")
