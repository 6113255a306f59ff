"""Wrong baselines and wrong blame: none, in histories that nobody has thought of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.github import fake_github
from tests.support.simulation.direct import DirectClient
from tests.support.simulation.gate import Runner
from tests.support.simulation.story import Story

HISTORIES, BLOCK = 10_000, 250
FEW = 30
"""Histories of the fast tier: a second."""
MOST_LOST = 0.04
"""Of the earlier runs, those that a record may lack: without joining what overlapped it lacks a sixth."""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    monkeypatch.chdir(tmp_path)
    with fake_github() as github:
        monkeypatch.setattr("eval_gate.action.step.GitHubClient", lambda *_: DirectClient(github))
        yield Runner(github, tmp_path)


def wrong_in(runner: Runner, seeds: range) -> list[str]:
    """What is not right in these histories, each with its story."""
    stories = list[Story]()
    for seed in seeds:
        story = Story(runner, seed)
        story.tell()
        stories.append(story)
    assert sum(one.judged for one in stories) > 2 * len(seeds)
    assert sum(one.lost for one in stories) <= MOST_LOST * sum(one.older for one in stories)
    return [f"seed {story.seed}: {one}" for story in stories for one in story.wrong]


def test_simulation__some_histories__each_run_has_its_own_base_and_nobody_elses_blame(runner) -> None:
    assert wrong_in(runner, range(FEW)) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW, FEW + HISTORIES, BLOCK))
def test_simulation__ten_thousand_histories__each_run_has_its_own_base(runner, first) -> None:
    assert wrong_in(runner, range(first, first + BLOCK)) == []
