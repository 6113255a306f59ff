"""What a target or judge was set up with, for its results: every setting that can change one, without secrets.

A new setting is in it by default. `NoEffect` on its field leaves it out and says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

from msgspec import structs
from pydantic import BaseModel, JsonValue
from pydantic_core import to_jsonable_python

from eval_gate.errors import GateError
from eval_gate.model.agent import SuiteAgent
from eval_gate.model.setup import SettingRole, SettingValue, TargetIdentity
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.base import Prompting
from eval_gate.targets.program_files import ProgramFiles
from eval_gate.targets.settings import NamesInAnyCase, ProgramSettings, TargetSettings, effect_of, role_of
from eval_gate.text.digest import DIGITS, digest, fingerprint_of, sorted_json
from eval_gate.text.quoting import looks_like_key
from eval_gate.text.secret import Secret, SecretAddress
from eval_gate.text.urls import public_url

MAX_SHOWN: Final = 100
"""Characters of a value that a record shows. A longer one is its beginning and a digest."""
_MARK: Final = 8
Mask: TypeAlias = Callable[[str], str]
"""Hides secrets in a text."""
_CREDENTIAL: Final = re.compile(r"auth|cookie|credential|key|pass|secret|session|token", re.IGNORECASE)
"""Names of headers, variables and the like whose values nobody may see, even where somebody wrote them into a file."""


class TargetSetup(FrozenStruct):
    """The settings that a record shows, and the 16 hexadecimal digits that stand for them all."""

    settings: tuple[SettingValue, ...] = ()
    fingerprint: str | None = None
    file: str | None = None
    """The list that describes it; None where it was given in another way."""
    program: str | None = None
    """16 hexadecimal digits for the files of the repository that the agent's command names; None for none. They are
    what is being tested, and no part of the fingerprint."""

    def described_in(self, file: str | None) -> TargetSetup:
        """The same of a target that this list describes."""
        return replace(self, file=file)

    def of(self, identity: TargetIdentity) -> TargetIdentity:
        """The identity, with this as its set-up."""
        return replace(identity, setup=self.settings, fingerprint=self.fingerprint, file=self.file)


NO_SETUP: Final = TargetSetup()
"""Of a target that nobody described."""


class _Setting(NamedTuple):
    """One setting: its whole value, what of it is shown, and what it is about."""

    name: str
    value: JsonValue
    shown: str | None
    default: str | None = None
    role: SettingRole | None = None


def setup_of(
    settings: TargetSettings,
    environment: Mapping[str, str],
    mask: Mask,
    prompting: Prompting | None = None,
    files: ProgramFiles | None = None,
) -> TargetSetup:
    """The set-up of a target by its resolved settings. `environment` holds what its provider takes from there.

    `mask` hides secrets in what a record shows. `files` reads the files of the program that is asked.
    """
    parts = list(_described(settings, environment, mask))
    named = _named_files(settings, parts, files) if files else []
    found = _put_together(settings.provider, [*parts, *(_prompted(prompting) if prompting else ())])
    return replace(found, program=setup_fingerprint([list(one) for one in named]) if named else None)


def grading_setup_of(
    settings: TargetSettings, environment: Mapping[str, str], mask: Mask, files: ProgramFiles
) -> TargetSetup:
    """The same of a target that grades: with the content of the files that its settings name."""
    parts = list(_described(settings, environment, mask))
    named = _named_files(settings, parts, files)
    if named:
        content: JsonValue = [list(one) for one in named]
        names = ", ".join(name for name, _ in named)
        parts.append(_Setting("files", content, f"{names[: MAX_SHOWN - _MARK]} #{digest(content)[:_MARK]}"))
    return _put_together(settings.provider, parts)


@lru_cache(maxsize=1_000)
def setup_of_agent(agent: SuiteAgent) -> TargetSetup:
    """The set-up of the agent that a suite brings along, without its name; the model that answers is its target's."""
    parts = []
    for field in structs.fields(SuiteAgent):
        name = field.name
        if name in {"name", "model"}:
            continue
        value: JsonValue = to_jsonable_python(getattr(agent, name))
        usual = None if field.required else shown_value(to_jsonable_python(field.default))
        shown = f"#{digest(value)[:_MARK]}" if name == "instructions" else shown_value(value)
        parts.append(_Setting(field.encode_name, value, shown, usual, SettingRole.AGENT))
    return _put_together("suite", parts)


