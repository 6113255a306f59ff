"""In random histories of a repository nothing is reused that must not be, and each clause of the decision is needed."""

from collections import Counter

import pytest

from tests.support.reuse_stories.disk import Checkout
from tests.support.reuse_stories.mutants import MUTANTS
from tests.support.reuse_stories.rules import Rules
from tests.support.reuse_stories.runs import model_state
from tests.support.reuse_stories.story import Story
from tests.support.sizes import size

HISTORIES = 30
MOST = 600
"""Histories in which a mutant has to be found."""


def find_faults(histories: range, rules: Rules, read_state=model_state) -> tuple[list[str], Counter[str]]:
    """What the first of these histories with a fault does wrong, and the counts of all until then."""
    counts: Counter[str] = Counter()
    for seed in histories:
        story = Story(seed, read_state, rules, attacks=2 if seed % 2 else 12).tell()
        counts += story.counts
        if faults := [*story.wrong, *story.missed]:
            return [*faults, *story.lines], counts
    return [], counts


def test_decide_reuse__random_histories__reuses_what_it_may_and_nothing_else(tmp_path) -> None:
    faults, counts = find_faults(range(HISTORIES), Rules(), Checkout(tmp_path).read_state)
    assert not faults, "\n".join(faults)
    assert counts["reused from baseline"] > HISTORIES
    assert counts["reused from own_run"]
    assert counts["rechecked"]


@pytest.mark.slow
def test_decide_reuse__many_random_histories__reuses_what_it_may_and_nothing_else(tmp_path) -> None:
    faults, _ = find_faults(range(HISTORIES, HISTORIES + size(400)), Rules(), Checkout(tmp_path).read_state)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_decide_reuse__one_of_its_clauses_is_left_out__a_history_shows_it(mutant) -> None:
    faults, _ = find_faults(range(MOST), MUTANTS[mutant])
    assert faults
