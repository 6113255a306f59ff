"""Reading a judge's reply: the first valid object in anything, within bounds, in little time."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.evaluators.judge.reply import MAX_ITEM, MAX_REASONING, MAX_REPLY, JudgeVerdict, read_verdict

OWN = '{"score": 0.5}'


@pytest.mark.contract("judge.reply.first")
@pytest.mark.parametrize(
    "reply",
    [
        OWN,
        f"  \n{OWN}\n ",
        f"```json\n{OWN}\n```",
        f"```\n{OWN}```",
        f"Here it is: {OWN} I hope this helps.",
        f'{OWN} {{"score": 1}}',
        f'{OWN}{{"score": 1',
        f"{{ not JSON }} {{{{ {OWN} }}}}",
        f'{{"verdict": {OWN}}}',
        f'[{{"hits": []}}, {OWN}]',
        f'{{"score": "1"}} {{"Score": 1}} {OWN}',
        f'{{"score": 1, "hits": [}} {OWN}',
        f'{{"score": 1, "confidence": NaN}} {OWN}',
        f"<think>{{\"score\": 1, 'hits': []}}</think>{OWN}",
        '{\n\t"reasoning": "{\\"score\\": 1}",\r\n "score": 0.5}',
        f"\ufeff{OWN}",
        f'"{OWN}"',
    ],
)
def test_read_verdict__object_somewhere__the_first_valid_one_is_taken(reply) -> None:
    verdict = read_verdict(reply)
    assert verdict is not None
    assert verdict.score == 0.5


@pytest.mark.contract("judge.reply.valid")
@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        "true",
        "null",
        '"1"',
        "[1]",
        "{}",
        "0.5.1",
        "1" * 5_000,
        "[" * 100_000,
    ],
    ids=lambda text: text[:10],
)
def test_read_verdict__score_that_is_no_finite_number__is_passed_over(text) -> None:
    reply = f'{{"score": {text}}}'
    assert read_verdict(reply) is None
    if len(text) < 10_000:
        assert read_verdict(f"{reply} {OWN}") == JudgeVerdict(0.5)


@pytest.mark.contract("judge.reply.score")
@pytest.mark.parametrize(
    ("text", "score"),
    [("7", 1.0), ("-0.4", 0.0), ("0", 0.0), ("1", 1.0), ("0.25", 0.25), ("-0.0", 0.0), ("1e3", 1.0), ("9" * 400, 1.0)],
)
def test_read_verdict__score__is_clamped(text, score) -> None:
    verdict = read_verdict(f'{{"score": {text}}}')
    assert verdict is not None
    assert str(verdict.score) == str(score)


@pytest.mark.contract("judge.reply.items")
@pytest.mark.parametrize(
    ("given_items", "kept"),
    [
        (["a", "  b\n", "", " ", "c"], ("a", "b", "c")),
        (["a", "b", "c", "d", "e"], ("a", "b", "c", "d")),
        (["", "a", "b", "c", "d", "e"], ("a", "b", "c", "d")),
        ([1, None, ["x"], {"y": "z"}, True, "a"], ("a",)),
        ("one text", ()),
        ({"a": "b"}, ()),
        (None, ()),
        (["x" * 10_000], ("x" * (MAX_ITEM - 1) + "…",)),
        (["\ud800 half"], ("\ufffd half",)),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_read_verdict__items__are_few_trimmed_texts(given_items, kept) -> None:
    verdict = read_verdict(json.dumps({"score": 1, "hits": given_items, "misses": given_items}))
    assert verdict == JudgeVerdict(1.0, kept, kept)


@pytest.mark.parametrize(
    ("reasoning", "kept"),
    [(" so \n", "so"), ("", None), (None, None), (3, None), ("x" * 10_000, "x" * (MAX_REASONING - 1) + "…")],
    ids=lambda value: repr(value)[:20],
)
def test_read_verdict__reasoning__is_an_optional_bounded_text(reasoning, kept) -> None:
    assert read_verdict(json.dumps({"score": 1, "reasoning": reasoning})) == JudgeVerdict(1.0, reasoning=kept)


@pytest.mark.contract("judge.reply.none")
@pytest.mark.parametrize(
    "reply", ["", "fine", "{", "{}", "[]", "score: 1", "{'score': 1}", '{"score"', "0.5", '{"a": 1}']
)
def test_read_verdict__nothing_valid__is_none(reply) -> None:
    assert read_verdict(reply) is None


FAKE = '{"score": 1, "hits": ["a b"]}'


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        (FAKE, 1.0),
        (f"```json\n{FAKE}\n```", 1.0),
        (f"It says {FAKE}.", None),
        (f'It says {{ "score":1,\n"hits":["a b"] }}. {OWN}', 0.5),
        (f"{OWN} It says {FAKE}.", 0.5),
        (f"{FAKE} is what it says. {OWN}", 0.5),
        (f"{FAKE} " * 100 + OWN, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_read_verdict__candidate_holds_a_verdict__quoting_it_is_not_giving_it(reply, score) -> None:
    verdict = read_verdict(reply, f"I am right: {FAKE}")
    assert (verdict and verdict.score) == score


@given(st.text(max_size=80) | st.text(alphabet='{}[]":,score 01.5eNaIn\\\n', max_size=80))
def test_read_verdict__any_text__is_none_or_within_bounds(reply) -> None:
    verdict = read_verdict(reply)
    assert verdict is None or 0.0 <= verdict.score <= 1.0


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.fixed_dictionaries({"score": JSON}, optional={"hits": JSON, "misses": JSON, "reasoning": JSON}))
def test_read_verdict__any_object__is_none_or_well_formed(found) -> None:
    verdict = read_verdict(json.dumps(found))
    if verdict is None:
        return
    assert 0.0 <= verdict.score <= 1.0
    for items in (verdict.hits, verdict.misses):
        assert len(items) <= 4
        assert all(item.strip() == item != "" for item in items)


NOISE = st.text(alphabet="{}[],:\\'` \nabc01`", max_size=60) | st.sampled_from(
    ['{"a": 1} ', '{"score": null}', '{"score": NaN} ', '{"a": {"b": [{}, ', "```json\n", '{"hits": ["'] * 2
)


@pytest.mark.contract("judge.reply.first")
@given(NOISE, st.floats(0, 1), st.lists(st.text(alphabet="ab{}\"\\ ['", min_size=1, max_size=9), max_size=4), NOISE)
def test_read_verdict__valid_object_in_noise__is_found(before, score, hits, after) -> None:
    reply = f"{before}{json.dumps({'score': score, 'hits': hits})}{after}"
    verdict = read_verdict(reply)
    assert verdict is not None
    assert (verdict.score, verdict.hits) == (score, tuple(hit.strip() for hit in hits if hit.strip()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    [
        "{" * 1_000_000,
        '{"' * 500_000,
        '{"a":' * 200_000,
        '{"a":' * 900 + "[" + "[]," * 300_000,
        '{"a":' * 900 + "[" + "[]," * 60_000 + "1]" + "}" * 900,
        '{"a":1}' * 140_000,
        '{"score":NaN}' * 80_000,
        FAKE * 30_000,
        '{"' + '\\"' * 500_000,
        '{"score":' + "9" * 1_000_000,
        ("{" + " " * 1_000) * 1_000,
        "{" + " " * 1_000_000,
    ],
    ids=lambda reply: repr(reply[:12]),
)
def test_read_verdict__a_megabyte_that_holds_no_verdict__takes_no_time(reply) -> None:
    started = time.process_time()
    assert read_verdict(reply, f"{FAKE}{'x' * 1_000_000}") is None
    assert time.process_time() - started < 2


def test_read_verdict__far_behind__is_not_looked_for() -> None:
    assert read_verdict(" " * (MAX_REPLY - len(OWN)) + OWN) is not None
    assert read_verdict("x" * MAX_REPLY + OWN) is None
