"""Setup of a target or judge: every setting that can change a result, without secrets.

A new setting is included by default. `NoEffect` on its field excludes it and states the reason.
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
from eval_gate.process.environment import find_secrets
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.base import PromptSetup
from eval_gate.targets.settings import CaseInsensitiveNames, ProgramSettings, TargetSettings, find_no_effect, find_role
from eval_gate.targets.variables import find_variables
from eval_gate.text.digest import DIGEST_DIGITS, compute_digest, dump_sorted_json, fingerprint_json
from eval_gate.text.json_values import iter_texts, map_texts
from eval_gate.text.quoting import looks_like_key
from eval_gate.text.secret import Secret, SecretAddress
from eval_gate.text.urls import to_public_url

MAX_VALUE_TEXT: Final = 100
"""Maximum characters of a value in a run result. A longer one is stored as its beginning and a digest."""
_DIGEST_DIGITS: Final = 8
Mask: TypeAlias = Callable[[str], str]
"""Function that masks secrets in a text."""
_CREDENTIAL_NAME: Final = re.compile(r"auth|cookie|credential|key|pass|secret|session|token", re.IGNORECASE)
"""Names of headers, variables and similar fields whose values are always hidden, even if a file contains them."""


class TargetPrograms(FrozenStruct):
    """Commands of a target, with all words of its settings, and the folder relative to that of the eval file."""

    command: str
    healthcheck: str | None = None
    cwd: str = "."
    is_own_command: bool = True
    """Whether the user wrote the command; of a coding agent's, only the files that it names are compared."""


class TargetSetup(FrozenStruct):
    """Settings shown in a run result, and the fingerprint of all of them (16 hexadecimal digits)."""

    settings: tuple[SettingValue, ...] = ()
    fingerprint: str | None = None
    file: str | None = None
    """Targets file that describes it; None if it was given in another way."""
    programs: TargetPrograms | None = None
    """Commands of a target that starts a program; None for any other. Their files are not part of the fingerprint."""
    measures: tuple[str, ...] = ()
    """Patterns of the files that its cases measure. They are not part of the fingerprint, and compared as a setting of
    the run: what is measured decides what is reused, and no result."""
    resolved: str | None = None
    """Digest of what its description only refers to: the whole address, also parts that may be secret, and the values
    of variables, but for keys and tokens, which can be others in each run."""

    def apply_to(self, identity: TargetIdentity) -> TargetIdentity:
        """Return the identity of a target with this setup."""
        return replace(identity, setup=self.settings, fingerprint=self.fingerprint, file=self.file)


NO_SETUP: Final = TargetSetup()
"""Setup of a target without a description."""


class _Setting(NamedTuple):
    name: str
    value: JsonValue
    shown_as: str | None
    default: str | None = None
    role: SettingRole | None = None


def compute_setup(
    settings: TargetSettings,
    environment: Mapping[str, str],
    mask: Mask,
    prompting: PromptSetup | None = None,
    passed: Iterable[str] = (),
) -> TargetSetup:
    """Compute the setup of a target. Its provider reads `environment`; `mask` hides secrets in what is shown.

    `passed` names the variables that it gets unchanged.
    """
    parts = list(_iter_settings(settings, environment, mask))
    setup = _assemble_setup(settings.provider, [*parts, *(_iter_prompt_settings(prompting) if prompting else ())])
    names = {*passed, *(name for part in parts for name in find_variables(part.value))}
    variables = {name: environment[name] for name in sorted(names) if name in environment}
    values: list[JsonValue] = [[name, value] for name, value in variables.items() if not find_secrets({name: value})]
    address = _open_value(settings.place)
    return replace(
        setup,
        programs=_find_programs(settings, parts),
        measures=settings.measures,
        resolved=compute_digest([address, *values]),
    )


