"""Read a text file with one question a line as a suite."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.files.file_paths import format_path
from eval_gate.files.reading import read_limited
from eval_gate.model.case import EvalCase, EvalSuite, Location
from eval_gate.model.conversation import Message
from eval_gate.model.limits import DRAFT_LINE_BYTES, DRAFT_PROMPT, DRAFT_PROMPTS
from eval_gate.text.digest import fingerprint_json

_COMMENT: Final = "#"


def read_questions(file: Path, root: Path, eval_file: str) -> EvalSuite:
    """Read the questions: one a line, without blank lines and lines that begin with `#`, each once.

    `eval_file` is the file for which they are asked: a target may depend on its folder, as in later runs of it.
    Raises GateError `invalid-questions` for a file without questions, too many of them, or one that is too long.
    """
    shown_as = format_path(file, root)
    data = _read_data(file, shown_as)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _build_error(shown_as, [Problem("is not UTF-8", file=shown_as, line=line)]) from error
    lines: dict[str, int] = {}
    for number, text_line in enumerate(text.split("\n"), 1):
        question = text_line.strip()
        if question and not question.startswith(_COMMENT):
            lines.setdefault(question, number)
    problems = [
        Problem(f"is longer than {DRAFT_PROMPT:,} characters", file=shown_as, line=number)
        for question, number in lines.items()
        if len(question) > DRAFT_PROMPT
    ]
    if not lines:
        problems.append(Problem("has no question", file=shown_as))
    if len(lines) > DRAFT_PROMPTS:
        problems.append(Problem(f"has more than {DRAFT_PROMPTS:,} questions", file=shown_as))
    if problems:
        raise _build_error(shown_as, problems)
    return EvalSuite(
        file=eval_file,
        format="questions",
        tool_name=file.stem,
        tier=None,
        file_hash=hashlib.sha256(data).hexdigest()[:12],
        cases=tuple(
            _build_case(eval_file, question, Location(file=shown_as, line=number)) for question, number in lines.items()
        ),
    )


def _read_data(file: Path, shown_as: str) -> bytes:
    try:
        data = read_limited(file, DRAFT_LINE_BYTES)
    except OSError as error:
        raise _build_error(shown_as, [Problem(f"cannot be read: {error.strerror}", file=shown_as)]) from error
    if len(data) > DRAFT_LINE_BYTES:
        raise _build_error(shown_as, [Problem(f"is larger than {DRAFT_LINE_BYTES:,} bytes", file=shown_as)])
    return data


def _build_error(shown_as: str, problems: list[Problem]) -> GateError:
    return GateError(
        "invalid-questions",
        f"{shown_as} is not a file of questions",
        "write one question a line; lines that begin with # are comments",
        problems=problems,
    )


def _build_case(eval_file: str, question: str, location: Location) -> EvalCase:
    return EvalCase(
        id=f"line {location.line}",
        suite=eval_file,
        messages=(Message(role="user", content=question),),
        location=location,
        fingerprint=fingerprint_json(question),
    )
