"""Lists of targets: inline in the configuration, in a YAML file, or found next to the evals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from eval_gate.config.setting_sources import UNKNOWN_SOURCES, SettingSources
from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.files.reading import read_limited
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct, field
from eval_gate.targets.build_context import STAND_IN, MissingRequirements
from eval_gate.targets.kinds import DEFAULT_PROVIDER, KINDS, TargetKind, find_kind, list_providers, suggest_model
from eval_gate.targets.settings import (
    DUPLICATE_SETTING,
    NormalizedSettings,
    TargetSettings,
    apply_style,
    has_style,
    normalize_names,
    to_camel_case,
)
from eval_gate.targets.variables import (
    LITERAL_KEY_PROBLEM,
    UnsetVariable,
    VariableResolver,
    has_reference,
    is_literal,
    is_reference,
)
from eval_gate.text.quoting import describe_name, quote_name, quote_value
from eval_gate.text.redaction import Redactor
from eval_gate.text.secret import Secret
from eval_gate.text.sources.validation_errors import describe_error, format_field_path, list_errors
from eval_gate.text.sources.validation_errors import describe_value as kind_of_value

FILE_NAMES: Final = ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml")
DEFAULT_NAME: Final = "default"
MAX_BYTES: Final = limits.TARGETS_BYTES
MAX_PROBLEMS: Final = 20
_OTHER_TARGETS: Final = ("judgeTarget", "userTarget")
"""Settings of a target, in camelCase, that name another one."""
_CORRECT_SETTINGS: Final = "correct each place; `eval-gate schema targets` lists all settings"
_SET_VARIABLES: Final = "export each variable; in a workflow, set it below the step's `env:`, from a secret"

Locate = Callable[[Sequence[str | int]], int | None]


class ResolvedTarget(FrozenStruct):
    """Target with resolved settings. `notices` name the settings that were omitted."""

    settings: TargetSettings
    redact: Redactor
    notices: tuple[str, ...] = ()
    entry: Secret[Mapping[str, JsonValue]] = field(default_factory=lambda: Secret({}))
    """Description as written, with keys in camelCase."""
    file: str | None = None
    """Targets file of the description; None if it was given in another way."""
    variables: tuple[str, ...] = ()
    """Values inserted for its references."""
    problem: Callable[[str, str], Problem] | None = None
    """Function that locates a problem with one of its settings, by our name in camelCase; an empty name is the target
    as a whole. None if the location is unknown."""
    unset_settings: frozenset[str] = frozenset()
    """Settings, by our names, that count as absent because their variables are not set."""
    is_complete: bool = True
    """Whether all its values are known. False if a variable is missing and was only noted."""
    remarks: tuple[str, ...] = ()
    """Likely mistakes of its author."""

    def locate_problems(self, error: GateError) -> tuple[Problem, ...]:
        """Locate the settings that an error is about, else the whole target, if that says more than the error."""
        if self.problem is None:
            return tuple(one for one in error.problems if one.file is not None)
        about = error.problems or (Problem(error.message),)
        placed = [one if one.file is not None else self.problem(one.message, one.field or "") for one in about]
        return tuple(one for one in placed if one.file is not None or one.message != error.message)

    @property
    def kind(self) -> TargetKind:
        """The kind of target that it describes."""
        kind = find_kind(self.settings.provider)
        assert kind is not None  # its settings have been read
        return kind


def find_targets_file(folder: Path, repository: Path, root: Path) -> Path | None:
    """Find the nearest targets file up to the root of the repository, or else that in `root` (agentv behaviour 4)."""
    upward = [folder, *folder.parents]
    inside = upward[: upward.index(repository) + 1] if repository in upward else [folder]
    for place in (*inside, root):
        for name in FILE_NAMES:
            if (place / name).is_file():
                return place / name
    return None


def read_targets(
    source: str | Sequence[dict[str, JsonValue]], root: Path, sources: SettingSources = UNKNOWN_SOURCES
) -> TargetList:
    """Read the targets of a file or folder below `root`, or of an inline list. Raises GateError with file and line."""
    if not isinstance(source, str):
        inline = sources.get_source("targets")
        return TargetList(tuple(source), None, inline.find_line, inline.file)
    with sources.attribute_errors("targets"):
        return read_targets_file(*_locate_file(source, root))


def read_targets_file(path: Path, file_name: str) -> TargetList:
    """Read a targets file, called `file_name` in messages. Raises GateError with file and line."""
    try:
        data = read_limited(path, MAX_BYTES)
    except OSError as error:
        what = f"{file_name} cannot be read: {error.strerror}"
        raise GateError("targets-file-unreadable", what, "name an existing file with --targets") from error
    if len(data) > MAX_BYTES:
        what = f"{file_name} is larger than {MAX_BYTES:,} bytes"
        raise GateError("targets-file-unreadable", what, "name a list of targets")
    return parse_targets(file_name, data)


def parse_targets(file_name: str, data: bytes) -> TargetList:
    """Parse the content of a targets file, called `file_name` in messages. Raises GateError with file and line."""
    from eval_gate.text.sources.yaml import parse_yaml

    document, positions = parse_yaml(data, file_name)
    prefix, targets = (["targets"], document.get("targets")) if isinstance(document, dict) else ([], document)
    if not isinstance(targets, list) or not all(isinstance(one, dict) for one in targets):
        what = "expected a list of targets (mappings)"
        raise _build_list_error([Problem(what, file=file_name, line=positions.find_line(()))])
    raw = tuple(one for one in targets if isinstance(one, dict))
    return TargetList(raw, file_name, lambda path: positions.find_line([*prefix, *path]))


def _locate_file(source: str, root: Path) -> tuple[Path, str]:
    """Locate the targets file that a path to a file or folder means, and its name in messages."""
    path = root / source
    if path.is_dir():
        held = next((name for name in FILE_NAMES if (path / name).is_file()), None)
        if held is None:
            raise GateError(
                "targets-file-unreadable",
                f"no targets.yaml in the folder {describe_name(source)}",
                "name the file with --targets",
            )
        return path / held, (Path(source) / held).as_posix()
    return path, describe_name(source)


class TargetList:
    """Targets of one list, not yet validated: only the selected one needs its variables."""

    def __init__(
        self, raw: tuple[dict[str, JsonValue], ...], file: str | None, locate: Locate, inside: str | None = None
    ) -> None:
        """`inside` is the configuration that holds an inline list."""
        self._raw = raw
        self.file = file
        """The file of the list; None for an inline list."""
        self._label = file or inside
        self._locate = locate
        self._spelled = tuple(map(normalize_names, raw))
        self.entries = tuple(one.values for one in self._spelled)
        """Every description as it was written, with keys in camelCase."""
        self.names = tuple(str(one.get("name", "")) for one in self.entries)
        """Names of its targets, in order."""
        twice = sorted(name for name, times in Counter(self.names).items() if times > 1)[:MAX_PROBLEMS]
        if twice:
            place = {name: index for index, name in enumerate(self.names)}
            last = [place[name] for name in twice]
            raise _build_list_error(
                [self._build_problem("another target has this name", index, ["name"]) for index in last]
            )

    def resolve_target(
        self,
        name: str | None,
        environment: Mapping[str, str],
        *,
        keyless: bool = False,
        lacking: MissingRequirements | None = None,
    ) -> ResolvedTarget:
        """Resolve the variables of a target: the named one, or else `default`, or else the only one.

        With `keyless`, no request will be sent, so the key of a model may be missing. With `lacking`, any variable may
        be missing, and the unset ones are noted there. Raises GateError.
        """
        index = self._get_index(name)
        kind, provider = self._get_kind(index)
        described = kind.settings
        entry = normalize_names(self._raw[index], described.other_names)
        values = {key: value for key, value in entry.values.items() if not keyless or key not in described.keys}
        stand_in = "" if lacking is None else STAND_IN
        resolver = VariableResolver(environment, partial=described.refers_within_texts, stand_in=stand_in)
        resolved = {key: resolver(value, (key,)) for key, value in values.items()} | {"provider": provider}
        left_out = {unset.path[0]: unset for unset in resolver.unset if _is_optional(unset, described)}
        values = {key: value for key, value in values.items() if key not in left_out}
        resolved = {key: value for key, value in resolved.items() if key not in left_out}
        problems = [
            self._build_problem(f"{key} {DUPLICATE_SETTING}", index, path) for key, path in entry.duplicates.items()
        ]
        needed = [unset for unset in resolver.unset if unset not in left_out.values()]
        if lacking is None:
            problems += [self._build_unset_problem(unset, index, entry) for unset in needed]
        else:
            for unset in resolver.unset:
                lacking.add_problem(self._build_unset_problem(unset, index, entry))
        problems += [
            self._build_problem(LITERAL_KEY_PROBLEM, index, entry.written_keys[key])
            for key in sorted(described.keys)
            if is_literal(entry.values.get(key))
        ]
        settings = None
        try:
            settings = described.model_validate(resolved)
        except ValidationError as error:
            blind = resolver.build_blind_resolver()
            unseen = {key: blind(value, (key,)) for key, value in values.items()} | {"provider": provider}
            words = _collect_validator_messages(described, unseen) if resolver.used else None
            problems += [
                self._build_validation_problem(_hide_value_words(detail, words), index, kind, entry, resolver.redactor)
                for detail in list_errors(error)
                if not any(_is_same_path(unset, detail["loc"]) for unset in resolver.unset)
            ]
        if problems or (settings is None and lacking is None):
            only_unset = lacking is None and len(needed) == len(problems)
            raise _build_list_error(problems, _SET_VARIABLES if only_unset else _CORRECT_SETTINGS)
        redact = resolver.redactor
        redact.include(self.build_redactor(environment))  # what is asked may know the secrets of the others
        whole = settings is not None and all(len(unset.path) > 1 or unset.path[0] in described.keys for unset in needed)
        if settings is None:
            known_values: dict[str, Any] = {"name": self.names[index], "provider": provider}
            known_values |= {key: value for key in _OTHER_TARGETS if isinstance(value := resolved.get(key), str)}
            settings = described.model_construct(**known_values)
        notices = tuple(
            f"target {self.names[index]}: {unset.variable} is not set, so {entry.written_keys[str(key)][-1]} is "
            "left out"
            for key, unset in left_out.items()
        )
        remarks = settings.remarks if whole else ()
        settings.set_references({key: one for key, one in entry.values.items() if has_reference(one)}, listed=True)
        paths = entry.written_keys.items()
        settings.set_places({key: str(self._build_problem("", index, path)) for key, path in paths})
        return ResolvedTarget(
            settings,
            redact,
            notices,
            entry=Secret(self.entries[index]),
            file=self.file,
            variables=tuple(resolver.used),
            problem=lambda message, key: self._build_problem(
                message, index, self._restore_written_path((key,) if key else (), entry)
            ),
            unset_settings=frozenset(map(str, left_out)),
            remarks=tuple(f"target {self.names[index]}: {remark}" for remark in remarks),
            is_complete=whole or lacking is None,
        )

    def build_redactor(self, environment: Mapping[str, str]) -> Redactor:
        """Build the masking of the values of all references, by the same rule for every target of the list."""
        resolver = VariableResolver(environment, partial=True)
        for entry in self.entries:
            kind = find_kind(str(entry.get("provider", DEFAULT_PROVIDER)).strip())
            values = normalize_names(entry, kind.settings.other_names).values if kind else entry
            for key, value in values.items():
                resolver(value, (key,))
        return resolver.redactor

    def _get_index(self, name: str | None) -> int:
        if name is not None and name in self.names:
            return self.names.index(name)
        if name is None and len(self.names) == 1:
            return 0
        if name is None and DEFAULT_NAME in self.names:
            return self.names.index(DEFAULT_NAME)
        if name is None:
            entries = [normalize_names(entry).values for entry in self.entries]
            named_targets = [[entry.get(key) for key in _OTHER_TARGETS] for entry in entries]
            # a target that is the judge or simulated user of another one is not meant
            meant = [
                index
                for index, own in enumerate(self.names)
                if all(own not in names or index == other for other, names in enumerate(named_targets))
            ]
            if len(meant) == 1:
                return meant[0]
        message = "several targets are described: choose one" if name is None else f"unknown target {quote_name(name)}"
        where = f" in {self.file}" if name is not None and self.file else ""
        raise GateError(
            "unknown-target",
            f"{message}{where}{format_suggestion(name or '', self.names) or suggest_model(name or '')}",
            f"use --target with one of {', '.join(self.names) or 'none, the list is empty'}",
        )

    def _get_kind(self, index: int) -> tuple[TargetKind, str]:
        word = str(self.entries[index].get("provider", DEFAULT_PROVIDER)).strip()
        kind = find_kind(word)
        if kind is None:
            message = f"the provider {quote_value(word)} is not known{format_suggestion(word, list_providers())}"
            raise _build_list_error([self._build_problem(message, index, ["provider"])])
        return kind, kind.other_names.get(word.lower(), word.lower())

    def _build_unset_problem(self, unset: UnsetVariable, index: int, entry: NormalizedSettings) -> Problem:
        return self._build_problem(
            f"the variable {unset.variable} is not set", index, self._restore_written_path(unset.path, entry)
        )

    def _build_problem(self, message: str, index: int, path: Sequence[str | int]) -> Problem:
        """Build a problem at a path as the author wrote it, without the mention of `settings` above it."""
        steps = path[1:] if path[:1] == ("settings",) and len(path) > 1 else path
        place = ".".join(part for part in (f"targets[{self.names[index] or index}]", format_field_path(steps)) if part)
        return Problem(message, file=self._label, line=self._locate([index, *path]), field=place)

    def _build_validation_problem(
        self,
        detail: ErrorDetails,
        index: int,
        kind: TargetKind,
        entry: NormalizedSettings,
        redact: Redactor,
    ) -> Problem:
        path = self._restore_written_path(detail["loc"], entry)
        if detail["type"] != "extra_forbidden":
            return self._build_problem(
                redact(describe_error(detail, _describe_reference(entry.values, detail["loc"]))), index, path
            )
        word, parent_path = str(path[-1]), detail["loc"][:-1]
        kind_names = [one.display_name for one in KINDS if to_camel_case(word) in one.list_names_at(parent_path)]
        if kind_names:
            listing = " and ".join(filter(None, (", ".join(kind_names[:-1]), kind_names[-1])))
            what = f"is a setting of {listing} targets; this one is of the kind {kind.display_name}"
            return self._build_problem(what, index, path)
        example = word if has_style(word) else self._style_example
        styled = [apply_style(name, example) for name in kind.list_names_at(parent_path)]
        return self._build_problem(f"unknown setting{format_suggestion(word, styled)}", index, path)

    def _restore_written_path(self, path: tuple[str | int, ...], entry: NormalizedSettings) -> tuple[str | int, ...]:
        """Convert a path to the author's spelling; a setting that is not written gets the style of the list."""
        if not path:
            return ()
        name = to_camel_case(str(path[0]))  # what is missing may be named as in Python
        return (*entry.written_keys.get(name, (apply_style(name, self._style_example),)), *path[1:])

    @cached_property
    def _style_example(self) -> str:
        """The first key of the list that shows whether its author writes snake_case or camelCase; empty for none."""
        return next((key for one in self._spelled for (*_, key) in one.written_keys.values() if has_style(key)), "")


