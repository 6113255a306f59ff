"""Reads stored results: run id, file, run folder, folder of runs, zip."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import Final

from msgspec import MsgspecError

from eval_gate.errors import ExitCode, GateError, format_suggestion
from eval_gate.files.reading import read_limited_result
from eval_gate.model import limits
from eval_gate.model.base import decode_json
from eval_gate.model.comparison import Outcome, ReasonCode, UnscoredRun
from eval_gate.model.result import RunResult
from eval_gate.model.selection import CaseSelection
from eval_gate.results.archive import ArchiveError, read_entry
from eval_gate.results.baseline import (
    NOT_REQUESTED,
    Baseline,
    NoBaseline,
    build_unscored_run,
    has_enough_scores,
    refuse_own_baseline,
)
from eval_gate.results.history import EMPTY_HISTORY, HISTORY_NAME, MAX_RUNS, History, build_history
from eval_gate.results.result_names import LATEST, LATEST_NAME, PIPE_HINT, PIPE_PROBLEM, RUN_NAME, is_run_id
from eval_gate.results.run_history import find_history, read_history_file, trim_to_run
from eval_gate.results.run_parsing import MAX_RESULT_BYTES, build_corrupt_error, parse_head, parse_run
from eval_gate.results.run_times import compute_run_time, find_latest_run, is_in_future
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.quoting import quote_name

MAX_RUNS_READ: Final = limits.RUNS_READ
"""Maximum runs read from one folder: the most recently written ones."""
MAX_RUNS_SEARCHED: Final = limits.RUNS_SOUGHT
"""Maximum runs of a folder that are searched for one that passed."""
RUN_GLOB: Final = f"*/{RUN_NAME}"
"""Pattern of the run results in a folder of runs."""
ARTIFACT_RUN_GLOB: Final = f"*/{RUN_GLOB}"
"""Pattern for a folder of several downloaded artifacts, each with its folder of runs."""
_MAX_HEAD_BYTES: Final = 4_096
_RUN_RESULT_START: Final = re.compile(rb'\s*\{\s*"(schemaVersion|runId)"\s*:')


FileFilter = Callable[[Path], bool]
"""Whether the run result in this file may be the requested one, out of a folder of runs."""


def accept_any_file(_file: Path) -> bool:
    """Every record may be meant."""
    return True


def find_baseline(
    reference: str | None,
    output_dir: Path,
    history: str | None = None,
    *,
    besides: str | None = None,
    chosen: Sequence[CaseSelection] = (),
    target: str | None = None,
) -> Baseline | NoBaseline:
    """Find the baseline that `reference` names.

    A named baseline that cannot be found raises GateError. Only `latest` may find none, because before the first
    run there is no earlier one. If `reference` is None, no baseline was requested.

    The history of its cases comes from `history`, a history file or a folder of runs. Without it, the history
    stored with the baseline is used, or the runs of the baseline's folder. `besides` is the id of the run under
    evaluation, which may be in the same folder: neither `latest` nor a folder means that run. `chosen` are the cases
    selected for that run: a run of all of them is as good as a complete one. If the folder has runs of several
    targets, `latest` is limited to those of `target`, unless it has none yet.
    """
    baseline = _find_named_baseline(reference, output_dir, besides, chosen, target)
    refuse_own_baseline(baseline, besides)
    if history is None or isinstance(baseline, NoBaseline):
        return baseline
    return replace(baseline, history=trim_to_run(read_history(history), baseline.result))


def read_history(reference: str) -> History:
    """Read the history from a file, a run's folder or archive, or a folder of runs. Raises GateError."""
    path = _to_path(reference)
    if path.is_dir() and (path / HISTORY_NAME).is_file():
        return find_history(path / RUN_NAME)
    if path.is_dir():
        if not (runs := read_runs(path)):
            raise _build_not_found(path, "{} contains no runs with a readable history")
        return build_history(runs)
    if zipfile.is_zipfile(path):
        return find_history(path)
    return read_history_file(path)


