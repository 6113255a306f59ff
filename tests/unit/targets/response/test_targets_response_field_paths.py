"""Paths into answers: steps, selections, gathering, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.targets.response.field_paths import MISSING, FieldPath, PathCondition

THREAD = {
    "messages": [
        {"type": "human", "content": "weather?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "a"}, {"name": "b"}]},
        {"type": "tool", "content": "22", "ok": True, "n": 1},
        {"type": "ai", "content": "sunny", "tool_calls": []},
    ],
    "a.b": {"x y": 5},
    "none": None,
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("messages[0].content", "weather?"),
        ("$.messages[0].content", "weather?"),
        ("messages[-1].content", "sunny"),
        ("messages[-4].type", "human"),
        ("messages[-5].type", MISSING),
        ("messages[4]", MISSING),
        ("messages[999999999999]", MISSING),
        ("messages[?type=ai][-1].content", "sunny"),
        ("messages[?type=ai][0].tool_calls[1].name", "b"),
        ("messages[?type=ai][5].content", MISSING),
        ("messages[?type=tool|function][0].content", "22"),
        ("messages[?type!='ai'][-1].content", "22"),
        ("messages[?ok=true][0].content", "22"),
        ("messages[?n == 1][0].content", "22"),
        ("messages[?tool_calls][0].content", ""),
        ("messages[?missing][0].content", MISSING),
        ("messages[][-1].content", "sunny"),
        ("['a.b'].x y", 5),
        ('["a.b"]["x y"]', 5),
        ("none", None),
        ("none.more", MISSING),
        ("nowhere", MISSING),
        ("messages.content", MISSING),
        ("$", THREAD),
    ],
)
def test_path__one_value__is_what_stands_there(path, value) -> None:
    assert FieldPath(path).find_first(THREAD) == value


@pytest.mark.parametrize(
    ("path", "values", "listed", "lacking"),
    [
        ("messages[?type=ai].tool_calls[].name", ["a", "b"], True, None),
        ("messages[?type=ai].tool_calls[]", [{"name": "a"}, {"name": "b"}], True, None),
        ("messages[].tool_calls[]", [{"name": "a"}, {"name": "b"}], True, None),
        ("messages[?type=ai].content", ["", "sunny"], True, None),
        ("messages[?type=nobody].content", [], True, None),
        ("messages[?type=human].tool_calls[]", [], False, None),
        ("messages[].ok", [True], True, 0),
        ("nowhere[].name", [], False, None),
        ("none[]", [], False, None),
    ],
)
def test_path__several_values__are_gathered_in_order(path, values, listed, lacking) -> None:
    found = FieldPath(path).find_all(THREAD)
    assert FieldPath(path).is_gathering
    assert (found.values, found.has_list, found.first_missing) == (values, listed, lacking)


@pytest.mark.parametrize("path", ["a", "a.b", "a[0]", "a[?b=c][0].d", "a[][-1]"])
def test_path__that_picks_one__gathers_nothing(path) -> None:
    assert not FieldPath(path).is_gathering


@pytest.mark.parametrize(
    ("path", "rest"),
    [
        ("a..b", "..b"),
        ("a[b]", "[b]"),
        ("a[1", "[1"),
        ("a[?]", "[?]"),
        ("a.", "."),
        ("a[0]b", "b"),
        ("a[1e3]", "[1e3]"),
        ("a[1234567890123]", "[1234567890123]"),
    ],
)
def test_path__that_is_none__is_refused_at_the_step(path, rest) -> None:
    with pytest.raises(ValueError, match="is not a path from") as caught:
        FieldPath(path)
    assert f'from "{rest}" on' in str(caught.value)


@pytest.mark.parametrize("condition", ["", "=x", "!=x", " = "])
def test_condition__without_a_key__is_refused(condition) -> None:
    with pytest.raises(ValueError, match="is not a condition"):
        PathCondition(condition)


@pytest.mark.parametrize(
    ("condition", "value", "fits"),
    [
        ("type=a|b", {"type": "b"}, True),
        ("type=a|b", {"type": "c"}, False),
        ("type!=a", {"type": "c"}, True),
        ("type!=a", {}, True),
        ("type=null", {"type": None}, True),
        ("type=null", {}, False),
        ("type=['a']", {"type": ["a"]}, False),
        ("a.b=1", {"a": {"b": 1}}, True),
        ("a", {"a": None}, False),
        ("a", {"a": False}, True),
        ("a=''", {"a": ""}, True),
        ("a", [], False),
        ("a=x", "x", False),
    ],
)
def test_condition__of_a_member__looks_at_what_it_says(condition, value, fits) -> None:
    assert PathCondition(condition)(value) is fits


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
PATHS = st.lists(st.sampled_from([".a", ".b", "[0]", "[-1]", "[]", "[?a]", "[?b=a]", "['c']"]), max_size=5)


@given(document=JSON, steps=PATHS)
def test_path__any_document__gives_only_values_of_it(document, steps) -> None:
    path = FieldPath("".join(steps))
    found = path.find_all(document)

    def inside(value: object) -> list:
        below = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        return [value, *(one for member in below for one in inside(member))]

    assert all(any(value is one for one in inside(document)) for value in found.values)
    first = path.find_first(document)
    assert first is (found.values[0] if found.values else MISSING)
