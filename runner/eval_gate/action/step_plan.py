"""Plan of a step: a pure decision from event facts and settings, with its reasons.

It implements the table of events in docs/action.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from eval_gate.action.base_commit import (
    BASE,
    WorkspaceCommit,
    build_checkout_error,
    choose_baseline_branch,
    find_group_base,
    find_pull_base,
)
from eval_gate.action.inputs import AUTO, NONE, StepSettings
from eval_gate.errors import PAGES, GateError
from eval_gate.gate.waivers.waive_command import REFRESH_COMMAND, CommandVerb, begins_with_command, parse_commands
from eval_gate.github.artifacts.artifact_search import TRUSTED_EVENTS
from eval_gate.github.commits import ANY_COMMIT, BaseCommit, PullRequest
from eval_gate.github.event import WorkflowEvent
from eval_gate.github.workflow_environment import MAX_DIGITS, WorkflowEnvironment
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.quoting import quote_value

FORK_IS_READ_ONLY: Final = "a pull request from a fork gets a read-only token"
DEPENDABOT: Final = "dependabot[bot]"
OWN_CODE_EVENTS: Final = frozenset(
    {
        *("push", "schedule", "create", "release", "deployment", "deployment_status"),
        *("merge_group", "pull_request", "pull_request_review", "pull_request_review_comment"),
        "pull_request_target",  # which the plan refuses
    }
)
"""Events that only people who may write can cause, or whose runs get no keys where the code is a stranger's."""
_RUN_INPUTS: Final = {"agentEndpoint": "agent-endpoint", "evals": "evals", "target": "target"}
"""Inputs by which cases are run, by their keys of the configuration."""
PULL_INPUT: Final = "pr-number"
"""The input of a manually started workflow that names a pull request."""


class StepMode(StrEnum):
    """Purpose of a step."""

    GATE = "gate"
    """Run or read a result, compare, judge, publish."""
    RELAY = "relay"
    """Publish what a run without a write token left behind."""
    REFRESH = "refresh"
    """Run the workflow on the baseline's branch, as a comment asks."""
    NOTHING = "nothing"


class BaselineKind(StrEnum):
    """Source of the baseline."""

    ARTIFACT = "artifact"
    """The nearest trusted artifact of the baseline branch."""
    RUN = "run"
    """The artifact of one workflow run, by its number."""
    STORED = "stored"
    """A path or run id, as on the command line."""
    NONE = "none"


class BaselineChoice(FrozenStruct):
    """Baseline to compare with. `reference` is for run and stored; the other fields are for artifact."""

    kind: BaselineKind
    reference: str = ""
    branch: str = ""
    base: BaseCommit = ANY_COMMIT
    """The nearest to this commit."""
    exact_commit_branch: str | None = None
    """Only the very commit's own will do, be it of a run on this branch. None takes what is before it too."""
    workflow: str = ""
    """The workflow file that makes baselines, where it is not this one."""


class StepPlan(FrozenStruct):
    """Decisions of a step with their reasons."""

    mode: StepMode
    head_sha: str
    """The commit that the result is about: a pull request's head, never its test merge."""
    baseline: BaselineChoice
    reasons: tuple[str, ...]
    pull_number: int | None = None
    """Where to comment; None for nowhere."""
    base_branch: str | None = None
    head_branch: str | None = None
    """What a pull request merges: the name of its branch, maybe in a fork."""
    from_fork: bool = False
    """Whether the author of the files in the workspace may not write to the repository."""
    read_only: str | None = None
    """Why the token is not expected to write, if it is not."""
    can_store: bool = True
    """Whether the result may be kept under the name of baselines."""
    workspace_sha: str | None = None
    """The commit whose files are evaluated: of a pull request its head, or a test merge of it."""
    is_unverified: bool = False
    """Whether no checkout names that commit, so that the workflow's word counts."""
    rules_branch: str | None = None
    """The branch whose policy counts instead of the change's own."""
    is_on_baseline_branch: bool = False
    """Whether it is a run of the baseline branch itself, which goes on from the branch's run before it."""
    relayed_run: int | None = None
    relayed_attempt: int | None = None
    """Its attempt that stored the result; None until that is known."""
    relayed_since: datetime | None = None
    """When that attempt began, where an earlier one may have left a result too."""
    refresh_comment: int | None = None
    previous_head_sha: str = ""
    """The head of the pull request before its last push, if the event names it."""
    default_branch: str = ""
    trusted_branches: tuple[str, ...] = ()
    """Branches whose files count for a pull request without a further question, the default branch first."""


class PlanFacts(FrozenStruct):
    """Facts for the plan that neither the environment nor the event contains."""

    default_branch: str
    pull: PullRequest | None = None
    """As it is now: the pull request that a manual start names."""
    checkout: str | None = None
    parents: tuple[str, ...] | None = None
    """Its parents, where it is neither the event's nor the head of a pull request; None where GitHub does not know."""


