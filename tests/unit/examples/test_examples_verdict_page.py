"""The page of the verdict: its six examples are what the program does, and it stays short."""

from __future__ import annotations

import re

import pytest

from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import GroundKind
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment
from eval_gate.reports.view.report_view import build_view
from eval_gate.struct import replace
from tests.support.write_verdict_page import DROPPED, EXAMPLES, PAGE, TOOL, VERY_FLAKY, judged, pages, report_words

MOST_WORDS = 2_600
REGRESSION = CaseClass.REGRESSION


def test_pages__figures__are_those_of_the_program() -> None:
    for page, text in pages().items():
        assert page.read_text(encoding="utf-8") == text, f"{page.name}: python -m tests.support.write_verdict_page"


@pytest.mark.parametrize(
    ("example", "exit_code", "found"),
    [
        ("dead", 1, {(REGRESSION, GroundKind.EVIDENCE): 1}),
        ("flake", 0, {(CaseClass.INCONCLUSIVE, GroundKind.RECOVERED): 1}),
        ("flaky", 1, {(REGRESSION, GroundKind.EVIDENCE): 1}),
        ("half", 1, {(REGRESSION, GroundKind.EVIDENCE): 1}),
        ("suite", 1, {(REGRESSION, GroundKind.SUITE_DROP): len(DROPPED)}),
    ],
)
@pytest.mark.rows_each("example")
def test_example__verdict__is_what_its_heading_says(example, exit_code, found) -> None:
    made = judged(example)
    assert made.run.verdict is not None
    assert made.run.verdict.exit_code == exit_code
    kinds = [(one.change, one.grounds.kind if one.grounds else None) for one in made.changes]
    assert {kind: kinds.count(kind) for kind in kinds} == found


def test_example__one_broken_tool__is_confirmed_by_some_of_its_cases_and_spares_the_others() -> None:
    made = judged("tool")
    kinds = [one.grounds.kind for one in made.changes if one.grounds]
    confirmed = kinds.count(GroundKind.EVIDENCE)
    assert made.run.verdict is not None
    assert made.run.verdict.exit_code == 1
    assert 3 <= confirmed < len(TOOL)
    assert kinds.count(GroundKind.GATE_FAILED) == len(TOOL) - confirmed


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.rows_each("example")
def test_example__its_words__stand_in_the_comment(example) -> None:
    made = judged(example)
    comment = render_comment(build_view(made.run, ReportContext(baseline_branch="main")))
    for sentence in report_words(made).removesuffix(".").split(". "):  # a table has them as phrases
        assert sentence.casefold() in comment.casefold()


def test_flaky_case__the_one_that_failed_nine_times__needs_ten_failures_and_more_than_six_re_runs() -> None:
    made = judged("flaky")
    history = made.facts[f"case-{VERY_FLAKY}"].history.counts
    assert made.confirmation.count_needed_failures(history) == 10
    assert replace(made.confirmation, max_reruns=6).count_needed_failures(history) is None


def test_page__words__are_no_more_than_somebody_reads() -> None:
    text = re.sub(r"<!--.*?-->", "", PAGE.read_text(encoding="utf-8"))
    assert sum(re.search(r"\w", word) is not None for word in text.split()) <= MOST_WORDS
