"""Assertions of Agent Evals suites about files: fileExists, fileNotExists, fileContains, fileJsonPath.

Source: Agent Evals, "File Assertions"; agent-evals behaviour 3.3 and 3.4. They look at what the agent's folder held
when it was done, and at nothing on disk. An answer that came without that could not be judged.
"""

from __future__ import annotations

from eval_gate.evaluators.agent_evals.answers import is_in, value_equals
from eval_gate.evaluators.agent_evals.outcome import NotJsonError, as_json, assertion_failed, assertion_passed
from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.wording import cut, double
from eval_gate.model.conversation import FileEntry
from eval_gate.model.specs.agent_evals import FileContains, FileExists, FileJsonPath, FileNotExists, SuiteAssertion
from eval_gate.sandbox.paths import MISSING, NO_FILE, SandboxError, file_names


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
