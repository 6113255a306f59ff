"""What is known of the judges of a run. It turns no verdict: it is said beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from eval_gate.model.calibration import JudgeComparison, JudgeKnowledge, JudgeOfRun, JudgesOfRun
from eval_gate.model.result import RunResult, Yardstick
from eval_gate.struct import FrozenStruct


class Comparisons(FrozenStruct):
    """What a repository knows of its judges.

    `proposed` is what the change under test says of them: a change may have written what it likes, so that only the
    base branch's word is repeated. `trouble` is why that could not be had.
    """

    entries: Sequence[JudgeComparison] = ()
    proposed: Sequence[JudgeComparison] = ()
    trouble: str | None = None


AskComparisons = Callable[[], Comparisons]
"""Looks up what is known; asked only where a judge graded."""


def with_judges(run: RunResult, ask: AskComparisons | None) -> RunResult:
    """The run with what is known of its judges; as its record has it where nobody is asked."""
    if ask is None:
        return run
    graded = _graded(run)
    if not graded:
        return run if run.judges is None else run.model_copy(update={"judges": None})
    known = ask()
    whole = run.shard is None and not run.partial
    order = sorted(graded, key=lambda name: (-len(graded[name]), name))
    judges = tuple(_judge(name, graded[name], known, whole=whole) for name in order)
    return run.model_copy(update={"judges": JudgesOfRun(judges=judges, trouble=known.trouble)})


def _graded(run: RunResult) -> dict[str, list[Yardstick]]:
    """What the cases were measured with that a judge has graded, by who that was."""
    found: dict[str, list[Yardstick]] = defaultdict(list)
    for _, case in run.cases():
        if case.yardstick is not None and case.yardstick.judge and case.status.judged:
            found[case.yardstick.judge].append(case.yardstick)
    return found


def _judge(name: str, graded: Sequence[Yardstick], known: Comparisons, *, whole: bool) -> JudgeOfRun:
    own = [one for one in known.entries if one.judge == name]
    fits = [one for one in own if _as_here(one, graded, whole=whole)]
    proposed = not fits and any(one.judge == name and _as_here(one, graded, whole=whole) for one in known.proposed)
    knowing, nearest = JudgeKnowledge.NEVER, None
    for candidates, what in (
        (fits, JudgeKnowledge.COMPARED),
        (own, JudgeKnowledge.OTHER_PROMPT),
        (known.entries, JudgeKnowledge.OTHER_JUDGE),
    ):
        if candidates:
            knowing, nearest = what, min(candidates, key=_weakest)
            break
    return JudgeOfRun(judge=name, cases=len(graded), knowing=knowing, compared=nearest, proposed=proposed)


def _as_here(one: JudgeComparison, graded: Sequence[Yardstick], *, whole: bool) -> bool:
    """Whether the judge was compared as it grades here: by a prompt that it has here, and by a rubric or expectation.

    A part of a run may have none of the cases that people labelled.
    """
    prompts = {yardstick.grader for yardstick in graded}
    if not (prompts & set(one.prompts) if one.prompts else None in prompts):
        return False
    rubrics = {yardstick.expectation for yardstick in graded}
    return not whole or not one.rubrics or bool(rubrics & set(one.rubrics))


def _weakest(one: JudgeComparison) -> tuple[float, int]:
    """Of several comparisons the one that speaks least for the judge is repeated."""
    return one.agreed / one.answers, -one.answers
