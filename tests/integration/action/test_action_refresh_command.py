"""`/eval-gate refresh` in a pull request: who starts the workflow on main, how often, and what is said."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.github import Fault
from tests.support.github.records import Comment
from tests.support.github.state import GATE
from tests.support.jobs import Ended, Job, repository_facts

COMMAND = "/eval-gate refresh"
FILE = ".github/workflows/refresh-baseline.yml"
BY_HAND = b"on:\n  push:\n  workflow_dispatch:\n"
INPUTS = {"baseline-workflow": "gate.yml"}
VARIABLES = {"GITHUB_WORKFLOW_REF": f"acme/bot/{FILE}@refs/heads/main"}
ADDRESS = "https://github.com/acme/bot/actions/workflows/gate.yml"
LINK = f"[`gate.yml`]({ADDRESS}) on `main`"


@pytest.fixture
def pull(github):
    """A pull request in a repository where ada may write and eve may not, and whose main can be started by hand."""
    github.permissions = {"contents:read", "actions:write", "pull-requests:write"}
    github.state.roles |= {"ada": "write", "tri": "triage"}
    github.state.files[github.state.branches["main"], GATE] = BY_HAND
    return github.state.add_pull(7, user="eve")


def say(github, body: str = COMMAND, author: str = "ada", number: int = 7) -> Comment:
    return github.state.add_comment(number, body, mine=False, author=author)


def event_of(github, comment: Comment, action: str = "created", body: str | None = None) -> dict[str, object]:
    """The event of this comment; `body` is what it said then."""
    pull = comment.issue in github.state.pulls
    return {
        "action": action,
        "issue": {"number": comment.issue, **({"pull_request": {"url": "x"}} if pull else {})},
        "comment": {"id": comment.id, "body": comment.body if body is None else body},
        "repository": repository_facts(github),
        "sender": {"login": comment.author},
    }


def hear(
    job, github, comment: Comment, action: str = "created", *, begin: bool = True, body: str | None = None, **more: str
) -> Ended:
    """The run that a comment starts. `more`: inputs."""
    if begin:
        job.begin_run(event="issue_comment", path=FILE)
    return job.step("issue_comment", event_of(github, comment, action, body), INPUTS | more, **VARIABLES)


def replies(github) -> list[str]:
    """What we wrote."""
    return [one.body for one in github.state.comments.values() if one.author_is_viewer]


def started(github) -> list[tuple[str, str | None]]:
    """The runs that were started by hand: workflow and branch."""
    return [(one.path, one.head_branch) for one in github.state.runs.values() if one.event == "workflow_dispatch"]


def refused(ended: Ended, github) -> str:
    """What the one reply says, where nothing was started."""
    assert (ended.code, ended.outputs["verdict"]) == (0, ""), ended.log
    assert started(github) == []
    (reply,) = replies(github)
    assert "⚠️ **The baseline is not refreshed.** " in reply
    assert reply.partition("-->\n")[2].strip() in ended.summary
    return reply


def test_refresh__by_somebody_who_may_write__starts_the_workflow_once_and_says_what_next(job, github, pull) -> None:
    comment = say(github)
    there = f"{github.base}/acme/bot/pull/7#issuecomment-{comment.id}"
    ended = hear(job, github, comment)
    assert (ended.code, ended.outputs["verdict"], ended.outputs["exit-code"]) == (0, "", "0"), ended.log
    assert started(github) == [(GATE, "main")]
    (sent,) = github.requests("POST", "/dispatches")
    assert sent.body == {"ref": "refs/heads/main"}
    (reply,) = replies(github)
    assert (
        f"🔄 **The baseline is being refreshed.** [The command]({there}) of ada started {LINK}.\n\n"
        "**Next step:** When that run has ended, run the checks of this pull request again: they use the new baseline. "
        "If `main` has moved on since this pull request was tested, update the pull request instead.\n"
    ) in reply
    assert "# Agent eval gate — baseline refresh\n\n🔄 **The baseline is being refreshed.**" in ended.summary
    assert "started gate.yml on main for ada" in ended.log
    assert ended.outputs["comment-url"].endswith(f"#issuecomment-{max(github.state.comments)}")


@pytest.mark.parametrize(
    ("author", "said"),
    [
        ("eve", "commands need write access to the repository, and eve has `read`"),
        ("tri", "commands need write access to the repository, and tri has `read`"),
        ("ghost", "the account of its author was deleted"),
    ],
)
def test_refresh__by_somebody_who_may_not_write__starts_nothing_and_says_why(job, github, pull, author, said) -> None:
    assert f" was not carried out: {said}." in refused(hear(job, github, say(github, author=author)), github)


def test_refresh__association_says_member__is_no_right(job, github, pull) -> None:
    comment = say(github, author="eve")
    comment.association = "OWNER"
    refused(hear(job, github, comment), github)


def test_refresh__pull_request_of_a_fork__its_author_cannot_and_who_may_write_can(job, github, pull) -> None:
    """The run that is started has nothing of the pull request in it, so the command names no commit."""
    pull.head_repo, pull.head_owner = "eve/bot", "eve"
    refused(hear(job, github, say(github, author="eve")), github)
    assert hear(job, github, say(github)).code == 0
    assert started(github) == [(GATE, "main")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda github, one: setattr(one, "via_app", "assistant"), "it was written by the app `assistant`, and only"),
        (lambda github, one: setattr(one, "minimized", "OUTDATED"), "the comment is hidden"),
        (lambda github, one: github.state.edit_comment(one, COMMAND, "mo"), "another person edited it"),
        (lambda github, one: github.state.edit_comment(one, COMMAND, None), "another person edited it"),
        (lambda github, one: setattr(one, "body", f"{COMMAND} release"), f"`{COMMAND}` takes no further words"),
        (lambda github, one: setattr(one, "body", f"{COMMAND} --ref x"), f"`{COMMAND}` takes no further words"),
        (lambda github, one: setattr(one, "body", f"{COMMAND}."), f"write `{COMMAND}`, in lower case and with nothing"),
    ],
)
def test_refresh__comment_does_not_count__starts_nothing_and_says_why(job, github, pull, change, said) -> None:
    comment = say(github)
    change(github, comment)
    assert said in refused(hear(job, github, comment), github)


@pytest.mark.slow
@pytest.mark.parametrize("editor", ["ada", None])
def test_refresh__written_into_an_older_comment__counts_for_its_author_only(job, github, pull, editor) -> None:
    comment = say(github, "Looks good.")
    github.state.edit_comment(comment, COMMAND, editor)
    assert hear(job, github, comment, "edited").code == 0
    assert len(started(github)) == (editor == "ada")


@pytest.mark.parametrize(
    "body",
    [
        f"> {COMMAND}",
        f"```\n{COMMAND}\n```",
        f"    {COMMAND}",
        f"<!-- {COMMAND} -->",
        f"Please:\n{COMMAND}",
        f"<!-- eval-gate:v1 key=k -->\n{COMMAND}",
        "/eval-gate waive a -- known",
    ],
)
def test_refresh__command_is_quoted_or_gone_by_now__starts_nothing_and_says_nothing(job, github, pull, body) -> None:
    """The event still has the command; what the comment says now counts."""
    ended = hear(job, github, say(github, body), body=COMMAND)
    assert (ended.code, started(github), replies(github)) == (0, [], []), ended.log
    assert f"does not begin with `{COMMAND}`" in ended.log
    assert "nothing to do" in ended.summary


@pytest.mark.parametrize("author", ["ada[bot]", "github-actions[bot]"])
def test_refresh__by_a_bot__starts_nothing_and_gets_no_reply(job, github, pull, author) -> None:
    ended = hear(job, github, say(github, author=author))
    assert (ended.code, started(github), replies(github)) == (0, [], []), ended.log
    assert "a bot cannot give commands" in ended.log


@pytest.mark.slow
def test_refresh__comment_deleted_or_pull_request_closed__starts_nothing(job, github, pull) -> None:
    comment = say(github)
    assert hear(job, github, comment, "deleted").code == 0
    pull.state = "closed"
    assert "the pull request is closed" in hear(job, github, comment).log
    pull.state = "open"
    event = event_of(github, comment)
    del github.state.comments[comment.id]
    job.begin_run(event="issue_comment", path=FILE)
    assert f"comment {comment.id} was deleted" in job.step("issue_comment", event).log
    assert (started(github), replies(github)) == ([], [])


def test_refresh__on_an_issue__starts_nothing(job, github, pull) -> None:
    issue = github.state.add_issue("x", "y")
    ended = hear(job, github, say(github, number=issue.number))
    assert (ended.code, started(github)) == (0, []), ended.log
    assert "commands count on pull requests only" in ended.summary


def test_refresh__job_is_run_again__starts_nothing_more(job, github, pull) -> None:
    comment = say(github)
    hear(job, github, comment)
    job.begin_attempt()
    ended = hear(job, github, comment, begin=False)
    assert (ended.code, len(started(github)), len(replies(github))) == (0, 1, 1), ended.log
    assert "a run has replied to this command already: " in ended.log
    hear(job, github, say(github))
    assert (len(started(github)), len(replies(github))) == (2, 2)  # another comment is another command


def test_refresh__two_jobs_claim_it_at_once__one_starts_it(job, github, pull, tmp_path) -> None:
    """Both look before there is a reply, and both write one: the older one counts."""
    comment, other = say(github), Job(tmp_path / "other", github)
    job.begin_run(event="issue_comment", path=FILE)
    other.leg = "other"
    both = threading.Barrier(2, timeout=60)
    github.faults.add("POST", "/issues/7/comments", Fault.meet(both), Fault.meet(both))
    process = other.start("issue_comment", event_of(github, comment), INPUTS, **VARIABLES)
    ended = hear(job, github, comment, begin=False)
    log, _ = process.communicate(timeout=60)
    assert (ended.code, process.returncode, started(github)) == (0, 0, [(GATE, "main")]), ended.log + log
    assert len(replies(github)) == 1
    assert "a run has replied to this command already" in ended.log + log


@pytest.mark.slow
def test_refresh__two_jobs_for_two_workflows__start_one_each(job, github, pull) -> None:
    github.state.files[github.state.branches["main"], ".github/workflows/bot.yml"] = BY_HAND
    comment = say(github)
    hear(job, github, comment)
    job.begin_job("bot")
    hear(job, github, comment, begin=False, **{"baseline-workflow": "bot.yml"})
    assert started(github) == [(GATE, "main"), (".github/workflows/bot.yml", "main")]
    assert len(replies(github)) == 2


@pytest.mark.slow
def test_refresh__workflow_of_the_step_itself__needs_no_input(job, github, pull) -> None:
    """One file may hold both jobs: the event's workflow is then the one that makes baselines."""
    comment = say(github)
    job.begin_run(event="issue_comment")
    assert job.step("issue_comment", event_of(github, comment)).code == 0
    assert started(github) == [(GATE, "main")]


