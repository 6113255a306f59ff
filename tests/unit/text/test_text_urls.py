"""URLs as they may be shown."""

from __future__ import annotations

import pytest

from eval_gate.errors import GateError
from eval_gate.text.urls import public_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://desk:8080/chat", "http://desk:8080/chat"),
        ("https://user:secret@desk/chat?key=secret#secret", "https://desk/chat"),
        ("http://[::1]:1/", "http://[::1]:1/"),
    ],
)
def test_public_url__address__is_shown_without_what_is_nobodys_business(url, shown) -> None:
    assert public_url(url) == shown


@pytest.mark.parametrize("url", ["ftp://desk/", "desk", "http://", "http://desk:0/", "http://desk:x/", "http://[::1/"])
def test_public_url__no_address__is_refused_without_repeating_it(url) -> None:
    with pytest.raises(GateError) as caught:
        public_url(url)
    assert caught.value.code == "invalid-url"
    assert url not in caught.value.message
