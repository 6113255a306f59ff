"""Several evaluators that count as one: the three aggregators, and what is kept of the members."""

import json
import re
import sys

import msgspec
import pytest

from eval_gate.evaluators.agentv.composite import MAX_DEPTH, render_prompts
from eval_gate.evaluators.base import EvaluatorError, EvaluatorScore, JudgeReply
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import (
    CodeAggregator,
    Composite,
    EvaluatorSpec,
    JudgeAggregator,
    LlmJudge,
    ResponseContains,
    RubricCheck,
    RubricJudge,
    ToolTrajectory,
    WeightedAverage,
)
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from tests.support.grading import ScriptedJudge, judgement_of, make_context, run_spec, with_messages, with_trace

HEADER = re.compile(r"^\[\[ ## (\w+) ## \]\]$", re.MULTILINE)
ORDER = ToolTrajectory(label="order", mode="in_order", expected=("quote", "book"))
TONE = LlmJudge(label="tone", judge_target="tone")


def verdict(score: float, **fields) -> str:
    return json.dumps({"score": score} | fields)


def judged(spec: Composite, response: Response | str = "ok", **around) -> EvaluatorScore:
    return run_spec(spec, make_context(spec, response=response, **around))


def composite(*members: EvaluatorSpec, **fields) -> Composite:
    return Composite(**({"members": members or (ORDER, TONE), "label": "both"} | fields))


def tone(score: float, **fields) -> dict[str, ScriptedJudge]:
    return {"tone": ScriptedJudge(verdict(score, **fields))}


@pytest.mark.contract("agentv.behaviour.composite-weighted")
@pytest.mark.parametrize(
    ("weights", "score"), [({}, 0.7), ({"tone": 3.0}, 0.55), ({"order": 0.0}, 0.4), ({"tone": 0.0}, 1.0)], ids=str
)
def test_composite__weighted_average__is_the_mean_by_name(weights, score) -> None:
    spec = composite(aggregator=WeightedAverage(weights=weights))
    evaluation = judged(spec, with_messages("quote", "book"), judges=tone(0.4))
    assert evaluation.score == score
    assert evaluation.passed is (score == 1.0)
    assert [member.weight for member in evaluation.members] == [weights.get("order", 1.0), weights.get("tone", 1.0)]


@pytest.mark.contract("agentv.behaviour.composite-members")
def test_composite__members__are_kept_and_their_lines_say_whose_they_are() -> None:
    judges = tone(0.4, hits=["is kind"], misses=["too long"], reasoning="Hm.")
    judgement = judgement_of(composite(), response=with_messages("quote", "book"), judges=judges)
    [result] = judgement.results
    assert (result.name, result.type, result.score) == ("both", "composite", 0.7)
    assert result.hits == ("[order] step 1: quote is call 1", "[order] step 2: book is call 2", "[tone] is kind")
    assert result.misses == ("[tone] too long",)
    order, kind = result.evaluator_results
    assert (order.name, order.type, order.score) == ("order", "tool_trajectory", 1.0)
    assert (kind.score, kind.hits, kind.misses, kind.reasoning) == (0.4, ("is kind",), ("too long",), "Hm.")
    assert kind.evaluator_provider_request is not None
    assert judgement.error == "both: tone: score 0.40, too long"
    written = json.loads(msgspec.json.encode(result).decode())
    assert written["evaluatorResults"][0]["evaluatorResults"] == []
    assert msgspec.convert(written, type(result)) == result


@pytest.mark.contract("agentv.behaviour.composite-members")
@pytest.mark.parametrize("response", [with_messages("quote", "book"), with_trace("quote", "book")], ids=str)
def test_composite__trajectory_inside__sees_messages_and_trace(response) -> None:
    assert judged(composite(ORDER), response).score == 1.0


def test_composite__all_full__passes_without_an_error() -> None:
    evaluation = judged(composite(), with_messages("quote", "book"), judges=tone(1))
    assert (evaluation.score, evaluation.passed, evaluation.error) == (1.0, True, None)


def test_composite__every_member_has_weight_0__is_zero_and_says_so() -> None:
    spec = composite(aggregator=WeightedAverage(weights={"order": 0, "tone": 0}))
    evaluation = judged(spec, with_messages("quote", "book"), judges=tone(1))
    assert (evaluation.score, evaluation.passed) == (0.0, False)
    assert evaluation.error == "both: every member has weight 0"


def test_composite__weight_at_a_member__is_not_used_and_warned_about() -> None:
    spec = composite(replace(ORDER, weight=5.0), TONE)
    judgement = judgement_of(spec, response=with_messages("quote", "book"), judges=tone(0.4))
    assert judgement.score == 0.7
    assert judgement.warnings == (
        "both: the weight of [order] is not used: a member's weight stands in the aggregator's `weights`",
    )


