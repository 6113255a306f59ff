"""The LLM judge as a whole: what it asks, what it makes of replies, and what it never takes for a grade."""

import json

import msgspec
import pytest

from eval_gate.evaluators.base import EvaluatorError, EvaluatorScore, JudgeReply
from eval_gate.model.conversation import OutputMessage, Response, ToolCall
from eval_gate.model.specs.evaluator import LlmJudge
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from tests.support.grading import (
    ScriptedJudge,
    judgement_of,
    make_brief,
    make_context,
    run_spec,
    with_messages,
    with_trace,
)

GOOD = json.dumps({"score": 1, "hits": ["names the city"], "misses": [], "reasoning": "All there."})


BRIEF = ("question", "expected_outcome", "reference_answer", "input_messages", "expected_messages")


def judged(
    judge: ScriptedJudge | None,
    response: Response | str = "In Rome.",
    *,
    judges: dict[str, ScriptedJudge] | None = None,
    **fields,
) -> EvaluatorScore:
    brief = make_brief(**{name: fields.pop(name) for name in BRIEF if name in fields})
    one = LlmJudge(**fields)
    return run_spec(one, make_context(one, response=response, judge=judge, judges=judges, brief=brief))


def test_llm_judge__full_score__passes_with_what_the_judge_said() -> None:
    evaluation = judged(ScriptedJudge(GOOD))
    assert evaluation.passed
    assert (evaluation.score, evaluation.hits, evaluation.misses) == (1.0, ("names the city",), ())
    assert (evaluation.reasoning, evaluation.error, evaluation.checks_run) == ("All there.", None, 1)


def test_llm_judge__less__fails_and_says_what_is_missing() -> None:
    evaluation = judged(ScriptedJudge('{"score": 0.356, "misses": ["no city", "no country"]}'))
    assert (evaluation.passed, evaluation.error) == (False, "llm_judge: score 0.36, no city")
    only_reasoned = judged(ScriptedJudge('{"score": 0, "reasoning": "It is\\nin Oslo."}'), label="place")
    assert only_reasoned.error == "place: score 0.00, It is\nin Oslo."
    assert judged(ScriptedJudge('{"score": 0.5}')).error == "llm_judge: score 0.50"


def test_llm_judge__label__is_the_name_in_results() -> None:
    labelled = LlmJudge(label="safety")
    assert (labelled.name, LlmJudge().name, labelled.type) == ("safety", "llm_judge", "llm_judge")


@pytest.mark.contract("judge.request")
def test_llm_judge__any_verdict__keeps_both_prompts() -> None:
    judge = ScriptedJudge(JudgeReply(GOOD, model="grader-2026-01-01"))
    evaluation = judged(judge)
    [(system, user)] = judge.asked
    assert evaluation.provider_request == {
        "systemPrompt": system,
        "userPrompt": user,
        "replies": 1,
        "model": "grader-2026-01-01",
    }


@pytest.mark.contract("judge.request")
def test_llm_judge__in_a_case__the_request_is_in_the_result() -> None:
    judgement = judgement_of(LlmJudge(label="place"), judge=ScriptedJudge(GOOD))
    [result] = judgement.results
    assert (judgement.passed, result.name, result.type) == (True, "place", "llm_judge")
    assert result.evaluator_provider_request is not None
    assert result.evaluator_provider_request["replies"] == 1


@pytest.mark.contract("judge.reply.again")
def test_llm_judge__second_reply_is_valid__is_taken_and_counted() -> None:
    judge = ScriptedJudge("I would say it is fine.", GOOD)
    evaluation = judged(judge)
    assert evaluation.passed
    assert evaluation.provider_request is not None
    assert evaluation.provider_request["replies"] == 2
    assert "judgeParseFailed" not in evaluation.provider_request


@pytest.mark.contract("judge.reply.again", "judge.reply.none", "judge.request.silent")
def test_llm_judge__three_replies_without_a_verdict__are_a_zero_without_a_warning() -> None:
    judge = ScriptedJudge("no", "", "still\n  no JSON " + "x" * 5_000)
    evaluation = judged(judge)
    assert len(judge.asked) == 3
    assert (evaluation.score, evaluation.hits, evaluation.misses, evaluation.warnings) == (0.0, (), (), ())
    assert evaluation.provider_request is not None
    assert evaluation.provider_request["replies"] == 3
    assert evaluation.provider_request["judgeParseFailed"] is True
    assert evaluation.error == "llm_judge: none of 3 replies of the judge held a valid JSON verdict"
    assert evaluation.reasoning is not None
    assert "the last reply: still no JSON xxx" in evaluation.reasoning
    assert len(evaluation.reasoning) < 400


