"""Which cases of a run are re-run, and how often: as long as one more result could decide.

A change that breaks one tool breaks every case that calls it. A dozen of them confirmed say as much as three hundred.
So a dozen suspects over all causes are re-run, and none once the gate fails for certain.

What that moves (`benchmarks/verdict/without.py`, without → with) are executions a case: 50 of 100 cases died, 2.05 →
1.24 after ten runs of history. No verdict of 200 changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Final

from eval_gate.gate.base_agent_cases import (
    find_cleared_cases,
    select_base_agent_cases,
    select_error_cases,
)
from eval_gate.gate.evidence.agent_errors import RunErrors
from eval_gate.gate.evidence.case_classification import (
    CaseFacts,
    count_run_errors,
    decide_next_step,
    decide_next_steps,
)
from eval_gate.gate.evidence.case_history import count_responses, has_only_timeouts
from eval_gate.gate.evidence.new_case_runs import plan_extra_executions
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, RerunStep, Suspicion
from eval_gate.gate.evidence.run_share import compute_rerun_wait
from eval_gate.gate.failure_causes import find_cause, get_group_key
from eval_gate.gate.pass_score import find_pass_rate
from eval_gate.gate.verdict_decision import (
    GateInputs,
    build_facts_before_reruns,
    decide_provisional_verdict,
    find_waived_regressions,
)
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass, Outcome, RuleCode
from eval_gate.model.execution import Trial
from eval_gate.model.result import CaseResult, RerunStopReason, RunResult
from eval_gate.model.selection import BaseAgentCases
from eval_gate.results.baseline import Baseline, NoBaseline
from eval_gate.results.history import build_executions
from eval_gate.struct import FrozenStruct, replace

_CASE_RULES: Final = frozenset(
    {
        *(RuleCode.REGRESSIONS, RuleCode.MUST_PASS, RuleCode.FAILURES),
        *(RuleCode.SCORE_DROP, RuleCode.FLAKY, RuleCode.NEW_FAILURES),
    }
)
"""Rules that single cases break. A pass rate and all cases together may come right by cases that pass."""


_WORTH_WAITING: Final = frozenset({Suspicion.REGRESSION, Suspicion.MUST_PASS})
"""Suspicions that can fail the gate; whether a case is fixed is not worth a wait."""
MAX_ALWAYS_RERUN: Final = 5
"""Suspects that are always re-run: each of them may have its own cause."""
ENOUGH_CONFIRMED: Final = 12
"""Confirmed regressions from which on no further suspect is re-run, which saves two to four re-runs each."""
_MIN_SHARD_SHARE: Final = 3
"""The same of one shard of many."""


class RerunInterval(FrozenStruct):
    """How long re-runs wait: `given_s` seconds if a user says so, else as long as the history asks for."""

    given_s: float | None = None
    most_s: float = 0.0
    """Maximum seconds that all waits of a case may take together, without a user's interval; 0 for no wait."""

    def compute_s(self, run_share: float, max_reruns: int) -> float:
        """Compute the seconds between two executions of a case; `run_share` of its variance belongs to the run."""
        if self.given_s is not None:
            return self.given_s
        return min(compute_rerun_wait(run_share), self.most_s / max(max_reruns, 1))


NO_INTERVAL: Final = RerunInterval()


