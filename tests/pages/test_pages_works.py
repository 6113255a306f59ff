"""The page as it is used: keyboard, search, chips, links, differences, executions, ten thousand cases."""

from __future__ import annotations

import re

import pytest

from eval_gate.model.case import CaseKey
from eval_gate.reports.links import build_anchor
from eval_gate.reports.rendering import render
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace
from tests.pages.runs import LONG
from tests.support.behaviours import make_behaving
from tests.support.behaviours import make_details as make_calls
from tests.support.browser import opened
from tests.support.evidence import NOW, PULL_REQUEST, THEN, make_details, make_shown, sixty, with_evidence
from tests.support.graded import make_evaluator, make_graded, make_graded_suite
from tests.support.pages import page_data
from tests.support.program import gate
from tests.support.results import make_baseline_run, make_run, make_suite_result
from tests.support.verdicts import judge_against


@pytest.fixture
def seen(chrome, sixty):
    with opened(chrome, sixty) as found:
        yield found
        assert found.complaints == []


def ids(page) -> list[str]:
    return page.locator("#rows .id").all_text_contents()


def test_keyboard__from_the_verdict_to_the_third_regression_s_difference(seen) -> None:
    page = seen.page
    for _ in range(2):
        page.keyboard.press("j")
    assert page.locator("#case h2").inner_text() == "refund/arabic"
    assert page.evaluate("document.activeElement.tagName") == "H2"
    place = page.locator("#case .sides")
    assert place.locator("del").count() > 0
    assert place.locator("ins").count() > 0
    page.keyboard.press("k")
    assert page.locator("#case h2").inner_text() == "refund/terms"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.n") == "1"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#case h2").inner_text() == "refund/arabic"


def test_keyboard__only_tab_and_enter__reach_a_case_too(seen) -> None:
    page = seen.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('row')"):
            break
    page.keyboard.press("Enter")
    assert page.locator("#case h2").inner_text() == "refund/partial-order"
    assert page.evaluate("document.activeElement.tagName") == "H2"


def test_search__slash__finds_by_all_words_and_says_how_many(seen) -> None:
    page = seen.page
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("golden STATUS-1")
    assert page.locator("#count").inner_text() == "10 of 60 cases"
    assert sorted(ids(page)) == [f"refund/status-{number}" for number in range(10, 20)]
    page.keyboard.press("Escape")
    assert page.locator("#count").inner_text() == "60 cases"
    page.keyboard.type("japanese: i sent")
    assert ids(page) == ["refund/japanese"]
    page.keyboard.press("Enter")
    assert page.locator("#case h2").inner_text() == "refund/japanese"


def test_chips__classes_suite_and_passing__narrow_the_list(seen) -> None:
    page = seen.page
    page.get_by_role("button", name="1 new pass").click()
    assert ids(page) == ["refund/split"]
    page.get_by_role("button", name="7 regressions").click()
    assert len(ids(page)) == 8
    page.get_by_role("button", name="1 new pass").click()
    assert page.locator("#count").inner_text() == "7 of 60 cases"
    page.locator(".narrow summary").click()
    page.get_by_label("Suite", exact=True).select_option("evals/orders.golden.json")
    assert page.locator("#count").inner_text() == "0 of 60 cases"
    assert page.locator("#case").inner_text() == ""
    page.get_by_label("Suite", exact=True).select_option("All suites")
    page.get_by_role("button", name="7 regressions").click()
    page.get_by_role("button", name="53 of 60 pass").click()
    assert page.locator("#count").inner_text() == "53 of 60 cases"


@pytest.mark.parametrize("order", ["time", "drop", "name"])
def test_order__of_the_list__is_as_chosen(seen, sixty, order) -> None:
    rows = page_data(sixty.read_text())["rows"]
    seen.page.locator(".narrow summary").click()
    seen.page.get_by_label("Order", exact=True).select_option(order)
    place = {case_id: number for number, case_id in enumerate(rows["id"])}
    values = {
        "time": lambda n: -rows["ms"][n],
        "drop": lambda n: -rows["drop"].get(str(n), 0),
        "name": lambda n: rows["id"][n],
    }
    shown = [values[order](place[one]) for one in ids(seen.page)]
    assert shown == sorted(shown)
    assert seen.page.locator("#rows .head").count() == 0


