"""Assertions of Agent Evals suites: about the answer (contains, equals, …), and about files (fileExists, …).

Source: Agent Evals, "Assertion Types" and "File Assertions"; agent-evals behaviour 3.3 and 3.4. An answer is a text.
Where a suite expects something else of it, it is read as JSON, which the assertion cannot hold without. Files are those
that the folder of the agent held when it was done: nothing on disk is looked at, and an answer that came without them
could not be judged. Message, expected and seen value stay apart for reports, and are one bounded sentence for people.
"""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.equality import deep_equal
from eval_gate.evaluators.wording import MAX_VALUE, cut, double
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import FileEntry
from eval_gate.model.specs.agent_evals import (
    FileContains,
    FileExists,
    FileJsonPath,
    FileNotExists,
    OutputContains,
    OutputEquals,
    OutputJsonPath,
    OutputMatches,
    SuiteAssertion,
)
from eval_gate.sandbox.paths import MISSING, NO_FILE, SandboxError, file_names
from eval_gate.text.apart import values_apart
from eval_gate.text.dotted_path import PathError, value_at
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.javascript.regex import PatternError
from eval_gate.text.javascript.strings import as_text, compact_json

MAX_KEPT: Final = 500
"""Characters of what was seen that are kept in a result."""
MAX_MESSAGE: Final = 400
_FENCE: Final = "```"


async def contains(spec: OutputContains, context: EvaluationContext) -> Evaluation:
    """The value is in the answer; letters in lower case on both sides where case does not count."""
    text = context.response.text
    if is_in(spec.value, text, case_sensitive=spec.case_sensitive):
        return assertion_passed(spec, f"Output contains {double(spec.value)}", spec.value, text)
    return assertion_failed(spec, f"Output does not contain {double(spec.value)}", spec.value, text)


def is_in(value: str, text: str, *, case_sensitive: bool) -> bool:
    """Whether the value is in the text."""
    return value in text if case_sensitive else value.lower() in text.lower()


async def matches_regex(spec: OutputMatches, context: EvaluationContext) -> Evaluation:
    """The pattern finds something. One that is no pattern, or runs away, fails with the engine's words."""
    text, pattern = context.response.text, f"/{cut(spec.pattern)}/{cut(spec.flags, 20)}"
    try:
        found = await context.patterns.search(spec.pattern, text, spec.flags)
    except PatternError as error:
        return assertion_failed(spec, f"Invalid regex pattern: {error}", spec.pattern, text)
    if found:
        return assertion_passed(spec, f"Output matches pattern {pattern}", spec.pattern, text)
    return assertion_failed(spec, f"Output does not match pattern {pattern}", spec.pattern, text)


async def equals(spec: OutputEquals, context: EvaluationContext) -> Evaluation:
    """The answer is the expected text to the letter; any other value is compared with the answer read as JSON."""
    message = "Output does not equal expected value"
    answer: JsonValue = context.response.text
    if not isinstance(spec.expected, str):
        try:
            answer = as_json(context.response.text)
        except NotJsonError as error:
            return assertion_failed(spec, f"{message}: output is not JSON ({cut(str(error))})", spec.expected, answer)
    if deep_equal(answer, spec.expected):
        return assertion_passed(spec, "Output equals expected value", spec.expected, answer)
    return assertion_failed(spec, message, spec.expected, answer)


async def json_path(spec: OutputJsonPath, context: EvaluationContext) -> Evaluation:
    """The value at the path of the answer, read as JSON, is the expected one. What is missing equals nothing."""
    text, failing = context.response.text, f"Failed to evaluate path {cut(spec.path)}"
    try:
        answer = as_json(text)
    except NotJsonError as error:
        return assertion_failed(spec, f"{failing}: output is not JSON ({cut(str(error))})", spec.expected, text)
    return value_equals(spec, answer, spec.path, failing=failing)


def value_equals(spec: OutputJsonPath | FileJsonPath, document: JsonValue, path: str, *, failing: str) -> Evaluation:
    """Whether the value at `path` is the expected one. `failing` is said where the path leads nowhere."""
    try:
        value = value_at(document, path)
    except PathError as error:
        return assertion_failed(spec, f"{failing}: {error}", spec.expected, document)
    if deep_equal(value, spec.expected):
        return assertion_passed(spec, f"Value at {cut(path)} equals expected", spec.expected, value)
    return assertion_failed(spec, f"Value at {cut(path)} does not equal expected", spec.expected, value)


async def file_exists(spec: FileExists, context: EvaluationContext) -> Evaluation:
    """There is such a file or folder. A path that is refused leads to none."""
    expected, path = "file to exist", cut(spec.path)
    try:
        _there(spec, spec.path, context)
    except SandboxError as error:
        return assertion_failed(spec, f"File does not exist: {path}", expected, str(error), why=str(error))
    return assertion_passed(spec, f"File exists: {path}", expected, spec.path)


async def file_not_exists(spec: FileNotExists, context: EvaluationContext) -> Evaluation:
    """There is neither such a file nor such a folder. A path that is refused fails: it can never say so."""
    expected, path = "file to not exist", cut(spec.path)
    try:
        found = _entry(spec, spec.path, context)
    except SandboxError as error:
        return assertion_failed(spec, f"Failed to check file: {error}", expected, str(error), why=path)
    if found is None:
        return assertion_passed(spec, f"File does not exist: {path}", expected, "file not found")
    return assertion_failed(spec, f"File still exists: {path}", expected, "file exists", why="")


