"""The assertions of Agent Evals suites, on the response and on files, with one function each.

Source: Agent Evals, "Assertion Types" and "File Assertions"; agent-evals behaviour 3.3 and 3.4. If a suite expects
anything but a text, the response is parsed as JSON, and the assertion fails if that is impossible. Files are those of
the response, which the agent's folder held at the end: the disk is not read, and a response without files is an
evaluation error. Reports get message, expected and actual value separately, people get one truncated sentence.
"""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.base import EvaluationContext, EvaluatorError, EvaluatorScore, EvaluatorTable
from eval_gate.evaluators.wording import MAX_VALUE, double_quote, truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import FileEntry
from eval_gate.model.specs import agent_evals as specs
from eval_gate.sandbox.paths import MISSING, NO_FILE, SandboxError, split_file_path
from eval_gate.text.distinct_values import format_distinct_values
from eval_gate.text.dotted_path import PathError, get_by_path
from eval_gate.text.javascript.regex import PatternError
from eval_gate.text.javascript.strings import as_text, dump_compact_json
from eval_gate.text.json_values import are_json_equal
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json, strip_fence
from eval_gate.text.untrusted.surrogates import to_well_formed

MAX_SEEN_CHARACTERS: Final = 500
"""Maximum characters of the actual value in a result."""
MAX_MESSAGE: Final = 400


async def evaluate_contains(spec: specs.OutputContains, context: EvaluationContext) -> EvaluatorScore:
    """Check that the response contains the value. If case does not matter, both sides are compared in lower case."""
    return _score_contained(spec, "Output", context.response.text)


def _score_contained(spec: specs.OutputContains | specs.FileContains, what: str, text: str) -> EvaluatorScore:
    holds = spec.value in text if spec.case_sensitive else spec.value.lower() in text.lower()
    words = "contains" if holds else "does not contain"
    build = pass_assertion if holds else fail_assertion
    return build(spec, f"{what} {words} {double_quote(spec.value)}", spec.value, text)


async def evaluate_matches_regex(spec: specs.OutputMatches, context: EvaluationContext) -> EvaluatorScore:
    """Check that the pattern matches somewhere in the response; one that is invalid or takes too long fails."""
    text, pattern = context.response.text, f"/{truncate(spec.pattern)}/{truncate(spec.flags, 20)}"
    try:
        matches = await context.patterns.search(spec.pattern, text, spec.flags)
    except PatternError as error:
        return fail_assertion(spec, f"Invalid regex pattern: {error}", spec.pattern, text, why="")
    if matches:
        return pass_assertion(spec, f"Output matches pattern {pattern}", spec.pattern, text)
    return fail_assertion(spec, f"Output does not match pattern {pattern}", spec.pattern, text)


async def evaluate_equals(spec: specs.OutputEquals, context: EvaluationContext) -> EvaluatorScore:
    """Check that the response is the expected text, or any other value when it is parsed as JSON."""
    message = "Output does not equal expected value"
    actual: JsonValue = context.response.text
    if not isinstance(spec.expected, str):
        try:
            actual = parse_json_text(context.response.text)
        except NotJsonError as error:
            return fail_assertion(
                spec, f"{message}: output is not JSON ({truncate(str(error))})", spec.expected, actual
            )
    if are_json_equal(actual, spec.expected):
        return pass_assertion(spec, "Output equals expected value", spec.expected, actual)
    return fail_assertion(spec, message, spec.expected, actual)


async def evaluate_json_path(spec: specs.OutputJsonPath, context: EvaluationContext) -> EvaluatorScore:
    """Check the value at a path of the response, parsed as JSON. A missing value equals nothing."""
    text, failing = context.response.text, f"Failed to evaluate path {truncate(spec.path)}"
    try:
        document = parse_json_text(text)
    except NotJsonError as error:
        return fail_assertion(spec, f"{failing}: output is not JSON ({truncate(str(error))})", spec.expected, text)
    return evaluate_value_at(spec, document, spec.path, failing=failing)


def evaluate_value_at(
    spec: specs.OutputJsonPath | specs.FileJsonPath, document: JsonValue, path: str, *, failing: str
) -> EvaluatorScore:
    """Check that the value at `path` is the expected one. `failing` begins the message if there is no such value."""
    try:
        value = get_by_path(document, path)
    except PathError as error:
        return fail_assertion(spec, f"{failing}: {error}", spec.expected, document)
    if are_json_equal(value, spec.expected):
        return pass_assertion(spec, f"Value at {truncate(path)} equals expected", spec.expected, value)
    return fail_assertion(spec, f"Value at {truncate(path)} does not equal expected", spec.expected, value)


async def evaluate_file_exists(spec: specs.FileExists, context: EvaluationContext) -> EvaluatorScore:
    """Check that the file or folder exists; a refused path fails."""
    expected, path = "file to exist", truncate(spec.path)
    try:
        _get_entry(spec, spec.path, context)
    except SandboxError as error:
        return fail_assertion(spec, f"File does not exist: {path}", expected, str(error), why=str(error))
    return pass_assertion(spec, f"File exists: {path}", expected, spec.path)


async def evaluate_file_not_exists(spec: specs.FileNotExists, context: EvaluationContext) -> EvaluatorScore:
    """Check that neither a file nor a folder exists there; a refused path fails too."""
    expected, path = "file to not exist", truncate(spec.path)
    try:
        entry = _find_entry(spec, spec.path, context)
    except SandboxError as error:
        return fail_assertion(spec, f"Failed to check file: {error}", expected, str(error), why=path)
    if entry is None:
        return pass_assertion(spec, f"File does not exist: {path}", expected, "file not found")
    return fail_assertion(spec, f"File still exists: {path}", expected, "file exists", why="")


