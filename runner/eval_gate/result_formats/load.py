"""Finds, recognises and reads results that were brought, and says which rows are executions of one case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import GateError
from eval_gate.model.case import CaseKey
from eval_gate.model.limits import BROUGHT_FILES, BROUGHT_SCORES, CASES, FINDINGS
from eval_gate.result_formats.agentv import INDEX
from eval_gate.result_formats.masking import masked
from eval_gate.result_formats.recognise import SUFFIXES, recognise
from eval_gate.result_formats.rows import DOCS, MAX_ROWS, FileFacts, ResultRow, RowPlace, broken_off, unreadable
from eval_gate.result_formats.scoring import ScoreRules
from eval_gate.struct import Struct, field
from eval_gate.text.redact import NOTHING_SECRET, Redactor

_NAMED: Final = 10


class BroughtResults(Struct):
    """All rows, judged, by case and in the order in which the cases came."""

    format: ResultsFormat
    tool: str
    cases: Mapping[CaseKey, Sequence[ResultRow]]
    files: tuple[str, ...]
    """The files and folders as they were given."""
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> Iterable[ResultRow]:
        """Every execution."""
        return (row for rows in self.cases.values() for row in rows)

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
    clashing: set[CaseKey] = field(default_factory=set)
    count: int = 0

    @property
    def too_many(self) -> bool:
        """Whether there are more cases or executions than are read."""
        return self.count > MAX_ROWS or len(self.cases) > CASES

    def read(self, file: Path, shown: str) -> None:
        """Add one file. Raises GateError for what is wrong in it."""
        known, facts = recognise(file, shown, self.wanted), FileFacts()
        self.formats.setdefault(known.format, shown)
        first = next(iter(self.formats))
        if known.format is not first:
            which = f"is {known.format}, and {self.formats[first]} is {first}"
            raise unreadable(RowPlace(shown), f"{which}: one tool's results at a time")
        for row in known.reader()(file, shown, facts):
            self._add(row)
        self.tools[self.redact(facts.tool)] = None
        self.notes.update(dict.fromkeys(map(self.redact, facts.notes)))

    def _add(self, row: ResultRow) -> None:
        self.count += 1
        if len(row.scores) > BROUGHT_SCORES:
            raise unreadable(row.place, f"has more than {BROUGHT_SCORES:,} scores")
        if self.redact.knows_any:
            row = masked(row, self.redact)
        judged, key = self.rules.judged(row), row.key
        there = self.cases.get(key)
        if there is None:
            self.cases[key] = [judged]
        else:
            if row.repeat is None or row.repeat != there[0].repeat:
                self.clashing.add(key)
            there.append(judged)
        if self.too_many:
            raise unreadable(row.place, f"is one of more than {CASES:,} cases or {MAX_ROWS:,} executions")


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
    if gathering.clashing:
        cases = _told_apart(cases, gathering.clashing)
    if not cases:
        raise unreadable(RowPlace(paths[0]), "holds no case")
    notes.update(dict.fromkeys(_unstable(cases)))
    return BroughtResults(next(iter(gathering.formats)), ", ".join(gathering.tools), cases, tuple(paths), tuple(notes))


def _read_each(paths: Sequence[str], gathering: _Gathering) -> None:
    """Read all files. Raises the GateError of the first that is wrong, which names what is wrong in the others too."""
    wrong: list[GateError] = []
    try:
        for file, shown in _files(paths):
            try:
                gathering.read(file, shown)
            except GateError as error:
                wrong.append(error)
                if gathering.too_many or sum(len(one.problems) for one in wrong) >= FINDINGS:
                    break
    except GateError as error:  # what was named after this one is not looked at
        wrong.append(error)
    if wrong:
        wrong[0].problems = tuple(problem for one in wrong for problem in one.problems)
        raise wrong[0]


def _files(paths: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """The files, in order; of a folder an index, or whatever may be results, or the newest of DeepEval's."""
    found = 0
    for given in paths:
        path = Path(given)
        if not path.is_dir():
            if not path.is_file():
                raise broken_off(RowPlace(given), "is not there: the tool did not write it, or wrote it somewhere else")
            found += 1
            yield path, given
            continue
        inside = _inside(path)
        if not any(path.iterdir()):
            raise broken_off(RowPlace(given), "is empty: the tool made the folder and wrote no results")
        if not inside:
            raise unreadable(RowPlace(given), f"holds no {', '.join(SUFFIXES)}")
        found += len(inside)
        if found > BROUGHT_FILES:
            raise unreadable(RowPlace(given), f"holds more than {BROUGHT_FILES:,} files")
        yield from ((file, str(file)) for file in inside)


def _inside(folder: Path) -> list[Path]:
    if (folder / INDEX).is_file():
        return [folder / INDEX]
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.suffix in SUFFIXES)
    runs = [file for file in files if file.name.startswith("test_run_")]
    # DeepEval keeps a file for every run of the past
    return [runs[-1]] if runs and len(runs) == len(files) else files


def _told_apart(cases: dict[CaseKey, list[ResultRow]], clashing: set[CaseKey]) -> dict[CaseKey, list[ResultRow]]:
    """Cases that share a name get a longer one, or that of their file before it; where nothing helps it is an error."""
    parted: dict[CaseKey, list[ResultRow]] = {}
    for key, rows in cases.items():
        for row in rows:
            named = _longer(row) if key in clashing else row
            parted.setdefault(named.key, []).append(named)
    still = [
        (rows[0], other)
        for key, rows in parted.items()
        for other in rows[1:]
        if other.repeat is None or other.repeat != rows[0].repeat
    ]
    if not still:
        return parted
    raise GateError(
        "results-duplicate",
        "two results have the same name and are not executions of one case",
        f"give each case a name of its own; executions of one case say so, such as by `trial` ({DOCS})",
        problems=[
            row.place.problem(f'"{row.id[:80]}" is there twice, first at {one.place}') for one, row in still[:_NAMED]
        ],
    )


def _longer(row: ResultRow) -> ResultRow:
    if row.longer is not None:
        return row._replace(id=row.longer)
    return row._replace(suite=f"{row.location.file}: {row.suite}") if row.location else row


def _unstable(cases: dict[CaseKey, list[ResultRow]]) -> Iterator[str]:
    """What is to be said of names that may be others in the next run."""
    found = [rows[0] for rows in cases.values() if rows[0].unstable]
    if found:
        first, are = found[0], "s have" if len(found) > 1 else " has"
        yield f"{len(found)} case{are} no stable name ({first.id[:80]}): {first.unstable}"
