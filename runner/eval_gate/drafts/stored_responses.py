"""Store the responses that drafts were made of with the results, until the drafts are accepted or dropped.

They stay out of eval files, which people commit. Secrets and the matches of `redact` are masked first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import MsgspecError, json

from eval_gate.drafts.observation import Observation
from eval_gate.drafts.turn_joining import list_questions, list_turns
from eval_gate.errors import GateError
from eval_gate.files.file_paths import DRAFT_RESPONSES
from eval_gate.files.reading import read_limited
from eval_gate.files.writing import remove_file, write_atomically
from eval_gate.model import limits
from eval_gate.model.base import Record, decode_json
from eval_gate.model.case import EvalCase
from eval_gate.model.conversation import Response

_Key: TypeAlias = tuple[str, str | None]
"""Id, and all questions, if these are texts. A case whose question was edited has no stored responses."""
MAX_BYTES: Final = limits.DRAFT_RESPONSES_BYTES
"""Size of the file; the oldest responses make room for new ones."""


class StoredResponses(Record, omit_defaults=True):
    """The responses that one draft was made of, and how many executions gave none."""

    case_id: str
    question: str
    responses: tuple[Response, ...]
    error_count: int = 0
    turns: tuple[tuple[Response, ...], ...] = ()
    """Responses of each turn of a conversation; empty for one question."""


def build_stored_responses(case_id: str, observation: Observation) -> StoredResponses:
    """Build what is stored of an observation, which has to be masked already."""
    return StoredResponses(
        case_id=case_id,
        question=_join_questions(turn.question for turn in list_turns(observation)),
        responses=observation.responses,
        error_count=len(observation.errors),
        turns=tuple(turn.responses for turn in observation.turns),
    )


class ResponseStore:
    """The stored responses of a folder of results, found by the id and the question of a case."""

    def __init__(self, folder: Path) -> None:
        self.file: Final = folder / DRAFT_RESPONSES
        self._stored: Mapping[_Key, StoredResponses] | None = None

    def find(self, case: EvalCase) -> StoredResponses | None:
        """Find the responses of a draft; None if they are not stored here. Raises GateError `invalid-recording`."""
        self._stored = self._read() if self._stored is None else self._stored
        return self._stored.get(_get_key(case))

    def add(self, added: Iterable[StoredResponses]) -> None:
        """Store responses, in place of those of the same cases. Raises GateError, and then nothing has changed."""
        new = {(one.case_id, one.question): one for one in added}
        other_cases = {key: one for key, one in self._read().items() if key not in new}
        self._write(other_cases | new)

    def discard(self, cases: Iterable[EvalCase]) -> None:
        """Remove the responses of cases that are no drafts any more. Raises GateError."""
        stored, keys = self._read(), set(map(_get_key, cases))
        if stored.keys() & keys:
            self._write({key: one for key, one in stored.items() if key not in keys})

    def _read(self) -> dict[_Key, StoredResponses]:
        try:
            data = read_limited(self.file, MAX_BYTES, is_generated=True)
            if len(data) > MAX_BYTES:
                raise self._build_error(f"larger than {MAX_BYTES:,} bytes")
            entries = [decode_json(line, StoredResponses) for line in data.splitlines()]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._build_error(error.strerror or "not readable") from error
        except MsgspecError as error:
            raise self._build_error("not as it was written") from error
        return {(one.case_id, one.question): one for one in entries}

    def _write(self, stored: Mapping[_Key, StoredResponses]) -> None:
        lines: list[bytes] = []
        room = MAX_BYTES
        self._stored = None
        for line in (json.encode(one) + b"\n" for one in reversed([*stored.values()])):
            if (room := room - len(line)) < 0:
                break
            lines.append(line)
        if lines:
            write_atomically(self.file, b"".join(reversed(lines)))
        elif self.file.exists():
            remove_file(self.file)

    def _build_error(self, what: str) -> GateError:
        hint = "delete it; the responses of its drafts are lost then, and the drafts stay"
        return GateError("invalid-recording", f"the responses of drafts in {self.file} are {what}", hint)


def _get_key(case: EvalCase) -> _Key:
    questions = list_questions(case)
    return case.id, _join_questions(questions) if questions else None


def _join_questions(questions: Iterable[str]) -> str:
    return "\n\n".join(questions)
