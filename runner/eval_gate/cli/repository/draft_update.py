"""Update cases: run them, show what would change in the eval files, and write it when confirmed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval_gate.cli.repository.draft_call import DraftCall
from eval_gate.cli.repository.draft_review import ask_for_letter, load_case_files, load_tokens, open_response_store
from eval_gate.cli.terminal.console import Verbosity, print_message, print_output
from eval_gate.cli.terminal.live_progress import create_progress
from eval_gate.cli.terminal.standard_streams import reserve_stdout
from eval_gate.config.settings import RunConfig
from eval_gate.drafts.case_edit import CaseFile
from eval_gate.drafts.observation import ObservationSet, mask_observations
from eval_gate.drafts.stored_responses import build_stored_responses
from eval_gate.drafts.update import ObservedCase, render_diff, update_case
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import ExitCode, GateError, Problem, format_suggestion
from eval_gate.formats.dialect_names import UPDATABLE_DIALECTS
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.process.signals import run_async
from eval_gate.session.case_observations import ObservedRun, observe_cases, remove_run_folder
from eval_gate.session.evaluated_commit import find_git_facts
from eval_gate.struct import replace
from eval_gate.text import globs
from eval_gate.text.escape import format_count, to_console_line
from eval_gate.text.safe_output import reveal_all_invisible
from eval_gate.text.tokens import TokenData


def update_cases(call: DraftCall) -> ExitCode:
    """Update the named cases, and return the exit code. Raises GateError before anything is asked."""
    config = call.load_config()
    files = load_case_files(config)
    chosen = _select_cases(files, call.update)
    tokens = load_tokens(config)
    suites = [
        replace(file.suite, cases=tuple(case for case in file.suite.cases if case.key in chosen)) for file in files
    ]
    root = Path.cwd()
    context = RunContext(root, os.environ, find_git_facts(os.environ, root))
    suites = [suite for suite in suites if suite.cases]
    with reserve_stdout():
        observed = run_async(observe_cases(config, suites, context, create_progress(call.verbosity)))
    try:
        if observed.interrupted is not None:
            print_message("interrupted: no eval file was changed")
            return observed.interrupted
        masked_cases = _mask_cases(observed, config)
        changed = [run_async(_update_file(file, chosen, masked_cases, tokens)) for file in files]
    finally:
        remove_run_folder(observed.folder)
    if _write_changes(list(zip(files, changed, strict=True)), call):
        drafts = [(case, masked_cases[key].masked) for key, case in chosen.items() if case.draft]
        new = [build_stored_responses(case.id, one) for case, one in drafts if one is not None and one.responses]
        open_response_store(config).add(new)
    has_response = any(one.scored.responses for one in masked_cases.values())
    return ExitCode.PASSED if has_response else ExitCode.INCOMPLETE


def _select_cases(files: Sequence[CaseFile], names: Sequence[str]) -> Mapping[CaseKey, EvalCase]:
    """Find the cases with these ids, or else those that match as globs. Raises GateError with every problem."""
    cases = [case for file in files for case in file.suite.cases]
    formats = {file.shown_as: file.suite.format for file in files}
    selected: dict[CaseKey, EvalCase] = {}
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        matching = [case for case in cases if case.id == name] or [
            case for case in cases if globs.matches_glob(name, case.id)
        ]
        if not matching:
            near = format_suggestion(name, [case.id for case in cases])
            problems.append(Problem(f"{to_console_line(name, 200)}: there is no such case{near}"))
        for case in matching:
            if formats[case.suite] not in UPDATABLE_DIALECTS:
                reason = f"cases of the format {formats[case.suite]} cannot be updated: change them by hand"
                problems.append(Problem(f"{case.id}: {reason}", file=case.location.file, line=case.location.line))
            selected[case.key] = case
    if problems:
        raise GateError(
            "no-selected-cases",
            "nothing was asked: some of the named cases cannot be updated",
            "list the cases with `eval-gate validate --verbose`",
            problems=problems,
        )
    return selected


def _mask_cases(observed: ObservedRun, config: RunConfig) -> dict[CaseKey, ObservedCase]:
    """Mask the observations case by case, so that one that cannot be searched does not hide the others."""
    cases: dict[CaseKey, ObservedCase] = {}
    for key, one in observed.observations.items():
        masked = mask_observations(ObservationSet((one,)), observed.redactor, config.redact)
        cases[key] = ObservedCase(one, next(iter(masked.observations), None))
    return cases


async def _update_file(
    file: CaseFile, chosen: Mapping[CaseKey, EvalCase], observed: Mapping[CaseKey, ObservedCase], tokens: TokenData
) -> CaseFile:
    for case in file.suite.cases:
        if case.key not in chosen:
            continue
        update = await update_case(file, case, observed[case.key], tokens)
        for remark in update.remarks:
            print_message(f"{to_console_line(case.id, 200)}: {to_console_line(remark)}")
        file = update.file
    return file


def _write_changes(changes: Sequence[tuple[CaseFile, CaseFile]], call: DraftCall) -> bool:
    """Show the changes as a diff, write them when a person or `--yes` confirms them, and return whether that was so."""
    changes = [(file, changed) for file, changed in changes if file.data != changed.data]
    if not changes:
        print_output("no expectation changes")
        return False
    for file, changed in changes:
        for line in render_diff(file, changed):
            print_output(reveal_all_invisible(line))
    if not call.assume_yes:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            print_message("nothing was written: repeat the command with --yes")
            return False
        if ask_for_letter(f"Write {format_count(len(changes), 'file')}? [y]es, [n]o? ", "yn") != "y":
            print_output("nothing was written")
            return False
    for file, changed in changes:
        file.write(changed)
        if call.verbosity is not Verbosity.QUIET:
            print_output(f"{to_console_line(file.shown_as)}: updated. Review the change before you commit it")
    return True