def test_refresh__token_may_not_start_workflows__reply_has_the_right_and_the_way_by_hand(job, github, pull) -> None:
    github.permissions = {"contents:read", "actions:read", "pull-requests:write"}
    comment = say(github)
    ended = hear(job, github, comment)
    reply = refused(ended, github)
    assert "the job needs `permissions: actions: write`." in reply
    assert f"To refresh it, run [the workflow]({ADDRESS}) on `main`: `gh workflow run gate.yml --ref main`." in reply
    assert any(one.startswith("::warning") and "actions: write" in one for one in ended.commands)
    github.permissions.add("actions:write")
    job.begin_attempt()
    assert hear(job, github, comment, begin=False).code == 0
    assert started(github) == [(GATE, "main")]  # it was not carried out before


def test_refresh__token_may_not_comment__nothing_is_started_without_a_trace(job, github, pull) -> None:
    github.permissions.remove("pull-requests:write")
    ended = hear(job, github, say(github))
    assert (ended.code, started(github)) == (3, []), ended.log
    assert "the job needs `permissions: pull-requests: write`" in ended.log


@pytest.mark.slow
@pytest.mark.parametrize("carried_out", [True, False])
def test_refresh__answer_to_the_start_is_lost__is_not_repeated_and_says_so(job, github, pull, carried_out) -> None:
    github.faults.add("POST", "/dispatches", Fault.reset_after_write() if carried_out else Fault.status(502))
    ended = hear(job, github, say(github))
    assert (ended.code, len(started(github))) == (0, int(carried_out)), ended.log
    (reply,) = replies(github)
    assert "⚠️ **GitHub did not confirm that the baseline is being refreshed.**" in reply
    assert f"Look whether {LINK} is running. If not, run [the workflow]({ADDRESS})" in reply


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"on: push\n", "`gate.yml` on `main` has no trigger `workflow_dispatch`, or it has a required input"),
        (None, "`main` has no workflow `gate.yml`: see `baseline-workflow` of this step."),
    ],
)
def test_refresh__workflow_cannot_be_started__says_what_is_missing(job, github, pull, data, said) -> None:
    del github.state.files[github.state.branches["main"], GATE]
    if data:
        github.state.files[github.state.branches["main"], GATE] = data
    assert said in refused(hear(job, github, say(github)), github)


