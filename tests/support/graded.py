"""Factories for graded results: a case is its id and its score, the rest has defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eval_gate.model.case import Location
from eval_gate.model.execution import EvaluatorResult, Status, Trial
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result

FILE = "evals/support.yaml"


def make_graded(
    case_id: str,
    score: float = 1.0,
    status: str | None = None,
    *,
    evaluators: Mapping[str, float] | None = None,
    trials: Sequence[float] = (),
    **fields,
) -> CaseResult:
    """A graded case as a record has it: it passes at 1.0. `evaluators` or `trials` make its score where they are given.

    `status` error, skipped or not_run is a case without a grade.
    """
    grades = list((evaluators or {}).values()) or list(trials) or [score]
    passes = sum(grade >= 1.0 for grade in trials)
    passed = passes * 2 > len(trials) if trials else all(grade >= 1.0 for grade in grades)
    found = Status(status or ("passed" if passed else "failed"))
    values = {
        "score": sum(grades) / len(grades) if found.is_scored else 0.0,
        "graded": True,
        "evaluator_results": tuple(make_evaluator(*one) for one in (evaluators or {}).items()),
        "flaky": 0 < passes < len(trials),
        "location": Location(file=FILE, line=7),
    }
    made = make_result(case_id, found.value, **(values | fields))
    words = {True: Status.PASSED, False: Status.FAILED}
    return replace(made, trials=tuple(Trial(status=words[one >= 1.0], score=one, duration_ms=40.0) for one in trials))


def make_evaluator(name: str, score: float = 1.0, **fields) -> EvaluatorResult:
    """An LLM judge that gave this score, with something to say where it is below 1."""
    missed = () if score >= 1.0 else (f"{name} is not what it should be",)
    values = {"type": "llm_judge", "hits": ("it greets",), "misses": missed}
    return EvaluatorResult(name=name, score=score, **(values | fields))


def make_graded_suite(cases: Mapping[str, float] | Sequence[CaseResult], **fields) -> SuiteResult:
    """An AgentV suite of these cases."""
    made = [make_graded(*one) for one in cases.items()] if isinstance(cases, Mapping) else list(cases)
    values = {"tier": None, "tool_name": "support", "eval_file": FILE, "format": "agentv", "agent_endpoint": None}
    return make_suite_result(made, **(values | fields))


def make_graded_run(cases: Mapping[str, float] | Sequence[CaseResult], **fields) -> RunResult:
    """A run of one suite of these cases."""
    return make_run(make_graded_suite(cases), **fields)


def make_graded_baseline(cases: Mapping[str, float] | Sequence[CaseResult], **fields) -> RunResult:
    """The same as an earlier run."""
    return make_baseline_run(make_graded_suite(cases), **fields)
