"""`eval-gate init` with an agent: what it asks, what it finds, what it decides, and what it leaves to a person."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.integration.test_integration_draft_review import on_terminal
from tests.integration.test_integration_init import WORKFLOW, config, files_in, git, init, workflow
from tests.integration.test_integration_run import gate
from tests.support.agents import agent, unused_port
from tests.support.described import KEY, ROUTED, answer_as_desk, answer_as_model, describes, list_models
from tests.unit.examples.test_examples_workflows import LINTERS, lint

HOST_STEP = "eval-gate/eval-gate/host@"
WEATHER = ("--probe", "How is the weather?")


def put(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def target(folder: Path) -> dict:
    (found,) = yaml.safe_load((folder / "targets.yaml").read_text())["targets"]
    return found


def origin(url: str) -> str:
    return f"http://{urlsplit(url).netloc}"


def listed_commands(said: str) -> list[list[str]]:
    """The commands that decide what is not decided, above the next steps."""
    lines = said.partition("\nNext steps:")[0].splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("     eval-gate")]


def keyed(folder: Path, *arguments: str):
    return gate(folder, "init", *arguments, AGENT_KEY=KEY)


def test_init__route_behind_a_prefix_with_a_key__is_described_and_used_by_the_configuration(tmp_path, golden) -> None:
    git(tmp_path, "init", "--initial-branch", "main")
    with agent(describes({"/openapi.json": ROUTED}, answer_as_desk)) as running:
        port, place = str(running.port), origin(running.url)
        done = keyed(
            tmp_path, "--agent-endpoint", f"{place}/v2/desk/ask", *WEATHER, "--start-command", "serve --port 1"
        )
        assert (done.returncode, done.stderr) == (0, "")
        golden("init/described.txt", done.stdout.replace(port, "PORT"))
        lines = (tmp_path / "targets.yaml").read_text().replace(port, "PORT").splitlines()[:-1]  # without the digest
        golden("init/described-targets.txt", "\n".join(lines) + "\n")
        assert (config(tmp_path)["targets"], config(tmp_path)["target"]) == ("targets.yaml", "agent")
        assert "agentEndpoint" not in config(tmp_path)
        asked = [(one.head.split(" ")[0], one.head.split(" ")[1]) for one in running.requests]
        assert [one for one in asked if one[0] == "POST"] == [("POST", "/v2/desk/ask")]
        assert gate(tmp_path, "validate", "--strict", AGENT_KEY=KEY).stdout.splitlines()[-1].endswith("0 warnings")
        assert gate(tmp_path, "run", AGENT_KEY=KEY).returncode == 0
    (step,) = [one for one in workflow(tmp_path)["jobs"]["evals"]["steps"] if one.get("uses", "").startswith(HOST_STEP)]
    assert step["env"] == {"AGENT_KEY": "${{ secrets.AGENT_KEY }}"}
    assert "          serve --port 1 > agent.log 2>&1 &\n" in (tmp_path / WORKFLOW).read_text()
    for linter in LINTERS:
        assert lint(linter, tmp_path / WORKFLOW).returncode == 0, linter


def test_init__several_routes_without_a_terminal__lists_a_command_for_each_and_picks_none(tmp_path, golden) -> None:
    with agent(describes({"/openapi.json": ROUTED}, answer_as_desk)) as running:
        place = origin(running.url)
        done = keyed(tmp_path, "--agent-endpoint", place, *WEATHER)
        assert done.returncode == 0, done.stderr
        golden("init/undecided.txt", done.stdout.replace(str(running.port), "PORT"))
        assert config(tmp_path)["agentEndpoint"] == place
        assert not (tmp_path / "targets.yaml").exists()
        assert {one.head.split(" ")[0] for one in running.requests} == {"GET"}
        (command,) = [one for one in listed_commands(done.stdout) if f"{place}/v2/desk/ask" in one]
        completed = gate(tmp_path, *command, AGENT_KEY=KEY)
        assert completed.returncode == 0, completed.stderr
        assert target(tmp_path)["responsePath"] == "data.answer"
        assert gate(tmp_path, "run", AGENT_KEY=KEY).returncode == 0


def test_init__several_routes_on_a_terminal__asks_and_takes_what_is_confirmed(tmp_path) -> None:
    with agent(describes({"/openapi.json": ROUTED}, answer_as_desk)) as running:
        place = origin(running.url)
        # the request and the question; a greeting calls no tool
        shown = on_terminal(tmp_path, "3\nHello\ny\n", "init", "--agent-endpoint", place, AGENT_KEY=KEY)
        assert "With `warmUp: 10` the first run on main makes 9 further rounds of 1 case (9 executions" in shown
        assert "\nwarmUp: 10\n" in (tmp_path / "eval-gate.yaml").read_text()
        assert f"Question to send once to POST {place}/v2/desk/ask, best one that makes your agent call a tool" in shown
        assert target(tmp_path)["responsePath"] == "data.answer"
        (sent,) = [one.json for one in running.requests if one.head.startswith("POST")]
        assert sent == {"question": "Hello"}


def test_init__no_probe_without_a_terminal__sends_no_prompt_and_takes_the_described_form(tmp_path) -> None:
    with agent(describes({"/openapi.json": ROUTED}, answer_as_desk)) as running:
        done = init(tmp_path, "--agent-endpoint", f"{origin(running.url)}/v2/desk/ask")
        assert done.returncode == 0, done.stderr
        assert {one.head.split(" ")[0] for one in running.requests} == {"GET"}
    assert target(tmp_path)["responsePath"] == "data.answer"
    assert target(tmp_path)["toolCallsPath"] == "data.trace"
    assert "not done    sent no question to POST" in done.stdout
    assert listed_commands(done.stdout)[0][-3:] == ["--probe", "QUESTION", "--yes"]


def test_init__key_is_not_set_or_wrong__says_which_variable_and_writes_nothing(tmp_path) -> None:
    with agent(describes({"/openapi.json": ROUTED}, answer_as_desk)) as running:
        words = ("--agent-endpoint", f"{origin(running.url)}/v2/desk/ask", *WEATHER)
        done = init(tmp_path, *words)
        assert (done.returncode, "the variable AGENT_KEY is not set" in done.stderr) == (2, True)
        done = gate(tmp_path, "init", *words, AGENT_KEY="another-key")
        assert done.returncode == 2
    assert "error[probe-failed]: nothing was written: agent error: HTTP 401 Unauthorized" in done.stderr
    assert "check what it gets in x-api-key (${{ AGENT_KEY }})" in done.stderr
    assert "another-key" not in done.stdout + done.stderr
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize(
    ("models", "words", "expected"),
    [(["small"], (), "small"), (["small", "large"], ("--model", "large"), "large"), (["small", "large"], (), None)],
    ids=["one", "named", "several"],
)
@pytest.mark.parametrize("below", ["", "/v1", "/v1/chat/completions"])
def test_init__server_with_the_protocol_of_openai__takes_the_only_model_or_the_named_one(
    tmp_path, models, words, expected, below
) -> None:
    with agent(describes({"/v1/models": list_models(*models)}, answer_as_model)) as running:
        done = init(tmp_path, "--agent-endpoint", origin(running.url) + below, *words, *WEATHER)
        assert done.returncode == 0, done.stderr
        if expected is None:
            command = next(one for one in listed_commands(done.stdout) if "requestFields.model=large" in one)
            assert gate(tmp_path, *command).returncode == 0
        found = target(tmp_path)
        assert found["url"].endswith("/v1/chat/completions")
        assert (found["agentProtocol"], found["requestFields"]) == ("openai-chat", {"model": expected or "large"})
        assert gate(tmp_path, "run").returncode == 0


def test_init__variable_that_the_person_names__is_a_secret_of_the_workflow(tmp_path) -> None:
    def respond(exchange) -> None:
        assert exchange.header("x-desk") == "desk-key-1"
        exchange.answer({"say": "hi"})

    with agent(describes({}, respond)) as running:
        words = ("--agent-endpoint", running.url, "--probe", "Hello", "--set", "headers.X-Desk=${{ DESK_KEY }}")
        done = gate(tmp_path, "init", *words, DESK_KEY="desk-key-1")
        assert done.returncode == 0, done.stderr
    step = next(
        one for one in workflow(tmp_path)["jobs"]["evals"]["steps"] if one.get("uses", "").startswith(HOST_STEP)
    )
    assert step["env"] == {"DESK_KEY": "${{ secrets.DESK_KEY }}"}
    assert "desk-key-1" not in "".join(file.read_text() for file in tmp_path.glob("*.yaml"))


def test_init__model_for_an_agent_that_names_none__is_an_error(tmp_path) -> None:
    with agent(describes({}, answer_as_desk)) as running:
        done = init(tmp_path, "--agent-endpoint", running.url, "--model", "small")
    assert (done.returncode, "error[conflicting-targets]" in done.stderr, files_in(tmp_path)) == (2, True, {})


CARD = {"name": "a", "capabilities": {}, "skills": []}


@pytest.mark.parametrize(
    ("path", "card", "preset"),
    [
        ("agent-card.json", {"supportedInterfaces": [{"url": "URL", "protocolBinding": "JSONRPC"}]}, "a2a"),
        ("agent.json", {"url": "URL", "protocolVersion": "0.3.0"}, "a2a-0.3"),
        ("agent-card.json", {"url": "URL"}, "a2a-0.3"),
    ],
)
def test_init__agent_card__says_path_and_protocol(tmp_path, path, card, preset) -> None:
    documents: dict = {}
    with agent(describes(documents)) as running:
        url = f"http://localhost:{running.port}/rpc"  # another name of the same address
        documents[f"/.well-known/{path}"] = json.loads(json.dumps(CARD | card).replace("URL", url))
        done = init(tmp_path, "--agent-endpoint", origin(running.url))
        assert done.returncode == 0, done.stderr
    assert config(tmp_path)["agentEndpoint"] == f"{origin(running.url)}/rpc"
    assert config(tmp_path)["agentProtocol"] == preset


def schema(**fields: object) -> dict:
    """A description of one route that takes these fields, all required."""
    body = {"type": "object", "properties": fields, "required": list(fields)}
    content = {"application/json": {"schema": body}}
    return {"openapi": "3.1.0", "paths": {"/ask": {"post": {"requestBody": {"content": content}, "responses": {}}}}}


TEXT = {"type": "string"}
MESSAGES = {
    "type": "array",
    "items": {"type": "object", "properties": {"role": {"type": "string"}, "content": {"type": "string"}}},
}


@pytest.mark.parametrize(
    ("fields", "words", "expected"),
    [
        ({"message": TEXT}, (), None),
        ({"q": TEXT, "limit": {"type": "integer", "default": 3}}, (), {"q": "{{message}}", "limit": 3}),
        (
            {"q": {"anyOf": [TEXT, {"type": "null"}]}, "kind": {"const": "desk"}},
            (),
            {"q": "{{message}}", "kind": "desk"},
        ),
        ({"messages": MESSAGES}, (), {"messages": "{{conversation}}"}),
        (
            {"q": TEXT, "user": TEXT},
            ("--set", "requestTemplate.q={{message}}", "--set", "requestTemplate.user={{session}}"),
            {"q": "{{message}}", "user": "{{session}}"},
        ),
        ({"q": TEXT, "top": {"type": "integer"}}, ("--set", "requestTemplate.top=3"), {"q": "{{message}}", "top": 3}),
    ],
    ids=["own", "default", "const", "messages", "named", "number"],
)
def test_init__fields_of_a_route__are_the_prompt_what_the_server_names_and_what_the_person_says(
    tmp_path, fields, words, expected
) -> None:
    with agent(describes({"/openapi.json": schema(**fields)})) as running:
        done = init(tmp_path, "--agent-endpoint", origin(running.url), *words)
    assert done.returncode == 0, done.stderr
    if expected is None:
        assert config(tmp_path)["agentEndpoint"] == f"{origin(running.url)}/ask"
    else:
        assert target(tmp_path)["requestTemplate"] == expected


@pytest.mark.parametrize(
    ("fields", "option"),
    [
        ({"q": TEXT, "user": TEXT}, "requestTemplate.q={{message}}"),
        ({"q": TEXT, "top": {"type": "integer"}}, "requestTemplate.top=VALUE"),
    ],
)
def test_init__field_that_nobody_decides__is_named_and_the_template_is_written(tmp_path, fields, option) -> None:
    with agent(describes({"/openapi.json": schema(**fields)})) as running:
        done = init(tmp_path, "--agent-endpoint", origin(running.url))
    assert any(option in command for command in listed_commands(done.stdout)), done.stdout
    assert not (tmp_path / "targets.yaml").exists()
    assert "Run one of the commands above." in done.stdout


def test_init__texts_of_a_response_that_nobody_decides__are_listed_with_their_values(tmp_path) -> None:
    def respond(exchange) -> None:
        calls = [{"tool": "find", "args": {}, "result": {"found": "nothing"}}]
        exchange.answer({"id": "r-17", "reply": {"text": "hi"}, "calls": calls})

    with agent(describes({}, respond)) as running:
        done = init(tmp_path, "--agent-endpoint", running.url, "--probe", "Hello")
        assert '- reply.text: "hi", tool calls in calls, tool and args: find' in done.stdout
        assert "[-1]" not in done.stdout, "what a tool call says is not the answer"
        commands = listed_commands(done.stdout)
        assert len(commands) == 4, "two texts, and two mappings that may be the arguments"
        (command,) = [one for one in commands if {"responsePath=reply.text", "argsField=args"} <= set(one)]
        done = init(tmp_path, *command[1:])
        assert done.returncode == 0, done.stderr
    assert ('response    "hi"' in done.stdout, "tool calls  find" in done.stdout) == (True, True)
    assert "toolCallsPath" in target(tmp_path)


@pytest.mark.parametrize(
    ("status", "said"),
    [("422 Unprocessable Entity", "--set requestTemplate.NAME=VALUE"), ("500 Internal Server Error", "HTTP 500")],
)
def test_init__agent_that_refuses_the_probe__is_quoted_and_nothing_is_written(tmp_path, status, said) -> None:
    def refuse(exchange) -> None:
        exchange.answer({"detail": "no"}, status=status)

    with agent(describes({}, refuse)) as running:
        done = init(tmp_path, "--agent-endpoint", running.url, "--probe", "Hello")
    assert (done.returncode, "error[probe-failed]" in done.stderr, said in done.stderr) == (2, True, True), done.stderr
    assert files_in(tmp_path) == {}


def test_init__agent_that_does_not_run__writes_the_template_and_names_the_command(tmp_path) -> None:
    url = f"http://127.0.0.1:{unused_port()}/ask"
    done = init(tmp_path, "--agent-endpoint", url, "--probe", "Hello")
    assert done.returncode == 0, done.stderr
    assert config(tmp_path)["agentEndpoint"] == url
    assert "not asked   " in done.stdout
    assert listed_commands(done.stdout) == [["init", "--agent-endpoint", url, "--probe", "Hello", "--yes"]]


def test_init__preset_and_endpoint_are_said__stand_in_the_configuration(tmp_path) -> None:
    url = f"http://127.0.0.1:{unused_port()}/ask"
    assert init(tmp_path, "--agent-endpoint", url, "--agent-protocol", "ag-ui").returncode == 0
    assert (config(tmp_path)["agentProtocol"], config(tmp_path)["agentEndpoint"]) == ("ag-ui", url)


@pytest.mark.parametrize("command", ["init", "run"])
def test_preset__misspelt__names_the_option_and_what_was_meant(tmp_path, command) -> None:
    init(tmp_path)
    done = gate(tmp_path, command, "--agent-endpoint", "http://127.0.0.1:9/x", "--agent-protocol", "langraph")
    assert done.returncode == 2
    assert "--agent-protocol" in done.stderr
    assert 'did you mean "langgraph"?' in done.stderr


def test_init__list_of_targets_that_somebody_wrote__is_kept_and_nothing_is_written(tmp_path) -> None:
    mine = "targets: [{name: agent, provider: mock, response: hi}]\n"
    (tmp_path / "targets.yaml").write_text(mine)
    done = init(tmp_path, "--agent-command", "cat {PROMPT_FILE}")
    assert (done.returncode, files_in(tmp_path)) == (2, {"targets.yaml": mine.encode()})
    assert "targets.yaml exists, and `init` did not write it" in done.stderr


def test_init__text_that_nobody_decides_beside_a_model__leaves_the_template(tmp_path) -> None:
    documents = {"/openapi.json": schema(q=TEXT, model={"type": "string", "enum": ["small", "large"]})}

    def respond(exchange) -> None:
        exchange.answer({"id": "1", "say": exchange.json["model"]})

    with agent(describes(documents, respond)) as running:
        place = origin(running.url)
        done = init(tmp_path, "--agent-endpoint", place, "--model", "small", "--probe", "Hello")
        assert done.returncode == 0, done.stderr
        assert '- say: "small"' in done.stdout
        assert config(tmp_path)["agentEndpoint"] == f"{place}/ask"


PROGRAM = """\
import json, sys
weather = "weather" in sys.argv[1]
calls = [{"name": "get_weather", "args": {"city": "Rome"}}] if weather else []
text = "It is 22 degrees in Rome." if weather else "Ask me about the weather."
print(json.dumps({"out": {"say": text}, "did": calls}))
"""


def test_init__command_with_json_of_its_own__is_described_by_one_call(tmp_path) -> None:
    (tmp_path / "desk.py").write_text(PROGRAM)
    done = init(tmp_path, "--agent-command", "python3 desk.py {PROMPT}", *WEATHER)
    assert (done.returncode, done.stderr) == (0, "")
    found = target(tmp_path)
    assert (found["responsePath"], found["toolCallsPath"], found["argsField"], found["cwd"]) == (
        *("out.say", "did", "args"),
        "..",
    )
    assert 'response    "It is 22 degrees in Rome."' in done.stdout
    assert HOST_STEP in (tmp_path / WORKFLOW).read_text()
    assert gate(tmp_path, "run").returncode == 0


@pytest.mark.parametrize(
    "output", ["hello", '{"text": "hello"}', '{"output_messages": [{"role": "assistant", "content": "hello"}]}']
)
def test_init__command_whose_output_needs_no_settings__gets_none(tmp_path, output) -> None:
    (tmp_path / "out.txt").write_text(output)
    done = init(tmp_path, "--agent-command", "cat out.txt && : {PROMPT}", "--probe", "Hello")
    assert done.returncode == 0, done.stderr
    assert 'response    "hello"' in done.stdout
    assert set(target(tmp_path)) == {"name", "provider", "command_template", "cwd"}


def test_init__python_function__stands_in_the_configuration(tmp_path) -> None:
    (tmp_path / "desk.py").write_text("def answer(request):\n    return 'hello ' + request.message\n")
    done = init(tmp_path, "--agent-function", "desk:answer")
    assert done.returncode == 0, done.stderr
    assert config(tmp_path)["agentFunction"] == "desk:answer"
    assert HOST_STEP in (tmp_path / WORKFLOW).read_text()
    assert gate(tmp_path, "run").returncode == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--probe", "Hello"), "conflicting-options"),
        (("--set", "a=1"), "conflicting-options"),
        (("--agent-endpoint", "http://127.0.0.1:9", "--set", "a"), "unknown-value"),
        (("--model", "openai:m", "--start-command", "serve"), "conflicting-options"),
        (("--agent-command", "cat {PROMPT}", "--agent-function", "a:b"), "conflicting-targets"),
    ],
)
def test_init__options_that_say_nothing_together__are_an_error(tmp_path, words, code) -> None:
    done = init(tmp_path, *words)
    assert (done.returncode, f"error[{code}]" in done.stderr, files_in(tmp_path)) == (2, True, {}), done.stderr