def make_step_plan(
    environment: WorkflowEnvironment, event: WorkflowEvent, settings: StepSettings, facts: PlanFacts
) -> StepPlan:
    """Make the plan for this event. Raises GateError for events that must not run a pull request's code."""
    match event.name:
        case "pull_request_target":
            raise GateError(
                "unsafe-event",
                "pull_request_target runs with the default branch's secrets, which code of a pull request must not get",
                f"use pull_request; for forks see {PAGES}/action.md#forks, where the first workflow needs no secrets",
            )
        case "workflow_run":
            plan = _plan_relay(environment, event, settings, facts)
        case "pull_request":
            plan = _plan_pull_request(environment, event, settings, facts)
        case "merge_group":
            plan = _plan_merge_group(environment, event, settings, facts)
        case "issue_comment" if begins_with_command(_get_comment_body(event)):
            plan = _plan_comment(environment, event, settings, facts)
        case "workflow_dispatch" if parse_pull_number(event) is not None:
            plan = _plan_dispatched_pull(environment, event, settings, facts)
        case _ if event.pull_request is not None:  # such as a review
            plan = _plan_pull_request(environment, event, settings, facts)
        case _:
            plan = _plan_branch(environment, settings, facts, event.name)
    plan = replace(plan, default_branch=facts.default_branch, trusted_branches=_list_trusted_branches(settings, facts))
    if plan.mode is StepMode.REFRESH:  # nothing is compared
        return plan
    chosen = _choose_named_baseline(settings, plan.baseline.branch)
    return replace(plan, baseline=chosen) if chosen else plan


def build_pull_plan(
    environment: WorkflowEnvironment, pull: PullRequest, baseline: BaselineChoice, reasons: tuple[str, ...] = ()
) -> StepPlan:
    """Build the plan for a pull request from what its event or GitHub says of it alone."""
    return StepPlan(
        StepMode.GATE,
        pull.head.sha,
        baseline,
        reasons,
        pull_number=pull.number if pull.state == "open" else None,
        base_branch=pull.base.ref,
        head_branch=pull.head.ref,
        from_fork=not environment.is_own_repository(pull.head.repo),
        rules_branch=pull.base.ref,
    )


def _plan_change(
    environment: WorkflowEnvironment,
    pull: PullRequest,
    settings: StepSettings,
    default: str,
    workspace: WorkspaceCommit,
    reasons: Sequence[str],
) -> StepPlan:
    """Plan the evaluation of a pull request: the baseline is nearest to its base, on the branch that makes baselines.

    If that branch or the default branch is itself merged, as in a promotion, its results are about the evaluated
    code. In that case, only a result of the exact base commit qualifies, from a run on either branch.
    """
    base, into = find_pull_base(workspace, pull.head.sha, f"#{pull.number}"), pull.base.ref
    head = pull.head.ref if environment.is_own_repository(pull.head.repo) else None
    branch = choose_baseline_branch(settings.baseline_branch, default, into)
    promoted = head in {branch, default} and head != into
    baseline = BaselineChoice(
        BaselineKind.ARTIFACT,
        branch=into if promoted else branch,
        base=replace(base, forked_from=into),
        exact_commit_branch=head if promoted else None,
    )
    plan = build_pull_plan(environment, pull, baseline, (*reasons, _describe_workspace(workspace, base, into)))
    return replace(plan, workspace_sha=workspace.sha or None, is_unverified=workspace.is_unverified)


def _list_trusted_branches(settings: StepSettings, facts: PlanFacts) -> tuple[str, ...]:
    """List the default branch and the one that the workflow names for baselines; `base` names no branch."""
    setting = settings.baseline_branch
    branch = choose_baseline_branch(setting, facts.default_branch, None)
    return (facts.default_branch, *([branch] if setting and setting != BASE else []))


def parse_pull_number(event: WorkflowEvent) -> int | None:
    """Parse the pull request number of a manual start; None without one. Raises GateError for what is no number."""
    value = (event.inputs or {}).get(PULL_INPUT)
    if event.name != "workflow_dispatch" or value is None or value == "":
        return None
    text = str(value).strip().removeprefix("#")
    if not text.isdecimal() or len(text) > MAX_DIGITS:
        raise GateError("invalid-input", f"{PULL_INPUT}: {quote_value(text)} is not the number of a pull request")
    return int(text)


def _choose_named_baseline(settings: StepSettings, branch: str) -> BaselineChoice | None:
    """Choose the baseline that the step names; the configuration file's applies only to the command line."""
    setting = settings.baseline
    if setting == AUTO:
        return None
    if setting == NONE:
        return BaselineChoice(BaselineKind.NONE)
    is_number = setting.isdecimal() and len(setting) <= MAX_DIGITS
    return BaselineChoice(BaselineKind.RUN if is_number else BaselineKind.STORED, setting, branch)


