"""Assertions of today's AgentV: what holds, what does not, and what cannot be judged. Scores of AgentV itself stand in
tests/integration/test_integration_agentv_today.py."""

import sys

import msgspec
import pytest

from eval_gate.evaluators.base import EvaluatorError, EvaluatorScore, UnreportedDataError
from eval_gate.model.conversation import Message, OutputCall, OutputMessage, Response, ToolCall, TraceEvent
from eval_gate.model.execution import CALLS_UNKNOWN, NO_TRACE, ErrorKind
from eval_gate.model.specs.agentv import (
    CallSequence,
    ExecutionMetrics,
    ExpectedCall,
    FieldAccuracy,
    FieldCheck,
    MetricLimit,
    SkillTrigger,
    TextAssertion,
)
from eval_gate.model.specs.evaluator import (
    CodeGrader,
    Composite,
    LlmJudge,
    RubricCheck,
    RubricJudge,
    ThresholdAggregator,
)
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from tests.support.grading import ScriptedJudge, judgement_of, make_brief, make_context, run_spec, with_trace


def said_of(spec, response: Response | str = "ok", **around) -> EvaluatorScore:
    return run_spec(spec, make_context(spec, response=response, **around))


def called(*calls: OutputCall, text: str = "ok") -> Response:
    return Response(text=text, messages=(OutputMessage(role="assistant", content=text, tool_calls=calls),))


def sequence(mode: str, *expected: ExpectedCall, **fields) -> CallSequence:
    return CallSequence(mode=mode, expected=expected, **fields)


# texts


@pytest.mark.contract("agentv.today.assertions")
@pytest.mark.parametrize(
    ("kind", "values", "answer", "holds"),
    [
        ("contains", ("b",), "abc", True),
        ("contains", ("B",), "abc", False),
        ("icontains", ("B",), "abc", True),
        ("icontains", ("ÄÖ",), "xäöy", True),
        ("contains-any", ("x", "c"), "abc", True),
        ("contains-any", ("x", "y"), "abc", False),
        ("contains-all", ("a", "x"), "abc", False),
        ("icontains-any", ("X", "C"), "abc", True),
        ("icontains-all", ("A", "C"), "abc", True),
        ("contains-number", ("1,250.40",), "it costs 1250.4", True),
        ("contains-number", ("1,250.40",), "it costs 1,205.40", False),
        ("starts-with", (" a",), "\n\ufeffabc", True),
        ("ends-with", ("c\t",), "abc\u3000", True),
        ("equals", ("abc",), " abc\n", True),
        ("equals", ("abc",), "abc.", False),
        ("equals", ("a\x1c",), "a", False),
        ("is-json", (), ' {"a": [1]}\n', True),
        ("is-json", (), "NaN", False),
        ("is-json", (), "", False),
    ],
)
def test_text__answer__holds_or_not(kind, values, answer, holds) -> None:
    found = said_of(TextAssertion(type=kind, values=values), answer)
    assert (found.score, found.passed) == (float(holds), holds)
    assert bool(found.hits) is holds
    assert (found.error is None) is holds
    turned = said_of(TextAssertion(type=kind, values=values, negate=True), answer)
    assert (turned.score, turned.hits, turned.misses) == (float(not holds), found.misses, found.hits)
    assert (turned.error is None) is not holds


def test_number__not_in_the_answer__says_which_numbers_are() -> None:
    found = said_of(TextAssertion(type="contains-number", values=("21",)), "It is 12.")
    assert found.error == "contains-number: expected the number 21; response has 12"


@pytest.mark.parametrize("negate", [False, True])
def test_text__pattern_that_cannot_be_compiled__fails_also_negated_and_below_its_floor(negate) -> None:
    found = said_of(TextAssertion(type="regex", values=("(",), negate=negate))
    assert (found.score, found.passed) == (0.0, False)
    assert found.error == "regex: /(/ is not a valid pattern: Unbalanced parenthesis"
    required = said_of(TextAssertion(type="regex", values=("(",), negate=negate, floor=0.5))
    assert (required.vetoed, required.zeroes_case) == (True, True)


# what a score is held to


@pytest.mark.contract("agentv.today.assertions")
def test_required__below_its_floor__makes_the_score_of_the_case_zero_whatever_its_weight() -> None:
    for weight in (0, 1):
        missed = TextAssertion(type="contains", values=("x",), floor=0.8, weight=weight)
        judged = judgement_of(missed, TextAssertion(type="contains", values=("ok",), weight=9), response="ok")
        assert (judged.passed, judged.score) == (False, 0.0)
        assert judged.error is not None
        assert "required: at least 0.8" in judged.error


