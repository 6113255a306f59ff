"""How several attempts become one execution: by the rule of the eval file, and never better than AgentV 4 has it."""

import asyncio

import pytest

from eval_gate.config.settings import RunLimits
from eval_gate.engine.attempts import join_attempts, needs_attempt
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.run import Run
from eval_gate.gate.pass_score import apply_pass_score
from eval_gate.model.case import Aggregation, AttemptRule, AttemptStrategy
from eval_gate.model.conversation import Response
from eval_gate.model.execution import ErrorKind, EvaluatorResult, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.specs.agentv import TextAssertion
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from tests.support.cases import ScriptedTarget, Watching, make_case, make_plan, make_suite

BEST, MEAN, LOWER = AttemptStrategy.PASS_AT_K, AttemptStrategy.MEAN, AttemptStrategy.CONFIDENCE_INTERVAL
P, F, E = Status.PASSED, Status.FAILED, Status.ERROR


def record(score: float | None, pass_score: float = 1.0, **fields) -> TrialRecord:
    """An attempt with this score; None for one without a score."""
    status = E if score is None else P if score >= pass_score else F
    kind = ErrorKind.AGENT_ERROR if score is None else None
    made = TrialRecord(
        eval_file="e.yaml",
        case_id="a",
        trial=0,
        fingerprint="f",
        status=status,
        score=score or 0.0,
        duration_ms=10.0,
        attempts=1,
        cost_usd=0.25,
        error=None if status is P else f"scored {score}",
        error_kind=kind,
    )
    return replace(made, **fields)


def joined(strategy: AttemptStrategy, *scores: float | None, pass_score: float | None = None) -> TrialRecord:
    rule = AttemptRule(count=len(scores), strategy=strategy)
    return join_attempts(rule, pass_score, [record(score, pass_score or 1.0) for score in scores])


def count_attempts(rule: AttemptRule, *scores: float | None) -> int:
    made: list[TrialRecord] = []
    while needs_attempt(rule, made):
        made.append(record(scores[len(made)]))
    return len(made)


# the scores are those of AgentV 4.42.4 for the same attempts


@pytest.mark.contract("agentv.today.attempts")
@pytest.mark.parametrize(
    ("strategy", "scores", "pass_score", "score", "status"),
    [
        (BEST, (0.3, 1.0), None, 1.0, P),
        (BEST, (0.3, 0.5, 0.4), None, 0.5, F),
        (BEST, (0.5, 0.7, 0.6), 0.6, 0.7, P),
        (BEST, (None, 1.0), None, 1.0, P),
        (BEST, (None, 0.5, None), None, 0.5, F),
        (MEAN, (1.0, 1.0, 1.0), None, 1.0, P),
        (MEAN, (1.0, 0.6, 1.0, 0.6), None, 0.8, F),
        (MEAN, (1.0, 0.6, 1.0, 0.6), 0.8, 0.8, P),
        (MEAN, (1.0, 0.6, 1.0, 0.5), 0.8, 0.775, F),
        (LOWER, (1.0, 1.0, 1.0), None, 1.0, P),
        (LOWER, (1.0, 0.8, 0.9, 0.7, 1.0), None, 0.718133, F),
        (LOWER, (1.0, 0.9, 1.0, 0.9, 1.0), 0.85, 0.892002, P),
        (LOWER, (1.0, 0.0, 1.0, 0.0, 1.0), None, 0.0, F),
        (LOWER, (*(1.0, 0.9) * 16,), 0.9, 0.95 - 1.96 * 0.0508 / 32**0.5, P),
    ],
)
def test_join__attempts_of_a_rule__have_the_score_of_agentv(strategy, scores, pass_score, score, status) -> None:
    found = joined(strategy, *scores, pass_score=pass_score)
    assert (found.score, found.status) == (pytest.approx(score, abs=1e-5), status)
    assert (found.error is None) is (status is P)
    assert found.error_kind is None


