"""History: results of every case in the newest runs of a branch, in one small file.

A run result holds everything about one run. To tell a regression from a flaky case, the gate needs a few numbers from
many runs, so each run of a branch copies the history of the run before it and adds its own results.

The entry of a case in one run is a few letters: its first executions, then a bar and its re-runs. `P` passed, `F`
failed, `C` agent error, `T` timed out, `U` agent unreachable, `O` evaluation error (`ErrorKind`); `-` is a run without
the case, and `=` one that reused the result of an earlier run: its executions are an entry of that run, and count once.
A graded case has a score for each letter. The entries of a case run from the newest run to the oldest, and
equal neighbors are written once: `0P*9 0F|PP` passed in the nine newest runs and recovered in the tenth. The number is
the index of the case's fingerprint in its list of fingerprints. The behaviour of a case in its newest passed runs has a
list of its own, in the same order (`case_behaviour`).
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import groupby, zip_longest
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, MsgspecError, ValidationError, convert, field, json

from eval_gate.errors import GateError
from eval_gate.model import limits
from eval_gate.model.base import Record, decode_json
from eval_gate.model.case import CaseKey, PassRule
from eval_gate.model.evidence import PermittedRegression, RunReference
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.run_totals import count_scored_cases
from eval_gate.results.case_behaviour import BehaviourDigest, decode_behaviour, encode_behaviour
from eval_gate.results.levels import MAX_LEVELS, Levels, RunLevels
from eval_gate.results.run_figures import RunFigures, measure_run
from eval_gate.struct import replace
from eval_gate.text.sources.validation_errors import describe_mismatch, format_field_path

HISTORY_NAME: Final = "history.json"
MAX_RUNS: Final = limits.HISTORY_RUNS
"""Maximum runs in a history: older runs say little about the current state."""
MAX_PLACES: Final = limits.HISTORY_PLACES
"""Maximum runs with those that reused results, which are not among the `MAX_RUNS` of their cases."""
_KEPT_ENTRIES: Final = (20, 10, 5, 2)
"""Entries that every case keeps where places are short, as many as possible: the gate uses no more than the first."""
MAX_HISTORY_BYTES: Final = limits.HISTORY_BYTES
MAX_EXECUTIONS: Final = limits.HISTORY_EXECUTIONS
"""Maximum first executions of a case in one run, and maximum re-runs."""
MAX_BEHAVIOURS: Final = limits.HISTORY_BEHAVIOURS
"""Maximum runs whose behaviour is kept for each case."""
MANY_FINGERPRINTS: Final = 8
NO_ENTRY: Final = "-"
REUSED_ENTRY: Final = "="
_NO_EXECUTIONS: Final = frozenset({NO_ENTRY, REUSED_ENTRY})
_ENTRY_PATTERN: Final = re.compile(
    r"(?P<what>[-=]|(?P<fingerprint>\d{1,3})(?P<first>[PFCTUO]{1,200})(?:\|(?P<again>[PFCTUO]{1,200}))?"
    r"(?::(?P<scores>[\d.x,]{1,2000}))?)(?:\*(?P<times>\d{1,2}))?"
)
_LETTERS: Final = {Status.PASSED: "P", Status.FAILED: "F"}
_ERROR_LETTERS: Final = {
    ErrorKind.AGENT_ERROR: "C",
    ErrorKind.AGENT_UNREACHABLE: "U",
    ErrorKind.EVALUATION_ERROR: "O",
    None: "O",
}
SCORE_DIGITS: Final = 4


class InvalidEntryError(Exception):
    """An invalid entry in the runs of a case."""


class HistoryRun(Record, kw_only=True, omit_defaults=True):
    """One run in a history. `scored` is the number of cases with a score, out of `cases`."""

    run_id: Annotated[str, Meta(max_length=200)]
    timestamp: Annotated[str, Meta(max_length=100)]
    sha: Annotated[str, Meta(max_length=100)] | None = None
    complete: bool = True
    partial: bool = False
    target: Annotated[str, Meta(max_length=1000)] = ""
    """Name, provider and model of the target: a different one is a different agent, whose results are not
    comparable."""
    cases: Annotated[int, Meta(ge=0)] = 0
    scored: Annotated[int, Meta(ge=0)] = 0
    rerun_wait: Annotated[int, Meta(ge=0)] = 0
    """Whole seconds that every re-run kept from the execution before it; 0 if none waited."""
    permitted_regressions: Annotated[tuple[PermittedRegression, ...], Meta(max_length=limits.CASES)] = ()
    """Regressions that this run or an earlier one was allowed to pass with, and that no run passes since."""
    warm_up_of: Annotated[str, Meta(max_length=200)] | None = None
    """Id of the run that this is a warm-up round of; None for every other run."""
    figures: RunFigures | None = None

    @property
    def name(self) -> RunReference:
        """Reference to the run by id and commit."""
        return RunReference(run_id=self.run_id, sha=self.sha)

    @property
    def group(self) -> str:
        """Id of the run whose rounds were made together: this run's own, unless it is a warm-up round."""
        return self.warm_up_of or self.run_id

    @property
    def is_usable(self) -> bool:
        """Whether the run counts for the branch: all cases were run, and at least half of them have a score."""
        return self.complete and not self.partial and self.scored * 2 >= self.cases


