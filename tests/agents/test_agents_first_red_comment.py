"""A new user's way with an agent of each of five frameworks: from an empty repository to a red comment.

`init` asks the running agent; what its numbered list says is done, command by command and file by file, and nothing
else. How many commands that were, how many files were changed by hand, and the seconds: `pytest -rP` shows them as rows
of a table.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.agents import unused_port
from tests.support.frameworks import A2A, AGENTS, FASTAPI, LANGGRAPH, LANGSERVE, PYDANTIC_AI, Server
from tests.support.newcomer import Newcomer
from tests.support.tools import install


@dataclass(frozen=True)
class Begun:
    """An agent, and the repository that it is in before anything of ours: its sources and the packages it needs.

    `start` starts it at PORT, `path` is named where it does not describe itself or describes several routes.
    """

    title: str
    server: Server
    source: str
    needs: tuple[str, ...]
    preset: str | None
    start: str
    path: str = ""
    calls: bool = True
    beside: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.title


LANGGRAPH_START = "langgraph dev --host 127.0.0.1 --port PORT --no-browser --no-reload"
BEGUN = (
    Begun(
        "FastAPI",
        FASTAPI,
        "fastapi_agent.py",
        ("fastapi", "uvicorn", "sse-starlette"),
        None,
        "uvicorn fastapi_agent:app --host 0.0.0.0 --port PORT",
        "/chat",
    ),
    Begun(
        "pydantic-ai (AG-UI)",
        PYDANTIC_AI,
        "pydantic_ai_agent.py",
        ("pydantic-ai-slim[ag-ui]", "uvicorn"),
        "ag-ui",
        "uvicorn pydantic_ai_agent:app --host 0.0.0.0 --port PORT",
        "/ag-ui",
        options=("--agent-protocol", "ag-ui"),
    ),
    Begun("LangGraph", LANGGRAPH, "graph.py", ("langgraph",), "langgraph", LANGGRAPH_START, beside=("langgraph.json",)),
    Begun(
        "LangServe",
        LANGSERVE,
        "langserve_agent.py",
        ("langserve[server]", "uvicorn"),
        "langserve",
        "uvicorn langserve_agent:app --host 0.0.0.0 --port PORT",
        "/text",
        calls=False,
    ),
    Begun(
        "a2a-sdk",
        A2A,
        "a2a_agent.py",
        ("a2a-sdk[http-server]", "uvicorn"),
        "a2a",
        "uvicorn a2a_agent:app --host 0.0.0.0 --port PORT",
        calls=False,
    ),
)


def as_documented(text: str, port: str) -> str:
    """The source as the framework's pages write it: an `app` that a server is told of, one agent at its usual path."""
    several = re.compile(r"(?ms)^for path, executor in .*?^    routes \+= (.*?)\n")
    text = several.sub(
        "handler = DefaultRequestHandler(\n"
        "    agent_executor=Messenger(), task_store=InMemoryTaskStore(), agent_card=card\n)\n"
        'routes += create_jsonrpc_routes(handler, "/")\n',
        text.replace("{sys.argv[1]}/message", f"{port}/"),
    )
    text = re.sub(r"(?m)^uvicorn\.run\((.*), port=int\(sys\.argv\[1\]\).*\)\n", r"app = \1\n", text)
    return text.replace("app = app\n", "")


def set_up(home: Path, begun: Begun, port: str) -> None:
    (home / begun.source).write_text(as_documented((AGENTS / begun.server.framework / begun.source).read_text(), port))
    for name in begun.beside:
        (home / name).write_text((AGENTS / begun.server.framework / name).read_text())
    (home / "requirements.txt").write_text("\n".join(begun.needs) + "\n")


def listed(said: str) -> list[tuple[str, list[str]]]:
    """The numbered list that `init` ends with: sentences with their commands, in order."""
    found: list[tuple[str, list[str]]] = []
    for line in said.partition("\nNext steps:\n")[2].splitlines():
        if step := re.match(r"(\d+)\. (.*)", line):
            assert int(step[1]) == len(found) + 1
            found.append((step[2], []))
        else:
            found[-1][1].append(line.strip())
    return found


def cases(begun: Begun) -> str:
    expect = {"responseContains": ["22 degrees"]} | ({"toolsCalled": ["get_weather"]} if begun.calls else {})
    asked = (("weather?", expect), ("hello", {"responseContains": ["nothing"]}))
    return json.dumps([{"id": f"gs-{at}", "input": {"message": m}, "expect": e} for at, (m, e) in enumerate(asked)])


@pytest.mark.parametrize("begun", BEGUN, ids=str)
def test_newcomer__agent_of_a_framework__gets_a_red_comment_by_doing_what_init_says(
    begun, running, tmp_path, github
) -> None:
    running(begun.server)  # skips where it is not asked for
    began, typed, changed = time.monotonic(), 0, 0
    port = str(unused_port())
    start = begun.start.replace("PORT", port)
    with Newcomer(tmp_path, github, install(begun.server)) as person:
        home = person.home
        set_up(home, begun, port)
        words = ["--agent-endpoint", f"http://127.0.0.1:{port}{begun.path}", "--probe", "weather", *begun.options]
        wait = (
            f"curl --silent --retry 60 --retry-delay 1 --retry-all-errors --output /dev/null http://127.0.0.1:{port}/"
        )
        for command in (
            "git init --quiet --initial-branch=main",
            f"{start} > /dev/null 2>&1 &\n{wait}",
            f"eval-gate init {shlex.join(words)} --start-command {shlex.quote(start)}",
        ):
            code, said = person.shell(command, home)
            assert code == 0, said
            typed += 1
        assert ("found       " in said, f"protocol {begun.preset}" in said) == (True, begun.preset is not None), said
        assert 'response    "It is 22 degrees' in said
        steps = listed(said)
        for sentence, commands in steps:
            if named := re.match(r"In (\S+), line (\d+), write a prompt of your users", sentence):
                assert '"input"' in (home / named[1]).read_text().splitlines()[int(named[2]) - 1]
                (home / named[1]).write_text(cases(begun))
                changed += 1
            for command in commands:
                code, said = person.shell(command, home)
                assert code == 0, f"{command}\n{said}"
                typed += 1
        code, said = person.shell('git add --all && git commit --quiet --message "The agent"', home)
        assert code == 0, said
        code, said = person.shell("gh repo create desk --private --source . --push", home)
        assert code == 0, said
        ended = person.main()
        assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log

        worse = (
            "git switch --create worse && sed -i 's/22 degrees/30 degrees/' *.py && git commit --all --message worse"
        )
        code, said = person.shell(f"{worse} && git push --set-upstream origin worse", home)
        assert code == 0, said
        ended, comment = person.pull_request("worse")
        assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
        assert "## ❌ Agent eval gate — 1 regression" in comment
        assert "\n+ It is 30\n" in comment, comment
    seconds = time.monotonic() - began
    print(f"| {begun.title} | {len(steps)} | {typed} | {changed} | {seconds:.0f} |")
