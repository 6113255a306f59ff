"""What people write where JSON is read: YAML, trailing commas, comments. The error says which, and what to change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import agent

CASE = '{"id": "a", "input": {"message": "hi"}, "expect": {"responseNonEmpty": true}}'
MISTAKES = {
    "comma in a list": (
        '{\n "a": [1,\n  2, \n ]}',
        3,
        "trailing comma: remove it in line 3 (column 4)",
    ),
    "comma in an object": (
        '{\n "a": 1,\n}',
        2,
        "trailing comma: remove it in line 2 (column 8)",
    ),
    "comment": (
        '{\n "a": 1, // one\n "b": 2}',
        2,
        "JSON has no comments: remove the comment in line 2 (column 10)",
    ),
    "comment above": ("# one\n{}", 1, "JSON has no comments: remove the comment in line 1 (column 1)"),
    "block comment": ("{ /* one */ }", 1, "JSON has no comments: remove the comment in line 1 (column 3)"),
    "YAML": ("# ours\n\na: 1\nb:\n  - 2\n", 3, "this is YAML, but the file must be JSON: write it as JSON"),
    "YAML's list": ("- a: 1\n", 1, "this is YAML, but the file must be JSON: write it as JSON"),
    "YAML with a marker": ("---\n{}\n", 1, "this is YAML, but the file must be JSON: write it as JSON"),
    "single quotes": ("{\n 'a': 1}", 2, "single quotes: write double quotes in line 2 (column 2)"),
}


def eval_file(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "evals" / "a.golden.json").write_text(text)
    return ("evals/a.golden.json", "validate")


def configuration(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "eval-gate.json").write_text(text)
    return ("eval-gate.json", "validate")


def registry(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "tools.json").write_text(text)
    return ("tools.json", "validate", "--tool-registry", "tools.json")


def seeds(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "evals" / "seed-manifest.json").write_text(text)
    return ("evals/seed-manifest.json", "validate")


def results(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "run.json").write_text(text)
    return ("run.json", "report", "run.json", "--format", "md")


@pytest.mark.parametrize("place", [eval_file, configuration, registry, seeds, results])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_file__holds_what_is_almost_json__is_named_with_line_and_what_to_change(tmp_path, place, mistake) -> None:
    write_suite(tmp_path, 1)
    text, line, said = MISTAKES[mistake]
    file, *command = place(tmp_path, text)
    done = gate(tmp_path, *command)
    assert done.returncode in {2, 3}
    assert f"{file}:{line}: {said}" in done.stderr + done.stdout


@pytest.mark.parametrize("text", ["nope", "{} x", '{"a": "- b: c",}', "[1]\nb: 2", "{'a", "nulls: ["])
def test_file__is_no_json__never_ends_in_a_traceback(tmp_path, text) -> None:
    write_suite(tmp_path, 1)
    file, *command = eval_file(tmp_path, text)
    done = gate(tmp_path, *command)
    assert (done.returncode, f"{file}:" in done.stderr + done.stdout) == (2, True)


def test_seed_token__no_manifest__the_line_names_the_file_that_is_missing(tmp_path) -> None:
    case = json.loads(CASE) | {"expect": {"responseContains": ["{{seed:a.b}}"]}}
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "a.golden.json").write_text(json.dumps([case]))
    done = gate(tmp_path, "validate")
    assert "{{seed:a.b}} not found: no seed manifest found (evals/seed-manifest.json or" in done.stderr
    (tmp_path / "evals" / "seed-manifest.json").write_text('{"a": {"c": 1}}')
    assert "{{seed:a.b}} not found in the seed manifest" in gate(tmp_path, "validate").stderr
    (tmp_path / "evals" / "seed-manifest.json").write_text('{"a": {"b": "ok"}}')
    assert "not found" not in gate(tmp_path, "validate").stderr
    with agent() as running:
        assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
    assert record(tmp_path)["suites"][0]["cases"][0]["status"] == "passed"
