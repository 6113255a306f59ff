"""`eval-gate init` in repositories that have an agent already: what it finds, and how it is asked and started."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from eval_gate.cli.starter.agent_detection import find_agent
from tests.integration.test_integration_init import WORKFLOW, config, gate_step, git, init, printed_commands, workflow
from tests.integration.test_integration_run import gate
from tests.support.agents import agent
from tests.support.bounds import within_cpu
from tests.unit.examples.test_examples_workflows import LINTERS, lint

FASTAPI = 'from fastapi import FastAPI\n\napp = FastAPI()\n\n\n@app.post("/ask")\ndef ask(q: dict) -> dict:\n    ...\n'
LANGSERVE = (
    "from fastapi import FastAPI\nfrom langserve import add_routes\n\napp = FastAPI()\n"
    'add_routes(\n    app,\n    chain.with_types(input_type=str),\n    path="/desk",\n)\n'
)
AG_UI = (
    "from pydantic_ai import Agent\nfrom pydantic_ai.ui.ag_ui import AGUIAdapter\n"
    'app = Starlette(routes=[Route("/agent", ask, methods=["POST"])])\n'
)
A2A = "from a2a.server.routes import create_jsonrpc_routes\nroutes = create_jsonrpc_routes(handler, '/rpc')\n"
KINDS: Mapping[str, tuple[dict[str, str], str, str | None, str]] = {
    "fastapi": (
        {"requirements.txt": "fastapi[standard]>=0.100\n", "app/main.py": FASTAPI},
        "http://localhost:8000/ask",
        None,
        "uvicorn app.main:app --host 0.0.0.0 --port 8000",
    ),
    "langserve": (
        {"pyproject.toml": '[project]\nname = "x"\ndependencies = ["fastapi", "langserve>=0.3"]\n', "s.py": LANGSERVE},
        "http://localhost:8000/desk/invoke",
        "langserve",
        "uvicorn s:app --host 0.0.0.0 --port 8000",
    ),
    "langgraph": (
        {"requirements.txt": "langgraph\n", "langgraph.json": '{"graphs": {"agent": "./g.py:graph"}}', "g.py": ""},
        "http://localhost:2024/runs/wait",
        "langgraph",
        "langgraph dev --host 0.0.0.0 --port 2024 --no-browser --no-reload",
    ),
    "ag-ui": (
        {"pyproject.toml": '[project]\nname = "x"\ndependencies = ["pydantic_ai_slim[ag-ui]"]\n', "server.py": AG_UI},
        "http://localhost:8000/agent",
        "ag-ui",
        "uvicorn server:app --host 0.0.0.0 --port 8000",
    ),
    "a2a": (
        {"requirements.txt": "a2a-sdk==1.3.0\nuvicorn\n", "serve.py": A2A + "uvicorn.run(app, port=9100)\n"},
        "http://localhost:9100/rpc",
        "a2a",
        "python serve.py",
    ),
}


def put(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def started(folder: Path) -> str:
    return next(
        step["run"] for step in workflow(folder)["jobs"]["evals"]["steps"] if step.get("name") == "Start the agent"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_init__agent_of_a_framework__is_found_asked_and_started(tmp_path, kind) -> None:
    files, url, preset, start = KINDS[kind]
    git(tmp_path, "init", "--initial-branch", "main")
    put(tmp_path, files)
    done = init(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    written = config(tmp_path)
    assert (written["agentEndpoint"], written.get("agentProtocol"), written["strict"]) == (url, preset, True)
    assert gate_step(tmp_path)["with"] == {"agent-endpoint": url.replace("localhost", "host.docker.internal")}
    assert f"{start} > " in started(tmp_path)
    assert "found       " in done.stdout
    for linter in LINTERS:
        assert lint(linter, tmp_path / WORKFLOW).returncode == 0, linter
    assert gate(tmp_path, "validate").returncode == 0


def test_init__agent_is_found__the_list_names_line_and_command(tmp_path, golden) -> None:
    put(tmp_path, KINDS["langserve"][0])
    git(tmp_path, "init", "--initial-branch", "main")
    done = init(tmp_path)
    golden("init/found.txt", done.stdout)
    for file, line in re.findall(r"([\w./-]+\.\w+), line (\d+)", done.stdout):
        assert (tmp_path / file).read_text().splitlines()[int(line) - 1].strip()
    at = next(int(line) for file, line in re.findall(r"(\S+), line (\d+)", done.stdout) if file == WORKFLOW)
    assert "uvicorn s:app" in (tmp_path / WORKFLOW).read_text().splitlines()[at - 1]


def test_init__no_agent_is_found__the_list_names_the_line_that_has_to_start_it(tmp_path) -> None:
    done = init(tmp_path)
    at = next(int(line) for file, line in re.findall(r"(\S+), line (\d+)", done.stdout) if file == WORKFLOW)
    assert "python3 agent.py" in (tmp_path / WORKFLOW).read_text().splitlines()[at - 1]


def test_init__source_that_is_written_to_be_slow__is_looked_at_all_the_same(tmp_path) -> None:
    put(
        tmp_path,
        {
            "requirements.txt": "langserve\n",
            "a.py": "from langserve import add_routes\n" + "add_routes(" * 15_000 + "app = Route('/" * 5_000,
        },
    )
    with within_cpu(5, "init"):
        assert find_agent(tmp_path) is not None


def test_init__preset_is_said__stands_in_the_configuration_with_its_usual_address(tmp_path) -> None:
    assert init(tmp_path, "--agent-protocol", "langgraph").returncode == 0
    written = config(tmp_path)
    assert (written["agentProtocol"], written["agentEndpoint"]) == ("langgraph", "http://localhost:2024/runs/wait")


def test_init__preset_and_endpoint_are_said__win_over_what_is_found(tmp_path) -> None:
    put(tmp_path, KINDS["langgraph"][0])
    done = init(tmp_path, "--agent-endpoint", "https://staging.example/ask", "--agent-protocol", "ag-ui")
    assert done.returncode == 0
    written = config(tmp_path)
    assert (written["agentProtocol"], written["agentEndpoint"]) == ("ag-ui", "https://staging.example/ask")


def test_init__endpoint_alone_is_said__nothing_that_is_found_changes_how_it_is_asked(tmp_path) -> None:
    put(tmp_path, KINDS["langgraph"][0])
    with agent() as running:
        assert init(tmp_path, "--agent-endpoint", running.url).returncode == 0
        assert "agentProtocol" not in config(tmp_path)
        assert gate(tmp_path, "run").returncode == 0


@pytest.mark.parametrize("command", ["init", "run"])
def test_preset__misspelt__names_the_option_and_what_was_meant(tmp_path, command) -> None:
    init(tmp_path)
    done = gate(tmp_path, command, "--agent-endpoint", "http://127.0.0.1:9/x", "--agent-protocol", "langraph")
    assert done.returncode == 2
    assert "--agent-protocol" in done.stderr
    assert 'did you mean "langgraph"?' in done.stderr


TOOL = 'export const t = { name: "get_weather", description: "The weather.", version: "1.0.0" };\n'


def test_init__registry_and_snapshot__are_found_and_stand_in_the_configuration(tmp_path) -> None:
    registry = {"tools": [{"name": "get_weather", "description": "The weather of a city."}]}
    put(tmp_path, {"tools.json": json.dumps(registry), "snapshot.json": '{"cities": 2}'})
    done = init(tmp_path)
    assert done.returncode == 0, done.stderr
    written = config(tmp_path)
    assert (written["toolRegistryPath"], written["snapshotPath"]) == ("tools.json", "snapshot.json")
    assert gate(tmp_path, "validate").returncode == 0


def test_init__folder_of_tools_in_typescript__is_the_registry(tmp_path) -> None:
    put(tmp_path, {"src/tools/get-weather.tool.ts": TOOL, "tools/readme.md": ""})
    init(tmp_path)
    assert config(tmp_path)["toolRegistryPath"] == "src/tools"


def test_init__files_called_like_a_registry_that_hold_none__are_left_out(tmp_path) -> None:
    put(tmp_path, {"tools.json": '{"compilerOptions": 1}', "snapshot.json": "[1, 2"})
    assert init(tmp_path).returncode == 0
    assert not {"toolRegistryPath", "snapshotPath"} & set(config(tmp_path))


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "fastapi\n"},
        {"main.py": FASTAPI},
        {"requirements.txt": "", "langgraph.json": "[1"},
        {"pyproject.toml": "", "langgraph.json": '{"graphs": 1}'},
        {"requirements.txt": "", "tests/main.py": FASTAPI},
        {"requirements.txt": "", ".venv/main.py": FASTAPI},
        {"requirements.txt": "", "env/pyvenv.cfg": "", "env/main.py": FASTAPI},
        {"requirements.txt": "", "bot/pyproject.toml": "", "bot/main.py": FASTAPI},
        {"package.json": '{"dependencies": {"express": "5"}}', "package-lock.json": "{}"},
    ],
    ids=str,
)
def test_init__nothing_tells_of_an_agent_of_these_frameworks__writes_the_usual_address(tmp_path, files) -> None:
    put(tmp_path, files)
    done = init(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert config(tmp_path)["agentEndpoint"] == "http://localhost:8080/chat"
    assert "found  " not in done.stdout


@pytest.mark.parametrize("name", ["my app", "it's", "$(id)", "${{ x }}", "-x", "a\x1b[2Jb"])
def test_init__agent_in_a_folder_with_an_odd_name__is_not_started_by_guess_or_is_quoted(tmp_path, name) -> None:
    put(tmp_path, {"requirements.txt": "fastapi\n", f"{name}/main.py": FASTAPI})
    done = init(tmp_path)
    assert (done.returncode, "\x1b" in done.stdout) == (0, False)
    assert "${{ x" not in (tmp_path / WORKFLOW).read_text()
    assert yaml.safe_load((tmp_path / WORKFLOW).read_text())
    assert lint("actionlint", tmp_path / WORKFLOW).returncode == 0


def test_init__configuration_that_is_there_does_not_say_the_preset__the_workflow_and_the_list_do(tmp_path) -> None:
    put(tmp_path, KINDS["langgraph"][0] | {"eval-gate.yaml": "evals: [evals]\n"})
    done = init(tmp_path)
    assert "eval-gate run --agent-endpoint http://localhost:2024/runs/wait --agent-protocol langgraph" in done.stdout
    assert gate_step(tmp_path)["with"]["agent-protocol"] == "langgraph"
    for linter in LINTERS:
        assert lint(linter, tmp_path / WORKFLOW).returncode == 0, linter


def test_init__agent_elsewhere_with_a_preset__the_configuration_says_it_and_the_workflow_needs_not(tmp_path) -> None:
    init(tmp_path, "--agent-endpoint", "https://staging.example/x", "--agent-protocol", "ag-ui")
    assert gate_step(tmp_path)["with"] == {"agent-endpoint": "https://staging.example/x"}
    (tmp_path / WORKFLOW).unlink()
    (tmp_path / "eval-gate.yaml").write_text("evals: [evals]\n")
    init(tmp_path, "--agent-endpoint", "https://staging.example/x", "--agent-protocol", "ag-ui")
    assert gate_step(tmp_path)["with"] == {"agent-endpoint": "https://staging.example/x", "agent-protocol": "ag-ui"}


def test_init__registry_that_would_be_started__is_neither_started_nor_asked(tmp_path) -> None:
    servers = {"mcpServers": {"desk": {"command": "touch", "args": ["started"]}}}
    put(tmp_path, {"tools.json": json.dumps(servers)})
    assert init(tmp_path).returncode == 0
    assert not (tmp_path / "started").exists()
    assert "toolRegistryPath" not in config(tmp_path)


KEYED = """\
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel


