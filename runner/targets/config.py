"""Targets as people describe them: inline in the configuration or in a YAML file, with `${{ VAR }}` for secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from runner.errors import GateError, Problem, did_you_mean
from runner.targets.mock import MockSettings
from runner.targets.model_settings import LITERAL_KEY, PROVIDER_NAMES, ModelSettings, is_model_provider, literal_keys
from runner.targets.retry import RetryPolicy
from runner.text.redact import Redactor
from runner.text.shape import field_path, sentence

Text = Annotated[str, Field(min_length=1)]
_VARIABLE: Final = re.compile(r"\$\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


class Provider(StrEnum):
    """What can answer a message."""

    HTTP = "http"


class PresetName(StrEnum):
    """Known ways an agent speaks HTTP."""

    EVAL_GATE = "eval-gate"
    TOOL_FORGE_SIDECAR = "tool-forge-sidecar"
    OPENAI_CHAT = "openai-chat"


class _Settings(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )


class HealthCheck(_Settings):
    """Asked once before the run: any 2xx is healthy."""

    type: Annotated[str, Field(pattern="^http$")] = "http"
    url: Text
    timeout_seconds: float = Field(10, gt=0, le=600)


class TargetSettings(_Settings):
    """One target. Every key may also be written in snake_case."""

    name: Text
    provider: Provider = Provider.HTTP
    url: Text
    preset: PresetName = PresetName.EVAL_GATE
    headers: dict[str, str] = Field(default_factory=dict)
    request_template: JsonValue = Field(
        None, description="The body; {{message}}, {{conversation}} and {{caseId}} are replaced in its texts."
    )
    response_path: Text | None = Field(None, description="Where the answer's text is, such as data.reply or a[0].b.")
    tool_calls_path: Text | None = Field(None, description="Where the list of tool calls is.")
    healthcheck: HealthCheck | Text | None = None
    workers: int | None = Field(None, ge=1, le=1000)
    max_retries: int | None = Field(None, ge=0, le=20)
    initial_delay_ms: float | None = Field(None, ge=0)
    max_delay_ms: float | None = Field(None, ge=0)
    backoff_factor: float | None = Field(None, ge=1)
    retryable_status_codes: frozenset[int] | None = None
    max_response_bytes: int = Field(10_000_000, gt=0, le=1_000_000_000)

    def retry_policy(self, max_retries: int | None) -> RetryPolicy:
        """The target's policy; `max_retries` from the command line wins."""
        own = self.model_dump(include=set(RetryPolicy.model_fields), exclude_none=True)
        return RetryPolicy(**own | ({} if max_retries is None else {"max_retries": max_retries}))


Description = TargetSettings | MockSettings | ModelSettings
"""What a target may be described as."""
_LATER: Final = frozenset({"cli", "codex", "codex-cli", "vscode", "vscode-insiders"})
"""Providers that the AgentV specification knows and this version does not run."""


def kind_of_provider(provider: str) -> type[Description] | None:
    """What describes a target of this provider; None for a provider there is not."""
    kinds: dict[str, type[Description]] = {"http": TargetSettings, "mock": MockSettings}
    return kinds.get(provider) or (ModelSettings if is_model_provider(provider) else None)


def json_schema() -> dict[str, JsonValue]:
    """The JSON Schema of a targets file."""
    schema = TypeAdapter(Description).json_schema()
    definitions = schema.pop("$defs", {})
    return {
        "title": "Eval Gate targets",
        "type": "object",
        "required": ["targets"],
        "properties": {"targets": {"type": "array", "items": schema}},
        "$defs": definitions,
    }


