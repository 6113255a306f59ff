"""Every assertion of the contract: when it holds, when it fails and with which words, and what is skipped."""

import asyncio

import msgspec
import pytest

from eval_gate.evaluators.aggregation import score_case
from eval_gate.evaluators.base import CaseScore, EvaluationContext, EvaluatorError, EvaluatorScore
from eval_gate.evaluators.tool_forge.table import has_tool_assertions
from eval_gate.model.conversation import Message, Response, ToolCall
from eval_gate.model.specs.evaluator import (
    FieldValueCheck,
    MaxLatency,
    MaxTokens,
    NoToolErrors,
    ParamCheck,
    ResponseContains,
    ResponseContainsAny,
    ResponseContainsNumber,
    ResponseFields,
    ResponseMatches,
    ResponseNonEmpty,
    ResponseNotContains,
    ToolParams,
    ToolsAcceptable,
    ToolsCalled,
    ToolsCalledAnyOrder,
    ToolsNotCalled,
)
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.tokens import TokenData
from tests.support.cases import make_case
from tests.support.grading import run_spec

TOKENS = TokenData(seed={"city": "Rome", "list": ["a", 2.0], "n": 4.0, "empty": ""}, snapshot=None)


def judged(*specs, response: Response | None = None, **case) -> CaseScore:
    async def main() -> CaseScore:
        matcher = PatternMatcher()
        try:
            made = make_case(expect=specs, **case)
            return await score_case(EvaluationContext(made, response or said("ok"), TOKENS, matcher))
        finally:
            await matcher.aclose()

    return asyncio.run(main())


def run_alone(spec, response: Response) -> EvaluatorScore:
    return run_spec(spec, EvaluationContext(make_case(expect=(spec,)), response, TOKENS, PatternMatcher()))


def said(text: str = "ok", *calls: str | ToolCall, **fields) -> Response:
    made = tuple(call if isinstance(call, ToolCall) else ToolCall(name=call, success=True) for call in calls)
    return Response(text=text, tool_calls=made, **fields)


def outcome(judgement: CaseScore) -> tuple[str | None, int, int]:
    return judgement.error, judgement.assertions_run, judgement.assertions_skipped


@pytest.mark.contract("toolsCalled")
@pytest.mark.parametrize(
    ("names", "called", "error"),
    [
        (("a", "b"), ("a", "b"), None),
        ((), (), None),
        ((), ("a",), "toolsCalled: expected [], called [a]"),
        (("a",), (), "toolsCalled: expected [a], called []"),
        (("a",), ("a", "a"), "toolsCalled: expected [a], called [a, a]"),
        (
            ("a", "b"),
            ("b", "a"),
            "toolsCalled: expected [a, b], called [b, a]: only the order differs; toolsCalledAnyOrder takes any order",
        ),
        (("a",), ("a", "b"), "toolsCalled: expected [a], called [a, b]"),
    ],
    ids=str,
)
def test_tools_called__names__equal_in_order(names, called, error) -> None:
    assert outcome(judged(ToolsCalled(names=names), response=said("", *called))) == (error, 1, 0)


@pytest.mark.contract("toolsCalledAnyOrder")
@pytest.mark.parametrize(
    ("names", "called", "error"),
    [
        (("a", "b"), ("b", "a"), None),
        (("a", "b", "a"), ("b", "a", "a"), None),
        ((), (), None),
        ((), ("a",), "expected no tool, called [a]: extra [a]"),
        (("a", "b"), ("b",), "expected [a, b] in any order, called [b]: missing [a]"),
        (("a",), ("a", "a"), "expected [a] in any order, called [a, a]: extra [a]"),
        (("a", "a"), ("a",), "expected [a, a] in any order, called [a]: missing [a]"),
        (("a", "b", "b"), ("c", "b"), "expected [a, b, b] in any order, called [c, b]: missing [a, b], extra [c]"),
        (("A",), ("a",), "expected [A] in any order, called [a]: missing [A], extra [a]"),
    ],
)
def test_tools_called_any_order__names__are_as_many_of_each(names, called, error) -> None:
    error = error and f"toolsCalledAnyOrder: {error}"
    assert outcome(judged(ToolsCalledAnyOrder(names=names), response=said("", *called))) == (error, 1, 0)


