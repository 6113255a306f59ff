"""Several evaluators of a case: the weighted mean, what is kept of each, and what happens when one cannot judge."""

import asyncio
import json
import math

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.evaluators import aggregation
from eval_gate.evaluators.base import CaseScore, EvaluatorError, JudgeReply
from eval_gate.evaluators.weighted_mean import TOLERANCE, compute_weighted_mean, is_full
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import (
    EvaluatorSpec,
    LlmJudge,
    ResponseContains,
    RubricCheck,
    RubricJudge,
    ToolTrajectory,
)
from eval_gate.model.usage import Usage
from tests.support.grading import ScriptedJudge, judgement_of, make_context, with_messages

WEIGHTS = """
evaluators:
  - name: safety
    type: llm_judge
    weight: 3
  - name: style
    type: llm_judge
    weight: 1
"""


def verdict(score: float, **fields) -> str:
    return json.dumps({"score": score} | fields)


def graded(*scores: float, weights: tuple[float, ...] = ()) -> CaseScore:
    """One judge per score, so that each evaluator gets its own whatever is asked first."""
    names = [f"judge{number}" for number in range(len(scores))]
    fields = [{"weight": weight} for weight in weights] or [{}] * len(scores)
    specs = [LlmJudge(label=name, judge_target=name, **more) for name, more in zip(names, fields, strict=True)]
    judges = {name: ScriptedJudge(verdict(score)) for name, score in zip(names, scores, strict=True)}
    return judgement_of(*specs, judges=judges)


@pytest.mark.contract("agentv.per-evaluator-weights-in-top-level-aggregation.default-aggregation-no-weights")
def test_weighted__default_aggregation_no_weights__is_the_mean() -> None:
    judgement = graded(0.8, 0.4)
    assert judgement.score == 0.6
    assert [result.weight for result in judgement.results] == [1.0, 1.0]


@pytest.mark.contract("agentv.per-evaluator-weights-in-top-level-aggregation.weighted-aggregation-mixed-weights")
def test_weighted__weighted_aggregation_mixed_weights__is_the_weighted_mean() -> None:
    entries = yaml.safe_load(WEIGHTS)["evaluators"]
    specs = [LlmJudge(label=entry["name"], weight=entry["weight"], judge_target=entry["name"]) for entry in entries]
    judges = {"safety": ScriptedJudge(verdict(0.8)), "style": ScriptedJudge(verdict(0.4))}
    judgement = judgement_of(*specs, judges=judges)
    assert judgement.score == 0.7
    assert [(result.name, result.score, result.weight) for result in judgement.results] == [
        ("safety", 0.8, 3),
        ("style", 0.4, 1),
    ]


@pytest.mark.contract(
    "agentv.per-evaluator-weights-in-top-level-aggregation.weight-of-zero-excludes-evaluator-from-aggregation"
)
def test_weighted__weight_of_zero_excludes_evaluator_from_aggregation__but_it_is_recorded() -> None:
    judgement = graded(1.0, 0.0, weights=(1, 0))
    assert (judgement.score, judgement.passed, judgement.error) == (1.0, True, None)
    assert [(result.score, result.weight) for result in judgement.results] == [(1.0, 1), (0.0, 0)]


@pytest.mark.contract("agentv.per-evaluator-weights-in-top-level-aggregation.all-weights-are-zero")
def test_weighted__all_weights_are_zero__is_zero_and_no_pass() -> None:
    judgement = graded(1.0, 1.0, weights=(0, 0))
    assert (judgement.score, judgement.passed) == (0.0, False)
    assert judgement.error == "every evaluator has weight 0, so there is no score"


@pytest.mark.contract("agentv.persist-evaluator-weight-in-results.weight-included-in-evaluator-results")
def test_weighted__weight_included_in_evaluator_results() -> None:
    spec = ToolTrajectory(mode="any_order", minimums={"a": 1}, weight=2)
    [result] = judgement_of(spec, response=with_messages("a")).results
    assert msgspec.to_builtins(result)["weight"] == 2


@pytest.mark.contract("agentv.score-aggregation.multiple-evaluators-aggregation")
def test_weighted__multiple_evaluators_aggregation__is_the_mean_and_fails_below_one() -> None:
    judgement = graded(1.0, 0.0)
    assert (judgement.score, judgement.passed) == (0.5, False)
    assert judgement.error == "judge1: score 0.00"
    assert judgement.assertions_run == 2


def test_weighted__more_than_one_falls_short__the_first_that_counts_is_named() -> None:
    assert graded(0.0, 1.0, 0.3, 0.2, weights=(0, 1, 1, 1)).error == "judge2: score 0.30"


