"""Reads a document into its shape: what is wrong becomes problems, what is odd warnings, each with its place.

The shape is declared in the `wire` module of a dialect, from what is strict about names and texts here (`Wire`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Final, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from eval_gate.errors import Problem, did_you_mean
from eval_gate.formats.base import EvalFileError, Positions
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import FINDINGS
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.sources.shape import field_path, mistakes, sentence

Text = Annotated[str, Field(min_length=1)]
CaseId = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Path = tuple[str | int, ...]
_A_CASE: Final = 2
"""Steps that lead to a case as a whole: `cases` and its number."""
_SHOWN: Final = 80
Shape = TypeVar("Shape", bound=BaseModel)


class Wire(BaseModel):
    """Strict: a text is no list and no number. Unknown keys are kept, to be warned about with the nearest name."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="allow",
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        defer_build=True,
    )


def keys_of(model: type[BaseModel]) -> set[str]:
    """The keys that are read, as they are written."""
    return {info.alias or name for name, info in model.model_fields.items()}


class NamedCase(Protocol):
    """A case as it is written."""

    @property
    def id(self) -> str:
        """Its name in the file."""
        ...


class Finding(FrozenStruct):
    """A sentence about one place. `silent` ones mean that something passes unchecked: problems under --strict."""

    message: str
    path: Path
    silent: bool


class Findings(Struct):
    """What was found in one file, in order."""

    all: list[Finding] = field(default_factory=list)
    _by_case: dict[str | int, list[str]] = field(default_factory=lambda: defaultdict(list))
    _more: int = 0

    @property
    def full(self) -> bool:
        """Whether what is found from here on is only counted."""
        return len(self.all) >= FINDINGS

    def hint(self, word: str, known: Iterable[str]) -> str:
        """The nearest known word, as long as somebody will read it: looking for it is what costs."""
        return "" if self.full else did_you_mean(word, known)

    def add(self, message: str, path: Path, *, silent: bool = False) -> None:
        """Keep one more, or count it."""
        if self.full:
            self._more += 1
            return
        self.all.append(Finding(message, path, silent))
        if len(path) > 1 and path[0] == "cases":
            self._by_case[path[1]].append(message)

    @property
    def strict(self) -> list[Finding]:
        """Those that are problems under --strict. What was only counted may be one."""
        return [finding for finding in (*self.all, *self.more) if finding.silent]

    @property
    def more(self) -> tuple[Finding, ...]:
        """How many more there are, where there are."""
        return (Finding(f"{self._more:,} more warnings about this file are not listed", (), silent=True),) * bool(
            self._more
        )

    def of_case(self, index: int) -> tuple[str, ...]:
        """The sentences about one case."""
        return tuple(self._by_case.get(index, ()))


class DocumentReader:
    """One document with its places. A `bare` one is the list of cases itself, which else stands under `cases`."""

    def __init__(self, file: str, positions: Positions, *, bare: bool = False) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._positions = positions
        self._bare = bare

    def line(self, steps: Iterable[str | int]) -> int:
        """The line of what stands there, or of what is nearest to it."""
        return self._positions.line(self._written(steps))

    def problem(self, message: str, steps: Iterable[str | int]) -> Problem:
        """Something that keeps the file from being used; it is not kept yet."""
        path = self._written(steps)
        return Problem(message, file=self._file, line=self._positions.line(path), field=field_path(path) or None)

    def shape(
        self,
        model: type[Shape],
        document: JsonValue,
        *,
        written: Callable[[Path], Path],
        said: Callable[[ErrorDetails], str] = sentence,
    ) -> Shape:
        """The document in this shape. Raises EvalFileError with everything that is not.

        `written` takes from a path of pydantic what is not in the file; `said` words one mistake.
        """
        try:
            return model.model_validate(document)
        except ValidationError as error:
            for detail in mistakes(error):
                path = written(detail["loc"])
                incomplete = detail["type"] == "missing" or len(path) == _A_CASE
                where = _in_case(document, path) if incomplete else ""
                self.problems.append(self.problem(f"{said(detail)}{where}", path))
            raise self._refusal() from error

    def refuse_twins(self, cases: Sequence[NamedCase]) -> None:
        """A problem for every id that an earlier case has."""
        first: dict[str, int] = {}
        for index, case in enumerate(cases):
            if case.id in first and len(self.problems) < FINDINGS:
                line = self.line(("cases", first[case.id]))
                message = f'the id "{case.id}" is taken by the case in line {line}'
                self.problems.append(self.problem(message, ("cases", index, "id")))
            first.setdefault(case.id, index)

    def warnings(self, findings: Findings, cases: Sequence[NamedCase], *, strict: bool) -> list[str]:
        """What was found, each with the name of its case or field. Raises EvalFileError where there are problems.

        Under `strict` what silently passes is a problem, too.
        """
        if strict:
            self.problems += [self.problem(finding.message, finding.path) for finding in findings.strict]
        if self.problems:
            raise self._refusal()
        return [f"{_name_of(one.path, cases)}: {one.message}" for one in (*findings.all, *findings.more)]

    def _written(self, steps: Iterable[str | int]) -> Path:
        """The path in the file as it is written: a bare list has no `cases`."""
        path = tuple(steps)
        return path[1:] if self._bare and path[:1] == ("cases",) else path

    def _refusal(self) -> EvalFileError:
        return EvalFileError(self._file, sorted(self.problems, key=lambda problem: problem.line or 0))


def _in_case(document: JsonValue, path: Path) -> str:
    """Which case it is in, by the name that its author gave it; empty where it is in none, or that has no name."""
    part = document
    for step in path[:_A_CASE]:
        if isinstance(part, dict) and isinstance(step, str):
            part = part.get(step)
        elif isinstance(part, list) and isinstance(step, int) and step < len(part):
            part = part[step]
        else:
            return ""
    name = part.get("id") if isinstance(part, dict) and len(path) >= _A_CASE else None
    return f' in the case "{well_formed(name)[:_SHOWN]}"' if isinstance(name, str) and name.strip() else ""


def _name_of(path: Path, cases: Sequence[NamedCase]) -> str:
    """What people call the place: the case's id, or the field."""
    if path[:1] == ("cases",) and len(path) > 1 and isinstance(path[1], int):
        return cases[path[1]].id
    return field_path(path)
