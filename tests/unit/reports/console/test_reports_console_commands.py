"""A command that is to be copied stays the same command, however narrow the terminal is."""

from __future__ import annotations

import subprocess

import pytest

from eval_gate.reports.console.style import ConsoleStyle, wrap_command
from eval_gate.text.shell import format_shell_line

URL = "http://localhost:8080/chat"
WORDS = ["eval-gate", "run", "--agent-endpoint", URL, "--case", "it's, a|b", "--strict", "my evals"]


@pytest.mark.parametrize("columns", [30, 40, 80, 300])
def test_command__any_width__is_read_by_a_shell_as_the_same_words(columns) -> None:
    lines = list(wrap_command("rerun:  ", format_shell_line(WORDS), ConsoleStyle(width=columns)))
    assert all(len(line) <= max(columns, len(f"          --agent-endpoint {URL} \\")) for line in lines)
    command = "\n".join(lines).removeprefix("rerun:  ")
    printed = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, text=True, check=True)
    assert printed.stdout.split("\0")[:-1] == WORDS


def test_command__fits__is_one_line() -> None:
    assert list(wrap_command("rerun:  ", "eval-gate run --case a", ConsoleStyle(width=40))) == [
        "rerun:  eval-gate run --case a"
    ]


def test_command__does_not_fit__options_stay_with_their_values() -> None:
    assert list(
        wrap_command("rerun:  ", "eval-gate run --baseline latest --case a,b evals", ConsoleStyle(width=40))
    ) == [
        "rerun:  eval-gate run \\",
        "          --baseline latest --case a,b \\",
        "          evals",
    ]


def test_command__a_word_like_a_command_of_a_runner__begins_no_line() -> None:
    lines = list(wrap_command("rerun:  ", f"eval-gate run {'x' * 60} ::error::x", ConsoleStyle(width=40)))
    assert not any(line.lstrip().startswith("::") for line in lines)
