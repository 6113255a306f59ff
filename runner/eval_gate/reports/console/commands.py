"""A command to be copied: on several lines where one is too short, as a shell reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from eval_gate.reports.console.style import ConsoleStyle

_WORD: Final = re.compile(r"(?:\$'(?:\\.|[^'\\])*'|'[^']*'|\"[^\"]*\"|\S)+")
"""A word of a shell, as `text/shell.py` writes it: what is quoted stays together."""
_OPEN: Final = " \\"


def command_lines(label: str, command: str, style: ConsoleStyle) -> Iterator[str]:
    """The command behind its label. An option keeps its value; a word is never broken, however long it is.

    None begins a line that a runner would take for a command of its own.
    """
    line = label
    for part in _parts(command):
        if line == label:
            line += part
        elif len(line) + 1 + len(part) + len(_OPEN) <= style.width or part.startswith("::"):
            line += f" {part}"
        else:
            yield line + _OPEN
            line = " " * (len(label) + 2) + part
    yield line


def _parts(command: str) -> list[str]:
    """`eval-gate run`, `--case a`, `evals`: the words, each option together with what follows it."""
    parts: list[str] = []
    for word in _WORD.findall(command):
        if (
            parts
            and (parts[-1] == "eval-gate" or (parts[-1].startswith("--") and " " not in parts[-1]))
            and not (word.startswith("--"))
        ):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    return parts
