"""What each event means: which commit, which baseline, where to comment, and why; nobody is asked."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from eval_gate.action.inputs import read_inputs
from eval_gate.action.step_plan import BaselineKind, PlanFacts, StepMode, make_step_plan, parse_pull_number
from eval_gate.errors import PAGES, GateError
from eval_gate.github.artifacts.artifact_search import TRUSTED_EVENTS
from eval_gate.github.commits import PullRequest
from eval_gate.github.event import WorkflowEvent
from eval_gate.github.workflow_environment import read_workflow_environment
from eval_gate.struct import replace
from tests.support.jobs import with_inputs

HEAD, BASE, MERGE, GROUP, OTHER = ("1" * 40, "2" * 40, "3" * 40, "4" * 40, "5" * 40)
BASE_WORD = {"baseline-branch": "base"}
REPOSITORY = {"id": 1, "full_name": "acme/bot", "default_branch": "main"}
FORK = {"id": 2, "full_name": "mallory/bot"}


def side(sha: str, ref: str, repo: object = REPOSITORY) -> dict[str, object]:
    return {"sha": sha, "ref": ref, "repo": repo}


def pull(repo: object = REPOSITORY, **more: object) -> dict[str, object]:
    made = {"number": 7, "state": "open", "head": side(HEAD, "topic", repo), "base": side(BASE, "main")}
    return {"pull_request": made | more}


def group(ref: str = f"refs/heads/gh-readonly-queue/release/1.x/pr-7-{BASE}") -> dict[str, object]:
    return {"merge_group": {"head_sha": GROUP, "head_ref": ref, "base_sha": BASE, "base_ref": "refs/heads/release/1.x"}}


def run(repo: object = FORK, **more: object) -> dict[str, object]:
    made = {"id": 50, "event": "pull_request", "path": ".github/workflows/gate.yml@refs/heads/x", "head_sha": HEAD}
    return {
        "action": "completed",
        "workflow_run": made | {"head_repository": repo, "head_branch": "main", "conclusion": "success"} | more,
    }


def plan_of(event_name: str, data: dict[str, object], *, inputs=None, known=None, **variables: str):
    environment = {
        "GITHUB_REPOSITORY": "acme/bot",
        "GITHUB_EVENT_NAME": event_name,
        "GITHUB_EVENT_PATH": "/event.json",
        "GITHUB_API_URL": "https://api.github.com",
        "GITHUB_RUN_ID": "42",
        "GITHUB_SHA": OTHER,
        "GITHUB_REF": "refs/heads/main",
        "GITHUB_ACTOR": "octocat",
    }
    settings = read_inputs(with_inputs(inputs or {}))
    event = WorkflowEvent.model_validate({"repository": REPOSITORY, **data, "name": event_name})
    facts = PlanFacts(**{"default_branch": "main", **(known or {})})
    return make_step_plan(read_workflow_environment(environment | variables), event, settings, facts)


@dataclass(frozen=True)
class Row:
    """An event and what it means. `near` is the commit itself, `fork_point` where that commit left the branch.

    `merge` is the test merge whose first parent it is: nothing here names the commit of the workspace, so that is the
    event's.
    """

    event: str
    data: dict[str, object]
    head: str
    near: str | None = None
    fork_point: str | None = None
    merge: str | None = None
    comments_on: int | None = None
    read_only: str | None = None
    mode: StepMode = StepMode.GATE
    said: str = ""
    variables: dict[str, str] = field(default_factory=dict)


DEPENDABOT = {"sender": {"login": "dependabot[bot]"}}
TOPIC, TAG = {"GITHUB_REF": "refs/heads/topic"}, {"GITHUB_REF": "refs/tags/v1"}
ROWS = {
    "own branch": Row("pull_request", pull(), HEAD, merge=OTHER, comments_on=7, said="#7, head 1111111, into main"),
    "draft": Row("pull_request", pull(draft=True), HEAD, merge=OTHER, comments_on=7),
    "fork": Row("pull_request", pull(FORK), HEAD, merge=OTHER, comments_on=7, read_only="from a fork"),
    "deleted fork": Row("pull_request", pull(None), HEAD, merge=OTHER, comments_on=7, read_only="from a fork"),
    "dependabot by actor": Row(
        "pull_request",
        pull(),
        HEAD,
        merge=OTHER,
        comments_on=7,
        read_only="by Dependabot",
        variables={"GITHUB_ACTOR": "dependabot[bot]"},
    ),
    "dependabot by sender": Row(
        "pull_request", pull() | DEPENDABOT, HEAD, merge=OTHER, comments_on=7, read_only="by Dependabot"
    ),
    "somebody with a like name": Row(
        "pull_request", pull() | {"sender": {"login": "dependabot"}}, HEAD, merge=OTHER, comments_on=7
    ),
    "closed": Row("pull_request", pull(state="closed"), HEAD, merge=OTHER, said="the pull request is closed"),
    "into another branch": Row(
        "pull_request", pull(base=side(BASE, "release/1.x")), HEAD, merge=OTHER, comments_on=7, said="release/1.x"
    ),
    "merge queue": Row("merge_group", group(), GROUP, near=BASE, said="last pull request #7, head 4444444: no comment"),
    "merge queue of an unknown form": Row("merge_group", group("refs/heads/x"), GROUP, near=BASE, said="no comment"),
    "push": Row("push", {}, OTHER, near=OTHER, said="on main, commit 5555555"),
    "push of a branch": Row("push", {}, OTHER, fork_point=OTHER, said="on topic", variables=TOPIC),
    "push of a tag": Row("push", {}, OTHER, fork_point=OTHER, said="on refs/tags/v1", variables=TAG),
    "schedule": Row("schedule", {"schedule": "0 3 * * *", "repository": None}, OTHER, near=OTHER),
    "by hand": Row("workflow_dispatch", {"inputs": None}, OTHER, near=OTHER),
    "by hand, empty number": Row("workflow_dispatch", {"inputs": {"pr-number": ""}}, OTHER, near=OTHER),
    "by hand on a branch": Row("workflow_dispatch", {"inputs": {}}, OTHER, fork_point=OTHER, variables=TOPIC),
    "never heard of": Row("gollum", {}, OTHER, near=OTHER, said="event gollum on main"),
    "no ref": Row("push", {}, OTHER, fork_point=OTHER, said="an unknown ref", variables={"GITHUB_REF": ""}),
    "run of a fork": Row(
        "workflow_run", run(), HEAD, fork_point=HEAD, mode=StepMode.RELAY, said="run 50, head 1111111"
    ),
    "run of a deleted fork": Row("workflow_run", run(None), HEAD, fork_point=HEAD, mode=StepMode.RELAY),
    "run of dependabot": Row(
        "workflow_run", run(REPOSITORY, actor={"login": "dependabot[bot]"}), HEAD, fork_point=HEAD, mode=StepMode.RELAY
    ),
    "run of our own": Row(
        "workflow_run", run(REPOSITORY), HEAD, fork_point=HEAD, mode=StepMode.NOTHING, said="published its own result"
    ),
    "run of a push": Row(
        "workflow_run", run(event="push"), HEAD, fork_point=HEAD, mode=StepMode.NOTHING, said="it was a run of push"
    ),
    "run of pull_request_target": Row(
        "workflow_run", run(event="pull_request_target"), HEAD, fork_point=HEAD, mode=StepMode.NOTHING
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_plan__event__means_this(row) -> None:
    plan = plan_of(row.event, row.data, **row.variables)
    assert (plan.mode, plan.head_sha) == (row.mode, row.head)
    assert (plan.baseline.kind, plan.baseline.branch) == (BaselineKind.ARTIFACT, "main")
    assert (plan.baseline.base.commit, plan.baseline.base.fork_point_of) == (row.near, row.fork_point)
    assert plan.baseline.base.first_parent_of == row.merge
    assert plan.pull_number == row.comments_on
    assert (plan.read_only is None) == (row.read_only is None)
    assert row.read_only is None or row.read_only in plan.read_only
    assert plan.relayed_run == (50 if row.mode is StepMode.RELAY else None)
    assert plan.reasons
    assert row.said in " ".join(plan.reasons)
    assert row.read_only is None or plan.read_only in " ".join(plan.reasons)


def test_plan__pull_request__knows_what_it_is_merged_into() -> None:
    assert plan_of("pull_request", pull(base=side(BASE, "release/1.x"))).base_branch == "release/1.x"
    assert plan_of("push", {}).base_branch is None


def test_plan__test_merge__is_never_the_commit_that_is_reported_on() -> None:
    plan = plan_of("pull_request", pull(), GITHUB_SHA=MERGE, GITHUB_REF="refs/pull/7/merge")
    assert MERGE not in (plan.head_sha, plan.baseline.base.commit, plan.baseline.base.fork_point_of)


def test_plan__relay__takes_baselines_of_the_workflow_that_ran() -> None:
    assert plan_of("workflow_run", run()).baseline.workflow == ".github/workflows/gate.yml"


@pytest.mark.parametrize("action", ["requested", "in_progress"])
def test_plan__run_of_a_fork_has_only_begun__there_is_nothing_to_publish_yet(action) -> None:
    """Without `types: [completed]` a workflow is started three times for each run: what is not there is no failure."""
    assert plan_of("workflow_run", run(conclusion=None) | {"action": action}).mode is StepMode.NOTHING


@pytest.mark.parametrize(
    "event", ["push", "schedule", "workflow_dispatch", "repository_dispatch", "issue_comment", "release"]
)
def test_plan__on_the_baseline_s_branch__promises_the_next_baseline_only_where_it_will_be_one(event) -> None:
    promised = "its result is the next baseline" in " ".join(plan_of(event, {}).reasons)
    assert promised == (event in TRUSTED_EVENTS)


# --- refusals


def refusal(*arguments, **more) -> GateError:
    with pytest.raises(GateError) as caught:
        plan_of(*arguments, **more)
    assert int(caught.value.exit_code) == 2
    return caught.value


@pytest.mark.parametrize("inputs", [{}, {"baseline": "none"}, {"results": "x"}])
def test_plan__pull_request_target__is_refused_whatever_else_is_said(inputs) -> None:
    error = refusal("pull_request_target", pull(), inputs=inputs)
    assert (error.code, f"{PAGES}/action.md#forks" in (error.hint or "")) == ("unsafe-event", True)


@pytest.mark.parametrize("event", ["pull_request", "merge_group", "workflow_run"])
def test_plan__event_without_what_it_is_about__is_refused(event) -> None:
    assert refusal(event, {}).code == "invalid-event"


@pytest.mark.parametrize(
    ("event", "data", "checkout", "parents"),
    [
        ("pull_request", pull(), BASE, (MERGE,)),
        ("pull_request", pull(), MERGE, (BASE, GROUP)),  # of another head
        ("pull_request", pull(), MERGE, (HEAD, BASE)),  # main was merged into the change: another commit than its head
        ("pull_request", pull(), MERGE, None),
        ("pull_request_review", pull(), BASE, None),
        ("merge_group", group(), BASE, None),
    ],
)
@pytest.mark.parametrize("inputs", [{}, {"baseline": "none"}, {"results": "x"}])
def test_plan__workspace_holds_another_commit__is_refused(event, data, checkout, parents, inputs) -> None:
    error = refusal(event, data, inputs=inputs, known={"checkout": checkout, "parents": parents})
    assert (error.code, checkout[:12] in error.message) == ("checkout-mismatch", True)


# --- started by hand for a pull request

NOW = PullRequest.model_validate(
    {
        "number": 7,
        "state": "open",
        "head": side(HEAD, "topic"),
        "base": side(BASE, "main"),
        "merge_commit_sha": MERGE,
    }
)


def dispatched(number: object = "7", checkout: str | None = HEAD, pull: PullRequest | None = NOW):
    data = {"inputs": {"pr-number": number, "other": "x"}}
    return ("workflow_dispatch", data), {"known": {"pull": pull, "checkout": checkout}}


@pytest.mark.parametrize(
    ("checkout", "parents", "base"),
    [
        (HEAD, None, (HEAD, None, None)),
        (MERGE, None, (None, MERGE, None)),
        (MERGE, (BASE, HEAD), (None, None, BASE)),
        (OTHER, (BASE, HEAD), (None, None, BASE)),  # a merge of before main moved on
    ],
)
def test_plan__by_hand_for_a_pull_request_that_is_here__is_about_its_head(checkout, parents, base) -> None:
    arguments, more = dispatched(checkout=checkout)
    more["known"]["parents"] = parents
    plan = plan_of(*arguments, **more)
    assert (plan.mode, plan.head_sha, plan.pull_number, plan.base_branch) == (StepMode.GATE, HEAD, 7, "main")
    found = plan.baseline.base
    assert (found.fork_point_of, found.first_parent_of, found.commit, plan.read_only) == (*base, None)
    assert plan.reasons[0].startswith("started by hand for #7, head 1111111, into main")


def test_plan__by_hand_for_a_pull_request__keeps_nothing_that_would_be_taken_for_the_branch_s_own() -> None:
    """Its run is one of the default branch to GitHub, and its result one of code that nobody has merged."""
    arguments, more = dispatched()
    assert not plan_of(*arguments, **more).can_store
    assert plan_of("workflow_dispatch", {"inputs": None}).can_store
    assert plan_of("push", {}, GITHUB_REF="refs/heads/topic").can_store
    assert not plan_of("push", {}, GITHUB_REF="refs/tags/main").can_store
    assert not plan_of("push", {}, GITHUB_REF="").can_store
    assert plan_of("pull_request", pull()).can_store


def test_plan__by_hand_for_a_closed_pull_request__comments_nowhere() -> None:
    arguments, more = dispatched(pull=replace(NOW, state="closed"))
    assert plan_of(*arguments, **more).pull_number is None


@pytest.mark.parametrize("checkout", [OTHER, BASE, None, HEAD[:7]])
def test_plan__by_hand_and_the_workspace_holds_something_else__is_refused(checkout) -> None:
    arguments, more = dispatched(checkout=checkout)
    error = refusal(*arguments, **more)
    assert (error.code, "refs/pull/7/head" in (error.hint or "")) == ("checkout-mismatch", True)


@pytest.mark.parametrize("checkout", [None, OTHER])
def test_plan__by_hand_before_github_made_the_test_merge__an_unknown_checkout_is_still_refused(checkout) -> None:
    """Right after a push GitHub knows no test merge: that no commit is known here does not make the two the same."""
    arguments, more = dispatched(checkout=checkout, pull=replace(NOW, merge_commit_sha=None))
    assert refusal(*arguments, **more).code == "checkout-mismatch"


def test_plan__by_hand_for_a_pull_request_that_is_not_there__is_refused() -> None:
    arguments, more = dispatched(pull=None)
    assert refusal(*arguments, **more).code == "pull-request-not-found"


def numbered(value: object, name: str = "workflow_dispatch") -> int | None:
    return parse_pull_number(WorkflowEvent.model_validate({"name": name, "inputs": {"pr-number": value}}))


@pytest.mark.parametrize(
    ("value", "number"), [("7", 7), (" 7\n", 7), ("#7", 7), (7, 7), ("007", 7), ("", None), (None, None)]
)
def test_pull_number__spellings__are_the_number(value, number) -> None:
    assert numbered(value) == number


@pytest.mark.parametrize(
    "value",
    ["seven", "7.0", 7.5, "-7", "+7", "7 8", "##7", "# 7", "#", "0x7", "1e1", "²", True, ["7"], {"n": 7}, "9" * 5_000],
)
def test_pull_number__no_number__is_refused_in_a_short_sentence(value) -> None:
    with pytest.raises(GateError) as caught:
        numbered(value)
    assert (caught.value.code, len(caught.value.message) < 200) == ("invalid-input", True)


def test_pull_number__of_another_event__is_not_looked_at() -> None:
    assert numbered("seven", "repository_dispatch") is None
    assert parse_pull_number(WorkflowEvent(name="workflow_dispatch")) is None


# --- a baseline that somebody named


@pytest.mark.parametrize(
    ("given", "kind", "reference"),
    [
        ("none", BaselineKind.NONE, ""),
        ("12345", BaselineKind.RUN, "12345"),
        ("runs/old", BaselineKind.STORED, "runs/old"),
        ("latest", BaselineKind.STORED, "latest"),
        ("auto", BaselineKind.ARTIFACT, ""),
        ("", BaselineKind.ARTIFACT, ""),
    ],
)
@pytest.mark.parametrize("event", ["push", "pull_request", "merge_group"])
def test_plan__baseline_that_was_named__is_that_and_nothing_else_changes(event, given, kind, reference) -> None:
    data = {"pull_request": pull(), "merge_group": group()}.get(event, {})
    plan, usual = plan_of(event, data, inputs={"baseline": given}), plan_of(event, data)
    assert (plan.baseline.kind, plan.baseline.reference) == (kind, reference)
    assert (plan.mode, plan.head_sha, plan.pull_number) == (usual.mode, usual.head_sha, usual.pull_number)


def test_plan__run_that_was_named__still_knows_the_branch_it_is_held_against() -> None:
    """How far behind it is, and what a report calls its branch, come from there."""
    assert plan_of("push", {}, inputs={"baseline": "12345"}).baseline.branch == "main"


@pytest.mark.parametrize("event", ["push", "pull_request", "merge_group", "workflow_run", "schedule"])
def test_plan__another_baseline_branch__is_where_it_is_sought(event) -> None:
    data = {"pull_request": pull(), "merge_group": group(), "workflow_run": run()}.get(event, {})
    assert plan_of(event, data, inputs={"baseline-branch": "release/1.x"}).baseline.branch == "release/1.x"


INTO_RELEASE = {"base": side(BASE, "release/1.x")}
BRANCHES = {
    "into another branch": ("pull_request", pull(**INTO_RELEASE), {}, "release/1.x"),
    "merge queue": ("merge_group", group(), {}, "release/1.x"),
    "push": ("push", {}, {"GITHUB_REF": "refs/heads/release/1.x"}, "release/1.x"),
    "push of the queue's branch": (
        "push",
        {},
        {"GITHUB_REF": f"refs/heads/gh-readonly-queue/release/1.x/pr-7-{BASE}"},
        "release/1.x",
    ),
    "push of a tag": ("push", {}, TAG, "main"),
    "schedule": ("schedule", {}, {}, "main"),
}


@pytest.mark.parametrize(("event", "data", "variables", "branch"), BRANCHES.values(), ids=BRANCHES)
def test_plan__baseline_branch_is_the_word_base__is_what_the_change_goes_into(event, data, variables, branch) -> None:
    found = plan_of(event, data, inputs={"baseline-branch": "base"}, **variables)
    assert found.baseline.branch == branch
    assert found.is_on_baseline_branch == (event in {"schedule", "push"} and found.baseline.base.commit is not None)


@pytest.mark.parametrize(("head", "inputs"), [("main", {}), ("dev", {"baseline-branch": "dev"}), ("main", BASE_WORD)])
def test_plan__promotion__only_the_base_s_own_result_will_do(head, inputs) -> None:
    data = pull(head=side(HEAD, head), base=side(BASE, "production"))
    found = plan_of("pull_request", data, inputs=inputs).baseline
    assert (found.branch, found.exact_commit_branch) == ("production", head)
    theirs = pull(head=side(HEAD, head, FORK), base=side(BASE, "production"))
    assert plan_of("pull_request", theirs, inputs=inputs).baseline.exact_commit_branch is None, (
        "a fork's branch is called so too"
    )


def test_plan__push_to_the_default_branch_while_another_makes_baselines__is_a_change_like_any() -> None:
    plan = plan_of("push", {}, inputs={"baseline-branch": "release"})
    assert (plan.baseline.base.commit, plan.baseline.base.fork_point_of) == (None, OTHER)
    assert "next baseline" not in " ".join(plan.reasons)


@pytest.mark.parametrize("conclusion", ["cancelled", "skipped", "action_required", "stale"])
def test_plan__run_of_a_fork_that_made_no_result__is_no_failure_of_the_pull_request(conclusion) -> None:
    assert plan_of("workflow_run", run(conclusion=conclusion)).mode is StepMode.NOTHING


def test_plan__what_is_said_of_a_pull_request__is_about_its_head_and_not_its_test_merge() -> None:
    plan = plan_of("pull_request_review", pull())
    assert (plan.head_sha, plan.pull_number) == (plan_of("pull_request", pull()).head_sha, 7)


@pytest.mark.parametrize(
    ("named", "trusted"),
    [
        ("release", ("main", "release")),
        ("refs/heads/release", ("main", "release")),
        ("base", ("main",)),
        ("", ("main",)),
    ],
)
def test_plan__branch_that_baselines_are_of__is_trusted_however_it_is_written(named, trusted) -> None:
    assert plan_of("pull_request", pull(), inputs={"baseline-branch": named}).trusted_branches == trusted


# --- comments ---------------------------------------------------------------------------------------------------------


def comment_event(body: str | None = "/eval-gate refresh", *, on_pull: bool = True, action: str = "created"):
    issue = {"number": 7} | ({"pull_request": {"url": "x"}} if on_pull else {})
    return {"action": action, "issue": issue, "comment": {"id": 12, "body": body}}


def test_comment__asks_for_a_new_baseline__refreshes_the_branch_that_makes_baselines() -> None:
    made = plan_of("issue_comment", comment_event())
    assert (made.mode, made.pull_number, made.refresh_comment) == (StepMode.REFRESH, 7, 12)
    assert made.baseline.branch == "main"
    assert made.reasons == ("event issue_comment on #7, comment 12: it asks for a new baseline of main",)
    assert plan_of("issue_comment", comment_event(), inputs={"baseline-branch": "dev"}).baseline.branch == "dev"
    assert plan_of("issue_comment", comment_event(), inputs=BASE_WORD).baseline.branch == "main"


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({"on_pull": False}, StepMode.NOTHING),
        ({"action": "deleted"}, StepMode.NOTHING),
        ({"body": "/eval-gate refresh main"}, StepMode.REFRESH),  # it gets a reply
        ({"body": "/eval-gate waive a -- known"}, StepMode.NOTHING),
        ({"body": "/eval-gate refreshments"}, StepMode.NOTHING),
        ({"body": "/Eval-Gate refresh"}, StepMode.NOTHING),
        ({"body": "/evaluate"}, StepMode.GATE),
        ({"body": "/evaluate\n/eval-gate waive a -- known"}, StepMode.GATE),
        ({"body": None}, StepMode.GATE),
    ],
    ids=str,
)
def test_comment__of_another_kind__evaluates_as_any_event_or_does_nothing(changes, mode) -> None:
    assert plan_of("issue_comment", comment_event(**changes)).mode is mode


def test_comment__of_a_review__is_no_command() -> None:
    assert plan_of("pull_request_review_comment", comment_event() | pull(), known={}).mode is StepMode.GATE
