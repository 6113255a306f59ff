"""What `eval-gate agent-evals` does: prepare, run, report; once, or once for each of several who answer.

Which suites it runs, and where its reports go: names from a command line, made paths. Source: Agent Evals, "Arguments";
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
from eval_gate.cli.running.matrix import check_each, print_matrix, refuse_names, run_each
from eval_gate.cli.running.single_run import run_context
from eval_gate.cli.terminal.console import Verbosity, out
from eval_gate.cli.terminal.output import style_of
from eval_gate.cli.terminal.progress import progress_for
from eval_gate.config.load import load_config
from eval_gate.config.policy import Policy
from eval_gate.config.selection import Selection
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.preparing.context import RunContext
from eval_gate.engine.preparing.prepare import read_inputs
from eval_gate.engine.preparing.project_tmp import ProjectTmp
from eval_gate.errors import ExitCode, GateError, Problem, did_you_mean
from eval_gate.files.writing import make_folder
from eval_gate.gate.judge import GateQuestion, judge
from eval_gate.process.ending import run_async
from eval_gate.reports.agent_evals import (
    FORMAT,
    ReportTimes,
    as_json,
    as_markdown,
    render_console_summary,
    report,
    write,
)
from eval_gate.reports.context import ReportContext
from eval_gate.reports.matrix import matrix_of, render_matrix
from eval_gate.reports.view.view import view_of
from eval_gate.results.baseline import NOT_ASKED_FOR
from eval_gate.sandbox.paths import LINK, NO_FOLDER, SandboxError, file_names, names_of
from eval_gate.session.keep import KeptRun, after_asking, keep
from eval_gate.session.run import RunObserver, carry_out, plan_run
from eval_gate.session.session import Session
from eval_gate.struct import FrozenStruct, Struct, field, replace
from eval_gate.text.quoting import quoted_name

SUFFIX: Final = ".json"
REPORTS: Final = "reports"


class SuitesCall(FrozenStruct):
    """One call of the command. `kinds` are the reports' endings; `out` leads from `tmp` to where they go."""

    suites: tuple[str, ...]
    tmp: Path
    out: tuple[str, ...]
    kinds: tuple[str, ...]
    answerers: Mapping[str, Mapping[str, JsonValue]]
    """Who answers, by name, as settings of a run; those of nobody in particular are empty."""
    tags: tuple[str, ...]
    verbosity: Verbosity
    context: RunContext = field(default_factory=run_context)

    @property
    def folder(self) -> Path:
        """Where reports and results go."""
        return self.tmp.joinpath(*self.out)

    def session(self, answerer: Mapping[str, JsonValue]) -> Session:
        """The run that is to be made. The project's own configuration is about other evals and is not read."""
        fixed: dict[str, JsonValue] = {
            "evals": [*self.suites],
            "outputDir": str(self.folder),
            "concurrency": 1,  # one case at a time
        }
        config = load_config({**fixed, **answerer}, {}, None)
        # side by side all begin alike, in copies; else the folder is the one that the format speaks of
        here = replace(
            self.context, tmp=ProjectTmp(self.tmp, in_place=len(self.answerers) < 2, checked_in=False, output=self.out)
        )
        # compared with nothing, and nobody makes an exception of anything
        return Session(config, Selection(tags=self.tags), here, GateQuestion(NOT_ASKED_FOR, Policy()))


class Reported(FrozenStruct):
    """A run with its report as data and as files, and what is worth a warning."""

    kept: KeptRun
    data: Mapping[str, object]
    files: tuple[Path, ...]
    warnings: tuple[str, ...]


def run_suites(call: SuitesCall) -> ExitCode:
    """Run the suites and report; the exit code. Raises GateError for what is wrong before anything was asked."""
    run_async(_refuse_others(call))
    if len(call.answerers) > 1:
        return _run_for_each(call)
    (answerer,) = call.answerers.values()
    reported = _run(call, answerer)
    out(render_console_summary(reported.data, reported.warnings, style_of(call.verbosity)), end="")
    for file in reported.files:
        out(f"report: {file}")
    out(f"result: {reported.kept.record}")
    return reported.kept.interrupted or _exit_code([reported])


def _run_for_each(call: SuitesCall) -> ExitCode:
    """Run the suites once for each of those who answer, with a report of each, and put them side by side."""
    names = [*call.answerers]
    refuse_names(names)
    run_async(check_each(map(call.session, call.answerers.values())))
    done: dict[str, Reported] = {}

    def run_one(name: str) -> KeptRun:
        done[name] = _run(call, call.answerers[name])
        return done[name].kept

    legs, began, interrupted = run_each(names, run_one, call.verbosity)
    matrix = matrix_of(legs, began, __version__)
    code = interrupted or _exit_code([*done.values()])
    if len(done) < len(names) and code is ExitCode.PASSED:
        code = ExitCode.INCOMPLETE
    print_matrix(matrix, code, call.verbosity)
    texts = {kind: render_matrix(kind, matrix) for kind in call.kinds}
    with after_asking():
        written = write(call.folder / REPORTS, texts, datetime.now(UTC), "matrix")
    for name, reported in done.items():
        for file in reported.files:
            out(f"report of {name}: {file}")
    for file in written:
        out(f"report: {file}")
    return code


def _exit_code(reported: Sequence[Reported]) -> ExitCode:
    """0 when every case passed; 1 when one failed or could not be judged, and when there was nothing to pass."""
    runs = [one.kept.run.summary for one in reported]
    good = runs and all(run.passed and run.passed + run.skipped == run.total_cases for run in runs)
    return ExitCode.PASSED if good else ExitCode.FAILED


