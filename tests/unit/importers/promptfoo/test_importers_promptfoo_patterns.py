"""Text checks as patterns: the engine that judges finds exactly what JavaScript's own functions say."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from regress import Regex

from eval_gate.importers.import_result import NotImportableError
from eval_gate.importers.promptfoo import patterns

texts = st.text(st.sampled_from("aAkKiIsS.*\n\r ^$()[]{}|/\\ßẞéÉ\u212a\u0130👍ǆǅ"), max_size=6)
some = texts.filter(bool)


def finds(pattern: str, text: str) -> bool:
    return Regex(pattern).find(text) is not None


@given(some, texts)
@example("a\nb", "xa\nb")
def test_literal__any_text__finds_what_holds_it(value, answer) -> None:
    assert finds(patterns.escape_literal(value), answer) == (value in answer)
    assert finds(patterns.match_absence(patterns.escape_literal(value)), answer) == (value not in answer)
    assert finds(patterns.match_start(patterns.escape_literal(value)), answer) == answer.startswith(value)
    assert finds(patterns.match_whole(patterns.escape_literal(value)), answer) == (value == answer)


@given(some, texts)
@example("istanbul", "İstanbul")
@example("i", "İ")
@example("k", "\u212a")
def test_any_case__what_it_accepts__is_never_more_than_lower_case_makes_equal(value, answer) -> None:
    if "\u0307" in value.lower():
        return
    holds = value.lower() in answer.lower()
    assert not finds(patterns.match_any_case(value), answer) or holds
    forbids = patterns.match_absence(patterns.match_any_case(value, forbidden=True))
    assert not finds(forbids, answer) or not holds
    if "\u0130" not in answer:
        assert finds(patterns.match_any_case(value), answer) == holds
        assert finds(forbids, answer) != holds


@pytest.mark.parametrize("value", ["ΟΔΟΣ", "οδος", "i\u0307", "İ"])
def test_any_case__letters_that_depend_on_others__are_refused(value) -> None:
    with pytest.raises(NotImportableError):
        patterns.match_any_case(value)


@given(st.lists(some, min_size=1, max_size=3), texts)
def test_several__one_of_them_or_not_all__is_what_the_words_say(values, answer) -> None:
    found = [patterns.escape_literal(value) for value in values]
    assert finds(patterns.match_any(found), answer) == any(value in answer for value in values)
    assert finds(patterns.match_not_all(found), answer) == (not all(value in answer for value in values))


@given(st.text(" \n\tab", max_size=20), st.integers(0, 4), st.none() | st.integers(0, 4))
def test_words__between_two_numbers__counts_as_splitting_does(answer, least, more) -> None:
    most = None if more is None else least + more
    count = len(answer.split())
    assert finds(patterns.match_word_count(least, most), answer) == (least <= count and (most is None or count <= most))
