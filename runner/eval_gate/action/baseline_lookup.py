"""Lookup of the planned baseline, including whether a result existed and was deleted.

A token with `actions: write` can delete artifacts and runs, but no token can delete a check run. So if no baseline is
found, the gate's own check run on the base, or on a commit shortly before it, shows that one existed: deleting a
result must not hide what passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.action.publishing.check_run import parse_publication
from eval_gate.action.relay import build_relayed_base_error, set_result_base
from eval_gate.action.step import Step
from eval_gate.action.step_log import BackgroundWork, StepLog
from eval_gate.action.step_plan import BaselineChoice, BaselineKind
from eval_gate.action.workflow_gates import find_parallel_gates
from eval_gate.config.settings import RecordingMode, RunConfig
from eval_gate.gate.case_matching import GateCases
from eval_gate.github.artifacts.artifact_search import BaselineCriteria, find_distrust_reason, list_run_artifacts
from eval_gate.github.artifacts.baseline_finder import (
    BaselineFinder,
    CompanionFile,
    FoundBaseline,
    IneligibleResult,
    UnknownBaseError,
    build_unknown_base,
)
from eval_gate.github.check_runs import list_commit_checks
from eval_gate.github.commits import get_workflow_run
from eval_gate.github.failure import GitHubError, find_or_none
from eval_gate.model.comparison import ReasonCode
from eval_gate.model.result import RunResult
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline, UnlinkedResult, describe_branch_rerun
from eval_gate.results.run_reader import find_baseline
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.model.recording import MAX_BYTES, RECORDING_NAME
from eval_gate.text.escape import format_count

MAX_COMMITS: Final = 5
"""Commits whose check runs are looked at: the base, and its first parents."""


class BaselineOrigin(FrozenStruct):
    """Baseline, or the reason why there is none, with its origin."""

    baseline: Baseline | NoBaseline
    run_url: str | None = None
    ineligible_results: tuple[IneligibleResult, ...] = ()
    """Without a baseline: results of the branch's other gates. This gate may have had the name of one of them."""
    recording_digest: str | None = None
    """The sha256 of recorded answers that came with it, where there were none."""


def get_baseline(
    step: Step,
    config: RunConfig,
    log: StepLog,
    due: Callable[[], object] = lambda: None,
    relayed: BackgroundWork[RunResult] | None = None,
) -> BaselineOrigin:
    """Find the baseline of this step, or the reason why none is available.

    A GitHub failure makes the baseline unavailable, not absent: the gate must not pass as if no baseline existed.

    `due` is called after the download and before the baseline is read, and can block. `relayed` is the run result
    that a relay publishes; it names the commit that was evaluated.

    Raises GateError if a baseline that the settings name cannot be used.
    """
    choice = step.plan.baseline
    match choice.kind:
        case BaselineKind.NONE:
            return BaselineOrigin(_add_usual_baseline(step, NOT_REQUESTED, ("baseline", "auto", "none"), log))
        case BaselineKind.STORED:
            baseline = find_baseline(choice.reference, Path(config.output_dir), config.history)
            log.record(f"baseline: {choice.reference}")
            if isinstance(baseline, NoBaseline):
                return BaselineOrigin(_add_usual_baseline(step, baseline, ("baseline", "auto", choice.reference), log))
            return BaselineOrigin(_set_base_commit(step, baseline))
    try:
        if relayed is not None:
            choice = set_result_base(step, relayed.peek(), log).plan.baseline
        return _find_in_artifacts(step, choice, config, log, due)
    except GitHubError as error:
        log.warn(f"the baseline could not be read: {error}")
        why = f"the baseline could not be read ({error})"
        return BaselineOrigin(
            NoBaseline(ReasonCode.BASELINE_UNAVAILABLE, why, unavailable=True, hint=error.remedy or None)
        )
    except UnknownBaseError as error:
        if relayed is not None:
            raise build_relayed_base_error(error) from error
        absent = build_unknown_base(f"the workspace has {error}")
        log.record(f"no baseline: {absent.reason}")
        return BaselineOrigin(absent)


def _add_usual_baseline(step: Step, absent: NoBaseline, changed: tuple[str, str, str], log: StepLog) -> NoBaseline:
    """Add what `baseline: auto` finds to an absent baseline. `changed`: the input, its usual value and the one here."""
    branch = step.plan.default_branch
    if absent.unavailable or not branch or step.plan.is_on_baseline_branch:
        return absent
    criteria = _build_criteria(step, BaselineChoice(BaselineKind.ARTIFACT, branch=branch))
    finder = BaselineFinder(step.client, criteria, temporary=step.environment.temporary_folder)
    try:
        usual = finder.find_nearest(datetime.now(UTC))
    except GitHubError as error:
        log.record(f"cannot check whether `{changed[0]}: {changed[1]}` has a baseline: {error}")
        return absent
    if isinstance(usual, NoBaseline) or not usual.baseline.result.baseline_run_id:
        return absent  # where the branch's own runs have no baseline, nothing is lost
    hint = f"set `{changed[0]}` back to `{changed[1]}`"
    return replace(absent, unlinked=(UnlinkedResult(usual.baseline.result, *changed, hint),))