def _find_named_baseline(
    reference: str | None, output_dir: Path, besides: str | None, chosen: Sequence[CaseSelection], target: str | None
) -> Baseline | NoBaseline:
    if reference is None:
        return NOT_REQUESTED
    if reference == LATEST:
        own = find_newest_passed(output_dir, target=target, besides=besides, chosen=chosen)
        if target is None or isinstance(own, Baseline) or own.code != ReasonCode.NO_RUN_YET:
            return own
        # it had another name before, or is new
        return find_newest_passed(output_dir, besides=besides, chosen=chosen)
    path = _to_path(reference)
    if path.is_dir() and not (path / RUN_NAME).is_file():
        listed = list_stored_runs(path)
        candidates = [one for one in listed if one.head.run_id != besides]
        if not candidates:
            other = " other than the one under evaluation" if listed else ""
            raise _build_not_found(path, f"{{}} contains no run{other}")
        present = [one for one in candidates if not is_in_future(one.head.timestamp)]
        if not present:
            raise _build_not_found(path, "every run in {} has a timestamp in the future")
        if not _sort_complete(present):
            raise _build_incomplete(path, present[0].head)
        baseline = find_first_scored(_sort_complete(present, chosen), reference, present)
        if baseline is None:
            raise _build_not_found(path, "no run in {} has scores for half of its cases")
        return replace(baseline, notes=_describe_future_runs(candidates))
    record, (run, its_own) = (
        _locate_run_result(path, reference, output_dir),
        read_run_and_folder(reference, output_dir, compared=False),
    )
    among = list_stored_runs(record.parent.parent) if record.parent.name == run.run_id else []
    return Baseline(run, reference, history=_find_history_up_to(run, record, among), folder=its_own)


def _find_history_up_to(run: RunResult, record: Path, among: Iterable[StoredRun]) -> History:
    """Find the history that ends with `run`: the same one, whether the run is named by id, `latest` or folder."""
    stored = trim_to_run(find_history(record), run).trim_to(run)
    run_ids = {one.run_id for one in stored.runs}
    older = list(islice(dropwhile(lambda one: one.head.run_id != run.run_id, among), 1, MAX_RUNS))
    if all(one.head.run_id in run_ids for one in older):
        return stored
    history = EMPTY_HISTORY
    for one in reversed(older):
        history = history.with_run(one.read())  # no two large runs are in memory
    history = history.with_run(run)
    if len(history.runs) <= len(stored.runs):
        return stored
    return replace(history, levels=stored.levels)  # runs have no levels of their own


def _locate_run_result(path: Path, reference: str, output_dir: Path) -> Path:
    """Locate the run result or archive that a reference to one run names."""
    if path.is_dir():
        return path / RUN_NAME
    return path if path.is_file() else output_dir / reference / RUN_NAME


def find_first_scored(complete: Iterable[StoredRun], reference: str, among: Sequence[StoredRun]) -> Baseline | None:
    """Find the first of these complete runs with enough scores, and name the runs passed over before it.

    `among` are all runs of the folder, newest first. Return None if no run has enough scores.
    """
    passed_over: list[UnscoredRun] = []
    for one in complete:
        run = one.read()
        if has_enough_scores(run):
            history, unscored = _find_history_up_to(run, one.file, among), tuple(passed_over)
            exact, own = str(one.folder), one.folder
            return Baseline(run, reference, history=history, unscored_runs=unscored, exact_reference=exact, folder=own)
        passed_over.append(build_unscored_run(run))
    return None


def require_baseline(current: RunResult, reference: str, output_dir: Path, history: str | None = None) -> Baseline:
    """Find the baseline of a stored run. Raises GateError `baseline-not-found` if there is none, even for `latest`."""
    own, chosen, target = current.run_id, current.selections, current.target.name
    baseline = find_baseline(reference, output_dir, history, besides=own, chosen=chosen, target=target)
    if isinstance(baseline, NoBaseline):
        raise GateError("baseline-not-found", baseline.reason, "give the id or the path of a run to compare with")
    return baseline


