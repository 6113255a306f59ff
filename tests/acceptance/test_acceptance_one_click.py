"""From the pull request to why its third regression failed and what the agent used to say: two clicks, no download.

The first click opens the comment's link to the case; there is no second one to make, only a place to read. Nothing is
unpacked, and one file holds both sides.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.agents import Exchange, agent
from tests.support.browsing import Opened, follow
from tests.support.github import FakeGitHub
from tests.support.jobs import Job

WEB = "https://github.com/acme/bot/"
CASES = ("hours", "refund/late", "refund/partial", "refund/gift card", "delivery")
BEFORE, HERE = "You get your money back within 14 days", "Please call us <b>tomorrow</b>"


async def good(exchange: Exchange) -> None:
    exchange.answer({"response": f"{BEFORE}: {exchange.json['message']}.", "toolCalls": []})


async def changed(exchange: Exchange) -> None:
    broken = "refund" in exchange.json["message"]
    said = f"{HERE if broken else BEFORE}: {exchange.json['message']}."
    exchange.answer({"response": said, "toolCalls": []})


def commented(folder: Path, github: FakeGitHub) -> str:
    """What is said on a pull request of which three cases regressed."""
    job = Job(folder, github)
    cases = [
        {"id": case, "input": {"message": f"what about {case}"}, "expect": {"responseContains": ["money back"]}}
        for case in CASES
    ]
    (job.workspace / "evals" / "support.golden.json").write_text(json.dumps(cases, indent=1))
    with agent(good) as running:
        assert job.push(running.url).code == 0
    with agent(changed) as running:
        assert job.pull_request(github.state.add_pull(7), running.url).code == 1
    (said,) = github.state.comments.values()
    return said.body


@pytest.fixture
def comment(tmp_path, github) -> str:
    return commented(tmp_path, github)


@dataclass
class Place(HTMLParser):
    """The words of the page's element with this id, as a reader without scripts has them."""

    wanted: str
    words: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        inside = bool(self._open) or ("id", self.wanted) in attrs
        if inside and tag not in {"br", "hr", "img", "input", "meta", "link", "wbr"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.words.append(data)


def read(opened: Opened) -> str:
    """What stands where the link leads."""
    place = Place(opened.fragment)
    place.feed(opened.text)
    return re.sub(r"\s+", " ", "".join(place.words))


def regressions_in(comment: str) -> list[tuple[str, str]]:
    """The regressions' names as they stand in the comment, each with its first link."""
    found = re.findall(r"\[`([^`]+)`\]\(([^)\s]+)\)", comment)
    return list(dict(reversed(found)).items())[::-1]


def test_third_regression_of_a_comment__one_click__shows_why_and_what_the_agent_used_to_say(comment, github) -> None:
    linked = dict(regressions_in(comment))
    assert list(linked) == ["refund/late", "refund/partial", "refund/gift card"]
    case, link = list(linked.items())[2]
    assert re.fullmatch(re.escape(WEB) + r"actions/runs/\d+/artifacts/\d+#case-[a-z0-9-]+", link)
    opened = follow(github, link)
    assert (opened.content_type, opened.disposition) == ("text/html", "inline")
    there = read(opened)
    assert case in there
    assert f"what about {case}" in there
    assert "responseContains" in there
    for said in (BEFORE, HERE):
        assert all(word in there for word in said.split()), there
    assert "<b>tomorrow</b>" not in opened.text


def test_every_regression__has_a_place_of_its_own(comment, github) -> None:
    opened = [follow(github, link) for _, link in regressions_in(comment)]
    assert len({one.fragment for one in opened}) == 3
    for (case, _), page in zip(regressions_in(comment), opened, strict=True):
        assert case in read(page)


def test_report_of_a_comment__one_click__is_the_page(comment, github) -> None:
    (link,) = re.findall(r"\[Open the report\]\(([^)]+)\)", comment)
    assert follow(github, link).fragment == ""
    assert "3 regressions" in follow(github, link).text
