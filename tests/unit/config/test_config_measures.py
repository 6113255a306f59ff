"""Patterns of `measures`: what they name, and what is said of one that can name nothing."""

import pytest

from eval_gate.config.loader import load_config
from eval_gate.config.measures import MeasuredPattern, parse_measured_pattern, select_patterns
from eval_gate.errors import GateError


def find_problems(folder, text: str) -> list[tuple[int | None, str | None, str]]:
    """What is said of a configuration file: of each problem the line, the place and the message."""
    file = folder / "eval-gate.yaml"
    file.write_text(text)
    with pytest.raises(GateError) as caught:
        load_config({}, {}, file, shown_as=file.name)
    assert {one.file for one in caught.value.problems} == {"eval-gate.yaml"}
    return [(one.line, one.field, one.message) for one in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("agents/**", MeasuredPattern("agents/**", "agents/**")),
        ("./agents//x/", MeasuredPattern("./agents//x/", "agents/x/**")),
        ("agents/*/", MeasuredPattern("agents/*/", "agents/*/**")),
        (".", MeasuredPattern(".", ".")),
        (".github/..x", MeasuredPattern(".github/..x", ".github/..x")),
        ("!agents/**/*.md", MeasuredPattern("!agents/**/*.md", "agents/**/*.md", is_exclusion=True)),
        ("env:AGENT_IMAGE", MeasuredPattern("env:AGENT_IMAGE", variable="AGENT_IMAGE")),
        ("./env:x", MeasuredPattern("./env:x", "env:x")),
    ],
)
def test_pattern__of_files_or_a_variable__is_parsed(text, meant) -> None:
    assert parse_measured_pattern(text) == meant


NO_FILE = "{} names no file below the working directory: write one such as agents/**"
NO_VARIABLE = "{} names no variable: write one such as env:AGENT_IMAGE"
WRONG = {
    **{text: NO_FILE.format(f'"{text}"') for text in ("/etc/x", "!/etc/x", "a/../b", "..", "!", " ")},
    **{text: NO_VARIABLE.format(f'"{text}"') for text in ("env:", "env:A-B", "!env:A")},
}


@pytest.mark.parametrize("pattern", WRONG)
def test_config__pattern_that_names_nothing__is_a_problem_at_its_line(tmp_path, pattern) -> None:
    assert find_problems(tmp_path, f'measures:\n- agents/**\n- "{pattern}"\n') == [(3, "measures[1]", WRONG[pattern])]
    by_file = f'measures:\n  "evals/*.yaml":\n  - agents/**\n  - "{pattern}"\n'
    assert find_problems(tmp_path, by_file) == [(4, "measures.evals/*.yaml[1]", WRONG[pattern])]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("measures:\n- ''\n", (2, "measures[0]", "must not be empty")),
        ("measures:\n- 3\n", (2, "measures[0]", "expected text, got the number 3")),
        ("measures: agents/**\n", (1, "measures", 'expected a list or a mapping, got text "agents/**"')),
        ("measures:\n  evals: agents/**\n", (2, "measures.evals", 'expected a list, got text "agents/**"')),
        ("measures:\n  a: [b]\n  /x: [y]\n", (3, "measures./x", NO_FILE.format('"/x"'))),
        (f"measures: {['a'] * 101}\n", (1, "measures", "has more than 100")),
        (f"measures:\n  evals: {['a'] * 101}\n", (2, "measures.evals", "has more than 100")),
    ],
)
def test_config__measures_of_another_shape__are_a_problem_at_their_line(tmp_path, text, problem) -> None:
    assert find_problems(tmp_path, text) == [problem]


def test_config__variable__holds_a_list_or_lists_by_file() -> None:
    variable = "EVAL_GATE_MEASURES"
    assert load_config({}, {variable: "a/**, !b"}, None).measures == ("a/**", "!b")
    assert load_config({}, {variable: '{"evals/a*": ["a/**"]}'}, None).measures == {"evals/a*": ("a/**",)}


def test_select_patterns__mapping__joins_the_lists_of_all_globs_that_cover_the_file() -> None:
    measures = {"./evals/support*.yaml": ("b", "a"), "evals/": ("b", "!c"), "**": ("lock",), "other/**": ("x",)}
    assert select_patterns(measures, "evals/support.yaml") == ("!c", "a", "b", "lock")
    assert select_patterns(measures, "other/a.yaml") == ("lock", "x")
    assert select_patterns({"evals/*": ("a",)}, "other/a.yaml") == ()
    assert select_patterns(measures, "new/b.yaml") == (), "what all measure is not all that one does"
    assert select_patterns(measures, "new/b.yaml", ("t",)) == ("lock", "t")
    assert select_patterns({"**": ("lock",)}, "new/b.yaml") == ("lock",)
    assert select_patterns({"!evals/a.yaml": ("a",)}, "evals/a.yaml") == (), "said to be left out"
    assert select_patterns(("b", "a", "b"), "any") == ("a", "b")