def _run(call: SuitesCall, answerer: Mapping[str, JsonValue]) -> Reported:
    """One run with its record and its reports."""
    return run_async(_run_and_report(call, call.session(answerer)))


async def _run_and_report(call: SuitesCall, session: Session) -> Reported:
    plan = await plan_run(session)
    try:
        folder = output_folder(call.tmp, call.out)
    except GateError:
        await plan.aclose()
        raise
    clock = Clock(progress_for(call.verbosity))
    made = await carry_out(session, plan, clock)
    with after_asking():
        kept = keep(session, judge(made.result, session.question), made)
        data = report(kept.run, plan.suites, ReportTimes(datetime.now(UTC), clock.suites))
        texts = {kind: as_json(data) if kind == "json" else as_markdown(data) for kind in call.kinds}
        files = write(folder / REPORTS, texts, datetime.now(UTC))
    return Reported(kept, data, files, view_of(kept.run, ReportContext()).warnings)


async def _refuse_others(call: SuitesCall) -> None:
    """Refuse evals of other formats, which this command's reports could not hold. Raises GateError."""
    session = call.session(next(iter(call.answerers.values())))
    inputs = await read_inputs(session.config, Selection(), session.context)
    others = [suite.file for suite in inputs.suites if suite.format != FORMAT]
    if others:
        raise GateError(
            "not-agent-evals",
            f"{len(others)} of the files {'is no suite' if len(others) == 1 else 'are no suites'} of Agent Evals",
            "`eval-gate run` runs evals of every format",
            problems=[Problem("an eval file of another format", file=file) for file in others],
        )


class Clock(Struct):
    """An observer that knows when each suite began and ended, and passes on what it hears."""

    inner: RunObserver
    suites: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    """Begin and end by eval file."""
    _last: datetime = field(default_factory=lambda: datetime.now(UTC))

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """The first case begins now."""
        self._last = datetime.now(UTC)
        self.inner.started(plan, total, done)

    def finished(self, record: TrialRecord) -> None:
        """A case ended, and the next one begins."""
        now = datetime.now(UTC)
        began, _ = self.suites.get(record.eval_file, (self._last, now))
        self.suites[record.eval_file] = (began, now)
        self._last = now
        self.inner.finished(record)

    def waiting(self, said: str) -> None:
        """Pass it on."""
        self.inner.waiting(said)

    def close(self) -> None:
        """Put the display away."""
        self.inner.close()


def suite_files(wanted: str | None, folder: Path) -> tuple[str, ...]:
    """The path of the suite `wanted`, or of all suites in `folder`, by name.

    Raises GateError for a name that is more than one name of a file, for links, and where there is no suite.
    """
    try:
        found = {path.stem: path for path in _listed(folder)}
    except OSError as error:
        raise GateError(
            "no-suites", f"the suites in {folder} cannot be listed: {error.strerror}", "say where with --suites-dir"
        ) from error
    if wanted is None:
        chosen = [*found.values()]
    else:
        _refuse_path(wanted)
        if wanted not in found:
            raise GateError(
                "no-such-suite",
                f"there is no suite {quoted_name(wanted)} in {folder}{did_you_mean(wanted, found)}",
                f"NAME is that of a file {folder / 'NAME.json'}, without its ending",
            )
        chosen = [found[wanted]]
    if not chosen:
        raise GateError("no-suites", f"there are no suites in {folder}", "a suite is a file NAME.json: nothing was run")
    links = [Problem(LINK, file=path.as_posix()) for path in chosen if path.is_symlink()]
    if links:
        raise GateError("no-such-suite", "suites are files, not links", "put the files there", problems=links)
    return tuple(path.as_posix() for path in chosen)


def _listed(folder: Path) -> Iterator[Path]:
    """What may be suites, by name. Hidden files are none."""
    for path in sorted(folder.iterdir()):
        if path.suffix == SUFFIX and not path.name.startswith(".") and (path.is_symlink() or path.is_file()):
            yield path


def _refuse_path(wanted: str) -> None:
    """A suite is named by one name and nothing that leads anywhere."""
    try:
        names = names_of(wanted)
    except SandboxError as error:
        raise _no_name(wanted, str(error)) from None
    if len(names) != 1:
        raise _no_name(wanted, "it is not one name")


def _no_name(wanted: str, why: str) -> GateError:
    message = f"--suite {quoted_name(wanted)} is not the name of a suite: {why}"
    return GateError("no-such-suite", message, "the name of a file in --suites-dir, without its folder and .json")


def output_names(out: str) -> tuple[str, ...]:
    """The names that lead from the folder of temporary files to the output. Raises GateError."""
    try:
        return file_names(out)
    except SandboxError as error:
        raise GateError(
            "bad-out", f"--out {quoted_name(out)}: {error}", "a path inside --tmp-dir, such as agent-evals"
        ) from None


def output_folder(tmp: Path, names: tuple[str, ...]) -> Path:
    """The folder for reports and results, made if needed, as are the folders on the way. Raises GateError.

    Neither `tmp` nor anything below it on the way may be a link.
    """
    place = tmp
    for name in (".", *names, REPORTS):
        place /= name
        with contextlib.suppress(OSError):  # what is not there, or not to be looked at, cannot be made either
            _refuse_other(place)
        make_folder(place)
    return place.parent


def _refuse_other(place: Path) -> None:
    kind = place.lstat().st_mode
    if not stat.S_ISDIR(kind):
        why = LINK if stat.S_ISLNK(kind) else NO_FOLDER
        raise GateError("bad-out", f"{place}: {why}", "choose another folder with --out or --tmp-dir")
