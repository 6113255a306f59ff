"""Describes the agent as a target: by what its server says of itself, one probe, and what the person decides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from eval_gate.cli.starter.agent_routes import AgentRoute, find_routes
from eval_gate.cli.starter.choices import Choice, Questions
from eval_gate.cli.starter.openapi import RequestField
from eval_gate.cli.starter.probe import describe_response, parse_output, probe_target, read_output
from eval_gate.cli.starter.server_documents import read_documents
from eval_gate.config.preset import PresetName
from eval_gate.errors import PAGES, GateError
from eval_gate.model.base import JsonValue
from eval_gate.process.signals import run_async
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.http.placeholders import PROMPT_PLACEHOLDERS, iter_placeholders
from eval_gate.text.escape import format_first_few, to_console_line, to_variable_word
from eval_gate.text.urls import to_public_url

TARGET_NAME: Final = "agent"
"""Name of the target that is written."""
_OWN_FIELD: Final = ("requestTemplate", "message")
"""The field of the prompt in Eval Gate's own protocol."""
_WITH_MODEL: Final = {PresetName.OPENAI_CHAT, PresetName.OPENAI_RESPONSES, PresetName.OLLAMA}
"""Protocols in which a request names the model."""
_AGENTV_KEYS: Final = frozenset({"text", "output_messages", "outputMessages"})
"""Members of AgentV's response, which a command target reads without settings."""
DEFAULT_ENDPOINT: Final = "http://localhost:8080/chat"
_PLAIN_URL: Final = re.compile(r"[A-Za-z0-9._~:/%+=,@\[\]-]+")
"""What needs no quoting in YAML or a shell, and is no expression of a workflow."""
Settings = dict[str, JsonValue]


class StarterRequest(FrozenStruct):
    """Request to `init`. `flags` are configuration keys for the agent; `example` is a format."""

    flags: Mapping[str, JsonValue]
    example: str = "tool-forge"
    workflow: bool = True
    command: str | None = None
    """The command that is the agent."""
    prompt: str | None = None
    """What is sent to the agent once; None to send nothing unless a person agrees."""
    settings: tuple[str, ...] = ()
    """Settings of the target, each KEY=VALUE."""
    start: str | None = None
    """The command with which the workflow starts the agent."""

    @property
    def names_target(self) -> bool:
        """Whether it says what to evaluate, so that files that say something else may be rewritten."""
        return bool(self.flags) or self.command is not None


class DescribedAgent(FrozenStruct):
    """The target as it is to be written. `notes` say what was found. `entry` is None where nobody decided something."""

    entry: Settings | None
    url: str | None = None
    notes: tuple[str, ...] = ()


def parse_settings(texts: Sequence[str]) -> Settings:
    """Parse the values of `--set`, each KEY=VALUE or KEY.MEMBER=VALUE, where a value is JSON or else text.

    Raises GateError `unknown-value`.
    """
    found: Settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not all(key.split(".")):
            raise GateError(
                "unknown-value",
                "--set needs KEY=VALUE",
                "write such as --set responsePath=data.answer or --set requestTemplate.question='{{message}}'",
            )
        try:
            parsed: JsonValue = json.loads(value)
        except ValueError:
            parsed = value
        _set_value(found, tuple(key.split(".")), parsed)
    return found


def describe_agent(wishes: StarterRequest, folder: Path, questions: Questions) -> DescribedAgent | None:
    """Describe the agent that a request names; None if it names none.

    Raises GateError for wishes that say nothing together, and if the probe fails.
    """
    given, flags = parse_settings(wishes.settings), wishes.flags
    if wishes.command is not None:
        if flags:
            said = f"--agent-command cannot be combined with {' and '.join(flags)}"
            raise GateError("conflicting-targets", said, "omit one of them")
        return _describe_command(wishes.command, given, wishes.prompt, folder, questions)
    if "agentEndpoint" not in flags or flags.keys() & {"provider", "baseUrl"}:
        if given or wishes.prompt is not None:
            said = "--set and --probe are for an agent, and none is named"
            raise GateError("conflicting-options", said, "add --agent-endpoint or --agent-command")
        return None
    url = str(flags["agentEndpoint"])
    check_url(url, "the agent's URL")
    return _describe_server(url, wishes, given, folder, questions)


