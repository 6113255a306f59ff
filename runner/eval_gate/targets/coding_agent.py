"""Prompt, program lookup and files shared by targets that start a coding agent.

Source: agentv behaviour 5.4.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import BinaryIO, Final
from urllib.parse import quote

from eval_gate.files.writing import open_new_file
from eval_gate.model.execution import ErrorCause
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.text.escape import to_one_line, to_plain_word
from eval_gate.text.turns import flatten_messages

INPUT_FILES: Final = "input files"
"""How a Codex prompt refers to a case's files."""
ATTACHMENT_FILES: Final = "attachment files"
"""How a VS Code prompt refers to a case's files."""
MISSING_FILE_MARKER: Final = "ERROR: missing-file"
"""Beginning of a response that reports an unreadable file."""

_MARKDOWN_CHARACTERS: Final = re.compile(r"[\[\]()<>\\`]")
MAX_PART: Final = 60
"""Maximum characters of an untrusted word in a file name."""

WRITTEN_FOLDERS: Final = set[Path]()
"""Folders into which files were written: a caller that runs as root restores their owner."""


def build_prompt(request: Request, files_word: str, preamble: str | None = None) -> str:
    """Build the prompt in Markdown: preamble, files to read first (called `files_word`), and the query of the user."""
    brief = request.brief
    guidelines, files = (brief.guideline_files, brief.input_files) if brief else ((), ())
    # the brief of a conversation does not know what its turns say
    question = brief.linked_question if brief and not request.turn else flatten_messages(request.messages)
    parts = [
        (preamble or "").strip(),
        _format_files_to_read(guidelines, files, files_word),
        f"[[ ## user_query ## ]]\n{question}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def list_linked_files(request: Request) -> tuple[str, ...]:
    """List the absolute paths of all files that the prompt links to, guidelines first, without duplicates."""
    brief = request.brief
    return tuple(dict.fromkeys((*brief.guideline_files, *brief.input_files))) if brief else ()


def format_file_link(path: str) -> str:
    """Format a Markdown link to a file, on one line whatever characters its absolute path contains."""
    name = _MARKDOWN_CHARACTERS.sub("_", to_one_line(PurePath(path).name, limit=255))
    return f"[{name}](file://{quote(os.fsencode(path), safe='/')})"


def refuse_missing_file(request: Request, response_text: str) -> None:
    """Raise TargetError if the agent reports, in the words of its prompt, that it could not read a file of the case."""
    text = response_text.lstrip()
    if list_linked_files(request) and text.startswith(MISSING_FILE_MARKER):
        file_name = to_one_line(text.removeprefix(MISSING_FILE_MARKER).partition("\n")[0].strip(" :"))
        what = f"the agent could not read a file of the case: {file_name or 'it does not name the file'}"
        raise TargetError(what, fault=TargetFault.REFUSED)


def _format_files_to_read(guidelines: Sequence[str], files: Sequence[str], files_word: str) -> str:
    """Format the block of files to read that comes before everything else. The result is empty if no file is given."""
    lists = [("guideline files", guidelines), (files_word, files)]
    blocks = [
        "\n".join([f"Read all {word} before you begin:", *(f"* {format_file_link(path)}" for path in paths)])
        for word, paths in lists
        if paths
    ]
    if not blocks:
        return ""
    rules = [f"If you cannot read one of them, answer only `{MISSING_FILE_MARKER} <file name>` and stop."]
    if guidelines:
        rules.append("The guideline files hold for everything you do about the query below.")
    return "\n\n".join([*blocks, "\n".join(rules)])


def find_program(name: str, what: str, root: Path, environment: Mapping[str, str]) -> str:
    """Find a program on PATH or, with a slash, below `root`. `what` begins the message. Raises TargetError."""
    if "/" not in name:
        program = shutil.which(name, path=environment.get("PATH", os.defpath))
        if program is None:
            raise build_program_error(f"{what} '{name}' was not found on PATH")
        return str((root / program).resolve() if not program.startswith("/") else program)
    path = root / name
    if not path.is_file():
        raise build_program_error(f"{what} '{name}' does not exist")
    if not os.access(path, os.X_OK):
        raise build_program_error(f"{what} '{name}' is not executable")
    return str(path.absolute())


def build_program_error(what: str, hint: str | None = None) -> TargetError:
    """Build the error for a program that cannot be started, or is not ready."""
    return TargetError(what, fault=TargetFault.UNREACHABLE, hint=hint, known_cause=ErrorCause.PROGRAM_NOT_STARTED)


def sanitize_name_part(word: str) -> str:
    """Convert a word to a safe part of a file name, which never leads to another folder."""
    return to_plain_word(word[: MAX_PART * 4]).strip("-.")[:MAX_PART] or "unnamed"


def format_timestamp() -> str:
    """Format the current time in UTC as part of a file name: `20260102T075700Z`."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def create_file(folder: Path, words: tuple[str, ...], suffix: str) -> tuple[BinaryIO, Path]:
    """Create a file in `folder`, named by the time, `words` and a random part. Raises GateError."""
    name = "_".join([format_timestamp(), *(sanitize_name_part(word) for word in words), secrets.token_hex(8)])
    path = folder / f"{name}{suffix}"
    WRITTEN_FOLDERS.add(folder)
    descriptor = open_new_file(path)
    assert descriptor is not None  # the name is random
    return os.fdopen(descriptor, "wb", buffering=0), path
