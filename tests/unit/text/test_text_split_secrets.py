"""A secret in pieces: found whatever stands between them, and words that only look alike are left."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.mask import MASK
from eval_gate.text.redaction import Redactor
from eval_gate.text.split_secrets import MAX_SEARCHED, build_bare_secrets, iter_secret_pieces
from tests.support.bounds import within_cpu

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
    shown = Redactor([secret]).mask_message(text)
    # a single sign may stand for another one that is the same
    assert [piece for piece in pieces if len(piece) > 1 and piece in shown] == []


@pytest.mark.parametrize("kept", range(9, 20))
def test_pieces__text_that_was_cut__its_beginning_or_end_is_masked(kept) -> None:
    for part, form in ((KEY[:kept], "{}…"), (KEY[-kept:], "…{}")):
        said = form.format(" ".join(f'"{part[at : at + 5]}"' for at in range(0, kept, 5)))
        shown = Redactor([KEY]).mask_message(said)
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
    assert Redactor([secret]).mask_message(text) == text


@pytest.mark.parametrize(
    ("secret", "answer"),
    [
        ("postgres://appuser:hQ9vX2pLrT7m@db.acme.internal:5432/orders", "Use postgres. The appuser role is needed..."),
        ('{"type": "service_account", "id": "8c1f0e77aa318c1f"}', "I cannot tell the type of the service yet… ask."),
        ("my-production-key-8f3aQ9zLx2Lm77", "This is my production key, the one …"),
    ],
)
def test_pieces__response__is_not_searched_for_them(secret, answer) -> None:
    assert Redactor([secret])(answer) == answer


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("Bearer sk-proj-Qz7Xk2Lm9PwTb4RvNcY8sJdH3", "sk-proj-Qz7Xk2Lm9PwTb4RvNcY8sJdH3"),
        ("https://a.test/?token=3f2504e0-4f89-41d3-9a0c-0305e82c3301", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
        ("postgres://appuser:hQ9vX2pLrT7mKz4w@db.test/orders", "hQ9vX2pLrT7mKz4w"),
        ('{"client_secret": "GOCSPX-a8Qz7Xk2Lm9PwTb4RvNcY"}', "GOCSPX-a8Qz7Xk2Lm9PwTb4RvNcY"),
        ("Name=acme;AccountKey=wJalrXUtnFEMIK7MDENGbPxRfiCY==;Suffix=net", "wJalrXUtnFEMIK7MDENGbPxRfiCY"),
    ],
)
def test_redact__key_within_a_secret__is_a_secret_by_itself(value, key) -> None:
    assert Redactor([value])(f"no such key: {key}!") == f"no such key: {MASK}!"


def test_pieces__response_with_all_of_a_key__leaves_nothing_of_it() -> None:
    assert Redactor([KEY])('{"chunks": ["sk-Qz7Xk2Lm", "9PwVt4Rb8NcY"]}') == '{"chunks": ["***-***", "***"]}'


def test_pieces__periodic_key__takes_no_time() -> None:
    with within_cpu(2, "a periodic key"):
        Redactor(["ab" * 1_000]).mask_message(("a b " * 2_000)[:MAX_SEARCHED])


def test_pieces__long_text__is_not_searched() -> None:
    text = '"sk-Qz7Xk2Lm","9PwVt4Rb8NcY"'
    assert list(iter_secret_pieces(text, build_bare_secrets([KEY]), in_message=True)) == [(1, 3), (4, 12), (15, 27)]
    assert list(iter_secret_pieces(text + "." * MAX_SEARCHED, build_bare_secrets([KEY]), in_message=True)) == []
