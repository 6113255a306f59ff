"""Results of other tools in which a check says less than it did: it is named, and `fail-on: changed` blocks it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.program import gate

CORRECT, POLITE = {"name": "correct", "passed": True}, {"name": "polite", "passed": True}
DECIDED = {"suite": "s", "status": "passed", "input": "q", "expected": "e", "checks": [CORRECT, POLITE]}


def check(folder: Path, line: dict, *more: str):
    """What `check` says of three cases, of which the last one is this line, beside three as they were."""
    then = [{**DECIDED, "id": f"c{number}", "input": f"q{number}"} for number in range(3)]
    for name, rows in (("then", then), ("now", [*then[:2], {**line, "id": "c2"}])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = gate(folder, "check", "then.jsonl", "--output-dir", "then")
    assert made.returncode == 0, made.stderr
    return gate(folder, "check", "now.jsonl", "--baseline", "then", *more)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checks": [{"name": "correct", "score": 0.0}, POLITE]}, "has an evaluator that no longer decides: `c2`"),
        ({"checks": [{"name": "correct"}, POLITE]}, "has an evaluator that no longer decides: `c2`"),
        ({"checks": [{"name": "correct", "passed": None}, POLITE]}, "has an evaluator that no longer decides: `c2`"),
        ({"checks": [POLITE]}, "has fewer checks: `c2`"),
        ({"checks": []}, "no longer has a check: `c2`"),
        ({"input": None, "expected": None}, "no longer says what its prompt or expectation is: `c2`"),
        ({"input": None}, "no longer says what its prompt or expectation is: `c2`"),
        ({"expected": None}, "has a changed expectation: `c2`"),
    ],
)
def test_check__a_case_that_says_less_than_it_did__is_named_and_blocks(tmp_path, changes, said) -> None:
    line = {key: value for key, value in {**DECIDED, "input": "q2", **changes}.items() if value is not None}
    done = check(tmp_path, line, "--fail-on", "regressions,changed")
    assert (done.returncode, said in " ".join(done.stdout.split())) == (1, True), done.stdout + done.stderr


def test_check__a_case_that_decides_more_than_it_did__is_no_setup_change(tmp_path) -> None:
    line = {**DECIDED, "input": "q2", "checks": [CORRECT, POLITE, {"name": "short", "score": 0.4}]}
    done = check(tmp_path, line, "--fail-on", "regressions,changed")
    assert (done.returncode, "setup changed" in done.stdout) == (0, False), done.stdout + done.stderr
