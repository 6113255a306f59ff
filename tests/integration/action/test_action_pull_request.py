"""What a person sees on a pull request from a branch of the repository."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.agents import agent, vanishing_agent
from tests.support.answers import fails_on
from tests.support.github import Fault, sha
from tests.support.github.state import iso
from tests.support.jobs import pull_request_event


def comments_of(github) -> list[str]:
    return [comment.body for comment in github.state.comments.values()]


def the_check(github, head: str) -> dict:
    found = [run for run in github.state.check_runs.values() if run.fields["head_sha"] == head]
    assert len(found) == 1
    return {**found[0].fields, "annotations": found[0].annotations}


def baseline_of_today(github) -> None:
    """The fake's clock stands in January: make its artifacts two days old."""
    for artifact in github.state.artifacts.values():
        artifact.created_at = iso(datetime.now(UTC) - timedelta(days=2))


def test_pull_request__a_regression_and_a_new_pass__one_comment_a_red_check_and_exit_1(job, github) -> None:
    with agent(fails_on(1)) as running:
        assert job.push(running.url).code == 0
    baseline_of_today(github)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 1
    (comment,) = comments_of(github)
    assert comment.startswith("<!-- eval-gate:v1 key=gate.yml.gate -->\n## ❌ Agent eval gate — 1 regression\n")
    assert f"[`gs-002`]({ended.outputs['report-url']}#case-weather-gs-002-" in comment
    assert (
        f" <sub>[L24](https://github.com/acme/bot/blob/{pull.head_sha}/evals/weather.golden.json#L24)</sub>" in comment
    )
    assert "✅ **1 new pass:** `gs-001`" in comment
    main = github.state.branches["main"]
    assert f"baseline `{main[:7]}` of " in comment
    assert " on `main`, 2 days old, 0 commits behind" in comment
    check = the_check(github, pull.head_sha)
    assert (check["name"], check["conclusion"]) == ("eval-gate", "failure")
    assert check["output"]["title"] == "1 regression, 1 new pass — 3 of 4 pass (baseline: 3 of 4)"
    (annotation,) = check["annotations"]
    assert (annotation["path"], annotation["start_line"]) == ("evals/weather.golden.json", 24)
    assert annotation["title"] == "Regression: gs-002"
    expected = {"verdict": "failed", "exit-code": "1", "total": "4", "passed": "3", "failed": "1", "regressions": "1"}
    expected |= {"new-passes": "1", "baseline-sha": main, "pass-rate": "0.7500", "trend-path": ""}
    assert ended.outputs.items() >= expected.items()
    assert ended.outputs["comment-url"].endswith("#issuecomment-" + str(*github.state.comments))
    assert int(ended.outputs["check-run-url"].rpartition("/")[2]) in github.state.check_runs
    assert (job.workspace / ended.outputs["result-path"]).is_file()
    assert (job.workspace / ended.outputs["report-path"]).read_text().startswith("<!doctype html>")
    stored = github.state.artifacts[int(ended.outputs["artifact-id"])]
    assert (stored.name, stored.run_id) == ("eval-gate-results", github.current_run_id)
    assert ended.summary.startswith("# ❌ Agent eval gate — 1 regression\n")
    assert "## How this was decided" in ended.summary
    assert f"artifact {github.state.archives[0].id} of run 101" in ended.summary
    # the check run carries the annotation already
    assert not [line for line in ended.commands if line.startswith("::error")]


