"""Read a text file with one question a line as a suite."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from eval_gate.errors import GateError, Problem
from eval_gate.files.file_paths import format_path
from eval_gate.files.reading import read_limited
from eval_gate.model.case import CaseTurn, ConversationSpec, EvalCase, EvalSuite, Location
from eval_gate.model.conversation import Message
from eval_gate.model.limits import DRAFT_LINE_BYTES, DRAFT_PROMPT, DRAFT_PROMPTS, TURNS
from eval_gate.text.digest import compute_fingerprint, fingerprint_json

_COMMENT: Final = "#"


def read_questions(file: Path, root: Path, eval_file: str, *, as_turns: bool = False) -> EvalSuite:
    """Read the questions: one a line, without blank lines and lines that begin with `#`, each once.

    `eval_file` is the file for which they are asked: a target may depend on its folder, as in later runs of it.
    With `as_turns`, the lines between two blank lines are the turns of one conversation.
    Raises GateError `invalid-questions` for a file without questions, too many of them, or one that is too long.
    """
    shown_as = format_path(file, root)
    data = _read_data(file, shown_as)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _build_error(shown_as, [Problem("is not UTF-8", file=shown_as, line=line)]) from error
    blocks: dict[tuple[str, ...], tuple[int, ...]] = {}
    for block in _iter_blocks(text, as_turns=as_turns):
        blocks.setdefault(tuple(question for question, _ in block), tuple(number for _, number in block))
    problems = [
        Problem(f"is longer than {DRAFT_PROMPT:,} characters", file=shown_as, line=number)
        for questions, numbers in blocks.items()
        for question, number in zip(questions, numbers, strict=True)
        if len(question) > DRAFT_PROMPT
    ]
    problems += [
        Problem(f"has more than {TURNS} turns without a blank line", file=shown_as, line=numbers[0])
        for numbers in blocks.values()
        if len(numbers) > TURNS
    ]
    if not blocks:
        problems.append(Problem("has no question", file=shown_as))
    if sum(map(len, blocks)) > DRAFT_PROMPTS:
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
            _build_case(eval_file, questions, Location(file=shown_as, line=numbers[0]))
            for questions, numbers in blocks.items()
        ),
    )


def _iter_blocks(text: str, *, as_turns: bool) -> Iterator[list[tuple[str, int]]]:
    """Yield blocks of questions with their line numbers; without `as_turns`, each question alone."""
    block: list[tuple[str, int]] = []
    for number, text_line in enumerate(text.split("\n"), 1):
        question = text_line.strip()
        if block and not (question and as_turns):
            yield block
            block = []
        if question and not question.startswith(_COMMENT):
            block.append((question, number))
    if block:
        yield block


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


def _build_case(eval_file: str, questions: Sequence[str], location: Location) -> EvalCase:
    first, *further = questions
    turns = tuple(CaseTurn(message=question) for question in questions)
    return EvalCase(
        id=f"line {location.line}",
        suite=eval_file,
        messages=() if further else (Message(role="user", content=first),),
        conversation=ConversationSpec(turns=turns, stop_score=None) if further else None,
        location=location,
        fingerprint=compute_fingerprint([*questions]) if further else fingerprint_json(first),
    )
