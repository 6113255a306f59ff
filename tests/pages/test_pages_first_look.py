"""The page as a reviewer sees it who has thirty seconds: what stands where, and that one fact is one number."""

from __future__ import annotations

import pytest

from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import CaseDetails, Status, Trial
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace
from tests.support.browser import PHONE, opened
from tests.support.evidence import PULL_REQUEST, make_details, make_shown, sixty
from tests.support.graded import make_evaluator, make_graded, make_graded_suite
from tests.support.results import make_baseline_run, make_run, make_suite_result
from tests.support.verdicts import judge_against

SCREEN = (1280, 900)
HEADER = 140
"""Pixels from the top at which the header of a wide window ends, at most."""
FIRST_ROW = 240
FIRST_DIFFERENCE = 520
PHONE_FIRST_ROW = 340
PHONE_FIRST_DIFFERENCE = 560
BOTTOM = "document.querySelector('header.top').getBoundingClientRect().bottom"


@pytest.fixture(params=["eight", "outage", "half", "sixty"])
def red(request):
    return request.getfixturevalue(request.param)


def top(page, selector: str) -> float:
    return page.locator(selector).first.bounding_box()["y"]


def headings(page) -> list[str]:
    return page.locator("#rows .head").all_inner_texts()


def file_of(folder, run, context=PULL_REQUEST):
    (folder / "page.html").write_text(render("html", run, context), encoding="utf-8")
    return folder / "page.html"


def compare(now, then, **fields):
    baseline = make_baseline_run(make_suite_result(list(then)), **fields)
    return judge_against(make_run(make_suite_result(list(now))), Baseline(baseline, "main"))


def test_wide_window__any_red_run__shows_the_first_case_with_its_responses(chrome, red) -> None:
    with opened(chrome, red, size=SCREEN) as seen:
        assert seen.page.evaluate(BOTTOM) <= HEADER
        assert top(seen.page, "a.row") <= FIRST_ROW
        assert top(seen.page, "#case .sides tbody") <= FIRST_DIFFERENCE - 100
        assert seen.complaints == []


def test_wide_window__changed_response__has_its_first_difference_on_the_first_screen(chrome, eight) -> None:
    with opened(chrome, eight, size=SCREEN) as seen:
        assert top(seen.page, "#case .sides del") <= FIRST_DIFFERENCE
        assert top(seen.page, "#case .sides ins") <= FIRST_DIFFERENCE


def test_wide_window__error_of_many_lines__leaves_the_responses_on_the_first_screen(chrome, tmp_path) -> None:
    long = "assert refunded\n" + "\n".join(f"  line {number} of what the check printed" for number in range(80))
    failed = make_shown("a", "failed", error=long)
    with opened(chrome, file_of(tmp_path, compare([failed], [make_shown("a")])), size=SCREEN) as seen:
        assert top(seen.page, "#case .sides") <= 700
        seen.page.locator("#case pre.why button").click()
        assert seen.page.locator("#case pre.why").inner_text() == long


def test_phone__any_red_run__shows_the_first_case_and_its_difference(chrome, red) -> None:
    with opened(chrome, red, size=PHONE) as seen:
        assert top(seen.page, "a.row") <= PHONE_FIRST_ROW
        seen.page.locator("a.row").first.click()
        assert top(seen.page, "#case .sides tbody") <= PHONE_FIRST_DIFFERENCE - 100


def test_phone__case__says_what_changed_before_the_counts(chrome, eight) -> None:
    with opened(chrome, eight, size=PHONE) as seen:
        seen.page.locator("a.row").first.click()
        places = [top(seen.page, f"#case {part}") for part in ("h2", "pre.why", ".seen p", ".sides del")]
        assert places == sorted(places)
        assert places[-1] <= PHONE_FIRST_DIFFERENCE


