"""Assertions of Agent Evals suites about files: they look at what the agent's folder held, and at nothing else."""

from __future__ import annotations

import pytest

from eval_gate.evaluators.agent_evals.table import TABLE
from eval_gate.evaluators.base import EvaluationContext, EvaluatorError, EvaluatorScore
from eval_gate.model.conversation import FileEntry, Response
from eval_gate.model.specs.agent_evals import FileContains, FileExists, FileJsonPath, FileNotExists, SuiteAssertion
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.tokens import TokenData
from tests.support.cases import make_case
from tests.support.grading import run_evaluation

OUT, DATA = "agent-evals/tool-test-output.txt", "agent-evals/tool-test-data.json"
FILES = (
    FileEntry(path="agent-evals", kind="folder", problem="Path must point to a file."),
    FileEntry(path=OUT, kind="file", text="Hello World"),
    FileEntry(path=DATA, kind="file", text='{"name": "test", "value": 42, "o": {"a": 1, "b": [null]}}'),
    FileEntry(path="fenced.json", kind="file", text='```json\n{"a": 1}\n```'),
    FileEntry(path="latin.txt", kind="file", problem="File is not UTF-8 text."),
    FileEntry(path="link", kind="other", problem="Symlink paths are not allowed."),
)


def judged(spec: SuiteAssertion, files=FILES) -> EvaluatorScore:
    context = EvaluationContext(
        make_case(expect=(spec,)), Response(text="done", files=files), TokenData(), PatternMatcher()
    )
    return run_evaluation(lambda around: TABLE[type(spec)](spec, around), context)


@pytest.mark.contract("agent_evals.file_exists", "agent_evals.files.relative")
@pytest.mark.parametrize(
    ("path", "holds"),
    [
        (OUT, True),
        (f" ./{OUT} ", True),
        ("agent-evals//tool-test-output.txt", True),
        ("agent-evals", True),
        ("latin.txt", True),
        ("agent-evals/other.txt", False),
        (f"tmp/{OUT}", False),
        ("Agent-Evals/tool-test-output.txt", False),
        (f"{OUT}/below", False),
    ],
)
def test_file_exists__path__is_there_when_the_agent_is_done(path, holds) -> None:
    assert judged(FileExists(path=path)).passed is holds


@pytest.mark.contract("agent_evals.file_exists")
def test_file_exists__is_not_there__says_so() -> None:
    evaluation = judged(FileExists(path="x.txt"))
    assert evaluation.error == "fileExists: File does not exist: x.txt: Path does not exist."
    assert evaluation.provider_request == {
        "assertion": {"type": "fileExists", "path": "x.txt"},
        "message": "File does not exist: x.txt",
        "expected": "file to exist",
        "actual": "Path does not exist.",
    }


REFUSED = {
    "../secret.txt": "Path traversal is not allowed.",
    "agent-evals/../agent-evals/tool-test-output.txt": "Path traversal is not allowed.",
    "/etc/passwd": "Path must be within the repo tmp directory.",
    "C:\\secret.txt": "Path must be within the repo tmp directory.",
    "": "Path cannot be empty.",
    ".": "Path must point to a file within tmp.",
    "link": "Symlink paths are not allowed.",
    "link/secret.txt": "Symlink paths are not allowed.",
    "a\0b": "Path must not hold control characters or characters that cannot be seen.",
}


@pytest.mark.contract(
    "agent_evals.files.traversal",
    "agent_evals.file_exists",
    "agent_evals.file_not_exists",
    "agent_evals.file_contains",
    "agent_evals.file_json_path",
)
@pytest.mark.parametrize(("path", "reason"), REFUSED.items(), ids=map(repr, REFUSED))
def test_assertion__refused_path__fails_with_the_reason(path, reason) -> None:
    for spec in (
        FileExists(path=path),
        FileNotExists(path=path),
        FileContains(path=path, value=""),
        FileJsonPath(path=path, json_path="$", expected=None),
    ):
        evaluation = judged(spec)
        assert not evaluation.passed
        assert reason in evaluation.error