def test_pull_request__baseline_has_expired__is_not_said_to_be_none_yet(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    for artifact in github.state.artifacts.values():
        artifact.expired = True
    pull = github.state.add_pull(7)
    with agent() as running:
        assert job.pull_request(pull, running.url).code == 0
    (comment,) = comments_of(github)
    assert "passed, baseline expired" in comment
    assert "no baseline yet" not in comment


def test_pull_request__fixed__the_same_comment_says_that_the_regression_is_fixed(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        assert job.pull_request(pull, running.url).code == 1
    red = pull.head_sha
    github.state.add_commit("mended", red, branch=pull.head_ref)
    pull.head_sha = sha("mended")
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0
    (comment,) = comments_of(github)
    assert "## ✅ Agent eval gate — no regressions" in comment
    assert "Since your last push: 1 fixed" in comment
    assert the_check(github, pull.head_sha)["conclusion"] == "success"
    with agent() as running:
        job.pull_request(pull, running.url)
    assert "Since your last push: 1 fixed" in comments_of(github)[0]


def test_pull_request__no_baseline_yet__passes_and_says_that_nothing_could_be_compared(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["regressions"]) == (0, "passed", "")
    (comment,) = comments_of(github)
    assert "passed, no baseline yet" in comment
    assert "no usable artifact eval-gate-results of main" in comment
    assert the_check(github, pull.head_sha)["output"]["title"] == "Passed, no baseline yet — 3 of 4 pass"


def test_pull_request__agent_goes_away__could_not_decide_is_red_and_blames_no_case(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    with vanishing_agent() as url:
        ended = job.pull_request(pull, url, {"max-retries": "0"})
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive")
    (comment,) = comments_of(github)
    assert "🛠️ Agent eval gate — inconclusive" in comment
    assert "**Inconclusive:** no case has a score: no connection to 127.0.0.1" in comment
    assert "look up in the log of the agent why it stopped accepting connections." in comment
    assert "**This says nothing about your change.**" not in comment
    assert "Regression" not in comment.replace("| Regressions |", "|")
    assert "| `weather golden` | 0 | 0 | 4 | 0 | 0 | 4 |" in comment
    check = the_check(github, pull.head_sha)
    assert check["conclusion"] == "failure"
    assert check["output"]["title"].startswith("Inconclusive: ")


def test_pull_request__head_moved_on__no_comment_on_a_stale_result_but_the_verdict_stands(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    evaluated = pull.head_sha

    async def moves_on(exchange) -> None:
        pull.head_sha = sha("a newer commit")
        exchange.answer({"response": "no", "toolCalls": []})

    with agent(moves_on) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 1
    assert comments_of(github) == []
    assert f"the pull request is now at {sha('a newer commit')[:7]}" in ended.log
    assert the_check(github, evaluated)["conclusion"] == "failure"


def test_pull_request__many_comments_and_look_alikes__ours_is_found_and_updated(job, github) -> None:
    pull = github.state.add_pull(7)
    marker = "<!-- eval-gate:v1 key=gate.yml.gate -->"
    ours = github.state.add_comment(7, f"{marker}\nold")
    github.state.add_comment(7, f"{marker}\nby somebody else", mine=False)
    github.state.add_comment(7, f"quoting: {marker}")
    other_key = github.state.add_comment(7, "<!-- eval-gate:v1 key=gate.yml.gate.other -->\nother")
    for number in range(250):
        github.state.add_comment(7, f"talk {number}", mine=False)
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0
    assert "Agent eval gate" in ours.body
    assert other_key.body.endswith("other")
    assert len(github.state.comments) == 254


@pytest.mark.slow
def test_pull_request__comment_modes__differ_only_in_whether_one_is_made(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        for mode in ("never", "failures"):
            job.pull_request(pull, running.url, {"comment": mode})
            assert comments_of(github) == []
        job.pull_request(pull, running.url, {"comment": "always"})
        assert len(comments_of(github)) == 1
        first = comments_of(github)
        job.pull_request(pull, running.url, {"comment": "failures"})
    assert len(comments_of(github)) == 1
    assert comments_of(github) != first


@pytest.mark.slow
def test_pull_request__mode_changes__is_silent_until_something_changed(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    with agent() as running:
        ended = job.pull_request(pull, running.url, {"comment": "changes"})
    assert (ended.code, comments_of(github)) == (0, [])
    assert "comment is `changes`, and nothing changed" in ended.log
    with agent(fails_on(0)) as running:
        job.pull_request(pull, running.url, {"comment": "changes"})
    assert len(comments_of(github)) == 1


def test_pull_request__comment_too_long_for_github__shorter_ones_are_tried(job, github) -> None:
    pull = github.state.add_pull(7)
    too_long = Fault.status(422, message="Body is too long (maximum is 65536 characters)")
    github.faults.add("POST", r"/issues/7/comments$", too_long, too_long)
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 0
    assert len(comments_of(github)) == 1
    assert ended.log.count("the comment was too long for GitHub") == 2


def test_pull_request__reply_to_the_comment_lost__there_is_one_comment(job, github) -> None:
    pull = github.state.add_pull(7)
    github.faults.add("POST", r"/issues/7/comments$", Fault.reset_after_write())
    github.faults.add("POST", r"/check-runs$", Fault.reset_after_write())
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, len(comments_of(github)), len(github.state.check_runs)) == (0, 1, 1)
    assert ended.outputs["comment-url"]


def test_pull_request__permissions_missing__the_verdict_stands_and_each_is_named(job, github) -> None:
    github.permissions -= {"pull-requests:write", "checks:write"}
    github.permissions |= {"pull-requests:read"}
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"fail-on": "failures"})
    assert (ended.code, ended.outputs["verdict"]) == (1, "failed")
    warnings = [line for line in ended.commands if line.startswith("::warning")]
    assert any("No comment" in line and "`permissions: pull-requests: write`" in line for line in warnings)
    assert any("No check run" in line and "`permissions: checks: write`" in line for line in warnings)
    # without a check run the case is annotated by the step itself
    assert "::error title=Failing case%3A gs-002,file=evals/weather.golden.json,line=24::" in ended.log
    assert "No comment" in ended.summary


def test_pull_request__baseline_cannot_be_read__a_failing_case_is_not_let_through(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    github.permissions -= {"actions:read"}
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive")
    (comment,) = comments_of(github)
    assert "inconclusive" in comment
    assert "`permissions: actions: read`" in ended.log
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed")


@pytest.mark.parametrize("left", [b"PK", b"not a zip", {"run.json": b"{"}, {"run.json": b'{"schemaVersion": 99}'}])
def test_pull_request__the_only_baseline_is_no_readable_one__a_failing_case_is_not_let_through(
    job, github, left
) -> None:
    with agent() as running:
        job.push(running.url)
    (stored,) = [one for one in github.state.artifacts.values() if one.name == "eval-gate-results"]
    github.state.artifacts.pop(stored.id)
    run = github.state.runs[stored.run_id]
    github.state.add_artifact(run, left)
    baseline_of_today(github)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive")
    (comment,) = comments_of(github)
    assert "inconclusive" in comment
    assert "1 failing case cannot be compared with the baseline: no usable artifact" in comment
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed")


def test_pull_request__wrong_inputs__all_are_named_and_the_check_is_red(job, github) -> None:
    pull = github.state.add_pull(7)
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"fail_on": "x", "comment": "alway", "upload": "yes"})
    assert (ended.code, ended.outputs["verdict"], ended.outputs["exit-code"]) == (2, "inconclusive", "2")
    assert 'fail_on: unknown input (did you mean "fail-on"?)' in ended.log
    assert 'comment: "alway" is not known (did you mean "always"?)' in ended.log
    assert 'upload: "yes" is neither true nor false' in ended.log
    assert "nothing ran" in ended.summary


def test_pull_request__wrong_eval_file__comment_and_check_name_file_and_line(job, github) -> None:
    pull = github.state.add_pull(7)
    (job.workspace / "evals" / "broken.golden.json").write_text('[\n{"id": "x",}\n]')
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 2
    (comment,) = comments_of(github)
    assert "— nothing ran" in comment
    assert "evals/broken" in comment
    check = the_check(github, pull.head_sha)
    assert (check["conclusion"], check["output"]["title"][:20]) == ("failure", "Configuration error:")
    assert any(line.startswith("::error") and "file=evals/broken.golden.json,line=2" in line for line in ended.commands)


def test_pull_request__agent_answers_with_commands__none_is_carried_out(job, github) -> None:
    pull = github.state.add_pull(7)

    async def drives_the_runner(exchange) -> None:
        words = "::add-mask::e\n::error::pwned\n##[error]pwned\n::stop-commands::x\n@octocat closes #1"
        exchange.answer({"response": words, "toolCalls": []})

    with agent(drives_the_runner) as running:
        ended = job.pull_request(pull, running.url, {"fail-on": "failures"})
    assert ended.code == 1
    assert not [line for line in ended.commands if "pwned" in line]
    assert [line for line in ended.commands if line.startswith("::add-mask::")] == [
        f"::add-mask::{github.token}",
        f"::add-mask::{github.runtime_token}",
    ]
    assert "@octocat" not in comments_of(github)[0].replace("`@octocat", "")


def test_pull_request__two_configurations__have_a_comment_each(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        for name in ("support", "sales"):
            (job.workspace / f"{name}.yaml").write_text(f"evals: [evals]\nagentEndpoint: {running.url}\n")
            job.begin_run(event="pull_request", head_sha=pull.head_sha, head_branch=pull.head_ref)
            inputs = {"config": f"{name}.yaml", "artifact-name": f"results-{name}"}
            assert job.pull_request(pull, running.url, inputs).code == 0
    assert sorted(body.splitlines()[1] for body in comments_of(github)) == [
        "## ✅ Agent eval gate · `sales` — passed, no baseline yet",
        "## ✅ Agent eval gate · `support` — passed, no baseline yet",
    ]


def test_pull_request__baseline_is_old__links_to_the_workflow_that_makes_a_new_one(job, github) -> None:
    with agent() as running:
        job.push(running.url)
        job.pull_request(github.state.add_pull(7), running.url)
    (comment,) = comments_of(github)
    link = "[the workflow](https://github.com/acme/bot/actions/workflows/gate.yml)"
    assert f"To refresh it, run {link} on `main`." in comment


def test_pull_request__regression__says_how_to_run_the_same_on_ones_own_machine(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"evals": "evals", "tag": ""})
    (comment,) = comments_of(github)
    said = "eval-gate run evals --agent-endpoint URL --case gs-002"
    assert f"Reproduce: `{said}`" in comment
    assert f"rerun:  {said}" in ended.log


def test_pull_request__empty_inputs__are_as_if_they_were_not_given(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    with agent(fails_on(2)) as running:
        empty = dict.fromkeys(("baseline", "baseline-branch", "artifact-name", "comment-key", "results"), "")
        ended = job.pull_request(github.state.add_pull(7), running.url, empty)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1")


def test_pull_request__no_token_of_the_runtime__is_judged_and_says_that_nothing_was_stored(job, github) -> None:
    with agent(fails_on(2)) as running:
        given = {"fail-on": "failures"}
        ended = job.pull_request(github.state.add_pull(7), running.url, given, ACTIONS_RUNTIME_TOKEN="")
    assert (ended.code, ended.outputs["failed"], ended.outputs["artifact-id"]) == (1, "1", "")
    assert "1. The result was not stored: no artifact service is available." in ended.summary


def test_pull_request__re_run_after_the_repository_was_renamed__is_no_fork_s(job, github) -> None:
    """The event of a re-run has the names of its first attempt; the ids are the same."""
    pull = github.state.add_pull(7)
    event = json.loads(json.dumps(pull_request_event(github, pull)).replace(github.state.full_name, "acme/old-name"))
    with agent(fails_on(1)) as running:
        ended = job.step("pull_request", event, {"agent-endpoint": running.url})
    assert "fork" not in ended.log
    assert len(comments_of(github)) == 1
    assert the_check(github, pull.head_sha)["conclusion"]


def test_pull_request__another_repository_of_the_old_name__is_a_fork_s(job, github) -> None:
    """Whoever takes a name that became free is not the repository that had it."""
    pull = github.state.add_pull(7)
    event = pull_request_event(github, pull)
    event["pull_request"]["head"]["repo"] = {"id": github.state.id + 1, "full_name": github.state.full_name}
    with agent(fails_on(1)) as running:
        ended = job.step("pull_request", event, {"agent-endpoint": running.url})
    assert "a pull request from a fork gets a read-only token" in ended.log


def test_pull_request__check_run_refused_for_its_annotations__is_written_without_them(job, github) -> None:
    with agent(fails_on()) as running:
        assert job.push(running.url).code == 0
        pull = github.state.add_pull(7)
        assert job.pull_request(pull, running.url).code == 0
    assert the_check(github, pull.head_sha)["conclusion"] == "success"
    job.begin_attempt()
    github.faults.add(
        "POST", "/check-runs", Fault.status(422, message="Invalid request. `path` is not in the repository")
    )
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    newest = max(github.state.check_runs.values(), key=lambda one: one.id)
    assert (newest.fields["conclusion"], newest.annotations) == ("failure", [])
    assert "No annotations on the check run" in ended.log
    assert "::error title=Regression%3A gs-002,file=evals/weather.golden.json,line=24::" in ended.log


@pytest.mark.parametrize("kind", ["submodule", "checkout of another repository"])
def test_pull_request__evals_of_another_repository__are_linked_nowhere(job, github, kind) -> None:
    """A path of theirs leads nowhere in this repository, and GitHub refuses annotations on it."""
    shared = job.workspace / "shared"
    (job.workspace / "evals").rename(shared)
    pull = github.state.add_pull(7)
    job.check_out(pull.head_sha)
    if kind == "submodule":
        (shared / ".git").write_text("gitdir: ../.git/modules/shared\n")
    else:
        (shared / ".git").mkdir()
        (shared / ".git/HEAD").write_text("1" * 40)
        (shared / ".git/config").write_text('[remote "origin"]\n\turl = https://github.com/acme/evals\n')
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"evals": "shared", "fail-on": "failures"})
    assert ended.code == 1
    assert "`gs-002`" in comments_of(github)[0]
    assert "/blob/" not in "".join(comments_of(github)) + ended.summary
    assert the_check(github, pull.head_sha)["annotations"] == []
