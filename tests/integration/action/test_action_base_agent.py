"""The base branch's agent in a workflow: whose word says who that is, and that no pull request clears itself by it."""

from __future__ import annotations

import json

import pytest

from tests.integration.action.test_action_pull_request import baseline_of_today, comments_of, the_check
from tests.integration.action.test_action_workflow_run import relay
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github.faults import Fault
from tests.support.jobs import pull_request_event
from tests.support.world import NOBODY, plain

CONFIG = "eval-gate.yaml"


@pytest.fixture
def green(job, github):
    """A default branch with one green run behind it."""
    with agent() as running:
        assert job.push(running.url).code == 0
    baseline_of_today(github)


@pytest.fixture
def broken_base():
    """The base branch's agent, which fails the same case; and how often it was asked."""
    with agent(fails_on(2)) as running:
        yield running


def on_main(github, text: str, name: str = CONFIG) -> None:
    github.state.files[github.state.branches["main"], name] = text.encode()


def asked(running) -> int:
    return len(running.requests)


def test_input__names_it__what_it_fails_too_is_not_of_the_change_everywhere(job, github, green, broken_base) -> None:
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"base-agent-endpoint": broken_base.url})
    assert (ended.code, ended.outputs["verdict"], ended.outputs["regressions"]) == (0, "passed", "0"), ended.log
    said = "base agent passed 0 of 2 in the same minutes, so this change is not the cause"
    check = the_check(github, pull.head_sha)
    assert check["conclusion"] == "success"
    assert all(said in plain(place) for place in (comments_of(github)[0], ended.summary)), plain(ended.summary)
    assert said in " ".join(ended.log.split())


def test_input__it_passes_there__stays_red(job, github, green) -> None:
    pull = github.state.add_pull(7)
    with agent() as base, agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"base-agent-endpoint": base.url})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert "base agent passed 2 of 2 in the same minutes" in plain(comments_of(github)[0])


@pytest.mark.parametrize("policy", ["head", "base"])
def test_pull_request__adds_an_agent_to_the_command_that_the_workflow_names__nobody_asks_it(
    job, github, green, broken_base, policy
) -> None:
    """A workflow that has such a command for another tool's results says nothing of who answers these evals."""
    pull = github.state.add_pull(7)
    (job.workspace / CONFIG).write_text(f"baseAgentEndpoint: {broken_base.url}\n")
    named = {"base-agent-command": "npx promptfoo eval -o {output}", "policy-from": policy}
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, named)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert asked(broken_base) == 0


@pytest.mark.parametrize("facts", [{}, {"head_repo": "eve/bot", "user": "eve"}], ids=["branch", "fork"])
@pytest.mark.parametrize("policy", ["head", "base"])
def test_pull_request__names_an_agent_that_fails_what_it_breaks__nobody_asks_it(
    job, github, green, broken_base, facts, policy
) -> None:
    """The attack: break case 2, and have somebody asked in place of main's agent who fails it too."""
    pull = github.state.add_pull(7, **facts)
    (job.workspace / CONFIG).write_text(f"baseAgentEndpoint: {broken_base.url}\n")
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"policy-from": policy})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert asked(broken_base) == 0
    words = "ignored, because the base branch's rule applies: `base-agent` loosened: none"
    said = ended.summary if facts else comments_of(github)[0]
    assert words in plain(said), plain(said)


def test_pull_request__names_another_one_than_main__mains_is_asked(job, github, green, broken_base) -> None:
    pull = github.state.add_pull(7)
    with agent() as mains, agent(fails_on(2)) as running:
        on_main(github, f"baseAgentEndpoint: {mains.url}\n")
        (job.workspace / CONFIG).write_text(f"baseAgentEndpoint: {broken_base.url}\n")
        ended = job.pull_request(pull, running.url)
        assert (ended.code, asked(broken_base)) == (1, 0), ended.log
        assert asked(mains) > 0
    assert "`base-agent` loosened: " in plain(comments_of(github)[0])


