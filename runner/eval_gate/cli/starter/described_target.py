"""Describe the agent as a target: by its server's own descriptions, one probe, and the person's decisions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from eval_gate.cli.starter.agent_routes import find_routes, read_documents
from eval_gate.cli.starter.choices import MAX_CHOICES, Choice, Questions
from eval_gate.cli.starter.openapi import AgentRoute, RequestField, RequestHeader
from eval_gate.cli.starter.probe import parse_output, probe_target, read_output
from eval_gate.cli.starter.response_places import list_readings
from eval_gate.config.preset import PresetName
from eval_gate.errors import PAGES, GateError
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.process.signals import run_async
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.http.placeholders import PROMPT_PLACEHOLDERS, iter_placeholders
from eval_gate.text.escape import format_first_few, to_console_line, to_variable_word
from eval_gate.text.json_values import find_at
from eval_gate.text.urls import to_public_url

TARGET_NAME: Final = "agent"
_OWN_FIELD: Final = ("requestTemplate", "message")
"""The field of the prompt in Eval Gate's own protocol."""
_WITH_MODEL: Final = {PresetName.OPENAI_CHAT, PresetName.OPENAI_RESPONSES, PresetName.OLLAMA}
"""Protocols in which a request names the model."""
_AGENTV_KEYS: Final = frozenset({"text", "output_messages", "outputMessages"})
"""Members of AgentV's response, which a command target reads without settings."""
DEFAULT_ENDPOINT: Final = "http://localhost:8080/chat"
_PLAIN_URL: Final = re.compile(r"[A-Za-z0-9._~:/%+=,@\[\]-]+")
"""A URL that needs no quoting in YAML or a shell, and is no expression of a workflow."""
Settings = dict[str, JsonValue]
NO_READING: Final[Mapping[str, JsonValue]] = {}
_PROMPTS: Final = ("{{message}}", "{{conversation}}")
USE_A_TOOL: Final = "If your agent has tools, give --probe a question that makes your agent call one"


class StarterRequest(FrozenStruct):
    """Request to `init`. `flags` are configuration keys for the agent; `example` is a format."""

    flags: Mapping[str, JsonValue]
    example: str = "tool-forge"
    workflow: bool = True
    command: str | None = None
    prompt: str | None = None
    """What is sent to the agent once; None to send nothing unless a person agrees."""
    settings: tuple[str, ...] = ()
    """Settings of the target, each KEY=VALUE."""
    start: str | None = None
    """The command with which the workflow starts the agent."""
    warm_up: bool | None = None
    """Whether runs of the default branch fill a short history; None to ask a person."""

    @property
    def names_target(self) -> bool:
        """Whether it names the target, so that files with another target may be rewritten."""
        return bool(self.flags) or self.command is not None


class DescribedAgent(FrozenStruct):
    """The target to write. `notes` report findings. `entry` is None while a decision is open."""

    entry: Settings | None
    url: str | None = None
    notes: tuple[str, ...] = ()
    cost_usd: float | None = None
    """Cost of the response to the probe; None if unknown."""


def parse_settings(texts: Sequence[str]) -> Settings:
    """Parse `--set` values, KEY=VALUE or KEY.MEMBER=VALUE, in JSON or else text. Raises GateError `unknown-value`."""
    settings: Settings = {}
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
        _set_value(settings, tuple(key.split(".")), parsed)
    return settings


def describe_agent(wishes: StarterRequest, folder: Path, questions: Questions) -> DescribedAgent | None:
    """Describe the agent that a request names; None if it names none.

    Raises GateError for wishes that contradict each other, and if the probe fails.
    """
    settings, flags = parse_settings(wishes.settings), wishes.flags
    if wishes.command is not None:
        if flags:
            message = f"--agent-command cannot be combined with {' and '.join(flags)}"
            raise GateError("conflicting-targets", message, "omit one of them")
        return _describe_command(wishes.command, settings, wishes.prompt, folder, questions)
    if "agentEndpoint" not in flags or flags.keys() & {"provider", "baseUrl"}:
        if settings or wishes.prompt is not None:
            message = "--set and --probe are for an agent, and none is named"
            raise GateError("conflicting-options", message, "add --agent-endpoint or --agent-command")
        return None
    url = str(flags["agentEndpoint"])
    check_url(url, "the agent's URL")
    return _describe_server(url, wishes, settings, folder, questions)


