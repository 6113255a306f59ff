"""Behaviour of a case as a history keeps it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model import limits
from eval_gate.results.case_behaviour import (
    decode_behaviour,
    encode_behaviour,
    find_lost_words,
    hash_place,
    hash_tool,
    hash_values,
    list_behaviours,
)
from eval_gate.results.history import History, build_history, encode_history, parse_history
from eval_gate.results.run_history import join_histories
from eval_gate.struct import replace
from tests.support.behaviours import SAID, make_behaving, make_branch, make_details
from tests.support.chat_results import make_conversation
from tests.support.results import FILE, make_baseline_run, make_result, make_suite_result

LOOKUP = ("lookup", {"id": "A7"})
NAMES = st.text(st.characters(codec=None), max_size=8)
CALLS = st.lists(st.tuples(NAMES, st.dictionaries(NAMES, st.integers() | st.text(max_size=5) | st.none(), max_size=3)))


def word(*executions, before=None) -> str:
    return encode_behaviour(make_behaving("a", *executions), before)


def behaviours(history: History) -> list[str]:
    return history.suites[FILE]["a"].list_behaviour_words()


@given(CALLS)
def test_behaviour__encoded_and_decoded__has_every_tool_and_parameter(calls) -> None:
    details = make_details(calls)
    (one,) = list_behaviours(make_behaving("a", details)) or (None,)
    if one is None:
        assert len(set(details.tools_called)) > limits.BEHAVIOUR_TOOLS
        return
    (read,) = decode_behaviour(word(details))
    for tool, number in one.calls.items():
        same = [other for other in one.calls if hash_tool(other) == hash_tool(tool)]
        assert read.calls[hash_tool(tool)] in {one.calls[other] for other in same}
        assert number == details.tools_called.count(tool)
        for place, values in (one.parameters[tool] or {}).items():
            assert read.values[hash_place(tool, place)] == hash_values(values)


@pytest.mark.parametrize(
    ("executions", "expected"),
    [
        ([make_details([])], "0"),
        ([make_details([], None)], "0"),
        ([make_details([LOOKUP]), make_details([LOOKUP])], "ONE"),
        ([make_details([LOOKUP]), make_details([])], "ONE/0"),
        ([make_details([LOOKUP], tool_calls=())], f"{hash_tool('lookup')}x1?"),
    ],
)
def test_encode__executions_of_a_run__are_a_word_each(executions, expected) -> None:
    assert word(*executions) == expected.replace("ONE", word(make_details([LOOKUP])))


def test_encode__values__cannot_be_read() -> None:
    assert "A7" not in word(make_details([LOOKUP]))
    assert "lookup" not in word(make_details([LOOKUP]))


@pytest.mark.parametrize(
    ("said", "mark"), [(SAID, "."), ("Sorry.", "!"), (None, ""), (SAID.replace("Sunday", "Monday"), ".")]
)
def test_encode__response_since_the_run_before__has_a_mark(said, mark) -> None:
    before = make_behaving("a", make_details([], SAID))
    assert word(make_details([], said), before=before) == f"0{mark}"


def test_encode__many_executions_and_calls__is_bounded() -> None:
    executions = [
        make_details([(f"t{tool}", {f"p{number}": n for number in range(9)}) for tool in range(limits.BEHAVIOUR_TOOLS)])
        for n in range(9)
    ]
    made = word(*executions)
    assert len(decode_behaviour(made)) == limits.BEHAVIOUR_EXECUTIONS
    assert len(made) < 4_000


def test_encode__graded_case_below_1__counts_because_another_score_may_pass() -> None:
    details = make_details([LOOKUP])
    assert encode_behaviour(make_result("a", "failed", graded=True, score=0.8, details=details), None) == word(details)
    assert encode_behaviour(make_result("a", "failed", details=details), None) == ""
    assert encode_behaviour(make_result("a", "error", graded=True, details=details), None) == ""


@pytest.mark.parametrize("text", ["-", "", "0x", "zz", "3fa9x1,", "3fa9x1/-", "3fa9x1,0b1c2d=77", "3fa9x1;0", "?"])
def test_decode__word_that_says_nothing__is_unknown(text) -> None:
    assert decode_behaviour(text) == ()


@pytest.mark.parametrize(
    ("baseline", "current", "lost"),
    [
        ("a b c d", "a b", True),
        ("a b c d e f g h i j k", "a b c d e f", True),
        ("a b c d e", "a b c", False),
        ("a b c d", "a b c", False),
        ("a a a a a a a a b", "a b", True),
        ("one, two", "one two", False),
        ("One-two three", "one two THREE", False),
        ("", "", False),
        ("…", "", False),
    ],
)
def test_lost_words__share__decides(baseline, current, lost) -> None:
    assert (find_lost_words((baseline,), (current,)) is not None) is lost


@pytest.mark.parametrize(
    ("baseline", "current", "turn"),
    [
        (("Noted.", "It is on its way to you, and arrives on Friday."), ("Certainly.", "It comes then."), 2),
        (("Noted.", "See you."), ("Certainly.", "Goodbye."), None),
        (("已经为您取消订单", "好"), ("无法处理", "好"), 1),
    ],
)
def test_find_lost_words__turns__short_ones_are_not_compared(baseline, current, turn) -> None:
    assert find_lost_words(baseline, current) == turn


# In a history


def test_history__case_with_the_same_behaviour__has_one_word_for_all_runs() -> None:
    cases = [make_behaving("a", make_details([LOOKUP]))]
    _, history = make_branch(*[cases] * 13)
    first = word(make_details([LOOKUP]))
    assert history.suites[FILE]["a"].behaviour == f"{first}.*{limits.HISTORY_BEHAVIOURS}"
    assert len(history.runs) == 13


def test_history__run_without_the_case_or_where_it_failed__keeps_the_others_in_place() -> None:
    details = make_details([LOOKUP])
    passed, other = make_behaving("a", details), make_behaving("b", details)
    _, history = make_branch(
        [passed, other], [other], [make_result("a", "failed", details=details), other], [passed, other]
    )
    one = word(details)
    assert behaviours(history) == [one, "-", "-", one]
    assert behaviours(history.drop_newest(1)) == ["-", "-", one]
    assert behaviours(history.drop_newest(2)) == ["-", one]


def test_history__written_and_read__keeps_behaviour() -> None:
    _, history = make_branch(
        [make_behaving("a", make_details([LOOKUP]))], [make_behaving("a", make_details([("search", {})], "No."))]
    )
    assert parse_history(encode_history(history), "x") == history
    assert [one[0].lost_words for one in history.suites[FILE]["a"].decode_behaviours()] == [True, None]


def test_history__of_an_older_version__is_read_and_knows_no_behaviour() -> None:
    _, history = make_branch([make_behaving("a", make_details([LOOKUP]))])
    data = json.loads(encode_history(history))
    del data["suites"][FILE]["a"]["behaviour"]
    old = parse_history(json.dumps(data).encode(), "x")
    assert behaviours(old) == []
    next_run = make_baseline_run(make_suite_result([make_behaving("a", make_details([LOOKUP]))]), run_id="next")
    assert behaviours(old.with_run(next_run)) == [word(make_details([LOOKUP]))]


def test_history__hostile_behaviour__is_unknown() -> None:
    _, history = make_branch([make_behaving("a", make_details([LOOKUP]))])
    data = json.loads(encode_history(history))
    data["suites"][FILE]["a"]["behaviour"] = "x*99999999 <script> " + "0" * 1_000
    read = parse_history(json.dumps(data).encode(), "x").suites[FILE]["a"]
    assert not any(read.decode_behaviours())
    assert len(read.decode_behaviours()) <= limits.HISTORY_BEHAVIOURS


def test_history__too_large_with_behaviour__is_written_without(monkeypatch) -> None:
    _, history = make_branch([make_behaving("a", make_details([LOOKUP]))])
    whole = encode_history(history)
    monkeypatch.setattr("eval_gate.results.history.MAX_HISTORY_BYTES", len(whole) - 1)
    read = parse_history(encode_history(history), "x")
    assert behaviours(read) == []
    assert read.runs == history.runs


def test_history__joined__keeps_the_behaviour_of_each_run_in_its_place() -> None:
    details = [make_details([("lookup", {"id": n})]) for n in range(3)]
    runs = [
        make_baseline_run(
            make_suite_result([make_behaving("a", one)]), run_id=f"r{n}", timestamp=f"2026-11-0{n + 1}T10:00:00Z"
        )
        for n, one in enumerate(details)
    ]
    newest, other = build_history([runs[2], runs[0]]), build_history([runs[1], runs[0]])
    joined = join_histories(newest, [other])
    assert [one.run_id for one in joined.runs] == ["r2", "r1", "r0"]
    assert [decode_behaviour(one)[0].values for one in behaviours(joined)] == [
        decode_behaviour(word(one))[0].values for one in reversed(details)
    ]


def test_history__another_fingerprint_every_time__keeps_behaviour() -> None:
    runs = [[make_behaving("a", make_details([LOOKUP]), fingerprint=f"f{n}")] for n in range(12)]
    _, history = make_branch(*runs)
    assert len(behaviours(history)) == limits.HISTORY_BEHAVIOURS
    assert len(replace(history.suites[FILE]["a"], behaviour="").fingerprints) == 12


def test_encode_behaviour__conversation__has_tools_by_turn_and_any_turn_may_lose_words() -> None:
    turns = [("a", SAID, [LOOKUP]), ("b", SAID, [LOOKUP])]
    case = make_behaving("a", make_conversation(turns, "PP"))
    (digest,) = decode_behaviour(encode_behaviour(case, None))
    assert digest.calls == {hash_tool("1:lookup"): 1, hash_tool("2:lookup"): 1}
    shorter = make_behaving("a", make_conversation([turns[0], ("b", "No.", [LOOKUP])], "PP"))
    assert encode_behaviour(shorter, case).endswith("!")
    assert encode_behaviour(case, case).endswith(".")
    unknown = make_behaving("a", make_conversation([turns[0], ("b", None, [LOOKUP])], "PP"))
    assert encode_behaviour(unknown, case)[-1] not in "!."
