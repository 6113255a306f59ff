"""The ledger: what the newest runs of a branch said about every case, small enough to travel with each run.

A run record has everything about one run. To tell a regression from a flake one needs a little about many, so each run
of a branch takes over the ledger of the run before it and adds itself. Whoever has one run has the past of it too.

One case in one run is a few letters: first executions, and after a bar its re-runs. `P` passed, `F` failed, `C`
crashed, `T` too late, `U` unreachable, `O` ours (`Blame`); `-` is a run without the case. A graded case has a score for
each letter beside them. A file holds such words from the newest run to the oldest, equal neighbours once: `0P*9 0F|PP`
passed in the nine newest runs and recovered in the tenth. The number is the yardstick's place in the case's own list.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, MsgspecError, ValidationError, convert, field, json

from eval_gate.errors import GateError
from eval_gate.model import limits
from eval_gate.model.base import Record, decode_json
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Blame, Status, Trial
from eval_gate.model.grounds import RunName
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.totals import judged_of
from eval_gate.results.levels import MAX_LEVELS, Levels, RunLevels
from eval_gate.struct import replace
from eval_gate.text.sources.shape import field_path, misfit

LEDGER_NAME: Final = "ledger.json"
SCHEMA_VERSION: Final = 1
MAX_RUNS: Final = limits.LEDGER_RUNS
"""Newest runs that are kept. More of the past says less about today."""
MAX_LEDGER_BYTES: Final = limits.LEDGER_BYTES
MAX_EXECUTIONS: Final = limits.LEDGER_EXECUTIONS
"""Of one case in one run; the same again of its re-runs."""
MANY_YARDSTICKS: Final = 8
NOTHING: Final = "-"
_WORD: Final = re.compile(
    r"(?P<what>-|(?P<yardstick>\d{1,3})(?P<first>[PFCTUO]{1,200})(?:\|(?P<again>[PFCTUO]{1,200}))?"
    r"(?::(?P<scores>[\d.x,]{1,2000}))?)(?:\*(?P<times>\d{1,2}))?"
)
_LETTERS: Final = {Status.PASSED: "P", Status.FAILED: "F"}
_BLAMED: Final = {Blame.CRASHED: "C", Blame.UNREACHABLE: "U", Blame.OURS: "O", None: "O"}
SCORE_DIGITS: Final = 4
"""Decimals to which a score is kept."""


class OddWordsError(Exception):
    """What stands in the place of a case's runs says nothing about any."""


class LedgerRun(Record, kw_only=True, omit_defaults=True):
    """One run of the branch. `judged` are cases that passed or failed, of `cases` that could be run."""

    run_id: Annotated[str, Meta(max_length=200)]
    timestamp: Annotated[str, Meta(max_length=100)]
    sha: Annotated[str, Meta(max_length=100)] | None = None
    complete: bool = True
    partial: bool = False
    target: Annotated[str, Meta(max_length=1000)] = ""
    """Name, provider and model: another one is another agent, and says nothing about this."""
    cases: Annotated[int, Meta(ge=0)] = 0
    judged: Annotated[int, Meta(ge=0)] = 0

    @property
    def name(self) -> RunName:
        """The run as people tell runs apart: by id and commit."""
        return RunName(run_id=self.run_id, sha=self.sha)

    @property
    def usable(self) -> bool:
        """Whether it says something about the branch: all cases were run, and at least half of them judged."""
        return self.complete and not self.partial and self.judged * 2 >= self.cases


class LedgerCase(Record, kw_only=True, omit_defaults=True):
    """One case over the runs of the ledger."""

    yardsticks: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()
    runs: Annotated[str, Meta(max_length=200_000)] = ""

    def entries(self) -> "tuple[LedgerEntry | None, ...]":
        """The case in each of the runs, newest first; None, or nothing at the end, where a run does not have it.

        Raises GateError for what is no word of a ledger.
        """
        try:
            return _entries_of(self)
        except OddWordsError as error:
            raise _corrupt("the ledger", str(error)) from error

    def words(self) -> "tuple[LedgerEntry | None, ...]":
        """The same, without a look at the yardsticks."""
        try:
            return _entries(self.runs)
        except OddWordsError as error:
            raise _corrupt("the ledger", str(error)) from error


