"""Decides first: event facts and settings in, a Plan with its reasons out. Asks nobody, changes nothing.

What each event means for the gate is docs/action.md's table, in code.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from eval_gate.action.inputs import AUTO, NONE, Settings
from eval_gate.errors import GateError
from eval_gate.github.artifacts.listed import TRUSTED_EVENTS
from eval_gate.github.commits import PullRequest
from eval_gate.github.environment import MAX_DIGITS, WorkflowEnvironment
from eval_gate.github.event import Event
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.quoting import quoted

DEPENDABOT: Final = "dependabot[bot]"
OF_ANYBODY: Final = frozenset(
    {
        *("issue_comment", "issues", "discussion", "discussion_comment"),
        *("repository_dispatch", "check_run", "check_suite", "status"),
    }
)
"""Events that anybody with an account can cause, and that have the default branch's secrets and token.

The later ones he causes by what listens to him: a bot that reads comments, the checks of his pull request.
"""
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
    fork_point_of: str | None = None
    """The nearest to where this commit left the branch."""
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
    head_branch: str | None = None
    """The branch of a pull request, in its own repository."""
    from_fork: bool = False
    """Whether the files in the workspace are somebody's who may not write to the repository."""
    read_only: str | None = None
    """Why the token is not expected to write, if it is not."""
    stores: bool = True
    """Whether the result may be kept under the name of baselines."""
    on_branch: bool = False
    """Whether it is a run of the baseline branch itself, which goes on from the branch's run before it."""
    relayed_run: int | None = None
    """The run whose result a relay publishes."""
    relayed_attempt: int = 1
    """Its attempt that left the result."""
    default_branch: str = ""
    """The repository's default branch."""


class PlanFacts(FrozenStruct):
    """What the plan needs to know and neither the environment nor the event tells."""

    default_branch: str
    pull: PullRequest | None = None
    """As it is now: the pull request that a manual start names."""
    checkout: str | None = None
    """The commit in the workspace."""
    read: frozenset[str | None] = frozenset()
    """Of an event that anybody can cause, the commits of all files that are read; None is one that cannot be told."""


def make_plan(environment: WorkflowEnvironment, event: Event, settings: Settings, facts: PlanFacts) -> Plan:
    """The plan for this event. Raises GateError for events that must not run a pull request's code."""
    branch = settings.baseline_branch or facts.default_branch
    chosen = _choice(settings, branch)
    match event.name:
        case "pull_request_target":
            raise GateError(
                "unsafe-event",
                "pull_request_target has the default branch's secrets: a pull request's code must not run with them",
                "use pull_request; for forks see docs/forks.md, which needs no secrets in the first stage",
            )
        case "workflow_run":
            plan = _relay(environment, event, branch)
        case "pull_request":
            plan = _pull_request(environment, event, branch)
        case "merge_group":
            plan = _merge_group(environment, event, branch)
        case "workflow_dispatch" if pull_number(event) is not None:
            plan = _dispatched_for(environment, event, branch, facts)
        case _ if event.pull_request is not None:  # what is said of one, such as a review
            plan = _pull_request(environment, event, branch)
        case _:
            _refuse_other_code(environment, event, facts)
            plan = _on_a_branch(environment, event, branch)
    plan = replace(plan, default_branch=facts.default_branch)
    return replace(plan, baseline=chosen) if chosen else plan


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


def _pull_request(environment: WorkflowEnvironment, event: Event, branch: str) -> Plan:
    pull = event.pull_request
    if pull is None:
        raise GateError("bad-event", "the event pull_request has no pull request in it")
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
    return Plan(
        Mode.GATE,
        pull.head.sha,
        BaselineChoice(BaselineKind.ARTIFACT, branch=branch, fork_point_of=pull.head.sha),
        tuple(reasons),
        pull_number=pull.number if is_open else None,
        base_branch=pull.base.ref,
        head_branch=pull.head.ref,
        from_fork=from_fork,
        read_only=read_only,
    )


def _merge_group(environment: WorkflowEnvironment, event: Event, branch: str) -> Plan:
    group = event.merge_group
    if group is None:
        raise GateError("bad-event", "the event merge_group has no merge group in it")
    last = f", last pull request #{group.pull_number}" if group.pull_number else ""
    reasons = (f"event merge_group{last}, head {group.head_sha[:7]}: no comment, a group may hold several",)
    baseline = BaselineChoice(BaselineKind.ARTIFACT, branch=branch, commit=group.base_sha)
    return Plan(Mode.GATE, group.head_sha or environment.sha, baseline, reasons)