def find_newest_passed(
    folder: Path,
    *,
    target: str | None = None,
    besides: str | None = None,
    chosen: Sequence[CaseSelection] = (),
    but: Collection[str] = (),
) -> Baseline | NoBaseline:
    """Find the newest run that passed its gate, which `latest` means as a baseline.

    The run has the target `target` if one is given, and covers every case, or all cases `chosen` for the run that
    is compared with it. Targets named in `but` and the run `besides` are passed over, as are runs from the future.

    A failed run never becomes the baseline by itself: otherwise the same failure would not be a regression a second
    time. In the history before the baseline, failed runs count like all others. If runs have a verdict and none
    passed, the user has to name one, and a gate that needs a baseline does not pass as if there were no runs.
    """
    files = _list_run_files(folder)
    older = (one for file in files[MAX_RUNS_READ:MAX_RUNS_SEARCHED] for one in _read_heads([file]))
    newest = _read_heads(files[:MAX_RUNS_READ], find_latest_run(folder))
    notes = _describe_future_runs(_iter_covering(newest, target, besides, chosen, but))
    present = (one for one in chain(newest, older) if not is_in_future(one.head.timestamp))
    usable = _iter_covering(present, target, besides, chosen, but)
    candidate: StoredRun | None = None
    passed_over: list[UnscoredRun] = []
    for one in usable:
        outcome = one.head.verdict.outcome if one.head.verdict else None
        if outcome is Outcome.PASSED:
            run, candidates = one.read(), chain([one], usable)  # failed runs too, but none whose change came later
            history, unscored = _find_history_up_to(run, one.file, candidates), tuple(passed_over)
            exact, own = _format_reference(one), one.folder
            return Baseline(
                run, LATEST, history=history, unscored_runs=unscored, notes=notes, exact_reference=exact, folder=own
            )
        if not has_enough_scores(run := one.read()):
            passed_over.append(build_unscored_run(run))
        if outcome is not Outcome.INCONCLUSIVE:
            candidate = candidate or one
    of = f" of {target[:80]}" if target else ""
    if candidate is None and notes:
        return NoBaseline(
            ReasonCode.NO_PASSING_BASELINE,
            f"no other run{of} in {folder} can be the baseline: {notes[0]}",
            unavailable=True,
        )
    if candidate is None:
        return NoBaseline(ReasonCode.NO_RUN_YET, f"{folder} contains no complete run{of} with scores yet")
    return NoBaseline(
        ReasonCode.NO_PASSING_BASELINE,
        f"no run{of} in {folder} passed its gate yet: give the id of a run to compare with, such as "
        f"{_format_reference(candidate)[:200]}, or start without a baseline and with --fail-on regressions",
        unavailable=True,
    )


def read_run(reference: str, output_dir: Path, accept: FileFilter = accept_any_file) -> RunResult:
    """Read the run result that `reference` names.

    A folder of runs gives its newest complete run, `latest` the newest run of all. Raises GateError
    `baseline-not-found`, `invalid-run-result` or `unsupported-run-result-version`, always before anything is run.
    """
    return read_run_and_folder(reference, output_dir, accept=accept)[0]


def read_run_and_folder(
    reference: str, output_dir: Path, *, compared: bool = True, accept: FileFilter = accept_any_file
) -> tuple[RunResult, Path | None]:
    """Read a run result like `read_run`, and return it with its folder.

    The folder is None if the run has none of its own, as in an archive. Raises GateError like `read_run`. Without
    `compared`, the run's comparison with its own baseline is omitted: a baseline does not need it, and it is a
    third of the data.
    """
    path = _to_path(reference)
    if path.is_dir():
        record = _locate_newest(path, accept)
        return _read_run_file(record, compared=compared), record.parent
    if path.is_file():
        if zipfile.is_zipfile(path):
            return read_archived_run(path, str(path), compared=compared), None
        return _read_run_file(path, compared=compared), path.parent if path.name == RUN_NAME else None
    if reference == LATEST and (newest := list_stored_runs(output_dir, accept)):
        return newest[0].read(compared=compared), newest[0].folder
    record = output_dir / reference / RUN_NAME
    if is_run_id(reference) and record.is_file():
        return _read_run_file(record, compared=compared), record.parent
    run_ids = [record.parent.name for record in output_dir.glob(RUN_GLOB)]
    if reference == LATEST and not run_ids:
        raise GateError(
            "baseline-not-found",
            f"there is no run in {output_dir} yet",
            "start one with `eval-gate run`, or set --output-dir to another folder of runs",
        )
    if reference == "-" or path.exists():
        raise GateError("baseline-not-found", f"{quote_name(reference)} {PIPE_PROBLEM}", PIPE_HINT)
    raise GateError(
        "baseline-not-found",
        f"stored result {quote_name(reference, or_digits=True)} not found{format_suggestion(reference, run_ids)}",
        f"give a run id of {output_dir}, a results file, a run folder, a folder of runs, a zip, or {LATEST}",
    )