def _is_optional(unset: UnsetVariable, described: type[TargetSettings]) -> bool:
    """Whether the setting may be left out: then an unset variable is as if it were absent (agentv behaviour 4)."""
    if not unset.is_whole_value or len(unset.path) != 1 or unset.path[0] in described.keys:
        return False
    fields = {info.alias or key: info for key, info in described.model_fields.items()}
    field = fields.get(str(unset.path[0]))
    return field is not None and not field.is_required() and field.default is None


def _is_same_path(unset: UnsetVariable, path: Sequence[str | int]) -> bool:
    """Whether this is the place that the variable was for, in whichever spelling."""
    return [*map(_to_camel_step, unset.path)] == [*map(_to_camel_step, path)]


def _to_camel_step(step: str | int) -> str | int:
    return to_camel_case(step) if isinstance(step, str) else step


def _describe_reference(entry: JsonValue, path: Sequence[str | int]) -> str | None:
    """Describe a reference for people: a validator may have changed the value, so masking no longer finds it."""
    for step in path:
        if isinstance(entry, list) and isinstance(step, int) and step < len(entry):
            entry = entry[step]
        elif isinstance(entry, dict):
            keys = [key for key in entry if _to_camel_step(key) == _to_camel_step(step)]
            # validation added depth to the value: its place is the part that contains it
            if not keys:
                break
            entry = entry[keys[0]]
    if not has_reference(entry):
        return None
    return f"the value of {str(entry).strip()[:80]}" if is_reference(entry) else kind_of_value(entry)


def _collect_validator_messages(described: type[TargetSettings], values: Mapping[str, JsonValue]) -> frozenset[str]:
    """Collect the messages of custom validators for these values."""
    try:
        described.model_validate(values)
    except ValidationError as error:
        return frozenset(describe_error(detail) for detail in list_errors(error) if detail["type"] == "value_error")
    return frozenset()


def _hide_value_words(detail: ErrorDetails, words: frozenset[str] | None) -> ErrorDetails:
    """Remove a message that may contain parts of a variable's value; one that is the same without it stays."""
    if words is None or detail["type"] != "value_error" or describe_error(detail) in words:
        return detail
    return ErrorDetails(**{**detail, "type": "value"})


def _build_list_error(problems: Sequence[Problem], hint: str = _CORRECT_SETTINGS) -> GateError:
    return GateError("invalid-targets", "the description of the target is not valid", hint, problems=problems)
