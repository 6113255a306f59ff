"""The use case looks nothing up by itself and says nothing: whoever starts it does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOM = Path(__file__).parents[3] / "runner" / "eval_gate" / "session"


@pytest.mark.parametrize("file", sorted(ROOM.glob("*.py")), ids=lambda file: file.name)
def test_session__of_environment_and_streams__knows_nothing(file) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not imported & {"os", "sys"}
    assert "print" not in called
