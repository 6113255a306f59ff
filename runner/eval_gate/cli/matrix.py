"""The same evals against several targets, one after the other, and the table of what came of it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eval_gate import __version__
from eval_gate.cli.console import Form, Verbosity, ascii_only, colours, out, say
from eval_gate.cli.output import say_written
from eval_gate.cli.running import Asked, Judging, ask, configuration
from eval_gate.config.settings import RunConfig, Selection
from eval_gate.engine.preparing.assign import assign
from eval_gate.engine.preparing.prepare import read_inputs, target_choice
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.evidence.past import ledger_after
from eval_gate.gate.judge import judge
from eval_gate.gate.limits import Policy
from eval_gate.gate.waivers.known import known_waivers
from eval_gate.model.result import RunResult
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.files import ReportRequest, parse_reports
from eval_gate.reports.matrix.render import refuse_unknown, render_matrix, write_matrix
from eval_gate.reports.matrix.view import Leg, Matrix, matrix_of
from eval_gate.results.baseline import NOT_ASKED_FOR, Baseline, NoBaseline
from eval_gate.results.names import LATEST, RUN_NAME
from eval_gate.results.read import first_measured, kept_in, newest_passed
from eval_gate.results.write import write_result
from eval_gate.targets.book import TargetBook
from eval_gate.targets.build import Surroundings
from eval_gate.targets.model.recording import Mode, Recording
from eval_gate.text.escape import console_line

MAX_TARGETS: Final = 10
"""Columns that a table may have."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A run against one target: judged, written, and whether a signal ended it early."""

    run: RunResult
    record: Path
    interrupted: ExitCode | None


def run_against_each(asked: Asked, names: Sequence[str]) -> ExitCode:
    """Run against each target, show the table, write it; the exit code. Raises GateError before anything was asked."""
    refuse_names(names)
    configs = {name: configuration(replace(asked, flags=asked.flags | {"target": name})) for name in names}
    config = configs[names[0]]
    folder = Path(config.output_dir)
    requests = _requests(asked, config)
    judgings = _judgings(asked, config, names)
    asyncio.run(check_each(configs.values(), asked.selection, asked.root))

    def run_one(name: str) -> Finished:
        judging = judgings[name]
        result, interrupted = asyncio.run(ask(asked, configs[name], judging.reruns(configs[name], asked)))
        judged = judge(result, judging.question(asked))
        with after_asking():
            record = write_result(folder, judged, ledger_after(judged, judging.baseline))
            return Finished(judged, record, interrupted)

    legs, began, interrupted = run_each(names, run_one, asked.verbosity)
    matrix = matrix_of(legs, began, __version__, score_tolerance=config.score_tolerance)
    code = interrupted or matrix.exit_code
    print_matrix(matrix, code, asked.verbosity, as_json=asked.as_json)
    with after_asking():
        say_written(write_matrix(requests, matrix, folder), asked.verbosity)
    return code


def _requests(asked: Asked, config: RunConfig) -> tuple[ReportRequest, ...]:
    """The reports to write. Raises GateError for what makes sense for one run only."""
    if asked.resume is not None:
        raise GateError(
            "several-targets",
            "--resume goes on with one run, and several targets are several runs",
            "name the one target of that run",
        )
    if config.exports:
        raise GateError(
            "several-targets",
            "--export writes the results of one run, and several targets are several runs",
            "`eval-gate report RUN --format agentv` exports each of them afterwards",
        )
    requests = parse_reports(config.reports)
    refuse_unknown(requests)
    return requests


def _judgings(asked: Asked, config: RunConfig, names: Sequence[str]) -> dict[str, Judging]:
    """What each target's run is held against: the same but for the baseline."""
    folder = Path(config.output_dir)
    common = Judging(
        policy=Policy.of(config),
        baseline=NOT_ASKED_FOR,
        reports=(),
        output_dir=folder,
        waivers=known_waivers(config, asked.root, datetime.now(UTC).date()),
    )
    return {name: replace(common, baseline=find_baseline_of(name, config.baseline_reference, folder)) for name in names}


