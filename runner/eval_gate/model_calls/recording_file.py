"""File of recorded model calls: a line for each, found by a hash of its request.

Headers are not stored, nor parts of the query that name credentials. Text of a request that looks like a key is masked;
a response is stored as it was received, or not at all if it holds a key.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qsl, urlencode

from msgspec import Meta, MsgspecError
from msgspec import json as json_of

from eval_gate.errors import GateError, Problem
from eval_gate.files.writing import append_line, write_atomically
from eval_gate.model.base import JsonValue, Record, decode_json
from eval_gate.model.limits import RECORDING_LINE_BYTES
from eval_gate.model.model_recording import CallMode, ModelRecording
from eval_gate.struct import replace
from eval_gate.targets.model.recording import read_recording_bytes
from eval_gate.text.json_values import iter_leaves, map_texts
from eval_gate.text.key_forms import find_known_forms, mask_keys
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.urls import is_credential_name


class ModelCall:
    """Request of an agent to a model: method, path at the proxy, and body.

    `body` is the SHA-256 of one that is not JSON. `key` is the SHA-256 of the whole request without its headers, the
    same for any order of the members of objects.
    """

    def __init__(self, method: str, path: str, query: str, body: bytes) -> None:
        self.method = method
        pairs = [pair for pair in parse_qsl(query, keep_blank_values=True) if not is_credential_name(pair[0])]
        self.path = f"{path}?{urlencode(sorted(pairs))}" if pairs else path
        self.data = body
        try:
            self.body = parse_untrusted_json(body or b"null")
        except UntrustedJsonError:
            self.body = {"sha256": hashlib.sha256(body).hexdigest()}
        text = json.dumps([method, self.path, self.body], sort_keys=True, separators=(",", ":"))
        self.key = hashlib.sha256(text.encode()).hexdigest()

    def mask_body(self, redact: Redactor) -> JsonValue:
        """Return the body for a file that people commit, without credentials by their form or name."""
        leaves = [(str(path[-1]), leaf) for path, leaf in iter_leaves(self.body) if path and isinstance(leaf, str)]
        redact_named = Redactor(leaf for name, leaf in leaves if is_credential_name(name))
        return map_texts(self.body, lambda text: mask_keys(redact_named(redact(text))))


class RecordedCall(Record, kw_only=True, omit_defaults=True):
    """One line of the file. `number` counts the same request in an execution, from 0."""

    key: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    number: Annotated[int, Meta(ge=0)] = 0
    method: str
    path: str
    recorded_at: str
    commit: str | None = None
    request: JsonValue = None
    status: Annotated[int, Meta(ge=200, le=299)]
    content_type: Annotated[str, Meta(pattern=r"^[\x20-\x7e]*\Z")] = ""
    response: str


class CallRecording:
    """Recorded calls by request, in the order in which one execution makes them."""

    def __init__(self, file: Path, mode: CallMode, commit: str | None = None) -> None:
        """Read the file, which `record` replaces at its first call. Raises GateError `invalid-recording`."""
        self._file, self.mode, self._commit = file, mode, commit
        self._calls: defaultdict[str, list[RecordedCall]] = defaultdict(list)
        self.added = 0
        """Number of calls that were recorded."""
        for call in _read_calls(file) if mode is not CallMode.RECORD else ():
            self._keep(call)
        self.description = self._describe()
        """What is replayed from the beginning."""

    def __iter__(self) -> Iterator[RecordedCall]:
        return (call for calls in self._calls.values() for call in calls)

    def list_calls(self, key: str) -> Sequence[RecordedCall]:
        """List the calls with this request that an execution can make, in their order."""
        return self._calls.get(key, ())

    def add(self, call: ModelCall, number: int, response: tuple[int, str, bytes], redact: Redactor) -> str | None:
        """Record a call with its status, content type and response; return why not, or None. Raises GateError."""
        if number > (recorded_count := len(self.list_calls(call.key))):
            return "an earlier call with the same request is not recorded"
        if number < recorded_count:
            return None  # another execution has recorded it
        status, content_type, content = response
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return "its response is no text"
        if redact(text) != text or any(find_known_forms(text)):
            return "its response holds a key, or what looks like one"
        recorded = RecordedCall(
            key=call.key,
            number=number,
            method=call.method,
            path=mask_keys(redact(call.path)),
            recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
            commit=self._commit,
            request=call.mask_body(redact),
            status=status,
            content_type=content_type,
            response=text,
        )
        line = json_of.encode(recorded) + b"\n"
        if len(line) > RECORDING_LINE_BYTES:
            return f"it is larger than {RECORDING_LINE_BYTES:,} bytes"
        if self.mode is CallMode.RECORD and not self.added:
            write_atomically(self._file, b"")
        append_line(self._file, line)
        self.added += 1
        self._keep(recorded)
        return None

    def _keep(self, call: RecordedCall) -> None:
        if call.number == len(self._calls[call.key]):  # of lines that a merge left twice, the first one counts
            self._calls[call.key].append(call)

    def _describe(self) -> ModelRecording:
        described = ModelRecording(mode=self.mode, file=str(self._file))
        oldest = min(self, key=lambda call: call.recorded_at, default=None)
        if oldest is None:
            return described
        content = sorted((call.key, call.number, call.status, call.content_type, call.response) for call in self)
        return replace(
            described,
            digest=hashlib.sha256(repr(content).encode()).hexdigest()[:16],
            recorded_at=oldest.recorded_at[:100],
            commit=oldest.commit and oldest.commit[:100],
            providers=tuple(sorted({call.path.split("/")[1][:50] for call in self if call.path.startswith("/")}))[:20],
        )


def _read_calls(file: Path) -> Iterator[RecordedCall]:
    """Yield the calls of a file, none if it does not exist. Raises GateError `invalid-recording`."""
    for number, line in enumerate((read_recording_bytes(file) or b"").split(b"\n"), start=1):
        if line.strip():
            try:
                yield decode_json(line[: RECORDING_LINE_BYTES + 1], RecordedCall)
            except MsgspecError as error:
                what = Problem(f"is not a recorded call: {str(error)[:200]}", file=str(file), line=number)
                hint = "remove the line, or record again: eval-gate record -- CMD"
                raise GateError("invalid-recording", "a recording cannot be used", hint, problems=[what]) from error