class LedgerExecution(NamedTuple):
    """One execution: its letter, and the score of a graded one that no veto forbids to count."""

    letter: str
    score: float | None = None


class LedgerEntry(NamedTuple):
    """One case in one run: the place of its yardstick, the first executions and the re-runs."""

    place: int
    first: tuple[LedgerExecution, ...]
    again: tuple[LedgerExecution, ...] = ()


_PASSED: Final = ((LedgerExecution("P"),), ())


class Ledger(Record, kw_only=True, omit_defaults=True):
    """What is known of a branch's recent runs, newest first, and of every case in them."""

    schema_version: Literal[1] = 1
    runs: Annotated[tuple[LedgerRun, ...], Meta(max_length=MAX_RUNS)] = ()
    suites: dict[str, dict[str, LedgerCase]] = field(default_factory=dict)
    """The cases: by eval file, and in it by case id."""
    levels: Levels = ()
    """How good the runs were as a whole, newest first, further back than `runs`."""

    def every_key(self) -> Iterator[CaseKey]:
        """Every case that any of the runs had."""
        return (CaseKey(suite, case_id) for suite, cases in self.suites.items() for case_id in cases)

    def case(self, key: CaseKey) -> LedgerCase:
        """The case; one without any runs where it is not known."""
        return self.suites.get(key.suite, {}).get(key.case_id, _UNKNOWN)

    def up_to(self, run: RunResult) -> "Ledger":
        """Only this run and those before it. It is added where it is not there."""
        start = next((at for at, known in enumerate(self.runs) if known.run_id == run.run_id), None)
        if start is not None:
            return self.without_newest(start)
        newer = sum(known.timestamp > run.timestamp for known in self.runs)
        return self.without_newest(newer).with_run(run)

    def without_newest(self, start: int) -> "Ledger":
        """Without so many of its newest runs, and their levels."""
        if start == 0:
            return self
        suites = {
            suite: {
                case_id: LedgerCase(yardsticks=case.yardsticks, runs=_dropped(case.runs, start))
                for case_id, case in cases.items()
            }
            for suite, cases in self.suites.items()
        }
        newer = {run.run_id for run in self.runs[:start]}
        levels = tuple(one for one in self.levels if one.run_id not in newer)
        return Ledger(runs=self.runs[start:], suites=suites, levels=levels)

    def with_levels(self, levels: tuple[RunLevels, ...]) -> "Ledger":
        """The same with these in place of its own, newest first."""
        return replace(self, levels=levels[:MAX_LEVELS])

    def with_run(self, run: RunResult, earlier: Mapping[CaseKey, CaseKey] | None = None) -> "Ledger":
        """The same with one more run, the newest. One that it has already stays where it is.

        `earlier` says under which key the past of a case stands that was renamed or moved.
        """
        if any(known.run_id == run.run_id for known in self.runs):
            return self
        earlier = earlier or {}
        suites: dict[str, dict[str, LedgerCase]] = {}
        taken: set[CaseKey] = set()
        for key, case in run.cases():
            before = earlier.get(key, key)
            taken.add(before)
            known = self.suites.get(before.suite, {}).get(before.case_id)
            suites.setdefault(key.suite, {})[key.case_id] = _with_case(known, case, len(self.runs))
        for key in self.every_key():
            gone = self.suites[key.suite][key.case_id]
            if key not in taken and key.case_id not in suites.get(key.suite, {}):
                kept = LedgerCase(yardsticks=gone.yardsticks, runs=_limited(f"{NOTHING} {gone.runs}"))
                if not _empty(kept.runs):
                    suites.setdefault(key.suite, {})[key.case_id] = kept
        runs = (ledger_run(run), *self.runs)[:MAX_RUNS]
        return Ledger(runs=runs, suites=suites, levels=self.levels)