def test_main__names_it__is_asked_for_its_pull_requests(job, github, green, broken_base) -> None:
    pull = github.state.add_pull(7)
    on_main(github, f"baseAgentEndpoint: {broken_base.url}\n")
    (job.workspace / CONFIG).write_text(f"baseAgentEndpoint: {broken_base.url}\n")
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0, ended.log


def test_main__its_word_cannot_be_had__nobody_is_asked_and_it_stays_red(job, github, green, broken_base) -> None:
    pull = github.state.add_pull(7)
    (job.workspace / CONFIG).write_text(f"baseAgentEndpoint: {broken_base.url}\n")
    github.faults.add("GET", f"contents/{CONFIG}", Fault.permission())
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, asked(broken_base)) == (1, 0), ended.log
    assert "the base agent does not run: its definition could not be read from main" in ended.log


def targets(base: str) -> str:
    return json.dumps({"targets": [{"name": "mains", "provider": "http", "url": base}]})


@pytest.mark.parametrize(("theirs", "code"), [("same", 0), ("other", 1)])
def test_base_agent_target__is_described_otherwise_on_main__nobody_is_asked(
    job, github, green, broken_base, theirs, code
) -> None:
    pull = github.state.add_pull(7)
    config = "baseAgentTarget: mains\ntargets: agents.yaml\n"
    (job.workspace / CONFIG).write_text(config)
    (job.workspace / "agents.yaml").write_text(targets(broken_base.url))
    on_main(github, config)
    on_main(github, targets(broken_base.url if theirs == "same" else "http://127.0.0.1:9/chat"), "agents.yaml")
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == code, ended.log
    assert (asked(broken_base) > 0) is (theirs == "same")
    refused = "does not run: `targets` on main does not define mains in the same way as the pull request"
    assert (refused in ended.log) is (theirs == "other")


@pytest.fixture
def forked(job, github, green, broken_base):
    """A fork's run, over: it asked an agent of main that fails what it fails itself."""
    pull = github.state.add_pull(9, head_repo="mallory/bot", head_ref="main", user="mallory")
    github.read_only = True
    with agent(fails_on(2)) as running:
        first = job.pull_request(pull, running.url, {"base-agent-endpoint": broken_base.url})
    github.read_only = False
    run = github.state.runs[github.current_run_id]
    run.status, run.conclusion = "completed", "success"
    assert first.code == 0, first.log
    return run


@pytest.mark.slow
def test_relay__names_the_same__comes_to_the_same_verdict(job, github, forked, broken_base) -> None:
    ended = relay(job, github, forked, {"base-agent-endpoint": broken_base.url})
    assert ended.outputs["verdict"] == "passed", ended.log


@pytest.mark.slow
def test_relay__names_nobody_or_another__what_the_fork_says_of_it_counts_for_nothing(job, github, forked) -> None:
    for inputs in ({}, {"base-agent-endpoint": "http://127.0.0.1:9/chat"}):
        ended = relay(job, github, forked, inputs)
        assert (ended.outputs["verdict"], ended.outputs["regressions"]) == ("failed", "1"), ended.log
        assert "the base agent of the result is ignored" in plain(ended.summary)


# --- two steps


LATER = {"base-agent": "later"}


def second(job, github, pull, url: str, base: str, **inputs: str):
    """The step that asks the base branch's agent about what the first one left."""
    merge = {"GITHUB_SHA": pull.merge_sha, "GITHUB_REF": f"refs/pull/{pull.number}/merge"}
    given = {"agent-endpoint": url, "base-agent-endpoint": base, "results": "latest", **inputs}
    return job.step("pull_request", pull_request_event(github, pull), given, GITHUB_ACTION="second", **merge)


def published(github) -> list[object]:
    state = github.state
    on_pull = [one for one in state.check_runs.values() if one.fields["head_sha"] != state.branches["main"]]
    return [*state.comments.values(), *on_pull]