@pytest.mark.contract("toolsAcceptable", "toolsAcceptable.none")
@pytest.mark.parametrize(
    ("sets", "called", "holds"),
    [
        ((("a",), ("a", "b")), ("b", "a"), True),
        ((("a",),), ("a", "a"), True),
        ((("a",), ("a", "b")), ("b",), False),
        ((("__none__",),), (), True),
        ((("__none__",),), ("a",), False),
        (((),), (), True),
        ((("__none__",), ("a",)), ("a",), True),
        ((("a",),), (), False),
    ],
    ids=str,
)
def test_tools_acceptable__sets__one_equals_what_was_called(sets, called, holds) -> None:
    judgement = judged(ToolsAcceptable(sets=sets), response=said("", *called))
    assert (judgement.passed, judgement.assertions_run) == (holds, 1)


def test_tools_acceptable__none_fits__says_what_would_have() -> None:
    judgement = judged(ToolsAcceptable(sets=(("__none__",), ("b", "a"))), response=said("", "c"))
    assert judgement.error == "toolsAcceptable: expected no tool or [a, b], called [c]"


@pytest.mark.contract("toolsNotCalled")
def test_tools_not_called__forbidden_tool__fails() -> None:
    assert outcome(judged(ToolsNotCalled(names=("x", "y")), response=said("", "a"))) == (None, 2, 0)
    judgement = judged(ToolsNotCalled(names=("x", "a")), response=said("", "a"))
    assert outcome(judgement) == ("toolsNotCalled: 'a' was called, in [a]", 2, 0)


def param(kind: str, value=None, name: str = "p", tool: str = "t") -> ToolParams:
    return ToolParams(checks=(ParamCheck(tool=tool, param_name=name, assertion=kind, value=value),))


def calls(**params) -> Response:
    return said("", ToolCall(name="t", params=params), ToolCall(name="t", params={"p": "second call"}))


@pytest.mark.contract("toolParams.kinds", "toolParams.absent", "toolParams.objects", "toolParams.first-call")
@pytest.mark.parametrize(
    ("kind", "value", "actual", "error"),
    [
        ("equals", "x", {"p": "x"}, None),
        ("equals", "x", {"p": "y"}, "t.p expected 'x', got 'y'"),
        ("equals", "1", {"p": 1.0}, None),
        ("equals", 1, {"p": "1"}, None),
        ("equals", 0, {"p": 0}, None),
        ("equals", False, {"p": False}, None),
        ("equals", "", {"p": ""}, None),
        ("equals", None, {"p": None}, None),
        ("equals", "undefined", {}, "t.p was not sent"),
        ("equals", "{{seed:city}}", {"p": "Rome"}, None),
        ("equals", "{{seed:n}}", {"p": 4}, None),
        ("equals", '["a",1]', {"p": ["a", 1]}, None),
        ("equals", "a,1", {"p": ["a", 1]}, None),
        ("equals", {"a": 1}, {"p": {"a": 1}}, None),
        ("equals", "x", {"p": {"a": {"b": 1}}}, """t.p expected 'x', got '{"a":{"b":1}}'"""),
        ("equals", "x", {"p": [{"a": 1}, "b"]}, """t.p expected 'x', got '[{"a":1},"b"]'"""),
        ("contains", "ell", {"p": "hello"}, None),
        ("contains", "z", {"p": "hello"}, "t.p expected to contain 'z', got 'hello'"),
        ("contains", "z", {}, "t.p was not sent"),
        ("oneOf", ["a", 1, True], {"p": 1}, None),
        ("oneOf", ["a"], {"p": "b"}, "t.p expected one of [a], got 'b'"),
        ("oneOf", "ab", {"p": "a"}, "t.p expected one of [ab], got 'a'"),
        ("oneOf", "{{seed:list}}", {"p": 2}, None),
        ("oneOf", ["x", "{{seed:city}}"], {"p": "Rome"}, None),
        ("exists", None, {"p": None}, None),
        ("exists", None, {"p": 0}, None),
        ("exists", None, {}, "t.p was not sent"),
        ("notExists", None, {}, None),
        ("notExists", None, {"p": None}, "t.p was sent: 'null'"),
        ("notExists", None, {"p": {"a": 1}}, """t.p was sent: '{"a":1}'"""),
        ("matches", r"^\d{5}$", {"p": 12345}, None),
        ("matches", r"^\d{5}$", {"p": "12"}, r"t.p expected to match /^\d{5}$/, got 12"),
        ("matches", ".*", {}, "t.p was not sent"),
    ],
    ids=str,
)
def test_tool_params__kind__compares_as_text(kind, value, actual, error) -> None:
    expected = None if error is None else f"toolParams: {error}"
    assert outcome(judged(param(kind, value), response=calls(**actual))) == (expected, 1, 0)


