"""The connections of one chat, and a note of what came over them: the libraries above do not keep an odd answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import httpx2
from pydantic_ai.models import create_async_httpx2_client

from eval_gate.targets.model.chat import more_headers
from eval_gate.text.foreign.http_answer import read_bounded

MAX_CONNECT_S: Final = 10.0
_noted: ContextVar[list[httpx2.Response] | None] = ContextVar("_noted", default=None)


def connection_pool(timeout_s: float) -> httpx2.AsyncClient:
    """A client for requests of so many seconds. To wait for a free connection takes no longer than a request may."""
    client = create_async_httpx2_client(
        timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, MAX_CONNECT_S), pool=None)
    )
    client.event_hooks["request"].append(_with_more_headers)
    client.event_hooks["response"] += [read_bounded, _note]
    return client


@contextmanager
def answers_noted() -> Iterator[list[httpx2.Response]]:
    """The answers to requests made by this task within, of every pool."""
    answers: list[httpx2.Response] = []
    token = _noted.set(answers)
    try:
        yield answers
    finally:
        _noted.reset(token)


async def _with_more_headers(request: httpx2.Request) -> None:
    request.headers.update(more_headers.get())


async def _note(response: httpx2.Response) -> None:
    answers = _noted.get()
    if answers is not None:
        answers.append(response)
