"""Our connection to the fake GitHub without a network between: ten thousand histories would spend their time in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from email.message import Message
from urllib.parse import urlencode

import httpx
from pydantic import JsonValue

from eval_gate.github.client import GitHubClient, Query
from eval_gate.github.failure import ErrorResponse, build_refusal_error
from eval_gate.text.secret import Secret
from tests.support.github import FakeGitHub
from tests.support.github.loopback import Request

BLOBS = "http://blobs.invalid/"


class DirectClient(GitHubClient):
    """A client whose requests are answered by the same functions of the fake as those of every other test.

    Nothing is held against GitHub's description: other tests do that, for each kind of request.
    """

    def __init__(self, github: FakeGitHub) -> None:
        super().__init__(github.base, Secret(github.token), github.state.full_name, sleep=_never)
        self._github = github

    def _send_request(
        self,
        verb: str,
        path: str,
        doing: str,
        permission: str,
        *,
        query: Query | None = None,
        body: Mapping[str, object] | None = None,
    ) -> JsonValue:
        asked = urlencode({name: str(value) for name, value in (query or {}).items()})
        target = f"/repos/{self.repository}{path}{f'?{asked}' if asked else ''}"
        headers = Message()
        headers["User-Agent"], headers["Authorization"] = "simulation", f"Bearer {self._github.token}"
        raw = b"" if body is None else json.dumps(body).encode()
        with self._github.state.lock:
            answer = self._github.rest.answer(Request(verb, target, headers, raw))
        if answer.status >= 300:
            message = str((answer.body or {}).get("message", ""))
            raise build_refusal_error(ErrorResponse(answer.status, {}, message), doing, permission)
        found: JsonValue = answer.body
        return found

    def open_http_client(self) -> httpx.Client:
        """A connection for archives: an address for each, and then its bytes."""
        return httpx.Client(transport=httpx.MockTransport(self._transfer))

    def _transfer(self, request: httpx.Request) -> httpx.Response:
        artifacts = self._github.state.artifacts
        if str(request.url).startswith(BLOBS):
            return httpx.Response(200, stream=httpx.ByteStream(artifacts[int(request.url.path[1:])].zip_bytes))
        number = int(request.url.path.split("/")[-2])
        if number not in artifacts:
            return httpx.Response(404, json={"message": "Not Found"})
        if artifacts[number].expired:
            return httpx.Response(410, json={"message": "Artifact has expired"})
        return httpx.Response(302, headers={"Location": f"{BLOBS}{number}"})


def _never(_seconds: float) -> None:
    raise AssertionError("the fake is never busy here")


Connect = Callable[..., GitHubClient]
