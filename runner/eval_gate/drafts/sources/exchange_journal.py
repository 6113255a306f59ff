"""Recorded exchanges: a journal with a line for each, as `read_log` reads it by default.

A line is written before the next exchange is recorded, so a killed recording loses nothing that was complete.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from eval_gate.drafts.sources.source_messages import UserPrompt
from eval_gate.files.writing import append_line
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.limits import DRAFT_LINE_BYTES, DRAFT_SOURCE_BYTES
from eval_gate.results.masking import TextChange, TextMasking, map_value
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.connection import ResponseHead
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.response.stream import BodyReader
from eval_gate.text.javascript.regex import PatternError, PatternMatcher, PatternWorkerError
from eval_gate.text.key_forms import mask_keys
from eval_gate.text.mask import MASK
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.excerpt import format_excerpt


class RecordedExchange(FrozenStruct):
    """One question with its response, or with the reason why there is none."""

    prompt: UserPrompt
    response: Response | None = None
    error: str | None = None


async def mask_entry(
    exchange: RecordedExchange, redact: TextChange, patterns: Sequence[str], matcher: PatternMatcher
) -> dict[str, JsonValue] | None:
    """Build the line of an exchange without secrets, keys and the matches of the team's `redact` patterns.

    Return None if its texts could not be searched for the patterns.
    """

    def mask_text(text: str) -> str:
        return mask_keys(redact(text))

    if not patterns:
        return build_entry(exchange, mask_text)
    masked = TextMasking()
    build_entry(exchange, lambda text: masked.collect_text(mask_text(text)))
    try:
        masked.set_masked(await matcher.replace_matches(patterns, masked.texts, MASK))
    except (PatternError, PatternWorkerError):
        return None
    return build_entry(exchange, lambda text: masked.mask_text(mask_text(text)))


def build_entry(exchange: RecordedExchange, change: TextChange) -> dict[str, JsonValue]:
    """Build the line of an exchange with every text changed, except for names of tools."""
    prompt = exchange.prompt
    question: JsonValue = change(prompt.text)
    if prompt.earlier_messages:
        earlier: list[JsonValue] = [
            {"role": one.role, "content": change(str(one.content))} for one in prompt.earlier_messages
        ]
        question = [*earlier, {"role": "user", "content": question}]
    entry: dict[str, JsonValue] = {"message": question}
    if exchange.response is not None:
        entry["response"] = change(exchange.response.text)
        if exchange.response.tool_calls_known:
            entry["toolCalls"] = [_build_call(call, change) for call in exchange.response.tool_calls]
    if exchange.error is not None:
        entry["error"] = change(exchange.error)
    return entry


def _build_call(call: ToolCall, change: TextChange) -> dict[str, JsonValue]:
    built: dict[str, JsonValue] = {"name": call.name, "params": map_value(call.params, change)}
    optional: dict[str, JsonValue] = {
        "success": call.success,
        "durationMs": call.duration_ms,
        "result": map_value(call.result, change),
    }
    return built | {name: value for name, value in optional.items() if value is not None}


class ExchangeJournal:
    """Journal of a recording; `append` survives a kill at any time."""

    def __init__(self, file: Path) -> None:
        """Continue an earlier recording, or begin one. Raises GateError if it cannot be written."""
        append_line(file, b"")
        self._file = file
        self.earlier_bytes = self._size = file.stat().st_size
        """Size of the earlier recording."""

    def append(self, entry: dict[str, JsonValue]) -> bool:
        """Write a line if the journal can still be read with it, and return whether. Raises GateError."""
        line = json.dumps(entry, allow_nan=False).encode() + b"\n"
        if len(line) > DRAFT_LINE_BYTES or self._size + len(line) > DRAFT_SOURCE_BYTES:
            return False
        append_line(self._file, line)
        self._size += len(line)
        return True


def parse_response(
    settings: HttpSettings, redact: Redactor, head: ResponseHead, body: bytes, duration_ms: float
) -> Response:
    """Parse a whole response without compression as a target describes it. Raises TargetError."""
    if len(body) > settings.max_response_bytes:
        what = f"the response is larger than {settings.max_response_bytes:,} bytes"
        raise TargetError(what, fault=TargetFault.MALFORMED)
    masked = redact.mask_bytes(body)
    if not head.is_success:
        excerpt = f": {format_excerpt(masked)}" if masked.strip() else ""
        raise TargetError(f"agent error: HTTP {head.status} {head.reason}{excerpt}", fault=TargetFault.REFUSED)
    return BodyReader(settings, redact.mask_bytes).read(masked, duration_ms, head.charset)