def test_link__of_a_case__opens_it_and_is_the_one_that_others_make(chrome, sixty) -> None:
    key = CaseKey("evals/refunds.golden.json", "refund/terms")
    with opened(chrome, sixty, f"#{build_anchor(key)}") as seen:
        page = seen.page
        assert page.locator("#case h2").inner_text() == "refund/terms"
        link = page.locator(".ways li", has_text="Link").locator("code").inner_text()
        assert link == f"{sixty.as_uri()}#{build_anchor(key)}"
        page.keyboard.press("j")
        assert "#case-refunds-refund-arabic-" in page.url
        page.evaluate(f"location.hash = '{build_anchor(key)}'")
        page.locator("#case h2", has_text=re.compile("^refund/terms$")).wait_for()


def test_link__to_a_case_that_is_not_here__opens_the_page_as_it_is(chrome, sixty) -> None:
    with opened(chrome, sixty, "#case-refunds-refund-gone-00000000") as seen:
        assert seen.page.locator("#case h2").inner_text() == "refund/partial-order"
        assert seen.complaints == []


def test_sides__copied__are_the_answers_and_nothing_else(seen) -> None:
    page = seen.page
    rows = page.locator(".sides tbody tr")
    then, now = ("".join(rows.locator(f"td.{side} .text").all_text_contents()) for side in ("then", "now"))
    assert (then, now) == (THEN, NOW)
    assert page.locator(".sides del").all_text_contents()[0] == ", so"
    sign = "getComputedStyle(document.querySelector('.sides {}'), '::before').content"
    assert "−" in page.evaluate(sign.format("del"))
    assert "+" in page.evaluate(sign.format("ins"))


def test_sides__long_equal_parts__are_folded_until_asked_for(seen) -> None:
    page = seen.page
    page.keyboard.press("j")
    assert page.locator(".sides del").all_text_contents() == ["14"]
    assert page.locator(".sides ins").all_text_contents() == ["30"]
    assert page.locator(".sides tbody tr").count() < 10
    page.get_by_role("button", name="lines the same").click()
    assert "".join(page.locator(".sides td.now .text").all_text_contents()) == f"{LONG}You have 30 days.\n"


def test_calls__two_timelines__are_aligned(seen) -> None:
    rows = seen.page.locator(".timeline tbody tr")
    assert [" ".join(row.locator("th").inner_text().split()) for row in rows.all()] == [
        "≠ other arguments",
        "− missing in this run",
        "+ only in this run",
    ]
    assert rows.nth(0).locator("ins").inner_text().split() == [",", '"detail":', '"short"']
    assert "212 ms" in rows.nth(0).inner_text()
    assert rows.nth(2).locator(".tag").inner_text() == "failed"


def page_file(tmp_path, run):
    file = tmp_path / "page.html"
    file.write_text(render("html", run, PULL_REQUEST), encoding="utf-8")
    return file


def test_tags__one_of_the_table_is_selected__lists_its_cases(chrome, tmp_path) -> None:
    """A name that is not text would be markup; the buttons have the names of the filter."""
    names = ("refunds", "<b>vip</b> \u202e")

    def make_side(score: float):
        return make_graded_suite(
            [make_graded(f"c{at}", evaluators={"style": score, "tone": 0.5}, tags=(names[at % 2],)) for at in range(8)]
        )

    then, now = make_baseline_run(make_side(0.9)), make_run(make_side(0.8))
    run = judge_against(now, Baseline(then, "main"))
    with opened(chrome, page_file(tmp_path, run)) as seen:
        page = seen.page
        assert page.locator("#metrics h3").inner_text() == "Evaluators and tags: 1 of 4 changed"
        assert page.locator("#metrics tbody tr").first.inner_text().startswith("lower style")
        buttons = page.locator("#metrics tbody button")
        assert buttons.count() == 2
        page.locator("#search").fill("c0")
        page.locator("#metrics button", has_text="vip").click()
        assert sorted(ids(page)) == ["c1", "c3", "c5", "c7"]
        assert page.locator("#by-tag").input_value() == "1"
        page.locator("#metrics button", has_text="refunds").click()
        assert sorted(ids(page)) == ["c0", "c2", "c4", "c6"]
        assert page.locator("#metrics b").count() == 0
        assert seen.complaints == []


