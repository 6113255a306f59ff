"""A pull request that changes how it is measured: the real action says so, and can be judged by the base's rules."""

from __future__ import annotations

import json
from html import unescape

import pytest

from tests.integration.action.test_action_pull_request import baseline_of_today, comments_of, the_check
from tests.integration.action.test_action_workflow_dispatch import check_out
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.github.faults import Fault
from tests.support.jobs import push_event

CONFIG = "eval-gate.yaml"
STRICT = "failOn: [regressions, removed]\nmustPass: [gs-000]\n"
LAX = "failOn: [never]\nallowedRegressions: 100\n"


@pytest.fixture
def branch(job, github):
    """A default branch with strict rules and one run behind it."""
    (job.workspace / CONFIG).write_text(STRICT)
    with agent() as running:
        assert job.push(running.url).code == 0
        baseline_of_today(github)
        github.state.files[github.state.branches["main"], CONFIG] = STRICT.encode()
        yield


def bend_rules(job) -> None:
    (job.workspace / CONFIG).write_text(LAX)


def remove_case(job, number: int) -> None:
    file = job.workspace / "evals/weather.golden.json"
    file.write_text(json.dumps([case for case in json.loads(file.read_text()) if case["id"] != f"gs-{number:03}"]))


def above_the_fold(github) -> str:
    return comments_of(github)[0].partition("<details>")[0]


def test_pull_request__loosens_the_rules__is_green_and_everybody_is_told(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    bend_rules(job)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log
    said = (
        "**Evaluation setup changed since the baseline:**",
        "- `fail-on` loosened: regressions, removed → never",
    )
    check = the_check(github, pull.head_sha)["output"]
    places = (above_the_fold(github), ended.summary.partition("<details>")[0], check["summary"], check["text"])
    for place in places:
        # characters that may begin Markdown are entities in what is shown
        shown = place.replace("&#45;", "-").replace("&#8203;", "")
        assert all(words in shown for words in said), place
        assert "`must-pass` loosened: no longer covers `gs-000`" in place
    assert "  · `allowed-regressions` loosened: 0 → 100" in ended.log


def test_pull_request__removes_the_failing_case__is_said_and_blocked(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    remove_case(job, 2)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 1, ended.log
    assert "1 case that passes on main was removed: `gs-002`" in above_the_fold(github)
    assert the_check(github, pull.head_sha)["output"]["title"].startswith("1 removed case")


def test_pull_request__marks_the_failing_case_as_draft__is_said_and_blocked_as_its_removal(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    file = job.workspace / "evals/weather.golden.json"
    cases = json.loads(file.read_text())
    file.write_text(json.dumps([case | {"draft": case["id"] == "gs-002"} for case in cases]))
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 1, ended.log
    assert "1 case that passes on main was removed: `gs-002`" in above_the_fold(github)
    assert the_check(github, pull.head_sha)["output"]["title"].startswith("1 removed case")
    for place in (comments_of(github)[0], ended.summary, ended.log):
        assert "1 draft was not run: gs-002." in unescape(place).replace("\u200b", "")


def test_pull_request__has_nothing_but_drafts__is_red_and_names_them(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    file = job.workspace / "evals/weather.golden.json"
    cases = json.loads(file.read_text())
    file.write_text(json.dumps([case | {"draft": True} for case in cases]))
    with agent() as running:
        ended = job.pull_request(pull, running.url)
    assert ended.code == 2, ended.log
    assert "No case was run: everything that is selected is a draft" in comments_of(github)[0]
    assert "gs-000, gs-001" in unescape(comments_of(github)[0]).replace("\u200b", "")


def test_policy_from_base__pull_request_loosens_the_rules__is_judged_by_the_bases(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    bend_rules(job)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"policy-from": "base"})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert f"policy of main: {CONFIG}" in ended.log
    assert "rule applies: `allowed" in above_the_fold(github)


def test_policy_from_base__tag_of_the_branchs_name_has_lax_rules__is_judged_by_the_branch(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    bend_rules(job)
    github.state.tags["main"] = pull.head_sha
    github.state.files[pull.head_sha, CONFIG] = LAX.encode()
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"policy-from": "base"})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log


@pytest.mark.parametrize("of", ["branch", "fork"])
def test_pull_request_into_a_branch_of_ones_own__its_lax_rules_say_nothing_on_the_common_head(
    job, github, branch, of
) -> None:
    state = github.state
    state.add_commit("mine", state.branches["main"], branch="mine")
    state.files[state.branches["mine"], CONFIG] = LAX.encode()
    facts = {"head_repo": "eve/bot", "user": "eve"} if of == "fork" else {}
    state.add_pull(7, **facts)
    bend_rules(job)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(state.add_pull(8, base_ref="mine", **facts), running.url, {"policy-from": "base"})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    assert "policy of main (mine, its base branch, is not protected)" in ended.log
    if of == "branch":
        assert the_check(github, state.pulls[7].head_sha)["conclusion"] == "failure"


def test_policy_from_base__the_base_branch_is_gone__does_not_decide(job, github, branch) -> None:
    state = github.state
    state.add_commit("below", state.branches["main"], branch="below")
    pull = state.add_pull(7, base_ref="below")
    del state.branches["below"]
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"policy-from": "base", "allowed-regressions": "5"})
    assert ended.code == 3, ended.log
    assert "the policy of below could not be read" in ended.log


