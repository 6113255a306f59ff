"""The page as one file: what it may run, what it holds, and what it leaves out to open at once."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.policy import Policy
from eval_gate.model.case import CaseKey
from eval_gate.model.execution import CaseDetails
from eval_gate.reports.context import ReportContext
from eval_gate.reports.links import build_anchor
from eval_gate.reports.page.html import read_asset
from eval_gate.reports.page.truncation import (
    MANY_CASES,
    MAX_PAGE_BYTES,
    TRUNCATION_STEPS,
    encode_island,
    truncate_cases,
)
from eval_gate.reports.rendering import render
from eval_gate.results.baseline import NOT_REQUESTED
from eval_gate.struct import replace
from eval_gate.text.safe_output import neutralize_markup, reveal_invisible
from tests.support.evidence import LANGUAGES, PULL_REQUEST, large, make_shown, sixty
from tests.support.graded import make_graded
from tests.support.pages import OWN, case_on, markup_of, page_data
from tests.support.results import make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against

HOSTILE = "</script><img src=x onerror=alert(1)><!-- ]]> \u2028\u2029 &lt; ##[error]\n::error::x \ud800 \u202e"


def page_of(*cases, **fields) -> str:
    run = judge_against(make_run(make_suite_result(list(cases)), **fields), NOT_REQUESTED, Policy())
    return render("html", run, ReportContext())


@pytest.fixture(scope="module")
def page() -> str:
    return render("html", sixty(), PULL_REQUEST)


@pytest.fixture(scope="module")
def huge() -> str:
    return render("html", large(), PULL_REQUEST)


def test_policy__page__names_exactly_its_own_scripts_and_style_sheet(page) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    digests = [
        f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" for part in _inline(page)
    ]
    assert policy == (
        f"default-src 'none'; script-src {digests[1]} {digests[2]}; style-src {digests[0]}; base-uri 'none'; "
        "form-action 'none'"
    )


def _inline(page: str) -> list[str]:
    """Style sheet and scripts as a browser digests them."""
    return re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", page, flags=re.DOTALL)


def test_markup__page__has_no_inline_style_no_handler_and_loads_nothing(page) -> None:
    read = markup_of(page)
    assert not re.search(r"\sstyle=|\son\w+=|\ssrc=|<link|<iframe|javascript:", read)


@pytest.mark.parametrize("name", OWN)
def test_assets__in_a_log__are_no_commands_and_close_no_element(name) -> None:
    """A report on standard output has its commands written otherwise, which would change what the policy digests."""
    text = read_asset(name)
    assert neutralize_markup(text) == text
    assert "</" not in text


def test_library__page__stands_with_its_licence(page) -> None:
    assert "Copyright (c) 2009-2015, Kevin Decker" in page


@given(st.text(), st.text())
def test_island__any_text__is_what_it_was_and_stays_within_its_element(first, second) -> None:
    text = encode_island({first: [second]})
    assert not re.search("[<>&\u2028\u2029\ud800-\udfff\n]", text)
    assert "##[" not in text
    assert json.loads(text) == {first: [second]}


@pytest.mark.parametrize("text", ["क्‍ष", "می‌خواهم", "👩‍💻"])
def test_visible_text__joiners_within_words__are_kept(text) -> None:
    assert reveal_invisible(text) == text


def test_visible_text__joiners_between_latin_letters_and_overrides__are_marked() -> None:
    assert reveal_invisible("pay\u200dpal \u202egnp") == "pay[U+200D]pal [U+202E]gnp"


def test_page__hostile_texts__end_nothing_and_can_be_written() -> None:
    case = make_shown("a", "failed", description=HOSTILE, error=HOSTILE, tags=(HOSTILE,))
    page = page_of(replace(case, id=HOSTILE))
    page.encode()
    assert page.count("<script") == page.count("</script>") == 4
    assert "<img" not in page
    assert not re.search(r"(?m)^\s*::", neutralize_markup(page))
    assert page_data(page)["rows"]["id"] == [reveal_invisible(HOSTILE)]


def test_anchors__each_case__are_those_of_links(page) -> None:
    """The script makes them of the words and of the last eight signs that are on the page."""
    rows = page_data(page)["rows"]
    suites = page_data(page)["suites"]
    for place, case_id in enumerate(rows["id"]):
        anchor = build_anchor(CaseKey(suites[rows["suite"][place]], case_id))
        assert anchor.endswith(rows["anchor"][place * 8 : place * 8 + 8])


def test_groups__every_case__is_in_one_and_those_to_look_at_are_first(page) -> None:
    data = page_data(page)
    assert [key for key, _, _ in data["groups"]] == ["regression", "new-pass", "flaky-history", "passing"]
    assert len(data["rows"]["id"]) == len(set(data["rows"]["id"])) == 60
    assert data["rows"]["group"] == [0] * 6 + [1] + [2] * 8 + [3] * 45


def test_case__regression__holds_both_sides_and_the_ways_from_here(page) -> None:
    said = case_on(page, "refund/partial-order")
    assert said["question"].startswith("I sent back two")
    assert said["expected"][0] == "calls issue_refund"
    assert "refunded 39.80 EUR" in said["before"]["answer"]
    assert "to a colleague" in said["now"]["answer"]
    assert [call["name"] for call in said["before"]["calls"]] == ["lookup_order", "issue_refund"]
    assert [(call["name"], call.get("ok")) for call in said["now"]["calls"]] == [
        ("lookup_order", True),
        ("escalate", False),
    ]
    assert [one["status"] for one in said["runs"]] == list("FFFF")
    assert said["runs"][2]["side"]["answer"] == "I do not know."
    assert said["place"] == "evals/refunds.yaml:14"
    assert said["url"].endswith("/blob/9e8d7c6b5a4f/evals/refunds.yaml#L14")
    assert said["rerun"] == "eval-gate run --config evals/support.yaml --case refund/partial-order"
    assert said["comment"].startswith("/eval-gate waive refund/partial-order")


def test_case__streamed_answer__has_the_time_to_its_first_piece() -> None:
    streamed = make_result("streamed", "failed", details=CaseDetails(response="There.", first_token_ms=141.26))
    page = page_of(streamed, make_result("whole", "failed"))
    assert case_on(page, "streamed")["now"]["first"] == 141.3
    assert "first" not in case_on(page, "whole")["now"]


def test_case__checks__misses_come_first_with_what_they_were(page) -> None:
    called, policy = case_on(page, "refund/partial-order")["checks"]
    assert (called["name"], called["then"], called["now"], called["state"]) == (
        "issue_refund is called",
        "1.00",
        "0.00",
        "fail",
    )
    assert (policy["model"], policy["state"]) == ("gpt-5-mini", "part")
    assert [member["name"] for member in policy["members"]] == ["facts", "tone"]
    assert policy["said"] == "The policy is told right."
    assert policy["prompts"][0] == ["systemPrompt", "You are a strict reviewer of refunds."]


def test_causes__shared_by_cases__are_headings_of_theirs(page) -> None:
    data = page_data(page)
    assert data["causes"] == ["toolsCalled: expected [issue_refund], called [lookup_order, escalate]"]
    assert data["rows"]["cause"] == {"0": 0, "1": 0, "2": 0, "3": 0}
    assert list(data["rows"]["what"]) == ["4", "5"]


def test_plain__no_script__holds_the_regressions_with_both_answers(page) -> None:
    read = markup_of(page)
    assert "6 regressions" in read
    for then, now in LANGUAGES.values():
        assert then in read
        assert now in read
    assert read.count("<article id=") == 6


def test_recent_runs__of_the_branch__are_said_in_a_sentence(page) -> None:
    words = "In the newest 20 runs on main, between 1 and 4 cases failed or had no score, 1 in the newest."
    assert f'<p class="soft">{words}</p>' in markup_of(page)
    assert "In the newest" not in markup_of(page_of(make_result("a")))


@pytest.mark.slow
def test_page__ten_thousand_cases__is_small_and_holds_every_regression_whole(huge) -> None:
    data = page_data(huge)
    assert len(huge.encode()) < 2_000_000
    assert len(data["rows"]["id"]) == 10_000
    assert len(data["details"]) == 500
    assert data["details"]["499"]["before"]["answer"].startswith("Hello Maria")
    said = "Of more than 1,000 cases, passing ones are only listed; run.json holds their responses."
    assert data["leftOut"] == [said]


def test_page__few_more_than_many__passing_cases_are_rows() -> None:
    cases = [
        make_result(f"c{number}", details=CaseDetails(response="passing words")) for number in range(MANY_CASES + 1)
    ]
    page = page_of(*cases, make_result("bad", "failed", details=CaseDetails(response="failing words")))
    assert list(page_data(page)["details"]) == ["0"]
    assert case_on(page, "bad")["now"]["answer"] == "failing words"
    assert "passing words" not in page


def test_evaluator_filter__more_names_than_it_shows__has_those_of_most_cases() -> None:
    """Names of checks may be texts that only one case has."""
    cases = [
        make_graded(f"c{number}", evaluators={"style": 0.5, **{f"only {number} {at}": 0.5 for at in range(30)}})
        for number in range(10)
    ]
    rows = page_data(page_of(*cases, make_graded("plain", evaluators={"only 0 0": 0.5})))["rows"]
    assert len(rows["evaluatorNames"]) == 200
    assert {"style", "only 0 0"} < set(rows["evaluatorNames"])
    shown = dict(zip(rows["id"], rows["evaluatorSet"], strict=True))
    named = [[rows["evaluatorNames"][at] for at in rows["evaluatorSets"][shown[name]]] for name in ("plain", "c9")]
    assert (named[0], named[1][0]) == (["only 0 0"], "style")


@pytest.mark.parametrize(
    ("bare", "note"),
    [
        ([], None),
        (["passed"], "does not list 1 case that has no stored evaluator results."),
        (["passed", "failed", "error"], "does not list 2 cases that have no stored evaluator results."),
    ],
)
def test_evaluator_filter__scored_cases_without_results__are_counted(bare, note) -> None:
    graded = [make_graded("a", evaluators={"style": 0.5}), make_graded("b", evaluators={"tone": 0.5})]
    page = markup_of(page_of(*graded, *(make_result(f"bare-{at}", status) for at, status in enumerate(bare))))
    found = re.search(r"<li>The filter by evaluator ([^<]*)</li>", page)
    assert (found and found[1]) == note


def noise(length: int, seed: int) -> str:
    """A text that no packer makes smaller."""
    made = "".join(hashlib.sha256(f"{seed} {place}".encode()).hexdigest() for place in range(length // 64 + 1))
    return made[:length]


@pytest.mark.slow
def test_page__answers_that_cannot_be_packed__are_cut_alike_and_it_says_so() -> None:
    cases = [
        make_result(f"c{number}", "failed", details=CaseDetails(response=noise(60_000, number)))
        for number in range(200)
    ]
    page = page_of(*cases)
    data = page_data(page)
    assert len(page.encode()) < 2_000_000
    assert len(data["details"]) == 200
    lengths = {len(one["now"]["answer"].partition("…")[0]) for one in data["details"].values()}
    assert lengths == {8_000}
    assert "Each text on this page ends after 8,000 characters" in data["leftOut"][0]
    assert "[52,000 more characters]" in data["details"]["0"]["now"]["answer"]


@given(st.lists(st.integers(0, 3_000), max_size=30), st.integers(0, MAX_PAGE_BYTES))
def test_fitted__any_cases__stay_in_their_room_and_the_first_come_first(sizes, used) -> None:
    def make(one, cut):
        return {"text": noise(min(one, cut.max_characters or one), one)}

    kept = truncate_cases(list(enumerate(sizes)), make, used)
    assert kept.plain == "" or kept.packed == ""
    if kept.truncation is TRUNCATION_STEPS[0]:
        assert kept.omitted_count == 0
    assert len(kept.plain) + len(kept.packed) <= max(MAX_PAGE_BYTES - used, 200_000)


@pytest.mark.slow
def test_fitted__no_room_even_for_little__the_last_have_nothing() -> None:
    kept = truncate_cases([(place, place) for place in range(2_000)], lambda one, _: noise(600, one), MAX_PAGE_BYTES)
    assert kept.truncation is TRUNCATION_STEPS[-1]
    assert 0 < kept.omitted_count < 2_000
    assert len(kept.packed) <= 220_000
