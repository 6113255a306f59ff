"""The same evals against several targets, one after the other, and the table of what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from eval_gate import __version__
from eval_gate.cli.running.single_run import RunCall, configuration, run_context, selection_of
from eval_gate.cli.terminal.console import Verbosity, out, say
from eval_gate.cli.terminal.output import say_written, style_of
from eval_gate.cli.terminal.progress import progress_for
from eval_gate.config.outputs import ReportRequest
from eval_gate.config.settings import RunConfig
from eval_gate.engine.preparing.assign import assign
from eval_gate.engine.preparing.prepare import read_inputs
from eval_gate.errors import ExitCode, GateError
from eval_gate.model.selection import ChosenCases
from eval_gate.process.ending import run_async
from eval_gate.reports.matrix import Leg, Matrix, matrix_of, refuse_unknown, render_matrix, write_matrix
from eval_gate.results.baseline import NOT_ASKED_FOR, Baseline, NoBaseline
from eval_gate.results.names import LATEST, RUN_NAME
from eval_gate.results.read import first_measured, kept_in, newest_passed
from eval_gate.session.keep import KeptRun, after_asking, evaluate
from eval_gate.session.session import Session, open_session
from eval_gate.struct import replace
from eval_gate.targets.build import BuildContext
from eval_gate.targets.lookup import TargetBook
from eval_gate.targets.model.recording import Recording
from eval_gate.text.escape import console_line
from eval_gate.text.inert import TextForm
from eval_gate.text.quoting import quoted_name, shown_name

MAX_TARGETS: Final = 10
"""Columns that a table may have."""


def run_against_each(call: RunCall, names: Sequence[str]) -> ExitCode:
    """Run against each target, show the table, write it; the exit code. Raises GateError before anything was asked."""
    refuse_names(names)
    configs = {name: configuration(replace(call, flags=call.flags | {"target": name})) for name in names}
    config = configs[names[0]]
    folder = Path(config.output_dir)
    requests = _requests(call, config)
    shared = run_context()
    selection = selection_of(call, config, shared.root)
    reference, chosen = config.baseline, selection.chosen_cases
    found = {name: find_baseline_of(name, reference, folder, chosen) for name in names}
    baselines = _renamed(found, reference, folder, chosen)
    sessions = {name: open_session(own, selection, shared, baselines[name]) for name, own in configs.items()}
    run_async(check_each(sessions.values()))

    def run_one(name: str) -> KeptRun:
        return run_async(evaluate(sessions[name], progress_for(call.verbosity)))

    legs, began, interrupted = run_each(names, run_one, call.verbosity)
    matrix = matrix_of(legs, began, __version__, score_tolerance=config.policy.score_tolerance)
    code = interrupted or matrix.exit_code
    print_matrix(matrix, code, call.verbosity, as_json=call.as_json)
    with after_asking():
        say_written(write_matrix(requests, matrix, folder), call.verbosity)
    return code


def _requests(call: RunCall, config: RunConfig) -> tuple[ReportRequest, ...]:
    """The reports to write. Raises GateError for what makes sense for one run only."""
    if call.resume is not None:
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
    refuse_unknown(config.reports)
    return config.reports


def refuse_names(names: Sequence[str]) -> None:
    """Raise GateError for targets that make no table."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise GateError("several-targets", f"{quoted_name(twice)} is named twice", "name each target once")
    if len(names) > MAX_TARGETS:
        raise GateError(
            "several-targets",
            f"{len(names)} targets are too many for one table",
            f"compare at most {MAX_TARGETS} at once",
        )


def find_baseline_of(
    name: str, reference: str | None, output_dir: Path, chosen: Sequence[ChosenCases] = ()
) -> Baseline | NoBaseline:
    """The newest complete run of the same target in a folder of runs; with `latest` the newest result that passed.

    `chosen` says which cases are chosen: a run of all of these is as good as one of everything.

    Raises GateError for any other baseline: one run cannot be what several targets are held against.
    """
    if reference is None:
        return NOT_ASKED_FOR
    if reference == LATEST:
        return newest_passed(output_dir, target=name, chosen=chosen)
    folder = Path(reference)
    if not folder.is_dir() or (folder / RUN_NAME).exists():
        raise GateError(
            "several-targets",
            f"one run cannot be the baseline of several targets: {shown_name(reference)}",
            "name a folder of runs (or latest): each target is compared with its own newest run there",
        )
    own = [one for one in kept_in(folder) if one.head.target.name == name]
    complete = [one for one in own if one.head.complete and one.head.covers(chosen)]
    if not complete:
        return NoBaseline("none-yet", f"there is no complete run of {shown_name(name)} in {folder} yet")
    absent = NoBaseline(
        "none-yet", f"in no run of {shown_name(name)} in {folder} could half of the cases be judged yet"
    )
    return first_measured(complete, reference, own) or absent


def _renamed(
    found: Mapping[str, Baseline | NoBaseline],
    reference: str | None,
    output_dir: Path,
    chosen: Sequence[ChosenCases],
) -> Mapping[str, Baseline | NoBaseline]:
    """The same; a target that was never run beside others that were may have had another name.

    It is compared with the newest run of a target that is not asked any more, if there is one.
    """
    if reference != LATEST or not any(isinstance(one, Baseline) for one in found.values()):
        return found
    other = newest_passed(output_dir, chosen=chosen, but=found.keys())
    if isinstance(other, NoBaseline):
        return found
    never = {name for name, one in found.items() if isinstance(one, NoBaseline) and one.code == "none-yet"}
    return {name: other if name in never else one for name, one in found.items()}


def run_each(
    names: Sequence[str], run_one: Callable[[str], KeptRun], verbosity: Verbosity
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
            kept = run_one(name)
        except GateError as error:
            if number == 1:
                raise
            legs.append(Leg(name, problem=f"{error.message} ({error.hint})" if error.hint else error.message))
            continue
        interrupted = kept.interrupted
        legs.append(Leg(name, kept.run, str(kept.record)))
    return legs, began, interrupted


def print_matrix(matrix: Matrix, code: ExitCode, verbosity: Verbosity, *, as_json: bool = False) -> None:
    """The table on standard output, what it amounts to last; or all of it for programs."""
    if as_json:
        out(render_matrix("json", matrix), TextForm.JSON, end="")
        return
    out(render_matrix("console", matrix, style_of(verbosity)))
    out(f"{matrix.heading}   exit {int(code)}")


async def check_each(sessions: Iterable[Session]) -> None:
    """Raise GateError for what is wrong with the files or with any of the targets. Nobody is asked anything."""
    for session in sessions:
        config, context = session.config, session.context
        inputs = await read_inputs(config, session.selection, context, offline=True)
        shared = BuildContext(context.environment, context.root, recording=Recording(config.cache))
        assign(inputs.suites, TargetBook(config.target, shared), config)
