"""Tool definitions of a live MCP server, asked over streamable HTTP."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final

from eval_gate.errors import ExitCode, GateError, needing
from eval_gate.model import limits
from eval_gate.registry.base import Registry, ToolDefinition
from eval_gate.registry.json_file import meta_version
from eval_gate.text.foreign.http_answer import bounded
from eval_gate.text.urls import public_url

if TYPE_CHECKING:
    from mcp import Client, Tool

TIME_LIMIT_S: Final = limits.MCP_S
MAX_TOOLS: Final = limits.MCP_TOOLS
_MAX_WORDS: Final = 300


async def load_mcp(url: str, time_limit_s: float = TIME_LIMIT_S) -> Registry:
    """The tools of the MCP server at `url`, all pages of its tools/list.

    A tool's version is what its `_meta` calls so, if it does. Raises GateError `registry-unreachable` (exit 3) when
    the server cannot be reached, answers with an error, or does not come to an end.
    """
    source = public_url(url)
    try:
        async with asyncio.timeout(time_limit_s):
            tools = await _list_tools(url)
    except TimeoutError as error:
        raise _unreachable(source, f"no answer within {time_limit_s:g} s") from error
    except _ServerError as error:
        raise _unreachable(source, str(error)) from error
    names = [tool.name for tool in tools]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise _unreachable(source, f"it lists the tool {twice[0][:80]} twice")
    return Registry(source=source, tools=tuple(_definition(tool) for tool in tools))


class _ServerError(Exception):
    """What the server, or the way to it, did wrong, in its own words."""


async def _list_tools(url: str) -> list[Tool]:
    with needing("mcp", "asking an MCP server for its tools"):
        import httpx2
        from mcp import Client, MCPError
        from mcp.client.streamable_http import streamable_http_client

    words = ""
    tools: list[Tool] = []
    try:
        http = httpx2.AsyncClient(timeout=TIME_LIMIT_S, event_hooks={"response": [bounded]})
        async with http, Client(streamable_http_client(url, http_client=http), cache=None) as client:
            await _all_pages(client, tools)
    # ValueError: not what the protocol says; RuntimeError: a version of the protocol that the SDK does not speak
    except* (MCPError, httpx2.HTTPError, OSError, ValueError, RuntimeError, _ServerError) as group:
        words = _first_words(group)
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


def _first_words(failure: BaseException) -> str:
    """The first error of a group in one bounded line."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return " ".join(str(failure).split())[:_MAX_WORDS] or type(failure).__name__


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
        "check that the server runs and that the URL is its streamable HTTP endpoint, which often ends in /mcp",
        exit_code=ExitCode.INCOMPLETE,
    )
