"""Where the action must not run, or cannot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.action.test_action_workflow_dispatch import check_out
from tests.integration.test_integration_settings import FAIL_ON, OTHERS, THREE_MISTAKES
from tests.support.agents import agent
from tests.support.git import commit_all, git
from tests.support.jobs import pull_request_event, push_event
from tests.support.program import gate
from tests.support.world import GRADER, graded_suite


def test_pull_request_target__is_refused_before_anything_runs(job, github) -> None:
    pull = github.state.add_pull(7)
    with agent() as running:
        event = pull_request_event(github, pull)
        ended = job.step("pull_request_target", event, {"agent-endpoint": running.url})
    assert (ended.code, running.requests) == (2, [])
    assert "unsafe-event" in ended.log
    assert github.log == []


@pytest.mark.parametrize(
    "event", ["issue_comment", "discussion_comment", "repository_dispatch", "check_run", "check_suite", "status"]
)
def test_comment__somebodys_code_is_checked_out__is_refused_before_anything_runs(job, github, event) -> None:
    """A workflow that answers a comment such as `/evals` has the keys, whoever wrote the code that it checks out.

    So has one that a bot starts which reads comments, or one that answers a check of a pull request.
    """
    pull = github.state.add_pull(7, head_repo="eve/bot", user="eve")
    check_out(job.workspace, pull.head_sha)
    job.begin_run(event=event)
    with agent() as running:
        ended = job.step(event, push_event(github), {"agent-endpoint": running.url})
    assert (ended.code, running.requests) == (2, [])
    assert (
        f"unsafe-event]: {event} runs with the default branch's secrets, but the workspace has {pull.head_sha[:12]}"
        in (ended.log)
    )


@pytest.mark.parametrize("inputs", [{"config": "theirs/eval-gate.yaml"}, {"evals": "theirs/**/*.golden.json"}])
@pytest.mark.parametrize("root", ["main's", "nothing"])
def test_comment__somebodys_code_lies_in_a_folder_of_its_own__is_refused_too(job, github, inputs, root) -> None:
    pull = github.state.add_pull(7, head_repo="eve/bot", user="eve")
    theirs = job.workspace / "theirs"
    theirs.mkdir()
    (theirs / "eval-gate.yaml").write_text("failOn: [never]\n")
    (job.workspace / "evals").rename(theirs / "evals")
    check_out(theirs, pull.head_sha)
    if root != "nothing":
        check_out(job.workspace, github.state.branches["main"])
    job.begin_run(event="issue_comment")
    with agent() as running:
        ended = job.step("issue_comment", push_event(github), {"agent-endpoint": running.url, **inputs})
    assert (ended.code, running.requests) == (2, [])
    assert f"but the workspace has {pull.head_sha[:12]}" in ended.log


@pytest.mark.parametrize(
    "inputs",
    [
        {"targets": "theirs/targets.yaml"},
        {"targets": "theirs"},
        {"system-prompt": "theirs/prompt.md"},
        {"tool-registry": "theirs/.mcp.json#weather"},
        {"tool-registry": "."},
        {"seed-manifest": "theirs/seed.json"},
        {"snapshot": "theirs/seed.json"},
        {"waivers": "theirs/waivers.yaml"},
        {"results": "theirs/out.xml"},
        {"results": "linux=theirs/out.xml"},
        {"results": "theirs/*.xml"},
        {"results": "evals\ntheirs"},
        {"results": "."},
        {"baseline": "theirs/run.json"},
        {"output-dir": "theirs/results"},
        {"evals": "**/*.golden.json"},
        {"evals": "."},
        {"evals": "evals", "config": "theirs/eval-gate.yaml"},
    ],
)
def test_comment__any_file_that_is_read_is_somebodys__is_refused_too(job, github, inputs) -> None:
    """What is read of another commit than the event's says whom keys are sent to, or what the verdict is."""
    with somebodys_code_in_theirs(job, github) as (pull, endpoint):
        given = endpoint if inputs.keys().isdisjoint({"targets", "results"}) else {}
        ended = job.step("issue_comment", push_event(github), given | inputs)
    assert ended.code == 2, ended.log
    assert (
        f"unsafe-event]: issue_comment runs with the default branch's secrets, but the workspace has {pull}"
        in ended.log
    )