@pytest.mark.contract("agentv.today.assertions")
def test_required__of_what_is_turned_round__asks_for_the_turned_score() -> None:
    spec = TextAssertion(type="contains", values=("x",), negate=True, floor=1)
    assert judgement_of(spec, response="ok").passed
    assert judgement_of(spec, response="x").score == 0.0


def test_negate__of_a_rubric_with_a_required_check__is_no_veto() -> None:
    spec = RubricJudge(checks=(RubricCheck(id="a", description="d"),), negate=True)
    reply = '{"checks": [{"id": "a", "satisfied": false}]}'
    assert judgement_of(spec, judge=ScriptedJudge(reply)).passed


# calls


def test_calls__not_known__are_no_calls_and_turned_round_not_judged() -> None:
    step = ExpectedCall(tool="a")
    for mode in ("in_order", "exact", "subset", "superset"):
        found = said_of(sequence(mode, step), "a bare text")
        assert (found.score, found.misses) == (0.0, (NO_TRACE,))
        with pytest.raises(EvaluatorError, match=CALLS_UNKNOWN) as unknown:
            said_of(sequence(mode, step, negate=True), "a bare text")
        assert unknown.value.error_kind is ErrorKind.EVALUATION_ERROR


@pytest.mark.parametrize(
    "response",
    [
        called(OutputCall(tool="a", input={"x": 1}), OutputCall(tool="b")),
        Response(text="ok", tool_calls=(ToolCall(name="a", params={"x": 1}), ToolCall(name="b"))),
        Response(
            text="ok",
            trace=(
                TraceEvent(type="tool_call", name="a", input={"x": 1}),
                TraceEvent(type="tool_result"),
                TraceEvent(type="tool_call", name="b"),
            ),
        ),
    ],
    ids=["messages", "calls", "trace"],
)
def test_calls__however_they_are_reported__have_their_arguments(response) -> None:
    assert said_of(sequence("exact", ExpectedCall(tool="a", args={"x": 1}), ExpectedCall(tool="b")), response).passed
    assert not said_of(sequence("superset", ExpectedCall(tool="a", args={"x": 2})), response).passed


@pytest.mark.parametrize(
    ("args", "match", "given", "fits"),
    [
        ({"a": 1}, "exact", {"a": 1.0}, True),
        ({"a": 1}, "exact", {"a": True}, False),
        ({"a": 1}, "exact", {"a": 1, "b": 2}, False),
        ({"a": 1}, "superset", {"a": 1, "b": 2}, True),
        ({"a": 1}, "superset", {"b": 2}, False),
        ({"a": 1, "b": 2}, "subset", {"b": 2}, True),
        ({"a": 1}, "subset", {"a": 1, "c": 3}, False),
        ({"a": 1}, "ignore", None, True),
        ({"a": 1}, "exact", None, False),
        ({"a": 1}, "exact", "a text", False),
        ({}, "exact", {}, True),
        ({"a": {"b": [1, 2]}}, ("a.b[1]",), {"a": {"b": [0, 2]}}, True),
        ({"a": {"b": [1, 2]}}, ("a.b[1]",), {"a": {"b": [0]}}, False),
        ({"a": 1}, ("z",), {"a": 2}, True),
        (None, "exact", {"a": 2}, True),
    ],
)
def test_calls__arguments__fit_as_they_are_compared(args, match, given, fits) -> None:
    spec = sequence("in_order", ExpectedCall(tool="t", args=args, match=match))
    assert said_of(spec, called(OutputCall(tool="t", input=given))).passed is fits


def test_calls__time_that_nobody_reports__is_said_and_counts_for_nothing() -> None:
    found = said_of(sequence("exact", ExpectedCall(tool="t", max_duration_ms=5)), called(OutputCall(tool="t")))
    assert found.score == 1.0
    assert "the duration of t is unknown" in found.warnings[0]


@pytest.mark.parametrize("extra", [1, 2, 7])
def test_exact__calls_too_many__are_named_and_take_nothing_from_the_score(extra) -> None:
    calls = [OutputCall(tool=name) for name in ["a", "b"] + ["c"] * extra]
    found = said_of(sequence("exact", ExpectedCall(tool="a"), ExpectedCall(tool="b")), called(*calls))
    assert (found.score, found.misses, found.error) == (1.0, (), None)
    assert found.warnings[0].endswith(": call 3 is c, which is not expected and does not count")


@pytest.mark.parametrize(
    ("call", "used"),
    [
        (OutputCall(tool="Skill", input={"skill": "team:deploy"}), True),
        (OutputCall(tool="Skill", input={"skill": "rollback"}), False),
        (OutputCall(tool="READ", input={"path": "x/skills/deploy/SKILL.md"}), True),
        (OutputCall(tool="Read", input={"file_path": "x/skills/deployment/a.md"}), False),
        (OutputCall(tool="ls", output={"files": ["skills/deploy/a.md"]}), True),
        (OutputCall(tool="Read", input="skills/deploy/"), False),
    ],
)
def test_skill__call__uses_it_or_not(call, used) -> None:
    assert said_of(SkillTrigger(skill="deploy"), called(call)).passed is used
    assert said_of(SkillTrigger(skill="deploy", should_trigger=False), called(call)).passed is not used