def is_run_reference(reference: str) -> bool:
    """Whether a reference leads to a result of this program or of another runner of the contract, and of no other tool.

    A file is recognized by its start: a run result by its first key, a suite's result by its run.
    """
    path = _to_path(reference)
    if path.is_dir():
        return (path / RUN_NAME).is_file() or any(any(path.glob(pattern)) for pattern in (RUN_GLOB, ARTIFACT_RUN_GLOB))
    if not path.is_file():
        return not path.suffix  # what is called like a file and is not there, no tool has written
    if zipfile.is_zipfile(path):
        return read_entry(path, RUN_NAME, 0) is not None
    with path.open("rb") as stream:
        return _RUN_RESULT_START.match(stream.read(_MAX_HEAD_BYTES)) is not None


def _to_path(reference: str) -> Path:
    """Convert a reference to a path, which does not exist if the file system rejects the reference."""
    path = Path(reference)
    try:
        path.exists()
    except OSError:
        return Path("no such path")
    return path


def read_runs(
    folder: Path, pattern: str = RUN_GLOB, most: int = MAX_RUNS_READ, accept: FileFilter = accept_any_file
) -> tuple[RunResult, ...]:
    """Read the runs of a folder, newest first.

    A run that cannot be read raises GateError, because a history has no gaps. If there are more than `most`, only
    those written last are read. `pattern` is the glob of the run results in `folder`.
    """
    return tuple(
        run
        for run, _ in _sort_newest_first(
            _list_run_files(folder, pattern, accept)[:most], parse_run, find_latest_run(folder)
        )
    )


class StoredRun(FrozenStruct):
    """A run in a folder of runs, without its cases and comparison until `read` is called."""

    head: RunResult
    file: Path

    @property
    def folder(self) -> Path:
        """The run's own folder."""
        return self.file.parent

    def read(self, *, compared: bool = False) -> RunResult:
        """Read the run result, each time anew; with `compared`, include its comparison. Raises GateError."""
        return _read_run_file(self.file, compared=compared)


def list_stored_runs(folder: Path, accept: FileFilter = accept_any_file) -> list[StoredRun]:
    """List the runs of a folder, newest first; of very many, only those written last. Raises GateError."""
    return _read_heads(_list_run_files(folder, accept=accept)[:MAX_RUNS_READ], find_latest_run(folder))


def _list_run_files(
    folder: Path, pattern: str = RUN_GLOB, accept: FileFilter = accept_any_file
) -> list[tuple[int, Path]]:
    """List the run results of a folder with their times of writing in nanoseconds, the last written first."""
    return sorted(((file.stat().st_mtime_ns, file) for file in folder.glob(pattern) if accept(file)), reverse=True)


def _read_heads(files: Iterable[tuple[int, Path]], last: Path | None = None) -> list[StoredRun]:
    """Read the heads of the runs in these files, newest first."""
    return [StoredRun(*one) for one in _sort_newest_first(files, parse_head, last)]


def _sort_newest_first(
    files: Iterable[tuple[int, Path]], read: Callable[[bytes, str], RunResult], last: Path | None
) -> list[tuple[RunResult, Path]]:
    """Return results with files: the `last` that this machine made comes first, runs from the future come last."""
    runs = [(read(_read_file(file), str(file)), when, file) for when, file in files]

    def newer(one: tuple[RunResult, int, Path]) -> tuple[bool, bool, datetime, int]:
        run, when, file = one
        # timestamps are in seconds: of two equal ones, the file that was written last is newer
        return not is_in_future(run.timestamp), file == last, compute_run_time(run.timestamp, when), when

    return [(run, file) for run, _, file in sorted(runs, key=newer, reverse=True)]


def _describe_future_runs(stored_runs: Iterable[StoredRun]) -> tuple[str, ...]:
    """Describe in a sentence each run that is passed over because its timestamp is in the future."""
    return tuple(
        f"run {one.head.run_id[:8]} has a timestamp in the future ({one.head.timestamp[:25]}), so it is not used as "
        "the baseline"
        for one in stored_runs
        if is_in_future(one.head.timestamp)
    )


def _iter_covering(
    stored_runs: Iterable[StoredRun],
    target: str | None,
    besides: str | None,
    chosen: Sequence[CaseSelection],
    but: Collection[str],
) -> Iterator[StoredRun]:
    """Yield the complete, unsharded runs of `target` that cover every case in `chosen`, without `besides` and `but`."""
    for one in stored_runs:
        run = one.head
        whole = run.complete and run.covers(chosen) and run.shard is None
        if whole and run.run_id != besides and target in (None, run.target.name) and run.target.name not in but:
            yield one