@pytest.mark.contract("agentv.today.attempts")
@pytest.mark.parametrize("strategy", [MEAN, LOWER])
def test_join__attempt_without_a_score_where_all_count__there_is_none(strategy) -> None:
    found = joined(strategy, 1.0, None)
    assert (found.status, found.error_kind, found.score) == (E, ErrorKind.AGENT_ERROR, 0.0)


def test_join__attempts_without_any_score__are_an_error() -> None:
    assert joined(BEST, None, None).status is E


@pytest.mark.parametrize(
    ("strategy", "scores", "unknown"),
    [(BEST, (0.5, 1.0), None), (BEST, (0.5, 0.4), "tools"), (MEAN, (0.5, 1.0), "tools"), (MEAN, (1.0, 1.0), "tools")],
)
def test_join__tool_calls_of_one_attempt_are_unknown__count_where_that_attempt_does(strategy, scores, unknown) -> None:
    silent, other = (record(score) for score in scores)
    attempts = [replace(silent, missing_calls="tools"), other]
    assert join_attempts(AttemptRule(count=2, strategy=strategy), None, attempts).missing_calls == unknown


def test_join__all_attempts__cost_what_they_cost_together() -> None:
    found = joined(BEST, 0.1, 0.2, 1.0)
    assert (found.cost_usd, found.duration_ms, found.attempts) == (0.75, 30.0, 3)
    assert found.warnings == ("passes by its rule: 2 of 3 attempts did not pass",)


def test_join__failed_execution__says_how_many_attempts_there_were() -> None:
    assert joined(BEST, 0.1, 0.2).error == "best of 2 attempts: scored 0.2"
    assert joined(MEAN, 0.2, 0.1).error == "mean of 2 attempts 0.15: scored 0.1"


def test_join__mean_below_the_threshold_of_the_file__is_passed_by_no_other_pass_score() -> None:
    assert joined(MEAN, 0.8, 0.9, pass_score=0.95).vetoed
    assert not joined(MEAN, 0.8, 0.9).vetoed


def test_join__mean_with_a_required_criterion_that_one_attempt_misses__does_not_pass() -> None:
    missed = EvaluatorResult(name="r", type="rubric", score=0.9, vetoed=True)
    attempts = [record(1.0, 0.5), record(0.9, 0.5, evaluator_results=(missed,))]
    found = join_attempts(AttemptRule(count=2, strategy=MEAN), 0.5, attempts)
    assert (found.status, found.vetoed) == (F, True)


@pytest.mark.contract("agentv.today.attempts")
@pytest.mark.parametrize(
    ("strategy", "scores", "made"),
    [
        (BEST, (1.0, 0.0, 0.0), 1),
        (BEST, (0.8, 1.0, 1.0), 1),
        (BEST, (0.79, 0.3, 1.0), 3),
        (BEST, (None, 1.0, 1.0), 2),
        (MEAN, (1.0, 1.0, 1.0), 3),
        (MEAN, (1.0, None, 1.0), 2),
    ],
)
def test_needs__attempts_of_a_rule__end_where_they_decide(strategy, scores, made) -> None:
    assert count_attempts(AttemptRule(count=3, strategy=strategy), *scores) == made


def test_needs__cost_limit__ends_the_attempts_when_it_is_reached() -> None:
    assert count_attempts(AttemptRule(count=5, strategy=MEAN, max_cost_usd=0.5), 1.0, 1.0, 1.0, 1.0, 1.0) == 2


def test_needs__missed_requirement__is_no_end() -> None:
    missed = EvaluatorResult(name="r", type="rubric", score=0.9, vetoed=True)
    assert needs_attempt(AttemptRule(count=2), [record(0.9, evaluator_results=(missed,))])


# in a run


def attempted_case(rule: AttemptRule, pass_score: float | None = None):
    half = [TextAssertion(type="contains", values=(word,)) for word in ("ok", "fine")]
    case = make_case("c0", expect=half)
    return replace(case, aggregation=Aggregation.WEIGHTED_MEAN, attempt_rule=rule, pass_score=pass_score)