def _find_in_artifacts(
    step: Step, choice: BaselineChoice, config: RunConfig, log: StepLog, due: Callable[[], object]
) -> BaselineOrigin:
    criteria, moment = _build_criteria(step, choice), datetime.now(UTC)
    recorded, temporary = Path(config.output_dir) / RECORDING_NAME, step.environment.temporary_folder
    companion = (
        None
        if config.recording is RecordingMode.OFF or recorded.exists()
        else CompanionFile(RECORDING_NAME, recorded, MAX_BYTES)
    )
    finder = BaselineFinder(step.client, criteria, temporary=temporary, companion=companion, due=due)
    is_run = choice.kind is BaselineKind.RUN
    outcome = finder.find_in_run(int(choice.reference), moment) if is_run else finder.find_nearest(moment)
    for note in finder.notes:
        log.record(note)
    if isinstance(outcome, NoBaseline):
        outcome = confirm_absence(step, outcome, criteria, finder.iter_base_commits(MAX_COMMITS), log)
        log.record(f"no baseline: {outcome.reason}")
        if outcome.code != ReasonCode.BASELINE_ARTIFACT_NOT_FOUND or outcome.unavailable:
            return BaselineOrigin(outcome)
        if step.plan.default_branch not in {"", choice.branch}:
            changed = ("baseline-branch", step.plan.default_branch, choice.branch)
            outcome = _add_usual_baseline(step, outcome, changed, log)
        return BaselineOrigin(outcome, ineligible_results=finder.find_ineligible_results())
    log.record(_describe_baseline(outcome, choice.branch))
    if outcome.history_error:
        log.warn(f"the history of earlier runs is lost: {outcome.history_error}")
    log.record(f"its history has {format_count(len(outcome.baseline.own_history.runs), 'run')}")
    run_url = f"{step.environment.server_url}/{step.client.repository}/actions/runs/{outcome.run_id}"
    return BaselineOrigin(_set_base_commit(step, outcome.baseline), run_url, recording_digest=outcome.companion_digest)


def _set_base_commit(step: Step, baseline: Baseline) -> Baseline:
    """Set the base of a run of the branch, which is its own commit, also where the workflow names the baseline."""
    own = step.plan.workspace_sha or step.plan.head_sha
    return replace(baseline, base_sha=own) if step.plan.is_on_baseline_branch and not baseline.base_sha else baseline


def _build_criteria(step: Step, choice: BaselineChoice) -> BaselineCriteria:
    environment, settings = step.environment, step.settings
    own_named = bool(settings.baseline_workflows or choice.workflow or choice.kind is BaselineKind.RUN)
    own_named = own_named or len(step.artifact_names) == 1
    own_workflow = choice.workflow or environment.workflow_path
    workflows = settings.baseline_workflows or ((own_workflow,) if own_workflow else ())
    # of the workflow whose runs are asked, and of this one, whose key a result may have whatever it is called
    gates = (environment.workflow_path, *workflows)
    return BaselineCriteria(
        names=step.build_artifact_names(*gates),
        gates=frozenset(step.build_key(one) for one in gates),
        # a workflow or artifact that is named in the settings identifies the gate
        gate=None if own_named else step.key,
        branch=choice.branch,
        workflows=workflows,
        base=choice.base,
        own_run_id=environment.run_id,
        exact_commit_branch=choice.exact_commit_branch,
        # a run that the settings name serves also if this commit failed there
        evaluated_commit=None if choice.kind is BaselineKind.RUN else step.plan.workspace_sha or step.plan.head_sha,
        shard=settings.selection.shard,
        chosen_cases=settings.selection.chosen_cases,
    )


def discard_unrelated_baseline(step: Step, origin: BaselineOrigin, run: RunResult, log: StepLog) -> BaselineOrigin:
    """Return the origin, without a baseline of another gate that shares no case with the run.

    If no baseline was found, the results of other gates with cases of the run are its lost baseline, unless these
    gates run in parallel with this one.
    """
    baseline = origin.baseline
    if isinstance(baseline, NoBaseline):
        results = [one for one in origin.ineligible_results if not GateCases.pair(one.result, run).shares_nothing]
        return replace(origin, baseline=_link_other_gates(step, baseline, results, log)) if results else origin
    if baseline.other_gate is None or not GateCases.pair(baseline.result, run).shares_nothing:
        return origin
    why = f"{baseline.source} is from another gate ({baseline.other_gate}) and has none of these cases"
    log.record(f"no baseline: {why}")
    hint = "give both steps the same `comment-key`, or give the gate its own `artifact-name`"
    return replace(
        origin,
        baseline=NoBaseline(ReasonCode.BASELINE_ARTIFACT_NOT_FOUND, f"{why}; {hint}", unavailable=True, hint=hint),
        run_url=None,
    )