@pytest.mark.contract("toolParams.first-call")
def test_tool_params__tool_not_called__is_skipped_and_counted() -> None:
    assert outcome(judged(param("exists", tool="other"), response=calls(p=1))) == (None, 0, 1)


@pytest.mark.contract("tokens.unresolved.toolParams")
def test_tool_params__unresolved_token__is_skipped_with_a_warning() -> None:
    judgement = judged(param("equals", "{{snapshot:x}}"), ResponseNonEmpty(), response=replace(calls(p=1), text="t"))
    assert outcome(judgement) == (None, 1, 1)
    assert judgement.skipped_tokens == ("{{snapshot:x}}",)
    assert judgement.warnings == ("toolParams: {{snapshot:x}} not found, so it is not compared",)


@pytest.mark.contract("noToolErrors.endpoint", "noToolErrors.silent")
@pytest.mark.parametrize(
    ("successes", "expected"),
    [
        ((True, True), (None, 2, 0)),
        ((True, False), ("noToolErrors: the call of 't1' failed", 2, 0)),
        ((None, True), (None, 1, 1)),
        ((), (None, 1, 0)),
    ],
    ids=str,
)
def test_no_tool_errors__endpoint__every_call_succeeded(successes, expected) -> None:
    tools = [ToolCall(name=f"t{number}", success=success) for number, success in enumerate(successes)]
    assert outcome(judged(NoToolErrors(), response=said("", *tools))) == expected


@pytest.mark.contract("noToolErrors.stubs")
def test_no_tool_errors__stubs__every_called_name_has_one() -> None:
    failing = ToolCall(name="a", success=False)
    assert judged(NoToolErrors(), stubs={"a": None}, response=said("", failing)).passed
    error = judged(NoToolErrors(), stubs={}, response=said("", failing)).error
    assert error == "noToolErrors: called 'a', but the case has no stub for it"


@pytest.mark.contract("responseNonEmpty")
@pytest.mark.parametrize(("text", "holds"), [("x", True), ("I'm sorry", True), (" \n\t", False), ("", False)])
def test_response_non_empty__text__is_not_blank(text, holds) -> None:
    assert judged(ResponseNonEmpty(), response=said(text)).passed is holds


@pytest.mark.contract("responseContains", "assertions.messages")
def test_response_contains__missing_value__reads_as_in_the_contract() -> None:
    judgement = judged(ResponseContains(values=("Rome", "Tokyo", "Oslo")), response=said("in Rome"))
    assert outcome(judgement) == ("responseContains: expected 'Tokyo' in response but not found", 2, 0)
    assert not judged(ResponseContains(values=("rome",)), response=said("Rome")).passed


@pytest.mark.contract("responseNotContains", "assertions.messages")
def test_response_not_contains__found_value__reads_as_in_the_contract() -> None:
    judgement = judged(ResponseNotContains(values=("FETCHEDAT", "fetchedAt")), response=said('{"fetchedAt": 1}'))
    assert outcome(judgement) == ('responseNotContains: found "fetchedAt" in response', 2, 0)
    assert not judged(ResponseNotContains(values=("",)), response=said("")).passed


@pytest.mark.contract("responseContainsAny")
def test_response_contains_any__every_group__needs_a_member() -> None:
    groups = (("rain", "showers"), ("Rome", "Roma"))
    assert outcome(judged(ResponseContainsAny(groups=groups), response=said("rain in Roma"))) == (None, 2, 0)
    judgement = judged(ResponseContainsAny(groups=groups), response=said("rain in Oslo"))
    assert outcome(judgement) == ("responseContainsAny: expected one of [Rome, Roma] in response but found none", 2, 0)
    assert outcome(judged(ResponseContainsAny(groups=((), ("ok",))))) == (None, 1, 1)