def run(folder, rule: AttemptRule, *answers: str | None, pass_score: float | None = None, trials: int = 1):
    """The result, and the number that each request had. An answer of None is an agent that does not answer in time."""
    numbers: list[int] = []

    async def answer(request):
        text = answers[len(numbers)]
        numbers.append(request.trial)
        if text is None:
            raise TargetError("no response", fault=TargetFault.LATE)
        return Response(text=text)

    suite = make_suite(attempted_case(rule, pass_score))
    plan = make_plan(suite, target=ScriptedTarget(answer), limits=RunLimits(trials=trials))
    result: RunResult = asyncio.run(Run(plan, folder, Watching()).execute())
    ((_, case),) = result.iter_cases()
    return result, case, numbers


@pytest.mark.contract("agentv.today.attempts")
def test_run__attempts__are_one_execution_of_the_case(tmp_path) -> None:
    _, case, numbers = run(tmp_path, AttemptRule(count=3), "no", "no", "ok fine")
    assert (case.status, case.score, len(case.trials)) == (P, 1.0, 1)
    assert numbers == [0, 1, 2]


def test_run__trials_of_the_configuration__each_make_their_attempts(tmp_path) -> None:
    _, case, numbers = run(tmp_path, AttemptRule(count=2), "no", "ok fine", "ok", "no", "ok fine", trials=3)
    assert [trial.status for trial in case.trials] == [P, F, P]
    assert (case.status, case.flaky) == (P, True)
    assert numbers == [0, 1, 2, 3, 4]


def test_run__attempt_that_does_not_answer__is_followed_by_the_next(tmp_path) -> None:
    _, case, _ = run(tmp_path, AttemptRule(count=2), None, "ok fine")
    assert case.status is P


def test_run__no_attempt_answers__is_an_agent_error_of_the_case(tmp_path) -> None:
    _, case, numbers = run(tmp_path, AttemptRule(count=2), None, None)
    assert (case.status, case.error_kind, len(numbers)) == (E, ErrorKind.AGENT_ERROR, 2)


def test_run__every_case_has_an_attempt_that_does_not_answer__goes_on_to_the_last(tmp_path) -> None:
    seen: set[str] = set()

    async def answer(request):
        if request.case_id not in seen:
            seen.add(request.case_id)
            raise TargetError("connection refused", fault=TargetFault.UNREACHABLE)
        return Response(text="ok fine")

    cases = [replace(attempted_case(AttemptRule(count=2)), id=f"c{number}") for number in range(10)]
    plan = make_plan(make_suite(*cases), target=ScriptedTarget(answer))
    result = asyncio.run(Run(plan, tmp_path, Watching()).execute())
    assert (result.summary.passed, result.complete) == (10, True)


def passes_at(result: RunResult, pass_score: float) -> CaseResult:
    ((_, case),) = apply_pass_score(result, pass_score).iter_cases()
    return case


@pytest.mark.contract("agentv.today.threshold")
def test_run__threshold_of_the_file__holds_where_the_policy_would_accept_less(tmp_path) -> None:
    result, case, _ = run(tmp_path, AttemptRule(count=1), "ok", pass_score=0.6)
    assert (case.status, case.score) == (F, 0.5)
    assert passes_at(result, 0.5).status is F


@pytest.mark.contract("agentv.today.threshold")
def test_run__threshold_of_the_file__holds_where_the_policy_would_want_more(tmp_path) -> None:
    result, case, _ = run(tmp_path, AttemptRule(count=1), "ok", pass_score=0.5)
    assert (case.status, case.score, case.error) == (P, 0.5, None)
    assert passes_at(result, 0.9).status is P


def test_run__best_attempt_without_a_threshold__passes_from_the_pass_score_of_the_policy(tmp_path) -> None:
    result, case, _ = run(tmp_path, AttemptRule(count=2), "no", "ok")
    assert case.status is F
    assert passes_at(result, 0.5).status is P
