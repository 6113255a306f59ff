"""Journal `cases.jsonl`: one line for each finished trial, flushed before anything else happens.

A killed process loses no finished trial: each line is written in one call, and an incomplete last line is dropped when
the journal is read or continued. In a large run, finished trials stay in the journal until the result is built
(`FinishedTrials`).
"""

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from msgspec import MsgspecError, field, json

from eval_gate.errors import ExitCode, GateError
from eval_gate.files.writing import append_data, open_replacement, open_to_append
from eval_gate.model.base import Record, decode_json
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import NO_DETAILS, CaseDetails, ErrorCause, ErrorKind, EvaluatorResult, Status
from eval_gate.model.result import TraceSummary
from eval_gate.model.usage import Usage

JOURNAL_NAME = "cases.jsonl"
TrialKey = tuple[CaseKey, int]
"""Case and number of a trial."""
MAX_IN_MEMORY: Final = 1_000
"""Maximum finished trials kept in memory. Reading one from the journal costs a twentieth of a case and saves 3 kB."""

_HASH_KEY: Final = os.urandom(16)
"""Key of the line hashes. Python's own hash has a key too, but PYTHONHASHSEED can set it."""


def _hash_line(line: bytes) -> int:
    return int.from_bytes(blake2b(line, digest_size=8, key=_HASH_KEY).digest())


class JournalLine(NamedTuple):
    """Position, length and hash of one line of a journal; no other process knows the key of the hash."""

    start: int
    size: int
    digest: int


class TrialRecord(Record, kw_only=True, omit_defaults=True):
    """One finished trial of a case, with all data for the run result."""

    eval_file: str
    case_id: str
    trial: int
    fingerprint: str
    status: Status
    score: float = 0.0
    duration_ms: float = 0.0
    attempts: int = 0
    assertions_run: int = 0
    assertions_skipped: int = 0
    error: str | None = None
    error_kind: ErrorKind | None = None
    error_cause: ErrorCause | None = None
    error_hint: str | None = None
    http_status: int | None = None
    timed_out: bool = False
    failed_turn: int | None = None
    vetoed: bool = False
    calls_listed: bool | None = None
    """The response has a list of tool calls, even if it is empty; False if it cannot have one, such as plain text."""
    missing_calls: str | None = None
    """Where the response lacks a list of tool calls that its evaluators need, for messages; None otherwise. The trial
    is then scored as if no tool was called, and `engine.case_result` decides for the whole run whether that is
    correct."""
    details: CaseDetails = field(default_factory=lambda: NO_DETAILS)
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    trace_summary: TraceSummary | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    judge_usage: Usage | None = None
    judge_cost_usd: float | None = None
    warnings: tuple[str, ...] = ()
    folder: str | None = None
    """Unique name of the folder that the trial shared with other cases of its suite (`engine.workspaces`)."""
    ran_first: bool = False
    """No execution with this target had ended before: the agent may have had to start, which takes time."""
    preparatory: bool = False
    """The trial was made only to re-run a later case of its suite, and does not count for its own case."""

    @property
    def case(self) -> CaseKey:
        """Key of the case."""
        return CaseKey(self.eval_file, self.case_id)

    @property
    def total_cost_usd(self) -> float:
        """Cost of target and judges in US dollars, as far as it is known."""
        return (self.cost_usd or 0.0) + (self.judge_cost_usd or 0.0)

    @property
    def key(self) -> TrialKey:
        """Key of the trial, unique in a run."""
        return self.case, self.trial


class Journal:
    """Open journal. Use it as a context manager; `append` survives a kill at any time."""

    def __init__(self, file: Path) -> None:
        """Open for appending, dropping an unfinished last line. Raises GateError when the place cannot be written."""
        self._file = file
        self._descriptor = open_to_append(file)
        _drop_unfinished_line(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def append(self, trial_record: TrialRecord) -> JournalLine:
        """Write one trial. Returns once the operating system has it: this process may die, the line stays.

        Raises GateError if it cannot be written: the trial would be lost.
        """
        line = _encode_line(trial_record)
        append_data(self._descriptor, line, self._file)
        return JournalLine(os.lseek(self._descriptor, 0, os.SEEK_CUR) - len(line), len(line), _hash_line(line))

    def read(self, line: JournalLine) -> TrialRecord:
        """Read the trial at this place. Raises GateError `invalid-journal` if the line changed."""
        os.lseek(self._descriptor, line.start, os.SEEK_SET)  # lines are always appended
        encoded = os.read(self._descriptor, line.size)
        if _hash_line(encoded) != line.digest:
            raise GateError(
                "invalid-journal",
                f"{self._file} changed while the run wrote it: a finished trial is missing",
                "start a new run, and do not change its folder",
                exit_code=ExitCode.INCOMPLETE,
            )
        return decode_json(encoded, TrialRecord)


def _encode_line(trial_record: TrialRecord) -> bytes:
    return json.encode(trial_record) + b"\n"


async def rewrite_lines(file: Path, convert: Callable[[TrialRecord], Awaitable[TrialRecord]]) -> None:
    """Convert every finished trial of a journal, or raise GateError and change nothing."""
    with open_replacement(file) as write:
        for record, _ in read_lines(file):
            write(_encode_line(await convert(record)))


def _drop_unfinished_line(descriptor: int) -> None:
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - 65_536)
        os.lseek(descriptor, start, os.SEEK_SET)  # lines are always appended
        newline = os.read(descriptor, end - start).rfind(b"\n")
        if newline >= 0:
            os.ftruncate(descriptor, start + newline + 1)
            return
        end = start
    os.ftruncate(descriptor, 0)