class CaseHistory(Record, kw_only=True, omit_defaults=True):
    """History of one case over the runs of a branch."""

    fingerprints: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()
    runs: Annotated[str, Meta(max_length=200_000)] = ""
    behaviour: Annotated[str, Meta(max_length=200_000)] = ""
    """Digest of the case's behaviour in each of the newest runs, newest first. Empty if no run has one."""
    pass_rule: PassRule | None = None
    """Rule of the case in the newest run that has it. The verdict takes that of the run that it decides."""

    def decode_behaviours(self) -> "tuple[tuple[BehaviourDigest, ...], ...]":
        """Decode the behaviour of the case in each of the newest runs, newest first; empty if unknown."""
        return tuple(decode_behaviour(word) for word in self.list_behaviour_words())

    def list_behaviour_words(self) -> list[str]:
        """List the digest of the case's behaviour in each of the newest runs, newest first."""
        return list(_expand_words(self.behaviour, MAX_BEHAVIOURS))

    @property
    def reused_places(self) -> frozenset[int]:
        """Places of the runs, counted from the newest, that reused the result of the case."""
        if REUSED_ENTRY not in self.runs:  # as of every case of a branch that reuses nothing
            return frozenset()
        return frozenset(at for at, what in enumerate(_expand_words(self.runs)) if what == REUSED_ENTRY)

    def decode_entries(self) -> "tuple[HistoryEntry | None, ...]":
        """Decode the entry of the case in each run, newest first.

        The entry is None if a run does not have the case or reused its result; such entries are omitted at the end.
        Raises GateError for an invalid entry.
        """
        try:
            return _decode_case(self)
        except InvalidEntryError as error:
            raise _build_corrupt_error("the history", str(error)) from error

    def ends_with(self, case: CaseResult) -> bool:
        """Whether the newest executions are those of a case result, and stay in the history if a run is added."""
        entries = self.decode_entries()[: MAX_PLACES - 1]
        newest = next((entry for entry in entries if entry is not None), None)
        return newest is not None and self.is_entry_of(newest, case)

    def is_entry_of(self, entry: "HistoryEntry", case: CaseResult) -> bool:
        """Whether an entry of this case has the fingerprint and the executions of a case result."""
        executions = tuple(some[:MAX_EXECUTIONS] for some in split_executions(case))
        fingerprint = self.fingerprints[entry.fingerprint_index]
        return fingerprint == compute_result_fingerprint(case) and (entry.first, entry.reruns) == executions

    def decode_entries_unchecked(self) -> "tuple[HistoryEntry | None, ...]":
        """Decode the entries like `decode_entries`, without checking their fingerprints."""
        try:
            return _decode_runs(self.runs)
        except InvalidEntryError as error:
            raise _build_corrupt_error("the history", str(error)) from error


class HistoryExecution(NamedTuple):
    """One execution: its letter, and its score if it is graded and not vetoed."""

    letter: str
    score: float | None = None


class HistoryEntry(NamedTuple):
    """One case in one run: the index of its fingerprint, first executions and re-runs."""

    fingerprint_index: int
    first: tuple[HistoryExecution, ...]
    reruns: tuple[HistoryExecution, ...] = ()


