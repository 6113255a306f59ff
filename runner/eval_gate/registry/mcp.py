"""Tool definitions of live MCP servers: asked over streamable HTTP, or started and asked over their own streams."""

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

from eval_gate.errors import ExitCode, GateError, Problem, needing
from eval_gate.model import limits
from eval_gate.process.captured import Mask
from eval_gate.process.dialogue import TalkingProgram, talk
from eval_gate.process.environment import Withheld
from eval_gate.process.run import Command, ProcessError
from eval_gate.registry.base import Registry, ToolDefinition
from eval_gate.registry.json_file import meta_version
from eval_gate.registry.mcp_file import ServerEntry, ServerFile, invalid
from eval_gate.struct import FrozenStruct, field
from eval_gate.text.escape import one_line
from eval_gate.text.foreign.http_answer import read_bounded
from eval_gate.text.foreign.json import ForeignJsonError, refuse_too_much
from eval_gate.text.foreign.quote import quote
from eval_gate.text.urls import public_url

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp import Client, Tool
    from mcp.client import Transport
    from mcp.shared.message import SessionMessage


TIME_LIMIT_S: Final = limits.MCP_S
PROGRAM_TIME_LIMIT_S: Final = limits.MCP_PROGRAM_S
MAX_TOOLS: Final = limits.MCP_TOOLS
_MAX_WORDS: Final = 300
_URL_HINT: Final = (
    "check that the server runs and that the URL is its streamable HTTP endpoint, which often ends in /mcp"
)
MAX_BYTES: Final = limits.MCP_BYTES
MAX_LINES: Final = limits.MCP_LINES
_QUOTED: Final = 200


class ProgramSurroundings(FrozenStruct):
    """What programs that are started are given: all the variables they see, and what is kept from them."""

    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    withheld: Withheld = field(default_factory=Withheld)
    mask: Mask | None = None
    """Takes secrets out of what they print."""

    __repr__ = object.__repr__


async def load_mcp(url: str, time_limit_s: float = TIME_LIMIT_S, mask: Mask | None = None) -> Registry:
    """The tools of the MCP server at `url`, all pages of its tools/list.

    A tool's version is what its `_meta` calls so, if it does. `mask` takes secrets out of the error, which quotes the
    server and has its address. Raises GateError `registry-unreachable` (exit 3) when the server cannot be reached,
    answers with an error, or does not come to an end.
    """
    source = _masked(public_url(url), mask)
    try:
        async with asyncio.timeout(time_limit_s):
            tools = await _list_tools(url, mask)
    except TimeoutError as error:
        raise _unreachable(source, f"no answer within {time_limit_s:g} s") from error
    except _ServerError as error:
        raise _unreachable(source, str(error)) from error
    if twice := _twice(tools):
        raise _unreachable(source, f"it lists the tool {_masked(twice, mask)[:80]} twice")
    return Registry(source=source, tools=tuple(_definition(tool) for tool in tools))


async def load_servers(file: ServerFile, name: str | None, root: Path, given: ProgramSurroundings) -> Registry:
    """The tools of the server of this name in the file, or of all of them, one after the other.

    Raises GateError: `invalid-registry` for what is wrong with the file, `registry-unreachable` (exit 3) for a server
    that cannot be started or asked.
    """
    entries = [one.filled(given.environment, root) for one in file.only(name)]
    tools: list[ToolDefinition] = []
    for entry in entries:
        if entry.url is not None:
            tools += (await load_mcp(entry.url, mask=given.mask)).tools
        else:
            tools += map(_definition, await _started(entry, root, given))
    if twice := _twice(tools):
        said = f"more than one of its servers has the tool {twice[:80]}"
        raise invalid(file.shown, [Problem(said, file=file.shown)], f"choose a server: {file.shown}#{entries[0].name}")
    return Registry(source=file.shown, tools=tuple(tools), notices=file.notices)


async def _started(entry: ServerEntry, root: Path, given: ProgramSurroundings) -> list[Tool]:
    """The tools of a server that is started for it, and ended."""
    with needing("mcp", "asking an MCP server for its tools"):
        import mcp  # noqa: F401 (here, so that its absence is said before anything is started)

        lines = MessageLines(given.mask)
    command = Command(
        entry.command,
        _folder(entry, root),
        {**given.environment, **dict(entry.env)},
        max_output=0,
        watch=lines.heard,
        mask=given.mask,
    )
    said, ended = "", None
    try:
        async with talk(command) as program:
            lines.serve(program)
            try:
                async with asyncio.timeout(PROGRAM_TIME_LIMIT_S):
                    return await _listed_by(lines, given.mask)
            except TimeoutError:
                said = f"no list of tools within {PROGRAM_TIME_LIMIT_S:g} s"
            except _ServerError as error:
                said, ended = str(error), program.ending
            said = lines.too_much or (f"it {ended}" if ended else said)
            said += f"; it printed something else than MCP: {lines.odd}" if lines.odd and not lines.too_much else ""
            words = program.last_words(_MAX_WORDS)
            said += f"; its last words: {words}" if words else ""
    except ProcessError as error:
        said = error.message
    finally:
        lines.close()
    said = _masked(said, given.mask)
    raise GateError(
        "registry-unreachable",
        f"the tools of the MCP server {entry.name} ({entry.file}) cannot be listed: {said}",
        given.withheld.needed("", said)
        or "try the command by itself: it has to wait for input, and print nothing but MCP's messages",
        exit_code=ExitCode.INCOMPLETE,
    )