async def file_contains(spec: FileContains, context: EvaluationContext) -> Evaluation:
    """The value is in the file's text."""
    try:
        text = _text(spec, spec.path, context)
    except SandboxError as error:
        return assertion_failed(
            spec, f"Failed to read file: {error}", spec.value, "file read error", why=cut(spec.path)
        )
    if is_in(spec.value, text, case_sensitive=spec.case_sensitive):
        return assertion_passed(spec, f"File contains {double(spec.value)}", spec.value, text)
    return assertion_failed(spec, f"File does not contain {double(spec.value)}", spec.value, text)


async def file_json_path(spec: FileJsonPath, context: EvaluationContext) -> Evaluation:
    """The value at the path of the file, which is read as JSON, is the expected one."""
    failing = "Failed to evaluate"
    try:
        text = _text(spec, spec.path, context)
    except SandboxError as error:
        return assertion_failed(spec, f"{failing}: {error}", spec.expected, "file read error", why=cut(spec.path))
    try:
        document = as_json(text, fenced=False)
    except NotJsonError as error:
        return assertion_failed(spec, f"{failing}: file is not JSON ({cut(str(error))})", spec.expected, text)
    return value_equals(spec, document, spec.json_path, failing=failing)


def _text(spec: SuiteAssertion, path: str, context: EvaluationContext) -> str:
    """What the file holds. Raises SandboxError with the reason when it cannot be had."""
    found = _there(spec, path, context)
    if found.text is None:
        raise SandboxError(found.problem or NO_FILE)
    return found.text


def _there(spec: SuiteAssertion, path: str, context: EvaluationContext) -> FileEntry:
    """The file or folder at a path. Raises SandboxError when there is none."""
    found = _entry(spec, path, context)
    if found is None:
        raise SandboxError(MISSING)
    return found


def _entry(spec: SuiteAssertion, path: str, context: EvaluationContext) -> FileEntry | None:
    """The file or folder at a path; None when there is nothing.

    Raises SandboxError for a path that may not be named or leads to or through a link, and EvaluatorError where
    nothing is known of any file.
    """
    if context.response.files is None:
        raise EvaluatorError(
            f"{cut(spec.name)}: the target has no files that could be looked at: only a model that is run as the "
            "suite's agent works in a folder"
        )
    names = file_names(path)
    known = {entry.path: entry for entry in context.response.files}
    for count in range(1, len(names) + 1):
        met = known.get("/".join(names[:count]))
        if met is not None and met.kind == "other":
            raise SandboxError(met.problem or NO_FILE)
    return known.get("/".join(names))


class NotJsonError(Exception):
    """A text is not JSON; the message says why."""


def assertion_passed(spec: SuiteAssertion, message: str, expected: JsonValue, seen: JsonValue) -> Evaluation:
    """The assertion is true of the answer."""
    message = well_formed(cut(message, MAX_MESSAGE))
    return Evaluation(score=1.0, hits=(message,), checks_run=1, provider_request=_facts(spec, message, expected, seen))


def assertion_failed(
    spec: SuiteAssertion, message: str, expected: JsonValue, seen: JsonValue, *, why: str | None = None
) -> Evaluation:
    """The assertion is not true of the answer. `why` ends the sentence where expected and seen would say it badly."""
    message = well_formed(cut(message, MAX_MESSAGE))
    wanted, got = values_apart(expected, seen, quoted_value, MAX_VALUE)
    reason = f"expected {wanted}, got {got}" if why is None else why
    sentence = well_formed(f"{cut(spec.name)}: {message}{': ' if reason else ''}{reason}")
    return Evaluation(
        score=0.0,
        misses=(sentence,),
        error=sentence,
        checks_run=1,
        provider_request=_facts(spec, message, expected, seen),
    )


def quoted_value(value: JsonValue) -> str:
    """A value in a sentence: text in quotes, all else as JSON, bounded."""
    return double(value) if isinstance(value, str) else cut(compact_json(value))


def _facts(spec: SuiteAssertion, message: str, expected: JsonValue, seen: JsonValue) -> dict[str, JsonValue]:
    """The parts by the names that reports have for them."""
    return {
        "assertion": {key: _kept(value) for key, value in spec.as_written.items()},
        "message": message,
        "expected": _kept(expected),
        "actual": _kept(seen),
    }


def _kept(value: JsonValue) -> JsonValue:
    """The value as it is; where it is long, or holds what no file can, the beginning of its text."""
    text = as_text(value)
    kept = well_formed(cut(text, MAX_KEPT))
    return value if kept == text else kept


def as_json(text: str, *, fenced: bool = True) -> JsonValue:
    """The value a text holds as JSON. `fenced`: of a text that is nothing but one fenced block, what is in the fence.

    Raises NotJsonError.
    """
    try:
        return read_foreign(_unfenced(text) if fenced else text)
    except ForeignJsonError as error:
        raise NotJsonError(error.detail or str(error)) from None


def _unfenced(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    language = first.removeprefix(_FENCE).strip().lower()
    if not first.startswith(_FENCE) or language not in {"", "json"} or not rest.endswith(_FENCE):
        return text
    return rest.removesuffix(_FENCE)