def _plan_pull_request(
    environment: WorkflowEnvironment, event: WorkflowEvent, settings: StepSettings, facts: PlanFacts
) -> StepPlan:
    pull = event.pull_request
    if pull is None:
        raise GateError("invalid-event", "the event pull_request contains no pull request")
    workspace = WorkspaceCommit(environment.sha, facts.checkout, facts.parents)
    from_fork = not environment.is_own_repository(pull.head.repo)
    read_only = None
    if from_fork:
        read_only = FORK_IS_READ_ONLY
    elif DEPENDABOT in {environment.actor, event.sender.login if event.sender else ""}:
        read_only = "a pull request by Dependabot gets a read-only token"
    reasons = [f"event {event.name} #{pull.number}, head {pull.head.sha[:7]}, into {pull.base.ref}"]
    reasons += [read_only if from_fork else f"{read_only}, unless `permissions:` grants more"] if read_only else []
    reasons += [] if pull.state == "open" else ["the pull request is closed: no comment"]
    plan = _plan_change(environment, pull, settings, facts.default_branch, workspace, reasons)
    return replace(plan, read_only=read_only, previous_head_sha=event.previous_head)


def _describe_workspace(workspace: WorkspaceCommit, base: BaseCommit, branch: str) -> str:
    """Which commit is evaluated, and what follows for the baseline."""
    what = f"the workspace is at {workspace.sha[:7]}"
    if workspace.is_unverified:
        what = f"the commit of the workspace is unknown, assuming GitHub's {workspace.sha[:7]}"
    if base.fork_point_of:
        return f"{what}, the head: compared with the commit where it left {branch}"
    return f"{what}, a test merge: compared with {branch} as it was merged there"


def _plan_merge_group(
    environment: WorkflowEnvironment, event: WorkflowEvent, settings: StepSettings, facts: PlanFacts
) -> StepPlan:
    group = event.merge_group
    if group is None:
        raise GateError("invalid-event", "the event merge_group contains no merge group")
    workspace = WorkspaceCommit(environment.sha, facts.checkout)
    base = find_group_base(workspace, group.head_sha, group.base_sha)
    last = f", last pull request #{group.pull_number}" if group.pull_number else ""
    reasons = (f"event merge_group{last}, head {group.head_sha[:7]}: no comment, a group can have several",)
    into = group.base_branch
    branch = choose_baseline_branch(settings.baseline_branch, facts.default_branch, into)
    return StepPlan(
        StepMode.GATE,
        group.head_sha or environment.sha,
        BaselineChoice(BaselineKind.ARTIFACT, branch=branch, base=base),
        reasons,
        workspace_sha=workspace.sha or None,
        is_unverified=workspace.is_unverified,
        rules_branch=into or None,
    )


def _plan_dispatched_pull(
    environment: WorkflowEnvironment, event: WorkflowEvent, settings: StepSettings, facts: PlanFacts
) -> StepPlan:
    """Plan a manual start that names a pull request, which the workspace must hold."""
    number, pull, checkout = parse_pull_number(event), facts.pull, facts.checkout
    if pull is None:
        raise GateError(
            "pull-request-not-found",
            f"{PULL_INPUT}: pull request #{number} not found",
            "give the number of an open one",
        )
    # the event's own commit is the default branch's
    workspace = WorkspaceCommit(pull.merge_commit_sha or "", checkout, facts.parents)
    if checkout is None:
        raise build_checkout_error(None, f"#{number} is at {pull.head.sha[:12]}", f"refs/pull/{number}/head")
    reason = f"started by hand for #{number}, head {pull.head.sha[:7]}, into {pull.base.ref}: its result is not stored"
    plan = _plan_change(environment, pull, settings, facts.default_branch, workspace, [reason])
    # the run counts as one of its branch: what it stores would be taken for the branch's own
    return replace(plan, can_store=False)


