"""Run a program in its own process group, with limits of time and output: to its end, or with input while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

from eval_gate.process.captured_output import CapturedOutput, Mask
from eval_gate.process.child import ChildProcess
from eval_gate.process.identity import UNPRIVILEGED, Identity, find_identity
from eval_gate.process.pipes import ProgramInput, ProgramOutput
from eval_gate.process.signals import defer_signals
from eval_gate.struct import FrozenStruct

__all__ = ["CapturedOutput", "Command", "FinishedProgram", "ProcessError", "StartRefusal", "run"]

GRACE_S: Final = 2.0
"""Seconds between the request to end and the end by force."""
DRAIN_S: Final = 1.0
"""Seconds for the pipes after the end of the group: a process that left the group may hold them for ever."""

CAN_RUN_PROGRAMS: Final = hasattr(os, "killpg")
UNSUPPORTED_SYSTEM: Final = "commands run on Linux and macOS only: this system has no process groups"
_PROGRAM_ERRORS: Final = {errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.ELOOP, errno.EISDIR}


class StartRefusal(StrEnum):
    """Reason why a program could not be started, as far as it changes the remedy."""

    PROGRAM = "program"
    """The program is missing or not executable."""
    FOLDER = "folder"
    """The working directory is missing."""
    TOO_LONG = "too-long"
    """An argument, or all of them, are more than the system passes on (128 KiB for one on Linux)."""
    TEXT = "text"
    """An argument or variable holds a NUL or half a surrogate pair."""
    FILE = "file"
    """A file that the program wrote cannot be read."""
    SYSTEM = "system"
    """The system has no room for another process, or refuses the user."""


class ProcessError(Exception):
    """A program that could not be started; the message says why."""

    def __init__(self, message: str, refusal: StartRefusal = StartRefusal.SYSTEM) -> None:
        super().__init__(message)
        self.message = message
        self.refusal = refusal


class Command(FrozenStruct):
    """A program to run, its environment and its limits.

    `line` is a string for `/bin/sh -c`, or a tuple of a program and its arguments. `environment` is the complete
    environment of the program. Without `stdin` it has no input. `max_output` and `max_errors` are the maximum stored
    bytes of stdout and stderr; the program is not stopped for exceeding them, unless `end_when_cut`. `watch` receives
    all of stdout as it arrives.
    """

    line: str | tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    stdin: bytes | None = None
    timeout_s: float | None = None
    max_output: int = 8_000_000
    max_errors: int = 64_000
    end_when_cut: bool = False
    watch: Callable[[bytes], object] | None = None
    mask: Mask | None = None
    """Takes secrets out of what was printed, before anybody sees it; `watch` sees it as it comes."""


class FinishedProgram(FrozenStruct):
    """Result of a program: exit code (negative for a signal), output and duration.

    `seconds` is the time from the start to the exit of the program itself.
    """

    code: int
    stdout: CapturedOutput
    stderr: CapturedOutput
    seconds: float
    timed_out: bool

    @property
    def ending(self) -> str:
        """How it ended, as the rest of a sentence about it."""
        return _describe_ending(self.code)


def _describe_ending(code: int) -> str:
    return f"exited with code {code}" if code >= 0 else f"was ended by signal {-code}"


async def run(command: Command) -> FinishedProgram:
    """Run the command to its end, whatever its exit code. Raises ProcessError when it cannot be started.

    The whole process group ends when the program ends, takes too long (by a signal first, by force after two seconds)
    or the task is cancelled. As root, the program runs as the owner of its folder.
    """
    output, errors = ProgramOutput(command.max_output, command.watch), ProgramOutput(command.max_errors)
    with contextlib.ExitStack() as stack:
        child = _start_program(command, (ProgramInput(command.stdin), output, errors), stack)
        try:
            timed_out = await _wait_for_end(child, command, output)
        finally:
            await _end_program(child)
        await _drain_outputs(output, errors)
    printed = [stream.get_output() for stream in (output, errors)]
    stdout, stderr = [one.apply_mask(command.mask) for one in printed] if command.mask else printed
    return FinishedProgram(child.code, stdout, stderr, child.seconds, timed_out)


class InteractiveProgram:
    """A running program that takes input; `ended` is set when it has exited."""

    def __init__(
        self, command: Command, child: ChildProcess, inlet: ProgramInput, output: ProgramOutput, errors: ProgramOutput
    ) -> None:
        self._command = command
        self._child = child
        self._errors = errors
        self.write = inlet.write
        self.ended: asyncio.Event = child.exited
        self.output_closed: asyncio.Event = output.closed

    @property
    def code(self) -> int | None:
        """Exit code of the program, negative for a signal; None while it runs."""
        return self._child.code if self.ended.is_set() else None

    @property
    def ending(self) -> str | None:
        """End of the program, as the rest of a sentence; None while it runs."""
        return None if self.code is None else _describe_ending(self.code)

    def format_last_line(self, limit: int) -> str:
        """Return the end of the program's stderr as one line of at most `limit` characters, secrets masked."""
        output = self._errors.get_output()
        return (output.apply_mask(self._command.mask) if self._command.mask else output).format_last_line(limit)


