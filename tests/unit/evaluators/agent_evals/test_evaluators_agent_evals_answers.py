"""Assertions of Agent Evals suites about the answer: when they hold, when they fail, and with which words."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.evaluators.agent_evals.table import TABLE, NotJsonError, parse_json_text
from eval_gate.evaluators.base import EvaluationContext, EvaluatorScore
from eval_gate.model.conversation import Response
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.specs.agent_evals import (
    OutputContains,
    OutputEquals,
    OutputJsonPath,
    OutputMatches,
    SuiteAssertion,
)
from eval_gate.text.dotted_path import PathError, get_by_path
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.json_values import are_json_equal
from eval_gate.text.tokens import TokenData
from tests.support.cases import make_case

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def judged(spec: SuiteAssertion, answer: str) -> EvaluatorScore:
    async def main() -> EvaluatorScore:
        matcher = PatternMatcher()
        try:
            context = EvaluationContext(make_case(expect=(spec,)), Response(text=answer), TokenData(), matcher)
            return await TABLE[type(spec)](spec, context)
        finally:
            await matcher.aclose()

    return asyncio.run(main())


@pytest.mark.contract("agent_evals.contains", "agent_evals.contains.case_sensitive")
@pytest.mark.parametrize(
    ("value", "case_sensitive", "answer", "holds"),
    [
        ("Paris", True, "It is Paris.", True),
        ("paris", True, "It is Paris.", False),
        ("paris", False, "It is PARIS.", True),
        ("ÜBER", False, "über uns", True),
        ("strasse", False, "Straße", False),
        ("London", False, "It is Paris.", False),
        ("", True, "", True),
        ("a.c", True, "abc", False),
    ],
)
def test_contains__value__is_in_the_answer(value, case_sensitive, answer, holds) -> None:
    assert judged(OutputContains(value=value, case_sensitive=case_sensitive), answer).passed is holds


@pytest.mark.contract("agent_evals.contains.case_sensitive")
def test_contains__nothing_said_of_case__counts_case() -> None:
    assert not judged(OutputContains(value="text"), "TEXT").passed


@pytest.mark.contract("agent_evals.contains")
def test_contains__fails__says_what_was_expected_and_seen() -> None:
    evaluation = judged(OutputContains(value="Paris"), "London")
    said = 'Output does not contain "Paris"'
    assert evaluation.error == f'contains: {said}: expected "Paris", got "London"'
    assert evaluation.misses == (evaluation.error,)
    assert evaluation.provider_request == {
        "assertion": {"type": "contains", "value": "Paris", "caseSensitive": True},
        "message": said,
        "expected": "Paris",
        "actual": "London",
    }
    assert (evaluation.score, evaluation.checks_run) == (0.0, 1)


def test_contains__holds__says_so_too() -> None:
    evaluation = judged(OutputContains(value="Paris", label="names the city"), "In Paris")
    assert (evaluation.hits, evaluation.misses, evaluation.error) == (('Output contains "Paris"',), (), None)
    assert evaluation.provider_request["assertion"]["description"] == "names the city"


@pytest.mark.slow
@pytest.mark.contract("agent_evals.matches_regex", "agent_evals.matches_regex.flags")
@pytest.mark.parametrize(
    ("pattern", "flags", "answer", "holds"),
    [
        (r"\d+", "", "in 3 days", True),
        (r"\d+", "i", "in 3 days", True),
        (r"\d", "", "٣", False),
        ("^paris$", "", "Paris", False),
        ("^paris$", "i", "Paris", True),
        ("^b$", "", "a\nb", False),
        ("^b$", "m", "a\nb", True),
        ("a.b", "", "a\nb", False),
        ("a.b", "s", "a\nb", True),
        (r"^\p{L}$", "u", "é", True),
        (r"^\p{L}$", "", "é", False),
        ("b", "y", "ab", False),
        ("a", "y", "ab", True),
        ("b", "g", "ab", True),
        ("^a$", "", "a\n", False),
        ("(?<y>[0-9]{4})", "", "2026", True),
        (r"\w", "", "é", False),
        ("", "", "", True),
    ],
)
def test_matches_regex__pattern__is_javascripts(pattern, flags, answer, holds) -> None:
    assert judged(OutputMatches(pattern=pattern, flags=flags), answer).passed is holds


@pytest.mark.contract("agent_evals.matches_regex")
def test_matches_regex__finds_nothing__names_pattern_and_answer() -> None:
    evaluation = judged(OutputMatches(pattern=r"\d+", flags="i"), "none")
    assert evaluation.error == (r'matchesRegex: Output does not match pattern /\d+/i: expected "\d+", got "none"')


@pytest.mark.contract("agent_evals.matches_regex", "agent_evals.matches_regex.flags")
@pytest.mark.parametrize(
    ("pattern", "flags"),
    [("(", ""), ("(?P<a>b)", ""), ("(?i)a", "z"), ("a", "ii"), ("a", "uv"), ("a", "I"), ("a" * 10_001, "")],
)
def test_matches_regex__no_pattern_or_flags__fails_with_the_reason(pattern, flags) -> None:
    evaluation = judged(OutputMatches(pattern=pattern, flags=flags), "a")
    assert not evaluation.passed
    assert evaluation.error.startswith("matchesRegex: Invalid regex pattern: ")


@pytest.mark.contract("agent_evals.equals")
@pytest.mark.parametrize(
    ("expected", "answer", "holds"),
    [
        ({"key": "value"}, '{"key": "value"}', True),
        ({"a": 1, "b": [1, 2]}, '{"b": [1, 2], "a": 1.0}', True),
        ({"a": [1, 2]}, '{"a": [2, 1]}', False),
        ({"a": 1}, '{"a": 1, "b": 2}', False),
        ({"a": {"b": {"c": None}}}, '{"a":{"b":{"c":null}}}', True),
        (1, "true", False),
        (True, "1", False),
        (True, " true\n", True),
        (0, "false", False),
        (1, "1.0", True),
        (None, "null", True),
        (None, "", False),
        ([], "[]", True),
        ([], "{}", False),
        ("yes", "yes", True),
        ("yes", "yes ", False),
        ("yes", '"yes"', False),
        ("1", "1", True),
        ("", "", True),
    ],
    ids=str,
)
def test_equals__answer__is_deeply_the_value(expected, answer, holds) -> None:
    assert judged(OutputEquals(expected=expected), answer).passed is holds


@pytest.mark.contract("agent_evals.equals")
def test_equals__differs__says_what_was_expected_and_seen() -> None:
    evaluation = judged(OutputEquals(expected={"key": "value"}), '{"key": "other", "n": 1.0}')
    assert evaluation.error == (
        'equals: Output does not equal expected value: expected {"key":"value"}, got {"key":"other","n":1}'
    )
    assert evaluation.provider_request["actual"] == {"key": "other", "n": 1.0}


def test_equals__differs_in_a_digit_that_javascript_does_not_show__shows_it() -> None:
    evaluation = judged(OutputEquals(expected=9007199254740992), "9007199254740993")
    assert evaluation.error.endswith("expected 9007199254740992, got 9007199254740993")


@pytest.mark.contract("agent_evals.equals.json")
def test_equals__answer_is_not_json__fails_and_says_so() -> None:
    evaluation = judged(OutputEquals(expected={"a": 1}), "The answer is 1.")
    assert "output is not JSON" in evaluation.error
    assert evaluation.error.endswith('expected {"a":1}, got "The answer is 1."')


@pytest.mark.contract("agent_evals.equals.json")
@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ('```json\n{"a": 1}\n```', True),
        ('\n```JSON\r\n{"a": 1}\r\n```\n', True),
        ('```\n{"a": 1}\n```', True),
        ('```json\n{\n "a": 1}```', True),
        ('Here it is:\n```json\n{"a": 1}\n```', False),
        ('```json\n{"a": 1}\n```\nDone.', False),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 1}\n```', False),
        ('```python\n{"a": 1}\n```', False),
        ("```json\n```", False),
        ("```json", False),
        ("```", False),
        ('{"a": 1} ', True),
        ('{"a": NaN}', False),
        ('{"a": 1,}', False),
        ("[" * 100_000, False),
        ("[" * 300 + "]" * 300, False),
        ("9" * 5_000, False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_equals__answer_in_a_fence__is_unwrapped_when_it_is_all_there_is(answer, holds) -> None:
    assert judged(OutputEquals(expected={"a": 1}), answer).passed is holds


@given(value=VALUES)
def test_deep_equal__a_value_written_and_read_again__is_the_same(value) -> None:
    assert are_json_equal(parse_json_text(json.dumps(value)), value)
    assert not are_json_equal([value], value)


@given(one=VALUES, other=VALUES)
def test_deep_equal__either_way_round__says_the_same(one, other) -> None:
    assert are_json_equal(one, other) == are_json_equal(other, one)


def test_as_json__many_blanks__takes_no_time() -> None:
    with pytest.raises(NotJsonError):
        parse_json_text("```json\n" + " \t" * 500_000 + "x")


STATUS = '{"response": {"status": "success", "items": [{"id": 7}, {"id": null}], "n": 1}, "a.b": 1, "list[0]": 2}'


@pytest.mark.contract("agent_evals.json_path", "agent_evals.json_path.lists")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("response.status", "success"),
        ("$.response.status", "success"),
        ("$.response.n", 1.0),
        ("$.response.items.0.id", 7),
        ("response.items[0].id", 7),
        ("$.response.items[0]", {"id": 7}),
        ("$.response.items.1.id", None),
        ("$.list[0]", 2),
        ("$", json.loads(STATUS)),
    ],
)
def test_json_path__with_and_without_dollar__finds_the_value(path, expected) -> None:
    assert judged(OutputJsonPath(path=path, expected=expected), STATUS).passed


@pytest.mark.contract("agent_evals.json_path", "agent_evals.equals.json")
def test_json_path__other_value__says_where_and_what() -> None:
    evaluation = judged(OutputJsonPath(path="$.response.status", expected="failed"), f"```json\n{STATUS}\n```")
    assert evaluation.error == (
        'jsonPath: Value at $.response.status does not equal expected: expected "failed", got "success"'
    )
    assert evaluation.provider_request["actual"] == "success"


@pytest.mark.contract("agent_evals.json_path.missing", "agent_evals.json_path.lists")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("$.response.missing", '$.response has no "missing"'),
        ("$.missing.status", '$ has no "missing"'),
        ("$.response.items.2", 'the list at $.response.items has 2 elements, but no "2"'),
        ("$.response.items[2].id", 'the list at $.response.items has 2 elements, but no "2"'),
        ("$.response.items.length", '"length" is not an index of the list at $.response.items'),
        ("$.response.items.-1", '"-1" is not an index of the list at $.response.items'),
        ("$.response.items.01", '"01" is not an index of the list at $.response.items'),
        ("$.response.items.٠", '"٠" is not an index of the list at $.response.items'),
        ("$.response.items[*].id", '$.response has no "items[*]"'),
        ("$.response.items.1.id.x", 'null at $.response.items.1.id has no "x"'),
        ("$.response.status.length", 'the text at $.response.status has no "length"'),
        ("$.response.n.x", 'the number at $.response.n has no "x"'),
        ("$..status", '$ has no ""'),
        ("a.b", '$ has no "a"'),
        ("$response.status", '$ has no "$response"'),
    ],
)
@pytest.mark.parametrize("expected", [None, "success"])
def test_json_path__leads_nowhere__fails_with_the_step_and_equals_not_even_null(path, reason, expected) -> None:
    evaluation = judged(OutputJsonPath(path=path, expected=expected), STATUS)
    assert not evaluation.passed
    assert f"Failed to evaluate path {path}: {reason}: expected" in evaluation.error


@pytest.mark.contract("agent_evals.equals.json")
def test_json_path__answer_is_not_json__fails_and_says_so() -> None:
    evaluation = judged(OutputJsonPath(path="$.a", expected=1), "a is 1")
    assert evaluation.error.startswith("jsonPath: Failed to evaluate path $.a: output is not JSON (")


def test_value_at__list_at_the_top__is_indexed_with_and_without_dollar() -> None:
    assert [get_by_path([[1, 2]], path) for path in ("0.1", "$.0.1", "$[0][1]", "[0].1")] == [2, 2, 2, 2]
    with pytest.raises(PathError, match="has 1 elements"):
        get_by_path([1], "999999999")


@given(value=VALUES, path=st.text(alphabet="$.[]0a1*-", min_size=1, max_size=12))
def test_value_at__whatever_the_path__finds_or_says_why(value, path) -> None:
    try:
        get_by_path(value, path)
    except PathError as error:
        assert len(str(error)) < 300


@pytest.mark.slow
@pytest.mark.parametrize("long", ["x" * 100_000, json.dumps({"k": ["v"] * 50_000})], ids=["text", "json"])
def test_outcome__long_values__are_bounded(long) -> None:
    for spec in (
        OutputContains(value="?" * 5_000),
        OutputEquals(expected={"k": "?" * 5_000}),
        OutputMatches(pattern="q{2}" * 1_000),
        OutputJsonPath(path="k." * 3_000, expected=["?" * 5_000]),
    ):
        evaluation = judged(spec, long)
        assert not evaluation.passed
        assert len(evaluation.error) < 1_000
        assert len(json.dumps(evaluation.provider_request)) < 4_000


def test_outcome__half_characters__can_be_written_to_a_result() -> None:
    """JSON may hold half a surrogate pair; a result file cannot."""
    for spec, answer in (
        (OutputContains(value="\ud800"), "x"),
        (OutputEquals(expected={"a": "\ud800"}), '{"a": "\\udc00"}'),
        (OutputJsonPath(path="a\ud800", expected="\ud800"), '{"a": "\\udc00"}'),
        (OutputJsonPath(path="a", expected="b"), '{"a": "\\udc00"}'),
        (OutputJsonPath(path="a", expected="\udc00"), '{"a": "\\udc00"}'),
    ):
        evaluation = judged(spec, answer)
        result = EvaluatorResult(
            name=spec.name,
            type=spec.type,
            score=evaluation.score,
            hits=evaluation.hits,
            misses=evaluation.misses,
            evaluator_provider_request=evaluation.provider_request,
        )
        assert msgspec.json.encode(result).decode()
