"""Ids and addresses of traces, with the one rule for links to them: a link goes only where the configuration says.

Responses and result files are untrusted. The team's `traceUrl` makes the link of an id; an address is a link only at
the origin of `traceUrl`.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, urlsplit

from eval_gate.model.limits import TRACE_ADDRESS, TRACE_ID
from eval_gate.text.mask import MASK
from eval_gate.text.urls import PORTS, find_url_problem

_PLACEHOLDER: Final = "{{traceId}}"
_TRACE: Final = re.compile(r"[\x21-\x7e]+")
_ADDRESS: Final = re.compile(r"(https?://[A-Za-z0-9._:\[\]-]+)((?:[/?#].*)?)")
"""An address without a user: its origin and the rest."""
_SAFE: Final = "%/:?#@!$&*+,;=~"
"""Characters that stay as they are in a link; Markdown and HTML give none of them a meaning there."""


def parse_trace_template(text: str) -> str:
    """Validate an address with `{{traceId}}` behind its host. Raises ValueError for a person."""
    if (problem := find_url_problem(text)) is not None:
        raise ValueError(problem)
    match = _ADDRESS.fullmatch(text)
    if match is None or (match[2].count(_PLACEHOLDER), text.count("{{")) != (1, 1) or len(text) > TRACE_ADDRESS:
        example = f"https://traces.example/{_PLACEHOLDER}"
        raise ValueError(f"must be like {example}: {_PLACEHOLDER} once, behind the host, and no user")
    prefix, _, suffix = match[2].partition(_PLACEHOLDER)
    return f"{match[1]}{quote(prefix, safe=_SAFE)}{_PLACEHOLDER}{quote(suffix, safe=_SAFE)}"


def clean_trace(text: str | None) -> str | None:
    """Return the id or address of a trace as it may be stored; None for what is neither, such as a sentence.

    An id of zeros stands for no trace (W3C Trace Context), one of dots for another folder of `traceUrl`.
    """
    text = (text or "").strip()
    if not text.strip("0."):
        return None
    limit = TRACE_ID if "://" not in text else TRACE_ADDRESS if _find_origin(text) else 0
    return text if len(text) <= limit and _TRACE.fullmatch(text) else None


def build_trace_url(trace: str | None, template: str | None) -> str | None:
    """Build the link to a trace as `clean_trace` returns it; None without a template, or at another origin."""
    if trace is None or template is None or MASK in trace:
        return None
    if "://" not in trace:
        return template.replace(_PLACEHOLDER, quote(trace, safe=""))
    match = _ADDRESS.fullmatch(trace)
    if match is None or _find_origin(trace) != _find_origin(template):
        return None
    return match[1] + quote(match[2], safe=_SAFE)


def _find_origin(address: str) -> tuple[str, str | None, int | None] | None:
    """Find scheme, host and port of an HTTP address; None if it has a user, or is none."""
    if _ADDRESS.fullmatch(address) is None or find_url_problem(address) is not None:
        return None
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]
