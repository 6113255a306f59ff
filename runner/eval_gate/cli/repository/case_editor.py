"""Opens the editor of the person at the terminal on a text."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError
from eval_gate.files.reading import read_limited
from eval_gate.model.limits import EVAL_FILE_BYTES

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
                code = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode  # noqa: S603 (theirs)
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
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _build_editor_error(editor: str, why: str) -> GateError:
    return GateError("editor-failed", f"the editor {shlex.split(editor)[0]} {why}", "set EDITOR to the one you use")
