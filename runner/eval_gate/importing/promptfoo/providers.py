"""promptfoo's providers as targets: agents over HTTP that take and give JSON, and models by their names.

A key or token that stands in the configuration is never copied: it is to be a variable of the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from eval_gate.importing.imported import CannotCarryError, LeftOut, SourcePlace
from eval_gate.importing.promptfoo.sources import SourceFile
from eval_gate.importing.promptfoo.templates import alone, is_template
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.urls import holds_credentials

_ENVIRONMENT: Final = re.compile(
    r"""\{\{\s*env(?:\.([A-Za-z_]\w*)|\[\s*['"]([A-Za-z_]\w*)['"]\s*\])\s*\}\}|\$\{([A-Za-z_]\w*)\}""", re.ASCII
)
_PROMPT: Final = re.compile(r"\{\{\s*prompt\s*\}\}")
_ANSWER: Final = re.compile(
    r"""\s*+(?:\(?\s*+json\s*+(?:,[^()=]*+)?\)?\s*+=>\s*+)?json((?:\??\.[A-Za-z_]\w*|\??\.?\[\d{1,6}\]|\[(?:'\w+'|"\w+")\])+)\s*+;?\s*+"""
)
_SECRET: Final = re.compile(r"(?i)auth|key|token|secret|cookie|password|credential")
_MODELS: Final = (
    (re.compile(r"openai:(?:(?:chat|responses):)?([^:]+(?::ft-.*|:.+)?)"), "openai"),
    (re.compile(r"anthropic:(?:messages:)?([^:]+)"), "anthropic"),
    (re.compile(r"(?:azure|azureopenai):(?:chat|responses):([^:]+)"), "azure"),
    (re.compile(r"google:([^:]+)"), "gemini"),
    (re.compile(r"ollama:chat:(.+)"), "openai-compatible"),
    (re.compile(r"((?:groq|mistral|deepseek|openrouter):.+)"), "model"),
)
_NOT_CHAT: Final = re.compile(
    r"openai:(?:assistant|embeddings?|completion|image|moderation|realtime|transcription|speech|video|agents|codex).*"
    r"|google:(?:live|image|embedding|video).*|(?:mistral|openrouter):embed.*"
)
_OLLAMA: Final = "http://localhost:11434/v1"
_SETTINGS: Final = {
    "temperature": "temperature",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "max_output_tokens": "max_output_tokens",
    "maxOutputTokens": "max_output_tokens",
}
_ADDRESSES: Final = {
    "openai": ("apiBaseUrl", "base_url"),
    "anthropic": ("apiBaseUrl", "base_url"),
    "azure": ("apiHost", "endpoint"),
}
_PLACES: Final = frozenset({"url", "base_url", "endpoint"})
"""Settings that are addresses."""
_NOTHING: Final = {
    "echo": "it answers with its own prompt: there is nothing to evaluate",
    "exec": "its command is given promptfoo's arguments: describe it as a target with `provider: cli`",
    "python": "it is a program: describe it as a target with `provider: cli`",
    "file": "it is a program: describe it as a target with `provider: cli`",
    "javascript": "it is a program: describe it as a target with `provider: cli`",
}
_KEYS: Final = frozenset({"id", "label", "config", "delay", "description", "prompts", "env"})
_HTTP_KEYS: Final = frozenset(
    {
        *("url", "method", "headers", "body", "transformResponse", "responseParser"),
        *("maxRetries", "timeout", "validateStatus"),
    }
)


class PromptfooProvider(FrozenStruct):
    """A provider that is a target here. `settings` are those of the list of targets; `model`: it takes messages."""

    name: str
    settings: Mapping[str, JsonValue]
    model: bool
    place: SourcePlace


def providers_of(config: SourceFile, variable: str | None) -> tuple[list[PromptfooProvider], list[LeftOut]]:
    """The providers that are targets here, by different names, and what is not carried over of all.

    `variable` is the one that every prompt consists of, where they do: a body that names it means the prompt.
    """
    found: list[PromptfooProvider] = []
    left: list[LeftOut] = []
    taken: dict[str, int] = {}
    for place, one in _entries(config):
        shown = _id_of(one)
        try:
            provider, lost = _provider(one, variable)
        except CannotCarryError as error:
            left.append(LeftOut(place, f"provider {shown[:100]}", str(error)))
            continue
        name = _name(_label_of(one) or shown, taken)
        for key in _PLACES & provider.keys():
            if holds_credentials(str(provider[key])):
                variable_name = re.sub(r"\W+", "_", f"{name}_{key}", flags=re.ASCII).strip("_").upper()
                # a digit may begin no name of a variable
                variable_name = f"AGENT_{variable_name}" if variable_name[0].isdigit() else variable_name
                provider[key] = f"${{{{ {variable_name} }}}}"
                said = f"its address holds credentials: set the variable {variable_name} to the whole address"
                left.append(LeftOut(place, f"provider {name}", said))
        found.append(
            PromptfooProvider(name, {"name": name, **provider}, model=provider["provider"] != "http", place=place)
        )
        left += [LeftOut(place, f"provider {shown[:100]}", f"its `{key[:60]}` is not carried over") for key in lost]
    return found, left


def _entries(config: SourceFile) -> Iterator[tuple[SourcePlace, JsonValue]]:
    value = config.value
    assert isinstance(value, dict)
    key = "providers" if "providers" in value else "targets"
    providers = value.get(key)
    if isinstance(providers, list):
        yield from ((config.place(key, index), one) for index, one in enumerate(providers))
    elif providers:
        yield config.place(key), providers


def _id_of(one: JsonValue) -> str:
    if isinstance(one, dict):
        named = one.get("id")
        return named if isinstance(named, str) else next((key for key in one if key not in _KEYS), "without a name")
    return one if isinstance(one, str) else "without a name"


def _label_of(one: JsonValue) -> str | None:
    label = one.get("label") if isinstance(one, dict) else None
    return label if isinstance(label, str) and label else None


def _name(wish: str, taken: dict[str, int]) -> str:
    """A name for people to type, which no other target has. `taken` counts how often each name was wished for.

    Of an address neither user part nor query is in it.
    """
    address = re.sub(r"[?#].*", "", re.sub(r"^https?://(?:[^/@]*@)?", "", wish)) if "://" in wish else wish
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", address).strip("-.")[:60] or "target"
    name = plain
    while name in taken:
        taken[plain] += 1
        name = f"{plain}-{taken[plain]}"
    taken[name] = 1
    return name


def _provider(one: JsonValue, variable: str | None) -> tuple[dict[str, JsonValue], list[str]]:
    """The settings of a target, and the names of settings that have no counterpart. Raises CannotCarryError."""
    identity = _id_of(one)
    description = one if isinstance(one, dict) else {}
    if isinstance(one, dict) and "id" not in one and isinstance(one.get(identity), dict):
        description = one[identity]  # type: ignore[assignment]  # `- openai:gpt-4o: {config: …}`
    config = description.get("config") or {}
    if not isinstance(config, dict):
        raise CannotCarryError("its `config` is no mapping")
    for key in description:
        if key not in _KEYS:
            raise CannotCarryError(f"`{key[:60]}` changes its answers before they are checked")
    kind = identity.split(":", 1)[0]
    if identity.startswith(("http:", "https:")) or identity in {"http", "https"}:
        settings, lost = _http(identity, config, variable)
    elif kind in _NOTHING or identity.endswith((".js", ".ts", ".py", ".mjs", ".cjs")):
        raise CannotCarryError(_NOTHING.get(kind, _NOTHING["file"]))
    else:
        settings, lost = _model(identity, config)
    return settings, [*lost, *(key for key in ("prompts", "env") if description.get(key))]


def _model(identity: str, config: Mapping[str, JsonValue]) -> tuple[dict[str, JsonValue], list[str]]:
    if is_template(identity):
        raise CannotCarryError("its name is a template")
    fitting = ((vendor, found[1]) for pattern, vendor in _MODELS if (found := pattern.fullmatch(identity)))
    vendor, model = next(fitting, ("", ""))
    if not model or _NOT_CHAT.fullmatch(identity):
        raise CannotCarryError("there is no such target here")
    settings: dict[str, JsonValue] = {"provider": vendor, "model": model}
    if identity.startswith("ollama:"):
        settings["base_url"] = _OLLAMA
    lost: list[str] = []
    theirs, ours = _ADDRESSES.get(vendor, ("", ""))
    for key, value in config.items():
        if key in _SETTINGS and isinstance(value, int | float) and not isinstance(value, bool):
            settings[_SETTINGS[key]] = value
        elif key == theirs and isinstance(value, str):
            settings[ours] = _with_variables(value)
        elif key == "apiKey" and isinstance(value, str) and _ENVIRONMENT.fullmatch(value):
            settings["api_key"] = _with_variables(value)
        elif key == "apiKeyEnvar" and isinstance(value, str) and re.fullmatch(r"[A-Za-z_]\w*", value):
            settings["api_key"] = f"${{{{ {value} }}}}"
        else:
            lost.append(key)
    return settings, lost


def _with_variables(text: str) -> str:
    """The text with variables of the environment as a list of targets names them. Raises CannotCarryError."""
    found = _ENVIRONMENT.sub(lambda match: f"${{{{ {match[1] or match[2] or match[3]} }}}}", text)
    if is_template(re.sub(r"\$\{\{ \w+ \}\}", "", found)):
        raise CannotCarryError(f'"{text[:80]}" is a template')
    return found


def _http(
    identity: str, config: Mapping[str, JsonValue], variable: str | None
) -> tuple[dict[str, JsonValue], list[str]]:
    """An agent that is sent JSON and answers with it. Raises CannotCarryError."""
    for key in config:
        if key not in _HTTP_KEYS:
            raise CannotCarryError(f"its setting `{key[:60]}` has no counterpart")
    url = config.get("url") or identity
    if not isinstance(url, str) or not url.startswith(("http://", "https://", "{{")):
        raise CannotCarryError("it has no address")
    if str(config.get("method", "POST" if "body" in config else "GET")).upper() != "POST":
        raise CannotCarryError("it is not asked by POST")
    settings: dict[str, JsonValue] = {"provider": "http", "url": _with_variables(url)}
    if headers := _headers(config.get("headers")):
        settings["headers"] = headers
    settings["request_template"] = _body(config.get("body"), variable)
    settings["response_path"] = _answer(config)
    return settings, [key for key in ("maxRetries", "timeout", "validateStatus") if key in config]


def _headers(value: JsonValue) -> dict[str, JsonValue]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CannotCarryError("its headers are no mapping")
    headers: dict[str, JsonValue] = {}
    for name, text in value.items():
        if name.lower() == "content-type" and str(text).lower().startswith("application/json"):
            continue
        if not isinstance(text, str):
            raise CannotCarryError(f"its header {name[:60]} is no text")
        headers[name] = _with_variables(text)
        if _SECRET.search(name) and headers[name] == text:
            raise CannotCarryError(f"its header {name[:60]} holds a value that may be secret: make it a variable")
    return headers


def _body(value: JsonValue, variable: str | None) -> JsonValue:
    if isinstance(value, str):
        try:
            value = read_foreign(value)
        except ForeignJsonError as error:
            raise CannotCarryError("its body is no JSON") from error
    if not isinstance(value, dict | list):
        raise CannotCarryError("its body is no JSON object")
    return _filled(value, variable)


def _filled(value: JsonValue, variable: str | None) -> JsonValue:
    match value:
        case str() if variable is not None and alone(value) == variable:
            return "{{message}}"
        case str():
            text = _PROMPT.sub("{{message}}", value)
            if is_template(text.replace("{{message}}", "")):
                raise CannotCarryError(f'its body holds the template "{value[:80]}", which is more than the prompt')
            return text
        case list():
            return [_filled(member, variable) for member in value]
        case dict():
            return {key: _filled(member, variable) for key, member in value.items()}
        case _:
            return value


def _answer(config: Mapping[str, JsonValue]) -> str:
    """Where the answer's text is."""
    written = config.get("transformResponse") or config.get("responseParser")
    if written is None:
        raise CannotCarryError("all that it sends is its answer: no `transformResponse` says where the text is")
    found = _ANSWER.fullmatch(written) if isinstance(written, str) else None
    if found is None:
        raise CannotCarryError("its `transformResponse` is more than a path such as `json.reply`")
    path = re.sub(r"""\[['"](\w+)['"]\]""", r".\1", found[1].replace("?", ""))
    return path.replace(".[", "[").removeprefix(".")
