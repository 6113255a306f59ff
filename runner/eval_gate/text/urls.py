"""URLs as they may be shown and stored."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from eval_gate.errors import GateError

_HOST: Final = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?")


def url_problem(url: str) -> str | None:
    """What is wrong with it, for people and without repeating it; None for an http(s) URL with a host."""
    try:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0:
            return None
    except ValueError:  # a bad port, a bad IPv6 address
        pass
    host = re.split("[/?#]", url.strip(), maxsplit=1)[0].rpartition("@")[2]
    if "://" not in url and _HOST.fullmatch(host):
        return "the URL lacks http:// (or https://) at its beginning"
    return "the URL is not of the form http(s)://host[:port]/path"


def public_url(url: str) -> str:
    """The URL without credentials, query and fragment. Raises GateError for what is no http(s) URL with a host."""
    problem = url_problem(url)
    if problem is not None:
        raise GateError("invalid-url", problem, "a URL is such as http://localhost:8000/chat")
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
