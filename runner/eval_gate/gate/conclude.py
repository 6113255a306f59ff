"""From what happened in two runs to what one may conclude: records and re-runs refine the plain comparison. Pure.

The plain rule is the contract's own ("passed then, fails now"). It stays as it is in a run without re-runs
(`--confirm 0`), and it is what makes a case a suspect in all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import multimode

from eval_gate.config.policy import Policy
from eval_gate.gate.control.answers import answers_of, scores_with_answers, with_answers
from eval_gate.gate.evidence.bars import Executions, bars_of, of_size
from eval_gate.gate.evidence.days import Days, learned_days, on_this_day
from eval_gate.gate.evidence.late import without_the_late
from eval_gate.gate.evidence.past import NOTHING_KNOWN, CasePast, NewestEarlier, counts_of, first_score, past_before
from eval_gate.gate.evidence.prior import RATES, Prior
from eval_gate.gate.evidence.repeats import repeats_of
from eval_gate.gate.evidence.reruns import Confirmation
from eval_gate.gate.evidence.settle import SUITE_SHARE, CaseFacts, Settlement, settle
from eval_gate.gate.evidence.suite.scores import Scored, enough_of, score_finding, without_the_lowest
from eval_gate.gate.moved_cases import earlier_keys
from eval_gate.gate.must_pass import must_pass
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison, ScoreRecord, Tally
from eval_gate.model.execution import Status
from eval_gate.model.grounds import NO_RECORD, Belief, Evidence, GroundKind, LostCase, ScoreFinding
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.totals import judged_of
from eval_gate.results.baseline import Baseline, is_measured
from eval_gate.struct import FrozenStruct, replace


class KnownBefore(FrozenStruct):
    """What was known before a run: the past of its cases, and what else its verdict rests on."""

    past: Mapping[CaseKey, CasePast]
    evidence: Evidence
    aside: Collection[CaseKey] = ()
    """The cases that are in no test, because they are in quarantine."""

    @property
    def lost(self) -> Mapping[CaseKey, NewestEarlier]:
        """What earlier runs say of the cases that the baseline has and could not judge."""
        return {one.key: NewestEarlier(Tally(k=one.k, n=one.n, score=one.score), one.run) for one in self.evidence.lost}

    @property
    def with_lost(self) -> Mapping[CaseKey, CasePast]:
        """The past of the cases of the run, and of those that are only in the baseline and were not judged there."""
        gone = {key: CasePast(one, present=True, errored=True) for key, one in self.lost.items()}
        return {**gone, **self.past}

    @property
    def confirmation(self) -> Confirmation:
        """How the cases of the run are confirmed."""
        return confirmation_of(self.evidence)

    @property
    def days(self) -> Days:
        """How much whole runs of the branch differ."""
        return learned_days(self.evidence.days)


def confirmation_of(evidence: Evidence) -> Confirmation:
    """How the cases of a run are confirmed that was judged by this."""
    belief = evidence.belief
    # an older version knew one kind of cases only, or other rates
    known = len(belief.weights) == len(RATES) and all(weight > 0 for weight in belief.weights)
    prior = Prior(belief.weights, belief.steady) if known else Prior.of(belief.passes, belief.failures)
    return Confirmation(
        evidence.cases,
        prior,
        evidence.error_rate,
        evidence.confirm,
        evidence.sure,
        evidence.every,
        trials=evidence.trials,
    )


def known_from(
    baseline: Baseline,
    run: RunResult,
    policy: Policy,
    aside: Collection[CaseKey] = (),
    *,
    aside_then: Collection[CaseKey] = (),
) -> KnownBefore:
    """What the ledger says. Nothing in it depends on what happened in this run, or on which part of a plan it is.

    `aside` are the cases of this run that are in no test, `aside_then` those of the baseline that teach nothing.
    """
    past = past_before(baseline, policy.pass_score)
    belief, number = past.belief(aside_then), max(planned(run), 1)
    executions = Executions(run.confirm, trials_of(run))
    asked = bars_of(belief, past.records(aside_then), number, executions, policy.error_rate)
    unjudged = [key for key, case in baseline.result.cases() if not case.status.judged]
    evidence = Evidence(
        baseline_run_id=baseline.result.run_id,
        cases=number,
        error_rate=policy.error_rate,
        confirm=run.confirm,
        trials=executions.trials,
        pass_score=policy.pass_score,
        belief=Belief(
            passes=belief.strength * belief.pass_rate,
            failures=belief.strength * (1 - belief.pass_rate),
            weights=belief.weights,
            steady=belief.steady,
        ),
        sure=asked.sure if asked else None,
        every=asked.every if asked else None,
        runs=past.level,
        days=past.days(aside_then),
        lost=tuple(
            LostCase(
                suite=key.suite, case_id=key.case_id, k=one.tally.k, n=one.tally.n, score=one.tally.score, run=one.run
            )
            for key, one in past.lost(unjudged).items()
        ),
    )
    return KnownBefore(past.of(run), evidence, aside)


def known_again(
    run: RunResult, baseline: RunResult, evidence: Evidence, aside: Collection[CaseKey] = ()
) -> KnownBefore:
    """What was known when the run was made, from its own record; whether the baseline has a case is told by itself.

    Of parts that were joined only the whole knows which cases are another file's now.
    """
    assert run.comparison is not None
    there, earlier, measured = baseline.by_key(), earlier_keys(baseline, run), is_measured(baseline)
    return KnownBefore(
        {
            change.key: _past_of(change, there.get(earlier.get(change.key, change.key)), measured=measured)
            for change in run.comparison.changes
        },
        evidence,
        aside,
    )


def _past_of(change: CaseChange, before: CaseResult | None, *, measured: bool) -> CasePast:
    """The past of a case as the record tells it, and as the baseline has it."""
    if change.change is CaseClass.ADDED and before is None:
        return NOTHING_KNOWN
    then = None
    if change.baseline is not None and change.change is not CaseClass.INCOMPARABLE:
        then = NewestEarlier(change.baseline, change.compared_with)
    return CasePast(
        newest=then,
        present=before is not None,
        errored=before is not None and before.status is Status.ERROR and (measured or then is None),
        record=change.case_record or NO_RECORD,
        scores=_recorded(change.score_record),
    )


def _recorded(scores: ScoreRecord | None) -> ScoreRecord | None:
    """Without what was taken from the run itself: of a part of a run the whole may say something else."""
    if scores is None or not scores.assumed:
        return scores
    return replace(
        scores,
        spread=0.0,
        free=0,
        assumed=False,
    )


def planned(run: RunResult) -> int:
    """The cases that share the error rate: of the whole plan, where the record says so."""
    return max(run.planned or 0, judged_of(run)[1])


def trials_of(run: RunResult) -> int:
    """How often a case is executed whatever comes of it: as was asked for, else (another tool) as most of them were."""
    if run.measuring is not None and run.measuring.trials is not None:
        return run.measuring.trials
    return max(multimode(max(len(case.trials) - case.reruns, 1) for _, case in run.cases()), default=1)


def facts_of(comparison: Comparison, run: RunResult, known: KnownBefore, patterns: Sequence[str]) -> list[CaseFacts]:
    """What is known of every case of this run, in its order; cases that are set aside are in no test."""
    cases, before = run.by_key(), dict(cases_before(run))
    facts = []
    for change in comparison.changes:
        key = change.key
        case = cases.get(key)
        if case is None or change.change is CaseClass.REMOVED or key in known.aside:
            continue
        first, again = counts_of(case, known.evidence.pass_score)
        past = known.past.get(key, NOTHING_KNOWN)
        facts.append(
            CaseFacts(
                key,
                change.change,
                past.record,
                first,
                again,
                must_pass=must_pass(case, patterns),
                end=case.rerun_end,
                cases_before=before.get(key),
            )
        )
    return facts


def facts_alone(run: RunResult, pass_score: float, patterns: Sequence[str]) -> list[CaseFacts]:
    """The same of a run that is compared with nothing yet: of no case anything is known.

    Only those that fail are here: of the others nothing is to be decided.
    """
    facts, before = [], dict(cases_before(run))
    for key, case in run.cases():
        simply = len(case.trials) == 1 and case.trials[0].status is Status.PASSED  # as most cases do
        if simply or all(trial.status is Status.PASSED for trial in case.executions()):
            continue
        first, again = counts_of(case, pass_score)
        if first.fails:
            must = must_pass(case, patterns)
            facts.append(
                CaseFacts(
                    key,
                    CaseClass.REGRESSION,
                    NO_RECORD,
                    first,
                    again,
                    must_pass=must,
                    end=case.rerun_end,
                    cases_before=before.get(key),
                )
            )
    return facts


def cases_before(run: RunResult) -> Iterator[tuple[CaseKey, int]]:
    """Every case that works on files of earlier ones, with how many cases of its suite run before it."""
    for suite in run.suites:
        dependent = [case.id for case in suite.cases if case.dependent and case.status is not Status.SKIPPED]
        yield from ((CaseKey(suite.eval_file, case_id), at) for at, case_id in enumerate(dependent))


def _scored(facts: Sequence[CaseFacts], run: RunResult, known: KnownBefore) -> list[Scored]:
    """The graded cases whose scores can be tested together: by first executions, as all that is about the suite."""
    cases, scored = run.by_key(), []
    for one in facts:
        record = known.past.get(one.key, NOTHING_KNOWN).scores
        if record is None or not record.by_run or not one.plain.compared or not cases[one.key].graded:
            continue
        here = first_score(cases[one.key])
        if here is not None:
            scored.append(Scored(one.key, here, record.by_run))
    return enough_of(scored)


def _score_finding(scored: Sequence[Scored], settlement: Settlement, limit: float, allowed: int) -> ScoreFinding | None:
    """Without the cases that are regressions by themselves; the allowed ones that are left stand for the lowest."""
    alone = {
        one.key
        for one in settlement.cases
        if one.change is CaseClass.REGRESSION and (one.grounds is None or one.grounds.why is not GroundKind.SUITE)
    }
    left = enough_of(without_the_lowest([one for one in scored if one.key not in alone], allowed - len(alone)))
    return score_finding(left, limit) if left else None


def _with_record(change: CaseChange, known: KnownBefore) -> CaseChange:
    """Add what the run result keeps of a case's past."""
    past = known.past.get(change.key, NOTHING_KNOWN)
    record = past.record if past.record.counts.runs else change.case_record
    return replace(change, case_record=record)