def test_file_not_exists__refused_path__names_the_path_and_nothing_that_was_expected() -> None:
    error = "fileNotExists: Failed to check file: Path traversal is not allowed.: ../secret.txt"
    assert judged(FileNotExists(path="../secret.txt")).error == error


@pytest.mark.contract("agent_evals.file_not_exists")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("agent-evals/gone.json", None),
        (OUT, f"fileNotExists: File still exists: {OUT}"),
        ("agent-evals", "fileNotExists: File still exists: agent-evals"),
    ],
)
def test_file_not_exists__path__is_neither_file_nor_folder(path, error) -> None:
    assert judged(FileNotExists(path=path)).error == error


@pytest.mark.contract("agent_evals.file_contains")
@pytest.mark.parametrize(
    ("value", "case_sensitive", "holds"),
    [("Hello World", True, True), ("hello world", True, False), ("hello world", False, True), ("Bye", False, False)],
)
def test_file_contains__value__is_in_the_file(value, case_sensitive, holds) -> None:
    assert judged(FileContains(path=OUT, value=value, case_sensitive=case_sensitive)).passed is holds


@pytest.mark.contract("agent_evals.file_contains")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        (OUT, 'fileContains: File does not contain "Bye": expected "Bye", got "Hello World"'),
        ("gone.txt", "fileContains: Failed to read file: Path does not exist.: gone.txt"),
        ("agent-evals", "fileContains: Failed to read file: Path must point to a file.: agent-evals"),
        ("latin.txt", "fileContains: Failed to read file: File is not UTF-8 text.: latin.txt"),
    ],
)
def test_file_contains__fails__says_why(path, error) -> None:
    assert judged(FileContains(path=path, value="Bye")).error == error


@pytest.mark.contract("agent_evals.file_json_path")
@pytest.mark.parametrize(
    ("path", "expected", "holds"),
    [
        ("$.name", "test", True),
        ("name", "test", True),
        ("$.value", 42.0, True),
        ("$.value", "42", False),
        ("$.o", {"b": [None], "a": 1}, True),
        ("$.o.b.0", None, True),
        ("$.o.b.1", None, False),
        ("$.missing", None, False),
    ],
)
def test_file_json_path__value__is_deeply_the_one_in_the_file(path, expected, holds) -> None:
    assert judged(FileJsonPath(path=DATA, json_path=path, expected=expected)).passed is holds


@pytest.mark.contract("agent_evals.file_json_path")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        (DATA, 'fileJsonPath: Value at $.name does not equal expected: expected "x", got "test"'),
        (OUT, "fileJsonPath: Failed to evaluate: file is not JSON ("),
        ("fenced.json", "fileJsonPath: Failed to evaluate: file is not JSON ("),
        ("gone.json", "fileJsonPath: Failed to evaluate: Path does not exist.: gone.json"),
        ("agent-evals", "fileJsonPath: Failed to evaluate: Path must point to a file.: agent-evals"),
    ],
)
def test_file_json_path__fails__says_why(path, error) -> None:
    evaluation = judged(FileJsonPath(path=path, json_path="$.name", expected="x"))
    assert evaluation.error.startswith(error)


def test_file_json_path__leads_nowhere__names_the_step() -> None:
    evaluation = judged(FileJsonPath(path=DATA, json_path="$.o.c", expected="x", label="has a c"))
    assert evaluation.error.startswith('has a c: Failed to evaluate: $.o has no "c": expected "x", got {')


@pytest.mark.parametrize(
    "spec",
    [
        FileExists(path=OUT),
        FileNotExists(path="x"),
        FileContains(path=OUT, value=""),
        FileJsonPath(path=DATA, json_path="$", expected=1),
    ],
    ids=lambda spec: spec.type,
)
def test_assertion__answer_without_files__is_an_error_and_neither_pass_nor_failure(spec) -> None:
    """An endpoint works in no folder of ours: nothing is known of what it wrote."""
    with pytest.raises(EvaluatorError, match="no files to check"):
        judged(spec, files=None)


def test_assertion__no_files_at_all__are_known_to_be_none() -> None:
    assert judged(FileNotExists(path="x"), files=()).passed
    assert not judged(FileExists(path="x"), files=()).passed
