"""What a case expects, in words for people."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eval_gate.evaluators.expectation import describe_evaluator, describe_expectation
from eval_gate.model.case import CaseBrief, CaseTurn, ConversationSpec
from eval_gate.model.limits import STORED_CHECK, STORED_CHECKS
from eval_gate.model.specs import agent_evals as suite
from eval_gate.model.specs import agentv
from eval_gate.model.specs import evaluator as specs
from eval_gate.text.tokens import TokenData
from tests.support.cases import make_case

NO_TOKENS = TokenData()
CHECK = {"tool": "lookup_order", "param_name": "orderId"}
RUBRIC = specs.Rubric(
    question="q",
    dimensions=(
        specs.RubricDimension(name="tone", max_score=3, criteria="3: warm"),
        specs.RubricDimension(name="true", max_score=1, criteria="as the data says"),
    ),
    reference_data={"celsius": 21},
)
CHECKS = (
    specs.RubricCheck(id="greets", description="says hello"),
    specs.RubricCheck(id="emoji", description="has one", required=False),
)


def call(tool: str, args=None) -> agentv.ExpectedCall:
    return agentv.ExpectedCall(tool=tool, args=args)


CASES: list[tuple[specs.EvaluatorSpec, list[str]]] = [
    (specs.ToolsCalled(names=()), ["calls no tool"]),
    (specs.ToolsCalled(names=("a", "b")), ["calls only a, then b"]),
    (specs.ToolsCalledAnyOrder(names=()), ["calls no tool"]),
    (specs.ToolsCalledAnyOrder(names=("a", "b", "a")), ["calls only a, b, a, in any order"]),
    (specs.ToolsAcceptable(sets=(("a", "b"), ("__none__",))), ["calls a and b, or no tool"]),
    (specs.ToolsNotCalled(names=("a", "b")), ["does not call a", "does not call b"]),
    (
        specs.ToolParams(
            checks=(
                specs.ParamCheck(**CHECK, assertion="equals", value="A17"),
                specs.ParamCheck(**CHECK, assertion="contains", value="A"),
                specs.ParamCheck(**CHECK, assertion="oneOf", value=["A17", 18]),
                specs.ParamCheck(**CHECK, assertion="exists"),
                specs.ParamCheck(**CHECK, assertion="notExists"),
                specs.ParamCheck(**CHECK, assertion="matches", value="^A"),
            )
        ),
        [
            'calls lookup_order with orderId = "A17"',
            'calls lookup_order with orderId containing "A"',
            'calls lookup_order with orderId one of "A17", 18',
            "calls lookup_order with orderId",
            "calls lookup_order without orderId",
            "calls lookup_order with orderId matching /^A/",
        ],
    ),
    (
        specs.ResponseFields(checks=(specs.FieldValueCheck(path="items.length", assertion="equals", value=3),)),
        ["response with items.length = 3"],
    ),
    (specs.NoToolErrors(), ["no tool call fails"]),
    (specs.ResponseNonEmpty(), ["response is not empty"]),
    (
        specs.ResponseContains(values=("Sunday", "two\nlines")),
        ['response contains "Sunday"', 'response contains "two lines"'],
    ),
    (specs.ResponseContainsNumber(values=("21",)), ['response contains the number "21"']),
    (specs.ResponseContainsAny(groups=(("a", "b"),)), ['response contains one of "a", "b"']),
    (specs.ResponseNotContains(values=("{",)), ['response does not contain "{"']),
    (specs.ResponseMatches(patterns=(r"\d+",)), [r"response matches /\d+/"]),
    (specs.MaxLatency(limit_ms=3000), ["at most 3,000 ms"]),
    (specs.MaxTokens(limit=1200), ["at most 1,200 tokens"]),
    (
        RUBRIC,
        [
            "an LLM judge grades by this rubric:",
            "  tone: at least 1.8 of 3: 3: warm",
            "  true: yes: as the data says",
            '  reference: {"celsius":21}',
        ],
    ),
    (specs.LlmJudge(), ["an LLM judge gives the full score"]),
    (specs.LlmJudge(label="tone", prompt="p"), ["an LLM judge gives the full score with its own prompt (tone)"]),
    (specs.LlmJudge(weight=0), ["an LLM judge gives the full score (does not count)"]),
    (
        specs.RubricJudge(checks=CHECKS, label="style"),
        [
            "an LLM judge finds each of these satisfied (style):",
            "  greets: says hello",
            "  emoji: has one (not required)",
        ],
    ),
    (specs.CodeJudge(command=("python", "check.py"), cwd="/x"), ["python check.py gives the full score"]),
    (
        specs.ToolTrajectory(mode="any_order", minimums={"a": 1, "b": 2}),
        ["calls a at least 1 time", "calls b at least 2 times"],
    ),
    (specs.ToolTrajectory(mode="in_order", expected=("a", "b")), ["calls a, then b; other calls may come between"]),
    (specs.ToolTrajectory(mode="exact", expected=("a", "b")), ["calls only a, then b"]),
    (
        specs.Composite(
            label="safe",
            members=(specs.LlmJudge(label="x"), specs.RubricJudge(label="y", checks=CHECKS[:1])),
            aggregator=specs.WeightedAverage(weights={"x": 0}),
        ),
        [
            "the weighted mean of these is full (safe):",
            "  an LLM judge gives the full score (x, does not count)",
            "  an LLM judge finds each of these satisfied (y):",
            "    greets: says hello",
        ],
    ),
    (
        specs.Composite(members=(specs.LlmJudge(),), aggregator=specs.JudgeAggregator()),
        ["an LLM judge gives these the full score:", "  an LLM judge gives the full score"],
    ),
    (
        specs.Composite(members=(specs.LlmJudge(),), aggregator=specs.CodeAggregator(command="sum.sh", cwd="/x")),
        ["sum.sh gives these the full score:", "  an LLM judge gives the full score"],
    ),
    (
        specs.Composite(members=(specs.LlmJudge(),), aggregator=specs.ThresholdAggregator(threshold=0.5)),
        ["each of these passes:", "  an LLM judge gives the full score"],
    ),
    (specs.CodeGrader(command="check.sh", cwd="/x"), ["check.sh gives the full score"]),
    (agentv.TextAssertion(type="contains", values=("a",), negate=True), ['response contains "a" (must not be true)']),
    (agentv.TextAssertion(type="regex", values=("a+",), flags="i"), ['response matches the pattern "a+" (flags i)']),
    (agentv.TextAssertion(type="is-json", floor=0.8), ["response is JSON (required: at least 0.8)"]),
    (
        agentv.CallSequence(mode="in_order", expected=(call("a", {"x": 1}), call("b"))),
        ['calls a({"x":1}), then b(); other calls may come between'],
    ),
    (agentv.CallSequence(mode="exact", expected=(call("a"),)), ["calls only a()"]),
    (agentv.CallSequence(mode="superset", expected=(call("a"),)), ["calls all of a()"]),
    (agentv.CallSequence(mode="subset", expected=(call("a"),)), ["calls none but a()"]),
    (agentv.SkillTrigger(skill="deploy", should_trigger=False), ['does not use the skill "deploy"']),
    (
        agentv.ExecutionMetrics(type="cost", limits=(agentv.MetricLimit(of="cost", limit=0.5),)),
        ["at most 0.5 USD"],
    ),
    (
        agentv.FieldAccuracy(fields=(agentv.FieldCheck(path="a", match="exact"),), expected={"a": 1}),
        ["response has 1 at a"],
    ),
    (suite.OutputContains(value="a"), ['response contains "a"']),
    (suite.OutputContains(value="a", case_sensitive=False), ['response contains "a", in upper or lower case']),
    (suite.OutputMatches(pattern="a+", flags="i", label="has an a"), ["response matches /a+/i (has an a)"]),
    (suite.OutputEquals(expected={"a": 1}), ['response is {"a":1}']),
    (suite.OutputJsonPath(path="a.b", expected="x"), ['response has "x" at a.b']),
    (suite.FileExists(path="a.txt"), ["a.txt exists"]),
    (suite.FileNotExists(path="a.txt"), ["a.txt does not exist"]),
    (suite.FileContains(path="a.txt", value="x"), ['a.txt contains "x"']),
    (suite.FileJsonPath(path="a.json", json_path="b", expected=[1]), ["a.json has [1] at b"]),
]


@pytest.mark.parametrize(("spec", "lines"), CASES, ids=lambda value: type(value).__name__)
def test_words_of__evaluator__says_what_it_checks(spec, lines) -> None:
    assert list(describe_evaluator(spec, NO_TOKENS)) == lines


def every_spec(kind: type[specs.EvaluatorSpec] = specs.EvaluatorSpec) -> Iterator[type[specs.EvaluatorSpec]]:
    for one in kind.__subclasses__():
        yield one
        yield from every_spec(one)


def test_words_of__every_class_of_evaluator__has_words_and_an_example_above() -> None:
    ours = {one for one in every_spec() if one.__module__.startswith("eval_gate.") and "type" in one.__annotations__}
    assert ours == {type(spec) for spec, _ in CASES}


def test_words_of__class_without_words__is_a_defect_that_says_so() -> None:
    class Unknown(specs.EvaluatorSpec):
        type: str = "unknown"

    with pytest.raises(LookupError, match="Unknown"):
        list(describe_evaluator(Unknown(), NO_TOKENS))


def test_expectation_of__tokens__stand_for_what_they_lead_to() -> None:
    case = make_case(expect=[specs.ResponseContains(values=("{{seed:a.b}} now", "{{seed:gone}}"))])
    lines = describe_expectation(case, TokenData(seed={"a": {"b": 7}})).lines
    assert lines == ('response contains "7 now"', 'response contains "{{seed:gone}}"')


def test_expectation_of__outcome_and_reference__come_first() -> None:
    brief = CaseBrief(question="q", linked_question="q", expected_outcome="is\nkind", reference_answer="Hello\nyou")
    found = describe_expectation(make_case(expect=[specs.LlmJudge()], brief=brief), NO_TOKENS)
    assert found == (
        ("expected outcome: is kind", "reference answer: Hello you", "an LLM judge gives the full score"),
        False,
    )


@pytest.mark.parametrize("count", [STORED_CHECKS, STORED_CHECKS + 1])
def test_expectation_of__many_checks__are_cut_and_say_so(count) -> None:
    spec = specs.ResponseContains(values=tuple(str(number) for number in range(count)))
    found = describe_expectation(make_case(expect=[spec]), NO_TOKENS)
    assert (len(found.lines), found.is_truncated) == (STORED_CHECKS, count > STORED_CHECKS)


def test_expectation_of__long_values__are_cut_and_say_so() -> None:
    brief = CaseBrief(question="q", linked_question="q", expected_outcome="x " * 100_000)
    spec = specs.ResponseContains(values=("y" * 1_000_000,))
    found = describe_expectation(make_case(expect=[spec], brief=brief), NO_TOKENS)
    assert [len(line) for line in found.lines] == [STORED_CHECK, STORED_CHECK]
    assert found.is_truncated


def test_expectation_of__conversation__is_listed_by_turn() -> None:
    turns = (
        CaseTurn(message="a", evaluators=(specs.ResponseContains(values=("x",)), RUBRIC)),
        CaseTurn(message="b"),
        CaseTurn(message="c", expected_messages=[{"role": "assistant", "content": "fine,\nthanks"}]),
    )
    spec = ConversationSpec(turns=turns)
    assert describe_expectation(make_case(conversation=spec), NO_TOKENS).lines == (
        "turn 1:",
        '  response contains "x"',
        "  an LLM judge grades by this rubric:",
        "    tone: at least 1.8 of 3: 3: warm",
        "    true: yes: as the data says",
        '    reference: {"celsius":21}',
        "turn 3:",
        "  reference answer: fine, thanks",
        "whole conversation:",
        'response contains "ok"',
    )
    assert describe_expectation(make_case(conversation=ConversationSpec()), NO_TOKENS).lines == (
        'response contains "ok"',
    )
