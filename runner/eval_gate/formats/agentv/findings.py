"""Problems and warnings of one AgentV file, each with its location."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, TypeVar

from pydantic import AliasChoices, ValidationError
from pydantic_core import ErrorDetails

from eval_gate.errors import Problem, format_suggestion
from eval_gate.formats.agentv.detection import find_used_name
from eval_gate.formats.agentv.file_model import AgentVCase, AgentVCheck, AgentVFileModel, AgentVMessage, AgentVSuite
from eval_gate.formats.agentv.v4.file_model import AgentV4ExpectedCall, AgentV4Workspace
from eval_gate.formats.agentv.v4.unsupported_features import (
    IGNORED_KEYS,
    UNSUPPORTED_CALL_KEYS,
    UNSUPPORTED_CHECK_KEYS,
    UNSUPPORTED_WORKSPACE_KEYS,
    describe_unsupported_key,
)
from eval_gate.formats.base import EvalFileError, EvalSource, MultiFilePositions, Positions
from eval_gate.formats.document_reader import describe_unknown_keys
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalMistake, Location, MistakeKind
from eval_gate.model.limits import FINDINGS
from eval_gate.text.javascript.regex import find_pattern_problem
from eval_gate.text.sources.validation_errors import describe_error, format_field_path, list_errors

MAX_SHOWN_KEY: Final = 80
"""Maximum characters of an unknown key in a message."""
_MAX_LISTED: Final = 5
"""Maximum keys of a part that are listed when it has an unknown one."""
_CONVERSATION_INPUT: Final = (
    ": AgentV requires what comes before the first turn, such as a system message; the user's messages are `turns`"
)
_CASE_DEPTH: Final = 2
"""Steps of the path from a file to a case."""
Path = tuple[str | int, ...]
Model = TypeVar("Model", bound=AgentVFileModel)

_IGNORED_KEYS: Final[Mapping[type[AgentVFileModel], frozenset[str]]] = {
    AgentVSuite: frozenset({"$comment", "name", "version", "author", "license", "tags", "metadata"}),
    AgentVCase: frozenset({"$comment", "notes", "name", "metadata"}),
    AgentVMessage: frozenset({"id", "timestamp", "metadata"}),
}
"""Keys of texts for people, without an effect."""
_MISPLACED_KEYS: Final[Mapping[type[AgentVFileModel], Mapping[str, str]]] = {
    AgentVSuite: dict.fromkeys(("evaluators", "assertions", "assert"), " (it belongs in `execution`)"),
}
_UNSUPPORTED_KEYS: Final[Mapping[type[AgentVFileModel], Mapping[str, str]]] = {
    AgentV4ExpectedCall: UNSUPPORTED_CALL_KEYS,
    AgentV4Workspace: UNSUPPORTED_WORKSPACE_KEYS,
    AgentVCheck: UNSUPPORTED_CHECK_KEYS,
}


class AgentVFindings:
    """Problems and warnings of one file. `strict` turns warnings about silent passes into problems.

    `today` means a file of current AgentV, whose unknown parts are all reported.
    """

    def __init__(self, source: EvalSource, positions: Positions, *, strict: bool, today: bool = False) -> None:
        self.today = today
        self.problems: list[Problem] = []
        self._warnings: list[str] = []
        self._warned = 0
        self._of_case: list[str] = []
        self._mistakes: list[EvalMistake] = []
        self._file = source.file
        self._positions = positions
        self._strict = strict
        self.case = ""
        """Name for people of the case that is being read."""

    def begin_case(self, name: str) -> None:
        """Assign the findings from here on to this case."""
        self.case = name
        self._of_case = []
        self._mistakes = []

    @property
    def case_warnings(self) -> tuple[str, ...]:
        """Warnings about the case that is being read."""
        return tuple(self._of_case)

    @property
    def case_mistakes(self) -> tuple[EvalMistake, ...]:
        """Mistakes of the case that is being read, which decide its result."""
        return tuple(self._mistakes)

    def find_line(self, path: Path) -> int:
        """Return the line of the value at `path`, or of its nearest ancestor."""
        return self._positions.find_line(path)

    def find_file(self, path: Path) -> str:
        """Return the file that contains the value at `path`."""
        return self._locate(path)[0]

    def add_problems(self, problems: Iterable[Problem]) -> None:
        """Add problems of another file that belongs to this one."""
        self.problems += problems

    def lint_pattern(self, pattern: str, flags: str, path: Path) -> None:
        """Report a pattern that cannot be compiled: its assertion fails with every response."""
        message = find_pattern_problem(pattern, flags)
        if message is None or len(self._mistakes) >= FINDINGS:
            return
        if self._strict:
            self.add_problem(message, path)
            return
        file, steps = self._locate(path)
        place = Location(file=file, line=self.find_line(path))
        self._mistakes.append(
            EvalMistake(kind=MistakeKind.INVALID_PATTERN, message=message, location=place, field=steps)
        )

    def _locate(self, path: Path) -> tuple[str, str | None]:
        """Return the file that contains the value at `path`, and the value's path there as people write it."""
        file: str = self._file
        steps: Sequence[str | int] = path
        if isinstance(self._positions, MultiFilePositions):
            file, steps = self._positions.locate(path)
        return file, format_field_path(steps) or None

    def add_problem(self, message: str, path: Path) -> None:
        """Add a problem, which makes the file invalid."""
        file, steps = self._locate(path)
        self.problems.append(Problem(message, file=file, line=self.find_line(path), field=steps))
        if len(self.problems) >= FINDINGS:  # finding each of a hundred thousand takes seconds
            self.problems.append(Problem("reading stopped here: there may be more problems", file=file))
            raise EvalFileError(self._file, self.problems)

    def add_warning(self, message: str, path: Path, *, silent: bool = False) -> None:
        """Add a warning. A `silent` one hides that a check passes or is ignored, so it is a problem under --strict."""
        if silent and self._strict:
            self.add_problem(message, path)
            return
        steps = path[2:] if self.case else path
        line = f"{format_field_path(steps)}: {message}" if steps else message
        self._warned += 1
        if self._warned > FINDINGS:
            return
        if self.case:
            self._of_case.append(line)
            line = f"{self.case}: {line}"
        self._warnings.append(line)

    def add_unsupported(self, message: str, path: Path) -> None:
        """Report a feature of AgentV that is not supported."""
        if self.today:
            self.add_problem(message, path)
        else:
            self.add_warning(message, path, silent=True)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings in their order, up to `FINDINGS`, and a last one with the number of further ones."""
        more = self._warned - len(self._warnings)
        return (*self._warnings, *([f"{more:,} more warnings about this file are not listed"] if more else []))

    def read_part(self, model: type[Model], raw: JsonValue, path: Path, *, ignored: Sequence[str] = ()) -> Model | None:
        """Validate a part with its model, and report problems. Warns about unread keys that are not `ignored`."""
        try:
            part = model.model_validate(raw)
        except ValidationError as error:
            for detail in list_errors(error):
                self._add_validation_problem(detail, path, model, raw if isinstance(raw, dict) else {})
            part = None
        if isinstance(raw, dict):
            self._check_keys(model, raw, path, ignored)
        return part

    def is_unquoted(self, path: Path) -> bool:
        """Whether the value is a YAML scalar without quotes."""
        return self._positions.find_unquoted(path) is not None

    def add_not_text_problem(self, word: str, path: Path) -> None:
        """Report a value that is meant as text but that YAML reads as another type."""
        self.add_problem(f'YAML does not read this as text: put it in quotes, "{word[:60]}"', path)

    def _add_validation_problem(
        self, detail: ErrorDetails, path: Path, model: type[AgentVFileModel], raw: Mapping[str, JsonValue]
    ) -> None:
        steps = [step for step in detail["loc"] if isinstance(step, int) or "[" not in step]
        if steps and isinstance(steps[0], str):  # by the name under which its author wrote it
            same = next((names for names in _list_field_names(model) if steps[0] in names), ())
            steps[0] = find_used_name(raw, same) or steps[0]
        place = (*path, *steps)
        word = self._positions.find_unquoted(place) if detail["type"] == "string_type" else None
        if word:
            self.add_not_text_problem(word, place)
            return
        message = describe_error(detail)
        if detail["type"] == "missing" and len(steps) == 1:
            name = raw.get("id") if "id" in model.model_fields and len(path) == _CASE_DEPTH else None
            message += f' in the case "{name[:MAX_SHOWN_KEY]}"' if isinstance(name, str) and name else ""
            message += _CONVERSATION_INPUT if steps == ["input"] and "turns" in raw else ""
            message += describe_unknown_keys(self._list_unknown_keys(model, raw), [str(steps[0])])
        self.add_problem(message, place)

    def _check_keys(
        self, model: type[AgentVFileModel], raw: Mapping[str, JsonValue], path: Path, ignored: Sequence[str]
    ) -> None:
        """Report keys without a field, and two names of the same field."""
        fields = _list_field_names(model)
        for same in fields:
            first, *duplicates = [name for name in same if name in raw] or [""]
            for other in duplicates:
                self.add_problem(f"says the same as `{first}`: keep one of them", (*path, other))
        known_keys = {name for same in fields for name in same}
        for key in (key for key in self._list_unknown_keys(model, raw) if key not in ignored):
            if self.today:
                self.add_problem(_describe_unknown_v4_key(model, key, known_keys), (*path, key[:MAX_SHOWN_KEY]))
                continue
            near = format_suggestion(key, known_keys) if self._warned < FINDINGS else ""
            hint = _MISPLACED_KEYS.get(model, {}).get(key) or near
            self.add_warning(f"unknown key{hint}: it is ignored", (*path, key[:MAX_SHOWN_KEY]), silent=True)

    def _list_unknown_keys(self, model: type[AgentVFileModel], raw: Mapping[str, JsonValue]) -> list[str]:
        """List the keys of `raw` that no field of the model has, without those for people."""
        known_keys = {name for same in _list_field_names(model) for name in same}
        known_keys |= IGNORED_KEYS if self.today else _IGNORED_KEYS.get(model, frozenset())
        return [key for key in raw if key not in known_keys]


def _describe_unknown_v4_key(model: type[AgentVFileModel], key: str, known_keys: Iterable[str]) -> str:
    """Describe an unknown key of AgentV 4 as a problem, never ignored: it may change the result."""
    problem = describe_unsupported_key(key)
    if problem is None and (why := _UNSUPPORTED_KEYS.get(model, {}).get(key)):
        problem = f"`{key}` is not supported: {why}"
    names = [same[0] for same in _list_field_names(model)]
    listed = f"; known: {', '.join(names)}" if len(names) <= _MAX_LISTED else ""
    return problem or f"unknown key{format_suggestion(key, known_keys)}: it would be ignored{listed}"


@cache
def _list_field_names(model: type[AgentVFileModel]) -> tuple[tuple[str, ...], ...]:
    """List the names that each field may have in a file, with the name in the specification first."""
    return tuple(get_field_names(model, field) for field in model.model_fields)


def get_field_names(model: type[AgentVFileModel], field: str) -> tuple[str, ...]:
    """Return the names that one field may have in a file, with the name in the specification first."""
    alias = model.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(choice for choice in alias.choices if isinstance(choice, str))
    return (alias if isinstance(alias, str) else field,)
