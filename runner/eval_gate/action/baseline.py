"""Gets the baseline that the plan names, and says what came of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from eval_gate.action.log import Log, SideWork
from eval_gate.action.missing_result import MAX_COMMITS, confirm_absence
from eval_gate.action.plan import BaselineChoice, BaselineKind
from eval_gate.action.relay import other_base, with_base_of
from eval_gate.action.step import Step
from eval_gate.config.settings import CacheMode, RunConfig
from eval_gate.gate.moved_cases import shares_no_case
from eval_gate.github.artifacts.baseline import (
    ArtifactStore,
    Companion,
    Elsewhere,
    ForeignBaseError,
    FoundBaseline,
    no_base,
)
from eval_gate.github.artifacts.listed import BaselineSearch
from eval_gate.github.failure import GitHubError
from eval_gate.model.result import RunResult
from eval_gate.reports.words.numbers import count
from eval_gate.results.baseline import NOT_ASKED_FOR, Baseline, NoBaseline
from eval_gate.results.read import find_baseline
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.model.recording import MAX_BYTES, RECORDING_NAME


class Origin(FrozenStruct):
    """A baseline or why there is none, and what is known about where it came from."""

    baseline: Baseline | NoBaseline
    run_url: str | None = None
    elsewhere: tuple[Elsewhere, ...] = ()
    """Without a baseline: results of the branch that do not count and may be of this gate."""
    recorded: str | None = None
    """The sha256 of recorded answers that came with it, where there were none."""


def get_baseline(
    step: Step,
    config: RunConfig,
    log: Log,
    due: Callable[[], object] = lambda: None,
    relayed: SideWork[RunResult] | None = None,
) -> Origin:
    """The baseline. GitHub not answering is not an absence: the gate may then not pass as if there were none.

    `due` is waited for once it is fetched, before it is read. `relayed` is what a relay publishes, which says by itself
    what it is of.
    Raises GateError for a baseline that somebody named and that cannot be used.
    """
    choice = step.plan.baseline
    match choice.kind:
        case BaselineKind.NONE:
            return Origin(NOT_ASKED_FOR)
        case BaselineKind.STORED:
            found = find_baseline(choice.reference, Path(config.output_dir), config.history)
            log.did(f"baseline: {choice.reference}")
            return Origin(found)
    try:
        if relayed is not None:
            choice = with_base_of(step, relayed.peek(), log).plan.baseline
        return _from_artifacts(step, choice, config, log, due)
    except GitHubError as error:
        log.missed(f"the baseline could not be had: {error}")
        return Origin(NoBaseline("baseline-unavailable", f"the baseline could not be had ({error})", unavailable=True))
    except ForeignBaseError as error:
        if relayed is not None:
            raise other_base(error) from error
        absent = no_base(f"the workspace holds {error}")
        log.did(f"no baseline: {absent.reason}")
        return Origin(absent)


def _from_artifacts(
    step: Step, choice: BaselineChoice, config: RunConfig, log: Log, due: Callable[[], object]
) -> Origin:
    environment, settings, now = step.environment, step.settings, datetime.now(UTC)
    own_named = bool(settings.baseline_workflows or choice.workflow or choice.kind is BaselineKind.RUN)
    own_named = own_named or len(step.artifact_names) == 1
    own_workflow = choice.workflow or environment.workflow_path
    workflows = settings.baseline_workflows or ((own_workflow,) if own_workflow else ())
    # of the workflow whose runs are asked, and of this one, whose key a result may have whatever it is called
    gates = (environment.workflow_path, *workflows)
    wanted = BaselineSearch(
        names=step.artifact_names_in(*gates),
        gates=frozenset(step.key_in(one) for one in gates),
        # whoever names workflow or artifact says which gate is meant
        gate=None if own_named else step.key,
        branch=choice.branch,
        workflows=workflows,
        near=choice.commit,
        own_run_id=environment.run_id,
        merged_head=choice.merged_head,
        fork_point_of=choice.fork_point_of,
        left=choice.left,
        first_parent_of=choice.first_parent_of,
        own_of=choice.own_of,
        # whoever names a run says what is compared
        evaluated=None if choice.kind is BaselineKind.RUN else step.plan.workspace_sha or step.plan.head_sha,
        shard=settings.selection.shard,
        chosen=settings.selection.chosen_cases,
    )
    recorded = Path(config.output_dir) / RECORDING_NAME
    beside = (
        None if config.cache is CacheMode.OFF or recorded.exists() else Companion(RECORDING_NAME, recorded, MAX_BYTES)
    )
    store = ArtifactStore(step.client, wanted, temporary=environment.temporary, beside=beside, due=due)
    found = store.of_run(int(choice.reference), now) if choice.kind is BaselineKind.RUN else store.nearest(now)
    for note in store.notes:
        log.did(note)
    if isinstance(found, NoBaseline):
        found = confirm_absence(step, found, wanted, store.commits_before(MAX_COMMITS), log)
        log.did(f"no baseline: {found.reason}")
        is_plain = found.code == "no-artifact" and not found.unavailable
        return Origin(found, elsewhere=store.elsewhere(step.is_named_alike) if is_plain else ())
    log.did(_sentence(found, choice.branch))
    if found.lost:
        log.missed(f"the record of earlier runs is lost: {found.lost}")
    log.did(f"its record goes back {count(len(found.baseline.own_ledger.runs), 'run')}")
    run_url = f"{environment.server_url}/{step.client.repository}/actions/runs/{found.run_id}"
    return Origin(found.baseline, run_url, recorded=found.beside)


def fitting(origin: Origin, run: RunResult, log: Log) -> Origin:
    """The same, unless the baseline is another gate's and has none of the cases of the run: then it says nothing.

    Nor is there none yet where a result that does not count, such as a renamed workflow's, has some of the cases.
    """
    found = origin.baseline
    if isinstance(found, NoBaseline):
        other = next((one for one in origin.elsewhere if not shares_no_case(one.result, run)), None)
        if other is None:
            return origin
        why = f"a result of the cases here does not count: it is {other.why}"
        log.did(f"no baseline: {why}")
        reason, words = f"{why}; {found.reason}", f"the branch's results do not count: they are {other.why}"
        told = NoBaseline("baseline-unavailable", reason, unavailable=True, words=words)
        return replace(origin, baseline=told)
    if found.gate is None or not shares_no_case(found.result, run):
        return origin
    why = f"{found.source} is of another gate ({found.gate}) and has none of the cases here"
    log.did(f"no baseline: {why}")
    hint = "give both steps one `comment-key`, or the gate its own `artifact-name`"
    return replace(origin, baseline=NoBaseline("no-artifact", f"{why}; {hint}", unavailable=True), run_url=None)


def _sentence(found: FoundBaseline, branch: str) -> str:
    where = f" on {branch}" if branch else ""
    skipped = f" ({found.trail})" if found.trail else ""
    return f"baseline: {found.baseline.source}, commit {found.sha[:7]}{where}{skipped}"
