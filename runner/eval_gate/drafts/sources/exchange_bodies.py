"""Bodies of recorded exchanges: bounded copies, and the response that a target's settings find in one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from aiohttp import StreamReader
from multidict import CIMultiDictProxy

from eval_gate.drafts.sources.user_prompt import PromptError
from eval_gate.model.conversation import Response
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.connection import ResponseHead
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.response.stream import BodyReader
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.excerpt import format_excerpt
from eval_gate.text.untrusted.http_response import Decompressor


class ResponseParser:
    """Parser of whole responses as a target describes them."""

    def __init__(self, settings: HttpSettings, redact: Redactor) -> None:
        self._redact = redact
        self._reader = BodyReader(settings, redact.mask_bytes)
        self._max_bytes = settings.max_response_bytes

    def parse(self, head: ResponseHead, body: bytes, duration_ms: float) -> Response:
        """Parse a response without compression. `duration_ms` is in milliseconds. Raises TargetError."""
        if len(body) > self._max_bytes:
            what = f"the response is larger than {self._max_bytes:,} bytes"
            raise TargetError(what, fault=TargetFault.MALFORMED)
        masked = self._redact.mask_bytes(body)
        if not head.is_success:
            said = f": {format_excerpt(masked)}" if masked.strip() else ""
            raise TargetError(f"agent error: HTTP {head.status} {head.reason}{said}", fault=TargetFault.REFUSED)
        return self._reader.read(masked, duration_ms, head.charset)


class BodyCopy:
    """Copy of a body, up to one byte more than a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def add(self, piece: bytes) -> None:
        """Add the next bytes, as far as there is room."""
        self._data += piece[: self._limit + 1 - len(self._data)]

    async def iter_copied(self, stream: StreamReader) -> AsyncIterator[bytes]:
        """Yield all pieces of a stream, and keep a copy."""
        async for piece in stream.iter_any():
            self.add(piece)
            yield piece

    async def add_rest(self, stream: StreamReader) -> None:
        """Add what is left of a stream, as far as there is room."""
        while len(self._data) <= self._limit and (piece := await stream.readany()):
            self.add(piece)

    def read(self, headers: CIMultiDictProxy[str]) -> bytes:
        """Return the body of a request without compression. Raises PromptError and DecompressionError."""
        data = self.read_decoded(headers.getall("content-encoding", ()))
        if len(data) > self._limit:
            raise PromptError(f"the request is larger than {self._limit:,} bytes")
        return data

    def read_decoded(self, encodings: Sequence[str]) -> bytes:
        """Return the body without compression, up to some bytes more than the limit. Raises DecompressionError."""
        unpacker, found = Decompressor(encodings), bytearray()
        for piece in unpacker.iter_pieces(bytes(self._data)):
            found += piece
            if len(found) > self._limit:
                break
        return bytes(found)
