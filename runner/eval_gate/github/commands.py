"""Workflow commands: lines on standard output that drive the runner (docs.github.com, "Workflow commands").

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

from eval_gate.text.escape import one_line

MAX_MESSAGE: Final = 4_000


class Commands:
    """Writes commands and ordinary lines to one stream, which keeps their order. Any number of threads may speak."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._stopped: str | None = None
        self._turn = RLock()
        """Whose turn it is: lines that belong together stand together."""

    def say(self, line: str) -> None:
        """A line for people; what it holds cannot become a command."""
        with self._turn, self.stopped():
            self._write(line)

    def notice(self, message: str) -> None:
        """A remark that is shown on the run's page. There is room for ten: not for progress."""
        self.remark("notice", message, title="Eval Gate")

    def warning(self, message: str, *, title: str = "Eval Gate", file: str | None = None, line: int = 0) -> None:
        """Something that weakens the result, or could not be published."""
        self.remark("warning", message, title=title, file=file, line=line)

    def error(self, message: str, *, title: str = "Eval Gate", file: str | None = None, line: int = 0) -> None:
        """What makes the step fail."""
        self.remark("error", message, title=title, file=file, line=line)

    def mask(self, secret: str) -> None:
        """Have the runner replace this value in everything it shows from now on."""
        for part in secret.splitlines():
            if part.strip():
                self._line(f"::add-mask::{_data(part)}")

    @contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Lines that are folded in the log."""
        self._line(f"::group::{_data(one_line(title))}")
        try:
            yield
        finally:
            self._line("::endgroup::")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Nothing inside is a command, whatever it is."""
        token = secrets.token_hex(16)
        with self._turn:
            if first := self._stopped is None:
                self._write(f"::stop-commands::{token}")
                self._stopped = token
        try:
            yield
        finally:
            if first:
                with self._turn:
                    self._stopped = None
                    self._write(f"::{token}::")

    def remark(self, name: str, message: str, *, title: str, file: str | None = None, line: int = 0) -> None:
        """One of these three, by its name."""
        properties = {"title": title, "file": file, "line": line or None}
        shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value is not None)
        self._line(f"::{name} {shown}::{_data(message[:MAX_MESSAGE])}")

    def _line(self, command: str) -> None:
        """A command; while commands are stopped, they are let through for this one line.

        Written at once: what an agent or a grader prints meanwhile is no command either.
        """
        with self._turn:
            token = self._stopped
            self._write(command if token is None else f"::{token}::\n{command}\n::stop-commands::{token}")

    def _write(self, lines: str) -> None:
        self._stream.write(f"{lines}\n")
        self._stream.flush()


class LaterCommands(Commands):
    """What is said beside something else: lines and remarks, kept until it is their turn."""

    def __init__(self) -> None:
        super().__init__()
        self._said: list[Callable[[Commands], None]] = []

    def say(self, line: str) -> None:
        """A line for people."""
        self._said.append(lambda to: to.say(line))

    def pass_on(self, to: Commands) -> None:
        """Say it now, once."""
        while self._said:
            self._said.pop(0)(to)

    def remark(self, name: str, message: str, *, title: str, file: str | None = None, line: int = 0) -> None:
        """A notice, warning or error."""
        self._said.append(lambda to: to.remark(name, message, title=title, file=file, line=line))

    def _write(self, lines: str) -> None:
        raise AssertionError("nothing is written beside something else but lines and remarks")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
