"""Review of drafts: one after the other on a terminal, as a list without one, or as options say."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from eval_gate.cli.repository.case_editor import edit_text
from eval_gate.cli.repository.draft_call import DraftCall
from eval_gate.cli.terminal.console import Verbosity, print_error, print_output
from eval_gate.drafts.case_edit import CaseFile, read_case_file
from eval_gate.drafts.review import decide_drafts as decide
from eval_gate.drafts.review import list_drafts, render_draft, select_drafts
from eval_gate.errors import GateError
from eval_gate.formats.discovery import LeftOut, find_eval_files, read_eval_document
from eval_gate.model.case import EvalCase
from eval_gate.reports.wording.numbers import format_count
from eval_gate.text.escape import to_console_line

_CHOICES: Final = "[a]ccept, [e]dit, [d]rop, [s]kip, [q]uit? "
_EDIT_CHOICES: Final = "[e]dit again, [u]ndo the edit? "


def review_drafts(call: DraftCall) -> int:
    """Show the drafts of the eval files and take a decision about each; without a terminal, only list them."""
    files = load_case_files(call)
    if not any(map(list_drafts, files)):
        print_output(f"no drafts in {_format_files(files)}")
    elif sys.stdin.isatty() and sys.stdout.isatty():
        _review_files(files)
    else:
        _print_list(files)
    return 0


def decide_drafts(call: DraftCall) -> int:
    """Accept and drop the named drafts. Raises GateError, and then no file is changed."""
    files = load_case_files(call)
    accepted, dropped = select_drafts(files, call.accept), select_drafts(files, call.drop)
    if both := sorted(accepted & dropped):
        raise GateError(
            "conflicting-options",
            f"{to_console_line(both[0].case_id, 200)} is to be accepted and dropped",
            "name each draft once",
        )
    changes = [
        (file, decide(file, accepted=_list_ids(file, accepted), dropped=_list_ids(file, dropped))) for file in files
    ]
    for file, changed in changes:
        file.write(changed)
    for file, changed in changes if call.verbosity is not Verbosity.QUIET else ():
        yes, no = len(_list_ids(file, accepted)), len(_list_ids(file, dropped))
        if yes or no:
            print_output(_format_result(file, yes, no, len(list_drafts(changed))))
    return 0


def load_case_files(call: DraftCall) -> tuple[CaseFile, ...]:
    """Load the eval files of the call, or else those of the configuration. Raises GateError."""
    root = Path.cwd()
    return tuple(
        read_case_file(file.path, root)
        for file in find_eval_files(call.load_config().evals, root)
        if not isinstance(read_eval_document(file, root), LeftOut)
    )


def _list_ids(file: CaseFile, keys: frozenset[tuple[str, str]]) -> list[str]:
    return [case.id for case in file.suite.cases if case.key in keys]


def _print_list(files: Sequence[CaseFile]) -> None:
    for file in files:
        for case in list_drafts(file):
            print_output("\n".join(render_draft(file, case)) + "\n")
    drafts = sum(len(list_drafts(file)) for file in files)
    print_output(
        f"{format_count(drafts, 'draft')}. Accept with --accept CASE or --accept all, remove with --drop CASE, or "
        "review on a terminal"
    )


def _format_files(files: Sequence[CaseFile]) -> str:
    return to_console_line(files[0].shown_as) if len(files) == 1 else format_count(len(files), "eval file")


def _format_result(file: CaseFile, accepted: int, dropped: int, remaining: int) -> str:
    said = f"{format_count(accepted, 'draft')} accepted, {dropped} dropped, {remaining} left"
    return f"{to_console_line(file.shown_as)}: {said}"


def _review_files(files: Sequence[CaseFile]) -> None:
    """Review the drafts of all files, until there are no more or the person quits.

    Each decision is written at once, so that an end at any time loses none.
    """
    for file in files:
        if list_drafts(file) and not _review_file(file.path, file.root):
            return


def _review_file(path: Path, root: Path) -> bool:
    """Review the drafts of one file, and return whether to go on with the next file."""
    skipped: set[str] = set()
    accepted = dropped = 0
    goes_on = True
    while goes_on:
        file = read_case_file(path, root)  # as it is now: the person may edit it beside this program
        drafts = list_drafts(file)
        case = next((one for one in drafts if one.id not in skipped), None)
        if case is None:
            break
        print_output("\n" + "\n".join(render_draft(file, case)))
        match ask_for_letter(_CHOICES, "aedsq"):
            case "a":
                accepted += _write_decision(file, case, skipped, is_accepted=True)
            case "d":
                dropped += _write_decision(file, case, skipped, is_accepted=False)
            case "e":
                _edit_case(file, case)
            case "s":
                skipped.add(case.id)
            case _:
                goes_on = False
    print_output(f"\n{_format_result(file, accepted, dropped, len(drafts))}")
    return goes_on


def _write_decision(file: CaseFile, case: EvalCase, skipped: set[str], *, is_accepted: bool) -> bool:
    """Write a decision, and return whether that was possible. If not, say why, and skip the draft."""
    try:
        chosen = {"accepted" if is_accepted else "dropped": [case.id]}
        file.write(decide(file, **chosen))
    except GateError as error:
        print_error(error)
        skipped.add(case.id)
        return False
    return True


def _edit_case(file: CaseFile, case: EvalCase) -> None:
    """Let the person edit the text of a case until it is valid, or the edit is undone."""
    try:
        text = before = file.get_case_text(case)
        while (text := edit_text(text, file.path.suffix)) != before:
            try:
                file.write(file.replace_case_text(case, text))
            except GateError as error:
                print_error(error)
                if ask_for_letter(_EDIT_CHOICES, "eu") != "e":
                    return
            else:
                return
    except GateError as error:
        print_error(error)


def ask_for_letter(question: str, choices: str) -> str | None:
    """Ask until the answer begins with one of these letters, and return that letter; None at the end of the input."""
    while True:
        print_output(question, end="")
        answer = sys.stdin.readline()
        if not answer:
            return None
        letter = answer.strip()[:1].lower()
        if letter and letter in choices:
            return letter
