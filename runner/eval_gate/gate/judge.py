"""The one judge: a run is compared with what was known before, refined by records and re-runs, waived, judged.

Whoever has a run to judge comes here: the run itself, a stored one, parts that were put together, a relay. What was
known when the run was made is in its record, so that the same run gets the same verdict everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from eval_gate.config.policy import Policy
from eval_gate.config.settings import Keeping
from eval_gate.gate.answering_models import notes_of_models
from eval_gate.gate.baseline_side import with_baseline_sides
from eval_gate.gate.compare import compare, with_contract_fields
from eval_gate.gate.conclude import (
    KnownBefore,
    conclude,
    facts_alone,
    facts_of,
    known_again,
    known_from,
    planned,
    trials_of,
)
from eval_gate.gate.control.answers import notes_of_control
from eval_gate.gate.evidence.days import on_this_day
from eval_gate.gate.evidence.reruns import Confirmation
from eval_gate.gate.evidence.settle import CaseFacts
from eval_gate.gate.judge_comparisons import AskComparisons, with_judges
from eval_gate.gate.lost_calls import mark_lost_calls
from eval_gate.gate.moved_cases import earlier_keys, is_whole
from eval_gate.gate.must_pass import must_pass_keys
from eval_gate.gate.pass_score import held_to
from eval_gate.gate.rules import RuleInput, drop_of, score_share
from eval_gate.gate.scores import exceeds, limit_words
from eval_gate.gate.verdict import decide
from eval_gate.gate.waivers.apply import standings, waive, waived_by_new_name, without_must_pass
from eval_gate.gate.waivers.file import KnownWaivers
from eval_gate.gate.yardstick import MAX_NAMED, measured_differences
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import BaselineFacts, Comparison
from eval_gate.model.result import RunResult
from eval_gate.model.waiver import CaseStanding, WaiverKind, WaiverStanding, Waiving
from eval_gate.model.yardstick import Difference, DifferenceKind, TouchedCase
from eval_gate.results.baseline import NOT_ASKED_FOR, Baseline, NoBaseline
from eval_gate.struct import FrozenStruct, field, replace

MoreWaivers = Callable[[KnownWaivers], KnownWaivers]
"""Asks for what people have said elsewhere, such as in comments, in addition to what is known."""


class GateQuestion(FrozenStruct):
    """What a run is judged by: what it is compared with, the rules, and what people made exceptions of.

    `more_waivers` is asked only where something failed that anybody could have accepted: when it is judged, and before
    that where so many cases failed that some may be spared re-runs.
    """

    baseline: Baseline | NoBaseline
    policy: Policy
    waivers: KnownWaivers | None = None
    more_waivers: MoreWaivers | None = None
    keeping: Keeping = field(default_factory=Keeping)
    """How much of the baseline's answers may stand in the comparison."""
    comparisons: AskComparisons | None = None
    """What is known of judges; None where only the run's own record may know it."""


def judge(run: RunResult, question: GateQuestion) -> RunResult:
    """The run with comparison and verdict filled in; both are made of the two sides held to the policy's pass score."""
    policy, baseline = question.policy, question.baseline
    run = _with_known_calls(with_judges(run, question.comparisons), question)
    held = held_to(run, policy.pass_score)
    if isinstance(baseline, NoBaseline):
        waiving = _waiving(held, None, question)
        verdict = decide(RuleInput(held, waiving=waiving or Waiving()), policy, baseline)
        return replace(run, policy=policy.on_record(run), comparison=None, waiving=waiving, verdict=verdict)
    then = held_to(baseline.result, policy.pass_score)
    known = _known(held, question)
    differs = measured_differences(then, held, policy.on_record(run), lost=known.lost)
    comparison = replace(_compared(held, then, known, question), measured=differs)
    comparison = with_baseline_sides(comparison, held, then, baseline.own_ledger, policy.pass_score, question.keeping)
    waiving = _waiving(held, comparison, question)
    comparison = _with_waived_names(comparison, waiving, held, then)
    judged = RuleInput(held, comparison, then, waiving or Waiving())
    return replace(
        run,
        suites=with_contract_fields(run, baseline.result),
        baseline_run_id=baseline.result.run_id,
        policy=policy.on_record(run),
        comparison=comparison,
        waiving=waiving,
        verdict=decide(judged, policy),
    )


