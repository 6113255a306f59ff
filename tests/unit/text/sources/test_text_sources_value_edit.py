"""Values that are written into a text of JSON or YAML: the new value is there, and the rest is as it was."""

from __future__ import annotations

import copy
import difflib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.base import JsonValue
from eval_gate.text.safe_output import is_invisible
from eval_gate.text.sources.json import parse_json
from eval_gate.text.sources.json_edit import format_json, rewrite_json
from eval_gate.text.sources.value_edit import is_same_value
from eval_gate.text.sources.yaml import parse_yaml
from eval_gate.text.sources.yaml_edit import format_flow, rewrite_yaml
from tests.support.bounds import within_cpu

JSON = """\ufeff{
  "metadata": null,
  "cases": [
    {
      "id": "a", "draft": true,
      "expect": {
        "responseContains": ["Berlin", "21"],
        "toolsCalled": [],
        "toolParams": [
          {"tool": "t", "value": 1.0}
        ]
      }
    },
    { "draft": true, "id": "b" },
    {"id":"c","draft":true}
  ]
}
"""
YAML = """\ufeff# head
cases:
  # one
  - id: a   # the id
    draft: true  # mark
    description: "Draft. x"
    expect:
      responseContains:
        - Berlin   # city
        - 21 degrees

      toolsCalled: [a, b]  # tools

  # two
  - draft: true
    # below
    id: b
    text: |
      hello
      # no remark

    none:
    more: 1
  -
    id: c
# end
"""


def read_json(text: str) -> Any:
    return parse_json(text.encode(), "x.json")[0]


def read_yaml(text: str) -> Any:
    return parse_yaml(text.encode(), "x.yaml")[0]


def changed(old: str, new: str) -> list[str]:
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), n=0)
    return [line.rstrip("\r\n") for line in lines if not line.startswith(("---", "+++", "@@"))]


def unmark(case: int):
    return lambda value: value["cases"][case].pop("draft")


def drop(*cases: int):
    def change(value) -> None:
        value["cases"] = [one for number, one in enumerate(value["cases"]) if number not in cases]

    return change


def expect(**expected):
    return lambda value: value["cases"][0]["expect"].update(expected)


def put(key: str, value: JsonValue, case: int = 1):
    return lambda document: document["cases"][case].update({key: value})


def first(key: str, value: JsonValue, case: int):
    def change(document) -> None:
        document["cases"][case] = {key: value, **document["cases"][case]}

    return change


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (unmark(0), ['-      "id": "a", "draft": true,', '+      "id": "a",']),
        (unmark(1), ['-    { "draft": true, "id": "b" },', '+    { "id": "b" },']),
        (unmark(2), ['-    {"id":"c","draft":true}', '+    {"id":"c"}']),
        (drop(1), ['-    { "draft": true, "id": "b" },']),
        (drop(1, 2), ["-    },", '-    { "draft": true, "id": "b" },', '-    {"id":"c","draft":true}', "+    }"]),
        (
            expect(responseContains=["Berlin", 'a "b"\u202e\x07', "\U000e0001"]),
            [
                '-        "responseContains": ["Berlin", "21"],',
                '+        "responseContains": ["Berlin", "a \\"b\\"\\u202e\\u0007", "\\udb40\\udc01"],',
            ],
        ),
        (expect(toolsCalled=["t"]), ['-        "toolsCalled": [],', '+        "toolsCalled": ["t"],']),
        (
            expect(toolParams=[{"tool": "t", "value": 1.0}, {"tool": "u"}]),
            [
                '-          {"tool": "t", "value": 1.0}',
                '+          {"tool": "t", "value": 1.0},',
                '+          {"tool": "u"}',
            ],
        ),
        (expect(more=1), ["-        ]", "+        ],", '+        "more": 1']),
        (first("x", 1, 0), ['+      "x": 1,']),
        (put("id", {"x": []}), ['-    { "draft": true, "id": "b" },', '+    { "draft": true, "id": {"x": []} },']),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_rewrite_json__one_thing_changes__the_rest_stays_to_the_byte(change, lines, ends) -> None:
    text = JSON.replace("\n", ends)
    old = read_json(text)
    new = copy.deepcopy(old)
    change(new)
    written = rewrite_json(text, old, new)
    assert read_json(written) == new
    assert changed(text, written) == lines
    assert written.count("\n") * (len(ends) - 1) == written.count("\r")


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (unmark(0), ["-    draft: true  # mark"]),
        (unmark(1), ["-  - draft: true", "-    # below", "+  - # below"]),
        (put("description", "x", 0), ['-    description: "Draft. x"', '+    description: "x"']),
        (drop(2), ["-  -", "-    id: c"]),
        (
            expect(responseContains=["Berlin", "{{seed:x}}\x1b", "z"]),
            ["-        - 21 degrees", '+        - "{{seed:x}}\\u001b"', "+        - z"],
        ),
        (expect(responseContains=["Berlin"]), ["-        - 21 degrees"]),
        (expect(responseContains=["new", "Berlin", "21 degrees"]), ["+        - new"]),
        (
            expect(responseContains=[]),
            [
                "-      responseContains:",
                "-        - Berlin   # city",
                "-        - 21 degrees",
                "+      responseContains: []",
            ],
        ),
        (expect(toolsCalled=["b"]), ["-      toolsCalled: [a, b]  # tools", "+      toolsCalled: [b]  # tools"]),
        (
            expect(toolsCalled=["c", "a", "b"]),
            ["-      toolsCalled: [a, b]  # tools", "+      toolsCalled: [c, a, b]  # tools"],
        ),
        (expect(maxTokens=1e16), ["+      maxTokens: 1.0e+16"]),
        (put("text", "q"), ["-    text: |", "-      hello", "-      # no remark", "+    text: q"]),
        (put("none", "no"), ["-    none:", '+    none: "no"']),
        (put("last", [{"a": "b c"}, None, True]), ['+    last: [{a: "b c"}, null, true]']),
        (first("x", 1, 0), ["-  - id: a   # the id", "+  - x: 1", "+    id: a   # the id"]),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_rewrite_yaml__one_thing_changes__the_rest_stays_to_the_byte(change, lines, ends) -> None:
    text = YAML.replace("\n", ends)
    old = read_yaml(text)
    new = copy.deepcopy(old)
    change(new)
    written = rewrite_yaml(text, old, new)
    assert read_yaml(written) == new
    assert changed(text, written) == lines
    assert written.count("\n") * (len(ends) - 1) == written.count("\r")