def test_weighted__awkward_weights__full_scores_are_exactly_one() -> None:
    judgement = graded(1.0, 1.0, 1.0, weights=(0.1, 0.2, 0.7))
    assert (judgement.score, judgement.passed) == (1.0, True)


def test_weighted__tiny_weight__still_keeps_a_failed_evaluator_from_passing() -> None:
    judgement = graded(1.0, 0.0, weights=(1e12, 1e-12))
    assert judgement.score < 1
    assert (judgement.passed, judgement.error) == (False, "judge1: score 0.00")


def test_weighted__score_just_below_one_by_arithmetic__is_full() -> None:
    assert is_full(0.1 + 0.2 + 0.7)
    assert graded(1 - 1e-10, 1.0).passed
    assert not graded(1 - 1e-8, 1.0).passed


def test_weighted__first_fails__the_others_are_asked_too_and_results_keep_their_order() -> None:
    slow, fast = ToolTrajectory(mode="exact", expected=("a",)), LlmJudge(label="grade")
    judge = ScriptedJudge(verdict(1))
    judgement = judgement_of(slow, fast, ResponseContains(values=("ok",)), judge=judge, response=with_messages("b"))
    assert [result.name for result in judgement.results] == ["tool_trajectory", "grade", "responseContains"]
    assert [result.score for result in judgement.results] == [0.0, 1.0, 1.0]
    assert judgement.error is not None
    assert judgement.error.startswith("tool_trajectory: call 1 is b and should be a")


def test_weighted__judges__usage_cost_and_warnings_are_summed() -> None:
    judges = {
        "a": ScriptedJudge(JudgeReply(verdict(1), Usage(input_tokens=1, output_tokens=2), 0.25)),
        "b": ScriptedJudge(JudgeReply(verdict(1), Usage(input_tokens=10), 0.5)),
    }
    template = "{{candidate_answer}} {{persona}}"
    specs = [LlmJudge(label=name, judge_target=name, prompt=template) for name in judges]
    judgement = judgement_of(*specs, judges=judges)
    assert (judgement.judge_usage, judgement.judge_cost_usd) == (Usage(input_tokens=11, output_tokens=2), 0.75)
    assert len(judgement.warnings) == 2


def test_weighted__no_evaluators__is_an_error_and_no_pass() -> None:
    with pytest.raises(EvaluatorError, match=r"^the case has no evaluators$"):
        judgement_of()


def test_weighted__long_sentence__is_cut() -> None:
    names = tuple("x" * 300 for _ in range(9))
    judgement = judgement_of(ToolTrajectory(mode="exact", expected=names, label="l" * 999), response=with_messages("b"))
    assert judgement.error is not None
    assert len(judgement.error) <= aggregation.MAX_ERROR


def test_weighted__required_check_of_no_weight_is_not_met__fails_at_a_full_score() -> None:
    checks = (RubricCheck(id="a", description="is polite"), RubricCheck(id="b", description="is safe", weight=0))
    reply = json.dumps({"checks": [{"id": "a", "satisfied": True}, {"id": "b", "satisfied": False}]})
    judgement = judgement_of(RubricJudge(checks=checks), judge=ScriptedJudge(reply))
    assert (judgement.score, judgement.passed) == (1.0, False)
    assert judgement.error == "llm_judge: 1 of 2 checks not satisfied [b], required: [b]"


