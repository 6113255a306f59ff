"""How answering models are named in a sentence."""

from __future__ import annotations

from eval_gate.gate.answering_models import NAMED, names


def test_names__many__are_a_few_and_how_many_more() -> None:
    assert names([f"m{number}" for number in range(NAMED + 2)]) == "m0, m1, m2 and 2 more"