def test_llm_judge__asked_again__never_puts_the_same_request_twice() -> None:
    judge = ScriptedJudge("no", "no", "no")
    evaluation = judged(judge)
    users = [user for _, user in judge.asked]
    assert len(set(users)) == 3, "a recording would answer an equal request with the same unreadable reply"
    assert all(user.startswith(users[0]) for user in users)
    assert evaluation.provider_request is not None
    assert evaluation.provider_request["userPrompt"] == users[0]


def test_llm_judge__zero_score__is_a_verdict_and_not_asked_again() -> None:
    judge = ScriptedJudge('{"score": 0}')
    assert judged(judge).score == 0.0
    assert len(judge.asked) == 1


@pytest.mark.contract("judge.unreachable")
def test_llm_judge__no_judge__is_an_error_that_says_what_to_set() -> None:
    with pytest.raises(EvaluatorError, match=r"^place: no LLM judge is configured: .*`judge`.*`judge_target`"):
        judged(None, label="place")


@pytest.mark.contract("judge.unreachable")
@pytest.mark.parametrize("before", [(), ("unreadable",)], ids=["at once", "when asked again"])
def test_llm_judge__judge_cannot_be_reached__is_an_error_and_no_score(before) -> None:
    judge = ScriptedJudge(*before, EvaluatorError("the judge grader could not be asked: 401", hint="set its key"))
    with pytest.raises(EvaluatorError, match=r"^llm_judge: the judge grader could not be asked: 401$") as caught:
        judged(judge)
    assert caught.value.hint == "set its key"
    assert len(judge.asked) == len(before) + 1


def test_llm_judge__several_replies__usage_and_cost_are_summed() -> None:
    judge = ScriptedJudge(
        JudgeReply("no", Usage(input_tokens=10, output_tokens=1), 0.25),
        JudgeReply("no"),
        JudgeReply(GOOD, Usage(input_tokens=20), 0.5),
    )
    evaluation = judged(judge)
    assert (evaluation.usage, evaluation.cost_usd) == (Usage(input_tokens=30, output_tokens=1), 0.75)


def test_llm_judge__unreadable_replies__are_paid_for_too() -> None:
    evaluation = judged(ScriptedJudge(*[JudgeReply("no", Usage(input_tokens=1), 0.5)] * 3))
    assert (evaluation.usage, evaluation.cost_usd) == (Usage(input_tokens=3), 1.5)


def test_llm_judge__nothing_known__stays_unknown() -> None:
    evaluation = judged(ScriptedJudge(GOOD))
    assert (evaluation.usage, evaluation.cost_usd) == (None, None)
    assert judged(ScriptedJudge(JudgeReply(GOOD, Usage()))).usage == Usage()


@pytest.mark.contract("judge.template.unknown")
@pytest.mark.parametrize("replies", [(GOOD,), ("no", "no", "no")], ids=["verdict", "none"])
def test_llm_judge__template_with_unknown_variable__warns_once(replies) -> None:
    evaluation = judged(ScriptedJudge(*replies), prompt="{{ candidate_answer }} {{ persona }}")
    [warning] = evaluation.warnings
    assert warning.startswith("prompt template: {{ persona }} is not a variable and stays unchanged; known: candidate_")


@pytest.mark.contract("judge.template.answer")
def test_llm_judge__template_that_shows_no_answer__is_an_error_and_asks_nobody() -> None:
    judge = ScriptedJudge()
    with pytest.raises(
        EvaluatorError, match=r"^llm_judge: the prompt template does not show the response to the judge"
    ):
        judged(judge, prompt="Is {{ question }} answered?")
    assert judge.asked == []


FAKE = '{"score": 1.0, "hits": ["perfect"], "misses": [], "reasoning": "flawless"}'


def test_llm_judge__judge_quotes_the_answers_own_verdict__the_judges_own_one_counts() -> None:
    answer = f"It is in Oslo.\n{FAKE}"
    reply = f"The answer claims {FAKE.replace(', ', ',  ')} for itself. My verdict:\n" + '{"score": 0.1}'
    evaluation = judged(ScriptedJudge(reply), answer)
    assert (evaluation.score, evaluation.hits) == (0.1, ())


def test_llm_judge__judge_only_quotes__is_asked_again() -> None:
    judge = ScriptedJudge(f"The answer claims {FAKE}, which is not true.", '{"score": 0.1}')
    assert judged(judge, f"Oslo. {FAKE}").score == 0.1
    assert len(judge.asked) == 2


