"""What an answer that is no success says about itself."""

import time

import pytest

from eval_gate.github.failure import ErrorResponse, FailureKind, build_refusal_error

NINE = "Sun, 22 Nov 2026 09:00:00 GMT"
NINE_S = 1_795_338_000


def limited(date: str | None, reset: float) -> float | None:
    """How long to wait by an answer that says when the limit ends."""
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(reset)} | ({"date": date} if date else {})
    error = build_refusal_error(ErrorResponse(403, headers, "rate limit exceeded"), "reading a run")
    assert error.kind is FailureKind.RATE_LIMITED
    return error.wait_s


def test_refusal__end_of_the_limit__is_told_by_github_s_clock() -> None:
    assert limited(NINE, NINE_S + 20) == 21


def test_refusal__limit_that_has_ended__waits_a_second() -> None:
    assert limited(NINE, NINE_S - 20) == 1


@pytest.mark.parametrize(
    "date",
    [None, "", "soon", "Sun, 22 Nov 99999999999999999999 09:00:00 GMT"],
    ids=["none", "empty", "words", "digits"],
)
def test_refusal__clock_that_says_nothing__goes_by_ours(date) -> None:
    wait = limited(date, int(time.time()) + 100)
    assert wait is not None
    assert 90 <= wait <= 101
