"""Bound the size of an HTTP response before a library decompresses and parses it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from eval_gate.model.limits import MAX_ANSWER_BYTES
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, check_json_size
from eval_gate.text.untrusted.decompression import DecompressionError, Decompressor

if TYPE_CHECKING:
    import httpx2

_EXCERPT_BYTES: Final = 1_000
"""Bytes of an answer that is not read, for a person."""


class UnreadableResponseError(ValueError):
    """A response that is refused; the message ends a sentence about it, `begins` is its start."""

    def __init__(self, said: str, begins: bytes = b"") -> None:
        super().__init__(said)
        self.begins = begins


async def read_bounded_response(response: httpx2.Response) -> None:
    """For a client's `response` hook: the answer read whole and put back in its place. A stream of events stays one.

    Raises UnreadableAnswerError for an answer that is too large, holds too many values, or is packed oddly; where it is
    a stream of events, this is raised in the middle of it.
    """
    import httpx2

    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    pieces = _iter_decompressed(stream, response.headers.get_list("content-encoding"))
    for name in ("content-encoding", "content-length"):
        response.headers.pop(name, None)
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _wrap_event_stream(stream, pieces)
        return
    body = bytearray()  # no list of pieces: a server may send single bytes, each an object of fifty
    try:
        async for piece in pieces:
            body += piece
        check_json_size(bytes(body))
    except UntrustedJsonError as error:
        raise UnreadableResponseError(str(error), bytes(body[:_EXCERPT_BYTES])) from error
    finally:
        await stream.aclose()
    response.stream = httpx2.ByteStream(bytes(body))


async def _iter_decompressed(stream: httpx2.AsyncByteStream, encodings: list[str]) -> AsyncIterator[bytes]:
    size, begins = 0, b""
    try:
        unpacker = Decompressor(encodings)
        async for chunk in stream:
            for piece in unpacker.iter_pieces(chunk):
                size, begins = size + len(piece), begins or piece[:_EXCERPT_BYTES]
                if size > MAX_ANSWER_BYTES:
                    raise UnreadableResponseError(f"is larger than {MAX_ANSWER_BYTES:,} bytes", begins)
                yield piece
    except DecompressionError as error:
        raise UnreadableResponseError(str(error), begins) from error


def _wrap_event_stream(stream: httpx2.AsyncByteStream, pieces: AsyncIterator[bytes]) -> httpx2.AsyncByteStream:
    import httpx2

    class Events(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return pieces

        async def aclose(self) -> None:
            await stream.aclose()

    return Events()
