"""Step of a job with its plan: everything that stays the same after planning."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from eval_gate.action.inputs import DEFAULT_ARTIFACT, BaseAgentTiming, StepSettings
from eval_gate.action.precedence import Publication
from eval_gate.action.step_plan import (
    FORK_IS_READ_ONLY,
    OWN_CODE_EVENTS,
    BaselineChoice,
    BaselineKind,
    PlanFacts,
    StepMode,
    StepPlan,
    build_pull_plan,
    make_step_plan,
    parse_pull_number,
)
from eval_gate.action.trust.checkouts import find_evaluated_checkout
from eval_gate.config.loader import CONFIG_NAMES
from eval_gate.errors import GateError
from eval_gate.github.artifacts.artifact_service import find_job_id
from eval_gate.github.client import GitHubClient
from eval_gate.github.commits import find_parents, get_default_branch, get_pull_request
from eval_gate.github.event import WorkflowEvent, read_event
from eval_gate.github.failure import GitHubError, build_unavailable_error, find_or_none
from eval_gate.github.workflow_environment import WorkflowEnvironment
from eval_gate.model.result import ResultProducer
from eval_gate.process.identity import is_root, is_writable_by_others
from eval_gate.results.result_names import LATEST
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import to_comment_key
from eval_gate.text.quoting import looks_like_key

SOME_CASES: Final = "some cases"
"""Qualifier of a result that leaves cases out by choice."""


class Step(FrozenStruct):
    """Planned step: environment, settings, plan and GitHub client."""

    environment: WorkflowEnvironment
    settings: StepSettings
    plan: StepPlan
    client: GitHubClient
    partial: bool = False
    """Whether the result that is judged is one of some cases only, whatever this step chooses."""
    provisional: bool = False
    """Whether a later step of this job is to take the place of what this one publishes: only in an earlier one's."""

    @property
    def is_partial(self) -> bool:
        """Whether only some cases are judged here, so that nothing about all of them may be replaced."""
        return self.partial or self.settings.selection.has_filters

    @property
    def name(self) -> str | None:
        """The gate's display name if a repository has several gates; None for the only one."""
        settings = self.settings
        if settings.comment_key:
            name: str | None = settings.comment_key
        elif settings.config:
            name = _format_config_name(self._config)
        else:
            name = settings.artifact_name if settings.artifact_name != DEFAULT_ARTIFACT else None
        words = [name, SOME_CASES if self.is_partial else None]
        return ", ".join(word for word in words if word) or None

    @property
    def key(self) -> str:
        """The gate's key, which distinguishes its comment: workflow file, job, configuration, artifact."""
        return self.build_key(self.environment.workflow_path)

    def build_key(self, workflow: str) -> str:
        """Build the key of the same gate in another workflow file: same job, configuration and artifact name."""
        settings = self.settings
        if settings.comment_key:
            return to_comment_key(settings.comment_key)
        artifact = to_comment_key(settings.artifact_name) if settings.artifact_name != DEFAULT_ARTIFACT else ""
        config = _format_config_key(self._config)
        return _join_key(PurePosixPath(workflow).name, self.environment.job, config, artifact)

    @property
    def _config(self) -> str:
        """The configuration file as the repository calls it; empty for the one that is found without a name."""
        setting, root = self.settings.config, self.environment.workspace
        if not setting:
            return ""
        path = os.path.relpath(root / setting, root)  # a name, however it is written: no file is looked at
        return "" if path == CONFIG_NAMES[0] else Path(path).as_posix()

    @property
    def maker(self) -> ResultProducer:
        """The producer of this step's result: gate, run, attempt, and leg."""
        environment = self.environment
        job = f"{find_job_id(environment.runtime_token)} {environment.runner}"
        place = "" if self._is_half_of_pair else environment.step
        leg = "-".join(_hash_text(text) for text in (job, place, self.settings.leg))
        return ResultProducer(gate=self.key, run_id=environment.run_id, attempt=environment.run_attempt, leg=leg)

    @property
    def _is_half_of_pair(self) -> bool:
        """Whether a second step runs the base agent for the first one, and this is one of them: they are one leg."""
        settings = self.settings
        asks = {"baseAgentEndpoint", "baseAgentTarget", "baseAgentCommand"} & settings.flags.keys()
        return settings.base_agent is BaseAgentTiming.LATER or (settings.results == LATEST and bool(asks))

    @property
    def publication(self) -> Publication:
        """The result of this step, as comment and check run are signed.

        Its gate is the key with the workflow, which a `comment-key` does not tell, and with whether all cases are run.
        A relay stands for the workflow whose run made the result.
        """
        plan, maker = self.plan, self.maker
        if self.provisional:  # the later step has other inputs
            maker = replace(maker, leg=None)
        gate = to_comment_key(f"{self._gate}.some-cases") if self.is_partial else self._gate
        judged = None if plan.relayed_run is None else (plan.relayed_run, plan.relayed_attempt or 0)
        return Publication(replace(maker, gate=gate), plan.head_sha, judged)

    def build_gate(self, workflow: str) -> str:
        """Build the gate that signs check runs of all cases in this workflow file."""
        workflow_name = PurePosixPath(workflow).name if self.settings.comment_key else ""
        return _join_key(workflow_name, self.build_key(workflow))

    @property
    def _gate(self) -> str:
        if self.plan.relayed_run is None:
            return self.build_gate(self.environment.workflow_path)
        return _join_key(PurePosixPath(self.plan.baseline.workflow).name, self.key)

    @property
    def artifact_names(self) -> tuple[str, ...]:
        """The artifact's possible names: the chosen one, or the default one and one with this gate's key."""
        return self.build_artifact_names(self.environment.workflow_path)

    def build_artifact_names(self, *workflows: str) -> tuple[str, ...]:
        """List the names that the artifact may have if the gate is in these workflow files."""
        name = self.settings.artifact_name
        own = dict.fromkeys(f"{name}.{self.build_key(one)}" for one in workflows)
        return (name, *own) if name == DEFAULT_ARTIFACT else (name,)

    @property
    def check_names(self) -> tuple[str, ...]:
        """The check run's possible names; empty if none is to be written.

        Results that answer another question about the same commit have another name: into another branch than the
        default one, of a branch without its pull request, of some cases only.
        """
        name = self.settings.check_run
        if name is None:
            return ()
        about = [word for word in (self._check_qualifier, SOME_CASES if self.is_partial else "") if word]
        plain = _append_qualifiers(name, about)
        return (plain, _append_qualifiers(name, [*about, self._gate]))

    @property
    def _check_qualifier(self) -> str:
        """The check's qualifier; empty for the usual check, of a change into the default branch."""
        plan, environment = self.plan, self.environment
        # a merge queue has the same check as the pull requests in it
        into = plan.rules_branch if environment.event_name == "merge_group" else plan.base_branch
        if into is not None:
            return "" if into == (plan.default_branch or into) else f"into {into}"
        usual = environment.event_name in {"merge_group", "workflow_run"} or not plan.default_branch
        return "" if usual or environment.ref == f"refs/heads/{plan.default_branch}" else environment.event_name


