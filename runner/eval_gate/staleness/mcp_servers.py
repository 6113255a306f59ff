"""Tool registry from live MCP servers, over streamable HTTP or stdio."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from eval_gate.errors import ExitCode, GateError, Problem, require_extra
from eval_gate.model import limits
from eval_gate.process.captured_output import Mask
from eval_gate.process.environment import WithheldVariables
from eval_gate.process.run import Command, InteractiveProgram, ProcessError, start_interactive
from eval_gate.staleness.json_registry import find_meta_version
from eval_gate.staleness.mcp_server_file import McpServerEntry, McpServerFile, build_invalid_error
from eval_gate.staleness.tool_registry import ToolDefinition, ToolRegistry
from eval_gate.struct import FrozenStruct, field
from eval_gate.text.escape import to_one_line
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, check_json_size
from eval_gate.text.untrusted.excerpt import format_excerpt
from eval_gate.text.untrusted.http_response import read_bounded_response
from eval_gate.text.urls import to_public_url

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp import Client, Tool
    from mcp.client import Transport
    from mcp.shared.message import SessionMessage


TIME_LIMIT_S: Final = limits.MCP_S
PROGRAM_TIME_LIMIT_S: Final = limits.MCP_PROGRAM_S
MAX_TOOLS: Final = limits.MCP_TOOLS
_MAX_ERROR_CHARACTERS: Final = 300
_URL_HINT: Final = (
    "check that the server runs and that the URL is its streamable HTTP endpoint, which often ends in /mcp"
)
MAX_BYTES: Final = limits.MCP_BYTES
MAX_LINES: Final = limits.MCP_LINES
_MAX_QUOTED: Final = 200


class ProgramEnvironment(FrozenStruct):
    """Environment of the MCP servers that are started: variables, withheld variables and mask."""

    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    withheld_variables: WithheldVariables = field(default_factory=WithheldVariables)
    mask: Mask | None = None

    __repr__ = object.__repr__


async def load_mcp_server(url: str, time_limit_s: float = TIME_LIMIT_S, mask: Mask | None = None) -> ToolRegistry:
    """Load the tools of the MCP server at `url`, following all pages of its tools/list.

    The version of a tool comes from its `_meta`, if that gives one. `time_limit_s` is in seconds. `mask` removes
    secrets from the error, which quotes the server and contains its address. Raises GateError
    `registry-unreachable` (exit 3) if the server cannot be reached, responds with an error, does not finish in
    time, or lists a tool twice.
    """
    source = _mask_text(to_public_url(url), mask)
    try:
        async with asyncio.timeout(time_limit_s):
            tools = await _list_http_tools(url, mask)
    except TimeoutError as error:
        raise _build_unreachable_error(source, f"no response within {time_limit_s:g} s") from error
    except _ServerError as error:
        raise _build_unreachable_error(source, str(error)) from error
    if twice := _find_duplicate(tools):
        raise _build_unreachable_error(source, f"it lists the tool {_mask_text(twice, mask)[:80]} twice")
    return ToolRegistry(source=source, tools=tuple(_build_definition(tool) for tool in tools))


async def load_server_file(
    file: McpServerFile, name: str | None, root: Path, program_env: ProgramEnvironment
) -> ToolRegistry:
    """Load the tools of one server in the file, or of all its servers one after the other.

    If `name` is None, all servers are loaded. Raises GateError: `invalid-registry` for problems in the file and for
    a tool that several servers have, `registry-unreachable` (exit 3) for a server that cannot be started or
    queried.
    """
    entries = [one.fill_variables(program_env.environment, root) for one in file.select_servers(name)]
    tools: list[ToolDefinition] = []
    for entry in entries:
        if entry.url is not None:
            tools += (await load_mcp_server(entry.url, mask=program_env.mask)).tools
        else:
            tools += map(_build_definition, await _list_program_tools(entry, root, program_env))
    if twice := _find_duplicate(tools):
        message = f"more than one of its servers has the tool {twice[:80]}"
        raise build_invalid_error(
            file.display_path,
            [Problem(message, file=file.display_path)],
            f"choose a server: {file.display_path}#{entries[0].name}",
        )
    return ToolRegistry(source=file.display_path, tools=tuple(tools), notices=file.notices)


async def _list_program_tools(entry: McpServerEntry, root: Path, program_env: ProgramEnvironment) -> list[Tool]:
    with require_extra("mcp", "listing the tools of an MCP server"):
        import mcp  # noqa: F401 (here, so that its absence is reported before a program starts)

        lines = McpStdioTransport(program_env.mask)
    command = Command(
        entry.command,
        _resolve_folder(entry, root),
        {**program_env.environment, **dict(entry.env)},
        max_output=0,
        watch=lines.receive_output,
        mask=program_env.mask,
    )
    message, ending = "", None
    try:
        async with start_interactive(command) as program:
            lines.attach_program(program)
            try:
                async with asyncio.timeout(PROGRAM_TIME_LIMIT_S):
                    return await _list_transport_tools(lines, program_env.mask)
            except TimeoutError:
                message = f"no list of tools within {PROGRAM_TIME_LIMIT_S:g} s"
            except _ServerError as error:
                message, ending = str(error), program.ending
            message = lines.too_much or (f"it {ending}" if ending else message)
            message += f"; it printed output that is not MCP: {lines.odd}" if lines.odd and not lines.too_much else ""
            words = program.format_last_line(_MAX_ERROR_CHARACTERS)
            message += f"; its last output: {words}" if words else ""
    except ProcessError as error:
        message = error.message
    finally:
        lines.close()
    message = _mask_text(message, program_env.mask)
    raise GateError(
        "registry-unreachable",
        f"the tools of the MCP server {entry.name} ({entry.file}) cannot be listed: {message}",
        program_env.withheld_variables.find_hint("", message)
        or "run the command by itself: it must wait for input and print only MCP messages",
        exit_code=ExitCode.INCOMPLETE,
    )


def _resolve_folder(entry: McpServerEntry, root: Path) -> Path:
    """Resolve the server's folder. Raises GateError for a folder outside of the working directory."""
    folder = root / entry.cwd
    what = f"is outside of {root}"
    try:
        if folder.resolve().is_relative_to(root.resolve()):
            return folder
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links that lead round in a circle
        what = "is not the path of a folder"
    problem = Problem(f'"{to_one_line(entry.cwd, 200)}" {what}', entry.file, entry.line, "cwd")
    raise build_invalid_error(entry.file, [problem], "name a folder of the repository")


