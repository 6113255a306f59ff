"""Lists of targets: inline in the configuration, in a YAML file, or found beside the evals as AgentV does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import JsonValue, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from eval_gate.errors import GateError, Problem, did_you_mean
from eval_gate.files.reading import read_up_to
from eval_gate.model import limits
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.kinds import PROVIDERS, kind_of_provider
from eval_gate.targets.model.settings import LITERAL_KEY, ModelSettings, literal_keys
from eval_gate.targets.variables import Resolver, Unset
from eval_gate.text.redact import Redactor
from eval_gate.text.sources.shape import field_path, mistakes, sentence

if TYPE_CHECKING:
    from eval_gate.targets.kinds import Description

FILE_NAMES: Final = ("targets.yaml", "targets.yml", ".agentv/targets.yaml", ".agentv/targets.yml")
DEFAULT_NAME: Final = "default"
MAX_BYTES: Final = limits.TARGETS_BYTES
MAX_PROBLEMS: Final = 20
_KEYS: Final = frozenset({"apiKey"})
"""Settings that are never left out because their variable is not set."""

Locate = Callable[[Sequence[str | int]], int | None]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A target's description, resolved. `notices` say what was left out."""

    settings: Description
    redact: Redactor
    notices: tuple[str, ...] = ()
    entry: Mapping[str, JsonValue] = field(default_factory=dict)
    """The description as it was written, keys in camelCase."""
    file: str | None = None
    """The list that it stands in; None where it was given."""
    variables: tuple[str, ...] = ()
    """What was put in for its references."""


def find_targets(folder: Path, repository: Path, root: Path) -> Path | None:
    """The file that describes the targets of evals in `folder`, if there is one (agentv behaviour 4).

    The nearest one on the way up to the root of the repository, else the one of the working directory `root`.
    """
    upward = [folder, *folder.parents]
    inside = upward[: upward.index(repository) + 1] if repository in upward else [folder]
    for place in (*inside, root):
        for name in FILE_NAMES:
            if (place / name).is_file():
                return place / name
    return None


def read_targets(source: str | Sequence[dict[str, JsonValue]], root: Path) -> TargetList:
    """The targets of a file or folder below `root`, or of an inline list. Raises GateError naming file and line."""
    if not isinstance(source, str):
        return TargetList(_parsed(list(source), None, lambda _: None), None, lambda _: None)
    return parse_targets(*_read(source, root))


def parse_targets(shown: str, data: bytes) -> TargetList:
    """The targets of a file's content; `shown` is its name. Raises GateError naming file and line."""
    from eval_gate.text.sources.yaml import parse_yaml

    document, positions = parse_yaml(data, shown)
    prefix = ["targets"] if isinstance(document, dict) else []
    raw = _parsed(document, shown, positions.line)
    return TargetList(raw, shown, lambda path: positions.line([*prefix, *path]))


def _read(source: str, root: Path) -> tuple[str, bytes]:
    path = root / source
    if path.is_dir():
        held = next((name for name in FILE_NAMES if (path / name).is_file()), None)
        if held is None:
            raise GateError(
                "no-targets-file", f"there is no targets.yaml in the folder {source}", "name the file with --targets"
            )
        source, path = (Path(source) / held).as_posix(), path / held
    try:
        data = read_up_to(path, MAX_BYTES)
    except OSError as error:
        raise GateError(
            "no-targets-file", f"{source} cannot be read: {error.strerror}", "name an existing file with --targets"
        ) from error
    if len(data) > MAX_BYTES:
        raise GateError("no-targets-file", f"{source} is larger than {MAX_BYTES:,} bytes", "name a list of targets")
    return source, data


def _parsed(document: JsonValue, file: str | None, locate: Locate) -> tuple[dict[str, JsonValue], ...]:
    """The raw targets of a list, or of a mapping with a list `targets`; keys in camelCase, all on one level."""
    targets = document.get("targets") if isinstance(document, dict) else document
    if not isinstance(targets, list) or not all(isinstance(one, dict) for one in targets):
        raise _invalid([Problem("expected a list of targets (mappings)", file=file, line=locate(()))])
    return tuple(_flat(one) for one in targets if isinstance(one, dict))


