"""History of each case before a run: the earlier result to compare with, and its history.

Both come from the stored history that ends with the baseline, so that a shard, the whole run and a stored run that is
judged again have the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Final, NamedTuple

from eval_gate.gate.case_matching import find_earlier_keys
from eval_gate.gate.evidence.day_effects import build_run_days, join_rounds
from eval_gate.gate.evidence.flakiness import (
    CaseRun,
    build_case_history,
    can_look_fixed,
    find_breaking_run,
    select_level_runs,
)
from eval_gate.gate.evidence.prior import Prior, learn_prior
from eval_gate.gate.evidence.run_share import (
    MIN_REPEATING_RUNS,
    NO_SHARES,
    ShareBelief,
    discount_rounds,
    learn_run_shares,
)
from eval_gate.gate.evidence.suite.branch_level import MAX_RUNS, count_level_runs
from eval_gate.gate.evidence.suite.score_noise import PooledVariance, ScoreVariance, pool_variances
from eval_gate.gate.pass_score import is_passing_trial
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import PassCount, ScoreHistory
from eval_gate.model.evidence import (
    NO_HISTORY,
    BranchRun,
    CaseHistorySummary,
    Counts,
    ErrorRun,
    PermittedRegression,
    RunReference,
)
from eval_gate.model.execution import Status, Trial
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.baseline import Baseline, is_measured
from eval_gate.results.history import (
    CaseHistory,
    FingerprintMatch,
    HistoryEntry,
    HistoryExecution,
    HistoryRun,
    compute_result_fingerprint,
    match_fingerprints,
    split_executions,
)
from eval_gate.struct import FrozenStruct, replace

_STATUS_LETTERS: Final = {"P": Status.PASSED, "F": Status.FAILED}
_AGENT_ERROR_LETTERS: Final = frozenset("CT")
_HistoryKind = tuple[str, tuple[bool, ...]]
"""Encoded runs of a case and which of its fingerprints match; most cases of a suite share both."""
_NO_RUNS: Final[_HistoryKind] = "", ()


class _ComparableRun(NamedTuple):
    """Comparable run, with its index in the history."""

    place: int
    run_id: str
    sha: str | None


class Responses(NamedTuple):
    """Executions of a case in one run: those up to the first response (or the trials), and re-runs of this response.

    `repeated` are the re-runs among `first`: they repeat an execution that ended in an agent error.
    """

    first: Counts
    reruns: Counts
    repeated: int = 0


class EarlierResult(FrozenStruct):
    """Newest earlier result of a case with the same fingerprint."""

    tally: PassCount
    run: RunReference | None = None

    @property
    def passed(self) -> bool:
        """Whether the case passed in that run."""
        return self.tally.passed


class CaseEvidence(FrozenStruct):
    """History of one case: newest earlier result, summary and scores."""

    newest_result: EarlierResult | None = None
    in_baseline: bool = False
    """Whether the baseline has it, judged or not."""
    unscored_in_baseline: bool = False
    """The case has no score in the baseline."""
    history: CaseHistorySummary = NO_HISTORY
    score_history: ScoreHistory | None = None


NO_CASE_EVIDENCE: Final = CaseEvidence()


class HistoryEvidence:
    """Evidence in the history up to a baseline for all cases, at one pass score. It caches what it computes."""

    def __init__(self, baseline: Baseline, pass_score: float) -> None:
        self._baseline = baseline.result
        self._pass_score = pass_score
        self._history = baseline.own_history
        self._runs, runs = find_comparable_runs(self._history.runs), self._history.runs
        self._comparable_runs = tuple(
            _ComparableRun(place, runs[place].run_id, runs[place].sha) for place in self._runs
        )
        self._summaries: dict[_HistoryKind, CaseHistorySummary] = {}
        self._evidence: dict[Hashable, CaseEvidence] = {}
        self._priors: dict[tuple[frozenset[CaseKey], ShareBelief], Prior] = {}
        self._shares: dict[tuple[frozenset[CaseKey], int], ShareBelief] = {}

    def get_case_evidence(self, current: RunResult) -> Mapping[CaseKey, CaseEvidence]:
        """Return the evidence of every case of this run, including cases that have another name now."""
        baseline, earlier = self._baseline.index_cases(), find_earlier_keys(self._baseline, current)
        return {key: self._get_evidence(earlier.get(key, key), case, baseline) for key, case in current.iter_cases()}

    def find_earlier_results(self, keys: Collection[CaseKey]) -> Mapping[CaseKey, EarlierResult]:
        """Find the newest earlier result of each of these baseline cases with its own fingerprint, if there is one."""
        cases = self._baseline.index_cases()
        found = {key: self._get_evidence(key, cases[key], cases).newest_result for key in keys}
        return {key: result for key, result in found.items() if result is not None}

    @property
    def permitted_regressions(self) -> tuple[PermittedRegression, ...]:
        """The regressions that the baseline has because they were permitted, of cases that the history knows."""
        permitted = self._history.runs[0].permitted_regressions if self._history.runs else ()
        return tuple(one for one in permitted if self._history.get_case(one.key).runs)

    @cached_property
    def level_run_count(self) -> int:
        """Number of newest runs that are at the level of the newest one, over all cases of the branch."""
        runs: list[dict[CaseKey, Counts]] = [{} for _ in self._runs[:MAX_RUNS]]
        for key, kind in self._kinds.items():
            firsts = [(at, one.first) for at, one in self._list_case_runs(*kind) if at < len(runs)]
            if any(one.passes for _, one in firsts) and any(one.failures for _, one in firsts):
                for at, one in firsts:  # a case that did the same every time shows no change
                    runs[at][key] = one.without_agent_errors
        return count_level_runs(runs)

    def learn_prior(self, quarantined: Collection[CaseKey] = (), shares: ShareBelief = NO_SHARES) -> Prior:
        """Learn the prior from the histories of the branch's own cases, without the quarantined ones."""
        key = frozenset(quarantined), shares
        if key not in self._priors:
            learned = learn_prior(self.count_histories(key[0]), shares.history_worth)
            self._priors[key] = replace(learned, shares=shares.shares)
        return self._priors[key]

    def learn_run_shares(self, quarantined: Collection[CaseKey] = (), wait: int = 0) -> ShareBelief:
        """Learn how much executions of one run belong together if re-runs wait for `wait` seconds."""
        key = frozenset(quarantined), wait
        if key not in self._shares:
            learned = NO_SHARES
            if self._count_repeating_runs(quarantined) >= MIN_REPEATING_RUNS:
                learned = learn_run_shares(
                    self._list_settled_runs(quarantined),
                    self.learn_prior(quarantined),
                    self._build_run_figures(quarantined),
                    [self._history.runs[place].rerun_wait for place in self._runs],
                    wait,
                )
                learned = discount_rounds(learned, self._groups[: self.level_run_count])
            self._shares[key] = learned
        return self._shares[key]

    def build_run_days(
        self, quarantined: Collection[CaseKey] = (), shares: ShareBelief = NO_SHARES
    ) -> tuple[BranchRun, ...]:
        """Build the figures of each day of the current level, newest first, of the branch's own gated cases."""
        return join_rounds(self._groups, self._build_run_figures(quarantined, shares))

    def _build_run_figures(
        self, quarantined: Collection[CaseKey], shares: ShareBelief = NO_SHARES
    ) -> tuple[BranchRun, ...]:
        runs = min(self.level_run_count, MAX_RUNS)
        return build_run_days(self._list_settled_runs(quarantined), runs, shares.trial_share)

    def _count_repeating_runs(self, quarantined: Collection[CaseKey]) -> int:
        """Count the runs in which a case failed more than once, or these cases if fewer: a break shows in few."""
        repeated = [
            ({self._groups[at] for at, one in runs if one.all.failures > 1}, number)
            for runs, number in self._list_settled_runs(quarantined)
        ]
        return min(len(set[str]().union(*(runs for runs, _ in repeated))), sum(one for runs, one in repeated if runs))

    @cached_property
    def _groups(self) -> list[str]:
        """The run that each comparable run was made with, which is another one for warm-up rounds."""
        return [self._history.runs[place].group for place in self._runs]

    def _list_settled_runs(self, quarantined: Collection[CaseKey]) -> list[tuple[Sequence[tuple[int, CaseRun]], int]]:
        """List the runs of each kind of case since the branch last broke or fixed it, and the number of cases."""
        at_level = self._list_level_runs(quarantined)
        return [(select_level_runs(one, self._fixed_looking_cases), number) for one, number in at_level]

    def count_error_runs(self, quarantined: Collection[CaseKey] = ()) -> tuple[ErrorRun, ...]:
        """Count the agent errors among the first executions of each comparable run, newest first."""
        errors, executions = Counter[str](), Counter[str]()
        groups = {place: self._history.runs[place].group for place in self._runs}
        kinds = Counter(self._history.get_case(key).runs for key in self._history.iter_keys() if key not in quarantined)
        for runs, number in kinds.items():
            for place, entry in enumerate(CaseHistory(runs=runs).decode_entries_unchecked()):
                if entry is not None and place in groups:
                    counts = count_executions(entry.first, self._pass_score)
                    errors[groups[place]] += number * counts.agent_errors
                    executions[groups[place]] += number * counts.attempts
        return tuple(
            ErrorRun(errors=errors[group], executions=executions[group])
            for group in list(dict.fromkeys(groups.values()))[:MAX_RUNS]
            if executions[group]
        )

    @cached_property
    def _fixed_looking_cases(self) -> int:
        """Number of the branch's own cases that could look fixed by chance."""
        return sum(number for runs, number in self._list_level_runs() if can_look_fixed(one for _, one in runs))

    def _list_level_runs(self, quarantined: Collection[CaseKey] = ()) -> list[tuple[list[tuple[int, CaseRun]], int]]:
        """List the level's runs with their places, newest first, and the number of cases, for each kind of case."""
        return [
            ([one for one in self._list_case_runs(*kind) if one[0] < self.level_run_count], number)
            for kind, number in self._count_kinds(quarantined).items()
        ]

    def count_histories(self, quarantined: Collection[CaseKey] = ()) -> Counter[tuple[int, int]]:
        """Count the branch's own cases by their passes and failures in the history."""
        found = Counter[tuple[int, int]]()
        for kind, number in self._count_kinds(quarantined).items():
            counts = self._get_summary(kind).counts
            found[counts.passes, counts.failures] += number
        return found

    def _count_kinds(self, quarantined: Collection[CaseKey]) -> Counter[_HistoryKind]:
        """Count the branch's own cases of each kind, without quarantined ones."""
        return Counter(
            self._kinds.get(key, _NO_RUNS) for key, _ in self._baseline.iter_cases() if key not in quarantined
        )

    @cached_property
    def _kinds(self) -> Mapping[CaseKey, _HistoryKind]:
        """Kind of each case by its newest fingerprint."""
        cases = ((key, self._history.get_case(key)) for key in self._history.iter_keys())
        return {key: (known.runs, _find_newest_matches(known, self._runs)) for key, known in cases}

    def _get_evidence(self, key: CaseKey, current: CaseResult, baseline: Mapping[CaseKey, CaseResult]) -> CaseEvidence:
        """Build the evidence once for all cases that differ only in their names, as most cases of a suite do."""
        known, before = self._history.get_case(key), baseline.get(key)
        fingerprint = compute_result_fingerprint(current)
        matches = tuple([match_fingerprints(one, fingerprint) for one in known.fingerprints])
        unknown = CaseEvidence(
            in_baseline=before is not None, unscored_in_baseline=before is not None and before.status is Status.ERROR
        )
        kind = known.runs, matches, _compare_own_fingerprints(known.fingerprints), current.graded, unknown
        if kind not in self._evidence:
            self._evidence[kind] = self._build_evidence(known, matches, unknown, graded=current.graded)
        return self._evidence[kind]

    def _build_evidence(
        self, known: CaseHistory, matches: Sequence[FingerprintMatch], unknown: CaseEvidence, *, graded: bool
    ) -> CaseEvidence:
        """Build the evidence of a case; it is `unknown` if no run scored it with the same fingerprint."""
        newest = self._find_newest_scored(known, matches)
        if newest is None:
            return unknown
        at, entry = newest
        fingerprint, is_same = known.fingerprints[entry.fingerprint_index], matches[entry.fingerprint_index].same_setup
        run = None if at == 0 else self._history.runs[self._runs[at]].name
        return replace(
            unknown,
            newest_result=_build_earlier_result(entry, run, self._pass_score, graded=graded),
            unscored_in_baseline=unknown.unscored_in_baseline and is_measured(self._baseline),
            history=self._get_summary((known.runs, _find_matches(known, fingerprint))),
            score_history=self._build_score_history(known, fingerprint, same=is_same) if graded else None,
        )

    def _find_newest_scored(
        self, case_history: CaseHistory, matches: Sequence[FingerprintMatch]
    ) -> tuple[int, HistoryEntry] | None:
        """Find place and entry of the newest run that scored a case; runs with the same setup fingerprint go first."""
        scored = [
            (at, entry)
            for at, entry in self._list_entries(case_history)
            if any(one.letter in _STATUS_LETTERS for one in (*entry.first, *entry.reruns))
        ]
        same_setup = (one for one in scored if matches[one[1].fingerprint_index].same_setup)
        same_case = (one for one in scored if matches[one[1].fingerprint_index].same_case)
        return next(same_setup, None) or next(same_case, None)

    def _list_entries(self, case_history: CaseHistory) -> list[tuple[int, HistoryEntry]]:
        entries = case_history.decode_entries()
        return [
            (at, entry)
            for at, place in enumerate(self._runs)
            if place < len(entries) and (entry := entries[place]) is not None
        ]

    def _get_summary(self, kind: _HistoryKind) -> CaseHistorySummary:
        if kind not in self._summaries:
            runs = self._list_case_runs(*kind)
            at_level = [one for at, one in runs if at < self.level_run_count]
            summary = build_case_history(at_level, self._fixed_looking_cases)
            # where the whole branch broke, the runs that say so are those of the level before
            self._summaries[kind] = replace(summary, broken_since=find_breaking_run([one for _, one in runs]))
        return self._summaries[kind]

    def _list_case_runs(self, runs: str, fits: tuple[bool, ...]) -> list[tuple[int, CaseRun]]:
        """List what the comparable runs saw of a case, by place; only fingerprints marked in `fits` count."""
        return _build_case_runs(runs, fits, self._comparable_runs, self._pass_score)

    def _build_score_history(self, case_history: CaseHistory, fingerprint: str, *, same: bool) -> ScoreHistory | None:
        """Build a case's score history, with scores by run only if this run has the `same` setup fingerprint."""
        matches = _find_matches(case_history, fingerprint)
        scores = {
            at: score
            for at, entry in self._list_entries(case_history)
            if at < self.level_run_count
            and matches[entry.fingerprint_index]
            and (score := _compute_mean_score(entry.first)) is not None
        }
        if not scores:
            return None
        spread, free = self._pooled_variance.estimate_spread(_compute_variance(tuple(scores.values())))
        by_run = tuple(scores.get(at) for at in range(max(scores) + 1)) if same else ()
        return ScoreHistory(
            runs=len(scores), mean=fmean(scores.values()), spread=spread, degrees_of_freedom=free, by_run=by_run
        )

    @cached_property
    def _pooled_variance(self) -> PooledVariance:
        """How much the score of one case varies from run to run, over all graded cases."""
        varied = []
        for key in self._history.iter_keys():
            known = self._history.get_case(key)
            entries = [entry for at, entry in self._list_entries(known) if at < self.level_run_count]
            scores = [
                score
                for entry in entries
                if entry.fingerprint_index == entries[0].fingerprint_index
                and (score := _compute_mean_score(entry.first)) is not None
            ]
            varied.append(_compute_variance(scores))
        return pool_variances(varied)


