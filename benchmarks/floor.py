"""The floor: the same requests with nothing but the HTTP library, so that what is ours can be told from what is not.

Usage: floor.py URL REQUESTS CONCURRENCY. Prints wall and processor seconds of the requests alone.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport


async def main(url: str, requests: int, concurrency: int) -> None:
    """Send the requests with so many workers."""

    def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency))

    numbers = iter(range(requests))
    async with httpx.AsyncClient(transport=AiohttpTransport(verify=False, client=session), timeout=None) as client:

        async def worker() -> None:
            for number in numbers:
                answer = await client.post(url, json={"message": f"What is the weather in Lisbon? ({number})"})
                json.loads(answer.content)

        wall, processor = time.perf_counter(), time.process_time()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(json.dumps({"wall": wall, "processor": processor}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
