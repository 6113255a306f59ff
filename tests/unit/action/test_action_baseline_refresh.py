"""Which workflows are started by hand, and with nothing to fill in."""

from __future__ import annotations

import pytest

from eval_gate.action.baseline_refresh import can_dispatch

REQUIRED = b"on:\n  workflow_dispatch:\n    inputs:\n      n: {required: true%s}\n      m: {required: false}\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"name: x\non:\n  push:\n  workflow_dispatch:\njobs:\n  a: ${{ x }}\n", True),
        (b"on: [push, workflow_dispatch]\n", True),
        (b'"on": workflow_dispatch\n', True),
        (b"on:\n  workflow_dispatch: {}\n", True),
        (REQUIRED % b", default: 3", True),
        (REQUIRED % b"", False),
        (b"on: push\n", False),
        (b"on: [push]\n", False),
        (b"on:\n  push:\n    branches: [workflow_dispatch]\n", False),
        (b"jobs:\n  workflow_dispatch: {}\n", False),
        (b"", False),
        (b"\xff\xfe\xff", False),
        (b"[" * 100_000, False),
        (b"on: {workflow_dispatch: {inputs: [a]}}\n", True),
    ],
)
def test_can_dispatch__triggers__need_one_by_hand_without_required_inputs(data, expected) -> None:
    assert can_dispatch(data) is expected
