"""The agent that is asked in the benchmarks: one fixed answer, as cheap as a server can be, after a fixed pause.

Usage: agent.py LATENCY_MS [judge]. As a judge it speaks OpenAI's protocol and is content with everything. Prints its
address when it is ready and ends when its input does.
"""

from __future__ import annotations

import asyncio
import json
import sys

ANSWER = json.dumps(
    {
        "response": "It is 21 °C and sunny in Lisbon.",
        "toolCalls": [{"name": "get_weather", "success": True, "durationMs": 3, "params": {"city": "Lisbon"}}],
        "usage": {"inputTokens": 50, "outputTokens": 9},
    }
).encode()
VERDICT = json.dumps({"score": 0.9, "hits": ["names the city"], "misses": [], "reasoning": "It answers the question."})
JUDGEMENT = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": VERDICT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 30, "total_tokens": 430},
    }
).encode()


def reply(body: bytes) -> bytes:
    """Build a complete HTTP response with this JSON body."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class Agent(asyncio.Protocol):
    """Answers every request of a connection, one after the other."""

    def __init__(self, latency_s: float, answer: bytes) -> None:
        self._latency_s = latency_s
        self._answer = answer
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer once the whole request is there."""
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self._received = body[length:]
        if self._latency_s:
            asyncio.get_running_loop().call_later(self._latency_s, self._reply)
        else:
            self._reply()

    def _reply(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(self._answer)


async def main(latency_ms: float, body: bytes) -> None:
    """Serve until standard input ends."""
    answer = reply(body)
    server = await asyncio.get_running_loop().create_server(lambda: Agent(latency_ms / 1000, answer), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/chat", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), JUDGEMENT if "judge" in sys.argv else ANSWER))
