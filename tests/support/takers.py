"""Every function of ours that takes a text and needs nothing else: what foreign text may meet, found by signature."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator

TEXT = frozenset({"str", "str | None", "bytes", "JsonValue", "object"})
ROOMS = ("text", "evaluators", "formats", "gate", "github", "reports", "results", "sandbox", "staleness", "targets")
TOUCH_THE_WORLD = frozenset(
    {
        "eval_gate.results.run_reader.read_history",
        "eval_gate.results.run_reader._to_path",
        "eval_gate.staleness.mcp_servers.load_mcp_server",
        "eval_gate.staleness.mcp_servers._list_http_tools",
        "eval_gate.sandbox.handles.open_root",
    }
)
"""They take a path or an address and open it."""


def takers() -> Iterator[tuple[str, Callable, list[str]]]:
    """Name, function, and the annotation of every argument that it needs."""
    for room in ROOMS:
        package = importlib.import_module(f"eval_gate.{room}")
        for info in pkgutil.walk_packages(package.__path__, f"eval_gate.{room}."):
            if info.ispkg or info.name == "eval_gate.text.javascript.regex_worker":
                continue  # the program of a process of its own
            module = importlib.import_module(info.name)
            for name, function in vars(module).items():
                place = f"{info.name}.{name}"
                if not inspect.isfunction(function) or function.__module__ != info.name or place in TOUCH_THE_WORLD:
                    continue
                needed = [
                    str(one.annotation)
                    for one in inspect.signature(function).parameters.values()
                    if one.default is one.empty
                ]
                if needed and TEXT.issuperset(needed) and not inspect.iscoroutinefunction(function):
                    yield place, function, needed