@pytest.mark.contract("agentv.behaviour.composite-nested")
def test_composite__nested__counts_as_one_member() -> None:
    inner = composite(ORDER, TONE, label="inner")
    judgement = judgement_of(
        composite(inner, ResponseContains(values=("ok",))), response=with_messages("quote", "book"), judges=tone(0.4)
    )
    assert judgement.score == 0.85
    [result] = judgement.results
    assert [member.name for member in result.evaluator_results] == ["inner", "responseContains"]
    assert [member.name for member in result.evaluator_results[0].evaluator_results] == ["order", "tone"]
    assert "[inner] [order] step 1: quote is call 1" in result.hits
    assert judgement.error == "both: inner: tone: score 0.40"


def test_composite__nested_too_deep__is_an_error() -> None:
    spec: EvaluatorSpec = ResponseContains(values=("ok",))
    for _ in range(MAX_DEPTH):
        spec = Composite(members=(spec,))
    assert judgement_of(spec, response="ok").passed
    with pytest.raises(EvaluatorError, match=r"^composite: composites are nested deeper than 10 levels$"):
        judgement_of(Composite(members=(spec,)), response="ok")


@pytest.mark.parametrize("aggregator", [WeightedAverage(), JudgeAggregator(judge_target="tone")], ids=["mean", "judge"])
def test_composite__required_check_of_a_member_is_not_met__fails_at_a_full_score(aggregator) -> None:
    checks = (RubricCheck(id="a", description="x"), RubricCheck(id="b", description="y", weight=0))
    reply = json.dumps({"checks": [{"id": "a", "satisfied": True}]})
    spec = composite(RubricJudge(checks=checks), aggregator=aggregator)
    judgement = judgement_of(spec, judge=ScriptedJudge(reply), judges=tone(1))
    assert (judgement.score, judgement.passed) == (1.0, False)
    assert judgement.error == "both: llm_judge: 1 of 2 checks not satisfied [b], required: [b]"
    [result] = judgement.results
    assert (result.vetoed, result.evaluator_results[0].vetoed) == (True, True)


@pytest.mark.contract("agentv.behaviour.evaluator-error")
def test_composite__member_that_cannot_judge__is_an_error() -> None:
    with pytest.raises(EvaluatorError, match=r"^both: tone: the judge t could not be asked: 401$"):
        judged(composite(), judges={"tone": ScriptedJudge(EvaluatorError("the judge t could not be asked: 401"))})


PROGRAM = """
import json, sys
results = json.load(sys.stdin)["results"]
json.dump({"score": min(one["score"] for one in results.values()), "misses": sorted(results), "reasoning":
    json.dumps(results["tone"])}, sys.stdout)
"""


@pytest.mark.contract("agentv.behaviour.composite-code")
def test_composite__code_judge__gets_the_results_by_name(tmp_path) -> None:
    (tmp_path / "join.py").write_text(PROGRAM, encoding="utf-8")
    spec = composite(aggregator=CodeAggregator(command=(sys.executable, "join.py"), cwd=str(tmp_path)))
    judges = tone(0.4, hits=["kind"], misses=["long"], reasoning="Hm.")
    evaluation = judged(spec, with_messages("quote", "book"), judges=judges)
    assert (evaluation.score, evaluation.error) == (0.4, "both: score 0.40, order")
    assert evaluation.misses == ("order", "tone", "[tone] long")
    assert evaluation.reasoning is not None
    assert json.loads(evaluation.reasoning) == {
        "score": 0.4,
        "hits": ["kind"],
        "misses": ["long"],
        "reasoning": "Hm.",
    }
    assert [member.weight for member in evaluation.members] == [1.0, 1.0]


def test_composite__code_judge_of_members_with_one_name__gets_all_of_them(tmp_path) -> None:
    (tmp_path / "join.py").write_text(PROGRAM.replace('results["tone"]', "0"), encoding="utf-8")
    spec = composite(
        *[ResponseContains(values=("ok",))] * 3,
        aggregator=CodeAggregator(command=(sys.executable, "join.py"), cwd=str(tmp_path)),
    )
    assert judged(spec).misses == ("responseContains", "responseContains (2)", "responseContains (3)")


def test_composite__code_judge_that_breaks__is_an_error(tmp_path) -> None:
    spec = composite(ORDER, aggregator=CodeAggregator(command="exit 3", cwd=str(tmp_path)))
    with pytest.raises(EvaluatorError, match=r"^both: Code evaluator failed: exited with code 3$"):
        judged(spec)


def test_composite__default_prompts_of_a_judge__are_the_goldens(golden) -> None:
    prompts = render_prompts("both", JudgeAggregator(), '{"tone": {"hits": ["[[ ## verdict ## ]]"]}}')
    golden("judge/composite-system.txt", prompts.system)
    golden("judge/composite-user.txt", prompts.user)
    assert HEADER.findall(prompts.user) == ["evaluator_results", "verdict"]


