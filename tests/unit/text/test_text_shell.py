"""Commands to be copied: a shell reads the very words, and a log shows one harmless line."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eval_gate.text.shell import format_shell_line
from tests.support.sizes import size

PRINT = "import sys; sys.stdout.buffer.write('\\0'.join(sys.argv[1:]).encode('utf-8', 'surrogateescape'))"


def read_by_bash(line: str) -> list[str]:
    script = f"exec {format_shell_line([sys.executable, '-c', PRINT])} {line}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    return done.stdout.decode().split("\0")


@pytest.mark.slow
@settings(max_examples=size(60))
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=1))
@example(
    ["a\nb", "##[error]x", "##vso[x]", "::error::y", "it's", "\u202e", "$(id)`id`", "\\", "a'\n\\'b", "!x", "\x7f1"]
)
def test_shell_line__any_words__are_read_as_they_are(words) -> None:
    line = format_shell_line(words)
    assert len(line.splitlines()) == 1
    assert not re.search(r"##(vso)?\[", line)
    assert read_by_bash(line) == words


@pytest.mark.parametrize("word", ["a\0b", "a\ud800b"])
def test_shell_line__what_no_argument_can_hold__is_any_character(word) -> None:
    assert format_shell_line([word]) in {"$'a?b'", "'a?b'"}
