"""Read a server's own descriptions, and find the routes in them that may be its agent.

Requests only the server's own address, and sends no prompt.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Final
from urllib.parse import urlsplit

from yarl import URL

from eval_gate.cli.starter.openapi import AgentRoute, OpenApiDocument, RequestField, is_plain_value
from eval_gate.config.preset import PresetName
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import MAX_RESPONSE_BYTES
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.agent_address import LOCAL_NAMES
from eval_gate.targets.base import TargetError
from eval_gate.targets.http.connection import Connection, ConnectionLostError, HttpRequest, ResponseLimits
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json

TIMEOUT_S: Final = 5.0
OPENAPI: Final = "/openapi.json"
CARDS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
CHAT: Final = "/chat/completions"
RESPONSES: Final = "/responses"
ASSISTANTS: Final = "/assistants/search"
"""Where LangGraph's server lists its graphs."""
_HEADERS: Final = {"accept": "application/json", "user-agent": "eval-gate"}


class ServerDocuments(FrozenStruct):
    """JSON documents of the server at `origin`, by path. `problem` is why the server could not be reached."""

    origin: str
    api: str
    """Path below which OpenAI's protocol is, if the server speaks it."""
    documents: Mapping[str, JsonValue]
    remarks: tuple[str, ...] = ()
    problem: str | None = None

    def get_mapping(self, path: str) -> dict[str, JsonValue]:
        """Get the document at a path, empty if it is none or no mapping."""
        document = self.documents.get(path)
        return document if isinstance(document, dict) else {}

    @property
    def models(self) -> tuple[str, ...] | None:
        """Ids of the models that a server with OpenAI's protocol lists; None if it lists none in that form."""
        listed = self.get_mapping(f"{self.api}/models").get("data")
        ids = [one.get("id") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return tuple(dict.fromkeys(one for one in ids if isinstance(one, str) and one)) or None

    @property
    def is_langgraph(self) -> bool:
        """Whether it describes the routes that LangGraph's own server has."""
        paths = self.get_mapping(OPENAPI).get("paths")
        return isinstance(paths, dict) and {"/runs/wait", ASSISTANTS} <= paths.keys()


async def read_documents(url: str) -> ServerDocuments:
    """Read the descriptions at the scheme, host and port of `url`. Redirects are not followed."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    api = path.removesuffix(CHAT).removesuffix(RESPONSES)
    api = api if api != path or path.endswith("/v1") else "/v1"
    server = ServerDocuments(f"{parts.scheme}://{parts.netloc}", api, {})
    paths = (OPENAPI, *CARDS, f"{api}/models")
    limits = ResponseLimits(MAX_RESPONSE_BYTES, frozenset())
    connection = Connection(Redactor(), limits, len(paths), secure=parts.scheme == "https")
    try:
        requests = [HttpRequest("GET", URL(server.origin + one), _HEADERS) for one in paths]
        server = await _add_documents(server, connection, requests)
        if server.is_langgraph:
            headers = {**_HEADERS, "content-type": "application/json"}
            search = HttpRequest("POST", URL(server.origin + ASSISTANTS), headers, b"{}")
            server = await _add_documents(server, connection, [search])
    finally:
        await connection.aclose()
    return server


async def _add_documents(
    server: ServerDocuments, connection: Connection, requests: list[HttpRequest]
) -> ServerDocuments:
    """Send the requests at the same time, and add the returned documents, and remarks about unreadable ones."""
    answers = await asyncio.gather(*(_read_document(connection, request) for request in requests))
    paths = [request.url.path for request in requests]
    lost = [str(one) for one in answers if isinstance(one, _UnreachableError)]
    by_path = {path: one for path, one in zip(paths, answers, strict=True) if not isinstance(one, Exception)}
    wrong = [f"{path}: {one}" for path, one in zip(paths, answers, strict=True) if isinstance(one, _UnreadableError)]
    return replace(
        server,
        documents={**server.documents, **{path: one for path, one in by_path.items() if one is not None}},
        remarks=(*server.remarks, *wrong),
        problem=lost[0] if len(lost) == len(requests) else server.problem,
    )


class _UnreadableError(Exception):
    """A description that cannot be read."""


class _UnreachableError(_UnreadableError):
    """The server did not respond."""


async def _read_document(connection: Connection, request: HttpRequest) -> JsonValue | Exception:
    """Read one document; None if the server has none there, and an exception that says why it cannot be read."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            head, body = await connection.exchange(request)
    except TimeoutError:
        return _UnreachableError(f"no complete response within {TIMEOUT_S:g} s")
    except ConnectionLostError as error:
        return (_UnreadableError if error.was_connected else _UnreachableError)(connection.describe_error(error))
    except TargetError as error:
        return _UnreadableError(error.message)
    if head.is_redirect:
        return _UnreadableError(f"redirects to {head.get_header('location')[:200]}, which is not asked")
    if not head.is_success:
        return None
    try:
        return parse_untrusted_json(body)
    except UntrustedJsonError as error:
        return _UnreadableError(f"the response {error}") if error.too_much else None


_PLAIN_PATH: Final = re.compile(r"(/[\w.~:@%+,=-]*)+", re.ASCII)
_AG_UI_FIELDS: Final = {"threadId", "runId", "messages"}
_LANGGRAPH_PATH: Final = "/runs/wait"
_OPENAI_PATHS: Final = {CHAT: PresetName.OPENAI_CHAT, RESPONSES: PresetName.OPENAI_RESPONSES}
_INVOKE: Final = "/invoke"
_LANGSERVE_NEIGHBOURS: Final = ("/batch", "/stream", "/stream_log")


class FoundRoutes(FrozenStruct):
    """Routes of a server. `remarks` name addresses that are not used."""

    routes: tuple[AgentRoute, ...]
    remarks: tuple[str, ...] = ()

    def select(self, path: str, protocol: str | None) -> tuple[AgentRoute, ...]:
        """Select the routes at a path, or else those below it. Routes of a known protocol come before all others."""
        fitting = [one for one in self.routes if protocol in (None, one.protocol)]
        exact = next((one for one in fitting if path.strip("/") and _is_path(one.path, path)), None)
        if exact is not None:
            return (replace(exact, path=path),)
        subroutes = [one for one in fitting if "{" not in one.path]
        subroutes = [one for one in subroutes if one.path.startswith(path.rstrip("/") + "/")]
        return tuple([one for one in subroutes if one.protocol] or [one for one in subroutes if _can_take_prompt(one)])


def find_routes(server: ServerDocuments) -> FoundRoutes:
    """Find the routes that may be the agent."""
    operations = OpenApiDocument(server.get_mapping(OPENAPI)).list_operations()
    paths = {one.path for one in operations}
    routes = [_recognize_protocol(one, paths, server) for one in operations]
    if server.models and not any(one.protocol in _OPENAI_PATHS.values() for one in routes):
        routes.append(AgentRoute(server.api + CHAT, protocol=PresetName.OPENAI_CHAT, fields=_list_models(server)))
    remarks: list[str] = []
    card = next((document for path in CARDS if (document := server.get_mapping(path)).get("name")), {})
    for interface in _iter_interfaces(card):
        place, version = interface
        parts, own = urlsplit(place), urlsplit(server.origin)
        same = parts.hostname == own.hostname or {parts.hostname, own.hostname} <= LOCAL_NAMES
        if not (same and parts.scheme == own.scheme and parts.port == own.port):
            remarks.append(f"the agent card names {place[:200]}, which is not asked: name it with --agent-endpoint")
        elif _PLAIN_PATH.fullmatch(parts.path or "/"):
            preset = PresetName.A2A_0_3 if version.startswith("0.") else PresetName.A2A
            routes.append(AgentRoute(parts.path or "/", protocol=preset))
            break
    routes = [one for one in routes if _PLAIN_PATH.fullmatch(re.sub(r"\{[^{}]*\}", "x", one.path))]
    return FoundRoutes(tuple(routes), tuple(remarks))


def _recognize_protocol(route: AgentRoute, paths: set[str], server: ServerDocuments) -> AgentRoute:
    """Add the protocol that a route speaks by its path or fields, with the fields that this protocol needs."""
    path = route.path
    if server.is_langgraph and path == _LANGGRAPH_PATH:
        return replace(route, protocol=PresetName.LANGGRAPH, fields=_list_graphs(server))
    if protocol := next((one for end, one in _OPENAI_PATHS.items() if path.endswith(end)), None):
        return replace(route, protocol=protocol, fields=_list_models(server))
    if path.endswith(_INVOKE) and all(path.removesuffix(_INVOKE) + one in paths for one in _LANGSERVE_NEIGHBOURS):
        return replace(route, protocol=PresetName.LANGSERVE, fields=())
    if {one.place[-1] for one in route.fields} >= _AG_UI_FIELDS:
        return replace(route, protocol=PresetName.AG_UI, fields=())
    return route


def _list_models(server: ServerDocuments) -> tuple[RequestField, ...]:
    """List the field of the model that a request has to name, with the models that the server lists."""
    names = tuple(filter(is_plain_value, server.models or ()))
    return (RequestField(("requestFields", "model"), choices=names),)


def _list_graphs(server: ServerDocuments) -> tuple[RequestField, ...]:
    """List the field of the graph that a request has to name, unless its name is the one that the protocol presumes."""
    listed = server.documents.get(ASSISTANTS)
    graph_ids = [one.get("graph_id") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    names = tuple(dict.fromkeys(one for one in graph_ids if isinstance(one, str) and is_plain_value(one)))
    return () if names in {(), ("agent",)} else (RequestField(("requestFields", "assistant_id"), choices=names),)


def _iter_interfaces(card: object) -> Iterator[tuple[str, str]]:
    """Yield the addresses for JSON-RPC of an agent card, with the versions of the protocol there."""
    if not isinstance(card, dict):
        return
    listed = card.get("supportedInterfaces")
    for one in listed[:20] if isinstance(listed, list) else []:
        if isinstance(one, dict) and one.get("protocolBinding") == "JSONRPC" and isinstance(one.get("url"), str):
            yield str(one["url"]), str(one.get("protocolVersion", "1.0"))
    if isinstance(card.get("url"), str) and card.get("preferredTransport", "JSONRPC") == "JSONRPC":
        yield str(card["url"]), str(card.get("protocolVersion", "0.3.0"))


def _can_take_prompt(route: AgentRoute) -> bool:
    """Whether a request has a field for a text, or no described fields at all."""
    return not route.fields or any(one.prompt for one in route.fields)


def _is_path(described: str, path: str) -> bool:
    """Whether a path is the described one, which may have parameters in braces."""
    pairs = zip_longest(described.split("/"), path.split("/"))
    return all(one == other or (one and other and "{" in one) for one, other in pairs)
