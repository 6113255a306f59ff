"""Session: configuration, selection and baseline of one evaluation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from eval_gate.ci.job import find_write_objection
from eval_gate.config.selection import Selection
from eval_gate.config.settings import RunConfig
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import GateError
from eval_gate.files.file_paths import format_relative_path
from eval_gate.gate.judge_agreement import JudgeComparisons, read_judge_agreements
from eval_gate.gate.verdict_decision import GateInputs
from eval_gate.gate.waivers.waiver_file import load_waivers
from eval_gate.model.comparison import ReasonCode
from eval_gate.model.result import RunResult, Shard
from eval_gate.model.reuse import EvaluatedState, ReuseOff
from eval_gate.model.selection import CaseSelection
from eval_gate.results.baseline import Baseline, NoBaseline, UnlinkedResult, has_enough_scores
from eval_gate.results.baseline_store import BaselineStore
from eval_gate.results.result_names import LATEST, RUN_NAME
from eval_gate.results.run_reader import ARTIFACT_RUN_GLOB, StoredRun, find_baseline, list_stored_runs
from eval_gate.results.run_times import is_in_future
from eval_gate.struct import FrozenStruct, replace


class PendingGateInputs(Protocol):
    """Inputs of the verdict that are still being fetched while the run is executed."""

    def wait_for_inputs(self) -> GateInputs:
        """Wait for all inputs and return them. This blocks, so do not call it in an event loop."""
        ...

    def stop_waiting(self) -> None:
        """Stop waiting as the run is ended from outside; inputs that take more than a moment are given up."""
        ...


class ReuseSources(FrozenStruct):
    """Where a session finds results to reuse, besides its baseline, and whether it may."""

    off: ReuseOff | None = None
    """Why it reuses nothing, if only the caller knows."""
    load_own_runs: Callable[[EvaluatedState], Sequence[RunResult]] | None = None
    """Loads earlier runs of the same pull request, newest first. It blocks, never raises, and is called only if the
    baseline does not have the result of every suite that measures something."""


class Session(FrozenStruct):
    """Prepared use of the gate: everything is read and checked except eval files and targets."""

    config: RunConfig
    selection: Selection
    context: RunContext
    gate_inputs: GateInputs
    is_run_of_branch: bool = False
    """Whether it is a run of all cases of the branch itself, whose result is the next baseline."""
    pending_gate_inputs: PendingGateInputs | None = None
    """Inputs whose baseline is not available yet; `gate_inputs` are not used until it is."""
    reuse: ReuseSources | None = None
    """Results that it may reuse; None if it executes every suite."""

    @property
    def folder(self) -> Path:
        """Folder of results."""
        return Path(self.config.output_dir)

    @property
    def max_reruns(self) -> int:
        """Maximum re-runs of one case: by default 0 if no baseline is requested."""
        policy, baseline = self.config.policy, self.gate_inputs.baseline
        is_alone = isinstance(baseline, NoBaseline) and not baseline.is_requested
        return 0 if policy.reruns is None and is_alone else policy.max_reruns


def open_session(
    config: RunConfig, selection: Selection, context: RunContext, baseline: Baseline | NoBaseline | None = None
) -> Session:
    """Open a session with the rules, baseline and waivers that the configuration names.

    `baseline` is the baseline if it is not simply the one that the configuration names. Raises GateError for
    any problem with these, before any target is called.
    """
    may_write = config.store is None or find_write_objection(config, context.environment) is None
    if baseline is None:
        folder, target = Path(config.output_dir), _find_target_name(config, context)
        chosen = selection.chosen_cases
        find = partial(find_baseline, config.baseline, history=config.history, besides=context.resume)
        find = partial(find, chosen=chosen, target=target)
        store = BaselineStore(config.store) if config.store else None
        if store is not None and config.baseline == LATEST:
            baseline = store.find_latest(find, target, may_write=may_write)
        else:
            baseline = find(folder)
        baseline = add_unlinked_results(baseline, config, context, chosen, targets=(target,) if target else ())
    gate_inputs = build_gate_inputs(config, context.root, baseline)
    is_run_of_branch = config.baseline == LATEST and not selection.chosen_cases and may_write
    return Session(config, selection, context, gate_inputs, is_run_of_branch)


def _find_target_name(config: RunConfig, context: RunContext) -> str | None:
    """Find the target that runs all cases, unless the eval files choose it or the baseline is not `latest`."""
    if context.custom_target is not None:
        return context.custom_target.identity.name
    if config.baseline != LATEST or not config.target.is_chosen:
        return None
    from eval_gate.targets.build import find_flag_target  # 100 ms that only a run needs

    described = find_flag_target(config.target)
    return described.settings.name if described else config.target.name


def build_gate_inputs(config: RunConfig, root: Path, baseline: Baseline | NoBaseline) -> GateInputs:
    """Build the inputs of the verdict from the configuration's policy and the files below `root`.

    The files hold waivers and comparisons of judges. Raises GateError for any problem with them.
    """
    waivers = load_waivers(config, root, datetime.now(UTC).date())
    comparisons = JudgeComparisons(read_judge_agreements(root))
    return GateInputs(
        baseline,
        config.policy,
        waivers=waivers,
        retention=config.retention,
        judge_lookup=lambda: comparisons,
    )


MAX_FOLDERS: Final = 2_000
"""Folders below the root in which results are looked for, the ones nearest to it first."""
MAX_RESULTS: Final = 10
"""Results that are read as a whole, the nearest first."""
_SKIPPED: Final = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", "site-packages"})
"""Folders with thousands of installed files."""


def add_unlinked_results(
    baseline: Baseline | NoBaseline,
    config: RunConfig,
    context: RunContext,
    chosen: Sequence[CaseSelection] = (),
    *,
    targets: Collection[str] = (),
) -> Baseline | NoBaseline:
    """Add the results that another setting would have found to a baseline that is absent.

    `targets` are all evaluated targets, the one of this run first: results of the others do not count. The search is
    skipped if the policy needs no baseline.
    """
    absent = {ReasonCode.NO_RUN_YET, ReasonCode.BASELINE_NOT_REQUESTED}
    if isinstance(baseline, Baseline) or baseline.code not in absent or not config.policy.can_fail_by_comparison:
        return baseline
    unlinked: list[UnlinkedResult] = []
    for stored in _iter_newest(_list_folders(config, context), targets):
        with suppress(GateError):
            one = _describe_link(stored, baseline, config, chosen, targets)
            unlinked += [one] if one is not None and one.result.run_id != context.resume else []
        if len(unlinked) == MAX_RESULTS:
            break
    return replace(baseline, unlinked=tuple(unlinked)) if unlinked else baseline


def _describe_link(
    stored: StoredRun, absent: NoBaseline, config: RunConfig, chosen: Sequence[CaseSelection], targets: Collection[str]
) -> UnlinkedResult | None:
    """Name the setting that keeps a run from being the baseline; None if nothing does, or it was never compared."""
    head, folder, current = stored.head, stored.folder.parent, Path(config.output_dir)
    hint = f"if the change is intended, name the results once: `--baseline {format_relative_path(stored.folder)}`"
    if absent.code == ReasonCode.BASELINE_NOT_REQUESTED:
        baseline = f"run {head.baseline_run_id[:8]}" if head.baseline_run_id else None
        return UnlinkedResult(stored.read(), "baseline", baseline, "none", hint) if baseline else None
    if folder.resolve() != current.resolve():
        names = ("results folder", format_relative_path(folder), format_relative_path(current))
    elif head.shard or not head.covers(chosen):
        names = ("selection", _format_selections(head.selections, head.shard), _format_selections(chosen))
    elif targets and head.target.name not in targets:
        names = ("target", head.target.name, next(iter(targets)))
    else:
        return None
    run = stored.read()
    return UnlinkedResult(run, *names, hint) if has_enough_scores(run) else None


def _iter_newest(folders: Sequence[Path], targets: Collection[str]) -> Iterator[StoredRun]:
    """Yield the newest complete run of each folder, target and selection, if there is one, one that passed its gate."""
    own, *other_targets = targets or (None,)
    for folder in folders:
        newest: dict[object, StoredRun] = {}
        with suppress(GateError, OSError):
            for one in list_stored_runs(folder):
                run = one.head
                key = run.target.name, run.selections, run.shard
                if not run.complete or is_in_future(run.timestamp) or run.target.name in other_targets:
                    continue
                if key not in newest or (run.has_passed and not newest[key].head.has_passed):
                    newest[key] = one
        # in a folder with runs of this run's target, only these count
        mine = [one for one in newest.values() if one.head.target.name == own]
        yield from mine or newest.values()


def _list_folders(config: RunConfig, context: RunContext) -> list[Path]:
    """List the folders of runs: the one of this run, the usual one, their siblings, and all others below the root."""
    own, usual = Path(config.output_dir), context.root / RunConfig().output_dir
    siblings = sorted({file.parent.parent for file in own.parent.glob(ARTIFACT_RUN_GLOB)})
    return list({one.resolve(): one for one in (own, usual, *siblings, *_iter_run_folders(context.root))}.values())


def _iter_run_folders(root: Path) -> Iterator[Path]:
    """Yield the folders below `root` that hold run folders, as far as `MAX_FOLDERS` folders go; links are not."""
    waiting, looked_at = [root], 0
    while waiting and looked_at < MAX_FOLDERS:
        level, waiting = waiting, []
        for folder in level[: MAX_FOLDERS - looked_at]:
            looked_at += 1
            with suppress(OSError):
                folders = [one for one in folder.iterdir() if one.name not in _SKIPPED and not one.is_symlink()]
                folders = sorted(one for one in folders if one.is_dir())
                if any((one / RUN_NAME).is_file() for one in folders):
                    yield folder
                else:
                    waiting += folders


def _format_selections(selections: Sequence[CaseSelection], shard: Shard | None = None) -> str:
    """Format the selections of a run as their globs, tags, tiers and paths."""
    if shard is not None:
        return f"shard {shard.index}/{shard.count}"
    chosen = [(*one.paths, *one.cases, *one.tags, *one.tiers) or ("single cases",) for one in selections]
    return "; ".join(", ".join(parts) for parts in chosen) or "all cases"