@contextmanager
def after_asking() -> Iterator[None]:
    """Something has been run: what cannot be written now is no mistake of usage any more."""
    try:
        yield
    except GateError as error:
        error.exit_code = ExitCode.INCOMPLETE
        raise


def refuse_names(names: Sequence[str]) -> None:
    """Raise GateError for targets that make no table."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise GateError("several-targets", f'"{twice[:80]}" is named twice', "name each target once")
    if len(names) > MAX_TARGETS:
        raise GateError(
            "several-targets",
            f"{len(names)} targets are too many for one table",
            f"compare at most {MAX_TARGETS} at once",
        )


def find_baseline_of(name: str, reference: str | None, output_dir: Path) -> Baseline | NoBaseline:
    """The newest complete run of the same target in a folder of runs; with `latest` the newest result that passed.

    Raises GateError for any other baseline: one run cannot be what several targets are held against.
    """
    if reference is None:
        return NOT_ASKED_FOR
    if reference == LATEST:
        return newest_passed(output_dir, target=name)
    folder = Path(reference)
    if not folder.is_dir() or (folder / RUN_NAME).exists():
        raise GateError(
            "several-targets",
            f"one run cannot be the baseline of several targets: {reference[:200]}",
            "name a folder of runs (or latest): each target is compared with its own newest run there",
        )
    own = [one for one in kept_in(folder) if one.run.target.name == name]
    complete = [one for one in own if one.run.complete and not one.run.partial]
    if not complete:
        return NoBaseline("none-yet", f"there is no complete run of {name[:80]} in {folder} yet")
    absent = NoBaseline("none-yet", f"in no run of {name[:80]} in {folder} could half of the cases be judged yet")
    return first_measured(complete, reference, [one.run for one in own]) or absent


async def check_each(configs: Iterable[RunConfig], selection: Selection, root: Path) -> None:
    """Raise GateError for what is wrong with the files or with any of the targets, before the first one is asked."""
    for config in configs:
        inputs = await read_inputs(config, selection, root, offline=True)
        around = Surroundings(os.environ, root, recording=Recording(Mode(config.cache.value)))
        book = TargetBook(target_choice(config), around)
        assign(inputs.suites, book, judge=config.judge, rubric=config.rubric, timeout_s=config.timeout_ms / 1000)


def run_each(
    names: Sequence[str], run_one: Callable[[str], Finished], verbosity: Verbosity
) -> tuple[list[Leg], str, ExitCode | None]:
    """One run after the other: the legs, when the first began, and the exit code of a signal that ended all early.

    What breaks one run is told with its target, and does not take the results of the others away.
    """
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    legs: list[Leg] = []
    interrupted = None
    for number, name in enumerate(names, start=1):
        if interrupted is not None:
            legs.append(Leg(name))
            continue
        if verbosity is not Verbosity.QUIET:
            say(f"target {number} of {len(names)}: {console_line(name, 200)}")
        try:
            finished = run_one(name)
        except GateError as error:
            if number == 1:
                raise
            legs.append(Leg(name, problem=f"{error.message} ({error.hint})" if error.hint else error.message))
            continue
        interrupted = finished.interrupted
        legs.append(Leg(name, finished.run, str(finished.record)))
    return legs, began, interrupted


def print_matrix(matrix: Matrix, code: ExitCode, verbosity: Verbosity, *, as_json: bool = False) -> None:
    """The table on standard output, what it amounts to last; or all of it for programs."""
    if as_json:
        out(render_matrix("json", matrix), Form.JSON, end="")
        return
    style = ConsoleStyle(
        colour=colours(sys.stdout), ascii=ascii_only(sys.stdout), verbose=verbosity is Verbosity.VERBOSE
    )
    out(render_matrix("console", matrix, style))
    out(f"{matrix.heading}   exit {int(code)}")
