"""What happens when evals are run from a command line, from the configuration to the exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from eval_gate.cli.console import Verbosity, say
from eval_gate.cli.git import git_facts
from eval_gate.cli.output import print_result, say_written
from eval_gate.cli.progress import progress_for
from eval_gate.config.load import find_config, load_config
from eval_gate.config.settings import RunConfig, Selection
from eval_gate.engine.preparing.prepare import prepare
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.confirming import Reruns
from eval_gate.gate.evidence.past import ledger_after
from eval_gate.gate.judge import Question, judge
from eval_gate.gate.limits import Policy
from eval_gate.gate.waivers.known import KnownWaivers, known_waivers
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.files import ReportRequest, asked_for, write_reports
from eval_gate.reports.rerun import rerun_command
from eval_gate.reports.words.accepting import accept_line
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.read import find_baseline
from eval_gate.results.write import write_result
from eval_gate.session.interruptible import execute


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of `run`: what was given on the command line."""

    flags: dict[str, JsonValue]
    config_file: Path | None
    selection: Selection
    resume: str | None
    as_json: bool
    verbosity: Verbosity
    root: Path = field(default_factory=Path.cwd)
    """What the paths of eval files, seeds, snapshots and registries are relative to."""
    own_configuration: bool = True
    """Whether the person's own file and variables are read; the demonstration has its own."""


@dataclass(frozen=True, slots=True)
class Judging:
    """What the result is held against, and where it goes: decided before anything is asked of the target."""

    policy: Policy
    baseline: Baseline | NoBaseline
    reports: tuple[ReportRequest, ...]
    output_dir: Path
    waivers: KnownWaivers
    accepted_file: str | None = None
    """Where accepted failures are, if not in the usual place."""

    def question(self, asked: Asked) -> Question:
        """What the run is judged by."""
        return Question(self.baseline, self.policy, asked.selection.everything, self.waivers)

    def reruns(self, config: RunConfig, asked: Asked) -> Reruns | None:
        """Who says which cases are run again; None where nobody asked for it."""
        return Reruns(self.question(asked), config.confirm) if config.confirm else None


def run_and_judge(asked: Asked) -> ExitCode:
    """Run, write, compare, print; the exit code. Raises GateError for what is wrong before anything was asked."""
    config = configuration(asked)
    output_dir = Path(config.output_dir)
    judging = Judging(
        policy=Policy.of(config),
        baseline=find_baseline(config.baseline_reference, output_dir, config.history, besides=asked.resume),
        reports=asked_for(config),
        output_dir=output_dir,
        waivers=known_waivers(config, asked.root, datetime.now(UTC).date()),
        accepted_file=config.accepted_path,
    )
    result, interrupted = asyncio.run(ask(asked, config, judging.reruns(config, asked)))
    try:
        judged = _publish(result, judging, asked)
    except GateError as error:
        # from here on something has been run: whatever cannot be written is not a mistake of usage any more
        error.exit_code = ExitCode.INCOMPLETE
        raise
    if interrupted is not None:
        say(f"to go on: eval-gate run --resume {result.run_id} with the same options")
        return interrupted
    return judged.verdict.exit_code if judged.verdict else ExitCode.INCOMPLETE


def configuration(asked: Asked) -> RunConfig:
    """Flags, variables and file as one. Raises GateError with every problem of all of them."""
    if not asked.own_configuration:
        return load_config(asked.flags, {}, None)
    file = asked.config_file or find_config(asked.root)
    config = load_config(asked.flags, os.environ, file)
    if file is not None and asked.config_file is None and asked.verbosity is Verbosity.VERBOSE:
        say(f"configuration: {file}")
    return config


async def ask(asked: Asked, config: RunConfig, reruns: Reruns | None = None) -> tuple[RunResult, ExitCode | None]:
    """The result, and the exit code of the signal that ended the run early, if one did."""
    plan = await prepare(
        config,
        asked.selection,
        root=asked.root,
        environment=os.environ,
        resume=asked.resume,
        git=git_facts(os.environ, asked.root),
    )
    if reruns is not None:
        plan = plan.confirmed_by(reruns, config.confirm)
    progress = progress_for(asked.verbosity)
    try:
        return await execute(plan, Path(config.output_dir), progress)
    finally:
        progress.close()


def _publish(result: RunResult, judging: Judging, asked: Asked) -> RunResult:
    """Judge, write, and show: the record first, the summary next, so that a report that fails takes neither away."""
    judged = judge(result, judging.question(asked))
    record = write_result(judging.output_dir, judged, ledger_after(judged, judging.baseline))
    context = ReportContext(
        result_path=str(record),
        # the demonstration cannot be asked for single cases
        rerun_command=rerun_command(sys.argv[1:], judged, judging.baseline) if asked.own_configuration else None,
        accept_line=accept_line(judged, judging.accepted_file) if asked.own_configuration else None,
        no_baseline_reason=judging.baseline.reason if isinstance(judging.baseline, NoBaseline) else None,
    )
    print_result(judged, context, asked.verbosity, as_json=asked.as_json)
    say_written(write_reports(judging.reports, judged, context, record.parent), asked.verbosity)
    return judged
