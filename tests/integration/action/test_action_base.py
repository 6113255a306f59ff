"""With which commit a change is compared: the base side of what the workspace holds."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.action.test_action_workflow_run import relay
from tests.support.git import point_head
from tests.support.github import sha, zipped
from tests.support.world import ActionWorld, scripted


@pytest.fixture
def world(tmp_path, github):
    with scripted() as script:
        yield ActionWorld(tmp_path, github, script)


# --- a pull request: its test merge, its head, and nothing else


def test_merge__main_broke_it_after_the_change_left__is_not_of_the_change(world) -> None:
    world.main("PPPP*2")
    pull = world.pull()
    world.main("PPFP*2")
    seen = world.here("PPFP", world.merged(pull))
    assert (seen.code, seen.ended.outputs["regressions"]) == (0, "0"), seen.text
    assert seen.ended.outputs["baseline-sha"] == world.github.state.branches["main"]
    assert f"merged with `main` at `{world.github.state.branches['main'][:7]}`" in seen.report


def test_merge__main_repaired_it_and_the_change_breaks_it_again__is_of_the_change(world) -> None:
    world.main("PPFP*2")
    pull = world.pull()
    world.main("PPPP*2")
    seen = world.here("PPFP", world.merged(pull))
    assert (seen.code, seen.classes["gs-002"]) == (1, "regression"), seen.text


def test_head__main_repaired_it_since_the_change_left__is_compared_with_where_it_left(world) -> None:
    world.main("PPFP*2")
    pull = world.pull()
    world.main("PPPP*2")
    world.job.check_out(pull.head_sha)
    seen = world.here("PPFP", pull)
    assert (seen.code, seen.ended.outputs["baseline-sha"]) == (0, pull.base_sha), seen.text
    assert "not merged into `main` yet" in seen.report


@pytest.mark.parametrize("held", ["main", "a commit that GitHub does not know", "the merge of another"])
def test_workspace_holds_another_commit__is_refused(world, held) -> None:
    world.main("PPPP")
    pull = world.pull()
    other = world.pull()
    commits = {"main": world.github.state.branches["main"], "the merge of another": other.merge_sha}
    world.job.check_out(commits.get(held, sha(held)))
    world.script.begin("FFFF")
    ended = world.job.pull_request(pull, world.script.url)
    assert ended.code == 2, ended.log
    [comment] = world.github.state.comments.values()
    assert "nothing ran" in comment.body
    assert f"ref: refs/pull/{pull.number}/head" in ended.log


def test_worktree_holds_main__is_refused(world) -> None:
    """As on a machine of one's own, where `git worktree` has made the workspace: `.git` is a file there."""
    world.main("PPPP*2")
    pull = world.pull()
    git = world.job.folder / "repository" / ".git" / "worktrees" / "workspace"
    point_head(git, world.github.state.branches["main"])
    (world.job.workspace / ".git").write_text(f"gitdir: {git}\n")
    world.script.begin("PPPP")
    ended = world.job.pull_request(pull, world.script.url, world._given({}))
    assert (ended.code, "the workspace is at" in ended.log) == (2, True), ended.log
    point_head(git, pull.merge_sha)
    world.script.begin("PPPP")
    ended = world.job.pull_request(pull, world.script.url, world._given({}))
    assert (ended.code, "believed" in ended.summary) == (0, False), ended.log


@pytest.mark.parametrize("named", ["config", "evals"])
def test_second_checkout_holds_main__is_refused_with_what_is_possible(world, named) -> None:
    """The test merge at the root, and main in a folder for its rules or its evals."""
    world.main("PPPP*2")
    pull = world.merged(world.pull())
    below = world.job.workspace / "base"
    point_head(below / ".git", world.github.state.branches["main"])
    (below / "eval-gate.yaml").write_text("failOn: [regressions]\n")
    shutil.copytree(world.job.workspace / "evals", below / "evals")
    value = {"config": "base/eval-gate.yaml", "evals": "base/evals"}[named]
    ended = world.job.pull_request(pull, world.script.url, world._given({named: value}))
    assert ended.code == 2, ended.log
    assert f"base in the workspace is at {world.github.state.branches['main'][:12]}" in ended.log
    assert "to which `evals` or `config` points" in ended.log
    assert "`policy-from: base`" in ended.log


