"""Addresses: what is read without a library is what the library makes of it."""

import subprocess
import sys

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.targets.http.address import Address, address_of, joined

_LONGER = ["..", "//", "/./", "/../", "%41", "%2f", "%4", ".well-known"]
_PIECES = st.sampled_from(
    [*"aB7-_~./%+=&?#:@ é[]'\"!*;,|^{}\\", "..", "//", "/./", "/../", "%41", "%2f", "%4", ".well-known"]
)
_NAMES = [
    "a",
    "example.org",
    "EXAMPLE.org",
    "localhost",
    "host.docker.internal",
    "a.",
    "-a",
    "a_b",
    "a..b",
    "u:p@a",
    "",
]
_FOREIGN_NAMES = ["xn--bcher-kva.example", "a.xn--bcher-kva", "bücher.example"]
_NUMBERS = ["127.0.0.1", "1.2.3", "1.2.3.4.5", "999.1.1.1", "01.2.3.4", "1", "[::1]"]
_HOSTS = st.sampled_from(["", *_NAMES, *_FOREIGN_NAMES, *_NUMBERS])
_PORTS = st.sampled_from(["", ":", ":80", ":443", ":8000", ":08", ":65535", ":65536", ":99999", ":0", ":x"])
_ADDRESSES = st.builds(
    lambda scheme, host, port, rest: scheme + "://" + host + port + "".join(rest),
    st.sampled_from(["http", "https", "HTTP", "ws"]),
    _HOSTS,
    _PORTS,
    st.lists(_PIECES, max_size=8),
)


def by_library(text: str) -> Address | str:
    try:
        url = httpx.URL(text)
        return Address(
            url.scheme,
            url.host,
            url.raw_host.decode(),
            url.port or {"http": 80, "https": 443}.get(url.scheme, 0),
            url.netloc.decode(),
            url.raw_path.decode(),
            f"{url.username}:{url.password}" if url.userinfo else "",
        )
    except (httpx.InvalidURL, ValueError) as error:
        return str(error)


@given(_ADDRESSES)
def test_address_of__any_text__is_what_the_library_says(text) -> None:
    try:
        found: Address | str = address_of(text)
    except (httpx.InvalidURL, ValueError) as error:
        found = str(error)

    assert found == by_library(text)


@pytest.mark.parametrize(
    ("text", "netloc", "target"),
    [
        ("http://localhost:8000/chat", "localhost:8000", "/chat"),
        ("http://localhost:80", "localhost", "/"),
        ("https://a.example/v1/chat?api-version=2024-06-01", "a.example", "/v1/chat?api-version=2024-06-01"),
        ("https://a.example:443/a%2Fb/.well-known", "a.example", "/a%2Fb/.well-known"),
        ("http://127.0.0.1:65535/", "127.0.0.1:65535", "/"),
        ("http://bücher.example/ü", "xn--bcher-kva.example", "/%C3%BC"),
    ],
)
def test_address_of__usual_ones__say_what_is_sent(text, netloc, target) -> None:
    found = address_of(text)

    assert (found.netloc, found.target) == (netloc, target)
    assert str(address_of(str(found))) == str(found)


def test_at__another_host__keeps_port_and_path() -> None:
    assert str(address_of("http://host.docker.internal:8000/chat?x=1").at("172.17.0.1")) == (
        "http://172.17.0.1:8000/chat?x=1"
    )


def test_joined__no_address__is_none() -> None:
    assert joined("http://a/x", "http://a:port/") is None
    assert str(joined("http://a:8000/x/y", "../z")) == "http://a:8000/z"


@pytest.mark.slow
def test_address_of__usual_one__loads_no_library() -> None:
    code = """
import sys
from eval_gate.targets.http.address import address_of, proxies
from eval_gate.targets.http.target import HttpTarget
address_of("http://localhost:8000/chat?x=1"), proxies()
print(*sorted({"httpx", "aiohttp", "urllib.request", "http.client"} & set(sys.modules)))
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={})

    assert told.stdout.split() == []