def test_header__red_run__counts_are_buttons_that_select_and_nothing_is_a_percentage(chrome, red) -> None:
    with opened(chrome, red, size=SCREEN) as seen:
        page = seen.page
        chips = page.locator("header.top button").all()
        assert page.locator("header.top b, header.top table, header.top figure").count() == 0
        assert "%" not in page.locator("h1").inner_text() + page.locator("#chips").inner_text()
        for chip in chips:
            number = chip.inner_text().partition(" ")[0]
            chip.click()
            assert chip.get_attribute("aria-pressed") == "true"
            assert page.locator("#count").inner_text() == f"{number} of 60 cases"
            chip.click()
        assert page.locator("#count").inner_text() == "60 cases"


def test_header__regressions_that_were_not_rerun__are_named_apart_and_one_number_passes(chrome, half) -> None:
    with opened(chrome, half, size=SCREEN) as seen:
        confirmed, suspected, passing = seen.page.locator("#chips button").all_inner_texts()
    assert confirmed.endswith(" regressions")
    assert suspected.endswith(" more suspected")
    assert int(confirmed.split()[0]) + int(suspected.split()[0]) == 30
    assert passing == "30 of 60 pass (baseline: 60 of 60)"


def test_outage__every_case__is_one_group_with_its_cause(chrome, outage) -> None:
    with opened(chrome, outage, size=SCREEN) as seen:
        (heading,) = headings(seen.page)
        assert "503 Service Unavailable" in heading
        assert heading.endswith("60")
        assert "Tool calls" not in seen.page.locator("#case").inner_text()
        assert "100.0 %" not in seen.page.locator("body").inner_text()


def test_header__red_run__has_the_next_step_in_one_line_and_none_on_a_phone(chrome, eight) -> None:
    for size, shows in ((SCREEN, True), (PHONE, False)):
        with opened(chrome, eight, size=size) as seen:
            step = seen.page.locator(".top .step")
            assert step.text_content().startswith("Next step: ")
            assert step.is_visible() == shows
            assert not shows or step.bounding_box()["height"] < 30


def test_outage__of_half_of_the_cases__is_one_group_before_those_that_pass(chrome, half) -> None:
    with opened(chrome, half, size=SCREEN) as seen:
        (first,) = headings(seen.page)  # what is out of sight is not there
        assert "503 Service Unavailable" in first
        assert first.endswith("30")
        seen.page.locator("#list").evaluate("list => { list.scrollTop = 30 * 52; }")
        seen.page.locator("#rows .head", has_text="Passing").wait_for()
        assert headings(seen.page)[-1].split() == ["Passing", "30"]


def test_causes__two_cases_and_more__stand_under_theirs_and_single_ones_under_their_class(chrome, tmp_path) -> None:
    errors = {
        "a": "response is empty",
        "b": "<b>latency</b> is too high",
        "c": "<b>latency</b> is too high",
        "d": "<b>tone</b> is rude",
        "e": "<b>latency</b> is too high",
    }
    now = [make_shown(name, "failed", error=error) for name, error in errors.items()]
    then = [make_shown(name) for name in errors]
    with opened(chrome, file_of(tmp_path, compare(now, then)), size=SCREEN) as seen:
        page = seen.page
        assert [heading.split("\n") for heading in headings(page)] == [
            ["<b>latency</b> is too high", "3"],
            ["Regressions", "2"],
        ]
        assert page.locator("#rows .id").all_inner_texts() == ["b", "c", "e", "a", "d"]
        assert page.locator("a.row .below").all_inner_texts().count("<b>latency</b> is too high") == 0
        page.locator("#search").fill("latency")
        assert page.locator("#rows .id").all_inner_texts() == ["b", "c", "e"]
        page.get_by_role("button", name="5 regressions").click()
        assert headings(page) == ["<b>latency</b> is too high\n3"]


def test_causes__check_that_failed_in_several_ways__is_said_once(chrome, eight) -> None:
    with opened(chrome, eight, size=SCREEN) as seen:
        assert headings(seen.page)[0].split("\n") == ["toolsCalled", "8"]
        below = seen.page.locator("a.row .below").all_inner_texts()[:2]
    assert below == [
        "expected [lookup_order, issue_refund], called [lookup_order, escalate]",
        "expected [issue_refund], called []",
    ]


