"""Log of one case of Codex: the command, each line of output, and how it ended."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, Literal

from eval_gate.errors import GateError
from eval_gate.model.base import JsonValue
from eval_gate.process.run import FinishedProgram
from eval_gate.targets.base import Request
from eval_gate.targets.coding_agent import create_file
from eval_gate.text.escape import to_one_line
from eval_gate.text.redaction import Redactor

DEFAULT_FOLDER: Final = ".agentv/logs/codex"
"""Default folder for logs, relative to the root of the run."""
LOGS_VARIABLE: Final = "AGENTV_CODEX_STREAM_LOGS"
"""Variable that turns logs off with the value `false`."""
MAX_BYTES: Final = 20_000_000
_MAX_LINE: Final = 1_000_000
_MAX_DETAIL: Final = 500

LogFormat = Literal["summary", "json"]


def should_log(environment: Mapping[str, str]) -> bool:
    """Whether logs are to be written."""
    return environment.get(LOGS_VARIABLE, "").strip().lower() not in {"false", "0", "no", "off"}


class CodexLog:
    """Log of one case: the command, each line as it arrives, and the end. Secrets are masked.

    If the log cannot be written, the case continues, and `trouble` has the reason.
    """

    def __init__(self, folder: Path | None, target: str, request: Request, form: LogFormat, redact: Redactor) -> None:
        """Create the file of a case; without a folder, nothing is stored."""
        self.file: BinaryIO | None = None
        self.path: Path | None = None
        self.trouble: str | None = None
        self._form = form
        self._redact = redact
        self._rest = b""
        self._size = 0
        if folder is not None:
            words = (target, request.case_id, f"attempt-{request.trial + 1}")
            try:
                self.file, self.path = create_file(folder, words, ".log")
            except GateError as error:
                self.trouble = f"Codex logs are off: {folder} is not writable: {error.message}"

    def begin(self, command: Sequence[str], folder: Path) -> None:
        """Log the command that is started, and its folder."""
        self._write_line(f"# {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: {shlex.join(command)}")
        self._write_line(f"# in {folder}")

    def add(self, data: bytes) -> None:
        """Log the next bytes of the output of Codex, in pieces of any size."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MAX_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            if line.strip():
                self._write_event(line.decode("utf-8", "replace"))

    def end(self, finished: FinishedProgram | None) -> None:
        """Log the exit and stderr; None for a program that Eval Gate ended or that never began."""
        if self._rest.strip():
            self.add(b"\n")
        if finished is None:
            self._write_line("# ended before it was done")
        else:
            if finished.stderr.total:
                self._write_line(f"# stderr:\n{finished.stderr.to_text()}")
            how = "timed out" if finished.timed_out else f"exit code {finished.code}"
            self._write_line(f"# {how} after {finished.seconds:.1f} s")
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            with suppress(OSError):
                self.file.close()
            self.file = None

    def _write_event(self, line: str) -> None:
        try:
            event = json.loads(line)
            text = json.dumps(event, ensure_ascii=False) if self._form == "json" else format_event(event)
        except (ValueError, RecursionError):
            text = line.rstrip("\r")
        self._write_line(text if self._form == "json" else f"{datetime.now(UTC):%H:%M:%S} {text}")

    def _write_line(self, text: str) -> None:
        if self.file is None:
            return
        data = f"{self._redact(text)}\n".encode("utf-8", "replace")
        self._size += len(data)
        if self._size > MAX_BYTES:
            data = f"# the log is cut here, at {MAX_BYTES:,} bytes\n".encode()
        try:
            self.file.write(data)
        except OSError as error:
            self.trouble = f"a Codex log is incomplete: {error.strerror}"
            self.close()
        if self._size > MAX_BYTES:
            self.close()


def format_event(event: JsonValue) -> str:
    """One event on one line."""
    if not isinstance(event, dict):
        return to_one_line(json.dumps(event, ensure_ascii=False), _MAX_DETAIL)
    item, usage = event.get("item"), event.get("usage")
    words = [str(event.get("type") or "event")]
    if isinstance(item, dict):
        words += [str(item.get("type")), _describe_item(item)]
        words += [f"({key} {item[key]})" for key in ("status", "exit_code") if item.get(key) is not None]
    elif isinstance(usage, dict):
        words.append(", ".join(f"{key} {count}" for key, count in usage.items()))
    else:
        words.append(_describe_item(event))
    return to_one_line(" ".join(word for word in words if word), _MAX_DETAIL)


def _describe_item(item: Mapping[str, JsonValue]) -> str:
    for key in ("command", "tool", "query", "text", "message", "error", "changes"):
        value = item.get(key)
        if value is not None:
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return ""