_UNKNOWN: Final = LedgerCase()
EMPTY: Final = Ledger()


def ledger_run(run: RunResult) -> LedgerRun:
    """The run itself, as a line of the ledger."""
    judged, cases = judged_of(run)
    return LedgerRun(
        run_id=run.run_id,
        timestamp=run.timestamp,
        sha=run.sha,
        complete=run.complete,
        partial=run.eval_paths is None or run.shard is not None,
        target=target_of(run),
        cases=cases,
        judged=judged,
    )


def target_of(run: RunResult) -> str:
    """Which agent was evaluated, as runs are told apart by it: not its address, which may change from run to run."""
    return " ".join(filter(None, (run.target.name, run.target.provider, run.target.model)))[:1000]


def ledger_of(runs: Iterable[RunResult]) -> Ledger:
    """The ledger of these runs, newest first, of which nothing older is known."""
    ledger = EMPTY
    for run in reversed(list(runs)[:MAX_RUNS]):
        ledger = ledger.with_run(run)
    return ledger


def case_of(seen: Iterable[tuple[str, LedgerEntry] | None]) -> LedgerCase:
    """A case from what each run saw of it, newest first: the yardstick and the entry, whose place is not looked at."""
    yardsticks: dict[str, int] = {}
    words = []
    for one in seen:
        if one is None:
            words.append(NOTHING)
        else:
            yardstick, entry = one
            words.append(_word(entry._replace(place=yardsticks.setdefault(yardstick, len(yardsticks)))))
    return LedgerCase(yardsticks=tuple(yardsticks), runs=_limited(" ".join(words)))


def construct_ledger(
    runs: tuple[LedgerRun, ...], suites: Mapping[str, Mapping[str, LedgerCase]], levels: tuple[RunLevels, ...]
) -> Ledger:
    """A ledger of parts of our own, without the cases that none of the runs has."""
    kept = {
        suite: {case_id: case for case_id, case in cases.items() if not _empty(case.runs)}
        for suite, cases in suites.items()
    }
    return Ledger(runs=runs, suites={suite: cases for suite, cases in kept.items() if cases}, levels=levels)


def read_ledger(data: bytes, shown: str) -> Ledger:
    """A ledger from a file; `shown` names it. Raises GateError `ledger-corrupt` for what is none."""
    if len(data) > MAX_LEDGER_BYTES:
        raise _corrupt(shown, f"larger than {MAX_LEDGER_BYTES:,} bytes")
    try:
        ledger = _decode(data)
        refuse_odd_words(ledger)
    except MsgspecError as error:
        raise _corrupt(shown, first_mistake(error)) from error
    except OddWordsError as error:
        raise _corrupt(shown, str(error)) from error
    return ledger


def _decode(data: bytes) -> Ledger:
    """Decode a history. Levels that cannot be read begin anew: verdicts rest on the rest of it. Raises MsgspecError."""
    try:
        return decode_json(data, Ledger)
    except ValidationError:
        parts = json.decode(data, type=dict[str, Any])
        parts.pop("levels", None)
        return convert(parts, Ledger)


def first_mistake(error: MsgspecError) -> str:
    """Say where a history is not one, and why."""
    place, what = misfit(error)
    return f"{field_path(place)[:200]}: {what}".removeprefix(": ")


def refuse_odd_words(ledger: Ledger) -> None:
    """Read it to its last word: one that is none would end every run that comes to it, and go on into the next ledger.

    Raises OddWordsError, which names the case.
    """
    read = set[tuple[str, int]]()
    for suite, cases in ledger.suites.items():
        for case_id, case in cases.items():
            if (kind := (case.runs, len(case.yardsticks))) in read:
                continue  # most cases of a suite did the same
            read.add(kind)
            try:
                _entries_of(case)
            except OddWordsError as error:
                raise OddWordsError(f"suites.{suite}.{case_id}.runs"[:200] + f": {error}") from error


