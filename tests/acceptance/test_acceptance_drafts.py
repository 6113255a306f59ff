"""Drafts mean what the agent did: thirty questions whose answers vary, refuse, or hold values of now.

From the questions to a suite that finds planted changes, through the command line and in both formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import gate
from tests.support.varying_agent import (
    COMPLIES,
    MISTAKES,
    OF_NOW,
    QUESTIONS,
    REFUSALS,
    refusal_judge,
    varying_agent,
)

FILES = {"tool-forge": "evals/shop.golden.json", "agentv": "evals/shop.eval.yaml"}
CHANGES = [*((question, text) for question, texts in COMPLIES.items() for text in texts), *MISTAKES.items()]


@pytest.fixture
def judge_url() -> Iterator[str]:
    with refusal_judge() as running:
        yield running.url


class DraftedShop:
    """A suite that is drafted from the thirty questions and accepted unread."""

    def __init__(self, folder: Path, name: str, judge_url: str | None) -> None:
        self.folder, self.file = folder, FILES[name]
        (folder / "questions.txt").write_text("".join(f"{one}\n" for one in QUESTIONS), encoding="utf-8")
        self.options: tuple[str, ...] = ("--concurrency", "8")
        if judge_url:
            grader = {"name": "grader", "provider": "http", "url": judge_url}
            (folder / "targets.yaml").write_text(json.dumps({"targets": [grader]}))
            self.options += ("--judge", "grader")
        with varying_agent() as running:
            url = ("--agent-endpoint", running.url)
            made = gate(folder, "draft", "questions.txt", "-o", self.file, "--format", name, *url, *self.options)
        assert made.returncode == 0, made.stderr
        self.said = made.stdout
        assert gate(folder, "draft", self.file, "--accept", "all").returncode == 0
        self.text = (folder / self.file).read_text(encoding="utf-8")

    def run(self, planted: dict[str, str] | None = None, *options: str) -> tuple[int, str]:
        """Run the suite against the agent, with planted answers; returns exit code and output."""
        with varying_agent(planted) as running:
            url = ("--agent-endpoint", running.url)
            done = gate(self.folder, "run", self.file, "--strict", *url, *self.options, *options)
        return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", FILES)
def test_drafts__thirty_questions_and_a_judge__each_planted_change_is_red_and_named(
    tmp_path: Path, name: str, judge_url: str
) -> None:
    shop = DraftedShop(tmp_path, name, judge_url)
    assert "No case for 2 questions:" in shop.said
    for question in OF_NOW:
        assert (
            f"{question}: its responses share no tool call, fact or field: write the case by hand. Left out"
            in shop.said
        )
    assert "(?<!" not in shop.text
    assert "1,250.40" in shop.text
    code, said = shop.run()
    assert (code, "28 of 28 pass" in said) == (0, True), said
    every = dict(CHANGES)
    code, said = shop.run(every)
    assert (code, f"{28 - len(every)} of 28 pass" in said) == (1, True), said
    assert "expected the number 1,250.40; response has 1,205.40" in said


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_drafts__each_change_alone_and_thirty_unchanged_runs__only_the_changes_are_red(
    tmp_path: Path, name: str, judge_url: str
) -> None:
    shop = DraftedShop(tmp_path, name, judge_url)
    missed = [text for question, text in CHANGES if shop.run({question: text})[0] != 1]
    red = [said for code, said in (shop.run() for _ in range(30)) if code != 0]
    assert (missed, red) == ([], [])


@pytest.mark.parametrize("name", FILES)
def test_drafts__no_judge__refusals_are_named_and_no_case_expects_their_words(tmp_path: Path, name: str) -> None:
    shop = DraftedShop(tmp_path, name, None)
    assert "No case for 8 questions:" in shop.said
    for question in REFUSALS:
        assert f"{question}: it reads like a refusal: draft the question with --judge" in shop.said
    assert not [question for question in REFUSALS if question in shop.text]
    assert not [word for word in ("sorry", "can't", "cannot") if word in shop.text.lower()]
    code, said = shop.run()
    assert (code, "22 of 22 pass" in said) == (0, True), said
