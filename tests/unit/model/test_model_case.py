"""How the trials of a case decide it."""

from __future__ import annotations

import pytest

from eval_gate.model.case import PassRule, decide_pass


@pytest.mark.parametrize(
    ("letters", "passes"),
    [
        ("PPPPPPPPFF", True),
        ("PPPPPPPFFF", False),
        ("PPPPPPPFFFPPPP", False),
        ("FFF", False),
        ("PPPPPPPP", True),
        ("PPPPPPPFF", None),
        ("", None),
    ],
)
def test_decide_pass__eight_of_the_first_ten__decide_as_soon_as_they_can(letters, passes) -> None:
    assert decide_pass(PassRule(trials=10, passes=8), [letter == "P" for letter in letters]) is passes


@pytest.mark.parametrize(("letters", "passes"), [("PPF", True), ("PF", False), ("F", False), ("", None)])
def test_decide_pass__no_rule__asks_for_more_than_half(letters, passes) -> None:
    assert decide_pass(None, [letter == "P" for letter in letters]) is passes
