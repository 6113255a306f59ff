"""Write a new eval file of drafts from a target's responses or a source, and print a summary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.cli.repository.draft_call import DraftCall, DraftMode
from eval_gate.cli.terminal.console import Verbosity, print_message, print_output
from eval_gate.cli.terminal.live_progress import create_progress
from eval_gate.cli.terminal.standard_streams import reserve_stdout
from eval_gate.config.settings import RunConfig
from eval_gate.drafts.draft_file import (
    DraftFile,
    SkippedObservation,
    build_draft_file,
    find_format,
    list_unseen,
    require_new_file,
)
from eval_gate.drafts.observation import Observation, ObservationSet, mask_observations
from eval_gate.drafts.sources.questions import read_questions
from eval_gate.drafts.stored_responses import ResponseStore, build_stored_responses
from eval_gate.drafts.turn_joining import list_turns
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import ExitCode, GateError, Problem
from eval_gate.files.file_paths import DRAFT_RECORDING, format_path
from eval_gate.files.writing import make_folder, remove_file, write_atomically
from eval_gate.model.execution import format_error
from eval_gate.process.signals import run_async
from eval_gate.session.case_observations import ObservedRun, observe_cases, remove_run_folder, require_responses
from eval_gate.session.evaluated_commit import find_git_facts
from eval_gate.session.tool_reruns import build_redactor
from eval_gate.struct import replace
from eval_gate.text.escape import format_count, to_console_line, to_one_line
from eval_gate.text.quoting import quote_value
from eval_gate.text.redaction import Redactor
from eval_gate.text.safe_output import reveal_all_invisible
from eval_gate.text.shell import format_shell_line

_MAX_LISTED: Final = 20
"""Reasons for questions without a case that are listed without --verbose."""
_MAX_PROMPT: Final = 60
_MAX_REASON: Final = 500
_NO_EXECUTION: Final = "it was not asked"


def write_drafts(call: DraftCall, mode: DraftMode) -> ExitCode:
    """Write the drafts of this call to a new file, and return the exit code.

    Raises GateError before anything is asked, and `no-drafts` if there is nothing to write.
    """
    assert call.output is not None  # checked by the mode
    form = find_format(call.format, call.output)
    config = call.load_config()
    if mode is DraftMode.QUESTIONS:
        observed = _ask_questions(call, call.output, config)
        if observed.interrupted is not None:
            print_message(f"Next step: continue with --resume {observed.run.run_id} and the same options")
            return observed.interrupted
        source = mask_observations(_build_set(observed), observed.redactor, config.redact)
    else:
        observed = None
        source = read_source(call, mode, config)
    root = Path.cwd()
    drafts = run_async(build_draft_file(source.observations, form, root / call.output, root))
    if not drafts.cases:
        raise _build_empty_error(drafts, observed.run.run_id if observed else None)
    make_folder(call.output.parent)
    require_new_file(call.output)  # once more: a recording may take hours
    stored = [build_stored_responses(case.id, case.observation) for case in drafts.cases]
    ResponseStore(Path(config.output_dir)).add(stored)
    write_atomically(call.output, drafts.text)
    if observed is not None:
        remove_run_folder(observed.folder)
    elif mode is DraftMode.PROXY:
        discard_recording(config)
    _print_summary(drafts, source, call)
    return ExitCode.PASSED


def _ask_questions(call: DraftCall, output: Path, config: RunConfig) -> ObservedRun:
    """Ask the questions as a run of the new eval file would: a program works in its folder."""
    root = Path.cwd()
    suite = read_questions(root / call.files[0], root, format_path(root / output, root), as_turns=call.has_turns)
    make_folder(output.parent)
    context = RunContext(root, os.environ, find_git_facts(os.environ, root), call.resume)
    progress = create_progress(call.verbosity)
    with reserve_stdout():
        return run_async(observe_cases(config, [suite], context, progress, judges_refusals=True))


def _build_set(observed: ObservedRun) -> ObservationSet:
    """Build the set of observations; questions without an execution have the reason as their error."""
    why = format_error(observed.run.stop_reason, observed.run.stop_hint) or _NO_EXECUTION
    observations = (
        one if one.responses or one.errors else replace(one, errors=(why,)) for one in observed.observations.values()
    )
    return ObservationSet(tuple(observations), observed.tools, observed.run.warnings)


def _build_empty_error(drafts: DraftFile, run_id: str | None) -> GateError:
    """Build the error for a source without drafts; `run_id` is the run that executed the questions, if any."""
    resume = f"see why, then continue with --resume {run_id} and the same options" if run_id else None
    return GateError(
        "no-drafts",
        "no question got a case: nothing was written" if drafts.skipped else "the source holds no question",
        resume or "see why, and use another source",
        problems=_list_problems(drafts.skipped),
        exit_code=ExitCode.INCOMPLETE,
    )


def _list_problems(skipped: Sequence[SkippedObservation]) -> list[Problem]:
    """List why questions got no case: each question that has responses, and each reason of the others once."""
    by_reason: dict[tuple[str, str], list[Observation]] = {}
    for one in skipped:
        question = one.observation.question if one.observation.responses else ""
        by_reason.setdefault((to_one_line(one.reason, _MAX_REASON), question), []).append(one.observation)
    problems = []
    for (reason, _), observations in by_reason.items():
        where, more = observations[0].location, len(observations) - 1
        other_questions = f" and {format_count(more, 'other question')}" if more else ""
        message = f"{_format_question(observations[0])}{other_questions}: {reason}"
        problems.append(Problem(message, file=where.file if where else None, line=where.line if where else None))
    return problems


def _format_question(observation: Observation) -> str:
    turns = list_turns(observation)
    text = to_one_line(turns[0].question, _MAX_PROMPT)
    return text if len(turns) == 1 else f"{text} ({format_count(len(turns), 'turn')})"


def _print_summary(drafts: DraftFile, source: ObservationSet, call: DraftCall) -> None:
    """Print the written drafts, the skipped questions with reasons, and behavior that the drafts lack."""
    assert call.output is not None
    executions = sum(len(case.observation.responses) for case in drafts.cases)
    drafted = format_count(len(drafts.cases), "draft")
    _print_lines([f"{call.output.as_posix()}: {drafted} from {format_count(executions, 'execution')}"])
    if call.verbosity is Verbosity.QUIET:
        return
    for note in source.notes:
        print_message(f"note: {to_console_line(note)}")
    every = call.verbosity is Verbosity.VERBOSE
    for case in drafts.cases:
        _print_lines([f"  {case.id}  {_format_question(case.observation)}"])
        if every:
            _print_lines([f"    {to_one_line(case.description, _MAX_REASON)}"])
    _print_skipped(drafts.skipped, every=every)
    unseen = list_unseen([case.observation for case in drafts.cases], source.tools)
    if unseen:
        _print_lines(["", "These drafts have never seen:", *(f"  {one}" for one in unseen)])
    review = format_shell_line(["eval-gate", "draft", "--review", call.output.as_posix()])
    _print_lines(["", f"Next step: {review}"])


def _print_skipped(skipped: Sequence[SkippedObservation], *, every: bool) -> None:
    if not skipped:
        return
    problems = _list_problems(skipped)
    head = problems if every else problems[:_MAX_LISTED]
    _print_lines(["", f"No case for {format_count(len(skipped), 'question')}:", *(f"  {one}" for one in head)])
    if len(head) < len(problems):
        _print_lines([f"  {len(problems) - len(head):,} more reasons: --verbose lists them"])


def _print_lines(lines: Sequence[str]) -> None:
    """Print lines that may hold untrusted text."""
    for line in lines:
        print_output(reveal_all_invisible(line))


def read_source(call: DraftCall, mode: DraftMode, config: RunConfig) -> ObservationSet:
    """Read what the source of this call holds, with secrets and the matches of `redact` masked. Raises GateError."""
    require_responses(config)
    redact = build_redactor(RunContext(Path.cwd(), os.environ))
    redact.add_secrets(os.environ[name] for name in config.pass_env if name in os.environ)
    try:
        observations = _read_mode(call, mode, config, redact)
    except GateError as error:  # it may quote the source
        error.mask(redact.mask_message)
        raise
    return mask_observations(observations, redact, config.redact)


def discard_recording(config: RunConfig) -> None:
    """Remove the journal of the proxy, after its drafts are written. Raises GateError."""
    journal = _get_journal(config)
    if journal.exists():
        remove_file(journal)


def _read_mode(call: DraftCall, mode: DraftMode, config: RunConfig, redact: Redactor) -> ObservationSet:
    match mode:
        case DraftMode.LOG if call.from_log is not None:
            from eval_gate.drafts.sources.json_log import read_log

            return read_log(call.from_log, parse_fields(call.fields))
        case DraftMode.TRACES if call.from_traces is not None:
            from eval_gate.drafts.sources.traces import read_traces

            return read_traces(call.from_traces)
        case DraftMode.RESULTS:
            from eval_gate.drafts.sources.results import read_results

            return read_results(call.from_results, config.results.format, config.results.encoding)
        case DraftMode.PROXY if call.port is not None:
            return _record(call.port, config, redact)
        case _:
            raise AssertionError(mode)


def _record(port: int, config: RunConfig, redact: Redactor) -> ObservationSet:
    """Record the chosen HTTP target until a signal. Raises GateError."""
    from eval_gate.drafts.sources.proxy import ProxyRecording, record_proxy
    from eval_gate.process.signals import run_async
    from eval_gate.targets.build_context import BuildContext
    from eval_gate.targets.catalog import TargetCatalog
    from eval_gate.targets.http.settings import HttpSettings
    from eval_gate.text.urls import iter_url_secrets

    context = BuildContext(environment=os.environ, root=Path.cwd(), redact=redact)
    settings = TargetCatalog(config.target, context).resolve_target().settings
    if not isinstance(settings, HttpSettings):
        raise GateError(
            "invalid-proxy",
            f"the proxy records only agents over HTTP, and the target is of the kind {settings.provider}",
            "name the agent: --agent-endpoint http://127.0.0.1:8000/chat",
        )
    redact.add_secrets(iter_url_secrets(settings.url.open()))
    recording = ProxyRecording(_get_journal(config), redact, config.redact, print_message)
    source = run_async(record_proxy(port, settings, recording))
    if not source.observations:
        discard_recording(config)
    return source


def _get_journal(config: RunConfig) -> Path:
    return Path(config.output_dir) / DRAFT_RECORDING


def parse_fields(field_options: Sequence[str]) -> Mapping[str, str]:
    """Parse the values of `--field`, each NAME=PATH. Raises GateError `unknown-value` with every problem."""
    fields: dict[str, str] = {}
    problems: list[Problem] = []
    for text in field_options:
        name, equals, path = text.partition("=")
        if not equals or not name.strip() or not path.strip():
            problems.append(Problem(f"{quote_value(text)} is not NAME=PATH", field="--field"))
        elif name.strip() in fields:
            problems.append(Problem(f"{quote_value(name.strip())} is given twice", field="--field"))
        else:
            fields[name.strip()] = path.strip()
    if problems:
        hint = "write such as --field question=request.text"
        raise GateError("unknown-value", "--field needs NAME=PATH", hint, problems=problems)
    return fields
