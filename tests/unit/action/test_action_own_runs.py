"""Earlier runs of a pull request that may stand for its head: only across documents, and never on their own word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec
import pytest

from eval_gate.action.own_runs import find_own_runs
from eval_gate.model.result import GitFacts, ResultProducer, RunResult
from eval_gate.model.reuse import EvaluatedState, MeasuredSuite, StatePart
from tests.support.github import Artifact, Fault, PullRequest, State, WorkflowRun, sha
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


def pack(result: RunResult) -> dict[str, bytes]:
    return {"run.json": msgspec.json.encode(result)}


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
        commit = self.state.add_commit(name, parents or self.pull.head_sha, files=files)
        self.state.move_head(self.pull, commit.sha)

    def store(self, result: RunResult) -> Artifact:
        return self.state.add_artifact(self.run, pack(result))

    def add_run(self, run_id: int, **facts: str) -> WorkflowRun:
        """Another run of the commit `code`."""
        commit = sha("code")
        return self.state.add_run(run_id, event="pull_request", head_branch="feature", head_sha=commit, **facts)

    @property
    def state(self) -> State:
        return self.desk.github.state

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
    made.artifact = made.store(make_own_run("code"))
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
    del change.state.runs[50], change.state.artifacts[change.artifact.id]
    assert change.find() == []
    assert change.refusal == "it is the first one"
    assert len(change.requests) == 1


def test_own_runs__same_commit__needs_no_comparison(change) -> None:
    change.push("again")
    change.run.head_sha = change.pull.head_sha
    change.state.artifacts.clear()
    change.store(make_own_run("again"))
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


CODE = sha("code")[:7]
NOT_NEXT = f"the head is not one commit after {CODE}"
NOT_PASSED = "run 50 did not pass, or not at once"
MOVED = "a branch of the pull request was changed after run 50"
ANOTHER_PULL = "feature was the branch of another pull request too"
UNUSABLE = "run 50 has no usable result"


def list_files(change: Change, *names: str) -> None:
    """Say what the head changed."""
    change.state.commits[sha("docs")].files = names


def push_by_force(change: Change, name: str) -> None:
    """Replace the commits of the pull request by another one of documents."""
    change.push(name, "README.md", parents=change.state.branches["main"])


def merge_main(change: Change) -> None:
    """Merge documents of main in, as the button "Update branch" does."""
    main = change.state.add_commit("of another pull request", branch="main", files=["docs/other.md"])
    change.push("merge", parents=[sha("code"), main.sha])


def open_second_pull(change: Change, **facts: object) -> None:
    """Open another pull request of the same branch name, into a branch with a forger in it."""
    change.state.add_commit("forger", branch="evil")
    change.state.add_pull(8, head_sha="docs", base_ref="evil", **facts)


def store_instead(change: Change, files: dict[str, bytes] | bytes, name: str = "eval-gate-results") -> None:
    """Store something else than the result."""
    del change.state.artifacts[change.artifact.id]
    change.state.add_artifact(change.run, files, name)


CLAIMS: dict[str, dict[str, object]] = {
    "another commit": {"git": GitFacts(sha=sha("docs"))},
    "no commit": {"git": None},
    "no producer": {"producer": None},
    "another gate": {"producer": ResultProducer(gate="other.yml.gate", run_id=50)},
    "another run": {"producer": ResultProducer(gate=KEY, run_id=49)},
}


def claim(change: Change, what: str) -> None:
    """Store a result that says otherwise than GitHub."""
    store_instead(change, pack(msgspec.structs.replace(make_own_run("code"), **CLAIMS[what])))


REFUSED: dict[str, tuple[Callable[[Change], object], str]] = {
    "no file is listed": (list_files, f"GitHub does not list all that differs from {CODE}"),
    "as many files as GitHub lists": (
        lambda one: list_files(one, *(f"docs/{number}.md" for number in range(300))),
        f"GitHub does not list all that differs from {CODE}",
    ),
    "a forger came and went": (lambda one: (one.push("forger"), one.push("reverted")), NOT_NEXT),
    "main was merged in": (merge_main, NOT_NEXT),
    "pushed by force": (lambda one: push_by_force(one, "instead"), NOT_NEXT),
    "the commit is gone": (
        lambda one: setattr(one.run, "head_sha", sha("gone")),
        f"the head is not one commit after {sha('gone')[:7]}",
    ),
    "pushed by force and back": (
        lambda one: (push_by_force(one, "forger"), one.state.move_head(one.pull, sha("docs"))),
        MOVED,
    ),
    "another base": (lambda one: one.state.note_event(one.pull, "BaseRefChangedEvent"), MOVED),
    "base was merged": (lambda one: one.state.note_event(one.pull, "AutomaticBaseChangeSucceededEvent"), MOVED),
    "opened again": (lambda one: one.state.note_event(one.pull, "ReopenedEvent"), MOVED),
    "a second pull request": (open_second_pull, ANOTHER_PULL),
    "a closed pull request": (lambda one: open_second_pull(one, state="closed"), ANOTHER_PULL),
    "the run failed": (lambda one: setattr(one.run, "conclusion", "failure"), NOT_PASSED),
    "the run passed in another attempt": (lambda one: setattr(one.run, "run_attempt", 2), NOT_PASSED),
    "the run was cancelled": (lambda one: setattr(one.run, "conclusion", "cancelled"), "none has ended"),
    "the run goes on": (lambda one: setattr(one.run, "conclusion", None), "none has ended"),
    "another run of the state failed": (
        lambda one: one.add_run(40, conclusion="failure"),
        "run 40 did not pass, or not at once",
    ),
    "expired": (lambda one: setattr(one.artifact, "expired", True), UNUSABLE),
    "another name": (lambda one: store_instead(one, pack(make_own_run("code")), "other"), UNUSABLE),
    "no archive": (lambda one: store_instead(one, b"PK"), UNUSABLE),
    "no JSON": (lambda one: store_instead(one, {"run.json": b"{"}), UNUSABLE),
    "no result": (lambda one: store_instead(one, {"other.json": b"{}"}), UNUSABLE),
    **{f"it says {what}": (partial(claim, what=what), UNUSABLE) for what in CLAIMS},
}


@pytest.mark.parametrize("what", REFUSED)
def test_own_runs__state_that_could_be_forged_or_lucky__is_refused(change, what) -> None:
    happen, reason = REFUSED[what]
    happen(change)
    assert change.find() == []
    assert change.refusal == reason


ACCEPTED: dict[str, Callable[[Change], object]] = {
    "document is left out of what is measured": lambda one: list_files(one, "prompts/deep/notes.md"),
    "moved before the run": lambda one: (
        one.state.note_event(one.pull, "BaseRefChangedEvent"),
        setattr(one.run, "created_at", one.state.now()),
    ),
    "a fork has a branch of this name": lambda one: open_second_pull(one, head_repo="mallory/bot", user="mallory"),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_own_runs__what_does_not_matter__is_no_matter(change, what) -> None:
    ACCEPTED[what](change)
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


def test_own_runs__this_very_run__does_not_count(change) -> None:
    assert change.find(GITHUB_RUN_ID="50") == []