def _plan_branch(
    environment: WorkflowEnvironment, settings: StepSettings, facts: PlanFacts, event_name: str
) -> StepPlan:
    """Plan a push, a schedule, a manual start, or any event without special handling."""
    sha = environment.sha
    branch = choose_baseline_branch(settings.baseline_branch, facts.default_branch, None, environment.ref)
    # at other events each file that is read is held against the event's commit
    if event_name in OWN_CODE_EVENTS and sha and facts.checkout not in {None, sha}:
        raise build_checkout_error(facts.checkout, f"the event {event_name} is for {sha[:12]}", sha)
    where = environment.ref.removeprefix("refs/heads/") or "an unknown ref"
    reason = f"event {event_name} on {where}, commit {sha[:7]}: no pull request to comment on"
    if environment.ref == f"refs/heads/{branch}":
        choice = BaselineChoice(BaselineKind.ARTIFACT, branch=branch, base=BaseCommit(sha))
        counts = event_name in TRUSTED_EVENTS
        reasons = (f"{reason}{', its result is the next baseline' if counts else ''}",)
        return StepPlan(StepMode.GATE, sha, choice, reasons, is_on_baseline_branch=counts, workspace_sha=facts.checkout)
    # the run of a tag is listed under the tag's short name, which may be the branch's
    stores = environment.ref.startswith("refs/heads/")
    reason += "" if stores else "; its result is not stored, because the ref is not a branch"
    choice = BaselineChoice(BaselineKind.ARTIFACT, branch=branch, base=BaseCommit(fork_point_of=sha))
    return StepPlan(StepMode.GATE, sha, choice, (reason,), can_store=stores, workspace_sha=facts.checkout)


def _get_comment_body(event: WorkflowEvent) -> str:
    return (event.comment.body if event.comment else None) or ""


def _plan_comment(
    environment: WorkflowEnvironment, event: WorkflowEvent, settings: StepSettings, facts: PlanFacts
) -> StepPlan:
    """Plan what a command in a comment, which is read again later, asks for: no evaluation; everybody can write one."""
    issue, comment = event.issue, event.comment
    if issue is None or comment is None:
        raise GateError("invalid-event", "the event issue_comment contains no issue")
    branch = choose_baseline_branch(settings.baseline_branch, facts.default_branch, None)
    choice = BaselineChoice(BaselineKind.ARTIFACT, branch=branch)
    what = f"event issue_comment on #{issue.number}, comment {comment.id}"
    why_not = None
    if not any(one.verb is CommandVerb.REFRESH for one in parse_commands(_get_comment_body(event))):
        why_not = f"only the command `{REFRESH_COMMAND}` starts anything"
    elif issue.pull_request is None:
        why_not = "commands count on pull requests only"
    elif event.action == "deleted":
        why_not = "it was deleted"
    if why_not:
        return StepPlan(StepMode.NOTHING, environment.sha, choice, (f"{what}: {why_not}",))
    return StepPlan(
        StepMode.REFRESH,
        environment.sha,
        choice,
        (f"{what}: it asks for a new baseline of {branch}",),
        pull_number=issue.number,
        refresh_comment=comment.id,
    )


def _plan_relay(
    environment: WorkflowEnvironment, event: WorkflowEvent, settings: StepSettings, facts: PlanFacts
) -> StepPlan:
    run = event.workflow_run
    if run is None:
        raise GateError("invalid-event", "the event workflow_run contains no run")
    from_fork = not environment.is_own_repository(run.head_repository)
    by_dependabot = run.actor is not None and run.actor.login == DEPENDABOT
    # which commit was evaluated, and what it is merged into, is known later
    choice = BaselineChoice(
        BaselineKind.ARTIFACT,
        branch=choose_baseline_branch(settings.baseline_branch, facts.default_branch, None),
        base=BaseCommit(fork_point_of=run.head_sha),
        workflow=run.path.partition("@")[0],
    )
    what = f"event workflow_run for run {run.id}, head {run.head_sha[:7]}"
    why_not = None
    if run.event != "pull_request":
        _refuse_to_run(settings)
        why_not = f"it was a run of {run.event}, not of pull_request"
    elif run.conclusion in {"cancelled", "skipped", "stale", "action_required"}:
        why_not = f"it ended as {run.conclusion}, without a result"
    elif event.action in {"requested", "in_progress"}:
        why_not = "it has not ended yet"
    elif not (from_fork or by_dependabot):
        _refuse_to_run(settings)
        why_not = "it published its own result with its own token"
    if why_not:
        return StepPlan(StepMode.NOTHING, run.head_sha, choice, (f"{what}: {why_not}",))
    reason = f"{what}: it had no token to publish, so this workflow publishes"
    return StepPlan(
        StepMode.RELAY,
        run.head_sha,
        choice,
        (reason,),
        from_fork=from_fork,
        relayed_run=run.id,
        relayed_attempt=run.run_attempt,
    )


def _refuse_to_run(settings: StepSettings) -> None:
    """Refuse inputs that ask for an evaluation: an event that evaluates nothing must not look like one."""
    inputs = [one for key, one in _RUN_INPUTS.items() if key in settings.flags]
    inputs += ["results"] if settings.results else []
    if inputs:
        raise GateError(
            "unsupported-event",
            f"the input {inputs[0]} is set, but a workflow started by workflow_run does not evaluate: it publishes "
            "the result of a run of a fork or of Dependabot, and this was none",
            f"remove the input in a workflow that publishes ({PAGES}/action.md#forks); to evaluate, use a job after "
            "the others (`needs`) at push and pull_request, or workflow_dispatch",
        )
