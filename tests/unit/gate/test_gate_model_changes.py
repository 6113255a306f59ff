"""How answering models are named in a sentence."""

from __future__ import annotations

from eval_gate.gate.model_changes import MAX_NAMED_MODELS, format_model_names


def test_names__many__are_a_few_and_how_many_more() -> None:
    assert format_model_names([f"m{number}" for number in range(MAX_NAMED_MODELS + 2)]) == "m0, m1, m2 and 2 more"
