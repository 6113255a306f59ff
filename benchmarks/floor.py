"""The floor: the same requests with nothing but an HTTP library, so that what is ours can be told from what is not.

Usage: floor.py URL REQUESTS CONCURRENCY [httpx|aiohttp]. Prints wall and processor seconds of the requests alone.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp

Post = Callable[[str, dict[str, str]], Awaitable[bytes]]


@asynccontextmanager
async def over_aiohttp(concurrency: int) -> AsyncIterator[Post]:
    """Aiohttp's own client."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def post(url: str, body: dict[str, str]) -> bytes:
            async with session.post(url, json=body) as answer:
                return await answer.read()

        yield post


@asynccontextmanager
async def over_httpx(concurrency: int) -> AsyncIterator[Post]:
    """Httpx's client on aiohttp's transport."""
    import httpx
    from httpx_aiohttp import AiohttpTransport

    def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency))

    async with httpx.AsyncClient(transport=AiohttpTransport(verify=False, client=session), timeout=None) as client:

        async def post(url: str, body: dict[str, str]) -> bytes:
            return (await client.post(url, json=body)).content

        yield post


CLIENTS = {"aiohttp": over_aiohttp, "httpx": over_httpx}


async def main(url: str, requests: int, concurrency: int, client: str = "httpx") -> None:
    """Send the requests with so many workers."""
    numbers = iter(range(requests))
    async with CLIENTS[client](concurrency) as post:

        async def worker() -> None:
            for number in numbers:
                json.loads(await post(url, {"message": f"What is the weather in Lisbon? ({number})"}))

        wall, processor = time.perf_counter(), time.process_time()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(json.dumps({"wall": wall, "processor": processor}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]))
