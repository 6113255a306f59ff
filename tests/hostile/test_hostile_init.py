"""Servers that `eval-gate init` asks and that mean it no good: each row ends in bounded time, and says what it saw."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from tests.integration.test_integration_init import init
from tests.integration.test_integration_run import gate
from tests.support.agents import Exchange, agent
from tests.support.bounds import within_cpu
from tests.support.described import answer_as_model, describes, list_models

TOKEN = "token-of-the-repository"
MEGABYTE = b" " * 1_000_000


def ask(folder: Path, port: int, *words: str):
    done = gate(folder, "init", "--agent-endpoint", f"http://127.0.0.1:{port}", *words, GITHUB_TOKEN=TOKEN)
    assert TOKEN not in done.stdout + done.stderr
    return done


def describe(fields: dict, path: str = "/ask", **more: object) -> dict:
    body = {"type": "object", "properties": fields, "required": list(fields)}
    post = {"requestBody": {"content": {"application/json": {"schema": body}}}, "responses": {}, **more}
    return {"openapi": "3.1.0", "paths": {path: {"post": post}}}


async def answer_100_megabytes(exchange: Exchange) -> None:
    exchange.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000001\r\n\r\n[")
    with suppress(ConnectionError):
        for _ in range(100):
            exchange.write(MEGABYTE)
            await exchange.writer.drain()


async def answer_without_end(exchange: Exchange) -> None:
    import asyncio

    exchange.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    with suppress(ConnectionError):
        while not exchange.writer.is_closing():
            exchange.write(b"1\r\n[\r\n")
            await exchange.writer.drain()
            await asyncio.sleep(0.2)


@pytest.mark.parametrize(
    ("handler", "said"),
    [(answer_100_megabytes, "larger than 10,000,000 bytes"), (answer_without_end, "no complete response within 5 s")],
)
def test_init__description_that_is_huge_or_never_ends__is_left_and_named(tmp_path, handler: Callable, said) -> None:
    with agent(handler) as running:
        done = ask(tmp_path, running.port)
    assert (done.returncode, said in done.stdout) == (0, True), done.stdout
    assert (tmp_path / "eval-gate.yaml").is_file()


def test_init__description_that_redirects__is_not_followed(tmp_path) -> None:
    with agent(describes({})) as other:

        async def redirect(exchange: Exchange) -> None:
            place = f"http://127.0.0.1:{other.port}/openapi.json"
            exchange.answer(b"", status="302 Found", Location=place)

        with agent(redirect) as running:
            done = ask(tmp_path, running.port)
    assert (done.returncode, other.requests) == (0, [])
    assert f"redirects to http://127.0.0.1:{other.port}/openapi.json, which is not asked" in done.stdout


def test_init__agent_card_that_names_another_host__is_named_and_not_asked(tmp_path) -> None:
    with agent(describes({})) as other:
        card = {"name": "a", "url": f"http://127.0.0.1:{other.port}/rpc"}
        with agent(describes({"/.well-known/agent-card.json": card})) as running:
            done = ask(tmp_path, running.port)
            address = yaml.safe_load((tmp_path / "eval-gate.yaml").read_text())["agentEndpoint"]
    assert (done.returncode, other.requests, address) == (0, [], f"http://127.0.0.1:{running.port}")
    assert f"the agent card names http://127.0.0.1:{other.port}/rpc, which is not asked" in done.stdout


def test_init__names_with_control_characters__are_escaped_where_they_are_shown_and_written(tmp_path) -> None:
    fields = {"q\x1b[2J\r::error::\u202e": {"type": "string"}, "two\n::warning::x": {"type": "string"}}
    with agent(describes({"/openapi.json": describe(fields), "/v1/models": list_models("m\x1b[2J")})) as running:
        done = ask(tmp_path, running.port)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert not any(line.lstrip().startswith("::") for line in done.stdout.splitlines())


def test_init__one_field_with_a_hostile_name__is_written_as_what_it_is(tmp_path) -> None:
    name = "q\n${{ GITHUB_TOKEN }}: \x1b[2J"
    with agent(describes({"/openapi.json": describe({name: {"type": "string"}})})) as running:
        done = ask(tmp_path, running.port)
    assert done.returncode == 0, done.stderr
    (found,) = yaml.safe_load((tmp_path / "targets.yaml").read_text())["targets"]
    assert found["requestTemplate"] == {name: "{{message}}"}
    assert "GITHUB_TOKEN" not in (tmp_path / ".github/workflows/eval-gate.yml").read_text()


@pytest.mark.parametrize(
    "value",
    [
        {"type": "string", "default": "${{ GITHUB_TOKEN }}"},
        {"const": "${{GITHUB_TOKEN}}"},
        {"enum": ["{{message}} ${{ GITHUB_TOKEN }}"]},
        {"type": "integer", "examples": [["${{ GITHUB_TOKEN }}"]]},
    ],
)
def test_init__value_that_names_a_variable_of_ours__is_neither_written_nor_sent(tmp_path, value) -> None:
    with agent(describes({"/openapi.json": describe({"q": {"type": "string"}, "other": value})})) as running:
        done = ask(tmp_path, running.port, "--probe", "Hello", "--set", "requestTemplate.q={{message}}")
    assert done.returncode == 0, done.stderr
    assert "not decided" in done.stdout
    assert all(TOKEN not in exchange.head + exchange.body.decode() for exchange in running.requests)
    assert "GITHUB_TOKEN" not in "".join(file.read_text() for file in tmp_path.glob("*.yaml"))


def test_init__header_and_model_that_name_a_variable_of_ours__get_none_of_it(tmp_path) -> None:
    header = {"name": "GITHUB_TOKEN", "in": "header", "required": True, "schema": {"type": "string"}}
    documents = {
        "/openapi.json": describe({}, "/v1/chat/completions", parameters=[header]),
        "/v1/models": list_models("${{ GITHUB_TOKEN }}", "small"),
    }
    with agent(describes(documents, answer_as_model)) as running:
        done = gate(
            tmp_path,
            *("init", "--agent-endpoint", f"http://127.0.0.1:{running.port}", "--probe", "Hello"),
            GITHUB_TOKEN=TOKEN,
            AGENT_KEY="key-for-this-agent",
        )
        assert done.returncode == 0, done.stderr
    assert all(TOKEN not in exchange.head + exchange.body.decode() for exchange in running.requests)
    (found,) = yaml.safe_load((tmp_path / "targets.yaml").read_text())["targets"]
    assert (found["headers"], found["requestFields"]) == ({"GITHUB_TOKEN": "${{ AGENT_KEY }}"}, {"model": "small"})


def cyclic() -> dict:
    schemas = {
        "A": {"type": "object", "properties": {str(at): {"$ref": "#/components/schemas/A"} for at in range(30)}},
        "B": {"anyOf": [{"$ref": "#/components/schemas/B"}] * 50},
        "C": {"$ref": "#/components/schemas/C"},
        "D": {"allOf": [{"$ref": "#/components/schemas/D"}] * 50},
    }
    fields = {name: {"$ref": f"#/components/schemas/{name}"} for name in schemas} | {"q": {"type": "string"}}
    answer = {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}
    return describe(fields, responses=answer) | {"components": {"schemas": schemas}}


@pytest.mark.parametrize(
    "document",
    [
        cyclic(),
        {"paths": {f"/{at}": cyclic()["paths"]["/ask"] for at in range(2_000)}, "components": cyclic()["components"]},
        describe({f"f{at}": {"type": "string"} for at in range(10_000)}),
        describe({"q": {"type": "string"}}, "/" + "{a}" * 500),
        {"paths": {"/ask": {"post": {"$ref": "http://127.0.0.1:9/x"}}}},
        {"paths": [1], "openapi": 3},
        [1, 2, 3],
    ],
    ids=["cycles", "many-cycles", "many-fields", "many-parameters", "reference-outside", "no-paths", "list"],
)
def test_init__description_that_is_written_to_be_slow_or_broken__is_read_in_bounded_time(tmp_path, document) -> None:
    from eval_gate.cli.starter.agent_routes import ServerDocuments, find_routes

    with within_cpu(10, "init"):
        find_routes(ServerDocuments("http://a", "/v1", {"/openapi.json": document})).select("/" + "a" * 200, None)
    with agent(describes({"/openapi.json": document})) as running:
        done = init(tmp_path, "--agent-endpoint", f"http://127.0.0.1:{running.port}")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) < 20_000


def test_init__response_that_is_written_to_be_slow__is_read_in_bounded_time() -> None:
    from eval_gate.cli.starter.response_places import find_calls, find_texts

    deep: object = "x"
    for _ in range(150):
        deep = {"a": deep, "b": [deep]}
    wide = {f"k{at}": [{"name": "n", "params": {}, f"p{at}": {}}] for at in range(20_000)}
    keys = {"${{ GITHUB_TOKEN }}": "x", "a.b": "y", "{{message}}": "z", "ok": "w"}
    with within_cpu(5, "places"):
        for document in (deep, wide):
            assert len(find_texts(document, [])) <= 50
            assert len(find_calls(document)) <= 200
    assert [one.path for one in find_texts(json.loads(json.dumps(keys)), [])] == ["ok"]
