"""Decides first: event facts and settings in, a Plan with its reasons out. Asks nobody, changes nothing.

What each event means for the gate is docs/action.md's table, in code.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

from eval_gate.action.base_commit import (
    BASE,
    BaseCommit,
    Workspace,
    base_of_change,
    base_of_group,
    baseline_branch_of,
    other_checkout,
)
from eval_gate.action.inputs import AUTO, NONE, Settings
from eval_gate.errors import PAGES, GateError
from eval_gate.github.artifacts.listed import TRUSTED_EVENTS
from eval_gate.github.commits import PullRequest
from eval_gate.github.environment import MAX_DIGITS, WorkflowEnvironment
from eval_gate.github.event import Event
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.quoting import quoted

DEPENDABOT: Final = "dependabot[bot]"
OWN_CODE: Final = frozenset(
    {
        *("push", "schedule", "create", "release", "deployment", "deployment_status"),
        *("merge_group", "pull_request", "pull_request_review", "pull_request_review_comment"),
        "pull_request_target",  # which the plan refuses
    }
)
"""Events that only people who may write can cause, or whose runs get no keys where the code is a stranger's."""
_OF_A_RUN: Final = {"agentEndpoint": "agent-endpoint", "evals": "evals", "target": "target"}
"""Inputs by which cases are run, by their keys of the configuration."""
PULL_INPUT: Final = "pr-number"
"""The input of a manually started workflow that names a pull request."""


class Mode(StrEnum):
    """What this step is for."""

    GATE = "gate"
    """Run or read a result, compare, judge, publish."""
    RELAY = "relay"
    """Publish what a run without a write token left behind."""
    NOTHING = "nothing"


class BaselineKind(StrEnum):
    """Where the baseline is sought."""

    ARTIFACT = "artifact"
    """The nearest trusted artifact of the baseline branch."""
    RUN = "run"
    """The artifact of one workflow run, by its number."""
    STORED = "stored"
    """A path or run id, as on the command line."""
    NONE = "none"


class BaselineChoice(FrozenStruct):
    """What to compare with. `reference` belongs to run and stored; the others to artifact."""

    kind: BaselineKind
    reference: str = ""
    branch: str = ""
    commit: str | None = None
    """The nearest to this commit."""
    merged_head: str | None = None
    """The head that was merged into that commit, where whoever made the merge chose it."""
    first_parent_of: str | None = None
    """The nearest to the commit that this test merge was made with."""
    fork_point_of: str | None = None
    """The nearest to where this commit left the branch."""
    left: str | None = None
    """Which branch it left; None for the one that makes baselines."""
    own_of: str | None = None
    """Only the very commit's own will do, be it of a run on this branch. None takes what is before it too."""
    workflow: str = ""
    """The workflow file that makes baselines, where it is not this one."""


class Plan(FrozenStruct):
    """What this step will do, and why."""

    mode: Mode
    head_sha: str
    """The commit that the result is about: a pull request's head, never its test merge."""
    baseline: BaselineChoice
    reasons: tuple[str, ...]
    pull_number: int | None = None
    """Where to comment; None for nowhere."""
    base_branch: str | None = None
    """What a pull request is merged into."""
    from_fork: bool = False
    """Whether the files in the workspace are somebody's who may not write to the repository."""
    read_only: str | None = None
    """Why the token is not expected to write, if it is not."""
    stores: bool = True
    """Whether the result may be kept under the name of baselines."""
    workspace_sha: str | None = None
    """The commit whose files are evaluated: of a pull request its head, or a test merge of it."""
    is_believed: bool = False
    """Whether no checkout names that commit, so that the workflow's word counts."""
    rules_branch: str | None = None
    """The branch whose rules count where the change is not to say by what it is judged."""
    on_branch: bool = False
    """Whether it is a run of the baseline branch itself, which goes on from the branch's run before it."""
    relayed_run: int | None = None
    """The run whose result a relay publishes."""
    relayed_attempt: int | None = None
    """Its attempt that left the result; None as long as nobody has told."""
    relayed_since: datetime | None = None
    """When that attempt began, where an earlier one may have left a result too."""
    default_branch: str = ""
    """The repository's default branch."""
    trusted_branches: tuple[str, ...] = ()
    """Branches whose files count for a pull request without a further question, the default branch first."""