class Stuck:
    """A judge that never answers, and knows how that ended."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.ended = False

    async def ask(self, system: str, user: str, schema: object = None) -> JudgeReply:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended = True
        raise AssertionError


class FailsOnceAsked:
    """A judge that breaks as soon as another one is being asked."""

    def __init__(self, other: Stuck) -> None:
        self._other = other

    async def ask(self, system: str, user: str, schema: object = None) -> JudgeReply:
        await self._other.asked.wait()
        raise EvaluatorError("the judge j could not be asked: 503")


@pytest.mark.contract("agentv.behaviour.evaluator-error")
def test_weighted__one_cannot_judge__the_others_are_ended_and_it_is_an_error() -> None:
    async def main() -> tuple[Stuck, int]:
        stuck = Stuck()
        specs = (LlmJudge(label="slow", judge_target="stuck"), LlmJudge(label="broken", judge_target="broken"))
        judges = {"stuck": stuck, "broken": FailsOnceAsked(stuck)}
        async with asyncio.timeout(10):
            with pytest.raises(EvaluatorError, match=r"^broken: the judge j could not be asked: 503$"):
                await aggregation.score_case(make_context(*specs, judges=judges))
        return stuck, len(asyncio.all_tasks())

    stuck, tasks = asyncio.run(main())
    assert stuck.ended, "the error must not leave a question behind"
    assert tasks == 1


def test_weighted__cancelled__ends_every_evaluator() -> None:
    async def main() -> list[Stuck]:
        stuck = [Stuck(), Stuck()]
        specs = [LlmJudge(label=name, judge_target=name) for name in "ab"]
        context = make_context(*specs, judges=dict(zip("ab", stuck, strict=True)))
        task = asyncio.create_task(aggregation.score_case(context))
        for one in stuck:
            await one.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1
        return stuck

    assert all(one.ended for one in asyncio.run(main()))


def test_weighted__judges__are_asked_side_by_side() -> None:
    async def main() -> None:
        both = asyncio.Barrier(2)

        class Meeting:
            async def ask(self, system: str, user: str, schema: object = None) -> JudgeReply:
                await both.wait()
                return JudgeReply(verdict(1))

        specs = (LlmJudge(label="a"), LlmJudge(label="b"))
        async with asyncio.timeout(10):
            assert (await aggregation.score_case(make_context(*specs, judge=Meeting()))).passed

    asyncio.run(main())


def test_first_failure__tool_forge_case__has_no_summary_and_stops_at_the_first() -> None:
    specs: tuple[EvaluatorSpec, ...] = (ResponseContains(values=("no",)), ResponseContains(values=("ok",)))
    judgement = judgement_of(*specs, response=Response(text="ok"), aggregation="first_failure")
    assert (judgement.score, judgement.trace_summary, len(judgement.results)) == (0.0, None, 1)


SCORES = st.floats(0, 1) | st.sampled_from([0.0, 1.0, 0.1, 0.5])
WEIGHTED = st.tuples(st.floats(0, allow_infinity=False) | st.sampled_from([0.0, 1.0, 0.1, 0.2, 0.7]), SCORES)


@given(st.lists(WEIGHTED, min_size=1, max_size=8))
def test_weighted_mean__any__is_within_the_scores_that_count(weighted) -> None:
    mean = compute_weighted_mean(weighted)
    counted = [score for weight, score in weighted if weight > 0]
    if not counted:
        assert mean == 0.0
    elif all(score >= 1 - TOLERANCE for score in counted):
        assert mean == 1.0
    else:
        assert min(counted) <= mean <= max(counted)
        assert mean < 1.0


@given(st.lists(WEIGHTED, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_weighted_mean__any_order__is_the_same(weighted, random) -> None:
    shuffled = list(weighted)
    random.shuffle(shuffled)
    assert compute_weighted_mean(shuffled) == compute_weighted_mean(weighted)


@given(st.lists(WEIGHTED, min_size=1, max_size=8), st.lists(SCORES, max_size=4))
def test_weighted_mean__evaluators_of_weight_zero__do_not_matter(weighted, scores) -> None:
    assert compute_weighted_mean([*weighted, *((0.0, score) for score in scores)]) == compute_weighted_mean(weighted)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(1e-3, 1e3))
def test_weighted_mean__equal_weights__is_the_mean(scores, weight) -> None:
    assert compute_weighted_mean([(weight, score) for score in scores]) == pytest.approx(
        math.fsum(scores) / len(scores), abs=1e-8
    )


UNMET = json.dumps({"checks": [{"id": "a", "satisfied": True}, {"id": "b", "satisfied": False}]})


@pytest.mark.contract("agentv.today.threshold")
@pytest.mark.parametrize(
    ("pass_score", "required", "weight", "passed"),
    [
        (0.9, False, 1, True),
        (0.91, False, 1, False),
        (None, False, 1, False),
        (0.5, True, 1, False),
        (0.5, True, 0, True),
    ],
)
def test_weighted__pass_score_of_the_case__is_enough_unless_something_required_is_missed(
    pass_score, required, weight, passed
) -> None:
    checks = (RubricCheck(id="a", description="a", weight=9), RubricCheck(id="b", description="b", required=required))
    rubric = RubricJudge(label="r", judge_target="j", weight=weight, checks=checks)
    judges = {"j": ScriptedJudge(UNMET)}
    other = () if weight else (ResponseContains(values=("Rome",)), ResponseContains(values=("Oslo",)))
    found = judgement_of(rubric, *other, judges=judges, pass_score=pass_score)
    assert (found.passed, found.error is None) == (passed, passed)