def start_in_front(command: Sequence[str], environment: Mapping[str, str]) -> ChildProcess:
    """Start a program of the caller with our own streams, user and folder. Raises ProcessError."""
    line = tuple(command)
    if not CAN_RUN_PROGRAMS:
        raise ProcessError(UNSUPPORTED_SYSTEM)
    try:
        with defer_signals():
            process = subprocess.Popen(line, env=environment, start_new_session=True)  # noqa: S603 (what a person typed)
            return ChildProcess(process, time.perf_counter())
    except (OSError, ValueError) as error:
        raise _build_start_error(Command(line, Path.cwd(), environment), error) from error


@contextlib.asynccontextmanager
async def start_interactive(command: Command) -> AsyncIterator[InteractiveProgram]:
    """Start the program, whose output goes to the command's `watch`. Raises ProcessError when it cannot be started.

    To end it, its input is closed, then it gets a signal, then it is ended by force, with all that it started.
    """
    inlet = ProgramInput(b"", stays_open=True)
    output, errors = ProgramOutput(command.max_output, command.watch), ProgramOutput(command.max_errors)
    with contextlib.ExitStack() as stack:
        child = _start_program(command, (inlet, output, errors), stack)
        try:
            yield InteractiveProgram(command, child, inlet, output, errors)
        finally:
            inlet.close()
            try:
                await _wait_within(GRACE_S, child.exited)
            finally:
                await _end_program(child)
        await _drain_outputs(output, errors)


def _start_program(
    command: Command, streams: tuple[ProgramInput, ProgramOutput, ProgramOutput], parent_ends: contextlib.ExitStack
) -> ChildProcess:
    """Open the pipes and start the program; `parent_ends` closes our ends. Raises ProcessError."""
    if not CAN_RUN_PROGRAMS:
        raise ProcessError(UNSUPPORTED_SYSTEM)
    with contextlib.ExitStack() as child_ends:
        try:
            identity = find_identity(command.cwd)
            for stream in streams:
                parent_ends.callback(stream.close)
            stdin, stdout, stderr = [stream.open(identity, child_ends) for stream in streams]
            began = time.perf_counter()
            with defer_signals():
                return ChildProcess(_spawn_process(command, identity, (stdin, stdout, stderr)), began)
        except (OSError, ValueError) as error:
            raise _build_start_error(command, error) from error


def _spawn_process(
    command: Command, identity: Identity | None, streams: tuple[int, int, int]
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = streams
    line = command.line
    return subprocess.Popen(  # noqa: S603 (this module runs untrusted programs)
        ("/bin/sh", "-c", line) if isinstance(line, str) else line,
        cwd=command.cwd,
        env=_build_environment(command.environment, identity),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
        user=identity.uid if identity else None,
        group=identity.gid if identity else None,
        extra_groups=() if identity else None,
    )


def _build_environment(environment: Mapping[str, str], identity: Identity | None) -> dict[str, str]:
    """Copy `environment`, with a home folder for the user `nobody`: git and other programs fail without one."""
    return {**environment, "HOME": tempfile.gettempdir()} if identity == UNPRIVILEGED else {**environment}


async def _wait_for_end(child: ChildProcess, command: Command, output: ProgramOutput) -> bool:
    """Wait for the end of the program, and return whether its time limit ended first."""
    if command.end_when_cut:
        output.when_full = child.over.set
    try:
        async with asyncio.timeout(command.timeout_s):
            await child.over.wait()
    except TimeoutError:
        return not child.exited.is_set()
    return False


async def _end_program(child: ChildProcess) -> None:
    """End a program that still runs, and its group: by a signal, then by force."""
    if child.exited.is_set():
        return
    try:
        child.send_signal(signal.SIGTERM)
        await _wait_within(GRACE_S, child.exited)
    finally:
        child.send_signal(signal.SIGKILL)  # also when we are cancelled a second time
    await _wait_within(GRACE_S, child.exited)


async def _drain_outputs(*streams: ProgramOutput) -> None:
    """Read what the program left in its pipes when it ended."""
    for stream in streams:
        await _wait_within(DRAIN_S, stream.closed)


async def _wait_within(seconds: float, event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _build_start_error(command: Command, error: OSError | ValueError) -> ProcessError:
    """Why it did not start: Python's error does not always say which of the parts was meant."""
    program = "the shell" if isinstance(command.line, str) else f'"{command.line[0][:200]}"'
    if not isinstance(error, OSError):
        what = "an argument or a variable contains a NUL or another character that cannot be passed on"
        return ProcessError(f"{program} cannot be started: {what}", StartRefusal.TEXT)
    if error.errno == errno.E2BIG:
        return ProcessError(
            f"{program} cannot be started: an argument is too long for the system", StartRefusal.TOO_LONG
        )
    words = error.strerror or type(error).__name__
    if not os.path.isdir(command.cwd):  # noqa: PTH112 (which never raises: a name may be too long)
        return ProcessError(f"the working directory {command.cwd} cannot be used: {words}", StartRefusal.FOLDER)
    refusal = StartRefusal.PROGRAM if error.errno in _PROGRAM_ERRORS else StartRefusal.SYSTEM
    return ProcessError(f"{program} cannot be started: {words}", refusal)