def test_rows__one_after_the_other__do_not_move_while_their_case_opens(chrome, eight) -> None:
    with opened(chrome, eight, size=SCREEN) as seen:
        page = seen.page
        before = page.locator("a.row").nth(4).bounding_box()["y"]
        page.locator("a.row").nth(2).click()
        assert page.locator("a.row").nth(4).bounding_box()["y"] == before
        for _ in range(30):
            page.keyboard.press("j")
            row = page.locator("a.row[aria-current=true]").bounding_box()
            assert 0 <= row["y"] <= SCREEN[1] - row["height"]
        assert page.locator("header.top").bounding_box()["y"] == 0


def test_filter__case_that_is_not_in_it__is_closed_and_next_goes_on_in_its_order(chrome, sixty) -> None:
    with opened(chrome, sixty, size=SCREEN) as seen:
        page = seen.page
        page.locator("a.row", has_text="refund/terms").click()
        assert page.locator("#case .place").inner_text() == "2 of 60"
        page.locator("#search").fill("status-1")
        assert page.locator("#case h2").inner_text() == "refund/status-10"
        assert page.locator("#case .place").inner_text() == "1 of 10"
        assert "#" not in page.url
        page.get_by_role("button", name="Next").click()
        assert page.locator("#case h2").inner_text() == "refund/status-11"
        page.locator("#search").fill("status-11")
        assert page.locator("#case h2").inner_text() == "refund/status-11"
        assert page.locator("#case .place").inner_text() == "1 of 1"
        assert page.get_by_role("button", name="Next").is_disabled()
        page.locator("#search").fill("no such case")
        assert page.locator("#case").inner_text() == ""
        page.keyboard.press("Escape")
        assert page.locator("#case .place").inner_text() == "1 of 60"
        assert seen.complaints == []


def test_filter__case_that_is_in_it__keeps_its_open_folds(chrome, tmp_path) -> None:
    with opened(chrome, file_of(tmp_path, sixty()), size=SCREEN) as seen:
        page = seen.page
        page.locator("#case .prompt summary").click()
        page.get_by_role("button", name="6 regressions").click()
        assert page.locator("#case .prompt details[open]").count() == 1
        assert page.locator("#case .place").inner_text() == "1 of 6"


@pytest.mark.parametrize("decisive", [0, 1])
def test_executions__case_that_failed_and_passed__opens_with_the_failing_one(chrome, tmp_path, decisive) -> None:
    trials = tuple(
        Trial(
            status=status,
            score=float(status is Status.PASSED),
            decisive=place == decisive,
            duration_ms=100,
            error=None if status is Status.PASSED else "toolsCalled: expected [issue_refund], called []",
            details=None if place == decisive else make_details(f"Response {place}."),
        )
        for place, status in enumerate((Status.PASSED, Status.FAILED))
    )
    shown = make_shown("a", "passed" if decisive == 0 else "failed", details=make_details(f"Response {decisive}."))
    flaky = replace(shown, trials=trials, reruns=1)
    with opened(chrome, file_of(tmp_path, compare([flaky], [make_shown("a")])), size=SCREEN) as seen:
        seen.page.locator("a.row").first.click()
        assert seen.page.locator(".dot[aria-pressed=true]").get_attribute("aria-label").startswith("Execution 2 of 2")
        assert "Response 1." in seen.page.locator(".answers td.now, .answers .alone").inner_text()
        assert seen.page.locator("#case pre.why").count() == 1


def test_executions__failing_one_without_a_stored_response__is_not_shown_with_the_response_of_another(
    chrome, tmp_path
) -> None:
    trials = [Trial(status=status, score=0, duration_ms=100) for status in (Status.FAILED, Status.PASSED)]
    flaky = replace(make_shown("a", details=make_details("It passed.")), trials=tuple(trials), reruns=1)
    with opened(chrome, file_of(tmp_path, compare([flaky], [make_shown("a")])), size=SCREEN) as seen:
        seen.page.locator("a.row").first.click()
        answers = seen.page.locator(".answers")
        assert "This PR: ✕ fail" in answers.inner_text()
        assert "The response is not stored." in answers.inner_text()
        seen.page.locator(".dot").nth(1).click()
        assert "It passed." in answers.inner_text()


