"""Assertions that decide, and those without a counterpart. What they say of answers is in the integration test."""

from __future__ import annotations

import pytest

from eval_gate.importers.import_result import NotImportableError
from eval_gate.importers.promptfoo.assertions import KNOWN_TYPES, CaseChecks, convert_assertions, split_commas


def unread(name: str) -> str:
    raise NotImportableError(f"read {name}")


def checks(*assertions, threshold=None, **variables) -> CaseChecks:
    return convert_assertions([*assertions], threshold, variables, unread)


def why_not(*assertions, threshold=None, **variables) -> str:
    with pytest.raises(NotImportableError) as refused:
        checks(*assertions, threshold=threshold, **variables)
    return str(refused.value)


OK = {"type": "contains", "value": "ok"}


def test_checks__of_each_kind__stand_under_their_keys() -> None:
    made = checks(
        OK,
        {"type": "contains-any", "value": "a, b"},
        {"type": "not-contains", "value": "{{bad}}"},
        {"type": "regex", "value": "^o"},
        {"type": "latency", "threshold": 900},
        {"type": "latency", "threshold": 1500.5},
        bad="sorry",
    )
    assert made.build_expect() == {
        "responseContains": ["ok"],
        "responseContainsAny": [["a", "b"]],
        "responseNotContains": ["sorry"],
        "responseMatches": ["^o"],
        "maxLatencyMs": 900,
    }
    assert (made.untrusted_patterns, made.assertion_count) == (["^o"], 6)


def test_checks__graded_by_a_model__are_a_rubric_of_yes_or_no_with_different_names() -> None:
    made = checks(
        {"type": "llm-rubric", "value": "polite to {{who}}", "threshold": 0.8},
        {"type": "llm-rubric", "value": "brief"},
        {"type": "g-eval", "value": ["kind", "clear"], "metric": "tone"},
        {"type": "factuality", "value": "Paris"},
        who="Ada",
    )
    assert made.build_expect() is None
    assert [(one["dimension"], one["maxScore"]) for one in made.rubric] == [
        ("llm-rubric", 1),
        ("llm-rubric 2", 1),
        ("tone", 1),
        ("factuality", 1),
    ]
    assert [one["criteria"] for one in made.rubric][:3] == ["polite to Ada", "brief", "kind\nclear"]
    assert made.graded_types == {"llm-rubric", "g-eval", "factuality"}


@pytest.mark.parametrize("kind", sorted(KNOWN_TYPES))
def test_checks__every_type_of_promptfoo__is_carried_or_refused_with_its_name(kind) -> None:
    for written in (kind, f"not-{kind}"):
        try:
            made = checks({"type": written, "value": "1", "threshold": 1})
        except NotImportableError as error:
            assert kind in str(error)
            assert "nor promptfoo's" not in str(error)
        else:
            assert made.build_expect() or made.rubric


@pytest.mark.parametrize(
    ("assertion", "why"),
    [
        ({"type": "contains", "value": ""}, "an empty value"),
        ({"type": "contains"}, "is empty"),
        ({"type": "contains", "value": {"a": 1}}, "is a mapping"),
        ({"type": "contains-any", "value": []}, "no values"),
        ({"type": "contains-any", "value": 7}, "no list of values"),
        ({"type": "contains-all", "value": ["a", ""]}, "an empty value"),
        ({"type": "contains-any", "value": 'a, "b'}, "a quote is missing"),
        ({"type": "contains", "value": "{{x | upper}}"}, "does more"),
        ({"type": "contains", "value": "file://x.txt"}, "read file://x.txt"),
        ({"type": "contains", "value": "package:x"}, "programs are not run"),
        ({"type": "equals", "value": None}, "compares the response as JSON"),
        ({"type": "regex", "value": 7}, "no text"),
        ({"type": "contains", "value": "x" * 9, "transform": "output.x"}, "`transform` of an assertion"),
        ({"type": "llm-rubric", "value": "x", "rubricPrompt": "y"}, "`rubricPrompt` of an assertion"),
        ({"type": "contains", "value": "x", "weight": -1}, "invalid weight"),
        ({"type": "latency"}, "no threshold"),
        ({"type": "word-count", "value": {"min": 3, "max": 2}}, "needs a whole number"),
        ({"type": "word-count", "value": 9_999}, "more than 2,000"),
        ({"type": "icontains", "value": "x" * 4_000}, "more than 10,000 characters"),
        ({"type": "bogus", "value": "x"}, "bogus is not among the checks of an eval file, nor promptfoo's"),
        ({"value": "x"}, "no type"),
        ("contains: x", "no type"),
        ({"type": "assert-set", "assert": [{"type": "python"}]}, "python is a program"),
        ({"type": "assert-set"}, "assertions have no effect"),
    ],
)
def test_checks__without_a_counterpart__refuse_the_whole_case(assertion, why) -> None:
    assert why in why_not(assertion)
    if "have no effect" not in why:
        assert why in why_not(OK, assertion)


def test_checks__weight_of_nothing__decides_nothing() -> None:
    assert checks(OK, {"type": "javascript", "weight": 0}).assertion_count == 1
    assert "have no effect" in why_not({**OK, "weight": 0})


@pytest.mark.parametrize("threshold", [0, 0.5, 0.99, 1.5, -1, "x", True])
def test_checks__a_share_is_enough__is_refused(threshold) -> None:
    assert why_not(OK, OK, threshold=threshold)
    assert why_not({"type": "assert-set", "assert": [OK, OK], "threshold": threshold})


def test_checks__all_have_to_hold__is_what_a_case_means() -> None:
    assert checks(OK, OK, threshold=1).assertion_count == 2
    assert checks(OK, threshold=0.2).assertion_count == 1
    assert checks({"type": "assert-set", "assert": [OK, OK], "threshold": 1}, OK).assertion_count == 3
    assert "score of 1" in why_not({"type": "llm-rubric", "value": "x"}, threshold=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b", ["a", "b"]),
        (" a , b ", ["a", "b"]),
        ('"a, b", c', ["a, b", "c"]),
        (r'"say \"hi\"", "a""b"', ['say "hi"', 'a"b']),
        (",,a,,", ["a"]),
        ("", []),
    ],
)
def test_comma_separated__fields__are_those_of_promptfoo(text, expected) -> None:
    assert split_commas(text) == expected