@pytest.mark.contract("responseContainsNumber")
def test_response_contains_number__written_in_any_way__holds_and_a_failure_says_what_the_file_says() -> None:
    spec = ResponseContainsNumber(values=("12 December", "1,250.40"))
    assert outcome(judged(spec, response=said("On Dec 12 it costs 1 250,40 EUR."))) == (None, 2, 0)
    found = judged(spec, response=said("On 12 December it costs 1,205.40 EUR."))
    error = "responseContainsNumber: expected the number 1,250.40; response has 12 December, 1,205.40"
    assert outcome(found) == (error, 2, 0)
    assert judged(spec, response=said("No idea.")).error.endswith("expected the number 12 December; response has none")


@pytest.mark.contract("tokens.unresolved.responseContainsAny")
def test_response_contains_any__unresolved__member_leaves_and_emptied_group_is_skipped() -> None:
    groups = (("{{seed:nope}}", "ok"), ("{{seed:nope}}", "{{snapshot:x}}"))
    judgement = judged(ResponseContainsAny(groups=groups))
    assert outcome(judgement) == (None, 1, 1)
    assert judgement.skipped_tokens == ("{{seed:nope}}", "{{seed:nope}}", "{{snapshot:x}}")


@pytest.mark.contract("tokens.unresolved.responseContains", "tokens.unresolved.responseNotContains")
@pytest.mark.parametrize("spec", [ResponseContains, ResponseNotContains])
def test_contains__unresolved__value_is_skipped_and_the_case_does_not_fail(spec) -> None:
    kept = "ok" if spec is ResponseContains else "zzz"
    judgement = judged(spec(values=("{{seed:nope}}", kept)))
    assert (judgement.passed, judgement.assertions_run, judgement.assertions_skipped) == (True, 1, 1)
    assert judgement.warnings == (f"{spec(values=()).type}: {{{{seed:nope}}}} not found, so it is not compared",)


def test_response_contains__resolved_token__is_what_is_looked_for() -> None:
    assert judged(ResponseContains(values=("{{seed:city}}", "{{seed:n}} °C")), response=said("Rome 4 °C")).passed
    error = judged(ResponseContains(values=("{{seed:city}}",)), response=said("Oslo")).error
    assert error == "responseContains: expected 'Rome' in response but not found"


@pytest.mark.contract("responseMatches")
def test_response_matches__patterns__all_find_something() -> None:
    assert outcome(judged(ResponseMatches(patterns=("^o", "k$")))) == (None, 2, 0)
    judgement = judged(ResponseMatches(patterns=("^o", "^k")))
    assert outcome(judgement) == ("responseMatches: expected a match of /^k/ in response but found none", 2, 0)
    error = judged(ResponseMatches(patterns=("(",))).error
    assert error is not None
    assert error.startswith("responseMatches: /(/ is not a valid pattern")


@pytest.mark.contract("maxLatencyMs")
def test_max_latency__our_clock__within_the_limit() -> None:
    agents_figure = ToolCall(name="t", duration_ms=1.0)
    assert judged(MaxLatency(limit_ms=100), response=said("", duration_ms=100)).passed
    error = judged(MaxLatency(limit_ms=100), response=said("", agents_figure, duration_ms=100.6)).error
    assert error == "maxLatencyMs: expected at most 100 ms, took 101 ms"


@pytest.mark.contract("maxTokens")
def test_max_tokens__count__is_the_providers_or_estimated() -> None:
    counted = said("x" * 1000, usage=Usage(output_tokens=10))
    assert judged(MaxTokens(limit=10), response=counted).passed
    error = judged(MaxTokens(limit=9), response=counted).error
    assert error == "maxTokens: expected at most 9 tokens, got 10 (counted by the provider)"
    assert judged(MaxTokens(limit=2), response=said("éééé")).passed
    error = judged(MaxTokens(limit=2), response=said("éééé!")).error
    assert error == "maxTokens: expected at most 2 tokens, got 3 (estimated as bytes / 4)"


@pytest.mark.contract("assertions.order")
def test_judge__first_failure__ends_the_case() -> None:
    specs = (ToolsCalled(names=()), ResponseContains(values=("zzz",)), ResponseNotContains(values=("ok",)))
    judgement = judged(*specs)
    assert outcome(judgement) == ("responseContains: expected 'zzz' in response but not found", 2, 0)
    assert [(result.type, result.score) for result in judgement.results] == [
        ("toolsCalled", 1.0),
        ("responseContains", 0.0),
    ]
    assert judgement.results[1].misses == (judgement.error,)


