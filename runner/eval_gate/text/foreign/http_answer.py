"""An HTTP answer held within bounds before a library reads it: those unpack without end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from eval_gate.model.limits import MAX_ANSWER_BYTES
from eval_gate.text.foreign.json import ForeignJsonError, refuse_too_much
from eval_gate.text.foreign.unpacking import PackingError, Unpacker

if TYPE_CHECKING:
    import httpx2

_KEPT: Final = 1_000
"""Bytes of an answer that is not read, for a person."""


class UnreadableAnswerError(ValueError):
    """The answer will not be read; the message says why, as the end of a sentence about it, which `begins` so."""

    def __init__(self, said: str, begins: bytes = b"") -> None:
        super().__init__(said)
        self.begins = begins


async def read_bounded(response: httpx2.Response) -> None:
    """For a client's `response` hook: the answer read whole and put back in its place. A stream of events stays one.

    Raises UnreadableAnswerError for an answer that is too large, holds too many values, or is packed oddly; where it is
    a stream of events, this is raised in the middle of it.
    """
    import httpx2

    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    pieces = _pieces(stream, response.headers.get_list("content-encoding"))
    for name in ("content-encoding", "content-length"):
        response.headers.pop(name, None)
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _events(stream, pieces)
        return
    body = bytearray()  # no list of pieces: a server may send single bytes, each an object of fifty
    try:
        async for piece in pieces:
            body += piece
        refuse_too_much(bytes(body))
    except ForeignJsonError as error:
        raise UnreadableAnswerError(str(error), bytes(body[:_KEPT])) from error
    finally:
        await stream.aclose()
    response.stream = httpx2.ByteStream(bytes(body))


async def _pieces(stream: httpx2.AsyncByteStream, encodings: list[str]) -> AsyncIterator[bytes]:
    size, begins = 0, b""
    try:
        unpacker = Unpacker(encodings)
        async for chunk in stream:
            for piece in unpacker.pieces(chunk):
                size, begins = size + len(piece), begins or piece[:_KEPT]
                if size > MAX_ANSWER_BYTES:
                    raise UnreadableAnswerError(f"is larger than {MAX_ANSWER_BYTES:,} bytes", begins)
                yield piece
    except PackingError as error:
        raise UnreadableAnswerError(str(error), begins) from error


def _events(stream: httpx2.AsyncByteStream, pieces: AsyncIterator[bytes]) -> httpx2.AsyncByteStream:
    import httpx2

    class Events(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return pieces

        async def aclose(self) -> None:
            await stream.aclose()

    return Events()
