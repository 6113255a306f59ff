"""Commits of the files that a step reads: a workspace may contain several checkouts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from eval_gate.action.inputs import AUTO, NONE, StepSettings
from eval_gate.config.loader import find_config
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST, RunConfig
from eval_gate.errors import GateError
from eval_gate.external_results.result_files import parse_results_path
from eval_gate.files.file_paths import find_repository
from eval_gate.gate.judge_agreement import JUDGES_PATH as JUDGES
from eval_gate.gate.waivers.waiver_file import DEFAULT_PATH as ACCEPTED
from eval_gate.github.checkout import find_checkout, find_head_commit, find_origin_repository, iter_checkouts
from eval_gate.struct import FrozenStruct
from eval_gate.text.quoting import describe_name


def find_read_commits(config: RunConfig, settings: StepSettings, workspace: Path) -> frozenset[str | None]:
    """Find the commits of all checkouts that hold files to read.

    The files count whether an input, a variable or a file names them. Files that they name in turn belong to their
    own commits. None in the result is a commit that cannot be determined.
    """
    config_paths, result_paths = _list_configured_paths(config), _list_result_paths(config, settings)
    paths: tuple[str | Path, ...] = (
        *_iter_config_files(settings, workspace),
        *_list_eval_folders(config, workspace),
        *config_paths,
    )
    checkouts = {find_checkout(workspace, path) for path in paths}
    commits = {find_head_commit(checkout) if checkout else None for checkout in checkouts}
    # what a step leaves need not lie in a checkout; where it does, it may have been committed
    held = {checkout for path in result_paths if (checkout := find_checkout(workspace, path))}
    held.update(checkout for path in (*config_paths, *result_paths) for checkout in iter_checkouts(workspace, path))
    return frozenset(commits | {find_head_commit(checkout) for checkout in held})


class EvaluatedCheckout(FrozenStruct):
    """Checkout that is evaluated: its folder in the workspace and its commit."""

    folder: str = ""
    commit: str | None = None
    """None if it is unknown, as in a workspace without any `.git`."""

    def locate_error(self, error: GateError) -> GateError:
        """Add the checkout's place and a remedy to an error about the wrong commit, unless it is the workspace root."""
        if error.code != "checkout-mismatch" or not self.folder:
            return error
        hint = (
            f"in {describe_name(self.folder)}, to which `evals` or `config` points, {error.hint}. If the change has "
            "another checkout, do not point to this one: for the policy of the base branch, set `policy-from: base`"
        )
        message = error.message.replace(
            "the workspace is at", f"{describe_name(self.folder)} in the workspace is at", 1
        )
        return GateError(error.code, message, hint, exit_code=error.exit_code)


def find_evaluated_checkout(settings: StepSettings, workspace: Path, repository: str) -> EvaluatedCheckout:
    """Find the checkout that is evaluated: the one that the inputs lead to, possibly below the workspace.

    A checkout of this repository takes precedence: one of another repository, for example with shared evals, does
    not identify the change.
    """
    evals = settings.flags.get("evals", "").replace(",", " ").split()
    paths = (*(pattern.partition("*")[0] for pattern in evals), settings.config or ".", ".")
    checkouts = (find_checkout(workspace, path) for path in paths if path)
    pairs = [(one, commit) for one in checkouts if one and (commit := find_head_commit(one))]
    own = [pair for pair in pairs if find_origin_repository(pair[0]) in {None, repository.lower()}]
    if not pairs:
        return EvaluatedCheckout()
    place, commit = [*own, *pairs][0]
    folder = place.relative_to(os.path.realpath(workspace)).as_posix()
    return EvaluatedCheckout("" if folder == "." else folder, commit)


def _iter_config_files(settings: StepSettings, workspace: Path) -> Iterator[Path]:
    """Yield the configuration file, named or found from the workspace on, and the other default files that exist."""
    yield workspace / (settings.config or ".")
    usual = [workspace / name for name in (DEFAULT_SEED_MANIFEST, ACCEPTED, JUDGES)]
    nearest = None if settings.config else find_config(workspace)
    yield from (file for file in (nearest, *usual) if file is not None and file.exists())


def _list_eval_folders(config: RunConfig, workspace: Path) -> frozenset[Path]:
    # the readers of all formats, which no other event needs before its answers from GitHub are there
    from eval_gate.formats.discovery import find_eval_files
    from eval_gate.targets.target_list import find_targets_file

    files: tuple[Path, ...] = ()
    with suppress(GateError):  # a pattern without a match reads no file, and the run reports it
        files = tuple(one.path for one in find_eval_files(config.evals, workspace))
    folders = {file.parent for file in files}
    lists = (find_targets_file(folder, find_repository(folder) or workspace, workspace) for folder in folders)
    return frozenset({Path(os.path.realpath(file)).parent for file in files} | set(filter(None, lists)))


def _list_configured_paths(config: RunConfig) -> tuple[str, ...]:
    target = config.target
    paths = (
        target.targets if isinstance(target.targets, str) else None,
        target.system_prompt,
        config.tool_registry_path,
        config.seed_manifest_path,
        config.snapshot_path,
        config.policy.waivers,
    )
    return tuple(path for path in paths if path and not path.lower().startswith(("http://", "https://")))


def iter_result_files(config: RunConfig, settings: StepSettings, workspace: Path) -> Iterator[Path]:
    """Yield the files of the results that this step reads: results, baseline and history."""
    results = [line.strip() for line in (settings.results or "").splitlines()]
    # the matches of a glob; what matches nothing is read nowhere
    paths = [match for line in filter(None, results) for match in parse_results_path(line).list_matches(workspace)]
    paths += [settings.baseline] if settings.baseline not in {AUTO, NONE} and not settings.baseline.isdecimal() else []
    paths += [config.history or ""]
    for name in filter(None, paths):
        # what is no path is the id of a run, or `latest`
        place = workspace / name if (workspace / name).exists() else workspace / config.output_dir
        yield from (file for file in (place, *place.rglob("*")) if file.is_file())


def _list_result_paths(config: RunConfig, settings: StepSettings) -> tuple[str, ...]:
    """Results: those that are judged, compared with, and recorded earlier."""
    lines = (str(parse_results_path(one.strip()).root) for one in (settings.results or "").splitlines() if one.strip())
    baseline = settings.baseline if settings.baseline not in {AUTO, NONE} else ""
    paths = (*lines, baseline, config.history or "", config.output_dir)
    return tuple(path.strip() for path in paths if path.strip())