class PlanFacts(FrozenStruct):
    """What the plan needs to know and neither the environment nor the event tells."""

    default_branch: str
    pull: PullRequest | None = None
    """As it is now: the pull request that a manual start names."""
    checkout: str | None = None
    """The commit in the workspace."""
    parents: tuple[str, ...] | None = None
    """Its parents, where it is neither the event's nor the head of a pull request; None where GitHub does not know."""


def make_plan(environment: WorkflowEnvironment, event: Event, settings: Settings, facts: PlanFacts) -> Plan:
    """The plan for this event. Raises GateError for events that must not run a pull request's code."""
    match event.name:
        case "pull_request_target":
            raise GateError(
                "unsafe-event",
                "pull_request_target has the default branch's secrets: a pull request's code must not run with them",
                f"use pull_request; for forks see {PAGES}/forks.md, which needs no secrets in the first stage",
            )
        case "workflow_run":
            plan = _relay(environment, event, settings, facts)
        case "pull_request":
            plan = _pull_request(environment, event, settings, facts)
        case "merge_group":
            plan = _merge_group(environment, event, settings, facts)
        case "workflow_dispatch" if pull_number(event) is not None:
            plan = _dispatched_for(environment, event, settings, facts)
        case _ if event.pull_request is not None:  # what is said of one, such as a review
            plan = _pull_request(environment, event, settings, facts)
        case _:
            plan = _on_a_branch(environment, settings, facts, event.name)
    plan = replace(plan, default_branch=facts.default_branch, trusted_branches=_trusted(settings, facts))
    chosen = _choice(settings, plan.baseline.branch)
    return replace(plan, baseline=chosen) if chosen else plan


def choice_of_change(settings: Settings, default: str, change: Change, base: BaseCommit) -> BaselineChoice:
    """The baseline of a change with this base: of the branch that makes baselines, nearest to that commit.

    Where that branch, or the default one, is itself what is merged, as in a promotion, its results are of what is
    evaluated here: then only the base's own will do, which may be of a run on either branch.
    """
    branch = baseline_branch_of(settings.baseline_branch, default, change.into)
    promoted = change.head_branch in {branch, default} and change.head_branch != change.into
    return BaselineChoice(
        BaselineKind.ARTIFACT,
        branch=change.into if promoted else branch,
        commit=base.commit,
        merged_head=base.merged_head,
        first_parent_of=base.first_parent_of,
        fork_point_of=base.fork_point_of,
        left=change.into,
        own_of=change.head_branch if promoted else None,
    )


class Change(FrozenStruct):
    """What is merged into what."""

    into: str
    head_branch: str | None = None
    """The branch it is on, where that is one of this repository."""


def _trusted(settings: Settings, facts: PlanFacts) -> tuple[str, ...]:
    """The default branch, and the one that the workflow names for baselines; `base` is a word and names none."""
    named = settings.baseline_branch
    branch = baseline_branch_of(named, facts.default_branch, None)
    return (facts.default_branch, *([branch] if named and named != BASE else []))


def pull_number(event: Event) -> int | None:
    """The pull request that a manual start names. Raises GateError for what is no number."""
    value = (event.inputs or {}).get(PULL_INPUT)
    if event.name != "workflow_dispatch" or value is None or value == "":
        return None
    text = str(value).strip().removeprefix("#")
    if not text.isdecimal() or len(text) > MAX_DIGITS:
        raise GateError("invalid-input", f"{PULL_INPUT}: {quoted(text)} is not the number of a pull request")
    return int(text)


def _choice(settings: Settings, branch: str) -> BaselineChoice | None:
    """A baseline that the step names; None where the event decides. The configuration's is for the command line."""
    named = settings.baseline
    if named == AUTO:
        return None
    if named == NONE:
        return BaselineChoice(BaselineKind.NONE)
    is_number = named.isdecimal() and len(named) <= MAX_DIGITS
    return BaselineChoice(BaselineKind.RUN if is_number else BaselineKind.STORED, named, branch)


