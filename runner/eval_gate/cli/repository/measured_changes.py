"""What `eval-gate measures` shows: the suites with what they measure, changed files, and what a run would reuse."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from eval_gate.config.measures import iter_idle_globs, iter_unset_variables, parse_measured_pattern
from eval_gate.config.settings import DEFAULT_SEED_MANIFEST
from eval_gate.engine.preparation.measured_files import MeasuredFiles
from eval_gate.engine.preparation.plan_builder import build_run_plan
from eval_gate.engine.run_plan import RunPlan
from eval_gate.errors import GateError
from eval_gate.model.reuse import EvaluatedState, MeasuredSuite, RunReason, is_document
from eval_gate.process.git import find_checkout, read_git_line, run_git
from eval_gate.reports.wording.reuse import OFF_WORDS, REASON_WORDS, describe_reason
from eval_gate.results.baseline import Baseline
from eval_gate.session.reuse import apply_reuse
from eval_gate.session.session import ReuseSources, Session
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.build_context import MissingRequirements
from eval_gate.targets.target_list import FILE_NAMES
from eval_gate.text.escape import format_count, to_console_line
from eval_gate.text.globs import covers_file
from eval_gate.text.quoting import quote_name

MAX_LISTED: Final = 20
"""Files of one list without --verbose."""
_DEFAULT_BRANCHES: Final = ("origin/HEAD", "origin/main", "origin/master")
_TARGET_FILES: Final = tuple(f"/{name}" for name in FILE_NAMES)


class OfflinePlan(FrozenStruct):
    """What a run would begin with, as far as it is known without a request."""

    plan: RunPlan
    state: EvaluatedState
    gaps: tuple[str, ...]
    """What only a run would know."""


class Changes(FrozenStruct):
    """Files that differ from a commit, relative to the root of the run, each with the suites that measure it."""

    commit: str
    suites: Mapping[str, tuple[str, ...]]
    setup: frozenset[str]
    """Those that are part of the setup."""


async def plan_offline(session: Session) -> OfflinePlan | None:
    """Plan a run without a request; None if no suite has measures. Raises GateError as a run does before it starts."""
    lacking = MissingRequirements()
    plan = await build_run_plan(session.config, session.selection, session.context, lacking)
    await plan.aclose()
    state = plan.evaluated_state
    return None if state is None else OfflinePlan(plan, state, tuple(map(str, lacking.problems)))


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
    every_pattern = (pattern for one in state.suites for pattern in one.patterns)
    yield from iter_unset_variables(every_pattern, session.context.environment)
    usable = sum(one.digest is not None for one in state.suites)
    yield f"{usable} of {format_count(len(state.suites), 'suite')} can be reused"


async def explain_reuse(session: Session, offline: OfflinePlan, since: str | None, *, every: bool) -> Sequence[str]:
    """List the changed files, those that no suite measures first, what a run would reuse, and the measured files.

    `since` is the commit to compare with. Without `every`, a list ends after `MAX_LISTED` files. Raises GateError if
    git does not know the commit.
    """
    limit, baseline = None if every else MAX_LISTED, session.gate_inputs.baseline
    run = baseline.result if isinstance(baseline, Baseline) else None
    measured = MeasuredFiles(session.context.root, session.context.environment, results=session.config.output_dir)
    files = {one.suite: measured.list_files(one.patterns) for one in offline.state.suites}
    changes = _find_changes(
        session, offline, _find_commit(session.context.root, since, run.sha if run else None), files
    )
    lines = [*_iter_changes(changes, limit)] if changes else ["what changed is unknown, because git does not say", ""]
    if run is not None and not offline.gaps:
        title = f"a run with the baseline {run.sha[:7] if run.sha else run.run_id}:"
        lines += _iter_list(title, sorted(await _decide(session, offline), key=_is_reused))
    elif changes is not None:
        title = f"a run, by the changed files, if there is a passed run of {changes.commit[:7]}:"
        guesses = (f"{one.suite}: {_guess(one, changes)}" for one in offline.state.suites)
        lines += _iter_list(title, sorted(guesses, key=_is_reused))
        lines += _iter_list("not known here:", offline.gaps)
    for suite, names in files.items():
        lines += _iter_list(f"measured by {suite}:", names, limit)
    return lines


def _find_changes(
    session: Session, offline: OfflinePlan, commit: str | None, measured: Mapping[str, Sequence[str]]
) -> Changes | None:
    """Find the files that differ from a commit, uncommitted and untracked ones too; None if git does not say.

    `measured` are the files that each suite measures.
    """
    root = session.context.root.resolve()
    top = find_checkout(root)
    if commit is None or top is None:
        return None
    # a file that moved is a deleted and a new one: it may have left what a suite measures
    changed = run_git(root, "diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", commit, "--")
    untracked = run_git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if changed is None or untracked is None:
        return None
    names = (os.fsdecode(name) for name in (changed + untracked).split(b"\0") if name)
    paths = sorted({Path(os.path.relpath(top / name, root)).as_posix() for name in names})
    paths = [path for path in paths if not covers_file(os.path.normpath(session.config.output_dir), path)]
    places = {suite: {os.path.realpath(root / file) for file in files} for suite, files in measured.items()}
    suites = {
        path: tuple(
            one.suite
            for one in offline.state.suites
            # links lead to files of other names, and a deleted file is in no list
            if os.path.realpath(root / path) in places[one.suite] or _names_file(one.patterns, path)
        )
        for path in paths
    }
    setup = _list_setup_files(session, offline.plan)
    of_setup = (path for path in paths if any(covers_file(one, path) for one in setup))
    return Changes(commit, suites, frozenset((*of_setup, *(one for one in paths if f"/{one}".endswith(_TARGET_FILES)))))


def _names_file(patterns: Sequence[str], path: str) -> bool:
    """Whether patterns name a file, which need not exist."""
    parsed = [one for one in map(parse_measured_pattern, patterns) if one.path and covers_file(one.path, path)]
    return bool(parsed) and not any(one.is_exclusion for one in parsed)


def _list_setup_files(session: Session, plan: RunPlan) -> tuple[str, ...]:
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


def _find_commit(root: Path, since: str | None, baseline_commit: str | None) -> str | None:
    """Find `since`, else the baseline's commit, else where the branch left the default branch, else HEAD."""
    commit = _resolve_commit(root, since or baseline_commit or "HEAD")
    if since and commit is None:
        raise GateError("unknown-value", f"git knows no commit {quote_name(since)}", "name another one in --since")
    if commit and (since or baseline_commit):
        return commit
    forks = (read_git_line(root, "merge-base", "HEAD", branch) for branch in _DEFAULT_BRANCHES)
    return next(filter(None, forks), None) or _resolve_commit(root, "HEAD")


