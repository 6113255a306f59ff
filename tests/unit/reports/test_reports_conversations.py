"""Conversations in every report: read tests/golden/conversations/ as a reviewer would."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.execution import CaseDetails, EvaluatorResult, Status
from eval_gate.model.result import CaseText, RunResult
from eval_gate.reports.case_annotations import build_annotations
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.page.case_data import MIN_TURN, build_case_data
from eval_gate.reports.page.truncation import TRUNCATION_STEPS
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import build_view
from eval_gate.results.baseline import Baseline
from eval_gate.results.case_behaviour import list_behaviours
from eval_gate.results.detail_truncation import drop_response
from eval_gate.results.turn_details import select_turn
from eval_gate.struct import replace
from tests.support.chat_results import (
    BEFORE,
    FAILED,
    FORGOT,
    NOT_SENT,
    STATES,
    forgetful,
    judge_chats,
    make_chat,
    make_conversation,
    talkative,
    with_baseline,
)
from tests.support.graded import make_evaluator, make_graded, make_graded_baseline, make_graded_run
from tests.support.pages import case_on, page_data, without_assets
from tests.support.verdicts import judge_against
from tests.unit.reports.test_reports_sides import HOSTILE, ON_PAGE, assert_hostile_text_is_inert

RUNS = {name: make() for name, make in STATES.items()}


@pytest.mark.parametrize("state", STATES)
def test_comment__conversation__looks_like_this(golden, state) -> None:
    golden(f"conversations/{state}.md", render_comment(build_view(RUNS[state], ON_PAGE)))


@pytest.mark.parametrize("state", STATES)
def test_summary__conversation__looks_like_this(golden, state) -> None:
    golden(f"conversations/{state}-summary.md", render_summary(build_view(RUNS[state], ON_PAGE)))


@pytest.mark.parametrize("state", STATES)
def test_console__conversation__looks_like_this(golden, state) -> None:
    text = render("console", RUNS[state], ReportContext(), style=ConsoleStyle(verbose=state == "behaviour"))
    golden(f"conversations/{state}.txt", text)


@pytest.mark.parametrize(
    ("state", "line"), [("turn-3", "turn 3 of 5: r"), ("agent-error", "agent error: turn 2 of 5: H")]
)
def test_console__verbose__names_the_turn(state, line) -> None:
    text = render("console", RUNS[state], ReportContext(), style=ConsoleStyle(verbose=True))
    assert f"    → {line}" in text


@pytest.mark.parametrize("state", ["turn-3", "agent-error"])
def test_annotation__conversation__names_the_turn(golden, state) -> None:
    lines = [f"{one.title}\n{one.message}\n" for one in build_annotations(build_view(RUNS[state], ON_PAGE)).items]
    golden(f"conversations/{state}-annotations.txt", "\n".join(lines))


@pytest.mark.parametrize("state", ["turn-3", "agent-error"])
def test_junit__conversation__looks_like_this(golden, state) -> None:
    golden(f"conversations/{state}.xml", render("junit", RUNS[state], ReportContext()))


def test_html__conversation__is_on_the_page(golden) -> None:
    golden("conversations/turn-3.html", without_assets(render("html", RUNS["turn-3"], ON_PAGE)))


def test_html__agent_error_in_turn_2__the_checks_of_turn_1_are_met_and_the_others_did_not_run() -> None:
    run = RUNS["agent-error"]
    checks = tuple(
        EvaluatorResult(name=name, type=kind, score=1.0, evaluator_results=(make_evaluator("style", 1.0),))
        for name, kind in (("turn 1", "turn"), ("turn 2", "turn"), ("calls", "toolsCalled"))
    )
    (change,) = (one for one in run.comparison.changes if one.case_id == "gs-refund-chat-002")
    side = replace(change.baseline_result, evaluator_results=checks)
    changes = tuple(replace(one, baseline_result=side) if one is change else one for one in run.comparison.changes)
    run = replace(run, comparison=replace(run.comparison, changes=changes))
    seen = case_on(render("html", run, ON_PAGE), "gs-refund-chat-002")["checks"]
    assert [(one["name"], one["state"], one.get("now")) for one in seen] == [
        ("turn 1", "pass", "1.00"),
        ("turn 2", "gone", None),
        ("calls", "gone", None),
    ]
    assert "members" not in seen[0]


def test_html__simulated_user_without_a_message__is_no_error_of_the_agent() -> None:
    turns = case_on(render("html", RUNS["simulated-user-error"], ON_PAGE), "gs-refund-user-002")["now"]["perTurn"]
    assert [turn.get("status") for turn in turns] == [None, "Q"]


def test_reports__turns_of_which_nothing_is_expected__are_not_said_to_pass() -> None:
    here = make_conversation((*BEFORE[:2], FORGOT, *BEFORE[3:]), "-PF--")
    run = judge_chats(make_chat("a", "FFFF", here, (3, 3, 3, 3), error=FAILED))
    comment = render_comment(build_view(run, ON_PAGE))
    assert "Turn 1 has no result of its own; turn 2 passes, with the same calls as the baseline." in comment
    assert "Turns 4 and 5 have no results of their own." in comment
    turns = case_on(render("html", run, ON_PAGE), "a")["now"]["perTurn"]
    assert [turn.get("status") for turn in turns] == [None, "P", "F", None, None]


def test_junit__text_with_role_lines__forges_no_message() -> None:
    turns = [("one\nassistant:\n  forged", "x\u2028user:\r\nend", []), ("not sent", None, [])]
    run = judge_chats(make_chat("a", "FFFF", make_conversation(turns, "FN"), (1, 1, 1, 1), error="turn 1: wrong"))
    output = ET.fromstring(render("junit", run, ReportContext())).find(".//system-out").text
    assert [line for line in output.split("\n") if line and line[0] != " "] == ["user:", "assistant:"]
    assert "not sent" not in output


def make_hostile(turns: int, size: int) -> RunResult:
    """A conversation of hostile texts only, which failed in its last turn but one."""
    calls = [(HOSTILE, {HOSTILE: HOSTILE})]
    here = [(HOSTILE + "x" * size, "y" * size + HOSTILE, calls) for _ in range(turns)]
    there = [(f"z{HOSTILE}", "y" * size + HOSTILE[::-1], []) for _ in range(turns)]
    letters = "P" * (turns - 2) + "FN"
    case = make_chat(
        HOSTILE,
        "FFFF",
        make_conversation(here, letters),
        (turns - 1,) * 4,
        error=f"turn {turns - 1}: {HOSTILE}",
        text=CaseText(prompt=HOSTILE, expectation=(HOSTILE,)),
    )
    return judge_chats(case, baseline=make_conversation(there, "P" * turns))


def test_expected_before__of_turns__has_each_turn_before_what_is_expected_of_it() -> None:
    run = forgetful()
    lines = ("turn 1:", "  calls find_order", "  calls refund", "whole conversation:", 'response contains "a:"')
    side = replace(run.comparison.changes[0].baseline_result, expectation=lines)
    changes = (replace(run.comparison.changes[0], baseline_result=side), *run.comparison.changes[1:])
    rows = build_view(replace(run, comparison=replace(run.comparison, changes=changes)), ON_PAGE).rows
    assert 'turn 1: calls find_order; calls refund; whole conversation: response contains "a:"' in {
        row.expected_before for row in rows
    }


@pytest.mark.parametrize(("turns", "size"), [(2, 1), (100, 20_000)])
def test_comment__hostile_texts_in_turns__stay_text_and_the_comment_small(turns, size) -> None:
    view = build_view(make_hostile(turns, size), ON_PAGE)
    for text in (render_comment(view), render_summary(view)):
        assert len(text) < 20_000
        assert f"**turn {turns - 1} of {turns}:** `" in text
        assert f"Turn {turns} was not sent." in text
        assert_hostile_text_is_inert(text)
    assert ("Turns 1 to 98 pass, with other calls in turns 1 to 98." in render_comment(view)) == (turns == 100)


@pytest.mark.parametrize("report", ["console", "junit"])
def test_reports__hostile_texts_in_turns__hide_and_command_nothing(report) -> None:
    text = render(report, make_hostile(3, 1), ReportContext())
    assert "\u202e" not in text
    assert not re.search(r"^\s*::error|##\[", text, re.MULTILINE) or report == "junit"


def test_html__hostile_texts_in_turns__are_data() -> None:
    page = render("html", make_hostile(3, 1), ON_PAGE)
    assert "<script>x" not in page
    assert "\u202e" not in page
    turns = page_data(page)["details"]["0"]["now"]["perTurn"]
    assert [turn["status"] for turn in turns] == ["P", "F", "U"]
    assert turns[0]["message"].startswith("```\n~~~~")


@given(st.lists(st.text(max_size=40), min_size=1, max_size=4), st.text(max_size=60))
def test_comment__any_texts_in_turns__leave_the_rest_as_it_is(texts, error) -> None:
    """A reader finds the same headings and folds whatever a conversation holds."""
    runs = [
        judge_chats(
            make_chat(
                "a",
                "FFFF",
                make_conversation([(text, text, []) for text in said], "P" * (len(said) - 1) + "F"),
                (len(said),) * 4,
                error=f"turn {len(said)}: toolsCalled: {failure}",
            ),
            baseline=make_conversation([("q", "r", [])] * len(said), "P" * len(said)),
        )
        for said, failure in ((texts, error), (["plain"] * len(texts), "plain"))
    ]
    begins = re.compile(r"^(?:#+ |\*\*[A-Z]\w+|<details>|</details>|\| )", re.MULTILINE)
    shapes = [begins.findall(render_comment(build_view(run, ON_PAGE))) for run in runs]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("keep", ["texts", "turns", "all"])
def test_reports__texts_of_turns_are_not_stored__say_so_and_still_name_the_turn(keep) -> None:
    """What `keepResponses: none`, an older version and another tool leave."""
    details = CaseDetails()
    if keep == "texts":
        details = drop_response(make_conversation((*BEFORE[:2], FORGOT, *NOT_SENT), "PPFNN"))
    case = make_chat("a", "FFFF", details, (3, 3, 3, 3), error=FAILED)
    run = judge_chats(case, baseline=make_conversation(BEFORE, "PPPPP") if keep == "turns" else details)
    comment, page = render_comment(build_view(run, ON_PAGE)), render("html", run, ON_PAGE)
    assert f"**turn 3{' of 5' if keep == 'texts' else ''}:** `responseContainsNumber:" in comment
    assert "Failed in turn 3 each time." in comment
    assert ("The response here is not stored. The baseline's:" in comment) == (keep == "turns")
    assert case_on(page, "a")["turn"] == 3


def test_reports__simulated_user__its_cost_is_named_beside_the_judges() -> None:
    run = talkative()
    run = replace(run, summary=replace(run.summary, judge_cost_usd=0.5))
    assert "LLM judges and simulated users $0.50" in render_comment(build_view(run, ON_PAGE))
    other = replace(forgetful(), summary=run.summary)
    assert "LLM judges $0.50" in render_comment(build_view(other, ON_PAGE))


@pytest.mark.parametrize(
    ("end", "change"),
    [
        ("given_up", "wrote other messages and gave up (baseline: reached its goal)"),
        ("max_messages", "wrote other messages and had no message left (maxMessages) (baseline: reached its goal)"),
    ],
)
def test_reports__simulated_user_went_another_way__is_named_before_the_change(end, change) -> None:
    run = talkative()
    (case, *others) = run.suites[0].cases
    case = replace(case, details=replace(case.details, user_end=end))
    run = replace(run, suites=(replace(run.suites[0], cases=(case, *others)),))
    console = " ".join(render("console", run, ReportContext(), style=ConsoleStyle(width=200)).split())
    assert f" user {change} " in console
    comment = render_comment(build_view(run, ON_PAGE))
    assert f"<br>the simulated user {change} |" in comment
    for text in (console, comment):
        assert "Next step:" in text
        assert "Compare first what the simulated user wrote in 1 case: it is not as in the baseline. If" in text


def test_html__conversation__requests_of_turns_are_no_tries() -> None:
    run = forgetful()
    cases = tuple(replace(case, attempts=12) for case in run.suites[0].cases)
    page = render("html", replace(run, suites=(replace(run.suites[0], cases=cases),)), ON_PAGE)
    assert "attempts" not in case_on(page, "gs-refund-chat-001")["now"]
    assert case_on(page, "gs-hours")["now"]["attempts"] == 12


def test_comment__several_conversations__are_grouped_by_turn_and_check() -> None:
    here = make_conversation((*BEFORE[:2], FORGOT, *NOT_SENT), "PPFNN")
    cases = [
        make_chat(f"c{place}", "FFFF", here, (turn,) * 4, error=f"turn {turn}: responseContainsNumber: {place}")
        for place, turn in enumerate((3, 3, 2, 2))
    ]
    run = judge_chats(*cases)
    comment, console = render_comment(build_view(run, ON_PAGE)), render("console", run, ReportContext())
    for turn, names in ((3, "01"), (2, "23")):
        assert f"**2 regressions:** `turn {turn}: responseContainsNumber` · each: " in comment
        assert f"  2 cases: turn {turn}: responseContainsNumber\n" in console
        assert all(f"**turn {turn} of 5:** `responseContainsNumber: {name}`" in comment for name in names)


def test_comment__graded_conversation__names_the_turn_its_score_and_what_was_missed() -> None:
    here = make_conversation((*BEFORE[:2], FORGOT, *BEFORE[3:]), "PPFPF")
    results = tuple(
        EvaluatorResult(
            name=f"turn {turn}", type="turn", score=score, evaluator_results=(make_evaluator("style", score),)
        )
        for turn, score in enumerate((1.0, 1.0, 0.4, 1.0, 0.8), 1)
    )
    case = make_graded("a", 0.84, details=here, evaluator_results=results, failed_turn=3)
    baseline = make_graded("a", evaluator_results=tuple(replace(one, score=1.0) for one in results))
    run = judge_against(make_graded_run([case]), Baseline(make_graded_baseline([baseline]), "main"))
    comment = render_comment(build_view(with_baseline(run, make_conversation(BEFORE, "PPPPP")), ON_PAGE))
    missed = "style: style is not what it should be"
    failure = f"`1.00 → 0.40: {missed} · turn 5 1.00 → 0.80: {missed.removesuffix(' be')}…`"
    assert f"| **turn 3 of 5:** {failure} |" in comment
    assert f"**Failed in turn 3 of 5:** {failure}<br>" in comment
    assert "Turn 4 passes; turn 5 fails too." in comment


def test_html__long_conversation_on_a_full_page__all_turns_share_the_space() -> None:
    view = build_view(make_hostile(100, 1_000), ON_PAGE)
    sizes = [len(json.dumps(build_case_data(view.regressions[0], view, cut))) for cut in TRUNCATION_STEPS]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 120_000
    turns = build_case_data(view.regressions[0], view, TRUNCATION_STEPS[-1])["now"]["perTurn"]
    assert len(turns) == 100
    assert all(len(turn["message"]) > MIN_TURN for turn in turns)


def test_reports__forged_numbers_of_turns_and_calls__cost_nothing() -> None:
    """A result may come from anybody: each of these would take days if it was counted to."""
    details = replace(make_conversation([("m", "r", [])] * 2_000, "P" * 2_000), tools_called=("a",) * 1_000)
    details = replace(details, turns=tuple(replace(turn, calls=10**12) for turn in details.turns))
    case = make_chat("a", "FFFF", details, (10**12,) * 4, error=f"turn {10**12}: {'9' * 5_000}")
    run = judge_chats(case, baseline=replace(details, turns=details.turns[:1_000]))
    assert f"**turn {10**12} of 2000:** `" in render_comment(build_view(run, ON_PAGE))
    for report in ("html", "junit", "console", "agentv"):
        assert "a" in render(report, run, ReportContext())
    passing = replace(case, status=Status.PASSED, passed=True, failed_turn=None, trials=())
    assert select_turn(passing, None) is not None
    assert list_behaviours(passing)
