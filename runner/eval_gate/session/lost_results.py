"""Stored runs that could be the baseline of a run without one, if a setting had not another value than before.

Another results folder, another target or another selection of cases finds no earlier run, and so does a run that no
longer asks for a baseline. The runs are there all the same: in the folders of runs below the root, and beside this one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from eval_gate.config.settings import RunConfig
from eval_gate.engine.preparation.run_context import RunContext
from eval_gate.errors import GateError
from eval_gate.files.file_paths import format_relative_path
from eval_gate.model.comparison import ReasonCode
from eval_gate.model.result import Shard
from eval_gate.model.selection import CaseSelection
from eval_gate.results.baseline import Baseline, NoBaseline, UnlinkedResult, is_measured
from eval_gate.results.result_names import RUN_NAME
from eval_gate.results.run_reader import ARTIFACT_RUN_GLOB, StoredRun, list_stored_runs
from eval_gate.results.run_times import is_in_future
from eval_gate.struct import replace

MAX_FOLDERS: Final = 2_000
"""Folders below the root in which results are looked for, the ones nearest to it first."""
MAX_RESULTS: Final = 10
"""Results that are read as a whole, the nearest first."""
_SKIPPED: Final = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", "site-packages"})
"""Folders that hold what tools install, in their thousands."""


def add_unlinked_results(
    baseline: Baseline | NoBaseline,
    config: RunConfig,
    context: RunContext,
    chosen: Sequence[CaseSelection] = (),
    *,
    targets: Collection[str] = (),
) -> Baseline | NoBaseline:
    """Add the results that another setting would have found to a baseline that is absent.

    `targets` are all that are evaluated, the one of this run first: those of the others are theirs. Nothing is looked
    for if the policy needs no baseline.
    """
    absent = {ReasonCode.NO_RUN_YET, ReasonCode.BASELINE_NOT_REQUESTED}
    if isinstance(baseline, Baseline) or baseline.code not in absent or not config.policy.needs_baseline:
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
        named = f"run {head.baseline_run_id[:8]}" if head.baseline_run_id else None
        return UnlinkedResult(stored.read(), "baseline", named, "none", hint) if named else None
    if folder.resolve() != current.resolve():
        names = ("results folder", format_relative_path(folder), format_relative_path(current))
    elif head.shard or not head.covers(chosen):
        names = ("selection", _format_selections(head.selections, head.shard), _format_selections(chosen))
    elif targets and head.target.name not in targets:
        names = ("target", head.target.name, next(iter(targets)))
    else:
        return None
    run = stored.read()
    return UnlinkedResult(run, *names, hint) if is_measured(run) else None


def _iter_newest(folders: Sequence[Path], targets: Collection[str]) -> Iterator[StoredRun]:
    """Yield the newest complete run of each folder, target and selection, if there is one, one that passed its gate."""
    own, *others = targets or (None,)
    for folder in folders:
        newest: dict[object, StoredRun] = {}
        with suppress(GateError, OSError):
            for one in list_stored_runs(folder):
                run = one.head
                key = run.target.name, run.selections, run.shard
                if not run.complete or is_in_future(run.timestamp) or run.target.name in others:
                    continue
                if key not in newest or (run.has_passed and not newest[key].head.has_passed):
                    newest[key] = one
        # where a folder has runs of this run's target, they alone are meant
        mine = [one for one in newest.values() if one.head.target.name == own]
        yield from mine or newest.values()


def _list_folders(config: RunConfig, context: RunContext) -> list[Path]:
    """List the folders of runs: the one of this run, the usual one, those beside it, and all others below the root."""
    own, usual = Path(config.output_dir), context.root / RunConfig().output_dir
    beside = sorted({file.parent.parent for file in own.parent.glob(ARTIFACT_RUN_GLOB)})
    return list({one.resolve(): one for one in (own, usual, *beside, *_iter_run_folders(context.root))}.values())


def _iter_run_folders(root: Path) -> Iterator[Path]:
    """Yield the folders below `root` that hold run folders, as far as `MAX_FOLDERS` folders go; links are not."""
    waiting, looked_at = [root], 0
    while waiting and looked_at < MAX_FOLDERS:
        level, waiting = waiting, []
        for folder in level[: MAX_FOLDERS - looked_at]:
            looked_at += 1
            with suppress(OSError):
                below = [one for one in folder.iterdir() if one.name not in _SKIPPED and not one.is_symlink()]
                below = sorted(one for one in below if one.is_dir())
                if any((one / RUN_NAME).is_file() for one in below):
                    yield folder
                else:
                    waiting += below


def _format_selections(selections: Sequence[CaseSelection], shard: Shard | None = None) -> str:
    """Format the selections of a run as their globs, tags, tiers and paths."""
    if shard is not None:
        return f"shard {shard.index}/{shard.count}"
    chosen = [(*one.paths, *one.cases, *one.tags, *one.tiers) or ("single cases",) for one in selections]
    return "; ".join(", ".join(parts) for parts in chosen) or "all cases"