@contextmanager
def open_temporary_folder(environment: WorkflowEnvironment) -> Iterator[WorkflowEnvironment]:
    """Open a temporary folder for this step, and remove it afterwards.

    Yields the environment with that folder, or without it if no folder can be made. Work that is still in progress
    when the step ends has no time to clean up, and the process may run as root: the next job on a self-hosted
    machine could not delete its files.
    """
    try:
        environment = replace(environment, temporary_folder=_find_safe_folder(environment.temporary_folder))
        folder = TemporaryDirectory(dir=environment.temporary_folder, prefix="eval-gate-", ignore_cleanup_errors=True)
    except OSError:  # the first write there reports the missing folder
        yield environment
        return
    with folder as place:
        yield replace(environment, temporary_folder=Path(place))


def _find_safe_folder(temporary: Path | None) -> Path | None:
    """Choose a folder, or None for the system's, in which no other user can replace the temporary folder."""
    if temporary is None or not hasattr(os, "geteuid"):
        return temporary
    status = temporary.stat()
    if is_root():
        # Programs of a pull request run as the user of the runner's folder in the container: they could replace the
        # base branch's policy, the baseline, and the files that root writes. So could all in a folder open to all.
        return temporary if status.st_uid == 0 and not is_writable_by_others(status) else None
    # on the machine of the job, the sticky bit prevents other users from renaming our files
    return None if is_writable_by_others(status) and not status.st_mode & stat.S_ISVTX else temporary


