"""Answers of models kept by what was asked: a run that asks the same again spends nothing, and needs no key.

A recording holds requests only as a hash, and answers as they were. Nothing of it is a secret.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from eval_gate.config.settings import CacheMode
from eval_gate.errors import ExitCode, GateError
from eval_gate.files.reading import read_up_to
from eval_gate.files.writing import append, open_to_append
from eval_gate.model import limits
from eval_gate.model.base import Record
from eval_gate.model.conversation import Message, ToolSpec
from eval_gate.targets.model.chat import Chat, ModelTurn

RECORDING_NAME: Final = "answers.jsonl"
MAX_BYTES: Final = limits.RECORDING_BYTES
MAX_LINE: Final = limits.RECORDING_LINE_BYTES


class RecordedAnswer(Record):
    """One recorded answer."""

    key: str
    turn: ModelTurn


def key_of(setup: str | None, chat: Chat, messages: Sequence[Message], tools: Sequence[ToolSpec], sample: int) -> str:
    """The hash of everything that decides an answer: the model with its `setup` fingerprint, and what it is asked.

    `sample` tells several answers to the same question apart.
    """
    request = {
        "setup": setup,
        "provider": chat.provider,
        "model": chat.model,
        "settings": chat.settings,
        "messages": [_asked(message) for message in messages],
        "tools": [tool.model_dump(mode="json") for tool in tools],
        "sample": sample,
    }
    text = json.dumps(request, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _asked(message: Message) -> dict[str, object]:
    """A message as far as it is a question: identifiers of calls are the provider's and differ each time."""
    calls = [{"name": call.name, "params": call.params} for call in message.tool_calls]
    return {"role": message.role, "name": message.name, "content": message.content, "calls": calls}


class Recording:
    """Answers by key: those that were there, and those that are added, one line each, written as they come.

    What a run used is kept in that run's own folder, whoever answered it, so that the next one needs no other. What was
    newly asked is also added to `shared`, from which later runs on the same machine begin.
    """

    def __init__(
        self,
        mode: CacheMode,
        shared: Path | None = None,
        known: Iterable[RecordedAnswer] = (),
        digest: str | None = None,
    ) -> None:
        self.mode = mode
        self.digest = digest
        """The sha256 of the file that `known` was read of, in hexadecimal."""
        self._shared = shared
        self._known = {entry.key: entry.turn for entry in known}
        self._before = frozenset(self._known)
        self._own: Path | None = None
        self._kept: set[str] = set()
        self.used = False
        """Whether an answer was taken from what was there before this run."""

    @property
    def begins(self) -> bool:
        """Whether there are answers from before this run."""
        return bool(self._before)

    def begin(self, folder: Path) -> None:
        """The folder of the run that begins."""
        self._own = folder / RECORDING_NAME

    def find(self, key: str) -> ModelTurn | None:
        """The recorded answer, if recordings are to be used."""
        if self.mode not in {CacheMode.REPLAY, CacheMode.AUTO}:
            return None
        turn = self._known.get(key)
        if turn is not None:
            self.used = self.used or key in self._before
            self._keep(key, turn, asked=False)
        return turn

    def add(self, key: str, turn: ModelTurn) -> None:
        """Keep an answer that was just given."""
        if self.mode is not CacheMode.OFF:
            self._known[key] = turn
            self._keep(key, turn, asked=True)

    def _keep(self, key: str, turn: ModelTurn, *, asked: bool) -> None:
        line = RecordedAnswer(key=key, turn=turn).model_dump_json(by_alias=True, exclude_defaults=True) + "\n"
        if self._own is not None and key not in self._kept:
            self._kept.add(key)
            _append(self._own, line)
        if asked and self._shared is not None:
            _append(self._shared, line)


def _append(file: Path, line: str) -> None:
    """One line in one call, so that a process that is killed leaves whole lines. Raises GateError."""
    try:
        descriptor = open_to_append(file)
        try:
            append(descriptor, line.encode("utf-8", "backslashreplace"), file)
        finally:
            os.close(descriptor)
    except GateError as error:
        error.exit_code = ExitCode.INCOMPLETE  # something was asked by now
        raise


def read_recording(file: Path) -> tuple[RecordedAnswer, ...]:
    """The answers of a file; none when there is no such file. An unfinished last line is left out.

    Raises GateError `recording-corrupt`.
    """
    return recorded_in(file)[0]


def recorded_in(file: Path) -> tuple[tuple[RecordedAnswer, ...], str | None]:
    """The same, and the sha256 of the file in hexadecimal, where there is one."""
    try:
        data = read_up_to(file, MAX_BYTES)
    except FileNotFoundError:
        return (), None
    except OSError as error:
        raise _corrupt(file, error.strerror or "cannot be read") from error
    if len(data) > MAX_BYTES:
        raise _corrupt(file, f"larger than {MAX_BYTES:,} bytes")
    whole = data[: data.rfind(b"\n") + 1]
    entries = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            entries.append(RecordedAnswer.model_validate_json(line))
        except ValidationError as error:
            raise _corrupt(file, f"line {number} is no recorded answer") from error
    return tuple(entries), hashlib.sha256(data).hexdigest()


def _corrupt(file: Path, what: str) -> GateError:
    return GateError(
        "recording-corrupt",
        f"the recording {file} cannot be used: {what}",
        "delete it, and record anew",
        exit_code=ExitCode.USAGE,
    )
