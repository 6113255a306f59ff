"""The shapes of events, which say nothing of what is in them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.untrusted.excerpt import describe_event_shapes, describe_stream_shapes, replace_events

A = {"choices": [{"delta": {"content": "sk-"}}], "n": 1, "done": False, "x": None, "none": []}


@pytest.mark.parametrize(
    ("body", "shapes"),
    [
        (b'data: {"a": "b"}\n\ndata: [DONE]\n\n', "{a: string}, string"),
        (b'\xef\xbb\xbfevent: x\ndata: {"a": "b"}\n\n', "{a: string}"),
        (b": hello\n\ndata: words\n\n", "string"),
        (b'{"a": 1}\n{"a": 2}\n{"b": true}\n', "{a: number}, {b: boolean}"),
        (b"".join(json.dumps({one: 1}).encode() + b"\n" for one in "abcd"), "{a: number}, {b: number}, {c: number}, …"),
        (
            json.dumps(A).encode() + b"\n\n" + json.dumps(A).encode(),
            "{choices: [{delta: {content: string}}], n: number, ",
        ),
        (b'{"sk-QwXaBcDZkEfGhIVjJkLmN99": {"a b": 1}}\n{}', "{***: {***: number}}, {}"),
        (b'{"a": {"b": {"c": {"d": 1}}}}\n1', "{a: {b: {c: {d: number}}}}, number"),
        (b'{"a": {"b": {"c": {"d": {"e": 1}}}}}\n1', "{a: {b: {c: {d: {…}}}}}, number"),
    ],
)
def test_stream_shapes__events__are_told_by_keys_and_kinds(body, shapes) -> None:
    assert (describe_stream_shapes(body) or "").startswith(shapes)


@pytest.mark.parametrize(
    "body",
    [b"", b'{"a": 1}', b'{\n "a": 1\n}\n', b"<html>\n</html>", b"no key\nno: more", b"data here", b'{"a": 1\n{"b'],
)
def test_stream_shapes__other_body__has_none(body) -> None:
    assert describe_stream_shapes(body) is None


@given(st.recursive(st.text("xyz", min_size=1), lambda inner: st.lists(inner) | st.dictionaries(st.just("a"), inner)))
def test_shapes_of__any_value__holds_no_text_of_it(value) -> None:
    assert not set("xyz") & set(describe_event_shapes([json.dumps(value).encode()]))


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (b'{"d": "sk-"}\n{"d": "abc"}\nno key\n', b"events {d: string}\nno key"),
        (b'{"error": "no key"}\n', b'{"error": "no key"}\n'),
        (b"no\nkey {\n[oops\n", b"no\nkey {\n[oops\n"),
    ],
)
def test_without_events__output_of_a_program__has_shapes_in_place_of_events(printed, shown) -> None:
    assert replace_events(printed) == shown
