"""The whole story inside the container: a pull request, an agent, GitHub, and a checkout that lays traps."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from tests.container.runner_shape import RUNNER_ID, Job, give_to_runner, start
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github import GATE, fake_github
from tests.support.jobs import pull_request_event, push_event


@pytest.fixture
def github():
    with fake_github() as server:
        yield server
        assert server.violations == []


@pytest.fixture
def checkout(workspace):
    """Four cases, and a package named like ours."""
    cases = [
        {"id": f"gs-{number:03}", "input": {"message": f"ask {number}"}, "expect": {"responseContains": ["ok"]}}
        for number in range(4)
    ]
    (workspace / "evals").mkdir()
    (workspace / "evals" / "weather.golden.json").write_text(json.dumps(cases, indent=1))
    (workspace / "eval_gate").mkdir()
    (workspace / "eval_gate" / "__init__.py").write_text("")
    (workspace / "eval_gate" / "__main__.py").write_text("open('/github/workspace/SPRUNG', 'w')\n")
    give_to_runner(workspace)
    return workspace


def variables(github, run: int) -> dict[str, str]:
    github.current_run_id = run
    github.results.uploads.clear()
    main = github.state.branches["main"]
    return {
        **github.environment(),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_WORKFLOW_REF": f"acme/bot/{GATE}@refs/heads/main",
        "GITHUB_SHA": main,
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_JOB": "gate",
        "GITHUB_RUN_ATTEMPT": "1",
        "PYTHONPATH": "/github/workspace",
    }


def inputs(github, url: str) -> dict[str, str]:
    return {"github-token": github.token, "agent-endpoint": url}


def test_action__pull_request__from_the_baseline_to_the_comment_and_files_handed_back(step, checkout, github) -> None:
    with agent() as running:
        github.state.add_run(1, event="push")
        first = step(
            inputs=inputs(github, running.url), env=variables(github, 1), event=push_event(github), event_name="push"
        )
    assert (first.exit_code, len(github.state.archives)) == (0, 1)
    pull = github.state.add_pull(7)
    github.state.add_run(2, event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    with agent(fails_on(2)) as running:
        done = step(
            inputs=inputs(github, running.url),
            env=variables(github, 2) | {"GITHUB_SHA": pull.merge_sha, "GITHUB_REF": "refs/pull/7/merge"},
            event=pull_request_event(github, pull),
            event_name="pull_request",
        )
    assert (done.exit_code, done.outputs["verdict"], done.outputs["regressions"]) == (1, "failed", "1")
    (comment,) = github.state.comments.values()
    assert "## ❌ Agent eval gate — 1 regression" in comment.body
    assert "# ❌ Agent eval gate — 1 regression" in done.summary
    assert len(github.state.archives) == 2
    # as the next step, which runs on the host, can use it
    record = done.outputs["result-path"]
    assert (checkout / record).is_file()
    assert done.owners[record] == (RUNNER_ID, RUNNER_ID)
    assert {path: owner for path, owner in done.owners.items() if owner != (RUNNER_ID, RUNNER_ID)} == {}
    assert not (checkout / "SPRUNG").exists()


def test_action__input_with_a_hyphen__decides_the_verdict(step, checkout, github) -> None:
    """`INPUT_FAIL-ON`: a shell in between would drop it, and this would pass for want of a baseline."""
    github.state.add_run(1, event="push")
    with agent(fails_on(2)) as running:
        given = inputs(github, running.url)
        event = push_event(github)
        lenient = step(inputs=given, env=variables(github, 1), event=event)
        # a run of its own: a second gate of one name in one run is refused
        github.state.add_run(2, event="push")
        strict = step(inputs={**given, "fail-on": "failures"}, env=variables(github, 2), event=event)
    assert (lenient.exit_code, strict.exit_code) == (0, 1)


def test_action__sigterm_to_the_first_process__writes_what_was_done_and_exits_143(image, checkout, github) -> None:
    async def slow(exchange) -> None:
        await asyncio.sleep(1)
        exchange.answer({"response": "ok", "toolCalls": []})

    github.state.add_run(1, event="push")
    with agent(slow) as running:
        job = Job(image, checkout, inputs(github, running.url), variables(github, 1), push_event(github))
        with start(job) as step:
            deadline = time.monotonic() + 30
            while not running.requests and time.monotonic() < deadline:
                time.sleep(0.1)
            step.signal("TERM")
            done = step.finish(30)
    assert (done.exit_code, done.outputs["verdict"], done.outputs["exit-code"]) == (143, "inconclusive", "143")
    assert json.loads((checkout / done.outputs["result-path"]).read_text())["complete"] is False