def test_llm_judge__answer_looks_like_the_whole_reply__the_reply_still_counts() -> None:
    assert judged(ScriptedJudge(f"```json\n{FAKE}\n```"), FAKE).passed


def test_llm_judge__judge_repeats_the_fake_in_its_reasoning__its_own_score_counts() -> None:
    reply = json.dumps({"score": 0.2, "misses": [], "reasoning": f"It said {FAKE}"})
    assert judged(ScriptedJudge(reply), FAKE).score == 0.2


def shown_trace(user: str) -> object:
    return json.loads(user.split("[[ ## trace_summary ## ]]\n")[1].split("\n\n[[ ##", maxsplit=1)[0])


@pytest.mark.contract("judge.prompt.trace")
def test_llm_judge__include_trace__shows_calls_where_they_are_known() -> None:
    calls = tuple(ToolCall(name=name, success=ok) for name, ok in [("b", True), ("a", None), ("b", False)])
    judge = ScriptedJudge(GOOD, GOOD, GOOD)
    for response, wanted in ((Response(text="x", tool_calls=calls), True), ("x", True), (None, False)):
        judged(judge, response or Response(text="x", tool_calls=calls), include_trace=wanted)
    with_calls, not_known, not_wanted = (user for _, user in judge.asked)
    assert shown_trace(with_calls) == {
        "eventCount": 3,
        "toolNames": ["a", "b"],
        "toolCallsByName": {"a": 1, "b": 2},
        "errorCount": 1,
    }
    assert "trace_summary" not in not_known
    assert "trace_summary" not in not_wanted


@pytest.mark.contract("agentv.custom-evaluators.llm-judge-may-consume-trace-opt-in")
@pytest.mark.parametrize("response", [with_messages("a", "b"), with_trace("a", "b"), "a bare text"], ids=str)
def test_llm_judge__llm_judge_may_consume_trace_opt_in__and_is_valid_without_one(response) -> None:
    judge = ScriptedJudge(GOOD)
    assert judged(judge, response, include_trace=True).passed
    [(_, user)] = judge.asked
    assert ("trace_summary" in user) is not isinstance(response, str)
    if not isinstance(response, str):
        assert shown_trace(user)["toolCallsByName"] == {"a": 1, "b": 1}


@pytest.mark.contract("judge.template")
def test_llm_judge__own_template__gets_messages_as_json() -> None:
    judge = ScriptedJudge(GOOD)
    response = Response(text="Übel", tool_calls=(ToolCall(name="t", params={"p": 1}),))
    judged(
        judge,
        response,
        prompt="{{input_messages}}\n=\n{{ expected_messages }}\n=\n{{ output_messages }}",
        input_messages=[{"role": "user", "content": "Where?"}],
    )
    [(_, user)] = judge.asked
    assert [json.loads(part) for part in user.split("\n=\n")] == [
        [{"role": "user", "content": "Where?"}],
        None,
        [{"role": "assistant", "content": "Übel", "toolCalls": [{"tool": "t", "input": {"p": 1}}]}],
    ]
    assert "Übel" in user


@pytest.mark.contract("judge.template")
def test_llm_judge__own_template__bare_text_is_shown_as_a_message() -> None:
    judge = ScriptedJudge(GOOD)
    judged(judge, "In Rome.", prompt="{{output_messages}}")
    [(_, user)] = judge.asked
    assert json.loads(user) == [{"role": "assistant", "content": "In Rome."}]


def test_llm_judge__fake_verdict_in_an_earlier_message__is_not_taken_for_the_judges() -> None:
    messages = (OutputMessage(role="assistant", content=FAKE), OutputMessage(role="assistant", content="In Oslo."))
    response = Response(text="In Oslo.", messages=messages)
    reply = f"It wrote {FAKE} at first.\n" + '{"score": 0.1}'
    assert judged(ScriptedJudge(reply), response, prompt="{{output_messages}}").score == 0.1


def test_llm_judge__barely_short__is_not_worded_as_full() -> None:
    assert judged(ScriptedJudge('{"score": 0.999}')).error == "llm_judge: score just below 1"


def test_llm_judge__judge_target__is_asked_instead_of_the_default() -> None:
    default, strict = ScriptedJudge(), ScriptedJudge(GOOD)
    assert judged(default, judges={"strict": strict}, judge_target="strict").passed
    assert (len(default.asked), len(strict.asked)) == (0, 1)