def compute_shard_share(shards: int) -> int:
    """How many regressions each shard confirms, so that all together confirm a dozen."""
    return max(-(-ENOUGH_CONFIRMED // shards), _MIN_SHARD_SHARE)


class Suspects(FrozenStruct):
    """Suspected regressions of a run by cause, and which of them need no re-run.

    `allowed_regressions` regressions do not fail the gate; None if no number of them does. Cases in `non_blocking`
    never fail it: they are waived, or the verdict over the whole run may classify them differently. `enough_confirmed`
    confirmed regressions are enough to name the cause.
    """

    causes: Mapping[CaseKey, str]
    allowed_regressions: int | None
    non_blocking: Set[CaseKey] = frozenset()
    enough_confirmed: int = ENOUGH_CONFIRMED

    @property
    def is_limited(self) -> bool:
        """Whether there are too many suspects to re-run all of them."""
        return self.allowed_regressions is not None and len(self.causes) > max(MAX_ALWAYS_RERUN, self.enough_confirmed)

    def is_gate_failing(self, confirmed: Collection[CaseKey]) -> bool:
        """Whether the gate fails by what is confirmed, so that no further re-run can turn its exit code."""
        return (
            self.allowed_regressions is not None
            and sum(key not in self.non_blocking for key in confirmed) > self.allowed_regressions
        )

    def can_skip(self, key: CaseKey, confirmed: Collection[CaseKey]) -> bool:
        """Whether re-running this case could neither turn the exit code nor is needed to name what broke."""
        return (
            self.is_limited
            and key in self.causes
            and self.is_gate_failing(confirmed)
            and len(confirmed) >= self.enough_confirmed
        )

    def select_next(self, waiting: Sequence[CaseKey], confirmed: Collection[CaseKey]) -> list[CaseKey]:
        """Select the waiting cases that are re-run next: first a dozen, by turns over the causes.

        Then all of them, or, if the gate fails for certain by now, as many as are missing to a dozen.
        """
        mine = [key for key in waiting if key in self.causes]
        other_cases = [key for key in waiting if key not in self.causes]
        if not self.is_limited or not mine:
            return list(waiting)
        if len(mine) == len(self.causes):
            return other_cases + self._select_first(mine)
        if not self.is_gate_failing(confirmed):
            return other_cases + mine
        return other_cases + self._alternate_causes(mine)[: max(self.enough_confirmed - len(confirmed), 0)]

    def _select_first(self, mine: Sequence[CaseKey]) -> list[CaseKey]:
        """Select a dozen suspects, and as many more as make the gate fail for certain if all are confirmed."""
        assert self.allowed_regressions is not None
        ordered = self._alternate_causes(mine)
        first, rest = ordered[: self.enough_confirmed], ordered[self.enough_confirmed :]
        return first + rest[: max(self.allowed_regressions + 1 - sum(key not in self.non_blocking for key in first), 0)]

    def _alternate_causes(self, mine: Sequence[CaseKey]) -> list[CaseKey]:
        """Order the suspects by turns over the causes; those that cannot make the gate fail come last."""
        counts, places = Counter[str](), dict[CaseKey, tuple[bool, int]]()
        for key in mine:
            of = key in self.non_blocking, self.causes[key]
            places[key] = of[0], counts[repr(of)]
            counts[repr(of)] += 1
        return sorted(places, key=lambda key: places[key])


class Reruns:
    """Decides for one run which cases the engine re-runs, and when to stop."""

    def __init__(
        self,
        inputs: GateInputs,
        max_reruns: int,
        *,
        budgeted: bool = False,
        load_inputs: Callable[[], GateInputs] | None = None,
        interval: RerunInterval = NO_INTERVAL,
    ) -> None:
        """`max_reruns` is per case; `budgeted`: a user limits all. `load_inputs` waits for inputs with a baseline."""
        self._interval = interval
        self._wait_s = 0.0
        self._inputs = inputs
        self._load_inputs = load_inputs
        self._max_reruns = max_reruns
        self._budgeted = budgeted
        self._new_cases: dict[CaseKey, int] = {}
        """New cases, and how often each is run beyond its first executions."""
        self._fixes: Set[CaseKey] = frozenset()
        self._facts: dict[CaseKey, CaseFacts] = {}
        self._first: dict[CaseKey, CaseResult] = {}
        """Each suspect before its re-runs."""
        self._latest: dict[CaseKey, CaseFacts] = {}
        """Each suspect after its latest re-run."""
        self._errors: RunErrors | None = None
        """Agent errors of all other cases."""
        self._criteria = RerunCriteria(0)
        self._suspects = Suspects({}, None)
        self._confirmed: set[CaseKey] = set()

    @property
    def baseline(self) -> Baseline | NoBaseline:
        """What the run is compared with, or why there is nothing."""
        return self._inputs.baseline

    @property
    def new_cases(self) -> Set[CaseKey]:
        """Those that are run more often because no earlier run knows them, whatever came of the first time."""
        return self._new_cases.keys()

    @property
    def fixes(self) -> Set[CaseKey]:
        """Passing cases that fail on the branch, and that are re-run to know whether they are fixed."""
        return self._fixes

    @property
    def rerun_wait(self) -> int:
        """Whole seconds that re-runs of suspected cases keep from the execution before them."""
        return round(self._wait_s)

    def get_interval_s(self, key: CaseKey) -> float:
        """Return the seconds before a re-run of this case. New cases wait only if a user says so."""
        return self._interval.given_s or (0.0 if key in self._new_cases else self._wait_s)

    def find_rerun_candidates(self, result: RunResult) -> Collection[CaseKey]:
        """Find the cases whose first execution leaves something to decide, and the new ones."""
        if self._load_inputs is not None:
            self._inputs, self._load_inputs = self._load_inputs(), None
        run = replace(result, reruns=self._max_reruns)
        facts, self._criteria, share = build_facts_before_reruns(run, self._inputs)
        if any(one.suspicion in _WORTH_WAITING for one in facts):
            self._wait_s = self._interval.compute_s(self._criteria.run_share, self._max_reruns)
        if self.rerun_wait:  # re-runs that waited say more
            run = replace(run, rerun_wait=self.rerun_wait)
            facts, self._criteria, share = build_facts_before_reruns(run, self._inputs)
        facts = [one for one in facts if one.key.suite not in result.reused_suites]
        # of most cases nothing is to be decided, whatever more was seen
        suspects = {one.key: one for one in facts if one.suspicion is not None or one.has_only_errors}
        self._first = {key: _drop_reruns(case) for key, case in result.iter_cases() if key in suspects}
        other_errors = count_run_errors((one for one in facts if one.key not in suspects), self._criteria, share)
        self._errors = replace(other_errors, is_part=run.shard is not None)
        self._facts = {key: self._count_reruns(one, ()) for key, one in suspects.items()}
        self._latest = suspects
        steps = decide_next_steps(self._facts.values(), self._criteria, self._count_errors())
        doubtful = [key for key, step in steps.items() if step is RerunStep.AGAIN and self._max_reruns]
        fixes = [key for key in doubtful if self._facts[key].suspicion is Suspicion.FIX]
        self._fixes = frozenset(fixes[:ENOUGH_CONFIRMED])
        doubtful = [key for key in doubtful if key not in set(fixes) - self._fixes]
        self._suspects = self._build_suspects(run, doubtful)
        self._new_cases = {}
        if isinstance(self.baseline, Baseline) and self._inputs.policy.max_reruns:
            self._new_cases = plan_extra_executions(facts, run.index_cases(), bounded=not self._budgeted)
        return [*doubtful, *self._new_cases]

    def _count_reruns(self, facts: CaseFacts, reruns: Sequence[Trial]) -> CaseFacts:
        """Return the facts of a suspect after these re-runs."""
        first = self._first[facts.key]
        executions = (build_executions(some, graded=first.graded) for some in (first.list_executions(), reruns))
        pass_score = self._inputs.policy.pass_score
        counts = count_responses(*executions, pass_score)
        return replace(
            facts,
            rate=find_pass_rate(first, (*first.list_executions(), *reruns), pass_score),
            first=counts.first,
            reruns=counts.reruns,
            repeated=counts.repeated,
            has_only_timeouts=has_only_timeouts((*first.list_executions(), *reruns)),
        )

    def _count_errors(self) -> RunErrors:
        """Count the agent errors of the run by now."""
        assert self._errors is not None
        errors = self._errors
        for one in self._latest.values():
            errors = errors.add(one.total, one.rerun_count, has_only_timeouts=one.has_only_timeouts)
        return errors

    def select_next(self, waiting: Sequence[CaseKey]) -> Sequence[CaseKey]:
        """Select the cases to re-run next: all of a few, else some of each cause first; new cases come last."""
        suspects = [key for key in waiting if key not in self._new_cases]
        turn = self._suspects.select_next(suspects, self._confirmed) if suspects else []
        return turn or [key for key in waiting if key in self._new_cases]

    def should_rerun(self, key: CaseKey, reruns: Sequence[Trial]) -> bool:
        """Whether one more execution could decide; what says nothing about the target uses up a re-run all the same."""
        if key in self._new_cases:
            return len(reruns) < self._new_cases[key]
        is_open = self._is_open(key, reruns)
        return len(reruns) < self._max_reruns and is_open and not self._suspects.can_skip(key, self._confirmed)

    def get_rerun_end(self, key: CaseKey, reruns: Sequence[Trial]) -> RerunStopReason:
        """Why it is not run again any more."""
        if key in self._new_cases:
            return RerunStopReason.DECIDED if len(reruns) >= self._new_cases[key] else RerunStopReason.RUN_STOPPED
        if not self._is_open(key, reruns):
            return RerunStopReason.DECIDED
        if len(reruns) >= self._max_reruns:
            return RerunStopReason.NO_RESULT
        return (
            RerunStopReason.GATE_FAILED
            if self._suspects.can_skip(key, self._confirmed)
            else RerunStopReason.RUN_STOPPED
        )

    def build_base_agent_request(self, result: RunResult, askable: Set[CaseKey]) -> BaseAgentCases:
        """Build the request for what the base agent runs next."""
        decided = self._decide(result)
        if self._inputs.waiver_lookup is not None and decided.verdict and decided.verdict.outcome is Outcome.FAILED:
            self._look_up_waivers()
            decided = self._decide(result)
        request = select_error_cases(decided, self._inputs.policy.max_errors, askable)
        return request if request.keys else select_base_agent_cases(decided, self._inputs, askable)

    def is_failing(self, result: RunResult) -> bool:
        """Whether failures fail the gate already: by rules that passes of further cases cannot turn."""
        if not self._is_failing_already(result):
            return False
        self._look_up_waivers()
        return self._is_failing_already(result)

    def _look_up_waivers(self) -> None:
        """Add waivers from elsewhere, such as comments, once: no later look-up waits for them again."""
        waivers, look_up = self._inputs.waivers, self._inputs.waiver_lookup
        if waivers is not None and look_up is not None:
            self._inputs = replace(self._inputs, waivers=look_up(waivers), waiver_lookup=None)

    def has_cleared_failures(self, result: RunResult) -> bool:
        """Whether the base agent cleared a case. Cleared cases no longer keep other suspects from a re-run."""
        cleared = find_cleared_cases(self._decide(result).comparison)
        self._suspects = replace(self._suspects, non_blocking=self._suspects.non_blocking | cleared)
        return bool(cleared)

    def _is_failing_already(self, result: RunResult) -> bool:
        verdict = self._decide(result).verdict
        return verdict is not None and any(not rule.ok and rule.code in _CASE_RULES for rule in verdict.rules)

    def _decide(self, result: RunResult) -> RunResult:
        return decide_provisional_verdict(result, replace(self._inputs, waiver_lookup=None))

    def _is_open(self, key: CaseKey, reruns: Sequence[Trial]) -> bool:
        """Whether it is not decided yet, as the verdict will see it: there too, broken re-runs are missing ones."""
        facts = self._facts.get(key)
        if facts is None:
            return False
        self._latest[key] = latest = self._count_reruns(facts, reruns)
        errors = self._count_errors() if latest.has_only_errors else None
        step = decide_next_step(latest, self._criteria, errors)
        if step is RerunStep.CONFIRMED and _may_regress(latest):
            self._confirmed.add(key)
        return step is RerunStep.AGAIN

    def _build_suspects(self, run: RunResult, doubtful: Sequence[CaseKey]) -> Suspects:
        """Build the suspected regressions, with what is needed to leave out re-runs."""
        cases = run.index_cases()
        # re-runs of must-pass cases are never left out: their suspicion is another one
        mine = [key for key in doubtful if _may_regress(self._facts[key])]
        enough = compute_shard_share(run.shard.count if run.shard else 1)
        causes = {key: get_group_key(find_cause(cases[key]) or "") for key in mine}
        policy = self._inputs.policy
        can_fail = isinstance(self.baseline, Baseline) and policy.can_fail
        suspects = Suspects(causes, policy.allowed_regressions if can_fail else None, enough_confirmed=enough)
        if not suspects.is_limited:
            return suspects
        uncounted = find_waived_regressions(mine, run, self._inputs)
        if run.shard is not None:  # where nothing at all was answered the whole may see an outage
            uncounted |= {key for key in mine if self._facts[key].has_only_errors}
        return replace(suspects, non_blocking=uncounted)


def _may_regress(facts: CaseFacts) -> bool:
    """Whether confirming the suspicion makes the case a regression. Only such a case's re-runs can be left out."""
    if facts.has_only_errors:
        return facts.plain_class in {CaseClass.REGRESSION, CaseClass.STILL_FAILING}
    return facts.suspicion is Suspicion.REGRESSION


def _drop_reruns(case: CaseResult) -> CaseResult:
    """Return the case with its first executions only."""
    trials = case.list_executions()
    return replace(case, trials=tuple(trials[: len(trials) - case.reruns]), reruns=0)
