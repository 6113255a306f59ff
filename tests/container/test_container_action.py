"""The image's own entry point, as a step of a job runs it."""

from __future__ import annotations


def test_action__that_reaches_nothing_still_masks_its_token_and_hands_back_outputs_and_a_summary(step) -> None:
    """`github-token` is an input whose name holds a hyphen: masking it shows that it arrived."""
    done = step(inputs={"github-token": "a-token-of-nobody"})
    assert "::add-mask::a-token-of-nobody" in done.stdout.splitlines()
    assert done.exit_code == 3
    assert done.outputs["exit-code"] == "3"
    assert done.outputs["verdict"] == "inconclusive"
    assert done.summary.strip()
    assert "a-token-of-nobody" not in done.summary + done.output
