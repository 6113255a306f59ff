"""What `eval-gate measures` shows: the suites with what they measure, changed files, and what a run would reuse."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from eval_gate.config.measures import iter_idle_globs, names_file
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST
from eval_gate.engine.preparation.plan_builder import build_run_plan
from eval_gate.engine.run_plan import RunPlan
from eval_gate.errors import GateError
from eval_gate.model.reuse import EvaluatedState, MeasuredSuite, RunReason, is_document
from eval_gate.process.git import find_checkout, read_git_line, run_git
from eval_gate.reports.wording.reuse import REASON_WORDS
from eval_gate.session.session import Session
from eval_gate.targets.target_list import FILE_NAMES
from eval_gate.text.escape import format_count, format_first_few, to_console_line
from eval_gate.text.globs import covers_file
from eval_gate.text.quoting import quote_name

MAX_LISTED: Final = 20
"""Files of one list without --verbose."""
MAX_CAUSES: Final = 3
"""Changed files that are named as the cause why a suite runs."""
_DEFAULT_BRANCHES: Final = ("origin/HEAD", "origin/main", "origin/master")
_TARGET_FILES: Final = tuple(f"/{name}" for name in FILE_NAMES)


async def plan_offline(session: Session) -> RunPlan:
    """Plan a run without a request and without secrets. Raises GateError as a run does before it starts."""
    plan = await build_run_plan(session.config, session.selection, session.context, offline=True)
    await plan.aclose()
    return plan


def iter_suite_lines(session: Session, state: EvaluatedState) -> Iterator[str]:
    """Yield a table of the suites: number of files, patterns, and why a suite always runs."""
    width = max(len(to_console_line(one.suite)) for one in state.suites)
    yield f"{'suite'.ljust(width)}  files  measures"
    for one in state.suites:
        patterns = to_console_line(", ".join(one.patterns)) or "nothing: it always runs"
        yield f"{to_console_line(one.suite).ljust(width)}  {one.files:5,}  {patterns}"
        if one.problem is not None:
            yield f"  it always runs: {to_console_line(one.problem)}"
    if not session.selection.has_filters:
        yield from iter_idle_globs(session.config.measures, [one.suite for one in state.suites])
    usable = sum(one.digest is not None for one in state.suites)
    yield f"{usable} of {format_count(len(state.suites), 'suite')} can be reused"


def iter_changes(
    session: Session, plan: RunPlan, state: EvaluatedState, since: str | None, *, every: bool
) -> Iterator[str]:
    """Yield the changed files that no suite measures, what a run would reuse, and the measured files.

    `since` is the commit to compare with. Without `every`, a list ends after `MAX_LISTED` files. Raises GateError if
    git does not know the commit.
    """
    root, limit = session.context.root.resolve(), None if every else MAX_LISTED
    assert plan.measured_files is not None
    files = {one.suite: plan.measured_files.list_files(one.patterns) for one in state.suites}
    commit = _find_commit(root, since)
    changed = _list_changed(root, commit, os.path.normpath(session.config.output_dir)) if commit else None
    if commit is None or changed is None:
        yield from ("what changed is unknown, because git does not say", "")
    else:
        globs = _list_setup_files(session, plan)
        setup = [
            one for one in changed if f"/{one}".endswith(_TARGET_FILES) or any(covers_file(glob, one) for glob in globs)
        ]
        causes = {one.suite: _select_measured(root, one, files[one.suite], changed) for one in state.suites}
        known_files = {*setup, *(path for paths in causes.values() for path in paths)}
        unmeasured = [path for path in changed if path not in known_files and not is_document(path)]
        yield from _iter_list(f"changed since {commit[:7]}, and no suite measures it:", unmeasured, limit)
        decisions = (f"{one.suite}: {_describe_decision(one, setup, causes[one.suite])}" for one in state.suites)
        executed_first = sorted(decisions, key=lambda line: line.endswith(": reused"))
        yield from _iter_list(f"a run, by the changed files, if there is a passed run of {commit[:7]}:", executed_first)
    for suite, names in files.items():
        yield from _iter_list(f"measured by {suite}:", names, limit)


def _list_changed(root: Path, commit: str, results: str) -> Sequence[str] | None:
    """List the files that differ from a commit, relative to the root, untracked ones too; None if git does not say."""
    top = find_checkout(root)
    # a file that moved is a deleted and a new one: it may have left what a suite measures
    changed = run_git(root, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", commit, "--")
    untracked = run_git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if top is None or changed is None or untracked is None:
        return None
    names = (os.fsdecode(name) for name in (changed + untracked).split(b"\0") if name)
    paths = sorted({Path(os.path.relpath(top / name, root)).as_posix() for name in names})
    return [path for path in paths if not covers_file(results, path)]


def _select_measured(root: Path, suite: MeasuredSuite, files: Collection[str], changed: Sequence[str]) -> Sequence[str]:
    """Select the changed files that a suite measures: links lead to others, and a deleted one is not in `files`."""
    places = {os.path.realpath(root / file) for file in files}
    return [one for one in changed if os.path.realpath(root / one) in places or names_file(suite.patterns, one)]


def _list_setup_files(session: Session, plan: RunPlan) -> Sequence[str]:
    """List the files of the setup, and globs of such files, relative to the root of the run."""
    config = session.config
    configured = (one.file for one in config.target.sources.values.values())
    places = (config.seed_manifest_path or DEFAULT_SEED_MANIFEST, config.snapshot_path, config.tool_registry_path)
    targets = config.target.targets if isinstance(config.target.targets, str) else None
    programs = plan.program_files.build_record().files if plan.program_files else ()
    described = (one for target in plan.list_targets() for one in target.identity.setup)
    prompts = (one.value for one in described if one.name == "systemPromptPath")
    cases = (case.location.file for suite in plan.suites for case in suite.cases)
    files = {*cases, *configured, *places, targets, config.target.system_prompt, *prompts, *config.grader_files}
    return tuple(filter(None, (*files, *(one.path.removesuffix("/…") for one in programs))))


def _find_commit(root: Path, since: str | None) -> str | None:
    """Find `since`, else where the branch left the default branch, else HEAD. Raises GateError."""
    forks = (None if since else read_git_line(root, "merge-base", "HEAD", branch) for branch in _DEFAULT_BRANCHES)
    name = next(filter(None, forks), since or "HEAD")
    commit = read_git_line(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if since and commit is None:
        raise GateError("unknown-value", f"git knows no commit {quote_name(since)}", "name another one in --since")
    return commit


def _describe_decision(suite: MeasuredSuite, setup: Sequence[str], measured: Sequence[str]) -> str:
    if suite.digest is None:
        return f"runs: {suite.problem or REASON_WORDS[RunReason.NO_MEASURES]}"
    reason = RunReason.SETUP_CHANGED if setup else RunReason.FILES_CHANGED
    causes = setup or measured
    return f"runs: {REASON_WORDS[reason]} ({format_first_few(causes, MAX_CAUSES)})" if causes else "reused"


def _iter_list(title: str, lines: Sequence[str], limit: int | None = None) -> Iterator[str]:
    if lines:
        yield to_console_line(title)
        yield from (f"  {to_console_line(line)}" for line in lines[:limit])
        if limit is not None and len(lines) > limit:
            yield f"  and {len(lines) - limit:,} more (--verbose lists them)"
        yield ""