def _link_other_gates(step: Step, absent: NoBaseline, results: Sequence[IneligibleResult], log: StepLog) -> NoBaseline:
    """Add the results of other gates to an absent baseline, and name those gates that run in parallel."""
    if event := next((one.event for one in results if one.event and one.gate == step.key), None):
        why = f"a result with these cases is not used: it is from a run of {event}"
        words = f"the results of the branch are not used: they are from a run of {event}"
        log.record(f"no baseline: {why}")
        reason = f"{why}; {absent.reason}"
        return replace(absent, code=ReasonCode.BASELINE_UNAVAILABLE, reason=reason, unavailable=True, heading=words)
    candidates = [one for one in results if not one.event]
    parallel = find_parallel_gates(step, [(one.gate, one.workflow) for one in candidates], log) if candidates else ()
    unlinked = [_describe_other_gate(step, one) for one in candidates if one.gate not in parallel]
    if parallel and not unlinked:
        reason = f"{absent.reason}; this is a further gate beside {', '.join(sorted(parallel))}"
        log.record(f"no baseline: {reason}")
        return replace(absent, reason=reason)
    # a run of the branch stores its result under the earlier name
    refreshable = absent.refreshable and not unlinked
    return replace(absent, refreshable=refreshable, unlinked=(*absent.unlinked, *unlinked))


def _describe_other_gate(step: Step, other: IneligibleResult) -> UnlinkedResult:
    """Name a result of another gate, and how it can be the baseline."""
    names = ("gate", other.gate, step.key)
    if other.gate == step.key:
        names = ("workflow", other.workflow, step.environment.workflow_path)
    hint = f"after a rename, name its workflow file with `baseline-workflow: {PurePosixPath(other.workflow).name}`"
    if other.artifact_name not in step.artifact_names:
        hint = f"restore `artifact-name: {other.artifact_name}`, or run the workflow on the branch with the new name"
    return UnlinkedResult(other.result, *names, hint)


def _describe_baseline(found_baseline: FoundBaseline, branch: str) -> str:
    where = f" on {branch}" if branch else ""
    skipped = f" ({found_baseline.trail})" if found_baseline.trail else ""
    return f"baseline: {found_baseline.baseline.source}, commit {found_baseline.sha[:7]}{where}{skipped}"


def confirm_absence(
    step: Step, absent: NoBaseline, criteria: BaselineCriteria, commits: Iterable[str], log: StepLog
) -> NoBaseline:
    """Mark the baseline as unavailable if one of the commits had a result that is gone.

    Nothing passes without a baseline that existed. Returns `absent` unchanged if no lost result is found. If the
    check runs cannot be read, only the reason mentions it, because a gate that never ran has no check runs either.
    """
    # a server without artifacts keeps no result
    nothing_stored = step.settings.upload and not step.environment.is_github_cloud
    if absent.unavailable or absent.code != ReasonCode.BASELINE_ARTIFACT_NOT_FOUND or nothing_stored:
        return absent
    if step.settings.check_run is None:
        return absent
    try:
        lost = next((run for sha in commits if (run := _find_lost_run(step, criteria, sha)) is not None), None)
    except GitHubError as error:
        log.record(f"cannot check whether a result was deleted: {error}")
        why = f"{absent.reason} (cannot check whether one was deleted: the check runs cannot be read)"
        return replace(absent, reason=why)
    if lost is None:
        return absent
    ran = f"the gate ran on {lost[1][:7]} of {criteria.branch} (run {lost[0]})"
    hint = describe_branch_rerun(criteria.branch)
    reason = f"{ran}, but its result is missing: deleted or not stored; {hint}"
    return replace(absent, reason=reason, hint=hint, unavailable=True)


def _find_lost_run(step: Step, criteria: BaselineCriteria, sha: str) -> tuple[int, str] | None:
    """Find the run that wrote this gate's check run on the commit and whose artifact is gone, with the commit."""
    for check in list_commit_checks(step.client, sha):
        result = parse_publication(check)
        run_id = result.maker.run_id if result else criteria.own_run_id
        if result is None or run_id == criteria.own_run_id or not _is_this_gate(step, criteria, result.maker.gate):
            continue
        run = find_or_none(partial(get_workflow_run, step.client, run_id))
        trusted = run is not None and not find_distrust_reason(run, criteria)
        # or the whole run was deleted
        if run is None or (trusted and not list_run_artifacts(step.client, run_id, *criteria.names)):
            return run_id, sha
    return None


def _is_this_gate(step: Step, criteria: BaselineCriteria, gate: str) -> bool:
    """Whether the signature of a check run is this gate's; of a relay's run the job may have another name."""
    if gate in {step.build_gate(workflow) for workflow in (step.environment.workflow_path, *criteria.workflows)}:
        return True
    workflow = PurePosixPath(step.plan.baseline.workflow).name
    return step.plan.relayed_run is not None and bool(workflow) and gate.startswith(f"{workflow}.")
