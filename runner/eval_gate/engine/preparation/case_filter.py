"""Selects the cases of a run, and assigns cases to shards.

Shards take equally long, and every machine cuts them in the same way. The longest suites come first, each goes to the
shard with the least time so far (Graham 1969): the longest shard is at most a third longer than in the best cut. Times
are whole microseconds, and equal ones are ordered by place.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapreplace
from statistics import median_low
from typing import Final, NamedTuple

from eval_gate.config.selection import Selection
from eval_gate.errors import GateError, Problem, format_suggestion
from eval_gate.model.case import CaseKey, EvalCase, EvalSuite, Tier
from eval_gate.model.result import RunResult, Shard, ShardPlan
from eval_gate.struct import replace
from eval_gate.text.escape import format_count, format_first_few, to_one_line
from eval_gate.text.quoting import describe_name, quote_value

MIN_DURATION_US: Final = 1_000
"""Least duration of a case in a shard cut: recorded responses take no time, but some work."""

MAX_NAMED_DRAFTS: Final = 10
"""Drafts of one eval file that a notice names."""


def select_cases(suites: Iterable[EvalSuite], selection: Selection) -> tuple[EvalSuite, ...]:
    """Return the suites with only the selected cases, and without the suites that have none.

    Raises GateError `no-selected-cases` if no case remains: a gate on zero cases would pass without a check.
    """
    suites = tuple(suites)
    tier_names = [tier.value for tier in Tier]
    for tier in selection.tiers:
        if tier not in tier_names:
            raise GateError(
                "unknown-value",
                f"--tier: {quote_value(tier)} is not known{format_suggestion(tier, tier_names)}",
                f"allowed: {', '.join(tier_names)}",
            )
    chosen = _filter_suites(suites, selection)
    if selection.shard is not None and chosen:
        chosen = select_shard(chosen, selection.shard, selection.timing_run)
    if not chosen:
        ids = [case.id for suite in suites for case in suite.cases]
        criteria = [*map(describe_name, (*selection.cases, *selection.tags, *selection.tiers))]
        criteria += ["the failed cases"] if selection.keys is not None else []
        criteria += [f"shard {selection.shard.index}/{selection.shard.count}"] if selection.shard else []
        meant = next((text for text in (format_suggestion(pattern, ids) for pattern in selection.cases) if text), "")
        raise GateError(
            "no-selected-cases",
            f"no case selected: none of {len(ids)} matches {', '.join(criteria)}{meant}",
            "list the cases with `eval-gate validate --verbose`",
        )
    return chosen


def leave_out_drafts(suites: Iterable[EvalSuite], selection: Selection) -> tuple[EvalSuite, ...]:
    """Return the suites without their drafts, and without the suites that have nothing else.

    Raises GateError `only-drafts` if the selection names nothing but drafts: a gate must not pass without a check.
    """
    suites = tuple(suites)
    reviewed = tuple(
        replace(suite, cases=cases) if len(cases) < len(suite.cases) else suite
        for suite in suites
        if (cases := tuple(case for case in suite.cases if not case.draft))
    )
    problems = describe_drafts(suites, selection)
    if problems and not _filter_suites(reviewed, selection):
        raise GateError(
            "only-drafts",
            "no case was run: everything that is selected is a draft",
            "review the drafts, and accept those that expect the right thing",
            problems=[Problem(problem) for problem in problems],
        )
    return reviewed


def describe_drafts(suites: Iterable[EvalSuite], selection: Selection, *, is_planned: bool = False) -> tuple[str, ...]:
    """Return a sentence for each eval file with drafts that the selection names: which, and how to review them.

    `is_planned` is for what no run has left out yet.
    """
    return tuple(
        f"{suite.file}: {_format_drafts(ids, is_planned=is_planned)}: "
        f"{format_first_few(ids, MAX_NAMED_DRAFTS, to_one_line)}. "
        f"Review {'it' if len(ids) == 1 else 'them'} with `eval-gate draft --review {shlex.quote(suite.file)}`"
        for suite in suites
        if (
            ids := [
                case.id
                for case in suite.cases
                if case.draft and selection.includes_case(case.key, case.tags, suite.tier)
            ]
        )
    )


def _format_drafts(ids: Sequence[str], *, is_planned: bool) -> str:
    one, many = ("is", "are") if is_planned else ("was", "were")
    return format_count(len(ids), f"draft {one} not run", f"drafts {many} not run")


def find_shard_cut(suites: Iterable[EvalSuite], selection: Selection) -> ShardPlan | None:
    """Find how cases are divided into shards; None without shards."""
    if selection.shard is None:
        return None
    return compute_shard_cut(_filter_suites(suites, selection), selection.shard.count, selection.timing_run)


def _filter_suites(suites: Iterable[EvalSuite], selection: Selection) -> tuple[EvalSuite, ...]:
    """Select cases of all shards; cases selected by `keys`, their earlier outcome, come with those before them."""
    return tuple(
        # a selection by names, tags or tiers gets a notice instead (`describe_missed_files`)
        replace(suite, cases=cases if selection.keys is None else _add_preceding_cases(suite.cases, cases))
        for suite in suites
        if (cases := tuple(case for case in suite.cases if selection.includes_case(case.key, case.tags, suite.tier)))
    )


def describe_missed_files(suites: Iterable[EvalSuite], chosen: Iterable[EvalSuite]) -> tuple[str, ...]:
    """Return a notice for every suite whose chosen cases may miss files of earlier cases left out."""
    selected = {suite.file: suite.cases for suite in chosen}
    return tuple(
        f"{suite.file}: only {len(selected[suite.file])} of {len(suite.cases)} cases are selected, so files that the "
        "other cases write are missing"
        for suite in suites
        if has_shared_files(suite) and suite.file in selected
        if selected[suite.file] != _add_preceding_cases(suite.cases, selected[suite.file])
    )


def _add_preceding_cases(cases: Sequence[EvalCase], chosen: Collection[EvalCase]) -> tuple[EvalCase, ...]:
    """Add to the chosen cases those before a dependent one: without their files it gives another result."""
    ids = {case.id for case in chosen}
    last = max((at for at, case in enumerate(cases) if case.dependent and case.id in ids), default=-1)
    return tuple(case for at, case in enumerate(cases) if at <= last or case.id in ids)


class _ShardItem(NamedTuple):
    """Unit that is assigned to a shard: one case, or a suite whose cases share files."""

    suite_index: int
    cases: tuple[EvalCase, ...]
    weight: int
    is_suite: bool


def has_shared_files(suite: EvalSuite) -> bool:
    """Whether cases of the suite work on files that earlier ones have left: then it is run as a whole, in its order."""
    return any(case.dependent for case in suite.cases)


def select_shard(suites: Sequence[EvalSuite], shard: Shard, baseline: RunResult | None = None) -> tuple[EvalSuite, ...]:
    """Return the suites with only the cases of one shard, and without the suites that have none.

    Each case is in exactly one shard. `baseline` is a run of all cases whose durations balance the shards; without
    it, every case has the same weight.
    """
    dealt = assign_shards(suites, shard.count, baseline)
    chosen = (
        replace(suite, cases=tuple(case for case in suite.cases if index_of[case.id] == shard.index))
        for suite, index_of in zip(suites, dealt, strict=True)
    )
    return tuple(suite for suite in chosen if suite.cases)


def assign_shards(
    suites: Sequence[EvalSuite], count: int, baseline: RunResult | None = None
) -> tuple[Mapping[str, int], ...]:
    """Assign every case to a shard, and return the numbers (from 1) by case id, for each suite in order."""
    items = sorted(
        _build_items(suites, baseline), key=lambda item: (-item.weight, not item.is_suite)
    )  # stable: else by place
    loads = [(0, index) for index in range(1, count + 1)]  # sorted, so it is a heap already
    dealt: tuple[dict[str, int], ...] = tuple({} for _ in suites)
    for item in items:
        load, index = loads[0]
        heapreplace(loads, (load + item.weight, index))
        dealt[item.suite_index].update((case.id, index) for case in item.cases)
    return dealt


def compute_shard_cut(suites: Sequence[EvalSuite], count: int, baseline: RunResult | None = None) -> ShardPlan:
    """Compute the identity of the way in which these cases are cut into shards.

    Shards with the same cut contain each case once, and together all cases.
    """
    digest = hashlib.sha256(str(count).encode())
    for item in _build_items(suites, baseline):
        digest.update(repr((suites[item.suite_index].file, [case.id for case in item.cases], item.weight)).encode())
    return ShardPlan(
        digest=digest.hexdigest()[:16],
        durations_from=baseline.run_id if _compute_durations(baseline) and baseline else None,
    )


def _build_items(suites: Sequence[EvalSuite], baseline: RunResult | None) -> list[_ShardItem]:
    durations_by_case = _compute_durations(baseline)
    durations = [took for suite in suites for case in suite.cases if (took := durations_by_case.get(case.key))]
    usual = median_low(durations) if durations else MIN_DURATION_US

    items = []
    for at, suite in enumerate(suites):
        weights = [durations_by_case.get(case.key, usual) for case in suite.cases]
        if has_shared_files(suite):
            items.append(_ShardItem(at, suite.cases, sum(weights), is_suite=True))
        else:
            items += [
                _ShardItem(at, (case,), one, is_suite=False) for case, one in zip(suite.cases, weights, strict=True)
            ]
    return items


def _compute_durations(baseline: RunResult | None) -> Mapping[CaseKey, int]:
    """Compute microseconds of an execution by case; a run of some cases has none: every shard would know others."""
    if baseline is None or baseline.eval_paths is None or baseline.shard is not None:
        return {}
    return {
        key: max(round(1000 * sum(times) / len(times)), MIN_DURATION_US)
        for key, case in baseline.iter_cases()
        if (times := [one.duration_ms for one in case.trials or (case,) if one.status.is_scored])
    }
