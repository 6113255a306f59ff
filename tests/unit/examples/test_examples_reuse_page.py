"""docs/reuse.md says what the program does: its sentence, its numbers, its events and its configuration."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import yaml

from eval_gate.action.run_source import REUSING_EVENTS
from eval_gate.config.loader import load_config
from eval_gate.config.measures import select_patterns
from eval_gate.config.settings import SETTINGS
from eval_gate.gate.reuse_decision import RECHECK_AFTER
from eval_gate.model.reuse import DOCUMENT_ENDINGS, RunReason, is_document
from eval_gate.reports.wording.reuse import describe_reuse
from tests.support.newcomer import blocks
from tests.support.results import make_run
from tests.support.reused_results import BASE, BILLING, SEARCH, SUPPORT, decide, make_decision, make_suite

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "reuse.md").read_text(encoding="utf-8")


def test_page__its_sentence__is_the_one_of_reports() -> None:
    cases = {SUPPORT: 40, BILLING: 50, SEARCH: 30}
    suites = [make_suite(file, {f"{file}-{at}": "passed" for at in range(number)}) for file, number in cases.items()]
    outcomes = {SUPPORT: make_decision(RunReason.FILES_CHANGED), BILLING: BASE, SEARCH: BASE}
    run = decide(make_run(*suites), outcomes, saved_executions=94, saved_usd=1.42)
    quote = " ".join(line.removeprefix("> ") for line in PAGE.splitlines() if line.startswith("> "))
    assert quote == describe_reuse(run)


def test_page__its_configuration__gives_each_suite_the_patterns_of_all_globs_that_cover_it() -> None:
    (text,) = (text for language, text in blocks(PAGE) if language == "yaml")
    measures = load_config(yaml.safe_load(text), {}, None).measures
    assert select_patterns(measures, "evals/support-chat.yaml") == (
        "agents/support/**",
        "package-lock.json",
        "prompts/support/**",
    )
    assert select_patterns(measures, "evals/search.yaml") == (), "it always runs"


def test_page__week_patterns_and_documents__are_those_of_the_program() -> None:
    assert timedelta(days=7) == RECHECK_AFTER
    assert "more than seven days" in PAGE
    assert f"at most {SETTINGS['measures'].limits['max_length']} patterns" in PAGE
    assert {".md", ".png"} <= DOCUMENT_ENDINGS
    assert not any(map(is_document, ("AGENTS.md", "skills/a/SKILL.md")))


def test_action_page__events_that_reuse__are_those_of_the_action() -> None:
    (line,) = re.findall(r"(?m)^Runs by (.*) \[reuse\]", (DOCS / "action.md").read_text(encoding="utf-8"))
    assert set(re.findall(r"`(\w+)`", line)) == REUSING_EVENTS
