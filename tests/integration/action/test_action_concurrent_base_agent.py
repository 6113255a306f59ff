"""What a step asks of GitHub at the same time, and that nobody can tell it from asking one after the other."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import pytest

from tests.integration.action.test_action_legs import again
from tests.integration.action.test_action_pull_request import baseline_of_today
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github import Fault, zipped
from tests.support.jobs import pull_request_event

pytestmark = pytest.mark.slow

LIST_OWN = "ArtifactService/ListArtifacts"
PARENTS = r"/commits/[0-9a-f]{40}$"
"""Of the test merge: the base of what is evaluated."""
NAMES = (r"/actions/artifacts\?.*name=eval-gate-results(&|$)", r"/actions/artifacts\?.*name=eval-gate-results\.")


@pytest.fixture
def pull(job, github):
    """A pull request with a baseline, and a push behind it."""
    pull = github.state.add_pull(7)
    with agent() as running:
        assert job.push(running.url).code == 0
        baseline_of_today(github)
        assert job.pull_request(pull, running.url).code == 0
    return pull


def meet(github, *requests: tuple[str, str]) -> None:
    """Have each of these answered when all of them wait for their answer, which those that come in turn never do."""
    barrier = threading.Barrier(len(requests), timeout=30)
    for method, path in requests:
        github.faults.add(method, path, Fault.meet(barrier))


def test_before_the_cases__what_needs_no_answer_first__is_asked_at_the_same_time(job, github, pull) -> None:
    asked = [("GET", PARENTS), *(("GET", name) for name in NAMES), ("POST", LIST_OWN)]
    meet(github, *asked)
    with agent() as running:
        assert job.pull_request(pull, running.url).code == 0


def test_before_the_cases__rules_of_the_base_branch__are_read_at_the_same_time(job, github, pull) -> None:
    meet(github, ("GET", PARENTS), ("GET", "/contents/"), ("POST", LIST_OWN))
    with agent() as running:
        assert job.pull_request(pull, running.url, {"policy-from": "base"}).code == 0


def test_before_the_cases__two_things_are_wrong_at_once__the_first_in_order_is_said(job, github, pull) -> None:
    """That another leg has stored its result takes four answers to be seen, that the rules are not to be had one."""
    job.write_suite(name="other.golden.json")
    with agent() as running:
        assert job.pull_request(pull, running.url, {"evals": "evals/other.golden.json"}).code == 0
        job.begin_job()
        meet(github, ("POST", LIST_OWN), ("GET", "/contents/"))
        github.faults.add("GET", "/contents/", Fault.permission())
        inputs = {"policy-from": "base"}
        ended = again(job, github, pull, running.url, inputs)
        asked = len(running.requests)
    assert "duplicate-gate-name" in ended.log
    assert "policy of main" not in ended.log
    assert ended.code != 0
    assert asked == 4  # by the first of the two


def test_before_the_cases__answers_come_in_another_order__the_log_does_not(job, github, pull) -> None:
    def steps(ended) -> list[str]:
        said = ("event pull_request", "policy of", "baseline: ", "its history has")
        return [line.split(" ")[0] for line in ended.log.splitlines() if line.startswith(said)]

    with agent() as running:
        github.faults.add("GET", PARENTS, Fault.slow(2))
        baseline_last = steps(job.pull_request(pull, running.url, {"policy-from": "base"}))
        github.faults.add("GET", "/contents/", Fault.slow(2))
        rules_last = steps(job.pull_request(pull, running.url, {"policy-from": "base"}))
    assert baseline_last == rules_last == ["event", "policy", "baseline:", "its"]


def test_before_the_cases__interrupted_while_github_is_waited_for__the_step_ends_at_once(job, github, pull) -> None:
    github.faults.add("GET", PARENTS, Fault.hang())
    with agent() as running:
        process = job.start("pull_request", pull_request_event(github, pull), {"agent-endpoint": running.url})
        until = time.monotonic() + 60
        while github.faults.unused and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=15)  # an answer is waited for at least twenty seconds
    assert process.returncode == 130, out
    assert not running.requests


@pytest.mark.parametrize("others", [(), ("prices.json",)], ids=["evals alone", "with a file that is left out"])
def test_beside_the_cases__baseline__is_fetched_while_the_first_case_is_asked(job, github, pull, others) -> None:
    """The agent answers when the baseline's archive is asked for, and GitHub when the agent is."""
    for name in others:
        (job.workspace / "evals" / name).write_text("{}")
    both = threading.Barrier(2, timeout=30)
    github.faults.add("GET", r"/actions/artifacts/\d+/zip", Fault.meet(both))

    async def answer(exchange) -> None:
        if exchange.number == 0:
            await asyncio.to_thread(both.wait)
        exchange.answer({"response": "ok", "toolCalls": []})

    with agent(answer) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["regressions"]) == (0, "passed", "0")


@pytest.mark.parametrize("failing", [(), (0,)], ids=["without re-runs", "before the first re-run"])
def test_beside_the_cases__baseline_has_cases_of_a_file_that_is_not_read__is_an_error(job, github, failing) -> None:
    pull = github.state.add_pull(7)
    job.write_suite(1, "desk.json")
    with agent() as running:
        assert job.push(running.url).code == 0
    baseline_of_today(github)
    (job.workspace / "evals" / "desk.json").write_text("{}")
    with agent(fails_on(*failing)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["verdict"]) == (2, "inconclusive")
    assert "evals/desk.json: not an eval file, but the baseline has 1 case of it" in ended.log
    assert len(running.requests) == 4, "cases are asked once: without the baseline nothing is re-run"