@pytest.mark.slow
def test_refresh__tag_called_like_the_branch__the_branch_is_run(job, github, pull) -> None:
    github.state.tags["main"] = pull.head_sha
    github.state.files[pull.head_sha, GATE] = b"on: workflow_dispatch\n"
    hear(job, github, say(github))
    (run,) = [one for one in github.state.runs.values() if one.event == "workflow_dispatch"]
    assert run.head_sha == github.state.branches["main"]


@pytest.mark.slow
def test_refresh__branch_that_makes_baselines_is_named__is_run_there(job, github, pull) -> None:
    github.state.add_commit("dev", github.state.branches["main"], branch="develop")
    github.state.files[github.state.branches["develop"], GATE] = BY_HAND
    hear(job, github, say(github), **{"baseline-branch": "develop"})
    assert started(github) == [(GATE, "develop")]


@pytest.mark.slow
def test_refresh__many_commands_that_do_not_count__get_one_reply(job, github, pull) -> None:
    for _ in range(3):
        refused(hear(job, github, say(github, author="eve")), github)


def test_refresh__refused_commands_at_once__share_one_reply(job, github, pull, tmp_path) -> None:
    """Each looks before there is a reply, and each writes one: whoever wants can make as many run at once."""
    other, both = Job(tmp_path / "other", github), threading.Barrier(2, timeout=60)
    job.begin_run(event="issue_comment", path=FILE)
    other.leg = "other"
    github.faults.add("POST", "/issues/7/comments", Fault.meet(both), Fault.meet(both))
    process = other.start("issue_comment", event_of(github, say(github, author="eve")), INPUTS, **VARIABLES)
    ended = hear(job, github, say(github, author="eve"), begin=False)
    log, _ = process.communicate(timeout=60)
    assert (ended.code, process.returncode, started(github)) == (0, 0, []), ended.log + log
    assert len(replies(github)) == 1, ended.log + log