class AgentRequest(FrozenStruct):
    """A way to send prompts to the agent: a route, with the values of its fields."""

    route: AgentRoute
    values: tuple[tuple[tuple[str, ...], JsonValue], ...]
    """Places in the description of the target, with their values."""
    open_fields: tuple[str, ...] = ()
    """Required fields whose value only a person knows."""
    option: tuple[str, ...] = ()
    """Words of a command that choose this request among others of its route."""
    reading: Mapping[str, JsonValue] = NO_READING
    """How its response is read, if that was a part of the choice."""

    def describe(self) -> str:
        """Describe the request for a person."""
        prompts = [place[-1] for place, value in self.values if value in _PROMPTS]
        run_fields = [f"{place[-1]} {value}" for place, value in self.values if place[0] == "requestFields"]
        needed = [one.name for one in self.route.headers if one.required]
        optional = [one.name for one in self.route.headers if not one.required]
        parts = [
            f"POST {self.route.path}",
            *([f"protocol {self.route.protocol}"] if self.route.protocol else []),
            *([f"prompt in {format_first_few(prompts, 3)}"] if prompts else []),
            *run_fields,
            *([f"headers {format_first_few(needed, 3)}"] if needed else []),
            *([f"optional headers {format_first_few(optional, 3)}"] if optional else []),
            *(f"{key} {value}" for key, value in self.reading.items()),
        ]
        return to_console_line(", ".join(parts), 300)


def _describe_server(
    url: str, wishes: StarterRequest, settings: Settings, folder: Path, questions: Questions
) -> DescribedAgent:
    """Describe the agent at the address or below it. Asks only its scheme, host and port."""
    protocol, model = (wishes.flags.get(key) for key in ("agentProtocol", "model"))
    server = run_async(read_documents(url))
    found_routes = find_routes(server)
    notes = [f"not used    {to_console_line(one, 300)}" for one in (*server.remarks, *found_routes.remarks)]
    if server.problem is not None:
        note = f"not asked   {server.origin}: {server.problem}. When your agent runs, this command asks it:"
        notes = [note, f"     {questions.format_command()}"]
        if protocol is None:
            if model is not None:
                raise _build_model_error()
            return DescribedAgent(None, url, tuple(notes))
    path = urlsplit(url).path
    routes = (
        ()
        if protocol == PresetName.EVAL_GATE
        else found_routes.select(path, None if protocol is None else str(protocol))
    )
    requests = _list_requests(routes or (_presume_route(path or "/", protocol),), server.origin, settings, model)
    choices = [Choice(one.describe(), one.option) for one in requests]
    at = questions.choose(f"which request of {server.origin} asks the agent", choices)
    values = None if at is None else questions.ask_for_values(requests[at].open_fields, requests[at].option)
    if at is None or values is None:
        return DescribedAgent(None, url, tuple(notes))
    if routes:
        url = server.origin + requests[at].route.path
        notes.append(f"found       {choices[at].label}")
    elif server.problem is None:
        what = f"protocol {protocol or PresetName.EVAL_GATE}"
        notes.append(f"found       no description of {path or '/'} at {server.origin}: {what} is presumed")
    more = parse_settings([f"{name}={value}" for name, value in zip(requests[at].open_fields, values, strict=True)])
    _merge(more, settings)
    entry = _build_entry(requests[at], url, more)
    if server.problem is not None:
        return DescribedAgent(entry, url, tuple(notes))
    return _complete_agent(entry, requests[at].route, notes, wishes, folder, questions)