def _named_files(settings: TargetSettings, parts: Iterable[_Setting], files: ProgramFiles) -> list[tuple[str, str]]:
    """The files that the settings of a program name, with a digest of the content of each, by name."""
    if not isinstance(settings, ProgramSettings):
        return []
    folder = files.root / str(getattr(settings, "cwd", None) or ".")
    texts = (text for part in parts for text in _texts(part.value))
    return sorted({file: content for text in texts for file, content in files.named_by(text, folder)}.items())


def _put_together(provider: str, parts: Sequence[_Setting]) -> TargetSetup:
    shown = tuple(
        SettingValue(name=part.name, value=part.shown, default=part.default, role=part.role)
        for part in parts
        if part.shown is not None
    )
    values = sorted(f"{part.name}={sorted_json(part.value)}" for part in parts)
    return TargetSetup(shown, setup_fingerprint([provider, *values]))


def _described(settings: TargetSettings, environment: Mapping[str, str], mask: Mask) -> Iterator[_Setting]:
    """The settings that have another value than their default, with the names of variables in place of values."""
    kind = type(settings)
    taken = settings.taken_from(environment)
    values = {**_opened_settings(settings), **taken}
    values |= {key: written for key in kind.keys if (written := settings.written(key)) is not None}
    asked = _asked_in_address(settings, values.get("url"))
    if asked:  # how it is asked, like `query`, and no part of where it is
        query = settings.written("query") or values.get("query")
        values["query"] = _both(asked, query if isinstance(query, dict) else {})
    for name, field in kind.model_fields.items():
        key = field.alias or name
        if key == "provider" or key not in values or effect_of(field) is not None:  # who provides it is always said
            continue
        written, value, role = settings.written(key), values[key], role_of(field)
        if key == "query" and asked:
            written = None
        elif key == "url" and asked:
            value, written = (one.partition("?")[0] if isinstance(one, str) else one for one in (value, written))
        is_address = key in taken or role is SettingRole.PLACE or isinstance(getattr(settings, name), SecretAddress)
        if is_address and isinstance(value, str):
            value = _address(value, written, listed=settings.is_listed)
        elif written is not None:
            value = written
        if isinstance(value, dict) and any(isinstance(mark, NamesInAnyCase) for mark in field.metadata):
            value = {name.lower(): one for name, one in value.items()}
        value = _without_credentials(value)
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        usual = shown_value(_opened(default))
        shown = shown_or_empty(with_texts(value, lambda text: without_keys(mask(text))))
        yield _Setting(key, value, shown, usual, role)


def _asked_in_address(settings: TargetSettings, url: JsonValue) -> Mapping[str, JsonValue]:
    """The query of the address of a listed target that takes a `query` too: a digest for each value, by its name.

    Empty where there is none, and for an address that was given in another way: what is in that one may be a secret
    that is another one each time.
    """
    if "query" not in type(settings).model_fields or not settings.is_listed:
        return {}
    written = settings.written("url") or url
    if not isinstance(written, str) or "?" not in written:
        return {}
    asked: dict[str, JsonValue] = {}
    for name, value in parse_qsl(written.partition("?")[2].partition("#")[0], keep_blank_values=True):
        asked = _both(asked, {name: f"#{digest(value)[:_MARK]}"})
    return asked


