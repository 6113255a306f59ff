"""Merges the results of shards, or of several jobs, into one run, and reports missing shards.

A single shard can pass by itself. Seven of eight shards are an incomplete run, and cannot pass.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from eval_gate import __version__
from eval_gate.errors import GateError, Problem
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import Comparison
from eval_gate.model.execution import Status
from eval_gate.model.model_recording import merge_model_recordings
from eval_gate.model.policy import EvaluationSetup, merge_compared_programs
from eval_gate.model.result import BaseAgentSummary, RunResult, Shard, SuiteResult, ToolFacts, ToolIdentity
from eval_gate.model.reuse import ReuseSummary
from eval_gate.model.run_totals import summarize_cases, summarize_suites
from eval_gate.model.selection import CaseSelection
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.usage import add_up
from eval_gate.results.result_names import RUN_NAME
from eval_gate.results.run_reader import (
    ARTIFACT_RUN_GLOB,
    MAX_RUNS_READ,
    MAX_RUNS_SEARCHED,
    FileFilter,
    accept_any_file,
    read_run,
    read_runs,
)
from eval_gate.results.run_setup import RunSetup
from eval_gate.struct import replace
from eval_gate.text.escape import format_spans

UUID_LENGTH: Final = 36
"""Length of a run id that can be abbreviated; other programs can use any run id."""
MAX_SPANS: Final = 10


def merge_runs(runs: Sequence[RunResult], run_id: str) -> RunResult:
    """Merge runs into one with all cases, each once, without a verdict; it is incomplete if a part is missing.

    Raises GateError `conflicting-results` for results that do not belong together: the same case or shard twice,
    another target, shards of another division, commit, workflow run or configuration.
    """
    problems = [
        *(_find_duplicate_shards(runs) or _find_duplicate_cases(runs)),
        *_find_target_conflicts(runs),
        *_find_shard_conflicts(runs),
    ]
    if problems:
        raise GateError(
            "conflicting-results",
            "these results are not parts of one run",
            "give each shard of one run once: same commit, same target, same number of shards",
            problems=problems,
        )
    missing_shards = describe_missing_shards(runs)
    suites = _merge_suites(runs, run_id)
    cases = [case for suite in suites for case in suite.cases]
    clocks = [run.summary.wall_ms for run in runs if run.summary.wall_ms is not None]
    whole = not missing_shards and all(run.complete for run in runs)
    stopped = [missing_shards] if missing_shards else []
    return RunResult(
        run_id=run_id,
        timestamp=min(run.timestamp for run in runs),
        complete=whole and all(case.status is not Status.NOT_RUN for case in cases),
        tool=ToolIdentity(version=__version__),
        target=runs[0].target,
        targets=_merge_targets(runs),
        suite_agents=tuple({one.name: one for run in reversed(runs) for one in run.suite_agents}.values()),
        git=runs[0].git,
        # cases of a missing part are not removed cases
        partial=bool(missing_shards) or any(run.partial for run in runs),
        selections=_merge_selections(runs),
        planned_cases=max((run.planned_cases for run in runs if run.planned_cases is not None), default=None),
        reruns=max(run.reruns for run in runs),
        rerun_wait=max(run.rerun_wait for run in runs),
        setup=_merge_setups(runs),
        reuse=_merge_reuse(runs),
        model_recording=merge_model_recordings(run.model_recording for run in runs),
        suites=suites,
        comparison=_merge_comparisons(runs, suites),
        base_agent=_merge_base_agents(runs),
        policy=runs[0].policy if len({run.policy for run in runs}) == 1 else None,
        # parts run in parallel: the longest one is the wall time
        summary=summarize_suites(suites, max(clocks, default=None)),
        warnings=tuple(
            dict.fromkeys((*(warning for run in runs for warning in run.warnings), *describe_part_differences(runs)))
        ),
        stop_reason="; ".join([*stopped, *dict.fromkeys(run.stop_reason for run in runs if run.stop_reason)]) or None,
    )


def describe_part_differences(runs: Sequence[RunResult]) -> tuple[str, ...]:
    """Describe in sentences how parts of a run differ from the first part in commit and setup."""
    return tuple(text for run in runs[1:] for text in _iter_differences(run, runs[0]))


def _merge_selections(runs: Sequence[RunResult]) -> tuple[CaseSelection, ...]:
    """Merge the selections of all parts; none if all cases are selected, or if a part is missing or states none."""
    if describe_missing_shards(runs) or not any(run.partial for run in runs):
        return ()
    selections = [run.selections if run.partial else (CaseSelection(),) for run in runs]
    return tuple(dict.fromkeys(one for chosen in selections for one in chosen)) if all(selections) else ()


def _merge_comparisons(runs: Sequence[RunResult], suites: Sequence[SuiteResult]) -> Comparison | None:
    """Merge the comparisons of all parts, so that the gate decides about the whole as it did about each part."""
    compared = [run.comparison for run in runs if run.comparison is not None]
    if len(compared) < len(runs) or len({one.evidence for one in compared}) != 1 or compared[0].evidence is None:
        return None
    changes = {change.key: change for one in compared for change in one.changes}
    keys = [CaseKey(suite.eval_file, case.id) for suite in suites for case in suite.cases]
    # no class is final, and only the whole shows which cases were removed
    return replace(
        compared[0],
        changes=tuple(changes[key] for key in keys if key in changes),
        suite_finding=None,
        error_finding=None,
        score_finding=None,
        notes=(),
    )


def _merge_setups(runs: Sequence[RunResult]) -> EvaluationSetup | None:
    """Merge the evaluation setups of all parts if they agree; a recording of one part counts for the whole run."""
    recorded = next((run.setup.recording for run in runs if run.setup and run.setup.recording), None)
    setups = {replace(run.setup, recording=None, programs=None) if run.setup else None for run in runs}
    agreed = setups.pop() if len(setups) == 1 else None
    programs = [run.setup.programs if run.setup else None for run in runs]
    if agreed is not None and None not in programs:  # each part has the programs of its own cases
        agreed = replace(agreed, programs=merge_compared_programs(filter(None, programs)))
    return replace(agreed or EvaluationSetup(), recording=recorded) if recorded else agreed


def _merge_reuse(runs: Sequence[RunResult]) -> ReuseSummary | None:
    """Merge what the parts reused; they name one cause only if it kept all of them from it."""
    summaries = [run.reuse for run in runs if run.reuse is not None]
    if not summaries:
        return None
    causes = {one.off for one in summaries}
    return ReuseSummary(
        off=causes.pop() if len(causes) == 1 else None,
        suites=tuple(decision for one in summaries for decision in one.suites),
        saved_executions=sum(one.saved_executions for one in summaries),
        saved_usd=add_up(one.saved_usd for one in summaries),
    )


def _merge_base_agents(runs: Sequence[RunResult]) -> BaseAgentSummary | None:
    """Merge the results about the base agent; return None unless all parts that ran one ran the same."""
    summaries = [run.base_agent for run in runs if run.base_agent is not None]
    if len({one.target for one in summaries}) != 1:
        return None
    troubles = dict.fromkeys(one.problem for one in summaries if one.problem)
    cost_usd = add_up(one.cost_usd for one in summaries)
    return BaseAgentSummary(target=summaries[0].target, problem="; ".join(troubles) or None, cost_usd=cost_usd)


def _merge_targets(runs: Sequence[RunResult]) -> tuple[TargetIdentity, ...]:
    """Merge the targets of all runs, each once; empty if there is only one."""
    targets = tuple(dict.fromkeys(target for run in runs for target in (run.target, *run.targets)))
    return targets if len(targets) > 1 else ()


def _merge_suites(runs: Sequence[RunResult], run_id: str) -> tuple[SuiteResult, ...]:
    """Suites by eval file, in order of appearance, their cases in the order of the file."""
    by_file: dict[str, list[SuiteResult]] = {}
    for run in runs:
        # a case without a target has that of its run
        own = run.target.name if run.target != runs[0].target else None
        for suite in run.suites:
            cases = tuple(replace(case, target=case.target or own) for case in suite.cases)
            by_file.setdefault(suite.eval_file, []).append(replace(suite, cases=cases) if own else suite)
    return tuple(_merge_suite(parts, run_id) for parts in by_file.values())


def _merge_suite(parts: list[SuiteResult], run_id: str) -> SuiteResult:
    cases = sorted(
        (case for part in parts for case in part.cases), key=lambda case: case.location.line if case.location else 0
    )
    return replace(
        parts[0],
        run_id=run_id,
        cases=tuple(cases),
        summary=summarize_cases(cases),
        stale=any(part.stale for part in parts),
        warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        baseline_run_id=None,
        regressions=(),
        new_passes=(),
        reused=parts[0].reused if len({part.reused for part in parts}) == 1 else None,
        metadata=parts[0].metadata if len({part.metadata for part in parts}) == 1 else ToolFacts(),
    )


def _find_duplicate_cases(runs: Sequence[RunResult]) -> list[Problem]:
    tally = Counter(key for run in runs for key, _ in run.iter_cases())
    return [
        Problem(f"{case} is in {times} of the results", file=file) for (file, case), times in tally.items() if times > 1
    ]


def _find_target_conflicts(runs: Sequence[RunResult]) -> list[Problem]:
    if any(run.targets for run in runs):
        return []  # eval files choose among several targets, and parts may begin with different ones
    names = dict.fromkeys(f"{run.target.name} ({run.target.provider})" for run in runs)
    return [Problem(f"they evaluated different targets: {', '.join(names)}")] if len(names) > 1 else []


def _find_duplicate_shards(runs: Sequence[RunResult]) -> list[Problem]:
    """Find shards that several runs claim to be."""
    by_shard: dict[Shard, list[RunResult]] = {}
    for run in runs:
        if run.shard is not None:
            by_shard.setdefault(run.shard, []).append(run)
    return [
        Problem(
            f"{_format_shard(shard)} is given {len(same)} times: "
            f"{', '.join(f'run {_shorten_run_id(run.run_id)}' for run in same)}"
        )
        for shard, same in by_shard.items()
        if len(same) > 1
    ]


def _find_shard_conflicts(runs: Sequence[RunResult]) -> list[Problem]:
    """Find shards of other runs: facts in which a shard contradicts the first one."""
    first = next((run for run in runs if run.shard is not None), None)
    if first is None:
        return []
    division = first.shard
    errors = [
        Problem(f"{_format_part(run)} is not a shard, but {_format_part(first)} is")
        for run in runs
        if run.shard is None
    ]
    for run in runs:
        if run.shard is None or run is first:
            continue
        if division and run.shard.count != division.count:
            errors.append(Problem(f"they have different numbers of shards: {_format_part(first)}, {_format_part(run)}"))
        else:
            errors += [Problem(words) for words in _iter_contradictions(first, run)]
    beyond = [run for run in runs if run.shard is not None and run.shard.index > run.shard.count]
    return [*errors, *(Problem(f"{_format_part(run)} cannot exist") for run in beyond)]


def _get_workflow_run(run: RunResult) -> int | None:
    return run.producer.run_id if run.producer else run.git.run_id if run.git else None


def _iter_contradictions(one: RunResult, other: RunResult) -> Iterator[str]:
    """Yield contradictions between two shards of one run; a missing fact contradicts nothing."""
    names = f"{_format_part(one)} and {_format_part(other)}"
    if one.sha and other.sha and one.sha != other.sha:
        yield f"{names} evaluated different commits: {one.sha[:12]}, {other.sha[:12]}"
    sha, other_sha = (run.git.workspace_sha if run.git else None for run in (one, other))
    if sha and other_sha and sha != other_sha:
        yield f"{names} had different commits checked out: {sha[:12]}, {other_sha[:12]}"
    workflow_runs = _get_workflow_run(one), _get_workflow_run(other)
    if all(workflow_runs) and workflow_runs[0] != workflow_runs[1]:
        yield f"{names} are from different workflow runs: {workflow_runs[0]}, {workflow_runs[1]}"
    if one.shard_plan != other.shard_plan:
        by = [
            f"the durations of run {_shorten_run_id(run.shard_plan.durations_from)}"
            if run.shard_plan and run.shard_plan.durations_from
            else "none"
            for run in (one, other)
        ]
        basis = "cases" if by[0] == by[1] else f"durations: {by[0]}, {by[1]}"
        hint = "give all shards the same eval files, selection and --baseline"
        yield f"{names} were divided by different {basis}; {hint}"
    if one.planned_cases is not None and other.planned_cases is not None and one.planned_cases != other.planned_cases:
        yield f"{names} are from runs with different numbers of cases: {one.planned_cases:,}, {other.planned_cases:,}"
    if _is_different(one.policy, other.policy):
        yield f"{names} have different policies"
    measured = (replace(run.setup, recording=None, programs=None) if run.setup else None for run in (one, other))
    setup, other_setup = RunSetup.from_run(one), RunSetup.from_run(other)
    if _is_different(*measured) or setup.has_target_changes(other_setup):
        differences = "; ".join(setup.iter_differences(other_setup))
        yield f"{names} have different setups: {differences or 'trials, re-runs, scores or seeds differ'}"


def _is_different(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def _format_shard(shard: Shard) -> str:
    return f"shard {shard.index} of {shard.count}"


def _format_part(run: RunResult) -> str:
    name = f"run {_shorten_run_id(run.run_id)}"
    return f"{_format_shard(run.shard)} ({name})" if run.shard else name


def _shorten_run_id(run_id: str) -> str:
    return run_id[:8] if len(run_id) == UUID_LENGTH else run_id[:40]


def describe_missing_shards(runs: Sequence[RunResult]) -> str:
    """Describe the missing shards by number: `shard 3 of 8 is missing`; empty if none is missing."""
    shards = [run.shard for run in runs if run.shard is not None]
    if not shards:
        return ""
    count, present = shards[0].count, {shard.index for shard in shards}
    absent = [index for index in range(1, count + 1) if index not in present]
    if not absent:
        return ""
    spans = format_spans(absent)
    if len(spans) > MAX_SPANS:
        numbers = f"{', '.join(spans[:MAX_SPANS])} and others, {len(absent):,} in all,"
    else:
        numbers = " and ".join(filter(None, (", ".join(spans[:-1]), spans[-1])))
    plural = len(absent) > 1
    return f"shard{'s' if plural else ''} {numbers} of {count:,} {'are' if plural else 'is'} missing"


def _iter_differences(run: RunResult, first: RunResult) -> Iterator[str]:
    if run.sha and first.sha and run.sha != first.sha:
        yield f"a shard evaluated commit {run.sha[:12]}, not {first.sha[:12]}"
    if changes := "; ".join(RunSetup.from_run(first).iter_differences(RunSetup.from_run(run))):
        yield f"{_format_part(first)} and {_format_part(run)} have different setups: {changes}"


def read_merged_run(
    references: Sequence[str], output_dir: Path, shard: Shard | None = None, accept: FileFilter = accept_any_file
) -> RunResult:
    """Read the run that these references name, and merge its shards.

    The run is incomplete if a shard is missing. `shard` selects one part by itself. In folders of runs, only files
    that `accept` accepts count. Raises GateError like `read_run` and `merge_runs`.
    """
    runs = [run for reference in references for run in read_parts(reference, output_dir, accept)]
    return merge_parts(runs, shard)


def merge_parts(runs: Sequence[RunResult], shard: Shard | None = None) -> RunResult:
    """Merge runs into one; a single requested run stays as it is. Raises GateError `conflicting-results`."""
    if len(runs) == 1 and runs[0].shard in (None, shard):
        return runs[0]
    return merge_runs(runs, str(uuid.uuid4()))


def read_parts(reference: str, output_dir: Path, accept: FileFilter = accept_any_file) -> tuple[RunResult, ...]:
    """Read the run that a reference names, or all shards of a folder that holds them.

    Each shard has a folder of its own: `RUN/run.json` if the artifacts were downloaded with `merge-multiple`,
    otherwise `ARTIFACT/RUN/run.json`.
    """
    path = Path(reference)
    if not path.is_dir() or (path / RUN_NAME).is_file():
        return (read_run(reference, output_dir, accept),)
    runs = read_runs(path, accept=accept)
    if not runs:
        runs = read_runs(path, ARTIFACT_RUN_GLOB, MAX_RUNS_SEARCHED, accept)
        return runs or (read_run(reference, output_dir, accept),)
    if len(runs) == MAX_RUNS_READ and runs[0].shard is not None:
        runs = read_runs(path, most=MAX_RUNS_SEARCHED, accept=accept)
    shards = tuple(takewhile(lambda run: run.shard is not None, runs))  # newest first: older runs do not count
    return shards or (read_run(reference, output_dir, accept),)
