"""Whether a run says enough to be compared with."""

import pytest

from eval_gate.results.baseline import is_measured
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
def test_is_measured__share_of_judged_cases__is_at_least_half_of_those_that_were_not_skipped(letters, expected) -> None:
    words = {"P": "passed", "F": "failed", "E": "error", "S": "skipped", "N": "not_run"}
    run = make_run({f"case {number}": words[letter] for number, letter in enumerate(letters)})
    assert is_measured(run) is expected