def open_step(environment: WorkflowEnvironment, settings: StepSettings) -> Step:
    """Open the step with its plan. Raises GateError if planning is impossible."""
    if not settings.token:
        raise GateError(
            "missing-token",
            "`github-token` is empty",
            "remove the input to use the job's own token; on the command line, set GITHUB_TOKEN",
        )
    event = read_event(environment.event_name, environment.event_path)
    client = GitHubClient(environment.api_url, settings.token, environment.repository)
    with ExitStack() as unplanned:
        unplanned.callback(client.close)
        plan = _make_plan(environment, settings, event, client)
        unplanned.pop_all()
    return Step(environment, settings, plan, client)


def _make_plan(
    environment: WorkflowEnvironment, settings: StepSettings, event: WorkflowEvent, client: GitHubClient
) -> StepPlan:
    try:
        number = parse_pull_number(event)
        pull = None if number is None else find_or_none(lambda: get_pull_request(client, number))
        checkout = find_evaluated_checkout(settings, environment.workspace, environment.repository)
        head = pull.head.sha if pull else event.pull_request.head.sha if event.pull_request else None
        known_shas = {head} if pull else {head, environment.sha}
        facts = PlanFacts(
            default_branch=_find_default_branch(client, event),
            pull=pull,
            checkout=checkout.commit,
            parents=None
            if head is None or checkout.commit is None or checkout.commit in known_shas
            else find_parents(client, checkout.commit),
        )
    except GitHubError as error:
        raise build_unavailable_error(str(error)) from error
    try:
        return make_step_plan(environment, event, settings, facts)
    except GateError as error:
        raise checkout.locate_error(error) from error


def open_publishing_step(environment: WorkflowEnvironment, settings: StepSettings) -> Step | None:
    """Open a step that can only publish, for a run that cannot be planned.

    Returns None if the step may not publish. The event itself must name the commit: an event that anybody can
    cause, or that GitHub has to confirm first, is not enough.
    """
    if not settings.token or environment.event_name not in OWN_CODE_EVENTS - {"pull_request_target"} | {
        "workflow_dispatch"
    }:
        return None
    client = GitHubClient(environment.api_url, settings.token, environment.repository)
    try:
        event = read_event(environment.event_name, environment.event_path)
        if parse_pull_number(event) is None:
            plan = _build_publishing_plan(environment, event, _find_default_branch(client, event))
            return Step(environment, settings, plan, client)
    except (GateError, GitHubError):
        pass
    client.close()
    return None


def _build_publishing_plan(environment: WorkflowEnvironment, event: WorkflowEvent, default_branch: str) -> StepPlan:
    nothing, pull = BaselineChoice(BaselineKind.NONE), event.pull_request
    if pull is None:
        group = event.merge_group
        sha, into = (group.head_sha, group.base_branch or None) if group else (environment.sha, None)
        return StepPlan(StepMode.GATE, sha, nothing, (), default_branch=default_branch, rules_branch=into)
    plan = build_pull_plan(environment, pull, nothing)
    return replace(plan, read_only=FORK_IS_READ_ONLY if plan.from_fork else None, default_branch=default_branch)


def _find_default_branch(client: GitHubClient, event: WorkflowEvent) -> str:
    """Read the default branch from the event; a schedule's event has none, so ask GitHub."""
    branch = event.repository.default_branch if event.repository else None
    return branch or get_default_branch(client)


def _join_key(*parts: str) -> str:
    return to_comment_key(".".join(part for part in parts if part))


def _append_qualifiers(name: str, words: Sequence[str]) -> str:
    return f"{name} ({', '.join(words)})" if words else name


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def _format_config_name(config: str) -> str | None:
    """`bot` of `bot/eval-gate.yaml`, `evals/bot` of `evals/bot.yaml`; a digest of what looks like a key."""
    path = PurePosixPath(config)
    name = str(path.parent if path.name in CONFIG_NAMES else path.with_suffix("")) if config else None
    return f"config-{_hash_text(name)}" if name and looks_like_key(name) else name


def _format_config_key(config: str) -> str:
    """Format the configuration's path as a part of the gate's key that no other path and no artifact name has."""
    if looks_like_key(config):
        return f"config-{_hash_text(config)}"
    return to_comment_key(f"/{config}") if config else ""
