"""How well a judge is known, on a pull request: by the base branch's word, never by the pull request's own."""

from __future__ import annotations

import json

import pytest

from tests.integration.action.test_action_pull_request import baseline_of_today, comments_of
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github.faults import Fault

FILE = ".eval-gate/judges.json"
NOBODY = "http://127.0.0.1:9"
GRADED = {"evals": "suite.yaml", "target": "desk", "agent-endpoint": ""}
CASES = """\
evalcases:
  - id: one
    expected_outcome: Says so.
    input_messages: [{role: user, content: Is it so?}]
"""
JUDGE = "grader (mock, mock:grader)"


def entry(**facts) -> bytes:
    said = {
        "judge": JUDGE,
        "comparedOn": "2026-11-02",
        "responses": 50,
        "agreed": 46,
        "failedByPeople": 20,
        "falsePasses": 2,
    }
    return json.dumps({"judges": [said | facts]}).encode()


def write_judged(job, score: float) -> None:
    verdict = json.dumps({"score": score, "hits": [], "misses": [], "reasoning": "so"})
    desk = {"name": "desk", "provider": "mock", "response": "It is so.", "judgeTarget": "grader"}
    grader = {"name": "grader", "provider": "mock", "response": verdict}
    (job.workspace / "targets.yaml").write_text(json.dumps({"targets": [desk, grader]}))


@pytest.fixture
def graded(job, github):
    """A default branch whose one case a judge passes; the pull request's does not."""
    (job.workspace / "suite.yaml").write_text(CASES)
    write_judged(job, 1.0)
    ended = job.push(NOBODY, GRADED)
    assert ended.code == 0, ended.log
    baseline_of_today(github)
    (job.workspace / ".eval-gate").mkdir()
    write_judged(job, 0.1)
    return github.state.add_pull(7)


def on_main(github, data: bytes) -> None:
    github.state.files[github.state.branches["main"], FILE] = data


def comment(github) -> str:
    (text,) = comments_of(github)
    return text.replace("&#45;", "-").replace("&#40;", "(").replace("&#41;", ")")


def test_pull_request__base_knows_the_judge__says_how_well(job, github, graded) -> None:
    on_main(github, entry())
    ended = job.pull_request(graded, NOBODY, GRADED)
    assert ended.code == 1, ended.log
    said = (
        "agreed with people on 46 of 50 labels on 2026-11-02 (at least 81 %);"
        " it passed 2 of 20 responses that people failed"
    )
    assert said in comment(github)
    assert said in ended.summary.replace("&#45;", "-").replace("&#40;", "(").replace("&#41;", ")")


def test_pull_request__praises_its_judge_itself__is_not_repeated(job, github, graded) -> None:
    on_main(github, entry())
    (job.workspace / FILE).write_bytes(entry(agreed=50, falsePasses=0))
    job.pull_request(graded, NOBODY, GRADED)
    assert "46 of 50" in comment(github)
    assert "50 of 50" not in comment(github)


def test_pull_request__brings_the_first_comparison__is_said_once_it_is_merged(job, github, graded) -> None:
    (job.workspace / FILE).write_bytes(entry())
    job.pull_request(graded, NOBODY, GRADED)
    said = comment(github)
    assert "has not been compared with people's labels yet" in said
    assert "the comparison in this pull request counts after the merge" in said
    assert "46 of 50" not in said


def test_pull_request__github_does_not_say__turns_nothing_and_is_said(job, github, graded) -> None:
    on_main(github, entry())
    github.faults.add("GET", r"/contents/.*judges", Fault.permission())
    ended = job.pull_request(graded, NOBODY, GRADED)
    assert ended.code == 1, ended.log
    assert "How often the LLM judge agrees with people is unknown: reading" in comment(github)


def test_pull_request__file_on_the_base_is_wrong__turns_nothing_and_is_said(job, github, graded) -> None:
    on_main(github, b'{"judges": [{}]}')
    ended = job.pull_request(graded, NOBODY, GRADED)
    assert ended.code == 1, ended.log
    assert "judges&#46;json on main is not valid" in comment(github)


def test_pull_request__no_judge_graded__nobody_is_asked_about_one(job, github) -> None:
    job.write_suite(2)
    pull = github.state.add_pull(7)
    with agent(fails_on(1)) as running:
        ended = job.pull_request(pull, running.url)
    assert "gs-001" in comment(github), ended.log
    assert "labels" not in comment(github)
    assert github.requests("GET", r"judges\.json") == []
