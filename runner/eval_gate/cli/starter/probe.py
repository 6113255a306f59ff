"""Sends one prompt to a described target, and finds out where the response has its text and tool calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from eval_gate.cli.starter.choices import Choice, Questions
from eval_gate.cli.starter.response_places import find_calls, find_texts
from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, Response
from eval_gate.model.execution import ErrorCause
from eval_gate.process.signals import run_async
from eval_gate.targets.base import Request, TargetError
from eval_gate.targets.build import BuildContext
from eval_gate.targets.command.response import parse_response
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.command.streams.presets import read_stream
from eval_gate.targets.response.settings import StreamSettings
from eval_gate.targets.response.stream import BodyReader
from eval_gate.targets.target_list import ResolvedTarget, TargetList
from eval_gate.text.escape import to_console_line
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json

TIMEOUT_S: Final = 120.0
_OPTIONS: Final = {
    ErrorCause.WRONG_REQUEST: "--set requestTemplate.NAME=VALUE, or --set headers.NAME='${{ VARIABLE }}'",
    ErrorCause.ACCESS_REFUSED: "--set headers.Authorization='Bearer ${{ AGENT_KEY }}' with the key in this variable",
    ErrorCause.MODEL_NOT_FOUND: "--model NAME",
    ErrorCause.NOT_FOUND: "--agent-endpoint URL with another path",
    ErrorCause.WRONG_METHOD: "--agent-endpoint URL with another path, or --set method=GET",
}
"""Options of this command that change what a target refused."""

_CALL_SETTINGS: Final = {"toolCallsPath", "nameField", "argsField"}
_OWN_PATH: Final = "response"
"""Where Eval Gate's own protocol has the text."""


class _OutputTarget(Protocol):
    """A target whose output can be had before anything is read in it."""

    async def fetch_output(self, request: Request) -> bytes: ...

    async def aclose(self) -> None: ...


def resolve_entry(entry: Mapping[str, JsonValue]) -> ResolvedTarget:
    """Resolve a description as a run does. Raises GateError if it is wrong or a variable is not set."""
    return TargetList((dict(entry),), None, lambda _: None).resolve_target(None, os.environ)


def probe_target(entry: Mapping[str, JsonValue], prompt: str, root: Path) -> bytes:
    """Send the prompt once, and return the output. Raises GateError `probe-failed` with what the target said."""
    chosen = resolve_entry(entry)
    context = BuildContext(environment=os.environ, root=root)
    context.redact.include(chosen.redact)
    target: _OutputTarget = chosen.kind.build_target(chosen.settings, TargetChoice(), context)  # type: ignore[assignment]  # http and cli have it
    try:
        return context.redact.mask_bytes(run_async(_fetch_output(target, prompt)))
    except TargetError as error:
        error.mask_secrets(context.redact)
        raise _build_probe_error(error) from error
    except TimeoutError as error:
        raise GateError("probe-failed", f"no response within {TIMEOUT_S:g} s", "nothing was written") from error


async def _fetch_output(target: _OutputTarget, prompt: str) -> bytes:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await target.fetch_output(Request("probe", (Message(role="user", content=prompt),)))
    finally:
        await target.aclose()


def _build_probe_error(error: TargetError) -> GateError:
    option = _OPTIONS.get(error.cause)
    hint = "; ".join(one for one in (error.hint, option and f"in this command, add {option}") if one)
    return GateError("probe-failed", f"nothing was written: {error.message}", hint or None)


def describe_response(
    entry: Mapping[str, JsonValue], document: JsonValue, questions: Questions, *, is_sample: bool = False
) -> dict[str, JsonValue] | None:
    """Find the settings that say where a response like `document` has its text and tool calls.

    Return None where nobody decides it. With `is_sample` the document is built from a description, not a response.
    """
    added: dict[str, JsonValue] = {}
    calls = () if _CALL_SETTINGS & entry.keys() else find_calls(document)
    is_open = False
    if calls:
        lists = [Choice(f"{one.path}: {', '.join(one.names)}", _format_settings(one.settings)) for one in calls]
        at = questions.choose("which list of the response has the tool calls", lists, is_certain=calls[0].is_certain)
        is_open = at is None
        added |= calls[at].settings if at is not None else {}
    path = added.get("toolCallsPath", entry.get("toolCallsPath", "toolCalls"))
    texts = find_texts(document, str(path))
    if "responsePath" not in entry and texts and all(one.path != _OWN_PATH for one in texts):
        labels = [one.path if is_sample else f'{one.path}: "{to_console_line(one.text, 100)}"' for one in texts]
        choices = [
            Choice(label, ("--set", f"responsePath={one.path}")) for label, one in zip(labels, texts, strict=True)
        ]
        at = questions.choose("which text of the response is the answer", choices, is_certain=True)
        is_open |= at is None
        added |= {} if at is None else {"responsePath": texts[at].path}
    return None if is_open else added


def _format_settings(settings: Mapping[str, JsonValue]) -> tuple[str, ...]:
    return tuple(word for key, value in settings.items() for word in ("--set", f"{key}={value}"))


def parse_output(output: bytes) -> JsonValue:
    """Parse the output as JSON; None for any other."""
    try:
        return parse_untrusted_json(output)
    except UntrustedJsonError:
        return None


def read_output(entry: Mapping[str, JsonValue], output: bytes) -> Response:
    """Read the response in the output, as a run does. Raises GateError `probe-failed` if it has none."""
    settings = resolve_entry(entry).settings
    assert isinstance(settings, StreamSettings)
    try:
        if isinstance(settings, CliSettings) and not settings.given_response_settings:
            text, preset = output.decode("utf-8", "replace"), settings.agent_protocol
            return parse_response(text) if preset is None else read_stream(preset, text)
        return BodyReader(settings, lambda data: data).read(output, 0)
    except TargetError as error:
        raise _build_probe_error(error) from error
