"""The journal, `cases.jsonl`: one line per finished trial, flushed before anything else happens.

A process that is killed loses no finished trial: a line is written in one call, and an unfinished last line (the
machine went down while writing) is dropped when the journal is read or continued. Of a large run it is also where
finished trials are until the result is made of them (`FinishedTrials`).
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
from eval_gate.model.execution import NO_DETAILS, CaseDetails, ErrorKind, EvaluatorResult, Status
from eval_gate.model.result import TraceSummary
from eval_gate.model.usage import Usage

JOURNAL_NAME = "cases.jsonl"
TrialKey = tuple[CaseKey, int]
"""Which case, and the number of the trial."""
MAX_IN_MEMORY: Final = 1_000
"""Finished trials that are kept as they are: to read one again costs a twentieth of a case, and takes 3 kB less."""

_HASH_KEY: Final = os.urandom(16)
"""Python's own hash of bytes has a key too, which whoever sets PYTHONHASHSEED knows."""


def _hash_line(line: bytes) -> int:
    return int.from_bytes(blake2b(line, digest_size=8, key=_HASH_KEY).digest())


class JournalLine(NamedTuple):
    """Position, length and keyed hash of one line of a journal.

    The last is a hash of them with a key that no other process knows: nobody can write another line that has it.
    """

    start: int
    size: int
    digest: int


class TrialRecord(Record, kw_only=True, omit_defaults=True):
    """One finished trial of one case, with everything that the result is built from."""

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
    timed_out: bool = False
    vetoed: bool = False
    calls_listed: bool = False
    """The answer has a list of tool calls, be it empty."""
    missing_calls: str | None = None
    """Where an answer that is judged by its tool calls should have that list and has none, in words. It is judged here
    as if no tool had been called; whether that holds, the run as a whole says (`engine.unknown_tool_calls`)."""
    details: CaseDetails = field(default_factory=lambda: NO_DETAILS)
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    trace_summary: TraceSummary | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    judge_usage: Usage | None = None
    judge_cost_usd: float | None = None
    warnings: tuple[str, ...] = ()
    folder: str | None = None
    """The folder that it shared with other cases of its suite, by a name of its own (`engine.workspaces`)."""
    preparatory: bool = False
    """It was made only so that a later case of its suite could be run again, and says nothing of its own case."""

    @property
    def case(self) -> CaseKey:
        """Which case it is of."""
        return CaseKey(self.eval_file, self.case_id)

    @property
    def key(self) -> TrialKey:
        """What makes this trial the only one of its kind in a run."""
        return self.case, self.trial


