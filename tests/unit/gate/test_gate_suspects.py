"""Which of many suspects are run again, in which order, and when no more are."""

from __future__ import annotations

import pytest

from eval_gate.gate.reruns import ENOUGH_CONFIRMED, MAX_ALWAYS_RERUN, Suspects, compute_shard_share
from eval_gate.model.case import CaseKey
from eval_gate.struct import replace


def keys(count: int) -> list[CaseKey]:
    return [CaseKey("a.json", f"c{number}") for number in range(count)]


def suspects(*causes: str, allowed: int | None = 0, uncounted: int = 0) -> Suspects:
    """A suspect for each letter, which is its cause; the first `uncounted` ones are accepted."""
    mine = keys(len(causes))
    return Suspects(dict(zip(mine, causes, strict=True)), allowed, frozenset(mine[:uncounted]))


@pytest.mark.parametrize("count", [1, ENOUGH_CONFIRMED])
def test_suspects__a_dozen_or_fewer__are_all_rerun_whatever_is_known(count) -> None:
    mine = keys(count)
    few = suspects(*"a" * count)
    assert few.select_next(mine, ()) == mine
    assert not any(few.can_skip(key, mine) for key in mine)


def test_suspects__one_cause__a_dozen_first_and_the_others_never() -> None:
    mine, many = keys(50), suspects(*"a" * 50)
    assert many.select_next(mine, ()) == mine[:ENOUGH_CONFIRMED]
    assert many.select_next(mine[ENOUGH_CONFIRMED:], mine[:ENOUGH_CONFIRMED]) == []
    assert all(many.can_skip(key, mine[:ENOUGH_CONFIRMED]) for key in mine[ENOUGH_CONFIRMED:])
    assert not many.can_skip(mine[20], mine[: ENOUGH_CONFIRMED - 1])


def test_suspects__first_ones_are_let_go__all_others_at_once() -> None:
    mine, many = keys(50), suspects(*"a" * 50)
    assert many.select_next(mine[ENOUGH_CONFIRMED:], ()) == mine[ENOUGH_CONFIRMED:]


def test_suspects__some_are_confirmed__as_many_again_as_are_missing_to_a_dozen() -> None:
    mine, many = keys(50), suspects(*"a" * 50)
    assert many.select_next(mine[ENOUGH_CONFIRMED:], mine[:9]) == mine[ENOUGH_CONFIRMED : ENOUGH_CONFIRMED + 3]


def test_suspects__several_causes__by_turns_and_the_rare_ones_among_them() -> None:
    mine, many = keys(22), suspects(*"a" * 20, "b", "c")
    assert many.select_next(mine, ()) == [mine[0], mine[20], mine[21], *mine[1:10]]


def test_suspects__one_shard_of_several__confirms_its_share() -> None:
    assert [compute_shard_share(count) for count in (1, 2, 4, 5, 50)] == [12, 6, 3, 3, 3]
    mine = keys(6)
    part = replace(suspects(*"a" * 6), enough_confirmed=3)
    assert part.select_next(mine, ()) == mine[:3]
    assert part.can_skip(mine[4], mine[:3])
    assert not replace(suspects(*"a" * MAX_ALWAYS_RERUN), enough_confirmed=3).is_limited


def test_suspects__allowed_regressions__are_not_certain_before_one_more() -> None:
    mine, many = keys(50), suspects(*"a" * 50, allowed=14)
    assert many.select_next(mine, ()) == mine[:15]
    assert not many.can_skip(mine[20], mine[:14])
    assert many.can_skip(mine[20], mine[:15])


def test_suspects__accepted_ones__come_last_and_make_nothing_certain() -> None:
    mine, many = keys(50), suspects(*"a" * 50, uncounted=20)
    assert many.select_next(mine, ()) == mine[20:32]
    assert not many.can_skip(mine[40], mine[:20])
    assert many.can_skip(mine[40], mine[9:21])


@pytest.mark.parametrize("count", [3, 50])
def test_suspects__nothing_fails_the_gate__spares_none(count) -> None:
    mine, many = keys(count), suspects(*"a" * count, allowed=None)
    assert many.select_next(mine, ()) == mine
    assert not many.can_skip(mine[2], mine)


def test_suspects__cases_that_may_not_be_spared__are_in_the_first_turn() -> None:
    mine, many = keys(50), suspects(*"a" * 50)
    other = CaseKey("a.json", "must-pass")
    assert many.select_next([*mine, other], ())[0] == other
    assert not many.can_skip(other, mine)
