"""The values of literals are what JavaScript would say, or unknown; never a guess."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.staleness.typescript.literals import UnknownValue, parse_literal, parse_object
from eval_gate.staleness.typescript.source_files import ExportedValue, parse_module


def read(expression: str):
    """The value of the expression, read as the default export of a module."""
    export = parse_module(f"export default {{ value: {expression} }};".encode(), ".ts").exports["default"]
    assert isinstance(export, ExportedValue)
    members = parse_object(export.node)
    return parse_literal(members.members["value"])


@pytest.mark.contract("staleness.hash.real-string")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("'plain'", "plain", id="single quotes"),
        pytest.param('"Gets the user\'s balance"', "Gets the user's balance", id="apostrophe in double quotes"),
        pytest.param(r"'Gets the user\'s balance'", "Gets the user's balance", id="escaped apostrophe"),
        pytest.param("`a 'b' \"c\"`", "a 'b' \"c\"", id="template"),
        pytest.param("`two\nlines`", "two\nlines", id="template with a line end"),
        pytest.param("`two\r\nlines\r`", "two\nlines\n", id="template normalises line ends"),
        pytest.param("'A. ' + 'B.'", "A. B.", id="sum"),
        pytest.param("'a' +\n  \"b\" + // why\n `c`", "abc", id="sum over lines with a comment"),
        pytest.param("(('a') + ('b' + 'c'))", "abc", id="parentheses"),
        pytest.param("'a' as const", "a", id="as const"),
        pytest.param("'a' satisfies string", "a", id="satisfies"),
        pytest.param("'a'!", "a", id="non-null"),
        pytest.param("<string>'a'", "a", id="type assertion"),
        pytest.param(r"'\n\t\r\b\f\v\0\\\/\q'", "\n\t\r\b\f\v\0\\/q", id="escapes"),
        pytest.param(r"'\x41\u0042\u{43}'", "ABC", id="code points"),
        pytest.param(r"'\ud83d\ude00 \u{1F600}'", "😀 😀", id="a pair of surrogates"),
        pytest.param(r"'\ud83d'", "\ufffd", id="half a pair"),
        pytest.param("'one \\\nline'", "one line", id="continued line"),
        pytest.param("'one \\\r\nline'", "one line", id="continued line of Windows"),
        pytest.param("'// no comment /* either */'", "// no comment /* either */", id="comment signs in a string"),
        pytest.param(r"`\${x} \``", "${x} `", id="escaped interpolation"),
        pytest.param("'é ☂ 😀'", "é ☂ 😀", id="beyond ASCII"),
        pytest.param("''", "", id="empty"),
        pytest.param(" + ".join(["'a'"] * 5000), "a" * 5000, id="a very long sum"),
    ],
)
def test_literal__text__is_the_value_javascript_gives(expression, expected) -> None:
    assert read(expression) == expected


@pytest.mark.contract("registry.never-executed")
@pytest.mark.parametrize(
    "expression",
    [
        "`a ${b}`",
        "NAME",
        "texts.name",
        "name()",
        "'a' + NAME",
        "'a' + 1",
        "'a' - 'b'",
        "tag`a`",
        "['a', 'b'].join(' ')",
        "x ? 'a' : 'b'",
        "x || 'a'",
        "new String('a')",
        r"'\1'",
        r"'\u{110000}'",
        "0x10",
        "1n",
        "!0",
        "1e3",
        "() => 'a'",
        "undefined",
        "[a]",
        "[...a]",
        "{ a: b }",
        "{ ...a }",
        "{ [a]: 1 }",
        "{ a }",
        "{ a() {} }",
        "[" * 200 + "]" * 200,
    ],
)
def test_literal__what_only_running_would_tell__is_unknown(expression) -> None:
    assert read(expression) is UnknownValue.VALUE


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("12", 12),
        ("-1.5", -1.5),
        ("true", True),
        ("null", None),
        ("['a', 1, /* x */ false]", ["a", 1, False]),
        ("{ a: { 'b-c': [1] }, 2: 'x', }", {"a": {"b-c": [1]}, "2": "x"}),
        ("{ a: 1, a: 2 }", {"a": 2}),
    ],
)
def test_literal__data__is_itself(expression, expected) -> None:
    assert read(expression) == expected


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_literal__any_text_as_json__comes_back(text) -> None:
    assert read(json.dumps(text)) == text


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.integers(-99, 99) | st.text(), st.lists))
def test_literal__any_json__comes_back(value) -> None:
    assert read(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("source", "key", "expected"),
    [
        ("{ ...base, a: 1 }", "a", 1),
        ("{ a: 1, ...base }", "a", UnknownValue.VALUE),
        ("{ a: 1, [key]: 2 }", "a", UnknownValue.VALUE),
        ("{ ...base }", "b", UnknownValue.VALUE),
        ("{ a: 1 }", "b", None),
        ("{ get a() { return 1 } }", "a", UnknownValue.VALUE),
        ("{ a }", "a", UnknownValue.VALUE),
    ],
)
def test_object_literal__spread_and_computed_keys__may_override_what_stands_before(source, key, expected) -> None:
    export = parse_module(f"export default {source};".encode(), ".js").exports["default"]
    assert parse_object(export.node).get_value(key) == expected