_PASSED_ONCE: Final = ((HistoryExecution("P"),), ())


class History(Record, kw_only=True, omit_defaults=True):
    """History of a branch: its newest runs, newest first, and every case in them."""

    schema_version: Literal[1] = 1
    runs: Annotated[tuple[HistoryRun, ...], Meta(max_length=MAX_PLACES)] = ()
    suites: dict[str, dict[str, CaseHistory]] = field(default_factory=dict)
    """Cases by eval file and case id."""
    levels: Levels = ()
    """Levels of the runs, newest first. They reach further back than `runs`."""

    def iter_keys(self) -> Iterator[CaseKey]:
        """Every case that any of the runs had."""
        return (CaseKey(suite, case_id) for suite, cases in self.suites.items() for case_id in cases)

    def get_case(self, key: CaseKey) -> CaseHistory:
        """Return the history of a case, which is empty if the case is unknown."""
        return self.suites.get(key.suite, {}).get(key.case_id, _NO_RUNS)

    @property
    def reused_places(self) -> frozenset[int]:
        """Places of the runs that executed no case because they reused results: they say nothing of any case."""
        rows = {case.runs for cases in self.suites.values() for case in cases.values()}
        if not any(REUSED_ENTRY in row for row in rows):
            return frozenset()
        columns = enumerate(zip_longest(*map(_expand_words, rows), fillvalue=NO_ENTRY))
        return frozenset(at for at, words in columns if REUSED_ENTRY in words and _NO_EXECUTIONS.issuperset(words))

    def trim_to(self, run: RunResult) -> "History":
        """Return the history up to this run, which is added if it is missing."""
        start = next((at for at, entry in enumerate(self.runs) if entry.run_id == run.run_id), None)
        if start is not None:
            return self.drop_newest(start)
        newer = sum(entry.timestamp > run.timestamp for entry in self.runs)
        return self.drop_newest(newer).with_run(run)

    def drop_newest(self, start: int) -> "History":
        """Return the history without its `start` newest runs and their levels."""
        if start == 0:
            return self
        suites = self._drop_words(slice(start))
        newer = {run.run_id for run in self.runs[:start]}
        levels = tuple(one for one in self.levels if one.run_id not in newer)
        return History(runs=self.runs[start:], suites=suites, levels=levels)

    def _drop_place(self, place: int) -> "History":
        """Return the history without one of its runs."""
        runs = self.runs[:place] + self.runs[place + 1 :]
        return replace(self, runs=runs, suites=self._drop_words(slice(place, place + 1)))

    def _drop_words(self, places: slice) -> dict[str, dict[str, CaseHistory]]:
        """Return the cases without their entries in these places."""
        return {
            suite: {
                case_id: replace(case, runs=_drop_runs(case.runs, places), behaviour=_drop_runs(case.behaviour, places))
                for case_id, case in cases.items()
            }
            for suite, cases in self.suites.items()
        }

    def _find_idle_place(self) -> int | None:
        """Find the oldest run that no case needs: a case that is reused for long keeps its newest executions."""
        rows = [_expand_words(row) for row in {case.runs for cases in self.suites.values() for case in cases.values()}]
        own = [[at for at, what in enumerate(row) if what != REUSED_ENTRY] for row in rows]
        for number in _KEPT_ENTRIES:
            needed = {0}.union(*(places[:number] for places in own))
            if idle := set(range(len(self.runs))) - needed:
                return max(idle)
        return None

    def with_levels(self, levels: tuple[RunLevels, ...]) -> "History":
        """Return the history with these levels, newest first, instead of its own."""
        return replace(self, levels=levels[:MAX_LEVELS])

    def with_warm_up(self, run: RunResult, rounds: Iterable[RunResult], last_run: RunResult | None = None) -> "History":
        """Return this history, which ends with `run`, with warm-up rounds of the run directly below it.

        `last_run` is the run before this one, as in `with_run`. Rounds change neither levels nor permissions.
        """
        older = self.drop_newest(1)
        for one in rounds:
            added = older.with_run(one)
            newest = replace(added.runs[0], permitted_regressions=(), timestamp=run.timestamp, warm_up_of=run.run_id)
            older = replace(added, runs=(newest, *added.runs[1:]))
        whole = older.with_run(run, last_run=last_run)
        return replace(whole, runs=(self.runs[0], *whole.runs[1:]), levels=self.levels)

    def with_run(
        self, run: RunResult, earlier: Mapping[CaseKey, CaseKey] | None = None, last_run: RunResult | None = None
    ) -> "History":
        """Return the history with `run` added as the newest; a run that it already has stays in its place.

        `earlier` maps each renamed or moved case to the key of its history. `last_run` is the run before this one, if
        it is loaded: only then can responses be compared for lost words. The newest run is replaced if it executed
        nothing, because it would only take the place of another.
        """
        if any(case_history.run_id == run.run_id for case_history in self.runs):
            return self
        if 0 in self.reused_places:
            return self.drop_newest(1).with_run(run, earlier, last_run)
        if len(self.runs) == MAX_PLACES and (place := self._find_idle_place()) is not None:
            return self._drop_place(place).with_run(run, earlier, last_run)
        reused = run.baseline_suites
        earlier, last_cases = earlier or {}, last_run.index_cases() if last_run else {}
        suites: dict[str, dict[str, CaseHistory]] = {}
        old_keys: set[CaseKey] = set()
        for key, case in run.iter_cases():
            old = earlier.get(key, key)
            old_keys.add(old)
            case_history = self.suites.get(old.suite, {}).get(old.case_id)
            if case_history is not None and key.suite in reused and case_history.ends_with(case):
                added = _add_word(case_history, REUSED_ENTRY)
            else:
                added = _add_run(case_history, case, len(self.runs), last_cases.get(old))
            suites.setdefault(key.suite, {})[key.case_id] = added
        for key in self.iter_keys():
            absent = self.suites[key.suite][key.case_id]
            if key not in old_keys and key.case_id not in suites.get(key.suite, {}):
                aged = _add_word(absent, NO_ENTRY)
                if not _is_empty(aged.runs):
                    suites.setdefault(key.suite, {})[key.case_id] = aged
        runs = _limit_places((build_history_run(run), *self.runs), suites)
        return History(runs=runs, suites=suites, levels=self.levels)