def test_evaluators__one_of_the_table_is_selected_by_keyboard__lists_its_cases(chrome, tmp_path) -> None:
    """Evaluators and members of composites have names from files; the keyboard goes on in the list."""
    odd = "<b>tone</b> \u202e"

    def make_side(score: float):
        judge = replace(
            make_evaluator("policy", score),
            type="composite",
            evaluator_results=(make_evaluator("facts", score), make_evaluator(odd, 0.5)),
        )
        with_judge = [make_graded(f"j{at}", evaluators={"style": 0.5}, evaluator_results=(judge,)) for at in range(8)]
        return make_graded_suite([*with_judge, *(make_graded(f"p{at}", evaluators={"style": 0.5}) for at in range(4))])

    run = judge_against(make_run(make_side(0.8)), Baseline(make_baseline_run(make_side(0.9)), "main"))
    with opened(chrome, page_file(tmp_path, run)) as seen:
        page = seen.page
        names = page.locator("#metrics tbody button").all_inner_texts()
        assert sorted(names) == ["policy", "policy / <b>tone</b>", "policy / facts", "style"]
        page.locator("#search").fill("p0")
        page.locator("#metrics button", has_text="policy / facts").focus()
        page.keyboard.press("Enter")
        assert page.locator("#count").inner_text() == "8 of 12 cases"
        assert sorted(ids(page)) == [f"j{at}" for at in range(8)]
        assert page.evaluate("document.activeElement.id") == "list"
        assert page.get_by_label("Evaluator", exact=True).locator("option:checked").inner_text() == "policy / facts"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.classList.contains('row')")
        page.get_by_label("Evaluator", exact=True).focus()
        page.keyboard.type("style")
        assert sorted(ids(page)) == [f"p{at}" for at in range(4)]
        page.keyboard.press("Home")
        assert page.locator("#count").inner_text() == "12 cases"
        assert page.locator("#metrics b").count() == 0
        assert seen.complaints == []


def test_evaluators__every_case_has_the_same__have_no_filter(chrome, tmp_path) -> None:
    cases = [make_graded(f"c{at}", evaluators={"style": 0.5, "tone": 0.5}) for at in range(4)]
    suite = make_graded_suite([*cases, make_graded("e", status="error")])
    run = judge_against(make_run(suite), Baseline(make_baseline_run(suite), "main"))
    with opened(chrome, page_file(tmp_path, run)) as seen:
        assert seen.page.locator("#metrics tbody tr").count() == 2
        assert seen.page.locator("#metrics button, #by-evaluator").count() == 0
        assert seen.complaints == []


def test_list__removed_cases_and_errors__are_counted_and_named(chrome, tmp_path) -> None:
    then = make_graded_suite([make_graded(name, 0.9) for name in ("a", "gone")])
    now = make_graded_suite([make_graded("a", 0.5, error="too short"), make_graded("b", status="error")])
    run = judge_against(make_run(now), Baseline(make_baseline_run(then), "main"))
    with opened(chrome, page_file(tmp_path, run)) as seen:
        page = seen.page
        assert page.locator("#count").inner_text() == "2 cases and 1 removed"
        assert page.locator("#case .seen").inner_text().count("too short") == 1
        page.get_by_role("button", name="1 case without a score").click()
        assert page.locator("#count").inner_text() == "1 of 2 cases and 1 removed"
        assert seen.complaints == []