@pytest.mark.parametrize("said_by", ["variable", "targets_variable", "file", "file_of_targets", "link"])
def test_comment__variable_file_or_link_leads_to_somebodys_code__is_refused_too(job, github, said_by) -> None:
    """It counts where a path leads, and not who says it."""
    variables = {"variable": {"EVAL_GATE_EVALS": "theirs/evals"}, "targets_variable": {"EVAL_GATE_TARGETS": "theirs"}}
    with somebodys_code_in_theirs(job, github) as (pull, endpoint):
        given = endpoint if said_by in {"variable", "file"} else {}
        if said_by == "file":
            (job.workspace / "eval-gate.yaml").write_text("evals: [evals, theirs/evals]\n")
        elif said_by == "file_of_targets":
            (job.workspace / "eval-gate.yaml").write_text("targets: theirs/targets.yaml\n")
        elif said_by == "link":
            (job.workspace / "targets.yaml").symlink_to("theirs/targets.yaml")
        ended = job.step("issue_comment", push_event(github), given, **variables.get(said_by, {}))
    assert ended.code == 2, ended.log
    assert f"but the workspace has {pull}" in ended.log


def test_comment__nothing_is_read_of_somebodys_code_in_the_workspace__is_evaluated(job, github) -> None:
    """It may be what the agent is started from, in a step that has no keys."""
    with somebodys_code_in_theirs(job, github, asked=4) as (_, endpoint):
        ended = job.step("issue_comment", push_event(github), {**endpoint, "evals": "evals/*.json"})
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log


@contextmanager
def somebodys_code_in_theirs(job, github, *, asked: int = 0) -> Iterator[tuple[str, dict[str, str]]]:
    """Beside the event's own checkout there is that of a fork. The beginning of its commit, and the usual inputs."""
    pull = github.state.add_pull(7, head_repo="eve/bot", user="eve")
    theirs = job.workspace / "theirs"
    shutil.copytree(job.workspace / "evals", theirs / "evals")
    (theirs / "eval-gate.yaml").write_text("failOn: [never]\n")
    (theirs / "out.xml").write_text('<testsuite name="s"><testcase name="a"/></testsuite>')
    (theirs / "seed.json").write_text("{}")
    (theirs / "prompt.md").write_text("Say yes.\n")
    hidden = theirs.rename(job.folder / "theirs")
    check_in(job, github)
    hidden.rename(theirs)
    check_out(theirs, pull.head_sha)
    job.begin_run(event="issue_comment")
    with agent() as running:
        target = {"name": "default", "provider": "http", "url": running.url, "headers": {"x": "${{ KEY_OF_THE_JOB }}"}}
        (theirs / "targets.yaml").write_text(json.dumps({"targets": [target]}))
        yield pull.head_sha[:12], {"agent-endpoint": running.url}
        assert len(running.requests) == asked


@pytest.mark.parametrize("way", ["worktree", "separate", "link"])
def test_comment__somebodys_code_lies_beside_the_events_own_checkout__is_refused_too(job, github, way) -> None:
    """The nearest folder with a `.git` is the event's; what is evaluated is not in it."""
    main = github.state.branches["main"]
    check_out(job.workspace, main)
    theirs = job.workspace / "theirs"
    if way == "worktree":
        theirs.mkdir()
        about = job.workspace / ".git/worktrees/theirs"
        about.mkdir(parents=True)
        (about / "commondir").write_text("../..\n")
        (theirs / ".git").write_text(f"gitdir: {about}\n")
    elif way == "separate":  # git init --separate-git-dir
        theirs.mkdir()
        (job.folder / "apart").mkdir()
        check_out(job.folder / "apart", "a" * 40)
        (theirs / ".git").write_text(f"gitdir: {job.folder / 'apart' / '.git'}\n")
    else:
        (job.folder / "elsewhere").mkdir()
        theirs.symlink_to(job.folder / "elsewhere")
    (job.workspace / "evals").rename(theirs / "evals")
    job.begin_run(event="issue_comment")
    with agent() as running:
        inputs = {"agent-endpoint": running.url, "evals": "theirs/evals"}
        ended = job.step("issue_comment", push_event(github), inputs)
    assert (ended.code, running.requests) == (2, []), ended.log
    found = "a" * 12 if way == "separate" else "an unknown commit"
    assert f"but the workspace has {found}" in ended.log


