"""What the base branch's agent is asked: only what fails the gate, and only as long as its answers can turn that.

A few of each cause come first. Once one of them stays red for certain nobody is asked about the others: the gate is
red whatever they are. Where all of these are cleared the others are asked about too, since nothing is cleared by what
another case did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Final

from eval_gate.gate.causes import cause_of, group_of
from eval_gate.gate.conclude import confirmation_of
from eval_gate.gate.control.answers import MOST_OF_A_CASE, TWICE, ControlStanding, control_counts, standing_of
from eval_gate.gate.evidence.prior import UNKNOWN
from eval_gate.gate.judge import GateQuestion, judge
from eval_gate.gate.must_pass import must_pass
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison, Outcome
from eval_gate.model.execution import Status, Trial
from eval_gate.model.grounds import NO_RECORD, GroundKind
from eval_gate.model.result import CaseResult, Control, RunResult
from eval_gate.results.baseline import NoBaseline
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import one_line

_AT_ONCE: Final = 10
"""Cases that are asked about before it is looked at again whether the gate stays red."""
WITNESSES: Final = 3
"""Cases that pass here and on record, by which the base branch's agent shows that it works."""
NOTHING_PASSES: Final = (
    "no case passes here as it does on record, so that nothing could show that it works: what it fails would prove"
    " nothing"
)
_PASSES: Final = Trial(status=Status.PASSED, score=1.0, duration_ms=0.0)
_FAILS: Final = Trial(status=Status.FAILED, score=0.0, duration_ms=0.0)


class ControlQuestions(FrozenStruct):
    """What is asked next, each case once more. `rounds` are those that this is worth nothing without, itself counted.

    `trouble` is why nothing is asked that would have to be.
    """

    keys: Sequence[CaseKey] = ()
    rounds: int = 1
    trouble: str | None = None


def wanted_of_control(run: RunResult, question: GateQuestion, askable: Set[CaseKey]) -> ControlQuestions:
    """What to ask the base branch's agent after what it said so far, which the run holds. Nothing unless it is red.

    `askable` are the cases that it could be asked. The run has the target that would be asked as its `control`.
    """
    if isinstance(question.baseline, NoBaseline) or not run.confirm:
        return ControlQuestions()
    now = judge(run, question)
    comparison = now.comparison
    if now.verdict is None or now.verdict.outcome is not Outcome.FAIL or comparison is None:
        return ControlQuestions()
    red = _red(now, comparison, question, askable)
    witnesses = _witnesses(now, comparison, askable)
    if not red and not _whole(now, comparison, askable):
        return ControlQuestions()
    if not witnesses:
        return ControlQuestions(trouble=NOTHING_PASSES)
    if not _could_turn(run, question, comparison, askable):
        return ControlQuestions()
    return _next(now, comparison, red, witnesses, question, askable)


def left_to_control(run: RunResult, question: GateQuestion) -> tuple[CaseKey, ...]:
    """The regressions of a red run that the base branch's agent could clear; none where it need not be asked."""
    askable = frozenset(key for key, case in run.cases() if not case.dependent)
    if not wanted_of_control(run, question, askable).keys:
        return ()
    comparison = judge(run, question).comparison
    red = [one.key for one in comparison.of(CaseClass.REGRESSION)] if comparison else []
    return tuple(red) or tuple(askable)  # of scores that fell together no single case is one


def cleared_by_control(run: RunResult, question: GateQuestion) -> frozenset[CaseKey]:
    """The cases that are no regressions any more by what the base branch's agent said."""
    comparison = judge(run, question).comparison
    changes = comparison.changes if comparison else ()
    return frozenset(one.key for one in changes if one.grounds is not None and one.grounds.why is GroundKind.CONTROL)