async def evaluate_file_contains(spec: specs.FileContains, context: EvaluationContext) -> EvaluatorScore:
    """Check that the text of a file contains the value."""
    try:
        text = _read_file_text(spec, spec.path, context)
    except SandboxError as error:
        return fail_assertion(
            spec, f"Failed to read file: {error}", spec.value, "file read error", why=truncate(spec.path)
        )
    return _score_contained(spec, "File", text)


async def evaluate_file_json_path(spec: specs.FileJsonPath, context: EvaluationContext) -> EvaluatorScore:
    """Check that the value at a path of a file, parsed as JSON, is the expected one."""
    failing = "Failed to evaluate"
    try:
        text = _read_file_text(spec, spec.path, context)
    except SandboxError as error:
        return fail_assertion(spec, f"{failing}: {error}", spec.expected, "file read error", why=truncate(spec.path))
    try:
        document = parse_json_text(text, fenced=False)
    except NotJsonError as error:
        return fail_assertion(spec, f"{failing}: file is not JSON ({truncate(str(error))})", spec.expected, text)
    return evaluate_value_at(spec, document, spec.json_path, failing=failing)


def _read_file_text(spec: specs.SuiteAssertion, path: str, context: EvaluationContext) -> str:
    entry = _get_entry(spec, path, context)
    if entry.text is None:
        raise SandboxError(entry.problem or NO_FILE)
    return entry.text


def _get_entry(spec: specs.SuiteAssertion, path: str, context: EvaluationContext) -> FileEntry:
    entry = _find_entry(spec, path, context)
    if entry is None:
        raise SandboxError(MISSING)
    return entry


def _find_entry(spec: specs.SuiteAssertion, path: str, context: EvaluationContext) -> FileEntry | None:
    """Find the file or folder at `path`, which may neither be a link nor lead through one."""
    if context.response.files is None:
        raise EvaluatorError(
            f"{truncate(spec.name)}: the target has no files to check: only a model that runs as the "
            "suite's agent works in a folder"
        )
    names = split_file_path(path)
    by_path = {entry.path: entry for entry in context.response.files}
    for count in range(1, len(names) + 1):
        ancestor = by_path.get("/".join(names[:count]))
        if ancestor is not None and ancestor.kind == "other":
            raise SandboxError(ancestor.problem or NO_FILE)
    return by_path.get("/".join(names))


class NotJsonError(Exception):
    """A text is not valid JSON; the message says why."""


def pass_assertion(spec: specs.SuiteAssertion, message: str, expected: JsonValue, actual: JsonValue) -> EvaluatorScore:
    """Build the score of an assertion that passed."""
    message = to_well_formed(truncate(message, MAX_MESSAGE))
    return EvaluatorScore(
        score=1.0, hits=(message,), checks_run=1, provider_request=_build_details(spec, message, expected, actual)
    )


def fail_assertion(
    spec: specs.SuiteAssertion, message: str, expected: JsonValue, actual: JsonValue, *, why: str | None = None
) -> EvaluatorScore:
    """Build a failed score. `why` replaces the expected and the actual value if these do not explain it."""
    message = to_well_formed(truncate(message, MAX_MESSAGE))
    expectation, got = format_distinct_values(expected, actual, format_value, MAX_VALUE)
    reason = f"expected {expectation}, got {got}" if why is None else why
    sentence = to_well_formed(f"{truncate(spec.name)}: {message}{': ' if reason else ''}{reason}")
    return EvaluatorScore(
        score=0.0,
        misses=(sentence,),
        error=sentence,
        checks_run=1,
        provider_request=_build_details(spec, message, expected, actual),
    )


def format_value(value: JsonValue) -> str:
    """Format a value for a sentence: text in quotes, anything else as JSON, truncated."""
    return double_quote(value) if isinstance(value, str) else truncate(dump_compact_json(value))


def _build_details(
    spec: specs.SuiteAssertion, message: str, expected: JsonValue, actual: JsonValue
) -> dict[str, JsonValue]:
    """Build the details of an assertion under the names that reports use."""
    return {
        "assertion": {key: _truncate_value(value) for key, value in spec.as_written.items()},
        "message": message,
        "expected": _truncate_value(expected),
        "actual": _truncate_value(actual),
    }


def _truncate_value(value: JsonValue) -> JsonValue:
    """Return the value, or the beginning of its text if a result file cannot hold it: too long, or no valid Unicode."""
    text = as_text(value)
    excerpt = to_well_formed(truncate(text, MAX_SEEN_CHARACTERS))
    return value if excerpt == text else excerpt


def parse_json_text(text: str, *, fenced: bool = True) -> JsonValue:
    """Parse a text as JSON; with `fenced`, a single fenced block without its fence. Raises NotJsonError."""
    try:
        return parse_untrusted_json(strip_fence(text) if fenced else text)
    except UntrustedJsonError as error:
        raise NotJsonError(error.detail or str(error)) from None


TABLE: Final[EvaluatorTable] = {
    specs.OutputContains: evaluate_contains,
    specs.OutputMatches: evaluate_matches_regex,
    specs.OutputEquals: evaluate_equals,
    specs.OutputJsonPath: evaluate_json_path,
    specs.FileExists: evaluate_file_exists,
    specs.FileNotExists: evaluate_file_not_exists,
    specs.FileContains: evaluate_file_contains,
    specs.FileJsonPath: evaluate_file_json_path,
}
