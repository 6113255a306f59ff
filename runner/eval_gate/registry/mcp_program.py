"""An MCP server that is started for its list of tools: a program, spoken with over its standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING, Final

from eval_gate.model import limits
from eval_gate.process.captured import Mask
from eval_gate.process.dialogue import TalkingProgram
from eval_gate.text.foreign.json import ForeignJsonError, refuse_too_much
from eval_gate.text.foreign.quote import quote

if TYPE_CHECKING:
    from types import TracebackType

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

MAX_BYTES: Final = limits.MCP_BYTES
MAX_LINES: Final = limits.MCP_LINES
_QUOTED: Final = 200


class MessageLines:
    """The program's output as messages, of which the protocol has one a line, and messages as its input.

    A transport of MCP's own client. A line that is no message is passed over, as other clients do it, and remembered:
    when nothing comes of it, it is why.
    """

    def __init__(self, mask: Mask | None = None) -> None:
        """`mask` takes secrets out of what is remembered."""
        import anyio

        self._send: MemoryObjectSendStream[SessionMessage | Exception]
        self._receive: MemoryObjectReceiveStream[SessionMessage | Exception]
        self._send, self._receive = anyio.create_memory_object_stream(math.inf)
        self._mask = mask
        self._rest = bytearray()
        self._size = 0
        self._lines = 0
        self._program: TalkingProgram | None = None
        self._until_end: asyncio.Task[None] | None = None
        self.odd: str | None = None
        """How the first line began that is no message."""
        self.too_much: str | None = None
        """Why nothing more is read."""

    def serve(self, program: TalkingProgram) -> None:
        """From now on this is the program."""
        self._program = program

    def heard(self, data: bytes) -> None:
        """What the program prints, as it comes."""
        self._size += len(data)
        if self._size > MAX_BYTES:
            self._give_up(f"it printed more than {MAX_BYTES:,} bytes")
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self.too_much:
                break
            self._message(bytes(self._rest) + line)
            self._rest.clear()
        if not self.too_much:
            self._rest += rest

    def _give_up(self, why: str) -> None:
        self.too_much = self.too_much or why
        self._rest.clear()
        self._send.close()

    async def send(self, item: SessionMessage, /) -> None:
        """One message to the program."""
        assert self._program is not None
        self._program.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async def aclose(self) -> None:
        """Do nothing: the program's input is closed with the program."""

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[SessionMessage | Exception], _Input]:
        self._until_end = asyncio.create_task(self._close_at_the_end())
        return self._receive, _Input(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._until_end is not None:
            self._until_end.cancel()
        self.close()

    def close(self) -> None:
        """Nothing more is said or read."""
        self._send.close()
        self._receive.close()

    async def _close_at_the_end(self) -> None:
        assert self._program is not None
        await self._program.ended.wait()
        await asyncio.sleep(_LAST_WORDS_S)
        self._send.close()

    def _message(self, line: bytes) -> None:
        from mcp import types
        from mcp.shared.message import SessionMessage

        if not line.strip():
            return
        self._lines += 1
        if self._lines > MAX_LINES:
            self._give_up(f"it printed more than {MAX_LINES:,} lines")
            return
        try:
            refuse_too_much(line)
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ForeignJsonError as error:
            self._give_up(f"it sent a message that {error}")
        except ValueError:
            if self.odd is None:
                self.odd = quote((self._mask(line) if self._mask else line)[:_QUOTED])
        else:
            import anyio

            with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._send.send_nowait(SessionMessage(message))


_LAST_WORDS_S: Final = 0.2
"""Seconds in which what a program printed before its end is read."""


class _Input:
    """The program's input as the client's stream for messages."""

    def __init__(self, lines: MessageLines) -> None:
        self.send = lines.send
        self.aclose = lines.aclose

    async def __aenter__(self) -> _Input:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing."""
