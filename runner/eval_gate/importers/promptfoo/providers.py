"""Conversion of promptfoo providers to targets: HTTP agents and models.

A key or token that stands in the configuration is never copied: it is to be a variable of the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from eval_gate.importers.import_result import NotImportableError, SkippedItem, SourcePlace
from eval_gate.importers.promptfoo.config_files import PromptfooFile
from eval_gate.importers.promptfoo.templates import find_only_variable, is_template
from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.urls import has_credentials

_ENVIRONMENT: Final = re.compile(
    r"""\{\{\s*env(?:\.([A-Za-z_]\w*)|\[\s*['"]([A-Za-z_]\w*)['"]\s*\])\s*\}\}|\$\{([A-Za-z_]\w*)\}""", re.ASCII
)
_PROMPT: Final = re.compile(r"\{\{\s*prompt\s*\}\}")
_RESPONSE_PATH: Final = re.compile(
    r"""\s*+(?:\(?\s*+json\s*+(?:,[^()=]*+)?\)?\s*+=>\s*+)?json((?:\??\.[A-Za-z_]\w*|\??\.?\[\d{1,6}\]|\[(?:'\w+'|"\w+")\])+)\s*+;?\s*+"""
)
_SECRET: Final = re.compile(r"(?i)auth|key|token|secret|cookie|password|credential")
_MODEL_PATTERNS: Final = (
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
_OLLAMA_URL: Final = "http://localhost:11434/v1"
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
_ADDRESS_SETTINGS: Final = frozenset({"url", "base_url", "endpoint"})
"""Settings that are addresses."""
_UNSUPPORTED_KINDS: Final = {
    "echo": "it returns its own prompt: there is nothing to evaluate",
    "exec": "its command expects promptfoo's arguments: describe it as a target with `provider: cli`",
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
    """A provider converted to target settings. A provider with `is_model` takes a list of messages."""

    name: str
    settings: Mapping[str, JsonValue]
    is_model: bool
    place: SourcePlace


def convert_providers(config: PromptfooFile, variable: str | None) -> tuple[list[PromptfooProvider], list[SkippedItem]]:
    """Convert the providers to targets with unique names, and list what cannot be imported.

    `variable` is the single variable that every prompt consists of, if there is one: a request body that names it
    means the prompt.
    """
    found: list[PromptfooProvider] = []
    left: list[SkippedItem] = []
    taken: dict[str, int] = {}
    for place, one in _iter_entries(config):
        shown = _get_id(one)
        try:
            provider, lost = _convert_provider(one, variable)
        except NotImportableError as error:
            left.append(SkippedItem(place, f"provider {shown[:100]}", str(error)))
            continue
        name = _build_name(_find_label(one) or shown, taken)
        for key in _ADDRESS_SETTINGS & provider.keys():
            if has_credentials(str(provider[key])):
                variable_name = re.sub(r"\W+", "_", f"{name}_{key}", flags=re.ASCII).strip("_").upper()
                # a digit may begin no name of a variable
                variable_name = f"AGENT_{variable_name}" if variable_name[0].isdigit() else variable_name
                provider[key] = f"${{{{ {variable_name} }}}}"
                said = f"its URL contains credentials: set the variable {variable_name} to the whole URL"
                left.append(SkippedItem(place, f"provider {name}", said))
        found.append(
            PromptfooProvider(name, {"name": name, **provider}, is_model=provider["provider"] != "http", place=place)
        )
        left += [SkippedItem(place, f"provider {shown[:100]}", f"its `{key[:60]}` is not imported") for key in lost]
    return found, left


def _iter_entries(config: PromptfooFile) -> Iterator[tuple[SourcePlace, JsonValue]]:
    value = config.value
    assert isinstance(value, dict)
    key = "providers" if "providers" in value else "targets"
    providers = value.get(key)
    if isinstance(providers, list):
        yield from ((config.locate(key, index), one) for index, one in enumerate(providers))
    elif providers:
        yield config.locate(key), providers


def _get_id(one: JsonValue) -> str:
    if isinstance(one, dict):
        named = one.get("id")
        return named if isinstance(named, str) else next((key for key in one if key not in _KEYS), "without a name")
    return one if isinstance(one, str) else "without a name"


def _find_label(one: JsonValue) -> str | None:
    label = one.get("label") if isinstance(one, dict) else None
    return label if isinstance(label, str) and label else None


def _build_name(wish: str, taken: dict[str, int]) -> str:
    """Build a target name that is easy to type and that no other target has.

    `taken` counts how often each name was requested. The name of an address leaves out its user part and its query.
    """
    address = re.sub(r"[?#].*", "", re.sub(r"^https?://(?:[^/@]*@)?", "", wish)) if "://" in wish else wish
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", address).strip("-.")[:60] or "target"
    name = plain
    while name in taken:
        taken[plain] += 1
        name = f"{plain}-{taken[plain]}"
    taken[name] = 1
    return name


def _convert_provider(one: JsonValue, variable: str | None) -> tuple[dict[str, JsonValue], list[str]]:
    """Convert a provider to the settings of a target.

    Returns the settings, and the names of the provider's settings that have no counterpart. Raises
    NotImportableError.
    """
    identity = _get_id(one)
    description = one if isinstance(one, dict) else {}
    if isinstance(one, dict) and "id" not in one and isinstance(one.get(identity), dict):
        description = one[identity]  # type: ignore[assignment]  # `- openai:gpt-4o: {config: …}`
    config = description.get("config") or {}
    if not isinstance(config, dict):
        raise NotImportableError("its `config` is not a mapping")
    for key in description:
        if key not in _KEYS:
            raise NotImportableError(f"`{key[:60]}` changes its responses before they are checked")
    kind = identity.split(":", 1)[0]
    if identity.startswith(("http:", "https:")) or identity in {"http", "https"}:
        settings, lost = _convert_http(identity, config, variable)
    elif kind in _UNSUPPORTED_KINDS or identity.endswith((".js", ".ts", ".py", ".mjs", ".cjs")):
        raise NotImportableError(_UNSUPPORTED_KINDS.get(kind, _UNSUPPORTED_KINDS["file"]))
    else:
        settings, lost = _convert_model(identity, config)
    return settings, [*lost, *(key for key in ("prompts", "env") if description.get(key))]


def _convert_model(identity: str, config: Mapping[str, JsonValue]) -> tuple[dict[str, JsonValue], list[str]]:
    if is_template(identity):
        raise NotImportableError("its name is a template")
    fitting = ((vendor, found[1]) for pattern, vendor in _MODEL_PATTERNS if (found := pattern.fullmatch(identity)))
    vendor, model = next(fitting, ("", ""))
    if not model or _NOT_CHAT.fullmatch(identity):
        raise NotImportableError("this provider has no equivalent target")
    settings: dict[str, JsonValue] = {"provider": vendor, "model": model}
    if identity.startswith("ollama:"):
        settings["base_url"] = _OLLAMA_URL
    lost: list[str] = []
    theirs, ours = _ADDRESSES.get(vendor, ("", ""))
    for key, value in config.items():
        if key in _SETTINGS and isinstance(value, int | float) and not isinstance(value, bool):
            settings[_SETTINGS[key]] = value
        elif key == theirs and isinstance(value, str):
            settings[ours] = _convert_variables(value)
        elif key == "apiKey" and isinstance(value, str) and _ENVIRONMENT.fullmatch(value):
            settings["api_key"] = _convert_variables(value)
        elif key == "apiKeyEnvar" and isinstance(value, str) and re.fullmatch(r"[A-Za-z_]\w*", value):
            settings["api_key"] = f"${{{{ {value} }}}}"
        else:
            lost.append(key)
    return settings, lost


def _convert_variables(text: str) -> str:
    """Rewrite references to environment variables as target settings write them.

    Raises NotImportableError if the rest of the text is a template.
    """
    found = _ENVIRONMENT.sub(lambda match: f"${{{{ {match[1] or match[2] or match[3]} }}}}", text)
    if is_template(re.sub(r"\$\{\{ \w+ \}\}", "", found)):
        raise NotImportableError(f'"{text[:80]}" is a template')
    return found


def _convert_http(
    identity: str, config: Mapping[str, JsonValue], variable: str | None
) -> tuple[dict[str, JsonValue], list[str]]:
    """Convert an HTTP provider to the settings of an agent that receives and returns JSON.

    Returns the settings, and the names of those that have no counterpart. Raises NotImportableError.
    """
    for key in config:
        if key not in _HTTP_KEYS:
            raise NotImportableError(f"its setting `{key[:60]}` has no equivalent")
    url = config.get("url") or identity
    if not isinstance(url, str) or not url.startswith(("http://", "https://", "{{")):
        raise NotImportableError("it has no URL")
    if str(config.get("method", "POST" if "body" in config else "GET")).upper() != "POST":
        raise NotImportableError("its method is not POST")
    settings: dict[str, JsonValue] = {"provider": "http", "url": _convert_variables(url)}
    if headers := _convert_headers(config.get("headers")):
        settings["headers"] = headers
    settings["request_template"] = _convert_body(config.get("body"), variable)
    settings["response_path"] = _get_response_path(config)
    return settings, [key for key in ("maxRetries", "timeout", "validateStatus") if key in config]


def _convert_headers(value: JsonValue) -> dict[str, JsonValue]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotImportableError("its headers are not a mapping")
    headers: dict[str, JsonValue] = {}
    for name, text in value.items():
        if name.lower() == "content-type" and str(text).lower().startswith("application/json"):
            continue
        if not isinstance(text, str):
            raise NotImportableError(f"its header {name[:60]} is not text")
        headers[name] = _convert_variables(text)
        if _SECRET.search(name) and headers[name] == text:
            raise NotImportableError(f"its header {name[:60]} has a value that may be secret: make it a variable")
    return headers


def _convert_body(value: JsonValue, variable: str | None) -> JsonValue:
    if isinstance(value, str):
        try:
            value = parse_untrusted_json(value)
        except UntrustedJsonError as error:
            raise NotImportableError("its body is not JSON") from error
    if not isinstance(value, dict | list):
        raise NotImportableError("its body is not a JSON object")
    return _fill_body(value, variable)


def _fill_body(value: JsonValue, variable: str | None) -> JsonValue:
    match value:
        case str() if variable is not None and find_only_variable(value) == variable:
            return "{{message}}"
        case str():
            text = _PROMPT.sub("{{message}}", value)
            if is_template(text.replace("{{message}}", "")):
                raise NotImportableError(
                    f'its body holds the template "{value[:80]}", which contains more than the prompt'
                )
            return text
        case list():
            return [_fill_body(member, variable) for member in value]
        case dict():
            return {key: _fill_body(member, variable) for key, member in value.items()}
        case _:
            return value


def _get_response_path(config: Mapping[str, JsonValue]) -> str:
    """Where the answer's text is."""
    written = config.get("transformResponse") or config.get("responseParser")
    if written is None:
        raise NotImportableError("it has no `transformResponse` that names the path of the text")
    found = _RESPONSE_PATH.fullmatch(written) if isinstance(written, str) else None
    if found is None:
        raise NotImportableError("its `transformResponse` is more than a path such as `json.reply`")
    path = re.sub(r"""\[['"](\w+)['"]\]""", r".\1", found[1].replace("?", ""))
    return path.replace(".[", "[").removeprefix(".")