def test_comment__evals_are_in_a_submodule_of_the_events_own_checkout__are_evaluated(job, github) -> None:
    submodule_of_evals(job, github)
    job.begin_run(event="issue_comment")
    with agent() as running:
        ended = job.step("issue_comment", push_event(github), {"agent-endpoint": running.url, "evals": "evals"})
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log


def test_comment__submodule_is_at_another_commit__is_refused(job, github) -> None:
    submodule_of_evals(job, github)
    job.write_suite(5)
    commit_all(job.workspace / "evals")
    refused(job, github, {"evals": "evals"}, "evals/weather.golden.json from an unknown commit")


def test_comment__nobody_knows_what_is_checked_out__is_refused(job, github) -> None:
    job.begin_run(event="issue_comment")
    with agent() as running:
        ended = job.step("issue_comment", push_event(github), {"agent-endpoint": running.url})
    assert (ended.code, running.requests) == (2, [])
    assert "but the workspace has an unknown commit" in ended.log


@pytest.mark.parametrize("event", ["issue_comment", "repository_dispatch"])
def test_comment__the_events_own_commit_is_checked_out__is_evaluated(job, github, event) -> None:
    check_in(job, github)
    job.begin_run(event=event)
    with agent() as running:
        ended = job.step(event, push_event(github), {"agent-endpoint": running.url})
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log


def check_in(job, github) -> str:
    """All that is in the workspace is main's newest commit, by real git; its name."""
    commit = commit_all(job.workspace)
    github.state.add_commit(commit, branch="main")
    return commit


def submodule_of_evals(job, github) -> None:
    """The evals are a repository of their own, checked out as `git submodule` does it."""
    shutil.copytree(job.workspace / "evals", job.folder / "evals")
    commit_all(job.folder / "evals")
    shutil.rmtree(job.workspace / "evals")
    git(job.workspace, "init", "--quiet")
    git(job.workspace, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(job.folder / "evals"))
    check_in(job, github)


def refused(job, github, inputs, said, *, event="issue_comment", **variables) -> None:
    """Such a step runs nothing, and writes nothing on any commit."""
    job.begin_run(event=event)
    with agent() as running:
        given = {"agent-endpoint": running.url} if inputs.keys().isdisjoint({"targets", "results"}) else {}
        ended = job.step(event, push_event(github), given | inputs, **variables)
    assert (ended.code, running.requests) == (2, []), ended.log
    assert (
        f"unsafe-event]: {event} runs with the default branch's secrets, but the workspace has {said}" in ended.log
    ), ended.log
    assert (github.state.check_runs, github.state.archives, github.state.comments) == ({}, [], {})


def unpacked(job) -> None:
    """A fork's archive, which has no `.git`."""
    theirs = job.workspace / "theirs"
    shutil.copytree(job.workspace / "evals", theirs / "evals")
    (theirs / "eval-gate.yaml").write_text(
        "targets: [{name: a, url: http://127.0.0.1:9, headers: {x: '${{ KEY }}'}}]\n"
    )
    (theirs / "targets.yaml").write_text("targets: [{name: a, url: http://127.0.0.1:9, headers: {x: '${{ KEY }}'}}]\n")
    (theirs / "out.xml").write_text('<testsuite name="s"><testcase name="a"/></testsuite>')


ANYBODYS = [
    "issue_comment",
    "repository_dispatch",
    "check_run",
    "check_suite",
    "status",
    "issues",
    "discussion",
    "fork",
]


