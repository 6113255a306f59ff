"""Mask credentials and query parameters in URLs before they are shown or stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from eval_gate.errors import GateError
from eval_gate.text.mask import MASK
from eval_gate.text.quoting import looks_like_key

_ADDRESS: Final = re.compile(
    r"(?P<begin>[A-Za-z][A-Za-z0-9+.-]{0,20}://)(?P<user>[^\s/?#'\"]*@)?(?P<place>[^\s?#'\"]*)(?P<rest>[?#][^\s'\"]*)?"
)
PORTS: Final = {"http": 80, "https": 443}
"""The port of a URL without one, by its scheme."""
_HOST: Final = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?")
_CREDENTIAL: Final = re.compile(r"auth|credential|key|pass|secret|session|sig|token", re.IGNORECASE)
"""Names of parameters and headers whose values are secret."""


def find_url_problem(url: str) -> str | None:
    """Explain what is wrong with a URL without repeating it; None for an http(s) URL with a host."""
    try:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0:
            return None
    except ValueError:  # a bad port, a bad IPv6 address
        pass
    host = re.split("[/?#]", url.strip(), maxsplit=1)[0].rpartition("@")[2]
    if "://" not in url and _HOST.fullmatch(host):
        return "the URL does not begin with http:// or https://"
    return "the URL is not of the form http(s)://host[:port]/path"


def to_public_url(url: str) -> str:
    """Return the URL without credentials, query and fragment. Raises GateError `invalid-url`."""
    problem = find_url_problem(url)
    if problem is not None:
        raise GateError("invalid-url", problem, "write a URL such as http://localhost:8000/chat")
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def format_proxy(address: str) -> str:
    """Format a proxy's address for people: host and port, without its credentials."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        host = parts.hostname and f"{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        host = None
    return f"the proxy {host[:200]}" if host else "a proxy"


def is_credential_name(name: str) -> bool:
    """Whether the value of a parameter, header or cookie of this name is secret."""
    return _CREDENTIAL.search(name) is not None


def iter_url_secrets(url: str) -> Iterator[str]:
    """Yield a URL's password, else its user, and values of the query with a secret name or that look like a key."""
    parts = urlsplit(url)
    if user := unquote(parts.password or parts.username or ""):
        yield user
    for name, value in parse_qsl(parts.query):
        if is_credential_name(name) or looks_like_key(value):
            yield value


def mask_address(address: str) -> str:
    """Mask the user part, query and fragment of an address, which may be relative or invalid."""
    begin, slashes, rest = address.partition("://") if "://" in address else ("", "", address)
    place, mark = re.split("[?#]", rest, maxsplit=1)[0], re.search("[?#].", rest)
    host, slash, path = place.partition("/")
    if "@" in path and not _HOST.fullmatch(host):  # a password with a slash in it
        host, slash, path = place, "", ""
    user, at, host = host.rpartition("@")
    return f"{begin}{slashes}{MASK if user else ''}{at}{host}{slash}{path}{f'{mark[0][0]}{MASK}' if mark else ''}"


def mask_addresses(text: str) -> str:
    """Replace the user part, query and fragment of every address in the text with `***`."""
    return _ADDRESS.sub(_mask_match, text)


def _mask_match(match: re.Match[str]) -> str:
    user = f"{MASK}@" if match["user"] else ""
    rest = f"{match['rest'][0]}{MASK}" if match["rest"] and len(match["rest"]) > 1 else ""
    return f"{match['begin']}{user}{match['place']}{rest}"