def _pull_request(environment: WorkflowEnvironment, event: Event, settings: Settings, facts: PlanFacts) -> Plan:
    pull = event.pull_request
    if pull is None:
        raise GateError("bad-event", "the event pull_request has no pull request in it")
    workspace = Workspace(environment.sha, facts.checkout, facts.parents)
    base = base_of_change(workspace, pull.head.sha, f"#{pull.number}")
    from_fork = pull.head.repo is None or pull.head.repo.full_name != environment.repository
    read_only = None
    if from_fork:
        read_only = "a pull request from a fork gets a read-only token"
    elif DEPENDABOT in {environment.actor, event.sender.login if event.sender else ""}:
        read_only = "a pull request by Dependabot gets a read-only token"
    is_open = pull.state == "open"
    reasons = [f"event {event.name} #{pull.number}, head {pull.head.sha[:7]}, into {pull.base.ref}"]
    reasons += [read_only if from_fork else f"{read_only}, unless `permissions:` grants more"] if read_only else []
    reasons += [] if is_open else ["the pull request is closed: no comment"]
    change = Change(pull.base.ref, None if from_fork else pull.head.ref)
    return Plan(
        Mode.GATE,
        pull.head.sha,
        choice_of_change(settings, facts.default_branch, change, base),
        (*reasons, _measured_words(workspace, base, pull.base.ref)),
        pull_number=pull.number if is_open else None,
        base_branch=pull.base.ref,
        from_fork=from_fork,
        read_only=read_only,
        workspace_sha=workspace.sha or None,
        is_believed=workspace.is_believed,
        rules_branch=pull.base.ref,
    )


def _measured_words(workspace: Workspace, base: BaseCommit, branch: str) -> str:
    """Which commit is evaluated, and what follows for the baseline."""
    what = f"the workspace holds {workspace.sha[:7]}"
    if workspace.is_believed:
        what = f"nothing in the workspace names its commit: GitHub's {workspace.sha[:7]} is believed"
    if base.fork_point_of:
        return f"{what}, the head: compared with where it left {branch}"
    return f"{what}, a test merge: compared with {branch} as it was merged there"


def _merge_group(environment: WorkflowEnvironment, event: Event, settings: Settings, facts: PlanFacts) -> Plan:
    group = event.merge_group
    if group is None:
        raise GateError("bad-event", "the event merge_group has no merge group in it")
    workspace = Workspace(environment.sha, facts.checkout)
    base = base_of_group(workspace, group.head_sha, group.base_sha)
    last = f", last pull request #{group.pull_number}" if group.pull_number else ""
    reasons = (f"event merge_group{last}, head {group.head_sha[:7]}: no comment, a group may hold several",)
    into = group.base_branch
    branch = baseline_branch_of(settings.baseline_branch, facts.default_branch, into)
    return Plan(
        Mode.GATE,
        group.head_sha or environment.sha,
        BaselineChoice(BaselineKind.ARTIFACT, branch=branch, commit=base.commit),
        reasons,
        workspace_sha=workspace.sha or None,
        is_believed=workspace.is_believed,
        rules_branch=into or None,
    )


def _dispatched_for(environment: WorkflowEnvironment, event: Event, settings: Settings, known: PlanFacts) -> Plan:
    """A manual start that names a pull request: only believed when the workspace holds that pull request."""
    number, pull, checkout = pull_number(event), known.pull, known.checkout
    if pull is None:
        raise GateError(
            "no-such-pull-request", f"{PULL_INPUT}: there is no pull request #{number} here", "give an open one"
        )
    # the event's own commit is the default branch's
    workspace = Workspace(pull.merge_commit_sha or "", checkout, known.parents)
    if checkout is None:
        raise other_checkout(None, f"#{number} is {pull.head.sha[:12]}", f"refs/pull/{number}/head")
    base = base_of_change(workspace, pull.head.sha, f"#{number}")
    from_fork = pull.head.repo is None or pull.head.repo.full_name != environment.repository
    change = Change(pull.base.ref, None if from_fork else pull.head.ref)
    reason = f"started by hand for #{number}, head {pull.head.sha[:7]}, into {pull.base.ref}: its result is not stored"
    return Plan(
        Mode.GATE,
        pull.head.sha,
        choice_of_change(settings, known.default_branch, change, base),
        (reason, _measured_words(workspace, base, pull.base.ref)),
        pull_number=pull.number if pull.state == "open" else None,
        base_branch=pull.base.ref,
        from_fork=from_fork,
        workspace_sha=checkout,
        rules_branch=pull.base.ref,
        # the run counts as one of its branch: what it stores would be taken for the branch's own
        stores=False,
    )