def _both(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """What is asked by either, with both values of a name that both have."""
    return {**one, **{name: [one[name], value] if name in one else value for name, value in other.items()}}


def _opened_settings(settings: BaseModel) -> dict[str, JsonValue]:
    """The settings that have another value than their default, as JSON by their names in camelCase, secrets opened.

    What came from a variable is put back by its name before anything is shown or hashed.
    """
    return {
        field.alias or name: _opened(value)
        for name, field in type(settings).model_fields.items()
        for value in (getattr(settings, name),)
        if field.is_required() or value != field.get_default(call_default_factory=True)
    }


def _opened(value: object) -> JsonValue:
    """The value as JSON, with the values of secrets."""
    match value:
        case Secret():
            return _opened(value.open())
        case BaseModel():
            return _opened_settings(value)
        case dict():
            return {str(name): _opened(one) for name, one in value.items()}
        case list() | tuple():
            return [_opened(one) for one in value]
        case _:
            plain: JsonValue = to_jsonable_python(value)
            return plain


def _prompted(prompting: Prompting) -> Iterator[_Setting]:
    if prompting.system_prompt is not None:
        shown = f"#{digest(prompting.system_prompt)[:_MARK]}"
        yield _Setting("systemPrompt", prompting.system_prompt, shown, role=SettingRole.AGENT)
    if prompting.tools:
        tools = [*prompting.tools]
        shown = f"{len(tools)} tools #{digest(tools)[:_MARK]}"
        yield _Setting("tools", tools, shown, role=SettingRole.AGENT)


def _address(value: str, written: JsonValue, *, listed: bool) -> str:
    """An address or command without what may be secret in it.

    Of one that a variable holds, the variable's name and a digest of its public part: an agent that moved is known.
    What stands in a list for everybody to read is told apart by a digest where it is not shown.
    """
    try:
        public = public_url(value)
    except GateError:  # a command, or the name of a resource
        public = value
    if isinstance(written, str):
        return f"{written} #{digest(public)[:_MARK]}"
    return f"{public} #{digest(value)[:_MARK]}" if listed and public != value else public


def _without_credentials(value: JsonValue) -> JsonValue:
    """The value with a digest for what its name says to be a credential."""
    if isinstance(value, list):
        return [_without_credentials(one) for one in value]
    if isinstance(value, dict):
        return {
            name: f"#{digest(one)[:_MARK]}"
            if isinstance(one, str) and _CREDENTIAL.search(name) and "${{" not in one
            else _without_credentials(one)
            for name, one in value.items()
        }
    return value


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            yield from (text for one in value for text in _texts(one))
        case dict():
            yield from (text for one in value.values() for text in _texts(one))


def with_texts(value: JsonValue, change: Callable[[str], str]) -> JsonValue:
    """The value with every text in it changed; names of members stay."""
    match value:
        case str():
            return change(value)
        case list():
            return [with_texts(one, change) for one in value]
        case dict():
            return {name: with_texts(one, change) for name, one in value.items()}
        case _:
            return value


def without_keys(text: str) -> str:
    """The text; one with a part that looks like a key is told apart by a digest."""
    return f"a text of {len(text):,} characters #{digest(text)[:_MARK]}" if looks_like_key(text) else text


def shown_value(value: JsonValue) -> str | None:
    """A value in one line: texts as they are, a list of texts with commas, all else as JSON; None for nothing."""
    if value is None or value in ([], {}):
        return None
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        text = ", ".join(map(str, value))
    else:
        text = value if isinstance(value, str) else sorted_json(value)
    if len(text) <= MAX_SHOWN and text.isprintable():
        return text
    return f"{' '.join(text[:MAX_SHOWN].split())[: MAX_SHOWN - _MARK]}… #{digest(value)[:_MARK]}"


def shown_or_empty(value: JsonValue) -> str:
    """The same of a value that is not its setting's default: also where it is empty."""
    return shown_value(value) or sorted_json(value)


def setup_fingerprint(parts: Sequence[JsonValue]) -> str:
    """16 hexadecimal digits that stand for all of these values together."""
    return fingerprint_of(sorted_json([*parts]))[:DIGITS]
