"""Load external results: find, detect and read files, and group rows by case.

Responses, errors and names may repeat a secret that the tool was given: each row is redacted. A value that is
stored as a digest stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import GateError, Problem
from eval_gate.external_results.format_detection import KnownFormat, open_results
from eval_gate.external_results.result_files import ResultsFile, ResultsPath, find_result_files, parse_results_path
from eval_gate.external_results.result_rows import (
    DOCS,
    MAX_NAME,
    MAX_ROWS,
    FileFacts,
    ResultRow,
    RowPlace,
    build_two_runs_error,
)
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import Status
from eval_gate.model.limits import CASES, EXTERNAL_SCORES, FINDINGS
from eval_gate.struct import Struct, field
from eval_gate.text.escape import format_count, format_first_few
from eval_gate.text.redaction import EMPTY_REDACTOR, Redactor
from eval_gate.text.volatile_words import UUID

_MAX_NAMED: Final = 10
_MAX_EMPTY: Final = 3
"""Files without a case that are named."""
_NO_PASS: Final = frozenset({Status.FAILED, Status.ERROR})
_REPEATED_BY: Final[Mapping[ResultsFormat, str]] = {
    ResultsFormat.PROMPTFOO: "--repeat",
    ResultsFormat.DEEPEVAL: "--repeat",
    ResultsFormat.BRAINTRUST: "trial_count",
    ResultsFormat.ADK: "num_runs",
}
"""The options by which tools repeat each case without marking its executions: the number of rows shows it.

Where a field of the row marks them, its reader sets `repeat` by it alone: pydantic-evals' `repeat` by
`source_case_name`, Inspect's epochs by `epoch`, LangSmith's `num_repetitions` by the example's id, AgentV's trials by
`attempt`, and `trial` of own lines. No other rows of one name are trials.
"""
_MAX_SEARCHED: Final = 500
"""Characters of a name that are looked through for what changes from run to run."""
_UNSTABLE_PART: Final = re.compile(
    r"(?P<address>\bat 0x[0-9a-fA-F]{6,16}\b)"
    rf"|(?P<uuid>\b{UUID}\b)"
    r"|(?P<time>\b20\d\d-[01]\d-[0-3]\d[T_ ][0-2]\d[:.-]?[0-5]\d)"
    r"|(?P<folder>(?:/tmp|/var/folders|\\Temp)[/\\][^/\\]|pytest-of-\w)"
)
_RUN_TIME: Final = re.compile(
    r"[-_ .(]{0,3}(?<!\d)20\d\d[-_.]?[01]\d[-_.]?[0-3]\d"
    r"[-_ T.]?[0-2]\d[-_.:]?[0-5]\d(?:[-_.:]?[0-5]\d(?:[.,]\d{1,9})?)?Z?(?!\d)\)?"
)
"""A date with a time of day."""
_UNSTABLE_PART_NAMES: Final = {
    "address": "a memory address",
    "uuid": "a UUID",
    "time": "a time",
    "folder": "a temporary folder",
}
_ID_HINT: Final = "in pytest with `pytest.param(…, id=…)` or `ids=`"


class UnstableName(NamedTuple):
    """Reason why a case name may change in the next run, and the remedy."""

    why: str
    is_guess: bool
    """Only its form suggests so: a name that is in the baseline is stable."""


class ExternalResults(Struct):
    """External results: all scored rows by case, in file order."""

    format: ResultsFormat
    tool: str
    cases: Mapping[CaseKey, Sequence[ResultRow]]
    paths: tuple[ResultsPath, ...]
    """The files and folders as they were given."""
    notes: tuple[str, ...] = ()
    unstable_names: Mapping[CaseKey, UnstableName] = field(default_factory=dict)
    """The cases whose names may change in the next run."""
    legs: Mapping[str, str] = field(default_factory=dict)
    """The leg of a matrix that a suite is of, by the name of the suite."""
    sources: frozenset[Path] = frozenset()
    """The files that were read, without links."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files and folders, without the prefixes of their suites."""
        return tuple(one.path for one in self.paths)

    @property
    def rows(self) -> Iterable[ResultRow]:
        """Every execution."""
        return (row for rows in self.cases.values() for row in rows)

    def describe_unstable_names(self, baseline: Container[CaseKey]) -> str | None:
        """Describe the cases whose names may change, but for guesses that `baseline` disproves."""
        reasons = [(key, one.why) for key, one in self.unstable_names.items() if not (one.is_guess and key in baseline)]
        if not reasons:
            return None
        (key, why), have = reasons[0], format_count(len(reasons), "case has", "cases have")
        return f"{have} no stable name ({key.case_id[:80]}): {why}"

    def drain_cases(self) -> Iterator[tuple[CaseKey, Sequence[ResultRow]]]:
        """Yield every case once, and drop it."""
        held = list(self.cases.items())[::-1]
        self.cases = {}
        while held:
            yield held.pop()


