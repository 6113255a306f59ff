"""History of each case before a run: the earlier result to compare with, and its history.

Both come from the stored history that ends with the baseline, so that a shard, the whole run and a stored run that is
judged again have the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from statistics import fmean, median_low
from typing import Final, NamedTuple

from eval_gate.gate.case_matching import GateCases
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
from eval_gate.model.case import CaseKey, PassRule, decide_pass
from eval_gate.model.comparison import PassCount, ScoreHistory
from eval_gate.model.evidence import (
    NO_HISTORY,
    BranchRun,
    CaseHistorySummary,
    Counts,
    ErrorRun,
    PermittedRegression,
    RunReference,
    UnscoredCase,
)
from eval_gate.model.execution import Status, Trial
from eval_gate.model.result import CaseResult
from eval_gate.results.baseline import Baseline, has_enough_scores
from eval_gate.results.history import (
    CaseHistory,
    FingerprintMatch,
    History,
    HistoryEntry,
    HistoryExecution,
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
    """Evidence in the history up to a baseline for all cases, at one pass score. It caches what it computes.

    Nothing is learned from the `quarantined` cases of the baseline. Re-runs of the run wait for `rerun_wait` seconds.
    """

    def __init__(
        self, baseline: Baseline, pass_score: float, quarantined: Collection[CaseKey] = (), rerun_wait: int = 0
    ) -> None:
        self._baseline = baseline.result
        self._pass_score = pass_score
        self._quarantined, self._rerun_wait = frozenset(quarantined), rerun_wait
        self._history = baseline.own_history
        runs = self._history.runs
        self._runs = tuple(
            _ComparableRun(place, runs[place].run_id, runs[place].sha) for place in find_comparable_runs(self._history)
        )
        self._columns: dict[str, tuple[int, ...]] = {}
        self._summaries: dict[_HistoryKind, CaseHistorySummary] = {}
        self._evidence: dict[Hashable, CaseEvidence] = {}

    def get_case_evidence(self, cases: GateCases) -> Mapping[CaseKey, CaseEvidence]:
        """Return the evidence of every case of a run, including cases that have another name now."""
        return {
            key: self._get_evidence(cases.get_earlier_key(key), case, cases.baseline_cases)
            for key, case in cases.current_cases.items()
        }

    @property
    def unscored_in_baseline(self) -> tuple[UnscoredCase, ...]:
        """The cases without a score in the baseline, with their newest earlier result if there is one."""
        cases = self._baseline.index_cases()
        lost = {key: case for key, case in cases.items() if not case.status.is_scored}
        results = ((key, self._get_evidence(key, case, cases).newest_result) for key, case in lost.items())
        return tuple(
            UnscoredCase(
                suite=key.suite,
                case_id=key.case_id,
                passes=one.tally.passes,
                executions=one.tally.executions,
                score=one.tally.score,
                run=one.run,
            )
            for key, one in results
            if one is not None
        )

    @property
    def permitted_regressions(self) -> tuple[PermittedRegression, ...]:
        """The regressions that the baseline has because they were permitted, of cases that the history knows."""
        permitted = self._history.runs[0].permitted_regressions if self._history.runs else ()
        return tuple(one for one in permitted if self._history.get_case(one.key).runs)

    @cached_property
    def level_run_count(self) -> int:
        """Number of newest runs that are at the level of the newest one, over all cases of the branch."""
        columns = [own for case_runs, _ in self._kinds.values() if (own := self._list_columns(case_runs))]
        number = max((own[-1] + 1 for own in columns), default=len(self._runs[:MAX_RUNS]))
        runs: list[dict[CaseKey, Counts]] = [{} for _ in range(number)]
        for key, kind in self._kinds.items():
            own = self._list_columns(kind[0])
            firsts = [(at, one.first) for at, one in self._list_case_runs(*kind) if at in own]
            if any(one.passes for _, one in firsts) and any(one.failures for _, one in firsts):
                for at, one in firsts:  # a case that did the same every time shows no change
                    runs[at][key] = one.without_agent_errors
        return count_level_runs(runs)

    @property
    def typical_run_count(self) -> int:
        """Number of runs of the level that executed a case of the branch and count for it; the median of its cases."""
        columns = (self._list_columns(runs) for runs, _ in self._own_kinds.elements())
        counts = [sum(at < self.level_run_count for at in own) for own in columns]
        return median_low(counts or [self.level_run_count])

    @cached_property
    def histories(self) -> Counter[tuple[int, int]]:
        """How many of the branch's own cases have these passes and failures in the history."""
        numbers = Counter[tuple[int, int]]()
        for kind, number in self._own_kinds.items():
            counts = self._get_summary(kind).counts
            numbers[counts.passes, counts.failures] += number
        return numbers

    @cached_property
    def prior(self) -> Prior:
        """The prior, learned from the histories of the branch's own cases."""
        return replace(learn_prior(self.histories, self.run_shares.history_worth), shares=self.run_shares.shares)

    @cached_property
    def run_shares(self) -> ShareBelief:
        """How much executions of one run belong together."""
        if self._count_repeating_runs() < MIN_REPEATING_RUNS:
            return NO_SHARES
        waits = [self._history.runs[one.place].rerun_wait for one in self._runs]
        figures = self._build_run_figures(NO_SHARES)
        learned = learn_run_shares(self._settled_runs, learn_prior(self.histories), figures, waits, self._rerun_wait)
        return discount_rounds(learned, self._groups[: self.level_run_count])

    @property
    def run_days(self) -> tuple[BranchRun, ...]:
        """The figures of each day of the current level, newest first, of the branch's own gated cases."""
        return join_rounds(self._groups, self._build_run_figures(self.run_shares))[:MAX_RUNS]

    def _build_run_figures(self, shares: ShareBelief) -> tuple[BranchRun, ...]:
        return build_run_days(self._settled_runs, self.level_run_count, shares.trial_share)

    def _count_repeating_runs(self) -> int:
        """Count the runs in which a case failed more than once, or these cases if fewer: a break shows in few."""
        repeated = [
            ({self._groups[at] for at, one in runs if one.all.failures > 1}, number)
            for runs, number in self._settled_runs
        ]
        return min(len(set[str]().union(*(runs for runs, _ in repeated))), sum(one for runs, one in repeated if runs))

    @cached_property
    def _groups(self) -> list[str]:
        """The run that each comparable run was made with, which is another one for warm-up rounds."""
        return [self._history.runs[one.place].group for one in self._runs]

    @cached_property
    def _settled_runs(self) -> list[tuple[Sequence[tuple[int, CaseRun]], int]]:
        """The runs of each kind of case since the branch last broke or fixed it, and the number of cases."""
        at_level = ((self._list_level_runs(kind), number) for kind, number in self._own_kinds.items())
        return [(select_level_runs(runs, self._fixed_looking_cases), number) for runs, number in at_level]

    @property
    def error_runs(self) -> tuple[ErrorRun, ...]:
        """The agent errors among the first executions of each comparable run, newest first."""
        errors, executions = Counter[str](), Counter[str]()
        groups = {run.place: group for run, group in zip(self._runs, self._groups, strict=True)}
        keys = (key for key in self._history.iter_keys() if key not in self._quarantined)
        for runs, number in Counter(self._history.get_case(key).runs for key in keys).items():
            for place, entry in enumerate(CaseHistory(runs=runs).decode_entries_unchecked()):
                if entry is not None and place in groups:
                    counts = count_executions(entry.first, self._pass_score)
                    errors[groups[place]] += number * counts.agent_errors
                    executions[groups[place]] += number * counts.attempts
        return tuple(
            ErrorRun(errors=errors[group], executions=executions[group])
            for group in list(dict.fromkeys(self._groups))[:MAX_RUNS]
            if executions[group]
        )

    @cached_property
    def _fixed_looking_cases(self) -> int:
        """Number of the branch's own cases, quarantined ones included, that could look fixed by chance."""
        kinds = Counter(self._kinds.get(key, _NO_RUNS) for key, _ in self._baseline.iter_cases())
        levels = ((self._list_level_runs(kind), number) for kind, number in kinds.items())
        return sum(number for runs, number in levels if can_look_fixed(one for _, one in runs))

    def _list_level_runs(self, kind: _HistoryKind) -> list[tuple[int, CaseRun]]:
        """List the level's runs of a kind of case that count, with their places, newest first."""
        own = self._list_columns(kind[0])
        return [one for one in self._list_case_runs(*kind) if one[0] in own and one[0] < self.level_run_count]

    def _list_columns(self, runs: str) -> tuple[int, ...]:
        """List which comparable runs count for cases with these runs: the newest ones that did not reuse them."""
        if runs not in self._columns:
            reused = CaseHistory(runs=runs).reused_places
            own = [at for at, run in enumerate(self._runs) if run.place not in reused]
            self._columns[runs] = tuple(own[:MAX_RUNS])
        return self._columns[runs]

    @cached_property
    def _own_kinds(self) -> Counter[_HistoryKind]:
        """Number of the branch's own cases of each kind, without quarantined ones."""
        keys = (key for key, _ in self._baseline.iter_cases() if key not in self._quarantined)
        return Counter(self._kinds.get(key, _NO_RUNS) for key in keys)

    @cached_property
    def _kinds(self) -> Mapping[CaseKey, _HistoryKind]:
        """Kind of each case by its newest fingerprint."""
        cases = ((key, self._history.get_case(key)) for key in self._history.iter_keys())
        return {key: (history.runs, self._find_newest_matches(history)) for key, history in cases}

    def _get_evidence(self, key: CaseKey, current: CaseResult, baseline: Mapping[CaseKey, CaseResult]) -> CaseEvidence:
        """Build the evidence once for all cases that differ only in their names, as most cases of a suite do."""
        history, old = self._history.get_case(key), baseline.get(key)
        fingerprint = compute_result_fingerprint(current)
        matches = tuple([match_fingerprints(one, fingerprint) for one in history.fingerprints])
        unknown = CaseEvidence(
            in_baseline=old is not None, unscored_in_baseline=old is not None and old.status is Status.ERROR
        )
        graded, rule = current.graded, current.pass_rule
        kind = history.runs, matches, _compare_own_fingerprints(history.fingerprints), graded, rule, unknown
        if kind not in self._evidence:
            self._evidence[kind] = self._build_evidence(history, matches, unknown, rule, graded=graded)
        return self._evidence[kind]

    def _build_evidence(
        self,
        history: CaseHistory,
        matches: Sequence[FingerprintMatch],
        unknown: CaseEvidence,
        rule: PassRule | None,
        *,
        graded: bool,
    ) -> CaseEvidence:
        """Build the evidence of a case; it is `unknown` if no run scored it with the same fingerprint.

        Whether the case passed earlier is decided by its present `rule`, so that another rule is no other result.
        """
        newest = self._find_newest_scored(history, matches)
        if newest is None:
            return unknown
        at, entry = newest
        index = entry.fingerprint_index
        fingerprint, is_same = history.fingerprints[index], matches[index].same_setup
        is_newest = at == self._list_columns(history.runs)[0]  # the baseline's own result, reused or not
        run = None if is_newest else self._history.runs[self._runs[at].place].name
        return replace(
            unknown,
            newest_result=_build_earlier_result(entry, run, self._pass_score, rule, graded=graded),
            unscored_in_baseline=unknown.unscored_in_baseline and has_enough_scores(self._baseline),
            history=self._get_summary((history.runs, _find_matches(history, fingerprint))),
            score_history=self._build_score_history(history, fingerprint, same=is_same) if graded else None,
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
            for at, run in enumerate(self._runs)
            if run.place < len(entries) and (entry := entries[run.place]) is not None
        ]

    def _list_level_entries(self, case_history: CaseHistory) -> list[tuple[int, HistoryEntry]]:
        own = self._list_columns(case_history.runs)
        return [one for one in self._list_entries(case_history) if one[0] in own and one[0] < self.level_run_count]

    def _find_newest_matches(self, case_history: CaseHistory) -> tuple[bool, ...]:
        """Mark the fingerprints of a case that have the same setup as its newest comparable run."""
        newest = next((entry for _, entry in self._list_entries(case_history)), None)
        if newest is None:
            return (False,) * len(case_history.fingerprints)
        return _find_matches(case_history, case_history.fingerprints[newest.fingerprint_index])

    def _get_summary(self, kind: _HistoryKind) -> CaseHistorySummary:
        if kind not in self._summaries:
            runs, at_level = self._list_case_runs(*kind), self._list_level_runs(kind)
            summary = build_case_history([one for _, one in at_level], self._fixed_looking_cases)
            # where the whole branch broke, the runs that say so are those of the level before
            self._summaries[kind] = replace(summary, broken_since=find_breaking_run([one for _, one in runs]))
        return self._summaries[kind]

    def _list_case_runs(self, runs: str, fits: tuple[bool, ...]) -> list[tuple[int, CaseRun]]:
        """List what the comparable runs saw of a case, by place; only fingerprints marked in `fits` count."""
        return _build_case_runs(runs, fits, self._runs, self._pass_score)

    def _build_score_history(self, case_history: CaseHistory, fingerprint: str, *, same: bool) -> ScoreHistory | None:
        """Build a case's score history, with scores by run only if this run has the `same` setup fingerprint."""
        matches = _find_matches(case_history, fingerprint)
        scores = {
            at: score
            for at, entry in self._list_level_entries(case_history)
            if matches[entry.fingerprint_index] and (score := _compute_mean_score(entry.first)) is not None
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
            history = self._history.get_case(key)
            entries = [entry for _, entry in self._list_level_entries(history)]
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


def find_comparable_runs(history: History) -> tuple[int, ...]:
    """Return the places of the comparable runs: the baseline, and usable earlier runs of the same target.

    Runs that only reused results are left out.
    """
    runs, reused = history.runs, history.reused_places
    return tuple(
        place
        for place, run in enumerate(runs)
        if place not in reused and (place == 0 or (run.is_usable and run.target == runs[0].target))
    )


@lru_cache(maxsize=20_000)
def _build_case_runs(
    runs: str, fits: tuple[bool, ...], names: tuple[_ComparableRun, ...], pass_score: float
) -> list[tuple[int, CaseRun]]:
    """Build the runs of a case, cached because most cases of a suite have the same history to the letter."""
    entries = CaseHistory(runs=runs).decode_entries_unchecked()
    case_runs = []
    for at, run in enumerate(names):
        entry = entries[run.place] if run.place < len(entries) else None
        if entry is not None and fits[entry.fingerprint_index]:
            counts = count_responses(entry.first, entry.reruns, pass_score)
            if counts.first.executions:
                case_runs.append((at, CaseRun(run.run_id, counts.first, counts.reruns, run.sha)))
    return case_runs


@lru_cache(maxsize=20_000)
def count_executions(executions: tuple[HistoryExecution, ...], pass_score: float) -> Counts:
    """Count passes, failures and agent errors; executions that say nothing about the target are left out."""
    passed = sum(_is_passing(one, pass_score) for one in executions)
    scored = sum(one.letter in _STATUS_LETTERS for one in executions)
    agent_errors = sum(one.letter in _AGENT_ERROR_LETTERS for one in executions)
    return Counts(passes=passed, failures=scored - passed, agent_errors=agent_errors)


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
    repeated = next((at for at, one in enumerate(reruns, start=1) if one.letter in _STATUS_LETTERS), len(reruns))
    counts = count_executions((*first, *reruns[:repeated]), pass_score)
    return Responses(counts, count_executions(reruns[repeated:], pass_score), repeated)


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
    entry: HistoryEntry, run: RunReference | None, pass_score: float, rule: PassRule | None, *, graded: bool
) -> EarlierResult:
    executions = [one for one in (*entry.first, *entry.reruns) if one.letter in _STATUS_LETTERS]
    passes = [_is_passing(one, pass_score) for one in executions]
    scores = [one.score for one in executions if one.score is not None]
    score = fmean(scores) if graded and scores else sum(passes) / len(executions)
    meets_rule = None if rule is None else decide_pass(rule, passes)
    return EarlierResult(
        PassCount(passes=sum(passes), executions=len(executions), score=score, meets_rule=meets_rule), run
    )


def _compute_variance(scores: Sequence[float]) -> ScoreVariance:
    if len(scores) < 2:
        return ScoreVariance(0.0, 0)
    mean = fmean(scores)
    return ScoreVariance(math.fsum((score - mean) ** 2 for score in scores), len(scores) - 1)


def _compute_mean_score(executions: Iterable[HistoryExecution]) -> float | None:
    scores = [one.score for one in executions if one.score is not None]
    return fmean(scores) if scores else None
