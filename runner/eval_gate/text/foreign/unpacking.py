"""Compressed bytes unpacked piece by piece: two thousand bytes can stand for gigabytes, and for more in a second layer.

Nobody is asked for a compressed answer here, so little is understood: one layer, of gzip or deflate.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from eval_gate.text.quoting import quoted

PIECE: Final = 65_536
"""Bytes that are unpacked before somebody may say that it is enough."""
_GZIP: Final = zlib.MAX_WBITS | 16


class PackingError(ValueError):
    """The bytes cannot be unpacked, or will not be; the message says why, without a subject."""


class Unpacker:
    """What `content-encoding` names, undone. An answer without such a header passes as it is."""

    def __init__(self, encodings: Iterable[str]) -> None:
        """`encodings`: the values of all `content-encoding` headers. Raises PackingError."""
        named = [one.strip() for value in encodings for one in value.split(",")]
        layers = [one for one in named if one.lower() not in {"", "identity"}]
        if len(layers) > 1:
            raise PackingError(f"is compressed {len(layers)} times over, which is not read")
        if layers and layers[0].lower() not in {"gzip", "x-gzip", "deflate"}:
            raise PackingError(f"is compressed as {quoted(layers[0])}, which nobody asked for")
        self._kind = layers[0].lower() if layers else None
        if self._kind is not None:
            self._object = zlib.decompressobj(zlib.MAX_WBITS if self._kind == "deflate" else _GZIP)
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """The next bytes unpacked, in pieces of bounded size. Raises PackingError."""
        if self._kind is None:
            yield data
            return
        try:
            while not self._object.eof:
                piece = self._unpack(data)
                data = self._object.unconsumed_tail
                if piece:
                    yield piece
                if not data and len(piece) < PIECE:
                    return
        except zlib.error as error:
            raise PackingError(f"is not compressed as it says: {error}") from error

    def _unpack(self, data: bytes) -> bytes:
        try:
            return self._object.decompress(data, PIECE)
        except zlib.error:
            if self._begun or self._kind != "deflate":
                raise
            self._object = zlib.decompressobj(-zlib.MAX_WBITS)  # many servers mean the bare stream by this name
            return self._object.decompress(data, PIECE)
        finally:
            self._begun = True