class _ResultsCollector(Struct):
    """Collector of the results of all files."""

    results_format: ResultsFormat
    rules: ScoreRules
    redact: Redactor
    encoding: str | None = None
    formats: dict[ResultsFormat, str] = field(default_factory=dict)
    """The first file of each."""
    tools: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    cases: dict[CaseKey, list[ResultRow]] = field(default_factory=dict)
    files: dict[CaseKey, str] = field(default_factory=dict)
    """The first file of each."""
    name_clashes: set[CaseKey] = field(default_factory=set)
    trials: dict[tuple[CaseKey, str], RowPlace] = field(default_factory=dict)
    """The place of each numbered execution of a case."""
    duplicates: list[Problem] = field(default_factory=list)
    """Executions that occur twice."""
    sources: set[Path] = field(default_factory=set)
    """The files that were read, without links."""
    empty: list[str] = field(default_factory=list)
    """Files without a case."""
    count: int = 0

    @property
    def is_over_limit(self) -> bool:
        """Whether there are more cases or executions than are read."""
        return self.count > MAX_ROWS or len(self.cases) > CASES

    def add_file(self, results_file: ResultsFile) -> None:
        """Add one file. Raises GateError for what is wrong in it."""
        if results_file.skip_reason:
            self.notes[f"{results_file.shown_as} {results_file.skip_reason}"] = None
            return
        file, shown_as = results_file.path, results_file.shown_as
        self.sources.add(file.resolve())
        with open_results(file, shown_as, self.results_format, self.encoding) as (known_format, readable):
            self._add_rows(known_format, readable, results_file)

    def _add_rows(self, known_format: KnownFormat, readable: Path, results_file: ResultsFile) -> None:
        """Add the rows of a file, which stand in `readable`."""
        shown_as, facts = results_file.shown_as, FileFacts()
        self.formats.setdefault(known_format.format, shown_as)
        first = next(iter(self.formats))
        if known_format.format is not first:
            which = f"is {known_format.format}, and {self.formats[first]} is {first}"
            raise RowPlace(shown_as).build_error(f"{which}: check the results of one tool at a time")
        held = _FileOverlap(shown_as)
        for row in known_format.load_reader()(readable, shown_as, facts):
            self._add_row(_prefix_suite(row, results_file.prefix) if results_file.prefix else row, held)
        facts.check_counts(shown_as, held.count, held.failures)
        if not held.count:
            self.empty.append(shown_as)
        if option := _REPEATED_BY.get(known_format.format):
            self._check_repeats(option, facts.repeats, held)
        if held.retried:
            cases = format_count(len(held.retried), "case")
            self.notes[f"{shown_as} repeats {cases} after a failure: the repeated results count as re-runs"] = None
        self._resolve_overlap(held, several=known_format.format is ResultsFormat.JSONL)
        self.tools[self.redact(facts.tool)] = None
        self.notes.update(dict.fromkeys(map(self.redact, facts.notes)))

    def _add_row(self, row: ResultRow, overlap: _FileOverlap) -> None:
        self.count += 1
        overlap.count += 1
        overlap.failures += row.status in _NO_PASS
        if len(row.scores) > EXTERNAL_SCORES:
            raise row.place.build_error(f"has more than {EXTERNAL_SCORES:,} scores")
        if self.redact.has_secrets:
            row = redact_row(row, self.redact)
        row = _drop_run_time(row)
        judged, key = self.rules.apply_rules(row), row.key
        overlap.keys.add(key)
        case_rows = self.cases.get(key)
        if case_rows is None:
            self.cases[key] = [judged]
            self.files[key] = overlap.file
            self._register_trial(row)
        else:
            has_repeat = row.repeat is not None and row.repeat == case_rows[0].repeat
            if not has_repeat and (retried := _find_retried_rows(row, case_rows)):
                judged = self._mark_rerun(judged, case_rows, retried, overlap)
            elif not has_repeat:
                if row.run != case_rows[0].run:
                    raise _build_overlap_error(self.files[key], overlap.file, row)
                self.name_clashes.add(key)
            elif self.files[key] != overlap.file:
                overlap.rows.append(judged)
                return
            case_rows.append(judged)
            self._register_trial(row)
        if self.is_over_limit:
            raise row.place.build_error(f"is one of more than {CASES:,} cases or {MAX_ROWS:,} executions")

    def _mark_rerun(
        self, row: ResultRow, case_rows: list[ResultRow], retried: Sequence[int], overlap: _FileOverlap
    ) -> ResultRow:
        """Mark a row as a re-run of those with these numbers, and all of them as executions of one case."""
        repeat = f"re-runs in {row.retry_scope}"
        for number in retried:
            case_rows[number] = case_rows[number]._replace(repeat=repeat)
        if len(retried) < len(case_rows):
            self.name_clashes.add(row.key)
        overlap.retried.add(row.key)
        return row._replace(repeat=repeat, rerun=True)

    def _check_repeats(self, option: str, stated: int, overlap: _FileOverlap) -> None:
        """Let rows that ask the same be trials only if each case has as many, or as the file states."""
        often = Counter((key, row.repeat) for key in overlap.keys for row in self.cases[key])
        usual = stated or max(often.values(), default=0)
        if all(number == usual for number in often.values()):
            return
        for key, number in ((key, number) for (key, _), number in often.items() if number > 1):
            if number != usual or not stated:
                hint = f"give each case its own name or question; `{option}` makes as many executions of each case"
                rows = self.cases[key]
                rows[:] = [row._replace(repeat=None, duplicate_hint=hint) for row in rows]
                self.name_clashes.add(key)

    def _register_trial(self, row: ResultRow) -> None:
        """Register which execution of its case a row is. A second row of the same one is a duplicate."""
        if row.trial is None:
            return
        first = self.trials.setdefault((row.key, row.trial), row.place)
        if first is not row.place:
            what = f'{row.trial} of "{row.id[:80]}" occurs twice, first at {first}'
            self.duplicates.append(row.place.build_problem(what))

    def _resolve_overlap(self, overlap: _FileOverlap, *, several: bool) -> None:
        """Count one run in two forms once, and add executions only in the gate's own JSON Lines (`several`)."""
        if not overlap.rows:
            return
        first = self.files[overlap.rows[0].key]
        same = all(_is_same_execution(row, self.cases[row.key]) for row in overlap.rows)
        if same and len(overlap.rows) == overlap.count:
            self.notes[f"{overlap.file} has the same executions as {first}: they were read once"] = None
        elif several:
            for row in overlap.rows:
                self.cases[row.key].append(row)
                self._register_trial(row)
        else:
            # two runs of a tool are not two trials: a pass in an old run would make a new failure look like chance
            raise _build_overlap_error(first, overlap.file, overlap.rows[0])