class Journal:
    """An open journal. Use it as a context manager; `append` survives a kill at any time."""

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

        Raises GateError where it cannot be written: a trial that is not kept would be lost.
        """
        line = _encode_line(trial_record)
        append_data(self._descriptor, line, self._file)
        return JournalLine(os.lseek(self._descriptor, 0, os.SEEK_CUR) - len(line), len(line), _hash_line(line))

    def read(self, line: JournalLine) -> TrialRecord:
        """Read the trial at this place of the journal.

        Raises GateError `invalid-journal` if the bytes at that place are no longer those that were written.
        """
        os.lseek(self._descriptor, line.start, os.SEEK_SET)  # what is written goes to the end all the same
        found = os.read(self._descriptor, line.size)
        if _hash_line(found) != line.digest:
            raise GateError(
                "invalid-journal",
                f"{self._file} was changed while the run wrote it: a finished trial is not there any more",
                "start a new run, and leave its folder alone",
                exit_code=ExitCode.INCOMPLETE,
            )
        return decode_json(found, TrialRecord)


def _encode_line(trial_record: TrialRecord) -> bytes:
    return json.encode(trial_record) + b"\n"


async def rewrite_lines(file: Path, kept: Callable[[TrialRecord], Awaitable[TrialRecord]]) -> None:
    """Replace every finished trial of a journal by what `kept` makes of it.

    Raises GateError, and then the journal is as it was.
    """
    with open_replacement(file) as write:
        for record, _ in read_lines(file):
            write(_encode_line(await kept(record)))


def _drop_unfinished_line(descriptor: int) -> None:
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - 65_536)
        os.lseek(descriptor, start, os.SEEK_SET)  # what is written goes to the end all the same
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
    """What is in memory of a finished trial: what the run asks of it on its way, and all of it or where that is."""

    trial: int
    judged: bool
    timed_out: bool
    calls_listed: bool
    calls_missing: bool
    folder: str | None
    preparatory: bool
    source: TrialRecord | JournalLine


class FinishedTrials:
    """Finished trials of a run by case; those of a large run stay in its journal.

    So memory grows with the number of cases and not with what was answered. `journal` has to be there, and open, before
    any of them is asked for.
    """

    def __init__(self, most: int = MAX_IN_MEMORY) -> None:
        """`most` are kept as they are."""
        self._most = most
        self._notes: dict[CaseKey, list[_TrialNote]] = defaultdict(list)
        self.journal: Journal | None = None

    def add(self, trial_record: TrialRecord, line: JournalLine) -> None:
        """One more, in the place of what was known of the same trial before."""
        missing = trial_record.missing_calls is not None
        is_at = trial_record if self._most > 0 else line
        self._most -= 1
        note = _TrialNote(
            trial_record.trial,
            trial_record.status.is_scored,
            trial_record.timed_out,
            trial_record.calls_listed,
            missing,
            trial_record.folder,
            trial_record.preparatory,
            is_at,
        )
        known = self._notes[trial_record.case]
        known[:] = [one for one in known if one.trial != note.trial] + [note]

    def load_trials(self, key: CaseKey) -> list[TrialRecord]:
        """Those of one case that count, in the order they finished. Raises GateError `invalid-journal`."""
        return [self._load_record(note) for note in self._notes.get(key, ()) if not note.preparatory]

    def load_preparatory_trials(self, key: CaseKey) -> list[TrialRecord]:
        """Those of one case that were made only so that a later one could be run again. Raises as `load_trials`."""
        return [self._load_record(note) for note in self._notes.get(key, ()) if note.preparatory]

    def forget_case(self, key: CaseKey) -> None:
        """Forget those of one case, of which nobody asks again."""
        self._notes.pop(key, None)

    def list_keys(self) -> set[TrialKey]:
        """Which there are that count."""
        return {(key, note.trial) for key, notes in self._notes.items() for note in notes if not note.preparatory}

    def list_numbers(self, key: CaseKey) -> list[int]:
        """List the numbers of all executions of a case, including those that do not count."""
        return [note.trial for note in self._notes.get(key, ())]

    def count_preparatory(self) -> int:
        """How many there are that do not count."""
        return sum(note.preparatory for notes in self._notes.values() for note in notes)

    def find_folder(self, key: TrialKey) -> str | None:
        """Return the folder that an execution shared with other cases of its suite.

        Return None if it shared none, or if it does not count because it was preparatory.
        """
        case, trial = key
        notes = self._notes.get(case, ())
        return next((note.folder for note in notes if note.trial == trial and not note.preparatory), None)

    def drop(self, key: TrialKey) -> None:
        """Let go of one, if it is here: it is made anew."""
        case, trial = key
        if kept := [note for note in self._notes.pop(case, ()) if note.trial != trial]:
            self._notes[case] = kept

    def has_listed_calls(self, key: CaseKey) -> bool:
        """Whether an answer to this case has a list of tool calls."""
        return any(note.calls_listed for note in self._notes.get(key, ()))

    def has_timed_out(self, key: CaseKey) -> bool:
        """Whether there was no answer in time to this case."""
        return any(note.timed_out for note in self._notes.get(key, ()))

    def keep_scored(self, key: CaseKey, *, lists: bool) -> bool:
        """Let go of those of a case that are not judged, and so not finished; whether any is left.

        `lists`: the target has listed tool calls in this run (`engine.unknown_tool_calls`).
        """
        kept = [note for note in self._notes.pop(key, ()) if note.judged and (lists or not note.calls_missing)]
        if kept:
            self._notes[key] = kept
        return bool(kept)

    def list_cases(self) -> list[CaseKey]:
        """List the cases that have at least one execution."""
        return list(self._notes)

    def _load_record(self, note: _TrialNote) -> TrialRecord:
        if isinstance(note.source, TrialRecord):
            return note.source
        assert self.journal is not None
        return self.journal.read(note.source)
