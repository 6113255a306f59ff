"""Validate a document against its pydantic model, and collect problems and warnings.

The `file_model` of a dialect declares the shape, derived from `FileModel`, which is strict about names and texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, ClassVar, Final, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from eval_gate.errors import Problem, format_suggestion
from eval_gate.formats.base import EvalFileError, Positions
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalMistake, Location, MistakeKind, describe_impossible_passes
from eval_gate.model.limits import FINDINGS, TURN_CHARACTERS
from eval_gate.model.specs.match_all_patterns import matches_every_text
from eval_gate.struct import FrozenStruct, Struct, field
from eval_gate.text.javascript.regex import find_pattern_problem
from eval_gate.text.json_values import find_at
from eval_gate.text.number_search import parse_number
from eval_gate.text.sources.validation_errors import describe_error, format_field_path, list_errors
from eval_gate.text.untrusted.surrogates import to_well_formed

Text = Annotated[str, Field(min_length=1)]


def _require_number(text: str) -> str:
    if parse_number(text) is None:
        raise ValueError("expected one number, date or code, such as 1,250.40, 12 December or A-1043")
    return text


NumberText = Annotated[Text, AfterValidator(_require_number)]
"""A number, date or code that a response contains in any way of writing it."""


def _require_words(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


MessageText = Annotated[
    Text, Field(max_length=TURN_CHARACTERS, json_schema_extra={"pattern": r"\S"}), AfterValidator(_require_words)
]
"""What a user writes in a conversation."""
CaseId = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Path = tuple[str | int, ...]
_CASE_DEPTH: Final = 2
"""Steps of the path to a case: `cases` and its index."""
_MAX_SHOWN: Final = 80
_MAX_FIELD: Final = 200
_MAX_KEYS: Final = 5
"""Maximum unknown keys in a message."""
Shape = TypeVar("Shape", bound=BaseModel)


class FileModel(BaseModel):
    """Strict base model. Unknown keys are kept, so that a warning can name the nearest key."""

    ignored_keys: ClassVar[frozenset[str]] = frozenset({"$schema", "$comment"})
    """Further keys, for people and editors."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="allow",
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        defer_build=True,
    )


class TrialKeys(FileModel):
    """How often a case, or each case of a file, is executed, and how many of these trials have to pass."""

    trials: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="Number of executions of a case; by default the file's, or else the setting trials."
    )
    passes: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="Number of the trials that have to pass; by default more than half of them."
    )

    def inherit_trials(self, of_file: TrialKeys) -> Self:
        """Return the case with the `trials` of its file if it has none, and with the `passes` that go with them."""
        if self.trials is not None or of_file.trials is None:
            return self
        passes = of_file.passes if self.passes is None else self.passes
        return self.model_copy(update={"trials": of_file.trials, "passes": passes})


def find_skip_reason(mistakes: Iterable[EvalMistake]) -> str | None:
    """Return the message of the mistake that makes a case skipped."""
    return next((one.message for one in mistakes if one.kind is MistakeKind.UNKNOWN_EXPECTATIONS), None)


def get_known_keys(model: type[BaseModel]) -> set[str]:
    """Return the keys that the model reads, as they are written in the file."""
    return {info.alias or name for name, info in model.model_fields.items()}


def list_unknown_keys(part: FileModel) -> list[str]:
    """List the keys of a part that have no effect and are not meant for people."""
    return [key for key in part.model_extra or {} if key not in part.ignored_keys]


class Finding(FrozenStruct):
    """A message about one location. A `silent` finding is a problem under --strict, and so is every mistake."""

    message: str
    path: Path
    silent: bool
    mistake: MistakeKind | None = None