@pytest.mark.contract("assertions.counts")
def test_judge__counts__are_of_single_values() -> None:
    judgement = judged(
        ToolsCalled(names=()),
        ResponseNonEmpty(),
        ResponseContains(values=("o", "{{seed:nope}}", "k")),
        MaxTokens(limit=9),
    )
    assert outcome(judgement) == (None, 5, 1)
    assert (judgement.score, judgement.passed) == (1.0, True)


@pytest.mark.contract("tokens.all-skipped")
def test_judge__everything_skipped__passes_with_a_warning() -> None:
    judgement = judged(ResponseContains(values=("{{seed:nope}}",)))
    assert judgement.passed
    assert "all assertions skipped" in judgement.warnings


def test_judge__no_assertions__passes_with_a_warning() -> None:
    judgement = judged()
    assert (judgement.passed, judgement.warnings) == (True, ("the case has no assertions",))


@pytest.mark.contract("case.checks-nothing")
@pytest.mark.parametrize(
    "spec",
    [
        ResponseContains(values=()),
        ResponseContains(values=("", "{{seed:empty}}")),
        ResponseContainsAny(groups=()),
        ResponseContainsAny(groups=(("ok", ""),)),
        ResponseNotContains(values=()),
        ResponseMatches(patterns=(".*",)),
        ToolsNotCalled(names=()),
        ToolParams(checks=()),
    ],
    ids=lambda spec: msgspec.json.encode(spec).decode(),
)
def test_judge__assertions_that_hold_for_every_answer__are_no_checks(spec) -> None:
    judgement = judged(spec)
    assert outcome(judgement) == (None, 0, 0)
    assert judgement.warnings == ("nothing is checked: the assertions pass with every response",)
    assert judged(spec, ResponseNonEmpty()).warnings == ()


@pytest.mark.contract("case.same-expectation")
@pytest.mark.parametrize("spec", [ToolsNotCalled(names=()), ToolParams(checks=())], ids=lambda spec: spec.type)
def test_judge__empty_list_about_tools__needs_no_calls_to_be_known(spec) -> None:
    silent = said("ok", tool_calls_known=False)
    assert judged(spec, ResponseNonEmpty(), response=silent).passed
    assert not has_tool_assertions([spec])
    with pytest.raises(EvaluatorError):
        judged(ToolsCalled(names=()), response=silent)


@pytest.mark.contract("case.checks-nothing")
def test_judge__one_value_of_several_may_fail__only_that_is_counted() -> None:
    assert judged(ResponseContains(values=("ok", ""))).assertions_run == 1
    assert judged(ResponseMatches(patterns=("ok", "x*"))).assertions_run == 1
    assert judged(ToolsCalled(names=())).assertions_run == 1
    assert judged(NoToolErrors()).assertions_run == 1


@pytest.mark.contract("assertions.messages")
def test_messages__long_values__are_cut() -> None:
    error = judged(ResponseContains(values=("x" * 5_000,))).error
    assert error is not None
    assert len(error) < 300
    error = judged(ToolsCalled(names=tuple(f"tool_{number}" for number in range(1_000)))).error
    assert error is not None
    assert len(error) < 800


@pytest.mark.contract("agentv.behaviour.calls-unknown")
@pytest.mark.parametrize(
    "spec",
    [
        ToolsCalled(names=()),
        ToolsCalledAnyOrder(names=()),
        ToolsAcceptable(sets=(("__none__",),)),
        ToolsNotCalled(names=("a",)),
        ToolParams(checks=(ParamCheck(tool="a", param_name="p", assertion="exists"),)),
        NoToolErrors(),
    ],
    ids=lambda spec: spec.type,
)
def test_tool_assertions__target_that_does_not_report_calls__cannot_be_judged(spec) -> None:
    said_so = rf"^{spec.type}: tool calls are unknown: the target does not report its tool calls$"
    with pytest.raises(EvaluatorError, match=said_so):
        judged(spec, response=said("ok", tool_calls_known=False))
    talk = (Message(role="user", content="hi"), Message(role="assistant", content="ok"))
    judged(spec, response=said("ok", tool_calls_known=False, conversation=talk))  # we led it, so we know