def _list_requests(
    routes: Sequence[AgentRoute], origin: str, settings: Settings, model: JsonValue
) -> list[AgentRequest]:
    """List the requests that may ask the agent; several also with each way to read their described response.

    Raises GateError if a model is named, and no route takes one.
    """
    if model is not None:
        routes = [one for one in routes if _find_model_place(one)]
        if not routes:
            raise _build_model_error()
    candidates = [one for route in routes for one in islice(_iter_requests(route, settings, model), 5 * MAX_CHOICES)]
    if len(candidates) == 1:
        return candidates
    requests = []
    for one in candidates:
        option = ("--agent-endpoint", origin + one.route.path, *one.option) if len(routes) > 1 else one.option
        for way in list_readings(settings, one.route.sample if _needs_reading(one.route, settings) else None):
            reading = way.settings if way.option else {}
            requests.append(replace(one, reading=reading, option=option + way.option))
    return requests


def _iter_requests(route: AgentRoute, settings: Settings, model: JsonValue) -> Iterator[AgentRequest]:
    """Yield the requests of a route: one for each field that may take the prompt, and each value that it names."""
    model_values = () if model is None else ((_find_model_place(route), model),)
    fields = [
        one
        for one in route.fields
        if find_at(dict(settings), one.place) is None and (one.place, model) not in model_values
    ]
    has_prompt = bool(PROMPT_PLACEHOLDERS & set(iter_placeholders(dict(settings))))
    prompts = [] if has_prompt else _select_prompt_fields(fields)
    for prompt in prompts or (None,):
        needed = [one for one in fields if one.required and one is not prompt]
        listed = [one for one in needed if one.value is None and one.choices]
        fixed = [(one.place, one.value) for one in needed if one.value is not None]
        sent = [] if prompt is None else [(prompt.place, prompt.prompt)]
        open_fields = tuple(".".join(one.place) for one in needed if one.value is None and not one.choices)
        for chosen in product(*(one.choices for one in listed)):
            picked = [(one.place, value) for one, value in zip(listed, chosen, strict=True)]
            open_places = {one.place for one in listed if len(one.choices) > 1}
            decided = [*(sent if len(prompts) > 1 else []), *(one for one in picked if one[0] in open_places)]
            words = [f"{'.'.join(place)}={value}" for place, value in decided] + [f"{one}=VALUE" for one in open_fields]
            option = tuple(word for one in words for word in ("--set", one))
            yield AgentRequest(route, (*model_values, *sent, *fixed, *picked), open_fields, option)


def _select_prompt_fields(fields: Sequence[RequestField]) -> list[RequestField]:
    """Select the fields that may take the prompt: Eval Gate's own, else the only required one, else all."""
    able = [one for one in fields if one.prompt]
    required = [one for one in able if one.required and one.value is None]
    own = [one for one in able if one.place == _OWN_FIELD]
    return own or (required if len(required) == 1 and len(able) > 1 else able)


def _find_model_place(route: AgentRoute) -> tuple[str, ...]:
    return next((one.place for one in route.fields if one.place[-1] == "model"), ())


def _needs_reading(route: AgentRoute, settings: Mapping[str, JsonValue]) -> bool:
    return route.protocol is None and not route.is_text and not {"agentProtocol", "responseFormat"} & settings.keys()


def _build_entry(request: AgentRequest, url: str, settings: Mapping[str, JsonValue]) -> Settings:
    """Build the description of a target that gets this request."""
    route = request.route
    entry: Settings = {"name": TARGET_NAME, "provider": "http", "url": url}
    entry |= {"agentProtocol": str(route.protocol)} if route.protocol else {}
    entry |= {"responseFormat": "text"} if route.is_text else {}
    for name, secret in _name_variables([one for one in route.headers if one.required]).items():
        _set_value(entry, ("headers", name), secret)
    for place, value in request.values:
        _set_value(entry, place, value)
    _merge(entry, {**request.reading, **settings})
    if entry.get("requestTemplate") == {"message": "{{message}}"} and route.protocol is None:
        del entry["requestTemplate"]  # Eval Gate's own request
    return entry


def _name_variables(headers: Sequence[RequestHeader]) -> dict[str, str]:
    """Name the variables for the secrets of headers, by header, each with what stands before it."""
    words = ["AGENT_KEY"] if len(headers) == 1 else [f"AGENT_{to_variable_word(one.name)}" for one in headers]
    return {one.name: f"{one.prefix}${{{{ {word} }}}}" for one, word in zip(headers, words, strict=True)}


