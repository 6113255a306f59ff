"""Finds the routes of a server that may be its agent, in what the server says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Final
from urllib.parse import urlsplit

from eval_gate.cli.starter.openapi import AgentRoute, OpenApiDocument, RequestField, is_plain_value
from eval_gate.cli.starter.server_documents import ASSISTANTS, CARDS, CHAT, OPENAPI, RESPONSES, ServerDocuments
from eval_gate.config.preset import PresetName
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.agent_address import LOCAL_NAMES

_PLAIN_PATH: Final = re.compile(r"(/[\w.~:@%+,=-]*)+", re.ASCII)
_AG_UI_FIELDS: Final = {"threadId", "runId", "messages"}
_LANGGRAPH_PATH: Final = "/runs/wait"
_OPENAI_PATHS: Final = {CHAT: PresetName.OPENAI_CHAT, RESPONSES: PresetName.OPENAI_RESPONSES}
_INVOKE: Final = "/invoke"
_LANGSERVE_NEIGHBOURS: Final = ("/batch", "/stream", "/stream_log")


class FoundRoutes(FrozenStruct):
    """Routes of a server. `remarks` say what it names that is not asked."""

    routes: tuple[AgentRoute, ...]
    remarks: tuple[str, ...] = ()

    def select(self, path: str, protocol: str | None) -> tuple[AgentRoute, ...]:
        """Select the routes at a path, or else those below it. Routes of a known protocol come before all others."""
        fitting = [one for one in self.routes if protocol in (None, one.protocol)]
        exact = next((one for one in fitting if path.strip("/") and _is_path(one.path, path)), None)
        if exact is not None:
            return (replace(exact, path=path),)
        below = [one for one in fitting if "{" not in one.path]
        below = [one for one in below if one.path.startswith(path.rstrip("/") + "/")]
        return tuple([one for one in below if one.protocol] or [one for one in below if _can_take_prompt(one)])


def find_routes(server: ServerDocuments) -> FoundRoutes:
    """Find the routes that may be the agent."""
    operations = OpenApiDocument(server.get_mapping(OPENAPI)).list_operations()
    paths = {one.path for one in operations}
    routes = [_recognize_protocol(one, paths, server) for one in operations]
    if server.models and not any(one.protocol in _OPENAI_PATHS.values() for one in routes):
        routes.append(AgentRoute(server.api + CHAT, protocol=PresetName.OPENAI_CHAT, fields=_list_models(server)))
    remarks: list[str] = []
    card = next((found for path in CARDS if (found := server.get_mapping(path)).get("name")), {})
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
    if found := next((one for end, one in _OPENAI_PATHS.items() if path.endswith(end)), None):
        return replace(route, protocol=found, fields=_list_models(server))
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
    found = [one.get("graph_id") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    names = tuple(dict.fromkeys(one for one in found if isinstance(one, str) and is_plain_value(one)))
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


def _is_path(described: str, given: str) -> bool:
    """Whether a path is the described one, which may have parameters in braces."""
    pairs = zip_longest(described.split("/"), given.split("/"))
    return all(one == other or (one and other and "{" in one) for one, other in pairs)
