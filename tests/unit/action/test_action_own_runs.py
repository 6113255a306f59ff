"""Earlier runs of a pull request that may stand for its head: only across documents, and never on their own word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import pytest

from eval_gate.action.own_runs import find_own_runs
from eval_gate.model.result import GitFacts, ResultProducer, RunResult
from eval_gate.model.reuse import EvaluatedState, MeasuredSuite, StatePart
from tests.support.github import Artifact, Fault, PullRequest, WorkflowRun, sha
from tests.support.jobs import pull_request_event
from tests.support.results import make_run

KEY = "gate.yml.gate"
STATE = EvaluatedState(
    parts={StatePart.EVALS: "0" * 16},
    suites=(
        MeasuredSuite(
            suite="evals/a.json", patterns=("!prompts/**/notes.md", "env:AGENT", "prompts/**"), digest="1" * 16
        ),
        MeasuredSuite(suite="evals/b.json", patterns=("agents/b",), digest="2" * 16),
    ),
)
EVERYTHING_REFUSED = "no result of an earlier run of this pull request can be reused: "


def make_own_run(commit: str, run_id: int = 50, gate: str = KEY) -> RunResult:
    git = GitFacts(sha=sha(commit), ref="refs/pull/7/merge")
    return make_run({"a": "passed"}, git=git, producer=ResultProducer(gate=gate, run_id=run_id), evaluated_state=STATE)


@dataclass
class Change:
    """A pull request whose commit `code` was evaluated by run 50, and whose head is the commit `docs`."""

    desk: object
    pull: PullRequest
    run: WorkflowRun
    artifact: Artifact

    def find(self, event: str = "pull_request", **facts) -> list[str]:
        """The ids of the runs that are found for the head as it is now."""
        data = pull_request_event(self.desk.github, self.pull)
        step = self.desk.step(event, data, **facts)
        return [one.run_id for one in find_own_runs(step, STATE, self.desk.log)]

    def push(self, name: str, *files: str, parents: object = None) -> None:
        """Another head of the pull request."""
        state = self.desk.github.state
        parents = parents or self.pull.head_sha
        state.move_head(self.pull, state.add_commit(name, parents, files=files).sha)

    def store(self, run: WorkflowRun, result: RunResult, name: str = "eval-gate-results") -> Artifact:
        return self.desk.github.state.add_artifact(run, {"run.json": msgspec.json.encode(result)}, name)

    @property
    def refusal(self) -> str:
        """What the log says, without its beginning."""
        (said,) = [line for line in self.desk.said.splitlines() if EVERYTHING_REFUSED in line]
        return said.partition(EVERYTHING_REFUSED)[2]

    @property
    def requests(self) -> list[str]:
        return [one.path.partition("?")[0].removeprefix("/repos/acme/bot") for one in self.desk.github.log]


@pytest.fixture
def change(desk, github) -> Change:
    state = github.state
    state.add_commit("code", state.branches["main"], files=["agents/a.py"])
    pull = state.add_pull(7, head_sha="code")
    run = state.add_run(50, event="pull_request", head_branch="feature", head_sha=pull.head_sha)
    made = Change(desk, pull, run, None)
    made.artifact = made.store(run, make_own_run("code"))
    made.push("docs", "README.md", "docs/picture.PNG")
    return made


def test_own_runs__only_documents_differ__takes_the_result_with_five_requests(change) -> None:
    assert change.find() == [make_own_run("code").run_id]
    assert change.requests[:-1] == [
        "/actions/workflows/gate.yml/runs",
        f"/compare/{sha('code')}...{sha('docs')}",
        "/graphql",
        "/actions/runs/50/artifacts",
        f"/actions/artifacts/{change.artifact.id}/zip",
    ]  # and then the archive from the blob store


def test_own_runs__first_run__asks_once(change) -> None:
    del change.desk.github.state.runs[50], change.desk.github.state.artifacts[change.artifact.id]
    assert change.find() == []
    assert change.refusal == "it is the first one"
    assert len(change.requests) == 1


def test_own_runs__same_commit__needs_no_comparison(change) -> None:
    change.push("again")
    change.run.head_sha = change.pull.head_sha
    change.desk.github.state.artifacts.clear()
    change.store(change.run, make_own_run("again"))
    assert len(change.find()) == 1
    assert not any("/compare/" in one for one in change.requests)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (["docs/a.md", "agents/a.py"], "agents/a.py"),
        (["prompts/system.md"], "prompts/system.md"),
        (["agents/b/README.md"], "agents/b/README.md"),
        (["docs/a.md <- tools/forge.py"], "tools/forge.py"),
        (["docs/a.md <- prompts/a.md"], "prompts/a.md"),
        (["CLAUDE.md"], "CLAUDE.md"),
        (["docs/Agents.md"], "docs/Agents.md"),
        ([".github/copilot-instructions.md"], ".github/copilot-instructions.md"),
        (["docs/page.html"], "docs/page.html"),
        (["vendor"], "vendor"),
        (["md"], "md"),
        ([".md"], ".md"),
    ],
)
def test_own_runs__another_file_differs__is_named(change, files, named) -> None:
    change.push("more", *files)
    change.run.head_sha = sha("docs")
    assert change.find() == []
    assert change.refusal == f"{named} differs from {sha('docs')[:7]}"


def test_own_runs__a_document_that_is_left_out_of_what_is_measured__is_a_document(change) -> None:
    change.desk.github.state.commits[sha("docs")].files = ("prompts/deep/notes.md",)
    assert len(change.find()) == 1


@pytest.mark.parametrize("count", [0, 300])
def test_own_runs__as_many_files_as_github_lists_or_none__may_be_more(change, count) -> None:
    change.desk.github.state.commits[sha("docs")].files = tuple(f"docs/{number:03}.md" for number in range(count))
    assert change.find() == []
    assert change.refusal == f"GitHub does not list all that differs from {sha('code')[:7]}"


def test_own_runs__a_commit_came_and_went_between__is_refused(change) -> None:
    change.push("forger")
    change.push("reverted")
    assert change.find() == []
    assert change.refusal == f"the head is not one commit after {sha('code')[:7]}"


def test_own_runs__main_was_merged_in__is_refused(change) -> None:
    state = change.desk.github.state
    state.add_commit("of another pull request", branch="main", files=["docs/other.md"])
    change.push("merge", parents=[sha("code"), state.branches["main"]])
    assert change.find() == []


def test_own_runs__the_earlier_commit_was_replaced_by_force__is_refused(change) -> None:
    change.push("instead", "README.md", parents=change.desk.github.state.branches["main"])
    assert change.find() == []
    assert change.refusal == f"the head is not one commit after {sha('code')[:7]}"


def test_own_runs__the_earlier_commit_is_gone__is_refused(change, github) -> None:
    change.run.head_sha = sha("collected")
    assert change.find() == []


def test_own_runs__run_of_another_pull_request_that_was_merged_in__does_not_count(change, github) -> None:
    change.run.head_branch = "feature-of-another"
    assert change.find() == []
    assert change.refusal == "it is the first one"


@pytest.mark.parametrize("event", ["BaseRefChangedEvent", "AutomaticBaseChangeSucceededEvent", "ReopenedEvent"])
def test_own_runs__pull_request_moved_after_the_run__is_refused(change, github, event) -> None:
    github.state.note_event(change.pull, event)
    assert change.find() == []
    assert change.refusal == "a branch of the pull request was changed after run 50"


def test_own_runs__pull_request_moved_before_the_run__is_no_matter(change, github) -> None:
    github.state.note_event(change.pull, "BaseRefChangedEvent")
    change.run.created_at = github.state.now()
    assert len(change.find()) == 1


def test_own_runs__pushed_by_force_and_back__is_refused(change) -> None:
    change.push("forger", parents=change.desk.github.state.branches["main"])
    change.desk.github.state.move_head(change.pull, sha("docs"))
    assert change.find() == []
    assert change.refusal == "a branch of the pull request was changed after run 50"


@pytest.mark.parametrize("state", ["open", "closed"])
def test_own_runs__second_pull_request_of_the_branch__may_have_evaluated_another_merge(change, github, state) -> None:
    github.state.add_commit("forger", branch="evil")
    github.state.add_pull(8, head_sha="docs", base_ref="evil", state=state)
    assert change.find() == []
    assert change.refusal == "feature was the branch of another pull request too"


def test_own_runs__pull_request_of_a_fork_has_the_same_branch_name__is_no_matter(change, github) -> None:
    github.state.add_pull(8, head_sha="theirs", head_repo="mallory/bot", user="mallory")
    assert len(change.find()) == 1


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("event", "workflow_dispatch"),
        ("event", "push"),
        ("head_repository_id", 99),
        ("head_repository_id", None),
        ("head_branch", "other"),
        ("path", ".github/workflows/other.yml"),
    ],
)
def test_own_runs__another_kind_of_run__does_not_count(change, fact, value) -> None:
    setattr(change.run, fact, value)
    if fact == "head_repository_id":
        change.run.head_repository_full_name = "mallory/bot" if value else None
    assert change.find() == []


def test_own_runs__path_with_a_ref__is_the_same_workflow(change, github) -> None:
    github.state.workflows.append(change.run.path)
    assert len(change.find()) == 1


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"conclusion": "failure"}, "run 50 did not pass, or not at once"),
        ({"conclusion": "timed_out"}, "run 50 did not pass, or not at once"),
        ({"conclusion": "cancelled"}, "none has ended"),
        ({"conclusion": None, "status": "in_progress"}, "none has ended"),
        ({"run_attempt": 2}, "run 50 did not pass, or not at once"),
    ],
)
def test_own_runs__earlier_run_did_not_pass_at_once__is_refused(change, facts, reason) -> None:
    for name, value in facts.items():
        setattr(change.run, name, value)
    assert change.find() == []
    assert change.refusal == reason


def test_own_runs__one_of_two_runs_of_the_state_failed__the_other_was_lucky(change, github) -> None:
    other = github.state.add_run(40, event="pull_request", head_branch="feature", head_sha=sha("code"))
    other.conclusion = "failure"
    assert change.find() == []
    assert change.refusal == "run 40 did not pass, or not at once"


def test_own_runs__this_very_run__does_not_count(change) -> None:
    assert change.find(GITHUB_RUN_ID="50") == []


@pytest.mark.parametrize(
    "claim",
    [
        lambda run: msgspec.structs.replace(run, git=GitFacts(sha=sha("docs"))),
        lambda run: msgspec.structs.replace(run, git=None),
        lambda run: msgspec.structs.replace(run, producer=None),
        lambda run: msgspec.structs.replace(run, producer=ResultProducer(gate="other.yml.gate", run_id=50)),
        lambda run: msgspec.structs.replace(run, producer=ResultProducer(gate=KEY, run_id=49)),
    ],
)
def test_own_runs__artifact_says_otherwise_than_github__is_refused(
    change, claim: Callable[[RunResult], RunResult]
) -> None:
    del change.desk.github.state.artifacts[change.artifact.id]
    change.store(change.run, claim(make_own_run("code")))
    assert change.find() == []
    assert change.refusal == "run 50 has no usable result"


@pytest.mark.parametrize("data", [b"PK", b"", {"run.json": b"{"}, {"other.json": b"{}"}])
def test_own_runs__unreadable_artifact__is_refused(change, github, data) -> None:
    del github.state.artifacts[change.artifact.id]
    github.state.add_artifact(change.run, data)
    assert change.find() == []
    assert change.refusal == "run 50 has no usable result"


def test_own_runs__artifact_expired_or_of_another_name__is_refused(change, github) -> None:
    change.artifact.expired = True
    change.store(change.run, make_own_run("code"), "other")
    assert change.find() == []
    assert change.refusal == "run 50 has no usable result"


def test_own_runs__newer_run_without_a_result__the_one_before_it_counts(change, github) -> None:
    github.state.add_run(60, event="pull_request", head_branch="feature", head_sha=sha("code"))
    assert len(change.find()) == 1


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/actions/workflows/gate.yml/runs", Fault.status(404)),
        ("/compare/", Fault.status(403)),
        ("/graphql", Fault.status(403)),
        ("/actions/runs/50/artifacts", Fault.status(403)),
        ("/zip", Fault.status(410)),
    ],
)
def test_own_runs__github_refuses__costs_a_line_in_the_log(change, github, path, fault) -> None:
    github.faults.add("POST" if path == "/graphql" else "GET", path, fault)
    assert change.find() == []
    assert change.refusal


def test_own_runs__fork_closed_or_another_event__asks_nothing(change, github) -> None:
    assert change.find("pull_request_review") == []
    change.pull.state = "closed"
    assert change.find() == []
    change.pull.state, change.pull.head_repo = "open", "mallory/bot"
    assert change.find() == []
    assert change.requests == []
