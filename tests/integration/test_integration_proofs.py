"""The proofs that `benchmarks/reliability.md` has the figures of, in their small forms."""

from __future__ import annotations

import pytest

from benchmarks import kills, soak


@pytest.mark.slow
def test_kills__five_at_random_moments__nothing_is_lost_and_nothing_done_twice(tmp_path) -> None:
    tally = kills.campaign(5, seed=7, folder=tmp_path, cases=24)
    assert (tally.lost, tally.doubled, tally.trouble) == ([], [], [])
    assert tally.kills >= 5


@pytest.mark.slow
def test_soak__one_fault_in_ten_answers__every_count_is_right(tmp_path) -> None:
    seen = soak.soak(500, seed=7, folder=tmp_path)
    assert seen.wrong == []
    assert seen.faults > 20
    assert seen.requests > seen.cases
    assert 0 < seen.peak_mb < 150