class _FileOverlap(Struct):
    """Cases of a file that are also in another file."""

    file: str
    count: int = 0
    """All executions in the file."""
    failures: int = 0
    """Those that did not pass."""
    keys: set[CaseKey] = field(default_factory=set)
    """Cases that occur in the file."""
    retried: set[CaseKey] = field(default_factory=set)
    """Cases whose order of results shows re-runs."""
    rows: list[ResultRow] = field(default_factory=list)


def _find_retried_rows(row: ResultRow, case_rows: Sequence[ResultRow]) -> list[int]:
    """Return which rows this one re-runs: those of its scope if all failed, because only what fails is re-run."""
    if row.retry_scope is None or row.status is Status.SKIPPED:
        return []
    numbers = [number for number, one in enumerate(case_rows) if one.retry_scope == row.retry_scope]
    return numbers if all(case_rows[number].status in _NO_PASS for number in numbers) else []


def _build_overlap_error(first: str, other: str, row: ResultRow) -> GateError:
    which = f"{first} and {other} are" if first != other else f"{first} contains"
    return build_two_runs_error(which, row.place.build_problem(f'"{row.id[:80]}" is in {first} too'))


def _is_same_execution(row: ResultRow, case_rows: Sequence[ResultRow]) -> bool:
    """Whether one of these rows is the same execution in another form of the results."""
    facts = row.status, row.response, row.duration_ms, row.trial
    return any((one.status, one.response, one.duration_ms, one.trial) == facts for one in case_rows)


