"""A program that holds a conversation: one process, a line of JSON in and a line of JSON out for each turn."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

from eval_gate.process.run import Command, InteractiveProgram, start_interactive
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command.call import MAX_OUTPUT, MAX_QUOTED
from eval_gate.targets.deadline import pause_case_clock
from eval_gate.text.untrusted.excerpt import format_excerpt

_SECOND_LINE_S: Final = 0.05
"""Seconds in which a second line is noticed that a program prints right after the first one."""
_FINAL_OUTPUT_S: Final = 1.0
"""Seconds in which the last output of a program that ended is read: one that left its group may hold the pipe open."""
LINE_HINT: Final = (
    "print one line of JSON for each line that comes in, and nothing else: logs belong on stderr. Flush each line, in"
    " Python with print(…, flush=True)"
)


LimitsS: TypeAlias = tuple[float | None, float | None]
"""Seconds of each turn, and of all turns of a conversation together; None for no limit."""


class ProgramEndError(Exception):
    """The program ended, or closed its output, before its response; `code` is None if it still runs."""

    def __init__(self, what: str, code: int | None) -> None:
        super().__init__(what)
        self.code = code


class LineReader:
    """Reader of the lines that a program prints; blank lines do not count."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._lines: list[bytes] = []
        self.has_news = asyncio.Event()
        """There is a line, or there can be none any more because it is too long."""
        self.is_too_long = False

    @property
    def rest(self) -> bytes:
        """The beginning of a line that has no end yet."""
        return bytes(self._rest)

    def receive(self, data: bytes) -> None:
        """Receive a part of the output. A second line is one too many, and further ones do not matter."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = bytes(self._rest + end)
            self._rest.clear()
            if line.strip() and len(self._lines) < 2:
                self._lines.append(line)
        self._rest += rest
        if any(len(line) > MAX_OUTPUT for line in (*self._lines, self._rest)):
            self.is_too_long = True
            self._rest.clear()
        if self._lines or self.is_too_long:
            self.has_news.set()

    def take_lines(self) -> list[bytes]:
        """Take the lines that are complete."""
        lines, self._lines = self._lines, []
        self.has_news.clear()
        return lines


class LineProgram:
    """A running program that responds line by line."""

    def __init__(self, program: InteractiveProgram, reader: LineReader, limits_s: LimitsS) -> None:
        self._program = program
        self._reader = reader
        self._turn_s, self._whole_s = limits_s
        self._spent_s = 0.0

    async def exchange_lines(self, message: str, session: str) -> tuple[bytes, float]:
        """Send a message, and return the line that the program prints, and the milliseconds until then.

        Raises TargetError, and ProgramEndError if no line can come any more.
        """
        if (line := self._take_line()) is not None:
            what = f"the command printed a line before it got the message: it begins {format_excerpt(line)}"
            raise TargetError(what, fault=TargetFault.MALFORMED, hint=LINE_HINT)
        limit_s, is_whole = self._choose_limit()
        began = time.perf_counter()
        self._program.write(json.dumps({"message": message, "session": session}).encode() + b"\n")
        try:
            async with asyncio.timeout(limit_s):
                await self._wait_for_news()
        except TimeoutError as error:
            raise self._build_late_error(is_whole=is_whole) from error
        finally:
            seconds = time.perf_counter() - began
            self._spent_s += seconds
        if not self._reader.has_news.is_set():
            raise self._build_end_error()
        with pause_case_clock():
            await asyncio.sleep(_SECOND_LINE_S)
        line = self._take_line()
        assert line is not None  # there is news
        return line, seconds * 1000

    def _take_line(self) -> bytes | None:
        """Take the only line that is complete, or None. Raises TargetError for several lines, and one too long."""
        if self._reader.is_too_long:
            what = f"the response is more than {MAX_OUTPUT:,} bytes in one line"
            raise TargetError(what, fault=TargetFault.MALFORMED)
        lines = self._reader.take_lines()
        if len(lines) > 1:
            what = (
                f"the command printed more than one line for one message: the second begins {format_excerpt(lines[1])}"
            )
            raise TargetError(what, fault=TargetFault.MALFORMED, hint=LINE_HINT)
        return lines[0] if lines else None

    def _choose_limit(self) -> tuple[float | None, bool]:
        """Choose the seconds for this turn, and whether they are those that are left of the whole conversation."""
        if self._whole_s is None:
            return self._turn_s, False
        left_s = self._whole_s - self._spent_s
        return (left_s, True) if self._turn_s is None or left_s < self._turn_s else (self._turn_s, False)

    async def _wait_for_news(self) -> None:
        """Wait for a line, or until none can come any more."""
        program = self._program
        await _wait_for_first(self._reader.has_news.wait(), program.output_closed.wait(), program.ended.wait())
        if not self._reader.has_news.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_FINAL_OUTPUT_S):
                    await asyncio.gather(program.output_closed.wait(), program.ended.wait())

    def _build_late_error(self, *, is_whole: bool) -> TargetError:
        if is_whole:
            what, hint = f"the conversation took longer than {self._whole_s:g} s (conversationTimeoutSeconds)", None
        else:
            what, hint = f"the command printed no line within {self._turn_s:g} s", LINE_HINT
        return TargetError(f"{what}{self._format_tail()}", fault=TargetFault.LATE, retryable=True, hint=hint)

    def _build_end_error(self) -> ProgramEndError:
        program, rest = self._program, self._reader.rest
        how = program.ending or "closed its output"
        where = (
            f"in the middle of a line, which begins {format_excerpt(rest)}" if rest else "before it printed a response"
        )
        return ProgramEndError(f"the command {how} {where}{self._format_tail()}", program.code)

    def _format_tail(self) -> str:
        words = self._program.format_last_line(MAX_QUOTED)
        return f": {words}" if words else ""


@asynccontextmanager
async def open_line_program(command: Command, limits_s: LimitsS) -> AsyncIterator[LineProgram]:
    """Start a program, and end it with all that it started. Raises ProcessError when it cannot be started."""
    reader = LineReader()
    async with start_interactive(replace(command, watch=reader.receive, max_output=0)) as program:
        yield LineProgram(program, reader, limits_s)


async def _wait_for_first(*waits: Awaitable[object]) -> None:
    tasks = [asyncio.ensure_future(one) for one in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
