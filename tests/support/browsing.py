"""What a person's browser gets who follows a link on GitHub: redirects, and the fragment that survives them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import httpx

from tests.support.github import FakeGitHub

WEB = "https://github.com"


@dataclass(frozen=True)
class Opened:
    """The page at the end."""

    text: str
    content_type: str
    disposition: str
    fragment: str


def follow(github: FakeGitHub, link: str) -> Opened:
    """Click on this link, signed in; `link` is on github.com, for which the fake stands."""
    assert link.startswith(f"{WEB}/"), link
    address, fragment = link.replace(WEB, github.base, 1), urlsplit(link).fragment
    while True:
        # a fragment is the browser's own: it is not sent, and one redirect after the other inherits it
        answer = httpx.get(address, headers={"Accept": "text/html"})
        if not answer.is_redirect:
            break
        address = urljoin(address, answer.headers["location"])
        fragment = urlsplit(address).fragment or fragment
    answer.raise_for_status()
    disposition = answer.headers.get("content-disposition", "").partition(";")[0]
    return Opened(answer.text, answer.headers["content-type"].partition(";")[0], disposition, fragment)