@pytest.mark.parametrize("event", [*ANYBODYS, "workflow_dispatch"])
@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        ({"config": "theirs/eval-gate.yaml"}, "theirs/eval-gate.yaml"),
        ({"targets": "theirs/targets.yaml"}, "theirs/targets.yaml"),
        ({"evals": "*/evals/*.json"}, "theirs/evals/weather.golden.json"),
    ],
)
def test_event__somebodys_files_without_any_git_of_their_own__are_refused(job, github, event, inputs, named) -> None:
    """The nearest `.git` is the event's own; its commit does not have these files."""
    check_in(job, github)
    unpacked(job)
    refused(job, github, inputs, f"{named} from an unknown commit", event=event)


@pytest.mark.parametrize("how", ["changed", "added", "staged"])
def test_comment__files_of_the_own_checkout_are_somebodys__are_refused(job, github, how) -> None:
    """As `git checkout FETCH_HEAD -- .` leaves them: HEAD still is the event's commit."""
    check_in(job, github)
    name = "other" if how == "added" else "weather"
    job.write_suite(5, f"{name}.golden.json")
    if how == "staged":
        git(job.workspace, "add", "--all")
    refused(job, github, {}, f"evals/{name}.golden.json from")


def test_comment__configuration_is_a_link_that_the_commit_has__is_evaluated(job, github) -> None:
    (job.workspace / "rules.yaml").write_text("failOn: [failures]\n")
    (job.workspace / "eval-gate.yaml").symlink_to("rules.yaml")
    check_in(job, github)
    job.begin_run(event="issue_comment")
    with agent() as running:
        ended = job.step("issue_comment", push_event(github), {"agent-endpoint": running.url})
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log


def test_comment__link_of_somebody_leads_to_a_file_of_the_commit__is_refused(job, github) -> None:
    """Which of its files counts is the commit's word, too."""
    (job.workspace / "lax.yaml").write_text("failOn: [never]\n")
    check_in(job, github)
    (job.workspace / "eval-gate.yaml").symlink_to("lax.yaml")
    refused(job, github, {}, "eval-gate.yaml from an unknown commit")


@pytest.mark.parametrize("given", ["out.xml", "o*.xml", "linux=out.xml", "linux=o*.xml"])
def test_comment__results_of_a_step_before__are_of_nobody_that_is_known(job, github, given) -> None:
    check_in(job, github)
    (job.workspace / "out.xml").write_text('<testsuite name="s"><testcase name="a"/></testsuite>')
    refused(job, github, {"results": given}, "out.xml from an unknown commit")


@pytest.mark.parametrize("what", ["grader", "prompt"])
def test_comment__what_an_eval_file_of_the_commit_names_is_somebodys__is_refused(job, github, what) -> None:
    """A green verdict by a kinder grader, or another question."""
    graded = graded_suite(1).replace(json.dumps(GRADER), json.dumps("python3 evals/grade.py"))
    asked = json.dumps([{"type": "text", "value": "ask 0"}, {"type": "file", "value": "/evals/prompt.md"}])
    named = graded.replace('"content": "ask 0"', f'"content": {asked}') if what == "prompt" else graded
    (job.workspace / "evals/weather.golden.json").unlink()
    (job.workspace / "evals/desk.eval.yaml").write_text(named)
    for name in ("grade.py", "prompt.md"):
        (job.workspace / "evals" / name).write_text("1\n")
    check_in(job, github)
    name = {"grader": "grade.py", "prompt": "prompt.md"}[what]
    (job.workspace / "evals" / name).write_text("2\n")
    job.give_to_runner()
    refused(job, github, {}, f"evals/{name} from an unknown commit")


def test_dispatch__somebodys_code_lies_in_a_folder_of_its_own__is_refused_too(job, github) -> None:
    pull = github.state.add_pull(7, head_repo="eve/bot", user="eve")
    check_in(job, github)
    unpacked(job)
    check_out(job.workspace / "theirs", pull.head_sha)
    for inputs in ({"config": "theirs/eval-gate.yaml"}, {"evals": "theirs/evals"}):
        refused(job, github, inputs, pull.head_sha[:12], event="workflow_dispatch")


def test_dispatch__another_commit_is_checked_out_and_no_pull_request_named__is_refused(job, github) -> None:
    pull = github.state.add_pull(7, head_repo="eve/bot", user="eve")
    check_out(job.workspace, pull.head_sha)
    refused(job, github, {}, pull.head_sha[:12], event="workflow_dispatch")


