"""The agent of the draft benchmark: its wordings keep the facts, and its planted changes are forty different ones."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from difflib import SequenceMatcher
from math import ceil
from statistics import mean

import pytest

from benchmarks.drafts.agent import DraftAgent
from benchmarks.drafts.clinic import CLINIC_QUESTIONS
from benchmarks.drafts.measure import RESULTS
from benchmarks.drafts.plants import COUNTS, PER_QUESTION, draw_plants, list_all_changes
from benchmarks.drafts.questions import QUESTIONS
from benchmarks.drafts.table import COLUMNS, README, render_tables
from benchmarks.drafts.wording import (
    SHARE,
    count_changed_words,
    find_marks,
    plant_mistake,
    render_canonical,
    render_randomly,
)


@pytest.mark.parametrize("question", [*QUESTIONS, *CLINIC_QUESTIONS], ids=lambda question: question.id)
def test_random_wording__each_question__changes_a_tenth_of_the_words_and_no_fact(question) -> None:
    canonical = render_canonical(question.response)
    wordings = {render_randomly(question.response, random.Random(seed)) for seed in range(30)}
    assert len(wordings) > 2
    allowed = ceil(SHARE * len(canonical.split()))
    for wording in wordings:
        assert count_changed_words(canonical, wording) <= allowed
        assert not set("[]{}|\x00\x01") & set(wording)
        for mark in find_marks(question.response):
            words = mark.right.replace(", ", " ").split()
            assert all(word in wording for word in words), (mark, wording)


def test_random_wording__all_questions__changes_a_tenth_on_average() -> None:
    shares = []
    for question in QUESTIONS:
        canonical = render_canonical(question.response)
        for seed in range(8):
            changed = count_changed_words(canonical, render_randomly(question.response, random.Random(seed)))
            shares.append(changed / len(canonical.split()))
    assert 0.09 < mean(shares) < 0.13


def test_mistake__each_fact_of_each_question__replaces_one_place_in_both_orders_of_the_words() -> None:
    tried = 0
    for question in QUESTIONS:
        for place, mark in enumerate(find_marks(question.response)):
            changed = plant_mistake(question.response, place)
            before, after = render_canonical(question.response), render_canonical(changed)
            assert Counter(after.split()) != Counter(before.split()), (question.id, mark)
            alone = re.compile(rf"(?<!\w){re.escape(mark.wrong)}(?!\w)")
            assert len(alone.findall(after)) == len(alone.findall(before)) + 1, (question.id, mark)
            matched = SequenceMatcher(None, before.split(), after.split(), autojunk=False).get_matching_blocks()
            assert len(before.split()) - sum(block.size for block in matched) <= len(mark.right.split())
            for seed in range(2):
                worded = render_randomly(changed, random.Random(seed))
                assert all(word in worded for word in mark.wrong.split()), (worded, mark)
            tried += 1
    assert tried > 60


def test_plants__as_drawn__are_forty_of_the_announced_kinds_and_two_for_each_question() -> None:
    plants = draw_plants()
    assert [plant.number for plant in plants] == list(range(1, 41))
    assert Counter(plant.kind for plant in plants) == COUNTS
    assert set(Counter(plant.question for plant in plants).values()) == {PER_QUESTION}
    assert len({(plant.question, plant.kind) for plant in plants}) == 40
    assert draw_plants() == plants


def test_plants__each__changes_what_the_agent_answers_to_its_question_alone() -> None:
    for plant in draw_plants():
        plain, changed = DraftAgent(), DraftAgent(None, plant)
        for question in QUESTIONS:
            request = {"message": question.text}
            is_planted = question.id == plant.question
            assert (plain.reply(request) != changed.reply(request)) == is_planted, (plant, question.id)


def test_agent__both_protocols__gives_the_same_text_and_calls() -> None:
    ours, theirs = DraftAgent(7), DraftAgent(7)
    for question in QUESTIONS:
        one, other = ours.reply({"message": question.text}), theirs.reply({"query": question.text})
        assert one["response"] == other["output"]
        assert [(call["name"], call["params"], call["result"]) for call in one["toolCalls"]] == [
            (call["name"], call["parameters"], call["output"]) for call in other["tool_calls"]
        ]


def test_agent__same_seed__repeats_its_wordings_and_another_seed_does_not() -> None:
    question = max(QUESTIONS, key=lambda question: len(question.response))
    answers = [[agent.answer(question.text)[0] for _ in range(3)] for agent in map(DraftAgent, (1, 1, 2))]
    assert answers[0] == answers[1]
    assert len(set(answers[0]) | set(answers[2])) == 6


@pytest.mark.slow
def test_all_changes__both_agents__hold_every_planted_change_and_each_once() -> None:
    everything = list_all_changes()
    keys = [(plant.question, plant.kind, str(plant.changed), plant.detail) for plant in everything]
    assert len(set(keys)) == len(keys)
    assert {(plant.question, plant.kind, str(plant.changed), plant.detail) for plant in draw_plants()} <= set(keys)
    assert {plant.question for plant in list_all_changes(CLINIC_QUESTIONS)} == {one.id for one in CLINIC_QUESTIONS}


def test_readme__its_tables__are_those_of_the_results() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert render_tables(results) in README.read_text(encoding="utf-8")
    assert {column.suite for column in COLUMNS} <= results.keys()


def test_results__the_drafted_suite__finds_most_changes_and_is_never_red_without_one() -> None:
    drafted = json.loads(RESULTS.read_text(encoding="utf-8"))["drafted"]
    assert len(drafted["plants"]) == 40
    assert sum(one["exit"] == 1 and one["failed"] for one in drafted["plants"].values()) >= 32
    assert [run["exit"] for run in drafted["unchanged"]] == [0] * 30
