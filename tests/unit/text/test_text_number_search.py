"""Numbers, dates, times and codes that are the same however a text writes them, and never a part of another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.number_search import has_number, iter_numbers, parse_number


@pytest.mark.parametrize(
    ("number", "written"),
    [
        ("1,250.40", "1250.4"),
        ("1,250.40", "1 250,40"),
        ("1,250.40", "1.250,40"),
        ("1,250.40", "1\N{NARROW NO-BREAK SPACE}250,40"),
        ("1250.4", "€1,250.40"),
        ("1250", "1.250"),
        ("1250", "1'250.00"),
        ("1.25", "1,25"),
        ("1.25", "1.250"),
        ("0.5", ".5"),
        ("1000000", "1,000,000"),
        ("-4", "\N{MINUS SIGN}4"),
        ("4", "4%"),
        ("5", "5km"),
        ("3", "Three"),
        ("three", "3"),
        ("20", "10,20,30"),
        ("412", "TAP 762 412"),
        ("9:30", "09:30"),
        ("12 December", "the 12th of December"),
        ("12 December", "Dec 12"),
        ("12 December", "Dec. 12"),
        ("12 December", "2026-12-12"),
        ("A-1043", "A-1043"),
        ("2.1.3", "2.1.3"),
        ("2.1.3", "v2.1.3"),
    ],
)
def test_number__written_in_another_way__is_found(number: str, written: str) -> None:
    assert has_number(f"so it is {written}, then.", number)


@pytest.mark.parametrize(
    ("number", "other"),
    [
        ("12", "112"),
        ("12", "121"),
        ("12", "12.5"),
        ("5", ".5"),
        ("12", "1,012"),
        ("12", "-12"),
        ("12", "12:30"),
        ("12", "12 December"),
        ("12", "2026-12-01"),
        ("12", "27.12.2026"),
        ("2", "1.2.3"),
        ("1043", "A-1043"),
        ("3", "Q3"),
        ("20", "twenty-one"),
        ("250", "1,250"),
        ("1250", "1.25"),
        ("1,250.40", "1,205.40"),
        ("9:30", "19:30"),
        ("1 December", "11 December"),
        ("1 December", "1 November"),
        ("A-104", "A-1043"),
        ("2.1", "2.1.3"),
    ],
)
def test_number__that_is_another_one__is_not_found(number: str, other: str) -> None:
    assert not has_number(f"so it is {other}, then.", number)


@pytest.mark.parametrize("text", ["", "many", "1 or 2", "12 EUR", "{{seed:n}}", "1,2,3"])
def test_parse__text_that_is_not_one_number__is_none(text: str) -> None:
    assert parse_number(text) is None


@given(st.text(max_size=200))
def test_numbers__of_any_text__are_where_they_say_and_found_again(text: str) -> None:
    for token in iter_numbers(text):
        assert text[token.start :].startswith(token.text)
        assert token.keys


@given(st.integers(-10_000_000, 10_000_000), st.integers(0, 99))
def test_number__of_any_size__is_the_same_with_separators_of_any_kind(whole: int, cents: int) -> None:
    english = f"{whole:,}.{cents:02}"
    for one in (
        english,
        english.replace(",", ""),
        english.translate(str.maketrans(",.", ".,")),
        english.replace(",", " "),
    ):
        assert has_number(one, english)


@pytest.mark.parametrize("piece", ["1,", "1.", "1 ", "1-", "A-", "a1", "12 Dec ", "1 000 "])
def test_numbers__text_that_is_one_piece_again_and_again__ends(piece: str) -> None:
    assert not has_number(piece * 20_000, "77")