def _resolve_commit(root: Path, name: str) -> str | None:
    return read_git_line(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def _iter_changes(changes: Changes, limit: int | None) -> Iterator[str]:
    """Yield what changed: first what may be the agent's and is measured by no suite."""
    place = f"since {changes.commit[:7]}"
    every_suite = dict.fromkeys(changes.setup, "every suite, because it is part of the setup")
    users = {file: every_suite.get(file, ", ".join(suites)) for file, suites in changes.suites.items()}
    unmeasured = [file for file, suites in users.items() if not suites and not is_document(file)]
    yield from _iter_list(f"changed {place}, and no suite measures it:", unmeasured, limit)
    lines = [f"{file}: {suites or 'no suite'}" for file, suites in users.items()]
    yield from _iter_list(f"changed {place}:", lines, limit) if lines else (f"nothing changed {place}", "")


async def _decide(session: Session, offline: OfflinePlan) -> Sequence[str]:
    """Decide as a run with this baseline does, and list what it does with each suite."""
    summary = (await apply_reuse(replace(session, reuse=ReuseSources()), offline.plan)).reuse
    assert summary is not None
    if summary.off is not None:
        return [f"reuses nothing: {OFF_WORDS[summary.off]}"]
    problems = {one.suite: one.problem for one in offline.state.suites}
    return [
        f"{one.suite}: {'reused' if one.reused else f'runs: {problems[one.suite] or describe_reason(one)}'}"
        for one in summary.suites
    ]


def _guess(suite: MeasuredSuite, changes: Changes) -> str:
    """Guess from the changed files what a run does with a suite."""
    if suite.digest is None:
        return f"runs: {suite.problem or REASON_WORDS[RunReason.NO_MEASURES]}"
    if changes.setup:
        return f"runs: {REASON_WORDS[RunReason.SETUP_CHANGED]}"
    is_changed = any(suite.suite in suites for suites in changes.suites.values())
    return f"runs: {REASON_WORDS[RunReason.FILES_CHANGED]}" if is_changed else "reused"


def _is_reused(line: str) -> bool:
    return line.endswith(": reused")


def _iter_list(title: str, lines: Sequence[str], limit: int | None = None) -> Iterator[str]:
    """Yield a title, the lines below it, and an empty line; nothing without lines."""
    if lines:
        yield to_console_line(title)
        yield from (f"  {to_console_line(line)}" for line in lines[:limit])
        if limit is not None and len(lines) > limit:
            yield f"  and {len(lines) - limit:,} more (--verbose lists them)"
        yield ""