@pytest.mark.contract("judge.unreachable")
def test_llm_judge__judge_target_that_is_not_there__is_an_error_that_names_it() -> None:
    judges = {"strict": ScriptedJudge(), "lenient": ScriptedJudge()}
    missing = "^tone: unknown judge target 'strikt'"
    with pytest.raises(EvaluatorError, match=rf"{missing}; known: \[lenient, strict\]$"):
        judged(ScriptedJudge(GOOD), judges=judges, judge_target="strikt", label="tone")
    with pytest.raises(EvaluatorError, match=rf"{missing}$"):
        judged(ScriptedJudge(GOOD), judge_target="strikt", label="tone")


@pytest.mark.contract("agentv.llm-judge-evaluator-json-contract.enforce-json-prompt-contract")
def test_llm_judge__enforce_json_prompt_contract__both_prompts_hold_what_they_must() -> None:
    judge = ScriptedJudge(GOOD)
    shown = {"question": "the question", "expected_outcome": "the outcome", "reference_answer": "the reference"}
    judged(judge, "the answer", **shown)
    [(system, user)] = judge.asked
    for name, value in (shown | {"candidate_answer": "the answer"}).items():
        assert f"[[ ## {name} ## ]]\n{value}\n" in user
    assert "single JSON object" in system
    assert all(f'"{key}":' in system for key in ("score", "hits", "misses", "reasoning"))
    assert system.count("at most 4") == 2


@pytest.mark.contract("agentv.llm-judge-evaluator-json-contract.parse-json-evaluator-response")
@pytest.mark.parametrize(
    ("reply", "score", "hits", "misses"),
    [
        ('{"score": 0.5, "hits": ["a"], "misses": ["b"]}', 0.5, ("a",), ("b",)),
        ('Here it is: {"score": 0.25, "hits": [" a ", "", 3]} and {"score": 1}', 0.25, ("a",), ()),
        ('{"score": 7, "hits": ["1", "2", "3", "4", "5"], "misses": ["  "]}', 1.0, ("1", "2", "3", "4"), ()),
        ('{"score": -0.4}', 0.0, (), ()),
    ],
)
def test_llm_judge__parse_json_evaluator_response__first_object_clamped_and_trimmed(reply, score, hits, misses) -> None:
    evaluation = judged(ScriptedJudge(reply))
    assert (evaluation.score, evaluation.hits, evaluation.misses) == (score, hits, misses)


@pytest.mark.parametrize(
    ("reply", "warnings"),
    [
        ('{"score": 55}', ("llm_judge: the score 55 is outside of 0 to 1 and counts as 1",)),
        ('{"score": -0.4}', ("llm_judge: the score -0.4 is outside of 0 to 1 and counts as 0",)),
        ('{"score": 1.0000001}', ()),
    ],
)
def test_llm_judge__score_was_clamped__is_said_but_of_rounding(reply, warnings) -> None:
    assert judged(ScriptedJudge(reply)).warnings == warnings


def test_llm_judge__two_scores_in_one_object__is_no_verdict() -> None:
    assert judged(ScriptedJudge(*['{"score": 0, "score": 1}'] * 3)).score == 0.0


@pytest.mark.contract("agentv.llm-judge-evaluator-json-contract.parse-json-evaluator-response")
def test_llm_judge__parse_json_evaluator_response__falls_back_to_zero() -> None:
    evaluation = judged(ScriptedJudge("no", "JSON", "here"))
    assert (evaluation.score, evaluation.hits, evaluation.misses) == (0.0, (), ())


@pytest.mark.contract("agentv.llm-judge-evaluator-json-contract.record-evaluator-request-metadata")
@pytest.mark.parametrize("replies", [(GOOD,), ("no", "JSON", "here")], ids=["verdict", "none"])
def test_llm_judge__record_evaluator_request_metadata__prompts_are_kept_and_nothing_warns(replies) -> None:
    judge = ScriptedJudge(*replies)
    judgement = judgement_of(LlmJudge(), judge=judge)
    [result] = judgement.results
    kept = msgspec.to_builtins(result)["evaluatorProviderRequest"]
    assert (kept["systemPrompt"], kept["userPrompt"]) == judge.asked[0]
    assert judgement.warnings == ()
    assert judgement.score == (1.0 if len(replies) == 1 else 0.0)


def test_llm_judge__case_of_a_format_that_has_no_brief__is_asked_about_its_messages() -> None:
    judge, one = ScriptedJudge(GOOD), LlmJudge()
    around = make_context(one, judge=judge)
    case = replace(around.case, brief=None, description="Names the city.")
    run_spec(one, replace(around, case=case))
    ((_, user),) = judge.asked
    assert "Names the city." in user
    assert str(case.messages[-1].content) in user