class Resolver:
    """Replaces `${{ VAR }}` by the environment's values, remembers them as secrets, and notes what is not set."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._secrets: set[str] = set()
        self.unset: list[str] = []

    @property
    def redactor(self) -> Redactor:
        """Masks every value that came from the environment."""
        return Redactor(self._secrets)

    def __call__(self, value: JsonValue) -> JsonValue:
        """The value with every reference in its texts replaced, at any depth."""
        match value:
            case str():
                return _VARIABLE.sub(self._one, value)
            case list():
                return [self(member) for member in value]
            case dict():
                return {key: self(member) for key, member in value.items()}
            case _:
                return value

    def _one(self, match: re.Match[str]) -> str:
        found = self._environment.get(match[1], "")
        if not found:
            self.unset.append(match[1])
        self._secrets.add(found)
        return found


Locate = Callable[[Sequence[str | int]], int | None]


def parse_targets(document: JsonValue, file: str | None, locate: Locate) -> tuple[dict[str, JsonValue], ...]:
    """The raw targets of a list, or of a mapping with a list `targets`; keys in camelCase."""
    targets = document.get("targets") if isinstance(document, dict) else document
    if not isinstance(targets, list) or not all(isinstance(one, dict) for one in targets):
        raise _invalid([Problem("expected a list of targets (mappings)", file=file, line=locate(()))])
    return tuple({_camel(key): value for key, value in one.items()} for one in targets if isinstance(one, dict))


def read_targets(source: str | Sequence[dict[str, JsonValue]], root: Path) -> TargetList:
    """The targets of a file below `root`, or of an inline list. Raises GateError naming file and line."""
    if not isinstance(source, str):
        return TargetList(parse_targets(list(source), None, lambda _: None), None, lambda _: None)
    from runner.text.yaml_source import parse_yaml

    try:
        data = (root / source).read_bytes()
    except OSError as error:
        raise GateError(
            "no-targets-file", f"{source} cannot be read: {error.strerror}", "name an existing file with --targets"
        ) from error
    document, positions = parse_yaml(data, source)
    prefix = ["targets"] if isinstance(document, dict) else []
    raw = parse_targets(document, source, positions.line)
    return TargetList(raw, source, lambda path: positions.line([*prefix, *path]))


class TargetList:
    """Targets that were read but not yet checked: only the one that is used needs its variables."""

    def __init__(self, raw: tuple[dict[str, JsonValue], ...], file: str | None, locate: Locate) -> None:
        self._raw = raw
        self._file = file
        self._locate = locate

    def choose(
        self, name: str | None, environment: Mapping[str, str], *, keyless: bool = False
    ) -> tuple[Description, Redactor]:
        """The named target, or the only one there is, with variables resolved. Raises GateError.

        `keyless`: nobody will be asked, so that a model's key need not be there.
        """
        index = self._index(name)
        described = self._kind(index)
        resolver = Resolver(environment)
        raw = self._raw[index]
        if keyless and described is ModelSettings:
            raw = {key: value for key, value in raw.items() if key != "apiKey"}
        resolved = resolver(raw)
        assert isinstance(resolved, dict)
        problems = [
            self._problem(f"the variable {variable} is not set", index, ())
            for variable in dict.fromkeys(resolver.unset)
        ]
        if described is ModelSettings:
            problems += [self._problem(LITERAL_KEY, index, [key]) for key in literal_keys(self._raw[index])]
        settings = None
        try:
            settings = described.model_validate(resolved)
        except ValidationError as error:
            problems += [self._shape_problem(detail, index, described, resolver.redactor) for detail in error.errors()]
        if settings is None or problems:
            raise _invalid(problems)
        return settings, resolver.redactor

    def _index(self, name: str | None) -> int:
        names = [str(one.get("name", "")) for one in self._raw]
        if name is not None and name in names:
            return names.index(name)
        if name is None and len(names) == 1:
            return 0
        said = "several targets are described: say which" if name is None else f'there is no target "{name}"'
        raise GateError(
            "unknown-target",
            f"{said}{did_you_mean(name or '', names)}",
            f"--target with one of {', '.join(names) or 'none, the list is empty'}",
        )

    def _problem(self, message: str, index: int, path: Sequence[str | int]) -> Problem:
        name = str(self._raw[index].get("name", index))
        place = ".".join(part for part in (f"targets[{name}]", field_path(path)) if part)
        return Problem(message, file=self._file, line=self._locate([index, *path]), field=place)

    def _kind(self, index: int) -> type[Description]:
        """What describes a target of this provider. Raises GateError for a provider there is not."""
        provider = str(self._raw[index].get("provider", "http")).strip().lower()
        kind = kind_of_provider(provider)
        if kind is None:
            known = ("http", "mock", *PROVIDER_NAMES)
            hint = "is not supported yet" if provider in _LATER else f"is not known{did_you_mean(provider, known)}"
            raise _invalid([self._problem(f'the provider "{provider[:80]}" {hint}', index, ["provider"])])
        return kind

    def _shape_problem(
        self, detail: ErrorDetails, index: int, described: type[Description], redact: Redactor
    ) -> Problem:
        path = detail["loc"]
        if detail["type"] == "extra_forbidden":
            known = [info.alias or key for key, info in described.model_fields.items()]
            return self._problem(f"unknown setting{did_you_mean(str(path[-1]), known)}", index, path)
        return self._problem(redact(sentence(detail)), index, path)


def _camel(key: str) -> str:
    return to_camel(key) if "_" in key else key


def _invalid(problems: Sequence[Problem]) -> GateError:
    return GateError(
        "invalid-targets",
        "the target is not described well",
        "`eval-gate schema targets` says what is known",
        problems=problems,
    )
