"""What kept a graded case from its full score, what a suite's cases score on average, and the grades of rubrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from eval_gate.gate.causes import MAX_NAME, low_evaluators
from eval_gate.model.comparison import CaseChange
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.reports.words.numbers import score, score_change
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import one_line

MAX_EVALUATORS: Final = 3
MAX_MISSES: Final = 2
MAX_WORDS: Final = 160
"""Characters of one miss."""


class MeanScore(FrozenStruct):
    """The mean over the graded cases that were judged; `change` over those that can be compared, None without any."""

    mean: float
    change: float | None

    def __str__(self) -> str:
        return f"{score(self.mean)}{score_change(self.change)}"


def mean_score(cases: Iterable[CaseResult], changes: Iterable[CaseChange]) -> MeanScore | None:
    """Of one suite; None where nothing is graded. What could not be judged has no score and is left out."""
    scores = [case.score for case in cases if case.graded and case.status.judged]
    if not scores:
        return None
    differences = [change.score_change for change in changes if change.score_change is not None]
    change = sum(differences) / len(differences) if differences else None
    return MeanScore(sum(scores) / len(scores), change)


def shortfalls(case: CaseResult, then: Mapping[str, float] | None = None) -> tuple[str, ...]:
    """`style 0.90 → 0.40: too long; no greeting`: the evaluators below 1, the one that costs most first.

    One that misses what is required comes before all others. Nothing for a yes or no, and nothing for evaluators that
    do not count. `then` are earlier scores by name.
    """
    low = low_evaluators(case)
    shown = [_words(result, (then or {}).get(result.name)) for result in low[:MAX_EVALUATORS]]
    rest = len(low) - len(shown)
    return (*shown, *([f"{rest} more below 1"] if rest else []))


def _words(result: EvaluatorResult, then: float | None) -> str:
    name = one_line(result.name, MAX_NAME)
    now = score(result.score)
    scored = f"{name} {now}" if then is None or score(then) == now else f"{name} {score(then)} → {now}"
    scored += ", required" if result.vetoed else ""
    said = result.misses[:MAX_MISSES] or ([result.reasoning] if result.reasoning else [])
    words = [one_line(miss, MAX_WORDS) for miss in said if miss.strip()]
    if len(result.misses) > MAX_MISSES:
        words.append(f"{len(result.misses) - MAX_MISSES} more")
    return f"{scored}: {'; '.join(words)}" if words else scored


class ShownGrade(FrozenStruct):
    """What a judge gave one case for one dimension of a rubric: `score` is `2/3`."""

    case: str
    dimension: str
    score: str
    said: str


def grades_of(run: RunResult) -> tuple[ShownGrade, ...]:
    """All grades of a run, in the order of its cases."""
    return tuple(grade for _, case in run.cases() for grade in _grades(case))


def _grades(case: CaseResult) -> Iterator[ShownGrade]:
    for result in case.evaluator_results:
        if result.type != "rubric" or result.evaluator_provider_request is None:
            continue
        said = dict(_split(line) for line in (*result.hits, *result.misses))
        dimensions = result.evaluator_provider_request.get("dimensions")
        for one in dimensions if isinstance(dimensions, list) else []:
            if isinstance(one, dict):
                score = f"{_number(one.get('score'))}/{_number(one.get('maxScore'))}"
                name = str(one.get("dimension"))
                yield ShownGrade(case.id, name, score, said.get(f"{name} {score}", ""))


def _split(line: str) -> tuple[str, str]:
    """`accuracy 2/3: nearly` in its two parts."""
    head, _, reasoning = line.partition(": ")
    return head, reasoning


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else "?"