def _describe_server(
    url: str, wishes: StarterRequest, given: Settings, folder: Path, questions: Questions
) -> DescribedAgent:
    """Describe the agent at the address or below it. Asks only its scheme, host and port."""
    protocol, model = (wishes.flags.get(key) for key in ("agentProtocol", "model"))
    server = run_async(read_documents(url))
    if server.problem is not None:
        if model is not None:
            raise _build_model_error()
        notes = [f"not asked   {server.origin}: {server.problem}. When your agent runs, this command asks it:"]
        return DescribedAgent(None, url, (*notes, f"     {questions.format_command()}"))
    found = find_routes(server)
    notes = [f"not used    {to_console_line(one, 300)}" for one in (*server.remarks, *found.remarks)]
    path = urlsplit(url).path
    routes = () if protocol == PresetName.EVAL_GATE else found.select(path, None if protocol is None else str(protocol))
    route = _select_route(routes, server.origin, questions) if routes else _presume_route(path or "/", protocol)
    if route is None:
        return DescribedAgent(None, url, tuple(notes))
    if routes:
        url = server.origin + route.path
    else:
        what = f"protocol {route.protocol or PresetName.EVAL_GATE}"
        notes.append(f"found       no description of {route.path} at {server.origin}: {what} is presumed")
    entry = _build_entry(route, url, model, given, questions)
    if entry is not None:
        if routes:
            sent = tuple(one for one in route.fields if one.prompt and _get_value(entry, one.place) == one.prompt)
            notes.append(f"found       {to_console_line(_describe_route(replace(route, fields=sent)), 300)}")
        entry, more = _complete_entry(entry, route, wishes.prompt, folder, questions)
        notes += more
    return DescribedAgent(entry, url, tuple(notes))


def _describe_command(
    command: str, given: Settings, prompt: str | None, folder: Path, questions: Questions
) -> DescribedAgent:
    """Describe a command that is the agent; with a prompt, by the output of one call."""
    if not any(name in command for name in ("{PROMPT}", "{PROMPT_FILE}")):
        raise GateError(
            "invalid-configuration",
            "--agent-command has neither {PROMPT} nor {PROMPT_FILE}, so the agent would get no prompt",
            "add one of them, such as --agent-command 'python3 agent.py {PROMPT}'",
        )
    entry: Settings = {"name": TARGET_NAME, "provider": "cli", "command_template": command, **given}
    question = f'Run `{to_console_line(command)}` once with "Hello" as the prompt'
    if prompt is None and questions.confirm(question, ("--probe", "Hello")):
        prompt = "Hello"
    if prompt is None:
        return DescribedAgent(entry)
    output = probe_target(entry, prompt, folder)
    document = None if "agentProtocol" in given else parse_output(output)
    if isinstance(document, dict) and not (_AGENTV_KEYS & document.keys()):
        entry |= describe_response(entry, document, questions) or {}
        if "responsePath" not in entry and isinstance(document.get("response"), str):
            entry["responsePath"] = "response"  # without a setting, the output is text
    return DescribedAgent(entry, notes=tuple(_describe_probe(entry, output)))


def check_url(url: str, what: str) -> None:
    """Check that a URL is valid and may be written to files that everyone can read.

    Raises GateError `invalid-url` for a URL that is malformed, or that has credentials, a query, a fragment or
    unusual characters.
    """
    try:
        plain = to_public_url(url) == url and _PLAIN_URL.fullmatch(url) is not None
    except GateError as error:
        raise GateError(error.code, error.message, f"use a URL such as {DEFAULT_ENDPOINT}") from error
    if not plain:
        raise GateError(
            "invalid-url",
            f"{what} has credentials, a query, a fragment or unusual characters, which must not stand in files",
            f"describe the target in a targets.yaml, with ${{{{ NAME }}}} for each secret ({PAGES}/targets.md)",
        )


def _select_route(routes: Sequence[AgentRoute], origin: str, questions: Questions) -> AgentRoute | None:
    """Select the only route, or the one that the person chooses; None if nobody does."""
    if len(routes) == 1:
        return routes[0]
    choices = [Choice(_describe_route(one), ("--agent-endpoint", origin + one.path)) for one in routes]
    at = questions.choose(f"which route of {origin} is the agent", choices)
    return None if at is None else routes[at]


def _complete_entry(
    entry: Settings, route: AgentRoute, prompt: str | None, folder: Path, questions: Questions
) -> tuple[Settings | None, list[str]]:
    """Complete a description by a response, or else by the described form; None where nobody decided something."""
    what = f"{route.method} {to_console_line(str(entry['url']), 200)}"
    if prompt is None and questions.confirm(f'Send "Hello" to {what}', ("--probe", "Hello")):
        prompt = "Hello"
    is_known = route.protocol is not None or "responseFormat" in entry
    if prompt is None:
        sample = None if is_known else route.sample
        added = {} if sample is None else describe_response(entry, sample, questions, is_sample=True)
        return entry | (added or {}), []
    output = probe_target(entry, prompt, folder)
    document = None if is_known else parse_output(output)
    added = {} if document is None else describe_response(entry, document, questions)
    if added is None:
        return None, []
    return entry | added, list(_describe_probe(entry | added, output))


def _presume_route(path: str, protocol: JsonValue) -> AgentRoute:
    """Build the route of a server that does not describe it."""
    preset = None if protocol in {None, PresetName.EVAL_GATE} else PresetName(str(protocol))
    fields = (RequestField(("requestFields", "model")),) if preset in _WITH_MODEL else ()
    return AgentRoute(path, protocol=preset, fields=fields)


def _build_model_error() -> GateError:
    return GateError(
        "conflicting-targets",
        "agentEndpoint and model are both given, but this agent does not say that requests name a model",
        "omit one of them, or name the model with --set requestFields.model=NAME",
    )


