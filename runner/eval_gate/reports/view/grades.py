"""What a judge gave for each dimension of a rubric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eval_gate.model.result import CaseResult, SuiteResult


@dataclass(frozen=True, slots=True)
class Grade:
    """One dimension of one case: `score` is `2/3`."""

    case: str
    dimension: str
    score: str
    said: str


def grades_of(suites: Iterable[SuiteResult]) -> tuple[Grade, ...]:
    """All grades of a run, in the order of its cases."""
    return tuple(grade for suite in suites for case in suite.cases for grade in _grades(case))


def _grades(case: CaseResult) -> Iterator[Grade]:
    for result in case.evaluator_results:
        if result.type != "rubric" or result.evaluator_provider_request is None:
            continue
        said = dict(_split(line) for line in (*result.hits, *result.misses))
        dimensions = result.evaluator_provider_request.get("dimensions")
        for one in dimensions if isinstance(dimensions, list) else []:
            if isinstance(one, dict):
                score = f"{_number(one.get('score'))}/{_number(one.get('maxScore'))}"
                name = str(one.get("dimension"))
                yield Grade(case.id, name, score, said.get(f"{name} {score}", ""))


def _split(line: str) -> tuple[str, str]:
    """`accuracy 2/3: nearly` in its two parts."""
    head, _, reasoning = line.partition(": ")
    return head, reasoning


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else "?"