def test_text_assertions__target_that_does_not_report_calls__are_judged() -> None:
    assert judged(ResponseNonEmpty(), response=said("ok", tool_calls_known=False)).passed


def test_tool_params__list_by_one_token__is_compared_as_its_json_unless_any_member_will_do() -> None:
    listed = calls(p=["a", 2.0])
    assert judged(param("equals", "{{seed:list}}"), response=listed).passed
    assert not judged(param("equals", "{{seed:list}}"), response=calls(p="a")).passed
    assert judged(param("oneOf", "{{seed:list}}"), response=calls(p="a")).passed


def test_checks__that_hold__are_counted_each() -> None:
    several = ToolParams(checks=tuple(one for kind in ("exists", "equals") for one in param(kind, "x").checks))
    evaluation = run_alone(several, calls(p="x"))
    assert (evaluation.passed, evaluation.checks_run) == (True, 2)
    assert run_alone(ToolsNotCalled(names=("a", "b")), said("ok", "c")).checks_run == 2


def test_tools__target_that_promised_no_list__is_judged_by_what_it_lists() -> None:
    """Only where it is known that no calls are reported are they unknown; else one answer cannot tell."""
    assert outcome(judged(ToolsCalled(names=()), response=Response(text="ok", tool_calls_known=None)))[0] is None
    with pytest.raises(EvaluatorError, match="does not report its tool calls"):
        judged(ToolsCalled(names=()), response=Response(text="ok", tool_calls_known=False))
    assert judged(ToolsCalled(names=("a",)), response=said("ok", "a", tool_calls_known=False)).passed


BODY = {"n": 3, "on": True, "s": "3", "tags": ["a", "b"], "o": {"length": 9, "x": None}, "w": "Rome", "city": "Rome"}


def check_field(path: str, assertion: str, value: object = None, response: Response | None = None) -> CaseScore:
    check = msgspec.convert({"path": path, "assertion": assertion, "value": value}, FieldValueCheck)
    return judged(ResponseFields(checks=(check,)), response=response or said("ok", body=BODY))


@pytest.mark.parametrize(
    ("path", "assertion", "value", "error"),
    [
        ("n", "equals", 3.0, None),
        ("n", "equals", "3", 'n is 3, expected "3"'),
        ("on", "equals", 1, "on is true, expected 1"),
        ("o", "equals", {"x": None, "length": 9.0}, None),
        ("o.length", "equals", 9, None),
        ("tags.length", "equals", 2, None),
        ("tags[1]", "equals", "b", None),
        ("tags.1", "equals", "b", None),
        ("w.length", "equals", 4, None),
        ("n.length", "equals", 1, "n.length is missing"),
        ("tags[2]", "exists", None, "tags[2] is missing"),
        ("o.x", "exists", None, None),
        ("o.x", "notExists", None, "o.x exists: null"),
        ("o.y", "notExists", None, None),
        ("n", "oneOf", [4, 3], None),
        ("n", "oneOf", ["3", 4], 'n is 3, expected one of ["3", 4]'),
        ("w", "contains", "om", None),
        ("tags", "contains", '"b"', None),
        ("w", "matches", "^R", None),
        ("w", "matches", "^P", "w expected to match /^P/, got 'Rome'"),
        ("w", "equals", "{{seed:city}}", None),
        ("s", "oneOf", "{{seed:list}}", "s expected one of [a, 2], got 3"),
    ],
)
def test_response_fields__value__is_compared_by_its_operator(path, assertion, value, error) -> None:
    assert check_field(path, assertion, value).error == (error and f"fields: {error}")


def test_response_fields__unresolved_token__is_skipped() -> None:
    assert outcome(check_field("w", "equals", "{{seed:none}}")) == (None, 0, 1)


@pytest.mark.parametrize(
    ("text", "body", "error"),
    [
        ('{"n": 1}', None, None),
        ('```json\n{"n": 1}\n```', None, None),
        ('{"n": 1}', {"choices": []}, None),
        ('{"n": 2}', {"n": 1}, None),
        ("Done.", {"n": 2}, "n is 2, expected 1"),
        ("Done.", None, "the response is not JSON"),
        ("1", None, "the response is not JSON"),
    ],
)
def test_response_fields__lookup__is_in_the_body_then_in_the_text(text, body, error) -> None:
    score = check_field("n", "equals", 1, said(text, body=body))
    assert score.error == (error and f"fields: {error}")
