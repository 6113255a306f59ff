"""Strict JSON with the line of everything."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.text.sources.json import MAX_BYTES, parse_json

DOCUMENT = b"""{
  "cases": [
    {"id": "a"},
    {
      "id": "b",
      "expect": {"toolsCalled": [
        "x",
        "y"]}
    }
  ]
}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ([], 1),
        (["cases"], 2),
        (["cases", 0], 3),
        (["cases", 1], 4),
        (["cases", 1, "expect", "toolsCalled", 1], 8),
        (["cases", 1, "nothing", "below"], 4),
        (["cases", 9], 2),
        (["cases", 1, "id", "deeper"], 5),
    ],
)
def test_positions__path__is_the_line_of_it_or_its_nearest_ancestor(path, line) -> None:
    assert parse_json(DOCUMENT, "f.json")[1].find_line(path) == line


def test_positions__value_below_its_key__counts_from_the_value() -> None:
    positions = parse_json(b'{"a":\n\n{"b": 1,\n"c": 2}}', "f.json")[1]
    assert [positions.find_line(path) for path in (("a",), ("a", "b"), ("a", "c"))] == [1, 3, 4]


def refused(data: bytes) -> str:
    with pytest.raises(GateError) as caught:
        parse_json(data, "f.json")
    return str(caught.value.problems[0])


@pytest.mark.contract("file.encoding", "file.strict-json")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "f.json:1: the file is empty"),
        (b'{\n "a": 1\n "b": 2}', "f.json:3: "),
        (b"[1]\n// the end", "f.json:2: JSON has no comments: remove the comment in line 2 (column 1)"),
        (b"// begin\n[1]", "f.json:1: JSON has no comments: remove the comment in line 1 (column 1)"),
        (b"[1]\n[2]", "f.json:2: unexpected text after the end"),
        (b'{\n"a": 1,\n"a": 2}', 'f.json:3: the key "a" occurs twice'),
        (b"[NaN]", "f.json: NaN is not a JSON value"),
        (b"[-Infinity]", "f.json: -Infinity is not a JSON value"),
        (b'["a\n\xff"]', "f.json:2: not UTF-8 (byte 4 is 0xff): save the file as UTF-8"),
        (b"[" * 100_000, "f.json: nested deeper than"),
        (b"[" * 300 + b"]" * 300, "f.json: nested deeper than"),
        (b"[" + b"9" * 5_000 + b"]", "f.json: a number of 5,000 digits"),
        (b'{"a": 1e400}', "f.json: contains the number 1e400, which is out of range"),
        (b"[-1.5E+999]", "f.json: contains the number -1.5E+999, which is out of range"),
        (b"[" + b"9" * 400 + b".0]", "f.json: contains the number 99999999999999999999, which is out of range"),
    ],
    ids=range(15),
)
def test_parse_json__not_strict__names_file_and_line(data, said) -> None:
    assert refused(data).startswith(said)


def test_parse_json__number_at_the_end_of_the_range__is_read() -> None:
    assert parse_json(b'[1e308, 1e-400, "1e400"]', "f.json")[0] == [1e308, 0.0, "1e400"]


def test_parse_json__byte_order_mark__is_accepted() -> None:
    assert parse_json(b"\xef\xbb\xbf[1]", "f.json")[0] == [1]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_parse_json__what_was_written__is_read(value) -> None:
    assert parse_json(json.dumps(value, indent=1).encode(), "f.json")[0] == value


@given(st.binary(max_size=200))
def test_parse_json__any_bytes__are_a_value_or_a_clear_error(data) -> None:
    try:
        parse_json(data, "f.json")
    except GateError as error:
        assert error.problems


def test_parse__key_twice_that_is_not_ascii__is_named_with_its_second_line() -> None:
    with pytest.raises(GateError) as caught:
        parse_json('{"é": 1,\n "é": 2}'.encode(), "f.json")
    assert [problem.line for problem in caught.value.problems] == [2]


@pytest.mark.slow
@pytest.mark.parametrize(("more", "refused"), [(0, False), (1, True)])
def test_parse_json__file_of_exactly_the_most_bytes__is_read(more, refused) -> None:
    data = b'"' + b"a" * (MAX_BYTES - 2 + more) + b'"'
    if refused:
        with pytest.raises(GateError, match="not valid JSON") as caught:
            parse_json(data, "a.json")
        assert "larger than" in caught.value.problems[0].message
    else:
        assert len(parse_json(data, "a.json")[0]) == MAX_BYTES - 2
