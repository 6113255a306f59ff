"""The action and agents that are not always right: re-runs with the branch's history, and what people accepted."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.action.test_action_pull_request import baseline_of_today, comments_of, the_check
from tests.support.agents import Exchange, agent
from tests.support.answers import fails_on
from tests.support.github.state import iso

FILE = ".eval-gate/waivers.yaml"


def in_days(days: int) -> str:
    return (datetime.now(UTC) + timedelta(days=days)).date().isoformat()


def accepted(case: str, until: str) -> bytes:
    return f'waivers:\n- case: {case}\n  reason: "the tool moves next week"\n  until: "{until}"\n'.encode()


class FailsFirst:
    """Answers `ok`, but `no` to one question the first time."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.asked: list[int] = []

    async def __call__(self, exchange: Exchange) -> None:
        number = int(exchange.json["message"].split()[1])
        fails = number == self._number and number not in self.asked
        self.asked.append(number)
        exchange.answer({"response": "no" if fails else "ok", "toolCalls": []})


@pytest.fixture
def branch(job, github):
    """A default branch with three runs behind it."""
    for _ in range(3):
        with agent() as running:
            assert job.push(running.url).code == 0
    baseline_of_today(github)


@pytest.mark.contract("verdict.reruns")
def test_pull_request__case_that_fails_once__passes_after_reruns_with_the_branchs_history(job, github, branch) -> None:
    pull, flaky = github.state.add_pull(7), FailsFirst(2)
    before = len(github.requests("GET", r"/artifacts/\d+/zip$"))
    with agent(flaky) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0, ended.log
    assert (ended.outputs["verdict"], ended.outputs["regressions"]) == ("passed", "0")
    assert flaky.asked[:4] == [0, 1, 2, 3]
    assert set(flaky.asked[4:]) == {2}
    assert "its history has 3 runs" in ended.log
    assert len(github.requests("GET", r"/artifacts/\d+/zip$")) == before + 1