_NO_RUNS: Final = CaseHistory()
EMPTY_HISTORY: Final = History()


def build_history_run(run: RunResult) -> HistoryRun:
    """Build the entry of a run in the history."""
    scored, cases = count_scored_cases(run.without_reused)
    return HistoryRun(
        run_id=run.run_id,
        timestamp=run.timestamp,
        sha=run.sha,
        complete=run.complete,
        partial=run.eval_paths is None or run.shard is not None,
        target=build_target_key(run),
        cases=cases,
        scored=scored,
        rerun_wait=run.rerun_wait,
        permitted_regressions=run.permitted_regressions,
        figures=measure_run(run),
    )


def build_target_key(run: RunResult) -> str:
    """Build the key of the evaluated agent, without its address, which can change from run to run."""
    return " ".join(filter(None, (run.target.name, run.target.provider, run.target.model)))[:1000]


def build_history(runs: Iterable[RunResult]) -> History:
    """Build the history of these runs, newest first, without any older history."""
    history, last_run = EMPTY_HISTORY, None
    for run in reversed(list(runs)[:MAX_RUNS]):
        history, last_run = history.with_run(run, last_run=last_run), run
    return history


def build_case_history(runs: Iterable[tuple[str, HistoryEntry] | str], behaviours: Iterable[str] = ()) -> CaseHistory:
    """Build a case's history from the fingerprint and entry of each run, or the word for none, newest first.

    The fingerprint index of the given entries is ignored. `behaviours` are the digests of the same runs.
    """
    fingerprints: dict[str, int] = {}
    words: list[str] = []
    for one in runs:
        if len(words) - words.count(REUSED_ENTRY) == MAX_RUNS:  # older runs have no fingerprints here
            break
        if isinstance(one, str):
            words.append(one)
        else:
            fingerprint, entry = one
            words.append(
                _encode_entry(entry._replace(fingerprint_index=fingerprints.setdefault(fingerprint, len(fingerprints))))
            )
    return CaseHistory(
        fingerprints=tuple(fingerprints),
        runs=_limit_runs(" ".join(words)),
        behaviour=_limit_behaviours(" ".join(one or NO_ENTRY for one in behaviours)),
    )