def _compare_own_fingerprints(fingerprints: Sequence[str]) -> tuple[tuple[FingerprintMatch, ...], ...]:
    """Compare the fingerprints of a case with each other: besides the one of this run, a history needs no more."""
    if len(fingerprints) <= 1:
        return ()
    return tuple(tuple(match_fingerprints(one, other) for other in fingerprints) for one in fingerprints)


def _find_matches(case_history: CaseHistory, fingerprint: str) -> tuple[bool, ...]:
    """Mark the fingerprints of a case that have the same setup as this one."""
    return tuple(match_fingerprints(one, fingerprint).same_setup for one in case_history.fingerprints)


def _find_newest_matches(case_history: CaseHistory, runs: Sequence[int]) -> tuple[bool, ...]:
    """Mark the fingerprints of a case that have the same setup as its newest run among these."""
    entries = case_history.decode_entries()
    newest = next((entry for place in runs if place < len(entries) and (entry := entries[place]) is not None), None)
    if newest is None:
        return (False,) * len(case_history.fingerprints)
    return _find_matches(case_history, case_history.fingerprints[newest.fingerprint_index])


def find_comparable_runs(runs: Sequence[HistoryRun]) -> tuple[int, ...]:
    """Return the places of the comparable runs: the baseline, and usable earlier runs of the same target."""
    return tuple(
        place for place, run in enumerate(runs) if place == 0 or (run.is_usable and run.target == runs[0].target)
    )


