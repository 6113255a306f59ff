"""Whose files a step goes by: what each event takes for proof, and that no file is read past the check."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import eval_gate
from eval_gate.action.trust.event_files import FileProof, choose_proof

ROOMS = ("config", "formats", "staleness", "targets", "gate", "engine/preparation", "evaluators")
"""Where files are read by whose content a run goes."""
OTHERS = {
    "targets/agent_address.py": "the kernel's table of routes",
    "targets/coding_agent.py": "writes a log",
    "engine/preparation/program_files.py": "hashes the rest of a large file whose beginning passed the check",
    "engine/preparation/measured_files.py": "only digests: files that are equal to those of a trusted run are trusted",
    "targets/vscode/subagent.py": "what an agent has left in its own folder",
}
NO_FILES = {"repository", "self._repository", "self._reader"}
"""Whose `read_text` is one of ours: it opens nothing itself."""


@pytest.mark.parametrize(
    ("proof", "events"),
    [
        (FileProof.NONE, "push schedule merge_group pull_request pull_request_review release deployment"),
        (FileProof.NO_DOUBT, "workflow_dispatch workflow_run"),
        (FileProof.CONTENT, "issue_comment issues discussion_comment repository_dispatch check_run check_suite status"),
        (FileProof.CONTENT, "watch fork gollum label milestone an_event_of_tomorrow"),
    ],
)
def test_event__takes_as_much_proof_as_anybody_could_have_caused_it(proof, events) -> None:
    assert {event: choose_proof(event) for event in events.split()} == dict.fromkeys(events.split(), proof)


def _reads(file: Path) -> Iterator[int]:
    """The lines on which a file is opened or read."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            name = (
                called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            )
            whose = ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""
            if name == "read_text" and whose in NO_FILES:
                continue
            # a secret is opened without a word
            if name in {"read_text", "fdopen"} or (name == "open" and (node.args or node.keywords)):
                yield node.lineno
            if name == "read_bytes" and not node.args:
                yield node.lineno


def test_files__in_rooms_that_go_by_them__are_read_by_the_one_function_that_checks_whose_they_are() -> None:
    package = Path(eval_gate.__file__).parent
    files = [file for room in ROOMS for file in sorted((package / room).rglob("*.py"))]
    found = {file.relative_to(package).as_posix(): list(_reads(file)) for file in files}
    assert {name for name, lines in found.items() if lines} == set(OTHERS)
