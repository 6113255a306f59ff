"""GitHub's web pages, as far as a person follows links of ours: an artifact of a run. It shares the API's host here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tests.support.github.loopback import Answer, Request

if TYPE_CHECKING:
    from tests.support.github.server import FakeGitHub

_ARTIFACT: Final = re.compile(r"/(?P<repository>[^/]+/[^/]+)/actions/runs/(?P<run>[0-9]+)/artifacts/(?P<id>[0-9]+)")


class Web:
    """What a person who is signed in gets."""

    def __init__(self, github: FakeGitHub) -> None:
        self.github = github

    def answers(self, request: Request) -> bool:
        """Whether it is one of these pages, and no call of the API."""
        return request.method == "GET" and _ARTIFACT.fullmatch(request.path) is not None

    def answer(self, request: Request) -> Answer:
        """A redirect to the blob: a browser shows one that is no archive, and downloads an archive."""
        match = _ARTIFACT.fullmatch(request.path)
        assert match is not None
        found = self.github.state.artifacts.get(int(match["id"]))
        known = found is not None and found.run_id == int(match["run"])
        if not known or found.expired or match["repository"] != self.github.state.full_name:
            return Answer(404, raw=b"<!DOCTYPE html><title>Page not found</title>", content_type="text/html")
        return Answer(302, headers={"Location": self.github.storage.offer(found, inline=True)})
