"""File tools for agents: their descriptions for the model, and their execution in a sandbox.

Source: Agent Evals, Suite Field Notes (the names); the wording of arguments and results is this module's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from eval_gate.model.agent import FileTool
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolSpec
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import Sandbox
from eval_gate.struct import FrozenStruct

_PATH: Final = "Path relative to the tmp directory, folders separated by /."


class _ToolDescription(FrozenStruct):
    description: str
    arguments: Mapping[str, str]
    run: Callable[..., str]
    """Function of the sandbox and the arguments in their order."""
    optional: frozenset[str] = frozenset()
    """Arguments that a model may leave out, which makes them empty. Their description does not say so."""


def _read_file(sandbox: Sandbox, path: str) -> str:
    return sandbox.read(path)


def _write_file(sandbox: Sandbox, path: str, content: str) -> str:
    return f"Wrote {sandbox.write(path, content)} bytes to {_format_path(path)}"


def _list_files(sandbox: Sandbox, path: str) -> str:
    entries = sandbox.list_entries(path if path.strip() else ".")
    if not entries:
        return f"{_format_path(path)} is empty"
    kinds = {"folder": "dir", "file": "file", "other": "not a file"}
    lines = [f"[{kinds[entry.kind]}] {entry.name}" for entry in entries if entry.name.isprintable()]
    return "\n".join([f"Contents of {_format_path(path)}:", *lines])


def _delete_file(sandbox: Sandbox, path: str) -> str:
    sandbox.delete(path)
    return f"Deleted {_format_path(path)}"


def _format_path(path: str) -> str:
    names = [name for name in path.strip().split("/") if name not in {"", "."}]
    return "/".join(["tmp", *names])


_TOOLS: Final[Mapping[FileTool, _ToolDescription]] = {
    "readFile": _ToolDescription("Reads a text file.", {"path": _PATH}, _read_file),
    "writeFile": _ToolDescription(
        "Writes a text file, and makes the folders it lies in. A file of this name is replaced.",
        {"path": _PATH, "content": "All that the file is to hold."},
        _write_file,
    ),
    "listFiles": _ToolDescription(
        "Lists the files and folders of a folder.",
        {"path": f"{_PATH} Empty for the tmp directory itself."},
        _list_files,
        optional=frozenset({"path"}),
    ),
    "deleteFile": _ToolDescription("Deletes a file.", {"path": _PATH}, _delete_file),
}


def build_tool_spec(name: FileTool) -> ToolSpec:
    """Build the description of a file tool that the model gets."""
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
    """Run a file tool and return its result as text. Raises SandboxError with a message for the model, and OSError."""
    tool = _TOOLS[name]
    unknown = sorted(set(params) - set(tool.arguments))
    if unknown:
        raise SandboxError(f"{name} takes {' and '.join(tool.arguments)}, and no {unknown[0][:80]}.")
    values = []
    for argument in tool.arguments:
        value = params.get(argument)
        if value is None and argument in tool.optional:
            value = ""
        if not isinstance(value, str):
            raise SandboxError(f"{name} needs {argument}, a text.")
        values.append(value)
    return tool.run(sandbox, *values)
