"""Decompress HTTP bodies in bounded pieces, to withstand decompression bombs.

Nobody is asked for a compressed answer here, so little is understood: one layer, of gzip or deflate.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from eval_gate.text.quoting import quote_value

PIECE_BYTES: Final = 65_536
"""Bytes that are decompressed between two checks of the limit."""
_GZIP: Final = zlib.MAX_WBITS | 16


class DecompressionError(ValueError):
    """Bytes that cannot or must not be decompressed; the message is a predicate without a subject."""


class Decompressor:
    """Decompressor for the `content-encoding` of a response; without one, bytes pass unchanged."""

    def __init__(self, encodings: Iterable[str]) -> None:
        """Take the values of all `content-encoding` headers. Raises DecompressionError."""
        named = [one.strip() for value in encodings for one in value.split(",")]
        layers = [one for one in named if one.lower() not in {"", "identity"}]
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