def test_refresh__github_breaks_after_the_claim__the_job_can_be_run_again(job, github, pull) -> None:
    comment = say(github)
    github.faults.add("POST", "/graphql", *[Fault.pass_()] * 2, *[Fault.status(502)] * 5)
    ended = hear(job, github, comment)
    assert (ended.code, started(github), replies(github)) == (3, [], []), ended.log
    assert "re-run the failed job" in ended.log
    job.begin_attempt()
    assert hear(job, github, comment, begin=False).code == 0
    assert started(github) == [(GATE, "main")]


def test_refresh__claim_cannot_be_taken_back__both_replies_say_what_to_do(job, github, pull) -> None:
    github.permissions = {"contents:read", "actions:read", "pull-requests:write"}
    github.faults.add("DELETE", "/issues/comments/", *[Fault.status(502)] * 5)
    ended = hear(job, github, say(github))
    assert (ended.code, started(github)) == (0, []), ended.log
    claim, refusal = replies(github)
    assert "If this reply stays as it is, look whether that run is there. If not, write the command in a new" in claim
    assert "the job needs `permissions: actions: write`." in refusal
    assert any("stays, although it started nothing" in one for one in ended.commands)


@pytest.mark.slow
def test_refresh__two_jobs_for_two_branches__start_one_each(job, github, pull) -> None:
    github.state.add_commit("dev", github.state.branches["main"], branch="release/2")
    github.state.files[github.state.branches["release/2"], GATE] = BY_HAND
    comment = say(github)
    hear(job, github, comment)
    job.begin_job("other")
    hear(job, github, comment, begin=False, **{"baseline-branch": "release/2"})
    assert started(github) == [(GATE, "main"), (GATE, "release/2")]
    assert len(replies(github)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("named", ["none", "1", "runs/old"])
def test_refresh__step_names_a_baseline_to_compare_with__refreshes_the_branch(job, github, pull, named) -> None:
    assert hear(job, github, say(github), baseline=named).code == 0
    assert started(github) == [(GATE, "main")]


@pytest.mark.slow
def test_refresh__job_is_cancelled_after_the_claim__the_claim_says_what_to_do(job, github, pull) -> None:
    comment = say(github)
    github.faults.add("POST", "/dispatches", Fault.hang())
    job.begin_run(event="issue_comment", path=FILE)
    process = job.start("issue_comment", event_of(github, comment), INPUTS, **VARIABLES)
    while github.faults.unused:
        assert process.poll() is None
        time.sleep(0.02)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode not in {0, 1}
    (claim,) = replies(github)
    assert "If this reply stays as it is, look whether that run is there." in claim
