"""Finds the history of a stored run, and joins the histories of runs that overlapped in time."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from eval_gate.errors import GateError
from eval_gate.files.reading import read_limited_result
from eval_gate.model.case import CaseKey
from eval_gate.model.result import RunResult
from eval_gate.results.archive import ArchiveError, read_entry
from eval_gate.results.history import (
    EMPTY_HISTORY,
    HISTORY_NAME,
    MAX_HISTORY_BYTES,
    MAX_PLACES,
    NO_ENTRY,
    REUSED_ENTRY,
    CaseHistory,
    History,
    HistoryEntry,
    HistoryRun,
    assemble_history,
    build_case_history,
    build_history_run,
    parse_history,
    split_executions,
)
from eval_gate.struct import replace


def read_history_file(file: Path) -> History:
    """Read the history in `file`. Raises GateError `invalid-history`."""
    try:
        return parse_history(read_limited_result(file, MAX_HISTORY_BYTES), str(file))
    except OSError as error:
        raise GateError(
            "invalid-history", f"{file} cannot be read: {error.strerror}", "give another history file, or none"
        ) from error


def find_history(record: Path) -> History:
    """Find the history stored with a run result, in its folder or in its archive.

    Return an empty history if there is none. Raises GateError `invalid-history` if it exists and cannot be read.
    """
    if zipfile.is_zipfile(record):
        return _read_archived_history(record)
    file = record.parent / HISTORY_NAME
    return read_history_file(file) if file.is_file() else EMPTY_HISTORY


def trim_to_run(history: History, run: RunResult) -> History:
    """Return the history up to this run, or all of it if it does not have the run.

    If the newest entries contradict the run result, they are replaced: a changed history, or that of another run with
    this id, could claim that the baseline failed a case that it passed. Raises GateError `invalid-history`.
    """
    if all(one.run_id != run.run_id for one in history.runs):
        return history
    trimmed = history.trim_to(run)
    return trimmed if _is_same_run(trimmed, run) else trimmed.drop_newest(1).with_run(run).with_levels(trimmed.levels)


def trim_to_run_id(history: History, run_id: str) -> History:
    """Return the history up to the run of this id; an empty one if it does not have the run."""
    start = next((at for at, one in enumerate(history.runs) if one.run_id == run_id), len(history.runs))
    return history.drop_newest(start)


def _is_same_run(history: History, run: RunResult) -> bool:
    """Whether the newest run of the history is this one, with the same cases and executions."""
    if replace(history.runs[0], sha=run.sha, figures=None) != replace(build_history_run(run), figures=None):
        return False
    cases, count = run.index_cases(), 0
    for key in history.iter_keys():
        of_case = history.get_case(key)
        entry = next(iter(of_case.decode_entries()), None)
        if entry is None:
            count += key.suite in run.baseline_suites and 0 in of_case.reused_places
            continue
        count += 1
        if (case := cases.get(key)) is None or not of_case.is_entry_of(entry, case):
            return False
    return count == sum(bool(split_executions(case)[0]) for case in cases.values())


def _read_archived_history(file: Path) -> History:
    try:
        entry = read_entry(file, HISTORY_NAME, MAX_HISTORY_BYTES)
    except ArchiveError as error:
        raise GateError(
            "invalid-history", f"the history in {file} cannot be read: {error}", "give another run"
        ) from error
    if entry is None:
        return EMPTY_HISTORY
    path, data = entry
    return parse_history(data, f"{file}!{path}")


def join_histories(newest: History, further: Sequence[History]) -> History:
    """Join all runs of these histories, each once: the newest run of `newest` first, the others by their timestamps.

    The levels are those of `newest`. Raises GateError for an invalid history.
    """
    run_ids = {run.run_id for run in newest.runs}
    more = [one for one in further if any(run.run_id not in run_ids for run in one.runs)]
    if not newest.runs or not more:
        return newest
    histories = (newest, *more)
    runs = _merge_runs(histories)
    keys = dict.fromkeys(key for history in histories for key in history.iter_keys())
    suites: dict[str, dict[str, CaseHistory]] = {}
    for key in keys:
        entries = _collect_entries(key, histories)
        behaviours = _collect_behaviours(key, histories)
        case = build_case_history(
            [entries.get(run.run_id, NO_ENTRY) for run in runs], [behaviours.get(run.run_id, "") for run in runs]
        )
        rule = next((one.pass_rule for history in histories if (one := history.get_case(key)).runs), None)
        suites.setdefault(key.suite, {})[key.case_id] = replace(case, pass_rule=rule)
    return assemble_history(runs, suites, newest.levels)


def _merge_runs(histories: Sequence[History]) -> tuple[HistoryRun, ...]:
    first, *_ = histories[0].runs
    runs = {run.run_id: run for history in reversed(histories) for run in history.runs if run.run_id != first.run_id}
    older = sorted(runs.values(), key=lambda run: run.timestamp, reverse=True)
    return (first, *older)[:MAX_PLACES]


def _collect_behaviours(key: CaseKey, histories: Sequence[History]) -> dict[str, str]:
    """Collect the digest of a case's behaviour, by run id. If several histories have a run, the first counts."""
    return {
        run.run_id: word
        for history in reversed(histories)
        for run, word in zip(history.runs, history.get_case(key).list_behaviour_words(), strict=False)
    }


def _collect_entries(key: CaseKey, histories: Sequence[History]) -> dict[str, tuple[str, HistoryEntry] | str]:
    """Collect the fingerprint and entry of a case, by run id; the first history that has a run counts."""
    entries: dict[str, tuple[str, HistoryEntry] | str] = {}
    for history in reversed(histories):
        case = history.get_case(key)
        for place, (run, entry) in enumerate(zip(history.runs, case.decode_entries(), strict=False)):
            word = REUSED_ENTRY if place in case.reused_places else NO_ENTRY
            entries[run.run_id] = word if entry is None else (case.fingerprints[entry.fingerprint_index], entry)
    return entries
