"""Cases that must pass whatever their history, and must-pass patterns that match no case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eval_gate.model.case import CaseKey
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import replace
from eval_gate.text.globs import check_unmatched_patterns, matches_case


def is_must_pass(case: CaseResult, patterns: Sequence[str]) -> bool:
    """Whether a case must pass whatever its history: a glob over its id, or `tag:` and one of its tags."""
    return any(matches_case(pattern, case.id, case.tags) for pattern in patterns)


def find_must_pass_cases(run: RunResult, patterns: Sequence[str]) -> frozenset[CaseKey]:
    """Find the cases of a run that must pass."""
    return frozenset(key for key, case in run.iter_cases() if is_must_pass(case, patterns)) if patterns else frozenset()


def find_lost_patterns(baseline: RunResult, current: RunResult, patterns: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Find the patterns that match no case of this run, with the ids of the baseline's cases that they match."""
    old, new = ([(case.id, case.tags) for _, case in run.iter_cases()] for run in (baseline, current))
    matches = {one: tuple(case[0] for case in old if matches_case(one, *case)) for one in dict.fromkeys(patterns)}
    return {one: ids for one, ids in matches.items() if ids and not any(matches_case(one, *case) for case in new)}


def add_idle_pattern_warnings(run: RunResult, patterns: Iterable[str], *, strict: bool = False) -> RunResult:
    """Add a warning to a stored run for each must-pass pattern that matches none of its cases.

    A run of only some cases gets none. Raises GateError `unmatched-must-pass` if `strict`.
    """
    if run.partial or run.shard is not None:
        return run
    idle = check_unmatched_patterns(patterns, [(case.id, case.tags) for _, case in run.iter_cases()], strict=strict)
    return replace(run, warnings=tuple(dict.fromkeys((*run.warnings, *idle)))) if idle else run
