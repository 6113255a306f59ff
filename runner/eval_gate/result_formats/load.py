"""Finds, recognises and reads results that were brought, and says which rows are executions of one case.

A tool's answers, errors and names may repeat a key that it was given: rows come in without the secrets that are set
here. What is asked for a digest only stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import GateError, Problem
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status
from eval_gate.model.limits import BROUGHT_SCORES, CASES, FINDINGS
from eval_gate.result_formats.finding import ResultsFile, find_files
from eval_gate.result_formats.recognise import recognise
from eval_gate.result_formats.rows import DOCS, MAX_ROWS, FileFacts, ResultRow, RowPlace, two_runs, unreadable
from eval_gate.result_formats.scoring import ScoreRules
from eval_gate.struct import Struct, field
from eval_gate.text.redact import NOTHING_SECRET, Redactor

_NAMED: Final = 10
_NO_PASS: Final = frozenset({Status.FAILED, Status.ERROR})
_LOOKED_AT: Final = 500
"""Characters of a name that are looked through for what changes from run to run."""
_UNSTABLE: Final = re.compile(
    r"(?P<address>\bat 0x[0-9a-fA-F]{6,16}\b)"
    r"|(?P<uuid>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)"
    r"|(?P<time>\b20\d\d-[01]\d-[0-3]\d[T_ ][0-2]\d[:.-]?[0-5]\d)"
    r"|(?P<folder>(?:/tmp|/var/folders|\\Temp)[/\\][^/\\]|pytest-of-\w)"
)
_WHAT: Final = {"address": "a memory address", "uuid": "a UUID", "time": "a time", "folder": "a temporary folder"}
_IDS: Final = "in pytest by `pytest.param(…, id=…)` or `ids=`"


class UnstableName(NamedTuple):
    """Why a case may have another name in the next run, and what to do."""

    why: str
    seems: bool
    """Only what stands in the name says so: one that is in the baseline has lasted."""


class BroughtResults(Struct):
    """All rows, judged, by case and in the order in which the cases came."""

    format: ResultsFormat
    tool: str
    cases: Mapping[CaseKey, Sequence[ResultRow]]
    files: tuple[str, ...]
    """The files and folders as they were given."""
    notes: tuple[str, ...] = ()
    unstable: Mapping[CaseKey, UnstableName] = field(default_factory=dict)
    """The cases whose names may be others in the next run."""

    @property
    def rows(self) -> Iterable[ResultRow]:
        """Every execution."""
        return (row for rows in self.cases.values() for row in rows)

    def unstable_words(self, known: Container[CaseKey]) -> str | None:
        """What is to be said of names that may be others in the next run; `known` are those of the baseline."""
        found = [(key, one.why) for key, one in self.unstable.items() if not (one.seems and key in known)]
        if not found:
            return None
        (key, why), are = found[0], "s have" if len(found) > 1 else " has"
        return f"{len(found)} case{are} no stable name ({key.case_id[:80]}): {why}"

    def let_go(self) -> Iterator[tuple[CaseKey, Sequence[ResultRow]]]:
        """Every case, once: nothing is kept of what was given."""
        held = list(self.cases.items())[::-1]
        self.cases = {}
        while held:
            yield held.pop()


class _Gathering(Struct):
    """What the files have brought so far."""

    wanted: ResultsFormat
    rules: ScoreRules
    redact: Redactor
    formats: dict[ResultsFormat, str] = field(default_factory=dict)
    """With the file that each was seen in first."""
    tools: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    cases: dict[CaseKey, list[ResultRow]] = field(default_factory=dict)
    files: dict[CaseKey, str] = field(default_factory=dict)
    """The file that a case was seen in first."""
    clashing: set[CaseKey] = field(default_factory=set)
    trials: dict[tuple[CaseKey, str], RowPlace] = field(default_factory=dict)
    """Where each numbered execution of a case stands."""
    twice: list[Problem] = field(default_factory=list)
    """Those that are there a second time."""
    count: int = 0

    @property
    def too_many(self) -> bool:
        """Whether there are more cases or executions than are read."""
        return self.count > MAX_ROWS or len(self.cases) > CASES

    def read(self, found: ResultsFile) -> None:
        """Add one file. Raises GateError for what is wrong in it."""
        if found.passed_over:
            self.notes[f"{found.shown} {found.passed_over}"] = None
            return
        file, shown = found.path, found.shown
        known, facts = recognise(file, shown, self.wanted), FileFacts()
        self.formats.setdefault(known.format, shown)
        first = next(iter(self.formats))
        if known.format is not first:
            which = f"is {known.format}, and {self.formats[first]} is {first}"
            raise unreadable(RowPlace(shown), f"{which}: one tool's results at a time")
        held = _SameCases(shown)
        for row in known.reader()(file, shown, facts):
            self._add(row, held)
        facts.refuse_fewer(shown, held.count, held.failures)
        self._settle(held, several=known.format is ResultsFormat.JSONL)
        self.tools[self.redact(facts.tool)] = None
        self.notes.update(dict.fromkeys(map(self.redact, facts.notes)))

    def _add(self, row: ResultRow, held: _SameCases) -> None:
        self.count += 1
        held.count += 1
        held.failures += row.status in _NO_PASS
        if len(row.scores) > BROUGHT_SCORES:
            raise unreadable(row.place, f"has more than {BROUGHT_SCORES:,} scores")
        if self.redact.knows_any:
            row = masked(row, self.redact)
        judged, key = self.rules.judged(row), row.key
        there = self.cases.get(key)
        if there is None:
            self.cases[key] = [judged]
            self.files[key] = held.file
            self._number(row)
        else:
            if row.repeat is None or row.repeat != there[0].repeat:
                if row.run != there[0].run:
                    raise _two_runs(self.files[key], held.file, row)
                self.clashing.add(key)
            elif self.files[key] != held.file:
                held.rows.append(judged)
                return
            there.append(judged)
            self._number(row)
        if self.too_many:
            raise unreadable(row.place, f"is one of more than {CASES:,} cases or {MAX_ROWS:,} executions")

    def _number(self, row: ResultRow) -> None:
        """Keep in mind which execution of its case a row is, and where it stands."""
        if row.trial is None:
            return
        first = self.trials.setdefault((row.key, row.trial), row.place)
        if first is not row.place:
            self.twice.append(row.place.problem(f'{row.trial} of "{row.id[:80]}" is there twice, first at {first}'))

    def _settle(self, held: _SameCases, *, several: bool) -> None:
        """What is done with executions of cases that another file holds: only one's own lines may come in `several`.

        One run that stands in two forms counts once. Two runs of the tool are not two trials of one: what passed in
        an old one would make a new failure look like chance.
        """
        if not held.rows:
            return
        first = self.files[held.rows[0].key]
        if len(held.rows) == held.count and all(_is_among(row, self.cases[row.key]) for row in held.rows):
            self.notes[f"{held.file} holds the same executions as {first}: they were read once"] = None
        elif several:
            for row in held.rows:
                self.cases[row.key].append(row)
                self._number(row)
        else:
            raise _two_runs(first, held.file, held.rows[0])


class _SameCases(Struct):
    """What a file holds of cases that are in another one."""

    file: str
    count: int = 0
    """All executions in the file."""
    failures: int = 0
    """Those that did not pass."""
    rows: list[ResultRow] = field(default_factory=list)


def _two_runs(first: str, other: str, row: ResultRow) -> GateError:
    which = f"{first} and {other} are" if first != other else f"{first} holds"
    return two_runs(which, row.place.problem(f'"{row.id[:80]}" is in {first} too'))


def _is_among(row: ResultRow, others: Sequence[ResultRow]) -> bool:
    """Whether this execution is one of the others, as another form of the same results says it."""
    said = row.status, row.answer, row.duration_ms, row.trial
    return any((one.status, one.answer, one.duration_ms, one.trial) == said for one in others)


def load_results(
    paths: Sequence[str], wanted: ResultsFormat, rules: ScoreRules, redact: Redactor = NOTHING_SECRET
) -> BroughtResults:
    """Everything in these files and folders, which have to be one tool's, without what `redact` masks.

    Raises GateError `results-unreadable`, `results-duplicate`, `results-need-rule` and `results-incomplete`, with what
    is wrong in all of the files.
    """
    gathering = _Gathering(wanted, rules, redact)
    _read_each(paths, gathering)
    cases, notes = gathering.cases, gathering.notes
    if gathering.twice:
        raise GateError(
            "results-duplicate",
            "an execution of a case is there twice",
            "give the results of one run, in which each execution of a case has a number of its own",
            problems=gathering.twice[:_NAMED],
        )
    if gathering.clashing:
        cases = _told_apart(cases, gathering.clashing)
    if not cases:
        raise unreadable(RowPlace(paths[0]), "holds no case")
    unstable = {key: found for key, rows in cases.items() if (found := _unstable(rows[0]))}
    tools = ", ".join(gathering.tools)
    return BroughtResults(next(iter(gathering.formats)), tools, cases, tuple(paths), tuple(notes), unstable)


def _read_each(paths: Sequence[str], gathering: _Gathering) -> None:
    """Read all files. Raises the GateError of the first that is wrong, which names what is wrong in the others too."""
    wrong: list[GateError] = []
    try:
        for file in find_files(paths):
            try:
                gathering.read(file)
            except GateError as error:
                wrong.append(error)
                if gathering.too_many or sum(len(one.problems) for one in wrong) >= FINDINGS:
                    break
    except GateError as error:  # what was named after this one is not looked at
        wrong.append(error)
    if wrong:
        wrong[0].problems = tuple(problem for one in wrong for problem in one.problems)
        raise wrong[0]


def _told_apart(cases: dict[CaseKey, list[ResultRow]], clashing: set[CaseKey]) -> dict[CaseKey, list[ResultRow]]:
    """Cases that share a name get a longer one, or that of their file or suite before it; else it is an error."""
    most = max(len(row.longer_suites) for key in clashing for row in cases[key])
    for level in range(most + 1):
        parted: dict[CaseKey, list[ResultRow]] = {}
        for key, rows in cases.items():
            for row in rows:
                named = _longer(row, level) if key in clashing else row
                parted.setdefault(named.key, []).append(named)
        still = [
            (rows[0], other)
            for rows in parted.values()
            for other in rows[1:]
            if other.repeat is None or other.repeat != rows[0].repeat
        ]
        if not still:
            return parted
    raise GateError(
        "results-duplicate",
        "two results have the same name and are not executions of one case",
        _if_twice(*still[0])
        or f"give each case a name of its own; executions of one case say so, such as by `trial` ({DOCS})",
        problems=[
            row.place.problem(f'"{row.id[:80]}" is there twice, first at {one.place}') for one, row in still[:_NAMED]
        ],
    )


def _if_twice(first: ResultRow, other: ResultRow) -> str | None:
    """What to do about two cases of one name in one file, where the tool is known to write such."""
    return other.if_twice if first.place.file == other.place.file else None


def _longer(row: ResultRow, level: int) -> ResultRow:
    """The row under a longer name: at `level` 0 by itself or its file, behind that by what its suite is in."""
    if level:
        return (
            row._replace(suite=row.longer_suites[min(level, len(row.longer_suites)) - 1]) if row.longer_suites else row
        )
    if row.longer is not None:
        return row._replace(id=row.longer)
    return row._replace(suite=f"{row.location.file}: {row.suite}") if row.location else row


def _unstable(row: ResultRow) -> UnstableName | None:
    """Why a name is another one in the next run; None for one that looks as if it lasted."""
    if row.unstable:
        return UnstableName(row.unstable, seems=False)
    match = _UNSTABLE.search(row.id[:_LOOKED_AT]) or _UNSTABLE.search(row.suite[:_LOOKED_AT])
    if match is None:
        return None
    what = next(what for group, what in _WHAT.items() if match[group])
    return UnstableName(
        f"it holds {what}, which is another one in each run: give the case a name of its own ({_IDS})", seems=True
    )


def masked(row: ResultRow, redact: Redactor) -> ResultRow:
    """The row with every text masked. Its tool is still asked by the name that it knows."""
    name = redact(row.id)
    return row._replace(
        suite=redact(row.suite),
        id=name,
        place=row.place._replace(field=row.place.field and redact(row.place.field)),
        scores=tuple(one._replace(name=redact(one.name), reason=_maybe(one.reason, redact)) for one in row.scores),
        question=redact(row.question),
        expectation=tuple(map(redact, row.expectation)),
        answer=_maybe(row.answer, redact),
        error=_maybe(row.error, redact),
        calls=tuple(redact.model(call) for call in row.calls),
        location=row.location and redact.model(row.location),
        tags=tuple(map(redact, row.tags)),
        description=redact(row.description),
        target=_maybe(row.target, redact),
        again=row.again or (row.id if name != row.id else None),
        longer=_maybe(row.longer, redact),
        unstable=_maybe(row.unstable, redact),
    )


def _maybe(text: str | None, redact: Redactor) -> str | None:
    return text and redact(text)