def _complete_agent(
    entry: Settings, route: AgentRoute, notes: list[str], wishes: StarterRequest, folder: Path, questions: Questions
) -> DescribedAgent:
    """Complete a description by a response to the prompt, or the described form of responses. Raises GateError."""
    url = str(entry["url"])
    prompt = wishes.prompt or questions.ask_for_prompt(f"POST {to_console_line(url, 200)}")
    is_known = entry.keys() > {"name", "provider", "url"} or route.fields or "agentProtocol" in wishes.flags
    if prompt is None and not is_known:
        return DescribedAgent(None, url, tuple(notes))
    document, output = route.sample, None
    if prompt is not None:
        optional = _name_variables([one for one in route.headers if not one.required])
        entry, output = probe_target(entry, prompt, folder, optional)
        document = parse_output(output)
    added = choose_reading(entry, document, questions) if _needs_reading(route, entry) else {}
    if added is None:
        return DescribedAgent(None, url, tuple(notes))
    entry |= added
    if output is None:
        return DescribedAgent(entry, url, tuple(notes))
    response = read_output(entry, output)
    return DescribedAgent(entry, url, (*notes, *_describe_probe(response)), response.cost_usd)


def choose_reading(entry: Mapping[str, JsonValue], document: JsonValue, questions: Questions) -> Settings | None:
    """Find the settings for where a response like this has its text and tool calls; None without a decision."""
    readings = list_readings(entry, document)
    choices = [Choice(one.label, one.option) for one in readings]
    at = questions.choose("where the response has its text and its tool calls", choices)
    return None if at is None else dict(readings[at].settings)


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


def _describe_command(
    command: str, settings: Settings, prompt: str | None, folder: Path, questions: Questions
) -> DescribedAgent:
    """Describe a command that is the agent; with a prompt, by the output of one call."""
    if not any(name in command for name in ("{PROMPT}", "{PROMPT_FILE}")):
        raise GateError(
            "invalid-configuration",
            "--agent-command has neither {PROMPT} nor {PROMPT_FILE}, so the agent would get no prompt",
            "add one of them, such as --agent-command 'python3 agent.py {PROMPT}'",
        )
    entry: Settings = {"name": TARGET_NAME, "provider": "cli", "command_template": command, **settings}
    prompt = prompt or questions.ask_for_prompt(f"`{to_console_line(command)}`")
    if prompt is None:
        return DescribedAgent(entry)
    _, output = probe_target(entry, prompt, folder)
    document = None if "agentProtocol" in settings else parse_output(output)
    if isinstance(document, dict) and not (_AGENTV_KEYS & document.keys()):
        added = choose_reading(entry, document, questions)
        if added is None:
            return DescribedAgent(None)
        entry |= added
        if "responsePath" not in entry and isinstance(document.get("response"), str):
            entry["responsePath"] = "response"  # without a setting, the output is text
    response = read_output(entry, output)
    return DescribedAgent(entry, notes=tuple(_describe_probe(response)), cost_usd=response.cost_usd)


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


def _describe_probe(response: Response) -> Iterator[str]:
    yield f'response    "{to_console_line(response.text, 200)}"'
    if response.tool_calls:
        yield f"tool calls  {to_console_line(format_first_few([one.name for one in response.tool_calls], 5), 200)}"
    elif not response.tool_calls_known:
        yield f"tool calls  unknown: the response lists none. {USE_A_TOOL}"


def _set_value(settings: Settings, place: tuple[str, ...], value: JsonValue) -> None:
    for key in place[:-1]:
        member = settings.setdefault(key, {})
        if not isinstance(member, dict):
            member = settings[key] = {}
        settings = member
    settings[place[-1]] = value


def _merge(settings: Settings, more: Mapping[str, JsonValue]) -> None:
    for key, value in more.items():
        member = settings.get(key)
        if isinstance(member, dict) and isinstance(value, dict):
            _merge(member, value)
        else:
            settings[key] = value
