"""Whole configurations: names, prompts, variables; and whatever YAML says ends in files that load, or in a sentence."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.formats.base import ReadOptions
from eval_gate.formats.discovery import EvalFile, load_suites
from eval_gate.importers.import_result import ImportResult
from eval_gate.importers.promptfoo.conversion import import_promptfoo
from tests.support.sizes import size

OK = [{"type": "contains", "value": "ok"}]


def brought(folder: Path, **config: object) -> ImportResult:
    (folder / "promptfooconfig.yaml").write_text(yaml.safe_dump({"prompts": ["{{q}}"], **config}, sort_keys=False))
    return import_promptfoo(folder / "promptfooconfig.yaml", "promptfooconfig.yaml", "evals")


def cases(made: ImportResult, name: str = "promptfoo") -> list[dict]:
    return json.loads(made.files[f"{name}.golden.json"])["cases"]


def ids(made: ImportResult) -> list[str]:
    return [case["id"] for case in cases(made)]


def test_names__are_given_or_described_or_variables__and_always_different(tmp_path) -> None:
    tests = [
        {"vars": {"q": "a"}, "assert": OK, "metadata": {"testCaseId": "T-1"}, "description": "first"},
        {"vars": {"q": "a"}, "assert": OK, "description": "same"},
        {"vars": {"q": "b"}, "assert": OK, "description": "same"},
        {"vars": {"q": "b"}, "assert": OK, "description": "same"},
        {"vars": {"q": "alone"}, "assert": OK},
        {"vars": {"q": "x" * 500, "more": 1}, "assert": OK},
        {"vars": {"q": "line\nbreak\x07"}, "assert": OK},
    ]
    found = ids(brought(tmp_path, tests=tests))
    assert found[:5] == ["T-1", "same a", "same b", "same b #2", "alone"]
    assert found[6] == "line break"
    assert len(set(found)) == len(tests)
    assert max(map(len, found)) <= 200


def test_names__another_test_is_added__stay(tmp_path) -> None:
    own = [{"vars": {"q": name}, "assert": OK} for name in "abc"]
    before = ids(brought(tmp_path, tests=own, defaultTest={"vars": {"lang": "en"}}))
    after = ids(
        brought(tmp_path, tests=[{"vars": {"q": "new"}, "assert": OK}, *own], defaultTest={"vars": {"lang": "de"}})
    )
    assert before == ["a", "b", "c"]
    assert after == ["new", *before]


def test_variables__lists_of_texts__make_a_case_for_each_combination(tmp_path) -> None:
    test = {"description": "d", "vars": {"q": ["a", "b"], "n": ["1", "2"], "list": [1, 2]}, "assert": OK}
    made = brought(tmp_path, prompts=["{{q}}{{n}}"], tests=[test])
    assert [case["input"]["message"] for case in cases(made)] == ["a1", "a2", "b1", "b2"]


def test_default_test__holds_for_every_test_unless_it_says_otherwise(tmp_path) -> None:
    default = {"vars": {"q": "default"}, "assert": [{"type": "regex", "value": "d"}], "options": {"prefix": "> "}}
    tests = [
        {"assert": OK},
        {"vars": {"q": "own"}, "assert": OK, "options": {"prefix": "< "}},
        {"assert": OK, "options": {"disableDefaultAsserts": True}},
    ]
    one, two, three = cases(brought(tmp_path, tests=tests, defaultTest=default))
    assert (one["input"]["message"], two["input"]["message"]) == ("> default", "< own")
    assert one["expect"] == {"responseContains": ["ok"], "responseMatches": ["d"]}
    assert three["expect"] == {"responseContains": ["ok"]}


def test_default_test__cannot_be_carried_over__neither_can_any_test(tmp_path) -> None:
    made = brought(tmp_path, tests=[{"vars": {"q": "a"}, "assert": OK}], defaultTest={"provider": "openai:x"})
    assert (made.case_count, [one.reason for one in made.skipped_cases]) == (
        0,
        ["`defaultTest`: it names its own provider"],
    )


@pytest.mark.parametrize(
    ("test", "why"),
    [
        ({"options": {"transform": "output.x"}}, "`options.transform`"),
        ({"options": {"transformVars": "x"}}, "`options.transformVars`"),
        ({"provider": "openai:x"}, "its own provider"),
        ({"providerOutput": "ok"}, "its response is part of the test"),
        ({"prompts": ["a"]}, "for some prompts only"),
        ({"assertScoringFunction": "file://x.js"}, "programs are not run"),
        ({"assertions": OK}, "`assertions` of a test is not read"),
        ({"vars": "vars.yaml"}, "`vars` are in a separate file"),
        ({"vars": {"q": "file://x.png"}}, "which is not text"),
        ({"vars": {"q": "{{other}}"}}, "is a template itself"),
        ({"assert": "file://x.yaml"}, "`assert` is not a list"),
        ({"threshold": 0.5, "assert": OK * 2}, "from a score of 0.5"),
    ],
)
def test_test__with_something_that_changes_its_verdict__is_left_out_as_a_whole(tmp_path, test, why) -> None:
    made = brought(tmp_path, tests=[{"description": "d", "vars": {"q": "a"}, "assert": OK, **test}])
    (left,) = made.skipped_cases
    assert (made.case_count, left.name, left.place.line) == (0, "d", 4)
    assert why in left.reason


def test_extensions__leave_every_test_out(tmp_path) -> None:
    made = brought(tmp_path, tests=[{"vars": {"q": "a"}, "assert": OK}], extensions=["file://x.js:hook"])
    assert (made.case_count, len(made.skipped_cases)) == (0, 1)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("Ask {{q}}", "Ask why"),
        ('{"text": "{{q}}", "n": 1.0}\n', '{\n  "text": "why",\n  "n": 1\n}'),
        ('[{"role": "user", "content": "{{q}}"}]\n', "why"),
        ("What is 1*2? {{q}}", "What is 1*2? why"),
    ],
)
def test_prompt__asks__what_promptfoo_asks(tmp_path, prompt, message) -> None:
    (case,) = cases(brought(tmp_path, prompts=[prompt], tests=[{"vars": {"q": "why"}, "assert": OK}]))
    assert case["input"]["message"] == message


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("file://prompt.js", "reads the prompt as a file, which is not in"),
        ("exec: ./x", "programs are not run"),
        ("langfuse://x", "stored in a service"),
        ("English/French {{q}}", "reads the prompt as a file"),
        ({"raw": "{{q}}", "config": {"a": 1}}, "`config` of the prompt"),
        ({"label": "x"}, "not text"),
        ("{% if q %}x{% endif %}", "more than name a variable"),
        ('[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]\n', "a case cannot have"),
        ('[{"role": "user", "content": [{"type": "text"}]}]\n', "not text"),
    ],
)
def test_prompt__that_is_more_than_a_text__leaves_its_cases_out(tmp_path, prompt, why) -> None:
    made = brought(tmp_path, prompts=[prompt], tests=[{"vars": {"q": "why"}, "assert": OK}])
    assert made.case_count == 0
    assert why in made.skipped_cases[0].reason


def test_system_messages__of_two_kinds_in_one_prompt__carry_the_first_over(tmp_path) -> None:
    chat = json.dumps([{"role": "system", "content": "Be {{how}}."}, {"role": "user", "content": "{{q}}"}]) + "\n"
    tests = [{"vars": {"q": "a", "how": how}, "assert": OK} for how in ("brief", "kind", "brief")]
    made = brought(tmp_path, prompts=[chat], tests=tests)
    assert made.files["promptfoo.system.md"] == "Be brief."
    assert (made.case_count, len(made.skipped_cases)) == (2, 1)
    assert "--system-prompt" in made.remarks[0]


def test_scenarios__each_data_with_each_test__are_cases(tmp_path) -> None:
    scenario = {
        "config": [{"vars": {"q": "a"}}, {"vars": {"q": ["b", "c"]}, "assert": [{"type": "regex", "value": "x"}]}],
        "tests": [{"description": "one", "assert": OK}, {"description": "two"}],
    }
    made = brought(tmp_path, scenarios=[scenario])
    assert made.case_count == 5
    assert [(one.name, one.reason) for one in made.skipped_cases] == [("two a", "its assertions have no effect")]


def test_configuration__makes_too_many_cases__is_refused(tmp_path) -> None:
    many = {"vars": {"q": [str(number) for number in range(400)], "r": [str(number) for number in range(400)]}}
    made = brought(tmp_path, tests=[{**many, "assert": OK}])
    assert made.skipped_cases[0].reason == "its variables have more than 100,000 combinations"
    with pytest.raises(GateError, match="more than 100,000 cases"):
        brought(
            tmp_path,
            prompts=["{{q}}", "x {{q}}"],
            tests=[{"vars": {"q": many["vars"]["q"], "r": many["vars"]["q"][:200]}, "assert": OK}],
        )


kinds = st.sampled_from(["contains", "not-icontains", "icontains-all", "regex", "equals", "is-json", "latency", "cost"])
scalars = st.none() | st.booleans() | st.integers(-9, 9_999) | st.floats() | st.text(max_size=6)
values = st.recursive(
    scalars | st.sampled_from(["{{q}}", "{{seed:a}}", "{{q | x}}", "file://../x", "(", "a|b", "yes", "12:30", "İ"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("$ref"), inner, max_size=3)
    ),
    max_leaves=5,
)
asserts = st.fixed_dictionaries(
    {}, optional={"type": kinds | values, "value": values, "threshold": values, "weight": values, "metric": values}
)
tests = st.fixed_dictionaries(
    {},
    optional={
        "description": values,
        "vars": st.dictionaries(st.sampled_from(["q", "r", "env"]), values, max_size=2) | values,
        "assert": st.lists(asserts, max_size=2) | values,
        "threshold": values,
        "options": values,
        "metadata": st.fixed_dictionaries({"testCaseId": values}) | values,
    },
)
usual = st.fixed_dictionaries(
    {
        "vars": st.fixed_dictionaries({"q": st.text(min_size=1, max_size=6), "r": st.just("r")}),
        "assert": st.lists(
            st.fixed_dictionaries({"type": kinds, "value": st.text(min_size=1, max_size=6) | values})
            | st.just({"type": "latency", "threshold": 9}),
            min_size=1,
            max_size=2,
        ),
    },
    optional={"description": st.text(max_size=4), "threshold": values, "options": values},
)
configs = st.fixed_dictionaries(
    {
        "prompts": st.lists(st.sampled_from(["{{q}}", "x {{r}}", "plain"]), min_size=1, max_size=2),
        "tests": st.lists(usual | tests | values, min_size=1, max_size=4),
    },
    optional={
        "providers": st.lists(values | st.sampled_from(["openai:x", "echo"]), max_size=2) | values,
        "defaultTest": st.sampled_from([None, {}, {"assert": OK}, {"vars": {"r": "x"}}]) | tests,
        "scenarios": st.lists(
            st.fixed_dictionaries({}, optional={"config": st.lists(tests) | values, "tests": values})
        ),
        "extensions": st.sampled_from([None, [], [], ["file://x.js:hook"]]),
    },
)


def test_name__of_which_no_sign_can_be_in_an_id__is_made_of_the_variables(tmp_path) -> None:
    check = [{"type": "contains", "value": "o.k"}]
    said = {"a": "\x1b", "b": " ", "c": "said"}
    tests = [{"vars": {"q": value}, "description": name, "assert": check} for value, name in said.items()]
    assert ids(brought(tmp_path, tests=tests)) == ["a", "b", "said"]


@settings(max_examples=size(150))
@given(configs)
def test_any_configuration__ends_in_a_sentence_or_in_files_that_load_without_a_warning(config) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "promptfooconfig.yaml").write_text(yaml.safe_dump(config, allow_unicode=True), errors="replace")
        try:
            made = import_promptfoo(folder / "promptfooconfig.yaml", "promptfooconfig.yaml", "evals")
        except GateError:
            return
        for file, text in made.files.items():
            (folder / file).write_text(text)
        files = [EvalFile(folder / file, explicit=True) for file in made.cases]
        suites = load_suites(files, folder, ReadOptions(strict=True)) if files else ()
        assert [len(suite.cases) for suite in suites] == list(made.cases.values())
        assert [warning for suite in suites for warning in suite.warnings] == []
        assert all(case.evaluators for suite in suites for case in suite.cases)
        assert all(one.reason and one.place.line >= 1 for one in (*made.skipped_cases, *made.skipped_settings))


def test_pattern__that_is_none__leaves_its_case_out_and_no_other(tmp_path) -> None:
    tests = [{"vars": {"q": value}, "assert": [{"type": "regex", "value": value}]} for value in ("(", "a)|(?:b", "o.k")]
    made = brought(tmp_path, tests=tests)
    assert ids(made) == ["o.k"]
    assert {one.reason for one in made.skipped_cases} == {"its regex is not a JavaScript pattern"}