def _dispatched_for(environment: WorkflowEnvironment, event: Event, branch: str, known: PlanFacts) -> Plan:
    """A manual start that names a pull request: only believed when the workspace holds that pull request."""
    number, pull, checkout = pull_number(event), known.pull, known.checkout
    if pull is None:
        raise GateError(
            "no-such-pull-request", f"{PULL_INPUT}: there is no pull request #{number} here", "give an open one"
        )
    if checkout is None or checkout not in {pull.head.sha, pull.merge_commit_sha}:
        raise GateError(
            "other-checkout",
            f"the workspace holds {(checkout or 'no known commit')[:12]}, and #{number} is {pull.head.sha[:12]}",
            f"check it out first: actions/checkout with `ref: refs/pull/{number}/head`",
        )
    return Plan(
        Mode.GATE,
        pull.head.sha,
        BaselineChoice(BaselineKind.ARTIFACT, branch=branch, fork_point_of=pull.head.sha),
        (f"started by hand for #{number}, head {pull.head.sha[:7]}, into {pull.base.ref}: its result is not stored",),
        pull_number=pull.number if pull.state == "open" else None,
        base_branch=pull.base.ref,
        from_fork=pull.head.repo is None or pull.head.repo.full_name != environment.repository,
        # the run counts as one of its branch: what it stores would be taken for the branch's own
        stores=False,
    )


def _refuse_other_code(environment: WorkflowEnvironment, event: Event, known: PlanFacts) -> None:
    """Raise GateError where a comment, or a check, had other code than the event's checked out: any fork's."""
    others = known.read - {environment.sha}
    if event.name in OF_ANYBODY and others:
        there = next((one[:12] for one in sorted(filter(None, others))), "no commit that is known")
        raise GateError(
            "unsafe-event",
            f"{event.name} has the default branch's secrets, and the workspace holds {there}, "
            f"not the event's {environment.sha[:12]}: whose rules and keys count for it, nobody says",
            f"start it by workflow_dispatch with `{PULL_INPUT}`, as examples/workflows/manual-dispatch.yml does",
        )


def _on_a_branch(environment: WorkflowEnvironment, event: Event, branch: str) -> Plan:
    """A push, a schedule, a manual start, and every event we know nothing special about."""
    sha = environment.sha
    where = environment.ref.removeprefix("refs/heads/") or "an unknown ref"
    reason = f"event {event.name} on {where}, commit {sha[:7]}: no pull request to comment on"
    if environment.ref == f"refs/heads/{branch}":
        choice = BaselineChoice(BaselineKind.ARTIFACT, branch=branch, commit=sha)
        becomes = ", its result is the next baseline" if event.name in TRUSTED_EVENTS else ""
        return Plan(Mode.GATE, sha, choice, (f"{reason}{becomes}",), on_branch=event.name in TRUSTED_EVENTS)
    # the run of a tag is listed under the tag's short name, which may be the branch's
    stores = environment.ref.startswith("refs/heads/")
    reason += "" if stores else "; its result is not stored, because it is no branch's"
    choice = BaselineChoice(BaselineKind.ARTIFACT, branch=branch, fork_point_of=sha)
    return Plan(Mode.GATE, sha, choice, (reason,), stores=stores)


def _relay(environment: WorkflowEnvironment, event: Event, branch: str) -> Plan:
    run = event.workflow_run
    if run is None:
        raise GateError("bad-event", "the event workflow_run has no run in it")
    from_fork = run.head_repository is None or run.head_repository.full_name != environment.repository
    by_dependabot = run.actor is not None and run.actor.login == DEPENDABOT
    choice = BaselineChoice(
        BaselineKind.ARTIFACT, branch=branch, fork_point_of=run.head_sha, workflow=run.path.partition("@")[0]
    )
    what = f"event workflow_run for run {run.id}, head {run.head_sha[:7]}"
    if run.event != "pull_request":
        return Plan(Mode.NOTHING, run.head_sha, choice, (f"{what}: it was a run of {run.event}, not of pull_request",))
    if run.conclusion in {"cancelled", "skipped", "stale", "action_required"}:
        return Plan(Mode.NOTHING, run.head_sha, choice, (f"{what}: it ended as {run.conclusion}, without a result",))
    if event.action in {"requested", "in_progress"}:
        return Plan(Mode.NOTHING, run.head_sha, choice, (f"{what}: it has not ended yet",))
    if not (from_fork or by_dependabot):
        return Plan(Mode.NOTHING, run.head_sha, choice, (f"{what}: it had a token to publish by itself",))
    reason = f"{what}: it had no token to publish, so this one does"
    return Plan(Mode.RELAY, run.head_sha, choice, (reason,), from_fork=from_fork, relayed_run=run.id)
