"""The tools of a live MCP server, asked over loopback."""

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import uvicorn
from mcp import types
from mcp.server import Server
from mcp.server.mcpserver import MCPServer

from eval_gate.errors import ExitCode, GateError
from eval_gate.staleness.mcp_servers import load_mcp_server
from eval_gate.staleness.registry_loader import load_registry
from eval_gate.staleness.tool_registry import ToolRegistry
from tests.support.agents import Exchange, agent
from tests.support.packed import once_packed, twice_packed


@contextmanager
def serving(application) -> Iterator[str]:
    """The application on a free port of loopback."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(application, log_config=None, lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join()


def weather_server() -> MCPServer:
    server = MCPServer("weather", log_level="CRITICAL")

    @server.tool(description="Gets the user's weather.", meta={"version": "2.1.0"})
    def get_weather(city: str, units: str = "c") -> str:
        return f"{city} {units}"

    @server.tool()
    def get_time() -> str:
        return "12:00"

    return server


def paging_server(pages: dict[str | None, types.ListToolsResult]) -> Server:
    async def list_tools(_, params) -> types.ListToolsResult:
        return pages[params.cursor if params else None]

    return Server("paging", on_list_tools=list_tools)


def page(*names: str, following: str | None = None) -> types.ListToolsResult:
    tools = [types.Tool(name=name, description=f"about {name}", input_schema={"type": "object"}) for name in names]
    return types.ListToolsResult(tools=tools, next_cursor=following)


def load(url: str, time_limit_s: float = 20.0) -> ToolRegistry:
    return asyncio.run(load_mcp_server(url, time_limit_s))


def refused(url: str, time_limit_s: float = 20.0) -> GateError:
    with pytest.raises(GateError) as caught:
        load(url, time_limit_s)
    assert (caught.value.code, caught.value.exit_code) == ("registry-unreachable", ExitCode.INCOMPLETE)
    assert "/mcp" in str(caught.value.hint)
    return caught.value


@pytest.fixture(autouse=True)
def _quiet(caplog) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.slow
@pytest.mark.parametrize("stateless", [True, False])
def test_load_mcp__live_server__gives_names_descriptions_versions_and_schemas(tmp_path, stateless) -> None:
    with serving(weather_server().streamable_http_app(stateless_http=stateless)) as url:
        found = asyncio.run(load_registry(url, tmp_path))
    assert [(tool.name, tool.version) for tool in found.tools] == [("get_weather", "2.1.0"), ("get_time", None)]
    assert found.tools[0].description == "Gets the user's weather."
    assert found.tools[0].parameters["required"] == ["city"]
    assert (found.source, found.size, found.notices) == (url, 2, ())


@pytest.mark.slow
def test_load_mcp__several_pages__gives_them_all() -> None:
    pages = {None: page("a", "b", following="2"), "2": page("c", following="3"), "3": page("d")}
    with serving(paging_server(pages).streamable_http_app()) as url:
        assert [tool.name for tool in load(url).tools] == ["a", "b", "c", "d"]


@pytest.mark.slow
def test_load_mcp__pages_in_a_circle__is_refused() -> None:
    pages = {None: page("a", following="2"), "2": page("b", following="2")}
    with serving(paging_server(pages).streamable_http_app()) as url:
        assert "its list of tools does not end" in refused(url).message


@pytest.mark.slow
def test_load_mcp__a_name_twice__is_refused() -> None:
    with serving(paging_server({None: page("a", "b", "a")}).streamable_http_app()) as url:
        assert "it lists the tool a twice" in refused(url).message


def test_load_mcp__wrong_path__says_what_the_server_says() -> None:
    with serving(weather_server().streamable_http_app()) as url:
        assert "Not Found" in refused(url + "/nowhere").message


def test_load_mcp__nobody_listens__is_refused_and_shows_no_secret() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    error = refused(f"http://user:secret@127.0.0.1:{port}/mcp?token=secret")
    assert error.message.startswith(f"the tools of the MCP server at http://127.0.0.1:{port}/mcp cannot be listed: ")
    assert "secret" not in error.message


class _Silent(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        time.sleep(1.0)


class _Web(BaseHTTPRequestHandler):
    """A web page where an MCP server should be."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body = b"<html>hello</html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


class _Nonsense(_Web):
    """JSON-RPC, but not tools."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": {"tools": "many"}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def answering(handler) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


def test_load_mcp__silent_server__is_given_up_in_time() -> None:
    with answering(_Silent) as url:
        assert "no response within 0.2 s" in refused(url, 0.2).message


@pytest.mark.parametrize("handler", [_Web, _Nonsense])
def test_load_mcp__server_that_speaks_something_else__is_refused(handler) -> None:
    with answering(handler) as url:
        assert "cannot be listed: " in refused(url).message


@pytest.mark.parametrize("url", ["http://[bad/mcp", "http:///mcp", "http://host:port/mcp"])
def test_load_mcp__no_url__is_a_usage_error(url) -> None:
    with pytest.raises(GateError) as caught:
        load(url)
    assert (caught.value.code, caught.value.exit_code) == ("invalid-url", ExitCode.USAGE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "encoding", "said"),
    [
        (twice_packed, "gzip, gzip", "is compressed 2 times, which is not supported"),
        (once_packed, "gzip", "is larger than 10,000,000 bytes"),
        (lambda: b"[" + b"[]," * 3_000_000 + b"0]", "identity", "has more than 250,000 values"),
    ],
    ids=["packed twice", "packed", "values"],
)
def test_finding_4__server_whose_answer_stands_for_more__cannot_be_listed(body, encoding, said) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer(body(), Content_Encoding=encoding)

    with agent(handler) as running, pytest.raises(GateError, match=said) as caught:
        load(running.url)
    assert caught.value.code == "registry-unreachable"