def assemble_history(
    runs: tuple[HistoryRun, ...], suites: Mapping[str, Mapping[str, CaseHistory]], levels: tuple[RunLevels, ...]
) -> History:
    """Assemble a history from trusted parts, without the cases that no run has."""
    filtered = {
        suite: {case_id: case for case_id, case in cases.items() if not _is_empty(case.runs)}
        for suite, cases in suites.items()
    }
    runs = _limit_places(runs, filtered)
    return History(runs=runs, suites={suite: cases for suite, cases in filtered.items() if cases}, levels=levels)


def _limit_places(
    runs: tuple[HistoryRun, ...], suites: Mapping[str, Mapping[str, CaseHistory]]
) -> tuple[HistoryRun, ...]:
    """Limit the runs to the maximum of a history, or to those that a case with reused results needs."""
    rows = {case.runs for cases in suites.values() for case in cases.values()}
    return runs[: max((MAX_RUNS, *(len(_expand_words(row)) for row in rows)))]


def parse_history(data: bytes, name: str) -> History:
    """Parse a history file; `name` stands for it in errors. Raises GateError `invalid-history` if invalid."""
    if len(data) > MAX_HISTORY_BYTES:
        raise _build_corrupt_error(name, f"larger than {MAX_HISTORY_BYTES:,} bytes")
    try:
        history = _decode_history(data)
        check_entries(history)
    except MsgspecError as error:
        raise _build_corrupt_error(name, describe_first_error(error)) from error
    except InvalidEntryError as error:
        raise _build_corrupt_error(name, str(error)) from error
    return history


def _decode_history(data: bytes) -> History:
    """Decode a history. Invalid levels are dropped, because no verdict needs them. Raises MsgspecError."""
    try:
        return decode_json(data, History)
    except ValidationError:
        parts = json.decode(data, type=dict[str, Any])
        parts.pop("levels", None)
        return convert(parts, History)


def describe_first_error(error: MsgspecError) -> str:
    """Describe the place and the reason of the first error in a history."""
    place, what = describe_mismatch(error)
    return f"{format_field_path(place)[:200]}: {what}".removeprefix(": ")


def check_entries(history: History) -> None:
    """Check every entry: an invalid one would end each run that reads it, and be copied into the next history.

    Raises InvalidEntryError, which names the case.
    """
    read = set[tuple[str, int]]()
    for suite, cases in history.suites.items():
        for case_id, case in cases.items():
            if (kind := (case.runs, len(case.fingerprints))) in read:
                continue  # most cases of a suite did the same
            read.add(kind)
            try:
                _decode_case(case)
            except InvalidEntryError as error:
                raise InvalidEntryError(f"suites.{suite}.{case_id}.runs"[:200] + f": {error}") from error


def encode_history(history: History) -> bytes:
    """Encode a history as its file stores it: JSON without default values, ended by a line break.

    A history that behaviour would make too large to be read leaves it out.
    """
    data = json.encode(history) + b"\n"
    return data if len(data) <= MAX_HISTORY_BYTES else json.encode(_drop_behaviours(history)) + b"\n"


def _drop_behaviours(history: History) -> History:
    suites = {
        suite: {case_id: replace(case, behaviour="") for case_id, case in cases.items()}
        for suite, cases in history.suites.items()
    }
    return replace(history, suites=suites)


def split_executions(case: CaseResult) -> tuple[tuple[HistoryExecution, ...], tuple[HistoryExecution, ...]]:
    """Split a case's executions in a run into the first (or trials) and re-runs; both empty if it was not run."""
    if case.status is Status.PASSED and len(case.trials) == 1 and not (case.graded or case.reruns):
        return _PASSED_ONCE  # as most cases do
    if case.status in {Status.SKIPPED, Status.NOT_RUN}:
        return (), ()
    trials = case.list_executions()
    first = max(len(trials) - case.reruns, 0)
    return build_executions(trials[:first], graded=case.graded), build_executions(trials[first:], graded=case.graded)


def build_executions(trials: Iterable[Trial], *, graded: bool) -> tuple[HistoryExecution, ...]:
    """Build history entries of executions; those that were skipped or not run have none."""
    return tuple(filter(None, (_build_execution(trial, graded=graded) for trial in trials)))


