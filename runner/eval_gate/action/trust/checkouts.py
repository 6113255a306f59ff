"""Of which commits the files are that a step reads: a workspace may hold more than one checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from eval_gate.action.inputs import AUTO, NONE, Settings
from eval_gate.config.load import find_config
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST, RunConfig
from eval_gate.errors import GateError
from eval_gate.files.place import repository_of
from eval_gate.gate.judge_comparisons import PATH as JUDGES
from eval_gate.gate.waivers.file import DEFAULT_PATH as ACCEPTED
from eval_gate.github.checkout import checked_out, checkout_around, checkouts_below, repository_of_checkout
from eval_gate.struct import FrozenStruct
from eval_gate.text.quoting import shown_name


def commits_read(config: RunConfig, settings: Settings, workspace: Path) -> frozenset[str | None]:
    """The commits of the checkouts in which all lies that is read; None is one that cannot be told.

    Whoever named it: input, variable or file. What these files name in turn is the word of their own commits.
    """
    given, left = _given(config), _left_by_steps(config, settings)
    around: tuple[str | Path, ...] = (*_looked_for(settings, workspace), *_eval_files(config, workspace), *given)
    commits = {_commit(checkout_around(workspace, path)) for path in around}
    # what a step leaves need not lie in a checkout; where it does, it may have been committed
    held = {checkout for path in left if (checkout := checkout_around(workspace, path))}
    held.update(checkout for path in (*given, *left) for checkout in checkouts_below(workspace, path))
    return frozenset(commits | {checked_out(checkout) for checkout in held})


class EvaluatedCheckout(FrozenStruct):
    """The checkout that is evaluated, by what the inputs lead to: its folder below the workspace, and its commit."""

    folder: str = ""
    commit: str | None = None
    """None where it cannot be told, as in a workspace without any `.git`."""

    def located(self, error: GateError) -> GateError:
        """The error that this commit is of something else, with where it lies and what would do instead."""
        if error.code != "other-checkout" or not self.folder:
            return error
        hint = (
            f"in {shown_name(self.folder)}, where `evals` or `config` leads, {error.hint}; beside the change's own "
            "checkout, leave it out of both: for rules of the base branch there is `policy-from: base`"
        )
        message = error.message.replace("the workspace holds", f"{shown_name(self.folder)} in the workspace holds", 1)
        return GateError(error.code, message, hint, exit_code=error.exit_code)


def evaluated_checkout(settings: Settings, workspace: Path, repository: str) -> EvaluatedCheckout:
    """The checkout that is evaluated: the one that the inputs lead to, which may be below the workspace.

    Where there is one of this repository, one of another, in which evals are shared, says nothing of the change.
    """
    evals = settings.flags.get("evals", "").replace(",", " ").split()
    named = (*(pattern.partition("*")[0] for pattern in evals), settings.config or ".", ".")
    around = (checkout_around(workspace, path) for path in named if path)
    found = [(one, commit) for one in around if one and (commit := checked_out(one))]
    own = [pair for pair in found if repository_of_checkout(pair[0]) in {None, repository.lower()}]
    if not found:
        return EvaluatedCheckout()
    place, commit = [*own, *found][0]
    folder = place.relative_to(os.path.realpath(workspace)).as_posix()
    return EvaluatedCheckout("" if folder == "." else folder, commit)


def _commit(checkout: Path | None) -> str | None:
    return None if checkout is None else checked_out(checkout)


def _looked_for(settings: Settings, workspace: Path) -> Iterator[Path]:
    """The configuration, which is looked for from the workspace on, and what is read where it exists."""
    yield workspace / (settings.config or ".")
    usual = [workspace / name for name in (DEFAULT_SEED_MANIFEST, ACCEPTED, JUDGES)]
    found = None if settings.config else find_config(workspace)
    yield from (file for file in (found, *usual) if file is not None and file.exists())


def _eval_files(config: RunConfig, workspace: Path) -> frozenset[Path]:
    """The folders that eval files lie in, links followed, and the lists of targets that are found beside them."""
    # the readers of all formats, which no other event needs before its answers from GitHub are there
    from eval_gate.formats.discovery import discover
    from eval_gate.targets.listing import find_targets

    files: tuple[Path, ...] = ()
    with suppress(GateError):  # a pattern that leads nowhere: nothing is read then, and the run says so
        files = tuple(one.path for one in discover(config.evals, workspace))
    folders = {file.parent for file in files}
    lists = (find_targets(folder, repository_of(folder) or workspace, workspace) for folder in folders)
    return frozenset({Path(os.path.realpath(file)).parent for file in files} | set(filter(None, lists)))


def _given(config: RunConfig) -> tuple[str, ...]:
    """What the configuration names of files and folders to read."""
    target = config.target
    named = (
        target.targets if isinstance(target.targets, str) else None,
        target.system_prompt,
        config.tool_registry_path,
        config.seed_manifest_path,
        config.snapshot_path,
        config.policy.accepted,
    )
    return tuple(path for path in named if path and not path.lower().startswith(("http://", "https://")))


def results_read(config: RunConfig, settings: Settings, workspace: Path) -> Iterator[Path]:
    """The files of results that this step is told to read: to judge, to compare with, or as a record."""
    named = [line.strip() for line in (settings.results or "").splitlines()]
    named += [settings.baseline] if settings.baseline not in {AUTO, NONE} and not settings.baseline.isdecimal() else []
    named += [config.history or ""]
    for name in filter(None, named):
        # what is no path is the id of a run, or `latest`
        place = workspace / name if (workspace / name).exists() else workspace / config.output_dir
        yield from (file for file in (place, *place.rglob("*")) if file.is_file())


def _left_by_steps(config: RunConfig, settings: Settings) -> tuple[str, ...]:
    """Results: those that are judged, compared with, and recorded earlier."""
    lines = (settings.results or "").splitlines()
    baseline = settings.baseline if settings.baseline not in {AUTO, NONE} else ""
    named = (*lines, baseline, config.history or "", config.output_dir)
    return tuple(path.strip() for path in named if path.strip())
