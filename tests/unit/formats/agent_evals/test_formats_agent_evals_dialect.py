"""Agent Evals suites: what is read, refused and warned about, each with its place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from eval_gate.formats.agent_evals import dialect as agent_evals
from eval_gate.formats.base import EvalFileError, EvalSource, ReadOptions
from eval_gate.formats.tool_forge import dialect as tool_forge
from eval_gate.model.agent import SuiteAgent
from eval_gate.model.case import Aggregation, EvalSuite
from eval_gate.model.specs.agent_evals import (
    FileContains,
    FileExists,
    FileJsonPath,
    FileNotExists,
    OutputContains,
    OutputEquals,
    OutputJsonPath,
    OutputMatches,
)
from eval_gate.text.sources.json import parse_json

FILE = "suites/my-suite.json"
EXAMPLE = """{
  "name": "my-suite",
  "description": "Test suite description",
  "version": "1.0.0",
  "agent": {
    "name": "MyTestAgent",
    "model": "gpt-5-mini",
    "instructions": "Agent system prompt here",
    "tools": [],
    "maxTurns": 3
  },
  "defaults": {
    "timeout": 15000
  },
  "cases": [
    {
      "id": "case-1",
      "name": "Test case name",
      "prompt": "User prompt to test",
      "assertions": [{ "type": "contains", "value": "expected text" }]
    }
  ]
}
"""
TOOLS = ["readFile", "writeFile", "listFiles", "deleteFile"]


def case(case_id: str = "case-1", **fields) -> dict:
    return {
        "id": case_id,
        "name": "n",
        "prompt": "p",
        "assertions": [{"type": "contains", "value": "x"}],
    } | fields


def suite(*cases: dict, agent: dict | None = None, **fields) -> dict:
    described = {"name": "A", "model": "gpt-5-mini", "instructions": "be brief"} | (agent or {})
    return {"name": "s", "agent": described, "cases": [*(cases or (case(),))]} | fields


def asserting(*assertions: dict, tools: list[str] | None = None) -> dict:
    return suite(case(assertions=[*assertions]), agent={"tools": TOOLS if tools is None else tools})


def load(document, *, strict: bool = False, **options) -> EvalSuite:
    data = document.encode() if isinstance(document, str) else json.dumps(document, indent=1).encode()
    parsed, positions = parse_json(data, FILE)
    assert agent_evals.is_agent_evals_suite(parsed)
    source = EvalSource(FILE, data, Path(FILE), Path())
    return agent_evals.load_suite(parsed, positions, source, ReadOptions(strict=strict, **options))


def refused(document, **options) -> list[str]:
    with pytest.raises(EvalFileError) as caught:
        load(document, **options)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.contract("agent_evals.suite.example")
def test_load__example_of_the_text__is_read_as_it_stands() -> None:
    loaded = load(EXAMPLE, strict=True)
    assert (loaded.format, loaded.tool_name, loaded.version) == ("agent-evals", "my-suite", "1.0.0")
    assert (loaded.tier, loaded.metadata, loaded.warnings) == (None, None, ())
    (only,) = loaded.cases
    assert (only.id, only.description, only.location.line) == ("case-1", "Test case name", 16)
    assert [(message.role, message.content) for message in only.messages] == [("user", "User prompt to test")]
    assert only.evaluators == (OutputContains(value="expected text", case_sensitive=True),)
    assert only.agent == SuiteAgent(
        name="MyTestAgent", model="gpt-5-mini", instructions="Agent system prompt here", tools=(), max_turns=3
    )
    assert (only.timeout_ms, only.max_turns, only.tags) == (15_000, 3, ())
    assert only.target == "openai:gpt-5-mini"


@pytest.mark.slow
def test_load__reading_suites__costs_nothing_where_there_are_none(tmp_path) -> None:
    case = '{"id": "gs-1", "input": {"message": "x"}, "expect": {"responseNonEmpty": true}}'
    (tmp_path / "a.golden.json").write_text(f"[{case}]")
    code = (
        "import sys; from pathlib import Path; from eval_gate.formats.base import ReadOptions; "
        "from eval_gate.formats.discovery import find_eval_files, load_suites; "
        "root = Path(sys.argv[1]); load_suites(find_eval_files(['.'], root), root, ReadOptions()); "
        "sys.exit(any('agent_evals_' in name or 'sandbox' in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 0


@pytest.mark.contract("agent_evals.case.all_assertions")
def test_load__case__is_judged_by_all_of_its_assertions() -> None:
    assert load(EXAMPLE).cases[0].aggregation is Aggregation.ALL


ASSERTIONS = [
    ({"type": "contains", "value": "t", "caseSensitive": False}, OutputContains(value="t", case_sensitive=False)),
    ({"type": "matchesRegex", "pattern": "\\d+", "flags": "i"}, OutputMatches(pattern="\\d+", flags="i")),
    ({"type": "matchesRegex", "pattern": "a"}, OutputMatches(pattern="a", flags="")),
    ({"type": "equals", "expected": {"key": "value"}}, OutputEquals(expected={"key": "value"})),
    ({"type": "equals", "expected": None}, OutputEquals(expected=None)),
    (
        {"type": "jsonPath", "path": "$.response.status", "expected": "success"},
        OutputJsonPath(path="$.response.status", expected="success"),
    ),
    ({"type": "fileExists", "path": "a/o.txt", "description": "made"}, FileExists(path="a/o.txt", label="made")),
    ({"type": "fileNotExists", "path": "a/o.txt"}, FileNotExists(path="a/o.txt")),
    (
        {"type": "fileContains", "path": "a/o.txt", "value": "Hello World", "caseSensitive": False},
        FileContains(path="a/o.txt", value="Hello World", case_sensitive=False),
    ),
    (
        {"type": "fileJsonPath", "path": "a/d.json", "jsonPath": "$.name", "expected": "test"},
        FileJsonPath(path="a/d.json", json_path="$.name", expected="test"),
    ),
]


@pytest.mark.contract("agent_evals.suite.example", "agent_evals.expected_required")
@pytest.mark.parametrize(("written", "spec"), ASSERTIONS, ids=lambda value: str(value)[:60])
def test_load__every_assertion__becomes_its_data(written, spec) -> None:
    loaded = load(asserting(written), strict=True)
    assert loaded.cases[0].evaluators == (spec,)
    defaults = {key: value for key, value in {"caseSensitive": True, "flags": ""}.items() if key in spec.as_written}
    assert spec.as_written == defaults | written


@pytest.mark.contract("agent_evals.contains.case_sensitive")
def test_load__case_sensitive_left_out__is_true() -> None:
    contains, in_file = (
        load(asserting(one)).cases[0].evaluators[0]
        for one in ({"type": "contains", "value": "x"}, {"type": "fileContains", "path": "p", "value": "x"})
    )
    assert contains.case_sensitive
    assert in_file.case_sensitive


@pytest.mark.contract("agent_evals.field.model")
def test_model__other_than_the_fixed_one__is_refused() -> None:
    document = suite(agent={"model": "gpt-4o"})
    (problem,) = refused(document)
    assert problem.startswith(f'{FILE}:5: agent.model: "gpt-4o" is not gpt-5-mini, the model of all suites: ')
    assert problem.endswith("choose another one with --model or --target")
    assert "agent.model: is missing" in refused(suite(agent={}) | {"agent": {"name": "A", "instructions": ""}})[0]


@pytest.mark.contract("agent_evals.field.model")
def test_model__somebody_else_was_chosen_to_answer__may_be_any_and_the_result_says_so() -> None:
    loaded = load(suite(agent={"model": "gpt-4o"}), target_override="openai:gpt-5", strict=True)
    assert loaded.cases[0].agent.model == "gpt-4o"
    assert loaded.warnings == ('agent.model: the suite names the model "gpt-4o"; openai:gpt-5 is used instead',)
    assert load(suite(), target_override="openai:gpt-5").warnings == ()


@pytest.mark.contract("agent_evals.field.tools")
def test_tools__names_of_the_registry__are_taken_in_order() -> None:
    assert load(suite(agent={"tools": TOOLS}), strict=True).cases[0].agent.tools == tuple(TOOLS)
    twice = load(suite(agent={"tools": ["readFile", "readFile"]}))
    assert twice.cases[0].agent.tools == ("readFile",)
    assert twice.warnings == ("agent.tools: the tool readFile is listed twice",)
    assert load(suite()).cases[0].agent.tools == ()


@pytest.mark.contract("agent_evals.field.tools")
def test_tools__unknown_name__is_refused_with_the_four_there_are() -> None:
    (problem,) = refused(suite(agent={"tools": ["readFile", "readfile"]}))
    assert problem.startswith(f"{FILE}:9: agent.tools[1]: expected")
    assert all(f"'{name}'" in problem for name in TOOLS)
    assert problem.endswith('got text "readfile" (did you mean "readFile"?)')


@pytest.mark.contract("agent_evals.field.max_turns")
def test_max_turns__left_out__is_five() -> None:
    (only,) = load(suite()).cases
    assert (only.max_turns, only.agent.max_turns) == (5, 5)
    (only,) = load(suite(agent={"maxTurns": 1})).cases
    assert (only.max_turns, only.agent.max_turns) == (1, 1)
    assert "agent.maxTurns: must be > 0" in refused(suite(agent={"maxTurns": 0}))[0]


@pytest.mark.contract("agent_evals.field.timeout", "agent_evals.field.default_timeout")
@pytest.mark.parametrize(
    ("own", "default", "limit"),
    [(1000, 15_000, 1000), (None, 15_000, 15_000), (1000, None, 1000), (None, None, 30_000), (0.5, None, 1)],
)
def test_timeout__cases_own__else_the_suites__else_half_a_minute(own, default, limit) -> None:
    described = case() | ({"timeout": own} if own is not None else {})
    document = suite(described) | ({"defaults": {"timeout": default}} if default is not None else {})
    assert load(document).cases[0].timeout_ms == limit


@pytest.mark.contract("agent_evals.field.default_timeout")
@pytest.mark.parametrize("timeout", [0, -1, "1000", True, 1e10])
def test_timeout__no_time_at_all_or_no_number__is_refused(timeout) -> None:
    of_case, default = refused(suite(case(timeout=timeout), defaults={"timeout": timeout}))
    assert "cases[0].timeout: " in of_case
    assert "defaults.timeout: " in default


@pytest.mark.contract("agent_evals.field.tags")
def test_tags__are_kept_and_change_no_question() -> None:
    plain, tagged = (load(suite(one)).cases[0] for one in (case(), case(tags=["a", "b"])))
    assert (plain.tags, tagged.tags) == ((), ("a", "b"))
    assert plain.fingerprint == tagged.fingerprint


def test_version__left_out__is_the_first() -> None:
    assert load(suite()).version == "1.0.0"


@pytest.mark.contract("agent_evals.expected_required")
@pytest.mark.parametrize(
    "assertion",
    [
        {"type": "equals"},
        {"type": "jsonPath", "path": "a"},
        {"type": "fileJsonPath", "path": "a.json", "jsonPath": "a"},
    ],
    ids=lambda one: one["type"],
)
def test_assertion__without_expected__is_refused(assertion) -> None:
    (problem,) = refused(asserting(assertion))
    assert problem.endswith('cases[0].assertions[0].expected: is missing in the case "case-1"')


@pytest.mark.contract("agent_evals.suite.refused")
@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        (
            {"type": "contain", "value": "x"},
            'unknown assertion "contain" (did you mean "contains"?); known: contains,',
        ),
        ({"value": "x"}, "expected an assertion with a `type`, got a mapping; known: contains, matchesRegex, equals,"),
        ({"type": 3}, "expected an assertion with a `type`"),
        ("contains", 'cases[0].assertions[0]: expected a mapping, got text "contains"'),
        ({"type": "contains", "value": 4}, "cases[0].assertions[0].value: expected text, got the number 4"),
        ({"type": "contains", "value": "x", "caseSensitive": "no"}, "expected true or false"),
        ({"type": "fileExists", "path": ""}, "assertions[0].path: must not be empty"),
        ({"type": "matchesRegex", "pattern": "a", "flags": None}, "flags: expected text, got null"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_assertion__of_another_shape__is_refused_in_our_words(assertion, said) -> None:
    (problem,) = refused(asserting(assertion))
    assert said in problem
    assert "contains.value" not in problem


@pytest.mark.contract("agent_evals.suite.refused")
def test_load__several_problems__are_all_named_with_their_lines() -> None:
    document = suite(case("a", prompt=""), case("b", name=3), agent={"instructions": None, "tools": "readFile"})
    problems = refused(document)
    assert [problem.partition(": ")[2].partition(": ")[0] for problem in problems] == [
        "agent.instructions",
        "agent.tools",
        "cases[0].prompt",
        "cases[1].name",
    ]
    lines = [int(problem.split(":")[1]) for problem in problems]
    assert lines == sorted(set(lines))


@pytest.mark.contract("agent_evals.suite.refused")
def test_load__same_id_twice__is_refused_naming_both_places() -> None:
    (problem,) = refused(suite(case("a"), case("b"), case("a")))
    assert problem.endswith('cases[2].id: the case in line 9 already has the id "a"')


@pytest.mark.contract("agent_evals.suite.refused")
@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"cases": [case()]}, "name"),
        (suite() | {"agent": {}}, "agent.name"),
        (suite() | {"cases": []}, "cases"),
        (suite(case() | {"id": "a\nb"}), "cases[0].id"),
        (suite() | {"version": 1}, "version"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_load__what_is_needed__is_refused_when_missing_or_wrong(document, field) -> None:
    assert any(f": {field}: " in problem for problem in refused(document))


@pytest.mark.contract("agent_evals.suite.unknown_keys")
def test_load__unknown_keys__are_warned_about_with_the_nearest() -> None:
    document = suite(
        case("a", assertions=[{"type": "contains", "value": "x", "casesensitive": False}]),
        case("b", timeoutMs=5),
        owner="me",
        agent={"temperature": 0},
    )
    assert load(document).warnings == (
        'owner: unknown key "owner": it is ignored',
        'agent.temperature: unknown key "temperature": it is ignored',
        'a: unknown key "casesensitive" (did you mean "caseSensitive"?): it is ignored',
        'b: unknown key "timeoutMs" (did you mean "timeout"?): it is ignored',
    )
    assert load(document).cases[0].warnings == (load(document).warnings[2].removeprefix("a: "),)
    strict = refused(document, strict=True)
    assert [problem.split(": ")[1] for problem in strict] == [
        "cases[0].assertions[0].casesensitive",
        "cases[1].timeoutMs",
    ]


@pytest.mark.contract("agent_evals.case.all_assertions")
@pytest.mark.parametrize("fields", [{"assertions": []}, {}], ids=["empty", "none"])
def test_load__case_without_assertions__is_warned_about(fields) -> None:
    bare = {key: value for key, value in case().items() if key != "assertions"} | fields
    assert load(suite(bare)).warnings == ("case-1: no assertions: the case passes with every response",)
    assert load(suite(bare)).cases[0].evaluators == ()
    assert refused(suite(bare), strict=True)


@pytest.mark.parametrize(
    ("assertion", "tools", "said", "silent"),
    [
        ({"type": "contains", "value": ""}, TOOLS, '"" is in every response: this always passes', True),
        ({"type": "matchesRegex", "pattern": "a*"}, TOOLS, "/a*/ matches every response", True),
        ({"type": "jsonPath", "path": "$.a[*].b", "expected": 1}, TOOLS, "are read as plain keys", False),
        ({"type": "jsonPath", "path": "$..b", "expected": 1}, TOOLS, "are read as plain keys", False),
        (
            {"type": "fileJsonPath", "path": "a", "jsonPath": "a[?(@.b)]", "expected": 1},
            TOOLS,
            "are read as plain keys",
            False,
        ),
        ({"type": "fileExists", "path": "../x"}, TOOLS, "Path traversal is not allowed. This always fails", False),
        ({"type": "fileExists", "path": "x"}, ["readFile"], "no tool that writes files: this always fails", False),
        ({"type": "fileNotExists", "path": "x"}, [], "no tool that writes files: this always holds", True),
    ],
    ids=lambda value: str(value)[:40],
)
def test_load__assertion_that_can_only_hold_or_only_fail__is_warned_about(assertion, tools, said, silent) -> None:
    document = asserting(assertion, tools=tools)
    (warning,) = load(document).warnings
    assert said in warning
    if silent:
        assert said in refused(document, strict=True)[0]
    else:
        assert load(document, strict=True).warnings == (warning,)


@pytest.mark.parametrize(("pattern", "flags"), [("a", "gg"), ("a", "x"), ("(", "i")])
def test_load__pattern_that_cannot_be_compiled__is_a_mistake_and_under_strict_a_problem(pattern, flags) -> None:
    document = asserting({"type": "matchesRegex", "pattern": pattern, "flags": flags}, tools=TOOLS)
    loaded = load(document)
    (mistake,) = loaded.cases[0].mistakes
    assert (mistake.kind, mistake.field) == ("invalid_pattern", "cases[0].assertions[0].pattern")
    assert mistake.message.startswith(f"/{pattern}/{flags} ")
    assert loaded.warnings == ()
    assert mistake.message in refused(document, strict=True)[0]


FILES_OF = ("fileExists", "fileNotExists", "fileContains", "fileJsonPath")


@pytest.mark.parametrize("kind", FILES_OF)
def test_load__agent_that_may_delete__is_not_told_that_nothing_changes(kind) -> None:
    more = {"fileContains": {"value": "x"}, "fileJsonPath": {"jsonPath": "a", "expected": 1}}.get(kind, {})
    assert load(asserting({"type": kind, "path": "x", **more}, tools=["deleteFile"]), strict=True).warnings == ()


@pytest.mark.parametrize("kind", FILES_OF)
def test_load__file_that_lies_there_or_may__is_not_warned_about(kind, tmp_path) -> None:
    (tmp_path / "x").mkdir()
    more = {"fileContains": {"value": "x"}, "fileJsonPath": {"jsonPath": "a", "expected": 1}}.get(kind, {})
    document = asserting({"type": kind, "path": "x", **more}, tools=["readFile"])
    for where in ({"tmp": tmp_path}, {"tmp": tmp_path / "x", "tmp_shared": True}):
        assert load(document, strict=True, **where).warnings == ()
    (warning,) = load(document, tmp=tmp_path / "x").warnings
    assert f"this always {'holds' if kind == 'fileNotExists' else 'fails'}" in warning


def test_load__ordinary_paths_and_flags__are_not_warned_about() -> None:
    document = asserting(
        {"type": "matchesRegex", "pattern": "a", "flags": "gimsuy"},
        {"type": "jsonPath", "path": "$.a.0[1].b-c.*d", "expected": 1},
        {"type": "fileExists", "path": "agent-evals/..name/x.txt"},
    )
    assert load(document).warnings == ()


def test_fingerprint__is_of_what_is_asked_and_expected_and_not_of_who_answers() -> None:
    """The agent is what is evaluated: with a changed prompt of the agent the same question is asked again."""
    plain = load(suite()).cases[0].fingerprint
    for same in (
        suite(agent={"instructions": "be long", "tools": TOOLS, "maxTurns": 9, "name": "B"}),
        suite(case(draft=True)),
        suite(case(name="other", timeout=1, tags=["t"], description="d"), version="2.0.0"),
        suite(case(assertions=[{"value": "x", "type": "contains", "description": "d", "caseSensitive": True}])),
    ):
        assert load(same).cases[0].fingerprint == plain
    for other in (
        suite(case(prompt="q")),
        suite(case(assertions=[{"type": "contains", "value": "y"}])),
        suite(case(assertions=[{"type": "contains", "value": "x", "caseSensitive": False}])),
        suite(case(assertions=[])),
    ):
        assert load(other).cases[0].fingerprint != plain


@pytest.mark.parametrize(
    ("document", "known"),
    [
        (json.loads(EXAMPLE), True),
        ({"agent": {}, "cases": []}, True),
        ({"cases": [{"prompt": "p"}]}, True),
        ({"cases": [{"id": "a", "assertions": []}]}, True),
        ({"cases": [{"id": "a", "input": {"message": "m"}}]}, False),
        ({"agent": {}, "cases": [{"input": {"message": "m"}, "prompt": "p"}]}, False),
        ({"cases": []}, False),
        ({"cases": {"a": 1}}, False),
        ([{"prompt": "p"}], False),
        ({"evalcases": [{"id": "a"}]}, False),
        ({"name": "package", "version": "1"}, False),
        (None, False),
        ("suite", False),
    ],
    ids=lambda value: str(value)[:50],
)
def test_recognises__by_shape__and_never_what_is_another_formats(document, known) -> None:
    assert agent_evals.is_agent_evals_suite(document) is known
    if known:
        assert not tool_forge.is_tool_forge_suite(document)


def test_json_schema__takes_the_example_and_refuses_other_models_of_assertions() -> None:
    schema = agent_evals.build_json_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid(json.loads(EXAMPLE))
    for written, _ in ASSERTIONS:
        assert validator.is_valid(asserting(written))
    assert not validator.is_valid(asserting({"type": "equals"}))
    assert not validator.is_valid(suite(agent={"tools": ["exec"]}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["contains", "equals", "a/../b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "value", "expected", "path", "id", "name", "prompt", "assertions", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(case_=JSON, agent=JSON, assertion=JSON)
def test_load__whatever_is_written__is_a_suite_or_problems_with_lines(case_, agent, assertion) -> None:
    document = suite(case("a", assertions=[assertion])) | {"agent": agent}
    document["cases"].append(case_)
    data = json.dumps(document).encode()
    parsed, positions = parse_json(data, FILE)
    try:
        agent_evals.load_suite(
            parsed, positions, EvalSource(FILE, data, Path(FILE), Path()), ReadOptions(target_override="m")
        )
    except EvalFileError as error:
        assert error.problems
        assert all(problem.line for problem in error.problems)


def test_turns__in_a_case__are_refused_by_name_beside_other_problems() -> None:
    turns = [{"message": "a"}]
    said = "`turns` are not read: each case is a conversation of its own in Agent Evals"
    document = suite(case("a"), case("b", turns=turns), case("c", turns=turns, prompt=""))
    assert [problem.partition(": ")[2] for problem in refused(document)] == [
        f"cases[1].turns: {said}",
        "cases[2].prompt: must not be empty",
        f"cases[2].turns: {said}",
    ]
    assert refused(suite(case("a"), case("b", turns=turns)))[0].endswith(f"cases[1].turns: {said}")


def test_trials__of_a_case_and_of_defaults__go_with_the_passes_of_their_place() -> None:
    own = [case("a"), case("b", passes=10), case("c", trials=3), case("d", trials=4, passes=2)]
    loaded = load(suite(*own, defaults={"trials": 10, "passes": 8}))
    assert [(one.trials, one.passes) for one in loaded.cases] == [(10, 8), (10, 10), (3, None), (4, 2)]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (suite(case(trials=3, passes=4)), "cases[0].passes: needs `trials` of at least 4"),
        (suite(defaults={"passes": 2}), "defaults.passes: needs `trials` of at least 2"),
        (suite(case(trials=3), agent={"tools": ["writeFile"]}), "cases[0].trials: set it in `defaults`"),
    ],
)
def test_trials__impossible_or_of_one_case_among_shared_files__are_a_problem(document, problem) -> None:
    with pytest.raises(EvalFileError) as caught:
        load(document)
    assert any(f"{one.field}: {one.message}".startswith(problem) for one in caught.value.problems)
