"""JSON from strangers: refused by what it would cost, before it costs it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.limits import NUMBER_DIGITS
from eval_gate.text.untrusted.bounded_json import (
    UntrustedJsonError,
    check_json_size,
    may_hold_non_json,
    parse_untrusted_json,
)
from tests.support.bounds import within_cpu

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(VALUES)
def test_read_foreign__any_value__is_what_json_reads(value) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value).encode()):
        assert parse_untrusted_json(text) == json.loads(text)
    assert parse_untrusted_json(json.dumps(value).encode("utf-16")) == value


def signs(value) -> tuple[int, int]:
    """Lists, mappings and commas in the JSON of a value, and how deep it is."""
    if not isinstance(value, list | dict):
        return 0, 0
    below = [signs(one) for one in (value.values() if isinstance(value, dict) else value)]
    count = 1 + max(len(below) - 1, 0) + sum(one for one, _ in below)
    return count, 1 + max((depth for _, depth in below), default=0)


@given(VALUES, st.booleans())
def test_refuse_too_much__any_value__counts_what_is_outside_of_texts(value, ascii_only) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    count, depth = signs(value)
    check_json_size(data, count, depth)
    if count:
        with pytest.raises(UntrustedJsonError, match="has more than"):
            check_json_size(data, count - 1, depth)
        with pytest.raises(UntrustedJsonError, match="nested deeper than"):
            check_json_size(data, count, depth - 1)


@pytest.mark.parametrize(
    ("text", "said", "too_much"),
    [
        ("[" * 201 + "]" * 201, "is nested deeper than 200 levels", True),
        ("[" + "0," * 250_000 + "0]", "has more than 250,000 values", True),
        ("[1e999]", "contains the number 1e999, which is out of range", True),
        ("-1e400", "contains the number -1e400, which is out of range", True),
        ("1" + "0" * 400 + ".5", "which is out of range", True),
        ("1" + "0" * 400, "contains a number of 401 digits", True),
        ("NaN", "is not JSON", False),
        ("[Infinity]", "is not JSON", False),
        ('{"a": }', "is not JSON", False),
        ("", "is not JSON", False),
    ],
    ids=range(10),
)
def test_read_foreign__too_much_or_not_json__is_refused_in_half_a_sentence(text, said, too_much) -> None:
    with pytest.raises(UntrustedJsonError, match=said) as caught:
        parse_untrusted_json(text)
    assert caught.value.too_much is too_much


def test_read_foreign__brackets_within_texts__do_not_count() -> None:
    value = {"a": '[{,\\"' * 100_000, "b": ['"', "\\", '\\"[[[']}
    assert parse_untrusted_json(json.dumps(value), values=10, depth=3) == value


def test_read_foreign__constants_where_somebody_stands_for_them__are_taken() -> None:
    assert parse_untrusted_json("[NaN, -Infinity]", constant=lambda _: None) == [None, None]


@pytest.mark.parametrize("half", ["\\ud800", "\\udbff", "\\udc00", "\\ude00", "\\udfff", "\\uD83D", "\\uDE00"])
def test_read_foreign__either_half_of_a_surrogate_pair__is_replaced(half) -> None:
    """Found by fuzzing: the second half alone was let through."""
    assert parse_untrusted_json('{"aH": ["bH", {"c": "H"}]}'.replace("H", half)) == {
        "a\ufffd": ["b\ufffd", {"c": "\ufffd"}]
    }
    assert parse_untrusted_json('["\\ud83d\\ude00"]') == ["😀"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_read_foreign__bytes_in_any_encoding_of_json__are_read(encoding) -> None:
    assert parse_untrusted_json('{"a": ["\u00e9\U0001f642", 1]}'.encode(encoding)) == {"a": ["\u00e9\U0001f642", 1]}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_read_foreign__quotes_that_hide_brackets_in_another_encoding__hide_nothing(encoding) -> None:
    """Zeros stand between the bytes of signs there: an escaped quote would look like the end of a text."""
    with pytest.raises(UntrustedJsonError, match="is nested deeper than 200 levels"):
        parse_untrusted_json(('["\\"", ' + "[" * 201 + "]" * 202).encode(encoding))


@given(st.lists(st.text("[]{},", max_size=40), max_size=4), st.integers(0, 6))
def test_refuse_too_much__any_brackets__is_as_deep_as_counted_one_by_one(pieces, depth) -> None:
    level, deepest = 0, 0
    for sign in "".join(pieces):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(sign, 0)
        deepest = max(deepest, level)
    try:
        check_json_size([piece.encode() for piece in pieces], values=1_000, depth=depth)
    except UntrustedJsonError as error:
        assert "deeper" in str(error)
        assert deepest > depth
    else:
        assert deepest <= depth


def test_refuse_too_much__deep_only_where_it_is_closed_again__is_refused() -> None:
    check_json_size([b"[" * 60 + b"]" * 60] * 2, depth=60)
    with pytest.raises(UntrustedJsonError, match="deeper than 59 levels"):
        check_json_size([b"[" * 60 + b"]" * 60] * 2, depth=59)


@pytest.mark.parametrize(
    "number",
    ["1e400", "-1E+400", "1.5e999", "0.1e00400", "9" * NUMBER_DIGITS, "-" + "9" * NUMBER_DIGITS],
    ids=lambda number: number[:9],
)
@pytest.mark.parametrize(
    "document", ["{}", "[{}]", '{{"a":{}}}', '{{"a": [1,{}, 2]}}', "[\n\t{}\r\n]", '["1e2 3f4e55a", {}]']
)
def test_may_be_no_json__number_beyond_all_range__is_seen_wherever_one_may_stand(number, document) -> None:
    assert may_hold_non_json(document.format(number).encode())


@pytest.mark.parametrize("text", ["3f4e55a0", "sha256-9e1234", "v1e10", "a1.5E+300"])
def test_may_be_no_json__digest_that_looks_like_one__is_none(text) -> None:
    assert not may_hold_non_json(json.dumps({"digest": text, "number": 1.5e-300}).encode())


def test_may_be_no_json__very_many_that_look_like_one__takes_no_longer_than_others() -> None:
    digests, long = b'"' + b"a1e10" * 4_000_000 + b'"', b"[%b]" % b",".join([b"9" * (NUMBER_DIGITS - 1)] * 50_000)
    with within_cpu(2):
        assert not may_hold_non_json(digests)
        assert not may_hold_non_json(long)