def facts_before_reruns(run: RunResult, question: GateQuestion) -> tuple[list[CaseFacts], Confirmation]:
    """What is known of every case after its first execution, and how much evidence each of them needs.

    Where nobody named a baseline, the run may still be judged against one later: then every failing case is a suspect
    of which nothing is known. Where there is none to be had, there is nothing to suspect.
    """
    held = held_to(_with_known_calls(run, question), question.policy.pass_score)
    if isinstance(question.baseline, NoBaseline):
        if question.baseline is not NOT_ASKED_FOR:
            return [], Confirmation(0)
        return facts_alone(held, question.policy.pass_score, question.policy.must_pass), Confirmation(
            max(planned(run), 1), error_rate=question.policy.error_rate, confirm=run.confirm, trials=trials_of(run)
        )
    then, known = held_to(question.baseline.result, question.policy.pass_score), _known(held, question)
    # a case that is too late is run again in a shard even if it is the only one there: the whole must know
    plain = _plain(held, then, known, question, heard_elsewhere=run.shard is not None)
    facts = facts_of(plain, held, known, question.policy.must_pass)
    return facts, on_this_day(known.confirmation, facts, known.days)


def _with_known_calls(run: RunResult, question: GateQuestion) -> RunResult:
    if isinstance(question.baseline, NoBaseline):
        return run
    return mark_lost_calls(run, question.baseline.result, question.policy.pass_score)


def _compared(held: RunResult, then: RunResult, known: KnownBefore, question: GateQuestion) -> Comparison:
    policy = question.policy
    concluded = conclude(_plain(held, then, known, question), held, known, policy)
    notes = (
        *concluded.notes,
        *_not_rerun(held, policy),
        *_judged_otherwise(held, concluded),
        *_only_varied(held, concluded, policy),
        *notes_of_control(held, concluded),
        *notes_of_models(held, then),
    )
    return replace(concluded, notes=notes)


def _not_rerun(held: RunResult, policy: Policy) -> Iterator[str]:
    """Whoever asks for re-runs is told where the result that is judged has none."""
    if policy.confirm and not held.confirm:
        yield (
            "no case was run again when this result was made: whatever passed in the baseline and fails here counts as "
            "a regression; make it with a baseline or --confirm 6 to have suspected regressions run again"
        )


def _only_varied(held: RunResult, now: Comparison, policy: Policy) -> Iterator[str]:
    """Which scores are lower by more than the rule allows and do not count, and why."""
    most = policy.max_score_drop
    if most is None:
        return
    share, cases = score_share(now), held.by_key()
    spared = [
        change
        for change in now.changes
        if change.score_change is not None
        and exceeds(-change.score_change, most)
        and not exceeds(drop_of(change, cases[change.key].score, most, share), most)
    ]
    if not spared:
        return
    largest = min(spared, key=lambda change: (change.score_change or 0.0, change.key))
    record = largest.score_record
    assert record is not None  # else every fall counts
    many = f"{len(spared)} scores are" if len(spared) > 1 else "1 score is"
    known = "as the scores of all cases differ from one run to this one" if record.assumed else "by their records"
    yield (
        f"{many} lower than in the baseline by more than {limit_words(most)} without a breach of max-score-drop: that "
        f"may be how scores vary ({largest.case_id[:100]} is {-(largest.score_change or 0.0):.2f} lower, and varies by "
        f"{record.spread:.2f} from run to run, {known})"
    )


def _judged_otherwise(held: RunResult, now: Comparison) -> Iterator[str]:
    """What another baseline changed, where the run was compared with one before."""
    before = held.comparison
    if before is None or before.baseline.run_id == now.baseline.run_id:
        return
    classes = {change.key: change.change for change in before.changes}
    others = [one for one in now.changes if one.key in classes and classes[one.key] is not one.change]
    what = "no case changed its class"
    if others:
        first, many = others[0], "cases changed their" if len(others) > 1 else "case changed its"
        words = (classes[first.key].value.replace("_", " "), first.change.value.replace("_", " "))
        what = f"{len(others)} {many} class by that ({first.case_id[:100]}: {words[0]}, now {words[1]})"
    yield (
        f"when this run was made it was compared with {_named(before.baseline)}, and is judged against "
        f"{_named(now.baseline)} now: {what}"
    )


def _named(baseline: BaselineFacts) -> str:
    return f"commit {baseline.sha[:7]}" if baseline.sha else f"run {baseline.run_id[:8]}"


def _plain(
    held: RunResult, then: RunResult, known: KnownBefore, question: GateQuestion, *, heard_elsewhere: bool = False
) -> Comparison:
    assert isinstance(question.baseline, Baseline)
    return compare(
        question.baseline.of(then),
        held,
        known.with_lost,
        score_tolerance=question.policy.score_tolerance,
        heard_elsewhere=heard_elsewhere,
    )


def _known(held: RunResult, question: GateQuestion) -> KnownBefore:
    """What the run's own record says was known, where it was compared with the same; else what the ledger says."""
    baseline, policy, waivers = question.baseline, question.policy, question.waivers
    assert isinstance(baseline, Baseline)
    then = baseline.result
    aside = quarantined_cases(held, waivers, policy.must_pass, earlier_keys(then, held))
    recorded = held.comparison.evidence if held.comparison else None
    if recorded is not None and (recorded.baseline_run_id, recorded.error_rate, recorded.pass_score) == (
        then.run_id,
        policy.error_rate,
        policy.pass_score,
    ):
        return known_again(held, then, recorded, aside)
    return known_from(baseline, held, policy, aside, aside_then=quarantined_cases(then, waivers, policy.must_pass))


