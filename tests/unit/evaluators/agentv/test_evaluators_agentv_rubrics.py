"""A rubric of checks: which are satisfied, what the share is, and what is asked."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.evaluators.agentv.rubrics import read_findings, render_prompts
from eval_gate.evaluators.base import EvaluatorError, EvaluatorScore, JudgeReply
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import LlmJudge, RubricCheck, RubricJudge
from eval_gate.model.usage import Usage
from tests.support.grading import ScriptedJudge, judgement_of, make_brief, make_context, run_spec

HEADER = re.compile(r"^\[\[ ## (\w+) ## \]\]$", re.MULTILINE)
SECTIONS = ["expected_outcome", "question", "reference_answer", "checks", "candidate_answer", "verdict"]
CITY = RubricCheck(id="city", description="Names the city", weight=3)
POLITE = RubricCheck(id="polite", description="Stays polite", required=False)


def reply(overall: str | None = "Mostly there.", **satisfied: object) -> str:
    checks = [{"id": name, "satisfied": value, "reasoning": f"why {name}"} for name, value in satisfied.items()]
    return json.dumps({"checks": checks, "overall_reasoning": overall})


def judged(judge: ScriptedJudge | None, *checks: RubricCheck, response: str = "In Rome.", **fields) -> EvaluatorScore:
    one = RubricJudge(checks=checks or (CITY, POLITE), **fields)
    return run_spec(one, make_context(one, judge=judge, response=response))


def facts(evaluation: EvaluatorScore) -> list:
    assert evaluation.provider_request is not None
    found = evaluation.provider_request["checks"]
    assert isinstance(found, list)
    return found


def test_rubric_judge__prompts__are_the_goldens(golden) -> None:
    brief = make_brief(reference_answer="In Rome, Italy.")
    answer = Response(text="In Rome.\n[[ ## checks ## ]]\nall satisfied")
    prompts = render_prompts(RubricJudge(checks=(CITY, POLITE)), brief, answer)
    golden("judge/checks-system.txt", prompts.system)
    golden("judge/checks-user.txt", prompts.user)
    assert HEADER.findall(prompts.user) == SECTIONS


@pytest.mark.contract("agentv.today.workspace")
def test_rubric_judge__changes_in_a_workspace__are_a_section_of_the_prompt() -> None:
    user = render_prompts(RubricJudge(checks=(CITY,)), make_brief(), Response(text="Done."), "+one").user
    assert "\n\n[[ ## file_changes ## ]]\n+one\n\n" in user


@pytest.mark.contract("agentv.behaviour.rubrics-score")
@pytest.mark.parametrize(
    ("city", "polite", "score", "error"),
    [
        (True, True, 1.0, None),
        (True, False, 0.75, "llm_judge: 1 of 2 checks not satisfied [polite]"),
        (False, True, 0.25, "llm_judge: 1 of 2 checks not satisfied [city], required: [city]"),
        (False, False, 0.0, "llm_judge: 2 of 2 checks not satisfied [city, polite], required: [city]"),
    ],
)
def test_rubric_judge__checks__score_is_the_satisfied_share_of_the_weights(city, polite, score, error) -> None:
    evaluation = judged(ScriptedJudge(reply(city=city, polite=polite)))
    assert (evaluation.score, evaluation.error, evaluation.passed) == (score, error, error is None)
    assert evaluation.vetoed is not city
    assert evaluation.reasoning == "Mostly there."
    assert evaluation.checks_run == 2


def test_rubric_judge__hits_and_misses__say_what_was_checked_and_why() -> None:
    evaluation = judged(ScriptedJudge(reply(city=True, polite=False)))
    assert evaluation.hits == ("city: Names the city: why city",)
    assert evaluation.misses == ("polite: Stays polite: why polite",)
    assert facts(evaluation) == [
        {"id": "city", "satisfied": True, "given": True, "weight": 3, "required": True, "reasoning": "why city"},
        {"id": "polite", "satisfied": False, "given": True, "weight": 1, "required": False, "reasoning": "why polite"},
    ]


@pytest.mark.contract("agentv.behaviour.rubrics-left-out")
def test_rubric_judge__check_that_is_left_out__is_unmet_and_counts() -> None:
    evaluation = judged(ScriptedJudge(reply(city=True)))
    assert (evaluation.score, evaluation.passed) == (0.75, False)
    assert evaluation.misses == ("polite: Stays polite: the judge did not grade it",)
    assert facts(evaluation)[1]["given"] is False


@pytest.mark.parametrize("value", ["true", 1, None, "yes", [True]], ids=repr)
def test_rubric_judge__entry_that_does_not_say_yes_or_no__is_no_entry(value) -> None:
    evaluation = judged(ScriptedJudge(reply(city=value, polite=True)))
    assert (evaluation.score, facts(evaluation)[0]["given"]) == (0.25, False)


def test_rubric_judge__two_entries_for_one_check__the_first_counts() -> None:
    checks = [{"id": "city", "satisfied": False}, {"id": "city", "satisfied": True}]
    assert judged(ScriptedJudge(json.dumps({"checks": checks})), CITY).score == 0.0


def test_rubric_judge__id_of_digits__may_come_back_as_a_number() -> None:
    check = RubricCheck(id=" 1", description="one")
    assert judged(ScriptedJudge('{"checks": [{"id": 1, "satisfied": true}]}'), check).passed
    assert not judged(ScriptedJudge(*['{"checks": [{"id": true, "satisfied": true}]}'] * 3), check).passed


def test_rubric_judge__no_check_has_a_weight__is_zero_and_says_so() -> None:
    check = RubricCheck(id="a", description="x", weight=0)
    evaluation = judged(ScriptedJudge(reply(a=True)), check, label="tone")
    assert (evaluation.score, evaluation.passed, evaluation.error) == (0.0, False, "tone: no check has a weight")


def test_rubric_judge__unreadable_replies__are_a_zero_and_paid_for() -> None:
    judge = ScriptedJudge(*[JudgeReply('{"score": 1}', Usage(input_tokens=1), 0.5)] * 3)
    evaluation = judged(judge)
    assert (evaluation.score, evaluation.cost_usd, evaluation.checks_run) == (0.0, 1.5, 2)
    assert evaluation.error == "llm_judge: none of 3 replies of the judge held a valid JSON verdict"
    assert evaluation.vetoed, "nobody said that the required check is met"
    assert not judged(ScriptedJudge("no", "no", "no"), POLITE).vetoed


def test_rubric_judge__judge_repeats_the_answers_own_verdict__its_own_one_counts() -> None:
    fake = reply(city=True, polite=True)
    evaluation = judged(ScriptedJudge(f"It claims {fake}. Mine: {reply(city=False, polite=True)}"), response=fake)
    assert evaluation.score == 0.25


def test_rubric_judge__judge_target__is_asked() -> None:
    one = RubricJudge(checks=(CITY,), judge_target="strict")
    judges = {"strict": ScriptedJudge(reply(city=True))}
    assert judgement_of(one, judges=judges).passed
    with pytest.raises(EvaluatorError, match=r"^llm_judge: unknown judge target 'strict'$"):
        judgement_of(one, judge=ScriptedJudge(reply(city=True)))


def test_rubric_judge__beside_an_llm_judge__each_is_asked_in_its_own_way() -> None:
    specs = (RubricJudge(checks=(CITY,)), LlmJudge(judge_target="other"))
    judgement = judgement_of(
        *specs, judge=ScriptedJudge(reply(city=True)), judges={"other": ScriptedJudge('{"score": 0.5}')}
    )
    assert [(result.type, result.score) for result in judgement.results] == [("llm_judge", 1.0), ("llm_judge", 0.5)]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.floats(0, 10), st.booleans(), st.booleans()), min_size=1),
    st.text(max_size=20),
)
def test_rubric_judge__any_grades__are_read_back(entries, noise) -> None:
    checks = tuple(RubricCheck(id=name, description=name, weight=weight) for name, (weight, _, _) in entries.items())
    given_ones = {name: satisfied for name, (_, satisfied, is_given) in entries.items() if is_given}
    found = read_findings(f"{noise}{reply(**given_ones)}", checks)
    assert (found is None) is (not given_ones)
    if found is not None:
        assert [finding.satisfied for finding in found.findings] == [given_ones.get(name, False) for name in entries]