def _flat(raw: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Older files have settings below `settings`. Of two spellings of one key snake_case wins (agentv behaviour 4)."""
    nested = raw.get("settings")
    flat = {**raw, **nested} if isinstance(nested, dict) else dict(raw)
    if isinstance(nested, dict):
        del flat["settings"]
    ordered = sorted(flat.items(), key=lambda item: "_" in item[0])
    return {to_camel(key) if "_" in key else key: value for key, value in ordered}


class TargetList:
    """Targets that were read but not yet checked: only the one that is used needs its variables."""

    def __init__(self, raw: tuple[dict[str, JsonValue], ...], file: str | None, locate: Locate) -> None:
        self._raw = raw
        self._file = file
        self._locate = locate
        self._names = [str(one.get("name", "")) for one in raw]
        twice = sorted(name for name, times in Counter(self._names).items() if times > 1)[:MAX_PROBLEMS]
        if twice:
            place = {name: index for index, name in enumerate(self._names)}
            last = [place[name] for name in twice]
            raise _invalid([self._problem("another target has this name", index, ["name"]) for index in last])

    @property
    def entries(self) -> tuple[Mapping[str, JsonValue], ...]:
        """Every description as it was written, keys in camelCase."""
        return self._raw

    def choose(self, name: str | None, environment: Mapping[str, str], *, keyless: bool = False) -> Chosen:
        """The named target, else `default`, else the only one, with its variables resolved. Raises GateError.

        `keyless`: nobody will be asked, so that a model's key need not be there.
        """
        index = self._index(name)
        described = self._kind(index)
        raw = self._raw[index]
        if keyless and described is ModelSettings:
            raw = {key: value for key, value in raw.items() if key != "apiKey"}
        resolver = Resolver(environment, partial=described in {HttpSettings, ModelSettings})
        resolved = resolver(raw)
        assert isinstance(resolved, dict)
        if isinstance(resolved.get("provider"), str):
            resolved["provider"] = str(resolved["provider"]).strip().lower()
        left_out = {unset.path[0]: unset for unset in resolver.unset if _optional(unset, described)}
        for key in left_out:
            del resolved[str(key)]
        problems = [
            self._problem(f"the variable {unset.variable} is not set", index, unset.path)
            for unset in resolver.unset
            if unset not in left_out.values()
        ]
        if described is ModelSettings:
            problems += [self._problem(LITERAL_KEY, index, [key]) for key in literal_keys(self._raw[index])]
        settings = None
        try:
            settings = described.model_validate(resolved)
        except ValidationError as error:
            problems += [
                self._shape_problem(detail, index, described, resolver.redactor)
                for detail in mistakes(error)
                if not any(unset.path == detail["loc"] for unset in resolver.unset)
            ]
        if settings is None or problems:
            raise _invalid(problems)
        notices = tuple(
            f"target {self._names[index]}: {unset.variable} is not set, so {key} is left out"
            for key, unset in left_out.items()
        )
        return Chosen(settings, resolver.redactor, notices, raw, self._file, tuple(resolver.used))

    def _index(self, name: str | None) -> int:
        if name is not None and name in self._names:
            return self._names.index(name)
        if name is None and len(self._names) == 1:
            return 0
        if name is None and DEFAULT_NAME in self._names:
            return self._names.index(DEFAULT_NAME)
        said = "several targets are described: say which" if name is None else f'there is no target "{name[:80]}"'
        where = f" in {self._file}" if name is not None and self._file else ""
        raise GateError(
            "unknown-target",
            f"{said}{where}{did_you_mean(name or '', self._names)}",
            f"--target with one of {', '.join(self._names) or 'none, the list is empty'}",
        )

    def _problem(self, message: str, index: int, path: Sequence[str | int]) -> Problem:
        place = ".".join(part for part in (f"targets[{self._names[index] or index}]", field_path(path)) if part)
        return Problem(message, file=self._file, line=self._line(index, path), field=place)

    def _line(self, index: int, path: Sequence[str | int]) -> int | None:
        """The line of a setting, however it is spelled and wherever it stands."""
        whole = self._locate([index])
        spellings = [path, [_snake(str(step)) if isinstance(step, str) else step for step in path]]
        for start in ([index], [index, "settings"]):
            for spelling in spellings:
                line = self._locate([*start, *spelling])
                if line != whole:
                    return line
        return whole

    def _kind(self, index: int) -> type[Description]:
        """What describes a target of this provider. Raises GateError for a provider there is not."""
        provider = str(self._raw[index].get("provider", "http")).strip().lower()
        kind = kind_of_provider(provider)
        if kind is None:
            said = f'the provider "{provider[:80]}" is not known{did_you_mean(provider, PROVIDERS)}'
            raise _invalid([self._problem(said, index, ["provider"])])
        return kind

    def _shape_problem(
        self, detail: ErrorDetails, index: int, described: type[Description], redact: Redactor
    ) -> Problem:
        path = detail["loc"]
        if detail["type"] == "extra_forbidden":
            known = [info.alias or key for key, info in described.model_fields.items()]
            return self._problem(f"unknown setting{did_you_mean(str(path[-1]), known)}", index, path)
        return self._problem(redact(sentence(detail)), index, path)


def _optional(unset: Unset, described: type[Description]) -> bool:
    """Whether the setting may be left out: then an unset variable is as if it were absent (agentv behaviour 4)."""
    if not unset.whole or len(unset.path) != 1 or unset.path[0] in _KEYS:
        return False
    fields = {info.alias or key: info for key, info in described.model_fields.items()}
    field = fields.get(str(unset.path[0]))
    return field is not None and not field.is_required() and field.default is None


def _snake(key: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in key)


def _invalid(problems: Sequence[Problem]) -> GateError:
    return GateError(
        "invalid-targets",
        "the target is not described well",
        "`eval-gate schema targets` says what is known",
        problems=problems,
    )