def conclude(comparison: Comparison, run: RunResult, known: KnownBefore, policy: Policy) -> Comparison:
    """The comparison with what the records and re-runs make of it; the classes of the plain rule stay what they are."""
    if not run.confirm:
        changes = tuple(_with_record(change, known) for change in comparison.changes)
        return replace(comparison, changes=changes, evidence=known.evidence)
    facts, allowed = facts_of(comparison, run, known, policy.must_pass), policy.allowed_regressions
    cases = run.by_key()
    scored = _scored(facts, run, known)
    share = (SUITE_SHARE / 2 if scored else SUITE_SHARE) * of_size(known.evidence.cases)
    confirmation = on_this_day(known.confirmation, facts, known.days)
    settlement = settle(facts, confirmation, allowed=allowed, share=share, days=known.days)
    answers = answers_of(run, settlement.cases, known.evidence.pass_score)
    heard = with_answers(settlement, facts, answers, confirmation)
    told_apart = without_the_late(heard.cases, facts, run, confirmation, known.evidence.pass_score)
    settled = {one.key: one for one in told_apart}
    scores = _score_finding(scored, settlement, known.evidence.error_rate * share, allowed)

    def refined(change: CaseChange) -> CaseChange:
        one = settled.get(key := change.key)
        if one is None or change.change is CaseClass.REMOVED:
            return _with_record(change, known)
        grounds = replace(one.grounds, repeats=repeats_of(cases[key])) if one.grounds is not None else None
        return replace(_with_record(change, known), change=one.change, grounds=grounds)

    return replace(
        comparison,
        changes=tuple(refined(change) for change in comparison.changes),
        suite_finding=heard.suite,
        score_finding=scores_with_answers(scores, scored, run, answers),
        error_rate=known.evidence.error_rate,
        evidence=known.evidence,
    )
