"""Joins the results of shards, or of several jobs, into one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eval_gate import __version__
from eval_gate.errors import GateError, Problem
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import Comparison
from eval_gate.model.execution import Status
from eval_gate.model.policy import Measuring
from eval_gate.model.result import Control, RunResult, SuiteResult, TargetIdentity, ToolFacts, ToolIdentity
from eval_gate.model.totals import summarise


def merge(runs: Sequence[RunResult], run_id: str) -> RunResult:
    """One run with all cases, each once, and no verdict yet. Not complete when a part is missing.

    Raises GateError `cannot-merge` for results that do not belong together: the same case twice, another target,
    parts of different divisions.
    """
    problems = [*_same_cases(runs), *_other_targets(runs), *_other_divisions(runs)]
    if problems:
        raise GateError(
            "cannot-merge",
            "these results are not parts of one run",
            "name each part once: the results of one commit, one target, one division into shards",
            problems=problems,
        )
    missing = _missing(runs)
    suites = _suites(runs, run_id)
    cases = [case for suite in suites for case in suite.cases]
    clocks = [run.summary.wall_ms for run in runs if run.summary.wall_ms is not None]
    whole = not missing and all(run.complete for run in runs)
    stopped = [f"shard {', '.join(map(str, parts))} of {count} is missing" for count, parts in missing.items()]
    return RunResult(
        run_id=run_id,
        timestamp=min(run.timestamp for run in runs),
        complete=whole and all(case.status is not Status.NOT_RUN for case in cases),
        tool=ToolIdentity(version=__version__),
        target=runs[0].target,
        targets=_targets(runs),
        git=runs[0].git,
        # of the cases of a part that is missing nobody can say that they are gone
        partial=bool(missing) or any(run.partial for run in runs),
        planned=max((run.planned for run in runs if run.planned is not None), default=None),
        confirm=max(run.confirm for run in runs),
        measuring=_measuring(runs),
        suites=suites,
        comparison=_comparison(runs, suites),
        control=_control(runs),
        policy=runs[0].policy if len({run.policy for run in runs}) == 1 else None,
        # parts run beside each other: the longest is what one waited for
        summary=summarise(cases, max(clocks, default=None)),
        warnings=tuple(
            dict.fromkeys(warning for run in runs for warning in (*run.warnings, *_other_commit(run, runs[0])))
        ),
        stopped="; ".join([*stopped, *dict.fromkeys(run.stopped for run in runs if run.stopped)]) or None,
    )


def _comparison(runs: Sequence[RunResult], suites: Sequence[SuiteResult]) -> Comparison | None:
    """What was known of the cases when the parts were made, where all of them knew the same; no class is final in it.

    With it the whole is judged as each part was. What is gone since the baseline only the whole can tell.
    """
    compared = [run.comparison for run in runs if run.comparison is not None]
    if len(compared) < len(runs) or len({one.evidence for one in compared}) != 1 or compared[0].evidence is None:
        return None
    changes = {change.key: change for one in compared for change in one.changes}
    keys = [CaseKey(suite.eval_file, case.id) for suite in suites for case in suite.cases]
    return compared[0].model_copy(
        update={
            "changes": tuple(changes[key] for key in keys if key in changes),
            "suite_finding": None,
            "score_finding": None,
            "notes": (),
        }
    )


def _measuring(runs: Sequence[RunResult]) -> Measuring | None:
    """How all parts were measured, where they agree; recorded answers of one part are in the whole as well."""
    recorded = next((run.measuring.recorded for run in runs if run.measuring and run.measuring.recorded), None)
    told = {run.measuring.model_copy(update={"recorded": None}) if run.measuring else None for run in runs}
    agreed = told.pop() if len(told) == 1 else None
    return (agreed or Measuring()).model_copy(update={"recorded": recorded}) if recorded else agreed


def _control(runs: Sequence[RunResult]) -> Control | None:
    """The base branch's agent, where all parts that asked one asked the same. Else what any of them said is nothing."""
    asked = [run.control for run in runs if run.control is not None]
    if len({one.target for one in asked}) != 1:
        return None
    troubles = dict.fromkeys(one.trouble for one in asked if one.trouble)
    costs = [one.cost_usd for one in asked if one.cost_usd is not None]
    return Control(target=asked[0].target, trouble="; ".join(troubles) or None, cost_usd=sum(costs) if costs else None)


def _targets(runs: Sequence[RunResult]) -> tuple[TargetIdentity, ...]:
    """Everything that was asked in any of the runs, each once; nothing where it was one target."""
    asked = tuple(dict.fromkeys(target for run in runs for target in (run.target, *run.targets)))
    return asked if len(asked) > 1 else ()


def _suites(runs: Sequence[RunResult], run_id: str) -> tuple[SuiteResult, ...]:
    """Suites by eval file, in order of appearance, their cases in the order of the file."""
    by_file: dict[str, list[SuiteResult]] = {}
    for run in runs:
        # a case that names no target was asked of its own run's
        own = run.target.name if run.target != runs[0].target else None
        for suite in run.suites:
            cases = tuple(case.model_copy(update={"target": case.target or own}) for case in suite.cases)
            by_file.setdefault(suite.eval_file, []).append(suite.model_copy(update={"cases": cases}) if own else suite)
    return tuple(_suite(parts, run_id) for parts in by_file.values())


def _suite(parts: list[SuiteResult], run_id: str) -> SuiteResult:
    cases = sorted(
        (case for part in parts for case in part.cases), key=lambda case: case.location.line if case.location else 0
    )
    fresh = {
        "run_id": run_id,
        "cases": tuple(cases),
        "summary": summarise(cases),
        "stale": any(part.stale for part in parts),
        "warnings": tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        "baseline_run_id": None,
        "regressions": (),
        "new_passes": (),
        "metadata": parts[0].metadata if len({part.metadata for part in parts}) == 1 else ToolFacts(),
    }
    return parts[0].model_copy(update=fresh)


def _same_cases(runs: Sequence[RunResult]) -> list[Problem]:
    seen = Counter(key for run in runs for key, _ in run.cases())
    return [
        Problem(f"{case} is in {times} of the results", file=file) for (file, case), times in seen.items() if times > 1
    ]


def _other_targets(runs: Sequence[RunResult]) -> list[Problem]:
    if any(run.targets for run in runs):
        return []  # the eval files choose among several: which one a part begins with is its own affair
    names = dict.fromkeys(f"{run.target.name} ({run.target.provider})" for run in runs)
    return [Problem(f"they evaluated different targets: {', '.join(names)}")] if len(names) > 1 else []


def _other_divisions(runs: Sequence[RunResult]) -> list[Problem]:
    counts = sorted({run.shard.count for run in runs if run.shard})
    return [Problem(f"they are parts of different divisions: {', '.join(map(str, counts))}")] if len(counts) > 1 else []


def _missing(runs: Sequence[RunResult]) -> dict[int, list[int]]:
    """The numbers of shards that are not there, by how many there should be."""
    shards = [run.shard for run in runs if run.shard is not None]
    if not shards:
        return {}
    count = shards[0].count
    absent = sorted(set(range(1, count + 1)) - {shard.index for shard in shards})
    return {count: absent} if absent else {}


def _other_commit(run: RunResult, first: RunResult) -> tuple[str, ...]:
    ours, theirs = run.sha, first.sha
    return (f"a part evaluated commit {ours[:12]}, not {theirs[:12]}",) if ours and theirs and ours != theirs else ()