def _find_duplicate(tools: Sequence[Tool | ToolDefinition]) -> str | None:
    """Return a name that several tools have, or None."""
    return min((name for name, times in Counter(tool.name for tool in tools).items() if times > 1), default=None)


_VALIDATION_ERROR: Final = re.compile(r"validation errors? for|input_value=")


class _ServerError(Exception):
    """Error of a server or its connection, in its own words."""


def _mask_text(text: str, mask: Mask | None) -> str:
    return mask(text.encode("utf-8", "replace")).decode("utf-8", "replace") if mask else text


async def _list_http_tools(url: str, mask: Mask | None) -> list[Tool]:
    with require_extra("mcp", "listing the tools of an MCP server"):
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

    # it would print what a server says, and a traceback, as they are: the error says it, without secrets
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    async with httpx2.AsyncClient(timeout=TIME_LIMIT_S, event_hooks={"response": [read_bounded_response]}) as http:
        return await _list_transport_tools(streamable_http_client(url, http_client=http), mask)


async def _list_transport_tools(transport: Transport, mask: Mask | None) -> list[Tool]:
    """List all tools of the server at the other end. Raises _ServerError."""
    import httpx2
    from mcp import Client, MCPError

    words = ""
    tools: list[Tool] = []
    try:
        async with Client(transport, cache=None) as client:
            await _load_all_pages(client, tools)
    # ValueError: not what the protocol says; RuntimeError: a version of the protocol that the SDK does not speak
    except* (
        *(MCPError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RuntimeError, _ServerError),
    ) as group:
        words = _describe_failure(group, mask)
    if words:
        raise _ServerError(words)
    return tools


async def _load_all_pages(client: Client, tools: list[Tool]) -> None:
    cursors: set[str] = set()
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in cursors or len(tools) > MAX_TOOLS:
            raise _ServerError("its list of tools does not end")
        cursors.add(cursor)


