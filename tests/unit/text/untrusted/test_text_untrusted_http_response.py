"""An answer's bytes, counted before a library has them."""

import asyncio
import gzip
from collections.abc import AsyncIterator

import httpx2
import pytest

from eval_gate.text.untrusted import http_response
from eval_gate.text.untrusted.http_response import UnreadableResponseError, read_bounded_response

MOST = 8


class Pieces(httpx2.AsyncByteStream):
    """A body that comes in these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def read(*pieces: bytes, kind: str = "application/json") -> bytes:
    async def answered() -> bytes:
        response = httpx2.Response(200, headers={"content-type": kind, "content-length": "3"}, stream=Pieces(*pieces))
        await read_bounded_response(response)
        return await response.aread()

    return asyncio.run(answered())


def test_bounded__compressed_answer__is_unpacked_once_and_says_so() -> None:
    packed = gzip.compress(b"[1, 2]")
    headers = {"content-encoding": "gzip", "content-length": str(len(packed))}

    async def answered() -> httpx2.Response:
        response = httpx2.Response(200, headers=headers, stream=Pieces(packed))
        await read_bounded_response(response)
        await response.aread()
        return response

    response = asyncio.run(answered())
    assert response.json() == [1, 2]
    assert not headers.keys() & {*response.headers}


@pytest.fixture(autouse=True)
def _most(monkeypatch) -> None:
    monkeypatch.setattr(http_response, "MAX_RESPONSE_BYTES", MOST)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_bounded__as_large_as_may_be__is_there_whole(kind) -> None:
    assert read(b"1234", b"5678", kind=kind) == b"12345678"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_bounded__a_byte_more__is_refused_with_how_it_begins(kind) -> None:
    with pytest.raises(UnreadableResponseError, match="is larger than 8 bytes") as raised:
        read(b"1234", b"56789", kind=kind)
    assert raised.value.begins == b"1234"
