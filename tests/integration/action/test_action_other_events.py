"""Manual starts, merge queues, events that must not be used, and results made by earlier steps."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.jobs import pull_request_event, push_event, repository_facts


def dispatch(github, **inputs: str) -> dict[str, object]:
    return {"inputs": inputs or None, "ref": "refs/heads/main", "repository": repository_facts(github)}


def check_out(workspace: Path, commit: str) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git" / "HEAD").write_text(f"{commit}\n")


def test_dispatch__by_hand__compares_and_comments_nowhere(job, github) -> None:
    github.state.add_pull(7)
    with agent() as running:
        job.push(running.url)
        job.begin_run(event="workflow_dispatch")
        ended = job.step("workflow_dispatch", dispatch(github), {"agent-endpoint": running.url})
    assert (ended.code, github.state.comments, ended.outputs["regressions"]) == (0, {}, "0")


def test_dispatch__for_a_pull_request_that_is_checked_out__comments_and_checks_its_head(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    check_out(job.workspace, pull.head_sha)
    job.begin_run(event="workflow_dispatch")
    with agent(fails_on(1)) as running:
        event = dispatch(github, **{"pr-number": "7"})
        ended = job.step("workflow_dispatch", event, {"agent-endpoint": running.url})
    assert (ended.code, len(github.state.comments)) == (1, 1)
    assert {check.fields["head_sha"] for check in github.state.check_runs.values()} >= {pull.head_sha}


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("7", "other-checkout"),
        ("8", "there is no pull request #8 here"),
        ("seven", '"seven" is not the number of a pull request'),
    ],
)
def test_dispatch__pull_request_that_is_not_what_is_here__is_refused(job, github, number, said) -> None:
    github.state.add_pull(7)
    check_out(job.workspace, github.state.branches["main"])
    ended = job.step(
        "workflow_dispatch", dispatch(github, **{"pr-number": number}), {"agent-endpoint": "http://x.test"}
    )
    assert (ended.code, github.state.comments) == (2, {})
    assert said in ended.log


def test_merge_group__checks_the_group_against_its_base_and_comments_nowhere(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    github.state.add_pull(7)
    base = github.state.branches["main"]
    head = github.state.add_commit("group", base).sha
    event = {
        "action": "checks_requested",
        "merge_group": {
            "head_sha": head,
            "head_ref": f"refs/heads/gh-readonly-queue/main/pr-7-{base}",
            "base_sha": base,
            "base_ref": "refs/heads/main",
        },
        "repository": repository_facts(github),
    }
    job.begin_run(event="merge_group", head_branch=f"gh-readonly-queue/main/pr-7-{base}", head_sha=head)
    with agent(fails_on(2)) as running:
        ended = job.step("merge_group", event, {"agent-endpoint": running.url}, GITHUB_SHA=head)
    assert (ended.code, github.state.comments) == (1, {})
    assert "last pull request #7" in ended.log
    assert "failure" in [check.fields["conclusion"] for check in github.state.check_runs.values()]


def test_pull_request_target__is_refused_before_anything_runs(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        event = pull_request_event(github, pull)
        ended = job.step("pull_request_target", event, {"agent-endpoint": running.url})
    assert (ended.code, running.requests) == (2, [])
    assert "unsafe-event" in ended.log
    assert github.log == []


def test_results__made_by_an_earlier_step__are_compared_and_published_and_nothing_runs(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        assert gate(job.workspace, "run", "--agent-endpoint", running.url, "--output-dir", "elsewhere").returncode == 1
        asked = len(running.requests)
        ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "elsewhere"})
        assert len(running.requests) == asked
    assert (ended.code, ended.outputs["regressions"]) == (1, "1")
    assert "## ❌ Agent eval gate — 1 regression" in next(iter(github.state.comments.values())).body


def test_results__that_are_not_there__are_an_error_that_says_so(job, github) -> None:
    ended = job.step("push", push_event(github), {"results": "nowhere"})
    assert ended.code == 2
    assert 'there is no stored result "nowhere"' in ended.log


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_cancelled__while_running__what_was_done_is_written_and_the_check_says_cancelled(
    job, github, number, code
) -> None:
    pull = github.state.add_pull(7)
    job.write_suite(50)

    async def slow(exchange) -> None:
        import asyncio

        await asyncio.sleep(0.2)
        exchange.answer({"response": "ok", "toolCalls": []})

    with agent(slow) as running:
        process = job.start("pull_request", pull_request_event(github, pull), {"agent-endpoint": running.url})
        deadline = time.monotonic() + 20
        while len(running.requests) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        out, _ = process.communicate(timeout=20)
    ended = job.ended(process.returncode, out)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["exit-code"]) == (code, "error", str(code))
    (check,) = github.state.check_runs.values()
    assert check.fields["conclusion"] == "cancelled"
    assert check.fields["output"]["title"].startswith("Cancelled at ")
    assert github.state.comments == {}


def test_action__outside_of_a_workflow__says_what_to_use_instead(tmp_path) -> None:
    ended = gate(tmp_path, "action")
    assert ended.returncode == 2
    assert "eval-gate run" in ended.stderr