def test_evals_in_another_repository__say_nothing_of_the_commit(world) -> None:
    world.main("PPPP*2")
    below = world.job.workspace / "shared"
    point_head(below / ".git", sha("a commit of the evals"))
    (below / ".git/config").write_text(
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://github.com/acme/evals\n'
    )
    (world.job.workspace / "evals").rename(below / "evals")
    own = world.job.workspace / ".git"
    pull = world.merged(world.pull())
    (own / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/bot.git\n')
    world.script.begin("PPPP")
    ended = world.job.pull_request(pull, world.script.url, world._given({"evals": "shared/evals"}))
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log


@pytest.mark.slow
@pytest.mark.parametrize("event_name", ["pull_request", "push"])
def test_another_repository_alone_is_checked_out__is_refused(world, event_name) -> None:
    world.main("PPPP*2")
    below = world.job.workspace / "shared"
    point_head(below / ".git", sha("a commit of the evals"))
    (below / ".git/config").write_text('[remote "origin"]\n\turl = https://github.com/acme/evals\n')
    (world.job.workspace / "evals").rename(below / "evals")
    given = world._given({"evals": "shared/evals"})
    if event_name == "push":
        ended = world.job.push(world.script.url, given)
    else:
        ended = world.job.pull_request(world.pull(), world.script.url, given)
    assert (ended.code, "error[checkout-mismatch]" in ended.log) == (2, True), ended.log


def test_no_checkout_at_all__the_workflows_commit_is_believed_and_that_is_said(world) -> None:
    world.main("PPPP*2")
    pull = world.pull()
    world.main("PPFP*2")
    merge = world.github.state.merge_again(pull)
    seen = world.here("PPFP", pull)
    assert seen.code == 0, seen.text
    assert f"the workflow says `{merge[:7]}`" in seen.report
    assert seen.json["git"]["workspaceSha"] == merge


@pytest.mark.slow
def test_older_merge_of_the_same_head_is_checked_out__main_of_that_merge_counts(world) -> None:
    """`ref: refs/pull/7/merge` may bring another merge than the event's."""
    world.main("PPPP*2")
    pull = world.pull()
    older = pull.merge_sha
    world.main("PPFP*2")
    world.github.state.merge_again(pull)
    world.job.check_out(older)
    seen = world.here("PPFP", pull)
    assert (seen.code, seen.ended.outputs["baseline-sha"]) == (1, pull.base_sha), seen.text


@pytest.mark.slow
@pytest.mark.parametrize(("above", "held", "code"), [(None, "merge", 0), ("main", "merge", 0), ("merge", "main", 2)])
def test_checkout_of_the_evals_lies_below_the_workspace__its_commit_counts(world, above, held, code) -> None:
    """`actions/checkout` with `path`, perhaps beside one of the workspace itself."""
    world.main("PPPP*2")
    pull = world.pull()
    commits = {"merge": pull.merge_sha, "main": world.github.state.branches["main"]}
    below = world.job.workspace / "bot"
    point_head(below / ".git", commits[held])
    (world.job.workspace / "evals").rename(below / "evals")
    if above:
        world.job.check_out(commits[above])
    world.script.begin("PPPP")
    ended = world.job.pull_request(pull, world.script.url, {"evals": "bot/evals"})
    assert ended.code == code, ended.log


def test_results_of_another_checkout__are_refused(world) -> None:
    """As where one job of a run takes the test merge and the other the head."""
    world.main("PPPP*2")
    pull = world.merged(world.pull())
    assert world.here("PPPP", pull).code == 0
    world.job.check_out(pull.head_sha)
    world.job.begin_attempt()
    for record in (world.job.workspace / "evals/results").glob("*/run.json"):
        made = json.loads(record.read_text())
        made["producer"]["attempt"] = world.job.attempt
        record.write_text(json.dumps(made))
    seen = world.seen_step(pull, results="latest")
    assert (seen.code, f"the result is for {pull.merge_sha[:12]}" in seen.text) == (2, True), seen.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("merged_into", "code"),
    [("main before the change left", 1), ("a branch of one's own", 3), ("what a merged branch of one's own had", 3)],
)
def test_merge_that_somebody_made__its_other_side_is_the_base_only_where_main_had_it(world, merged_into, code) -> None:
    """Main broke a case, and repaired it before the change left: a merge with main of then excuses nothing."""
    state = world.github.state
    *_, broken, _, _ = world.main("PPPP PPFP*2 PPPP*2")
    own = state.add_commit("one's own", broken).sha
    if code == 3 and "merged" in merged_into:
        state.add_commit("merge of one's own", (state.branches["main"], own), branch="main")
    pull = world.pull()
    made = state.add_commit("made by hand", (broken if "before" in merged_into else own, pull.head_sha)).sha
    world.job.check_out(made)
    seen = world.here("PPFP", pull)
    assert seen.code == code, seen.text
    if code == 3:
        assert f"a merge with {own[:12]}, which is not a known commit of main" in seen.text
    else:
        assert seen.classes["gs-002"] == "regression"


# --- the second stage for forks