@pytest.mark.contract("agentv.behaviour.composite-judge")
@pytest.mark.parametrize("prompt", [None, "Weigh:\n{{EVALUATOR_RESULTS_JSON}}", "{{ EVALUATOR_RESULTS_JSON }}"])
def test_composite__llm_judge__is_shown_the_results_and_paid_with_the_members(prompt) -> None:
    judge = ScriptedJudge(JudgeReply(verdict(0.9, misses=["uneven"]), Usage(input_tokens=5), 0.5))
    judges = {"tone": ScriptedJudge(JudgeReply(verdict(0.4, hits=["kind"]), Usage(input_tokens=2), 0.25))}
    spec = composite(aggregator=JudgeAggregator(prompt=prompt))
    evaluation = judged(spec, with_messages("quote", "book"), judge=judge, judges=judges)
    assert (evaluation.score, evaluation.error) == (0.9, "both: score 0.90, uneven")
    assert evaluation.misses == ("uneven",)
    assert "[tone] kind" in evaluation.hits
    assert (evaluation.usage, evaluation.cost_usd) == (Usage(input_tokens=7), 0.75)
    [(system, user)] = judge.asked
    shown = json.loads(user[user.index("{") : user.rindex("}") + 1])
    assert shown["order"]["score"] == 1.0
    assert shown["tone"] == {"score": 0.4, "hits": ["kind"], "misses": [], "reasoning": None}
    assert evaluation.provider_request == {"systemPrompt": system, "userPrompt": user, "replies": 1}


def test_composite__llm_judge__judge_target_is_asked() -> None:
    judges = tone(1) | {"chair": ScriptedJudge(verdict(0.2))}
    spec = composite(aggregator=JudgeAggregator(judge_target="chair"))
    assert judged(spec, with_messages("quote", "book"), judges=judges).score == 0.2


def test_composite__llm_judge_quotes_a_members_score__its_own_counts() -> None:
    def quoting(user: str) -> str:
        results = user[user.index("{") : user.rindex("}") + 1]
        return f"They said {json.dumps(json.loads(results)['tone'])}.\n{verdict(0.1)}"

    judge = ScriptedJudge(quoting)
    evaluation = judged(composite(TONE, aggregator=JudgeAggregator()), judge=judge, judges=tone(1))
    assert evaluation.score == 0.1


def test_composite__llm_judge_that_cannot_be_read__is_a_zero_with_the_members_kept() -> None:
    spec = composite(TONE, aggregator=JudgeAggregator())
    evaluation = judged(spec, judge=ScriptedJudge("no", "no", "no"), judges=tone(1))
    assert (evaluation.score, len(evaluation.members), evaluation.warnings) == (0.0, 1, ())
    assert evaluation.error == "both: none of 3 replies of the judge held a valid JSON verdict"


def test_composite__template_that_shows_no_results__is_an_error() -> None:
    judge = ScriptedJudge()
    spec = composite(TONE, aggregator=JudgeAggregator(prompt="Is {{ results }} good?"))
    with pytest.raises(
        EvaluatorError, match=r"^both: the aggregator's prompt does not show the results to the judge: add"
    ):
        judged(spec, judge=judge, judges=tone(1))
    assert judge.asked == []


def test_composite__template__is_filled_in_one_pass_with_what_can_be_sent() -> None:
    prompts = render_prompts(
        "both", JudgeAggregator(prompt="\ud800{{EVALUATOR_RESULTS_JSON}}"), '"{{EVALUATOR_RESULTS_JSON}} \\1"'
    )
    assert prompts.user == '\ufffd"{{EVALUATOR_RESULTS_JSON}} \\1"'


def test_composite__required_check_of_a_member_of_no_weight__is_required_of_nobody() -> None:
    checks = (RubricCheck(id="a", description="x"), RubricCheck(id="b", description="y", weight=0))
    reply = json.dumps({"checks": [{"id": "a", "satisfied": True}]})
    idle = RubricJudge(checks=checks, label="idle")
    spec = composite(idle, ResponseContains(values=("ok",)), aggregator=WeightedAverage(weights={"idle": 0.0}))
    judgement = judgement_of(spec, judge=ScriptedJudge(reply), response="ok")
    assert (judgement.score, judgement.passed, judgement.error) == (1.0, True, None)


@pytest.mark.parametrize("inside", [False, True], ids=["by itself", "in a composite"])
def test_token_that_leads_nowhere__is_counted_and_named_for_the_whole_case(inside) -> None:
    spec = ResponseContains(values=("{{seed:gone}}", "ok"))
    judgement = judgement_of(composite(spec) if inside else spec, response="ok")
    assert (judgement.assertions_skipped, judgement.skipped_tokens) == (1, ("{{seed:gone}}",))


def test_composite__judge_as_aggregator__keeps_what_it_was_asked() -> None:
    spec = composite(aggregator=JudgeAggregator(judge_target="sum"))
    judges = {"tone": ScriptedJudge(verdict(1)), "sum": ScriptedJudge(verdict(0.5))}
    [result] = judgement_of(spec, response=with_messages("quote", "book"), judges=judges).results
    assert result.evaluator_provider_request["userPrompt"] == judges["sum"].asked[0][1]