class Question(BaseModel):
    question: str


class Found(BaseModel):
    answer: str


class Reply(BaseModel):
    data: Found


def check_key(x_api_key: str = Header()) -> None:
    if x_api_key != "only-in-ci":
        raise HTTPException(401)


app = FastAPI()


@app.post("/ask")
def ask(body: Question, _: Annotated[None, Depends(check_key)]) -> Reply: ...
"""
KEYED_URL = "http://localhost:8000/ask"
KEYED_FILES = {"requirements.txt": "fastapi\n", "main.py": KEYED}


def test_init__route_with_other_fields_and_a_key__leaves_a_list_that_reaches_it(tmp_path, golden) -> None:
    async def respond(exchange) -> None:
        exchange.answer({"data": {"answer": f"You asked: {exchange.json['question']}"}, "toolCalls": []})

    git(tmp_path, "init", "--initial-branch", "main")
    with agent(respond) as running:
        port = urlsplit(running.url).port
        put(tmp_path, KEYED_FILES | {"main.py": KEYED + f"\nuvicorn.run(app, port={port})\n"})
        done = init(tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        golden("init/described.txt", done.stdout.replace(str(port), "PORT"))
        golden("init/described-targets.txt", (tmp_path / "targets.yaml").read_text().replace(str(port), "PORT"))
        assert config(tmp_path)["agentEndpoint"] == f"http://localhost:{port}/ask"
        for program, command, *arguments in printed_commands(done):
            if program == "eval-gate":
                called = gate(tmp_path, command, *arguments)
                assert called.returncode == 0, called.stdout + called.stderr
        checked = gate(tmp_path, "validate", "--strict")
        assert (checked.returncode, "warning:" in checked.stderr) == (0, False), checked.stderr
        assert "hint: targets.yaml is not used: `agentEndpoint` names the target. Remove" in checked.stderr
    assert {(one.header("x-api-key"), *one.json) for one in running.requests} == {("only-in-ci", "question")}


@pytest.mark.parametrize(
    ("files", "arguments"),
    [
        (KINDS["fastapi"][0], ()),
        ({**KEYED_FILES, "main.py": KEYED.replace('"/ask"', "ROUTE")}, ()),
        (KEYED_FILES, ("--agent-endpoint", "http://localhost:8000/other")),
        (KEYED_FILES, ("--agent-endpoint", "https://agent.example/ask")),
        (KEYED_FILES, ("--model", "openai:gpt-4o")),
        (KEYED_FILES | {"targets.yml": "targets: [{name: a, provider: mock}]\n"}, ("--agent-endpoint", KEYED_URL)),
        ({**KEYED_FILES, "eval-gate.yaml": "evals: [evals]\n"}, ()),
    ],
    ids=["no-model", "no-route", "other-route", "elsewhere", "model", "list", "configuration"],
)
def test_init__nothing_to_describe_or_another_list__leaves_no_list(tmp_path, files, arguments) -> None:
    put(tmp_path, files)
    assert init(tmp_path, *arguments).returncode == 0
    assert not (tmp_path / "targets.yaml").exists()


def test_init__list_of_that_name_exists__is_kept(tmp_path) -> None:
    put(tmp_path, KEYED_FILES)
    init(tmp_path)
    (tmp_path / "targets.yaml").write_text("targets: [{name: mine, provider: mock}]\n")
    done = init(tmp_path)
    assert "kept        targets.yaml: exists already" in done.stdout
    assert "--targets" not in done.stdout
    assert "mine" in (tmp_path / "targets.yaml").read_text()


KEY = "x_api_key: str = Header()"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("question: str", "first: str\n    second: str", {"requestTemplate": None}),
        ("question: str", "question: str\n    user: int", {"requestTemplate": {"question": "{{message}}"}}),
        ("question: str", "null: str", {"requestTemplate": {"null": "{{message}}"}}),
        (" -> Reply", "", {"responsePath": None}),
        ("answer: str", "true: str", {"responsePath": "data.true"}),
        (KEY, "login=Depends(HTTPBearer())", {"headers": {"Authorization": "Bearer only-in-ci"}}),
        (KEY, "on: str = Header(alias='null')", {"headers": {"null": "only-in-ci"}}),
    ],
)
def test_init__source_that_says_only_a_part__list_is_valid_and_has_this_part(tmp_path, old, new, expected) -> None:
    put(tmp_path, KEYED_FILES | {"main.py": KEYED.replace(old, new)})
    assert init(tmp_path).returncode == 0
    checked = gate(tmp_path, "validate", "--strict", "--targets", "targets.yaml", "--target", "agent")
    assert checked.returncode == 0, checked.stderr
    text = (tmp_path / "targets.yaml").read_text()
    (written,) = yaml.safe_load(text)["targets"]
    assert {key: written.get(key) for key in expected} == expected
    assert ("TODO" in text) == (None in expected.values() or "user" in new)
