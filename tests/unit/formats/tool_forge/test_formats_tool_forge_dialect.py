"""tool-forge files: what is read, refused and warned about, each with its place."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.formats.base import EvalFileError, EvalSource, ReadOptions
from eval_gate.formats.tool_forge import dialect as tool_forge
from eval_gate.model.case import EvalSuite, Tier
from eval_gate.model.specs.evaluator import Rubric
from eval_gate.text.sources.json import parse_json

ALL_KEYS = {
    "maxTokens": 50,
    "maxLatencyMs": 100,
    "fields": {"a.b": {"oneOf": [1]}},
    "regexPattern": "b",
    "responseMatches": ["a"],
    "responseNotContains": ["x"],
    "responseContainsNumber": ["1,250.40"],
    "responseContainsAny": [["y"]],
    "responseContains": ["z"],
    "responseNonEmpty": True,
    "noToolErrors": True,
    "toolParams": [{"tool": "t", "paramName": "p", "assertion": "equals", "value": 0}],
    "toolsNotCalled": ["n"],
    "toolsCalled": ["t"],
}


def case(case_id: str = "gs-weather-001", **fields) -> dict:
    return {
        "id": case_id,
        "description": "d",
        "input": {"message": "hi"},
        "expect": {"responseNonEmpty": True},
    } | fields


def expecting(**expect) -> list:
    return [case(expect=expect)]


def load(document, file: str = "evals/weather.golden.json", *, strict: bool = False, tool_names=()) -> EvalSuite:
    data = json.dumps(document, indent=1).encode()
    parsed, positions = parse_json(data, file)
    return tool_forge.load_suite(
        parsed, positions, EvalSource(file, data, Path(file), Path()), ReadOptions(strict, tool_names)
    )


def refused(document, **options) -> list[str]:
    with pytest.raises(EvalFileError) as caught:
        load(document, **options)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.contract("file.forms")
def test_load__envelope_and_bare_list__are_the_same_cases() -> None:
    bare = load([case()])
    envelope = load({"metadata": None, "cases": [case()]})
    assert bare.metadata is None
    assert envelope.metadata is None
    assert [one.fingerprint for one in bare.cases] == [one.fingerprint for one in envelope.cases]


def test_load__metadata__is_the_other_side_of_the_staleness_checks() -> None:
    metadata = {"toolName": "w", "toolVersion": "1.2.0", "descriptionHash": "abc", "registrySize": 4, "skillVersion": 1}
    suite = load({"metadata": metadata, "cases": [case()]})
    assert suite.metadata is not None
    assert msgspec.structs.asdict(suite.metadata) == {
        "tool_version": "1.2.0",
        "description_hash": "abc",
        "registry_size": 4,
    }
    assert suite.warnings == ()


@pytest.mark.contract("file.tier")
@pytest.mark.parametrize(
    ("metadata", "file", "case_id", "tier"),
    [
        ({"tier": "labeled"}, "x.golden.json", "rg-1", "labeled"),
        (None, "a/x.regression.json", "gs-1", "regression"),
        (None, "a.golden.dir/x.json", "ls-1", "labeled"),
        (None, "x.json", "rg-1", "regression"),
        (None, "x.perturbation.json", "gs-1", "perturbation"),
    ],
)
def test_tier__metadata_then_file_name_then_ids(metadata, file, case_id, tier) -> None:
    assert load({"metadata": metadata, "cases": [case(case_id)]}, file).tier == tier


@pytest.mark.contract("file.tier")
def test_tier__nothing_says_it__is_golden_with_a_warning() -> None:
    suite = load([case("one")], "x.json")
    assert suite.tier is Tier.GOLDEN
    assert suite.warnings == ("neither metadata, file name nor ids name a tier: golden is assumed",)


def test_tier__unknown__is_refused_with_the_nearest() -> None:
    assert refused({"metadata": {"tier": "goldn"}, "cases": [case()]})[0].startswith(
        'evals/weather.golden.json:3: metadata.tier: "goldn" is not a tier (did you mean "golden"?)'
    )


@pytest.mark.contract("file.tool-name")
@pytest.mark.parametrize(
    ("metadata", "file", "names", "tool"),
    [
        ({"toolName": "mine"}, "get-weather.golden.json", {"get_weather"}, "mine"),
        (None, "get-weather.golden.json", {"get_weather"}, "get_weather"),
        (None, "get-weather.golden.json", set(), "get-weather"),
        (None, "evals/weather.v2.json", set(), "weather.v2"),
    ],
)
def test_tool_name__metadata_then_file_name(metadata, file, names, tool) -> None:
    assert load({"metadata": metadata, "cases": [case()]}, file, tool_names=names).tool_name == tool


@pytest.mark.contract("case.fields", "case.order-of-assertions", "case.shipped-extras")
def test_load__every_key__becomes_an_assertion_in_the_contracts_order() -> None:
    loaded = load(expecting(**ALL_KEYS)).cases[0]
    assert [spec.type for spec in loaded.evaluators] == [
        *("toolsCalled", "toolsNotCalled", "toolParams", "noToolErrors", "responseNonEmpty", "responseContains"),
        *("responseContainsAny", "responseContainsNumber", "responseNotContains", "responseMatches"),
        *("fields", "maxLatencyMs", "maxTokens"),
    ]
    assert msgspec.structs.asdict(loaded.evaluators[9])["patterns"] == ("a", "b")
    assert loaded.warnings == ()


@pytest.mark.contract("case.fields")
def test_load__regression_case__keeps_what_it_says() -> None:
    fields = {"difficulty": "regression", "createdAt": "2026-01-01", "bugRef": "#1", "tags": ["slow"], "maxTurns": 3}
    loaded = load([case("rg-a-1", stubs={"t": {"a": 1}}, **fields)], "a.regression.json").cases[0]
    assert (loaded.difficulty, loaded.tags, loaded.max_turns, loaded.stubs) == (
        "regression",
        ("slow",),
        3,
        {"t": {"a": 1}},
    )
    assert loaded.warnings == ()
    assert loaded.messages[0].content == "hi"


@pytest.mark.contract("case.presence")
def test_load__present_keys__assert_even_when_empty() -> None:
    loaded = load([case(expect={"toolsCalled": [], "noToolErrors": False, "responseNonEmpty": False}, stubs={})]).cases[
        0
    ]
    assert [spec.type for spec in loaded.evaluators] == ["toolsCalled"]
    assert loaded.stubs == {}


def test_location__case__is_its_line() -> None:
    suite = load([case("gs-1"), case("gs-2")])
    assert [one.location.line for one in suite.cases] == [2, 12]


@pytest.mark.contract("case.refused", "file.all-problems")
@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([case(id="")], "[0].id: must not be empty"),
        ([case(id="a\nb")], "[0].id: contains control characters"),
        ([case(id="x" * 201)], "[0].id: is longer than 200 characters"),
        ([{"id": "a", "expect": {}}], '[0].input: is missing in the case "a"'),
        ([case(input={"message": ""})], "[0].input.message: must not be empty"),
        ([case(input={"message": 1})], "[0].input.message: expected text, got the number 1"),
        ([{"id": "a", "input": {"message": "x"}}], '[0]: needs `expect` (or `rubric`) in the case "a"'),
        ([case(input={})], '[0].input.message: is missing in the case "gs-weather-001"'),
        ({"cases": [case("gs-1"), {"id": "b"}]}, 'cases[1].input: is missing in the case "b"'),
        ({"cases": [{"id": "\ud800" + "x" * 100}]}, 'cases[0].input: is missing in the case "�' + "x" * 79 + '"'),
        ([{"expect": {}}], "[0].id: is missing"),
        ([5], "[0]: expected a mapping, got the number 5"),
        (expecting(toolsCalled="x"), '[0].expect.toolsCalled: expected a list, got text "x"'),
        (expecting(toolsCalled=[1]), "[0].expect.toolsCalled[0]: expected text, got the number 1"),
        (
            expecting(responseContainsNumber=["many"]),
            "[0].expect.responseContainsNumber[0]: expected one number, date or code, such as 1,250.40",
        ),
        (expecting(responseContainsAny=["a"]), '[0].expect.responseContainsAny[0]: expected a list, got text "a"'),
        (expecting(toolsAcceptable=[]), "[0].expect.toolsAcceptable: needs at least 1, got an empty list"),
        (expecting(toolsAcceptable=["a"]), '[0].expect.toolsAcceptable[0]: expected a list, got text "a"'),
        (expecting(noToolErrors="true"), '[0].expect.noToolErrors: expected true or false, got text "true"'),
        (expecting(maxLatencyMs=0), "[0].expect.maxLatencyMs: must be > 0.0, got the number 0"),
        (expecting(maxTokens=0), "[0].expect.maxTokens: must be > 0, got the number 0"),
        (expecting(maxTokens=1.5), "[0].expect.maxTokens: expected a whole number, got the number 1.5"),
        ([case(maxTurns=0)], "[0].maxTurns: must be >= 1, got the number 0"),
        ([case(stubs=[])], "[0].stubs: expected a mapping, got an empty list"),
    ],
    ids=str,
)
def test_load__wrong_shape__is_refused_with_its_field(document, said) -> None:
    assert said in refused(document)[0]


@pytest.mark.contract("case.refused")
def test_load__both_routing_assertions__are_refused() -> None:
    problem = refused(expecting(toolsCalled=[], toolsAcceptable=[["a"]]))[0]
    assert problem.endswith("[0].expect: toolsCalled and toolsAcceptable exclude each other: keep one")
    problem = refused(expecting(toolsCalled=["a"], toolsCalledAnyOrder=["a"]))[0]
    assert problem.endswith("[0].expect: toolsCalled and toolsCalledAnyOrder exclude each other: keep one")
    problem = refused(expecting(toolsCalled=["a"], toolsCalledAnyOrder=["a"], toolsAcceptable=[["a"]]))[0]
    assert problem.endswith(": toolsCalled, toolsCalledAnyOrder and toolsAcceptable exclude each other: keep one")
    assert "must be alone" in refused(expecting(toolsAcceptable=[["__none__", "a"]]))[0]


@pytest.mark.contract("case.refused")
def test_load__duplicate_ids__name_both_lines() -> None:
    said = 'evals/weather.golden.json:13: [1].id: the case in line 2 already has the id "gs-weather-001"'
    assert refused([case(), case()]) == [said]


@pytest.mark.contract("case.params.refused")
def test_load__parameter_checks__unknown_kind_and_missing_value_are_refused() -> None:
    check = {"tool": "t", "paramName": "p"}
    wrong = [
        check | {"assertion": "equal", "value": 1},
        check | {"assertion": "equals"},
        check | {"assertion": "exists"},
    ]
    problems = refused(expecting(toolParams=wrong))
    assert len(problems) == 2
    assert "toolParams[0].assertion: expected 'equals'" in problems[0]
    assert '(did you mean "equals"?)' in problems[0]
    assert problems[1].endswith('toolParams[1]: "equals" needs a value')


@pytest.mark.contract("file.all-problems")
def test_load__many_problems__all_at_once_in_file_order() -> None:
    document = [case("a", expect={"toolsCalled": "x", "maxTokens": "y"}), case("b", input={}), case("c")]
    problems = refused(document)
    assert len(problems) == 3
    lines = [int(problem.split(":")[1]) for problem in problems]
    assert lines == sorted(lines)


@pytest.mark.contract("case.unknown-assertion")
def test_load__misspelt_assertion__is_a_warning_and_under_strict_a_problem() -> None:
    document = expecting(responseContain=["x"], toolsCalled=[])
    said = 'unknown assertion "responseContain" (did you mean "responseContains"?): it is not checked'
    suite = load(document)
    assert suite.cases[0].warnings == (said,)
    assert suite.warnings == (f"gs-weather-001: {said}",)
    assert refused(document, strict=True) == [f"evals/weather.golden.json:9: [0].expect.responseContain: {said}"]


@pytest.mark.contract("case.shipped-extras")
def test_load__assertion_of_the_shipped_runner__is_recognised_not_supported() -> None:
    warnings = load(expecting(maxCost=1, toolsCalled=[])).cases[0].warnings
    assert warnings == ('the assertion "maxCost" is recognised, but not supported: it is not checked',)


def test_load__assertion_beside_expect__says_where_it_belongs() -> None:
    warnings = load([case(noToolErrors=True)]).cases[0].warnings
    assert warnings == ('unknown key "noToolErrors" (it belongs in `expect`): it is not checked',)


@pytest.mark.contract("case.empty-expect")
def test_load__empty_expect__is_a_warning_and_under_strict_a_problem() -> None:
    said = "`expect` is empty: the case passes with every response"
    assert load(expecting()).cases[0].warnings == (said,)
    assert refused(expecting(), strict=True)[0].endswith(said)


@pytest.mark.contract("case.empty-expect")
def test_load__no_cases__is_refused() -> None:
    assert refused([]) == ["evals/weather.golden.json:1: needs at least 1, got an empty list"]
    assert refused({"metadata": None, "cases": []})[0].endswith("cases: needs at least 1, got an empty list")


@pytest.mark.contract("case.regression")
def test_load__regression_case__wants_its_history_and_seed_values_only() -> None:
    warnings = (
        load([case("rg-1", expect={"responseContains": ["{{snapshot:a}}"]})], "a.regression.json").cases[0].warnings
    )
    assert warnings == (
        "a regression case needs createdAt",
        "a regression case needs bugRef",
        "{{snapshot:a}} changes from run to run: regression cases use seed values only",
    )


@pytest.mark.contract("tokens.places", "tokens.unknown-source")
def test_load__tokens_where_they_are_not_resolved__are_warned_about() -> None:
    expect = {
        "toolsCalled": ["{{seed:a}}"],
        "responseMatches": ["{{seed:b}}"],
        "responseContains": ["{{env:HOME}}", "{{seed:c}}"],
    }
    warnings = load([case(input={"message": "{{seed:m}}"}, expect=expect)]).cases[0].warnings
    assert sorted(warnings) == [
        "{{env:HOME}} has an unknown source and is used literally (sources: seed, snapshot)",
        "{{seed:a}} is used literally: tokens are not replaced in toolsCalled",
        "{{seed:b}} is used literally: tokens are not replaced in responseMatches",
        "{{seed:m}} is sent as it is: tokens are not replaced in messages",
    ]


def test_load__checks_that_never_or_always_hold__are_warned_about() -> None:
    warnings = load(expecting(responseNotContains=[""], responseContainsAny=[[]])).cases[0].warnings
    assert set(warnings) == {"an empty group is skipped", '"" is in every response: this always fails'}


@pytest.mark.contract("case.checks-nothing")
@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ({"responseContains": [""]}, {'"" is in every response: this always passes'}),
        ({"responseContainsAny": [["a", ""]]}, {'"" is in every response: this always passes'}),
        ({"responseMatches": ["a|"]}, {"/a|/ matches every response: this always passes"}),
        ({"regexPattern": ".*"}, {"/.*/ matches every response: this always passes"}),
        ({"responseContains": [], "toolsNotCalled": [], "toolParams": []}, set()),
        ({"responseContains": None}, set()),
    ],
    ids=str,
)
def test_load__expectation_that_checks_nothing__is_called_that_and_refused_when_strict(expect, said) -> None:
    nothing = "nothing is checked: the case passes with every response"
    assert set(load(expecting(**expect)).cases[0].warnings) == {nothing, *said}
    assert any(nothing in problem for problem in refused(expecting(**expect), strict=True))
    assert set(load(expecting(**expect, noToolErrors=True)).cases[0].warnings) == said


@pytest.mark.contract("case.rubric")
def test_load__rubric_case__asks_for_a_judge_with_the_truth_to_compare_with() -> None:
    rubric = {"id": "r", "input": {"message": "x"}, "rubric": [{"dimension": "d", "maxScore": 3, "criteria": "c"}]}
    (spec,) = load([rubric | {"referenceData": {"celsius": 21}}], "x.rubric.json").cases[0].evaluators
    assert isinstance(spec, Rubric)
    assert (spec.question, spec.reference_data) == ("x", {"celsius": 21})
    assert [(one.name, one.max_score, one.criteria) for one in spec.dimensions] == [("d", 3, "c")]


@pytest.mark.contract("case.rubric")
def test_load__rubric_beside_expectations__is_graded_after_them() -> None:
    both = expecting(responseContains=["ok"])[0] | {"rubric": [{"dimension": "d", "maxScore": 1, "criteria": "c"}]}
    assert [spec.type for spec in load([both]).cases[0].evaluators] == ["responseContains", "rubric"]


def test_load__case_marked_as_draft__is_one_and_only_true_marks_it() -> None:
    suite = load([case("a", draft=True), case("b", draft=False), case("c")], strict=True)
    assert [one.draft for one in suite.cases] == [True, False, False]
    assert refused([case(draft="yes")]) == [
        'evals/weather.golden.json:11: [0].draft: expected true or false, got text "yes"'
    ]


def test_fingerprint__changes_with_what_is_asked_and_expected_only() -> None:
    def fingerprint(**fields) -> str:
        return load([case(**fields)]).cases[0].fingerprint

    same = fingerprint()
    assert fingerprint(description="other", tags=["t"], difficulty="edge", id="gs-other") == same
    assert fingerprint(draft=True) == same
    assert fingerprint(input={"message": "other"}) != same
    assert fingerprint(expect={"responseNonEmpty": True, "maxTokens": 9}) != same
    assert fingerprint(stubs={}) != same


@pytest.mark.contract("case.same-expectation")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"maxLatencyMs": 5000}, {"maxLatencyMs": 5e3}),
        ({"noToolErrors": True}, {"noToolErrors": True, "responseNonEmpty": None, "responseContains": None}),
        ({"noToolErrors": True}, {"noToolErrors": True, "responseNonEmpty": False, "responseContains": []}),
        ({}, {"responseContains": [""], "toolsNotCalled": [], "toolParams": [], "responseContainsAny": [[], [""]]}),
        ({}, {"responseNotContains": [], "responseMatches": [".*"]}),
        ({"regexPattern": "a"}, {"responseMatches": ["a"]}),
        (
            {"toolParams": [{"tool": "t", "paramName": "p", "assertion": "exists"}]},
            {"toolParams": [{"tool": "t", "paramName": "p", "assertion": "exists", "value": None}]},
        ),
    ],
    ids=str,
)
def test_fingerprint__same_expectation_in_other_words__is_the_same(one, other) -> None:
    found, same = (load(expecting(**expect)).cases[0] for expect in (one, other))
    assert (found.fingerprint, found.expectation_fingerprint) == (same.fingerprint, same.expectation_fingerprint)


@pytest.mark.contract("case.same-expectation")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"toolsCalled": []}, {}),
        ({"toolsCalledAnyOrder": []}, {"toolsCalled": []}),
        ({"responseContains": ["a"]}, {"responseContains": []}),
        ({"responseContains": ["5000"]}, {"responseContains": ["5e3"]}),
        ({"responseContainsAny": [["a", "b"]]}, {"responseContainsAny": [["a"], ["b"]]}),
        (
            {"toolParams": [{"tool": "t", "paramName": "p", "assertion": "equals", "value": 1}]},
            {"toolParams": [{"tool": "t", "paramName": "p", "assertion": "equals", "value": True}]},
        ),
    ],
    ids=str,
)
def test_fingerprint__another_expectation__is_another_one(one, other) -> None:
    found, different = (load(expecting(**expect)).cases[0] for expect in (one, other))
    assert found.fingerprint != different.fingerprint
    assert found.expectation_fingerprint != different.expectation_fingerprint
    assert found.prompt_fingerprint == different.prompt_fingerprint


@pytest.mark.contract("case.same-expectation")
def test_question__same_in_other_words__is_the_same() -> None:
    def question(**fields) -> str | None:
        return load([case(**fields)]).cases[0].prompt_fingerprint

    assert question() == question(stubs=None, maxTurns=None) == question(maxTurns=5)
    assert question(stubs={"t": 5}) == question(stubs={"t": 5.0})
    assert len({question(), question(stubs={}), question(maxTurns=4), question(stubs={"t": None})}) == 4


def test_recognises__shape_of_the_document__decides() -> None:
    assert tool_forge.is_tool_forge_suite([case()])
    assert tool_forge.is_tool_forge_suite({"cases": [case()]})
    assert not tool_forge.is_tool_forge_suite({"cases": [{"id": "a", "prompt": "x", "assertions": []}]})
    assert not tool_forge.is_tool_forge_suite({"holdings": []})
    assert not tool_forge.is_tool_forge_suite("cases")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "{{seed:x}}", "__none__"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("id", "input", "message", "expect", "toolsCalled", "toolsAcceptable", "toolParams", "stubs", "x"),
                    *("turns", "user", "goal", "onTurnFailure"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.lists(JSON, max_size=3), st.booleans())
def test_load__any_list__is_a_suite_or_a_clear_error(document, strict) -> None:
    try:
        load(document, strict=strict)
    except GateError as error:
        assert error.problems
        assert all(problem.line for problem in error.problems)


@pytest.mark.parametrize("path", ["", "a..b", ".a", "a.", "$", "$.a", "$[0]", "a[*]", "a.*", "a[-1]", "a[0", "a]"])
def test_require_path__path_that_leads_nowhere__is_refused(path) -> None:
    (problem,) = refused(expecting(fields={path: 1}))
    assert "is not a path" in problem


@pytest.mark.parametrize("path", ["a", "a.b", "a.0.b", "[0].a", "a[0][1]", "$ref", "a b", "ä", "length"])
def test_require_path__path__is_taken(path) -> None:
    ((check,),) = ([*spec.checks] for spec in load(expecting(fields={path: {"exists": True}})).cases[0].evaluators)
    assert (check.path, check.assertion) == (path, "exists")


@pytest.mark.parametrize("value", [{}, {"a": 1, "equals": 2}, {"contains": 1}, {"oneOf": []}, {"oneOf": 3}])
def test_require_value__operator__is_one_with_its_value(value) -> None:
    (problem,) = refused(expecting(fields={"a": value}))
    assert "or one operator of equals, contains, oneOf, exists, notExists, matches; " in problem or "takes a" in problem


def test_response_fields__oddities__are_warned_about() -> None:
    warnings = load(expecting(fields={"a": {"matches": ".*"}, "b": "{{env:X}}"})).cases[0].warnings
    assert [one.partition(" ")[0] for one in warnings] == ["/.*/", "{{env:X}}"]
    (case_with_typo,) = load(expecting(fields={"a": {"matches": "("}})).cases
    assert case_with_typo.mistakes[0].field == "[0].expect.fields.a.matches"
