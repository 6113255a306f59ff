"""Which tools were called: the spec's scenarios with their own configurations, and the words of hits and misses."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.evaluators.agentv.trajectories import FROM_MESSAGES
from eval_gate.evaluators.base import EvaluatorError, EvaluatorScore
from eval_gate.evaluators.wording import MAX_ITEMS
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.execution import NO_TRACE
from eval_gate.model.specs.evaluator import ToolTrajectory
from eval_gate.struct import replace
from tests.support.grading import judgement_of, make_context, run_spec, with_messages, with_trace

SEARCH_3 = """
type: tool_trajectory
mode: any_order
minimums:
  semanticSearch: 3
"""
TWO_MINIMUMS = """
type: tool_trajectory
mode: any_order
minimums:
  toolA: 2
  toolB: 2
"""
IN_ORDER_ABC = """
type: tool_trajectory
mode: in_order
expected:
  - tool: A
  - tool: B
  - tool: C
"""
IN_ORDER_AB = """
type: tool_trajectory
mode: in_order
expected:
  - tool: A
  - tool: B
"""
EXACT_AB = """
type: tool_trajectory
mode: exact
expected:
  - tool: A
  - tool: B
"""


def from_yaml(text: str, **fields) -> ToolTrajectory:
    """The configuration as a format would hand it over."""
    found = yaml.safe_load(text)
    expected = tuple(step["tool"] for step in found.pop("expected", ()))
    return ToolTrajectory(expected=expected, **found, **fields)


def judged(spec: ToolTrajectory, response: Response) -> EvaluatorScore:
    return run_spec(spec, make_context(spec, response=response))


def scored(text: str, *calls: str) -> EvaluatorScore:
    return judged(from_yaml(text), with_messages(*calls))


@pytest.mark.contract("agentv.tool-trajectory-evaluator.minimum-calls-met-pass-from-outputmessages")
def test_tool_trajectory__minimum_calls_met_pass_from_outputmessages() -> None:
    evaluation = scored(SEARCH_3, *["semanticSearch"] * 3)
    assert (evaluation.score, evaluation.passed) == (1.0, True)
    assert evaluation.hits == ("semanticSearch called 3 times (minimum: 3)",)
    assert (evaluation.misses, evaluation.error, evaluation.reasoning) == ((), None, None)


@pytest.mark.contract("agentv.tool-trajectory-evaluator.minimum-calls-met-pass-fallback-to-trace")
def test_tool_trajectory__minimum_calls_met_pass_fallback_to_trace() -> None:
    evaluation = judged(from_yaml(SEARCH_3), with_trace(*["semanticSearch"] * 3))
    assert evaluation.score == 1.0
    assert evaluation.hits == ("semanticSearch called 3 times (minimum: 3)",)


@pytest.mark.contract("agentv.tool-trajectory-evaluator.minimum-calls-not-met-fail")
def test_tool_trajectory__minimum_calls_not_met_fail() -> None:
    evaluation = scored(SEARCH_3, "semanticSearch")
    assert evaluation.score == 0.0
    assert evaluation.misses == ("semanticSearch called 1 time (minimum: 3)",)
    assert evaluation.hits == ()
    assert evaluation.error == "tool_trajectory: semanticSearch called 1 time (minimum: 3)"


@pytest.mark.contract("agentv.tool-trajectory-evaluator.multiple-minimums-partial-pass")
def test_tool_trajectory__multiple_minimums_partial_pass() -> None:
    evaluation = scored(TWO_MINIMUMS, "toolA", "toolB", "toolA")
    assert evaluation.score == 0.5
    assert evaluation.hits == ("toolA called 2 times (minimum: 2)",)
    assert evaluation.misses == ("toolB called 1 time (minimum: 2)",)


@pytest.mark.contract("agentv.tool-trajectory-evaluator.in-order-sequence-pass")
def test_tool_trajectory__in_order_sequence_pass() -> None:
    evaluation = scored(IN_ORDER_ABC, "A", "X", "B", "Y", "C")
    assert (evaluation.score, evaluation.misses) == (1.0, ())
    assert evaluation.hits == ("step 1: A is call 1", "step 2: B is call 3", "step 3: C is call 5")


@pytest.mark.contract("agentv.tool-trajectory-evaluator.in-order-sequence-fail-wrong-order")
def test_tool_trajectory__in_order_sequence_fail_wrong_order() -> None:
    evaluation = scored(IN_ORDER_AB, "B", "A")
    assert evaluation.score == 0.0
    assert evaluation.hits == ("step 1: A is call 2",)
    assert evaluation.misses == ("step 2: B is not called after A (call 2), only at call 1: called [B, A]",)


@pytest.mark.contract("agentv.tool-trajectory-evaluator.exact-sequence-pass")
def test_tool_trajectory__exact_sequence_pass() -> None:
    evaluation = scored(EXACT_AB, "A", "B")
    assert (evaluation.score, evaluation.misses) == (1.0, ())
    assert evaluation.hits == ("call 1: A as expected", "call 2: B as expected")


@pytest.mark.contract("agentv.tool-trajectory-evaluator.exact-sequence-fail-extra-tools")
def test_tool_trajectory__exact_sequence_fail_extra_tools() -> None:
    evaluation = scored(EXACT_AB, "A", "B", "C")
    assert evaluation.score == 0.0
    assert evaluation.misses == (
        "call 3 is C, which is not expected: expected [A, B], called [A, B, C]",
        "C is extra: called 1 time, expected 0 times",
    )


@pytest.mark.contract("agentv.tool-trajectory-evaluator.no-trace-or-outputmessages-available")
@pytest.mark.parametrize("text", [SEARCH_3, IN_ORDER_AB, EXACT_AB], ids=["any_order", "in_order", "exact"])
def test_tool_trajectory__no_trace_or_outputmessages_available(text) -> None:
    evaluation = judged(from_yaml(text, label="order"), Response(text="In Rome.", tool_calls_known=False))
    assert (evaluation.score, evaluation.hits) == (0.0, ())
    assert evaluation.misses == ("No trace available for evaluation",) == (NO_TRACE,)
    assert evaluation.error == "order: No trace available for evaluation"


@pytest.mark.contract("agentv.custom-evaluators.deterministic-trace-evaluator-reads-trace")
def test_tool_trajectory__deterministic_trace_evaluator_reads_trace__the_same_each_time_and_weighted() -> None:
    met, missed = from_yaml(SEARCH_3, weight=3.0), from_yaml(TWO_MINIMUMS, weight=1.0)
    response = with_trace(*["semanticSearch"] * 3)
    judgements = [judgement_of(met, missed, response=response) for _ in range(3)]
    assert judgements[0] == judgements[1] == judgements[2]
    assert (judgements[0].score, judgements[0].passed) == (0.75, False)


def test_tool_trajectory__plain_calls_of_our_own_targets__count() -> None:
    calls = tuple(ToolCall(name=name) for name in ("A", "B"))
    assert judged(from_yaml(EXACT_AB), Response(text="x", tool_calls=calls)).score == 1.0
    none = judged(from_yaml(EXACT_AB), Response(text="x"))
    assert none.misses[0] == "call 1 should be A, but it is missing: expected [A, B], called no tool"


@pytest.mark.contract("agentv.behaviour.trajectory-all-or-nothing")
@pytest.mark.parametrize(
    ("text", "calls", "misses"),
    [
        (IN_ORDER_ABC, "A C", ("step 2: B is never called: called [A, C]",)),
        (IN_ORDER_ABC, "", tuple(f"step {n}: {x} is never called: called no tool" for n, x in enumerate("ABC", 1))),
        (
            IN_ORDER_ABC,
            "C A B C A",
            (),
        ),
        (
            EXACT_AB,
            "B A",
            ("call 1 is B and should be A: expected [A, B], called [B, A]",),
        ),
        (
            EXACT_AB,
            "A",
            (
                "call 2 should be B, but it is missing: expected [A, B], called [A]",
                "B is missing: called 0 times, expected 1 time",
            ),
        ),
        (
            EXACT_AB,
            "A A C",
            (
                "call 2 is A and should be B: expected [A, B], called [A, A, C]",
                "A is extra: called 2 times, expected 1 time",
                "B is missing: called 0 times, expected 1 time",
                "C is extra: called 1 time, expected 0 times",
            ),
        ),
    ],
    ids=str,
)
def test_tool_trajectory__in_order_and_exact__are_all_or_nothing_and_explain(text, calls, misses) -> None:
    evaluation = scored(text, *calls.split())
    assert evaluation.misses == misses
    assert evaluation.score == (0.0 if misses else 1.0)


def test_tool_trajectory__step_that_comes_twice__needs_two_calls() -> None:
    spec = ToolTrajectory(mode="in_order", expected=("A", "A"))
    assert judged(spec, with_messages("A", "X", "A")).score == 1.0
    once = judged(spec, with_messages("A"))
    assert once.misses == ("step 2: A is not called after A (call 1), only at call 1: called [A]",)


@pytest.mark.contract("agentv.behaviour.trajectory-minimum-zero")
def test_tool_trajectory__minimum_of_zero__is_always_met() -> None:
    evaluation = judged(ToolTrajectory(mode="any_order", minimums={"A": 0}), with_messages())
    assert (evaluation.score, evaluation.hits) == (1.0, ("A called 0 times (minimum: 0)",))


@pytest.mark.contract("agentv.behaviour.trajectory-nothing-expected")
@pytest.mark.parametrize(
    ("mode", "setting"), [("any_order", "minimums"), ("in_order", "expected"), ("exact", "expected")]
)
def test_tool_trajectory__nothing_expected__is_an_error_and_no_free_pass(mode, setting) -> None:
    with pytest.raises(
        EvaluatorError, match=rf"^tool_trajectory: `{setting}` is empty, so mode {mode} has nothing to check"
    ):
        judged(ToolTrajectory(mode=mode), with_messages("A"))


@pytest.mark.contract("agentv.behaviour.trajectory-messages-first")
@pytest.mark.parametrize("calls", [(), ("A", "B")], ids=["without calls", "with calls"])
def test_tool_trajectory__messages_and_a_trace__uses_the_messages_and_says_so(calls) -> None:
    response = replace(with_messages(*calls), trace=with_trace("B", "A").trace)
    evaluation = judged(from_yaml(EXACT_AB), response)
    assert (evaluation.score, evaluation.reasoning) == (1.0 if calls else 0.0, FROM_MESSAGES)


def test_tool_trajectory__hostile_names__are_bounded_in_every_sentence() -> None:
    calls = ["\ud800" + "x" * 100_000, *(f"tool{number}" for number in range(3_000))]
    for text in (SEARCH_3, IN_ORDER_ABC, EXACT_AB):
        evaluation = scored(text, *calls)
        assert len(evaluation.misses) <= MAX_ITEMS
        assert evaluation.error is not None
        for line in (*evaluation.misses, evaluation.error):
            assert len(line) < 1_000
            line.encode()
    assert scored(EXACT_AB, *calls).misses[-1] == "… and more"


def test_tool_trajectory__very_long_expectation__keeps_a_bounded_number_of_hits() -> None:
    names = tuple(f"t{number}" for number in range(500))
    for mode in ("in_order", "exact"):
        evaluation = judged(ToolTrajectory(mode=mode, expected=names), with_messages(*names))
        assert (evaluation.score, len(evaluation.hits), evaluation.hits[-1]) == (1.0, MAX_ITEMS, "… and more")


CALLS = st.lists(st.sampled_from("ABC"), max_size=8)


@given(CALLS, CALLS.filter(bool))
def test_tool_trajectory__any_calls__agree_with_the_plain_definition(calls, expected) -> None:
    response = with_messages(*calls)
    rest = iter(calls)
    in_order = judged(ToolTrajectory(mode="in_order", expected=tuple(expected)), response)
    assert in_order.score == (1.0 if all(name in rest for name in expected) else 0.0)
    exact = judged(ToolTrajectory(mode="exact", expected=tuple(expected)), response)
    assert exact.score == (1.0 if calls == expected else 0.0)
    minimums = {name: expected.count(name) for name in set(expected)}
    any_order = judged(ToolTrajectory(mode="any_order", minimums=minimums), response)
    met = sum(calls.count(name) >= minimum for name, minimum in minimums.items())
    assert any_order.score == met / len(minimums)
    for evaluation in (in_order, exact, any_order):
        assert (evaluation.score == 1.0) is (not evaluation.misses)
        assert (evaluation.error is None) is (not evaluation.misses)