class Findings(Struct):
    """Findings of one file, in order."""

    all: list[Finding] = field(default_factory=list)
    _by_case: dict[str | int, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    _omitted_count: int = 0

    @property
    def is_full(self) -> bool:
        """Whether further findings are only counted."""
        return len(self.all) >= FINDINGS

    def suggest_word(self, word: str, known_words: Iterable[str]) -> str:
        """Suggest the most similar known word, or nothing when the findings are full: the search is slow."""
        return "" if self.is_full else format_suggestion(word, known_words)

    def add(self, message: str, path: Path, *, silent: bool = False) -> None:
        """Add a finding, or count it if the findings are full."""
        self._keep(Finding(message, path, silent))

    def lint_pattern(self, pattern: str, flags: str, path: Path) -> None:
        """Report a pattern that cannot be compiled, or that finds something in every response."""
        if problem := find_pattern_problem(pattern, flags):
            self._keep(Finding(problem, path, silent=True, mistake=MistakeKind.INVALID_PATTERN))
        elif matches_every_text(pattern, flags):
            self.add(f"/{pattern[:80]}/ matches every response: this always passes", path, silent=True)

    def lint_unknown_keys(
        self, part: FileModel, path: Path, ignored: Container[str] = (), *, silent: bool = True
    ) -> None:
        """Report unknown keys with the nearest known one; a key that is near to one is a `silent` finding or none."""
        for key in list_unknown_keys(part):
            if key not in ignored:
                hint = self.suggest_word(key, get_known_keys(type(part)))
                self.add(f'unknown key "{key[:80]}"{hint}: it is ignored', (*path, key), silent=silent and bool(hint))

    def skip_case(self, unknown: Iterable[str], path: Path) -> None:
        """Skip a case with only `unknown` expectations, described in words: every response would pass."""
        message = f"nothing is checked: {'; '.join(islice(unknown, _MAX_KEYS))}"
        self._keep(Finding(message, path, silent=True, mistake=MistakeKind.UNKNOWN_EXPECTATIONS))

    def _keep(self, finding: Finding) -> None:
        """Add a mistake, or count it; one that skips a case is always added, because that case must not run."""
        if self.is_full and finding.mistake is not MistakeKind.UNKNOWN_EXPECTATIONS:
            self._omitted_count += 1
            return
        self.all.append(finding)
        if len(finding.path) > 1 and finding.path[0] == "cases":
            self._by_case[finding.path[1]].append(finding)

    @property
    def strict_problems(self) -> list[Finding]:
        """Findings that are problems under --strict; omitted ones may be too."""
        return [finding for finding in (*self.all, *self.overflow) if finding.silent]

    @property
    def overflow(self) -> tuple[Finding, ...]:
        """Line with the number of further findings, if there are any."""
        return (
            Finding(f"{self._omitted_count:,} more warnings about this file are not listed", (), silent=True),
        ) * bool(self._omitted_count)

    def get_case_findings(self, index: int) -> Sequence[Finding]:
        """Return the findings about one case, mistakes included."""
        return self._by_case.get(index, ())


class DocumentReader:
    """Reader for one document with positions. A `bare` document is the list of cases itself."""

    def __init__(self, file: str, positions: Positions, *, bare: bool = False) -> None:
        self.problems: list[Problem] = []
        self.file = file
        self._positions = positions
        self._bare = bare

    def find_line(self, steps: Iterable[str | int]) -> int:
        """Return the line of the value at this path, or of its nearest ancestor."""
        return self._positions.find_line(self._strip_cases_step(steps))

    def build_problem(self, message: str, steps: Iterable[str | int]) -> Problem:
        """Build a problem, without adding it."""
        path = self._strip_cases_step(steps)
        return Problem(
            message, file=self.file, line=self._positions.find_line(path), field=format_field_path(path) or None
        )

    def validate_document(
        self,
        model: type[Shape],
        document: JsonValue,
        *,
        convert_path: Callable[[Path], Path],
        describe: Callable[[ErrorDetails], str] = describe_error,
    ) -> Shape:
        """Validate the document with this model. Raises EvalFileError with every mistake.

        `convert_path` converts a path of pydantic to the path in the file, and `describe` describes one mistake.
        """
        try:
            return model.model_validate(document)
        except ValidationError as error:
            for detail in list_errors(error):
                path, context = convert_path(detail["loc"]), detail.get("ctx", {})
                is_missing = detail["type"] == "missing"
                where = _format_case_suffix(document, path) if is_missing or len(path) == _CASE_DEPTH else ""
                unknown = context.get("unknown", ())
                if is_missing:
                    unknown = _find_unknown_keys(model, path[:-1], find_at(document, path[:-1]))
                more = describe_unknown_keys(unknown, context.get("missing", path[-1:]))
                self.problems.append(self.build_problem(f"{describe(detail)}{where}{more}", path))
            raise self._build_error() from error

    def build_mistakes(self, findings: Findings, index: int) -> tuple[EvalMistake, ...]:
        """Build the mistakes in one case, each with its place."""
        return tuple(
            EvalMistake(
                kind=one.mistake,
                message=one.message,
                location=Location(file=self.file, line=self.find_line(one.path)),
                field=format_field_path(self._strip_cases_step(one.path))[:_MAX_FIELD],
            )
            for one in findings.get_case_findings(index)
            if one.mistake is not None
        )

    def build_warnings(self, findings: Findings, index: int) -> tuple[str, ...]:
        """Build the warnings about one case, which are no mistakes."""
        return tuple(self._build_warning(one) for one in findings.get_case_findings(index) if one.mistake is None)

    def _build_warning(self, finding: Finding) -> str:
        """Build a warning, which names the turn that it is about, and its line: a case may have many."""
        turn = finding.path[_CASE_DEPTH : 2 * _CASE_DEPTH]
        place = f"{format_field_path(turn)} in line {self.find_line(finding.path)}: " if turn[:1] == ("turns",) else ""
        return f"{place}{finding.message}"

    def check_passes(self, keys: TrialKeys, path: Path, of_file: TrialKeys) -> None:
        """Report a problem if more trials would have to pass than there are."""
        if keys.passes and (problem := describe_impossible_passes(keys.passes, keys.inherit_trials(of_file).trials)):
            self.problems.append(self.build_problem(problem, (*path, "passes")))

    def check_duplicate_ids(self, ids: Sequence[str]) -> None:
        """Report a problem for every id that an earlier case has."""
        first: dict[str, int] = {}
        for index, name in enumerate(ids):
            if name in first and len(self.problems) < FINDINGS:
                message = f'the case in line {self.find_line(("cases", first[name]))} already has the id "{name}"'
                self.problems.append(self.build_problem(message, ("cases", index, "id")))
            first.setdefault(name, index)

    def collect_warnings(self, findings: Findings, ids: Sequence[str], *, strict: bool) -> list[str]:
        """Return the warnings. Raises EvalFileError for problems; if `strict`, for silent findings too."""
        if strict:
            self.problems += [self.build_problem(finding.message, finding.path) for finding in findings.strict_problems]
        if self.problems:
            raise self._build_error()
        warnings = (*(one for one in findings.all if one.mistake is None), *findings.overflow)
        return [f"{_describe_place(one.path, ids)}: {self._build_warning(one)}" for one in warnings]

    def _strip_cases_step(self, steps: Iterable[str | int]) -> Path:
        """Return the path in the file as written: a bare list of cases has no `cases` step."""
        path = tuple(steps)
        return path[1:] if self._bare and path[:1] == ("cases",) else path

    def _build_error(self) -> EvalFileError:
        return EvalFileError(self.file, sorted(self.problems, key=lambda problem: problem.line or 0))


def describe_unknown_keys(keys: Iterable[str], missing_keys: Iterable[str]) -> str:
    """Describe keys that a part does not have, and which of the `missing_keys` may be meant by one of them."""
    names = [key[:_MAX_SHOWN] for key in islice(keys, _MAX_KEYS)]
    hint = next(filter(None, (format_suggestion(name, missing_keys) for name in names)), "")
    listed = ", ".join(f'"{name}"' for name in names)
    return f"; {listed} {'is' if len(names) == 1 else 'are'} not known here{hint}" if names else ""


def _find_unknown_keys(model: type[BaseModel], path: Path, part: JsonValue) -> list[str]:
    """Find the keys of the part at `path` that none of its models knows."""
    models: list[type[BaseModel]] = [model]
    for step in path:
        if isinstance(step, str):
            fields = ((name, info) for one in models for name, info in one.model_fields.items())
            same = (info.annotation for name, info in fields if step == (info.alias or name))
            models = [inner for annotation in same for inner in _iter_models(annotation)]
    ignored = (one.ignored_keys for one in models if issubclass(one, FileModel))
    known_keys = set[str]().union(*map(get_known_keys, models), *ignored)
    return [key for key in part if key not in known_keys] if isinstance(part, dict) else []


def _iter_models(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models in the type of a field."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from _iter_models(one)


def _format_case_suffix(document: JsonValue, path: Path) -> str:
    """Format the name of the case at this path; empty outside of a case, or without a name."""
    part = find_at(document, path[:_CASE_DEPTH])
    name = part.get("id") if isinstance(part, dict) and len(path) >= _CASE_DEPTH else None
    return f' in the case "{to_well_formed(name)[:_MAX_SHOWN]}"' if isinstance(name, str) and name.strip() else ""


def _describe_place(path: Path, ids: Sequence[str]) -> str:
    """Return the name of a place for people: the id of the case, or the field."""
    if path[:1] == ("cases",) and len(path) > 1 and isinstance(path[1], int):
        return ids[path[1]]
    return format_field_path(path)
