"""Which of many suspects are run again, in which order, and when no more are."""

from __future__ import annotations

import pytest

from eval_gate.gate.suspects import FEW, IN_ALL, OF_A_CAUSE, Suspects
from eval_gate.model.case import CaseKey


def keys(count: int) -> list[CaseKey]:
    return [CaseKey("a.json", f"c{number}") for number in range(count)]


def suspects(*causes: str, allowed: int | None = 0, uncounted: int = 0) -> Suspects:
    """A suspect for each letter, which is its cause; the first `uncounted` ones are accepted."""
    mine = keys(len(causes))
    return Suspects(dict(zip(mine, causes, strict=True)), allowed, frozenset(mine[:uncounted]))


def test_suspects__few__are_all_run_again_whatever_is_known() -> None:
    mine = keys(FEW)
    few = suspects(*"a" * FEW)
    assert few.turn(mine, ()) == mine
    assert not any(few.spares(key, mine) for key in mine)


def test_suspects__one_cause__three_first_and_the_others_never() -> None:
    mine, many = keys(50), suspects(*"a" * 50)
    assert many.turn(mine, ()) == mine[:OF_A_CAUSE]
    assert many.turn(mine[3:], mine[:3]) == []
    assert all(many.spares(key, mine[:3]) for key in mine[3:])
    assert not many.spares(mine[9], mine[:2])


def test_suspects__first_ones_are_let_go__all_others_at_once() -> None:
    mine, many = keys(50), suspects(*"a" * 50)
    assert many.turn(mine[3:], ()) == mine[3:]


def test_suspects__cause_is_confirmed_in_part__as_many_again_as_were_asked() -> None:
    mine, many = keys(50), suspects(*"a" * 50)
    assert many.turn(mine[3:], mine[:2]) == mine[3:6]
    assert many.turn(mine[6:], mine[:2]) == mine[6:12]


def test_suspects__several_causes__a_few_of_each_and_the_rare_ones_among_them() -> None:
    mine, many = keys(22), suspects(*"a" * 20, "b", "c")
    assert many.turn(mine, ()) == [mine[0], mine[20], mine[21], mine[1], mine[2]]
    confirmed = [*mine[:3], mine[20]]
    assert many.spares(mine[5], confirmed)
    assert not many.spares(mine[21], confirmed)


def test_suspects__every_one_says_something_else__ten_of_them() -> None:
    mine, many = keys(50), suspects(*map(str, range(50)))
    assert many.turn(mine, ()) == mine[:IN_ALL]
    assert many.turn(mine[IN_ALL:], mine[:IN_ALL]) == []
    assert many.turn(mine[IN_ALL:], mine[:1]) == mine[IN_ALL:]


def test_suspects__allowed_regressions__are_not_certain_before_one_more() -> None:
    mine, many = keys(50), suspects(*"a" * 50, allowed=12)
    assert many.turn(mine, ()) == mine[:13]
    assert not many.spares(mine[20], mine[:12])
    assert many.spares(mine[20], mine[:13])


def test_suspects__accepted_ones__come_last_and_make_nothing_certain() -> None:
    mine, many = keys(50), suspects(*"a" * 50, uncounted=10)
    assert many.turn(mine, ()) == mine[10:13]
    assert not many.spares(mine[20], mine[:10])
    assert many.spares(mine[20], [*mine[:3], mine[11]])


@pytest.mark.parametrize("count", [3, 50])
def test_suspects__nothing_fails_the_gate__spares_none(count) -> None:
    mine, many = keys(count), suspects(*"a" * count, allowed=None)
    assert many.turn(mine, ()) == mine
    assert not many.spares(mine[2], mine)


def test_suspects__cases_that_may_not_be_spared__are_in_the_first_turn() -> None:
    mine, many = keys(50), suspects(*"a" * 50)
    other = CaseKey("a.json", "must-pass")
    assert many.turn([*mine, other], ())[0] == other
    assert not many.spares(other, mine)
