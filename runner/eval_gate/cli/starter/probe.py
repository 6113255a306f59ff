"""Send one prompt to a described target."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from eval_gate.config.settings import TargetChoice
from eval_gate.errors import GateError
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, Response
from eval_gate.model.execution import ErrorCause
from eval_gate.process.signals import run_async
from eval_gate.targets.base import Request, TargetError
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.command.programs import read_stream
from eval_gate.targets.command.response import parse_response
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.response.settings import StreamSettings
from eval_gate.targets.response.stream import BodyReader
from eval_gate.targets.target_list import ResolvedTarget, TargetList
from eval_gate.text.escape import format_first_few
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json

TIMEOUT_S: Final = 120.0
_OPTIONS: Final = {
    ErrorCause.WRONG_REQUEST: "--set requestTemplate.NAME=VALUE, or --set headers.NAME='${{ VARIABLE }}'",
    ErrorCause.MODEL_NOT_FOUND: "--model NAME",
    ErrorCause.NOT_FOUND: "--agent-endpoint URL with another path",
    ErrorCause.WRONG_METHOD: "--agent-endpoint URL with another path, or --set method=GET",
}
"""Options of this command that change what a target refused."""

NO_HEADERS: Final[Mapping[str, str]] = {}


class _OutputTarget(Protocol):
    """A target that returns its output before a response is read from it."""

    async def fetch_output(self, request: Request) -> bytes: ...

    async def aclose(self) -> None: ...


def resolve_entry(entry: Mapping[str, JsonValue]) -> ResolvedTarget:
    """Resolve a description as a run does. Raises GateError if it is wrong or a variable is not set."""
    return TargetList((dict(entry),), None, lambda _: None).resolve_target(None, os.environ)


def probe_target(
    entry: Mapping[str, JsonValue], prompt: str, root: Path, optional_headers: Mapping[str, str] = NO_HEADERS
) -> tuple[dict[str, JsonValue], bytes]:
    """Send the prompt once, and return the description with the output.

    If the target refuses access, the prompt is sent again with the optional headers whose variables are set. Raises
    GateError `probe-failed` with the target's response.
    """
    ready = {name: value for name, value in optional_headers.items() if os.environ.get(_get_variable(value))}
    with_headers = {**entry, "headers": {**ready, **_get_headers(entry)}}
    refused: TargetError | None = None
    for one in (dict(entry), with_headers):
        try:
            return one, _fetch_masked_output(one, prompt, root)
        except TargetError as error:
            refused = error
            if error.cause is not ErrorCause.ACCESS_REFUSED or not ready.keys() - _get_headers(entry).keys():
                break
    assert refused is not None
    raise _build_probe_error(refused, entry, optional_headers) from refused


def _get_variable(value: str) -> str:
    return value.rpartition("${{ ")[2].removesuffix(" }}")


def _get_headers(entry: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    headers = entry.get("headers")
    return headers if isinstance(headers, dict) else {}


def _fetch_masked_output(entry: Mapping[str, JsonValue], prompt: str, root: Path) -> bytes:
    chosen = resolve_entry(entry)
    context = BuildContext(environment=os.environ, root=root)
    context.redact.include(chosen.redact)
    target: _OutputTarget = chosen.kind.build_target(chosen.settings, TargetChoice(), context)  # type: ignore[assignment]  # http and cli have it
    try:
        return context.redact.mask_bytes(run_async(_fetch_output(target, prompt)))
    except TargetError as error:
        error.mask_secrets(context.redact)
        raise
    except TimeoutError as error:
        raise GateError("probe-failed", f"no response within {TIMEOUT_S:g} s", "nothing was written") from error


async def _fetch_output(target: _OutputTarget, prompt: str) -> bytes:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await target.fetch_output(Request("probe", (Message(role="user", content=prompt),)))
    finally:
        await target.aclose()


def _build_probe_error(
    error: TargetError, entry: Mapping[str, JsonValue], optional_headers: Mapping[str, str] = NO_HEADERS
) -> GateError:
    option = _OPTIONS.get(error.cause)
    hints = [error.hint, option and f"in this command, add {option}"]
    if error.cause is ErrorCause.ACCESS_REFUSED:
        hints.append(_describe_key(_get_headers(entry), optional_headers))
    return GateError("probe-failed", f"nothing was written: {error.message}", "; ".join(filter(None, hints)) or None)


def _describe_key(headers: Mapping[str, JsonValue], optional_headers: Mapping[str, str]) -> str:
    """Describe how to give the command the agent's key: by the headers that are sent, or described."""
    if headers:
        sent = [f"{name} ({value})" for name, value in headers.items()]
        return f"check what it gets in {format_first_few(sent, 3)}"
    if optional_headers:
        sets = [f"export {_get_variable(value)}=... for {name}" for name, value in optional_headers.items()]
        return f"its description names a header for it: {format_first_few(sets, 3)}, and repeat this command"
    return "in this command, add --set headers.Authorization='Bearer ${{ AGENT_KEY }}' with the key in this variable"


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
        raise _build_probe_error(error, entry) from error
