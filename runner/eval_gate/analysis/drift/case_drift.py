"""Drift of single cases: cases that stopped passing, and cases that fail more often."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import comb
from typing import Final

from eval_gate.analysis.drift.detector import MAX_RUNS_SINCE, MIN_RUNS_BEFORE
from eval_gate.gate.evidence.case_history import count_executions
from eval_gate.model.case import CaseKey
from eval_gate.model.evidence import NO_EXECUTIONS, Counts
from eval_gate.results.history import CaseHistory, History, HistoryEntry, HistoryRun
from eval_gate.struct import FrozenStruct

MAX_NAMED: Final = 20
MAX_CHANCE: Final = 0.05
"""Largest chance of a listed case's failures without a change. The list is a hint, not an alarm."""
MIN_RATE: Final = 0.02
"""Lowest assumed failure rate: as for the verdict, a suite that never failed is not taken for perfect."""
UNKNOWN_SHARE: Final = 0.1
"""Weight of the assumption that a case resembles no other: every rate is then equally likely."""
STEPS: Final = 20
BROKEN_RATE: Final = 0.95
"""Failure rate of a broken case."""
RUNS_TO_RECOVER: Final = 2
"""Newest good runs after which a level or a case has recovered."""

_CaseRuns = Sequence[tuple[int, HistoryEntry]]
"""A case's runs with the fingerprint of its newest, newest first, each with its index in `History.runs`."""


class CaseDegradation(FrozenStruct):
    """A degraded case, with its counts before and since the change.

    A run failed when at least half of its executions did, re-runs among them.
    """

    key: CaseKey
    counts_before: Counts
    counts_since: Counts
    last_good: HistoryRun
    """The newest run before the change."""
    first_bad: HistoryRun
    """The first run since the change."""

    @property
    def name(self) -> str:
        """A name that stays the same as more runs are added."""
        digest = hashlib.sha256(f"{self.key.suite}\0{self.key.case_id}".encode("utf-8", "replace")).hexdigest()
        return f"{digest[:12]}@{self.first_bad.run_id}"


def find_broken_cases(history: History, limit: float, pass_score: float = 1.0) -> tuple[CaseDegradation, ...]:
    """Find the cases that used to pass and have failed since some run.

    A case is listed when the evidence for this reaches `limit` times the number of cases. The evidence compares two
    explanations. Without a change, the case fails as often as the other cases whose history resembles its own (with
    the failure rates counted there), or, with a smaller weight, at any rate. Otherwise it has been broken since
    some run. The likelihood ratios are summed over all runs in which the case may have broken, and the sum is
    compared with the limit, as for levels.
    """
    rows = {key: row for key in history.iter_keys() if (row := select_case_runs(history, history.get_case(key)))}
    failed = {key: tuple(_is_failed(entry, pass_score) for _, entry in row) for key, row in rows.items()}
    rates = Counter(map(_compute_rate, failed.values()))
    beliefs: dict[float, Mapping[float, float]] = {}
    broken = []
    for key, results in failed.items():
        if not any(results[:RUNS_TO_RECOVER]):
            continue
        own = _compute_rate(results)
        if own not in beliefs:
            beliefs[own] = _build_rate_prior(rates - Counter([own]))  # from the other cases only
        total, length = _compute_evidence(results, beliefs[own])
        if total >= limit * len(failed):
            row = rows[key]
            broken.append(_build_degradation(history, key, row, length, results))
    return tuple(sorted(broken, key=lambda one: (one.counts_since.executions, one.key))[:MAX_NAMED])


def find_degraded_cases(history: History, run_id: str, pass_score: float = 1.0) -> tuple[CaseDegradation, ...]:
    """Find the cases that fail more often since the run `run_id`, the clearest first.

    Return an empty tuple if the history no longer has that run.
    """
    start = next((at for at, run in enumerate(history.runs) if run.run_id == run_id), None)
    if start is None:
        return ()
    degraded = []
    for key in history.iter_keys():
        row = select_case_runs(history, history.get_case(key))
        results = tuple(_is_failed(entry, pass_score) for _, entry in row)
        length = sum(at <= start for at, _ in row)
        if 0 < length < len(row) and any(results[:length]):
            chance = _compute_chance(results, length)
            if chance <= MAX_CHANCE:
                degraded.append((chance, key, _build_degradation(history, key, row, length, results)))
    return tuple(one for *_, one in sorted(degraded, key=lambda one: one[:2])[:MAX_NAMED])


