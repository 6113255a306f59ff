"""One gate, one comment, one check: whatever runs beside it, again or by hand, all of them say the same."""

from __future__ import annotations

import json
import threading

import pytest

from tests.integration.action.test_action_workflow_run import relay
from tests.support.git import point_head
from tests.support.github import Fault, sha
from tests.support.jobs import Job, pull_request_event, repository_facts
from tests.support.world import ActionWorld, scripted


@pytest.fixture
def world(tmp_path, github):
    with scripted() as script:
        yield ActionWorld(tmp_path, github, script)


def comments_on(github, number: int = 7) -> list[str]:
    """The heading of each comment there, the oldest first."""
    return [one.body.splitlines()[1] for one in github.state.comments.values() if one.issue == number]


def checks_on(github, head: str) -> list[tuple[str, str]]:
    """Names and conclusions, in the order in which they were made."""
    found = [one.fields for one in github.state.check_runs.values() if one.fields["head_sha"] == head]
    return [(one["name"], one["conclusion"]) for one in found]


def shown(github, head: str) -> dict[str, str]:
    """What GitHub shows of each name: the newest."""
    return dict(checks_on(github, head))


def on_branch(world, pull, event_name: str, letters: str, **inputs: str):
    """A run of the pull request's branch that is no run of the pull request."""
    world.job.begin_run(event=event_name, head_branch=pull.head_ref, head_sha=pull.head_sha)
    world.script.begin(letters)
    given = {"agent-endpoint": world.script.url} | world._given(inputs)
    event = {"ref": f"refs/heads/{pull.head_ref}", "repository": repository_facts(world.github)}
    variables = {"GITHUB_SHA": pull.head_sha, "GITHUB_REF": f"refs/heads/{pull.head_ref}"}
    return world.job.step(event_name, event, given, **variables)


def run_again(world, pull, run_id: int, letters: str, **inputs: str):
    """Another attempt of a run, with the event that it had."""
    world.job.begin_attempt_of(run_id)
    world.script.begin(letters)
    return world.seen_step(pull, **inputs)


# --- an older run again