@pytest.mark.parametrize("git_says", ["nothing", "the commit's name only"])
def test_dispatch__no_commit_can_be_read__the_configuration_is_what_github_has_of_it(job, github, git_says) -> None:
    """As a checkout by archive leaves it; beside it lies that of a fork."""
    main = github.state.branches["main"]
    unpacked(job)
    if git_says != "nothing":
        check_out(job.workspace, main)
    named = "theirs/eval-gate.yaml from an unknown commit"
    refused(job, github, {"config": "theirs/eval-gate.yaml"}, named, event="workflow_dispatch")
    github.state.files[main, "eval-gate.yaml"] = b"failOn: [failures]\n"
    (job.workspace / "eval-gate.yaml").write_text("failOn: [failures]\n")
    with agent() as running:
        ended = job.step("workflow_dispatch", push_event(github), {"agent-endpoint": running.url})
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log


@pytest.mark.parametrize("event", ["push", "workflow_dispatch"])
def test_own_code__a_step_has_made_values_results_and_programs__is_evaluated(job, github, event) -> None:
    check_in(job, github)
    (job.workspace / "snapshot.json").write_text("{}")
    (job.workspace / "evals/results/old").mkdir(parents=True)
    (job.workspace / "evals/results/old/run.json").write_text('{"runId": "old"}')
    job.begin_run(event=event)
    with agent() as running:
        inputs = {"agent-endpoint": running.url, "snapshot": "snapshot.json"}
        ended = job.step(event, push_event(github), inputs)
    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.log


@pytest.mark.parametrize(("event", "inputs"), [("push", {}), ("workflow_dispatch", {"secrets-for": "head"})])
def test_own_code__a_step_has_made_the_eval_files__is_evaluated(job, github, event, inputs) -> None:
    """On pushes without a word; by hand where the workflow says that this is fine."""
    check_in(job, github)
    job.write_suite(2, "made.golden.json")
    job.begin_run(event=event)
    with agent() as running:
        ended = job.step(event, push_event(github), {"agent-endpoint": running.url, **inputs})
    assert (ended.code, ended.outputs["total"]) == (0, "6"), ended.log


def test_refused__mistake_without_a_place__is_an_annotation_of_no_line(job, github) -> None:
    ended = job.step("pull_request_target", pull_request_event(github, github.state.add_pull(7)))
    (error,) = [line.strip() for line in ended.commands if line.strip().startswith("::error")]
    assert error.startswith("::error title=Eval Gate%3A unsafe-event::")


def test_action__outside_of_a_workflow__says_what_to_use_instead(tmp_path) -> None:
    ended = gate(tmp_path, "action")
    assert ended.returncode == 2
    assert "eval-gate run" in ended.stderr


def test_configuration__three_mistakes__are_said_at_once_with_their_places(job, github) -> None:
    pull = github.state.add_pull(7)
    (job.workspace / "eval-gate.yaml").write_text(THREE_MISTAKES)
    with agent() as running:
        ended = job.pull_request(pull, running.url, {"fail-on": "regresion"})
    assert (ended.code, running.requests) == (2, [])
    said = ['fail-on[0]: "regresion" is not known (did you mean "regressions"?)', *OTHERS]
    assert [line for line in said if line not in ended.log] == []
    assert FAIL_ON not in ended.log, "an input wins over the file, whose value counts for nothing then"
    assert ended.outputs["exit-code"] == "2"
    assert str(job.workspace) not in ended.log + ended.summary, "a place of the container says nothing to its author"
    (error,) = [line.strip() for line in ended.commands if line.strip().startswith("::error")]
    assert "file=eval-gate.yaml,line=" in error, "GitHub shows it at a file of the checkout, and none else"


def test_configuration__named_and_not_there__is_said_as_it_was_named(job, github) -> None:
    ended = job.pull_request(github.state.add_pull(7), "http://localhost:9", {"config": "ci/gate.yaml"})
    assert ended.code == 2
    assert "error[configuration-unreadable]: ci/gate.yaml cannot be read: No such file or directory" in ended.log
