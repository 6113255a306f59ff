"""Values as text, as node writes them: the expected texts were printed by node 20."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.javascript.strings import dump_compact_json, format_js_number, format_js_string

NUMBERS = {
    0.0: "0",
    1.0: "1",
    4.0: "4",
    178.50: "178.5",
    -1.5: "-1.5",
    0.1: "0.1",
    1e-6: "0.000001",
    1e-7: "1e-7",
    1.5e-7: "1.5e-7",
    0.00001234: "0.00001234",
    123456789.125: "123456789.125",
    1e16: "10000000000000000",
    1e20: "100000000000000000000",
    1e21: "1e+21",
    1.2345e25: "1.2345e+25",
    12345678901234567890: "12345678901234567000",
    2**53: "9007199254740992",
    2**53 + 1: "9007199254740992",
    5e-324: "5e-324",
    1.7976931348623157e308: "1.7976931348623157e+308",
    10**400: "Infinity",
}


@pytest.mark.contract("tokens.text.number")
@pytest.mark.parametrize(("number", "text"), NUMBERS.items(), ids=str)
def test_js_number__value__is_what_node_prints(number, text) -> None:
    assert format_js_number(number) == text


def test_js_number__negative_zero__is_zero() -> None:
    assert format_js_number(-0.0) == "0"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_js_number__any_double__gives_itself_back(number) -> None:
    assert float(format_js_number(number)) == number


@given(st.integers(-(2**53), 2**53))
def test_js_number__exact_integer__is_its_digits(number) -> None:
    assert format_js_number(number) == str(number)


@pytest.mark.contract("params.string-conversion")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (1.0, "1"),
        ([], ""),
        ([1, "a", None, [2, 3]], "1,a,,2,3"),
        ({"a": 1}, "[object Object]"),
    ],
    ids=repr,
)
def test_js_string__value__is_javascripts_string(value, text) -> None:
    assert format_js_string(value) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(JSON)
def test_compact_json__any_value__is_its_json_without_blanks(value) -> None:
    assert dump_compact_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