@lru_cache(maxsize=20_000)
def _build_case_runs(
    runs: str, fits: tuple[bool, ...], names: tuple[_ComparableRun, ...], pass_score: float
) -> list[tuple[int, CaseRun]]:
    """Build the runs of a case, cached because most cases of a suite have the same history to the letter."""
    entries = CaseHistory(runs=runs).decode_entries_unchecked()
    found = []
    for at, run in enumerate(names):
        entry = entries[run.place] if run.place < len(entries) else None
        if entry is not None and fits[entry.fingerprint_index]:
            counts = count_responses(entry.first, entry.reruns, pass_score)
            if counts.first.executions:
                found.append((at, CaseRun(run.run_id, counts.first, counts.reruns, run.sha)))
    return found


@lru_cache(maxsize=20_000)
def count_executions(executions: tuple[HistoryExecution, ...], pass_score: float) -> Counts:
    """Count passes, failures and agent errors; executions that say nothing about the target are left out."""
    passed = sum(_is_passing(one, pass_score) for one in executions)
    answered = sum(one.letter in _STATUS_LETTERS for one in executions)
    crashes = sum(one.letter in _AGENT_ERROR_LETTERS for one in executions)
    return Counts(passes=passed, failures=answered - passed, agent_errors=crashes)


@lru_cache(maxsize=20_000)
def count_responses(
    first: tuple[HistoryExecution, ...], reruns: tuple[HistoryExecution, ...], pass_score: float
) -> Responses:
    """Count the responses to a case in one run. If no first execution has one, the first response of a re-run counts.

    Whether an execution ends in an agent error says nothing about its response, so this one is a sample like any other.
    """
    counts = count_executions(first, pass_score)
    if counts.executions or not counts.agent_errors:
        return Responses(counts, count_executions(reruns, pass_score))
    answered = next((at for at, one in enumerate(reruns, start=1) if one.letter in _STATUS_LETTERS), len(reruns))
    counts = count_executions((*first, *reruns[:answered]), pass_score)
    return Responses(counts, count_executions(reruns[answered:], pass_score), answered)