def test_an_older_run_again__the_newer_one_was_red__stays_red_everywhere(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPPP", pull)
    first = github.current_run_id
    world.here("PPFP", pull)
    before = [one.body for one in github.state.comments.values()], checks_on(github, pull.head_sha)
    ended = run_again(world, pull, first, "PPPP").ended
    assert (ended.code, ended.outputs["verdict"], ended.outputs["exit-code"]) == (3, "inconclusive", "3")
    assert (ended.outputs["comment-url"], ended.outputs["check-run-url"]) == ("", "")
    assert ([one.body for one in github.state.comments.values()], checks_on(github, pull.head_sha)) == before
    assert f"This gate passed, but run {first + 1} is newer" in ended.summary


@pytest.mark.slow
def test_an_older_run_again__the_newer_one_was_green__stays_green_and_the_older_one_ends_by_its_own(
    world, github
) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPFP", pull)
    first = github.current_run_id
    world.here("PPPP", pull)
    ended = run_again(world, pull, first, "PPFP").ended
    assert (ended.code, ended.outputs["verdict"]) == (1, "failed")
    assert "Not published: run" in ended.summary
    assert ["✅" in heading for heading in comments_on(github)] == [True]
    assert shown(github, pull.head_sha) == {"eval-gate": "success"}


@pytest.mark.slow
def test_an_older_run_again__nothing_but_the_check_tells__no_comment_says_otherwise(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPPP", pull)
    first = github.current_run_id
    world.here("PPFP", pull)
    github.state.comments.clear()
    assert run_again(world, pull, first, "PPPP").code == 3
    assert comments_on(github) == []
    assert shown(github, pull.head_sha) == {"eval-gate": "failure"}


# --- what is there cannot be read


def test_the_list_of_checks_cannot_be_read__a_red_check_takes_the_place_of_the_green_one(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPPP", pull)
    github.faults.add("GET", "/commits/.*/check-runs", *[Fault.status(404)] * 4)
    assert world.here("PPFP", pull).code == 1
    assert shown(github, pull.head_sha) == {"eval-gate": "failure"}
    before = checks_on(github, pull.head_sha)
    assert world.here("PPPP", pull).code == 0
    assert checks_on(github, pull.head_sha) == before


# --- other gates with names that look alike


@pytest.mark.parametrize("keys", [("日本", "中国"), ("support/eu", "support-eu")])
def test_two_gates__keys_that_look_alike__have_a_baseline_a_comment_and_a_check_each(world, github, keys) -> None:
    world.main("PPPP*3", comment_key=keys[0])
    world.main("PPFP*3", comment_key=keys[1])
    pull = world.pull()
    assert world.here("PPFP", pull, comment_key=keys[0]).code == 1
    assert world.here("PPFP", pull, comment_key=keys[1]).code == 0
    assert ["❌" in heading for heading in comments_on(github)] == [True, False]
    assert sorted(shown(github, pull.head_sha).values()) == ["failure", "success"]


def test_two_gates__configuration_in_folders_of_one_name__have_a_baseline_and_a_comment_each(world, github) -> None:
    world.of_length("PPPP")
    given = {}
    for team in ("one", "two"):
        folder = world.job.workspace / team / "bot"
        folder.mkdir(parents=True)
        (folder / "eval-gate.yaml").write_text("evals: [evals]\n")
        given[team] = {"config": f"{team}/bot/eval-gate.yaml"}
    world.main("PPPP*3", **given["two"])
    world.main("PPFP*3", **given["one"])
    pull = world.pull()
    assert world.here("PPFP", pull, **given["two"]).code == 1
    assert world.here("PPFP", pull, **given["one"]).code == 0
    assert ["❌" in heading for heading in comments_on(github)] == [True, False]


# --- other questions about the same commit


@pytest.mark.parametrize(
    ("event_name", "inputs", "name"),
    [
        ("push", {}, "eval-gate (push)"),
        ("workflow_dispatch", {"case": "gs-000"}, "eval-gate (workflow_dispatch, some cases)"),
    ],
)
def test_a_run_of_the_branch__green__does_not_stand_over_the_pull_requests_red_check(
    world, github, event_name, inputs, name
) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPFP", pull)
    assert on_branch(world, pull, event_name, "PPPP", **inputs).code == 0
    assert shown(github, pull.head_sha) == {"eval-gate": "failure", name: "success"}


@pytest.mark.slow
def test_some_cases_by_hand_for_the_pull_request__the_whole_ones_comment_and_check_stay(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPFP", pull)
    world.job.begin_run(event="workflow_dispatch")
    git = world.job.workspace / ".git"
    point_head(git, pull.head_sha)
    event = {"inputs": {"pr-number": "7"}, "repository": repository_facts(github)}
    world.script.begin("PPPP")
    given = {"agent-endpoint": world.script.url} | world._given({"case": "gs-000"})
    assert world.job.step("workflow_dispatch", event, given).code == 0
    whole, some = comments_on(github)
    assert "❌" in whole
    assert "some cases" in some
    assert shown(github, pull.head_sha) == {"eval-gate": "failure", "eval-gate (some cases)": "success"}


@pytest.mark.slow
def test_one_head_into_two_branches__a_check_for_each(world, github) -> None:
    world.main("PPPP")
    github.state.add_commit("older", github.state.branches["main"], branch="release")
    pull = world.pull()
    world.here("PPFP", pull)
    other = github.state.add_pull(8, head_sha=pull.head_sha, head_ref=pull.head_ref, base_ref="release")
    world.here("PPPP", other)
    assert shown(github, pull.head_sha) == {"eval-gate": "failure", "eval-gate (into release)": "success"}


# --- two at once


def at_once(world, tmp_path, pull, *letters: str, workflows=("gate.yml",) * 2, **inputs: str):
    """Two runs for the pull request that run at the same time, the newer one last; how both ended."""
    github = world.github
    other = Job(tmp_path / "other", github)
    other._runs = 500
    (other.workspace / "evals" / "weather.golden.json").write_text(json.dumps(world.cases, indent=1))
    with scripted() as second:
        started = []
        for job, script, does, workflow in zip(
            (world.job, other), (world.script, second), letters, workflows, strict=True
        ):
            job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
            script.begin(does)
            given = {"agent-endpoint": script.url} | world._given(inputs)
            ref = f"acme/bot/.github/workflows/{workflow}@refs/heads/main"
            event = pull_request_event(github, pull)
            started.append((job, job.start("pull_request", event, given, GITHUB_WORKFLOW_REF=ref)))
        return [job.ended(process.wait(), process.communicate(timeout=60)[0]) for job, process in started]


@pytest.mark.parametrize("there", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("letters", [("PPPP", "PPFP"), pytest.param(("PPFP", "PPPP"), marks=pytest.mark.slow)])
def test_two_runs_of_one_commit_at_once__one_comment_and_one_answer_the_newer_ones(
    world, github, tmp_path, letters, there
) -> None:
    """They write their check runs at the same time: by these, the older one knows that it is not to comment."""
    world.main("PPPP")
    pull = world.pull()
    if there:
        github.state.add_comment(7, "<!-- eval-gate:v1 key=gate.yml.gate -->\nof an earlier commit")
    github.faults.add("POST", r"/check-runs$", *[Fault.meet(threading.Barrier(2, timeout=40))] * 2)
    at_once(world, tmp_path, pull, *letters)
    red = "F" in letters[1]
    assert [("❌" in heading, "✅" in heading) for heading in comments_on(github)] == [(red, not red)]
    assert shown(github, pull.head_sha) == {"eval-gate": "failure" if red else "success"}


@pytest.mark.slow
def test_two_gates_of_one_commit_at_once__a_check_each(world, github, tmp_path) -> None:
    world.main("PPPP")
    pull = world.pull()
    github.faults.add("POST", r"/check-runs$", *[Fault.meet(threading.Barrier(2, timeout=40))] * 2)
    world.of_length("PPPP")
    at_once(world, tmp_path, pull, "PPPP", "PPFP", workflows=("gate.yml", "other.yml"), fail_on="failures")
    assert len(comments_on(github)) == 2
    assert sorted(shown(github, pull.head_sha).values()) == ["failure", "success"]


# --- the comment that is there


@pytest.mark.parametrize(("letters", "hidden"), [("PPFP", None), ("PPPP", "RESOLVED")])
def test_hidden_comment__is_shown_again_where_the_gate_does_not_pass(world, github, letters, hidden) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPPP", pull)
    (comment,) = github.state.comments.values()
    comment.minimized = "RESOLVED"
    world.here(letters, pull)
    assert comment.minimized == hidden


@pytest.mark.slow
def test_hidden_comment__the_token_may_not_show_it__is_said(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPPP", pull)
    next(iter(github.state.comments.values())).minimized = "RESOLVED"
    github.faults.add("POST", "/graphql", *[Fault.pass_()] * 2, Fault.permission())
    ended = world.here("PPFP", pull).ended
    assert ended.code == 1
    assert "The comment stays hidden" in ended.summary


@pytest.mark.parametrize("letters", ["PPPP", "PPFP"])
def test_pull_request_goes_into_another_branch_by_now__the_old_event_gives_no_verdict(world, github, letters) -> None:
    world.main("PPPP")
    github.state.add_commit("older", github.state.branches["main"], branch="release")
    pull = world.pull(base_ref="release")
    world.here("PPPP", pull)
    event = pull_request_event(github, pull)
    pull.base_ref = "main"
    world.job.begin_attempt()
    world.script.begin(letters)
    given = {"agent-endpoint": world.script.url} | world._given({})
    ended = world.job.step("pull_request", event, given, GITHUB_SHA=sha("merge of 7"), GITHUB_REF="refs/pull/7/merge")
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive")
    (heading,) = comments_on(github)
    assert "inconclusive" in heading
    assert shown(github, pull.head_sha) == {"eval-gate (into release)": "failure"}
    assert "now targets" in ended.summary


def test_two_workflows_with_one_comment_key__a_comment_and_a_check_each(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    given = {"comment-key": "evals", "agent-endpoint": world.script.url} | world._given({})
    world.of_length("PPPP")
    for letters, workflow in (("PPFP", "one.yml"), ("PPPP", "two.yml")):
        world.script.begin(letters)
        path = f".github/workflows/{workflow}"
        ref = {"GITHUB_WORKFLOW_REF": f"acme/bot/{path}@refs/heads/main"}
        more = {"baseline-workflow": "gate.yml", "fail-on": "failures"}
        world.job.pull_request(pull, world.script.url, given | more, **ref)
    assert ["❌" in heading for heading in comments_on(github)] == [True, False]
    assert shown(github, pull.head_sha) == {"eval-gate": "failure", "eval-gate (two.yml.evals)": "success"}


@pytest.mark.slow
def test_two_workflows_with_one_name_for_the_check__a_check_each(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    for letters, workflow in (("PPFP", "one.yml"), ("PPPP", "two.yml")):
        world.script.begin(letters)
        ref = {"GITHUB_WORKFLOW_REF": f"acme/bot/.github/workflows/{workflow}@refs/heads/main"}
        given = world._given({"check-run": "mine", "fail-on": "failures"})
        world.job.pull_request(pull, world.script.url, given, **ref)
    assert shown(github, pull.head_sha) == {"mine": "failure", "mine (two.yml.gate)": "success"}


# --- the second stage


def test_dependabot_with_a_token_that_writes__the_second_stage_leaves_it_at_one(world, github) -> None:
    world.main("PPPP")
    pull = github.state.add_pull(7, head_ref="dependabot/pip/x", user="dependabot[bot]")
    world.script.begin("PPFP")
    given = world._given({})
    assert world.job.pull_request(pull, world.script.url, given, GITHUB_ACTOR="dependabot[bot]").code == 1
    run = github.state.runs[github.current_run_id]
    before = comments_on(github), checks_on(github, pull.head_sha)
    ended = relay(world.job, github, run, actor="dependabot[bot]")
    assert (ended.code, ended.outputs["verdict"]) == (0, "")
    assert "published its own result" in ended.summary
    assert (comments_on(github), checks_on(github, pull.head_sha)) == before
    assert len(before[0]) == len(before[1]) == 1


def forked(world, letters: str, number: int = 9, **inputs: str):
    """A pull request from a fork, whose own run is over, and that run."""
    github = world.github
    pull = github.state.add_pull(number, head_repo="mallory/bot", head_ref="topic", user="mallory", head_sha="theirs")
    github.read_only = True
    world.script.begin(letters)
    world.job.pull_request(pull, world.script.url, world._given(inputs))
    github.read_only = False
    run = github.state.runs[github.current_run_id]
    run.status, run.conclusion = "completed", "success"
    return pull, run


@pytest.mark.parametrize(
    ("chosen", "verdict"), [("", "inconclusive"), ("gs-001,gs-000", "passed"), ("gs-000", "inconclusive")]
)
def test_fork_whose_workflow_chose_some_cases__passes_only_where_the_second_stage_asks_for_those(
    world, github, chosen, verdict
) -> None:
    world.main("PPPP")
    pull, run = forked(world, "PPPP", case="gs-000,gs-001")
    ended = relay(world.job, github, run, {"case": chosen})
    assert (ended.code, ended.outputs["verdict"]) == (0, verdict)
    conclusions = set(shown(github, pull.head_sha).values())
    assert conclusions == {"success" if verdict == "passed" else "failure"}
    assert len(comments_on(github, 9)) == 1


def test_one_head_of_a_fork_into_two_branches__each_is_told_by_its_own_base(world, github) -> None:
    world.main("PPPP")
    state = github.state
    state.add_commit("older", state.branches["main"], branch="release")
    state.files[state.branches["release"], "eval-gate.yaml"] = b"allowedRegressions: 5\n"
    state.protected.add("release")
    pull, run = forked(world, "PPFP")
    state.add_pull(8, head_repo="mallory/bot", head_ref="topic", head_sha=pull.head_sha, base_ref="release")
    ended = relay(world.job, github, run)
    assert (ended.code, ended.outputs["verdict"]) == (0, "failed")
    (main,), (release,) = comments_on(github, 9), comments_on(github, 8)
    assert ("❌" in main, "❌" in release) == (True, False)
    assert shown(github, pull.head_sha) == {"eval-gate": "failure", "eval-gate (into release)": "success"}


@pytest.mark.slow
@pytest.mark.parametrize("first", ["main", "release"])
def test_one_head_of_a_fork_into_two_branches__each_is_told_by_its_own_run(world, github, first) -> None:
    """Whichever of the two runs is published last; a run of the other branch says nothing here."""
    state = github.state
    world.main("PPPP")
    base = state.branches["main"]
    for branch in ("main", "release"):
        state.add_commit(f"tip of {branch}", base, branch=branch)
    pull, of_main = forked(world, "PPPP")
    other = state.add_pull(8, head_repo="mallory/bot", head_ref="topic", head_sha=pull.head_sha, base_ref="release")
    github.read_only = True
    world.script.begin("PPFP")
    world.job.pull_request(other, world.script.url, world._given({}))
    github.read_only = False
    of_release = state.runs[github.current_run_id]
    of_release.status, of_release.conclusion = "completed", "failure"
    for run in (of_main, of_release) if first == "main" else (of_release, of_main):
        relay(world.job, github, run)
    assert (["✅" in one for one in comments_on(github, 9)], ["❌" in one for one in comments_on(github, 8)]) == (
        [True],
        [True],
    )
    assert shown(github, pull.head_sha) == {"eval-gate": "success", "eval-gate (into release)": "failure"}


@pytest.mark.slow
def test_an_older_run_of_a_fork_again__does_not_win_by_a_newer_second_stage(world, github) -> None:
    world.main("PPPP")
    _, first = forked(world, "PPPP")
    pull, second = forked(world, "PPFP")
    relay(world.job, github, second)
    relay(world.job, github, first)
    assert ["❌" in heading for heading in comments_on(github, 9)] == [True]
    assert shown(github, pull.head_sha) == {"eval-gate": "failure"}


# --- every end is published


def test_wrong_inputs__a_green_comment_and_check_of_before_do_not_stay(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPPP", pull)
    seen = world.here("PPPP", pull, max_errors="many", upload="yes")
    assert (seen.code, seen.ended.outputs["verdict"]) == (2, "inconclusive")
    assert ["nothing ran" in heading for heading in comments_on(github)] == [True]
    assert shown(github, pull.head_sha) == {"eval-gate": "failure"}


@pytest.mark.slow
def test_wrong_configuration__a_green_comment_and_check_of_before_do_not_stay(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPPP", pull)
    (world.job.workspace / "eval-gate.yaml").write_text("failOn: [")
    assert world.here("PPPP", pull).code == 2
    assert ["nothing ran" in heading for heading in comments_on(github)] == [True]
    assert shown(github, pull.head_sha) == {"eval-gate": "failure"}


def test_another_commit_is_checked_out__a_green_comment_and_check_of_before_do_not_stay(world, github) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPPP", pull)
    git = world.job.workspace / ".git"
    point_head(git, github.state.branches["main"])
    assert world.here("PPPP", pull).code == 2
    assert ["nothing ran" in heading for heading in comments_on(github)] == [True]
    assert shown(github, pull.head_sha) == {"eval-gate": "failure"}


BREAKING = """
import sys
from eval_gate.{module} import {name}
import eval_gate.{at} as broken
def defect(*_, **__): raise RuntimeError("a defect")
setattr(broken, {name!r}, defect)
import os
from eval_gate.cli.program import run_program
sys.argv = ["eval-gate", "action"]
sys.exit(run_program())
"""


@pytest.mark.parametrize(
    ("module", "name", "at"),
    [
        ("gate.verdict_decision", "decide_verdict", "action.flow"),
        pytest.param("reports.markdown", "render_comment", "action.publishing.comment", marks=pytest.mark.slow),
        pytest.param("reports.markdown", "render_summary", "action.publishing.run_publication", marks=pytest.mark.slow),
    ],
)
def test_defect_of_ours__is_published_and_no_green_result_of_before_stays(world, github, module, name, at) -> None:
    world.main("PPPP")
    pull = world.pull()
    world.here("PPPP", pull)
    world.job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    world.script.begin("PPPP")
    given = {"agent-endpoint": world.script.url} | world._given({})
    code = BREAKING.format(module=module, name=name, at=at)
    ended = world.job.run_python(code, "pull_request", pull_request_event(github, pull), given)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["exit-code"]) == (3, "inconclusive", "3")
    assert "failed with an internal error: RuntimeError" in ended.summary
    assert "Traceback" in ended.log
    assert ["inconclusive" in heading for heading in comments_on(github)] == [True]
    assert shown(github, pull.head_sha) == {"eval-gate": "failure"}


def test_workspace_is_gone__outputs_and_summary_say_so(world, github) -> None:
    pull = world.pull()
    world.job.begin_run(event="pull_request")
    ended = world.job.step("pull_request", pull_request_event(github, pull), {}, GITHUB_WORKSPACE="/nowhere/at/all")
    assert (ended.code, ended.outputs["verdict"]) == (3, "inconclusive")
    assert "FileNotFoundError" in ended.summary
