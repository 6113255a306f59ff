"""URLs as they may be shown."""

from __future__ import annotations

import pytest

from eval_gate.errors import GateError
from eval_gate.text.urls import mask_address, mask_addresses, to_public_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://desk:8080/chat", "http://desk:8080/chat"),
        ("https://user:secret@desk/chat?key=secret#secret", "https://desk/chat"),
        ("http://[::1]:1/", "http://[::1]:1/"),
    ],
)
def test_public_url__address__is_shown_without_what_is_nobodys_business(url, shown) -> None:
    assert to_public_url(url) == shown


@pytest.mark.parametrize("url", ["ftp://desk/", "desk", "http://", "http://desk:0/", "http://desk:x/", "http://[::1/"])
def test_public_url__no_address__is_refused_without_repeating_it(url) -> None:
    with pytest.raises(GateError) as caught:
        to_public_url(url)
    assert caught.value.code == "invalid-url"
    assert url not in caught.value.message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://bot:pw@127.0.0.1:1/chat?key=x", "http://***@127.0.0.1:1/chat?***"),
        ("--agent-endpoint=https://u@h/p#part", "--agent-endpoint=https://***@h/p#***"),
        ("curl 'https://a.b/c?d=e' | jq", "curl 'https://a.b/c?***' | jq"),
        ("http://a:b:c@d@h/x", "http://***@h/x"),
        ("postgres://u:p@h/db?sslmode=x and http://h2/?q", "postgres://***@h/db?*** and http://h2/?***"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
        ("http://h/x?", "http://h/x"),
        ("evals/a.json", "evals/a.json"),
    ],
)
def test_hide_in_addresses__text__shows_scheme_host_and_path(text, shown) -> None:
    assert mask_addresses(text) == shown


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://h/p", "http://h/p"),
        ("http://bot:pw@h:1/p?key=x#y", "http://***@h:1/p?***"),
        ("http://h/p?a=\"b c'd", "http://h/p?***"),
        ("http://bot:p w'x@h/p", "http://***@h/p"),
        ("http://bot:p/w@h/p", "http://***@h/p"),
        ("http://h:80/a@b", "http://h:80/a@b"),
        ("http://h/#part", "http://h/#***"),
        ("http://h/?", "http://h/"),
        ("/jobs/1?key=x", "/jobs/1?***"),
        ("bot:pw@h/p", "***@h/p"),
        ("acme", "acme"),
        ("", ""),
    ],
)
def test_shown_address__any_text__shows_scheme_host_and_path(address, shown) -> None:
    assert mask_address(address) == shown
