"""The comment's link to a regression, clicked in a browser: redirects, fragment and all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.acceptance.test_acceptance_one_click import BEFORE, commented, regressions_in
from tests.support.browsing import WEB
from tests.support.github import fake_github


def test_third_regression_of_a_comment__clicked__shows_what_the_agent_used_to_say(chrome, tmp_path) -> None:
    with fake_github() as github, ThreadPoolExecutor(1) as apart:
        # in a thread of its own: the browser has an event loop in this one, and the agent needs another
        comment = apart.submit(commented, tmp_path, github).result()
        case, link = regressions_in(comment)[2]
        window = chrome.new_context(accept_downloads=True)
        page = window.new_page()
        complaints, downloads = [], []
        page.on("console", lambda said: complaints.append(said.text))
        page.on("download", lambda one: downloads.append(one.suggested_filename))
        page.goto(link.replace(WEB, github.base, 1))
        shown = page.locator("#case h2").inner_text(), page.locator("#case .sides").inner_text()
        there = page.url
        window.close()
        assert github.violations == []
    assert (downloads, complaints) == ([], [])
    assert there.startswith(github.storage.base)
    assert there.endswith(f"#{link.partition('#')[2]}")
    assert shown[0] == case
    assert all(word in shown[1] for word in BEFORE.split())
