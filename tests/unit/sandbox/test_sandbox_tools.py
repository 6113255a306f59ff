"""The four file tools: what a model is told of them, and what it gets back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

from eval_gate.model.agent import FileTool
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import Sandbox
from eval_gate.sandbox.tools import build_tool_spec, run_tool

TOOL_NAMES = get_args(FileTool)


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path) as made:
        yield made


@pytest.mark.contract("agent_evals.field.tools")
def test_tools__there_are__these_four() -> None:
    assert TOOL_NAMES == ("readFile", "writeFile", "listFiles", "deleteFile")


@pytest.mark.parametrize("name", TOOL_NAMES)
def test_tool__as_a_model_is_told__is_described_with_a_schema_that_takes_nothing_else(name) -> None:
    spec = build_tool_spec(name)
    Draft202012Validator.check_schema(spec.parameters)
    assert (spec.name, bool(spec.description)) == (name, True)
    arguments = {"path": "a.txt"} | ({"content": "x"} if name == "writeFile" else {})
    validator = Draft202012Validator(spec.parameters)
    assert validator.is_valid(arguments)
    assert not validator.is_valid({})
    assert not validator.is_valid(arguments | {"mode": "w"})


@pytest.mark.contract("agent_evals.run.conversation")
def test_tools__one_after_the_other__really_work(sandbox: Sandbox) -> None:
    path = "agent-evals/./tool-test-output.txt"
    assert run_tool("listFiles", {"path": ""}, sandbox) == "tmp is empty"
    assert (
        run_tool("writeFile", {"path": path, "content": "Hello Wörld"}, sandbox)
        == "Wrote 12 bytes to tmp/agent-evals/tool-test-output.txt"
    )
    assert (sandbox.path / path).read_text(encoding="utf-8") == "Hello Wörld"
    assert run_tool("readFile", {"path": path}, sandbox) == "Hello Wörld"
    assert run_tool("listFiles", {"path": "."}, sandbox) == "Contents of tmp:\n[dir] agent-evals"
    assert run_tool("listFiles", {"path": "agent-evals"}, sandbox) == (
        "Contents of tmp/agent-evals:\n[file] tool-test-output.txt"
    )
    assert run_tool("deleteFile", {"path": path}, sandbox) == "Deleted tmp/agent-evals/tool-test-output.txt"
    assert run_tool("listFiles", {"path": "agent-evals/"}, sandbox) == "tmp/agent-evals is empty"


@pytest.mark.parametrize("params", [{}, {"path": None}, {"path": " "}], ids=str)
def test_list__without_a_path__is_of_the_folder_itself(sandbox: Sandbox, params) -> None:
    assert run_tool("listFiles", params, sandbox) == "tmp is empty"


def test_list__names_that_would_break_the_line__are_left_out(sandbox: Sandbox) -> None:
    (sandbox.path / "a\n[file] b").touch()
    (sandbox.path / "c").touch()
    assert run_tool("listFiles", {}, sandbox) == "Contents of tmp:\n[file] c"


@pytest.mark.contract("agent_evals.run.tool_refused")
@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("readFile", {}, "readFile needs path, a text."),
        ("readFile", {"path": 3}, "readFile needs path, a text."),
        ("readFile", {"path": ["a"]}, "readFile needs path, a text."),
        ("writeFile", {"path": "a.txt"}, "writeFile needs content, a text."),
        ("writeFile", {"path": "a.txt", "content": {"a": 1}}, "writeFile needs content, a text."),
        ("writeFile", {"path": "a", "content": "", "mode": "a"}, "writeFile takes path and content, and no mode."),
        ("listFiles", {"path": 0}, "listFiles needs path, a text."),
        ("deleteFile", {"path": "../x"}, "Path traversal is not allowed."),
        ("readFile", {"path": "x"}, "Path does not exist."),
    ],
    ids=str,
)
def test_tool__wrong_arguments__are_refused_in_words_for_the_model(sandbox: Sandbox, name, params, said) -> None:
    with pytest.raises(SandboxError) as refusal:
        run_tool(name, params, sandbox)
    assert str(refusal.value) == said
    assert sandbox.collect_entries(()) == ()