def test_executions__each_dot__opens_its_answer(chrome, tmp_path) -> None:
    with opened(chrome, page_file(tmp_path, sixty())) as seen:
        page = seen.page
        dots = page.locator("button.dot")
        assert dots.count() == 4
        assert dots.nth(0).get_attribute("aria-pressed") == "true"
        dots.nth(2).click()
        assert "I do not know." in page.locator(".answers").inner_text()
        assert dots.nth(2).get_attribute("aria-pressed") == "true"
        dots.nth(0).click()
        assert "".join(page.locator(".sides td.now .text").all_text_contents()) == NOW


def test_checks__judge_and_members__are_under_their_names(chrome, tmp_path) -> None:
    with opened(chrome, page_file(tmp_path, sixty())) as seen:
        page = seen.page
        checks = page.locator(".checks").first
        assert checks.locator("b").all_inner_texts() == ["issue_refund is called", "policy", "facts", "tone"]
        assert "1.00 → 0.25" in checks.inner_text()
        assert checks.locator("figcaption").inner_text() == "policy (gpt-5-mini) says"
        checks.get_by_text("Prompt of the LLM judge: gpt-5-mini").click()
        checks.get_by_text("You are a strict reviewer of refunds.").wait_for()  # a fold is filled a moment later
        page.get_by_text("This PR: 5 messages").click()
        page.locator(".talk li").nth(4).wait_for()
        assert page.locator(".talk li").count() == 5
        assert page.locator(".past li").count() == 20


def test_copy__rerun_command__is_on_the_clipboard(chrome, sixty) -> None:
    with opened(chrome, sixty, permissions=["clipboard-read", "clipboard-write"]) as seen:
        page = seen.page
        page.get_by_role("button", name="Copy: Run it again").click()
        page.locator("#said", has_text=re.compile("^Copied$")).wait_for(state="attached")
        assert page.evaluate("navigator.clipboard.readText()").endswith("--case refund/partial-order")


def two(then: str, now: str):
    """A run of one regression with these answers."""
    here = make_shown("a", "failed", details=make_details(now))
    was = make_shown("a", details=make_details(then))
    return with_evidence(
        *(make(make_suite_result([one])) for make, one in ((make_run, here), (make_baseline_run, was))), 0
    )


def test_difference__hostile_pair__ends_and_says_so(chrome, tmp_path) -> None:
    then, now = (" ".join(f"{word}{number * 7919 % 10007}" for number in range(9_000)) for word in "ab")
    with opened(chrome, page_file(tmp_path, two(then, now))) as seen:
        assert "Too different to compare by word" in seen.page.locator(".answers").inner_text()
        assert seen.complaints == []


def test_difference__same_answers__are_shown_once(chrome, tmp_path) -> None:
    with opened(chrome, page_file(tmp_path, two("As it was.", "As it was."))) as seen:
        assert "Both responses are the same" in seen.page.locator(".answers").inner_text()
        assert seen.page.locator(".answers .text").all_inner_texts() == ["As it was."]


def test_thousands__page__has_few_elements_and_all_cases(chrome, thousands) -> None:
    with opened(chrome, thousands) as seen:
        page = seen.page
        page.wait_for_selector("#case .sides")
        assert thousands.stat().st_size < 2_000_000
        assert seen.nodes() < 4_000
        assert page.locator("#rows li").count() < 40
        assert page.locator("#count").inner_text() == "10,000 cases"
        page.locator("#list").evaluate("list => { list.scrollTop = list.scrollHeight; }")
        page.locator("#rows", has_text="area-39/case-0249").wait_for()
        assert page.locator("#rows li").count() < 40


def test_thousands__link_to_the_last_case__opens_it_and_shows_its_row(chrome, thousands) -> None:
    key = CaseKey("evals/area-39/support.yaml", "area-39/case-0249 of customers")
    with opened(chrome, thousands, f"#{build_anchor(key)}") as seen:
        page = seen.page
        assert page.locator("#case h2").inner_text() == key.case_id
        page.locator("#case", has_text="passing ones are only listed").wait_for()
        assert page.locator("a.row[aria-current]").inner_text().startswith("✓")