def _on_a_branch(environment: WorkflowEnvironment, settings: Settings, facts: PlanFacts, event_name: str) -> Plan:
    """A push, a schedule, a manual start, and every event we know nothing special about."""
    sha = environment.sha
    branch = baseline_branch_of(settings.baseline_branch, facts.default_branch, None, environment.ref)
    # at other events each file that is read is held against the event's commit
    if event_name in OWN_CODE and sha and facts.checkout not in {None, sha}:
        raise other_checkout(facts.checkout, f"the event {event_name} is of {sha[:12]}", sha)
    where = environment.ref.removeprefix("refs/heads/") or "an unknown ref"
    reason = f"event {event_name} on {where}, commit {sha[:7]}: no pull request to comment on"
    if environment.ref == f"refs/heads/{branch}":
        choice = BaselineChoice(BaselineKind.ARTIFACT, branch=branch, commit=sha)
        becomes = ", its result is the next baseline" if event_name in TRUSTED_EVENTS else ""
        on_branch = event_name in TRUSTED_EVENTS
        reasons = (f"{reason}{becomes}",)
        return Plan(Mode.GATE, sha, choice, reasons, on_branch=on_branch, workspace_sha=facts.checkout)
    # the run of a tag is listed under the tag's short name, which may be the branch's
    stores = environment.ref.startswith("refs/heads/")
    reason += "" if stores else "; its result is not stored, because it is no branch's"
    choice = BaselineChoice(BaselineKind.ARTIFACT, branch=branch, fork_point_of=sha)
    return Plan(Mode.GATE, sha, choice, (reason,), stores=stores, workspace_sha=facts.checkout)


def _relay(environment: WorkflowEnvironment, event: Event, settings: Settings, facts: PlanFacts) -> Plan:
    run = event.workflow_run
    if run is None:
        raise GateError("bad-event", "the event workflow_run has no run in it")
    from_fork = run.head_repository is None or run.head_repository.full_name != environment.repository
    by_dependabot = run.actor is not None and run.actor.login == DEPENDABOT
    # which commit was evaluated, and what it is merged into, is known later
    choice = BaselineChoice(
        BaselineKind.ARTIFACT,
        branch=baseline_branch_of(settings.baseline_branch, facts.default_branch, None),
        fork_point_of=run.head_sha,
        workflow=run.path.partition("@")[0],
    )
    what = f"event workflow_run for run {run.id}, head {run.head_sha[:7]}"
    if run.event != "pull_request":
        _refuse_to_run(settings)
        return Plan(Mode.NOTHING, run.head_sha, choice, (f"{what}: it was a run of {run.event}, not of pull_request",))
    if run.conclusion in {"cancelled", "skipped", "stale", "action_required"}:
        return Plan(Mode.NOTHING, run.head_sha, choice, (f"{what}: it ended as {run.conclusion}, without a result",))
    if event.action in {"requested", "in_progress"}:
        return Plan(Mode.NOTHING, run.head_sha, choice, (f"{what}: it has not ended yet",))
    if not (from_fork or by_dependabot):
        _refuse_to_run(settings)
        return Plan(Mode.NOTHING, run.head_sha, choice, (f"{what}: it had a token to publish by itself",))
    reason = f"{what}: it had no token to publish, so this one does"
    return Plan(
        Mode.RELAY,
        run.head_sha,
        choice,
        (reason,),
        from_fork=from_fork,
        relayed_run=run.id,
        relayed_attempt=run.run_attempt,
    )


def _refuse_to_run(settings: Settings) -> None:
    """Raises GateError where cases are to be run or judged: this event does neither, and must not pass for it."""
    named = [one for key, one in _OF_A_RUN.items() if key in settings.flags] + (["results"] if settings.results else [])
    if named:
        raise GateError(
            "wrong-event",
            f"the input {named[0]} is given, and a workflow started by workflow_run evaluates nothing: it publishes "
            "what a run of a fork or of Dependabot left, and this was none",
            f"leave the input out in a workflow that publishes ({PAGES}/forks.md); evaluate in a job behind the others "
            "(`needs`) at push and pull_request, or at workflow_dispatch",
        )