def read_lines(file: Path) -> Iterator[tuple[TrialRecord, JournalLine]]:
    """Yield the finished trials in the order they finished, each with its place in the journal.

    A missing journal yields nothing, and an unfinished last line is ignored. Raises GateError `invalid-journal` for
    a complete line that is not a trial, because another program wrote it.
    """
    if not file.exists():
        return
    start = 0
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield decode_json(line, TrialRecord), JournalLine(start, len(line), _hash_line(line))
            except MsgspecError as error:
                raise GateError(
                    "invalid-journal",
                    f"{file}:{number} is not a finished trial",
                    "start a new run instead of --resume",
                ) from error
            start += len(line)


class _TrialNote(NamedTuple):
    """Summary of a finished trial in memory, with the trial itself or its line in the journal."""

    trial: int
    scored: bool
    timed_out: bool
    calls_listed: bool
    calls_missing: bool
    folder: str | None
    preparatory: bool
    source: TrialRecord | JournalLine


class FinishedTrials:
    """Finished trials of a run by case. Those of a large run stay in its journal.

    Memory therefore grows with the number of cases and not with the size of the responses. `journal` must be set and
    open before any trial is read.
    """

    def __init__(self, most: int = MAX_IN_MEMORY) -> None:
        """`most` records stay in memory; others are read from the journal."""
        self._most = most
        self._notes: dict[CaseKey, list[_TrialNote]] = defaultdict(list)
        self.journal: Journal | None = None

    def add(self, trial_record: TrialRecord, line: JournalLine) -> None:
        """Add a trial, or replace it."""
        calls_missing = trial_record.missing_calls is not None
        is_at = trial_record if self._most > 0 else line
        self._most -= 1
        note = _TrialNote(
            trial_record.trial,
            trial_record.status.is_scored,
            trial_record.timed_out,
            trial_record.calls_listed is True,
            calls_missing,
            trial_record.folder,
            trial_record.preparatory,
            is_at,
        )
        notes = self._notes[trial_record.case]
        notes[:] = [one for one in notes if one.trial != note.trial] + [note]

    def load_trials(self, key: CaseKey) -> list[TrialRecord]:
        """Load the trials of a case that count, in the order they finished. Raises GateError `invalid-journal`."""
        return [self._load_record(note) for note in self._notes.get(key, ()) if not note.preparatory]

    def load_preparatory_trials(self, key: CaseKey) -> list[TrialRecord]:
        """Load the trials of a case that only prepared re-runs of later cases. Raises as `load_trials`."""
        return [self._load_record(note) for note in self._notes.get(key, ()) if note.preparatory]

    def forget_case(self, key: CaseKey) -> None:
        """Forget the notes about one case, which are not needed again."""
        self._notes.pop(key, None)

    def list_keys(self) -> set[TrialKey]:
        """List the trials that count."""
        return {(key, note.trial) for key, notes in self._notes.items() for note in notes if not note.preparatory}

    def list_numbers(self, key: CaseKey) -> list[int]:
        """List the numbers of all executions of a case, including those that do not count."""
        return [note.trial for note in self._notes.get(key, ())]

    def count_preparatory(self) -> int:
        """Count the trials that only prepared re-runs."""
        return sum(note.preparatory for notes in self._notes.values() for note in notes)

    def find_folder(self, key: TrialKey) -> str | None:
        """Return the folder that an execution shared with other cases; None without one, or if it was preparatory."""
        case, trial = key
        notes = self._notes.get(case, ())
        return next((note.folder for note in notes if note.trial == trial and not note.preparatory), None)

    def drop(self, key: TrialKey) -> None:
        """Remove a trial because it is repeated."""
        case, trial = key
        if notes := [note for note in self._notes.pop(case, ()) if note.trial != trial]:
            self._notes[case] = notes

    def has_listed_calls(self, key: CaseKey) -> bool:
        """Whether a response to this case has a list of tool calls."""
        return any(note.calls_listed for note in self._notes.get(key, ()))

    def has_timed_out(self, key: CaseKey) -> bool:
        """Whether an execution of this case timed out."""
        return any(note.timed_out for note in self._notes.get(key, ()))

    def keep_scored(self, key: CaseKey, *, lists: bool) -> bool:
        """Remove the trials of a case without a score, which are unfinished, and return whether any is left.

        `lists` means that the target has listed tool calls in this run (`engine.case_result`).
        """
        notes = [note for note in self._notes.pop(key, ()) if note.scored and (lists or not note.calls_missing)]
        if notes:
            self._notes[key] = notes
        return bool(notes)

    def list_cases(self) -> list[CaseKey]:
        """List the cases that have at least one execution."""
        return list(self._notes)

    def _load_record(self, note: _TrialNote) -> TrialRecord:
        if isinstance(note.source, TrialRecord):
            return note.source
        assert self.journal is not None
        return self.journal.read(note.source)