def _build_execution(trial: Trial, *, graded: bool) -> HistoryExecution | None:
    if trial.status.is_scored:
        score = None if not graded or trial.vetoed else round(min(max(trial.score, 0.0), 1.0), SCORE_DIGITS)
        return HistoryExecution(_LETTERS[trial.status], score)
    if trial.status is not Status.ERROR:
        return None
    return HistoryExecution("T" if trial.timed_out else _ERROR_LETTERS[trial.error_kind])


class FingerprintMatch(NamedTuple):
    """Comparison of two fingerprints: prompt and expectation, and the whole setup."""

    same_case: bool
    same_setup: bool


_FULL_MATCH: Final = FingerprintMatch(same_case=True, same_setup=True)


def compute_result_fingerprint(case: CaseResult) -> str:
    """Compute the short fingerprint of a case result: `prompt and expectation.everything else`.

    Without anything else it has no second part. The first part is empty if it is unknown.
    """
    prompt = (case.fingerprint or "")[:16]
    setup = case.fingerprints
    preceding = setup.cases_before if setup and case.dependent else None
    if setup is None or not (setup.grader or setup.seeds or setup.judge or preceding):
        return prompt
    parts = setup.grader, setup.seeds, setup.judge, *([preceding] if preceding else [])
    return f"{prompt}.{hashlib.sha256(repr(parts).encode()).hexdigest()[:8]}"


def match_fingerprints(one: str, other: str) -> FingerprintMatch:
    """Compare two fingerprints. Runs of other programs have none; their cases match by id."""
    if one == other:
        return _FULL_MATCH
    question = one.partition(".")[0], other.partition(".")[0]
    same = not all(question) or question[0] == question[1]
    return FingerprintMatch(same, same and one.partition(".")[2] == other.partition(".")[2])


def _add_run(history: CaseHistory | None, case: CaseResult, runs: int, earlier_case: CaseResult | None) -> CaseHistory:
    """Add a run to a case's history of `runs` older runs; `earlier_case` is the case in the newest of them."""
    fingerprints = history.fingerprints if history else ()
    older = history.runs if history else f"{NO_ENTRY} " * runs
    (first, reruns), rule = split_executions(case), case.pass_rule
    behaviour = _add_behaviour(encode_behaviour(case, earlier_case) or NO_ENTRY, history.behaviour if history else "")
    if not first:
        words = _limit_runs(f"{NO_ENTRY} {older}")
        return CaseHistory(fingerprints=fingerprints, runs=words, behaviour=behaviour, pass_rule=rule)
    fingerprint = compute_result_fingerprint(case)
    if fingerprint not in fingerprints:
        fingerprints = (*fingerprints, fingerprint)
    word = _encode_entry(HistoryEntry(fingerprints.index(fingerprint), first[:MAX_EXECUTIONS], reruns[:MAX_EXECUTIONS]))
    return _drop_unused_fingerprints(
        CaseHistory(fingerprints=fingerprints, runs=_limit_runs(f"{word} {older}"), behaviour=behaviour, pass_rule=rule)
    )


def _add_word(case: CaseHistory, word: str) -> CaseHistory:
    """Add a run without executions of a case to its history."""
    runs, behaviour = _limit_runs(f"{word} {case.runs}"), _add_behaviour(word, case.behaviour)
    return replace(case, runs=runs, behaviour=behaviour)


def _add_behaviour(word: str, older: str) -> str:
    return _limit_behaviours(f"{word} {older}")


def _limit_behaviours(words: str) -> str:
    """Limit the behaviour of a case to the newest runs; the text is empty if none of them says anything."""
    newest = _limit_words(words, MAX_BEHAVIOURS)
    return "" if _is_empty(newest) else newest


@lru_cache(maxsize=1_000)
def _encode_entry(entry: HistoryEntry) -> str:
    executions = (*entry.first, *entry.reruns)
    reruns = "|" + "".join(one.letter for one in entry.reruns) if entry.reruns else ""
    scores = ""
    if any(one.score is not None for one in executions):
        scores = ":" + ",".join("x" if one.score is None else f"{one.score:g}" for one in executions)
    return f"{entry.fingerprint_index}{''.join(one.letter for one in entry.first)}{reruns}{scores}"