@pytest.mark.parametrize(("context", "here"), [(PULL_REQUEST, "This PR"), (ReportContext(), "This run")])
@pytest.mark.parametrize("size", [SCREEN, PHONE])
def test_words__side_that_is_compared__has_one_name(chrome, tmp_path, context, here, size) -> None:
    with opened(chrome, file_of(tmp_path, sixty(), context), size=size) as seen:
        page = seen.page
        page.locator("a.row").first.click()
        other = "This run" if here == "This PR" else "This PR"
        shown = page.locator("#case").inner_text()
        assert here in shown
        assert other not in shown
        assert f"missing in {here[:1].lower()}{here[1:]}" in shown
        label = "getComputedStyle(document.querySelector('.sides tr:not(.same) td.now'), '::before').content"
        assert page.evaluate(label) == (f'"{here}"' if size == PHONE else "none")


def test_header__baseline__is_a_commit_and_a_date(chrome, tmp_path) -> None:
    run = sixty()
    facts = run.comparison.baseline
    with opened(chrome, file_of(tmp_path, run), size=SCREEN) as seen:
        line = seen.page.locator("header.top .meta").inner_text()
    assert line.startswith(f"baseline {facts.sha[:7]} of {facts.timestamp[:10]}")
    assert facts.run_id not in line


def test_about_this_run__the_header__leads_to_all_the_rest(chrome, sixty) -> None:
    with opened(chrome, sixty, size=SCREEN) as seen:
        page = seen.page
        assert page.locator(".measured").bounding_box()["y"] > 900
        page.get_by_role("link", name="about this run: ⚠️ setup changed").click()
        about = page.locator("#about")
        assert about.evaluate("about => about.getBoundingClientRect().top") < 400
        shown = about.inner_text()
    for words in (
        "Gate failed:",
        "Next step:",
        "fail-on tightened: never → failures",
        "agent time",
        "In the newest 3 runs",
    ):
        assert words in shown


def test_evaluators_and_tags__compared__stand_behind_about_this_run_with_the_tests_named(chrome, tmp_path) -> None:
    def make_side(score: float):
        return make_graded_suite([make_graded(f"c{at}", evaluators={"style": score, "tone": 0.5}) for at in range(8)])

    run = judge_against(make_run(make_side(0.8)), Baseline(make_baseline_run(make_side(0.9)), "main"))
    with opened(chrome, file_of(tmp_path, run), size=SCREEN) as seen:
        assert seen.page.locator("#about #metrics").count() == 1
        words = seen.page.locator("#metrics .soft").inner_text()
    assert "sign-flip test" in words
    assert "Holm" in words


def test_checks__that_did_not_run__say_so(chrome, tmp_path) -> None:
    """The agent had an error: what its response was to be checked for is still to be checked."""
    broken = make_shown("a", "error", error="agent error: HTTP 500", details=CaseDetails(), evaluator_results=())
    with opened(chrome, file_of(tmp_path, compare([broken], [make_shown("a")])), size=SCREEN) as seen:
        scores = seen.page.locator("#case .checks > li .score").all_inner_texts()
    assert scores[0] == "did not run; baseline 1.00"
    assert not [score for score in scores if score.startswith("was")]


def test_checks__that_the_evals_dropped__are_no_longer_checked(chrome, tmp_path) -> None:
    then = make_graded("a", evaluator_results=(make_evaluator("style", 1.0), make_evaluator("tone", 1.0)))
    now = replace(make_graded("a", evaluator_results=(make_evaluator("style", 1.0),)), fingerprint="another")
    run = judge_against(
        make_run(make_graded_suite([now])), Baseline(make_baseline_run(make_graded_suite([then])), "main")
    )
    assert run.comparison.changes[0].change is CaseClass.INCOMPARABLE
    with opened(chrome, file_of(tmp_path, run), size=SCREEN) as seen:
        seen.page.locator("a.row").first.click()
        assert "no longer checked; baseline 1.00" in seen.page.locator("#case .checks").inner_text()
