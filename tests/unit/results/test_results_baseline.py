"""Whether a run says enough to be compared with."""

import pytest

from eval_gate.results.baseline import has_enough_scores
from tests.support.results import make_run


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("PFEE", True),
        ("PEE", False),
        ("EEEE", False),
        ("PNN", False),
        ("PESSS", True),
        ("SSS", True),
        ("", True),
    ],
)
def test_has_enough_scores__share_of_scored_cases__is_half_of_those_not_skipped(letters, expected) -> None:
    words = {"P": "passed", "F": "failed", "E": "error", "S": "skipped", "N": "not_run"}
    run = make_run({f"case {number}": words[letter] for number, letter in enumerate(letters)})
    assert has_enough_scores(run) is expected