def _folder(entry: ServerEntry, root: Path) -> Path:
    """Where the server is started. Raises GateError for a folder outside of the working directory."""
    folder = root / entry.cwd
    what = f"leads out of {root}"
    try:
        if folder.resolve().is_relative_to(root.resolve()):
            return folder
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links that lead round in a circle
        what = "is no path of a folder"
    said = Problem(f'"{one_line(entry.cwd, 200)}" {what}', entry.file, entry.line, "cwd")
    raise invalid(entry.file, [said], "name a folder of the repository")


def _twice(tools: Sequence[Tool | ToolDefinition]) -> str | None:
    """A name that several tools have."""
    return min((name for name, times in Counter(tool.name for tool in tools).items() if times > 1), default=None)


_OF_A_SHAPE: Final = re.compile(r"validation errors? for|input_value=")


class _ServerError(Exception):
    """What the server, or the way to it, did wrong, in its own words."""


def _masked(text: str, mask: Mask | None) -> str:
    return mask(text.encode("utf-8", "replace")).decode("utf-8", "replace") if mask else text


async def _list_tools(url: str, mask: Mask | None) -> list[Tool]:
    with needing("mcp", "asking an MCP server for its tools"):
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

    # it would print what a server says, and a traceback, as they are: the error says it, without secrets
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
    async with httpx2.AsyncClient(timeout=TIME_LIMIT_S, event_hooks={"response": [read_bounded]}) as http:
        return await _listed_by(streamable_http_client(url, http_client=http), mask)


async def _listed_by(transport: Transport, mask: Mask | None) -> list[Tool]:
    """All tools of the server at the other end. Raises _ServerError."""
    import httpx2
    from mcp import Client, MCPError

    words = ""
    tools: list[Tool] = []
    try:
        async with Client(transport, cache=None) as client:
            await _all_pages(client, tools)
    # ValueError: not what the protocol says; RuntimeError: a version of the protocol that the SDK does not speak
    except* (
        *(MCPError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RuntimeError, _ServerError),
    ) as group:
        words = _first_words(group, mask)
    if words:
        raise _ServerError(words)
    return tools


async def _all_pages(client: Client, tools: list[Tool]) -> None:
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return
        if cursor in seen or len(tools) > MAX_TOOLS:
            raise _ServerError("its list of tools does not come to an end")
        seen.add(cursor)


def _first_words(failure: BaseException, mask: Mask | None) -> str:
    """The first error of a group in one bounded line, without secrets."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    said = str(failure)
    if _OF_A_SHAPE.search(said):  # which repeats parts of what the server said, cut where no mask finds them
        return "its answer is not a message of the protocol"
    return " ".join(_masked(said, mask).split())[:_MAX_WORDS] or type(failure).__name__


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        version=meta_version(tool.meta),
        parameters=tool.input_schema,
    )


def _unreachable(source: str, what: str) -> GateError:
    return GateError(
        "registry-unreachable",
        f"the tools of the MCP server at {source} cannot be listed: {what}",
        _URL_HINT,
        exit_code=ExitCode.INCOMPLETE,
    )


class MessageLines:
    """The program's output as messages, of which the protocol has one a line, and messages as its input.

    A transport of MCP's own client. A line that is no message is passed over, as other clients do it, and remembered:
    when nothing comes of it, it is why.
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
        self._program: TalkingProgram | None = None
        self._until_end: asyncio.Task[None] | None = None
        self.odd: str | None = None
        """How the first line began that is no message."""
        self.too_much: str | None = None
        """Why nothing more is read."""

    def serve(self, program: TalkingProgram) -> None:
        """From now on this is the program."""
        self._program = program

    def heard(self, data: bytes) -> None:
        """What the program prints, as it comes."""
        self._size += len(data)
        if self._size > MAX_BYTES:
            self._give_up(f"it printed more than {MAX_BYTES:,} bytes")
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self.too_much:
                break
            self._message(bytes(self._rest) + line)
            self._rest.clear()
        if not self.too_much:
            self._rest += rest

    def _give_up(self, why: str) -> None:
        self.too_much = self.too_much or why
        self._rest.clear()
        self._send.close()

    async def send(self, item: SessionMessage, /) -> None:
        """One message to the program."""
        assert self._program is not None
        self._program.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def aclose(self) -> None:
        """Do nothing: the program's input is closed with the program."""

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], _Input]:
        self._until_end = asyncio.create_task(self._close_at_the_end())
        return self._receive, _Input(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._until_end is not None:
            self._until_end.cancel()
        self.close()

    def close(self) -> None:
        """Nothing more is said or read."""
        self._send.close()
        self._receive.close()

    async def _close_at_the_end(self) -> None:
        assert self._program is not None
        await self._program.ended.wait()
        await asyncio.sleep(_LAST_WORDS_S)
        self._send.close()

    def _message(self, line: bytes) -> None:
        from mcp import types
        from mcp.shared.message import SessionMessage

        if not line.strip():
            return
        self._lines += 1
        if self._lines > MAX_LINES:
            self._give_up(f"it printed more than {MAX_LINES:,} lines")
            return
        try:
            refuse_too_much(line)
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ForeignJsonError as error:
            self._give_up(f"it sent a message that {error}")
        except ValueError:
            if self.odd is None:
                self.odd = quote((self._mask(line) if self._mask else line)[:_QUOTED])
        else:
            import anyio

            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._send.send_nowait(SessionMessage(message))


_LAST_WORDS_S: Final = 0.2
"""Seconds in which what a program printed before its end is read."""


class _Input:
    """The program's input as the client's stream for messages."""

    def __init__(self, lines: MessageLines) -> None:
        self.send = lines.send
        self.aclose = lines.aclose

    async def __aenter__(self) -> _Input:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing."""
