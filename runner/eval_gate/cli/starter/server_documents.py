"""Reads what a server says of itself. Asks only the address that is given, and sends no prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from yarl import URL

from eval_gate.model.base import JsonValue
from eval_gate.model.limits import MAX_ANSWER_BYTES
from eval_gate.struct import FrozenStruct, replace
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
    """JSON documents of the server at `origin`, by path. `problem` is why the server could not be asked at all."""

    origin: str
    api: str
    """Path below which OpenAI's protocol is, if the server speaks it."""
    documents: Mapping[str, JsonValue]
    remarks: tuple[str, ...] = ()
    problem: str | None = None

    def get_mapping(self, path: str) -> dict[str, JsonValue]:
        """Get the document at a path, empty if it is none or no mapping."""
        found = self.documents.get(path)
        return found if isinstance(found, dict) else {}

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
    limits = ResponseLimits(MAX_ANSWER_BYTES, frozenset())
    connection = Connection(Redactor(), limits, len(paths), secure=parts.scheme == "https")
    try:
        asked = [HttpRequest("GET", URL(server.origin + one), _HEADERS) for one in paths]
        server = await _add_documents(server, connection, asked)
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
    """Send the requests at the same time, and add the documents that they return and what was wrong with others."""
    answers = await asyncio.gather(*(_read_document(connection, request) for request in requests))
    paths = [request.url.path for request in requests]
    lost = [str(one) for one in answers if isinstance(one, _UnreachableError)]
    found = {path: one for path, one in zip(paths, answers, strict=True) if not isinstance(one, Exception)}
    wrong = [f"{path}: {one}" for path, one in zip(paths, answers, strict=True) if isinstance(one, _UnreadableError)]
    return replace(
        server,
        documents={**server.documents, **{path: one for path, one in found.items() if one is not None}},
        remarks=(*server.remarks, *wrong),
        problem=lost[0] if len(lost) == len(requests) else server.problem,
    )


class _UnreadableError(Exception):
    """Answer that could be a description and cannot be read."""


class _UnreachableError(_UnreadableError):
    """No answer at all."""


async def _read_document(connection: Connection, request: HttpRequest) -> JsonValue | Exception:
    """Read one document; None if the server has none there, and an exception that says why it cannot be read."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            head, body = await connection.exchange(request)
    except TimeoutError:
        return _UnreachableError(f"no complete response within {TIMEOUT_S:g} s")
    except ConnectionLostError as error:
        return (_UnreadableError if error.made else _UnreachableError)(connection.describe_error(error))
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