@lru_cache(maxsize=1_000)
def compute_agent_setup(agent: SuiteAgent) -> TargetSetup:
    """Compute the setup of the agent that a suite defines, without its name and model, which belongs to the target."""
    parts = []
    for field in structs.fields(SuiteAgent):
        name = field.name
        if name in {"name", "model"}:
            continue
        value: JsonValue = to_jsonable_python(getattr(agent, name))
        usual = None if field.required else format_value(to_jsonable_python(field.default))
        shown_as = f"#{compute_digest(value)[:_DIGEST_DIGITS]}" if name == "instructions" else format_value(value)
        parts.append(_Setting(field.encode_name, value, shown_as, usual, SettingRole.AGENT))
    return _assemble_setup("suite", parts)


def _find_programs(settings: TargetSettings, parts: Iterable[_Setting]) -> TargetPrograms | None:
    if not isinstance(settings, ProgramSettings):
        return None
    check = _open_settings(settings).get("healthcheck")
    health = " ".join(iter_texts(check.get("commandTemplate"))) if isinstance(check, dict) else ""
    # where a command runs is not what it loads
    words = (text for part in parts if part.name != "cwd" for text in iter_texts(part.value))
    cwd = str(getattr(settings, "cwd", None) or ".")
    return TargetPrograms(" ".join(words), health or None, cwd, settings.is_own_command)


def _assemble_setup(provider: str, parts: Sequence[_Setting]) -> TargetSetup:
    setting_values = tuple(
        SettingValue(name=part.name, value=part.shown_as, default=part.default, role=part.role)
        for part in parts
        if part.shown_as is not None
    )
    values = sorted(f"{part.name}={dump_sorted_json(part.value)}" for part in parts)
    return TargetSetup(setting_values, compute_setup_fingerprint([provider, *values]))


def _iter_settings(settings: TargetSettings, environment: Mapping[str, str], mask: Mask) -> Iterator[_Setting]:
    """Yield the settings that differ from their defaults; names of variables replace their values."""
    kind = type(settings)
    urls = settings.find_environment_addresses(environment)
    values = {**_open_settings(settings), **urls}
    values |= {key: source for key in kind.keys if (source := settings.find_written_value(key)) is not None}
    digest = _digest_query(settings, values.get("url"))
    if digest:  # how it is asked, like `query`, and no part of where it is
        query = settings.find_written_value("query") or values.get("query")
        values["query"] = _merge_values(digest, query if isinstance(query, dict) else {})
    for name, field in kind.model_fields.items():
        key = field.alias or name
        if (
            key == "provider" or key not in values or find_no_effect(field) is not None
        ):  # the setup begins with the provider
            continue
        source, value, role = settings.find_written_value(key), values[key], find_role(field)
        if key == "query" and digest:
            source = None
        elif key == "url" and digest:
            value, source = (one.partition("?")[0] if isinstance(one, str) else one for one in (value, source))
        is_address = key in urls or role is SettingRole.LOCATION or isinstance(getattr(settings, name), SecretAddress)
        if is_address and isinstance(value, str):
            value = _format_address(value, source, listed=settings.is_listed)
        elif source is not None:
            value = source
        if isinstance(value, dict) and any(isinstance(mark, CaseInsensitiveNames) for mark in field.metadata):
            value = {name.lower(): one for name, one in value.items()}
        value = _digest_credentials(value)
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        usual = format_value(_open_value(default))
        shown_as = format_value_or_empty(map_texts(value, lambda text: hide_keys(mask(text))))
        yield _Setting(key, value, shown_as, usual, role)


def _digest_query(settings: TargetSettings, url: JsonValue) -> Mapping[str, JsonValue]:
    """Digest the query in a listed address: that of any other may contain a secret that differs in each run."""
    if "query" not in type(settings).model_fields or not settings.is_listed:
        return {}
    address = settings.find_written_value("url") or url
    if not isinstance(address, str) or "?" not in address:
        return {}
    digest: dict[str, JsonValue] = {}
    for name, value in parse_qsl(address.partition("?")[2].partition("#")[0], keep_blank_values=True):
        digest = _merge_values(digest, {name: f"#{compute_digest(value)[:_DIGEST_DIGITS]}"})
    return digest


