"""The agent that a repository holds: which framework it is written with, how it speaks, and how it is started.

Told by the dependencies that its manifests name and by a look at its sources. Nothing is run and nothing imported: what
cannot be told is left to the person, who is told where to say it.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.config.preset import PresetName
from eval_gate.formats.discovery import SKIPPED_FOLDERS
from eval_gate.struct import FrozenStruct, replace

MEMBERS: Final = ("packages", "apps", "services", "agents")
"""Folders of a monorepo whose own folders are looked into."""
MAX_MEMBERS: Final = 200
MAX_SOURCES: Final = 300
MAX_FOLDERS: Final = 2_000
MAX_BYTES: Final = 200_000
_PLAIN_PATH: Final = re.compile(r"(?!-)[\w@.-]+(/[\w@.-]+)*", re.ASCII)
"""What needs no quoting in a shell, and is no expression of a workflow."""
_PLAIN_ROUTE: Final = re.compile(r"/[\w./~-]*", re.ASCII)
_NOT_AGENTS: Final = SKIPPED_FOLDERS | {"test", "tests", "evals", "dist", "build", "docs", "examples", "venv"}
_REQUIREMENTS: Final = "requirements.txt"
_PYPROJECT: Final = "pyproject.toml"
_PACKAGE: Final = "package.json"
_LANGGRAPH: Final = "langgraph.json"


class FoundAgent(FrozenStruct):
    """An agent in `folder` ("" is the repository itself), that `manifest` (relative to the repository) told of.

    `start` are the lines of a shell that install and start it, the last one without redirection; None where nothing
    told how. `others` are manifests of more agents.
    """

    folder: str
    manifest: str
    framework: str
    preset: PresetName | None
    url: str
    install: tuple[str, ...]
    start: str | None
    others: tuple[str, ...] = ()


class _Framework(FrozenStruct):
    """How agents of one framework are known, and what is true of them unless their sources say otherwise.

    `sign` is a pattern for the source that serves them, `route` one whose group is the path they are asked at.
    """

    title: str
    packages: frozenset[str]
    sign: str
    route: str
    preset: PresetName | None
    port: int
    path: str
    below: str = ""
    """What is asked below the route."""


_ROUTE: Final = r"""(?s)Route\(\s*["'](/[^"']*)["']"""
_POSTED: Final = r"""\.post\(\s*["'`](/[^"'`{:]*)["'`]"""
_PYTHON: Final = (
    _Framework(
        "LangServe",
        frozenset({"langserve"}),
        r"\badd_routes\(",
        r"""(?s)add_routes\((?:(?!add_routes).){0,1000}?path\s*=\s*["'](/[^"']*)["']""",
        PresetName.LANGSERVE,
        8000,
        "",
        "/invoke",
    ),
    _Framework(
        "the A2A SDK",
        frozenset({"a2a-sdk"}),
        r"\bfrom a2a\.server",
        r"""(?s)create_jsonrpc_routes\([^,()]+,\s*(?:rpc_url\s*=\s*)?["'](/[^"']*)["']""",
        PresetName.A2A,
        8000,
        "/",
    ),
    _Framework(
        "pydantic-ai (AG-UI)",
        frozenset({"pydantic-ai", "pydantic-ai-slim", "ag-ui-protocol"}),
        r"\bag_ui\b|\bto_ag_ui\b",
        _ROUTE,
        PresetName.AG_UI,
        8000,
        "/",
    ),
    _Framework(
        "pydantic-ai (Vercel AI's stream)",
        frozenset({"pydantic-ai", "pydantic-ai-slim"}),
        r"\bvercel_ai\b",
        _ROUTE,
        PresetName.VERCEL_AI,
        8000,
        "/",
    ),
    _Framework("FastAPI", frozenset({"fastapi"}), r"\bFastAPI\(", _POSTED, None, 8000, "/chat"),
    _Framework(
        "Flask", frozenset({"flask"}), r"\bFlask\(", r"""\.(?:post|route)\(\s*["'](/[^"'<]*)""", None, 5000, "/chat"
    ),
)
_NODE: Final = (
    _Framework(
        "the Vercel AI SDK",
        frozenset({"ai"}),
        r"""from ["']ai["']|require\(["']ai["']\)""",
        _POSTED,
        PresetName.VERCEL_AI,
        3000,
        "/api/chat",
    ),
    _Framework("A2A's SDK", frozenset({"@a2a-js/sdk"}), r"@a2a-js/sdk", _POSTED, PresetName.A2A, 3000, "/"),
    _Framework("AG-UI", frozenset({"@ag-ui/core", "@ag-ui/encoder"}), r"@ag-ui/", _POSTED, PresetName.AG_UI, 3000, "/"),
    *(
        _Framework(title, frozenset({name}), rf"""["']{name}["']""", _POSTED, None, 3000, "/chat")
        for title, name in (("Express", "express"), ("Fastify", "fastify"), ("Hono", "hono"))
    ),
)
USUAL: Final = {
    PresetName.LANGGRAPH: "http://localhost:2024/runs/wait",
    PresetName.LANGSERVE: "http://localhost:8000/invoke",
    PresetName.A2A: "http://localhost:8000/",
    PresetName.A2A_0_3: "http://localhost:8000/",
    PresetName.AG_UI: "http://localhost:8000/",
    PresetName.VERCEL_AI: "http://localhost:3000/api/chat",
    PresetName.OPENAI_CHAT: "http://localhost:8000/v1/chat/completions",
    PresetName.OPENAI_RESPONSES: "http://localhost:8000/v1/responses",
    PresetName.OLLAMA: "http://localhost:11434/api/chat",
}
"""Where agents that speak so listen unless somebody says otherwise."""


def find_agent(folder: Path) -> FoundAgent | None:
    """The first agent of the repository: that of its root, else of `packages/*` and the like in the order of names."""
    agents = [agent for member in _members(folder) for agent in _agents_of(folder, member)]
    if not agents:
        return None
    first, *rest = agents
    others = tuple(dict.fromkeys(one.manifest for one in rest if one.folder != first.folder))
    return replace(first, others=others)


def _members(folder: Path) -> Iterator[str]:
    """The folders that may hold an agent, relative to the repository; "" first."""
    yield ""
    said = _workspaces(folder)
    yield from (one for one in said if _PLAIN_PATH.fullmatch(one) and (folder / one).is_dir())
    for above in dict.fromkeys((*MEMBERS, *(one.removesuffix("/*") for one in said if one.endswith("/*")))):
        if not _PLAIN_PATH.fullmatch(above):
            continue
        try:
            names = sorted(entry.name for entry in islice(os.scandir(folder / above), MAX_MEMBERS) if entry.is_dir())
        except OSError:
            continue
        yield from (f"{above}/{name}" for name in names if _PLAIN_PATH.fullmatch(name))


def _workspaces(folder: Path) -> list[str]:
    """The members that a root manifest of npm or uv names: folders, or `folder/*` for all in it."""
    npm = _json(folder / _PACKAGE).get("workspaces")
    npm = npm.get("packages") if isinstance(npm, dict) else npm
    uv = _table(_toml(folder / _PYPROJECT), "tool", "uv", "workspace").get("members")
    named = [one for group in (npm, uv) if isinstance(group, list) for one in group if isinstance(one, str)]
    return [one.removeprefix("./").removesuffix("/") for one in named if ".." not in one.split("/")][:MAX_MEMBERS]


def _agents_of(repository: Path, member: str) -> Iterator[FoundAgent]:
    """At most one agent in Python and one for Node."""
    folder = repository / member
    langgraph = _langgraph(folder, member)
    if langgraph is not None:
        yield langgraph
        return
    for manifests, known, suffixes in (
        ((_PYPROJECT, _REQUIREMENTS), _PYTHON, (".py",)),
        ((_PACKAGE,), _NODE, (".ts", ".tsx", ".js", ".mjs", ".cjs")),
    ):
        named = {name: _dependencies(folder / name) for name in manifests}
        possible = [row for row in known if any(row.packages & packages for packages in named.values())]
        if not possible:
            continue
        sources = dict(islice(_sources(folder, suffixes), MAX_SOURCES))
        row, source = _served(possible, sources)
        manifest = next(name for name, packages in named.items() if row.packages & packages)
        text = sources.get(source, "")
        port, path = _port(text) or row.port, _path(row, source, text)
        start = _start_python(source, text, port) if known is _PYTHON else _start_node(folder)
        yield FoundAgent(
            member,
            PurePosixPath(member, manifest).as_posix(),
            row.title,
            row.preset,
            f"http://localhost:{port}{path}",
            _install(folder),
            start,
        )


def _langgraph(folder: Path, member: str) -> FoundAgent | None:
    """A graph that LangGraph's own server serves: it is known by its configuration."""
    if not isinstance(_json(folder / _LANGGRAPH).get("graphs"), dict):
        return None
    node = (
        not (folder / _PYPROJECT).is_file() and not (folder / _REQUIREMENTS).is_file() and (folder / _PACKAGE).is_file()
    )
    program = "npx @langchain/langgraph-cli" if node else "langgraph"
    install = _install(folder) if node else (*_install(folder), 'pip install --quiet "langgraph-cli[inmem]"')
    return FoundAgent(
        member,
        PurePosixPath(member, _LANGGRAPH).as_posix(),
        "LangGraph's server",
        PresetName.LANGGRAPH,
        USUAL[PresetName.LANGGRAPH],
        install,
        f"{program} dev --host 0.0.0.0 --port 2024 --no-browser{'' if node else ' --no-reload'}",
    )


def _served(possible: list[_Framework], sources: dict[str, str]) -> tuple[_Framework, str]:
    """The framework whose sign a source has, with that source's name; the first possible one and "" where none has.

    Of several sources with the sign, the one that starts a server.
    """
    for row in possible:
        signed = [name for name, text in sources.items() if re.search(row.sign, text)]
        if signed:
            return row, min(signed, key=lambda name: (not _SERVES.search(sources[name]), name.count("/"), name))
    return possible[0], ""


_SERVES: Final = re.compile(r"uvicorn\.run\(|\bapp\s*=|\.listen\(|\bserve\(")


def _path(row: _Framework, source: str, text: str) -> str:
    found = re.search(row.route, text)
    if found is not None and _PLAIN_ROUTE.fullmatch(found[1]):
        return found[1].rstrip("/") + row.below or "/"
    routed = re.fullmatch(r"(?:src/)?app((?:/[\w-]+)+)/route\.[jt]sx?", source)  # Next.js
    return routed[1] if routed else row.path + row.below


def _port(text: str) -> int | None:
    found = re.search(r"(?:\bport\s*[=:]\s*|\.listen\(\s*|\bPORT\b\W{0,4}(?:\|\||\?\?)\s*)(\d{2,5})\b", text)
    return int(found[1]) if found and int(found[1]) < 65_536 else None


def _start_python(source: str, text: str, port: int) -> str | None:
    if not _PLAIN_PATH.fullmatch(source):
        return None
    if re.search(r"uvicorn\.run\(|\bapp\.run\(", text):
        return f"python {source}"
    app = re.search(r"(?m)^(\w+)\s*(?::[^=\n]+)?=\s*(?:FastAPI|Starlette)\(", text) or re.search(
        r"(?m)^(app)\s*=", text
    )
    if app is None:
        return None
    module = source.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    base = "--app-dir src " if module.startswith("src.") else ""
    return f"uvicorn {base}{module.removeprefix('src.')}:{app[1]} --host 0.0.0.0 --port {port}"


def _start_node(folder: Path) -> str | None:
    scripts = _json(folder / _PACKAGE).get("scripts")
    names = scripts if isinstance(scripts, dict) else {}
    return "npm start" if "start" in names else "npm run dev" if "dev" in names else None


def _install(folder: Path) -> tuple[str, ...]:
    """What installs the agent: Python's packages into an environment of their own."""
    if (folder / _REQUIREMENTS).is_file():
        wanted = f"--requirement {_REQUIREMENTS}"
    elif (folder / _PYPROJECT).is_file():
        wanted = "."
    elif (folder / _PACKAGE).is_file():
        return ("npm ci" if (folder / "package-lock.json").is_file() else "npm install",)
    else:
        return ()
    environment = '"$RUNNER_TEMP/agent"'
    return (
        f"python3 -m venv {environment} && . {environment}/bin/activate",
        f"pip install --quiet {wanted}",
    )


def _dependencies(file: Path) -> frozenset[str]:
    """The packages that a manifest names, in their normal spelling; none of one that is not there or is broken."""
    if file.name == _REQUIREMENTS:
        return _names(_text(file).splitlines())
    if file.name == _PACKAGE:
        document = _json(file)
        groups = [document.get(key) for key in ("dependencies", "devDependencies")]
        return frozenset(name for group in groups if isinstance(group, dict) for name in group)
    read = _toml(file)
    project, poetry = _table(read, "project"), _table(read, "tool", "poetry")
    lists = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    lists += _table(read, "dependency-groups").values()
    written = [line for group in lists if isinstance(group, list) for line in group if isinstance(line, str)]
    return _names([*written, *_table(poetry, "dependencies")])


def _toml(file: Path) -> dict[str, object]:
    try:
        return tomllib.loads(_text(file))
    except (ValueError, RecursionError):
        return {}


def _names(lines: Iterable[str]) -> frozenset[str]:
    found = (re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", line) for line in lines)
    return frozenset(re.sub(r"[-_.]+", "-", name[1]).lower() for name in found if name)


def _table(document: dict[str, object], *keys: str) -> dict[str, object]:
    for key in keys:
        below = document.get(key)
        document = below if isinstance(below, dict) else {}
    return document


def _json(file: Path) -> dict[str, object]:
    try:
        read = json.loads(_text(file) or "{}")
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _sources(folder: Path, suffixes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Files of a program below the folder with their texts, by their paths relative to it."""
    for where, folders, names in islice(os.walk(folder), MAX_FOLDERS):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        if Path(where) != folder and {_PYPROJECT, _REQUIREMENTS, _PACKAGE} & set(names):
            folders.clear()  # a member with an agent of its own
            continue
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_AGENTS)
        for name in sorted(names):
            if name.endswith(suffixes):
                yield Path(where, name).relative_to(folder).as_posix(), _text(Path(where, name))


def _text(file: Path) -> str:
    """The text of a plain file, as far as it is looked at; "" for one that is none or cannot be read."""
    try:
        if file.is_symlink() or not file.is_file():
            return ""
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
