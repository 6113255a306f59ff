"""The example of conversations, done as its page says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.test_integration_run import ROOT
from tests.support.agents import unused_port
from tests.support.newcomer import blocks, commands
from tests.support.program import gate

HOME = ROOT / "examples" / "conversations"


def typed_commands(home: Path) -> list[list[str]]:
    """What the page of an example says to type of ours."""
    page = (home / "README.md").read_text()
    lines = [line for language, text in blocks(page) if language == "console" for line in commands(text)]
    return [line.partition("#")[0].split()[1:] for line in lines if line.startswith("eval-gate ")]


@contextmanager
def example_agent(port: int, *options: str) -> Iterator[None]:
    """The example's agent, running."""
    command = [sys.executable, "-I", str(HOME / "agent.py"), "--port", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        yield
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_example__as_its_page_says__passes_and_then_names_the_turn_that_forgot(tmp_path: Path) -> None:
    shutil.copytree(HOME, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "results"))
    first, second = typed_commands(HOME)
    done = gate(tmp_path, "validate")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "3 cases in 1 suite: 0 problems, 0 warnings"), (
        done.stderr
    )
    port = unused_port()
    file = tmp_path / "eval-gate.yaml"
    file.write_text(file.read_text().replace("8080", str(port)))
    with example_agent(port):
        done = gate(tmp_path, *first)
    assert (done.returncode, "3 of 3 pass" in done.stdout) == (0, True), done.stdout + done.stderr
    with example_agent(port, "--forgetful"):
        done = gate(tmp_path, *second)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "REGRESSIONS (1): gs-returns-001" in done.stdout, done.stdout
    assert "turn 3 of 4" in done.stdout, done.stdout


def test_conversations_page__its_files__are_valid_and_its_target_holds_a_conversation(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "conversations.md").read_text(encoding="utf-8")
    shown = {language: [text for one, text in blocks(page) if one == language] for language in ("json", "yaml")}
    (tmp_path / "evals").mkdir()
    for number, text in enumerate(shown["json"]):
        (tmp_path / "evals" / f"chat{number}.golden.json").write_text(text, encoding="utf-8")
    (targets,) = shown["yaml"]
    (tmp_path / "evals" / "targets.yaml").write_text(targets, encoding="utf-8")
    (tmp_path / "eval-gate.yaml").write_text("simulatedUser: openai:gpt-5-mini", encoding="utf-8")
    done = gate(tmp_path, "validate", "--strict", OPENAI_API_KEY="sk-test-0123456789abcdef")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 cases in 2 suites: 0 problems, 0 warnings"), (
        done.stdout + done.stderr
    )
