"""Programs that tests start wait for their agents, as those of users do."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.program import CLEAN

TESTS = Path(__file__).resolve().parents[2]
NO_WAIT = re.compile(r"wait[_-]?for\W{1,6}0(\.0*)?(?![.\d])", re.IGNORECASE)
OF_THE_SETTING = TESTS / "integration" / "test_integration_waiting.py"
OFF = (
    '"EVAL_GATE_WAIT_FOR": "0"',
    "waitFor=0,",
    'wait_for="0"',
    '"--wait-for", "0")',
    '{"wait-for": 0.0}',
    "waitFor: 0",
)
ON = ("waitFor: 0.2", 'wait_for="30"', '"--wait-for", "0.05"', "waitFor: 1", "wait_for: 0.2")


def test_tests__none_but_that_of_the_setting__switch_waiting_off() -> None:
    found = [
        f"{file.relative_to(TESTS)}: {line.strip()}"
        for file in sorted(TESTS.rglob("*.py"))
        if file not in {OF_THE_SETTING, Path(__file__).resolve()}
        for line in file.read_text().splitlines()
        if NO_WAIT.search(line)
    ]
    assert found == []
    assert NO_WAIT.search(OF_THE_SETTING.read_text())
    assert float(CLEAN["EVAL_GATE_WAIT_FOR"]) > 0


def test_no_wait__in_each_spelling__is_found_and_no_other_time() -> None:
    assert [text for text in (*OFF, *ON) if NO_WAIT.search(text)] == [*OFF]
