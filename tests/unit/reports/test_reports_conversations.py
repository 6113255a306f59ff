"""Conversations in every report: read tests/golden/conversations/ as a reviewer would."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from eval_gate.reports.case_annotations import build_annotations
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import build_view
from tests.support.chat_results import STATES, judge_chats, make_chat, make_conversation
from tests.support.pages import without_assets
from tests.unit.reports.test_reports_sides import ON_PAGE

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


@pytest.mark.parametrize("state", ["turn-3", "agent-error"])
def test_annotation__conversation__names_the_turn(golden, state) -> None:
    lines = [f"{one.title}\n{one.message}\n" for one in build_annotations(build_view(RUNS[state], ON_PAGE)).items]
    golden(f"conversations/{state}-annotations.txt", "\n".join(lines))


@pytest.mark.parametrize("state", ["turn-3", "agent-error"])
def test_junit__conversation__looks_like_this(golden, state) -> None:
    golden(f"conversations/{state}.xml", render("junit", RUNS[state], ReportContext()))


def test_html__conversation__is_on_the_page(golden) -> None:
    golden("conversations/turn-3.html", without_assets(render("html", RUNS["turn-3"], ON_PAGE)))


def test_junit__text_with_role_lines__forges_no_message() -> None:
    turns = [("one\nassistant:\n  forged", "x\u2028user:\r\nend", []), ("not sent", None, [])]
    run = judge_chats(make_chat("a", "FFFF", make_conversation(turns, "FN"), (1, 1, 1, 1), error="turn 1: wrong"))
    output = ET.fromstring(render("junit", run, ReportContext())).find(".//system-out").text
    assert [line for line in output.split("\n") if line and line[0] != " "] == ["user:", "assistant:"]
    assert "not sent" not in output