def test_thousands__search_and_filter__find_the_needle(chrome, thousands) -> None:
    with opened(chrome, thousands) as seen:
        page = seen.page
        page.locator("#search").fill("area-17 case-0111")
        assert ids(page) == ["area-17/case-0111 of customers"]
        page.locator("#search").fill("")
        page.get_by_role("button", name="500 regressions").click()
        assert page.locator("#count").inner_text() == "500 of 10,000 cases"


def test_thousands__link_to_a_regression__is_read_and_keeps_the_focus_while_it_is_unpacked(chrome, thousands) -> None:
    key = CaseKey("evals/area-39/support.yaml", "area-39/case-0011 of customers")
    with opened(chrome, thousands, f"#{build_anchor(key)}") as seen:
        seen.page.wait_for_selector("#case .sides")
        assert seen.page.locator("#case h2").inner_text() == key.case_id
        assert seen.page.evaluate("document.activeElement.tagName") == "H2"


def test_thousands__browser_that_cannot_unpack__says_so(chrome, thousands) -> None:
    with opened(chrome, thousands) as seen:
        seen.page.add_init_script("delete globalThis.DecompressionStream")
        seen.page.reload()
        seen.page.locator("#case", has_text="cannot unpack").wait_for()


def test_results_of_another_tool__what_its_format_never_carries__leaves_no_gap(chrome, tmp_path) -> None:
    def junit(failing: int | None) -> str:
        cases = "".join(
            f'<testcase classname="tests.test_bot" name="test_{number}" time="0.2">'
            + ('<failure message="assert 3 == 4">E  assert 3 == 4</failure>' if number == failing else "")
            + "</testcase>"
            for number in range(5)
        )
        (tmp_path / "junit.xml").write_text(f'<testsuite name="pytest">{cases}</testsuite>')
        return "junit.xml"

    for _ in range(3):
        gate(tmp_path, "check", junit(None))
    done = gate(tmp_path, "check", junit(3), "--baseline", "latest", "--report", "html=page.html")
    assert done.returncode == 1
    with opened(chrome, tmp_path / "page.html") as seen:
        case = seen.page.locator("#case").inner_text()
        sides = seen.page.locator("#case .answers").text_content()
        assert seen.complaints == []
    assert "assert 3 == 4" in case
    assert sides == "Baseline: ✓ pass 200 ms · This run: ✕ fail 200 ms"
    for absent in ("not stored", "Tool calls", "Prompt", "Conversation", "assertions run", "None"):
        assert absent not in case


def test_cases_that_pass_and_behave_differently__have_a_filter_a_mark_and_both_sides(chrome, tmp_path) -> None:
    then = [make_behaving(f"case-{number}", make_calls([("lookup", {"id": "A7"})])) for number in range(4)]
    calls = [("lookup", {"id": "<b>B9</b>"}), ("send`|", {})]
    now = [make_behaving("case-2", make_calls(calls)), *(one for one in then if one.id != "case-2")]
    run = judge_against(make_run(make_suite_result(now)), Baseline(make_baseline_run(make_suite_result(then)), "main"))
    (tmp_path / "page.html").write_text(render("html", run, PULL_REQUEST))
    with opened(chrome, tmp_path / "page.html") as seen:
        page = seen.page
        page.get_by_role("button", name="1 pass and behave differently").click()
        assert ids(page) == ["case-2"]
        assert page.locator("#rows .different").all_inner_texts() == ["different"]
        page.keyboard.press("j")
        assert "behaves differently" in page.locator("#case .status").inner_text()
        rows = page.locator("#case section", has_text="What is different").locator("tbody tr").all_inner_texts()
        assert rows == ['parameter id of lookup\t"A7"\t"<b>B9</b>"', "new tool\t–\tsend`|"]
        assert page.locator("#case .timeline").count() == 1
        assert seen.complaints == []
        assert seen.violations() == []
