"""Workflow commands: lines on standard output that control the runner (docs.github.com).

This is the only writer of them. Everything else is printed while commands are stopped, because a model that answers
`::add-mask::` would drive the runner too.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Final, TextIO

from eval_gate.text.escape import to_one_line

MAX_MESSAGE: Final = 4_000


class WorkflowCommands:
    """Thread-safe writer of workflow commands and log lines to one stream, in order."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._stopped: str | None = None
        self._turn = RLock()
        """Whose turn it is: lines that belong together stand together."""

    def print_line(self, line: str) -> None:
        """Print a line for people; nothing in it can act as a workflow command."""
        with self._turn, self.stop_commands():
            self._write_lines(line)

    def write_warning(self, message: str, *, title: str = "Eval Gate", file: str | None = None, line: int = 0) -> None:
        """Something that weakens the result, or could not be published."""
        self.write_annotation("warning", message, title=title, file=file, line=line)

    def write_error(self, message: str, *, title: str = "Eval Gate", file: str | None = None, line: int = 0) -> None:
        """Write an error annotation for a problem that makes the step fail."""
        self.write_annotation("error", message, title=title, file=file, line=line)

    def mask_secret(self, secret: str) -> None:
        """Have the runner replace this value in everything it shows from now on."""
        for part in secret.splitlines():
            if part.strip():
                self._write_command(f"::add-mask::{_escape_data(part)}")

    @contextmanager
    def open_group(self, title: str) -> Iterator[None]:
        """Lines that are folded in the log."""
        self._write_command(f"::group::{_escape_data(to_one_line(title))}")
        try:
            yield
        finally:
            self._write_command("::endgroup::")

    @contextmanager
    def stop_commands(self) -> Iterator[None]:
        """Nothing inside is a command, whatever it is."""
        token = secrets.token_hex(16)
        with self._turn:
            if first := self._stopped is None:
                self._write_lines(f"::stop-commands::{token}")
                self._stopped = token
        try:
            yield
        finally:
            if first:
                with self._turn:
                    self._stopped = None
                    self._write_lines(f"::{token}::")

    def write_annotation(self, name: str, message: str, *, title: str, file: str | None = None, line: int = 0) -> None:
        """One of these three, by its name."""
        properties = {"title": title, "file": file, "line": line or None}
        parts = ",".join(
            f"{key}={_escape_property(str(value))}" for key, value in properties.items() if value is not None
        )
        self._write_command(f"::{name} {parts}::{_escape_data(message[:MAX_MESSAGE])}")

    def _write_command(self, command: str) -> None:
        """Write a command at once with its switches, so that output of an agent or a grader cannot become a command."""
        with self._turn:
            token = self._stopped
            self._write_lines(command if token is None else f"::{token}::\n{command}\n::stop-commands::{token}")

    def _write_lines(self, lines: str) -> None:
        self._stream.write(f"{lines}\n")
        self._stream.flush()


class DeferredCommands(WorkflowCommands):
    """Buffer for log lines and annotations of background work, replayed in order later."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[Callable[[WorkflowCommands], None]] = []

    def print_line(self, line: str) -> None:
        """Store a line for people, to be printed later."""
        self._calls.append(lambda to: to.print_line(line))

    def replay_to(self, to: WorkflowCommands) -> None:
        """Say it now, once."""
        while self._calls:
            self._calls.pop(0)(to)

    def write_annotation(self, name: str, message: str, *, title: str, file: str | None = None, line: int = 0) -> None:
        """Store a notice, warning or error, to be written later."""
        self._calls.append(lambda to: to.write_annotation(name, message, title=title, file=file, line=line))

    def _write_lines(self, lines: str) -> None:
        raise AssertionError("nothing is written beside something else but lines and remarks")


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
