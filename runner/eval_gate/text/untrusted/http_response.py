"""Bound the size of HTTP bodies before a library parses them, to withstand decompression bombs.

No request here asks for compression, so one layer of gzip or deflate is all that is understood.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from eval_gate.model.limits import MAX_RESPONSE_BYTES
from eval_gate.text.quoting import quote_value
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, check_json_size

if TYPE_CHECKING:
    import httpx2

PIECE_BYTES: Final = 65_536
"""Bytes that are decompressed between two checks of the limit."""
_GZIP: Final = zlib.MAX_WBITS | 16
_EXCERPT_BYTES: Final = 1_000
"""Bytes of a refused response that an error shows."""


class DecompressionError(ValueError):
    """Bytes that cannot or must not be decompressed; the message is a predicate without a subject."""


class Decompressor:
    """Decompressor for the `content-encoding` of a response; without one, bytes pass unchanged."""

    def __init__(self, encodings: Iterable[str]) -> None:
        """Take the values of all `content-encoding` headers. Raises DecompressionError."""
        names = [one.strip() for value in encodings for one in value.split(",")]
        layers = [one for one in names if one.lower() not in {"", "identity"}]
        if len(layers) > 1:
            raise DecompressionError(f"is compressed {len(layers)} times, which is not supported")
        if layers and layers[0].lower() not in {"gzip", "x-gzip", "deflate"}:
            raise DecompressionError(f"is compressed as {quote_value(layers[0])}, which was not requested")
        self._kind = layers[0].lower() if layers else None
        if self._kind is not None:
            self._object = zlib.decompressobj(zlib.MAX_WBITS if self._kind == "deflate" else _GZIP)
        self._begun = False

    def iter_pieces(self, data: bytes) -> Iterator[bytes]:
        """Decompress the next bytes, and yield them in pieces of bounded size. Raises DecompressionError."""
        if self._kind is None:
            yield data
            return
        try:
            while not self._object.eof:
                piece = self._decompress_piece(data)
                data = self._object.unconsumed_tail
                if piece:
                    yield piece
                if not data and len(piece) < PIECE_BYTES:
                    return
        except zlib.error as error:
            raise DecompressionError(f"does not match its content encoding: {error}") from error

    def _decompress_piece(self, data: bytes) -> bytes:
        try:
            return self._object.decompress(data, PIECE_BYTES)
        except zlib.error:
            if self._begun or self._kind != "deflate":
                raise
            self._object = zlib.decompressobj(-zlib.MAX_WBITS)  # many servers mean the bare stream by this name
            return self._object.decompress(data, PIECE_BYTES)
        finally:
            self._begun = True


class UnreadableResponseError(ValueError):
    """A response that is refused; the message ends a sentence about it, `begins` is its start."""

    def __init__(self, message: str, begins: bytes = b"") -> None:
        super().__init__(message)
        self.begins = begins


async def read_bounded_response(response: httpx2.Response) -> None:
    """Read a response within limits and put its body back, as a client's `response` hook. A stream of events stays one.

    Raises UnreadableResponseError for a response that is too large, holds too many values, or is compressed in another
    way; a stream of events raises it while it is read.
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
                if size > MAX_RESPONSE_BYTES:
                    raise UnreadableResponseError(f"is larger than {MAX_RESPONSE_BYTES:,} bytes", begins)
                yield piece
    except DecompressionError as error:
        raise UnreadableResponseError(str(error), begins) from error


def _wrap_event_stream(stream: httpx2.AsyncByteStream, pieces: AsyncIterator[bytes]) -> httpx2.AsyncByteStream:
    import httpx2

    class EventStream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return pieces

        async def aclose(self) -> None:
            await stream.aclose()

    return EventStream()
