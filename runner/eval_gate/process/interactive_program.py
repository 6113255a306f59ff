"""Run a program interactively: write to its input while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import ExitStack

from eval_gate.process.child import ChildProcess
from eval_gate.process.identity import Identity
from eval_gate.process.pipes import ProgramInput, ProgramOutput
from eval_gate.process.run import GRACE_S, Command, drain_outputs, end_program, start_program, wait_within


class StreamingInput(ProgramInput):
    """Standard input of a program that stays open for later writes."""

    def __init__(self) -> None:
        super().__init__(b"")
        self._waiting: deque[memoryview] = deque()
        self._armed = False

    def open(self, identity: Identity | None, theirs: ExitStack) -> int:
        """Open the pipe and return the end that the program reads from; `theirs` closes it. Raises OSError."""
        return self._open_pipe(identity, theirs)[0]

    def write(self, data: bytes) -> None:
        """Have the program read this, after what was written before; nothing once the input is closed."""
        if self._sink is not None and data:
            self._waiting.append(memoryview(data))
            if not self._armed:
                self._armed = True
                self._loop.add_writer(self._sink, self._write_pending)

    def close(self) -> None:
        """Close the input, so that the program reads the end of the stream.

        Text that was not written yet is discarded.
        """
        self._waiting.clear()
        super().close()

    def _write_pending(self) -> None:
        if self._sink is None:
            return
        try:
            while self._waiting:
                written = os.write(self._sink, self._waiting[0])
                rest = self._waiting.popleft()[written:]
                if rest:
                    self._waiting.appendleft(rest)
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._waiting.clear()
        self._armed = False
        self._loop.remove_writer(self._sink)


class InteractiveProgram:
    """A running program that takes input; `ended` is set when it has exited."""

    def __init__(self, command: Command, child: ChildProcess, inlet: StreamingInput, errors: ProgramOutput) -> None:
        self._command = command
        self._child = child
        self._errors = errors
        self.write = inlet.write
        self.ended: asyncio.Event = child.exited

    @property
    def ending(self) -> str | None:
        """How it ended, as the rest of a sentence about it; None while it runs."""
        if not self.ended.is_set():
            return None
        code = self._child.code
        return f"exited with code {code}" if code >= 0 else f"was ended by signal {-code}"

    def format_last_line(self, limit: int) -> str:
        """Return the end of the program's stderr as one line of at most `limit` characters, secrets masked."""
        said = self._errors.get_output()
        return (said.apply_mask(self._command.mask) if self._command.mask else said).format_last_line(limit)


@contextlib.asynccontextmanager
async def start_interactive(command: Command) -> AsyncIterator[InteractiveProgram]:
    """Start the program, whose output goes to the command's `watch`. Raises ProcessError when it cannot be started.

    At the end it is told by the end of its input, then asked, then ended by force, with all that it started.
    """
    inlet, output, errors = (
        StreamingInput(),
        ProgramOutput(command.max_output, command.watch),
        ProgramOutput(command.max_errors),
    )
    with ExitStack() as ours:
        child = start_program(command, (inlet, output, errors), ours)
        try:
            yield InteractiveProgram(command, child, inlet, errors)
        finally:
            inlet.close()
            try:
                await wait_within(GRACE_S, child.exited)
            finally:
                await end_program(child)
        await drain_outputs(output, errors)