def test_rewrite_yaml__no_last_line_break__is_added() -> None:
    assert rewrite_yaml("a:\n  - b", {"a": ["b"]}, {"a": ["b", "c"]}) == "a:\n  - b\n  - c\n"


def test_rewrite_yaml__lists_in_lists_and_lists_to_the_left__are_edited() -> None:
    text = "a:\n- - b\n  - c\n- - d\n"
    assert rewrite_yaml(text, {"a": [["b", "c"], ["d"]]}, {"a": [["c"], ["d"], ["e"]]}) == "a:\n- - c\n- - d\n- [e]\n"
    assert rewrite_yaml(text, {"a": [["b", "c"], ["d"]]}, {"a": [["b", "c"]]}) == "a:\n- - b\n  - c\n"


@pytest.mark.parametrize("text", ["a: {<<: &x {b: 1}}\nc: *x\n", "a:\n  <<: {b: 1}\n  d: 2\n"])
def test_rewrite_yaml__keys_from_another_place__are_refused(text) -> None:
    old = read_yaml(text)
    new = copy.deepcopy(old)
    new["a"]["b"], new["a"]["z"] = 2, 3
    with pytest.raises(ValueError, match="it takes keys from another place"):
        rewrite_yaml(text, old, new)


def test_is_same_value__numbers_and_words__are_told_apart() -> None:
    assert is_same_value({"a": 1, "b": [2]}, {"b": [2], "a": 1})
    assert not any(is_same_value(1, other) for other in (True, 1.0, "1", [1]))


TEXTS = st.one_of(
    st.sampled_from(
        [
            "\ufffe",
            "\ufeff",
            "{{seed:x}}",
            "a: b",
            "- x",
            "# no",
            "'",
            '"',
            "\x1b[31m",
            "\u2028",
            "yes",
            "1",
            "1e3",
            "~",
            "",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)
KEYS = st.sampled_from(["a", "b", "c", "d e", "yes"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


@given(DOCUMENTS, DOCUMENTS, st.sampled_from([None, 0, 2, "\t"]))
def test_rewrite_json__any_value_for_any_other__is_read_again(old, new, indent) -> None:
    text = json.dumps(old, indent=indent, ensure_ascii=False)
    assert is_same_value(read_json(rewrite_json(text, old, new)), new)


@given(DOCUMENTS, DOCUMENTS, st.sampled_from([None, True, False]), st.sampled_from([2, 4]))
def test_rewrite_yaml__any_value_for_any_other__is_read_again_or_refused(old, new, flow, indent) -> None:
    text = yaml.safe_dump(old, default_flow_style=flow, indent=indent, allow_unicode=True, sort_keys=False)
    old = read_yaml(text)
    try:
        written = rewrite_yaml(text, old, new)
    except ValueError:
        assert old.keys().isdisjoint(new) or "- ? " in text or "\n? " in text or flow is not True
        return
    assert is_same_value(read_yaml(written), new)


@given(VALUES)
def test_format__any_value__is_read_again_and_shows_nothing_invisible(value) -> None:
    assert is_same_value(json.loads(format_json(value)), value)
    assert is_same_value(read_yaml(f"a: {format_flow(value)}\n")["a"], value)
    assert not any(map(is_invisible, format_json(value) + format_flow(value)))


@pytest.mark.parametrize("size", [("json", 4_000), ("yaml", 400)], ids=str)
def test_rewrite__thousands_of_changes__take_linear_time(size) -> None:
    """Half of the cases lose their mark, or every second case goes."""
    form, count = size
    old = [{"id": f"c{number}", "draft": True, "text": "x"} for number in range(count)]
    unmarked = [one if number % 2 else {"id": one["id"], "text": "x"} for number, one in enumerate(old)]
    text = json.dumps(old, indent=1) if form == "json" else yaml.safe_dump(old, sort_keys=False)
    rewrite, read = (rewrite_json, json.loads) if form == "json" else (rewrite_yaml, read_yaml)
    for new in (unmarked, old[::2]):
        with within_cpu(2):
            written = rewrite(text, old, new)
        assert read(written) == new