@lru_cache(maxsize=50_000)
def _limit_runs(runs: str) -> str:
    """Limit the entries to the maximum of a history, and write equal neighbors once."""
    return _limit_words(runs, MAX_RUNS)


def _limit_words(words: str, most: int) -> str:
    return _join_words(_expand_words(words, most))


def _join_words(words: Iterable[str]) -> str:
    """Join the words of runs, and write equal neighbors once."""
    counted = ((what, len([*same])) for what, same in groupby(words))
    return " ".join(what if times == 1 else f"{what}*{times}" for what, times in counted)


@lru_cache(maxsize=50_000)
def _expand_words(words: str, most: int = MAX_RUNS) -> tuple[str, ...]:
    """List the word of each run: at most `most` of runs that did not reuse the case, and `MAX_PLACES` in all."""
    expanded: list[str] = []
    for what, times in _iter_words(words):
        number = min(times, MAX_PLACES - len(expanded), times if what == REUSED_ENTRY else most)
        expanded += [what] * number
        most -= 0 if what == REUSED_ENTRY else number
        if not most:
            break
    return tuple(expanded)


def _drop_runs(runs: str, places: slice) -> str:
    """Drop the runs in these places from a case's encoded history."""
    words = [*_expand_words(runs)]
    del words[places]
    return _join_words(words)


def _drop_unused_fingerprints(case: CaseHistory) -> CaseHistory:
    """Drop fingerprints that no run uses, if the case has many."""
    if len(case.fingerprints) <= MANY_FINGERPRINTS:
        return case
    entries = _decode_runs(case.runs)
    places = {old: new for new, old in enumerate(dict.fromkeys(entry.fingerprint_index for entry in entries if entry))}
    words = [
        _encode_entry(entry._replace(fingerprint_index=places[entry.fingerprint_index])) if entry else what
        for what, entry in zip(_expand_words(case.runs), entries, strict=True)
    ]
    return replace(case, fingerprints=tuple(case.fingerprints[old] for old in places), runs=_join_words(words))


def _is_empty(runs: str) -> bool:
    return all(what in _NO_EXECUTIONS for what, _ in _iter_words(runs))


def _iter_words(runs: str) -> Iterator[tuple[str, int]]:
    """Yield each entry and its number of repetitions."""
    for word in runs.split():
        what, _, times = word.partition("*")
        yield what, int(times) if times.isdecimal() else 1


def _decode_case(case: CaseHistory) -> tuple[HistoryEntry | None, ...]:
    entries = _decode_runs(case.runs)
    if any(entry is not None and entry.fingerprint_index >= len(case.fingerprints) for entry in entries):
        raise InvalidEntryError("a run names a fingerprint that does not exist")
    return entries


@lru_cache(maxsize=50_000)
def _decode_runs(runs: str) -> tuple[HistoryEntry | None, ...]:
    decoded: dict[str, HistoryEntry | None] = {}
    for word in runs.split():
        match = _ENTRY_PATTERN.fullmatch(word)
        if match is None:
            raise InvalidEntryError(f'"{word[:40]}" is not a valid entry of a run')
        decoded[match["what"]] = None if match["what"] in _NO_EXECUTIONS else _decode_entry(match)
    return tuple([decoded[what] for what in _expand_words(runs)])


def _decode_entry(match: re.Match[str]) -> HistoryEntry:
    letters = match["first"] + (match["again"] or "")
    scores: list[float | None] = [None] * len(letters)
    if match["scores"]:
        texts = match["scores"].split(",")
        if len(texts) != len(letters):
            raise InvalidEntryError(f"{len(texts)} scores for {len(letters)} executions")
        scores = [_parse_score(text) for text in texts]
    executions = tuple(HistoryExecution(*pair) for pair in zip(letters, scores, strict=True))
    first = len(match["first"])
    return HistoryEntry(int(match["fingerprint"]), executions[:first], executions[first:])


def _parse_score(text: str) -> float | None:
    if text == "x":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InvalidEntryError(f'"{text[:20]}" is not a score')
    return value


def _build_corrupt_error(name: str, what: str) -> GateError:
    return GateError(
        "invalid-history",
        f"{name} is not a valid history: {what}",
        "the next run on the default branch writes a new one; do not edit a history by hand",
    )
