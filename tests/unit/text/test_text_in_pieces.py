"""A secret in pieces: found whatever stands between them, and words that only look alike are left."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.in_pieces import MAX_SEARCHED, bare_secrets, pieces_in
from eval_gate.text.redact import Redactor
from eval_gate.text.secret import MASK

KEY = "sk-Qz7Xk2Lm9PwVt4Rb8NcY"
SIGNS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"


@given(
    st.randoms(use_true_random=False), st.sampled_from([('"', '",'), ('{"t":"', '"}'), ("9:", "\\n"), ("<b>", "</b>")])
)
def test_pieces__any_cuts_and_anything_around__nothing_of_them_is_left(random: random.Random, around) -> None:
    secret = "".join(random.choices(SIGNS, k=24))
    cuts = sorted({0, 24, *(random.randrange(1, 24) for _ in range(random.randrange(1, 8)))})
    pieces = [secret[begin:end] for begin, end in pairwise(cuts)]
    text = "".join(around[0] + piece + around[1] for piece in pieces)
    shown = Redactor([secret])(text)
    # a single sign may stand for another one that is the same
    assert [piece for piece in pieces if len(piece) > 1 and piece in shown] == []
    assert shown.count(MASK) == len(pieces)


@pytest.mark.parametrize("kept", range(9, 20))
def test_pieces__text_that_was_cut__its_beginning_or_end_is_masked(kept) -> None:
    for part, form in ((KEY[:kept], "{}…"), (KEY[-kept:], "…{}")):
        said = form.format(" ".join(f'"{part[at : at + 5]}"' for at in range(0, kept, 5)))
        shown = Redactor([KEY])(said)
        assert set(re.findall("[0-9A-Za-z]+", shown)) == set(), shown


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("weather-agent-prod", "the weather agent of prod, weather agent prod"),
        (KEY, "sk Qz7Xk2 is what it begins with"),
        ("abcdefghijk", '"abcdef", "ghijk"'),
        ("correct-horse-battery", "correct, horse; battery"),
    ],
)
def test_pieces__words_and_parts_of_it__stay(secret, text) -> None:
    assert Redactor([secret])(text) == text


def test_pieces__long_text__is_not_searched() -> None:
    text = '"sk-Qz7Xk2Lm","9PwVt4Rb8NcY"'
    assert list(pieces_in(text, bare_secrets([KEY]))) == [(1, 3), (4, 12), (15, 27)]
    assert list(pieces_in(text + "." * MAX_SEARCHED, bare_secrets([KEY]))) == []
