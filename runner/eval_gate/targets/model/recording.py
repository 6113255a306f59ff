"""Recorded replies of models, by a hash of the request: replaying needs no request and no key.

A recording stores requests only as a hash, and responses as received. It contains no secret.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import MsgspecError
from msgspec import json as json_of

from eval_gate.config.settings import RecordingMode
from eval_gate.errors import ExitCode, GateError, treat_errors_as_incomplete
from eval_gate.files.reading import read_limited
from eval_gate.files.writing import append_line, write_atomically
from eval_gate.model import limits
from eval_gate.model.base import Record, as_json, decode_json
from eval_gate.model.conversation import Message, ToolSpec
from eval_gate.struct import FrozenStruct
from eval_gate.targets.model.chat import Chat, ModelTurn
from eval_gate.text.escape import format_count

RECORDING_NAME: Final = "recording.jsonl"
MAX_BYTES: Final = limits.RECORDING_BYTES
MAX_LINE: Final = limits.RECORDING_LINE_BYTES


class RecordedResponse(Record, kw_only=True, omit_defaults=True):
    """One recorded reply of a model."""

    key: str
    turn: ModelTurn


def compute_recording_key(
    setup: str | None, chat: Chat, messages: Sequence[Message], tools: Sequence[ToolSpec], sample: int
) -> str:
    """Compute the hash of all that determines a reply; `sample` distinguishes several replies to the same request."""
    request = {
        "setup": setup,
        "provider": chat.provider,
        "model": chat.model,
        "settings": chat.settings,
        "messages": [_describe_message(message) for message in messages],
        "tools": [as_json(tool) for tool in tools],
        "sample": sample,
    }
    text = json.dumps(request, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _describe_message(message: Message) -> dict[str, object]:
    """Convert a message to JSON for the recording key, without the ids of tool calls, which differ each time."""
    calls = [{"name": call.name, "params": call.params} for call in message.tool_calls]
    return {"role": message.role, "name": message.name, "content": message.content, "calls": calls}


class RecordingFile(FrozenStruct):
    """Content of a file of recorded responses."""

    entries: tuple[RecordedResponse, ...] = ()
    unreadable: int = 0
    """Number of unreadable lines: damaged, incomplete, or in the format of another version."""
    digest: str | None = None
    """SHA-256 of the file in hexadecimal; None without a file."""


class Recording:
    """Recorded replies by key. New ones are appended to the file as they arrive.

    All replies that a run used are stored in its own folder, whatever their source, so that its replay needs no other
    file. New replies are also added to `shared`, where later runs on the same machine start. Unreadable lines there are
    ignored: their requests are sent again, and the first added reply removes them from the file.
    """

    def __init__(
        self,
        mode: RecordingMode,
        shared: Path | None = None,
        content: RecordingFile | None = None,
        of_baseline: Iterable[RecordedResponse] = (),
    ) -> None:
        """`content` is that of the file `shared`, if it was read; `of_baseline` are the responses of the baseline."""
        content = content or RecordingFile()
        self.mode = mode
        self.digest = content.digest
        """The sha256 of the file that was read, in hexadecimal."""
        self._shared = shared
        self._unreadable = content.unreadable
        self._healed = content.unreadable == 0
        self._turns = {entry.key: entry.turn for entry in content.entries}
        baseline_turns = {entry.key: entry.turn for entry in of_baseline}
        self._earlier_keys = frozenset(key for key, turn in self._turns.items() if baseline_turns.get(key) != turn)
        self.has_earlier_responses = bool(self._earlier_keys)
        """Whether responses were recorded before this run that are not the baseline's."""
        self._own: Path | None = None
        self._own_keys: set[str] = set()
        self.used = False
        """Whether a response was used that was recorded before this run and is not the baseline's."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """That some lines cannot be read, and the consequence."""
        if not self._unreadable:
            return ()
        lines = format_count(self._unreadable, "line")
        what = f"{lines} of {self._shared} cannot be read: damaged, or of another"
        consequence = (
            "the model is not called (recording: replay)"
            if self.mode is RecordingMode.REPLAY
            else "the model is called again"
        )
        return (f"{what} version of eval-gate. Where a response is missing for it, {consequence}",)

    def set_run_folder(self, folder: Path) -> None:
        """Set the folder of the run that begins."""
        self._own = folder / RECORDING_NAME

    def find(self, key: str) -> ModelTurn | None:
        """Find the recorded reply for a key, if the mode uses recordings."""
        if self.mode not in {RecordingMode.REPLAY, RecordingMode.AUTO}:
            return None
        turn = self._turns.get(key)
        if turn is not None:
            self.used = self.used or key in self._earlier_keys
            self._store_response(key, turn, is_new=False)
        return turn

    def add(self, key: str, turn: ModelTurn) -> None:
        """Record a new response."""
        if self.mode is not RecordingMode.OFF:
            self._turns[key] = turn
            self._store_response(key, turn, is_new=True)

    def _store_response(self, key: str, turn: ModelTurn, *, is_new: bool) -> None:
        line = _encode_line(RecordedResponse(key=key, turn=turn))
        with treat_errors_as_incomplete():  # requests have been sent
            if self._own is not None and key not in self._own_keys:
                self._own_keys.add(key)
                append_line(self._own, line)
            if is_new and self._shared is not None:
                if not self._healed:
                    self._healed = True
                    # leave what can be read; another run may have added to it since it was read
                    readable = read_recording(self._shared).entries
                    write_atomically(self._shared, b"".join(map(_encode_line, readable)))
                append_line(self._shared, line)


def _encode_line(entry: RecordedResponse) -> bytes:
    return json_of.encode(entry) + b"\n"


def read_recording(file: Path) -> RecordingFile:
    """Read the recorded responses of a file, if it exists. Raises GateError `invalid-recording`."""
    data = read_recording_bytes(file)
    if data is None:
        return RecordingFile()
    entries: list[RecordedResponse] = []
    unreadable = 0
    for line in filter(None, data.split(b"\n")):
        try:
            entries.append(decode_json(line[: MAX_LINE + 1], RecordedResponse))
        except MsgspecError:
            unreadable += 1
    return RecordingFile(tuple(entries), unreadable, hashlib.sha256(data).hexdigest())


def read_recording_bytes(file: Path) -> bytes | None:
    """Read a recording, or return None if it does not exist. Raises GateError `invalid-recording`."""
    try:
        data = read_limited(file, MAX_BYTES, is_generated=True)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _build_corrupt_error(file, error.strerror or "cannot be read") from error
    if len(data) > MAX_BYTES:
        raise _build_corrupt_error(file, f"larger than {MAX_BYTES:,} bytes")
    return data


def _build_corrupt_error(file: Path, what: str) -> GateError:
    return GateError(
        "invalid-recording",
        f"the recording {file} cannot be used: {what}",
        "delete it, and record again",
        exit_code=ExitCode.USAGE,
    )
