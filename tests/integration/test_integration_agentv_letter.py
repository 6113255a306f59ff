"""AgentV's specification to the letter, from files to the record: judges without a verdict, lines of a command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record

CASE = """
evalcases:
  - id: one
    expected_outcome: greets
    input_messages:
      - {role: user, content: hi}
"""


def judged(folder: Path, target: dict, reply: str) -> dict:
    """The only case's record, answered by `target` and graded by a judge that always replies so."""
    (folder / "evals").mkdir()
    (folder / "evals" / "a.yaml").write_text(CASE)
    judge = {"name": "grader", "provider": "mock", "response": reply}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [{"name": "t", **target}, judge]}))
    done = gate(folder, "run", "evals", "--targets", "targets.yaml", "--target", "t", "--judge", "grader")
    assert done.returncode in {0, 1}, done.stderr
    ((case,),) = [suite["cases"] for suite in record(folder)["suites"]]
    return case


@pytest.mark.contract("judge.reply.none")
def test_judge__no_reply_has_a_verdict__score_is_0_and_hits_and_misses_are_empty(tmp_path) -> None:
    case = judged(tmp_path, {"provider": "mock", "response": "hello"}, "I would rather not say.")
    (result,) = case["evaluatorResults"]
    assert (case["status"], case["score"]) == ("failed", 0.0)
    assert (result["score"], result["hits"], result["misses"]) == (0.0, [], [])


@pytest.mark.contract("judge.reply.items")
def test_judge__reply_with_empty_misses__stays_empty_in_the_record(tmp_path) -> None:
    case = judged(tmp_path, {"provider": "mock", "response": "hello"}, '{"score": 0.5, "hits": [], "misses": []}')
    (result,) = case["evaluatorResults"]
    assert (result["score"], result["hits"], result["misses"]) == (0.5, [], [])
    assert case["error"] == "llm_judge: score 0.50"


@pytest.mark.contract("cli.answer")
def test_command__answers_with_lines_of_windows__they_are_lines(tmp_path) -> None:
    program = "import sys; sys.stdout.buffer.write(b'one\\r\\ntwo\\r\\n')"
    (tmp_path / "answer.py").write_text(program)
    target = {"provider": "cli", "command_template": f"{sys.executable} {tmp_path / 'answer.py'}"}
    case = judged(tmp_path, target, '{"score": 1}')
    assert case["details"]["response"] == "one\ntwo"
