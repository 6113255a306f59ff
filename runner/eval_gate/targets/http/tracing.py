"""Trace context of requests and responses (W3C Trace Context, W3C Baggage)."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from eval_gate.targets.base import Request
from eval_gate.targets.http.connection import ResponseHead
from eval_gate.text.untrusted.surrogates import to_well_formed

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_USUAL_HEADERS: Final = ("traceparent", "x-trace-id")
_MAX_CASE_ID: Final = 500
"""Characters of a case's id in `baggage`, which may have 8,192 bytes."""


def build_trace_headers(request: Request, baggage: str) -> Mapping[str, str]:
    """Build the headers of one request of an execution, with a span of its own; `baggage` is what it has already."""
    case_id = quote(to_well_formed(request.case_id[:_MAX_CASE_ID]), safe="")
    members = (baggage, f"eval-gate.case={case_id}", f"eval-gate.run={quote(request.run_id, safe='')}")
    return {
        "traceparent": f"00-{request.execution_id}-{secrets.token_hex(8)}-01",
        "baggage": ",".join(filter(None, members)),
    }


def find_trace_id(heads: Sequence[ResponseHead], header: str | None) -> str | None:
    """Find the trace in `header` of the newest response that has it, by default in one of the usual headers."""
    names = (header.lower(),) if header else _USUAL_HEADERS
    texts = (head.get_header(name).strip() for head in reversed(heads) for name in names)
    text = next(filter(None, texts), None)
    match = _TRACEPARENT.fullmatch(text or "")
    return match[1] if match else text