def forked(world: ActionWorld):
    """A change of a fork, which left main before main broke a case, and its run on a test merge of now."""
    world.main("PPPP*2")
    pull = world.pull(head_repo="mallory/bot", user="mallory")
    world.main("PPFP*2")
    world.merged(pull)
    world.github.read_only = True
    world.script.begin("PPFP")
    first = world.job.pull_request(pull, world.script.url, world._given({}))
    world.github.read_only = False
    run = world.github.state.runs[world.github.current_run_id]
    run.status, run.conclusion = "completed", "success"
    return pull, run, first


def test_relay__test_merge_of_a_fork__is_compared_as_in_the_first_stage(world) -> None:
    _, run, first = forked(world)
    second = relay(world.job, world.github, run)
    assert (first.code, second.outputs["verdict"]) == (0, "passed"), second.log
    assert second.outputs["baseline-sha"] == first.outputs["baseline-sha"] == world.github.state.branches["main"]


@pytest.mark.slow
def test_relay__fork_names_a_merge_with_main_of_long_ago__is_compared_with_where_the_fork_left(world) -> None:
    """Main broke a case, and repaired it before the fork left it."""
    state = world.github.state
    *_, broken, _, newest = world.main("PPPP PPFP*2 PPPP*2")
    pull = world.pull(head_repo="mallory/bot", user="mallory")
    world.job.check_out(state.add_commit("forged", (broken, pull.head_sha)).sha)
    world.github.read_only = True
    world.script.begin("PPFP")
    world.job.pull_request(pull, world.script.url, world._given({}))
    world.github.read_only = False
    run = state.runs[world.github.current_run_id]
    run.status, run.conclusion = "completed", "success"
    second = relay(world.job, world.github, run)
    assert (second.outputs["verdict"], second.outputs["baseline-sha"]) == ("failed", newest), second.log


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["a merge with a commit of its own", "another head", "nothing that GitHub knows"])
def test_relay__fork_names_another_commit__is_no_result(world, claim) -> None:
    pull, run, _ = forked(world)
    state = world.github.state
    broken = state.add_commit("everything is broken", state.branches["main"]).sha
    made = {
        "a merge with a commit of its own": state.add_commit("forged", (broken, pull.head_sha)).sha,
        "another head": broken,
    }
    artifact = state.archives[-1]
    artifact.zip_bytes, artifact.digest = claiming(world.artifact(), workspaceSha=made.get(claim, sha(claim))), None
    second = relay(world.job, world.github, run)
    assert (second.code, second.outputs["verdict"]) == (3, "inconclusive"), second.log