@pytest.mark.parametrize("inputs", [{}, {"recording": "auto"}], ids=["beside the cases", "before them"])
def test_baseline__cannot_be_had__is_the_same_error_whenever_it_is_asked_for(job, github, pull, inputs) -> None:
    github.faults.add("GET", PARENTS, Fault.permission())
    with agent(fails_on(1)) as running:
        ended = job.pull_request(pull, running.url, inputs)
        asked = len(running.requests)
    assert (ended.code, ended.outputs["verdict"], asked) == (3, "inconclusive", 4)
    assert "The baseline could not be read: reading commit" in ended.log
    assert ended.outputs["artifact-id"]
    assert any("the baseline could not be read" in comment.body for comment in github.state.comments.values())


@pytest.mark.parametrize("inputs", [{}, {"recording": "auto"}], ids=["beside the cases", "before them"])
def test_baseline__is_corrupt__is_the_same_whenever_it_is_read(job, github, pull, inputs) -> None:
    for artifact in github.state.archives[:1]:
        artifact.zip_bytes = zipped({"run.json": b"{"})
        artifact.digest = None
    with agent(fails_on(1)) as running:
        ended = job.pull_request(pull, running.url, inputs)
    assert "no baseline: no usable artifact eval-gate-results of main; seen 1: 1 corrupt" in ended.log
    # whether the failing case passed before, nobody knows
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive")
    assert ended.outputs["artifact-id"]


def test_baseline__named_and_not_there__ends_the_step_before_a_case_is_asked(job, github, pull) -> None:
    with agent() as running:
        ended = job.pull_request(pull, running.url, {"baseline": "4711"})
        assert not running.requests
    assert (ended.code, ended.outputs["verdict"]) == (2, "inconclusive")
    assert "run 4711 not found" in ended.log


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_cancelled__baseline_is_not_there_yet__is_not_waited_for(job, github, pull, number, code) -> None:
    github.faults.add("GET", PARENTS, Fault.hang())
    ended = job.cancelled(pull, number, timeout=15)  # an answer is waited for at least twenty seconds
    assert (ended.code, ended.outputs["verdict"], ended.outputs["exit-code"]) == (code, "inconclusive", str(code)), (
        ended.log
    )
    check = list(github.state.check_runs.values())[-1]
    assert check.fields["conclusion"] == "cancelled"


CREATE, CHECKS = "ArtifactService/CreateArtifact", "/check-runs"
OF_RESULT = r"/uploads/.*/eval-gate-results\?"


def test_after_the_cases__the_page__follows_the_result_by_one_call(job, github, pull) -> None:
    github.faults.add("POST", CREATE, Fault.pass_())
    meet(github, ("POST", CREATE), ("PUT", OF_RESULT))
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0
    assert ended.outputs["artifact-id"]
    assert ended.outputs["report-url"]


def test_after_the_cases__comment__is_written_after_the_check_by_which_others_know_of_it(job, github, pull) -> None:
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, bool(ended.outputs["comment-url"]), bool(ended.outputs["check-run-url"])) == (0, True, True)
    written = [one.path for one in github.log if one.method in {"POST", "PATCH"} and "graphql" not in one.path]
    places = [at for at, path in enumerate(written) if path.endswith(CHECKS) or "/issues/comments/" in path]
    assert [written[at].rsplit("/", 2)[-2] for at in places[-2:]] == ["bot", "comments"]


def test_after_the_cases__the_first_is_done_last__the_log_is_in_order(job, github, pull) -> None:
    github.faults.add("PUT", OF_RESULT, Fault.slow(2))
    github.faults.add("PATCH", "/issues/comments/", Fault.slow(2))
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    said = ("result stored", "page stored", "check run eval-gate written", "comment updated")
    found = [one for line in ended.log.splitlines() for one in said if line.lower().startswith(one)]
    assert found == list(said)


def test_after_the_cases__the_result_cannot_be_stored__the_page_is_there_all_the_same(job, github, pull) -> None:
    github.faults.add("PUT", OF_RESULT, Fault.status(400))
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0
    assert ended.outputs["artifact-id"] == ""
    assert ended.outputs["report-url"]
    assert "the result was not stored" in ended.log.lower()


def test_after_the_cases__neither_result_nor_page_can_be_stored__is_said_once(job, github, pull) -> None:
    github.faults.add("PUT", "/uploads/", Fault.status(400), Fault.status(400))
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert ended.outputs["report-url"] == ""
    assert ended.log.lower().count("the result was not stored") == 1
    assert "the page was not stored" not in ended.log


def test_after_the_cases__the_check_is_another_leg_s__the_comment_is_written_as_before(job, github, pull) -> None:
    """The comment comes first: each leg has its own."""
    inputs = {"check-run": "Evals", "artifact-name": "one", "comment-key": "one"}
    with agent() as running:
        assert job.pull_request(pull, running.url, inputs).code == 0
        job.begin_job()
        ended = again(job, github, pull, running.url, inputs | {"artifact-name": "two", "comment-key": "two"})
    assert "the check `Evals` already exists" in ended.log
    assert ["key=gate.yml.two" in comment.body for comment in github.state.comments.values()].count(True) == 1
