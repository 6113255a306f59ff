"""Everything that is found wrong or odd in one AgentV file, each with its place, so that all of it is said at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Final, TypeVar

from pydantic import AliasChoices, ValidationError
from pydantic_core import ErrorDetails

from eval_gate.errors import Problem, did_you_mean, nearest
from eval_gate.formats.agentv.recognising import name_used
from eval_gate.formats.agentv.today.refusals import CALL_KEYS, CHECK_KEYS, HARMLESS, refusal_of
from eval_gate.formats.agentv.today.wire import ExpectedCall
from eval_gate.formats.agentv.wire import Case, Check, Message, Suite, Wire
from eval_gate.formats.base import EvalFileError, Positions, SeveralFiles, Source, WrittenScalars
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import FINDINGS
from eval_gate.text.sources.shape import field_path, mistakes, sentence

MAX_KEY: Final = 80
"""Characters of an unknown key that are shown."""
_DEPTH_OF_CASES: Final = 2
"""The steps from a file to one of its cases."""
Path = tuple[str | int, ...]
Model = TypeVar("Model", bound=Wire)

_HARMLESS: Final[Mapping[type[Wire], frozenset[str]]] = {
    Suite: frozenset({"$comment", "name", "version", "author", "license", "tags", "metadata"}),
    Case: frozenset({"$comment", "notes", "name", "metadata"}),
    Message: frozenset({"id", "timestamp", "metadata"}),
}
"""Keys that say something to people, and on which nothing depends."""
_BELONG_ELSEWHERE: Final[Mapping[type[Wire], Mapping[str, str]]] = {
    Suite: dict.fromkeys(("evaluators", "assertions", "assert"), " (it belongs into `execution`)"),
}


class AgentVFindings:
    """What was found in one file. `strict` makes problems of warnings about what silently passes.

    `today`: it is a file of today's AgentV, of which nothing is passed over that is not known.
    """

    def __init__(self, source: Source, positions: Positions, *, strict: bool, today: bool = False) -> None:
        self.today = today
        self.problems: list[Problem] = []
        self._warnings: list[str] = []
        self._warned = 0
        self._of_case: list[str] = []
        self._file = source.file
        self._positions = positions
        self._strict = strict
        self.case = ""
        """What people call the case that was begun last."""

    def begin_case(self, name: str) -> None:
        """What is found from here on belongs to this case."""
        self.case = name
        self._of_case = []

    @property
    def of_case(self) -> tuple[str, ...]:
        """The warnings about the case that was begun last."""
        return tuple(self._of_case)

    def line(self, path: Path) -> int:
        """The line of a value, or of what is nearest to it."""
        return self._positions.line(path)

    def file_of(self, path: Path) -> str:
        """The file in which a value stands."""
        return self._positions.place(path)[0] if isinstance(self._positions, SeveralFiles) else self._file

    def take(self, problems: Iterable[Problem]) -> None:
        """Problems of another file that belongs to this one."""
        self.problems += problems

    def problem(self, message: str, path: Path) -> None:
        """Something that keeps the file from being used."""
        file, steps = self._file, path
        if isinstance(self._positions, SeveralFiles):
            file, found = self._positions.place(path)
            steps = tuple(found)
        self.problems.append(Problem(message, file=file, line=self.line(path), field=field_path(steps) or None))
        if len(self.problems) >= FINDINGS:  # nobody reads more, and finding each of a hundred thousand takes seconds
            self.problems.append(Problem("here reading stopped: there may be more", file=file))
            raise EvalFileError(self._file, self.problems)

    def warn(self, message: str, path: Path, *, silent: bool = False) -> None:
        """Something odd. `silent`: something would pass, or not be done, unseen: a problem under --strict."""
        if silent and self._strict:
            self.problem(message, path)
            return
        steps = path[2:] if self.case else path
        said = f"{field_path(steps)}: {message}" if steps else message
        self._warned += 1
        if self._warned > FINDINGS:
            return
        if self.case:
            self._of_case.append(said)
            said = f"{self.case}: {said}"
        self._warnings.append(said)

    def unread(self, message: str, path: Path) -> None:
        """Something that AgentV has and nobody here reads."""
        if self.today:
            self.problem(message, path)
        else:
            self.warn(message, path, silent=True)

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings in their order, up to `FINDINGS`; a last one says how many more there are."""
        more = self._warned - len(self._warnings)
        return (*self._warnings, *([f"{more:,} more warnings about this file are not listed"] if more else []))

    def read(self, model: type[Model], raw: JsonValue, path: Path, *, ignored: Sequence[str] = ()) -> Model | None:
        """One part of the file in its declared shape; None after saying what is wrong with it.

        Keys that nobody reads are warned about, but for those in `ignored`.
        """
        try:
            found = model.model_validate(raw)
        except ValidationError as error:
            for detail in mistakes(error):
                self._shape(detail, path, model, raw if isinstance(raw, dict) else {})
            found = None
        if isinstance(raw, dict):
            self._keys(model, raw, path, ignored)
        return found

    def is_unquoted(self, path: Path) -> bool:
        """Whether the value is a YAML scalar without quotes."""
        return self._unquoted(path) is not None

    def _unquoted(self, path: Path) -> str | None:
        return self._positions.unquoted(path) if isinstance(self._positions, WrittenScalars) else None

    def no_text(self, written: str, path: Path) -> None:
        """A value that is meant as text, and that YAML takes for something else."""
        self.problem(f'YAML does not read this as text: put it in quotes, "{written[:60]}"', path)

    def _shape(self, detail: ErrorDetails, path: Path, model: type[Wire], raw: Mapping[str, JsonValue]) -> None:
        steps = [step for step in detail["loc"] if isinstance(step, int) or "[" not in step]
        if steps and isinstance(steps[0], str):  # by the name under which its author wrote it
            same = next((names for names in _names(model) if steps[0] in names), ())
            steps[0] = name_used(raw, same) or steps[0]
        place = (*path, *steps)
        written = self._unquoted(place) if detail["type"] == "string_type" else None
        if written:
            self.no_text(written, place)
            return
        said = sentence(detail)
        if detail["type"] == "missing" and len(steps) == 1:
            meant = nearest(str(steps[0]), _strangers(model, raw))
            name = raw.get("id") if "id" in model.model_fields and len(path) == _DEPTH_OF_CASES else None
            said += f' in the case "{name[:MAX_KEY]}"' if isinstance(name, str) and name else ""
            said += f' (is it meant by "{meant}"?)' if meant else ""
        self.problem(said, place)

    def _keys(self, model: type[Wire], raw: Mapping[str, JsonValue], path: Path, ignored: Sequence[str]) -> None:
        """Keys that nobody reads, and keys that say the same twice."""
        fields = _names(model)
        for same in fields:
            first, *others = [name for name in same if name in raw] or [""]
            for other in others:
                self.problem(f"says the same as `{first}`: keep one of them", (*path, other))
        known = {name for same in fields for name in same}
        silent = {*ignored, *(HARMLESS if self.today else _HARMLESS.get(model, ()))}
        for key in (key for key in _strangers(model, raw) if key not in silent):
            if self.today:
                self.problem(_unknown_today(model, key, known), (*path, key[:MAX_KEY]))
                continue
            near = did_you_mean(key, known) if self._warned < FINDINGS else ""
            hint = _BELONG_ELSEWHERE.get(model, {}).get(key) or near
            self.warn(f"unknown key{hint}: it is not read", (*path, key[:MAX_KEY]), silent=True)


def _unknown_today(model: type[Wire], key: str, known: Iterable[str]) -> str:
    """A key that may well be AgentV's, and on which something may depend: it is never passed over."""
    said = refusal_of(key)
    if said is None and model is ExpectedCall and key in CALL_KEYS:
        said = f"`{key}` is not supported: {CALL_KEYS[key]}"
    if said is None and model is Check and key in CHECK_KEYS:
        said = f"`{key}` is not supported: a criterion is met or not"
    return said or f"unknown key{did_you_mean(key, known)}: nobody would read it"


def _strangers(model: type[Wire], raw: Mapping[str, JsonValue]) -> list[str]:
    """The keys that no field of the model has."""
    known = {name for same in _names(model) for name in same}
    return [key for key in raw if key not in known]


@cache
def _names(model: type[Wire]) -> tuple[tuple[str, ...], ...]:
    """The names that each field may have in a file, the spec's first."""
    return tuple(names_of(model, field) for field in model.model_fields)


def names_of(model: type[Wire], field: str) -> tuple[str, ...]:
    """The names that one field may have in a file, the spec's first."""
    alias = model.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(choice for choice in alias.choices if isinstance(choice, str))
    return (alias if isinstance(alias, str) else field,)