def select_case_runs(history: History, case_history: CaseHistory) -> _CaseRuns:
    """Select the runs of a case; none if the newest that did not reuse the case does not have it, or no score of it."""
    entries, reused = case_history.decode_entries(), case_history.reused_places
    newest = next((entry for place, entry in enumerate(entries) if place not in reused), None)
    if newest is None:
        return ()
    target = history.runs[0].target
    return [
        (at, entry)
        for at, (entry, run) in enumerate(zip(entries, history.runs, strict=False))
        if entry is not None
        and entry.fingerprint_index == newest.fingerprint_index
        and (at == 0 or (run.is_usable and run.target == target))
        and any(one.letter in "PFCT" for one in entry.first)
    ]


@lru_cache(maxsize=10_000)
def _is_failed(entry: HistoryEntry, pass_score: float) -> bool:
    return count_executions((*entry.first, *entry.reruns), pass_score).is_failing


def _compute_rate(results: tuple[bool, ...]) -> float:
    return max(sum(results) / len(results), MIN_RATE)


def _build_rate_prior(rates: Counter[float]) -> Mapping[float, float]:
    """Weigh the failure rates of the other cases, and every rate a little."""
    number = rates.total() or 1
    shares = {rate: (1 - UNKNOWN_SHARE) * many / number for rate, many in rates.items()} or {
        MIN_RATE: 1 - UNKNOWN_SHARE
    }
    for step in range(STEPS):
        rate = (step + 0.5) / STEPS
        shares[rate] = shares.get(rate, 0.0) + UNKNOWN_SHARE / STEPS
    return shares


def _compute_evidence(results: tuple[bool, ...], beliefs: Mapping[float, float]) -> tuple[float, int]:
    """Sum the likelihood ratios that a case is broken, and return for how many newest runs it most likely is."""
    total, best, length = 0.0, 0.0, 0
    number = len(results)
    for since in range(1, min(MAX_RUNS_SINCE, number - MIN_RUNS_BEFORE) + 1):
        failed, failed_before = sum(results[:since]), sum(results[since:])
        broken = BROKEN_RATE**failed * (1 - BROKEN_RATE) ** (since - failed)
        runs_before = number - since
        likely = [
            (share * rate**failed_before * (1 - rate) ** (runs_before - failed_before), rate)
            for rate, share in beliefs.items()
            if rate < 1.0 or failed_before == runs_before
        ]
        weight = math.fsum(one for one, _ in likely)
        as_ever = math.fsum(one * rate**failed * (1 - rate) ** (since - failed) for one, rate in likely) / weight
        ratio = broken / as_ever
        total += ratio
        if ratio > best:
            best, length = ratio, since
    return total, length


def _build_degradation(
    history: History, key: CaseKey, row: _CaseRuns, length: int, results: tuple[bool, ...]
) -> CaseDegradation:
    return CaseDegradation(
        key,
        counts_before=_count_runs(results[length:]),
        counts_since=_count_runs(results[:length]),
        last_good=history.runs[row[length][0]],
        first_bad=history.runs[row[length - 1][0]],
    )


def _count_runs(results: Sequence[bool]) -> Counts:
    return NO_EXECUTIONS.add(Counts(passes=len(results) - sum(results), failures=sum(results)))


def _compute_chance(results: tuple[bool, ...], length: int) -> float:
    """Compute the chance of at least as many failures in the `length` newest runs (Fisher's exact test)."""
    runs, failures, recent = len(results), sum(results), sum(results[:length])
    ways = sum(comb(length, k) * comb(runs - length, failures - k) for k in range(recent, min(failures, length) + 1))
    return ways / comb(runs, failures)
