"""URLs as they may be shown and stored."""

from __future__ import annotations

from urllib.parse import urlsplit

from eval_gate.errors import GateError


def public_url(url: str) -> str:
    """The URL without credentials, query and fragment. Raises GateError for what is no http(s) URL with a host."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bad port, a bad IPv6 address
        valid = False
    if not valid:
        raise GateError("invalid-url", "the URL is not of the form http(s)://host[:port]/path")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