def test_skill__calls_that_are_not_known__never_pass_for_its_absence() -> None:
    assert said_of(SkillTrigger(skill="a"), "text").score == 0.0
    for spec in (SkillTrigger(skill="a", should_trigger=False), SkillTrigger(skill="a", negate=True)):
        with pytest.raises(EvaluatorError, match=CALLS_UNKNOWN) as unknown:
            said_of(spec, "text")
        assert unknown.value.error_kind is ErrorKind.EVALUATION_ERROR


# numbers


def limits(in_parts: bool = True, negate: bool = False, **most: float) -> ExecutionMetrics:
    every = tuple(msgspec.convert({"of": of, "limit": limit}, MetricLimit) for of, limit in most.items())
    return ExecutionMetrics(type="execution-metrics", limits=every, in_parts=in_parts, negate=negate)


def test_metrics__limits__are_kept_up_to_their_number() -> None:
    response = replace(
        called(OutputCall(tool="a")),
        usage=Usage(input_tokens=7, output_tokens=3),
        cost_usd=0.5,
        duration_ms=20.0,
    )
    kept = {
        "tool_calls": 1,
        "model_calls": 1,
        "tokens": 10,
        "input_tokens": 7,
        "output_tokens": 3,
        "cost": 0.5,
        "ms": 20,
    }
    assert said_of(limits(**kept), response).score == 1.0
    for metric, limit in kept.items():
        found = said_of(limits(**(kept | {metric: limit - 0.01})), response)
        assert (found.score, len(found.misses)) == (6 / 7, 1)
        assert said_of(limits(in_parts=False, **(kept | {metric: limit - 0.01})), response).score == 0.0


def test_metrics__number_that_is_not_reported__is_no_limit_kept_and_turned_round_not_judged() -> None:
    for metric in ("tool_calls", "model_calls", "tokens", "input_tokens", "output_tokens", "cost"):
        found = said_of(limits(**{metric: 1e6}), "text")
        assert (found.score, "not reported" in found.misses[0]) == (0.0, True)
        with pytest.raises(UnreportedDataError):
            said_of(limits(negate=True, **{metric: 1e6}), "text")
    half = Response(text="x", usage=Usage(input_tokens=1))
    assert said_of(limits(tokens=1e6), half).score == 0.0


def test_metrics__conversation_of_ours__has_a_request_for_each_answer() -> None:
    turns = (Message(role="user"), Message(role="assistant"), Message(role="tool"), Message(role="assistant"))
    assert said_of(limits(model_calls=2), Response(text="x", conversation=turns)).passed
    assert not said_of(limits(model_calls=1), Response(text="x", conversation=turns)).passed


# fields


def fields(*checks: FieldCheck, expected, **others) -> FieldAccuracy:
    return FieldAccuracy(fields=checks, expected=expected, **others)


@pytest.mark.parametrize(
    ("check", "expected", "given", "fits"),
    [
        ({"match": "exact"}, {"b": [1]}, {"b": [1.0]}, True),
        ({"match": "exact"}, "1", 1, False),
        ({"match": "numeric_tolerance"}, 1, 1, True),
        ({"match": "numeric_tolerance", "tolerance": 0.5}, 10, 10.6, False),
        ({"match": "numeric_tolerance", "tolerance": 0.5}, 10, "10.5 EUR", True),
        ({"match": "numeric_tolerance", "tolerance": 0.1, "relative": True}, 100, 109, True),
        ({"match": "numeric_tolerance", "tolerance": 0.1, "relative": True}, 0, 0.05, True),
        ({"match": "numeric_tolerance", "tolerance": 1}, 1, "none", False),
        ({"match": "numeric_tolerance", "tolerance": 1}, 1, True, False),
        ({"match": "date"}, "2026-01-15", "15-JAN-2026", True),
        ({"match": "date"}, "2026-01-15", "01/15/2026", True),
        ({"match": "date"}, "2026-01-15", "15/01/2026", True),
        ({"match": "date"}, "2026-03-04", "03/04/2026", True),
        ({"match": "date", "day_first": True}, "2026-04-03", "03/04/2026", True),
        ({"match": "date", "day_first": False}, "2026-04-03", "03/04/2026", False),
        ({"match": "date"}, "2026-01-15", "2026-01-16T10:00:00", False),
        ({"match": "date"}, "2026-01-15", "tomorrow", False),
        ({"match": "date"}, "2026-01-15", "99/99/2026", False),
    ],
)
def test_field__value__fits_as_it_is_compared(check, expected, given, fits) -> None:
    import json

    spec = fields(FieldCheck(path="a", **check), expected={"a": expected})
    assert said_of(spec, f"It is ```json\n{json.dumps({'a': given})}\n```").passed is fits


