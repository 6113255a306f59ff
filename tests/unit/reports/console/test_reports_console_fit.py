"""Text within so many columns: nothing is wider, nothing is lost but what is cut, and nothing drives a log's reader."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcwidth

from eval_gate.reports.console import style
from eval_gate.reports.console.style import cut_end, cut_middle, measure_width, pad_text, wrap_parts

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Zl", "Zp", "Mn", "Me")), max_size=60)


def test_width__wide_characters__take_two_columns() -> None:
    assert [measure_width(text) for text in ("ab", "é", "東京", "")] == [2, 1, 4, 0]


def test_width__what_is_taken_for_narrow__is_what_the_library_says() -> None:
    narrow = [char for char in map(chr, range(sys.maxunicode + 1)) if style._NARROW(char)]
    assert len(narrow) > 500
    assert {wcwidth(char) for char in narrow} == {1}


@given(TEXT, st.integers(2, 40))
def test_cut__any_text__fits_and_is_whole_where_it_can_be(text, columns) -> None:
    for cut in (cut_end(text, columns), cut_middle(text, columns)):
        assert measure_width(cut) <= columns
        assert cut == text if measure_width(text) <= columns else "…" in cut


def test_cut__too_long__keeps_the_beginning_or_both_ends() -> None:
    assert cut_end("refund/partial-order", 10) == "refund/pa…"
    assert cut_middle("refund/partial-order", 10) == "refun…rder"
    assert cut_middle("東京東京東京", 7) == "東…京"
    assert cut_end("abcdef", 5, "...") == "ab..."


def test_padded__wide_characters__count_as_they_are_shown() -> None:
    assert (pad_text("東", 4), pad_text("東", 4, right=True)) == ("東  ", "  東")


@given(st.lists(TEXT, max_size=8), st.integers(8, 60), st.sampled_from(["", "label: ", "    → "]))
def test_flow__any_parts__fit_and_lose_nothing(parts, columns, begin) -> None:
    lines = list(wrap_parts(parts, columns, begin=begin))
    wide = 2 if any(measure_width(char) > 1 for part in parts for char in part) else 0
    assert all(measure_width(line) <= columns + wide for line in lines)
    shown = "".join("".join(lines).removeprefix(begin).split()).replace(":", "")
    assert shown == "".join("".join(parts).split()).replace(":", "").removeprefix("" if lines else "x") or not any(
        parts
    )


def test_flow__words__break_at_blanks_and_stay_below_the_first() -> None:
    lines = list(wrap_parts(["one", "two", "three", "four"], 12, begin="why: ", indent="  "))
    assert lines == ["why: one two", "  three four"]


def test_flow__a_part_that_is_to_stay_whole__is_longer_than_the_line() -> None:
    assert list(wrap_parts(["a/very/long/path"], 8, begin="report: ", whole=True)) == ["report: a/very/long/path"]


def test_flow__a_long_part__is_broken_at_its_blanks() -> None:
    assert list(wrap_parts(["pass 1", "errors 8 (5 crashed, 2 not)"], 20, between="   ")) == [
        "pass 1   errors 8 (5",
        "  crashed, 2 not)",
    ]


@pytest.mark.parametrize("text", ["see ::error::x here", "abcdefgh::error::x"])
def test_flow__a_line_that_would_be_a_command_of_a_runner__is_none(text) -> None:
    for columns in range(6, 20):
        assert not any(line.lstrip().startswith("::") for line in wrap_parts(text.split(), columns))