def load_external_results(
    paths: Sequence[str | ResultsPath],
    results_format: ResultsFormat,
    rules: ScoreRules,
    redact: Redactor = EMPTY_REDACTOR,
    encoding: str | None = None,
) -> ExternalResults:
    """Load the results of one tool from files and folders, without what `redact` masks.

    `encoding` is that of files that are not UTF-8 and do not state another one.

    Raises GateError `invalid-results`, `duplicate-results`, `missing-score-rule` and `results-incomplete`, with what
    is wrong in all of the files.
    """
    gathering = _ResultsCollector(results_format, rules, redact, encoding)
    _read_all(paths, gathering)
    cases, notes = gathering.cases, gathering.notes
    if gathering.duplicates:
        raise GateError(
            "duplicate-results",
            "an execution of a case occurs twice",
            "use the results of one run, in which each execution of a case has its own number",
            problems=gathering.duplicates[:_MAX_NAMED],
        )
    if gathering.name_clashes:
        cases = _separate_cases(cases, gathering.name_clashes)
    if not cases:
        raise RowPlace(str(paths[0])).build_error("has no cases")
    if empty := gathering.empty:
        has = format_count(len(empty), "results file has", "results files have")
        notes[f"{has} no cases: {format_first_few(empty, _MAX_EMPTY)}"] = None
    unstable = {key: reason for key, rows in cases.items() if (reason := _find_unstable_name(rows[0]))}
    tools, results_paths = ", ".join(sorted(gathering.tools)), tuple(map(parse_results_path, paths))
    legs = {key.suite: leg for key, rows in cases.items() if (leg := rows[0].leg)}
    tool_format, sources = next(iter(gathering.formats)), frozenset(gathering.sources)
    return ExternalResults(tool_format, tools, cases, results_paths, tuple(notes), unstable, legs, sources)


def _read_all(paths: Sequence[str | ResultsPath], gathering: _ResultsCollector) -> None:
    """Read all files. Raises the GateError of the first that is wrong, which names what is wrong in the others too."""
    wrong: list[GateError] = []
    try:
        for file in find_result_files(paths):
            try:
                gathering.add_file(file)
            except GateError as error:
                wrong.append(error)
                if gathering.is_over_limit or sum(len(one.problems) for one in wrong) >= FINDINGS:
                    break
    except GateError as error:  # what was named after this one is not looked at
        wrong.append(error)
    if wrong:
        wrong[0].problems = tuple(problem for one in wrong for problem in one.problems)
        raise wrong[0]


