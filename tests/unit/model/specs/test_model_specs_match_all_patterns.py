"""Patterns that find something in every text, and that nothing else is taken for one."""

from __future__ import annotations

import pytest
import regress
from hypothesis import example, given
from hypothesis import strategies as st

from eval_gate.model.specs.match_all_patterns import MAX_PATTERN, matches_every_text

ALWAYS = [
    "",
    ".*",
    "^",
    "$",
    "^.*",
    ".*?$",
    "a|",
    "|a",
    "(a|)",
    "(?:)",
    "x?y*",
    "x{0,3}?z{0}",
    "(ab)*[^c]?",
    "(?:a|b*)",
]
MAYBE = ["a", "^$", "^a*$", "^.*$", ".+", "a{1,}", r"\b", r"\d", "(?!x)", "(?=a)*", "(?<n>a)?", r"(a)\1*", "[a", "(a"]
BROKEN = [")", "a**", "a{0", "\\", "*", "]", "{", "a{x}", "(" * 240 + ")" * 240, "a?" * MAX_PATTERN]


@pytest.mark.parametrize("pattern", ALWAYS)
def test_finds_everywhere__pattern_that_may_match_nothing__does(pattern) -> None:
    assert matches_every_text(pattern)


@pytest.mark.parametrize("pattern", [*MAYBE, *BROKEN])
def test_finds_everywhere__pattern_that_may_fail_or_is_none__does_not(pattern) -> None:
    assert not matches_every_text(pattern)


@pytest.mark.parametrize(
    ("pattern", "flags", "expected"),
    [
        (r"^[\s\S]*$", "", True),
        ("^[^]*?$", "", True),
        ("^.*$", "s", True),
        ("^.*$", "m", True),
        ("^[^]+$", "", False),
        ("^a*$", "m", False),
        ("a*", "y", True),
        ("$", "y", False),
        ("[a]*", "v", False),
    ],
)
def test_finds_everywhere__anchors_and_flags__count(pattern, flags, expected) -> None:
    assert matches_every_text(pattern, flags) is expected


PARTS = ["a", ".", r"\s", "[^a]", "(", "(?:", ")", "|", "^", "$", "*", "+", "?", "{0}", "{0,2}", "{1}", "(?!", r"\b"]


@given(
    pattern=st.lists(st.sampled_from(PARTS), max_size=7).map("".join),
    flags=st.sampled_from(["", "m", "s", "i"]),
    text=st.text("ab \n", max_size=4),
)
@example(pattern="^.*$", flags="m", text="a\nb")
def test_finds_everywhere__any_pattern_that_does__finds_something_in_any_text(pattern, flags, text) -> None:
    if matches_every_text(pattern, flags):
        assert regress.Regex(pattern, flags).find(text) is not None