def ledger_bytes(ledger: Ledger) -> bytes:
    """The ledger as the file holds it: JSON without what is as by default, ended by a line break."""
    return json.encode(ledger) + b"\n"


def executions_of(case: CaseResult) -> tuple[tuple[LedgerExecution, ...], tuple[LedgerExecution, ...]]:
    """What a case did in one run: the first execution (or the trials), and the re-runs."""
    if case.status is Status.PASSED and len(case.trials) == 1 and not (case.graded or case.reruns):
        return _PASSED  # as most cases do
    if case.status in {Status.SKIPPED, Status.NOT_RUN}:
        return (), ()
    trials = case.executions()
    first = max(len(trials) - case.reruns, 0)
    return executions(trials[:first], graded=case.graded), executions(trials[first:], graded=case.graded)


def executions(trials: Iterable[Trial], *, graded: bool) -> tuple[LedgerExecution, ...]:
    """The same of executions alone; what was skipped or not run is none."""
    return tuple(filter(None, (_execution(trial, graded=graded) for trial in trials)))


def _execution(trial: Trial, *, graded: bool) -> LedgerExecution | None:
    if trial.status.judged:
        score = None if not graded or trial.vetoed else round(min(max(trial.score, 0.0), 1.0), SCORE_DIGITS)
        return LedgerExecution(_LETTERS[trial.status], score)
    if trial.status is not Status.ERROR:
        return None
    return LedgerExecution("T" if trial.timed_out else _BLAMED[trial.blame])


class YardstickLikeness(NamedTuple):
    """How alike two yardsticks are: the question and the expectation, and beside them the rest of what measures."""

    question: bool
    all: bool


_THE_SAME: Final = YardstickLikeness(question=True, all=True)


def yardstick_of(case: CaseResult) -> str:
    """What a case was measured with, in short: `question and expectation.everything else`. Empty where unknown."""
    question = (case.fingerprint or "")[:16]
    beside = case.yardstick
    before = beside.before if beside and case.dependent else None
    if beside is None or not (beside.grader or beside.seeds or beside.judge or before):
        return question
    parts = beside.grader, beside.seeds, beside.judge, *([before] if before else [])
    return f"{question}.{hashlib.sha256(repr(parts).encode()).hexdigest()[:8]}"


def alike(one: str, other: str) -> YardstickLikeness:
    """How alike they are. Runs of other programs have no fingerprints; their cases go by id."""
    if one == other:
        return _THE_SAME
    question = one.partition(".")[0], other.partition(".")[0]
    same = not all(question) or question[0] == question[1]
    return YardstickLikeness(same, same and one.partition(".")[2] == other.partition(".")[2])


def _with_case(known: LedgerCase | None, case: CaseResult, runs: int) -> LedgerCase:
    """The case with one more run in front; of a new one the older runs are empty."""
    yardsticks = known.yardsticks if known else ()
    older = known.runs if known else f"{NOTHING} " * runs
    first, again = executions_of(case)
    if not first:
        return LedgerCase(yardsticks=yardsticks, runs=_limited(f"{NOTHING} {older}"))
    yardstick = yardstick_of(case)
    if yardstick not in yardsticks:
        yardsticks = (*yardsticks, yardstick)
    word = _word(LedgerEntry(yardsticks.index(yardstick), first[:MAX_EXECUTIONS], again[:MAX_EXECUTIONS]))
    return _tidied(LedgerCase(yardsticks=yardsticks, runs=_limited(f"{word} {older}")))