def test_field__missing__counts_unless_it_need_not_be_there() -> None:
    there, needed = FieldCheck(path="a", match="exact"), FieldCheck(path="b", match="exact", weight=3)
    expected = {"a": 1, "b": 2}
    assert said_of(fields(there, needed, expected=expected), '{"a": 1}').score == 0.25
    optional = replace(needed, required=False)
    assert said_of(fields(there, optional, expected=expected), '{"a": 1}').score == 1.0
    assert said_of(fields(there, needed, expected=expected, all_or_nothing=True), '{"a": 1}').score == 0.0
    assert said_of(fields(optional, expected=expected), "{}").score == 0.0


@pytest.mark.parametrize("answer", ["no JSON", "{", "[1]", '{"a": NaN}'])
def test_field__answer_without_an_object__is_zero(answer) -> None:
    assert said_of(fields(FieldCheck(path="a", match="exact"), expected={"a": 1}), answer).score == 0.0


# commands and wholes


def grader(code: str, **fields) -> CodeGrader:
    return CodeGrader(command=(sys.executable, "-c", code), cwd="/", **fields)


@pytest.mark.parametrize(
    ("code", "score"),
    [
        ("print('{\"score\": 0.5}')", 0.5),
        ("print('{\"score\": 1.0000001}')", 1.0),
        ('print(\'{"assertions": [{"text": "a", "passed": true}, {"text": "b"}, 5]}\')', 0.5),
        ("print('fine')", 1.0),
        ("pass", 1.0),
        ("print('bad'); raise SystemExit(1)", 0.0),
        ("raise SystemExit(3)", 0.0),
    ],
)
def test_code_grader__answer__is_a_score_assertions_or_an_exit_code(code, score) -> None:
    assert said_of(grader(code)).score == score


@pytest.mark.parametrize(
    "code",
    [
        "print('{\"score\": 1')",
        "print('[1]')",
        "print('{}')",
        "print('{\"score\": 55}')",
        "print('{\"score\": -0.5}')",
        'print(\'{"score": 0, "score": 1}\')',
        "print('{\"score\": 1}'); raise SystemExit(1)",
        "import sys; sys.exit('words on stderr')",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    ],
)
def test_code_grader__that_broke__has_not_judged(code) -> None:
    with pytest.raises(EvaluatorError):
        said_of(grader(code))


def test_code_grader__told__knows_the_calls_with_all_that_was_reported() -> None:
    code = (
        "import json, sys; told = json.load(sys.stdin); "
        "ok = told['messages'][0]['tool_calls'] == [{'tool': 'a', 'input': {'x': 1}, 'duration_ms': 5.0}] "
        "and told['trace_summary']['tool_calls'] == {'a': 1} and told['metadata'] == {'m': 1} "
        "and told['token_usage'] is None and told['config'] == {'c': 2}; print(json.dumps({'score': int(ok)}))"
    )
    response = called(OutputCall(tool="a", input={"x": 1}, duration_ms=5))
    spec = grader(code, config={"c": 2})
    assert said_of(spec, response, brief=make_brief(metadata={"m": 1})).score == 1.0


def test_threshold__members_that_pass__are_counted_from_their_own_limits() -> None:
    met, missed = TextAssertion(type="contains", values=("ok",)), TextAssertion(type="contains", values=("x",))
    half = Composite(members=(met, missed), aggregator=ThresholdAggregator(threshold=0.5))
    assert said_of(half).score == 0.5
    assert said_of(Composite(members=(half, met), aggregator=ThresholdAggregator(threshold=1))).score == 1.0
    strict = replace(half, aggregator=ThresholdAggregator(threshold=0.6))
    assert said_of(Composite(members=(strict, met), aggregator=ThresholdAggregator(threshold=1))).score == 0.5


def test_llm_judge__template_of_today__is_shown_calls_and_metadata() -> None:
    judge = ScriptedJudge('{"score": 1}')
    prompt = "{{ candidate_answer }} | {{ agentv_tool_calls }} | {{ agentv_metadata_json }}"
    response = called(OutputCall(tool="a", input={"x": 1}), OutputCall(tool="b"))
    found = said_of(LlmJudge(prompt=prompt), response, judge=judge, brief=make_brief(metadata={"m": 1}))
    assert judge.asked[0][1] == 'ok | - a: {"x":1}\n- b | {"m":1}'
    assert found.warnings == ()


def test_calls__of_a_trace_without_messages__count() -> None:
    assert said_of(sequence("superset", ExpectedCall(tool="b")), with_trace("a", "b")).passed
