"""Facts of responses: what carries an answer, and what is only wording."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from regress import Regex

from eval_gate.drafts.response_facts import (
    Clock,
    SharedFacts,
    Wording,
    find_shared_facts,
    is_safe_text,
    list_alternatives,
)
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.limits import DRAFT_FACTS
from eval_gate.text.number_search import has_number

NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


def responses(*texts: str, params: dict[str, JsonValue] | None = None, result: JsonValue = None) -> list[Response]:
    calls = (ToolCall(name="look_up", params=params or {}, result=result),) if params or result is not None else ()
    return [Response(text=text, tool_calls=calls) for text in texts]


def facts(*texts: str, question: str = "What?", **call: JsonValue) -> list[str]:
    return [fact.text for fact in find_shared_facts(question, responses(*texts, **call), NOW).facts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is 21 °C in Lisbon.", ["21", "Lisbon"]),
        ("It was -4 degrees, and 6 cm of snow fell.", ["-4", "6"]),
        ("It costs 1,234.50 euros, or 12.5 % less.", ["1,234.50", "12.5"]),
        ("You fly with TAP 762 at 07:20 to New York.", ["TAP", "762", "07:20", "New York"]),
        ("Order A-1043 has the number CE558201.", ["A-1043", "CE558201"]),
        ("It arrives on 12 December or on January 3rd, 2027.", ["12 December", "January 3rd", "2027"]),
        ("There are three of them.", ["three"]),
        ("1. First do this.\n2. Then do that.", []),
        ("It is 4 EUR or 5 USD, which is good.", ["4", "5"]),
        ("I'm Aria, the bot. Revenue was $4.2M in Q3.", ["Aria", "4.2", "Q3"]),
        ("I can help you. Which one do you mean? Please say so.", []),
        ("Das Wetter ist nicht gut und die Stadt Lissabon hat 21 Grad.", ["21"]),
    ],
)
def test_facts__of_a_response__are_numbers_dates_codes_and_names(text: str, expected: list[str]) -> None:
    assert facts(text, text + " Good.") == expected


@pytest.mark.parametrize(
    ("question", "texts", "expected"),
    [
        ("What is the capital of Portugal?", ["The capital of Portugal is Lisbon.", "Lisbon."], ["Lisbon"]),
        ("What is the capital of Portugal?", ["Lisbon.", "lisbon"], ["Lisbon"]),
        ("What is the capital of Portugal?", ["The capital of Portugal is large."] * 2, ["large"]),
        ("Is the shop open on Sunday?", ["The shop is closed on Sunday.", "Closed."], ["closed"]),
        ("May I return it?", ["Yes, you may return it to the shop at any time you like.", "Yes."], ["Yes"]),
        ("Is it Lisbon or Porto?", ["Porto.", "It is Porto."], ["Porto"]),
        ("Is it Lisbon or Porto?", ["It is Porto, and not Lisbon.", "It is Porto."], ["Porto"]),
        ("Is 12 or 15 the right size?", ["You need 15.", "The right size is 15."], ["15"]),
        ("Is 15 the right size?", ["15 is the right size.", "Yes, 15 is."], []),
        ("How is Oslo?", ["Oslo is cold.", "Cold, in Oslo."], ["cold"]),
        ("What does it cost?", ["It costs 1,250.40 euros.", "1250.4 EUR"], ["1,250.40"]),
        ("What does it cost?", ["It costs 1.250 euros.", "1250 EUR"], ["1250"]),
        ("When?", ["On 12 December.", "December 12th"], ["12 December"]),
        (
            "What do you do?",
            ["This and that, and a lot of other things.", "Of all of it, and this, a lot, I think."],
            [],
        ),
    ],
)
def test_facts__of_all_answers__are_what_they_share_without_the_question(
    question: str, texts: list[str], expected: list[str]
) -> None:
    assert facts(*texts, question=question) == expected


def test_facts__code__is_found_by_what_it_is_and_not_inside_a_longer_one() -> None:
    found = find_shared_facts("Which version?", responses("It is 3.14.15.", "3.14.15"), NOW)
    assert [(fact.text, fact.is_number) for fact in found.facts] == [("3.14.15", True)]


def test_facts__word__is_shown_as_it_is_written() -> None:
    assert facts("Madrid.", "Madrid") == ["Madrid"]


def test_facts__word_of_the_question_that_a_tool_has__stays() -> None:
    assert facts("It is 4 in Oslo.", "In Oslo it is 4.", question="How is Oslo?", params={"city": "Oslo"}) == [
        "4",
        "Oslo",
    ]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is it warmer in Porto or in Zurich this weekend?", {"porto", "zurich"}),
        ("Is the light red, green or blue?", {"red", "green", "blue"}),
        ("Do I get a refund or an exchange?", {"refund", "exchange"}),
        ("Ist es Köln oder Bonn?", {"köln", "bonn"}),
        ("What is an order?", set()),
    ],
)
def test_alternatives__of_a_question__are_the_words_next_to_or(question: str, expected: set[str]) -> None:
    assert list_alternatives(question) == expected


def find_words(answer: str, *others: str) -> SharedFacts:
    """Facts of a long answer in other words each time, and what the agent says to other questions."""
    every = [responses(one) for one in (answer, *others)]
    return find_shared_facts("What?", responses(answer, f"{answer} So it is."), NOW, Wording.from_answers(every))


def test_ordinary_words__of_a_long_answer__are_those_that_no_other_answer_has() -> None:
    answer = "You should bring your own towel because there are none at the pool."
    others = [f"You should take your own bag number{n} because there are none." for n in "abcde"]
    assert [fact.text for fact in find_words(answer, *others).facts] == ["bring", "towel", "pool"]
    longer = find_words(f"{answer} Lockers need coins.", *others)
    assert (longer.facts, longer.word_groups) == ((), (("bring", "towel", "pool", "lockers", "need", "coins"),))


def test_ordinary_words__too_few_other_answers__are_not_told_from_wording() -> None:
    answer = "You should bring your own towel because there are none at the pool."
    assert find_words(answer, "Other.") == SharedFacts()


def test_facts__language_that_writes_nouns_with_capitals__only_names_that_a_tool_has() -> None:
    text = "Das Wetter in Berlin ist sonnig und nicht kalt bei 21 Grad."
    assert facts(text, text + " Ja.", question="Wie ist das Wetter in Berlin?", params={"stadt": "Berlin"}) == [
        "Berlin",
        "21",
    ]


def test_facts__script_without_capitals__are_numbers_and_arguments() -> None:
    text = "東京の天気は晴れ、気温は21度です。"
    assert facts(text, text + "。", question="東京の天気は？", params={"city": "東京"}) == ["東京", "21"]


@pytest.mark.parametrize("piece", ["a/", "1.", "Aa ", "-", "A-", "\n1. ", "9", "é-", "1,2 ", "\t", "A1-"])
def test_facts__text_that_is_one_piece_again_and_again__are_few(piece: str) -> None:
    """A search that takes more than linear time would not end."""
    assert len(facts(piece * 20_000, piece * 20_000)) <= DRAFT_FACTS


def test_facts__target_reports_results__only_names_that_a_tool_or_the_question_has() -> None:
    text = "The hotel Bristol in Braga is open on Monday."
    assert facts(text, text + " Yes.", result={"city": "Braga"}) == ["Braga"]


def test_facts__that_only_some_responses_have__are_left_out_and_named() -> None:
    found = find_shared_facts("What?", responses("It is 21 in Lisbon.", "It is 22 in Lisbon."), NOW)
    assert [fact.text for fact in found.facts] == ["Lisbon"]
    assert found.differing == ("21", "22")


def test_words_of_a_result__target_varies_its_words__one_of_several_is_enough() -> None:
    found = find_shared_facts(
        "What?",
        responses("It is cold with light rain.", "It's cold, with light rain.", result={"sky": "light rain"}),
        NOW,
    )
    assert found.word_groups == (("light", "rain"),)
    assert found.facts == ()


def test_words_of_a_result__target_uses_the_same_words_each_time__are_facts() -> None:
    found = find_shared_facts(
        "What?", responses("Emma is on the shelf.", "Emma is on the shelf.", result="on the shelf"), NOW
    )
    assert [fact.text for fact in found.facts] == ["shelf"]
    assert found.word_groups == ()


@pytest.mark.parametrize(
    "text",
    ["2026-11-27T11:59:58Z", "2026-11-27", "27 November", "November 27", "1795780000", "2026"],
)
def test_values_of_this_moment__are_left_out__unless_the_question_has_them(text: str) -> None:
    assert facts(f"so it is {text} now", f"or {text}, as it may be") == []
    known = facts(f"so it is {text} now", f"or {text}, as it may be", question=f"Is it {text}?", result=text)
    assert known == [text]


def test_near_dates__question_depends_on_the_day__are_left_out() -> None:
    text = "so it is on 29 November"
    assert facts(text, text + " then", question="What is on this weekend?") == []
    assert facts(text, text + " then", question="When is the fair?") == ["29 November"]


@pytest.mark.parametrize(
    "text", ["550e8400-e29b-41d4-a716-446655440000", "deadbeef00112233", "2025-01-02T03:04:05Z", "123456789"]
)
def test_clock__only_one_response__ids_and_stamps_are_volatile(text: str) -> None:
    assert Clock.from_prompt("What?", 1, NOW).is_volatile(text)
    assert not Clock.from_prompt("What?", 3, NOW).is_volatile(text)


def test_facts__too_many__are_spread_over_the_response() -> None:
    text = " ".join(f"and {number}" for number in range(1000, 1000 + 5 * DRAFT_FACTS))
    found = find_shared_facts("What?", responses(text), NOW)
    assert len(found.facts) == DRAFT_FACTS
    assert (found.facts[0].text, found.facts[-1].text) == ("1000", str(1000 + 5 * DRAFT_FACTS - 1))
    assert found.omitted_count == 4 * DRAFT_FACTS


@pytest.mark.parametrize("text", ["a\u202eb", "a\x00b", "a\nb", "{{seed:x}}", "{{date}}", "${{ X }}", "***", "\ud800"])
def test_unsafe_texts__are_recognized(text: str) -> None:
    assert not is_safe_text(f"x {text} y")


@example("_A", "")
@given(st.text(max_size=200), st.text(max_size=60))
def test_facts__any_text__are_safe_and_found_in_it(text: str, question: str) -> None:
    for fact in find_shared_facts(question, responses(text), NOW).facts:
        assert is_safe_text(fact.text)
        if fact.is_number:
            assert has_number(text, fact.text), (fact, text)
        else:
            assert Regex(fact.pattern).find(text) if fact.pattern else fact.text in text, (fact, text)
