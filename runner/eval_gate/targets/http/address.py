"""Addresses as a request needs them: what httpx makes of them, and without it where there is nothing to be made."""

from __future__ import annotations

import os
import re
import sys
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final

from eval_gate.struct import FrozenStruct, replace

if TYPE_CHECKING:
    import httpx

_PLAIN: Final = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>(?!xn--)[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?)"
    r"(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?P<target>(?P<path>/(?:[A-Za-z0-9_~/-]|(?<!/)\.|%[0-9A-Fa-f]{2})*)(?:\?(?:[A-Za-z0-9._~=&/-]|%[0-9A-Fa-f]{2})+)?)?"
)
"""An address in which nothing has to be quoted, made lower case or left out. To load httpx for it takes 30 ms."""
_LAST_PORT: Final = 65_535
_USUAL: Final = {"http": 80, "https": 443}


class Address(FrozenStruct):
    """Where a request goes. `netloc` and `target`, which is path and query, are ASCII as they are sent."""

    scheme: str
    host: str
    """In its own script; of IPv6 without brackets."""
    raw_host: str
    """As it is looked up: ASCII."""
    port: int
    netloc: str
    """`host:port` as the `Host` header has it: without the scheme's usual port."""
    target: str
    credentials: str = ""
    """`name:password`, to be sent as a header."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.target}"

    def at(self, host: str) -> Address:
        """The same at another host, a name or IPv4 address in plain ASCII."""
        if host == self.host:
            return self
        port = "" if self.port == _USUAL.get(self.scheme) else f":{self.port}"
        return replace(self, host=host, raw_host=host, netloc=host + port)


def address_of(text: str) -> Address:
    """The address in a text. Raises httpx.InvalidURL for none, ValueError for a host that can be none."""
    plain = _PLAIN.fullmatch(text)
    if plain is not None and _is_name_or_address(plain["host"]):
        scheme, host = plain["scheme"], plain["host"]
        port = int(plain["port"] or _USUAL[scheme])
        if port <= _LAST_PORT:
            netloc = host if port == _USUAL[scheme] else f"{host}:{port}"
            return Address(scheme, host, host, port, netloc, plain["target"] or "/")
    import httpx

    return _read(httpx.URL(text))


def joined(base: str, text: str) -> Address | None:
    """The address in a text that may be relative to `base`; None where there is none."""
    import httpx

    try:
        return _read(httpx.URL(base).join(text))
    except (httpx.InvalidURL, ValueError):
        return None


def _read(url: httpx.URL) -> Address:
    return Address(
        url.scheme,
        url.host,
        url.raw_host.decode("ascii"),
        url.port or _USUAL.get(url.scheme, 0),
        url.netloc.decode("ascii"),
        url.raw_path.decode("ascii"),
        f"{url.username}:{url.password}" if url.userinfo else "",
    )


def _is_name_or_address(host: str) -> bool:
    """False where it looks like an IPv4 address and is none: what is wrong with it, httpx says."""
    if not host.replace(".", "").isdigit():
        return True
    try:
        return str(IPv4Address(host)) == host
    except ValueError:
        return False


def proxies() -> dict[str, str]:
    """The proxies that the environment names, and on some systems their settings."""
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return {}  # to load what looks takes 10 ms
    from urllib.request import getproxies

    return getproxies()


def proxied(address: Address) -> bool:
    """Whether a proxy stands between, which accepts connections whoever is behind it."""
    found = proxies()
    if not {address.scheme, "all"} & found.keys():
        return False
    from urllib.request import proxy_bypass

    return not proxy_bypass(address.host)
