"""Whose files a step goes by: what each event takes for proof, and that no file is read past the check."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import eval_gate
from eval_gate.action.trust.event_files import Proof, proof_for

ROOMS = ("config", "formats", "registry", "targets", "gate", "engine/preparing", "evaluators")
"""Where files are read by whose content a run goes."""
OTHERS = {
    "targets/container.py": "the kernel's table of routes",
    "targets/coding_agent.py": "writes a log",
    "targets/vscode/subagent.py": "what an agent has left in its own folder",
}


@pytest.mark.parametrize(
    ("proof", "events"),
    [
        (Proof.NONE, "push schedule merge_group pull_request pull_request_review release deployment"),
        (Proof.NO_DOUBT, "workflow_dispatch workflow_run"),
        (Proof.CONTENT, "issue_comment issues discussion_comment repository_dispatch check_run check_suite status"),
        (Proof.CONTENT, "watch fork gollum label milestone an_event_of_tomorrow"),
    ],
)
def test_event__takes_as_much_proof_as_anybody_could_have_caused_it(proof, events) -> None:
    assert {event: proof_for(event) for event in events.split()} == dict.fromkeys(events.split(), proof)


def _reads(file: Path) -> Iterator[int]:
    """The lines on which a file is opened or read."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            name = (
                called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            )
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