def _describe_route(route: AgentRoute) -> str:
    prompts = [one.place[-1] for one in route.fields if one.prompt]
    parts = [
        f"{route.method} {route.path}",
        *([f"protocol {route.protocol}"] if route.protocol else []),
        *([f"prompt in {format_first_few(prompts, 3)}"] if prompts else []),
        *([f"headers {', '.join(name for name, _ in route.headers)}"] if route.headers else []),
    ]
    return ", ".join(parts)


def _build_entry(
    route: AgentRoute, url: str, model: JsonValue, given: Settings, questions: Questions
) -> Settings | None:
    """Build the description of a route; None where nobody decided something. Raises GateError for a useless model."""
    entry: Settings = {"name": TARGET_NAME, "provider": "http", "url": url}
    settings = {
        "agentProtocol": route.protocol and str(route.protocol),
        "method": None if route.method == "POST" else route.method,
        "responseFormat": "text" if route.is_text else None,
    }
    entry |= {key: value for key, value in settings.items() if value is not None}
    for name, before in route.headers:
        variable = "AGENT_KEY" if len(route.headers) == 1 else f"AGENT_{to_variable_word(name)}"
        _set_value(entry, ("headers", name), f"{before}${{{{ {variable} }}}}")
    if model is not None:
        place = next((one.place for one in route.fields if one.place[-1] == "model"), None)
        if place is None:
            raise _build_model_error()
        _set_value(given, place, model)
    prompt = _find_prompt_field(route, given, questions)
    if prompt is None and any(one.prompt for one in route.fields) and not _has_prompt(given):
        return None
    needed = [one for one in route.fields if one is prompt or (one.required and _get_value(given, one.place) is None)]
    for one in needed:
        value = one.prompt if one is prompt else _decide_value(one, questions)
        if value is None:
            return None
        _set_value(entry, one.place, value)
    _merge(entry, given)
    if entry.get("requestTemplate") == {"message": "{{message}}"} and route.protocol is None:
        del entry["requestTemplate"]  # Eval Gate's own request
    return entry


def _find_prompt_field(route: AgentRoute, given: Mapping[str, JsonValue], questions: Questions) -> RequestField | None:
    """Find the field of the prompt: Eval Gate's own, the only one, the only required one, or what the person says."""
    fields = [one for one in route.fields if one.prompt and _get_value(given, one.place) is None]
    if not fields or _has_prompt(given):
        return None
    required = [one for one in fields if one.required and one.value is None]
    for some in ([one for one in fields if one.place == _OWN_FIELD], fields, required):
        if len(some) == 1:
            return some[0]
    choices = [Choice(_format_place(one), ("--set", f"{_format_place(one)}={one.prompt}")) for one in fields]
    at = questions.choose(f"which field of {route.path} takes the prompt", choices)
    return None if at is None else fields[at]


def _decide_value(field: RequestField, questions: Questions) -> JsonValue:
    """Decide the value of a required field: what the server names, or else what the person says; None for neither."""
    place = _format_place(field)
    if field.value is not None:
        return field.value
    if field.choices:
        option = "--model" if field.place == ("requestFields", "model") else "--set"
        named = [(option, one) if option == "--model" else (option, f"{place}={one}") for one in field.choices]
        choices = [Choice(one, words) for one, words in zip(field.choices, named, strict=True)]
        at = questions.choose(f"which {field.place[-1]}", choices, is_certain=True)
        return None if at is None else field.choices[at]
    option_words = ("--model", "NAME") if field.place == ("requestFields", "model") else ("--set", f"{place}=VALUE")
    question = f"the value of the required {to_console_line(place)} (JSON or text; {{{{session}}}} is new each time)"
    said = questions.ask_for_value(question, option_words)
    return None if said is None else parse_settings([f"value={said}"])["value"]


def _describe_probe(entry: Settings, output: bytes) -> Iterator[str]:
    """Say what a run would read in this output."""
    response = read_output(entry, output)
    yield f'response    "{to_console_line(response.text, 200)}"'
    if response.tool_calls:
        yield f"tool calls  {to_console_line(format_first_few([one.name for one in response.tool_calls], 5), 200)}"
    elif not response.tool_calls_known:
        yield "tool calls  unknown: the response has no list of them; --set toolCallsPath=PATH names it"


def _format_place(field: RequestField) -> str:
    return ".".join(field.place)


def _has_prompt(settings: Mapping[str, JsonValue]) -> bool:
    return bool(PROMPT_PLACEHOLDERS & set(iter_placeholders(dict(settings))))


def _get_value(settings: Mapping[str, JsonValue], place: tuple[str, ...]) -> JsonValue:
    """Get the value at a place; None if nothing is there."""
    value: JsonValue = dict(settings)
    for key in place:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _set_value(settings: Settings, place: tuple[str, ...], value: JsonValue) -> None:
    for key in place[:-1]:
        below = settings.setdefault(key, {})
        if not isinstance(below, dict):
            below = settings[key] = {}
        settings = below
    settings[place[-1]] = value


def _merge(settings: Settings, more: Mapping[str, JsonValue]) -> None:
    for key, value in more.items():
        below = settings.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            _merge(below, value)
        else:
            settings[key] = value
