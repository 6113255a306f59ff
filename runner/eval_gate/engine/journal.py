"""The journal, `cases.jsonl`: one line per finished trial, handed to the system before anything else happens.

A process that is killed loses no finished trial: a line is written in one call, and an unfinished last line (the
machine went down while writing) is dropped when the journal is read or continued.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import Field, ValidationError

from eval_gate.errors import GateError
from eval_gate.files.writing import append, open_to_append
from eval_gate.model.base import Record
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import NO_DETAILS, Blame, CaseDetails, EvaluatorResult, Status
from eval_gate.model.result import TraceSummary
from eval_gate.model.usage import Usage

JOURNAL_NAME = "cases.jsonl"
TrialKey = tuple[CaseKey, int]
"""Which case, and the number of the trial."""


class TrialRecord(Record):
    """One finished trial of one case, complete enough to build the result from."""

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
    blame: Blame | None = None
    timed_out: bool = False
    vetoed: bool = False
    calls_listed: bool = False
    """The answer has a list of tool calls, be it empty."""
    calls_missing: str | None = None
    """Where an answer that is judged by its tool calls should have that list and has none, in words. It is judged here
    as if no tool had been called; whether that holds, the run as a whole says (`engine.silence`)."""
    details: CaseDetails = Field(default_factory=lambda: NO_DETAILS)
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    trace_summary: TraceSummary | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    judge_usage: Usage | None = None
    judge_cost_usd: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def case(self) -> CaseKey:
        """Which case it is of."""
        return CaseKey(self.eval_file, self.case_id)

    @property
    def key(self) -> TrialKey:
        """What makes this trial the only one of its kind in a run."""
        return self.case, self.trial


class Journal:
    """An open journal. Use as a context manager; `append` is safe to be killed in."""

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

    def append(self, record: TrialRecord) -> None:
        """Write one trial. Returns once the operating system has it: this process may die, the line stays.

        Raises GateError where it cannot be written: a trial that is not kept would be lost.
        """
        line = record.model_dump_json(by_alias=True, exclude_defaults=True).encode() + b"\n"
        append(self._descriptor, line, self._file)


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


def read_journal(file: Path) -> Iterator[TrialRecord]:
    """The finished trials, in the order they finished. A missing journal is an empty one.

    Raises GateError `journal-corrupt` for a complete line that is not a trial: something else wrote into it.
    """
    if not file.exists():
        return
    with file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield TrialRecord.model_validate_json(line)
            except ValidationError as error:
                raise GateError(
                    "journal-corrupt",
                    f"{file}:{number} is not a finished trial",
                    "start a new run instead of --resume",
                ) from error
