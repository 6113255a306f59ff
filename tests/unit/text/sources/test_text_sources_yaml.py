"""YAML: values and their lines, and everything a hostile document may try."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.errors import GateError
from eval_gate.text.sources.yaml import MAX_DEPTH, MAX_VALUES, parse_yaml

DOCUMENT = b"""\
a:
  - one
  - b: 2026-01-02
    c: 'on'
    d: on
e: |
  text
f:
"""


def refused(data: bytes | str) -> tuple[type, list[str]]:
    with pytest.raises(GateError) as caught:
        parse_yaml(data.encode() if isinstance(data, str) else data, "f.yaml")
    assert caught.value.code == "invalid-yaml"
    return type(caught.value), [str(problem) for problem in caught.value.problems]


def test_parse__document__has_values_lines_and_how_they_are_written() -> None:
    value, positions = parse_yaml(DOCUMENT, "f.yaml")
    assert value == {"a": ["one", {"b": "2026-01-02", "c": "on", "d": True}], "e": "text\n", "f": None}
    paths = [("a",), ("a", 0), ("a", 1, "c"), ("a", 1, "missing", 5), ("a", 7), ("e",), ("nowhere",), ()]
    assert [positions.find_line(path) for path in paths] == [1, 2, 4, 3, 1, 6, 1, 1]
    assert [positions.find_unquoted(("a", 1, key)) for key in "bcdx"] == ["2026-01-02", None, "on", None]
    assert [positions.find_unquoted(path) for path in [("a",), ("a", 0), ("e",), ("f",)]] == [None, "one", None, ""]


def test_parse__text_that_looks_like_no_number__is_read() -> None:
    value, _ = parse_yaml(b"a: ['.inf', \".nan\", 1e400, 1.0e+300]", "f.yaml")
    assert value == {"a": [".inf", ".nan", "1e400", 1e300]}


def test_parse__empty__is_null() -> None:
    value, positions = parse_yaml(b"# nothing\n", "f.yaml")
    assert (value, positions.find_line(("a",)), positions.find_unquoted(())) == (None, 1, None)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("a: [", "f.yaml:2: did not find expected node content"),
        ("a: *x", "f.yaml:1: found undefined alias"),
        ("a:\n\t- b", "f.yaml:2: found character that cannot start any token"),
        (b"a: \x00", "f.yaml: not YAML text: "),
        (b"\xff\xfe\x00", "f.yaml: not YAML text: "),
    ],
    ids=str,
)
def test_parse__broken__is_named_with_its_line(data, said) -> None:
    kind, problems = refused(data)
    assert kind is GateError
    assert problems[0].startswith(said)


NEST = 150
CHAIN = f"x0: &a0 {'[' * NEST}{']' * NEST}\n" + "".join(
    f"x{n}: &a{n} {'[' * NEST}*a{n - 1}{']' * NEST}\n" for n in range(1, 20)
)
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("a: 1\n---\nb: 2", "f.yaml:2: more than one document"),
        ("a: 1\na: 2", 'f.yaml:2: the key "a" is already in line 1'),
        ("on: 1", "f.yaml:1: a key that is not text: put it in quotes"),
        ("? [a]\n: b", "f.yaml:1: a key that is not text: put it in quotes"),
        ("a: {<<: 1}", "f.yaml:1: `<<` expects a mapping or a list of mappings"),
        ("a: {<<: [{b: 1}, 1]}", "f.yaml:1: `<<` expects a mapping or a list of mappings"),
        ("a:\n- b: .inf", "f.yaml:2: a[0].b: a number that JSON does not have, such as .inf, .nan or 1.0e+400"),
        ("a: -.INF", "f.yaml:1: a: a number that JSON does not have"),
        ("a: .NaN", "f.yaml:1: a: a number that JSON does not have"),
        ("a: 1.0e+400", "f.yaml:1: a: a number that JSON does not have"),
        (f"a: {'9' * 400}.0", "f.yaml:1: a: a number that JSON does not have"),
        ("a: &x [*x]", "f.yaml:1: an alias that contains itself"),
        ("a: !Ref x", 'f.yaml:1: a value of type "!Ref", which JSON does not have'),
        ("a: !!python/object/apply:os.system [x]", 'f.yaml:1: a value of type "python/object/apply:os.system"'),
        ("a: !!binary aGk=", 'f.yaml:1: a value of type "binary", which JSON does not have'),
        ("a: !!set {x}", 'f.yaml:1: a value of type "set", which JSON does not have'),
        ("a: !!timestamp 2026-99-99", 'f.yaml:1: a value of type "timestamp", which JSON does not have'),
        ("a: =", 'f.yaml:1: a value of type "value", which JSON does not have'),
        ("a: !!int x", "f.yaml: invalid tag: "),
        ("a: !!bool x", "f.yaml: invalid tag: "),
        ("a: !!float ''", "f.yaml: invalid tag: "),
        ("a: " + "1" * 5_000, "f.yaml:1: a number of 5,000 digits"),
        ("a: " + "1:" * 5_000 + "1", "f.yaml:1: a number of 10,001 digits"),
        ("[" * 100_000, "f.yaml:1: nested deeper than 200 levels"),
        ("- " * 100_000, "f.yaml:1: nested deeper than 200 levels"),
        ("{a: " * 100_000, "f.yaml:1: nested deeper than 200 levels"),
        (CHAIN, "f.yaml:1: nested deeper than 200 levels with aliases expanded"),
        (BOMB, "f.yaml:1: more than 50,000 values with aliases expanded"),
        ("- x\n" * (2 * MAX_VALUES + 1), "f.yaml:100000: more than 50,000 values"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_parse__yaml_that_is_not_taken__is_refused_quickly(data, said) -> None:
    begun = time.monotonic()
    kind, problems = refused(data)
    assert kind is GateError
    assert problems[0].startswith(said)
    assert time.monotonic() - begun < 10


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_parse__anything__is_a_value_or_refused(data) -> None:
    try:
        parse_yaml(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data, "f.yaml")
    except GateError as error:
        assert error.problems


def nested(levels: int, *, inner: str = "") -> str:
    return "[" * levels + inner + "]" * levels


def test_parse__as_deep_as_may_be__is_read_and_a_level_more_is_refused() -> None:
    assert parse_yaml(nested(MAX_DEPTH).encode(), "f.yaml")[0]
    assert refused(nested(MAX_DEPTH + 1)) == (
        GateError,
        [f"f.yaml:1: nested deeper than {MAX_DEPTH} levels"],
    )


def test_parse__as_deep_as_may_be_by_an_alias__is_read_and_a_level_more_is_refused() -> None:
    half = MAX_DEPTH // 2

    def through_an_alias(levels: int) -> str:
        return f"- &a {nested(half)}\n- {nested(levels - half - 1, inner='*a')}\n"

    assert parse_yaml(through_an_alias(MAX_DEPTH).encode(), "f.yaml")[0]
    kind, problems = refused(through_an_alias(MAX_DEPTH + 1))
    assert kind is GateError
    assert problems == [f"f.yaml:1: nested deeper than {MAX_DEPTH} levels with aliases expanded"]


def test_parse__merge_key__takes_in_what_the_mapping_does_not_say_itself() -> None:
    text = "base: &base\n  a: 1\n  b: 2\nown:\n  b: 3\n  <<: *base\nlist:\n  <<: [*base, {b: 4, c: 5}]\n"
    value, positions = parse_yaml(text.encode(), "f.yaml")
    assert value == {"base": {"a": 1, "b": 2}, "own": {"a": 1, "b": 3}, "list": {"a": 1, "b": 2, "c": 5}}
    assert positions.find_line(["own", "b"]) == 5
    assert positions.find_line(["own", "a"]) == 2


def test_parse__merge_keys_within_each_other__are_counted_as_what_they_stand_for() -> None:
    lines = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9))]
    assert "more than" in refused("\n".join(lines))[1][0]
