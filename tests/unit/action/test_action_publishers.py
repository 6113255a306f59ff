"""Whose something is that was published before."""

import pytest

from eval_gate.action.publishers import Publisher, publisher_of
from eval_gate.model.result import MadeBy

JOB, STEP, INPUTS, OTHER = "11111111", "22222222", "33333333", "99999999"


def made(gate: str = "gate.yml.gate", run_id: int = 5, attempt: int = 1, leg: str | None = f"{JOB}-{STEP}-{INPUTS}"):
    return MadeBy(gate=gate, run_id=run_id, attempt=attempt, leg=leg)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (made(), Publisher.OURS),
        (made(gate="gate.yml.other"), Publisher.ANOTHER_GATE),
        (made(leg=f"{OTHER}-{STEP}-{INPUTS}"), Publisher.ANOTHER_LEG),
        (made(leg=f"{JOB}-{OTHER}-{INPUTS}"), Publisher.ANOTHER_LEG),
        (made(leg=f"{JOB}-{STEP}-{OTHER}"), Publisher.ANOTHER_LEG),
        (made(leg=f"{OTHER}-{STEP}-{INPUTS}", attempt=2), Publisher.OURS),
        (made(leg=f"{JOB}-{OTHER}-{INPUTS}", attempt=2), Publisher.ANOTHER_LEG),
        (made(leg=f"{OTHER}-{STEP}-{OTHER}", attempt=2), Publisher.ANOTHER_LEG),
        (made(leg=f"{OTHER}-{OTHER}-{OTHER}", run_id=4), Publisher.OURS),
        (made(leg=None), Publisher.OURS),
    ],
)
def test_publisher_of__run_attempt_and_leg__decide(theirs, expected) -> None:
    assert publisher_of(made(), theirs) is expected
