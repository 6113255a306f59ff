"""The page as it is seen: in every width, in both colours, on paper, without a script, in any writing."""

from __future__ import annotations

import re

import pytest

from tests.support.browser import DESK, PHONE, SMALL_PHONE, opened
from tests.support.evidence import LANGUAGES

WIDTHS = {"desk": DESK, "phone": PHONE, "small-phone": SMALL_PHONE}
COLOURS = ("light", "dark")


@pytest.fixture(params=["nothing", "one", "sixty", "thousands"])
def any_page(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("width", WIDTHS)
def test_page__any_size__fits_its_window_and_complains_of_nothing(chrome, any_page, width) -> None:
    with opened(chrome, any_page, size=WIDTHS[width]) as seen:
        assert seen.overflow() == 0
        seen.page.keyboard.press("j")
        assert seen.overflow() == 0
        assert seen.complaints == []
        assert seen.requests == [any_page.as_uri()]


@pytest.mark.parametrize("width", ["phone", "small-phone"])
@pytest.mark.parametrize("place", range(6))
def test_phone__each_regression__fits_its_window(chrome, sixty, width, place) -> None:
    with opened(chrome, sixty, size=WIDTHS[width]) as seen:
        for _ in range(place + 1):
            seen.page.keyboard.press("j")
        for fold in seen.page.locator("#case summary").all():
            fold.click()
        assert seen.overflow() == 0


@pytest.mark.parametrize("colours", COLOURS)
@pytest.mark.parametrize("width", ["desk", "phone"])
def test_axe__verdict_and_list__finds_nothing(chrome, any_page, colours, width) -> None:
    with opened(chrome, any_page, size=WIDTHS[width], color_scheme=colours, bypass_csp=True) as seen:
        assert seen.violations() == []


@pytest.mark.parametrize("colours", COLOURS)
@pytest.mark.parametrize("width", ["desk", "phone"])
def test_axe__open_case_with_all_folds_open__finds_nothing(chrome, sixty, colours, width) -> None:
    with opened(chrome, sixty, size=WIDTHS[width], color_scheme=colours, bypass_csp=True) as seen:
        seen.page.keyboard.press("j")
        for fold in seen.page.locator("#case summary").all():
            fold.click()
        assert seen.violations() == []
        seen.page.locator("#chips button").first.dispatch_event("click")
        assert seen.violations() == []


def test_phone__a_case__takes_the_list_s_place_until_back(chrome, sixty) -> None:
    with opened(chrome, sixty, size=PHONE) as seen:
        page = seen.page
        assert page.locator("#case").is_hidden()
        page.locator("a.row").nth(2).click()
        assert page.locator("#cases").is_hidden()
        assert "7 regressions" in page.locator("h1").inner_text()
        assert page.locator("#case h2").inner_text() == "refund/arabic"
        page.get_by_role("button", name="All cases").click()
        assert page.locator("#case").is_hidden()
        assert page.evaluate("document.activeElement.textContent").startswith("✕refund/arabic")
        assert page.evaluate("location.hash") == ""


def test_no_script__verdict_and_regressions__are_there_with_both_answers(chrome, sixty) -> None:
    with opened(chrome, sixty, java_script_enabled=False) as seen:
        page = seen.page
        assert "7 regressions" in page.locator("h1").inner_text()
        assert page.locator("#cases").is_hidden()
        shown = page.locator(".plain").inner_text()
        assert "refunded 39.80 EUR" in shown
        assert "passed your request to a colleague" in shown
        assert page.locator("article").count() == 7
        assert page.locator("#rules").is_visible()
        assert seen.complaints == []


def test_no_script__anchor_of_a_case__leads_to_it(chrome, sixty) -> None:
    anchor = re.search(r'<article id="(case-refunds-refund-hindi-[0-9a-f]{8})">', sixty.read_text())[1]
    with opened(chrome, sixty, f"#{anchor}", java_script_enabled=False) as seen:
        assert seen.page.evaluate("document.querySelector(':target h3').textContent") == "refund/hindi"
        assert seen.page.evaluate("scrollY") > 0


def test_print__regressions__stand_there_with_their_answers(chrome, sixty) -> None:
    with opened(chrome, sixty) as seen:
        seen.page.emulate_media(media="print")
        assert seen.page.locator(".panes").is_hidden()
        assert seen.page.locator(".top .why").first.evaluate("why => getComputedStyle(why).display") == "block"
        shown = seen.page.locator(".plain").inner_text()
        assert "refunded 39.80 EUR" in shown
        assert "passed your request to a colleague" in shown
        assert seen.page.locator("#rules").is_visible()
        assert seen.page.pdf()[:5] == b"%PDF-"


@pytest.mark.parametrize(("name", "direction"), [("arabic", "rtl"), ("hindi", "ltr"), ("japanese", "ltr")])
def test_writing__answers__run_in_their_direction_and_differ_by_word(chrome, sixty, name, direction) -> None:
    with opened(chrome, sixty) as seen:
        page = seen.page
        page.locator("a.row", has_text=f"refund/{name}").click()
        cells = page.locator(".sides .text")
        assert [cell.evaluate("cell => getComputedStyle(cell).direction") for cell in cells.all()] == [direction] * 2
        assert [cell.text_content() for cell in cells.all()] == list(LANGUAGES[name])
        gone = "".join(page.locator(".sides del").all_text_contents())
        assert 0 < len(gone) < len(LANGUAGES[name][0])


def test_hostile_answers__are_text(chrome, sixty) -> None:
    with opened(chrome, sixty) as seen:
        page = seen.page
        page.locator("a.row", has_text="refund/hostile").click()
        for fold in page.locator("#case summary").all():
            fold.click()
        shown = page.locator("#case").inner_text()
        assert shown.count("<script>alert(1)</script><img src=https://evil.test/x onerror=alert(2)>") >= 4
        assert page.locator("#case img, #case script, #case style, #case a[href^=javascript]").count() == 0
        assert page.locator("a[href*=evil]").count() == 0
        page.wait_for_timeout(200)
        assert seen.complaints == []
        assert seen.requests == [sixty.as_uri()]
