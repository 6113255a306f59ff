"""Which failures are held together, above all those of conversations."""

from __future__ import annotations

import pytest

from eval_gate.gate.failure_causes import (
    drop_error_prefix,
    find_cause,
    find_check_name,
    find_low_members,
    get_group_key,
    list_evaluators,
)
from eval_gate.model.execution import EvaluatorResult
from tests.support.graded import make_evaluator, make_graded
from tests.support.results import make_result


def make_part(name: str, *members: EvaluatorResult, score: float = 0.5) -> EvaluatorResult:
    kind = "conversation" if name == "conversation" else "turn"
    return EvaluatorResult(name=name, type=kind, score=score, evaluator_results=members)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("turn 3: toolsCalled: a", "turn 3: toolsCalled: b", True),
        ("turn 3: toolsCalled: a", "turn 2: toolsCalled: a", False),
        ("turn 3: toolsCalled: a", "turn 3: maxTokens: a", False),
        ("turn 3: toolsCalled: a", "toolsCalled: a", False),
        ("turn 3: agent error: HTTP 500", "turn 3: agent error: HTTP 503", True),
        ("turn 3: agent error: HTTP 500", "turn 2: agent error: HTTP 500", False),
        ("turn 3: timeout: no response within 100 ms", "turn 3: timeout: no response within 200 ms", True),
        ("low score: turn 3 / style", "low score: turn 3 / style", True),
        ("low score: turn 3 / style", "low score: turn 2 / style", False),
        ("conversation: toolsCalled: a", "conversation: maxTokens: a", False),
    ],
)
def test_get_group_key__failures_of_turns__are_held_together_by_turn_and_check(one, other, is_same) -> None:
    assert (get_group_key(one) == get_group_key(other)) is is_same


@pytest.mark.parametrize(
    ("failure", "check", "shown"),
    [
        ("turn 3: toolsCalled: a", "turn 3: toolsCalled", "turn 3: toolsCalled: a"),
        ("turn 3: agent error: HTTP 500", None, "turn 3: HTTP 500"),
        ("low score: turn 3 / style", None, "low score: turn 3 / style"),
        ("agent error: HTTP 500", None, "HTTP 500"),
        ("toolsCalled: a", "toolsCalled", "toolsCalled: a"),
    ],
)
def test_find_check_name__failure_of_a_turn__has_the_turn_before_the_check(failure, check, shown) -> None:
    assert find_check_name(failure) == check
    assert drop_error_prefix(failure) == shown


def test_find_cause__graded_conversation__names_the_turn_and_its_costliest_evaluator() -> None:
    turns = (
        make_part("turn 1", make_evaluator("style"), score=1.0),
        make_part("turn 2", make_evaluator("style", 0.9), make_evaluator("facts", 0.1)),
        make_part("conversation", make_evaluator("tone", 0.8), score=0.8),
    )
    case = make_graded("a", 0.7, evaluator_results=turns)
    assert find_cause(case) == "low score: turn 2 / facts"
    assert [one.name for one in find_low_members(turns[1])] == ["facts", "style"]
    assert [one.name for one in list_evaluators(case)] == ["style", "style", "facts", "tone"]


def test_find_cause__members_of_a_composite__are_not_named() -> None:
    composite = EvaluatorResult(
        name="policy", type="composite", score=0.5, evaluator_results=(make_evaluator("x", 0.1),)
    )
    assert find_cause(make_graded("a", 0.5, evaluator_results=(composite,))) == "low score: policy"
    assert find_cause(make_result("a", "failed", error="turn 3: toolsCalled: a\nmore")) == "turn 3: toolsCalled: a"