def claiming(data: bytes, **git: str) -> bytes:
    """An archive with a run that says this of its commit."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    record = json.loads(files["run.json"])
    record["git"] |= git
    return zipped(files | {"run.json": json.dumps(record).encode()})


# --- a merge queue


@pytest.mark.parametrize("named", ["", "base", "the queue's own"])
def test_queue__is_compared_with_its_base_whatever_the_setting_says(world, named) -> None:
    world.main("PPPP*2")
    base = world.github.state.branches["main"]
    named = f"gh-readonly-queue/main/pr-7-{base}" if named == "the queue's own" else named
    ended = world.in_queue("PPFP", **{"baseline-branch": named})
    assert (ended.code, ended.outputs["baseline-sha"]) == (1, base), ended.log


@pytest.mark.slow
def test_queue__of_another_branch__base_is_that_branch(world) -> None:
    state = world.github.state
    world.main("PPPP*2")
    state.branches["release"] = state.branches["main"]
    state.add_commit("release 1", branch="release")
    run = state.add_run(event="push", head_branch="release")
    state.add_artifact(run, world.artifact(), created_at=state.archives[-1].created_at)
    artifact = state.archives[-1]
    world.main("PPFP")
    artifact.zip_bytes, artifact.digest = claiming(artifact.zip_bytes, sha=state.branches["release"]), None
    ended = world.in_queue("PPFP", branch="release", **{"baseline-branch": "base"})
    assert (ended.code, ended.outputs["baseline-sha"]) == (1, state.branches["release"]), ended.log


@pytest.mark.slow
def test_queue__policy_from_base__are_the_rules_of_the_base(world) -> None:
    state = world.github.state
    world.main("PPPP*2")
    state.files[state.branches["main"], "eval-gate.yaml"] = b"failOn: [regressions]\n"
    (world.job.workspace / "eval-gate.yaml").write_text("failOn: []\n")
    ended = world.in_queue("PPFP", **{"policy-from": "base"})
    assert ended.code == 1, ended.log


@pytest.mark.parametrize(("rules", "code", "said"), [("head", 0, "new in this pull request"), ("base", 1, "not count")])
def test_queue__entry_among_accepted_failures_that_the_base_has_not__is_marked_as_new(world, rules, code, said) -> None:
    world.main("PPPP*2")
    file = world.job.workspace / ".eval-gate" / "waivers.yaml"
    file.parent.mkdir()
    until = (datetime.now(UTC) + timedelta(days=5)).date().isoformat()
    file.write_text(f'waivers:\n- case: gs-002\n  reason: known\n  until: "{until}"\n')
    ended = world.in_queue("PPFP", **{"policy-from": rules})
    assert (ended.code, said in ended.summary) == (code, True), ended.summary


@pytest.mark.slow
def test_queue__workspace_holds_another_commit__is_refused(world) -> None:
    world.main("PPPP*2")
    world.job.check_out(world.github.state.branches["main"])
    assert world.in_queue("PPFP").code == 2


# --- promotions


def promoted(world: ActionWorld, **facts):
    """main into production."""
    state = world.github.state
    number = len(state.pulls) + 7
    return state.add_pull(number, head_sha=state.branches["main"], head_ref="main", base_ref="production", **facts)


@pytest.mark.parametrize("named", ["", "base"])
def test_promotion__is_compared_with_the_commit_of_production(world, named) -> None:
    state = world.github.state
    world.main("PPPP*2")
    state.branches["production"] = state.branches["main"]
    world.main("PPFP*2")
    pull = promoted(world)
    seen = world.here("PPFP", world.merged(pull), baseline_branch=named)
    assert (seen.code, seen.ended.outputs["baseline-sha"]) == (1, state.branches["production"]), seen.text


@pytest.mark.parametrize(("letters", "code"), [("PPFP", 3), ("PPPP", 0)])
def test_promotion__production_has_no_result__is_inconclusive_where_a_case_fails(world, letters, code) -> None:
    state = world.github.state
    world.main("PPPP")
    state.add_commit("hotfix", state.branches["main"], branch="production")
    world.main("PPFP")
    assert world.here(letters, world.merged(promoted(world))).code == code


# --- a baseline that is older than the base


def test_base_has_no_result__the_heading_says_what_counts_too(world) -> None:
    state = world.github.state
    world.main("PPPP*2")
    older = state.branches["main"]
    for number in range(3):
        state.add_commit(f"docs {number}", branch="main")
    base = state.branches["main"]
    red = world.here("PPFP", world.merged(world.pull()))
    assert red.code == 1, red.text
    assert f"including 3 earlier commits ({older[:7]}..{base[:7]})" in red.title
    assert "their effects count too" in red.head
    green = world.here("PPPP", world.merged(world.pull()))
    assert (green.code, older[:7] in green.title) == (0, False)
    facts = red.json["comparison"]["baseline"]
    assert (facts["sha"], facts["baseSha"], facts["commitsSince"]) == (older, base, 3)


@pytest.mark.slow
def test_hotfix_into_a_branch_whose_results_are_not_compared_with__says_what_helps(world) -> None:
    """Gitflow: baselines are of develop, which main has not yet; the hotfix has all that main has."""
    state = world.github.state
    world.main("PPPP*2")
    state.branches["develop"] = state.branches["main"]
    state.branches["main"] = state.add_commit("released long ago").sha
    for artifact in state.artifacts.values():
        state.runs[artifact.run_id].head_branch = "develop"
    pull = world.merged(world.pull())
    seen = world.here("PPFP", pull, baseline_branch="develop")
    assert seen.code == 3, seen.text
    assert "run the workflow on main too and set `baseline-branch: base`" in " ".join(seen.text.split())
    assert "update this change" not in seen.text


@pytest.mark.slow
def test_only_later_ones_have_a_result__none_is_taken(world) -> None:
    """What main broke after the change left is no excuse for the change that breaks the same."""
    state = world.github.state
    pull = world.pull()
    world.main("PPFP*2")
    world.job.check_out(pull.head_sha)
    seen = world.here("PPFP", pull)
    assert (seen.code, seen.ended.outputs["baseline-sha"]) == (3, ""), seen.text
    assert "update this change with main" in seen.text
    assert state.branches["main"] != pull.base_sha


@pytest.mark.slow
def test_baseline_branch_base__unprotected_branch_of_ones_own__says_nothing_under_the_plain_name(world) -> None:
    state = world.github.state
    world.main("PPPP*2")
    state.branches["mine"] = state.branches["main"]
    pull = world.pull(base_ref="mine")
    world.here("PPPP", world.merged(pull), baseline_branch="base")
    names = [one.fields["name"] for one in state.check_runs.values() if one.fields["head_sha"] == pull.head_sha]
    assert names == ["eval-gate (into mine)"]