def has_only_timeouts(trials: Sequence[Trial]) -> bool:
    """Whether there are executions, and all of them timed out."""
    return bool(trials) and all(trial.timed_out for trial in trials)


def count_case_responses(case: CaseResult, pass_score: float) -> Responses:
    """Count the responses and agent errors of a case of this run."""
    return count_responses(*split_executions(case), pass_score)


def compute_first_score(case: CaseResult) -> float | None:
    """Return the score of a case's first execution, or the mean score of its trials; None without a score."""
    return _compute_mean_score(split_executions(case)[0])


def _is_passing(one: HistoryExecution, pass_score: float) -> bool:
    status = _STATUS_LETTERS.get(one.letter)
    if status is None:
        return False
    graded = one.score is not None
    return is_passing_trial(Trial(status=status, score=one.score or 0.0, duration_ms=0.0), pass_score, graded=graded)


def _build_earlier_result(
    entry: HistoryEntry, run: RunReference | None, pass_score: float, *, graded: bool
) -> EarlierResult:
    answered = [one for one in (*entry.first, *entry.reruns) if one.letter in _STATUS_LETTERS]
    passed = sum(_is_passing(one, pass_score) for one in answered)
    known = [one.score for one in answered if one.score is not None]
    score = fmean(known) if graded and known else passed / len(answered)
    return EarlierResult(PassCount(passes=passed, executions=len(answered), score=score), run)


def _compute_variance(scores: Sequence[float]) -> ScoreVariance:
    if len(scores) < 2:
        return ScoreVariance(0.0, 0)
    mean = fmean(scores)
    return ScoreVariance(math.fsum((score - mean) ** 2 for score in scores), len(scores) - 1)


def _compute_mean_score(executions: Iterable[HistoryExecution]) -> float | None:
    scores = [one.score for one in executions if one.score is not None]
    return fmean(scores) if scores else None
