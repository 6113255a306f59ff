"""A conversation on the page of a run: turn by turn, the one to look at open."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_gate.reports.rendering import render
from eval_gate.struct import replace
from tests.support.browser import DESK, PHONE, opened
from tests.support.chat_results import BEFORE, FORGOT, NOT_SENT, STATES, forgetful, make_conversation
from tests.support.evidence import PULL_REQUEST


def write_page(folder: Path, run) -> Path:
    file = folder / "page.html"
    file.write_text(render("html", run, PULL_REQUEST), encoding="utf-8")
    return file


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("state", STATES)
def test_page__conversation__fits_and_complains_of_nothing(chrome, tmp_path, state, size) -> None:
    with opened(chrome, write_page(tmp_path, STATES[state]()), size=size) as seen:
        seen.page.locator("a.row").first.click()
        for turn in seen.page.locator(".turns details:not([open]) > summary").all()[::-1]:
            turn.click()
        assert seen.page.locator(".turns details:not([open])").count() == 0
        assert seen.violations() == []
        assert seen.overflow() == 0
        assert seen.complaints == []


def test_page__regression_in_turn_3__is_open_and_the_others_are_one_line(chrome, tmp_path) -> None:
    with opened(chrome, write_page(tmp_path, forgetful())) as seen:
        turns = seen.page.locator(".turns > li")
        assert [turn.locator("summary").inner_text() for turn in turns.all()] == [
            "✓ Turn 1 of 5 · pass · find_order · same",
            "✓ Turn 2 of 5 · pass · same",
            "✕ Turn 3 of 5 · pass → fail · find_order, find_order · other calls",
            "– Turn 4 of 5 · pass → not sent",
            "– Turn 5 of 5 · pass → not sent",
        ]
        assert [turn.locator("details[open]").count() for turn in turns.all()] == [0, 0, 1, 0, 0]
        text = turns.nth(2).inner_text()
        assert all(words in text for words in (FORGOT[0], BEFORE[2][1], FORGOT[1], "only in this PR"))


def test_page__other_execution__its_own_turn_is_open(chrome, tmp_path) -> None:
    run = forgetful()
    (case, other) = run.suites[0].cases
    details = make_conversation((BEFORE[0], ("It arrived broken.", "Bad luck.", []), BEFORE[2], *NOT_SENT), "PFNNN")
    trials = tuple(replace(one, details=details) if one.failed_turn == 2 else one for one in case.trials)
    run = replace(run, suites=(replace(run.suites[0], cases=(replace(case, trials=trials), other)),))
    with opened(chrome, write_page(tmp_path, run)) as seen:
        seen.page.locator(".dot").nth(2).click()
        assert "Bad luck." in seen.page.locator(".turns > li").nth(1).inner_text()
        assert seen.page.locator(".turns details[open]").count() == 1
        seen.page.locator(".dot").nth(1).click()
        assert "The conversation of this PR is not stored." in seen.page.locator(".answers").inner_text()


def test_page__simulated_user__each_side_has_its_own_message(chrome, tmp_path) -> None:
    with opened(chrome, write_page(tmp_path, STATES["simulated-user"]())) as seen:
        assert "the simulated user ended: reached (its own claim)" in seen.page.locator(".answers").inner_text()
        second = seen.page.locator(".turns > li").nth(1)
        assert second.locator("td.then").first.inner_text() == "4711"
        assert second.locator("td.now").first.inner_text() == "no, my money back. order 4711"
        assert "only in this PR" in seen.page.locator(".turns > li").nth(2).inner_text()


def test_page__simulated_user_without_a_message__says_so_and_blames_no_response(chrome, tmp_path) -> None:
    with opened(chrome, write_page(tmp_path, STATES["simulated-user-error"]())) as seen:
        second = seen.page.locator(".turns > li").nth(1)
        assert second.locator("summary").inner_text().startswith("! Turn 2 · no message from the simulated user")
        assert "Nothing was sent to the agent, so the case has no score." in second.inner_text()
        assert seen.page.locator(".prompt summary").inner_text() == "User goal of the simulated user: get a refund …"
