"""Review of drafts: one by one on a terminal, as a list without a terminal, or as options say.

Each draft is shown with the responses that it was made of, if they are stored here. A person edits a case in an editor.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from eval_gate.cli.repository.draft_call import DraftCall
from eval_gate.cli.terminal.console import Verbosity, print_error, print_output
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST, RunConfig
from eval_gate.drafts.case_edit import CaseFile, read_case_file
from eval_gate.drafts.review import decide_drafts as decide
from eval_gate.drafts.review import describe_stored_check, list_drafts, render_draft, select_drafts
from eval_gate.drafts.stored_responses import ResponseStore, StoredResponses
from eval_gate.drafts.turn_joining import list_questions
from eval_gate.engine.preparation.snapshot import load_seed
from eval_gate.errors import GateError
from eval_gate.files.reading import read_limited
from eval_gate.formats.discovery import LeftOut, find_eval_files, read_eval_document
from eval_gate.model.case import EvalCase
from eval_gate.model.limits import EVAL_FILE_BYTES
from eval_gate.process.signals import run_async
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import format_count, to_console_line
from eval_gate.text.tokens import TokenData

_CHOICES: Final = "[a]ccept, [e]dit, [d]rop, [s]kip, [q]uit? "
_EDIT_CHOICES: Final = "[e]dit again, [u]ndo the edit? "


class _Review(FrozenStruct):
    """What a review needs besides the eval files: the stored responses and the values of tokens."""

    store: ResponseStore
    tokens: TokenData

    def describe_missing(self, what: str) -> str:
        """Say that responses are not stored here, and how to see them."""
        text = f"{what} not stored in {to_console_line(self.store.file.parent.as_posix(), 500)}"
        return f"{text}. To see what the agent responds, draft again: eval-gate draft QUESTIONS -o NEW-FILE"


def review_drafts(call: DraftCall) -> int:
    """Show the drafts of the eval files and ask for a decision on each; without a terminal, only list them."""
    config = call.load_config()
    files = load_case_files(config)
    review = _Review(open_response_store(config), load_tokens(config))
    if not any(map(list_drafts, files)):
        label = to_console_line(files[0].shown_as) if len(files) == 1 else format_count(len(files), "eval file")
        print_output(f"no drafts in {label}")
    elif sys.stdin.isatty() and sys.stdout.isatty():
        _review_files(files, review)
    else:
        _print_list(files, review)
    return 0


def decide_drafts(call: DraftCall) -> int:
    """Accept and drop the named drafts. Raises GateError, and then no file is changed."""
    config = call.load_config()
    files = load_case_files(config)
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
    open_response_store(config).discard(
        case for file in files for case in file.suite.cases if case.key in accepted | dropped
    )
    for file, changed in changes if call.verbosity is not Verbosity.QUIET else ():
        yes, no = len(_list_ids(file, accepted)), len(_list_ids(file, dropped))
        if yes or no:
            print_output(_format_result(file, yes, no, len(list_drafts(changed))))
    return 0


def open_response_store(config: RunConfig) -> ResponseStore:
    """Open the store of the responses that drafts were made of."""
    return ResponseStore(Path(config.output_dir))


def load_tokens(config: RunConfig) -> TokenData:
    """Load the seed values for the tokens of cases. Raises GateError."""
    path = Path(config.seed_manifest_path or DEFAULT_SEED_MANIFEST)
    return TokenData(seed=load_seed(Path.cwd() / path, explicit=config.seed_manifest_path is not None))


def load_case_files(config: RunConfig) -> tuple[CaseFile, ...]:
    """Load the eval files of the configuration, which those of the call replace. Raises GateError."""
    root = Path.cwd()
    return tuple(
        read_case_file(file.path, root)
        for file in find_eval_files(config.evals, root)
        if not isinstance(read_eval_document(file, root), LeftOut)
    )


def _list_ids(file: CaseFile, keys: frozenset[tuple[str, str]]) -> list[str]:
    return [case.id for case in file.suite.cases if case.key in keys]


def _print_list(files: Sequence[CaseFile], review: _Review) -> None:
    drafts = missing_count = 0
    for file in files:
        for case in list_drafts(file):
            stored = review.store.find(case)
            drafts, missing_count = drafts + 1, missing_count + (stored is None)
            print_output("\n".join(render_draft(file, case, stored)) + "\n")
    if missing_count:
        print_output(review.describe_missing(f"The responses of {format_count(missing_count, 'draft')} are") + "\n")
    print_output(
        f"{format_count(drafts, 'draft')}. Accept with --accept CASE or --accept all, remove with --drop CASE, or "
        "review on a terminal"
    )


def _format_result(file: CaseFile, accepted: int, dropped: int, remaining: int) -> str:
    counts = f"{format_count(accepted, 'draft')} accepted, {dropped} dropped, {remaining} left"
    return f"{to_console_line(file.shown_as)}: {counts}"


def _review_files(files: Sequence[CaseFile], review: _Review) -> None:
    """Review the drafts of all files; each decision is written at once, so that an end at any time loses none."""
    for file in files:
        if list_drafts(file) and not _review_file(file.path, file.root, review):
            return


def _review_file(path: Path, root: Path, review: _Review) -> bool:
    skipped: set[str] = set()
    accepted = dropped = 0
    goes_on = True
    while goes_on:
        file = read_case_file(path, root)  # the person may have edited it meanwhile
        drafts = list_drafts(file)
        case = next((one for one in drafts if one.id not in skipped), None)
        if case is None:
            break
        stored = review.store.find(case)
        print_output("\n" + "\n".join(render_draft(file, case, stored)))
        if stored is None:
            print_output(f"  {review.describe_missing('Its responses are')}")
        match ask_for_letter(_CHOICES, "aedsq"):
            case "a":
                accepted += _write_decision(file, case, review.store, skipped, is_accepted=True)
            case "d":
                dropped += _write_decision(file, case, review.store, skipped, is_accepted=False)
            case "e":
                _edit_case(file, case, stored, review)
            case "s":
                skipped.add(case.id)
            case _:
                goes_on = False
    print_output(f"\n{_format_result(file, accepted, dropped, len(drafts))}")
    return goes_on


def _write_decision(
    file: CaseFile, case: EvalCase, store: ResponseStore, skipped: set[str], *, is_accepted: bool
) -> bool:
    """Write a decision, and return whether that was possible. If not, say why, and skip the draft."""
    try:
        chosen = {"accepted" if is_accepted else "dropped": [case.id]}
        file.write(decide(file, **chosen))
        store.discard([case])
    except GateError as error:
        print_error(error)
        skipped.add(case.id)
        return False
    return True


def _edit_case(file: CaseFile, case: EvalCase, stored: StoredResponses | None, review: _Review) -> None:
    """Let the person edit the text of a case until it is valid, or the edit is undone."""
    try:
        text = old_text = file.get_case_text(case)
        while (text := edit_text(text, file.path.suffix)) != old_text:
            try:
                changed = file.replace_case_text(case, text)
                file.write(changed)
                if stored is not None:
                    _check_edit(file, case, changed, stored, review)
            except GateError as error:
                print_error(error)
                if ask_for_letter(_EDIT_CHOICES, "eu") != "e":
                    return
            else:
                return
    except GateError as error:
        print_error(error)


def _check_edit(file: CaseFile, case: EvalCase, changed: CaseFile, stored: StoredResponses, review: _Review) -> None:
    """Say whether the stored responses pass the edited case, which may have another id. Raises GateError."""
    other_ids = {one.id for one in file.suite.cases if one is not case}
    (edited,) = (one for one in changed.suite.cases if one.id not in other_ids)
    if (edited.messages, list_questions(edited)) != (case.messages, list_questions(case)):
        print_output("The question is another one now, so the stored responses are no responses to it.")
        return
    if edited.id != case.id:
        review.store.discard([case])
        review.store.add([replace(stored, case_id=edited.id)])
    summary = run_async(describe_stored_check(edited, stored, review.tokens))
    print_output(f"After the edit, {summary}.")
    if not edited.draft:
        review.store.discard([edited])


def ask_for_letter(question: str, choices: str) -> str | None:
    """Ask until the answer begins with one of these letters, and return that letter; None at the end of the input."""
    while True:
        print_output(question, end="")
        line = sys.stdin.readline()
        if not line:
            return None
        letter = line.strip()[:1].lower()
        if letter and letter in choices:
            return letter


_DEFAULT_EDITOR: Final = "vi"


def edit_text(text: str, suffix: str) -> str:
    """Open `$VISUAL`, `$EDITOR` or vi on the text, wait until it ends, and return the text as it is then.

    Raises GateError `editor-failed` if the editor cannot be started or ends with an error.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or _DEFAULT_EDITOR
    with tempfile.TemporaryDirectory(prefix="eval-gate-") as folder:
        file = Path(folder) / f"case{suffix}"
        file.write_bytes(text.encode())
        try:
            with _leave_interrupts_to_editor():
                code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode  # noqa: S603 (the person's editor)
        except (OSError, ValueError) as error:
            raise _build_editor_error(editor, "cannot be started") from error
        if code:
            raise _build_editor_error(editor, f"ended with exit code {code}")
        try:
            data = read_limited(file, EVAL_FILE_BYTES)
            return data.decode()
        except (OSError, UnicodeDecodeError) as error:
            raise _build_editor_error(editor, "left no text in UTF-8") from error


@contextmanager
def _leave_interrupts_to_editor() -> Iterator[None]:
    """Let Ctrl-C be a key of the editor, as long as it runs."""
    handler = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _build_editor_error(editor: str, why: str) -> GateError:
    return GateError("editor-failed", f"the editor {shlex.split(editor)[0]} {why}", "set EDITOR to the one you use")