def test_pull_request__nothing_fails__asks_every_case_once(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0
    assert len(running.requests) == 4


def test_pull_request__case_that_died__is_confirmed_and_fails(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1")
    assert len(running.requests) > 4


@pytest.mark.slow
def test_pull_request__no_confirmation__takes_the_first_failure_for_a_regression(job, github, branch) -> None:
    pull, flaky = github.state.add_pull(7), FailsFirst(2)
    with agent(flaky) as running:
        ended = job.pull_request(pull, running.url, {"reruns": "0"})
    assert (ended.code, flaky.asked) == (1, [0, 1, 2, 3])


@pytest.mark.contract("accepting.file")
def test_pull_request__regression_accepted_in_its_own_file__passes_and_says_so(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    file = job.workspace / FILE
    file.parent.mkdir()
    file.write_bytes(accepted("gs-002", in_days(5)))
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0, ended.log
    (comment,) = comments_of(github)
    assert "the tool moves next week" in comment
    assert the_check(github, pull.head_sha)["conclusion"] == "success"


@pytest.mark.contract("accepting.fork-file")
def test_pull_request__fork_that_accepts_its_own_regression__is_shown_and_does_not_count(job, github, branch) -> None:
    pull = github.state.add_pull(7, head_repo="eve/bot", user="eve")
    file = job.workspace / FILE
    file.parent.mkdir()
    file.write_bytes(accepted("gs-002", in_days(5)))
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 1, ended.log
    github.state.files[pull.base_sha, FILE] = accepted("gs-002", in_days(5))
    github.state.files[github.state.branches["main"], FILE] = accepted("gs-002", in_days(5))
    with agent(fails_on(2)) as running:
        assert job.pull_request(pull, running.url).code == 0


def test_pull_request__own_acceptance_under_the_rules_of_the_base__does_not_count(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    file = job.workspace / FILE
    file.parent.mkdir()
    file.write_bytes(accepted("gs-002", in_days(5)))
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"policy-from": "base"})
    assert ended.code == 1, ended.log
    (comment,) = comments_of(github)
    assert "does not count**, because only the base branch's waivers count" in comment
    assert "comes from a fork" not in comment
    github.state.files[github.state.branches["main"], FILE] = accepted("gs-002", in_days(5))
    with agent(fails_on(2)) as running:
        assert job.pull_request(pull, running.url, {"policy-from": "base"}).code == 0


@pytest.mark.contract("accepting.comment-author")
def test_pull_request__comment_by_somebody_who_may_write__accepts_on_the_next_run(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    pull.labels.append("eval-gate:waive")
    github.state.roles |= {"ada": "write"}
    github.state.add_comment(
        7, "/eval-gate waive gs-002 -- moves next week", mine=False, author="ada", created_at=iso(datetime.now(UTC))
    )
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0, ended.log
    ours = [body for body in comments_of(github) if body.startswith("<!-- eval-gate")]
    assert "moves next week" in ours[0]
    github.state.roles.clear()
    with agent(fails_on(2)) as running:
        assert job.pull_request(pull, running.url).code == 1


def test_file_that_is_wrong__is_refused_before_anybody_is_asked(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    file = job.workspace / FILE
    file.parent.mkdir()
    file.write_bytes(b"waivers:\n- case: gs-002\n  until: soon\n")
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, running.requests) == (2, [])
    assert f"{FILE}:2" in ended.log


def test_pull_request__stale_branch__comparison_and_comment_speak_of_one_record(job, github) -> None:
    """Main went on and broke what the pull request breaks too: none of that is in the record up to the fork point."""

    def push(name: str, behaviour) -> None:
        github.state.branches["main"] = github.state.add_commit(name, github.state.branches["main"]).sha
        with agent(behaviour) as running:
            job.push(running.url)

    for number in range(3):
        push(f"before {number}", fails_on())
    pull = github.state.add_pull(7)
    for number in range(2):
        push(f"after {number}", fails_on(2))
    baseline_of_today(github)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    run = json.loads((job.workspace / ended.outputs["result-path"]).read_text())
    (change,) = [one for one in run["comparison"]["changes"] if one["change"] == "regression"]
    counts = {"passes": 3, "failures": 0, "agentErrors": 0}
    assert change["caseHistory"]["counts"] == change["grounds"]["history"] == counts
    here = change["grounds"]["current"]
    (comment,) = comments_of(github)
    seen = f"failed {here['failures']} of {here['passes'] + here['failures']} here, 0 of 3 on main"
    assert seen in comment
    assert seen in ended.summary


def test_pull_request__main_broke_it__says_so_first_and_blames_nobody(job, github) -> None:
    for number, behaviour in enumerate((fails_on(), fails_on(), fails_on(), fails_on(2))):
        github.state.branches["main"] = github.state.add_commit(f"main {number}", github.state.branches["main"]).sha
        with agent(behaviour) as running:
            job.push(running.url)
    broke = github.state.branches["main"]
    baseline_of_today(github)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["regressions"]) == (0, "0"), ended.log
    (comment,) = comments_of(github)
    above = comment.partition("<details>")[0]
    assert f"**Broken on main since `{broke[:7]}`, not by this change:** 1 case" in above
    assert f"has failed on main since {broke[:7]}" in above
    assert the_check(github, pull.head_sha)["output"]["title"].startswith("No regressions")


@pytest.mark.slow
def test_pull_request__agent_crashes_on_every_case__is_red_with_the_outage_as_the_other_reading(
    job, github, branch
) -> None:
    async def crash(exchange: Exchange) -> None:
        exchange.answer({"error": "AttributeError"}, "500 Internal Server Error")

    pull = github.state.add_pull(7)
    with agent(crash) as running:
        ended = job.pull_request(pull, running.url, {"max-retries": "0"})
    assert (ended.code, ended.outputs["regressions"], ended.outputs["errored"]) == (1, "4", "4"), ended.log
    assert (ended.outputs["failed"], ended.outputs["pass-rate"]) == ("0", "")
    (comment,) = comments_of(github)
    assert "4 cases that usually pass had an agent error" in comment
    assert "If it was down during the run, re-run the job" in comment
    assert "responded in 3 of 3 on main" in comment
    assert "4 cases: 0 pass, 4 do not pass (4 regressions)" in comment
    assert "This says nothing about your change" not in comment