def quarantined_cases(
    run: RunResult,
    waivers: KnownWaivers | None,
    must_pass: Sequence[str],
    earlier: Mapping[CaseKey, CaseKey] = MappingProxyType({}),
) -> frozenset[CaseKey]:
    """The cases of a run in quarantine: never run again for what they say, and in no test of the suite.

    Each is told by itself, whatever it and others under the same glob did, and of the baseline's cases by the baseline
    alone: else parts of a run would learn other things from the same branch. What people say of them in comments comes
    after the run and sets nothing aside. `must_pass` are patterns; of what they name nothing is set aside. `earlier`
    are the names in the baseline of cases that have another one in this run.
    """
    quarantine = [one for one in waivers.waivers if one.kind is WaiverKind.QUARANTINE] if waivers else []
    if not quarantine or waivers is None:
        return frozenset()
    named = [
        CaseStanding(suite=key.suite, case_id=key.case_id, standing=WaiverStanding.FAILS) for key, _ in run.cases()
    ]
    waiving = waive(quarantine, named, waivers.today, trusted=waivers.trusted, earlier=earlier)
    return without_must_pass(waiving, must_pass_keys(run, must_pass)).quarantined


def allowed_of(question: GateQuestion) -> int | None:
    """How many regressions do not fail the gate; None where none does, or where nobody knows yet what one is."""
    compares = isinstance(question.baseline, Baseline)
    return question.policy.allowed_regressions if compares and not question.policy.only_reports else None


def accepted_regressions(keys: Sequence[CaseKey], run: RunResult, question: GateQuestion) -> frozenset[CaseKey]:
    """Those of these cases whose regression would not block, by the file and by comments: who says so is asked."""
    waivers = question.waivers
    if waivers is not None and question.more_waivers is not None:
        waivers = question.more_waivers(waivers)
    if waivers is None or not waivers.waivers:
        return frozenset()
    named = [CaseStanding(suite=key.suite, case_id=key.case_id, standing=WaiverStanding.REGRESSED) for key in keys]
    earlier = _earlier_names(run, question)
    waiving = waive(waivers.waivers, named, waivers.today, everything=False, trusted=waivers.trusted, earlier=earlier)
    return without_must_pass(waiving, must_pass_keys(run, question.policy.must_pass)).keys


def _earlier_names(run: RunResult, question: GateQuestion) -> Mapping[CaseKey, CaseKey]:
    """The names in the baseline of the cases that have another one here."""
    return earlier_keys(question.baseline.result, run) if isinstance(question.baseline, Baseline) else {}


def _with_waived_names(comparison: Comparison, waiving: Waiving | None, run: RunResult, then: RunResult) -> Comparison:
    """The comparison with what the waiver file covers only by the name that it has here: that is a rule loosened."""
    earlier = earlier_keys(then, run)
    found = waived_by_new_name(waiving, earlier) if waiving is not None and earlier else ()
    if not found or comparison.measured is None:
        return comparison
    cases = tuple(
        TouchedCase(**earlier[one.key]._asdict(), became=_new_name(earlier[one.key], one.key)) for one in found
    )
    loosened = Difference(kind=DifferenceKind.LOOSENED, subject="waiver", count=len(cases), cases=cases[:MAX_NAMED])
    told = comparison.measured
    told = replace(told, differences=(loosened, *told.differences), loosened=told.loosened + 1)
    return replace(comparison, measured=told)


def _new_name(before: CaseKey, now: CaseKey) -> str:
    return now.case_id if now.case_id != before.case_id else now.suite


def _waiving(held: RunResult, comparison: Comparison | None, question: GateQuestion) -> Waiving | None:
    waivers = question.waivers
    if waivers is None or not (waivers.anything or question.more_waivers):
        return None
    found = standings(held, comparison, max_score_drop=question.policy.max_score_drop)
    if question.more_waivers is not None and _something_to_waive(found):
        waivers = question.more_waivers(waivers)
    if not waivers.anything:
        return None
    waiving = waive(
        waivers.waivers,
        found,
        waivers.today,
        everything=is_whole(held),
        trusted=waivers.trusted,
        earlier=_earlier_names(held, question),
    )
    waiving = without_must_pass(waiving, must_pass_keys(held, question.policy.must_pass))
    troubles = (*waivers.troubles, *waiving.troubles)
    return replace(waiving, refusals=waivers.refusals, troubles=troubles)


def _something_to_waive(found: Sequence[CaseStanding]) -> bool:
    """Whether anything could be accepted, so that it is worth asking who did."""
    return any(one.standing.waivable and one.standing is not WaiverStanding.WAVERS for one in found)
