"""A program that holds a conversation: one process, a line of JSON in and a line of JSON out for each turn."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Final

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


class ProgramEndError(Exception):
    """The program ended, or closed its output, before its response; `code` is None if it still runs."""

    def __init__(self, what: str, code: int | None) -> None:
        super().__init__(what)
        self.code = code


class LineProgram:
    """A running program that responds line by line; blank lines do not count."""

    process: InteractiveProgram

    def __init__(self, turn_s: float | None, whole_s: float | None) -> None:
        """Set the limits: seconds of each turn, and of all together; None for no limit."""
        self._turn_s = inf if turn_s is None else turn_s
        self._whole_s = inf if whole_s is None else whole_s
        self._spent_s = 0.0
        self._lines: list[bytes] = []
        self._rest = bytearray()
        """The beginning of a line that has no end yet."""
        self._is_too_long = False
        self._has_news = asyncio.Event()
        """There is a line, or there can be none any more because it is too long."""

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
            self._is_too_long = True
            self._rest.clear()
        if self._lines or self._is_too_long:
            self._has_news.set()

    async def exchange_lines(self, message: str, session: str) -> tuple[bytes, float]:
        """Send a message, and return the printed line and its milliseconds. Raises TargetError and ProgramEndError."""
        if (line := self._take_line()) is not None:
            what = f"the command printed a line before it got the message: it begins {format_excerpt(line)}"
            raise TargetError(what, fault=TargetFault.MALFORMED, hint=LINE_HINT)
        left_s, began = self._whole_s - self._spent_s, time.perf_counter()
        self.process.write(json.dumps({"message": message, "session": session}).encode() + b"\n")
        try:
            async with asyncio.timeout(min(self._turn_s, left_s)):
                await self._wait_for_news()
        except TimeoutError as error:
            raise self._build_late_error(is_whole=left_s < self._turn_s) from error
        finally:
            seconds = time.perf_counter() - began
            self._spent_s += seconds
        if not self._has_news.is_set():
            raise self._build_end_error()
        with pause_case_clock():
            await asyncio.sleep(_SECOND_LINE_S)
        line = self._take_line()
        assert line is not None  # there is news
        return line, seconds * 1000

    def _take_line(self) -> bytes | None:
        """Take the only line that is complete, or None. Raises TargetError for several lines, and one too long."""
        if self._is_too_long:
            what = f"the response is more than {MAX_OUTPUT:,} bytes in one line"
            raise TargetError(what, fault=TargetFault.MALFORMED)
        lines, self._lines = self._lines, []
        self._has_news.clear()
        if len(lines) > 1:
            second = format_excerpt(lines[1])
            what = f"the command printed more than one line for one message: the second begins {second}"
            raise TargetError(what, fault=TargetFault.MALFORMED, hint=LINE_HINT)
        return lines[0] if lines else None

    async def _wait_for_news(self) -> None:
        """Wait for a line, or until none can come any more."""
        ends = self.process.output_closed, self.process.ended
        tasks = [asyncio.ensure_future(event.wait()) for event in (self._has_news, *ends)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not self._has_news.is_set():
                await asyncio.wait(tasks[1:], timeout=_FINAL_OUTPUT_S)
        finally:
            for task in tasks:
                task.cancel()

    def _build_late_error(self, *, is_whole: bool) -> TargetError:
        if is_whole:
            what, hint = f"the conversation took longer than {self._whole_s:g} s (conversationTimeoutSeconds)", None
        else:
            what, hint = f"the command printed no line within {self._turn_s:g} s", LINE_HINT
        return TargetError(f"{what}{self._format_tail()}", fault=TargetFault.LATE, retryable=True, hint=hint)

    def _build_end_error(self) -> ProgramEndError:
        how, where = self.process.ending or "closed its output", "before it printed a response"
        if self._rest:
            where = f"in the middle of a line, which begins {format_excerpt(bytes(self._rest))}"
        return ProgramEndError(f"the command {how} {where}{self._format_tail()}", self.process.code)

    def _format_tail(self) -> str:
        words = self.process.format_last_line(MAX_QUOTED)
        return f": {words}" if words else ""


@asynccontextmanager
async def open_line_program(
    command: Command, turn_s: float | None, whole_s: float | None
) -> AsyncIterator[LineProgram]:
    """Start a program, and end it with all that it started. Raises ProcessError when it cannot be started."""
    program = LineProgram(turn_s, whole_s)
    async with start_interactive(replace(command, watch=program.receive, max_output=0)) as program.process:
        yield program
