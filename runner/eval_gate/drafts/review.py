"""Lets a person decide about drafts: shows what a draft expects, accepts it, or drops it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from eval_gate.drafts.case_edit import CaseFile, RawCase
from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.evaluators.expectation import describe_expectation
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.model.conversation import Message
from eval_gate.text import globs
from eval_gate.text.escape import to_console_line
from eval_gate.text.tokens import TokenData

ALL: Final = "all"
"""The name that stands for every draft, unless a case has this id."""
_REMARK_KEYS: Final = ("note", "notes", "comment", "$comment")


def list_drafts(file: CaseFile) -> tuple[EvalCase, ...]:
    """List the drafts of a file, in its order."""
    return tuple(case for case in file.suite.cases if case.draft)


def select_drafts(files: Iterable[CaseFile], names: Sequence[str]) -> frozenset[CaseKey]:
    """Find the drafts with these ids, the drafts that a glob matches, or all of them.

    Raises GateError `draft-not-found` with every name that is no draft.
    """
    cases = [case for file in files for case in file.suite.cases]
    drafts = [case for case in cases if case.draft]
    found: set[CaseKey] = set()
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        exact = [case for case in cases if case.id == name]
        if exact or name != ALL:
            matching = exact or [case for case in drafts if globs.matches_glob(name, case.id)]
        else:
            matching = drafts
        found.update(case.key for case in matching if case.draft)
        if not any(case.draft for case in matching):
            near = "" if exact else format_suggestion(name, [case.id for case in drafts])
            why = "is not a draft" if exact else f"there is no such draft{near}"
            problems.append(Problem(f"{to_console_line(name, 200)}: {why}"))
    if problems:
        raise GateError(
            "draft-not-found",
            "nothing was changed: some of the named cases are no drafts",
            "list the drafts with `eval-gate draft --review FILE`",
            problems=problems,
        )
    return frozenset(found)


def decide_drafts(file: CaseFile, *, accepted: Collection[str] = (), dropped: Collection[str] = ()) -> CaseFile:
    """Remove the mark of the accepted drafts and the dropped drafts themselves, and return the changed file.

    Nothing is written. Raises GateError.
    """
    marked = {case.id: case for case in list_drafts(file)}
    raw = file.find_raw_cases(marked[name] for name in accepted if name in marked)
    changes: dict[str, RawCase | None] = {name: _remove_mark(one) for name, one in raw.items()}
    changes |= dict.fromkeys((name for name in dropped if name in marked), None)
    return file.replace_cases(changes) if changes else file


def _remove_mark(raw: Mapping[str, JsonValue]) -> RawCase:
    return {key: value for key, value in raw.items() if key != "draft"}


def render_draft(file: CaseFile, case: EvalCase) -> Iterator[str]:
    """Render a draft for people, one line each: its id, what is sent, what is expected, and what its author remarks."""
    yield f"{to_console_line(case.id, 200)}  ({to_console_line(case.location.file, 200)}:{case.location.line})"
    if case.description:
        yield f"  {to_console_line(case.description)}"
    raw = file.find_raw_case(case)
    for key in _REMARK_KEYS:
        if isinstance(remark := raw.get(key), str):
            yield f"  {to_console_line(remark)}"
    yield from (f"  {_render_message(message)}" for message in case.messages)
    expectation = describe_expectation(case, TokenData())
    yield from (f"  → {to_console_line(line)}" for line in expectation.lines)
    if expectation.is_truncated:
        yield "  → and more: see the file"


def _render_message(message: Message) -> str:
    content = message.content if isinstance(message.content, str) else "a message of several parts"
    return to_console_line(f"{message.role}: {content}", 500)