def _merge_values(one: Mapping[str, JsonValue], other: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Merge two queries, with both values of a name that is in both."""
    return {**one, **{name: [one[name], value] if name in one else value for name, value in other.items()}}


def _open_settings(settings: BaseModel) -> dict[str, JsonValue]:
    """Open the settings that differ from defaults; before they are shown or hashed, variable names replace values."""
    return {
        field.alias or name: _open_value(value)
        for name, field in type(settings).model_fields.items()
        for value in (getattr(settings, name),)
        if field.is_required() or value != field.get_default(call_default_factory=True)
    }


def _open_value(value: object) -> JsonValue:
    match value:
        case Secret():
            return _open_value(value.open())
        case BaseModel():
            return _open_settings(value)
        case dict():
            return {str(name): _open_value(one) for name, one in value.items()}
        case list() | tuple():
            return [_open_value(one) for one in value]
        case _:
            plain: JsonValue = to_jsonable_python(value)
            return plain


def _iter_prompt_settings(prompting: PromptSetup) -> Iterator[_Setting]:
    if prompting.system_prompt is not None:
        shown_as = f"#{compute_digest(prompting.system_prompt)[:_DIGEST_DIGITS]}"
        yield _Setting("systemPrompt", prompting.system_prompt, shown_as, role=SettingRole.AGENT)
    if prompting.tools:
        tools = [*prompting.tools]
        shown_as = f"{len(tools)} tools #{compute_digest(tools)[:_DIGEST_DIGITS]}"
        yield _Setting("tools", tools, shown_as, role=SettingRole.AGENT)


def _format_address(value: str, written_value: JsonValue, *, listed: bool) -> str:
    """Format an address or a command without the parts that may be secret."""
    try:
        public = to_public_url(value)
    except GateError:  # a command, or the name of a resource
        public = value
    if isinstance(written_value, str):  # a variable holds it: a change of the agent's address is visible by the digest
        return f"{written_value} #{compute_digest(public)[:_DIGEST_DIGITS]}"
    # everybody may read a list, so a digest can represent the parts that are not shown
    return f"{public} #{compute_digest(value)[:_DIGEST_DIGITS]}" if listed and public != value else public


def _digest_credentials(value: JsonValue) -> JsonValue:
    """Replace each text whose name denotes a credential by a digest."""
    if isinstance(value, list):
        return [_digest_credentials(one) for one in value]
    if isinstance(value, dict):
        return {
            name: f"#{compute_digest(one)[:_DIGEST_DIGITS]}"
            if isinstance(one, str) and _CREDENTIAL_NAME.search(name) and "${{" not in one
            else _digest_credentials(one)
            for name, one in value.items()
        }
    return value


def hide_keys(text: str) -> str:
    """Replace a text that looks like a key by its length and a digest."""
    return (
        f"a text of {len(text):,} characters #{compute_digest(text)[:_DIGEST_DIGITS]}" if looks_like_key(text) else text
    )


def format_value(value: JsonValue) -> str | None:
    """Format a value on one line: texts as they are, lists of texts with commas, others as JSON; None if empty."""
    if value is None or value in ([], {}):
        return None
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        text = ", ".join(map(str, value))
    else:
        text = value if isinstance(value, str) else dump_sorted_json(value)
    if len(text) <= MAX_VALUE_TEXT and text.isprintable():
        return text
    return (
        f"{' '.join(text[:MAX_VALUE_TEXT].split())[: MAX_VALUE_TEXT - _DIGEST_DIGITS]}… "
        f"#{compute_digest(value)[:_DIGEST_DIGITS]}"
    )


def format_value_or_empty(value: JsonValue) -> str:
    """Format a value that is not the default on one line, even if it is empty."""
    return format_value(value) or dump_sorted_json(value)


def compute_setup_fingerprint(parts: Sequence[JsonValue]) -> str:
    """Compute one fingerprint of these values: 16 hexadecimal digits."""
    return fingerprint_json(dump_sorted_json([*parts]))[:DIGEST_DIGITS]