@pytest.mark.parametrize("where", ["known", "renamed"])
def test_policy_from_base__the_checkout_lies_in_a_folder__rules_are_read_by_the_repositorys_path(
    job, github, branch, where
) -> None:
    """As `actions/checkout` leaves it with `path: app`."""
    pull = github.state.add_pull(7)
    folder = job.workspace / "app"
    folder.mkdir()
    for name in ("evals", CONFIG):
        (job.workspace / name).rename(folder / name)
    (folder / CONFIG).write_text(LAX)
    if where == "known":
        check_out(folder, pull.head_sha)
    with agent(fails_on(2)) as running:
        inputs = {
            "policy-from": "base",
            "config": f"app/{CONFIG}",
            "evals": "app/evals",
            "comment-key": "gate.yml.gate",
        }
        ended = job.pull_request(pull, running.url, inputs)
    if where == "known":
        assert f"policy of main: {CONFIG}" in ended.log
        check = the_check(github, pull.head_sha)
        assert (
            f"/blob/{pull.head_sha}/evals/weather.golden.json#L" in check["output"]["summary"] + comments_of(github)[0]
        )
        (annotation,) = next(one for one in github.state.check_runs.values() if one.annotations).annotations
        assert annotation["path"] == "evals/weather.golden.json"
        return
    assert ended.code == 3, ended.log
    assert "so the policy cannot be found" in ended.log


@pytest.mark.parametrize("asked", [{}, {"policy-from": "head"}])
def test_fork__loosens_the_rules__is_always_judged_by_the_bases(job, github, branch, asked) -> None:
    pull = github.state.add_pull(7, head_repo="eve/bot", user="eve")
    bend_rules(job)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, asked)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log


def test_policy_from_base__pull_request_loosens_what_a_score_has_to_reach__the_bases_rule_counts(job, github) -> None:
    strict = b"scores: [policy>=0.7]\n"
    (job.workspace / CONFIG).write_bytes(strict)
    (job.workspace / "r.jsonl").write_text('{"id": "a", "score": 0.9, "checks": [{"name": "policy", "score": 0.9}]}')
    assert job.step("push", push_event(github), {"results": "r.jsonl"}).code == 0
    baseline_of_today(github)
    github.state.files[github.state.branches["main"], CONFIG] = strict
    pull = github.state.add_pull(7)
    (job.workspace / CONFIG).write_text("scores: [policy>=0.1]\n")
    (job.workspace / "r.jsonl").write_text('{"id": "a", "score": 0.2, "checks": [{"name": "policy", "score": 0.2}]}')
    ended = job.pull_request(pull, "http://127.0.0.1:9", {"results": "r.jsonl", "policy-from": "base"})
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    said = "ignored, because the base branch's rule applies: `score` loosened: policy&#62;=0.7 → policy&#62;=0.1"
    assert said in above_the_fold(github)


def test_policy_from_base__inputs_of_the_step__win(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"policy-from": "base", "fail-on": "never"})
    assert ended.code == 0, ended.log


def test_policy_from_base__base_has_no_file__takes_the_defaults(job, github, branch) -> None:
    del github.state.files[github.state.branches["main"], CONFIG]
    pull = github.state.add_pull(7)
    bend_rules(job)
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"policy-from": "base"})
    assert ended.code == 1, ended.log
    assert "the defaults, because it has no configuration file" in ended.log


def test_policy_from_base__base_file_is_wrong__is_refused_with_its_place(job, github, branch) -> None:
    github.state.files[github.state.branches["main"], CONFIG] = b"failOn: [regressions]\nmaxErrors: many\n"
    pull = github.state.add_pull(7)
    with agent() as running:
        ended = job.pull_request(pull, running.url, {"policy-from": "base"})
    assert (ended.code, running.requests) == (2, [])
    assert f"{CONFIG} on main:2" in ended.log


def test_policy_from_base__github_does_not_answer__does_not_decide(job, github, branch) -> None:
    pull = github.state.add_pull(7)
    bend_rules(job)
    github.faults.add("GET", r"/contents/eval-gate", Fault.permission())
    with agent(fails_on(2)) as running:
        ended = job.pull_request(pull, running.url, {"policy-from": "base"})
    assert ended.code == 3, ended.log
    assert "the policy of main could not be read" in ended.log


def test_policy_from__unknown_word__is_refused(job, github) -> None:
    with agent() as running:
        ended = job.push(running.url, {"policy-from": "bass"})
    assert ended.code == 2
    assert 'policy-from: "bass" is not known' in ended.log