def _describe_failure(failure: BaseException, mask: Mask | None) -> str:
    """Describe the first error of a group in one line, truncated and without secrets."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    text = str(failure)
    if _VALIDATION_ERROR.search(text):  # it repeats parts of the server's output, cut where no mask matches them
        return "its response is not an MCP message"
    return " ".join(_mask_text(text, mask).split())[:_MAX_ERROR_CHARACTERS] or type(failure).__name__


def _build_definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        version=find_meta_version(tool.meta),
        parameters=tool.input_schema,
    )


def _build_unreachable_error(source: str, what: str) -> GateError:
    return GateError(
        "registry-unreachable",
        f"the tools of the MCP server at {source} cannot be listed: {what}",
        _URL_HINT,
        exit_code=ExitCode.INCOMPLETE,
    )


class McpStdioTransport:
    """Stdio transport for the MCP client: one JSON-RPC message per line.

    It is a transport of MCP's own client. A line that is not a message is skipped, as other clients do, and kept: if
    the server does not respond, it is the likely reason.
    """

    def __init__(self, mask: Mask | None = None) -> None:
        """`mask` takes secrets out of what is remembered."""
        import anyio

        self._send: MemoryObjectSendStream[SessionMessage | Exception]
        self._receive: MemoryObjectReceiveStream[SessionMessage | Exception]
        self._send, self._receive = anyio.create_memory_object_stream(math.inf)
        self._mask = mask
        self._rest = bytearray()
        self._size = 0
        self._lines = 0
        self._program: InteractiveProgram | None = None
        self._until_end: asyncio.Task[None] | None = None
        self.odd: str | None = None
        """How the first line began that is no message."""
        self.too_much: str | None = None
        """Why nothing more is read."""

    def attach_program(self, program: InteractiveProgram) -> None:
        """Connect the transport to the program."""
        self._program = program

    def receive_output(self, data: bytes) -> None:
        """Receive a part of the program's output and handle every complete line."""
        self._size += len(data)
        if self._size > MAX_BYTES:
            self._stop_reading(f"it printed more than {MAX_BYTES:,} bytes")
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self.too_much:
                break
            self._parse_message(bytes(self._rest) + line)
            self._rest.clear()
        if not self.too_much:
            self._rest += rest

    def _stop_reading(self, why: str) -> None:
        self.too_much = self.too_much or why
        self._rest.clear()
        self._send.close()

    async def send(self, item: SessionMessage, /) -> None:
        """One message to the program."""
        assert self._program is not None
        self._program.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def aclose(self) -> None:
        """Do nothing: the program's input is closed with the program."""

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], _StdinStream]:
        self._until_end = asyncio.create_task(self._close_after_exit())
        return self._receive, _StdinStream(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._until_end is not None:
            self._until_end.cancel()
        self.close()

    def close(self) -> None:
        """Close both directions of the transport."""
        self._send.close()
        self._receive.close()

    async def _close_after_exit(self) -> None:
        assert self._program is not None
        await self._program.ended.wait()
        await asyncio.sleep(_FINAL_OUTPUT_S)
        self._send.close()

    def _parse_message(self, line: bytes) -> None:
        from mcp import types
        from mcp.shared.message import SessionMessage

        if not line.strip():
            return
        self._lines += 1
        if self._lines > MAX_LINES:
            self._stop_reading(f"it printed more than {MAX_LINES:,} lines")
            return
        try:
            check_json_size(line)
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except UntrustedJsonError as error:
            self._stop_reading(f"it sent a message that {error}")
        except ValueError:
            if self.odd is None:
                self.odd = format_excerpt((self._mask(line) if self._mask else line)[:_MAX_QUOTED])
        else:
            import anyio

            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._send.send_nowait(SessionMessage(message))


_FINAL_OUTPUT_S: Final = 0.2
"""Seconds in which what a program printed before its end is read."""


class _StdinStream:
    """Standard input of the program as the client's stream for messages."""

    def __init__(self, lines: McpStdioTransport) -> None:
        self.send = lines.send
        self.aclose = lines.aclose

    async def __aenter__(self) -> _StdinStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing."""