def _next(
    now: RunResult,
    comparison: Comparison,
    red: Sequence[CaseChange],
    witnesses: Sequence[CaseKey],
    question: GateQuestion,
    askable: Set[CaseKey],
) -> ControlQuestions:
    cases, pass_score = now.by_key(), question.policy.pass_score
    asked = [one.key for one in comparison.of(CaseClass.STILL_PASSING) if cases[one.key].control]
    if asked:
        counts = [control_counts(cases[key], pass_score) for key in asked]
        passes, runs = sum(one.passes for one in counts), sum(one.runs for one in counts)
        if not runs:
            said = next((trial.error for key in asked for trial in cases[key].control if trial.error), None)
            return ControlQuestions(
                trouble=f"it gave no answer that could be judged{f': {one_line(said, 300)}' if said else ''}"
            )
        if passes * 2 <= runs:
            what = f"it fails {runs - passes} of {runs} cases that pass here and on record"
            return ControlQuestions(trouble=f"{what}: it does not look like the base branch's agent at work")
    evidence = comparison.evidence
    prior = confirmation_of(evidence).prior if evidence else UNKNOWN
    alone = [one for one in red if one.grounds is not None and one.grounds.why is not GroundKind.SUITE]
    found = {
        one.key: standing_of(control_counts(cases[one.key], pass_score), (one.case_record or NO_RECORD).counts, prior)
        for one in alone
    }
    if sum(one is ControlStanding.RED for one in found.values()) > question.policy.allowed_regressions:
        return ControlQuestions()
    open_ = [one.key for one in alone if found[one.key] is ControlStanding.OPEN and _may_be_asked(cases[one.key])]
    first = [] if asked else list(witnesses)
    if turn := _turn([one.key for one in alone], open_, cases):
        return ControlQuestions((*first, *turn))
    if ControlStanding.OPEN in found.values():
        return ControlQuestions()
    whole = _whole(now, comparison, askable)
    left = [key for key in whole if len(cases[key].control) < TWICE]
    return ControlQuestions(left, max((TWICE - len(cases[key].control) for key in left), default=1))


def _may_be_asked(case: CaseResult) -> bool:
    return len(case.control) < MOST_OF_A_CASE


def _turn(every: Sequence[CaseKey], open_: Collection[CaseKey], cases: Mapping[CaseKey, CaseResult]) -> list[CaseKey]:
    """The open ones among the next few: the first of every cause, then the second ones."""
    seen, places = Counter[str](), dict[CaseKey, int]()
    for key in every:
        cause = group_of(cause_of(cases[key]) or "")
        places[key] = seen[cause]
        seen[cause] += 1
    by_turns = sorted(every, key=lambda key: places[key])
    left = set(open_)
    for begin in range(0, len(by_turns), _AT_ONCE):
        if turn := [key for key in by_turns[begin : begin + _AT_ONCE] if key in left]:
            return turn
    return []


def _red(now: RunResult, comparison: Comparison, question: GateQuestion, askable: Set[CaseKey]) -> list[CaseChange]:
    """The regressions that count and that it may be asked about. What must pass has to, whoever else fails it."""
    cases = now.by_key()
    return [
        one
        for one in comparison.of(CaseClass.REGRESSION)
        if one.key in askable and one.key not in now.waived and not must_pass(cases[one.key], question.policy.must_pass)
    ]


def _witnesses(now: RunResult, comparison: Comparison, askable: Set[CaseKey]) -> list[CaseKey]:
    """The cases with the best records among those that pass here at once; those that were asked stay witnesses."""
    cases = now.by_key()
    steady = [
        one
        for one in comparison.of(CaseClass.STILL_PASSING)
        if one.key in askable and not cases[one.key].flaky and not cases[one.key].details.replayed
    ]
    records = {one.key: (one.case_record or NO_RECORD).counts for one in steady}
    best = sorted(steady, key=lambda one: (records[one.key].failures, -records[one.key].passes))
    return [one.key for one in best[:WITNESSES]]


def _whole(now: RunResult, comparison: Comparison, askable: Set[CaseKey]) -> list[CaseKey]:
    """All cases that are compared, which is what a drop of all of them is about; nothing where there is none."""
    found, scores = comparison.suite_finding, comparison.score_finding
    if not ((found is not None and found.dropped) or (scores is not None and scores.dropped)):
        return []
    cases = now.by_key()
    return [
        one.key
        for one in comparison.changes
        if one.key in askable and one.change.compared and cases[one.key].status.judged
    ]


def _could_turn(run: RunResult, question: GateQuestion, comparison: Comparison, askable: Set[CaseKey]) -> bool:
    """Whether the gate would not fail if the base branch's agent did as badly in all that it may be asked about."""
    regressions = {one.key for one in comparison.of(CaseClass.REGRESSION)}
    in_drop = {one.key for one in comparison.changes if one.grounds and one.grounds.why is GroundKind.SUITE}

    def as_here(key: CaseKey, case: CaseResult) -> CaseResult:
        if key not in askable or (not case.status.judged and key not in regressions):
            return case
        if key in regressions:
            return replace(case, control=(_FAILS,) * MOST_OF_A_CASE)
        first = case.executions()[0]
        passes = case.passed and key not in in_drop
        worse = first if first.status.judged and case.graded else _PASSES if passes else _FAILS
        return replace(case, control=(worse,) * TWICE)

    imagined = run.with_cases({key: as_here(key, case) for key, case in run.cases()})
    imagined = replace(imagined, control=Control(target=run.target))
    verdict = judge(imagined, replace(question, more_waivers=None)).verdict
    return verdict is None or verdict.outcome is not Outcome.FAIL
