"""Model providers as they answer over HTTP: their paths, bodies and errors as documented, and a journal of requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from tests.support.agents import Agent, Exchange, agent

Call = tuple[str, str, dict | str]
"""A tool call: id, name, arguments (text is sent as it is, where the provider sends text)."""


@dataclass(frozen=True)
class Answer:
    """One answer; `delay_s` before it begins, `reset` instead of it."""

    body: dict | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    reset: bool = False


class ModelServer:
    """A running server: where it is, and what it was asked."""

    def __init__(self, running: Agent) -> None:
        self._running = running

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._running.port}"

    @property
    def requests(self) -> list[Asked]:
        return [Asked(exchange) for exchange in self._running.requests]

    @property
    def connections(self) -> int:
        return self._running.connections

    @property
    def asked(self) -> Asked:
        """The only request there was."""
        (only,) = self.requests
        return only


class Asked:
    """One request as it came."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        method, target, _ = exchange.head.split("\r\n")[0].split(" ")
        parts = urlsplit(target)
        self.line = f"{method} {parts.path}"
        self.query = dict(parse_qsl(parts.query))

    @property
    def body(self) -> dict:
        return json.loads(self._exchange.body)

    def header(self, name: str) -> str | None:
        return self._exchange.header(name)


@contextmanager
def model_server(*answers: Answer | dict) -> Iterator[ModelServer]:
    """A server that gives these answers one after the other, and the last one for ever."""
    script = [one if isinstance(one, Answer) else Answer(one) for one in answers]

    async def handler(exchange: Exchange) -> None:
        answer = script[min(exchange.number, len(script) - 1)]
        if answer.delay_s:
            await asyncio.sleep(answer.delay_s)
        if answer.reset:
            exchange.reset()
            return
        body = json.dumps(answer.body).encode() if isinstance(answer.body, dict) else answer.body
        exchange.answer(body, f"{answer.status} {_phrase(answer.status)}", **_underscored(answer.headers))

    with agent(handler) as running:
        yield ModelServer(running)


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "Overloaded"


def _underscored(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("-", "_"): value for name, value in headers.items()}


# -- answers ----------------------------------------------------------------------------------------------------------


def openai_answer(text: str | None = "Hello.", calls: Sequence[Call] = (), **changes: object) -> dict:
    """A chat completion. `finish`, `usage` and `message` change those parts."""
    message: dict = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    if calls:
        message["tool_calls"] = [
            {
                "id": id_,
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for id_, name, given in calls
        ]
    usage = {
        "prompt_tokens": 19,
        "completion_tokens": 10,
        "total_tokens": 29,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    finish = changes.get("finish", "tool_calls" if calls else "stop")
    return {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "object": "chat.completion",
        "created": 1741569952,
        "model": "gpt-4o-2024-08-06",
        "choices": [
            {
                "index": 0,
                "message": message | changes.get("message", {}),  # type: ignore[operator]
                "logprobs": None,
                "finish_reason": finish,
            }
        ],
        "usage": changes.get("usage", usage),
        "service_tier": "default",
        "system_fingerprint": "fp_44709d6fcb",
    }


def anthropic_answer(text: str | None = "Hello.", calls: Sequence[Call] = (), **changes: object) -> dict:
    """A message. `finish`, `usage` and `thinking` (text) change those parts."""
    content: list[dict] = []
    if changes.get("thinking"):
        content.append(
            {"type": "thinking", "thinking": changes["thinking"], "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}
        )
    if text:
        content.append({"type": "text", "text": text})
    content += [{"type": "tool_use", "id": id_, "name": name, "input": given} for id_, name, given in calls]
    return {
        "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-20260217",
        "content": content,
        "stop_reason": changes.get("finish", "tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": changes.get(
            "usage",
            {
                "input_tokens": 19,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 10,
                "service_tier": "standard",
            },
        ),
    }


def gemini_answer(text: str | None = "Hello.", calls: Sequence[Call] = (), **changes: object) -> dict:
    """A generated content. `finish`, `usage` and `thinking` (text) change those parts."""
    parts: list[dict] = []
    if changes.get("thinking"):
        parts.append({"text": changes["thinking"], "thought": True})
    if text:
        parts.append({"text": text})
    for number, (id_, name, given) in enumerate(calls):
        part: dict = {"functionCall": {"name": name, "args": given} | ({"id": id_} if id_ else {})}
        if number == 0 and changes.get("signature"):
            part["thoughtSignature"] = changes["signature"]
        parts.append(part)
    return {
        "candidates": [
            {
                "content": {"parts": parts, "role": "model"},
                "finishReason": changes.get("finish", "STOP"),
                "index": 0,
            }
        ],
        "usageMetadata": changes.get(
            "usage",
            {
                "promptTokenCount": 19,
                "candidatesTokenCount": 10,
                "totalTokenCount": 29,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 19}],
            },
        ),
        "modelVersion": "gemini-2.5-flash",
        "responseId": "mFx5aPq7Ltm_xN8PnKq5qQo",
    }
