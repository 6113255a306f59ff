"""Two answers word by word: what differs is shown, in bounded time, and nothing else is lost."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.reports.text_difference import CONTEXT_CHARACTERS, compare_texts

WORDS = st.lists(st.sampled_from(["a", "order", "A17", " ", "\n", ".", "界", "refund", "\u202e"]), max_size=40).map(
    "".join
)


def compare_lines(baseline: str, current: str, limit: int = CONTEXT_CHARACTERS) -> list[str]:
    return list(compare_texts(baseline, current, limit).to_lines())


def test_difference__one_word__stands_between_what_is_the_same() -> None:
    then = "I have refunded your order A17. The money is on its way."
    assert compare_lines(then, then.replace("A17", "A71")) == [
        "  I have refunded your order",
        "- A17",
        "+ A71",
        "  . The money is on its way.",
    ]


def test_difference__words_that_happen_to_be_the_same__do_not_tear_sentences_apart() -> None:
    then, here = "I have issued the refund for you today.", "I am sorry, the shop is closed for today."
    assert compare_lines(then, here) == [f"- {then}", f"+ {here}"]


def test_difference__first_difference_far_behind__begins_shortly_before_it() -> None:
    long = "word " * 2_000
    lines = compare_lines(f"{long}open on Sunday{' more' * 500}", f"{long}closed{' more' * 500}")
    assert lines[0].startswith("  … word word")
    assert "- open on Sunday" in "\n".join(lines)
    assert "+ closed" in "\n".join(lines)
    assert lines[-1].endswith("…")
    assert sum(map(len, lines)) < 3 * CONTEXT_CHARACTERS


def test_difference__long_equal_part_between_two__is_shown_without_its_middle() -> None:
    between = f"It begins so {'and goes on ' * 12}and ends so."
    lines = compare_lines(f"First one here. {between} Last one here.", f"Other one there. {between} Final word there.")
    assert any(" … " in line for line in lines)
    assert [line[0] for line in lines if line[0] != " "] == ["-", "+", "-", "+"]


@pytest.mark.parametrize(
    ("then", "here", "line"), [("a b", "a  b", "+ ··"), ("a", "a\n", "+ ⏎"), ("a\u202eb", "ab", "- a[U+202E]b")]
)
def test_difference__of_what_nobody_sees__is_made_visible(then, here, line) -> None:
    assert line in compare_lines(then, here)


def test_difference__lines__are_no_wider_than_a_screen() -> None:
    assert max(map(len, compare_lines("x" * 20_000, "word " * 4_000))) <= 90


@given(WORDS, WORDS)
def test_difference__short_texts__hold_both_sides(then, here) -> None:
    pieces = compare_texts(then, here, 10_000).pieces
    marked = {text: text.replace("\u202e", "[U+202E]") for text in (then, here)}
    assert compare_texts(then, here).is_equal == (then == here)
    if all(" …" not in piece.text for piece in pieces):
        assert "".join(piece.text for piece in pieces if piece.sign != "+") == marked[then]
        if then != here:
            assert "".join(piece.text for piece in pieces if piece.sign != "-") == marked[here]


HOSTILE = {
    "one letter": ("a" * 20_000, "a" * 19_999 + "b"),
    "by turns": ("!?" * 10_000, "?!!" * 6_667),
    "two words": ("a b " * 5_000, "b a " * 5_000),
    "one sign": ("!" * 20_000, "?" + "!" * 19_999),
    "no blanks": ("abcdef" * 3_333, "abdcef" * 3_333),
    "blanks": (" " * 20_000, "\n" * 20_000),
    "no blanks between words": ("界" * 20_000, "面界" * 10_000),
    "all different": ("".join(map(chr, range(0x4E00, 0x9000))), "".join(map(chr, range(0x9000, 0x4E00, -1)))),
    "the end": ("w " * 10_000 + "x", "w " * 10_000 + "y"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_difference__hostile_pair__takes_no_time_to_speak_of(name) -> None:
    """Without bounds the second takes minutes. Measured: 11 ms at most."""
    begun = time.process_time()
    lines = compare_lines(*HOSTILE[name])
    assert time.process_time() - begun < 1
    assert sum(map(len, lines)) < 4 * CONTEXT_CHARACTERS
