"""Tool calls that the baseline listed and the run does not: unknown, where AgentV scores them 0."""

from __future__ import annotations

import pytest

from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.missing_tool_calls import mark_unknown_calls
from eval_gate.model.execution import CALLS_UNKNOWN, NO_DETAILS, NO_TRACE, ErrorKind, EvaluatorResult, Status
from eval_gate.model.result import CaseResult, RunResult, TraceSummary
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result

pytestmark = pytest.mark.contract("agentv.tool-trajectory-evaluator.baseline-had-calls")


def scored(score: float = 0.0, *misses: str, kind: str = "tool_trajectory", **fields) -> EvaluatorResult:
    return EvaluatorResult(name=kind, type=kind, score=score, misses=misses, **fields)


LACKS = scored(0.0, NO_TRACE)
SKILL = scored(0.0, f'skill "a" was not used: {NO_TRACE}', kind="skill-trigger")
HAS = scored(1.0)
NO_CALLS = TraceSummary(event_count=0, tool_names=(), tool_calls_by_name={}, error_count=0)
JUDGE = scored(1.0, kind="llm_judge")
COMPOSITE = scored(0.5, kind="composite", evaluator_results=(LACKS, JUDGE))


def case(name: str, status: str, *said: EvaluatorResult, **fields) -> CaseResult:
    return make_result(name, status, **({"graded": True, "evaluator_results": said, "details": NO_DETAILS} | fields))


def run_of(*cases: CaseResult) -> RunResult:
    return make_run(make_suite_result(list(cases)))


def before(*cases: CaseResult) -> RunResult:
    return make_baseline_run(make_suite_result(list(cases or [case("a", "passed", HAS)])))


def unknown(run: RunResult, baseline: RunResult, pass_score: float = 1.0) -> set[str]:
    return {
        found.id
        for key, found in mark_unknown_calls(GateCases.pair(baseline, run), pass_score).iter_cases()
        if (found.status, found.error_kind) == (Status.ERROR, ErrorKind.EVALUATION_ERROR)
        and found != run.index_cases()[key]
    }


def test_lost_calls__of_a_turn__no_turn_is_to_blame() -> None:
    turn = scored(0.0, kind="turn", evaluator_results=(LACKS,))
    failed = case("a", "failed", turn, trials="FF", failed_turn=2)
    failed = replace(failed, trials=tuple(replace(one, failed_turn=2) for one in failed.trials))
    (suite,) = mark_unknown_calls(GateCases.pair(before(), run_of(failed)), 1.0).suites
    (marked,) = suite.cases
    assert (marked.status, marked.failed_turn) == (Status.ERROR, None)
    assert [one.failed_turn for one in marked.trials] == [None, None]


@pytest.mark.parametrize(
    "said", [(LACKS,), (SKILL,), (LACKS, JUDGE), (COMPOSITE,)], ids=["sequence", "skill", "and a judge", "composite"]
)
def test_lost_calls__no_answer_lists_any__are_unknown(said) -> None:
    run = run_of(case("a", "failed", *said, trials="FFF", flaky=True), case("b", "passed", JUDGE))
    found = mark_unknown_calls(GateCases.pair(before(), run), 1.0)
    (suite,) = found.suites
    marked = suite.cases[0]
    assert (marked.status, marked.error_kind, marked.passed, marked.score) == (
        Status.ERROR,
        ErrorKind.EVALUATION_ERROR,
        False,
        0.0,
    )
    assert CALLS_UNKNOWN in (marked.error or "")
    assert marked.evaluator_results == said  # what AgentV says of it stays
    assert {(one.status, one.error_kind) for one in marked.list_executions()} == {
        (Status.ERROR, ErrorKind.EVALUATION_ERROR)
    }
    for summary in (suite.summary, found.summary):
        counts = summary.passed, summary.failed, summary.errored, summary.flaky, summary.pass_rate
        assert counts == (1, 0, 1, run.summary.flaky - 1, 1.0)
    assert mark_unknown_calls(GateCases.pair(before(), found), 1.0) is found


@pytest.mark.parametrize(
    "others",
    [
        [case("b", "passed", HAS)],
        [case("b", "failed", scored(0.0, "look called 0 times (minimum: 1)"))],
        [case("b", "passed", JUDGE, trace_summary=NO_CALLS)],
    ],
    ids=["passes", "called another", "known, and not looked at"],
)
def test_lost_calls__another_answer_lists_them__count_as_none(others) -> None:
    assert unknown(run_of(case("a", "failed", LACKS), *others), before()) == set()


def test_lost_calls__answers_of_another_target__say_nothing() -> None:
    assert unknown(run_of(case("a", "failed", LACKS), case("b", "passed", HAS, target="other")), before()) == {"a"}


@pytest.mark.parametrize(
    "then",
    [
        case("a", "failed", LACKS),
        case("a", "passed", JUDGE),
        case("a", "failed", scored(0.5, "x")),
        case("b", "passed", HAS),
    ],
    ids=["had none either", "was not asked for them", "failed with them", "is new"],
)
def test_lost_calls__baseline_did_not_pass_with_them__score_0_as_agentv_says(then) -> None:
    assert unknown(run_of(case("a", "failed", LACKS)), before(then)) == set()


def test_lost_calls__fails_by_other_evaluators_too__stays_failed() -> None:
    wrong = scored(0.0, "wrong", kind="llm_judge")
    assert unknown(run_of(case("a", "failed", LACKS, wrong)), before()) == set()
    assert unknown(run_of(case("a", "failed", LACKS, wrong)), before(), pass_score=0.5) == {"a"}
    vetoed = scored(0.5, "needed", kind="rubrics", vetoed=True)
    assert unknown(run_of(case("a", "failed", LACKS, vetoed)), before(), pass_score=0.5) == set()


def test_lost_calls__that_count_for_nothing__change_nothing() -> None:
    ignored = scored(0.0, NO_TRACE, weight=0.0)
    assert unknown(run_of(case("a", "failed", ignored, JUDGE)), before()) == set()


def test_lost_calls__case_has_another_id_now__is_still_known() -> None:
    then = before(case("old", "passed", HAS, fingerprint="f" * 64))
    assert unknown(run_of(case("a", "failed", LACKS, fingerprint="f" * 64)), then) == {"a"}