@lru_cache(maxsize=1_000)
def _word(entry: LedgerEntry) -> str:
    executions = (*entry.first, *entry.again)
    again = "|" + "".join(one.letter for one in entry.again) if entry.again else ""
    scores = ""
    if any(one.score is not None for one in executions):
        scores = ":" + ",".join("x" if one.score is None else f"{one.score:g}" for one in executions)
    return f"{entry.place}{''.join(one.letter for one in entry.first)}{again}{scores}"


@lru_cache(maxsize=50_000)
def _limited(runs: str) -> str:
    """At most as many runs as a ledger has, equal neighbours as one word."""
    counted: list[tuple[str, int]] = []
    left = MAX_RUNS
    for what, times in _words(runs):
        number = min(times, left)
        left -= number
        if counted and counted[-1][0] == what:
            counted[-1] = what, counted[-1][1] + number
        elif number:
            counted.append((what, number))
    return " ".join(what if times == 1 else f"{what}*{times}" for what, times in counted)


def _dropped(runs: str, count: int) -> str:
    """What a case did, without its `count` newest runs."""
    kept = []
    for what, times in _words(runs):
        number = max(times - count, 0)
        count = max(count - times, 0)
        if number:
            kept.append(what if number == 1 else f"{what}*{number}")
    return " ".join(kept)


def _tidied(case: LedgerCase) -> LedgerCase:
    """Without yardsticks that no run uses any more; only looked at when there are many."""
    if len(case.yardsticks) <= MANY_YARDSTICKS:
        return case
    entries = [(entry, times) for what, times in _words(case.runs) for entry in _entries(what)]
    places = {old: new for new, old in enumerate(dict.fromkeys(entry.place for entry, _ in entries if entry))}
    words = [
        (_word(entry._replace(place=places[entry.place])) if entry else NOTHING) + (f"*{times}" if times > 1 else "")
        for entry, times in entries
    ]
    return LedgerCase(yardsticks=tuple(case.yardsticks[old] for old in places), runs=" ".join(words))


def _empty(runs: str) -> bool:
    return all(what == NOTHING for what, _ in _words(runs))


def _words(runs: str) -> Iterator[tuple[str, int]]:
    """Each word without its number of times, and that."""
    for word in runs.split():
        what, _, times = word.partition("*")
        yield what, int(times) if times.isdecimal() else 1


def _entries_of(case: LedgerCase) -> tuple[LedgerEntry | None, ...]:
    entries = _entries(case.runs)
    if any(entry is not None and entry.place >= len(case.yardsticks) for entry in entries):
        raise OddWordsError("a run names a yardstick that is not there")
    return entries


@lru_cache(maxsize=50_000)
def _entries(runs: str) -> tuple[LedgerEntry | None, ...]:
    found: list[LedgerEntry | None] = []
    for word in runs.split()[:MAX_RUNS]:
        match = _WORD.fullmatch(word)
        if match is None:
            raise OddWordsError(f'"{word[:40]}" says nothing about a run')
        entry = None if match["what"] == NOTHING else _entry(match)
        found += [entry] * min(int(match["times"] or 1), MAX_RUNS - len(found))
    return tuple(found)


def _entry(match: re.Match[str]) -> LedgerEntry:
    letters = match["first"] + (match["again"] or "")
    scores: list[float | None] = [None] * len(letters)
    if match["scores"]:
        given = match["scores"].split(",")
        if len(given) != len(letters):
            raise OddWordsError(f"{len(given)} scores for {len(letters)} executions")
        scores = [_score(text) for text in given]
    executions = tuple(LedgerExecution(*pair) for pair in zip(letters, scores, strict=True))
    first = len(match["first"])
    return LedgerEntry(int(match["yardstick"]), executions[:first], executions[first:])


def _score(text: str) -> float | None:
    if text == "x":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise OddWordsError(f'"{text[:20]}" is no score')
    return value


def _corrupt(shown: str, what: str) -> GateError:
    return GateError(
        "ledger-corrupt",
        f"{shown} is not a ledger: {what}",
        "the next run on the default branch writes another one; a ledger is never changed by hand",
    )
