"""What tests of AgentV files share: repositories in a temporary folder, and files of one case."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from eval_gate.errors import GateError
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import EvalFile, load_suites
from eval_gate.model.case import EvalCase, EvalSuite

ASKED = "expected_outcome: Says so.\ninput_messages: [{role: user, content: Is it so?}]\n"
"""The rest of a case that only its id is missing from."""


class Repository:
    """A folder with files, and eval files in it that are loaded as a run would."""

    def __init__(self, root: Path, *, git: bool = True) -> None:
        self.root = root
        if git:
            (root / ".git").mkdir(parents=True)

    def write(self, name: str, text: str | bytes = "") -> Path:
        """A file, with its text freed from the indentation of the test."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(textwrap.dedent(text).encode() if isinstance(text, str) else text)
        return path

    def load(self, name: str, text: str | None = None, *, strict: bool = False, root: Path | None = None) -> EvalSuite:
        """The suite in this file, which is written first where a text is given. Raises GateError."""
        if text is not None:
            self.write(name, text)
        [suite] = load_suites(
            [EvalFile(self.root / name, explicit=True)], root or self.root, ReadOptions(strict=strict)
        )
        return suite

    def case(self, text: str, name: str = "evals/suite.yaml", *, strict: bool = False) -> EvalCase:
        """The first case of a file with this text."""
        return self.load(name, text, strict=strict).cases[0]

    def problems(self, text: str, name: str = "evals/suite.yaml", *, strict: bool = False) -> list[str]:
        """What is wrong with a file of this text, as people read it, without the file's name."""
        with pytest.raises(GateError) as caught:
            self.load(name, text, strict=strict)
        return [str(problem).removeprefix(f"{name}:") for problem in caught.value.problems]


def suite(*cases: str, head: str = "") -> str:
    """A file of these cases. A case is its lines after the dash, without the usual outcome and input."""
    listed = "".join("  - " + textwrap.indent(textwrap.dedent(case).strip(), "    ").lstrip() + "\n" for case in cases)
    return textwrap.dedent(head) + "evalcases:\n" + listed


def judged(*evaluators: str, case_id: str = "one") -> str:
    """A file of one case with these evaluators, one a line from line 7 on."""
    lines = "".join(f"    - {one}\n" for one in evaluators)
    return suite(f"id: {case_id}\n{ASKED}execution:\n  evaluators:\n{lines}")