@pytest.mark.contract("verdict.control-later")
def test_later__red__publishes_nothing_fails_and_says_who_is_to_be_asked_what(job, github, green) -> None:
    pull = github.state.add_pull(7)
    stored = len(github.state.artifacts)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, LATER)
    assert ended.code == 1, ended.log
    assert (ended.outputs["needs-base-agent"], ended.outputs["suspects"]) == ("true", '["gs-002"]')
    assert (ended.outputs["verdict"], ended.outputs["exit-code"]) == ("failed", "1")
    assert (published(github), len(github.state.artifacts)) == ([], stored)
    assert "waiting for the base agent" in ended.summary
    assert "the gate stays failed." in ended.summary


@pytest.mark.parametrize("again", ["attempt", "run"])
def test_later__red_after_a_green_one__takes_its_comment_and_check_back_until_the_second_step_comes(
    job, github, green, again
) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        assert job.pull_request(pull, running.url, LATER).code == 0
    with agent(fails_on(2)) as running, agent(fails_on(2)) as base:
        if again == "run":
            ended = job.pull_request(pull, running.url, LATER)
        else:
            job.begin_attempt()
            event = pull_request_event(github, pull)
            ended = job.step("pull_request", event, {"agent-endpoint": running.url, **LATER})
        assert (ended.code, ended.outputs["needs-base-agent"]) == (1, "true"), ended.log
        (comment,) = comments_of(github)
        assert "⏳ Agent eval gate — waiting for the base agent" in comment
        newest = list(github.state.check_runs.values())[-1].fields
        assert (newest["name"], newest["conclusion"]) == ("eval-gate", "failure")
        ended = second(job, github, pull, running.url, base.url)
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log
    (comment,) = comments_of(github)
    assert "no regressions" in comment.splitlines()[1]
    newest = list(github.state.check_runs.values())[-1].fields
    assert (newest["name"], newest["conclusion"]) == ("eval-gate", "success")


@pytest.mark.parametrize(("broken", "code", "outcome"), [(2, 0, "passed"), (99, 1, "failed")])
def test_later__second_step__asks_it_and_publishes_once(job, github, green, broken, code, outcome) -> None:
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running, agent(fails_on(broken)) as base:
        assert job.pull_request(pull, running.url, LATER).code == 1
        before = len(running.requests)
        ended = second(job, github, pull, running.url, base.url)
        assert len(running.requests) == before  # what was found here is found already
        assert len(base.requests) == 5
    assert (ended.code, ended.outputs["verdict"]) == (code, outcome), ended.log
    assert ended.outputs["needs-base-agent"] == "false"
    (comment,) = comments_of(github)
    said = f"base agent passed {0 if code == 0 else 2} of 2 in the same minutes"
    assert said in plain(comment)
    assert the_check(github, pull.head_sha)["conclusion"] == ("success" if code == 0 else "failure")


@pytest.mark.slow
def test_later__second_step_finds_nobody__stays_red_and_is_published(job, github, green) -> None:
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        job.pull_request(pull, running.url, LATER)
        ended = second(job, github, pull, running.url, NOBODY)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert "the base agent cleared no failing case" in ended.log.lower()
    assert the_check(github, pull.head_sha)["conclusion"] == "failure"


def test_later__green__is_published_at_once(job, github, green) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        ended = job.pull_request(pull, running.url, LATER)
    assert (ended.code, ended.outputs["needs-base-agent"], ended.outputs["suspects"]) == (0, "false", ""), ended.log
    assert the_check(github, pull.head_sha)["conclusion"] == "success"


def test_later__red_whoever_is_asked__is_published_at_once(job, github, green) -> None:
    """Another rule fails the gate too, which nobody's answers can turn."""
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, LATER | {"min-pass-rate": "1"})
    assert (ended.code, ended.outputs["needs-base-agent"]) == (1, "false"), ended.log
    assert the_check(github, pull.head_sha)["conclusion"] == "failure"