def _format_reference(stored_run: StoredRun) -> str:
    """Return the reference that names exactly this run of the results folder."""
    return stored_run.folder.name if is_run_id(stored_run.folder.name) else str(stored_run.folder)


def _locate_newest(folder: Path, accept: FileFilter) -> Path:
    """Locate the run result that a folder stands for: its own, else its newest complete run, else its newest."""
    own = folder / RUN_NAME
    if own.is_file():
        return own
    if not (runs := list_stored_runs(folder, accept)):
        raise _build_not_found(folder, "{} contains no run")
    return next(iter(_sort_complete(runs)), runs[0]).file


def _sort_complete(stored_runs: Sequence[StoredRun], chosen: Sequence[CaseSelection] = ()) -> Sequence[StoredRun]:
    """Return the complete runs, those that cover every case or all of `chosen` first."""
    return sorted((one for one in stored_runs if one.head.complete), key=lambda one: not one.head.covers(chosen))


def _build_not_found(folder: Path, what: str) -> GateError:
    hint = f"a run folder contains {RUN_NAME}; a folder of runs contains run folders"
    return GateError("baseline-not-found", what.format(folder), hint)


def _build_incomplete(folder: Path, newest: RunResult) -> GateError:
    """Build the error without a complete baseline, with the exit code INCOMPLETE: it says nothing about this run."""
    why = newest.stop_reason or "the newest run was interrupted"
    return GateError(
        "baseline-incomplete",
        f"{folder} contains no complete run to compare with: {why}",
        "join all shards with `eval-gate merge`, finish the run with `eval-gate run --resume`, or give another run",
        exit_code=ExitCode.INCOMPLETE,
    )


def read_archived_run(file: Path, name: str, *, compared: bool = True) -> RunResult:
    """Read the only run result in an untrusted zip archive; `name` stands for it in errors.

    Without `compared`, the run's comparison with its own baseline is omitted, as for every baseline.
    """
    return parse_run(*_read_archive_entry(file, name), compared=compared)


def read_archived_head(file: Path, name: str) -> RunResult:
    """Read an archived run without its cases and its comparison, to identify it."""
    return parse_head(*_read_archive_entry(file, name))


def _read_archive_entry(file: Path, name: str) -> tuple[bytes, str]:
    """Read the one run result in an archive, and return it with its name in errors."""
    try:
        entry = read_entry(file, RUN_NAME, MAX_RESULT_BYTES)
    except ArchiveError as error:
        raise build_corrupt_error(name, str(error)) from error
    if entry is None:
        raise build_corrupt_error(name, f"0 entries are named {RUN_NAME}, expected one")
    path, data = entry
    return data, f"{name}!{path}"


def read_resumed_run(output_dir: Path, run_id: str) -> RunResult:
    """Read the run result of an earlier run that is to be resumed. Raises GateError `run-not-found`."""
    file = output_dir / run_id / RUN_NAME
    if not is_run_id(run_id) or not file.is_file():
        raise GateError(
            "run-not-found",
            f"run {quote_name(run_id, or_digits=True)} not found in {output_dir}",
            f"`{output_dir}/{LATEST_NAME}` names the newest one",
        )
    try:
        run = decode_json(_read_file(file), RunResult)
    except MsgspecError as error:
        raise GateError("run-not-found", f"{file} is not a run result of this version") from error
    if run.run_id != run_id:  # the journal of that one would be gone on with
        raise GateError(
            "run-not-found",
            f"{file} is the result of another run, {run.run_id[:80]}",
            "resume a run in its own folder, or start a new run",
        )
    return run


def _read_run_file(file: Path, *, compared: bool) -> RunResult:
    return parse_run(_read_file(file), str(file), compared=compared)


def _read_file(file: Path) -> bytes:
    if not file.is_file():  # a pipe would be waited for, for ever
        raise build_corrupt_error(str(file), "cannot be read: it is not a file")
    try:
        return read_limited_result(file, MAX_RESULT_BYTES)
    except OSError as error:
        raise build_corrupt_error(str(file), f"cannot be read: {error.strerror}") from error
