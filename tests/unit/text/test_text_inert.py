"""Signs that hide or turn what stands beside them."""

import pytest

from eval_gate.text.inert import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a\u2400b"),
        ("\x1b", "\u241b"),
        ("\x1f", "\u241f"),
        ("\x7f", "[U+007F]"),
        ("\u202e", "[U+202E]"),
        ("a\tb\nc é", "a\tb\nc é"),
    ],
    ids=["nul", "escape", "the-last-control", "delete", "turns-a-line", "nothing"],
)
def test_visible__unseen_sign__is_a_mark_of_its_own(text, shown) -> None:
    assert visible(text) == shown