def _separate_cases(cases: dict[CaseKey, list[ResultRow]], clashing: set[CaseKey]) -> dict[CaseKey, list[ResultRow]]:
    """Give cases that share a name a longer one, or their file or suite as prefix. Raises GateError if none helps."""
    most = max(len(row.longer_suites) for key in clashing for row in cases[key])
    for level in range(most + 1):
        parted: dict[CaseKey, list[ResultRow]] = {}
        for key, rows in cases.items():
            for row in rows:
                distinct_row = _lengthen_name(row, level) if key in clashing else row
                parted.setdefault(distinct_row.key, []).append(distinct_row)
        still = [
            (rows[0], other)
            for rows in parted.values()
            for other in rows[1:]
            if other.repeat is None or other.repeat != rows[0].repeat
        ]
        if not still:
            return parted
    first, other = still[0]
    hint = other.duplicate_hint if first.place.file == other.place.file else None
    raise GateError(
        "duplicate-results",
        "two results have the same name but are not executions of one case",
        hint or f"give each case its own name, and mark executions of one case, for example with `trial` ({DOCS})",
        problems=[
            row.place.build_problem(f'"{row.id[:80]}" occurs twice, first at {one.place}')
            for one, row in still[:_MAX_NAMED]
        ],
    )


def _lengthen_name(row: ResultRow, level: int) -> ResultRow:
    """Lengthen a row's name: by its own or its file at `level` 0, by a longer suite name at each further level."""
    if level:
        longer = row.longer_suites
        return row._replace(suite=longer[min(level, len(longer)) - 1]) if longer else row
    if row.longer_name is not None:
        return row._replace(id=row.longer_name)
    return row._replace(suite=f"{row.location.file}: {row.suite}") if row.location else row


def _drop_run_time(row: ResultRow) -> ResultRow:
    """Return the row without the time of its run in the names of its suite, as unittest-xml-reporting puts it there."""
    suite, *longer = (_RUN_TIME.sub("", name) or "tests" for name in (row.suite, *row.longer_suites))
    return row if suite == row.suite and not longer else row._replace(suite=suite, longer_suites=tuple(longer))


def _prefix_suite(row: ResultRow, prefix: str) -> ResultRow:
    """Return the row with a prefix before all names of its suite, which names its leg of a matrix."""
    suite, *longer = (f"{prefix}: {name}"[:MAX_NAME] for name in (row.suite, *row.longer_suites))
    return row._replace(suite=suite, longer_suites=tuple(longer), leg=prefix)


def _find_unstable_name(row: ResultRow) -> UnstableName | None:
    """Find why a name may change in the next run; None for a name that looks stable."""
    if row.unstable_reason:
        return UnstableName(row.unstable_reason, is_guess=False)
    match = _UNSTABLE_PART.search(row.id[:_MAX_SEARCHED]) or _UNSTABLE_PART.search(row.suite[:_MAX_SEARCHED])
    if match is None:
        return None
    what = next(what for group, what in _UNSTABLE_PART_NAMES.items() if match[group])
    why = f"it contains {what}, which changes with every run: give the case a fixed name ({_ID_HINT})"
    return UnstableName(why, is_guess=True)


def redact_row(row: ResultRow, redact: Redactor) -> ResultRow:
    """Mask every text of a row but its own name, which is kept for re-runs: the tool knows no other."""
    name = redact(row.id)
    return row._replace(
        suite=redact(row.suite),
        id=name,
        place=row.place._replace(field=row.place.field and redact(row.place.field)),
        scores=tuple(
            one._replace(name=redact(one.name), reason=one.reason and redact(one.reason)) for one in row.scores
        ),
        prompt=redact(row.prompt),
        expectation=tuple(map(redact, row.expectation)),
        response=row.response and redact(row.response),
        trace=row.trace and redact(row.trace),
        error=row.error and redact(row.error),
        calls=tuple(redact.mask_struct(call) for call in row.calls),
        location=row.location and redact.mask_struct(row.location),
        tags=tuple(map(redact, row.tags)),
        description=redact(row.description),
        target=row.target and redact(row.target),
        rerun_name=row.rerun_name or (row.id if name != row.id else None),
        longer_name=row.longer_name and redact(row.longer_name),
        unstable_reason=row.unstable_reason and redact(row.unstable_reason),
        leg=row.leg and redact(row.leg),
    )
