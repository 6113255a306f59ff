"""What the pushes of one change saw of the cases that failed on any of them: a small ledger that travels with a run.

Each run of a pull request takes over that of the run before it and adds itself. So the newest artifact of the pull
request is all that is read. Cases that passed on every push are not in it: what they did says nothing against them.
"""

import zipfile
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from msgspec import Meta, MsgspecError, json

from eval_gate.errors import GateError
from eval_gate.files.reading import read_left_up_to
from eval_gate.model import limits
from eval_gate.model.base import Record, decode_json
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status
from eval_gate.model.grounds import GroundKind
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.archive import ArchiveError, read_one
from eval_gate.results.ledger import (
    EMPTY,
    Ledger,
    LedgerCase,
    LedgerEntry,
    OddWordsError,
    first_mistake,
    refuse_odd_words,
)
from eval_gate.results.names import RUN_NAME
from eval_gate.results.read import read_run
from eval_gate.struct import replace

PUSHES_NAME: Final = "pushes.json"
MAX_PUSHES: Final = limits.PUSHES
MAX_PUSHES_BYTES: Final = limits.PUSHES_BYTES
_FAILED: Final = frozenset("FCT")


class Pushes(Record, kw_only=True, omit_defaults=True):
    """The pushes of one change, newest first."""

    schema_version: Literal[1] = 1
    pull_request: int | None = None
    """Its number; None where nobody said that it is one. A branch may be that of many pull requests in turn."""
    gate: Annotated[str, Meta(max_length=1000)] = ""
    """The key of the gate that ran; empty on a command line."""
    ledger: Ledger = EMPTY

    def with_run(self, run: RunResult) -> Self:
        """After one more push. Of the older ones as many are kept as count for the next."""
        ledger = self.ledger.with_run(_held_against(run))
        suites = {
            suite: kept
            for suite, cases in ledger.suites.items()
            if (kept := {case_id: one for case_id, case in cases.items() if (one := _newest(case)) is not None})
        }
        return replace(self, ledger=Ledger(runs=ledger.runs[:MAX_PUSHES], suites=suites))


def _held_against(run: RunResult) -> RunResult:
    """The run as later pushes may hold it against the change.

    What failed with the base branch's agent too, or in the baseline, was not of the change, and says nothing of it: the
    next push may have another base, in which it is repaired. Re-runs that only
    repeated the first failure, byte for byte, counted once, and count once for later pushes too.
    """
    changes = run.comparison.changes if run.comparison else ()
    told = {one.key: one.grounds for one in changes if one.grounds is not None}
    lesser = {key: _lesser for key, one in told.items() if one.repeats is not None}
    lesser |= {key: _unsaid for key, one in told.items() if one.why is GroundKind.CONTROL}
    lesser |= {one.key: _unsaid for one in changes if one.change is CaseClass.STILL_FAILING}
    if not lesser:
        return run
    return run.with_cases({key: change(case) for key, case in run.cases() if (change := lesser.get(key))})


def _unsaid(case: CaseResult) -> CaseResult:
    return replace(case, status=Status.SKIPPED)


def _lesser(case: CaseResult) -> CaseResult:
    trials = case.trials[: len(case.trials) - case.reruns]
    return replace(case, trials=trials, reruns=0) if trials else case


def _newest(case: LedgerCase) -> LedgerCase | None:
    """The case in the newest pushes; None where it failed on none of them."""
    words, left = [], MAX_PUSHES
    for word in case.runs.split():
        what, _, times = word.partition("*")
        number = min(int(times or 1), left)
        left -= number
        words += [what] * number
    kept = LedgerCase(yardsticks=case.yardsticks, runs=" ".join(words))
    return kept if any(entry is not None and _failed(entry) for entry in kept.entries()) else None


def _failed(entry: LedgerEntry) -> bool:
    """Whether any execution failed, or may be called a failure by some pass score."""
    every = (*entry.first, *entry.again)
    return any(one.letter in _FAILED or (one.score is not None and one.score < 1) for one in every)


def pushes_bytes(pushes: Pushes) -> bytes:
    """As the file holds it: JSON without what is as by default. Of too many cases it holds none."""
    data = _written(pushes)
    return data if len(data) <= MAX_PUSHES_BYTES else _written(replace(pushes, ledger=EMPTY))


def _written(pushes: Pushes) -> bytes:
    return json.encode(pushes) + b"\n"


def read_pushes(data: bytes, shown: str) -> Pushes:
    """What the file says, read to its last word; `shown` names it. Raises GateError `pushes-corrupt`."""
    if len(data) > MAX_PUSHES_BYTES:
        raise _corrupt(shown, f"larger than {MAX_PUSHES_BYTES:,} bytes")
    try:
        pushes = decode_json(data, Pushes)
        refuse_odd_words(pushes.ledger)
    except MsgspecError as error:
        raise _corrupt(shown, first_mistake(error)) from error
    except OddWordsError as error:
        raise _corrupt(shown, str(error)) from error
    return pushes


def pushes_before(reference: str, output_dir: Path) -> Pushes:
    """The pushes up to the run that somebody names: a run id, a file, a run's folder, a zip.

    A run of which nothing travels along is the first of them. Raises GateError `pushes-corrupt`, and those of a run
    that cannot be had.
    """
    run, path = read_run(reference, output_dir), Path(reference)
    if zipfile.is_zipfile(path):
        return (_in_archive(path) or Pushes()).with_run(run)
    record = path / RUN_NAME if path.is_dir() else path if path.is_file() else output_dir / reference / RUN_NAME
    beside = record.parent / PUSHES_NAME
    try:
        before = read_pushes(read_left_up_to(beside, MAX_PUSHES_BYTES), str(beside)) if beside.is_file() else Pushes()
    except OSError as error:
        raise _corrupt(str(beside), f"it cannot be read ({error.strerror})") from error
    return before.with_run(run)


def _in_archive(file: Path) -> Pushes | None:
    try:
        found = read_one(file, PUSHES_NAME, MAX_PUSHES_BYTES)
    except ArchiveError as error:
        raise _corrupt(str(file), str(error)) from error
    return read_pushes(found[1], f"{file}!{found[0]}") if found else None


def _corrupt(shown: str, what: str) -> GateError:
    return GateError(
        "pushes-corrupt",
        f"{shown} does not say what earlier pushes saw: {what}",
        "name another run of an earlier push, or none; such a file is never changed by hand",
    )
