"""The file tools an agent may have: how a model is told of them, and what they do in a sandbox.

Source: Agent Evals, Suite Field Notes (the names); their arguments and answers are worded by us.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from eval_gate.model.agent import FileTool
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolSpec
from eval_gate.sandbox.folder import Sandbox
from eval_gate.sandbox.paths import SandboxError
from eval_gate.struct import FrozenStruct

_PATH: Final = "Path relative to the tmp directory, folders separated by /."


class _Tool(FrozenStruct):
    description: str
    arguments: Mapping[str, str]
    run: Callable[..., str]
    """Takes the sandbox, then the arguments in their order."""
    optional: frozenset[str] = frozenset()
    """Arguments that a model may leave out: then they are empty. It is not told so."""


def _read(sandbox: Sandbox, path: str) -> str:
    return sandbox.read(path)


def _write(sandbox: Sandbox, path: str, content: str) -> str:
    return f"Wrote {sandbox.write(path, content)} bytes to {_shown(path)}"


def _list(sandbox: Sandbox, path: str) -> str:
    entries = sandbox.entries(path if path.strip() else ".")
    if not entries:
        return f"{_shown(path)} is empty"
    kinds = {"folder": "dir", "file": "file", "other": "not a file"}
    lines = [f"[{kinds[entry.kind]}] {entry.name}" for entry in entries if entry.name.isprintable()]
    return "\n".join([f"Contents of {_shown(path)}:", *lines])


def _delete(sandbox: Sandbox, path: str) -> str:
    sandbox.delete(path)
    return f"Deleted {_shown(path)}"


def _shown(path: str) -> str:
    """How a path that was accepted is called in an answer."""
    names = [name for name in path.strip().split("/") if name not in {"", "."}]
    return "/".join(["tmp", *names])


_TOOLS: Final[Mapping[FileTool, _Tool]] = {
    "readFile": _Tool("Reads a text file.", {"path": _PATH}, _read),
    "writeFile": _Tool(
        "Writes a text file, and makes the folders it lies in. A file of this name is replaced.",
        {"path": _PATH, "content": "All that the file is to hold."},
        _write,
    ),
    "listFiles": _Tool(
        "Lists the files and folders of a folder.",
        {"path": f"{_PATH} Empty for the tmp directory itself."},
        _list,
        optional=frozenset({"path"}),
    ),
    "deleteFile": _Tool("Deletes a file.", {"path": _PATH}, _delete),
}


def spec_of(name: FileTool) -> ToolSpec:
    """The tool as a model is told of it."""
    tool = _TOOLS[name]
    properties: dict[str, JsonValue] = {
        argument: {"type": "string", "description": description} for argument, description in tool.arguments.items()
    }
    required: list[JsonValue] = [*tool.arguments]
    return ToolSpec(
        name=name,
        description=tool.description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
    )


def run_tool(name: FileTool, params: Mapping[str, JsonValue], sandbox: Sandbox) -> str:
    """What the tool answers. Raises SandboxError, in words for the model, and OSError where the system breaks."""
    tool = _TOOLS[name]
    unknown = sorted(set(params) - set(tool.arguments))
    if unknown:
        raise SandboxError(f"{name} takes {' and '.join(tool.arguments)}, and no {unknown[0][:80]}.")
    given = []
    for argument in tool.arguments:
        value = params.get(argument)
        if value is None and argument in tool.optional:
            value = ""
        if not isinstance(value, str):
            raise SandboxError(f"{name} needs {argument}, a text.")
        given.append(value)
    return tool.run(sandbox, *given)
